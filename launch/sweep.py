"""Runs `ebmjax sweep`; kept for notes that say python -m launch.sweep."""

import sys

from ebmjax.tools.sweep.__main__ import main

if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
