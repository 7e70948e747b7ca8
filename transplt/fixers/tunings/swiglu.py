"""`swiglu`: `silu(first half) * second half` of one tensor becomes `torch_npu.npu_swiglu`.

Source: op-plugin docs/zh/custom_APIs/torch_npu, npu_swiglu. It takes one contiguous tensor; gate and up from two layers
would have to be laid side by side first, which costs a copy: that is a remark.
"""

from __future__ import annotations

import ast

from transplt.edits.fixer import Fixer
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.around import scripted
from transplt.fixers.tuning_writer import switched_off, touched, writer_for
from transplt.fixers.tunings.attention import NATIVE
from transplt.fixers.tunings.values import Value, held, is_linear, runs_before
from transplt.syntax.formulas import Formula
from transplt.syntax.nodes import block_of, by_place
from transplt.syntax.scan import parent, statement

fixer = Fixer(__name__, code="NPU763", rank=440, theme="tune:swiglu", needs=(b"silu",))

TARGET = "torch_npu.npu_swiglu"
_GATED = Formula("torch.nn.functional.silu(gate) * up", "gate up")


@on_file(fixer, writer_for)
def gated_halves(work: Work, writer: Writer) -> None:
    """Rewrite products of the two halves of one tensor."""
    done: list[ast.expr] = []
    for call in by_place(work.scan.calls):
        product = parent(call)
        found = _GATED.match(product, work.names, {"gate": call.args.__contains__})
        if not isinstance(product, ast.BinOp) or found is None or scripted(work, call):
            continue
        gate, up = found["gate"], found["up"]
        if all(isinstance(node, ast.Call) and is_linear(work, node.func) for node in (gate, up)):
            writer.remark(
                product,
                NATIVE,
                "silu(gate) * up is not changed: gate and up come from two layers, and npu_swiglu takes one tensor",
                "one layer of twice the size before torch_npu.npu_swiglu saves the copy; its weight is the two "
                "weights stacked, in checkpoints too",
            )
        elif _rewrite(writer, call, product, gate, up):
            done.append(call.func)
    drop_unused(writer, done, fixer.code)


def _rewrite(writer: Writer, call: ast.Call, product: ast.BinOp, gate: ast.expr, up: ast.expr) -> bool:
    work = writer.work
    if not (isinstance(gate, ast.Name) and isinstance(up, ast.Name)):
        return False
    match held(work, gate), held(work, up):
        case Value(node, 0), Value(again, 1) if node is again:
            taken_apart, halves = statement(node), _halves(work, node)
        case _:
            return False
    match taken_apart:
        case ast.Assign(targets=[ast.Tuple(elts=[_, _]) | ast.List(elts=[_, _])]) if halves is not None:
            tensor, dim = halves
        case _:
            return False
    if not runs_before(taken_apart, product) or not _is_left_alone(work, tensor, taken_apart, product):
        return False
    for name in (gate, up):
        scope = work.scan.scope_of(name)
        if sum(work.scan.scope_of(node) is scope for node in work.scan.names.get(name.id, ())) != 1:
            return False
    if touched(writer, taken_apart) or touched(writer, product) or switched_off(work, product, fixer.code):
        return False
    whole = work.text(tensor) + ("" if _is_contiguous(work, tensor) else ".contiguous()")
    text = f"{TARGET}({whole}, dim={dim})"
    message = f"silu of one half times the other -> {TARGET}"
    if not writer.change_alone(product, fixer.code, message, text, api=TARGET, writes_npu=True):
        return False
    work.take(call.func)
    alone = len(block_of(taken_apart)) == 1
    writer.remove(taken_apart, fixer.code, "the halves, which npu_swiglu splits itself", only=alone)
    return True


def _halves(work: Work, node: ast.expr) -> tuple[ast.expr, str] | None:
    """The tensor that `chunk(2, dim)` takes apart, and the dimension."""
    match node:
        case ast.Call(func=func, args=[tensor, *given], keywords=keywords) if (
            work.names.qualified(func) == "torch.chunk"
        ):
            pass
        case ast.Call(func=ast.Attribute(value=tensor, attr="chunk"), args=given, keywords=keywords):
            pass
        case _:
            return None
    named = {str(keyword.arg): keyword.value for keyword in keywords}
    given = [*given, *(named.pop(name) for name in ("chunks", "dim")[len(given) :] if name in named)]
    match given:
        case [ast.Constant(value=2), dim] if not named and ast.unparse(dim).lstrip("-").isdigit():
            return tensor, ast.unparse(dim)
    return None


def _is_left_alone(work: Work, tensor: ast.expr, first: ast.stmt, product: ast.expr) -> bool:
    """True when nothing can change a tensor between two places: only other assignments stand there."""
    if not isinstance(tensor, ast.Name):
        return False
    block = block_of(first)
    at = next(index for index, each in enumerate(block) if each is first)
    last = statement(product)
    for each in block[at + 1 :]:
        if each is last:
            return True
        if not isinstance(each, ast.Assign):
            return False
        if any(isinstance(node, ast.Name) and node.id == tensor.id for node in ast.walk(each)):
            return False
    return False


def _is_contiguous(work: Work, tensor: ast.expr) -> bool:
    """True for the output of a linear layer."""
    match held(work, tensor) if isinstance(tensor, ast.Name) else None:
        case Value(ast.Call(func=func), None):
            linear = work.names.qualified(func) == "torch.nn.functional.linear" or is_linear(work, func)
            return linear or getattr(func, "attr", "") == "contiguous"
    return False
