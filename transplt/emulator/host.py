"""Whether the machine that emulates was too small for the program: then a run says nothing of it."""

from __future__ import annotations

import signal

from transplt.emulator.runner import ScriptRun

#: What an interpreter ends with when it, or a process that a shell waited for, was killed.
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)


def too_small(outcome: ScriptRun) -> str:
    """Why the run could not be made on this machine, in one sentence without a full stop; empty when it could."""
    for process in outcome.processes:
        error = process["exception"]
        if error and error["type"] == "HostTooSmall":
            return str(error["message"]).splitlines()[0]
    if outcome.code in _KILLED and not outcome.timed_out:
        return "a process was killed, as systems do when their memory is used up: this machine may be too small"
    return ""
