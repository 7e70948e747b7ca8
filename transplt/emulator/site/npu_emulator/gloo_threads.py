"""Lets gloo's threads finish before the interpreter ends.

A collective is over for its caller a moment before gloo's worker thread lets go of the tensors, which takes the GIL.
Up to Python 3.13, a thread that asks for the GIL of an ending interpreter is ended by pthread_exit; unwinding the
destructor it is in, C++ aborts the process: "terminate called without an active exception". PyTorch's own gloo groups
do the same in scripts that end without destroy_process_group().
"""

from __future__ import annotations

import glob
import os
import time

_NAME = "pt_gloo_runloop"
_PAUSE = 0.002  # seconds
#: A thread that waits for the GIL sleeps too, but insists on it after the switch interval, which is 5 ms.
_IDLE = 0.012
_LIMIT = 10.0


def _busy() -> bool | None:
    """Whether a worker thread of gloo runs or waits for a processor; None where there is none."""
    found = None
    for path in glob.glob("/proc/self/task/*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
        except OSError:  # a thread that has ended since
            continue
        if name == _NAME:
            if rest.split()[0] not in "SI":
                return True
            found = False
    return found


def wait_until_idle() -> None:
    """Return once every worker thread of gloo sleeps: it is done, or waits for a rank that may be gone.

    Takes about 0.01 s, at most `_LIMIT`; on Linux no time in a process without such threads.
    """
    if not os.path.isdir("/proc/self/task"):
        time.sleep(_IDLE)  # macOS does not show what a thread does
        return
    begun = slept = time.monotonic()
    while (busy := _busy()) is not None:
        now = time.monotonic()
        if busy:
            slept = now
        if now - slept >= _IDLE or now - begun >= _LIMIT:
            return
        time.sleep(_PAUSE)
