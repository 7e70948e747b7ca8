"""What half precision cannot hold or hand on: constants beyond float16, and arrays of bfloat16 for NumPy."""

from __future__ import annotations

import ast

from transplt.edits.insertions import Insertion
from transplt.edits.work import is_dotted
from transplt.edits.writing import Writer, written
from transplt.syntax.scan import parent
from transplt.themes.amp.reading import function_of, networks, own_nodes, runs_network, variable
from transplt.themes.amp.shape import Unit

#: torch.finfo(torch.float16).max
_LARGEST = 65504.0
_FILLS = {"masked_fill": 1, "masked_fill_": 1}
#: What stands between an output and its array without changing its type.
_SAME_TYPE = frozenset("detach cpu data squeeze unsqueeze contiguous view reshape permute transpose".split())


def fit_constants(writer: Writer) -> None:
    """`scores.masked_fill(mask, -1e9)` raises when the scores are float16; in float32 the number stays what it is.

    Whole numbers may fill tensors of indices, which have no finfo: those are reported, as are tensors that are
    computed in the call, which would be computed twice.
    """
    for call in writer.work.scan.calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in _FILLS:
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        value = given.get("value") or (call.args[_FILLS[name]] if len(call.args) > _FILLS[name] else None)
        number = _number(value)
        if number is None or not _LARGEST < abs(number) < float("inf"):
            continue
        assert isinstance(call.func, ast.Attribute) and value is not None
        source = writer.work.source
        tensor, written_number = (source.slice(*source.extent(node)) for node in (call.func.value, value))
        inner, end = ("max", "min") if number < 0 else ("min", "max")
        if _is_float(value) and is_dotted(call.func.value):
            text = f"{inner}({written_number}, {writer.torch}.finfo({tensor}.dtype).{end})"
            writer.change(value, "NPU740", f"{written_number} does not fit float16", written(text))
            continue
        writer.left(
            call,
            f"{written_number} does not fit float16 (at most {_LARGEST:.0f}): this raises under autocast",
            f"fill with torch.finfo({tensor if tensor.isidentifier() else 'x'}.dtype).{end}",
            "NPU745",
        )


def _is_float(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(inner, ast.Constant) and isinstance(inner.value, float)


def _number(node: ast.expr | None) -> float | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return sign * float(node.value)
    return None


def write_arrays(writer: Writer, unit: Unit, regions: list[list[ast.stmt]]) -> None:
    """NumPy has no bfloat16: outputs become float32 before they become arrays."""
    program, file = unit.program, unit.file
    known = networks(file)
    for region in regions:
        outputs = set()
        for item in region:
            for at in own_nodes(item):
                value = at.value if isinstance(at, ast.Assign) else None
                if not isinstance(at, ast.Assign) or not isinstance(value, ast.Call):
                    continue
                target = at.targets[0]
                runs = variable(value.func) in known and runs_network(program, file, value, known)
                if runs and isinstance(target, ast.Name):
                    outputs.add(target.id)
        function = function_of(region[0])
        for node in file.scan.attributes.get("numpy", ()):
            if function_of(node) is function and node.lineno > region[0].lineno and _root(node.value) in outputs:
                call = parent(node)
                if isinstance(call, ast.Call) and call.func is node:
                    offset = writer.work.source.extent(node.value)[1]
                    text = "NumPy has no bfloat16: the output becomes float32"
                    writer.work.insertions.append(Insertion(offset, ".float()", "NPU740", text, writer.level))


def _root(node: ast.expr) -> str:
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_TYPE:
            node = node.func.value
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _SAME_TYPE):
            node = node.value
        else:
            return node.id if isinstance(node, ast.Name) else ""
