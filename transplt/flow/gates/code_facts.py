"""What the code of one file reaches, and where the answers of its gates go: `CodeFacts` for its project.

The same object answers for the gates of the file when it is rewritten, so that both go by one reading.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product

from transplt.base.text.text_search import Texts
from transplt.flow.cuda_builds import built_modules
from transplt.flow.destinations import places
from transplt.flow.gates.code import (
    Behind,
    CodeFacts,
    CodePiece,
    CodeStep,
    Definition,
    Guard,
    Needs,
    Reference,
    SlotValue,
    names_cuda_code,
)
from transplt.flow.gates.code_walk import Stored, Walk, WalkState, stores_in
from transplt.flow.gates.cuda_code import CudaCode
from transplt.flow.gates.cuda_reach import COMPILED
from transplt.flow.libraries import is_library
from transplt.flow.own_names import class_fields
from transplt.flow.slot_stores import store_slots
from transplt.flow.slots import Slots
from transplt.rules.rule_set import RuleSet
from transplt.syntax.conditions import Atom, Sides, implied, implies
from transplt.syntax.modules import import_base
from transplt.syntax.nodes import callee_of, is_property, last_name, of_kind
from transplt.syntax.scan import FUNCTIONS, ancestor, chain, parent

#: What marks a file whose functions end in kernels of its own, and the functions that do by their names.
_KERNELS = Texts(
    *rb"cpp_extension load_inline get_plugin custom_ops \b_C\b \b_ext\b .cu\b \btriton \bcupy\b numba".split()
)
_NAMED_KERNEL = re.compile(r"(?:^|_)cuda(?:$|_|\d)|Cuda[A-Z]|CUDA[A-Z]|(?:^|_)triton(?:$|_)", re.I)
#: What a file says that builds extensions for CUDA.
_EXTENSIONS = Texts(*b"CUDAExtension cuda_ext create_extension".split())
#: Values that are no answer of a gate, and read no variable.
_NO_ANSWERS = frozenset({ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.BinOp})
#: Values that may be one, and are no gate by themselves.
_READS = frozenset({ast.Name, ast.Subscript})
_SCOPES = (*FUNCTIONS, ast.ClassDef, ast.Lambda)
#: What makes a kernel of a function.
KERNEL_DECORATORS = ("triton.jit", "triton.autotune", "triton.heuristics", "numba.cuda.jit", "cupy.fuse")


@dataclass(slots=True)
class FileCode:
    """The pieces of one file, and the values that it stores."""

    code: CudaCode
    pieces: dict[CodePiece | Guard, list[CodeStep]] = field(default_factory=dict)
    stored: list[Stored] = field(default_factory=list)
    passed: list[ast.expr] = field(default_factory=list)  # arguments of calls
    _stored_in: list[list[str]] = field(default_factory=list)  # the slots of `stored`
    _deciding: list[tuple[Guard, list[Stored]]] | None = None
    _constants: dict[bool, dict[str, list[Stored]]] = field(default_factory=dict)
    _walked: dict[tuple[int, WalkState], tuple[WalkState, list[CodeStep]]] = field(default_factory=dict)  # by statement

    @classmethod
    def of(cls, slots: Slots, rules: RuleSet) -> FileCode:
        """The pieces of a scanned file."""
        made = cls(CudaCode(slots, rules))
        scan, own = slots.scan, slots.own
        made._walk(own.module, scan.tree.body)
        kernels: bool | None = None  # asked where a function is called like a kernel alone
        for node in scan.functions:
            name = own.full_name(scan.scopes[node])
            made._walk(name, node.body)
            made_by = map(callee_of, node.decorator_list)
            is_kernel = any((slots.names.qualified(each) or last_name(each)) in KERNEL_DECORATORS for each in made_by)
            called_so = _NAMED_KERNEL.search(node.name) is not None and node.name not in ("cuda", "is_cuda", "_cuda")
            if not is_kernel and called_so:
                kernels = is_kernel = _KERNELS.in_(scan.source.utf8) if kernels is None else kernels
            if is_kernel:
                made.pieces.setdefault(Definition(name), []).append(CodeStep(Needs(node.name)))
        for each in scan.classes:
            name = own.full_name(scan.scopes[each])
            made._walk(name, each.body)
            steps = [CodeStep(ref) for base in each.bases for ref in made.code.held(base)]
            methods = {item.name for item in each.body if isinstance(item, FUNCTIONS)}
            run = (each for each in ("__init__", "forward", "backward", "__call__") if each in methods)
            steps += [CodeStep(Definition(f"{name}.{each}")) for each in run]
            made.pieces.setdefault(Definition(name), []).extend(steps)
        return made

    @classmethod
    def without_pieces(cls, slots: Slots, rules: RuleSet) -> FileCode:
        """What a scanned file stores: its project knows the pieces already."""
        made = cls(CudaCode(slots, rules))
        scan = slots.scan
        for holder in (scan.tree, *scan.functions, *scan.classes):  # as `of` walks
            made.stored += stores_in(holder.body)
        return made

    def walk_over(self, nodes: Iterable[ast.AST]) -> list[CodeStep]:
        """What some code of the file reaches. The sides of gates overlap: a statement is walked once in each state."""
        reached: list[CodeStep] = []
        here = WalkState()
        for node in nodes:
            here, steps = self.walked(node, here)
            reached += steps
        return reached

    def walked(self, node: ast.AST, here: WalkState) -> tuple[WalkState, list[CodeStep]]:
        """The state behind a statement that is met in another one, and what it reaches."""
        known = self._walked.get((id(node), here))
        if known is None:
            walk = Walk(self.code, tries=False)
            known = self._walked[id(node), here] = walk.alone(node, here), walk.reached
        return known

    def _walk(self, name: str, body: Iterable[ast.AST]) -> None:
        walk = Walk(self.code)
        walk.block(body)
        self.pieces.setdefault(Definition(name), []).extend(walk.reached)
        for slot, steps in walk.holders.items():
            self.pieces.setdefault(SlotValue(slot), []).extend(steps)
        for guard, steps in walk.behind.items():
            self.pieces.setdefault(guard, []).extend(steps)
        self.stored += walk.stored
        self.passed += walk.values

    # --- where answers go --------------------------------------------------------------------------------------------

    def guards_of(self, value: ast.expr, atom: ast.expr, truth: bool) -> Iterator[Guard]:
        """The guards that hold only if a part of a value has a truth value: of `slot` for `slot = gate and x`."""
        slots = self.code.slots
        for way in (True, False):
            if implies(value, way, Atom(atom, truth)):
                yield from (self.code.guard(slot, way) for slot in _carried_to(slots, value))

    def guards_set_in(self, sides: Sides, decides: Callable[[Guard], bool]) -> Iterator[Guard]:
        """The guards that hold only if some code ran: of constants that only it returns or stores. Those that decide
        nothing (always the same ones) are left out.
        """
        if self._deciding is None:
            self._deciding = [
                (guard, stores)
                for truth in (True, False)
                for slot, stores in self._constant_stores(truth).items()
                if decides(guard := self.code.guard(slot, truth))
            ]
        ids = {id(node) for node in sides.this} if self._deciding else set()
        for guard, stores in self._deciding if ids else ():
            around = ((each.statement, *chain(each.statement)) for each in stores)
            if all(any(id(node) in ids for node in nodes) for nodes in around):
                yield guard

    def set_only_in(self, nodes: Iterable[ast.AST]) -> set[str]:
        """The slots that are None, or false, unless some statements ran."""
        ids = {id(node) for node in nodes}
        inside: dict[str, bool] = {}
        for each in self.stored:
            if each.target is not None and _truth(each.value) != "F":
                for slot in self._slots_of(each):
                    inside[slot] = inside.get(slot, True) and id(each.statement) in ids
        return {slot for slot, only in inside.items() if only}

    def _constant_stores(self, truth: bool) -> dict[str, list[Stored]]:
        """What gives a slot a truth value, or may; slots that hold other things than truth are left out."""
        if truth not in self._constants:
            found: dict[str, list[Stored]] = {}
            other: set[str] = set()
            if len(self._stored_in) != len(self.stored):
                self._stored_in = [self._slots_of(each) for each in self.stored]
            for each, slots in zip(self.stored, self._stored_in, strict=True):
                truth_of_value = _truth(each.value)
                for slot in slots:
                    if truth_of_value == "data":
                        other.add(slot)
                    elif truth_of_value == "?" or (truth_of_value == "T") == truth:
                        found.setdefault(slot, []).append(each)
            self._constants[truth] = {slot: stores for slot, stores in found.items() if slot not in other}
        return self._constants[truth]

    def _slots_of(self, each: Stored) -> list[str]:
        """The slots that a value is returned from, or stored in."""
        slots = self.code.slots
        if each.target is None and (function := function_around(each.statement)) is not None:
            full = slots.own.full_name(slots.scan.scopes[function])
            return [f"r:{full}", *([f"s:{full}"] if is_property(function) else [])]
        if isinstance(each.target, (ast.Name, ast.Attribute)):
            return store_slots(slots, each.target, ())
        return []

    # --- facts -------------------------------------------------------------------------------------------------------

    def facts(self) -> CodeFacts:
        """What the file says of its code to its project."""
        scan, own = self.code.slots.scan, self.code.slots.own
        modules = {alias.name for node in scan.imports if isinstance(node, ast.Import) for alias in node.names}
        modules |= {import_base(scan.path, node) for node in scan.imports if isinstance(node, ast.ImportFrom)}
        aliases = {
            (name, binding.target)
            for name, bindings in scan.root.bindings.items()
            for binding in bindings
            if binding.kind == "import" and not is_library(binding.target)
        }
        gates, extensions = self._gates(), self._extensions()
        plain = scan.calls_by_last_name(("CppExtension",)) if extensions else []
        for_hosts = {name for call in plain for name in built_modules(call, {"CppExtension"})}
        guards = (piece.slot for piece in self.pieces if isinstance(piece, Guard))
        asked = {slot.name.rpartition(".")[0] for slot in guards if slot.kind == "parameter"}
        return CodeFacts(
            module=own.module,
            pieces=tuple(sorted(self._without_empty({left for left, _ in gates}).items(), key=lambda row: str(row[0]))),
            gates=tuple(sorted(gates, key=lambda gate: (str(gate[0]), str(gate[1])))),
            aliases=tuple(sorted(aliases)),
            stars=tuple(scan.root.stars),
            modules=tuple(sorted(name for name in modules if name and not is_library(name))),
            classes=tuple(sorted(self.code.slots.own.bases())),
            extensions=tuple(sorted(extensions)),
            host_built=tuple(sorted(extensions & for_hosts)),
            defined=tuple(sorted(name for name, found in scan.root.bindings.items() if found[0].kind != "import")),
            parameters=tuple(sorted((name, names) for name, names in own.parameters().items() if name in asked)),
            cuda_named=tuple(sorted(name for name in self._defined() if names_cuda_code(name))),
            relative=tuple(sorted(self._relative())),
        )  # fmt: skip

    def _relative(self) -> Iterator[str]:
        """The modules that relative imports name, with or without `__init__.py` in their folder; of what a package may
        define as well (`from . import ops`) those that are called as compiled modules are.
        """
        scan = self.code.slots.scan
        for node in scan.imports:
            if isinstance(node, ast.ImportFrom) and node.level:
                base = import_base(scan.path, node)
                if node.module:
                    yield base
                else:
                    stem = f"{base}." if base else ""
                    yield from (stem + each.name for each in node.names if COMPILED.fullmatch(each.name))

    def _without_empty(self, gates: set[Guard]) -> dict[CodePiece | Guard, tuple[CodeStep, ...]]:
        """The pieces without what leads nowhere: to functions of this file that reach nothing, to values of no code."""
        scan, own = self.code.slots.scan, self.code.slots.own
        names = (own.full_name(scan.scopes[node]) for node in (*scan.functions, *scan.classes))
        defined = {Definition(name) for name in names} - self.pieces.keys()
        with_bases = {name for name, _ in own.bases()}
        pieces = {
            piece: dict.fromkeys(steps)
            for piece, steps in self.pieces.items()
            if not (isinstance(piece, Guard) and piece.slot.kind == "local" and piece not in gates)
        }
        users: dict[Reference, list[tuple[CodePiece | Guard, CodeStep]]] = {}
        for piece, steps in pieces.items():
            for step in [*steps]:
                if isinstance(step.ref, SlotValue) and step.ref not in pieces:
                    slot = step.ref.slot  # nothing is stored in it, as far as its own file says
                    if slot.kind == "attribute":
                        owner, is_method = slot.name.rpartition(".")[0], Definition(slot.name) in pieces
                        lost = owner not in with_bases and not is_method
                    else:
                        lost = slot.kind == "local" or slot.name.startswith(f"{own.module}.")
                    if lost:
                        del steps[step]
                else:
                    users.setdefault(step.ref, []).append((piece, step))
        empty: list[object] = [*(piece for piece, steps in pieces.items() if not steps), *defined]
        while empty:  # what leads there alone leads nowhere, too
            for piece, step in users.pop(empty.pop(), ()):  # type: ignore[call-overload]
                del pieces[piece][step]
                if not pieces[piece]:
                    empty.append(piece)
        return {piece: tuple(steps) for piece, steps in pieces.items() if steps}

    def _gates(self) -> set[tuple[Guard, Behind]]:
        """What holds only if another thing does: a guard whose value asks for CUDA, one that is set behind another
        guard alone, and what is given the answer of either.
        """
        walk = Walk(self.code)
        found, copies = self._answers(walk)
        found.update(self._set_behind_guards())
        found.update(self._kept_as_fields())
        guarded = {left for left, _ in found}
        for value, way, guard in copies:
            name = guard.slot.name.lower()
            if guard in guarded or "cuda" in name or "gpu" in name:
                found.update((self.code.guard(slot, way), guard) for slot in _carried_to(self.code.slots, value))
        asked = {piece for piece in self.pieces if isinstance(piece, Guard)}
        for each in self.stored if asked else ():
            if isinstance(each.value, (ast.Name, ast.Attribute, ast.BoolOp, ast.UnaryOp)):
                for way, slot in ((way, slot) for slot in self._slots_of(each) for way in (True, False)):
                    if (left := self.code.guard(slot, way)) in asked:
                        guards = (walk.guard_of(atom) for atom in implied(each.value, way))
                        found.update((left, guard) for guard in guards if guard)
        return {(left, right) for left, right in found if left != right}

    def _answers(self, walk: Walk) -> tuple[set[tuple[Guard, Behind]], list[tuple[ast.expr, bool, Guard]]]:
        """The guards whose values ask for CUDA; and the values that are given the answer of another guard, each with
        its truth value and that guard.
        """
        found: set[tuple[Guard, Behind]] = set()
        copies: list[tuple[ast.expr, bool, Guard]] = []
        values = [each.value for each in self.stored if each.value is not None] + self.passed
        for value in values if self.code.asks else ():
            kind = type(value)
            if kind in _NO_ANSWERS:
                continue
            if kind in _READS or (kind is ast.Attribute and value.attr != "is_cuda"):  # type: ignore[attr-defined]
                if guard := walk.guard_of(Atom(value, True)):  # it asks for no device itself
                    copies.append((value, True, guard))
                    copies.append((value, False, self.code.opposite(guard)))
                continue
            for way in (True, False):
                for atom in implied(value, way):
                    if walk.asks_for_cuda(atom):
                        slots = _carried_to(self.code.slots, value)
                        found.update((self.code.guard(slot, way), "cuda") for slot in slots)
                    elif guard := walk.guard_of(atom):
                        copies.append((value, way, guard))
        return found, copies

    def _kept_as_fields(self) -> Iterator[tuple[Guard, Behind]]:
        """The fields of data classes that are true or false, each with the keyword of the constructor that fills it."""
        own, scan = self.code.slots.own, self.code.slots.scan
        for node in (node for node in scan.classes if class_fields(node) is not None):
            named = [each for each in of_kind(ast.AnnAssign, node.body) if last_name(each.annotation) == "bool"]
            for name, way in product((last_name(each.target) for each in named), (True, False)):
                given = f"p:{own.full_name(scan.scopes[node])}.__init__.{name}"
                yield self.code.guard(f"n:{name}", way), self.code.guard(given, way)

    def _set_behind_guards(self) -> Iterator[tuple[Guard, Behind]]:
        """The guards of slots that get a truth value only behind one other guard, each with that.

        What `guards_set_in` says of the statements behind each guard: here the state of each store says where it is.
        """
        if not any(each.state.cuda or each.state.guards for each in self.stored):
            return
        for truth in (True, False):
            for slot, stores in self._constant_stores(truth).items():
                states = [each.state for each in stores]  # what is true wherever the walk is in one of them
                behind: set[Behind] = {*set.intersection(*({guard for guard, _, _ in each.guards} for each in states))}
                behind |= {"cuda"} if all(each.cuda for each in states) else set()
                yield from ((self.code.guard(slot, truth), other) for other in behind)

    def _extensions(self) -> set[str]:
        scan = self.code.slots.scan
        if not _EXTENSIONS.in_(scan.source.utf8):
            return set()
        held = {
            last_name(each.target)
            for each in self.stored
            if each.target is not None and last_name(each.value).endswith("CUDAExtension")
        }
        return {name for call in scan.calls for name in built_modules(call, held)}

    def _defined(self) -> Iterator[str]:
        scan = self.code.slots.scan
        for node in (*scan.functions, *scan.classes):
            yield node.name
        for scope in scan.scopes.values():
            yield from (name for name, found in scope.bindings.items() if found[0].kind in ("assign", "param"))
        yield from (node.attr for node in scan.stores)


def _carried_to(slots: Slots, value: ast.expr) -> Iterator[str]:
    """The slots in which a value lands; what a property returns is its attribute."""
    for place in places(slots, value):
        if place.kind == "slot":
            yield place.detail
            if place.detail.startswith("r:") and isinstance(parent(value), ast.Return):
                function = function_around(value)
                if function is not None and is_property(function):
                    yield f"s:{place.detail[2:]}"


def _truth(value: ast.expr | None) -> str:
    """`T` or `F` for a constant truth value, `?` for an expression that may have either, `data` for other constants."""
    if value is None:
        return "F"
    if not isinstance(value, ast.Constant):
        return "?"
    return "F" if value.value is None or value.value is False else "T" if value.value is True else "data"


def function_around(node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function in whose own statements a node stands."""
    found = node if isinstance(node, ast.Module) else ancestor(node, _SCOPES, "_around")
    return found if isinstance(found, FUNCTIONS) else None
