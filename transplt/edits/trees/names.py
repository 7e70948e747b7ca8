"""Names: another dotted name in the layout of the old one, another last name, another module in an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transplt.edits.trees.lazy import cst
from transplt.edits.trees.transform import CannotRewrite, edit_of, expression

#: Why a statement that is no import, or imports `*`, is left.
_NO_IMPORT = "not the import statement that was expected"


@edit_of()
def dotted(node: cst.BaseExpression, name: str) -> cst.BaseExpression | str:
    """Put a dotted name in the place of a dotted name, in its layout if it has as many parts; else as it is."""
    wanted = name.split(".")
    attributes: list[cst.Attribute] = []
    while isinstance(node, cst.Attribute):
        attributes.append(node)
        node = node.value
    if not isinstance(node, cst.Name) or len(attributes) + 1 != len(wanted):
        return name
    new: cst.BaseExpression = node.with_changes(value=wanted[0])
    for attribute, part in zip(reversed(attributes), wanted[1:], strict=True):
        new = attribute.with_changes(value=new, attr=attribute.attr.with_changes(value=part))
    return new


@edit_of("Attribute", otherwise="not an attribute")
def attribute_named(node: cst.Attribute, name: str) -> cst.Attribute:
    """Give an attribute another name; what it is an attribute of stays."""
    return node.with_changes(attr=node.attr.with_changes(value=name))


@edit_of("SimpleStatementLine")
def modules_imported(line: cst.SimpleStatementLine, names: Mapping[int, str]) -> cst.SimpleStatementLine:
    """Give modules of `import a.b as c, d` other names, by their place; what follows `as` stays."""
    found, aliases = import_in(line)
    if not isinstance(found, cst.Import):
        raise CannotRewrite(_NO_IMPORT)
    for at, name in names.items():
        aliases[at] = aliases[at].with_changes(name=expression(name))
    return line.with_changes(body=[found.with_changes(names=aliases)])


@edit_of("SimpleStatementLine")
def names_imported(
    line: cst.SimpleStatementLine, module: str, names: Sequence[tuple[str, str | None] | None]
) -> cst.SimpleStatementLine:
    """Import from another module; a name becomes (name, local name or None), None where it stays as it is.

    A local name is added where there is none, and left out where it is the name itself.
    """
    found, aliases = import_in(line)
    if not isinstance(found, cst.ImportFrom) or found.relative:
        raise CannotRewrite(_NO_IMPORT)
    for at, (alias, new) in enumerate(zip(aliases, names, strict=True)):
        if new is None:
            continue
        name, local = new
        asname = None if local == name else alias.asname
        if local is not None and alias.asname is None:
            asname = cst.AsName(cst.Name(local))
        aliases[at] = alias.with_changes(name=cst.Name(name), asname=asname)
    return line.with_changes(body=[found.with_changes(module=expression(module), names=aliases)])


def import_in(line: cst.SimpleStatementLine) -> tuple[cst.Import | cst.ImportFrom, list[cst.ImportAlias]]:
    """The import of which a line consists, and what it names: CannotRewrite."""
    first, *others = line.body
    if others or not isinstance(first, (cst.Import, cst.ImportFrom)) or isinstance(first.names, cst.ImportStar):
        raise CannotRewrite(_NO_IMPORT)
    return first, [*first.names]
