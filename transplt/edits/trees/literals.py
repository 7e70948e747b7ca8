"""Text in strings: the literals are found by the lexer, and of an f-string what is between its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from transplt.base.text.lexer import Literal, literals
from transplt.edits.trees.transform import CannotRewrite, OfText


def words_in_literal(words: Mapping[str, str]) -> OfText:
    """Replace words (old -> new, one after the other) in a string that is one literal; fields of f-strings stay."""

    def swapped(text: str) -> str:
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    return in_literals(swapped, several=False, holding=tuple(words))


def in_literals(change: Callable[[str], str], *, several: bool = True, holding: tuple[str, ...] = ()) -> OfText:
    """Change the text of a string: of its one literal, or also of each of several that stand side by side.

    `change` gets a literal with its prefix and quotes, or the text between two fields of an f-string; `holding` are
    texts that the string must hold.
    """

    def found(text: str) -> list[Literal]:
        every = literals(text)
        if not all(word in text for word in holding):
            raise CannotRewrite("not written as one plain literal")
        if not every or (len(every) > 1 and not several):
            raise CannotRewrite("not a plain string")
        return every

    def write(text: str) -> str:
        parts: list[str] = []
        at = 0
        for start, end in (span for item in found(text) for span in item.text):
            parts += (text[at:start], change(text[start:end]))
            at = end
        return "".join((*parts, text[at:]))

    return OfText(write)
