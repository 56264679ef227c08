"""python -m ebmjax.reproduce: the paper's tables; see `ebmjax.paper.reproduce`."""

from ebmjax.paper.reproduce import cli

if __name__ == "__main__":
  cli()
