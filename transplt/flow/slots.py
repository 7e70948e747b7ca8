"""Slots: the places of a program that hold a value, and which of them share it.

A *slot* is a variable, a parameter, an attribute of a class, a command line flag, an entry under a constant key, or
what a function returns. Slots that share a value form a component (a union-find); *marks* say what the values of a
component are. Slots that other files can see have names that hold over the project, so that the sum of all files joins
them too.

A slot is a text. It begins with its kind: `v:` local variable, `g:` module-level name, `p:` parameter, `r:` return
value, `s:` attribute of a class, `n:` attribute of an object whose class is unknown (parsed arguments, configurations),
`k:` entry of a mapping. A tail `<1>` is the second element of a tuple that the slot holds.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from transplt.flow.components import Components
from transplt.flow.facts import ProjectFacts
from transplt.flow.marks import DEVICE_NAME, DEVICE_WORD, GENERIC, marks_by_name
from transplt.flow.own_names import OwnNames
from transplt.flow.reached_place import ReachedPlace, Taker
from transplt.syntax.names import SELF, Names
from transplt.syntax.nodes import last_name, string_of
from transplt.syntax.scan import Scan
from transplt.syntax.scopes import Binding, Scope

#: Names that speak of devices and hold no device string.
_NO_DEVICE = re.compile(
    r"names?$|counts?$|capabilit|propert|_(?:id|idx|index|num|info|mem|memory|stats?|rank)s?$|^num_|^n_", re.I
)


@dataclass(slots=True, eq=False)
class Slots:
    """The slots of one file, and which of them share a value; transplt/flow/slot_links.py makes it.

    `marks` and `members` belong to the slots that stand for a component. `held` are slots that hold a CUDA string
    somewhere in this file. `places` keeps what `reached.places` found, by the id of the node; `takers` who of
    another package takes what a variable holds (backend_takers.py), by the id of its bindings. `complete`: the file
    has been read to its end, so that answers may be kept.
    """

    scan: Scan
    names: Names
    project: ProjectFacts
    own: OwnNames
    components: Components = field(default_factory=Components)
    marks: dict[str, set[str]] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)
    places: dict[int, list[ReachedPlace]] = field(default_factory=dict)
    takers: dict[int, Taker | None] = field(default_factory=dict)
    complete: bool = False
    libraries: frozenset[str] | None = None  # the imported packages with devices of their own, once somebody asked
    _known: dict[str, frozenset[str]] = field(default_factory=dict)
    _variables: dict[tuple[int, str], str | None] = field(default_factory=dict)
    _by_bindings: dict[int, str] = field(default_factory=dict)  # whatever scope sees them

    def join(self, names: Names, project: ProjectFacts) -> Slots:
        """The same slots, seen with their project; they keep the names that the file alone gives them."""
        self.names, self.project = names, project
        self.own.join(names, project)
        self._known.clear()
        self.takers.clear()
        self._by_bindings.clear()
        return self

    # --- components --------------------------------------------------------------------------------------------------

    def find(self, slot: str) -> str:
        """The slot that stands for the component of a slot."""
        return self.components.find(slot)

    def link(self, a: str, b: str) -> None:
        """Say that two slots share their values."""
        joined = self.components.link(a, b)
        if joined is None:
            return
        kept, gone = joined
        self.members.setdefault(kept, [kept]).extend(self.members.pop(gone, [gone]))
        if gone in self.marks:
            self.marks.setdefault(kept, set()).update(self.marks.pop(gone))

    def mark(self, slot: str, mark: str) -> None:
        """Say what the values of a slot are: DEVICE or BACKEND."""
        self.marks.setdefault(self.components.find(slot), set()).add(mark)

    def marks_of(self, slot: str) -> frozenset[str]:
        """The marks of a slot: from this file, from the rest of the project, and from the names it goes by."""
        root = self.components.find(slot)
        known = self._known.get(root) if self.complete else None
        if known is not None:
            return known
        found = set(self.marks.get(root, ()))
        for member in self.members.get(root, [slot]):
            found |= self.project.marks.get(self.project.slots.get(member, member), frozenset())
            found |= marks_by_name(member)
        result = frozenset(found)
        if self.complete:
            self._known[root] = result
        return result

    # --- slots of expressions ----------------------------------------------------------------------------------------

    def of(self, node: ast.AST) -> str | None:
        """The slot an expression reads; what keeps a device string one (`str(x)`, `x.lower()`) is seen through."""
        if isinstance(node, ast.Name):
            return self.variable(node.id, self.scan.scope_of(node))
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node)
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.Subscript):
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return self.entry(node.value, key.value)
            base = self.of(node.value)
            if base is not None and isinstance(key, ast.Constant) and base.startswith("r:"):
                return f"{base}<{key.value!r}>"
            return base
        if isinstance(node, ast.NamedExpr):
            return self.of(node.target)
        if isinstance(node, ast.Await):
            return self.of(node.value)
        return None

    def entry(self, base: ast.expr, key: str) -> str | None:
        """The slot of the entry `base[key]`: known by the last name of the mapping, whatever scope that stands in."""
        if DEVICE_NAME.fullmatch(key):
            return self.of(base)  # a table by device: its values are of one kind
        if key in GENERIC:
            return None
        if isinstance(base, ast.Call) and isinstance(base.func, ast.Name) and base.func.id == "vars" and base.args:
            return f"n:{key}"
        return f"k:{last_name(base)}[{key}]"

    def _of_attribute(self, node: ast.Attribute) -> str | None:
        attr, value = node.attr, node.value
        if isinstance(value, ast.Name):
            if value.id in SELF:
                owner = self.own.class_around(node)
                return f"s:{owner}.{attr}" if owner else None if attr in GENERIC else f"n:{attr}"
            if attr != "type":
                full = self.names.qualified(node)
                if full is None:
                    owner = self.own.class_named(value)
                    if owner is not None:
                        return f"s:{owner}.{attr}"
                elif full.startswith("torch."):
                    return None
                elif (known := self.own.own_name(full)) is not None:
                    return self.project.global_slot(known)
        if attr == "type":
            return self.of(value)  # the type of a device is spelled as the device is
        return None if attr in GENERIC else f"n:{attr}"

    def _of_call(self, node: ast.Call) -> str | None:
        func = node.func
        last = last_name(func)
        if isinstance(func, ast.Attribute):
            if last in ("lower", "strip", "split", "partition", "upper", "format", "casefold", "rsplit"):
                return self.of(func.value)
            if last in ("get", "pop", "setdefault") and node.args:
                key = string_of(node.args[0])
                return self.of(func.value) if key is None else self.entry(func.value, key)
        elif last in ("str", "repr") and len(node.args) == 1:
            return self.of(node.args[0])
        elif last == "getattr" and len(node.args) >= 2:
            name = string_of(node.args[1])
            return None if name is None or name in GENERIC else f"n:{name}"
        if last == "device" and node.args and self.names.qualified(func) == "torch.device":
            return self.of(node.args[0])
        target = self.own.definition(func)
        if target:
            return f"r:{target}"
        if last.startswith("get_") and DEVICE_WORD.search(last) and not _NO_DEVICE.search(last):
            return f"r:{last}"
        return None

    # --- slots of names, parameters and what is returned -------------------------------------------------------------

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
                known = self.own.own_name(f"{star}.{name}")
                if known is not None and (not self.project.known or known in self.project.defined):
                    return f"g:{known}"
            return None
        owner, bindings = found
        slot = self._by_bindings.get(id(bindings))
        if slot is None:
            slot = self._by_bindings[id(bindings)] = self._bound(name, owner, bindings)
        return slot

    def _bound(self, name: str, owner: Scope, bindings: list[Binding]) -> str:
        for binding in bindings:
            if binding.kind == "import":
                return f"g:{self.project.canonical(binding.target)}"
        if owner.kind == "module":
            return f"g:{self.own.module}.{name}"
        if owner.kind == "class":
            return f"s:{self.own.full_name(owner)}.{name}"
        if owner.kind == "function" and any(binding.kind == "param" for binding in bindings):
            return f"p:{self.own.full_name(owner)}.{name}"
        node = owner.node
        return f"v:{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}:{name}"

    def parameter(self, target: str, keyword: str | None, index: int) -> str:
        """The slot of the parameter that an argument of a project function or class lands in."""
        for owner in (target, f"{target}.__init__"):
            names = self.own.parameters().get(owner) or self.project.parameters.get(owner)
            if names is None:
                continue
            if keyword is not None:
                return f"p:{owner}.{keyword}"
            offset = 1 if names[0] in SELF else 0
            return f"p:{owner}.{names[index + offset]}" if index + offset < len(names) else f"p:{owner}.#{index}"
        constructed = self.own.class_defined(target) is not None or target.rpartition(".")[2][:1].isupper()
        owner = f"{target}.__init__" if constructed else target
        return f"p:{owner}.{keyword}" if keyword is not None else f"p:{owner}.#{index}"

    def returned(self, scope: Scope) -> str:
        """The slot of what the function that opens a scope returns."""
        return f"r:{self.own.full_name(scope)}"
