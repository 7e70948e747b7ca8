"""What a single expression or import needs that runs on CUDA alone, and which code it leads to.

The answers are references (code.py); cuda_reach.py puts those of all files together.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.base.text.text_search import Texts
from transplt.flow.callees import NEEDS_A_CARD, PROSE_CALLS
from transplt.flow.cuda_builds import BUILDERS, KERNEL_TEXT, builds_for_cuda
from transplt.flow.destinations import places
from transplt.flow.gates import code
from transplt.flow.gates.card_reads import VERSIONS
from transplt.flow.gates.cuda_reach import COMPILED
from transplt.flow.gates.optional_imports import ASKS
from transplt.flow.libraries import is_library
from transplt.flow.only_shown import only_shown
from transplt.flow.other_devices import libraries_of
from transplt.flow.slots import Slots
from transplt.rules.rule import Kind, Rule
from transplt.rules.rule_set import RuleSet
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.conditions import Atom, implied, leaves
from transplt.syntax.modules import import_base
from transplt.syntax.names import SELF, assigned_value
from transplt.syntax.nodes import (
    call_of,
    inner_nodes,
    is_none,
    keyword_of,
    last_name,
    place_in_block,
    root_name,
    string_of,
)
from transplt.syntax.scan import parent
from transplt.syntax.scopes import Scope

#: Packages that hold no kernels: what they do on a device is torch's.
_NO_KERNELS = ("lightning", "pytorch_lightning")
#: Packages and methods of other libraries that need a card of NVIDIA.
_OF_OTHERS = re.compile(
    r"(?:onnxruntime|paddlepaddle|tensorflow|faiss|mxnet)-gpu(?:[=<>~!\[].*)?|(?:CUDA|Tensorrt)ExecutionProvider|"
    r"gpu_hist|gpu_predictor|paged_(?:adamw|lion|ademamix)\w*|(?:adamw|lion|ademamix|rmsprop)_(?:bnb_)?8bit"
)
#: How a library is told to compute on a card of NVIDIA.
_CARD = re.compile(r"(?:/?(?:device:)?)(?:cuda|gpu)(?::(?:\d+|\{\})?)?", re.I)
#: What builds an extension, and what it is given for CUDA.
_BUILDER = Texts(*b"create_extension CUDAExtension CppExtension cpp_extension ext_modules BuildExtension".split())
_BUILT_FOR_CUDA = re.compile(r"\.cuh?$|cuda\w*\.(?:c|cc|cpp|cxx|h|o)$|^-?D?WITH_CUDA$")
#: What a file holds that has such a string.
_TEXTS = Texts(*b"-gpu ExecutionProvider aten:: __global__ __device__ gpu_hist gpu_predictor _8bit paged_".split())
_CUDNN_OPERATOR = re.compile(r"aten::\w*(?:cudnn|cuda)\w*$")
_GPU_METHODS = frozenset({"enable_use_gpu", "index_cpu_to_gpu", "index_cpu_to_all_gpus", "StandardGpuResources"})
#: What a file says that calls one of them, or builds and loads a library.
_LOADERS = Texts(
    *b"cpp_extension create_extension CDLL enable_use_gpu index_cpu_to StandardGpu".split(), b"import *"
)
#: Functions of torch itself without a kernel for NPUs that programs choose for new cards of NVIDIA.
_TORCH = frozenset({"torch._scaled_mm", "torch._int_mm", "torch.ops.load_library"})
#: Namespaces of operators that an NPU has kernels for.
_TORCH_OPS = names_of("torch.ops", "on_npu")
#: Codes of rules whose names fail on an NPU when they are called; of a package, when it is imported.
_FAILS = ("NPU501", "NPU502", "NPU503", "NPU506", "NPU550", "NPU552")
_PACKAGES = ("NPU510", "NPU512")
_CASTS, _FORMATS = names_of(MODULE, "casts"), {"memory_format", "dtype"}
#: Calls that only ask about what they are given, or build what is called by name alone.
_ONLY_ASK = names_of("builtins", "asks", "counts", "shows")
_NAMED = frozenset({ast.Name, ast.Attribute})


@dataclass(slots=True)
class CudaCode:
    """What the nodes of one file lead to."""

    slots: Slots
    rules: RuleSet
    _scopes: dict[str, str] = field(default_factory=dict)
    _shared: dict[str, code.Slot] = field(default_factory=dict)
    _guards: dict[tuple[str, bool], code.Guard] = field(default_factory=dict)
    _opposites: dict[code.Guard, code.Guard] = field(default_factory=dict)
    _callees: dict[tuple[object, ...], tuple[code.Reference, ...]] = field(default_factory=dict)
    _values: dict[tuple[object, ...], tuple[code.Reference, ...]] = field(default_factory=dict)
    _builds: bool = False
    _loads: bool = True  # some call of the file may load what is built for CUDA
    _hands_on: bool = False  # the file imports libraries that have devices of their own
    options: dict[int, bool] = field(default_factory=dict)  # by the id of a node: whether the user decides it
    asked: dict[int, str | None] = field(default_factory=dict)  # by the id of a node: the slot it reads
    reads_texts: bool = False  # strings of the file may name what needs CUDA
    asks: bool = True  # the file may ask for CUDA
    _data: dict[int, bool] = field(default_factory=dict)
    _meanings: dict[tuple[int, str], tuple[object, ...] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        text = self.slots.scan.source.utf8
        self._loads = bool(self.slots.names.reexports) or _LOADERS.in_(text)
        self._builds = _BUILDER.in_(text)
        self._hands_on = bool(libraries_of(self.slots.scan))
        self.reads_texts = self._builds or self._hands_on or _TEXTS.in_(text)
        lowered = text.lower()
        self.asks = b"cuda" in lowered or b"gpu" in lowered

    def guard(self, slot: str, truth: bool) -> code.Guard:
        """What holds where a slot has a truth value."""
        known = self._guards.get((slot, truth))
        if known is None:
            known = self._guards[slot, truth] = code.Guard(self.shared(slot), truth)
        return known

    def opposite(self, guard: code.Guard) -> code.Guard:
        """The other truth value of the slot of a guard."""
        known = self._opposites.get(guard)
        if known is None:
            known = self._opposites[guard] = code.Guard(guard.slot, not guard.truth)
        return known

    def shared(self, slot: str) -> code.Slot:
        """A slot under its name over all files; a local variable is known by its function, which edits do not move."""
        known = self._shared.get(slot)
        if known is None:
            known = self._by_function(slot) if slot.startswith("v:") else code.Slot.read(slot)
            self._shared[slot] = known
        return known

    def _by_function(self, slot: str) -> code.Slot:
        if not self._scopes:
            own, scopes = self.slots.own, self.slots.scan.scopes
            for node, scope in scopes.items():
                place = f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}"
                self._scopes.setdefault(place, own.full_name(scope))
        place, _, name = slot[2:].rpartition(":")
        return code.Slot("local", f"{self._scopes.get(place, '')}|v:{name}")

    # --- imports -----------------------------------------------------------------------------------------------------

    def imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[code.Reference]:
        """The references of an import statement."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._module(alias.name)
            return
        base = import_base(self.slots.scan.path, node)
        yield from self._module(base)
        for alias in node.names:
            full = f"{base}.{alias.name}" if base else alias.name
            if node.module is None or COMPILED.fullmatch(alias.name):
                yield code.ImportedModule(full)  # `from . import nms_cuda` names a module
            elif (rule := self._rule(full)) is not None and rule.imports_only and rule.code in _PACKAGES:
                yield code.OfPackage(full)
            elif rule is None and not is_library(full):
                yield code.ImportedModule(full)  # `from encoding import gpu`, where setup.py builds encoding.gpu

    def _module(self, full: str) -> Iterator[code.Reference]:
        rule = self._rule(full)
        if rule is not None:
            if rule.imports_only and rule.code in _PACKAGES and full.partition(".")[0] not in _NO_KERNELS:
                yield code.OfPackage(full)
        elif full and not is_library(full):
            yield code.ImportedModule(full)

    def there_where(self, asked: Atom) -> Iterator[code.OfPackage]:
        """The packages without a version for NPUs that are there where a question has an answer: `find_spec("cupy")`,
        a name that an import binds, or a flag that is set beside one.
        """
        match asked.node:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[right]) if is_none(right):
                yield from self.there_where(Atom(left, asked.truth is isinstance(op, ast.IsNot)))
            case ast.Call(func=func, args=[ast.Constant(value=str() as name), *_]) if asked.truth:
                yield from self._lacking(name) if ASKS.search(last_name(func)) else ()
            case ast.Name() if asked.truth:
                for binding in self.slots.names.bindings_of(asked.node):
                    yield from self._lacking(binding.target)
                    if (value := assigned_value(binding.node)) is not None:
                        yield from self.imported_before(parent(binding.node))
                        for atom in implied(value, True):
                            for call in inner_nodes(atom.node, ast.Call):
                                yield from self.there_where(Atom(call, True))

    def imported_before(self, node: ast.AST) -> Iterator[code.OfPackage]:
        """The packages without a version for NPUs that are imported wherever an answer is kept or returned."""
        tried = isinstance(node, ast.stmt) and isinstance(parent(node), (ast.Try, ast.If))
        if not isinstance(node, ast.stmt) or not (tried or isinstance(node, ast.Return)):
            return
        block, index = place_in_block(node)
        for before in block[:index]:
            sure = isinstance(before, ast.Try) and all(leaves(handler.body) for handler in before.handlers)
            for each in before.body if isinstance(before, ast.Try) and sure else [before]:
                for ref in self.imported(each) if isinstance(each, (ast.Import, ast.ImportFrom)) else ():
                    yield from self._lacking(ref.name) if isinstance(ref, code.OfPackage) else ()

    def _lacking(self, full: str) -> Iterator[code.OfPackage]:
        """The package of a full name, where it has no version for NPUs."""
        rule = self._rule(full)
        if rule is not None and rule.code == "NPU510":
            yield code.OfPackage(full)

    # --- expressions -------------------------------------------------------------------------------------------------

    def called(self, call: ast.Call) -> list[code.Reference]:
        """The references of a call: its callee, and the functions that it is given."""
        func = call.func
        refs = list(self._known_callee(func))
        last = last_name(func)
        if last in _ONLY_ASK or last in PROSE_CALLS:
            return refs
        for value in call.args:
            if type(value) in _NAMED:
                refs += self.held(value)
        for keyword in call.keywords:
            if type(keyword.value) in _NAMED:
                refs += self.held(keyword.value)
        if self._loads:
            refs += self._loaded(call)
        return refs

    def compiled(self, call: ast.Call) -> Iterator[code.Reference]:
        """The module that a call compiles for CUDA and that a name holds then, by the name that it is given."""
        name = keyword_of(call, "name") or next(iter(call.args), None)
        if self._builds and any(self._loaded(call)):
            yield code.Callee(string_of(name) or "CUDA sources")

    def _loaded(self, call: ast.Call) -> Iterator[code.Reference]:
        """What a call builds, or loads."""
        func = call.func
        full = self.slots.names.qualified(func) or ""
        if full in BUILDERS and builds_for_cuda(call, self.slots.scan.source.utf8):
            yield code.Needs("CUDA sources compiled when the program runs")
        elif last_name(func) == "create_extension" and keyword_of(call, "with_cuda") is not None:
            yield code.Needs("create_extension(with_cuda=...)")
        elif full == "ctypes.CDLL":
            yield code.Needs("a library loaded by ctypes")
        elif isinstance(func, ast.Attribute) and func.attr in _GPU_METHODS:
            yield code.Needs(full or func.attr)

    def held(self, value: ast.expr) -> tuple[code.Reference, ...]:
        """The references of a value that is kept, passed on or returned without being called: a function, a class."""
        node = value
        parts: list[str] = []
        while type(node) is ast.Attribute:
            parts.append(node.attr)
            node = node.value
        if type(node) is not ast.Name or (node is value and node.id in SELF):
            return ()
        meaning = self._meaning(node)
        if meaning is None or type(value.ctx) is not ast.Load:  # type: ignore[attr-defined]
            return ()
        key = (*meaning, *parts)
        known = self._values.get(key)
        if known is None:
            known = tuple(self._held(value))
            if not self._goes_by_place(self.slots.names.qualified(value)):
                self._values[key] = known
        return known

    def _held(self, value: ast.expr) -> Iterator[code.Reference]:
        full = self.slots.names.qualified(value)
        if full is not None and (full.startswith("torch.") or self._rule(full) is not None):
            yield from self._by_full_name(value, full)
        elif (own := self.slots.own.definition(value)) is not None and full is not None:
            slot = None if self._is_code(value) else self._slot(value)
            yield code.Definition(own) if slot is None else code.SlotValue(slot)
        elif full is None and (own := self._own(value)) is not None:
            yield code.Definition(own)
        elif full is None and (slot := self._slot(value)) is not None and slot.kind == "global":
            yield code.SlotValue(slot)

    def constant(self, node: ast.Constant) -> Iterator[code.Reference]:
        """What a string needs: packages of other libraries, the source of a kernel, one that a builder is given."""
        if isinstance(node.value, str):
            if (
                (self._builds and _BUILT_FOR_CUDA.search(node.value))
                or _OF_OTHERS.fullmatch(node.value)
                or _CUDNN_OPERATOR.match(node.value)
            ):
                yield code.Needs(node.value)
            elif self._hands_on and _CARD.fullmatch(node.value) and (library := self._taker(node)):
                yield code.Needs(library)
            elif "__" in node.value and KERNEL_TEXT.search(node.value):
                yield code.Needs("the source of a CUDA kernel")

    def _taker(self, node: ast.Constant) -> str:
        """The library that needs a card of NVIDIA for the device which a string names to it."""
        for place in places(self.slots, node):
            if place.kind == "simulator" or (place.kind == "foreign" and place.detail in NEEDS_A_CARD):
                return place.detail
        return ""

    # --- callees -----------------------------------------------------------------------------------------------------

    def _known_callee(self, func: ast.expr) -> tuple[code.Reference, ...]:
        """`_callee`, worked out once for each dotted name in a scope; of torch's own names by the place."""
        parts: list[str] = []
        node = func
        while type(node) is ast.Attribute:
            parts.append(node.attr)
            node = node.value
        if type(node) is not ast.Name:
            if parts and "type" not in parts:  # `x.type` is seen through
                last = parts[0]
                return (code.Callee(last),) if code.names_cuda_code(last) else ()
            return tuple(self._callee(func))
        meaning = self._meaning(node)
        if meaning is None and parts and "type" not in parts:
            slot = self._slot(node) if len(parts) == 1 and not _only_casts(func) else None
            refs = (code.SlotValue(slot),) if slot else ()
            last = parts[0]
            return (*refs, code.Callee(last)) if code.names_cuda_code(last) else refs
        key = (*(meaning or (self.slots.scan.scope_of(node), node.id)), *parts)
        known = self._callees.get(key)
        if known is None:
            known = tuple(self._callee(func))
            if not self._goes_by_place(self.slots.names.qualified(func)):
                self._callees[key] = known
        return known

    def _meaning(self, name: ast.Name) -> tuple[object, ...] | None:
        """The same for names that mean the same, whatever scope sees them; None for a variable that is data: nothing
        says that it is code, or an instance of a known class.
        """
        scope = self.slots.scan.scope_of(name)
        seen = (id(scope), name.id)
        if seen not in self._meanings:
            self._meanings[seen] = self._meaning_in(scope, name)
        return self._meanings[seen]

    def _meaning_in(self, scope: Scope, name: ast.Name) -> tuple[object, ...] | None:
        found = self.slots.names.lookup(name.id, scope)
        if found is None:
            return (scope if name.id in SELF else None, name.id)
        bindings = found[1]
        if name.id in SELF:
            is_own = all(binding.kind == "param" for binding in bindings)
            return (self.slots.own.class_around(name) if is_own else scope, name.id)
        if len(bindings) == 1 and bindings[0].kind == "assign":
            value = assigned_value(bindings[0].node)  # `scan_fn = _Scan.apply` is code
            is_kept = type(value) in _NAMED and self._is_code(value)  # type: ignore[arg-type]
            names, own = self.slots.names, self.slots.own
            is_data = not is_kept and names.qualified(name) is None and own.class_named(name) is None
        else:  # of 8,000 functions each may read a name that is bound as often
            if id(bindings) not in self._data:
                self._data[id(bindings)] = all(binding.kind in ("param", "assign", "other") for binding in bindings)
            is_data = self._data[id(bindings)]
        return None if is_data else (id(bindings), name.id)

    def _goes_by_place(self, full: str | None) -> bool:
        """True for names of torch whose answer is another one where they are called than where they are only named."""
        if full is None or not full.startswith("torch."):
            return False
        rule = self._rule(full)
        return full.startswith("torch.ops.") or (rule is not None and rule.kind is Kind.UNSUPPORTED)

    def _callee(self, func: ast.expr) -> Iterator[code.Reference]:
        while isinstance(func, ast.Subscript):  # `kernel[grid](x)`
            func = func.value
        if isinstance(func, ast.IfExp):  # `(a if c else b)(x)`
            yield from self.held(func.body)
            yield from self.held(func.orelse)
        if not isinstance(func, (ast.Name, ast.Attribute)):
            return
        last = last_name(func)
        full = self.slots.names.qualified(func)
        if full is not None:
            yield from self._by_full_name(func, full)
            if code.names_cuda_code(last) and not full.startswith("torch.") and self._rule(full) is None:
                yield code.Callee(last)
            return
        yield from self._imported_among_others(func)
        own = self._own(func)
        if own is not None:
            yield code.Definition(own)
        elif isinstance(func, ast.Name) and self.slots.names.lookup(func.id, self.slots.scan.scope_of(func)) is None:
            yield from (code.Definition(f"{star}.{func.id}") for star in self.slots.scan.root.stars)
        slot = self._slot(func)
        if slot:
            yield code.SlotValue(slot)
        if isinstance(func, ast.Attribute) and (slot := self._slot(func.value)):
            yield code.SlotValue(slot)
        if code.names_cuda_code(last):
            yield code.Callee(last)

    def _imported_among_others(self, func: ast.expr) -> Iterator[code.Reference]:
        """The full names of what hangs on a name that an import binds, and other statements too: a build, a double."""
        root = root_name(func)
        if root is None or root is func:
            return
        imports = [binding for binding in self.slots.names.bindings_of(root) if binding.kind == "import"]
        rest = ast.unparse(func)[len(root.id) :] if imports else ""
        yield from (code.Definition(f"{binding.target}{rest}") for binding in imports)

    def _by_full_name(self, node: ast.expr, full: str) -> Iterator[code.Reference]:
        root = full.partition(".")[0]
        rule = self._rule(full)
        if root == "torch":
            yield from self._of_torch(node, full, rule)
        elif rule is not None and rule.code in _PACKAGES:
            if root not in (*_NO_KERNELS, "torchvision"):
                yield code.OfPackage(full)
        elif full.startswith("torch.ops._caffe2.") or last_name(node) in _GPU_METHODS:
            yield code.Needs(full)
        elif not is_library(full):
            yield code.Definition(full)

    def _of_torch(self, node: ast.expr, full: str, rule: Rule | None) -> Iterator[code.Reference]:
        if full in _TORCH:
            yield code.Needs(full)
        elif full.startswith("torch.ops."):
            space = full.split(".")[2]
            if space not in _TORCH_OPS and call_of(node) is not None:
                yield code.Needs(full)
        elif full.startswith(VERSIONS) and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute):
            return  # needed_by_read says it
        elif rule is not None and rule.kind is Kind.UNSUPPORTED and rule.code in _FAILS:
            call = call_of(node)
            if rule.code in ("NPU550", "NPU552") or (call is not None and not only_shown(call)):
                yield code.Needs(full)

    def _own(self, node: ast.expr) -> str | None:
        """Full name of the function or class of the project that an expression names; that of a local function too."""
        if isinstance(node, ast.Name):
            bindings = self.slots.names.bindings_of(node)
            for binding in bindings:
                if binding.kind in ("def", "class"):
                    return self.slots.own.full_name(self.slots.scan.scopes[binding.node])
            return next((binding.target for binding in bindings if binding.kind == "import"), None)
        return self.slots.own.definition(node)

    def _is_code(self, node: ast.expr) -> bool:
        bindings = self.slots.names.bindings_of(root_name(node))
        return any(binding.kind in ("def", "class", "import") for binding in bindings)

    def _slot(self, node: ast.expr) -> code.Slot | None:
        """The slot that an expression reads; that of a local variable with its module."""
        slot = self.slots.of(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if slot is None or slot[:2] in ("p:", "k:", "r:", "n:"):
            return None
        return self.shared(slot)

    def _rule(self, full: str) -> Rule | None:
        if full.partition(".")[0] not in self.rules.roots:
            return None
        found = self.rules.builtin.resolve(full)
        return None if found is None else found[0]


def _only_casts(func: ast.expr) -> bool:
    """True for `net.half` and `net.to` in `net.to(memory_format=...)`: what the module computes with is not called."""
    match func, call_of(func):
        case ast.Attribute(attr=name), ast.Call(args=[], keywords=words):
            return name in _CASTS if not words else name == "to" and {each.arg for each in words} <= _FORMATS
    return False
