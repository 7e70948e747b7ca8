"""The form of a plan: which lines of it decide something, and what may stand there. All other lines are for reading.

A line that begins with a bullet decides: `- style: portable`, `- leave: vendor/`, `- npu: train.py:12 NPU203 3f2a...`.
What nobody knows there ends the run, with the line: a slip must not go unnoticed. Nothing of a plan is executed, and
paths in it name files of the project.
"""

from __future__ import annotations

import difflib
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.base.errors import UsageError, reason, shown
from transplt.base.plan_decisions import APPLY, HCCL, IN_QUESTION, LEAVE, NPU
from transplt.base.render.cell import shortened, visible
from transplt.base.settings import IMPORTS, STYLES
from transplt.base.text.regular_file import PLANS, read_regular
from transplt.rules.pages import is_prefix, nearest_code

#: The line by which a plan is known, with the number of its form.
MARKER = "<!-- transplt plan, form 1 -->"
OPEN = "open"
CHOICES = (OPEN, NPU, HCCL, APPLY, LEAVE)
YES, NO, NONE = "yes", "no", "none"
_FLAG = (NO, YES)
#: The settings that a plan decides, by their names as options, with what may stand there; None for any text.
KEYS: dict[str, tuple[str, ...] | None] = {
    "torch-version": None,
    "style": STYLES,
    "torch-npu-import": IMPORTS,
    "specify-device": _FLAG,
    "similar": _FLAG,
    "unsafe-fixes": _FLAG,
    "texts": _FLAG,
    "docs": _FLAG,
    "amp": ("off", "native", "apex"),
    "amp-dtype": ("float16", "bfloat16"),
    "opt-level": ("O1", "O2"),
    "loss-scale": None,
    "combine-ddp": _FLAG,
    "amp-flag": _FLAG,
    "tune": None,
    "adapt": None,
    "main": None,
}
_BULLET = re.compile(r" {0,3}[-*+](?:[ \t]+(.*))?")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,})")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9 _-]*?)[ \t]*:(?:[ \t]+(.*)|$)")
_PLACE = re.compile(r"(.+?):([0-9]{1,9}) (NPU[0-9]{3}) ([0-9a-f]{10}\+[0-9]{1,6})(?: .*)?")
_LONGEST_VALUE, _LONGEST_LINE = 1000, 4000
#: So many lines that leave files or codes are read: each is held against each path.
_MOST_LEFT = 1000
_ODD = ("Cc", "Cs", "Zl", "Zp")
_DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


@dataclass(frozen=True, slots=True)
class PlannedPlace:
    """A place with what is decided of it; `line` is where it was when the plan was made, `number` the plan's line."""

    choice: str
    path: str
    line: int
    code: str
    mark: str
    number: int

    @property
    def name(self) -> str:
        """The place as sentences name it."""
        return f"{self.path}:{self.line} {self.code}"


@dataclass(slots=True)
class PlanText:
    """What a plan says: settings by their keys, places, globs of files, and code prefixes by the glob of files."""

    name: str
    shown: str
    keys: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    places: list[PlannedPlace] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    codes: list[tuple[str, str]] = field(default_factory=list)

    def at(self, key: str) -> str:
        """Where a key stands: path and line of the plan."""
        return f"{self.shown}:{self.numbers[key]}"


def read_plan(path: str | os.PathLike[str]) -> PlanText:
    """The decisions in a plan. UsageError, with path and line, for what is none."""
    where = shown(path)
    try:
        data = read_regular(path, PLANS)
    except OSError as error:
        raise UsageError(f"cannot read the plan {where}: {reason(error)}") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{where} is not a plan: not UTF-8 at byte {error.start}") from error
    return parse_plan(text, visible(os.path.basename(os.fspath(path))), where)


def parse_plan(text: str, name: str, where: str) -> PlanText:
    """The decisions in the text of a plan; `where` names it in errors."""
    found = PlanText(name, where)
    if MARKER not in text:
        raise UsageError(f"{where} is not a plan of transplt: it lacks the line {MARKER}; `transplt plan` writes one")
    seen: dict[tuple[str, str, str], int] = {}
    for number, line in _deciding(text, where):
        at = f"{where}:{number}"
        key, value = _key_and_value(line, at)
        if key in CHOICES and (match := _PLACE.fullmatch(value)):
            place = PlannedPlace(key, _path(match[1], at), int(match[2]), match[3], match[4], number)
            makes = IN_QUESTION.get(place.code, APPLY)
            if place.choice not in (OPEN, LEAVE, makes):
                raise UsageError(f"{at}: {place.code} must be {OPEN}, {makes} or {LEAVE}, not {place.choice}")
            same = (place.path, place.code, place.mark)
            if same in seen:
                raise UsageError(f"{at}: {visible(place.name)} is already decided in line {seen[same]}")
            seen[same] = number
            found.places.append(place)
        elif key == LEAVE:
            _leave(found, _without_comment(value), at)
        elif key in CHOICES:
            raise UsageError(f"{at}: after `{key}:` write the place as `transplt plan` does: path:line CODE mark")
        else:
            if key in found.keys:
                raise UsageError(f"{at}: {key} is already in line {found.numbers[key]}")
            found.numbers[key] = number
            found.keys[key] = _value(key, _without_comment(value), at)
    return found


