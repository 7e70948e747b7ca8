"""Text in strings. A site is one literal, found by the lexer: LibCST recurses in a concatenation of some 500 of them.

What LibCST cannot read (`rf"..."` with a line that goes on, grammar newer than it) is changed on its text, between the
fields that the lexer finds. It is the one text form beside the trees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from transplt.base.text.lexer import Literal, literals
from transplt.trees.lazy import cst
from transplt.trees.shown import replaced
from transplt.trees.transform import CannotRewrite, OfText, text_of


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
        return replaced(text, (((item.start, item.end), _literal(text, item, change)) for item in found(text)))

    def show(text: str) -> str | None:
        return replaced(text, ((span, change(text[slice(*span)])) for item in found(text) for span in item.text))

    return OfText(write, show)


def _literal(text: str, literal: Literal, change: Callable[[str], str]) -> str:
    old = text[literal.start : literal.end]
    try:
        node = cst.parse_expression(old)
    except cst.ParserSyntaxError:
        # The one text form: what LibCST does not read.
        spans = [(start - literal.start, end - literal.start) for start, end in literal.text]
        return replaced(old, ((span, change(old[slice(*span)])) for span in spans))
    if isinstance(node, cst.SimpleString):
        return text_of(node.with_changes(value=change(node.value)), old)
    if not isinstance(node, cst.FormattedString):
        raise CannotRewrite("not a plain string")
    parts = [
        part.with_changes(value=change(part.value)) if isinstance(part, cst.FormattedStringText) else part
        for part in node.parts
    ]
    return text_of(node.with_changes(parts=parts), old)
