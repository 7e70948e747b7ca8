"""What an example may cost: time by the length of the input, memory, and an end for what never ends by itself."""

from __future__ import annotations

import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

#: Seconds of CPU for an input of no length, and for each byte of one: linear, with room for a slow machine.
BASE_SECONDS, SECONDS_PER_BYTE = 2.0, 40e-6
#: Seconds on the clock, for what waits and costs no CPU.
CLOCK_SECONDS = 120.0
#: By how many bytes one example may raise the most memory that the process ever had.
MEMORY_BYTES = 400 * 1024 * 1024
#: A tracer (coverage) makes everything slower.
_TRACED = 5.0
_UNIT = 1 if sys.platform == "darwin" else 1024


class _TooLong(BaseException):
    """No Exception, so that nothing that is tested takes it for one of its own."""


@contextmanager
def bounded(size: int) -> Iterator[None]:
    """AssertionError when the block takes more than an input of `size` bytes may cost. In the main thread only."""
    seconds = (BASE_SECONDS + SECONDS_PER_BYTE * size) * (_TRACED if sys.gettrace() is not None else 1.0)

    def stop(number: int, frame: FrameType | None) -> NoReturn:
        raise _TooLong

    before = {number: signal.signal(number, stop) for number in (signal.SIGVTALRM, signal.SIGALRM)}
    peak = _peak()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, CLOCK_SECONDS)
    try:
        yield
    except _TooLong:
        raise AssertionError(f"more than {seconds:.1f} s of CPU (or {CLOCK_SECONDS:.0f} s) for {size} bytes") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    grown = _peak() - peak
    assert grown < MEMORY_BYTES, f"{grown // 2**20} MiB of memory for {size} bytes"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT
