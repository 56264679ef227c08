"""Sweeps: the best of many settings, chosen by validation images and not by test ones.

`settings` makes the configurations, `running` runs each in a folder of its own and
`tables` and `page` write what came out; `ebmjax sweep` is the command.
"""
