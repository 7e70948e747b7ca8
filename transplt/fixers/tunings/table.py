"""The tunings by name, and what `--tune` accepts."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache

from transplt.base.errors import UsageError
from transplt.base.settings import TORCH_VERSIONS


@dataclass(frozen=True, slots=True)
class Tuning:
    """One tuning as its fixer has it (transplt.edits.fixer); `versions` are the torch versions that it holds for."""

    name: str
    code: str
    versions: tuple[str, ...]
    on_request: bool
    value: str
    example: str


@cache
def tunings() -> dict[str, Tuning]:
    """All tunings by name, in the order in which they look; the first call imports them."""
    from transplt.edits.fixer import fixers_of  # what asks for no tuning imports none of this

    found = {}
    for fixer in fixers_of("transplt.fixers.tunings"):
        name = fixer.theme.removeprefix("tune:")
        versions = tuple(version for version in TORCH_VERSIONS if fixer.holds(version))
        found[name] = Tuning(name, fixer.code, versions, fixer.on_request, fixer.value, fixer.example)
    return found


def parse_tunings(text: str, torch_version: str) -> tuple[tuple[str, str], ...]:
    """(name, value) of each tuning that a list such as `all,-drop-last,max-steps=100` asks for, in the table's order.

    A name with `-` in front is left out. UsageError for what is unknown, or named and missing in that torch_npu.
    """
    if not text:
        return ()
    known = tunings()
    wanted: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        if name == "all":
            wanted.update(
                (each.name, "")
                for each in known.values()
                if not each.on_request and torch_version in each.versions and each.name not in wanted
            )
            continue
        tuning = known.get(name.removeprefix("-"))
        if tuning is None:
            close = difflib.get_close_matches(name.removeprefix("-"), ("all", *known), n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(('all', *known))}"
            raise UsageError(f"--tune: there is no tuning {name.removeprefix('-')!r}; {hint}")
        if name.startswith("-"):
            wanted.pop(tuning.name, None)
            continue
        if torch_version not in tuning.versions:
            raise UsageError(f"--tune {name}: torch_npu for torch {torch_version} does not have what it writes")
        if (equals or (tuning.value and not re.fullmatch(tuning.value, ""))) and not re.fullmatch(tuning.value, value):
            example = f"write {name}={tuning.example}" if tuning.example else "it takes no value"
            raise UsageError(f"--tune {item}: {example}")
        steps = re.match(r"(\d+)-(\d+)", value)
        if steps is not None and int(steps[1]) > int(steps[2]):
            raise UsageError(f"--tune {item}: the last step comes before the first")
        wanted[name] = value
    return tuple((name, wanted[name]) for name in known if name in wanted)
