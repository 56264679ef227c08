"""Commands besides `ebmjax run`: sweeps, benchmarks, export and others."""
