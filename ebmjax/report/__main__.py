"""python -m ebmjax.report: a run's page, or a comparison; see `ebmjax.tools.report`."""

from ebmjax.tools.report import cli

if __name__ == "__main__":
  cli()
