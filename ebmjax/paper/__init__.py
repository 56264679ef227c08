"""The paper's tables and figures, compared with our own runs.

`cells` holds the published figures and the commands that measure them, `store` the
finished runs, `ledger` both with verdicts, and `summary` the outcome. `running` makes
missing runs, and `figures` draws.
"""
