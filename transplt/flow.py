"""Where values go: slots that share a value, and the marks that their uses give them.

A *slot* is a place that holds a value: a variable, a parameter, an attribute of a class, a command line flag, what a
function returns. Assignments link slots; uses mark them (`x.to(s)` marks s as a device). Slots that other files can see
have names that hold over the project, so that the sum of all files links them too. Everything is flow-insensitive: a
string becomes an NPU string together with all that shares its slot, or not at all.

Keys: `v:` local variable, `g:` module-level name, `p:` parameter, `r:` return value, `s:` attribute of a class,
`n:` attribute of any other object (parsed arguments, configurations).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.names import Names
from transplt.project import ProjectFacts
from transplt.scan import FUNCTIONS, Scan, Scope, module_name, parent

DEVICE = "device"
BACKEND = "backend"

DEVICE_WORD = re.compile(r"(?:^|_|\b)(?:devices?|dev|map_?location|device_?types?)\d*(?:$|_|\b)|Device", re.I)
BACKEND_WORD = re.compile(r"backend", re.I)
SELF = ("self", "cls")

#: (last name of the callee, index) of positional arguments that are devices, for callees that resolve to torch.
TORCH_POSITIONS: dict[str, tuple[int, ...]] = {
    "torch.device": (0,),
    "torch.load": (1,),
    "torch.jit.load": (1,),
    "torch.set_default_device": (0,),
    "torch.autocast": (0,),
    "torch.amp.autocast": (0,),
    "torch.amp.autocast_mode.autocast": (0,),
    "torch.amp.GradScaler": (0,),
    "torch.amp.grad_scaler.GradScaler": (0,),
    "torch.GradScaler": (0,),
    "torch.Generator": (0,),
    "torch.get_device_module": (0,),
    "torch.get_autocast_dtype": (0,),
    "torch.set_autocast_dtype": (0,),
    "torch.is_autocast_enabled": (0,),
    "torch.set_autocast_enabled": (0,),
    "torch.amp.is_autocast_available": (0,),
    "torch.cuda.set_device": (0,),
    "torch.cuda.device": (0,),
    "torch.cuda.synchronize": (0,),
    "torch.cuda.current_stream": (0,),
    "torch.distributed.init_device_mesh": (0,),
    "torch.distributed.device_mesh.init_device_mesh": (0,),
    "torch.distributed.device_mesh.DeviceMesh": (0,),
    "torch.distributed.DeviceMesh": (0,),
    "torch.get_default_device": (),
}
DEVICE_KEYWORDS = frozenset({"device", "map_location", "device_type", "pin_memory_device", "target_device"})
BACKEND_POSITIONS = {
    "torch.distributed.init_process_group": (0,),
    "torch.distributed.distributed_c10d.init_process_group": (0,),
    "torch.distributed.Backend": (0,),
    "torch.distributed.is_backend_available": (0,),
}
DEVICE_METHODS = {"to": (0,), "to_empty": (0,), "pin_memory": ()}


@dataclass(slots=True)
class Flow:
    """Slots of one file; `roots` is a union-find over their keys, `marks` belongs to representatives."""

    scan: Scan
    names: Names
    project: ProjectFacts
    module: str = ""
    roots: dict[str, str] = field(default_factory=dict)
    marks: dict[str, set[str]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    methods: dict[tuple[str, str], ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)

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

    def marks_of(self, slot: str) -> set[str]:
        """The marks of a slot: from this file, from the rest of the project, and from the names it goes by."""
        root = self.find(slot)
        found = set(self.marks.get(root, ()))
        for member in self.members.get(root, [slot]):
            found |= self.project.marks.get(self.project.slots.get(member, member), frozenset())
            found |= hint_of(member)
        return found

    # --- slots of expressions --------------------------------------------------------------------------------------

    def slot(self, node: ast.AST) -> str | None:
        """The slot an expression reads; wrappers that keep a device string one (`str(x)`, `x.lower()`) are seen through."""
        if isinstance(node, ast.Name):
            return self.variable(node.id, self.scan.scope_of(node))
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in SELF:
                owner = self.class_of(node)
                return f"s:{owner}.{node.attr}" if owner else f"n:{node.attr}"
            full = self.names.qualified(node)
            if full is not None and (known := self.project_name(full)) is not None:
                return f"g:{known}"
            return None if node.attr in ("type", "name", "index") else f"n:{node.attr}"
        if isinstance(node, ast.Call):
            return self._slot_of_call(node)
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                base = self.slot(node.value) or ""
                return f"k:{base}[{node.slice.value}]"
            return self.slot(node.value)
        if isinstance(node, ast.NamedExpr):
            return self.slot(node.target)
        if isinstance(node, ast.Await):
            return self.slot(node.value)
        return None

    def _slot_of_call(self, node: ast.Call) -> str | None:
        func = node.func
        if isinstance(func, ast.Attribute) and func.attr in ("lower", "strip", "split", "partition", "upper", "format"):
            return self.slot(func.value)
        if isinstance(func, ast.Name) and func.id in ("str", "repr") and len(node.args) == 1:
            return self.slot(node.args[0])
        if isinstance(func, ast.Name) and func.id == "getattr" and len(node.args) >= 2:
            key = node.args[1]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return f"n:{key.value}"
        full = self.names.qualified(func)
        if full in ("torch.device", "torch.torch.device") and node.args:
            return self.slot(node.args[0])
        if isinstance(func, ast.Attribute) and func.attr in ("get", "pop", "setdefault") and node.args:
            key = node.args[0]
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return f"k:[{key.value}]"
        target = self.function_key(func)
        return f"r:{target}" if target else None

    def variable(self, name: str, scope: Scope) -> str | None:
        """The slot of a name seen from a scope."""
        found = self.names.lookup(name, scope)
        if found is None:
            for star in self.scan.root.stars:
                known = self.project_name(f"{star}.{name}")
                if known is not None:
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
        scope: Scope | None = self.scan.scope_of(node)
        while scope is not None:
            if scope.kind == "class":
                return f"{self.module}.{self.scope_path(scope)}"
            scope = scope.parent
        return None

    def project_name(self, full: str) -> str | None:
        """A full name as the project knows it, None when it leads out of the project."""
        known = self.project.canonical(full)
        head = known
        while head:
            if head in self.project.modules or head == self.module:
                return known
            head = head.rpartition(".")[0]
        return None

    def function_key(self, func: ast.expr) -> str | None:
        """`module.path` of the function or class that a callee names, when it is the project's own."""
        if isinstance(func, ast.Name):
            found = self.names.lookup(func.id, self.scan.scope_of(func))
            if found is None:
                return None
            owner, bindings = found
            for binding in bindings:
                if binding.kind in ("def", "class"):
                    path = self.scope_path(owner)
                    return ".".join(part for part in (self.module, path, func.id) if part)
                if binding.kind == "import":
                    return self.project_name(binding.target)
            return None
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name) and func.value.id in SELF:
                owner_name = self.class_of(func)
                return f"{owner_name}.{func.attr}" if owner_name else None
            full = self.names.qualified(func)
            return self.project_name(full) if full else None
        return None

    # --- building ----------------------------------------------------------------------------------------------------

    def build(self) -> None:
        """Link slots along assignments and mark them by their uses."""
        for scope in self.scan.scopes.values():
            for name, bindings in scope.bindings.items():
                for binding in bindings:
                    if binding.kind == "assign":
                        self._assignment(binding.node, scope, name)
        for attrs in self.scan.attributes.values():
            for node in attrs:
                if isinstance(node.ctx, ast.Store):
                    self._store_attribute(node)
        for call in self.scan.calls:
            self._call(call)
        for function in self.scan.functions:
            self._returns(function)
        for compare in self.scan.compares:
            self._compare(compare)

    def _assignment(self, node: ast.AST, scope: Scope, name: str) -> None:
        above = parent(node)
        value: ast.expr | None = None
        if isinstance(above, ast.Assign):
            value = above.value
        elif isinstance(above, (ast.AnnAssign, ast.NamedExpr)):
            value = above.value
        elif isinstance(above, (ast.For, ast.comprehension)) and above.target is node:
            value = above.iter
        if value is None or isinstance(value, ast.Constant):
            if scope.kind == "class":
                slot = self.variable(name, scope)
                if slot is not None:
                    self.link(slot, f"n:{name}")
            return
        self._link_value(node, value)
        if scope.kind == "class":
            slot = self.slot_of_store(node)
            if slot is not None:
                self.link(slot, f"n:{name}")

    def _link_value(self, target: ast.AST, value: ast.expr) -> None:
        slot: str | None = None
        for source in sources(value):
            if isinstance(source, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
                read = self.slot(source)
                if read is not None:
                    slot = slot or self.slot_of_store(target)
                    if slot is not None:
                        self.link(slot, read)

    def slot_of_store(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.Name):
            scope = self.scan.scope_of(node)
            return self.variable(node.id, scope)
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self.slot(node)
        return None

    def _store_attribute(self, node: ast.Attribute) -> None:
        above = parent(node)
        if isinstance(above, ast.Assign) and node in above.targets:
            self._link_value(node, above.value)
        elif isinstance(above, ast.AnnAssign) and above.target is node and above.value is not None:
            self._link_value(node, above.value)

    def _call(self, call: ast.Call) -> None:
        func = call.func
        last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
        if call.args:
            positions = DEVICE_METHODS.get(last, ()) if isinstance(func, ast.Attribute) else ()
            if positions:
                self._mark_argument(call.args, positions, DEVICE)
            elif last in _POSITION_NAMES:
                full = self.names.qualified(func) or ""
                self._mark_argument(call.args, TORCH_POSITIONS.get(full, ()), DEVICE)
                self._mark_argument(call.args, BACKEND_POSITIONS.get(full, ()), BACKEND)
        for keyword in call.keywords:
            if keyword.arg in DEVICE_KEYWORDS:
                self._mark_value(keyword.value, DEVICE)
            elif keyword.arg == "backend" and last in ("init_process_group", "new_group"):
                self._mark_value(keyword.value, BACKEND)

    def _mark_argument(self, args: list[ast.expr], positions: tuple[int, ...], mark: str) -> None:
        for index in positions:
            if index < len(args) and not any(isinstance(arg, ast.Starred) for arg in args[: index + 1]):
                self._mark_value(args[index], mark)

    def _mark_value(self, value: ast.expr, mark: str) -> None:
        for source in sources(value):
            if isinstance(source, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
                slot = self.slot(source)
                if slot is not None:
                    self.mark(slot, mark)

    def _returns(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        scope = self.scan.scopes[function]
        if not DEVICE_WORD.search(function.name) and not BACKEND_WORD.search(function.name):
            return
        key = f"r:{self.module}.{self.scope_path(scope)}"
        for statement in own_statements(function):
            if isinstance(statement, ast.Return) and statement.value is not None:
                for source in sources(statement.value):
                    slot = self.slot(source)
                    if slot is not None:
                        self.link(key, slot)

    def _compare(self, compare: ast.Compare) -> None:
        """`a == b` between two slots makes them hold the same kind of thing."""
        if len(compare.comparators) == 1 and isinstance(compare.ops[0], (ast.Eq, ast.NotEq)):
            right = compare.comparators[0]
            if isinstance(right, ast.Attribute) and right.attr == "device":
                slot = self.slot(compare.left)
                if slot is not None:
                    self.mark(slot, DEVICE)

    # --- export --------------------------------------------------------------------------------------------------------

    def export(self) -> tuple[tuple[tuple[str, ...], ...], tuple[tuple[str, str], ...]]:
        """Groups of linked project-wide slots, and the marks of project-wide slots; both sorted."""
        groups: list[tuple[str, ...]] = []
        marks: list[tuple[str, str]] = []
        for root in {self.find(slot) for slot in [*self.roots, *self.marks]}:
            shared = sorted({m for m in self.members.get(root, [root]) if m[0] in "gprsn"})
            if len(shared) > 1:
                groups.append(tuple(shared))
            if shared:
                marks += [(shared[0], mark) for mark in sorted(self.marks.get(root, ()))]
        return tuple(sorted(groups)), tuple(sorted(marks))


_POSITION_NAMES = {name.rpartition(".")[2] for name in [*TORCH_POSITIONS, *BACKEND_POSITIONS]}


def hint_of(slot: str) -> set[str]:
    """What the name of a slot says about its values."""
    name = slot.rpartition(".")[2].rpartition(":")[2].rpartition("[")[2].rstrip("]")
    found = set()
    if DEVICE_WORD.search(name):
        found.add(DEVICE)
    if BACKEND_WORD.search(name):
        found.add(BACKEND)
    return found


def sources(value: ast.expr) -> Iterator[ast.expr]:
    """The expressions whose value an expression may take."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.IfExp):
            stack += [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            stack += node.values
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            stack += node.elts
        elif isinstance(node, ast.NamedExpr):
            stack.append(node.value)
            yield node
        elif isinstance(node, ast.Starred):
            stack.append(node.value)
        else:
            yield node


def own_statements(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.stmt]:
    """The statements of a function, those of functions inside it left out."""
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(node, ast.stmt):
            yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            stack.extend(getattr(node, name, ()) if isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)) else ())


def build_flow(scan: Scan, names: Names, project: ProjectFacts) -> Flow:
    """The flow of one file."""
    flow = Flow(scan, names, project, module_name(scan.path))
    flow.build()
    return flow
