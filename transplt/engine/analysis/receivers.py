"""What is a tensor for certain, and what is an nn.Module: the receivers whose methods are torch's.

An expression is a tensor when it is the result of a torch function or tensor method all of whose overloads return one
tensor, a parameter annotated as a tensor, a parameter or buffer that the class registers, arithmetic on a tensor, or a
name all of whose assignments are tensors. Everything else is not certain, and is not reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.flow.gates.graph import ancestors
from transplt.rules import support_tables as tables
from transplt.syntax.names import Names, assigned_value
from transplt.syntax.nodes import plain_name
from transplt.syntax.scan import FUNCTIONS, Scan, parent
from transplt.syntax.scopes import Binding

_TENSORS = frozenset({"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"})
#: Attributes of a tensor that are tensors.
_VIEWS = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
_OWNERS = ("torch", "torch.nn.functional")
_NO_FIELDS: tuple[frozenset[str], dict[str, str]] = (frozenset(), {})
_REGISTERS = frozenset({"register_buffer", "register_parameter"})
#: An expression of more operations than this within each other is not looked through.
_DEEPEST = 100


class Receivers:
    """The certain tensors and modules of one file; answers are remembered."""

    def __init__(self, scan: Scan, names: Names, bases: dict[str, tuple[str, ...]] | None = None) -> None:
        self.scan = scan
        self.names = names
        self._bases = bases or {}
        self._known: dict[int, bool] = {}
        self._names: dict[tuple[int, str], bool] = {}
        self._open: set[tuple[int, str]] = set()  # names that are being looked at
        self._classes: dict[ast.ClassDef, bool] = {}
        self._depth = 0
        self._fields: dict[ast.ClassDef, tuple[frozenset[str], dict[str, str]]] | None = None

    # --- tensors ---

    def is_tensor(self, node: ast.expr) -> bool:
        """True when an expression is a tensor for certain."""
        key = id(node)
        known = self._known.get(key)
        if known is None:
            self._known[key] = False  # what leads back to itself is not certain
            if self._depth >= _DEEPEST:
                return False
            self._depth += 1
            known = self._known[key] = self._tensor(node)
            self._depth -= 1
        return known

    def _tensor(self, node: ast.expr) -> bool:
        match node:
            case ast.Name():
                return self._tensor_name(node)
            case ast.Call():
                return self._tensor_call(node)
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                owner = _class_of(node)
                return owner is not None and attr in self.fields(owner)[0]
            case ast.Attribute(value=value, attr=attr):
                return attr in _VIEWS and self.is_tensor(value)
            case ast.BinOp(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case ast.UnaryOp(op=ast.Not()) | ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
                return False
            case ast.UnaryOp(operand=value) | ast.Subscript(value=value) | ast.Compare(left=value, ops=[_]):
                return self.is_tensor(value)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_tensor(body) and self.is_tensor(orelse)
        return False

    def _tensor_name(self, node: ast.Name) -> bool:
        scope = self.scan.scope_of(node)
        found = self.names.lookup(node.id, scope)
        if found is None or found[0].kind not in ("function", "module"):
            return False
        key = (id(found[0]), node.id)
        known = self._names.get(key)
        if known is None:
            known = self._names[key] = self._all_tensors(key, found[1])
        return known

    def _all_tensors(self, key: tuple[int, str], bindings: list[Binding]) -> bool:
        """True when every binding of a name is a tensor, one of them without the help of the name itself.

        A name that is updated from itself (`x = x + y`) is what its other bindings make it: they are looked at twice,
        without and with the assumption that the name is a tensor. What was found under a false one is forgotten.
        """
        self._names[key] = False
        self._open.add(key)
        grounded = [self._binding(binding.kind, binding.node) for binding in bindings]
        self._open.discard(key)
        if all(grounded) or not any(grounded):
            return all(grounded)
        names = {each: answer for each, answer in self._names.items() if answer or each in self._open}
        known = {each: True for each, answer in self._known.items() if answer}
        self._names, self._known = {**names, key: True}, dict(known)
        if all(self._binding(binding.kind, binding.node) for binding in bindings):
            return True
        self._names, self._known = names, known
        return False

    def _binding(self, kind: str, node: ast.AST) -> bool:
        if kind == "param":
            holder = parent(node)
            if isinstance(holder, ast.arguments) and node in (holder.vararg, holder.kwarg):
                return False  # the annotation of *args and **kwargs speaks of each value
            return isinstance(node, ast.arg) and self._annotated(node.annotation)
        if kind != "assign":
            return False
        above = parent(node)
        if isinstance(above, ast.AugAssign):
            return self._names.get((id(self.scan.scope_of(node)), node.id), False)  # type: ignore[attr-defined]
        if isinstance(above, ast.AnnAssign) and above.value is None:
            return self._annotated(above.annotation)
        value = assigned_value(node)
        return value is not None and self.is_tensor(value)

    def _annotated(self, annotation: ast.expr | None) -> bool:
        if annotation is None:
            return False
        if isinstance(annotation, ast.Constant):
            return annotation.value in ("torch.Tensor", "Tensor")
        full = self.names.qualified(annotation)
        return full is not None and tables.canonical(full) in _TENSORS

    def _tensor_call(self, node: ast.Call) -> bool:
        func = node.func
        method = isinstance(func, ast.Attribute) and func.attr in tables.tensor_results("torch.Tensor")
        if method and self.is_tensor(func.value):  # type: ignore[attr-defined]
            return True
        full = self.names.qualified(func)
        if full is not None:
            if not full.startswith("torch."):
                return False
            full = tables.canonical(full)
            owner, _, last = full.rpartition(".")
            return full in _TENSORS or (owner in _OWNERS and last in tables.tensor_results(owner))
        match func:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                owner_class = _class_of(func)
                return owner_class is not None and attr in self.fields(owner_class)[1]
        return False

    def fields(self, owner: ast.ClassDef) -> tuple[frozenset[str], dict[str, str]]:
        """Attributes of `self` in a class that are tensors, and those that are layers which return one tensor."""
        if self._fields is None:
            self._fields = self._all_fields()
        return self._fields.get(owner, _NO_FIELDS)

    def _all_fields(self) -> dict[ast.ClassDef, tuple[frozenset[str], dict[str, str]]]:
        tensors: dict[ast.ClassDef, set[str]] = {}
        layers: dict[ast.ClassDef, dict[str, str]] = {}
        spoiled: dict[ast.ClassDef, set[str]] = {}
        for name in _REGISTERS:
            for node in self.scan.attributes.get(name, ()):
                call, owner = parent(node), _class_of(node)
                if owner is None or not isinstance(call, ast.Call) or call.func is not node or not call.args:
                    continue
                absent = len(call.args) > 1 and isinstance(call.args[1], ast.Constant)
                if isinstance(call.args[0], ast.Constant) and not absent:
                    tensors.setdefault(owner, set()).add(str(call.args[0].value))
        for store in self.scan.stores:
            if plain_name(store.value) != "self":
                continue
            owner = _class_of(store)
            if owner is None:
                continue
            full = self._constructed(store)
            if full in _TENSORS:
                tensors.setdefault(owner, set()).add(store.attr)
            elif full.startswith("torch.nn.") and full[len("torch.nn.") :] in tables.tensor_results("torch.nn"):
                layers.setdefault(owner, {})[store.attr] = full
            else:
                spoiled.setdefault(owner, set()).add(store.attr)
        found = {}
        for owner in {*tensors, *layers}:
            bad = spoiled.get(owner, set())
            certain = {name: full for name, full in layers.get(owner, {}).items() if name not in bad}
            found[owner] = (frozenset(tensors.get(owner, set()) - bad), certain)
        return found

    def _constructed(self, store: ast.Attribute) -> str:
        """Canonical name of the torch class whose call is assigned to an attribute, else an empty text."""
        match parent(store):
            case ast.Assign(value=ast.Call(func=func)) | ast.AnnAssign(value=ast.Call(func=func)):
                full = self.names.qualified(func) or ""
                return tables.canonical(full) if full.startswith("torch.") else ""
        return ""

    # --- modules ---

    def is_own_module(self, node: ast.expr, member: str) -> bool:
        """True for `self` in a subclass of nn.Module whose known classes do not define `member` themselves."""
        if plain_name(node) != "self":
            return False
        owner = _class_of(node)
        return owner is not None and self.is_module_class(owner) and not self._defines(owner, member)

    def is_module_class(self, owner: ast.ClassDef) -> bool:
        """True for a class that inherits from torch.nn.Module, through classes of this file and of the project."""
        if owner not in self._classes:
            named = map(self.names.qualified, (base for each in self._family(owner) for base in each.bases))
            self._classes[owner] = any(self.leads_to_module(full) for full in named if full is not None)
        return self._classes[owner]

    def _family(self, owner: ast.ClassDef) -> list[ast.ClassDef]:
        """A class, and the classes of this file that it inherits from."""
        return [owner, *ancestors(owner, lambda each: (found for base in each.bases if (found := self._local(base))))]

    def leads_to_module(self, full: str) -> bool:
        """True for the full name of a module class of torch, or of a class of the project that leads to one."""
        return any(
            name.startswith("torch.nn.") and name not in _TENSORS and name.rpartition(".")[2][:1].isupper()
            for name in (full, *self._above(full))
        )

    def _above(self, full: str) -> Iterator[str]:
        """The names of the classes that a class of the project inherits from."""
        return ancestors(full, lambda each: self._bases.get(each, ()))

    # --- data ---

    def loads_data(self, node: ast.AST) -> bool:
        """True in a method of a Dataset, and in a function that collates samples: both run on the CPU."""
        while not isinstance(node, ast.Module):
            node = parent(node)
            if isinstance(node, FUNCTIONS) and "collate" in node.name:
                return True
            if isinstance(node, ast.ClassDef) and any(self._is_dataset(base) for base in node.bases):
                return True
        return False

    def _is_dataset(self, base: ast.expr, seen: tuple[ast.expr, ...] = ()) -> bool:
        full = self.names.qualified(base) or ""
        of_torch = (name for name in (full, *self._above(full)) if name.startswith("torch.utils.data."))
        if (name := next(of_torch, None)) is not None:
            return name.endswith("Dataset")
        local = self._local(base)
        seen = (*seen, base)
        return local is not None and any(self._is_dataset(each, seen) for each in local.bases if each not in seen)

    def _local(self, base: ast.expr) -> ast.ClassDef | None:
        if not isinstance(base, ast.Name):
            return None
        found = self.names.lookup(base.id, self.scan.scope_of(base))
        if found is None or len(found[1]) != 1:
            return None
        node = found[1][0].node
        return node if isinstance(node, ast.ClassDef) else None

    def _defines(self, owner: ast.ClassDef, member: str) -> bool:
        family = self._family(owner)
        unseen = (base for each in family for base in each.bases if self._local(base) is None)
        # A class we cannot see may define it.
        return any(member in self.scan.scopes[each].bindings for each in family) or any(
            not (self.names.qualified(base) or "").startswith("torch.nn.") for base in unseen
        )


def _class_of(node: ast.AST) -> ast.ClassDef | None:
    """The class in whose method a node stands."""
    inside = False
    while not isinstance(node, ast.Module):
        node = parent(node)
        if isinstance(node, FUNCTIONS):
            inside = True
        elif isinstance(node, ast.ClassDef):
            return node if inside else None
    return None
