"""Runs `ebmjax capacity`; kept for notes that say python -m launch.capacity."""

import sys

from ebmjax.tools.capacity import main

if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
