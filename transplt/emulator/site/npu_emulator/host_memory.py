"""Memory figures of the host process, measured from the first look. They are no device's."""

from __future__ import annotations

import resource
import sys


def _resident() -> int:
    """Resident bytes of this process."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


_base = _resident()
_peak = 0


def growth() -> int:
    """Bytes the process grew since this module was imported."""
    global _peak
    now = max(0, _resident() - _base)
    _peak = max(_peak, now)
    return now


def peak() -> int:
    """The largest growth seen when asked; peaks in between are not."""
    growth()
    return _peak


def reset_peak() -> None:
    """Forget the largest growth."""
    global _peak
    _peak = 0
