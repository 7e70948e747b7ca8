"""`swiglu`: `silu(first half) * second half` of one tensor becomes `torch_npu.npu_swiglu`.

Source: op-plugin docs/zh/custom_APIs/torch_npu, npu_swiglu. It takes one contiguous tensor; gate and up from two layers
would have to be laid side by side first, which costs a copy: that is a remark.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.unused import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.around import scripted
from transplt.fixers.tunings.attention import NATIVE
from transplt.fixers.tunings.values import held, is_linear, runs_before
from transplt.fixers.tunings.writer import switched_off, touched, writer_for
from transplt.syntax.asks import block_of, by_place, is_dotted
from transplt.syntax.scan import parent, statement

fixer = Fixer(__name__, code="NPU763", rank=440, theme="tune:swiglu", needs=(b"silu",))

TARGET = "torch_npu.npu_swiglu"
_SILU = ("torch.nn.functional.silu",)


@fixer.on(ast.Module)
def gated_halves(work: Work, tree: ast.Module) -> Finds:
    """Rewrite products of the two halves of one tensor."""
    writer = writer_for(work, fixer)
    if writer is None:
        return
    done: list[ast.expr] = []
    for call in by_place(work.scan.calls):
        product = parent(call)
        if work.names.qualified(call.func) not in _SILU or len(call.args) != 1 or call.keywords:
            continue
        if not (isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)) or scripted(work, call):
            continue
        gate, up = call.args[0], product.right if product.left is call else product.left
        if _from_layers(work, gate, up):
            writer.remark(
                product,
                NATIVE,
                "silu(gate) * up stays: gate and up come from two layers, and npu_swiglu takes one tensor",
                "one layer of twice the size whose output goes to torch_npu.npu_swiglu saves the copy; its weight is "
                "both weights one below the other, also in checkpoints",
            )
        elif _rewrite(writer, call, product, gate, up):
            done.append(call.func)
    drop_unused(writer, done, fixer.code)
    yield from writer.found


def _from_layers(work: Work, gate: ast.expr, up: ast.expr) -> bool:
    return all(isinstance(node, ast.Call) and is_linear(work, node.func) for node in (gate, up))


def _rewrite(writer: Writer, call: ast.Call, product: ast.BinOp, gate: ast.expr, up: ast.expr) -> bool:
    work = writer.work
    if not (isinstance(gate, ast.Name) and isinstance(up, ast.Name)):
        return False
    halves = [held(work, name) for name in (gate, up)]
    if halves[0] is None or halves[1] is None or halves[0].node is not halves[1].node:
        return False
    if (halves[0].index, halves[1].index) != (0, 1):
        return False
    taken_apart = statement(halves[0].node)
    packed = _packed(work, halves[0].node)
    if packed is None or not isinstance(taken_apart, ast.Assign) or len(taken_apart.targets) != 1:
        return False
    tensor, dim = packed
    target = taken_apart.targets[0]
    if not is_dotted(tensor) or not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) != 2:
        return False
    if not runs_before(taken_apart, product) or not _is_left_alone(work, tensor, taken_apart, product):
        return False
    if any(len(_loads(work, name)) != 1 for name in (gate, up)):
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
    writer.remove(taken_apart, fixer.code, "the halves, which npu_swiglu takes by itself", only=alone)
    return True


def _packed(work: Work, node: ast.expr) -> tuple[ast.expr, str] | None:
    """The tensor that `chunk(2, dim)` takes apart, and the dimension."""
    if not isinstance(node, ast.Call):
        return None
    args = list(node.args)
    if work.names.qualified(node.func) == "torch.chunk" and args:
        tensor = args.pop(0)
    elif isinstance(node.func, ast.Attribute) and node.func.attr == "chunk":
        tensor = node.func.value
    else:
        return None
    named = {str(key.arg): key.value for key in node.keywords}
    count = args.pop(0) if args else named.pop("chunks", None)
    dim = args.pop(0) if args else named.pop("dim", None)
    if args or named or not isinstance(count, ast.Constant) or count.value != 2 or dim is None:
        return None
    text = ast.unparse(dim)
    return (tensor, text) if text.lstrip("-").isdigit() else None


def _loads(work: Work, name: ast.Name) -> list[ast.Name]:
    scope = work.scan.scope_of(name)
    return [node for node in work.scan.names.get(name.id, ()) if work.scan.scope_of(node) is scope]


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
    value = held(work, tensor) if isinstance(tensor, ast.Name) else None
    made = value.node if value is not None and value.index is None else None
    if not isinstance(made, ast.Call):
        return False
    if work.names.qualified(made.func) == "torch.nn.functional.linear":
        return True
    return is_linear(work, made.func) or getattr(made.func, "attr", "") == "contiguous"