def _deciding(text: str, where: str) -> Iterator[tuple[int, str]]:
    """Number and text of the lines with a bullet, outside of comments and of blocks of code."""
    fence, comment, begun = "", False, 0
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        if (odd := next(filter(_is_odd, line), None)) is not None:
            raise UsageError(f"{where}:{number}: the character U+{ord(odd):04X} is not allowed in a plan")
        if comment:
            comment = "-->" not in line
        elif fence:
            closing = _FENCE.match(line)
            if closing and closing[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif opening := _FENCE.match(line):
            fence, begun = opening[1], number
        elif line.lstrip(" ").startswith("<!--"):
            comment, begun = "-->" not in line, number
        elif len(line) > _LONGEST_LINE and line.lstrip(" ")[:1] in tuple("-*+"):
            raise UsageError(f"{where}:{number}: a line of {len(line)} characters is too long for a decision")
        elif (bullet := _BULLET.fullmatch(line)) and not _RULE.fullmatch(line):
            yield number, (bullet[1] or "").strip()
    if comment or fence:
        what = "comment" if comment else "block of code"
        raise UsageError(f"{where}:{begun}: the {what} that begins here does not end")


def _is_odd(character: str) -> bool:
    """True for what shows another line than is read: control characters, separators of lines, changes of direction."""
    if character.isprintable() or character == "\t":
        return False
    return unicodedata.category(character) in _ODD or unicodedata.bidirectional(character) in _DIRECTIONS


def _key_and_value(line: str, at: str) -> tuple[str, str]:
    match = _KEY.match(line)
    key = match[1].lower().replace("_", "-").replace(" ", "-") if match is not None else ""
    if match is None:
        raise UsageError(f"{at}: a line with a bullet must be `- key: value`, not {shortened(line, 60)!r}")
    if key not in KEYS and key not in CHOICES:
        near = difflib.get_close_matches(key, (*KEYS, *CHOICES), n=1, cutoff=0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join((*KEYS, *CHOICES))}"
        raise UsageError(f"{at}: unknown key {shortened(match[1], 60)!r}; {hint}")
    return key, (match[2] or "").strip()


def _without_comment(value: str) -> str:
    """A value without a comment behind it, and without quotes or backticks around it."""
    value = value.partition("<!--")[0].strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "`\"'":
        value = value[1:-1]
    return value


def _value(key: str, value: str, at: str) -> str:
    """The value of a setting, as it is written by `transplt plan`. UsageError for one that it cannot have."""
    known = KEYS[key]
    if key == "main" and value != NONE:
        return _path(value, at)
    if known is None:
        if not value or len(value) > _LONGEST_VALUE:
            raise UsageError(f"{at}: {key} needs a value")
        return value
    if known is _FLAG:
        value = {"true": YES, "on": YES, "false": NO, "off": NO}.get(value.lower(), value.lower())
    if value not in known:
        raise UsageError(f"{at}: {key} must be one of {', '.join(known)}, not {shortened(value, 60)!r}")
    return value


def _leave(found: PlanText, value: str, at: str) -> None:
    """Files or folders, or codes (`NPU501`, `NPU3 in tests/*`), that stay as they are."""
    code, inside, pattern = value.partition(" in ")
    if len(found.left) + len(found.codes) >= _MOST_LEFT:
        raise UsageError(f"{at}: more than {_MOST_LEFT} lines leave something; use a glob for many files")
    if value == NONE:
        return
    if (code == "NPU" and not inside) or ("*" in value and not value.strip("*/.")):
        raise UsageError(f"{at}: {shortened(value, 60)!r} leaves the whole project unchanged")
    if re.fullmatch(r"NPU\d*", code):
        if not is_prefix(code):
            near = nearest_code(code)
            raise UsageError(f"{at}: no code starts with {code!r}" + (f"; did you mean {near}?" if near else ""))
        found.codes.append((_path(pattern, at) if inside else "*", code))
    else:
        found.left.append(_path(value, at))


def _path(text: str, at: str) -> str:
    """A path or a glob inside of the project. UsageError for one that leads out of it."""
    path = text.strip().removeprefix("./")
    if not path or len(path) > _LONGEST_VALUE:
        raise UsageError(f"{at}: a path of the project is missing")
    if path.startswith(("/", "~")) or "\\" in path or re.match(r"[A-Za-z]:", path) or ".." in path.split("/"):
        what = "is not a path inside the project (relative, with /, without ..)"
        raise UsageError(f"{at}: {shortened(text, 60)!r} {what}")
    return path
