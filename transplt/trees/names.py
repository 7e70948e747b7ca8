"""Names, by places: another dotted name in the layout of the old one, another last name, another module in an import.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from transplt.base.text.source import Source
from transplt.trees.positions import DOTTED, LAYOUT, Change, in_expression, in_import, name_at_end
from transplt.trees.transform import CannotRewrite, OfText

_DOTTED = re.compile(DOTTED)
_FROM = re.compile(rb"from" + LAYOUT + rb"(" + DOTTED + rb")")


def dotted(name: str) -> OfText:
    """Put a dotted name in the place of a dotted name, in its layout if it has as many parts; else as it is."""
    wanted = name.split(".")

    def changes(source: Source, node: ast.expr) -> list[Change] | str:
        places = []
        while isinstance(node, ast.Attribute):
            places.append(name_at_end(source, node))
            node = node.value
        if not isinstance(node, ast.Name) or len(places) + 1 != len(wanted):
            return name
        places.append(name_at_end(source, node))
        return list(zip(reversed(places), wanted, strict=True))

    return in_expression(changes)


def attribute_named(name: str) -> OfText:
    """Give an attribute another name; what it is an attribute of stays."""

    def changes(source: Source, node: ast.expr) -> list[Change]:
        if not isinstance(node, ast.Attribute):
            raise CannotRewrite("not an attribute")
        return [(name_at_end(source, node), name)]

    return in_expression(changes)


def modules_imported(names: Mapping[int, str]) -> OfText:
    """Give modules of `import a.b as c, d` other names, by their place; what follows `as` stays."""

    def changes(source: Source, node: ast.Import | ast.ImportFrom) -> list[Change]:
        if not isinstance(node, ast.Import):
            raise CannotRewrite("not the import statement that was expected")
        return [(_name_at(source, alias), names[at]) for at, alias in enumerate(node.names) if at in names]

    return in_import(changes)


def names_imported(module: str, names: Sequence[tuple[str, str | None] | None]) -> OfText:
    """Import from another module; a name becomes (name, local name or None), None where it stays as it is.

    A local name is added where there is none, and left out where it is the name itself.
    """

    def changes(source: Source, node: ast.Import | ast.ImportFrom) -> list[Change]:
        opening = _FROM.match(source.utf8)
        if opening is None or node.names[0].name == "*":
            raise CannotRewrite("not the import statement that was expected")
        found = [(opening.span(1), module)]
        for alias, new in zip(node.names, names, strict=True):
            if new is None:
                continue
            name, local = new
            place = _name_at(source, alias)
            if local is not None and alias.asname is None:
                name = f"{name} as {local}"
            elif local == name:
                place = source.extent(alias)
            found.append((place, name))
        return found

    return in_import(changes)


def _name_at(source: Source, alias: ast.alias) -> tuple[int, int]:
    """The place of what an import names, without what follows `as`."""
    found = _DOTTED.match(source.utf8, source.extent(alias)[0])
    assert found is not None
    return found.span()
