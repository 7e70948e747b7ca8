"""What is asked for by its name: tunings (`--tune`) and adaptors (`--adapt`), the fixers of a package by theme."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from transplt.base.errors import UsageError
from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.fixer import fixers_of


@dataclass(frozen=True, slots=True)
class Named:
    """One of them, as its fixer has it (transplt.edits.fixer); `versions` are the torch versions that it holds for."""

    name: str
    code: str
    versions: tuple[str, ...]
    on_request: bool
    value: str
    example: str


def named_in(*packages: str) -> dict[str, Named]:
    """All of some packages by name, in the order in which they look; their modules are imported."""
    found: dict[str, Named] = {}
    for fixer in fixers_of(*packages):
        name = fixer.theme.partition(":")[2]
        versions = tuple(version for version in TORCH_VERSIONS if fixer.holds(version))
        found.setdefault(name, Named(name, fixer.code, versions, fixer.on_request, fixer.value, fixer.example))
    return found


def parse_named(
    option: str, what: str, known: dict[str, Named], text: str, torch_version: str
) -> tuple[tuple[str, str], ...]:
    """(name, value) of each that a list such as `all,-drop-last,max-steps=100` asks for, in the order of `known`.

    A name with `-` in front is left out. UsageError for what is unknown, or named and missing in that torch_npu;
    `option` and `what` are those of its words (`--tune`, `tuning`).
    """
    wanted: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = item.partition("=")
        if name == "all":
            wanted.update(
                (each.name, "")
                for each in known.values()
                if not each.on_request and torch_version in each.versions and each.name not in wanted
            )
            continue
        found = known.get(name.removeprefix("-"))
        if found is None:
            close = difflib.get_close_matches(name.removeprefix("-"), ("all", *known), n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(('all', *known))}"
            raise UsageError(f"{option}: there is no {what} {name.removeprefix('-')!r}; {hint}")
        if name.startswith("-"):
            wanted.pop(found.name, None)
            continue
        if torch_version not in found.versions:
            raise UsageError(f"{option} {name}: torch_npu for torch {torch_version} does not have what it writes")
        if not re.fullmatch(found.value, value):
            example = f"write {name}={found.example}" if found.example else "it takes no value"
            raise UsageError(f"{option} {item}: {example}")
        steps = re.match(r"(\d+)-(\d+)", value)
        if steps is not None and int(steps[1]) > int(steps[2]):
            raise UsageError(f"{option} {item}: the last step comes before the first")
        wanted[name] = value
    return tuple((name, wanted[name]) for name in known if name in wanted)
