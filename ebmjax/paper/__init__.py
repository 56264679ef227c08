"""The paper's tables and figures, set beside our own runs.

`cells` holds what the paper prints and the command that measures it, `store` the runs,
`ledger` both side by side with the verdicts, `summary` the outcome; `running` makes the
runs that are missing, and `figures` draws.
"""
