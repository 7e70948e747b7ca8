"""The file that a card pack sends back: read with suspicion, since anybody may have written it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from transplt.base.render.cell import shortened
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.rules.json_lines import JsonError, parse
from transplt.rules.own_card import Origin, Outcome, Ran, joined

FORMAT = 1
#: More than a pack writes.
_MOST_ROWS, _MOST_TEXT = 20_000, 600
_OPERATOR = re.compile(r"\w{1,40}::[\w.]{1,120}", re.ASCII)
_TYPE = re.compile(r"[a-z]{1,12}\d{0,3}[a-z0-9_]{0,12}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_STATES = ("equal", "differs", "raised", "ran", "not tried")
_TRAINED = ("equal", "differs", "stopped", "nothing recorded")
_CHECKED = ("fine", "note", "wrong", "missing")


class BrokenResult(Exception):
    """Why a file is none of a card pack, as a clause."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One call: `state` is one of _STATES; milliseconds of the first call and of the next, bytes of the card."""

    operator: str
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    state: str
    message: str
    ms: tuple[float, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a step that is off: as it was recorded, and as it is on the card."""

    what: str
    recorded: str
    here: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step of an optimizer: its losses, how many figures were compared, those that are off, and how many more."""

    optimizer: int
    number: int
    recorded: tuple[str, ...]
    losses: tuple[str, ...]
    seconds: float
    figures: int
    off: tuple[Figure, ...]
    more: int


@dataclass(frozen=True, slots=True)
class CardResult:
    """What the file says. `failed` is why torch_npu or its card could not be used, `host_failed` why the host was not
    looked at, both empty where they could; `checks` are those of `transplt doctor`: what, state, text, what to do."""

    origin: Origin
    emulated: bool
    failed: str
    host_failed: str
    checks: tuple[tuple[str, str, str, str], ...]
    made_for: str
    program: str
    tried: tuple[Tried, ...]
    training: str
    training_message: str
    steps: tuple[Step, ...]
    wanted: int
    tolerances: dict[str, float]

    @property
    def left(self) -> bool:
        """Whether something does not hold. (What an emulated host lacks, it lacks by nature.)"""
        grave = any(each.state in ("differs", "raised") for each in self.tried)
        host = not self.emulated and any(state in ("wrong", "missing") for _, state, _, _ in self.checks)
        trained = self.training == "equal" and not any(step.off or step.more for step in self.steps)
        return bool(grave or host or self.failed or self.host_failed or not trained)

    def outcomes(self) -> list[Outcome]:
        """What is to be known of this card: nothing where it was the emulated one, or there was none."""
        if self.emulated or self.failed:
            return []
        return joined(
            Outcome(each.operator, each.dtypes, Ran(each.state), each.message if each.state != "equal" else "",
                    each.state != "raised", self.origin)
            for each in self.tried if each.state != "not tried"
        )  # fmt: skip


def read_result(path: str, name: str) -> CardResult:
    """The file at `path`, called `name` from here on. OSError as the system; BrokenResult for any other file."""
    try:
        document, _ = parse(read_regular(path, RECORDS).decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BrokenResult("it is no text in UTF-8") from error
    except JsonError as error:
        raise BrokenResult(f"line {error.line}: {error.message}") from error
    top = _Table(document, "the file")
    if top.text("kind") != "transplt card result":
        raise BrokenResult("it is not what a card pack writes")
    if top.whole("format") != FORMAT:
        raise BrokenResult(f"it has format {top.whole('format')}, and this transplt reads {FORMAT}")
    about, host, pack, training = (top.table(each) for each in ("about", "host", "pack", "training"))
    versions = host.table("versions") if "failed" not in host else _Table({}, "host")
    origin = Origin(
        about.text("card", ""), about.text("torch", ""), about.text("torch_npu", ""), versions.text("cann", ""),
        versions.text("driver", ""), shortened(name, _MOST_TEXT), top.matching("date", _DATE),
    )  # fmt: skip
    if "failed" not in about and not (origin.card and origin.torch):
        raise BrokenResult("about: neither a card and versions nor why there are none")
    checks = () if "failed" in host else tuple(
        (each.text("what"), each.one_of("state", _CHECKED), each.text("text"), each.text("do"))
        for each in host.tables("checks")
    )  # fmt: skip
    emulated = about.flag("emulated", False) or origin.torch_npu.endswith("+emulated")
    return CardResult(
        origin, emulated, about.text("failed", ""), host.text("failed", ""),
        checks, pack.text("torch_version"), pack.text("main"),
        tuple(_tried(each) for each in top.tables("operators")), training.one_of("state", _TRAINED),
        training.text("message"), tuple(_step(each) for each in training.tables("steps")), training.whole("wanted"),
        {each: training.table("tolerances").number(each) for each in ("loss", "gradient", "parameter")},
    )  # fmt: skip


def _tried(row: _Table) -> Tried:
    shapes = tuple(tuple(_whole(size, row.where) for size in _list(shape, row.where)) for shape in row.list("shapes"))
    types = tuple(_text(each, row.where) for each in row.list("types"))
    wrong = next((each for each in types if not _TYPE.fullmatch(each)), None)
    if wrong is not None or len(types) != len(shapes):
        raise BrokenResult(f"{row.where}: its types are none, or not as many as its shapes")
    times = tuple(_number(each, row.where) for each in row.list("ms", []))
    return Tried(
        row.matching("op", _OPERATOR), types, shapes, row.one_of("state", _STATES), row.text("message"), times[:2],
        row.whole("bytes", 0),
    )  # fmt: skip


def _step(row: _Table) -> Step:
    off = tuple(Figure(each.text("what"), each.figure("recorded"), each.figure("here")) for each in row.tables("off"))
    recorded, losses = (tuple(_figure(each, row.where) for each in row.list(key)) for key in ("recorded", "losses"))
    return Step(
        row.whole("optimizer"), row.whole("step"), recorded, losses, row.number("seconds"), row.whole("figures"), off,
        row.whole("more"),
    )  # fmt: skip


_NO: Any = object()


class _Table:
    """An object of the file, and where it stands; what is asked of it is there and of its kind, or BrokenResult."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise BrokenResult(f"{where} is no object")
        self.value, self.where = value, where

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def _get(self, key: str, otherwise: Any) -> Any:
        found = self.value.get(key, otherwise)
        if found is _NO:
            raise BrokenResult(f"{self.where} has no {key!r}")
        return found

    def table(self, key: str) -> _Table:
        return _Table(self._get(key, _NO), key)

    def tables(self, key: str) -> list[_Table]:
        return [_Table(each, f"{key}[{number}]") for number, each in enumerate(self.list(key))]

    def list(self, key: str, otherwise: Any = _NO) -> list[Any]:
        return _list(self._get(key, otherwise), f"{self.where}: {key!r}")

    def text(self, key: str, otherwise: Any = _NO) -> str:
        return _text(self._get(key, otherwise), f"{self.where}: {key!r}")

    def flag(self, key: str, otherwise: bool) -> bool:
        found = self._get(key, otherwise)
        if not isinstance(found, bool):
            raise BrokenResult(f"{self.where}: {key!r} is neither true nor false")
        return found

    def whole(self, key: str, otherwise: Any = _NO) -> int:
        return _whole(self._get(key, otherwise), f"{self.where}: {key!r}")

    def number(self, key: str) -> float:
        return _number(self._get(key, _NO), f"{self.where}: {key!r}")

    def figure(self, key: str) -> str:
        return _figure(self._get(key, _NO), f"{self.where}: {key!r}")

    def matching(self, key: str, pattern: re.Pattern[str]) -> str:
        found = self.text(key)
        if not pattern.fullmatch(found):
            raise BrokenResult(f"{self.where}: {key!r} is {shortened(found, 60)!r}, which no pack writes")
        return found

    def one_of(self, key: str, known: tuple[str, ...]) -> str:
        found = self.text(key)
        if found not in known:
            raise BrokenResult(f"{self.where}: {key!r} is {shortened(found, 60)!r}, and none of {', '.join(known)}")
        return found


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > _MOST_ROWS:
        raise BrokenResult(f"{where} is no list of at most {_MOST_ROWS} entries")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise BrokenResult(f"{where} is no text")
    return shortened(value, _MOST_TEXT)


def _whole(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise BrokenResult(f"{where} is no whole number that a pack writes")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (0 <= value < 1e15):
        raise BrokenResult(f"{where} is not a number that a pack writes")
    return float(value)


def _figure(value: Any, where: str) -> str:
    """A figure of training as text; a pack writes NaN and infinities as texts, and null where there is none."""
    if value is None or value in ("nan", "inf", "-inf"):
        return str(value or "none")
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -1e300 < value < 1e300:
        raise BrokenResult(f"{where} is no figure")
    return f"{value:.6g}"
