"""`python -m` puts the current folder first into the search path of modules: here it goes out again.

It may be the folder of somebody else's project, whose `click.py` is not ours to run. This is imported before anything
else is, so it imports nothing that Python has not imported at its start; `from __future__` would be a file, too.
"""

import os
import sys


def leave_current_folder() -> None:
    """Takes the current folder out of `sys.path`; where transplt or Python itself lies in it, it goes to the end."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        here = ""
    others = [folder for folder in sys.path if folder and os.path.realpath(folder) != here]
    ours = os.path.join(os.path.abspath(__file__), *[os.pardir] * 4)  # the folder of the package
    python = os.path.dirname(os.path.realpath(os.__file__))
    needed = here == os.path.realpath(ours) or here == python or here.startswith(python + os.sep)
    sys.path[:] = [*others, here] if here and needed else others
