"""Where a process stood when it was stopped, or crashed: the interpreter writes the stack of each thread into a file.

The command asks with a signal (`Config.stack_signal`). faulthandler answers it in C: a process that waits
in C++ for the others answers too, where no handler in Python would run.
"""

from __future__ import annotations

import faulthandler
import json
import os
from typing import Any

from .config import config
from .user_code import LIBRARIES

_file: Any = None


def install() -> None:
    """Be ready to write `PID.stack` beside the records: a line of JSON, the folders that hold no user's code, then what
    faulthandler writes. The file is locked as long as the process lives. Does nothing where nobody would ask."""
    global _file
    if not config.stack_signal or not os.path.isdir(config.records):
        return
    import fcntl

    enabled = _file is not None or not faulthandler.is_enabled()  # else somebody wants crashes on the terminal
    if _file is not None:
        _file.close()  # that of the parent of a fork
    _file = open(os.path.join(config.records, f"{os.getpid()}.stack"), "w", encoding="utf-8")  # noqa: SIM115
    _file.write(json.dumps(LIBRARIES) + "\n")
    _file.flush()
    fcntl.flock(_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    faulthandler.register(config.stack_signal, file=_file, all_threads=True, chain=False)
    if enabled:
        faulthandler.enable(file=_file, all_threads=True)
