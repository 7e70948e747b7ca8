"""`python -m transplt` is the command `transplt`."""

import sys

from transplt.base.disk.search_path import leave_current_folder

leave_current_folder()

from transplt.faces.cli.main import entry_point  # noqa: E402

if __name__ == "__main__":
    sys.exit(entry_point())
