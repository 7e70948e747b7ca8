"""Times and shares as people say them."""

from __future__ import annotations


def ms(us: float) -> str:
    """A time for people: `12.3 ms`, `4.2 s`, `7 us`."""
    if us >= 10_000_000:
        return f"{us / 1e6:.1f} s"
    return f"{us / 1000:.1f} ms" if us >= 1000 else f"{us:.0f} us" if us >= 10 or not us else f"{us:.1f} us"


def percent(share: float) -> str:
    """`12 %`, `0.4 %`."""
    return f"{share * 100:.0f} %" if share >= 0.0995 or not share else f"{share * 100:.1f} %"


def share_of(us: float, whole: float) -> str:
    """What a time is of a whole; empty for none."""
    return percent(us / whole) if whole else ""
