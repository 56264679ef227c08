"""The ledger of the paper's table cells: what is measured, what is missing, and runs.

`store` keeps what was measured, `ledger` sets it against the cells of `ebmjax.paper`,
`estimates` guesses times, `claims` and `running` make what is missing, and `listing`
and `markdown` show it all.
"""
