"""`--tune finite-masks`: minus infinity in the scores of a softmax becomes the lowest number of their dtype.

The softmax of both is the same, but for rows that are masked as a whole: nan before, equal weights after. Source:
facts/advice.json, inf_nan_mode: with INF_NAN_MODE_ENABLE=0 cards make the largest finite value of an infinity and 0 of
nan, and the first generation has no other mode.
"""

from __future__ import annotations

import ast

from transplt.scan import FUNCTIONS, Scope, parent, statement
from transplt.tunings.attention import NATIVE
from transplt.tunings.values import attribute_values, function_around, held, is_dotted, scripted, text_of
from transplt.work import Work
from transplt.writing import Writer, written

CODE = "NPU764"
_FILLS = ("masked_fill", "masked_fill_")
_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax"})
#: What reading a tensor does not use up.
_FACTS = frozenset({"dtype", "shape", "device", "ndim", "size", "dim"})
_INFINITE = frozenset({"math.inf", "numpy.inf", "torch.inf", "numpy.Inf"})


def plan(writer: Writer, value: str) -> None:
    """Rewrite the masks of scores whose way into a softmax can be read."""
    work = writer.work
    if b"inf" not in work.source.utf8.lower() or b"softmax" not in work.source.utf8:
        return
    for call in sorted(work.scan.calls, key=lambda node: (node.lineno, node.col_offset)):
        found = _filled(work, call)
        if found is None or scripted(work, call):
            continue
        scores, infinity = found
        if not _reaches_softmax(work, call, call) or _looks_for_nan(work, call):
            continue
        if not is_dotted(scores):
            writer.remark(
                infinity,
                NATIVE,
                "minus infinity stays: the dtype of the scores cannot be read without computing them twice",
                "give the scores a name; then torch.finfo(scores.dtype).min takes its place",
            )
            continue
        text = f"{writer.torch}.finfo({text_of(work, scores)}.dtype).min"
        writer.change(infinity, CODE, f"minus infinity before a softmax -> {text}", written(text))


def _looks_for_nan(work: Work, call: ast.expr) -> bool:
    """True in a function that asks for nan: it knows of rows that are masked as a whole."""
    function = function_around(call)
    text = text_of(work, function) if function is not None else work.source.text
    return "isnan" in text or "nan_to_num" in text or "isinf" in text


def _filled(work: Work, call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    """The scores and the infinity of `scores.masked_fill(mask, -inf)` or `torch.masked_fill(scores, mask, -inf)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _FILLS:
        return None
    args = list(call.args)
    scores = args.pop(0) if work.names.qualified(call.func) == "torch.masked_fill" and args else call.func.value
    value = next((key.value for key in call.keywords if key.arg == "value"), None)
    value = args[1] if len(args) == 2 else value
    return (scores, value) if value is not None and is_minus_infinity(work, value) else None


def is_minus_infinity(work: Work, node: ast.expr) -> bool:
    """True for `float("-inf")`, `-float("inf")`, `-math.inf` and the like."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _is_infinity(work, node.operand, ("inf", "infinity"))
    return _is_infinity(work, node, ("-inf", "-infinity")) and isinstance(node, ast.Call)


def _is_infinity(work: Work, node: ast.expr, words: tuple[str, ...]) -> bool:
    if isinstance(node, ast.Call):
        word = node.args[0] if len(node.args) == 1 and getattr(node.func, "id", "") == "float" else None
        return isinstance(word, ast.Constant) and str(word.value).strip().lower() in words
    return work.names.qualified(node) in _INFINITE


def stays_finite(work: Work, line: ast.Assign, scores: ast.expr) -> bool:
    """True when `scores[mask] = -inf` goes into a softmax and nowhere else, and this tuning is asked for."""
    if not any(name == "finite-masks" for name, _ in work.settings.tune) or not isinstance(scores, ast.Name):
        return False
    return _next_uses(work, scores, line, None, 0) and not _looks_for_nan(work, scores)


def _reaches_softmax(work: Work, node: ast.expr, call: ast.Call | None, depth: int = 0) -> bool:
    """True when the value of an expression goes into a softmax and nowhere else."""
    above = parent(node)
    if depth > 8:
        return False
    if _is_softmax_of(work, above, node):
        return True
    if isinstance(above, ast.Attribute) and above.value is node:
        outer = parent(above)
        if isinstance(outer, ast.Call) and outer.func is above:
            if above.attr == "softmax":
                return True
            same = above.attr in (*_FILLS, "float", "contiguous", "view", "reshape")
            return above.attr in _FACTS or (same and _reaches_softmax(work, outer, call, depth + 1))
        return above.attr in _FACTS
    filled = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
    in_place = call is not None and isinstance(call.func, ast.Attribute) and call.func.attr == "masked_fill_"
    if isinstance(above, ast.Expr) and in_place and node is call:
        return isinstance(filled, ast.Name) and _next_uses(work, filled, above, call, depth)
    if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
        target = above.targets[0]
        same = isinstance(filled, ast.Name) and filled.id == target.id
        return (not in_place or same) and _next_uses(work, target, above, call, depth)
    return False


def _next_uses(work: Work, name: ast.Name, after: ast.stmt, call: ast.Call | None, depth: int) -> bool:
    """True when all that reads a name after a statement, up to its next value, is a softmax or a mask on the way."""
    scope: Scope = work.scan.scope_of(name)
    if not isinstance(scope.node, FUNCTIONS):
        return False
    end = (after.end_lineno or after.lineno, after.end_col_offset or 0)
    loads = [
        node
        for node in work.scan.names.get(name.id, ())
        if work.scan.scope_of(node) is scope and (node.lineno, node.col_offset) > end
    ]
    closures = [
        node
        for node in work.scan.names.get(name.id, ())
        if work.scan.scope_of(node) is not scope
        and (found := work.names.lookup(name.id, work.scan.scope_of(node)))
        and found[0] is scope
    ]
    bound = [binding.node for binding in scope.bindings.get(name.id, ())]
    stores = [node for node in bound if isinstance(node, ast.Name) and (node.lineno, node.col_offset) > end]
    if not loads or closures:
        return False
    loads.sort(key=lambda node: (node.lineno, node.col_offset))
    reached = False
    for load in loads:
        earlier = [node for node in stores if statement(node).lineno < statement(load).lineno]
        if earlier and reached:
            break
        if not _reaches_softmax(work, load, call, depth + 1):
            return False
        above = parent(load)
        reached = reached or not (isinstance(above, ast.Attribute) and above.attr in _FACTS)
    return reached


def _is_softmax_of(work: Work, call: ast.AST, node: ast.expr) -> bool:
    """True for a call of a softmax on a value: of torch, or a module that the class makes."""
    if not isinstance(call, ast.Call) or not call.args or call.args[0] is not node:
        return False
    if work.names.qualified(call.func) in _SOFTMAX:
        return True
    made = attribute_values(work, call.func)
    if isinstance(call.func, ast.Name):
        value = held(work, call.func)
        made = [value.node] if value is not None and value.index is None else []
    if isinstance(call.func, ast.Call):
        made = [call.func]
    return bool(made) and all(
        isinstance(each, ast.Call) and work.names.qualified(each.func) == "torch.nn.Softmax" for each in made
    )
