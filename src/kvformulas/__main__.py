"""``python -m kvformulas``: the command."""

import sys

from kvformulas.cli import main

if __name__ == "__main__":
    sys.exit(main())
