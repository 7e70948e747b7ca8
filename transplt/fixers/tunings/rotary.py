"""`rotary`: `x * cos + rotate_half(x) * sin` becomes `torch_npu.npu_rotary_mul(x, cos, sin)`.

Source: op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_rotary_mul.md: 4-D tensors, cosine and sine of the same
rank and of the full head size, cast to the dtype of x.
"""

from __future__ import annotations

import ast
from functools import partial
from operator import is_

from transplt.edits.fixer import Fixer
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.around import scripted
from transplt.fixers.tuning_writer import switched_off, touched, writer_for
from transplt.fixers.tunings.attention import NATIVE
from transplt.fixers.tunings.values import held
from transplt.syntax.formulas import Formula
from transplt.syntax.nodes import by_place, is_dotted, last_name
from transplt.syntax.scan import FUNCTIONS, parent

fixer = Fixer(__name__, code="NPU762", rank=430, theme="tune:rotary", needs=(b"rotate",))

TARGET = "torch_npu.npu_rotary_mul"
_ROTARY = Formula("turn(x) * sin + x * cos", "turn x cos sin")


@on_file(fixer, writer_for)
def rotations_of_halves(work: Work, writer: Writer) -> None:
    """Rewrite the sums that are the rotation of halves, where cosine and sine are brought to the rank of x."""
    done: list[ast.expr] = []
    for call in by_place(work.scan.calls):
        total = parent(parent(call))
        found = _ROTARY.match(total, work.names, {"turn": partial(is_, call.func), "x": is_dotted})
        if found is None or not isinstance(total, ast.BinOp) or not _is_rotate_half(work, call.func):
            continue
        x, cos, sin = parts = [found[hole] for hole in ("x", "cos", "sin")]
        if scripted(work, call) or switched_off(work, total, fixer.code):
            continue
        if not (_is_raised(work, cos) and _is_raised(work, sin)):
            writer.remark(
                total,
                NATIVE,
                "the rotary embedding is not changed: the number of dimensions of cosine and sine is not known",
                f"with four dimensions each, {TARGET}({work.text(x)}, cos, sin) computes the same",
            )
            continue
        text = f"{TARGET}({', '.join(work.text(node) for node in parts)})"
        message = f"rotary embedding -> {TARGET}"
        if touched(writer, total):
            continue
        if not writer.change_alone(total, fixer.code, message, text, api=TARGET, writes_npu=True):
            continue
        work.take(call.func)
        done.append(call.func)
    drop_unused(writer, done, fixer.code)


def _is_raised(work: Work, node: ast.expr) -> bool:
    """True for a name that the function gives another dimension right before: `cos = cos[ids].unsqueeze(1)`."""
    if not isinstance(node, ast.Name):
        return False
    value = held(work, node)
    if value is None or value.index is not None:
        return False
    match value.node:
        case ast.Call(func=ast.Attribute(attr="unsqueeze"), args=args, keywords=keywords):
            return len(args) + len(keywords) == 1
        case ast.Subscript(slice=ast.Tuple(elts=items)):
            return len(items) == 4 and any(isinstance(each, ast.Constant) and each.value is None for each in items)
    return False


def _is_rotate_half(work: Work, func: ast.expr) -> bool:
    """True for a function that turns the halves of the last dimension: (x1, x2) -> (-x2, x1)."""
    full = work.names.qualified(func)
    if full is not None:
        return full.startswith("transformers.models.llama.") and full.endswith(".rotate_half")
    bindings = work.names.bindings_of(func)
    node = bindings[0].node if len(bindings) == 1 and bindings[0].kind == "def" else None
    return isinstance(node, FUNCTIONS) and _turns_halves(work, node)


def _turns_halves(work: Work, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    args = function.args.args
    if len(args) != 1 or function.decorator_list:
        return False
    x = args[0].arg
    half = f"{x}.shape[-1] // 2"
    halves = {f"{x}[..., :{half}]": 0, f"{x}[..., {half}:]": 1}
    chunks = {f"{x}.chunk(2, dim=-1)", f"{x}.chunk(2, -1)", f"torch.chunk({x}, 2, dim=-1)", f"torch.chunk({x}, 2, -1)"}
    which: dict[str, int | None] = {}
    for line in function.body:
        match line:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[target], value=value):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                values = value.elts if isinstance(value, ast.Tuple) else [value]
                found = [0, 1] if ast.unparse(value) in chunks else [halves.get(ast.unparse(each)) for each in values]
                if len(found) != len(names) or None in found or not all(isinstance(name, ast.Name) for name in names):
                    return False
                which.update(zip(map(last_name, names), found, strict=True))
            case _:
                return isinstance(line, ast.Return) and _is_turned(work, line.value, which)
    return False


def _is_turned(work: Work, node: ast.expr | None, which: dict[str, int | None]) -> bool:
    """True for `torch.cat((-second, first), dim=-1)`."""
    match node:
        case ast.Call(args=[ast.Tuple(elts=pair) | ast.List(elts=pair), *more], keywords=keywords):
            dims = [ast.unparse(each) for each in (*more, *(keyword.value for keyword in keywords))]
            if work.names.qualified(node.func) != "torch.cat" or dims != ["-1"]:
                return False
            match pair:
                case [ast.UnaryOp(op=ast.USub(), operand=ast.Name(id=second)), ast.Name(id=first)]:
                    return (which.get(first), which.get(second)) == (0, 1)
    return False
