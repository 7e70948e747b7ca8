"""Commands with their flags in shell text: lines that go on, directives of schedulers, up to the script they start."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from transplt.base.text.text_search import Marked

#: `#SBATCH --gres=gpu:8` is a comment to the shell and a command line to the scheduler.
_DIRECTIVES = {"SBATCH": "sbatch", "PBS": "qsub", "BSUB": "bsub", "$": "qsub"}
_DIRECTIVE = re.compile(r"[ \t\"'fr]{0,80}#(SBATCH|PBS|BSUB|\$)[ \t]+")
_COMMENT = re.compile(r"(?:^|[ \t])#(?!!).*")
_LONGEST_LINE = 20_000
_GOES_ON = re.compile(r"\\[ \t]*$")
_ENDS = re.compile(r"[;|]|&&")
#: What follows is not the command's own: the script that a launcher starts, with its arguments.
_SCRIPT = re.compile(r"(?<=[\s=])(?:\S{1,200}\.(?:py|sh)|python[0-9.]*|-m)(?=[\s\"'\\]|$)")
_PRINTS = re.compile(r"(?:^|[\s;&|(@-])(?:echo|printf|print|log|info|warn|die|help)\b")


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of one command in one line: `line` counts from 0, `start` is the column of `text` in it."""

    text: str
    line: int
    start: int


def logical_lines(lines: list[str], worth: re.Pattern[str] | Marked) -> Iterator[tuple[int, list[str]]]:
    """Lines that go on behind a backslash together, with the number of the first: those in which `worth` is found."""
    number = 0
    while number < len(lines):
        first, found = number, _may_hold(lines[number], worth)
        while number + 1 < len(lines) and _GOES_ON.search(lines[number], max(0, len(lines[number]) - 80)):
            number += 1
            found = found or _may_hold(lines[number], worth)
        number += 1
        if found:
            yield first, lines[first:number]


def _may_hold(line: str, worth: re.Pattern[str] | Marked) -> bool:
    return len(line) <= _LONGEST_LINE and worth.search(line) is not None


def flags_of(lines: list[str], command: str, first: int = 0) -> Iterator[Flags]:
    """What follows a command (a regular expression; nothing for any) in one logical line, an entry for each line."""
    within = not command
    for offset, line in enumerate(lines):
        directive = _DIRECTIVE.match(line)
        if directive is not None:
            if not command or _called(command).search(f" {_DIRECTIVES[directive[1]]} "):
                yield Flags(line[directive.end() :], first + offset, directive.end())
            continue
        text = _COMMENT.sub("", line)
        at = 0
        if not within:
            match = _called(command).search(text)
            if match is None or _PRINTS.search(text, 0, match.start() + 1):
                continue
            at, within = match.end(), True
        elif not command and _PRINTS.match(text.lstrip()):
            continue
        stops = [stop.start() for stop in (_SCRIPT.search(text, at), _ENDS.search(text, at)) if stop is not None]
        if command and stops:
            yield Flags(text[at : min(stops)], first + offset, at)
            return
        yield Flags(text[at:], first + offset, at)


@lru_cache(maxsize=64)
def _called(command: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-])(?:{command})(?![\w.-])")
