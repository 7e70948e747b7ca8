"""--select and --ignore: prefixes of codes, as the patterns of `Settings.per_file_ignores` that switch the rest off."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transplt.base.errors import UsageError

_PREFIX = re.compile(r"NPU[0-9]{0,3}")


def parse_codes(values: Sequence[str], option: str) -> tuple[str, ...]:
    """The prefixes in `values`, which may hold several with commas between. UsageError for what is none."""
    from transplt.rules.pages import is_prefix, nearest_code

    found = tuple(word.upper() for value in values for word in value.replace(",", " ").split())
    for prefix in found:
        if not _PREFIX.fullmatch(prefix):
            hint = f"; did you mean {near}?" if (near := nearest_code(prefix)) else ""
            form = "use one such as NPU201, or its beginning such as NPU2"
            raise UsageError(f"{option}: {prefix} is not a code; {form}{hint}")
        if not is_prefix(prefix):
            raise UsageError(f"{option}: no code starts with {prefix}")
    return found


def switched_off(select: Sequence[str], ignore: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Entries for `Settings.per_file_ignores`: all that is not selected, and all that is ignored."""
    codes = (*(_others("NPU", select) if select else ()), *ignore)
    return (("*", codes),) if codes else ()


def _others(prefix: str, selected: Sequence[str]) -> tuple[str, ...]:
    """The shortest prefixes below `prefix` that hold no selected code."""
    if any(prefix.startswith(wanted) for wanted in selected):
        return ()
    if not any(wanted.startswith(prefix) for wanted in selected):
        return (prefix,)
    return tuple(code for digit in "0123456789" for code in _others(prefix + digit, selected))
