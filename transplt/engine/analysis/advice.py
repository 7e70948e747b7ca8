"""Precision and performance on NPU: what is worth knowing about code that runs all the same.

Only what is valid today is reported; texts and sources are in rules/support/advice.json. Everything is info but what is
sure to fail: the memory format channels_last.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Note
from transplt.engine.analysis.api_uses import Use
from transplt.engine.analysis.exports import exports
from transplt.engine.analysis.in_loops import in_loops
from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.engine.analysis.verdicts import also, argument
from transplt.flow.last_value import last_value
from transplt.program.indices import long_lookups
from transplt.program.shuffles import shuffle_ending_at
from transplt.rules.tables import read_table
from transplt.syntax.nodes import call_of, hides_arguments
from transplt.syntax.scan import parent

_table = partial(read_table, "support/advice.json")

_DYNAMIC = frozenset(
    f"{owner}.{name}"
    for owner in ("torch", "torch.Tensor")
    for name in ("nonzero", "unique", "unique_consecutive", "masked_select", "argwhere")
)
_DEBUG = {
    "torch.autograd.set_detect_anomaly": True, "torch.autograd.detect_anomaly": True, "torch.autograd.gradcheck": False,
}  # fmt: skip
_LOADER = "torch.utils.data.DataLoader"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_OVERFLOW = ("torch.baddbmm", "torch.Tensor.baddbmm")
_DETERMINISTIC = "torch.use_deterministic_algorithms"
#: Methods that give a view of other strides.
_EXCHANGES = frozenset({"permute", "transpose", "t", "swapaxes", "movedim"})
#: Names and operators that are looked through for a mask.
_DEEPEST_MASK = 5
#: What there is to say of exports and of what only looks something up.
_ABOUT: dict[str, tuple[str, ...]] = {
    "torch.onnx.export": ("export_training", "opset", "opset_default", "export_on_card", "fixed_sizes"),
    "torch.jit.trace": ("export_training",),
    "torch.nn.Embedding": ("int64",),
    "torch.nn.functional.embedding": ("int64",),
    "torch.index_select": ("int64",),
}
#: The argument that a call lacks, where that is what is said of it.
_MISSING = {"last_batch": "drop_last=True", "pin_memory": "pin_memory=True"}
#: Where one finding a file says it.
_ONCE = frozenset({"float64", "deterministic", "int64", "channel_shuffle", "copy_chain", "dynamic_shape"})
#: And where it says it once for each API.
_BY_API = frozenset({"dynamic_shape"})


def advice_on(api: str) -> list[dict[str, Any]]:
    """What there may be to say of calls of an API, whatever their arguments: code, message, help, source."""
    keys = ["dynamic_shape"] if api in _DYNAMIC or api == "torch.where" else []
    keys += ["pin_memory", "workers", "last_batch"] if api == _LOADER else []
    keys += ["ddp"] if api == _DDP else []
    keys += ["debug_switch"] if api in _DEBUG else []
    keys += ["overflow"] if api in _OVERFLOW else []
    keys += ["deterministic"] if api == _DETERMINISTIC else []
    keys += _ABOUT.get(api, ())
    return [_table()["advice"][key] for key in keys]


def notes_of(file: ScannedFile, uses: list[Use]) -> list[Note]:
    """The advice for a file."""
    found: list[Note] = []
    once: dict[tuple[str, object], list[tuple[ast.expr, str]]] = {}
    for loop, node, key, api in in_loops(file):
        once.setdefault((key, loop), []).append((node, api))
    for node, key, api in _places(file, uses):
        if key in _ONCE:
            once.setdefault((key, api if key in _BY_API else None), []).append((node, api))
        else:
            found.append(_note(file, node, key, api))
    for (key, _), places in once.items():
        every = [Use(node, api) for node, api in sorted(places, key=lambda place: place[0].lineno)]
        first = every[0]
        found.append(_note(file, first.node, key, first.api, also(every)))
    return found


def _note(file: ScannedFile, node: ast.expr | ast.alias, key: str, api: str, more: str = "") -> Note:
    item = _table()["advice"][key]
    level, effort = (Level.MANUAL, Effort.LOW) if key == "channels_last" else (Level.INFO, None)
    details = (*((("missing", _MISSING[key]),) if key in _MISSING else ()), *((("also", more),) if more else ()))
    return Note(
        file.extent(node), item["code"], level, item["message"] + more, api, item["help"], effort, details=details
    )


def _places(file: ScannedFile, uses: list[Use]) -> Iterator[tuple[ast.expr, str, str]]:
    for use in uses:
        if use.call is not None:
            yield from _call(file, use, use.call)
    yield from _dtypes(file)
    yield from _masks(file)
    yield from _indices(file)
    yield from _copies(file)
    for node, _, api in long_lookups(file.scan, file.names):
        yield node, "int64", api
    yield from exports(file)
    if b"fork" in file.source.utf8:
        yield from _forks(file)


def _call(file: ScannedFile, use: Use, call: ast.Call) -> Iterator[tuple[ast.expr, str, str]]:
    api = use.api
    if api in _DYNAMIC or (api == "torch.where" and len(call.args) == 1 and not call.keywords):
        yield call, "dynamic_shape", api
    elif api == _LOADER:
        yield from _loader(call)
    elif api == _DDP and argument(call, "bucket_cap_mb", 7) is None and not hides_arguments(call):
        yield call, "ddp", api
    elif api in _DEBUG and not (_DEBUG[api] and _is(argument(call, "mode", 0), False)):
        yield call, "debug_switch", api
    elif api in _OVERFLOW:
        yield call, "overflow", api
    elif api == _DETERMINISTIC and _is(argument(call, "mode", 0), True):
        yield call, "deterministic", api


def _loader(call: ast.Call) -> Iterator[tuple[ast.expr, str, str]]:
    if hides_arguments(call):
        return
    pin, workers = argument(call, "pin_memory", 8), argument(call, "num_workers", 6)
    if pin is None or _is(pin, False):
        yield call, "pin_memory", _LOADER
    if workers is None or _is(workers, 0):
        yield call, "workers", _LOADER
    last = argument(call, "drop_last", 9)
    if _is(argument(call, "shuffle", 2), True) and (last is None or _is(last, False)):
        yield call, "last_batch", _LOADER


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is type(value) and node.value == value


def _dtypes(file: ScannedFile) -> Iterator[tuple[ast.expr, str, str]]:
    scan = file.scan
    interesting = ("float64", "double", "DoubleTensor", "channels_last", "channels_last_3d")
    if not any(name in scan.attributes or name in scan.names for name in interesting):
        return
    for node, full in file.chains:
        if full in ("torch.float64", "torch.double", "torch.DoubleTensor") and not _compared(node):
            yield node, "float64", full
        elif full in ("torch.channels_last", "torch.channels_last_3d") and not _compared(node):
            yield node, "channels_last", full
    for node in scan.attributes.get("double", ()):
        if call_of(node) is not None and file.receivers.is_tensor(node.value):
            yield node, "float64", "torch.Tensor.double"


def _compared(node: ast.expr) -> bool:
    """True in a comparison, also with a tuple of dtypes, as a key, and in an annotation: a question, not a use."""
    above = parent(node)
    while isinstance(above, (ast.Tuple, ast.List, ast.Set, ast.Dict)):
        node, above = above, parent(above)
    match parent(above) if isinstance(above, ast.keyword) else above:
        case ast.Call(func=ast.Attribute(attr="is_contiguous")) | ast.Compare() | ast.arg():
            return True
    return isinstance(node, ast.Dict)


def _masks(file: ScannedFile) -> Iterator[tuple[ast.expr, str, str]]:
    """masked_fill and full with minus infinity."""
    for name, position in (("masked_fill", 1), ("masked_fill_", 1), ("full", 1), ("full_like", 1), ("fill_", 0)):
        for node in file.scan.attributes.get(name, ()):
            if (call := call_of(node)) is not None:
                value = argument(call, "value" if "fill_" in name or name == "masked_fill" else "fill_value", position)
                if value is not None and _minus_infinity(file, value):
                    yield call, "minus_infinity", ""


def _minus_infinity(file: ScannedFile, node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=text)]):
            return str(text).lower() in ("-inf", "-infinity")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=text)])):
            return str(text).lower() in ("inf", "infinity")
        case ast.UnaryOp(op=ast.USub(), operand=inner) if not isinstance(inner, ast.Call):
            return file.names.qualified(inner) in ("torch.inf", "math.inf", "numpy.inf")
    return False


def _indices(file: ScannedFile) -> Iterator[tuple[ast.expr, str, str]]:
    """x[mask] where x is a tensor for certain and the mask holds truth values for certain: read, not assigned to."""
    for node in file.scan.subscripts:
        if isinstance(node.ctx, ast.Load) and _is_mask(file, node.slice) and file.receivers.is_tensor(node.value):
            yield node, "dynamic_shape", "torch.Tensor.__getitem__"


def _is_mask(file: ScannedFile, node: ast.expr, depth: int = 0) -> bool:
    """True for a comparison of a tensor, for `~`, `&` and `|` of such, and for a name that was given one."""
    if depth > _DEEPEST_MASK:
        return False
    match node:
        case ast.Compare():
            return file.receivers.is_tensor(node)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return _is_mask(file, operand, depth + 1)
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
            return _is_mask(file, left, depth + 1) and _is_mask(file, right, depth + 1)
        case ast.Call(func=ast.Attribute(value=value, attr="bool"), args=[]):
            return file.receivers.is_tensor(value)
        case ast.Name():
            given = last_value(file.scan, node)
            return given is not None and _is_mask(file, given, depth + 1)
    return False


def _copies(file: ScannedFile) -> Iterator[tuple[ast.expr, str, str]]:
    """Channel shuffles, and expressions that exchange dimensions and copy, and do so again."""
    for node in (node for name in ("view", "reshape", "contiguous") for node in file.scan.attributes.get(name, ())):
        call = call_of(node)
        if call is None:
            continue
        if node.attr != "contiguous" and shuffle_ending_at(file.scan, file.names, call) is not None:
            yield call, "channel_shuffle", ""
        elif node.attr == "contiguous" and _copies_twice(call):
            yield call, "copy_chain", "torch.Tensor.contiguous"


def _copies_twice(call: ast.Call) -> bool:
    """True for a chain of calls that exchanges dimensions before `contiguous`, and again before another one."""
    # The methods of a chain of calls, the last one first.
    names: list[str] = []
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        names.append(node.func.attr)
        node = node.func.value
    copies = [index for index, name in enumerate(names) if name == "contiguous"]
    steps = zip(copies, [*copies[1:], len(names)], strict=True)
    return sum(not _EXCHANGES.isdisjoint(names[start:end]) for start, end in steps) > 1


def _forks(file: ScannedFile) -> Iterator[tuple[ast.expr, str, str]]:
    for name in ("set_start_method", "get_context"):
        for node in [*file.scan.attributes.get(name, ()), *file.scan.names.get(name, ())]:
            call = call_of(node)
            if call is not None and _is(argument(call, "method", 0), "fork"):
                full = file.names.qualified(node) or ""
                if full.startswith(("torch.multiprocessing.", "multiprocessing.")):
                    yield call, "fork", full
