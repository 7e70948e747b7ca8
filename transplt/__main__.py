"""`python -m transplt` is the command `transplt`."""

import sys

from transplt.commands.main import entry_point

if __name__ == "__main__":
    sys.exit(entry_point())
