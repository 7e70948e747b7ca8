"""Names: another dotted name in the layout of the old one, another last name, another module in an import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from transplt.trees import shown
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite, Shown, Transform


def dotted(name: str) -> Shown:
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

    return Shown(transform, lambda text: shown.dotted(text, wanted))


def attribute_named(name: str) -> Shown:
    """Give an attribute another name; what it is an attribute of stays."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        if not isinstance(node, cst.Attribute):
            raise CannotRewrite("not an attribute")
        return node.with_changes(attr=node.attr.with_changes(value=name))

    return Shown(transform, lambda text: shown.attribute_named(text, name))


def modules_imported(names: Mapping[int, str]) -> Shown:
    """Give modules of `import a.b as c, d` other names, by their place; what follows `as` stays."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line, found = _import(node)
        if not isinstance(found, cst.Import):
            raise CannotRewrite("not the import statement that was expected")
        aliases = [
            alias.with_changes(name=_module(names[index])) if index in names else alias
            for index, alias in enumerate(found.names)
        ]
        return line.with_changes(body=[found.with_changes(names=aliases)])

    return Shown(transform, lambda text: shown.modules_imported(text, names))


def names_imported(module: str, names: Sequence[tuple[str, str | None] | None]) -> Shown:
    """Import from another module; a name becomes (name, local name or None), None where it stays as it is.

    A local name is added where there is none, and left out where it is the name itself.
    """

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line, found = _import(node)
        if not isinstance(found, cst.ImportFrom) or isinstance(found.names, cst.ImportStar):
            raise CannotRewrite("not the import statement that was expected")
        aliases = []
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
        return line.with_changes(body=[found.with_changes(module=_module(module), names=aliases)])

    return Shown(transform, lambda text: shown.names_imported(text, module, names))


def without_names(*names: str) -> Transform:
    """Take names out of an import statement, by what they are called in the file; one at least has to stay."""

    def transform(node: cst.CSTNode) -> cst.CSTNode:
        line, found = _import(node)
        if isinstance(found.names, cst.ImportStar):
            raise CannotRewrite("not the import statement that was expected")
        kept = list(found.names)
        for name in names:
            at = next((index for index, alias in enumerate(kept) if _local_name(alias) == name), None)
            if at is None or len(kept) == 1:
                raise CannotRewrite(f"the import has no {name}")
            del kept[at]
        kept[-1] = kept[-1].with_changes(comma=found.names[-1].comma)
        return line.with_changes(body=[found.with_changes(names=kept)])

    return transform


def _local_name(alias: cst.ImportAlias) -> str:
    """`a` of `a`, of `b as a`, and of `a.b`, which binds a."""
    return alias.evaluated_alias or alias.evaluated_name.partition(".")[0]


def _import(node: cst.CSTNode) -> tuple[cst.SimpleStatementLine, cst.Import | cst.ImportFrom]:
    line = cst.ensure_type(node, cst.SimpleStatementLine)
    if len(line.body) != 1 or not isinstance(line.body[0], (cst.Import, cst.ImportFrom)):
        raise CannotRewrite("not the import statement that was expected")
    return line, line.body[0]


def _module(name: str) -> cst.BaseExpression:
    return cst.parse_expression(name)
