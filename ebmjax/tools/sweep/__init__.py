"""Sweeps: choose the best of many settings by validation images, not by test images.

`settings` makes the configurations, `running` runs each in a folder of its own,
`selection` scores them, and `tables` and `page` write the results; `ebmjax sweep` is
the command.
"""
