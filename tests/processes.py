"""Child processes of tests, and which of them a coverage run measures.

Measuring works by tracing. Scripts on the emulated NPU must not be traced: the emulator records lines the same way, and
torch under a tracer is slower by far.
"""

from __future__ import annotations

import os
import sys

_ALONE = (
    "import os, runpy\n"
    "for name in [name for name in os.environ if name.startswith('COVERAGE_PROCESS')]: del os.environ[name]\n"
    "runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
)


def unmeasured() -> dict[str, str]:
    """The environment for a process that is not measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_PROCESS")}


def measured_alone(module: str) -> list[str]:
    """The command for `python -m module`, which is measured while the processes that it starts are not."""
    return [sys.executable, "-c", _ALONE.format(module=module)]
