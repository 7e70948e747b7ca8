"""Whether the machine that emulates was too small for the program: then a run proves nothing about it."""

from __future__ import annotations

import signal

from transplt.proof.launch.runner import ScriptRun

#: The messages of the loader of libraries, C++ and the system about it.
_FULL = ("failed to map segment", "std::bad_alloc", "Cannot allocate memory")
#: What an interpreter ends with when it, or a process that a shell waited for, was killed.
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


def too_small(outcome: ScriptRun) -> str:
    """Why the run could not be made on this machine, in one sentence without a full stop; empty when it could."""
    for process in outcome.processes:
        error = process["exception"]
        if error and error["type"] == "HostTooSmall":
            return str(error["message"]).splitlines()[0]
        if error and (error["type"] == "MemoryError" or any(word in error["message"] for word in _FULL)):
            return f"a process ran out of memory ({error['type']}): this machine may be too small"
    if outcome.code in _KILLED and not outcome.timed_out:
        return "a process was killed, probably because memory ran out: this machine may be too small"
    return ""
