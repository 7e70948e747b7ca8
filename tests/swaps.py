"""The judge of the edits of names, literals, imports and arguments by places: LibCST's trees.

Each function makes a transform of the small tree of a site, which is how these edits were made once. It leaves spaces,
comments, brackets and quotes where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from transplt.base.text.lexer import literals
from transplt.trees.transform import CannotRewrite, OfText, Transform, text_of


def dotted(name: str) -> Transform:
    """Put a dotted name in the place of a dotted name, in its layout if it has as many parts; else as it is."""
    wanted = name.split(".")

    def transform(node: cst.CSTNode) -> cst.CSTNode | str:
        attributes: list[cst.Attribute] = []
        root = node
        while isinstance(root, cst.Attribute):
            attributes.append(root)
            root = root.value
        if not isinstance(root, cst.Name) or len(attributes) + 1 != len(wanted):
            return name
        new: cst.BaseExpression = root.with_changes(value=wanted[0])
        for attribute, part in zip(reversed(attributes), wanted[1:], strict=True):
            new = attribute.with_changes(value=new, attr=attribute.attr.with_changes(value=part))
        return new

    return transform


def attribute_named(name: str) -> Transform:
    """Give an attribute another name; what it is an attribute of stays."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        if not isinstance(node, cst.Attribute):
            raise CannotRewrite("not an attribute")
        return node.with_changes(attr=node.attr.with_changes(value=name))

    return transform


def with_first(value: str) -> Transform:
    """Put a positional argument in front of all others of the call of a name."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        called = node.func if isinstance(node, cst.Call) else node
        while isinstance(called, cst.Attribute):
            called = called.value
        if not isinstance(node, cst.Call) or not isinstance(called, cst.Name):
            raise CannotRewrite("not a call by name")
        new = cst.Arg(cst.parse_expression(value))
        if node.args:
            new = new.with_changes(comma=_comma())
        return node.with_changes(args=[new, *node.args])

    return transform


def with_twin(text: str, twin: str) -> Transform:
    """Put a second literal behind the argument that is the first one."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        for index, arg in enumerate(call.args):
            if isinstance(arg.value, cst.SimpleString) and arg.value.value[1:-1] == text and arg.keyword is None:
                quote = arg.value.value[0]
                new = arg.with_changes(value=cst.SimpleString(f"{quote}{twin}{quote}"))
                first = arg.with_changes(comma=_comma(), whitespace_after_arg=cst.SimpleWhitespace(""))
                return call.with_changes(args=[*call.args[:index], first, new, *call.args[index + 1 :]])
        raise CannotRewrite(f"{text} is not a plain string")

    return transform


def modules_imported(names: Mapping[int, str]) -> Transform:
    """Give modules of `import a.b as c, d` other names, by their place; what follows `as` stays."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        found = cst.ensure_type(line.body[0], cst.Import)
        aliases = [
            alias.with_changes(name=cst.parse_expression(names[index])) if index in names else alias
            for index, alias in enumerate(found.names)
        ]
        return line.with_changes(body=[found.with_changes(names=aliases)])

    return transform


def names_imported(module: str, names: Sequence[tuple[str, str | None] | None]) -> Transform:
    """Import from another module; a name becomes (name, local name or None), None where it stays as it is."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line = cst.ensure_type(node, cst.SimpleStatementLine)
        found = cst.ensure_type(line.body[0], cst.ImportFrom)
        aliases = []
        assert not isinstance(found.names, cst.ImportStar)
        for alias, new in zip(found.names, names, strict=True):
            if new is not None:
                name, local = new
                alias = alias.with_changes(name=cst.Name(name))
                if local is not None and alias.asname is None:
                    space = cst.SimpleWhitespace(" ")
                    alias = alias.with_changes(asname=cst.AsName(cst.Name(local), space, space))
                elif local == name:
                    alias = alias.with_changes(asname=None)
            aliases.append(alias)
        return line.with_changes(body=[found.with_changes(module=cst.parse_expression(module), names=aliases)])

    return transform


def words_in_literal(words: Mapping[str, str]) -> OfText:
    """Replace words (old -> new, one after the other) in a string that is one literal; fields of f-strings stay."""

    def swapped(text: str) -> str:
        for old, new in words.items():
            text = text.replace(old, new)
        return text

    return in_literals(swapped)


def in_literals(change: Callable[[str], str]) -> OfText:
    """Change the text of a string, literal by literal: LibCST recurses in a concatenation of some 500 of them."""

    def write(text: str) -> str:
        parts: list[str] = []
        at = 0
        for item in literals(text):
            parts += (text[at : item.start], _changed(text[item.start : item.end], change))
            at = item.end
        return "".join((*parts, text[at:]))

    return OfText(write)


def _changed(old: str, change: Callable[[str], str]) -> str:
    node = cst.parse_expression(old)
    if isinstance(node, cst.SimpleString):
        return text_of(node.with_changes(value=change(node.value)), old)
    parts = [
        part.with_changes(value=change(part.value)) if isinstance(part, cst.FormattedStringText) else part
        for part in cst.ensure_type(node, cst.FormattedString).parts
    ]
    return text_of(node.with_changes(parts=parts), old)


def _comma() -> cst.Comma:
    return cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
