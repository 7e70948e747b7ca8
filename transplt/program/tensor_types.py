"""Of which types the tensors of a program are, where its text says it: from what makes them to where they are read.

A variable is followed through stores of its function, arguments of all calls in sight, what functions return, and
attributes and buffers of objects. What cannot be followed is not known (None).

Three things are taken for granted: a tensor that is moved to a device which is not said to be the CPU goes to the card;
buffers and parameters of modules lie on it, and so does what `forward` of a module gets. A cast to float64 of what
lies on the card gives float32 (torch_npu/csrc/aten/common/ToKernelNpu.cpp).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.flow.marks import DEVICE, marks_by_name
from transplt.flow.reaching import reaching
from transplt.program import tensor_calls as calls
from transplt.program.given import defaults
from transplt.program.program import File, Function, Program, Value, Variable, enclosing_function
from transplt.program.tensors import (
    CARD, COMPLEX, CPU, DTYPES, Known, Number, Tensor, complex_of, is_wide, joined, promoted, real_of,
)  # fmt: skip
from transplt.syntax.asks import call_of, hides_arguments, keyword_of, last_name, string_of
from transplt.syntax.names import assigned_value
from transplt.syntax.scan import FUNCTIONS, chain, parent
from transplt.syntax.scopes import Binding

_TENSOR_NAMES = frozenset("Tensor LongTensor FloatTensor BoolTensor IntTensor DoubleTensor".split())
#: Questions inside of a question, and questions of one program, up to which answers are looked for.
_DEEPEST, _MOST = 60, 50_000


class TensorTypes:
    """What is known of the tensors of a program, each asked for once."""

    def __init__(self, program: Program, *, default_double: bool = False) -> None:
        self.program = program
        self.floats = frozenset({"float32", "float64"} if default_double else {"float32"})
        self._known: dict[int, Known | None] = {}
        self._open: set[int] = set()
        self._cut = 0  # questions that were not answered: they are open, or lead too far
        self._left = _MOST
        self._buffers: dict[Variable, list[Value]] | None = None
        self._devices: set[int] = set()

    def of(self, file: File, node: ast.expr) -> Known | None:
        """What an expression gives."""
        key = id(node)
        if key in self._known:
            return self._known[key]
        if key in self._open or len(self._open) > _DEEPEST or self._left <= 0:
            self._cut += 1
            return None
        self._open.add(key)
        self._left -= 1
        before = self._cut
        found = self._of(file, node)
        self._open.discard(key)
        if self._cut == before or not self._open:  # else an answer may be missing because its own question is open
            self._known[key] = found
        return found

    def tensor(self, file: File, node: ast.expr) -> Tensor | None:
        """What an expression gives, where that may be a tensor."""
        found = self.of(file, node)
        return found if isinstance(found, Tensor) else None

    def _of(self, file: File, node: ast.expr) -> Known | None:
        if isinstance(node, ast.Constant):
            whole = isinstance(node.value, int)
            return Number(whole, isinstance(node.value, complex)) if isinstance(node.value, (int, float, complex)) else None
        if isinstance(node, ast.Name):
            return self._name(file, node)
        if isinstance(node, ast.Attribute):
            return self._attribute(file, node)
        if isinstance(node, ast.Call):
            return self._call(file, node)
        if isinstance(node, ast.BinOp):
            return self._binary(file, node)
        if isinstance(node, ast.UnaryOp):
            return self.of(file, node.operand) if not isinstance(node.op, ast.Not) else None
        if isinstance(node, ast.Compare):
            return self._compared(file, node)
        if isinstance(node, ast.Subscript):
            return self._item(file, node)
        if isinstance(node, ast.IfExp):
            return joined([self.of(file, node.body), self.of(file, node.orelse)])
        return self.of(file, node.value) if isinstance(node, ast.NamedExpr) else None

    # --- variables ---------------------------------------------------------------------------------------------------

    def _name(self, file: File, node: ast.Name) -> Known | None:
        return joined(self._value(each) for each in self.values(file, node))

    def values(self, file: File, node: ast.Name) -> list[Value | Known | None]:
        """What a name may have been given where it is read; None among them for what cannot be followed."""
        scope = file.scan.scope_of(node)
        found = file.names.lookup(node.id, scope)
        if found is None:
            return [None]
        owner, bindings = found
        while scope is not owner and scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        stores = [each for each in bindings if not _changes_in_place(each)]
        if scope is owner and owner.kind != "class":
            nodes, certain = reaching([each.node for each in stores if each.kind != "param"], node)
            kept = [each for each in stores if each.node in nodes or (each.kind == "param" and not certain)]
            if not kept:
                return [None]
            stores = kept
        elif any(each.kind == "import" for each in stores):
            slot = self.program.slot(file, node)
            return list(self.program.values.get(slot, ())) or [None] if slot is not None else [None]
        return [value for each in stores for value in self._bound(file, each)]

    def _value(self, value: Value | Known | None) -> Known | None:
        if not isinstance(value, Value):
            return value
        return self.of(value.file, value.node) if value.index is None else self._part(value)

    def _bound(self, file: File, binding: Binding) -> list[Value | Known | None]:
        if binding.kind == "param" and isinstance(binding.node, ast.arg):
            return self._parameter(file, binding.node)
        if binding.kind != "assign" or not isinstance(binding.node, ast.Name):
            return [None]
        if (value := assigned_value(binding.node)) is not None:
            return [Value(file, value)]
        above = parent(binding.node)
        holder = parent(above)
        if isinstance(above, (ast.Tuple, ast.List)) and isinstance(holder, ast.Assign):
            index = above.elts.index(binding.node)
            if isinstance(holder.value, (ast.Tuple, ast.List)) and len(holder.value.elts) == len(above.elts):
                return [Value(file, holder.value.elts[index])]
            return [Value(file, holder.value, index)]
        return [None]

    def _parameter(self, file: File, node: ast.arg) -> list[Value | Known | None]:
        """What the calls in sight give; one that cannot be followed says nothing against the others."""
        holder = parent(parent(node))
        if not isinstance(holder, FUNCTIONS):
            return [None]
        if holder.name == "forward" and self._in_module(file, holder):
            return [Tensor(frozenset(), CARD, sure=_says_tensor(node.annotation))]
        given = self.program.values.get(self.program.parameter_slot(holder, node.arg), ())
        by_default = {name: value for name, value in defaults(holder)}
        sites = self.program.call_sites.get(holder, ())
        every: list[Value | Known | None] = []
        if node.arg in by_default and (not sites or len(given) < len(sites)):
            every.append(Value(file, by_default[node.arg]))
        every += given
        known = [each for each in every if self._value(each) is not None]
        if known:
            return known
        return [Tensor(sure=True)] if _says_tensor(node.annotation) else [None]

    def _in_module(self, file: File, function: ast.AST) -> bool:
        """True for a method of a module: a class whose bases, or theirs, are called so."""
        above = parent(function)
        pending, seen = [(file, above)], set()
        while pending:
            at, cls = pending.pop()
            if not isinstance(cls, ast.ClassDef) or cls in seen:
                continue
            seen.add(cls)
            for base in cls.bases:
                if last_name(base).endswith("Module"):
                    return True
                found = self.program.named(at, base)
                if found is not None:
                    pending.append((self.program.owner[found], found))
        return False

    def _attribute(self, file: File, node: ast.Attribute) -> Known | None:
        if node.attr in ("pi", "e", "inf", "nan") and file.names.qualified(node) is not None:
            return Number()
        if node.attr in ("real", "imag"):
            whole = self.tensor(file, node.value)
            return Tensor(real_of(whole.types), whole.device, whole.sure) if whole is not None else None
        if node.attr in ("data", "T", "mT", "H", "mH", "grad"):
            return self.of(file, node.value)
        if node.attr in ("indices", "values"):
            return self._picked(file, node.value, node.attr == "indices")
        return joined(map(self._value, self.attribute_values(file, node)))

    def attribute_values(self, file: File, node: ast.Attribute) -> list[Value | Known | None]:
        """What an attribute of an object of the program may have been given where it is read."""
        slot = self.program.slot(file, node)
        if slot is None:
            return [None]
        function = enclosing_function(node)
        text = ast.unparse(node)
        here = [
            each for each in file.scan.stores
            if each.attr == node.attr and enclosing_function(each) is function and ast.unparse(each) == text
        ]  # fmt: skip
        nodes, certain = reaching(here, node)
        if certain:
            held = [assigned_value(each) for each in nodes]
            return [Value(file, each) if each is not None else None for each in held]
        every = [*self.program.values.get(slot, ()), *self._registered().get(slot, ())]
        kept = [each for each in every if not _is_none(each.node) and not _of_itself(each.node, text)]
        moved = any(_of_itself(each.node, text) for each in every)
        return [self._anywhere(each) if moved else each for each in kept] or [None]

    def _anywhere(self, value: Value) -> Known | None:
        """A tensor that is moved now or later."""
        found = self._value(value)
        return Tensor(found.types, "", found.sure) if isinstance(found, Tensor) else found

    def _registered(self) -> dict[Variable, list[Value]]:
        """The buffers that modules register, by the attribute that they are."""
        if self._buffers is None:
            self._buffers = {}
            for file in self.program.files:
                for call in file.scan.calls_by_last_name(("register_buffer",)):
                    name = string_of(call.args[0]) if call.args else None
                    value = call.args[1] if len(call.args) > 1 else keyword_of(call, "tensor")
                    if name is None or value is None or not isinstance(call.func, ast.Attribute):
                        continue
                    cls = self.program.class_of(file, call.func.value)
                    if cls:
                        slot = ("self", self.program.root_class(cls), name)
                        self._buffers.setdefault(slot, []).append(Value(file, call))
        return self._buffers

    # --- operators ---------------------------------------------------------------------------------------------------

    def _binary(self, file: File, node: ast.BinOp) -> Known | None:
        sides = [self.of(file, node.left), self.of(file, node.right)]
        if all(isinstance(each, Number) for each in sides):
            whole = all(isinstance(each, Number) and each.whole for each in sides) and not isinstance(node.op, ast.Div)
            return Number(whole, any(isinstance(each, Number) and each.imaginary for each in sides))
        if not any(isinstance(each, Tensor) for each in sides):
            return None
        found = promoted(sides)
        divides = isinstance(node.op, (ast.Div, ast.Pow)) and not is_wide(found.types)
        return Tensor(frozenset(), found.device, found.sure) if divides else found

    def _compared(self, file: File, node: ast.Compare) -> Known | None:
        if not all(isinstance(op, (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops):
            return None
        sides = [self.of(file, each) for each in (node.left, *node.comparators)]
        found = promoted(sides)
        return Tensor(frozenset({"bool"}), found.device) if found.sure else None

    def _item(self, file: File, node: ast.Subscript) -> Known | None:
        if last_name(node.value) == "shape":
            return Number(whole=True)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            part = self._part(Value(file, node.value, node.slice.value))
            if part is not None:
                return part
        found = self.tensor(file, node.value)
        if found is None:
            return None
        every = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        keeps = any(isinstance(each, ast.Slice) or _is_ellipsis(each) for each in every)
        return Tensor(found.types, found.device, found.sure and keeps)

    def _part(self, value: Value) -> Known | None:
        """One of the things that an expression gives together."""
        file, node, index = value.file, value.node, value.index
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return Number(whole=True)
        if isinstance(node, (ast.Tuple, ast.List)) and index is not None and index < len(node.elts):
            return self.of(file, node.elts[index])
        if not isinstance(node, ast.Call):
            return None
        callee = self.program.callee(file, node)
        if isinstance(callee, FUNCTIONS):
            returned = list(self.program.returns(callee))
            at = self.program.owner[callee]
            return joined(self._part(Value(at, each, index)) for each in returned) if returned else None
        return self._picked(file, node, indices=index == 1)

    def _picked(self, file: File, node: ast.expr, indices: bool) -> Known | None:
        """The values or the indices of `topk`, `sort`, `max(dim)`; an item of `meshgrid`, `chunk` and the like."""
        if not isinstance(node, ast.Call):
            return None
        last, source = last_name(node.func), self._first(file, node)
        found = self.tensor(file, source) if source is not None else None
        if last in ("topk", "sort", "kthvalue", "mode", "cummax", "cummin") or (
            last in ("max", "min", "median") and len(node.args) + len(node.keywords) > 1
        ):
            device = found.device if found is not None else ""
            return Tensor(frozenset({"int64"}), device) if indices else found
        if last in ("chunk", "split", "unbind", "tensor_split", "meshgrid", "broadcast_tensors"):
            return found
        return None

    # --- calls -------------------------------------------------------------------------------------------------------

    def full(self, file: File, call: ast.Call) -> str:
        """The full name of what a call calls: `torch.Tensor.x` for a method of what may be a tensor; else empty."""
        full = file.names.qualified(call.func)
        if full is not None:
            return full
        if isinstance(call.func, ast.Attribute) and self.tensor(file, call.func.value) is not None:
            return f"torch.Tensor.{call.func.attr}"
        return ""

    def _first(self, file: File, call: ast.Call) -> ast.expr | None:
        """What a function or method works on."""
        if self.full(file, call).startswith("torch.Tensor.") and isinstance(call.func, ast.Attribute):
            return call.func.value
        return call.args[0] if call.args else keyword_of(call, "input")

    def _call(self, file: File, call: ast.Call) -> Known | None:
        callee = self.program.callee(file, call)
        if isinstance(callee, FUNCTIONS):
            returned = list(self.program.returns(callee))
            at = self.program.owner[callee]
            return joined(self.of(at, each) for each in returned) if returned else None
        if last_name(call.func) == "register_buffer":
            value = call.args[1] if len(call.args) > 1 else keyword_of(call, "tensor")
            found = self.tensor(file, value) if value is not None else None
            return Tensor(found.types, CARD, found.sure) if found is not None else None
        full = self.full(file, call)
        prefix, _, name = full.partition(".")
        if name.startswith("Tensor."):
            assert isinstance(call.func, ast.Attribute)
            held = self.tensor(file, call.func.value)
            return self._method(file, call, name[7:], held) if held is not None else None
        if prefix == "torch" and not hides_arguments(call):
            return self._function(file, call, name.removeprefix("nn.functional.").removeprefix("special."))
        if call.func and full in ("len", "int", "round") or last_name(call.func) in ("len", "int"):
            return Number(whole=True)
        return Number() if last_name(call.func) == "float" and isinstance(call.func, ast.Name) else None

    def _function(self, file: File, call: ast.Call, name: str) -> Known | None:
        """What a function of torch gives."""
        given = [self.of(file, each) for each in call.args]
        dtype = keyword_of(call, "dtype")
        source = self._first(file, call)
        first = self.tensor(file, source) if source is not None else None
        device = first.device if first is not None else ""
        if name in calls.MAKES_FLOATS or name in calls.MAKES_INDICES or name in ("arange", "tensor", "as_tensor"):
            return self._made(file, call, name)
        if name in ("nn.Parameter", "nn.parameter.Parameter"):
            return Tensor(first.types, CARD) if first is not None else None
        if name in ("polar", "complex"):
            found = promoted([*given, *(self.of(file, each.value) for each in call.keywords)])
            return Tensor(complex_of(found), found.device)
        if name == "view_as_complex" or name in calls.COMPLEX_FFT:
            return Tensor(complex_of(first), device)
        if name == "stft":
            wanted = keyword_of(call, "return_complex")
            complex_ = isinstance(wanted, ast.Constant) and wanted.value is True
            return Tensor(complex_of(first), device) if complex_ else Tensor(frozenset(), device)
        if name in calls.REAL_PARTS or name in calls.REAL_FFT or name == "istft":
            return Tensor(real_of(first.types), device, first.sure) if first is not None else None
        if name in ("cat", "concat", "stack", "einsum"):
            listed = call.args[1:] if name == "einsum" else getattr(source, "elts", None)
            return promoted([self.of(file, each) for each in listed]) if listed else None
        if name == "where" and len(given) == 3:
            return promoted(given[1:])
        if dtype is not None:
            return None if first is None else Tensor(self.types(file, dtype), device, first.sure)
        if name in calls.MIXES:
            return promoted(given) if any(isinstance(each, Tensor) for each in given) else None
        return self._kept(name, first)

    def _kept(self, name: str, source: Tensor | None) -> Known | None:
        """What is made of one tensor."""
        if source is None:
            return None
        if name in calls.KEEPS_FUNCTIONS:
            sums = name in ("sum", "prod", "cumsum", "cumprod", "nansum") and not is_wide(source.types)
            return Tensor(frozenset(), source.device, source.sure) if sums else source
        if name in calls.KEEPS_WIDE:
            return Tensor(source.types if is_wide(source.types) else frozenset(), source.device, source.sure)
        if name in calls.GIVES_INDICES:
            return Tensor(frozenset({"int64"}), source.device)
        if name in calls.GIVES_TRUTH:
            return Tensor(frozenset({"bool"}), source.device, source.sure)
        return None

    def _made(self, file: File, call: ast.Call, name: str) -> Known | None:
        """A tensor that is made: of its `dtype`, on its `device`."""
        dtype, where = keyword_of(call, "dtype"), keyword_of(call, "device")
        source = call.args[0] if call.args else None
        held = self.of(file, source) if source is not None else None
        like = held if name in calls.LIKE and isinstance(held, Tensor) else None
        device = self.device(file, where) if where is not None and not _is_none(where) else CPU
        if where is None or _is_none(where):
            if name in calls.LIKE:
                device = like.device if like is not None else ""
            elif _sets_device(file):
                device = ""
        sure = True
        if name in ("tensor", "as_tensor"):
            listed = isinstance(source, (ast.List, ast.Tuple))
            sure = listed
            if not listed and where is None:
                device = held.device if isinstance(held, Tensor) else CPU if isinstance(held, Number) else ""
        if dtype is not None and not _is_none(dtype):
            return Tensor(self.types(file, dtype), device, sure)
        if name in calls.MAKES_INDICES:
            return Tensor(frozenset({"int64"}), device)
        if name in calls.LIKE:
            return Tensor(like.types if like is not None else frozenset(), device, like is not None and like.sure)
        if name == "arange":
            given = [self.of(file, each) for each in call.args]
            whole = all(isinstance(each, Number) and each.whole for each in given)
            return Tensor(frozenset({"int64"}) if whole else self.floats | {"int64"}, device)
        if name in ("tensor", "as_tensor"):
            return Tensor(frozenset(), device, sure)
        return Tensor(self.floats if name != "full" else frozenset(), device)

    def _method(self, file: File, call: ast.Call, name: str, held: Tensor) -> Known | None:
        """What a method of a tensor gives."""
        if name in ("to", "type", "type_as"):
            return self._cast(file, call, name, held)
        if name in ("cuda", "npu", "cpu"):
            return Tensor(held.types, CPU if name == "cpu" else CARD, True)
        if name in calls.CASTS and not call.args:
            return self._as(held, frozenset({DTYPES[name]}))
        if name in calls.NEW:
            dtype, where = keyword_of(call, "dtype"), keyword_of(call, "device")
            types = self.types(file, dtype) if dtype is not None else held.types
            return Tensor(types, self.device(file, where) if where is not None else held.device)
        if name in ("size", "dim", "numel", "stride", "nelement", "__len__"):
            return Number(whole=True)
        if name in calls.REAL_PARTS:
            return Tensor(real_of(held.types), held.device, held.sure)
        if keyword_of(call, "dtype") is not None:
            return None
        if name in calls.MIXES:
            return promoted([held, *(self.of(file, each) for each in call.args)])
        if name in ("argmax", "argmin") and (call.args or call.keywords):
            return Tensor(frozenset({"int64"}), held.device)
        return self._kept(name, held)

    def _as(self, held: Tensor, types: frozenset[str], *, moved: str | None = None) -> Tensor:
        """A tensor as one of other types, where no device is named or the device `moved`."""
        device = held.device if moved is None else moved
        if types == {"float64"} and moved is None:
            if held.device == CARD:
                return Tensor(held.types if held.types == types else frozenset({"float32"}), CARD, True)
            if held.device != CPU:
                types = types | {"float32"}
        return Tensor(types, device, True)

    def _cast(self, file: File, call: ast.Call, name: str, held: Tensor) -> Known | None:
        types: frozenset[str] | None = None
        moved: str | None = None
        given = [("", each) for each in call.args] + [(each.arg or "", each.value) for each in call.keywords]
        for keyword, each in given:
            if keyword in ("non_blocking", "copy", "memory_format") or isinstance(each, ast.Constant) and each.value in (
                None, True, False,
            ):  # fmt: skip
                continue
            if keyword == "dtype" or (not keyword and self._is_type(file, each)):
                types = self.types(file, each)
            elif keyword == "device" or (not keyword and self._is_device(file, each)):
                moved = self.device(file, each)
            elif (other := self.tensor(file, each)) is not None:
                types, moved = other.types, other.device
            else:
                return Tensor()
        if name == "type_as":
            moved = moved if moved is not None else ""
        if types is None:
            return Tensor(held.types, held.device if moved is None else moved, True)
        return self._as(held, types, moved=moved)

    # --- types and devices -------------------------------------------------------------------------------------------

    def _is_type(self, file: File, node: ast.expr) -> bool:
        return bool(self.types(file, node)) or last_name(node) == "dtype"

    def types(self, file: File, node: ast.expr) -> frozenset[str]:
        """The types that an expression names; empty where they are not known."""
        full = file.names.qualified(node)
        if full is not None and full.startswith("torch."):
            name = DTYPES.get(full.removeprefix("torch."), "")
            return frozenset({name}) if name else frozenset()
        if isinstance(node, ast.Attribute) and node.attr == "dtype":
            held = self.tensor(file, node.value)
            return held.types if held is not None else frozenset()
        found: frozenset[str] = frozenset()
        for value in self._held(file, node):
            types = self.types(value.file, value.node) if value is not None else frozenset()
            if not types:
                return frozenset()
            found |= types
        return found

    def _held(self, file: File, node: ast.expr) -> Iterable[Value | None]:
        """What a variable that is no tensor may hold; None among it for what cannot be followed."""
        if id(node) in self._devices:
            return [None]
        self._devices.add(id(node))
        every: list[Value | Known | None] = []
        if isinstance(node, ast.Name):
            every = self.values(file, node)
        elif isinstance(node, ast.Attribute):
            every = self.attribute_values(file, node)
        self._devices.discard(id(node))
        return [each if isinstance(each, Value) and each.index is None else None for each in every]

    def _is_device(self, file: File, node: ast.expr) -> bool:
        if last_name(node) == "device" or DEVICE in marks_by_name(last_name(node)):
            return True
        return bool(self.device(file, node))

    def device(self, file: File, node: ast.expr) -> str:
        """CPU, CARD, or empty where it may be either. One that is chosen when the program runs is the card."""
        if isinstance(node, ast.Constant):
            text = node.value if isinstance(node.value, str) else ""
            return CPU if text.startswith("cpu") else CARD if text.startswith(("cuda", "npu")) else (
                CARD if isinstance(node.value, int) and not isinstance(node.value, bool) else ""
            )  # fmt: skip
        if isinstance(node, ast.JoinedStr):
            return self.device(file, node.values[0]) if node.values else ""
        if isinstance(node, ast.IfExp):
            found = {self.device(file, node.body), self.device(file, node.orelse)}
            return CARD if CARD in found else CPU if found == {CPU} else ""
        if isinstance(node, ast.Call):
            full = file.names.qualified(node.func) or ""
            if full == "torch.device" and node.args:
                return self.device(file, node.args[0])
            return CARD if full in ("torch.cuda.current_device", "torch.npu.current_device") else ""
        if isinstance(node, ast.Attribute) and node.attr == "device":
            held = self.tensor(file, node.value)
            if held is not None and held.device:
                return held.device
            if self._is_object(file, node.value):
                return self._chosen(file, node)
            function = enclosing_function(node)
            return CARD if function is not None and self._in_module(file, function) else ""
        return self._chosen(file, node)

    def _is_object(self, file: File, node: ast.expr) -> bool:
        """True for what holds options, or is the object itself: `args.device`, `self.device`."""
        return last_name(node) in ("self", "args", "opt", "cfg", "config", "opts", "options", "params", "hparams")

    def _chosen(self, file: File, node: ast.expr) -> str:
        """What a variable says that holds a device."""
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return ""
        held = self._held(file, node)
        found = {self.device(each.file, each.node) if each is not None and not _is_none(each.node) else "" for each in held}
        if CARD in found:
            return CARD
        if found == {CPU}:
            return CPU
        named = DEVICE in marks_by_name(last_name(node))
        is_parameter = isinstance(node, ast.Name) and any(
            each.kind == "param" for each in (file.names.lookup(node.id, file.scan.scope_of(node)) or (None, []))[1]
        )
        return CARD if named and not is_parameter and isinstance(node, ast.Attribute) else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _says_tensor(annotation: ast.expr | None) -> bool:
    """True for an annotation that names a tensor, alone or as one that may be missing."""
    if annotation is None:
        return False
    if isinstance(annotation, ast.Subscript) and last_name(annotation.value) == "Optional":
        return _says_tensor(annotation.slice)
    if isinstance(annotation, ast.BinOp):
        return _says_tensor(annotation.left) and _is_none(annotation.right)
    return last_name(annotation) in _TENSOR_NAMES


def _changes_in_place(binding: Binding) -> bool:
    """True for `x += 1`: a tensor keeps its type."""
    return isinstance(parent(binding.node), ast.AugAssign)


def _of_itself(node: ast.expr, text: str) -> bool:
    """True for `self.x.to(device)` of `self.x = self.x.to(device)`."""
    inner = node
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        inner = inner.func.value
    return inner is not node and isinstance(inner, ast.Attribute) and ast.unparse(inner) == text


def _sets_device(file: File) -> bool:
    """True for a file in which tensors may be made on another device than the CPU without being told."""
    data = file.source.utf8
    return any(word in data for word in (b"set_default_device", b"set_default_tensor_type", b"with torch.device"))
