"""64-bit indices that only look something up: embeddings and index_select take 32 bits too.

torch.nn.Embedding, torch.nn.functional.embedding and torch.index_select take int32 and int64 indices, on NPU as in
PyTorch (documentation of torch_npu, 2.6 to 2.13). Indices of gather, scatter and of `x[i]` stay int64: PyTorch refuses
other types there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.names import Names
from transplt.syntax.nodes import by_place, call_of, inner_nodes, keyword_of
from transplt.syntax.scan import Scan, parent
from transplt.syntax.scopes import Scope

#: Names of the 64-bit type, and what the 32-bit one is called beside them.
LONG = {"torch.int64": "int32", "torch.long": "int"}


def long_lookups(scan: Scan, names: Names) -> Iterator[tuple[ast.Attribute, str, str]]:
    """What makes an index that is only looked up 64 bits long: the attribute, its 32-bit name, and the API."""
    for node in by_place(scan.attributes.get("long", ())):
        call = call_of(node)
        if call is not None and not call.args and _only_looks_up(scan, names, call):
            yield node, "int", "torch.Tensor.long"
    for name, new in LONG.items():
        last = name.rpartition(".")[2]
        for node in by_place(scan.attributes.get(last, ())):
            if names.qualified(node) != name:
                continue
            above = parent(node)
            made = parent(above) if isinstance(above, ast.keyword) and above.arg == "dtype" else above
            match made:
                case ast.Call(func=ast.Attribute(attr="to" | "type"), args=[given], keywords=[]) if given is node:
                    makes = True
                case ast.Call():
                    makes = node not in made.args and names.qualified(made.func) == "torch.arange"
                case _:
                    continue
            if makes and _only_looks_up(scan, names, made):
                yield node, new, name


def _only_looks_up(scan: Scan, names: Names, node: ast.expr) -> bool:
    """True when a value goes to embeddings and index_select alone, directly or through one local name."""
    above = parent(node)
    handing_on = names_of(TENSOR, "keeps_type", "to_card")
    while isinstance(above, ast.Attribute) and above.attr in handing_on and isinstance(parent(above), ast.Call):
        node = parent(above)  # type: ignore[assignment]
        assert isinstance(node, ast.Call)
        if any(names.qualified(given) in LONG for given in node.args) or keyword_of(node, "dtype") is not None:
            return False
        above = parent(node)
    if _is_index(scan, names, node):
        return True
    if not isinstance(above, ast.Assign) or len(above.targets) != 1 or not isinstance(above.targets[0], ast.Name):
        return False
    target = above.targets[0]
    scope: Scope = scan.scope_of(target)
    if scope.kind != "function" or len(scope.bindings.get(target.id, ())) != 1:
        return False
    reads = []
    for read in scan.names.get(target.id, ()):
        found = names.lookup(read.id, scan.scope_of(read))
        if found is not None and found[0] is scope:
            reads.append(read)
    return bool(reads) and all(_is_index(scan, names, read) for read in reads)


def _is_index(scan: Scan, names: Names, node: ast.expr) -> bool:
    """True for the indices of an embedding or of index_select."""
    call = parent(node)
    if not isinstance(call, ast.Call) or node not in call.args:
        return False
    full = names.qualified(call.func) or ""
    if full == "torch.nn.functional.embedding":
        return call.args[0] is node and not call.keywords and len(call.args) <= 3
    if full == "torch.index_select":
        return len(call.args) == 3 and call.args[2] is node
    return len(call.args) == 1 and not call.keywords and _is_embedding(scan, names, call.func)


def _is_embedding(scan: Scan, names: Names, func: ast.expr) -> bool:
    """True for an attribute of the object in which its class stores nn.Embedding layers and nothing else."""
    match func:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            values = _stored_in_self(scan, name)
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=holder), attr=name):
            # self.transformer = nn.ModuleDict(dict(wte=nn.Embedding(...), ...))
            values = []
            for made in _stored_in_self(scan, holder):
                if not isinstance(made, ast.Call) or names.qualified(made.func) != "torch.nn.ModuleDict":
                    return False
                values += [each.value for each in inner_nodes(made, ast.keyword) if each.arg == name]
        case _:
            return False
    return bool(values) and all(isinstance(value, ast.Call) and _plain(names, value) for value in values)


def _stored_in_self(scan: Scan, name: str) -> list[ast.expr | None]:
    """The values of `self.name = value`, None for what is stored in another way."""
    stores = [node for node in scan.stores if node.attr == name and getattr(node.value, "id", "") == "self"]
    return [getattr(parent(node), "value", None) for node in stores]


def _plain(names: Names, call: ast.Call) -> bool:
    """True for nn.Embedding without the options that do more than look up."""
    if names.qualified(call.func) != "torch.nn.Embedding":
        return False
    return len(call.args) <= 3 and all(
        keyword.arg in ("num_embeddings", "embedding_dim", "padding_idx", "device", "dtype")
        for keyword in call.keywords
    )
