"""`rotary`: `x * cos + rotate_half(x) * sin` becomes `torch_npu.npu_rotary_mul(x, cos, sin)`.

Source: op-plugin docs/zh/custom_APIs/torch_npu/torch_npu-npu_rotary_mul.md: 4-D tensors, cosine and sine of the same
rank and of the full head size, cast to the dtype of x.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.unused import drop_unused
from transplt.edits.work import Work
from transplt.fixers.around import scripted
from transplt.fixers.tunings.attention import NATIVE
from transplt.fixers.tunings.values import held
from transplt.fixers.tunings.writer import switched_off, touched, writer_for
from transplt.syntax.asks import by_place, is_dotted
from transplt.syntax.scan import FUNCTIONS, parent

fixer = Fixer(__name__, code="NPU762", rank=430, theme="tune:rotary", needs=(b"rotate",))

TARGET = "torch_npu.npu_rotary_mul"


@fixer.on(ast.Module)
def rotations_of_halves(work: Work, tree: ast.Module) -> Finds:
    """Rewrite the sums that are the rotation of halves, where cosine and sine are brought to the rank of x."""
    writer = writer_for(work, fixer)
    if writer is None:
        return
    done: list[ast.expr] = []
    for call in by_place(work.scan.calls):
        if len(call.args) != 1 or call.keywords or not _is_rotate_half(work, call.func):
            continue
        total = parent(parent(call))
        parts = _parts(total, call)
        if parts is None or not is_dotted(parts[0]):
            continue
        assert isinstance(total, ast.BinOp)
        x, cos, sin = parts
        if scripted(work, call) or switched_off(work, total, fixer.code):
            continue
        if not (_is_raised(work, cos) and _is_raised(work, sin)):
            writer.remark(
                total,
                NATIVE,
                "the rotary embedding stays: how many dimensions cosine and sine have cannot be read here",
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
    yield from writer.found


def _parts(total: ast.AST, call: ast.Call) -> tuple[ast.expr, ast.expr, ast.expr] | None:
    """x, cos and sin of `x * cos + call(x) * sin` in any order."""
    if not isinstance(total, ast.BinOp) or not isinstance(total.op, ast.Add):
        return None
    turned = parent(call)
    plain = total.right if turned is total.left else total.left
    if not all(isinstance(side, ast.BinOp) and isinstance(side.op, ast.Mult) for side in (turned, plain)):
        return None
    assert isinstance(turned, ast.BinOp) and isinstance(plain, ast.BinOp)
    sin = turned.right if turned.left is call else turned.left
    x = call.args[0]
    same = ast.dump(x)
    if ast.dump(plain.left) == same:
        return x, plain.right, sin
    return (x, plain.left, sin) if ast.dump(plain.right) == same else None


def _is_raised(work: Work, node: ast.expr) -> bool:
    """True for a name that the function gives another dimension right before: `cos = cos[ids].unsqueeze(1)`."""
    if not isinstance(node, ast.Name):
        return False
    value = held(work, node)
    if value is None or value.index is not None:
        return False
    made = value.node
    if isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute):
        return made.func.attr == "unsqueeze" and len(made.args) + len(made.keywords) == 1
    if isinstance(made, ast.Subscript) and isinstance(made.slice, ast.Tuple):
        items = made.slice.elts
        return any(isinstance(each, ast.Constant) and each.value is None for each in items) and len(items) == 4
    return False


def _is_rotate_half(work: Work, func: ast.expr) -> bool:
    """True for a function that turns the halves of the last dimension: (x1, x2) -> (-x2, x1)."""
    full = work.names.qualified(func)
    if full is not None:
        return full.startswith("transformers.models.llama.") and full.endswith(".rotate_half")
    if not isinstance(func, ast.Name):
        return False
    found = work.names.lookup(func.id, work.scan.scope_of(func))
    if found is None or len(found[1]) != 1 or found[1][0].kind != "def":
        return False
    node = found[1][0].node
    return isinstance(node, FUNCTIONS) and _turns_halves(work, node)


def _turns_halves(work: Work, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    args = function.args.args
    if len(args) != 1 or function.decorator_list:
        return False
    x = args[0].arg
    half = f"{x}.shape[-1] // 2"
    halves = {f"{x}[..., :{half}]": 0, f"{x}[..., {half}:]": 1}
    chunks = {f"{x}.chunk(2, dim=-1)", f"{x}.chunk(2, -1)", f"torch.chunk({x}, 2, dim=-1)", f"torch.chunk({x}, 2, -1)"}
    which: dict[str, int] = {}
    for statement in function.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            if isinstance(value, ast.Tuple):
                found = [halves.get(ast.unparse(each)) for each in value.elts]
            else:
                found = [0, 1] if ast.unparse(value) in chunks else [halves.get(ast.unparse(value))]
            if len(found) != len(names) or None in found or not all(isinstance(name, ast.Name) for name in names):
                return False
            which.update({name.id: part for name, part in zip(names, found, strict=True)})  # type: ignore[attr-defined, misc]
            continue
        return isinstance(statement, ast.Return) and _is_turned(work, statement.value, which)
    return False


def _is_turned(work: Work, node: ast.expr | None, which: dict[str, int]) -> bool:
    """True for `torch.cat((-second, first), dim=-1)`."""
    if not isinstance(node, ast.Call) or work.names.qualified(node.func) != "torch.cat" or not node.args:
        return False
    dims = [ast.unparse(arg) for arg in node.args[1:]] + [ast.unparse(key.value) for key in node.keywords]
    pair = node.args[0]
    if dims != ["-1"] or not isinstance(pair, (ast.Tuple, ast.List)) or len(pair.elts) != 2:
        return False
    first, second = pair.elts
    return (
        isinstance(first, ast.UnaryOp)
        and isinstance(first.op, ast.USub)
        and isinstance(first.operand, ast.Name)
        and which.get(first.operand.id) == 1
        and isinstance(second, ast.Name)
        and which.get(second.id) == 0
    )
