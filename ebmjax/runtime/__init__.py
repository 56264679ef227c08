"""What runs a configuration: compiled loops, devices, checkpoints, folders."""
