"""python -m ebmjax.report: a run's page, or a comparison; see `ebmjax.tools.report`."""

import sys

from ebmjax.tools.report import main

if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
