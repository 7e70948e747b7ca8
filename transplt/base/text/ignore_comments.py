"""Comments `# transplt: ignore[NPU201, NPU5] why`: what one says, where its codes stand, and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

_TOOL, _WORD = "transplt", "ignore"
_OPENS = re.compile(rb"(?:#|//)[ \t]*([A-Za-z_]{5,12})([ \t]*[:=-]*[ \t]*)([A-Za-z][A-Za-z_-]*)")
_CODE = re.compile(rb"NPU[0-9]*", re.IGNORECASE)
_BRACKETS = re.compile(rb"\[([^\]\[#\r\n]*)(\]?)")
_BARE_CODES = re.compile(rb"[\s:=({<-]*(NPU[0-9]+(?:[\s,]+NPU[0-9]+)*)[)}>]?", re.IGNORECASE)
_ITEM = re.compile(rb"[^,\s]+")
#: What other tools write for the same.
_OTHER_WORDS = frozenset({"noqa", "disable", "skip", "off", "nolint", "suppress", "exclude"})
#: From here on a word is taken for a misspelt one; `ingore` is 0.83 like `ignore`, `before` 0.50.
_NEAR = 0.7
FORM = "write `# transplt: ignore[NPU201]`, with the codes that are meant"


@dataclass(frozen=True, slots=True)
class IgnoreComment:
    """One such comment at `start`..`end`, without the words behind it.

    `codes` are prefixes of codes in capitals, each at its place in `places`; None where every code is meant.
    `problem` says what is wrong with its form, empty when nothing is; `codes` are what can be read all the same.
    """

    start: int
    end: int
    codes: tuple[str, ...] | None
    places: tuple[tuple[int, int], ...] = ()
    problem: str = ""

    def holds_for(self, code: str) -> bool:
        """True when the comment speaks of a code."""
        return self.codes is None or code.startswith(self.codes)


def ignore_comments(data: bytes, start: int = 0, end: int | None = None) -> Iterator[IgnoreComment]:
    """The ignore comments in a comment, or a line, at `start`..`end`; also those that are spelled wrongly."""
    end = len(data) if end is None else end
    while opens := _OPENS.search(data, start, end):
        quoted = data[opens.start() - 1 : opens.start()] == b"`"
        found = None if quoted else _read(data, opens, end)
        if found is not None:
            yield found
        start = max(opens.end(), found.end if found is not None else 0)


def switched_off(code: str, off: tuple[str, ...], comments: Iterable[IgnoreComment]) -> str:
    """Why a finding with a code is not wanted: the settings switch it off, or a comment; empty where it is."""
    if code.startswith(off):
        return "ignored for this file in the settings"
    return "ignored by a comment" if any(each.holds_for(code) for each in comments) else ""


def _read(data: bytes, opens: re.Match[bytes], end: int) -> IgnoreComment | None:
    tool, between, word = (part.decode() for part in opens.groups())
    at = opens.end()
    brackets, bare = _BRACKETS.match(data, at, end), _BARE_CODES.match(data, at, end)
    behind = brackets or bare
    names_codes = bare is not None or (brackets is not None and _CODE.match(brackets[1].strip()) is not None)
    if tool == _TOOL and between.strip() == ":" and between[0] == ":" and word == _WORD:
        if behind is None:
            return IgnoreComment(opens.start(), at, None)
        items = tuple(match.span() for match in _ITEM.finditer(data, *behind.span(1)))
        codes = tuple(data[slice(*item)].decode("utf-8", "replace").upper() for item in items)
        problem = ""
        if brackets is None:
            problem = "the codes must be in brackets"
        elif not items or not brackets[2]:
            problem = "the bracket is not closed" if items else "there is no code in the brackets"
        return IgnoreComment(opens.start(), behind.end(), codes, items, problem)
    wrong = _misspelt(tool, between, word, names_codes, data[at:end])
    return IgnoreComment(opens.start(), behind.end() if behind else at, (), (), wrong) if wrong else None


def _misspelt(tool: str, between: str, word: str, names_codes: bool, rest: bytes) -> str:
    """What is spelled wrongly in a comment that means to ignore something; empty when it does not mean to."""
    means = word.lower().startswith(_WORD) or _like(word, _WORD)
    if tool.lower() != _TOOL:
        return f"{tool!r} stands for `{_TOOL}`" if means and names_codes and _like(tool, _TOOL, 0.8) else ""
    if ":" not in between:
        return "there is no `:` after `transplt`" if means and (names_codes or not rest.strip()) else ""
    if word == _WORD or (means and word.lower() == _WORD):
        return f"it is written `{_TOOL}: {_WORD}`"
    if means or word.lower() in _OTHER_WORDS or names_codes:
        return f"{word!r} stands for `{_WORD}`"
    return ""


def _like(word: str, wanted: str, near: float = _NEAR) -> bool:
    return SequenceMatcher(None, word.lower(), wanted).ratio() >= near
