"""What is computed otherwise, as people are told of it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from itertools import takewhile
from operator import eq

from transplt.project.judging.statements import Statement

_LINE = "\n"
#: So much is shown of a statement, and of what is another in it; so many words around something new.
_SHOWN, _OTHER, _AROUND, _WIDE = 120, 70, 4, 240
_BECAME = re.compile(" (?:became|stands where) ")
#: So many words more are shown, so that no name or bracket is cut.
_WIDEST = 16


def other_text(before: str, after: str) -> str:
    """What is another in the second of two texts: `len(loader)` became `args.epochs`."""
    one, other = (re.findall(r"\w+|\s+|[-+*/<>=!]+|.", each) for each in (before, after))
    first = len([*takewhile(bool, map(eq, one, other))])
    last = len([*takewhile(bool, map(eq, one[first:][::-1], other[first:][::-1]))])
    if first in (len(one) - last, len(other) - last):
        first = max(0, first - _AROUND)
    for wider in range(_WIDEST):
        for left in range(wider + 1):
            start, end = max(0, first - left), max(0, last - wider + left)
            parts = ["".join(each[start : len(each) - end]).strip() for each in (one, other)]
            if all(map(_is_whole, parts)):
                return " became ".join(f"`{shortened(each, _OTHER)}`" for each in parts)
    return "is written otherwise"


def _is_whole(part: str) -> bool:
    """Whether a part of a statement can be read alone: an expression, or what a call is given."""
    try:
        return bool(ast.parse(f"f({part.strip(',')})"))
    except SyntaxError:
        return False


def shortened(text: str, most: int = _SHOWN) -> str:
    """A text with its middle left out where it is long."""
    return text if len(text) <= most else f"{text[: most - most // 3]} ... {text[-most // 3 :]}"


@dataclass(frozen=True, slots=True)
class Otherwise:
    """Something that is computed otherwise: the statements of the original and of the port, what it is, and the `words`
    that differ. One that may come to the same is not `sure`; `function`: that of both programs for which it was
    found."""

    before: Statement | None
    after: Statement | None
    what: str = ""
    sure: bool = True
    words: tuple[str, ...] = ()
    function: str = ""

    @property
    def at(self) -> Statement:
        """Where it is, in the port if it is there."""
        at = self.after or self.before
        assert at is not None
        return at

    @property
    def _is_other_kind(self) -> bool:
        """Whether a statement of another kind stands in its place, or reads what it made."""
        both = self.before is not None and self.after is not None
        return both and type(getattr(self.before, "node", None)) is not type(getattr(self.after, "node", None))

    @property
    def lines(self) -> tuple[tuple[int, str], ...]:
        """What stood in the original and what stands in the port, as a diff has it; nothing where it is the same."""
        if self.before is None or self.after is None or self.before.shown == self.after.shown or self._is_other_kind:
            return ()
        sides = (("-", self.before), ("+", self.after))
        return (*((each.line, f"{sign} {shortened(each.shown, _WIDE)}") for sign, each in sides),)

    @property
    def sentence(self) -> str:
        """What a person reads of it."""
        at = self.at
        text, place = f"`{shortened(at.shown)}`", at.scope or "the module"
        if self._is_other_kind and self.before and not _BECAME.search(self.what):
            return f"{text} in {place}, where the original has `{shortened(self.before.shown)}`"
        if self.lines and _BECAME.search(self.what):
            return f"{self.what} in {place}"
        if self.what:
            return f"{text} in {place}: {self.what}"
        if self.after and isinstance(self.after.node, (ast.If, ast.With, ast.Try, ast.For, ast.While)):
            text += f" around `{ast.unparse(self.after.node.body[0]).partition(_LINE)[0]}`"
        return f"{text} was added in {place}" if self.after else f"{text} was removed from {place}"
