"""What a dotted name means in a wheel: imports are followed from module to module, classes to their bases."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from wheel_reader import Wheel

_BASES = 5  #: classes above a class that are looked at
#: Names of a module -> the node that binds them or (module, how, name); what it imports with a star; its `__all__`.
_Binds = tuple[dict[str, ast.AST | tuple[str, str, str]], list[str], set[str]]


@dataclass(frozen=True, slots=True)
class Found:
    """Where a name leads: a module of the wheel, or a node in one; neither where it leads out of the wheel."""

    module: str = ""
    node: ast.AST | None = None


#: A name of another package, of an extension module, or one made when the program runs: the sources do not say.
FOREIGN = Found()


class Names:
    """The names of a wheel."""

    def __init__(self, wheel: Wheel) -> None:
        self.wheel = wheel
        self._bound: dict[str, _Binds] = {}

    def find(self, name: str) -> Found | None:
        """Where `torch.npu.Event.query` leads; None where the wheel has no such name, FOREIGN where it cannot tell."""
        parts = name.split(".")
        if parts[:2] == ["torch", "npu"] and self.wheel.package == "torch_npu":
            parts = ["torch_npu", *parts[1:]]
        if parts[0] != self.wheel.package:
            return FOREIGN
        here: Found | None = Found(parts[0])
        for part in parts[1:]:
            if here is None or here == FOREIGN:
                return here
            here = self.in_module(here.module, part) if here.node is None else self.member(here, part)
        return here

    def has(self, name: str) -> bool | None:
        """Whether the wheel has a name; None where its sources do not say."""
        found = self.find(name)
        return None if found == FOREIGN else found is not None

    def in_module(self, module: str, name: str, seen: tuple[tuple[str, str], ...] = ()) -> Found | None:
        """Where a name of a module leads."""
        if (module, name) in seen:
            return None
        if module not in self._bound:
            self._bound[module] = self._binds(module)
        bound, stars, public = self._bound[module]
        if name in bound:
            at = bound[name]
            if isinstance(at, ast.AST):
                return Found(module, at)
            base, _, last = at
            if f"{base}.{last}" in self.wheel.sources:
                return Found(f"{base}.{last}")
            if not last:
                return Found(base) if base in self.wheel.sources else FOREIGN
            return self.in_module(base, last, (*seen, (module, name))) if base in self.wheel.sources else FOREIGN
        if f"{module}.{name}" in self.wheel.sources:
            return Found(f"{module}.{name}")
        for star in stars:
            found = self.in_module(star, name, (*seen, (module, name))) if star in self.wheel.sources else None
            if found is not None:
                return found
        return FOREIGN if name in public or name == "_C" else None

    def member(self, owner: Found, name: str, above: int = 0) -> Found | None:
        """Where a member of a class leads; of anything else nothing is known."""
        node = owner.node
        if not isinstance(node, ast.ClassDef) or above > _BASES:
            return FOREIGN
        for each in ast.walk(node):
            if isinstance(each, (ast.FunctionDef, ast.ClassDef)) and each.name == name:
                return Found(owner.module, each)
            stored = isinstance(getattr(each, "ctx", None), ast.Store)
            if stored and name in (getattr(each, "id", None), getattr(each, "attr", None)):
                return Found(owner.module, each)
        unknown = False
        for base in node.bases:
            found = self.in_module(owner.module, base.id) if isinstance(base, ast.Name) else FOREIGN
            if found is None:  # a builtin
                continue
            inherited = FOREIGN if found.node is None else self.member(found, name, above + 1)
            if inherited is not None and inherited != FOREIGN:
                return inherited
            unknown = unknown or inherited == FOREIGN
        return FOREIGN if unknown else None

    def parameters(self, name: str) -> str | None:
        """The names of the parameters of a function, or of a class's constructor; None where they are not known."""
        found = self.find(name)
        node = found.node if found else None
        if isinstance(node, ast.ClassDef):
            wanted = ("__init__", "__new__")
            made = [e for each in wanted for e in node.body if isinstance(e, ast.FunctionDef) and e.name == each]
            node = made[0] if made else None
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        arguments = node.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        names = names[1:] if names[:1] in (["self"], ["cls"]) else names
        names += [f"*{arguments.vararg.arg}"] if arguments.vararg else []
        names += [each.arg for each in arguments.kwonlyargs]
        names += [f"**{arguments.kwarg.arg}"] if arguments.kwarg else []
        return ", ".join(names)

    def _binds(self, module: str) -> _Binds:
        bound: dict[str, ast.AST | tuple[str, str, str]] = {}
        stars: list[str] = []
        public: set[str] = set()
        pending: list[ast.stmt] = list(reversed(self.wheel.tree(module).body))
        while pending:
            node = pending.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                bound[node.name] = node
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.split(".")[0]
                    bound[alias.asname or first] = (alias.name if alias.asname else first, "import", "")
            elif isinstance(node, ast.ImportFrom):
                base = self._base(module, node)
                stars += [base for alias in node.names if alias.name == "*"]
                named = [alias for alias in node.names if alias.name != "*"]
                bound.update({alias.asname or alias.name: (base, "from", alias.name) for alias in named})
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    each = target.elts if isinstance(target, ast.Tuple) else [target]
                    bound.update({item.id: node for item in each if isinstance(item, ast.Name)})
                    if isinstance(target, ast.Name) and target.id == "__all__" and node.value is not None:
                        words = [item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)]
                        public.update(map(str, words))
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                for part in (node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])):
                    pending.extend(reversed(part))
                for handler in getattr(node, "handlers", []):
                    pending.extend(reversed(handler.body))
        return bound, stars, public

    def _base(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        parts = parts if self.wheel.sources[module].endswith("/__init__.py") else parts[:-1]
        parts = parts[: len(parts) - (node.level - 1)]
        return ".".join([*parts, *([node.module] if node.module else [])])
