"""What operators did on the user's own cards: `operators-on-this-card.json` in the folder of the user's settings.

`transplt card-read` writes it from the files that card packs send back. Ask `on_own_card(operator, dtypes, ...)` for
one operator with the types of its tensors, or `outcomes(...)` for all. A row says what happened, on which card, with
which versions, and which file says so; it tells nothing of other cards and other versions of torch.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

from transplt.base.errors import UsageError, reason, shown
from transplt.base.settings_folder import settings_folder
from transplt.base.text.regular_file import RULES, read_regular
from transplt.rules.json_lines import JsonError, parse

FILE = "operators-on-this-card.json"
FORMAT = 1
#: How messages say that the card had no memory left, which is not the operator's doing.
_FULL = re.compile(r"out of memory", re.IGNORECASE)


class Ran(Enum):
    """What a call did: the gravest of all calls with the same types is told. RAN: nothing can be compared with it."""

    RAN = "ran"
    EQUAL = "equal"
    DIFFERS = "differs"
    RAISED = "raised"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who says so: the card and the versions that ran, the name of the file, and the date in it."""

    card: str
    torch: str
    torch_npu: str
    cann: str
    driver: str
    file: str
    date: str

    @property
    def where(self) -> tuple[str, ...]:
        """What an outcome depends on."""
        return self.card, self.torch, self.torch_npu, self.cann


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an operator (`aten::add.Tensor`) did with tensors of these types, in the order of its arguments; of a list
    of tensors each type stands once. `taken`: at least one call with these types ran, so that the types are not what
    an error of another call is about. `message` is the error, or how the result differs."""

    operator: str
    dtypes: tuple[str, ...]
    ran: Ran
    message: str
    taken: bool
    origin: Origin

    def __str__(self) -> str:
        what = {Ran.RAN: "ran", Ran.EQUAL: "gives what the CPU gives"}.get(self.ran, self.ran.value)
        types = f" with {', '.join(self.dtypes)}" if self.dtypes else ""
        return f"{what}{types}{f': {self.message}' if self.message and self.ran in _GRAVE else ''}"


_ORDER = [*Ran]
_GRAVE = (Ran.DIFFERS, Ran.RAISED)


def on_own_card(
    operator: str,
    dtypes: Sequence[str],
    card: str,
    torch_version: str,
    environment: Mapping[str, str] = os.environ,
) -> Outcome | None:
    """What the operator did with these types on such a card with such a torch; the newest file wins. None where nobody
    has tried it.

    `card` is the name of one (`Ascend910B3`) or of its kind (`910B`), `torch_version` a minor (`2.8`) or more.
    UsageError where the table is not what `card-read` wrote.
    """
    found = [
        each for each in outcomes(environment)
        if (each.operator, each.dtypes) == (operator, tuple(dtypes)) and is_of(each.origin, card, torch_version)
    ]  # fmt: skip
    return max(found, key=lambda each: each.origin.date, default=None)


def own_errors(
    card: str, torch_version: str, environment: Mapping[str, str] = os.environ
) -> dict[str, dict[str, str]]:
    """Operator (`aten::add.Tensor`) -> types of its tensors, with commas -> the error of such a card of the user's own;
    empty where the operator ran. The newest file wins. UsageError as for `on_own_card`."""
    found: dict[str, dict[str, str]] = {}
    for each in sorted(outcomes(environment), key=lambda one: one.origin.date):
        if is_of(each.origin, card, torch_version):
            error = "" if each.taken or each.ran is not Ran.RAISED else f"{each.message} ({each.origin.file})"
            found.setdefault(each.operator, {})[",".join(each.dtypes)] = error
    return found


def ran_on_own_card(
    card: str, torch_version: str, environment: Mapping[str, str] = os.environ
) -> tuple[tuple[str, str], ...]:
    """(operator, type of one of its tensors) of the calls that ran on such a card of the user's own, sorted."""
    found = {
        (each.operator, dtype)
        for each in outcomes(environment)
        if is_of(each.origin, card, torch_version) and (each.taken or each.ran is not Ran.RAISED)
        for dtype in each.dtypes
    }
    return tuple(sorted(found))


def is_of(origin: Origin, card: str, torch_version: str) -> bool:
    """Whether an outcome speaks of this card, or kind of cards, and this version of torch."""
    name, asked = origin.card.removeprefix("Ascend"), card.removeprefix("Ascend")
    return name.startswith(asked) and _minor(origin.torch) == _minor(torch_version)


def _minor(version: str) -> list[str]:
    return version.partition("+")[0].split(".")[:2]


def outcomes(environment: Mapping[str, str] = os.environ) -> tuple[Outcome, ...]:
    """All that is known; nothing where there is no table. UsageError where it is not what `card-read` wrote."""
    path = table_path(environment)
    if path is None:
        return ()
    try:
        table, _ = parse(read_regular(path, RULES).decode("utf-8"))
        return tuple(_rows(table))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    except (JsonError, ValueError, KeyError, TypeError) as error:
        what = f"{shown(path)} is not what `transplt card-read` wrote"
        raise UsageError(f"{what}: remove it, and read the files of your cards again") from error


def table_path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the table lies, whether it is there or not; None for a user without a folder for settings."""
    folder = settings_folder(environment)
    return Path(folder, FILE) if folder else None


def _rows(table: Any) -> Iterable[Outcome]:
    if table["format"] != FORMAT:
        raise ValueError(table["format"])
    for group in table["files"]:
        origin = Origin(**{each.name: str(group[each.name]) for each in fields(Origin)})
        for row in group["operators"]:
            yield Outcome(
                str(row["operator"]), tuple(map(str, row["dtypes"])), Ran(row["ran"]), str(row["message"]),
                bool(row["taken"]), origin,
            )  # fmt: skip


def joined(tries: Iterable[Outcome]) -> list[Outcome]:
    """One outcome for all tries of an operator with the same types: the gravest. A full card says nothing."""
    found: dict[tuple[str, tuple[str, ...]], Outcome] = {}
    for each in tries:
        if each.ran is Ran.RAISED and _FULL.search(each.message):
            continue
        key = (each.operator, each.dtypes)
        known = found.get(key, each)
        gravest = max((known, each), key=lambda one: _ORDER.index(one.ran))
        found[key] = replace(gravest, taken=known.taken or each.taken)
    return list(found.values())


def merged(known: Iterable[Outcome], new: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of a new file beside those that were known; of the same card and versions the new ones stand."""
    again = {(each.operator, each.dtypes, each.origin.where) for each in new}
    kept = [each for each in known if (each.operator, each.dtypes, each.origin.where) not in again]
    return [*kept, *new]


def as_bytes(rows: Iterable[Outcome]) -> bytes:
    """The table, in an order of its own."""
    groups: dict[Origin, list[Outcome]] = {}
    for row in rows:
        groups.setdefault(row.origin, []).append(row)
    files = []
    for origin, its in sorted(groups.items(), key=lambda item: (item[0].date, item[0].file, item[0].where)):
        operators = [
            {"operator": each.operator, "dtypes": [*each.dtypes], "ran": each.ran.value, "message": each.message,
             "taken": each.taken}
            for each in sorted(its, key=lambda each: (each.operator, each.dtypes))
        ]  # fmt: skip
        files.append({**{each.name: getattr(origin, each.name) for each in fields(Origin)}, "operators": operators})
    return (json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n").encode("ascii")
