"""Memory of the host: figures of the process, measured from the first look, and the error when there is no more.

They are no device's.
"""

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


class HostTooSmall(MemoryError):
    """The machine that emulates has less memory than the program needs: shows nothing of the program, nor of a card."""


#: In front of the text of the same error where it comes through torch_npu, as one of its own.
MARK = "HostTooSmall: "


def raise_if_host_is_full(error: Exception) -> None:
    """HostTooSmall for the error of PyTorch's allocator of the CPU when it gets nothing."""
    text = str(error)
    if "DefaultCPUAllocator" in text and ("can't allocate" in text or "not enough memory" in text):
        wanted = next((word for word in text.split() if word.isdigit()), "")
        asked = f"{int(wanted) / (1 << 30):.1f} GiB" if wanted else "the requested memory"
        raise HostTooSmall(
            f"this machine has no {asked} left for the emulated card, whose memory is the host's. This is not an error "
            "of the program; run it with smaller sizes, or on a machine with more memory"
        ) from error


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
