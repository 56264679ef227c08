"""Commands beside a run: sweeps, speed, export."""
