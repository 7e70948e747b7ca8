"""A card that the script chose by number becomes the card of the rank."""

from __future__ import annotations

import ast
import re

from transplt.edits.writing import written
from transplt.syntax.scan import parent, statement
from transplt.themes.distributed.bench import Bench
from transplt.themes.distributed.wrapping import DATA_PARALLEL
from transplt.trees.lazy import cst
from transplt.trees.transform import CannotRewrite

_CODE = "NPU334"
_NUMBERED = re.compile(r"cuda:(\d+)")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")


def claim(bench: Bench) -> None:
    """Claim what other codemods would move to a card by its number."""
    for node in sorted(bench.file.scan.strings, key=lambda item: (item.lineno, item.col_offset)):
        found = _NUMBERED.fullmatch(str(node.value))
        if found is None or isinstance(parent(node), (ast.JoinedStr, ast.Expr)):
            continue
        if found[1] != "0":
            bench.left(
                node, f"every rank would use card {found[1]} here", "write 'npu': the card of the rank", code="NPU335"
            )
        elif not isinstance(parent(node), ast.Compare) and not _is_default(node):
            bench.change(node, _CODE, "'cuda:0' -> 'npu', the card of the rank", _current, writes_npu=True)
    for call in bench.file.scan.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
            _moved(bench, call)


def _is_default(node: ast.Constant) -> bool:
    """A default of a flag: the flag names one card, and the user may name another."""
    above = parent(node)
    return isinstance(above, ast.keyword) and above.arg in ("choices", "help")


def _current(root: cst.CSTNode) -> cst.CSTNode:
    if not isinstance(root, cst.SimpleString) or "cuda:0" not in root.value:
        raise CannotRewrite("not a plain string")
    return root.with_changes(value=root.value.replace("cuda:0", "npu"))


def _moved(bench: Bench, call: ast.Call) -> None:
    """`.cuda(0)`: without the number; another number is a finding."""
    assert isinstance(call.func, ast.Attribute)
    if (
        len(call.args) != 1
        or bench.file.names.qualified(call.func) is not None
        or not isinstance(call.args[0], ast.Constant)
    ):
        return
    number = call.args[0].value
    if number == 0 and type(number) is int:
        bench.change(
            call,
            _CODE,
            ".cuda(0) -> .npu(), the card of the rank",
            lambda root: cst.ensure_type(root, cst.Call).with_changes(args=cst.ensure_type(root, cst.Call).args[1:]),
        )
    elif type(number) is int:
        bench.left(
            call, f"every rank would use card {number} here", "write .npu(): the card of the rank", code="NPU335"
        )


def write(bench: Bench) -> None:
    """Take out what chooses the card of the whole process."""
    for call in bench.file.scan.calls:
        if bench.file.names.qualified(call.func) == "torch.cuda.set_device":
            node = statement(call)
            if isinstance(node, ast.Expr) and node.value is call:
                _remove(bench, node, "the start sets the card of the rank")
            else:
                bench.left(
                    call, "every rank would use one card here", "take it out: the start sets the card", code="NPU335"
                )
    for subscript in bench.file.scan.subscripts:
        if not isinstance(subscript.ctx, ast.Store) or not isinstance(subscript.slice, ast.Constant):
            continue
        if subscript.slice.value in _VISIBLE and isinstance(statement(subscript), ast.Assign):
            _remove(bench, statement(subscript), "the launch script chooses the cards")


def _remove(bench: Bench, node: ast.stmt, why: str) -> None:
    """Take a statement out; a block that held nothing else gets `pass`."""
    from transplt.program.training import block_of

    if not bench.layout.fits(node):
        bench.left(node, f"take this out: {why}", "and leave the rest of the line", code="NPU335")
        return
    bench.remove(node, _CODE, why, only=len(block_of(node)) == 1)


def turn_data_parallel(bench: Bench, call: ast.Call, apart: bool) -> None:
    """`nn.DataParallel(model)` becomes the wrapper in its place, around the model on its card."""
    above = parent(call)
    moved = parent(above) if isinstance(above, ast.Attribute) and above.attr == "cuda" else None
    buffers = ", broadcast_buffers=False" if apart else ""
    around = f"device_ids=[{bench.torch}.npu.current_device()]{buffers}"
    name = bench.parallel

    def transform(root: cst.CSTNode) -> str:
        whole = cst.ensure_type(root, cst.Call)
        if moved is not None:  # the .cuda() behind it goes to the model
            whole = cst.ensure_type(cst.ensure_type(whole.func, cst.Attribute).value, cst.Call)
        bare = cst.Module([]).code_for_node(whole.args[0].value)
        simple = isinstance(whole.args[0].value, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
        return f"{name}({bare if simple else f'({bare})'}.npu(), {around})"

    bench.work.take(call.func)
    outer = moved if isinstance(moved, ast.Call) and moved.func is above and not moved.args else call
    if outer is call:
        moved = None
    else:
        bench.work.take(above)
    message = "DataParallel is replaced by DistributedDataParallel"
    bench.change(outer, "NPU336", message, transform, writes_npu=True)


def replace_data_parallel(bench: Bench, calls: tuple[ast.Call, ...]) -> None:
    """Unwrap `nn.DataParallel(model)`: the model is wrapped once, behind all that sets it up."""
    from transplt.program.training import block_of

    for call in calls:
        if not call.args or isinstance(call.args[0], ast.Starred):
            bench.left(call, "DataParallel without a model in front", "take it out: the model is wrapped below")
            continue
        stored = statement(call)
        assert isinstance(stored, ast.Assign)
        source = bench.file.source
        bare = source.slice(*source.extent(call.args[0]))
        target = source.slice(*source.extent(stored.targets[0]))
        above = parent(stored)
        bench.work.take(call.func)
        if stored.value is call and bare == target:
            alone = (
                isinstance(above, ast.If)
                and not above.orelse
                and all(item is stored or _prints(item) for item in above.body)
            )
            gone = above if alone else stored
            assert isinstance(gone, ast.stmt)
            if bench.layout.fits(gone):
                bench.remove(
                    gone, "NPU336", "DataParallel is replaced by DistributedDataParallel", only=len(block_of(gone)) == 1
                )
                continue
        bench.change(call, "NPU336", "DataParallel is replaced by DistributedDataParallel", _argument)


def _argument(root: cst.CSTNode) -> cst.CSTNode:
    return cst.ensure_type(root, cst.Call).args[0].value


def _prints(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    func = node.value.func
    return getattr(func, "id", getattr(func, "attr", "")) in ("print", "info")


def write_asked(bench: Bench) -> None:
    """`isinstance(model, nn.DataParallel)` asks for the wrapper that there is now."""
    scan = bench.file.scan
    nodes: list[ast.expr] = [*scan.attributes.get("DataParallel", ()), *scan.names.get("DataParallel", ())]
    for node in nodes:
        above = parent(node)
        call = parent(above) if isinstance(above, ast.Tuple) else above
        asked = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "isinstance"
        if asked and bench.file.names.qualified(node) in DATA_PARALLEL:
            bench.work.taken.discard(id(node))
            bench.change(node, "NPU336", "the wrapper is DistributedDataParallel", written(bench.parallel))
