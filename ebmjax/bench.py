"""python -m ebmjax.bench: how fast it is; see `ebmjax.tools.bench`."""

from ebmjax.tools.bench.command import cli

if __name__ == "__main__":
  cli()
