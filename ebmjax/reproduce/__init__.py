"""The ledger of the paper's table cells: what is measured, what is missing, and runs.

`cells` names them and the command of each, `protocols` says where a published figure
comes from, `store` keeps what was measured, `ledger` sets the two against each other,
`estimates` guesses times, `claims` and `running` make what is missing, and `listing`
and `markdown` show it all.
"""
