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

from transplt.program import tensor_calls as calls
from transplt.program.appended_items import appended
from transplt.program.held_values import HeldValues, Item, Moved, Passed, Source, buffer_of
from transplt.program.named_types import Named
from transplt.program.program import File, Program, ProgramValue
from transplt.program.tensors import (
    CARD,
    CPU,
    DTYPES,
    Known,
    Number,
    Several,
    Tensor,
    complex_of,
    is_wide,
    joined,
    promoted,
    real_of,
)  # fmt: skip
from transplt.syntax.nodes import argument_at, hides_arguments, is_none, keyword_of, last_name
from transplt.syntax.scan import FUNCTIONS

#: Texts of files in which tensors may be made on another device than the CPU without being told.
_SET_DEVICE = (b"set_default_device", b"set_default_tensor_type", b"with torch.device")
_TO_COMPLEX = calls.COMPLEX_FFT | {"view_as_complex", "stft"}
_TO_REAL = calls.REAL_PARTS | calls.REAL_FFT | {"istft"}
_BY_VALUE = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
#: Questions inside of a question up to which answers are looked for.
_DEEPEST = 60


class TensorTypes:
    """What is known of the tensors of a program, each asked for once."""

    def __init__(self, program: Program, *, default_double: bool = False) -> None:
        self.program = program
        self.floats = frozenset({"float32", "float64"} if default_double else {"float32"})
        self._known: dict[int, Known | None] = {}
        self._open: set[int | tuple[int, int | None]] = set()
        self.held = HeldValues(program)
        self.named = Named(self.held, self.tensor)

    def of(self, file: File, node: ast.expr) -> Known | None:
        """What an expression gives."""
        key = id(node)
        if key in self._known:
            return self._known[key]
        if key in self._open or len(self._open) > _DEEPEST:
            return None
        self._open.add(key)
        # What was not answered inside, because its own question is open, is not known there for good: less is said, and
        # no question is asked twice.
        found = self._known[key] = self._of(file, node)
        self._open.discard(key)
        return found

    def tensor(self, file: File, node: ast.expr) -> Tensor | None:
        """What an expression gives, where that may be a tensor."""
        found = self.of(file, node)
        return found if isinstance(found, Tensor) else None

    def _of(self, file: File, node: ast.expr) -> Known | None:
        match node:
            case ast.Constant(value=int() | float() | complex() as value):
                return Number(isinstance(value, int), isinstance(value, complex))
            case ast.Name():
                return self._variable(file, node)
            case ast.Attribute():
                return self._attribute(file, node)
            case ast.Call():
                return self._call(file, node)
            case ast.BinOp():
                return self._binary(file, node)
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() | ast.Invert(), operand=inner) | ast.NamedExpr(value=inner):
                return self.of(file, inner)
            case ast.Compare(ops=ops) if all(isinstance(op, _BY_VALUE) for op in ops):
                found = promoted([self.of(file, each) for each in (node.left, *node.comparators)])
                return Tensor(frozenset({"bool"}), found.device) if found.sure else None
            case ast.Subscript():
                return self._item(file, node)
            case ast.List():
                return self._several(node.elts, file)
            case ast.ListComp():
                return self._several([node.elt], file)
            case ast.IfExp():
                return joined([self.of(file, node.body), self.of(file, node.orelse)])
        return None

    # --- variables ---------------------------------------------------------------------------------------------------

    def _variable(self, file: File, node: ast.Name | ast.Attribute) -> Known | None:
        found = joined(map(self._source, self.held.sources(file, node)))
        if found == Several() and isinstance(node, ast.Name):
            return self._several(appended(file, node), file)
        return found

    def _several(self, items: Iterable[ast.expr], file: File) -> Several:
        found = joined(self.of(file, each) for each in items)
        return Several(found if not isinstance(found, Several) else None)

    def _source(self, source: Source) -> Known | None:
        match source:
            case ProgramValue():
                return self.of(source.file, source.node) if source.index is None else self._part(source)
            case Moved():
                return _moved(self._source(source.value))
            case Item(of=ProgramValue(node=ast.Call(func=func))) if last_name(func) == "range":
                return Number(whole=True)
            case Item():
                listed = self._source(source.of)
                return listed.item if isinstance(listed, Several) else None
            case Passed(forward=True):
                return Tensor(frozenset(), CARD, sure=source.tensor)
            case Passed():
                # A call that cannot be followed says nothing against the others.
                known = [found for each in source.values if (found := self._source(each)) is not None]
                return joined(known) if known else Tensor() if source.tensor else None
        return None

    def _attribute(self, file: File, node: ast.Attribute) -> Known | None:
        match node.attr:
            case "pi" | "e" | "inf" | "nan" if file.names.qualified(node) is not None:
                return Number()
            case "real" | "imag":
                whole = self.tensor(file, node.value)
                return Tensor(real_of(whole.types), whole.device, whole.sure) if whole is not None else None
            case "data" | "T" | "mT" | "H" | "mH" | "grad":
                return self.of(file, node.value)
            case "indices" | "values":
                return self._picked(file, node.value, node.attr == "indices")
        return self._variable(file, node)

    # --- operators ---------------------------------------------------------------------------------------------------

    def _binary(self, file: File, node: ast.BinOp) -> Known | None:
        sides = [self.of(file, node.left), self.of(file, node.right)]
        match sides:
            case [Number() as left, Number() as right]:
                whole = left.whole and right.whole and not isinstance(node.op, ast.Div)
                return Number(whole, left.imaginary or right.imaginary)
            case [Tensor(), _] | [_, Tensor()]:
                found = promoted(sides)
            case _:
                return None
        divides = isinstance(node.op, (ast.Div, ast.Pow)) and not is_wide(found.types)
        return Tensor(frozenset(), found.device, found.sure) if divides else found

    def _item(self, file: File, node: ast.Subscript) -> Known | None:
        if last_name(node.value) == "shape":
            return Number(whole=True)
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, int):
            part = self._part(ProgramValue(file, node.value, node.slice.value))
            if part is not None:
                return part
        held = self.of(file, node.value)
        if isinstance(held, Several):
            return held if isinstance(node.slice, ast.Slice) else held.item
        if not isinstance(held, Tensor):
            return None
        every = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        keeps = any(isinstance(each, ast.Slice) or getattr(each, "value", None) is Ellipsis for each in every)
        return Tensor(held.types, held.device, held.sure and keeps)

    def _part(self, value: ProgramValue) -> Known | None:
        """One of the things that an expression gives together."""
        file, node, index = value.file, value.node, value.index
        if isinstance(node, ast.Attribute) and node.attr == "shape":
            return Number(whole=True)
        if isinstance(node, (ast.Tuple, ast.List)) and index is not None and index < len(node.elts):
            return self.of(file, node.elts[index])
        key = (id(node), index)
        if not isinstance(node, ast.Call) or key in self._open:  # a function may return what it gives itself
            return None
        callee = self.program.callee(file, node)
        if isinstance(callee, FUNCTIONS):
            self._open.add(key)
            at, returned = self.program.owner[callee], list(self.program.returns(callee))
            found = joined(self._part(ProgramValue(at, each, index)) for each in returned) if returned else None
            self._open.discard(key)
            return found
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
            return "" if full.startswith("torch.Tensor.") else full  # a method that is called as a function
        if isinstance(call.func, ast.Attribute) and self.tensor(file, call.func.value) is not None:
            return f"torch.Tensor.{call.func.attr}"
        return ""

    def _first(self, file: File, call: ast.Call) -> ast.expr | None:
        """What a function or method works on."""
        if self.full(file, call).startswith("torch.Tensor.") and isinstance(call.func, ast.Attribute):
            return call.func.value
        return argument_at(call, 0, "input")

    def _call(self, file: File, call: ast.Call) -> Known | None:
        callee = self.program.callee(file, call)
        if isinstance(callee, FUNCTIONS):
            returned = list(self.program.returns(callee))
            at = self.program.owner[callee]
            return joined(self.of(at, each) for each in returned) if returned else None
        if last_name(call.func) == "register_buffer":
            value = buffer_of(call)
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
        if (call.func and full in ("len", "int", "round")) or last_name(call.func) in ("len", "int"):
            return Number(whole=True)
        return Number() if last_name(call.func) == "float" and isinstance(call.func, ast.Name) else None

    def _function(self, file: File, call: ast.Call, name: str) -> Known | None:
        """What a function of torch gives."""
        given = [self.of(file, each) for each in call.args]
        dtype = keyword_of(call, "dtype")
        source = self._first(file, call)
        first = self.tensor(file, source) if source is not None else None
        if name in calls.MAKES_FLOATS or name in calls.MAKES_INDICES or name in ("arange", "tensor", "as_tensor"):
            return self._made(file, call, name)
        if name in ("nn.Parameter", "nn.parameter.Parameter"):
            return Tensor(first.types, CARD) if first is not None else None
        if name in ("polar", "complex"):
            found = promoted([*given, *(self.of(file, each.value) for each in call.keywords)])
            return Tensor(complex_of(found), found.device)
        if name in _TO_COMPLEX:
            wanted = keyword_of(call, "return_complex")
            real = name == "stft" and not (isinstance(wanted, ast.Constant) and wanted.value is True)
            return Tensor(frozenset() if real else complex_of(first), first.device if first is not None else "")
        if name in _TO_REAL:
            return Tensor(real_of(first.types), first.device, first.sure) if first is not None else None
        if name in ("cat", "concat", "stack", "einsum"):
            listed = call.args[1:] if name == "einsum" else getattr(source, "elts", None)
            return promoted([self.of(file, each) for each in listed]) if listed else None
        if name == "where" and len(given) == 3:
            return promoted(given[1:])
        if dtype is not None:
            return None if first is None else Tensor(self.named.types(file, dtype), first.device, first.sure)
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
        dtype, source = keyword_of(call, "dtype"), call.args[0] if call.args else None
        held = self.of(file, source) if source is not None else None
        like = held if name in calls.LIKE and isinstance(held, Tensor) else None
        device = self._device_made_on(file, call, name, held)
        sure = name not in ("tensor", "as_tensor") or isinstance(source, (ast.List, ast.Tuple))
        if dtype is not None and not is_none(dtype):
            return Tensor(self.named.types(file, dtype), device, sure)
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

    def _device_made_on(self, file: File, call: ast.Call, name: str, held: Known | None) -> str:
        """Where a tensor is made: on its `device`, with what it is made of or like (`held`), else on the CPU."""
        where, listed = keyword_of(call, "device"), isinstance(next(iter(call.args), None), (ast.List, ast.Tuple))
        if name in ("tensor", "as_tensor") and not listed and where is None:
            return held.device if isinstance(held, Tensor) else CPU if isinstance(held, Number) else ""
        if where is not None and not is_none(where):
            return self.named.device(file, where)
        if name in calls.LIKE:
            return held.device if isinstance(held, Tensor) else ""
        return "" if any(word in file.source.utf8 for word in _SET_DEVICE) else CPU

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
            types = self.named.types(file, dtype) if dtype is not None else held.types
            return Tensor(types, self.named.device(file, where) if where is not None else held.device)
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
            flag = isinstance(each, ast.Constant) and (each.value is None or isinstance(each.value, bool))
            if flag or keyword in ("non_blocking", "copy", "memory_format"):
                continue
            if keyword == "dtype" or (not keyword and self.named.is_type(file, each)):
                types = self.named.types(file, each)
            elif keyword == "device" or (not keyword and self.named.is_device(file, each)):
                moved = self.named.device(file, each)
            elif (other := self.tensor(file, each)) is not None:
                types, moved = other.types, other.device
            else:
                return Tensor()
        if name == "type_as":
            moved = moved if moved is not None else ""
        if types is None:
            return Tensor(held.types, held.device if moved is None else moved, True)
        return self._as(held, types, moved=moved)


def _moved(found: Known | None) -> Known | None:
    """The same on a device that is not known."""
    if isinstance(found, Several):
        item = _moved(found.item)
        return Several(item if not isinstance(item, Several) else None)
    return Tensor(found.types, "", found.sure) if isinstance(found, Tensor) else found
