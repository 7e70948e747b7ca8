"""What one line of a training's log holds: values with their names, step, epoch, and how many there will be.

The shapes are those of the loggers that people use: `loss: 0.1`, `loss=0.1`, `Loss 0.5 (0.6)`, tqdm, the dicts of
transformers.Trainer, mmengine's and detectron2's lines, Megatron's `| lm loss: 1.0E+01 |`, JSON lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from transplt.precision.loss.curve import normal

_NUMBER = r"[-+]?(?:(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][-+]?\d{1,4})?|nan|inf(?:inity)?)(?![\w/%:]|\.\d)"
_VALUE = re.compile(
    rf"['\"]?(?:\s{{0,12}}[:=]\s{{0,12}}|\s{{1,3}}is\s{{1,3}}|\s{{1,12}})['\"]?[\[(]?(?:tensor\()?\s{{0,6}}"
    rf"(?P<value>{_NUMBER})(?:\s{{0,3}}\(\s{{0,6}}(?P<average>{_NUMBER})\s{{0,3}}\))?",
    re.IGNORECASE,
)
_QUALIFIER = re.compile(
    r"(?<![\w./@-])((?:train|training|val|valid|validation|eval|evaluation|test|lm|mtp|mlm|nsp|kl|average|avg|mean|total|"
    r"overall|running|aux|best|cls|box|mask|policy|value|entropy|actor|critic|generator|discriminator|g|d)) $",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"(?<![A-Za-z_])(?P<name>global[_ ]?step|iteration|num_updates|iter|itr|step|batch)(?:\((?:train|val|test)\))?"
    r"['\"]?\s{0,6}[:=#]?\s{0,12}['\"]?\[?\s{0,8}(?P<at>\d{1,15})(?![\w.])(?:\s{0,6}(?:/|of)\s{0,12}(?P<total>\d{1,15}))?",
    re.IGNORECASE,
)
_EPOCH = re.compile(
    r"(?<![A-Za-z])epoch(?:\((?:train|val|test)\))?['\"]?\s{0,6}[:=#]?\s{0,6}['\"]?[\[(]?\s{0,6}"
    r"(?P<at>\d{1,9}(?:\.\d{1,20})?)(?:\s{0,3}/\s{0,3}(?P<total>\d{1,9}))?[\])]?",
    re.IGNORECASE,
)
_FRACTION = re.compile(
    r"(?:(?:[\[|(━╸]|(?<![A-Za-z]):)\s{0,8}|^\s{0,8})(?P<at>\d{1,15})\s{0,3}/\s{0,6}(?P<total>\d{1,15})(?!\d|/)"
)
_BAR = re.compile(r"\d%\||\d(?:it|batch|batches)/s\b|\ds/it\b|\d[mu]?s/step\b")
_ASIDE = re.compile(
    r"\((?:val|test)\)|^\W{0,4}(?:\S{1,60} - ){0,4}(?:test|val|valid|validation|eval|evaluation)\b", re.IGNORECASE
)
_IS_ASIDE = re.compile(r"(?:^|_)(?:val|valid|validation|eval|evaluation|test|dev)(?:_|$)")
_STEPS = ("global_step", "trainer_global_step", "train_global_step", "step", "iteration", "iter", "num_updates")


@dataclass(slots=True)
class LogEntry:
    """What a line holds. `values` are (name, value), in the order of the line."""

    values: list[tuple[str, float]] = field(default_factory=list)
    step: float | None = None
    epoch: float | None = None
    total_steps: int = 0
    total_epochs: int = 0
    redrawn: bool = False


def is_bar(text: str) -> bool:
    """True for a line of a progress bar, which is written again and again."""
    return _BAR.search(text) is not None


def is_aside(name: str) -> bool:
    """True for the name of a validation."""
    return _IS_ASIDE.search(normal(name)) is not None


class Words:
    """Which names are looked for: those with `loss` in them, or the one that is asked for."""

    def __init__(self, name: str | None = None) -> None:
        self.name = normal(name) if name else None
        part = r"[\s./@_-]{1,3}".join(map(re.escape, re.split(r"[\s./@_-]+", name.strip()))) if name else "loss"
        around = "" if name else r"[\w./@-]{0,60}"
        self._word = re.compile(rf"(?<![\w./@-]){around}{'?' if around else ''}{part}{around}", re.IGNORECASE)
        #: A line without these bytes, in lower case, holds no value.
        self.literal = (re.split(r"[\s./@_-]+", name.strip())[0].lower() if name else "loss").encode()

    def wanted(self, name: str) -> bool:
        """True for a key of a JSON line or a column of a table."""
        return normal(name) == self.name if self.name else "loss" in name.lower()

    def values_in(self, text: str) -> Iterator[tuple[str, float]]:
        """(name, value) of a text; an average in brackets behind a value is a curve of its own."""
        for word in self._word.finditer(text):
            if (match := _VALUE.match(text, word.end())) is None:
                continue
            name = word[0]
            if self.name is None and (before := _QUALIFIER.search(text[max(0, word.start() - 20) : word.start()])):
                name = f"{before[1]} {name}"
            yield name, float(match["value"])
            if match["average"]:
                yield f"{name} (average)", float(match["average"])


def read_line(text: str, words: Words) -> LogEntry:
    """The entry of a line in words."""
    entry = LogEntry(redrawn=is_bar(text))
    aside = _ASIDE.search(text) is not None
    for name, value in words.values_in(text):
        entry.values.append((f"val {name}" if aside and not words.name and not is_aside(name) else name, value))
    _placed(entry, text)
    return entry


def _placed(entry: LogEntry, text: str) -> None:
    rest = text
    if epoch := _EPOCH.search(text):
        entry.epoch, entry.total_epochs = float(epoch["at"]), int(epoch["total"] or 0)
        rest = f"{text[: epoch.start()]} {'':<1}{text[epoch.end() :]}"
    steps = list(_STEP.finditer(rest))
    step = next((each for each in steps if each["name"].lower().startswith("global")), steps[0] if steps else None)
    if (found := step or _FRACTION.search(rest)) is not None:
        entry.step = float(found["at"])
        if entry.epoch is None:
            entry.total_steps = int(found["total"] or 0)


def read_object(line: Any, words: Words) -> LogEntry:
    """The entry of an object of a JSON line; objects in it are one level of names more."""
    entry = LogEntry()
    if not isinstance(line, dict):
        return entry
    numbers: dict[str, float] = {}
    for key, value in line.items():
        inner = value.items() if isinstance(value, dict) else (("", value),)
        for more, number in inner:
            # No float holds some whole numbers.
            if type(number) is float or (type(number) is int and abs(number) < 10**300):
                numbers[f"{key}/{more}" if more else str(key)] = float(number)
    named = {normal(key): value for key, value in numbers.items()}
    entry.values = [(key, value) for key, value in numbers.items() if words.wanted(key)]
    entry.step = next((named[key] for key in _STEPS if key in named), None)
    entry.epoch = named.get("epoch")
    return entry


def object_of(text: str) -> Any:
    """The object of a JSON line; None for another line."""
    if not text.startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def number_of(text: str) -> float | None:
    """The number that a cell is: `0.5`, `nan`, `3/10` (3); None for other texts."""
    match = re.fullmatch(rf"({_NUMBER})|(\d{{1,15}})\s?/\s?\d{{1,15}}", text.strip(), re.IGNORECASE)
    return float(match[1] or match[2]) if match else None
