"""Every use of torch's API in one file: names through imports and aliases, methods where the receiver is certain.

A use is the longest dotted chain on a name that leads to torch. A method counts when its receiver is a tensor for
certain
(`receivers`) or when `self` is an instance of a subclass of nn.Module that does not define the method itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transplt.engine.analysis.receivers import Receivers
from transplt.rules import support_tables as tables
from transplt.syntax.names import IMPORT_CALLS, Names
from transplt.syntax.nodes import last_name
from transplt.syntax.scan import Scan, parent


@dataclass(frozen=True, slots=True)
class Use:
    """One use: the node that names the API, its canonical name, and the call when it is called there."""

    node: ast.expr | ast.alias
    api: str
    call: ast.Call | None = None


#: A chain of attributes on a name, its outermost node, with the full dotted name it stands for.
Chain = tuple[ast.expr, str]


def chains(scan: Scan, names: Names, roots: tuple[str, ...] = ("torch",)) -> Iterator[Chain]:
    """Every chain on a name that leads to one of the packages `roots`."""
    wanted = set(_bound(scan, names, roots))
    if scan.root.stars:
        wanted.add("torch")
        # By the names of the file: a project passes on thousands.
        stars = [star and f"{star}." for star in dict.fromkeys(scan.root.stars)]
        wanted.update(local for local in scan.names if any(f"{star}{local}" in names.reexports for star in stars))
    for local in sorted(wanted & scan.names.keys()):
        for node in scan.names[local]:
            full = names.resolve(local, scan.scope_of(node))
            if full is None or full.partition(".")[0] not in roots:
                continue
            top: ast.expr = node
            above = parent(top)
            while type(above) is ast.Attribute:
                full = f"{full}.{above.attr}"
                top, above = above, parent(above)
            yield top, full


def _bound(scan: Scan, names: Names, roots: tuple[str, ...]) -> Iterator[str]:
    """Local names that an import or a plain assignment may lead to the packages; resolved where they are used."""
    for scope in scan.scopes.values():
        for local, bindings in scope.bindings.items():
            first = bindings[0].kind
            if first == "assign":
                if len(bindings) == 1 and _may_alias(bindings[0].node):
                    yield local
                continue
            for binding in bindings if first == "import" or len(bindings) > 1 else ():
                if binding.kind == "import":
                    target = names.reexports.get(binding.target, binding.target)
                    if target.partition(".")[0] in roots:
                        yield local


def _may_alias(store: ast.AST) -> bool:
    above = parent(store)
    if type(above) is not ast.Assign:
        return False
    value = above.value
    if type(value) is ast.Call:
        return len(value.args) == 1 and last_name(value.func) in IMPORT_CALLS
    return type(value) in (ast.Name, ast.Attribute)


def api_uses(scan: Scan, found_chains: Iterable[Chain], receivers: Receivers) -> list[Use]:
    """The uses of torch's API, sorted by place."""
    found = [Use(node, api, _call_of(node)) for node, full in found_chains if (api := tables.api_of(full))]
    # Sorted, tensors first: what is certain about one receiver may rest on what was asked before.
    for name in sorted(scan.attributes.keys() & tables.members_of("torch.Tensor")):
        for node in scan.attributes[name]:
            if (call := _call_of(node)) is not None and receivers.is_tensor(node.value):
                found.append(Use(node, f"torch.Tensor.{name}", call))
    for name in sorted(scan.attributes.keys() & tables.module_members() & tables.members_of("torch.nn.Module")):
        for node in scan.attributes[name]:
            if (call := _call_of(node)) is not None and receivers.is_own_module(node.value, name):
                found.append(Use(node, f"torch.nn.Module.{name}", call))
    return sorted(found, key=lambda use: (use.node.lineno, use.node.col_offset, use.api))


def _call_of(node: ast.AST) -> ast.Call | None:
    above = parent(node)
    return above if type(above) is ast.Call and above.func is node else None
