"""`python -m mxkernels`: the command line."""

import sys

from mxkernels.cli import main

if __name__ == "__main__":
    sys.exit(main())
