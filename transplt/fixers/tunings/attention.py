"""What the calls of `torch_npu.npu_fusion_attention` have in common, whatever they replace.

Sources: op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_fusion_attention.md (mask polarity, compressed masks,
layouts, limits), facts/affinity.json, and op_plugin/ops/opapi/ScaledDotProductAttentionKernelNpuOpApi.cpp for what
torch_npu itself does with scaled_dot_product_attention.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from transplt.edits.trees.new_calls import Piece
from transplt.edits.trees.transform import Transform
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.tuning_writer import touched
from transplt.fixers.tunings.call_texts import Bound
from transplt.fixers.tunings.values import SAME_SHAPE
from transplt.syntax.nodes import is_dotted

CODE = "NPU760"
TARGET = "torch_npu.npu_fusion_attention"
_CASTS = frozenset({"half", "bfloat16", "float"})
_DTYPES = frozenset({"float16", "half", "bfloat16", "float32", "float"})
#: Tensors that are left as they are, and calls for a person.
NATIVE = "NPU766"
BY_HAND = "NPU767"


@dataclass(slots=True)
class Masks:
    """The function that makes the compressed causal mask of a file, written when a call needs it.

    `asked` counts the texts that were made; `used` is true where one of them is in the file.
    """

    writer: Writer
    name: str = ""
    asked: int = 0
    used: bool = False

    def of(self, device: str) -> str:
        """The call that gives the mask on a device."""
        self.asked += 1
        if not self.name:
            self.name = self.writer.new_name("causal_mask", "make_causal_mask")
        return f"{self.name}({device})"

    def write(self) -> None:
        """Put the function below the imports, when a call asks for it."""
        if not self.used or self.writer.work.settings.style == "portable":
            return
        body = self.writer.work.scan.tree.body
        last = _last_import(body)
        cache = self.writer.standard("functools")
        torch = self.writer.torch
        lines = [
            f"@{cache}.lru_cache(maxsize=None)",
            f"def {self.name}(device):",
            '    """The upper triangle that npu_fusion_attention takes in its causal modes, made once for a device."""',
            f"    with {torch}.inference_mode(False):",
            f"        return {torch}.triu({torch}.ones(2048, 2048, dtype={torch}.bool, device=device), diagonal=1)",
        ]
        message = "the causal mask of npu_fusion_attention"
        if last is None:
            self.writer.before(body[0], [*lines, "", ""], CODE, message)
        else:
            self.writer.after(last, ["", "", *lines], CODE, message)


def _last_import(body: list[ast.stmt]) -> ast.stmt | None:
    """The last statement of the block of imports at the head of a file."""
    last: ast.stmt | None = None
    for node in body:
        match node:
            case ast.Import() | ast.ImportFrom():
                last = node
            case ast.Try(body=inside) if any(isinstance(each, (ast.Import, ast.ImportFrom)) for each in inside):
                last = node
            case ast.Expr(value=ast.Constant()):
                continue
            case _ if last is not None:
                break
    return last


def size(work: Work, node: ast.expr, dim: int, rank: int) -> str:
    """The size of a tensor along a dimension as an expression; empty where reading it would compute the tensor."""
    if is_dotted(node):
        return f"{work.text(node)}.shape[{dim if dim < rank - 1 else -1}]"
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr=name)) if (
            name in SAME_SHAPE or name in _CASTS or _is_cast(work, node)
        ):
            return size(work, value, dim, rank)
        case ast.Call(func=ast.Attribute(value=value, attr="transpose"), args=[one, other], keywords=[]):
            pair = number(one), number(other)
            if pair[0] is not None and pair[1] is not None:
                first, second = pair[0] % rank, pair[1] % rank
                return size(work, value, {first: second, second: first}.get(dim, dim), rank)
    return ""


def _is_cast(work: Work, node: ast.Call) -> bool:
    """True for `x.to(dtype)` with a dtype that can be seen; a device would be another than that of x."""
    match node:
        case ast.Call(func=ast.Attribute(attr="to" | "type"), args=[ast.Attribute(attr="dtype")], keywords=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="to" | "type"), args=[dtype], keywords=[]):
            return (work.names.qualified(dtype) or "").rpartition(".")[2] in _DTYPES
    return False


def device(work: Work, node: ast.expr) -> str:
    """The device of a tensor as an expression that reads no tensor twice."""
    while not is_dotted(node):
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        node = node.func.value
    return f"{work.text(node)}.device"


def number(node: ast.expr) -> int | None:
    """An integer that is written out."""
    match node:
        case ast.Constant(value=int() as value) if type(value) is int:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)) if type(value) is int:
            return -value
    return None


def is_nothing(node: ast.expr | None) -> bool:
    """True for an argument that is absent, None, False or 0."""
    return node is None or (isinstance(node, ast.Constant) and not node.value)


def keep_prob(work: Work, bound: Bound, parameter: str = "dropout_p") -> list[Piece]:
    """`keep_prob` for a probability to drop."""
    node = bound.get(parameter)
    if node is None or is_nothing(node):
        return []
    match node:
        case ast.IfExp(test=test, body=body, orelse=other) if is_nothing(other):
            inside = work.text(body) if _tight(body) else f"({work.text(body)})"
            text = f"1.0 - {inside} if {work.text(test)} else 1.0"
        case ast.Constant(value=float() as value):
            text = repr(round(1 - value, 12))
        case _:
            text = "1.0 - {}" if _tight(node) else "1.0 - ({})"
    return [Piece(text, "keep_prob", bound.places[parameter])]


def _tight(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute, ast.Constant, ast.Call, ast.Subscript))


def scale(bound: Bound, parameter: str, head: str, given: bool) -> list[Piece]:
    """`scale`, which npu_fusion_attention does not choose by itself; `given` says that the argument is no None."""
    node = bound.get(parameter)
    if node is None or is_nothing(node):
        return [Piece(f"{head} ** -0.5", "scale", None if node is None else bound.places[parameter])]
    place = bound.places[parameter]
    if given:
        return [Piece("{}", "scale", place)]
    return [Piece(f"{head} ** -0.5 if {{}} is None else {{}}", "scale", place)]


def causal(bound: Bound, parameter: str, mask: str, mode: int) -> list[Piece]:
    """The compressed mask and the mode that a causal call takes. Without a mask the mode has no effect."""
    node = bound.get(parameter)
    if node is None or is_nothing(node):
        return []
    place = bound.places[parameter]
    if isinstance(node, ast.Constant):
        return [Piece(mask, "atten_mask", place), Piece(str(mode), "sparse_mode")]
    test = "{}" if _tight(node) or isinstance(node, (ast.Compare, ast.BoolOp)) else "({})"
    return [Piece(f"{mask} if {test} else None", "atten_mask", place), Piece(str(mode), "sparse_mode")]


def in_order(*groups: Sequence[Piece]) -> list[Piece]:
    """Groups of arguments in the order in which the old call gives the first of each; new ones at the end."""
    filled = [group for group in groups if group]
    filled.sort(key=lambda group: 99 if group[0].place is None else group[0].place)
    return [piece for group in filled for piece in group]


def replace(writer: Writer, call: ast.Call, api: str, transform: Transform) -> bool:
    """Write a call in place of another; False where something else changes it."""
    if touched(writer, call, but=call.func):
        return False
    if not writer.change_alone(call, CODE, f"{api} -> {TARGET}", transform, api=api, writes_npu=True):
        return False
    writer.work.take(call.func)
    return True
