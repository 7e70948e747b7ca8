"""Whether the programs of a kernel may run one after the other, in a loop on fewer cores.

On a GPU programs run in any order, so a kernel that is right there is right in a loop too, unless its programs wait for
each other, hand each other something, or ask how many they are. What cannot be followed counts as that.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.fixers.triton.reader.addresses import Access, Site, conflict_of
from transplt.fixers.triton.reader.kernels import Kernel, function_behind, kernel_at, operation
from transplt.fixers.triton.reader.launches import Launch, behind_import, kernel_behind
from transplt.flow.facts import ProjectFacts
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import inner_nodes, keyword_of, root_name
from transplt.syntax.scan import parent

#: Operations by which programs lock each other out or take turns, whatever is done with the result.
_LOCKS = frozenset({"atomic_cas", "atomic_xchg"})
_BUILTINS = frozenset(dir(builtins))


@dataclass(slots=True)
class Reach:
    """A kernel with the functions under `triton.jit` that it calls; `unknown` is a call of something out of sight."""

    kernels: list[Kernel]
    sites: list[Site] = field(default_factory=list)
    unknown: list[tuple[Kernel, ast.Call]] = field(default_factory=list)

    def calls(self) -> Iterator[tuple[Kernel, ast.Call, str]]:
        """The calls of the language in all of them, by place."""
        yield from ((kernel, call, name) for kernel in self.kernels for call, name in kernel.calls())

    @property
    def multiplies(self) -> bool:
        """True where `tl.dot` or its like is used: such a kernel takes cube cores."""
        return any(name in ("dot", "dot_scaled") for _, _, name in self.calls())


def reach_of(kernel: Kernel, project: ProjectFacts) -> Reach:
    """The functions that a kernel calls, directly or through others."""
    found = Reach([kernel])
    for each in found.kernels:  # grows
        for call in each.every_call():
            if operation(each.file, call.func) or _is_known(each, call):
                continue
            every = _called(each, call, project)
            if every is None:
                found.unknown.append((each, call))
            for called in every or ():
                found.sites.append(Site(each, call, called))
                if called not in found.kernels:
                    found.kernels.append(called)
    return found


def _is_known(kernel: Kernel, call: ast.Call) -> bool:
    """True for methods of tensors, functions of Triton's libraries and those of Python itself."""
    func, names = call.func, kernel.file.names
    full = names.qualified(func)
    if full is not None:
        return full.startswith("triton.")
    if isinstance(func, ast.Attribute):
        root = root_name(func)
        if root is None:
            return True
        owner = names.lookup(root.id, kernel.file.scan.scope_of(root))
        return owner is not None and owner[0].kind == "function"
    if not isinstance(func, ast.Name):
        return False
    bound = names.lookup(func.id, kernel.file.scan.scope_of(func))
    if bound is None:
        return func.id in _BUILTINS
    return all(each.kind == "import" and each.target.startswith("triton.") for each in bound[1])


def _called(kernel: Kernel, call: ast.Call, project: ProjectFacts) -> list[Kernel] | None:
    """The functions under `triton.jit` that a call may reach, none where it is one of Triton's; None for others."""
    one = kernel_behind(kernel.file, call.func, project)
    if one is not None:
        return [one]
    other, name = behind_import(kernel.file.names.qualified(call.func) or "", project)
    if other is None or other.path == kernel.file.path:
        return None
    bindings = other.scan.root.bindings.get(name, [])
    found: list[Kernel] = []
    for binding in bindings:
        value = assigned_value(binding.node)
        one = kernel_at(other, function_behind(other, value) if value is not None else binding.node)
        full = binding.target if value is None else other.names.qualified(value) or ""
        if one is not None:
            found.append(one)
        elif not full.startswith("triton."):  # that of something of Triton
            return None
    return found if bindings else None


def order_matters(kernel: Kernel, reach: Reach, launches: list[Launch]) -> str:
    """Why the programs of a kernel may not run in a loop; empty where they may."""
    for holder, call in reach.unknown:
        return f"it calls {holder.file.source.slice(*holder.file.source.extent(call.func))}, which was not found"
    for holder, call, name in reach.calls():
        if name == "num_programs":
            return "it already uses the number of its programs"
        if name == "program_id" and holder is not kernel:
            return f"{holder.name}, which it calls, uses the number of its program"
        if name in _LOCKS:
            return f"its programs wait for each other or take turns (tl.{name})"
        if name.startswith("atomic_") and not isinstance(parent(call), ast.Expr):
            return f"it depends on the result of tl.{name}, and so on the order of its programs"
        pure = keyword_of(call, "is_pure")
        if name == "inline_asm_elementwise" and not (isinstance(pure, ast.Constant) and pure.value is True):
            return f"it is unknown what tl.{name} waits for"
    for holder in reach.kernels:
        if any(_waits(holder, loop) for loop in inner_nodes(holder.node, ast.While)):
            return "its programs wait for each other in a loop"
    return conflict_of([*_accesses(reach)], kernel, reach.sites, launches)


def _waits(kernel: Kernel, loop: ast.While) -> bool:
    """True for a loop that reads memory until something is there."""
    tested = {name.id for name in inner_nodes(loop.test, ast.Name)}
    for node in inner_nodes(loop, ast.Call):
        if operation(kernel.file, node.func) == "load":
            above: ast.AST = node
            while not isinstance(above, (ast.stmt, ast.While)):
                above = parent(above)
            if above is loop:
                return True
            targets = {name.id for name in inner_nodes(above, ast.Name) if isinstance(name.ctx, ast.Store)}
            if tested & targets:
                return True
    return False


def _accesses(reach: Reach) -> Iterator[Access]:
    for kernel, call, name in reach.calls():
        if name in ("load", "store") or name.startswith(("atomic_", "load_tensor_desc", "store_tensor_desc")):
            pointer = call.args[0] if call.args else None
            if pointer is None:
                pointer = next((each.value for each in call.keywords if each.arg in ("pointer", "desc")), None)
            yield Access(kernel, pointer, writes=name != "load", adds=name.startswith("atomic_"))
    for kernel in reach.kernels:
        for call in kernel.every_call():
            match call.func:
                case ast.Attribute(value=pointer, attr="load" | "store") if not operation(kernel.file, call.func):
                    yield Access(kernel, pointer, writes=call.func.attr == "store")
