"""The tunings by name, and what `--tune` accepts."""

from __future__ import annotations

from functools import cache

from transplt.fixers.by_name import Named, named_in, parse_named

#: The packages whose fixers are tunings.
TUNINGS = ("transplt.fixers.tunings", "transplt.fixers.triton.tunings")


@cache
def tunings() -> dict[str, Named]:
    """All tunings by name, in the order in which they look; the first call imports them."""
    return named_in(*TUNINGS)


def parse_tunings(text: str, torch_version: str) -> tuple[tuple[str, str], ...]:
    """(name, value) of each tuning that a list such as `all,-drop-last,max-steps=100` asks for, in the table's order.

    UsageError for what is unknown, or named and missing in that torch_npu.
    """
    return parse_named("--tune", "tuning", tunings(), text, torch_version) if text else ()
