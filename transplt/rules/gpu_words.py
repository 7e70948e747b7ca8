"""Words that bind a program to GPUs without naming CUDA, each with its places: rules/support/gpu_words.json.

A place is what makes the word one: an argument of a call, a comparison, a name, a key of a dict or of a configuration
file, a flag of a command. What a row says is the same wherever it is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from transplt.base.finding import Effort, Level
from transplt.rules.since import only_newer, only_older
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of

TABLE = "support/gpu_words.json"
#: What a Python file holds that has commands of the table in its strings.
_FLAGS = ["#sbatch", "--gres", "gpus-per-", "--gpus", "multi_gpu", "per_node=gpu", "per-node=gpu", "num_gpus"]


@dataclass(frozen=True, slots=True)
class Value:
    """What the value of an argument or a key has to be.

    `kind`: `any`, `given` (not zero, None, False or empty), `true`, `integer`, `one_of` (`values`), `matches` (a string
    that `pattern` matches whole, in any case), `holds` (one of `values` anywhere in the expression) or `unseen` (what
    comes from elsewhere: a parameter, an attribute, an item).
    """

    kind: str = "any"
    values: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    def takes(self, constant: object) -> bool:
        """True for a constant that is such a value."""
        if self.kind == "given":
            return bool(constant)
        if self.kind == "true":
            return constant is True
        if self.kind == "integer":
            return type(constant) is int
        if self.kind == "unseen":
            return False
        if self.kind in ("one_of", "holds"):
            return constant in self.values
        if self.pattern is not None:
            return isinstance(constant, str) and self.pattern.fullmatch(constant) is not None
        return True


@dataclass(frozen=True, slots=True)
class GpuWord:
    """The finding for a word. `since` is the package and the first version that handles NPUs under this very word;
    `needs` are packages with the versions before which the help is of no use. `holds_from`: the package and the first
    version of which the row speaks. `of`: what is to be done something about, where that is not the word as it stands.
    """

    word: str
    code: str
    level: Level
    effort: Effort
    message: str
    help: str
    since: tuple[str, str] | None
    needs: tuple[tuple[str, str], ...]
    holds_from: tuple[str, str] | None
    of: str
    versions: frozenset[str]

    def is_for(self, pins: Iterable[tuple[str, str]]) -> bool:
        """False where the project asks for versions alone of which the row does not speak."""
        if self.holds_from is None:
            return True
        package, first = self.holds_from
        return not only_older(dict(pins).get(package, ""), first)


@dataclass(frozen=True, slots=True)
class CallPlace:
    """An argument of a call: `calls` are full names, `lasts` last names and `ends` their endings (of what
    one of `imports` may have given).

    Without either it is an argument of any call but those of the names in `but`, which are reported at
    their import. `whole`: the call is what is
    found, and not its argument. `absent`: a call with none of these arguments is
    what is found, or with one that is no dict with the key `lacks`.
    """

    calls: frozenset[str]
    lasts: frozenset[str]
    ends: tuple[str, ...]
    but: frozenset[str]
    imports: tuple[str, ...]
    argument: str
    position: int
    value: Value
    whole: bool
    absent: tuple[str, ...]
    lacks: str

    @property
    def anywhere(self) -> bool:
        """True for an argument that is a word whoever gets it: also as a default, a field or an option."""
        return not (self.calls or self.lasts or self.ends or self.imports)

    @property
    def by_full_name(self) -> bool:
        """True for an argument of calls that have to be known by their full names."""
        return bool(self.calls) and not (self.lasts or self.ends)

    @property
    def by_last_name(self) -> bool:
        """True for an argument of calls that are known by their last names alone."""
        return bool(self.lasts) and not (self.calls or self.ends)

    def names(self, full: str | None, last: str, alone: bool) -> bool:
        """True for a callee of the full name `full` (None where it cannot be decided) and the last name `last`; `alone`
        where that is all that stands there.
        """
        if full is not None and full in self.calls:
            return True
        if last in self.lasts or (self.ends and last.endswith(self.ends)):
            return full is None or not self.imports or full.partition(".")[0] in self.imports
        return not (self.calls or self.lasts or self.ends or (alone and last in self.but))


@dataclass(frozen=True, slots=True)
class ComparePlace:
    """A comparison of something called `compared` with a string that `becomes` another."""

    compared: str
    value: str
    becomes: str


@dataclass(frozen=True, slots=True)
class StorePlace:
    """An assignment to the attribute of a full name."""

    store: str
    value: Value


@dataclass(frozen=True, slots=True)
class NamePlace:
    """A use of a name: a full one, or with a dot in front the last part of any."""

    name: str


@dataclass(frozen=True, slots=True)
class KeyPlace:
    """A string that is a key, in a file that imports one of `imports`, where a name around it matches `within`.

    It has to get a value there (`{"GPU": 1}`, `found["GPU"] = 1`); with `reads` it may also be looked up, with `alone`
    only where no default stands beside it.
    """

    key: str
    within: re.Pattern[str] | None
    imports: tuple[str, ...]
    value: Value
    reads: bool
    alone: bool


@dataclass(frozen=True, slots=True)
class PathPlace:
    """A key of a configuration file by its way from the top (`trainer.accelerator`; `[]` is an item of a list).

    `beside`: a key that one of its neighbours, or of those at the top, has to match; `without`: one that none of its
    neighbours may match.
    """

    path: re.Pattern[str]
    value: re.Pattern[str] | None
    beside: re.Pattern[str] | None
    without: re.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """A flag of a command, up to the script that it starts; without a command of any. `unless`: it is none in a file
    that holds this.
    """

    command: str
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None


_P = TypeVar("_P")
Place = CallPlace | ComparePlace | StorePlace | NamePlace | KeyPlace | PathPlace | FlagPlace
#: What the entry of a place has by which its kind is known.
_KINDS: dict[str, type[Place]] = {
    "path": PathPlace, "flag": FlagPlace, "compared": ComparePlace, "store": StorePlace, "name": NamePlace,
    "key": KeyPlace,
}  # fmt: skip


@cache
def packages() -> frozenset[str]:
    """The packages whose versions the rows ask for; no pattern is compiled for that."""
    rows: list[dict[str, Any]] = read_table(TABLE)["words"]
    named = {row[key]["package"] for row in rows for key in ("since", "from") if key in row}
    return frozenset(named.union(*(row.get("needs", ()) for row in rows)))


@cache
def literals() -> tuple[str, ...]:
    """What makes a Python file worth a look."""
    rows: list[dict[str, Any]] = read_table(TABLE)["words"]
    return tuple(sorted({literal for row in rows for place in row["places"] for literal in _literals(place)}))


def places_of(kind: type[_P]) -> tuple[tuple[_P, GpuWord], ...]:
    """The places of a kind, each with its word. Their patterns are compiled when somebody first asks for the kind."""
    return _places(kind.__name__)


@cache
def _places(kind: str) -> tuple[tuple[Any, GpuWord], ...]:
    rows: list[dict[str, Any]] = read_table(TABLE)["words"]
    return tuple((_place(each), _word(row)) for row in rows for each in row["places"]
                 if next((of for key, of in _KINDS.items() if key in each), CallPlace).__name__ == kind)  # fmt: skip


@cache
def commands() -> tuple[tuple[str, tuple[tuple[FlagPlace, GpuWord], ...]], ...]:
    """The flags by command."""
    flags = places_of(FlagPlace)
    names = sorted({place.command for place, _ in flags})
    return tuple((name, tuple(each for each in flags if each[0].command == name)) for name in names)


def level_and_help(word: GpuWord, pins: Iterable[tuple[str, str]]) -> tuple[Level, str]:
    """The level and the help of a word, with what a project asks for of the package that handles NPUs under it.

    `pins`: packages with the versions that the project asks for (`==4.46.0`).
    """
    asked, since = dict(pins), word.since or ("", "0")
    for package, first in (since, *word.needs):
        if only_older(asked.get(package, ""), first):
            wanted = f"the project requires {package}{asked[package]}: require {package}>={first}"
            return Level.MANUAL, f"{wanted}; {word.help}"
    package, first = since
    if package in asked and only_newer(asked[package], first):
        return Level.INFO, f"{package}{asked[package]} of the project handles it; {word.help}"
    return word.level, word.help


def _word(row: dict[str, Any]) -> GpuWord:
    level = Level(row.get("level", "manual"))
    since, first = row.get("since"), row.get("from")
    return GpuWord(
        row["word"],
        row["code"],
        level,
        Effort(row.get("effort", "low")),
        row["message"],
        row["help"],
        (since["package"], since["version"]) if since else None,
        (*row.get("needs", {}).items(),),
        (first["package"], first["version"]) if first else None,
        row.get("of", ""),
        versions_of(row.get("versions")),
    )


def _place(entry: dict[str, Any]) -> Place:
    if "path" in entry:
        return PathPlace(
            re.compile(entry["path"]), *(_pattern(entry.get(key)) for key in ("value", "beside", "without"))
        )
    if "flag" in entry:
        value = entry.get("value", "")
        follows = rf"(?:=|[ \t]+)[\"'\\]*(?i:{value})" if value else r"(?![\w-])"
        pattern = re.compile(rf"(?<![\w.-])(?:{entry['flag']}){follows}")
        return FlagPlace(entry.get("command", ""), pattern, _pattern(entry.get("unless")))
    if "compared" in entry:
        return ComparePlace(entry["compared"], entry["value"], entry.get("becomes", ""))
    if "store" in entry:
        return StorePlace(entry["store"], _value(entry.get("value")))
    if "name" in entry:
        return NamePlace(entry["name"])
    if "key" in entry:
        within, imports = _pattern(entry.get("within")), tuple(entry.get("imports", ()))
        reads, alone = bool(entry.get("reads")), bool(entry.get("alone"))
        return KeyPlace(entry["key"], within, imports, _value(entry.get("value")), reads, alone)
    names = entry.get("calls", ())
    return CallPlace(
        frozenset(name for name in names if not name.startswith(".")),
        frozenset(name[1:] for name in names if name.startswith(".") and not name.startswith(".*")),
        tuple(name[2:] for name in names if name.startswith(".*")),
        frozenset(entry.get("but", ())),
        tuple(entry.get("imports", ())),
        entry["argument"],
        entry.get("position", -1),
        _value(entry.get("value")),
        bool(entry.get("whole")),
        tuple(entry.get("absent", ())),
        entry.get("lacks", ""),
    )


def _value(entry: Any) -> Value:
    if entry is None or isinstance(entry, str):
        return Value(entry or "any")
    kind, given = next(iter(entry.items()))
    if kind == "matches":
        return Value(kind, pattern=re.compile(given, re.IGNORECASE))
    return Value(kind, frozenset(given))


def _pattern(text: str | None) -> re.Pattern[str] | None:
    return None if text is None else re.compile(text, re.IGNORECASE)


def _literals(entry: dict[str, Any]) -> list[str]:
    """What a Python file has to hold for a place to be in it; configuration keys are in none."""
    if "path" in entry:
        return []
    if "seen" in entry:
        return list(entry["seen"])
    for key in ("argument", "compared", "key"):
        if key in entry:
            return [entry[key]]
    if "flag" in entry:
        return _FLAGS
    return [str(entry.get("store", entry.get("name"))).rpartition(".")[2]]
