"""What the paper prints, and the command here that each of its figures belongs to.

`printed` holds the figures, `cells` names their commands, `protocols` says who ran them
and what ours does otherwise, `commands` reads the configurations, and `departures` sets
a run's configuration against them.
"""
