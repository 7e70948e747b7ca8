"""Slots: the places of a program that hold a value, and which of them share it.

A *slot* is a variable, a parameter, an attribute of a class, a command line flag, an entry under a constant key, or
what a function returns. Slots that share a value form a component (a union-find); *marks* say what the values of a
component are. Slots that other files can see have names that hold over the project, so that the sum of all files joins
them too.

Keys: `v:` local variable, `g:` module-level name, `p:` parameter, `r:` return value, `s:` attribute of a class,
`n:` attribute of an object whose class is unknown (parsed arguments, configurations), `k:` entry of a mapping.
A tail `<1>` is the second element of a tuple that the slot holds.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from transplt.project.facts import GENERIC, ProjectFacts
from transplt.project.name_hints import BACKEND, BACKEND_WORD, DEVICE, DEVICE_NAME, DEVICE_WORD, hint_of
from transplt.syntax.names import Names, assigned_value
from transplt.syntax.scan import Scan, Scope

#: Names that speak of devices and hold no device string.
_NO_DEVICE = re.compile(
    r"names?$|counts?$|capabilit|propert|_(?:id|idx|index|num|info|mem|memory|stats?|rank)s?$|^num_|^n_", re.I
)
__all__ = [
    "BACKEND", "BACKEND_WORD", "DEVICE", "DEVICE_WORD", "SELF", "Flow", "class_fields", "hint_of", "parameter_names",
]

SELF = ("self", "cls")
#: Top-level packages that are never the project's own.
_LIBRARIES = frozenset(
    "torch torchvision torchaudio numpy scipy pandas matplotlib os sys re math time json random logging argparse "
    "typing collections functools itertools pathlib subprocess copy warnings inspect contextlib dataclasses abc "
    "enum shutil glob pickle datetime io tempfile threading multiprocessing unittest pytest transformers "
    "accelerate datasets einops tqdm yaml cv2 PIL sklearn absl wandb omegaconf hydra pytorch_lightning lightning "
    "deepspeed apex triton jax flax".split()
)


@dataclass(slots=True)
class Flow:
    """Slots of one file; `roots` is a union-find over their keys, `marks` belongs to representatives.

    `held` are slots that hold a CUDA string somewhere in this file; `places` keeps what `destinations.places` found.
    """

    scan: Scan
    names: Names
    project: ProjectFacts
    module: str = ""
    roots: dict[str, str] = field(default_factory=dict)
    marks: dict[str, set[str]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    places: dict[int, list[object]] = field(default_factory=dict)
    complete: bool = False
    _known: dict[str, frozenset[str]] = field(default_factory=dict)
    _parameters: dict[str, tuple[str, ...]] | None = None
    _classes: dict[str, ast.ClassDef] | None = None
    _variables: dict[tuple[int, str], str | None] = field(default_factory=dict)
    _owners: dict[int, str | None] = field(default_factory=dict)
    _own: dict[str, str | None] = field(default_factory=dict)
    _keys: dict[tuple[int, str], str | None] = field(default_factory=dict)

    def join(self, names: Names, project: ProjectFacts) -> Flow:
        """The same flow, seen with its project; slots go on by the names that the file alone gives them."""
        self.names, self.project = names, project
        self._known.clear()
        self._own.clear()
        return self

    # --- union-find ----------------------------------------------------------------------------------------------

    def find(self, slot: str) -> str:
        root = slot
        while (above := self.roots.get(root, root)) != root:
            root = above
        while slot != root:
            self.roots[slot], slot = root, self.roots.get(slot, slot)
        return root

    def link(self, a: str, b: str) -> None:
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        a, b = min(a, b), max(a, b)
        self.roots[b] = a
        self.members.setdefault(a, [a]).extend(self.members.pop(b, [b]))
        if b in self.marks:
            self.marks.setdefault(a, set()).update(self.marks.pop(b))

    def mark(self, slot: str, mark: str) -> None:
        self.marks.setdefault(self.find(slot), set()).add(mark)

    def marks_of(self, slot: str) -> frozenset[str]:
        """The marks of a slot: from this file, from the rest of the project, and from the names it goes by."""
        root = self.find(slot)
        known = self._known.get(root) if self.complete else None
        if known is not None:
            return known
        found = set(self.marks.get(root, ()))
        for member in self.members.get(root, [slot]):
            found |= self.project.marks.get(self.project.slots.get(member, member), frozenset())
            found |= hint_of(member)
        result = frozenset(found)
        if self.complete:
            self._known[root] = result
        return result

    # --- slots of expressions --------------------------------------------------------------------------------------

    def slot(self, node: ast.AST) -> str | None:
        """The slot an expression reads; what keeps a device string one (`str(x)`, `x.lower()`) is seen through."""
        if isinstance(node, ast.Name):
            return self.variable(node.id, self.scan.scope_of(node))
        if isinstance(node, ast.Attribute):
            return self._slot_of_attribute(node)
        if isinstance(node, ast.Call):
            return self._slot_of_call(node)
        if isinstance(node, ast.Subscript):
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return self.entry(node.value, key.value)
            base = self.slot(node.value)
            if base is not None and isinstance(key, ast.Constant) and base.startswith("r:"):
                return f"{base}<{key.value!r}>"
            return base
        if isinstance(node, ast.NamedExpr):
            return self.slot(node.target)
        if isinstance(node, ast.Await):
            return self.slot(node.value)
        return None

    def entry(self, base: ast.expr, key: str) -> str | None:
        """The slot of the entry `base[key]`: known by the last name of the mapping, whatever scope that stands in."""
        if DEVICE_NAME.fullmatch(key):
            return self.slot(base)  # a table by device: its values are of one kind
        if key in GENERIC:
            return None
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "vars" and base.args:
            return f"n:{key}"
        last = base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""
        return f"k:{last}[{key}]"

    def _slot_of_attribute(self, node: ast.Attribute) -> str | None:
        attr, value = node.attr, node.value
        if isinstance(value, ast.Name):
            if value.id in SELF:
                owner = self.class_of(node)
                return f"s:{owner}.{attr}" if owner else None if attr in GENERIC else f"n:{attr}"
            if attr != "type":
                full = self.names.qualified(node)
                if full is None:
                    owner = self.class_named(value)
                    if owner is not None:
                        return f"s:{owner}.{attr}"
                elif full.startswith("torch."):
                    return None
                elif (known := self.own_name(full)) is not None:
                    return self.project.global_slot(known)
        if attr == "type":
            return self.slot(value)  # the type of a device is spelled as the device is
        return None if attr in GENERIC else f"n:{attr}"

    def _slot_of_call(self, node: ast.Call) -> str | None:
        func = node.func
        last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        if isinstance(func, ast.Attribute):
            if last in ("lower", "strip", "split", "partition", "upper", "format", "casefold", "rsplit"):
                return self.slot(func.value)
            if last in ("get", "pop", "setdefault") and node.args:
                key = node.args[0]
                constant = isinstance(key, ast.Constant) and isinstance(key.value, str)
                return self.entry(func.value, key.value) if constant else self.slot(func.value)  # type: ignore[attr-defined]
        elif last in ("str", "repr") and len(node.args) == 1:
            return self.slot(node.args[0])
        elif last == "getattr" and len(node.args) >= 2:
            key = node.args[1]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return None if key.value in GENERIC else f"n:{key.value}"
            return None
        if last == "device" and node.args and self.names.qualified(func) == "torch.device":
            return self.slot(node.args[0])
        target = self.function_key(func)
        if target:
            return f"r:{target}"
        if last.startswith("get_") and DEVICE_WORD.search(last) and not _NO_DEVICE.search(last):
            return f"r:{last}"
        return None

    def variable(self, name: str, scope: Scope) -> str | None:
        """The slot of a name seen from a scope."""
        key = (id(scope), name)
        if key not in self._variables:
            self._variables[key] = self._variable(name, scope)
        return self._variables[key]

    def _variable(self, name: str, scope: Scope) -> str | None:
        found = self.names.lookup(name, scope)
        if found is None:
            for star in self.scan.root.stars:
                known = self.own_name(f"{star}.{name}")
                if known is not None and (not self.project.known or known in self.project.defined):
                    return f"g:{known}"
            return None
        owner, bindings = found
        for binding in bindings:
            if binding.kind == "import":
                return f"g:{self.project.canonical(binding.target)}"
        if owner.kind == "module":
            return f"g:{self.module}.{name}"
        if owner.kind == "class":
            return f"s:{self.module}.{self.scope_path(owner)}.{name}"
        if owner.kind == "function" and any(binding.kind == "param" for binding in bindings):
            return f"p:{self.module}.{self.scope_path(owner)}.{name}"
        node = owner.node
        return f"v:{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}:{name}"

    # --- functions and classes ---------------------------------------------------------------------------------------

    def scope_path(self, scope: Scope) -> str:
        """Dotted path of a function or class scope inside its module."""
        parts: list[str] = []
        here: Scope | None = scope
        while here is not None and here.kind != "module":
            parts.append(getattr(here.node, "name", f"<{here.kind}>"))
            here = here.parent
        return ".".join(reversed(parts))

    def class_of(self, node: ast.AST) -> str | None:
        """Full name of the class in whose method a node stands."""
        start = scope = self.scan.scope_of(node)
        if id(start) not in self._owners:
            while scope.kind != "class" and scope.parent is not None:
                scope = scope.parent
            found = f"{self.module}.{self.scope_path(scope)}" if scope.kind == "class" else None
            self._owners[id(start)] = found
        return self._owners[id(start)]

    def class_named(self, node: ast.Name) -> str | None:
        """Full name of the class that a name is bound to, or of whose call its only value is; None when unknown."""
        found = self.names.lookup(node.id, self.scan.scope_of(node))
        if found is None or len(found[1]) != 1:
            return None
        binding = found[1][0]
        if binding.kind == "class":
            return self.function_key(node)
        if binding.kind == "assign":
            value = assigned_value(binding.node)
            if isinstance(value, ast.Call):
                # Not by way of other instances: `x = x.y()` would lead back here.
                key = self.function_key(value.func, of_instances=False)
                if key is not None and key.rpartition(".")[2].lstrip("_")[:1].isupper():
                    return key
        return None

    def class_definition(self, key: str) -> ast.ClassDef | None:
        """The class of that full name when this file defines it."""
        if self._classes is None:
            self._classes = {
                f"{self.module}.{self.scope_path(self.scan.scopes[node])}": node for node in self.scan.classes
            }
        return self._classes.get(key)

    def project_name(self, full: str) -> str | None:
        """A full name as the project knows it, None when it leads out of the project."""
        known = self.project.canonical(full)
        head = known
        while head:
            if head in self.project.modules or head == self.module:
                return known
            head = head.rpartition(".")[0]
        return None

    def own_name(self, full: str) -> str | None:
        """As `project_name`; as long as the project is not known, also what may turn out to be its own."""
        if not self.project.known and full.partition(".")[0] in _LIBRARIES:
            return None
        if full not in self._own:
            known = self.project_name(full)
            self._own[full] = full if known is None and not self.project.known else known
        return self._own[full]

    def function_key(self, func: ast.expr, of_instances: bool = True) -> str | None:
        """`module.path` of the function or class that a callee names, when it is the project's own.

        With `of_instances` also the methods of names that are bound to an instance.
        """
        if isinstance(func, ast.Name):
            scope = self.scan.scope_of(func)
            key = (id(scope), func.id)
            if key not in self._keys:
                self._keys[key] = self._key_of_name(func.id, scope)
            return self._keys[key]
        if isinstance(func, ast.Attribute) and isinstance(func.value, (ast.Name, ast.Attribute)):
            if isinstance(func.value, ast.Name) and func.value.id in SELF:
                owner_name = self.class_of(func)
                return f"{owner_name}.{func.attr}" if owner_name else None
            full = self.names.qualified(func)
            if full:
                return self.own_name(full)
            if of_instances and isinstance(func.value, ast.Name):
                owner_name = self.class_named(func.value)
                return f"{owner_name}.{func.attr}" if owner_name is not None else None
        return None

    def _key_of_name(self, name: str, scope: Scope) -> str | None:
        found = self.names.lookup(name, scope)
        if found is None:
            return None
        owner, bindings = found
        for binding in bindings:
            if binding.kind in ("def", "class"):
                return ".".join(part for part in (self.module, self.scope_path(owner), name) if part)
            if binding.kind == "import":
                return self.own_name(binding.target)
        return None

    def parameter_slot(self, target: str, keyword: str | None, index: int) -> str:
        """The slot of the parameter that an argument of a project function or class lands in."""
        for owner in (target, f"{target}.__init__"):
            names = self.local_parameters().get(owner) or self.project.parameters.get(owner)
            if names is None:
                continue
            if keyword is not None:
                return f"p:{owner}.{keyword}"
            offset = 1 if names[0] in SELF else 0
            return f"p:{owner}.{names[index + offset]}" if index + offset < len(names) else f"p:{owner}.#{index}"
        definition = self.class_definition(target)
        owner = f"{target}.__init__" if definition is not None or target.rpartition(".")[2][:1].isupper() else target
        return f"p:{owner}.{keyword}" if keyword is not None else f"p:{owner}.#{index}"

    def local_parameters(self) -> dict[str, tuple[str, ...]]:
        """Positional parameters of the functions of this file, and the fields of its data classes, by full name."""
        if self._parameters is None:
            self._parameters = {
                f"{self.module}.{self.scope_path(self.scan.scopes[node])}": names
                for node in self.scan.functions
                if (names := parameter_names(node))
            }
            for node in self.scan.classes:
                if (fields := class_fields(node)) is not None:
                    key = f"{self.module}.{self.scope_path(self.scan.scopes[node])}"
                    self._parameters.setdefault(f"{key}.__init__", ("self", *fields))
        return self._parameters


def parameter_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> tuple[str, ...]:
    """The names of a function's positional parameters."""
    return tuple(arg.arg for arg in [*function.args.posonlyargs, *function.args.args])


def class_fields(node: ast.ClassDef) -> tuple[str, ...] | None:
    """The fields that a constructor made from annotations takes; None for a class with an `__init__` or without any."""
    if any(isinstance(item, ast.FunctionDef) and item.name == "__init__" for item in node.body):
        return None
    fields = tuple(
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    )
    return fields or None
