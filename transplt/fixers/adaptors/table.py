"""The adaptors by name, and what `--adapt` accepts."""

from __future__ import annotations

from functools import cache

from transplt.fixers.by_name import Named, named_in, parse_named


@cache
def adaptors() -> dict[str, Named]:
    """All adaptors by name, in the order in which they look; the first call imports them."""
    return named_in("transplt.fixers.adaptors")


def parse_adaptors(text: str, torch_version: str) -> tuple[tuple[str, str], ...]:
    """(name, value) of each adaptor that a list such as `all,-kernels` asks for. UsageError for what is unknown."""
    return parse_named("--adapt", "adaptor", adaptors(), text, torch_version) if text else ()
