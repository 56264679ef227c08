"""Runs `ebmjax launch`; kept as python -m launch.processes."""

import sys

from ebmjax.tools.processes import main

if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
