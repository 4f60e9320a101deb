"""`python -m mxref`: the command line."""

import sys

from mxref.cli import main

if __name__ == "__main__":
    sys.exit(main())
