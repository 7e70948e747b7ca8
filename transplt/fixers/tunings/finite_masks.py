"""`finite-masks`: minus infinity in the scores of a softmax becomes the lowest number of their dtype.

The softmax of both is the same, but for rows that are masked as a whole: nan before, equal weights after. Source:
facts/advice.json, inf_nan_mode: with INF_NAN_MODE_ENABLE=0 cards make the largest finite value of an infinity and 0 of
nan, and the first generation has no other mode.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.around import scripted
from transplt.fixers.tuning_writer import writer_for
from transplt.fixers.tunings.attention import NATIVE
from transplt.fixers.tunings.values import Value, attribute_values, held, is_call_of, is_closed_over, runs_before
from transplt.program.program import enclosing_function
from transplt.rules.torch_callables import TENSOR, names_of
from transplt.syntax.nodes import argument_at, begins, by_place, call_of, ends, is_dotted, keyword_of
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement
from transplt.syntax.scopes import Scope

fixer = Fixer(__name__, code="NPU764", rank=450, theme="tune:finite-masks", needs=(b"softmax",))

_FILLS = ("masked_fill", "masked_fill_")
_SOFTMAX = frozenset({"torch.softmax", "torch.nn.functional.softmax"})
#: What reading a tensor does not use up.
_FACTS = names_of(TENSOR, "asks")
#: Methods of scores and masks that a softmax does not tell apart, and those that give a view.
_SAME = {*_FILLS, *"float contiguous view reshape triu tril type_as unsqueeze".split(), *names_of(TENSOR, "to_card")}
_INFINITE = frozenset({"math.inf", "numpy.inf", "torch.inf", "numpy.Inf"})


@fixer.on(ast.Call)
def minus_infinity_before_a_softmax(work: Work, call: ast.Call) -> Finds:
    """Rewrite a mask of scores whose way into a softmax can be read."""
    found = _filled(work, call) or _full(work, call)
    if found is None or scripted(work, call) or b"inf" not in work.source.utf8.lower():
        return
    dtype, infinity = found
    writer = writer_for(work, fixer)
    if writer is None or not _reaches_softmax(work, call, call) or _looks_for_nan(work, call):
        return
    if dtype:
        text = f"{writer.torch}.finfo({dtype}).min"
        writer.change_alone(infinity, fixer.code, f"minus infinity before a softmax -> {text}", text)
    else:
        writer.remark(
            infinity,
            NATIVE,
            "minus infinity is not replaced: reading the dtype of the scores would compute them twice",
            "give the scores a name, and use torch.finfo(scores.dtype).min",
        )
    yield from writer.found


def _looks_for_nan(work: Work, call: ast.expr) -> bool:
    """True in a function that asks for nan: it knows of rows that are masked as a whole."""
    function = enclosing_function(call)
    text = work.text(function) if function is not None else work.source.text
    return "isnan" in text or "nan_to_num" in text or "isinf" in text


def _filled(work: Work, call: ast.Call) -> tuple[str, ast.expr] | None:
    """The dtype and the infinity of `scores.masked_fill(mask, -inf)` or `torch.masked_fill(scores, mask, -inf)`."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _FILLS:
        return None
    args = list(call.args)
    scores = args.pop(0) if work.names.qualified(call.func) == "torch.masked_fill" and args else call.func.value
    value = args[1] if len(args) == 2 else keyword_of(call, "value")
    if value is None or not is_minus_infinity(work, value):
        return None
    return (f"{work.text(scores)}.dtype" if is_dotted(scores) else "", value)


def _full(work: Work, call: ast.Call) -> tuple[str, ast.expr] | None:
    """The dtype and the infinity of a mask that is made full of it and added later."""
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    full, last = work.names.qualified(call.func), getattr(call.func, "attr", "")
    value = argument_at(call, 1, "fill_value")
    if full not in ("torch.full", "torch.full_like") and last != "new_full":
        return None
    if value is None or not is_minus_infinity(work, value):
        return None
    dtype = keyword_of(call, "dtype")
    if dtype is not None:
        return (work.text(dtype) if is_dotted(dtype) else "", value)
    if full == "torch.full":
        return (f"{work.text(owner)}.get_default_dtype()", value) if owner is not None else None
    like = call.args[0] if full == "torch.full_like" else owner
    return (f"{work.text(like)}.dtype" if like is not None and is_dotted(like) else "", value)


def is_minus_infinity(work: Work, node: ast.expr) -> bool:
    """True for `float("-inf")`, `-float("inf")`, `-math.inf` and the like."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=positive):
            return _is_infinity(work, positive, ("inf", "infinity"))
        case ast.Call():
            return _is_infinity(work, node, ("-inf", "-infinity"))
    return False


def _is_infinity(work: Work, node: ast.expr, words: tuple[str, ...]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=word)]):
            return str(word).strip().lower() in words
        case ast.Call():
            return False
    return work.names.qualified(node) in _INFINITE


def stays_finite(work: Work, line: ast.Assign, scores: ast.expr) -> bool:
    """True when `scores[mask] = -inf` goes into a softmax and nowhere else, and this tuning is asked for."""
    if not work.settings.asks_for("tune:finite-masks") or not isinstance(scores, ast.Name) or not _is_own(work, scores):
        return False
    return _next_uses(work, scores, line, None, 0) and not _looks_for_nan(work, scores)


def _is_own(work: Work, name: ast.Name) -> bool:
    """True for a tensor that the function has computed: nobody else sees what is written into it."""
    match held(work, name):
        case Value(ast.Call(func=ast.Attribute(attr=method)), None):
            return method not in names_of(TENSOR, "views")
        case Value(ast.BinOp() | ast.Call(), None):
            return True
    return False


def _reaches_softmax(work: Work, node: ast.expr, call: ast.Call | None, depth: int = 0) -> bool:
    """True when the value of an expression goes into a softmax and nowhere else."""
    above = parent(node)
    if depth > 8:
        return False
    if _is_softmax_of(work, above, node):
        return True
    filled = _filled_in_place(call)
    match above:
        case ast.Attribute(value=value, attr=name) if value is node:
            outer = call_of(above)
            if outer is None or name in _FACTS:
                return name in _FACTS
            return name == "softmax" or (name in _SAME and _reaches_softmax(work, outer, call, depth + 1))
        case ast.Expr() if filled is not None and node is call:
            return (
                isinstance(filled, ast.Name) and _is_own(work, filled) and _next_uses(work, filled, above, call, depth)
            )
        case ast.BinOp(op=ast.Add()):
            return _reaches_softmax(work, above, call, depth + 1)
        case ast.Call(func=func, args=[first, *_]) if first is node:
            triangle = work.names.qualified(func) in ("torch.triu", "torch.tril")
            return triangle and _reaches_softmax(work, above, call, depth + 1)
        case ast.Assign(targets=[ast.Name(id=name) as target]):
            own = isinstance(filled, ast.Name) and filled.id == name and _is_own(work, filled)
            return (filled is None or own) and _next_uses(work, target, above, call, depth)
    return False


def _filled_in_place(call: ast.Call | None) -> ast.expr | None:
    """The tensor that a call of `masked_fill_` writes into."""
    match call:
        case ast.Call(func=ast.Attribute(value=filled, attr="masked_fill_")):
            return filled
    return None


def _next_uses(work: Work, name: ast.Name, after: ast.stmt, call: ast.Call | None, depth: int) -> bool:
    """True when all that reads a name after a statement, up to its next value, is a softmax or a mask on the way."""
    scope: Scope = work.scan.scope_of(name)
    if not isinstance(scope.node, FUNCTIONS):
        return False
    reads = (node for node in work.scan.names.get(name.id, ()) if work.scan.scope_of(node) is scope)
    loads = [node for node in reads if begins(node) > ends(after)]
    if not loads or is_closed_over(work, name.id, scope) or not _is_fresh(work, name, after):
        return False
    bound = [binding.node for binding in scope.bindings.get(name.id, ())]
    stores = [node for node in bound if isinstance(node, ast.Name) and begins(node) > ends(after)]
    reached = False
    for load in by_place(loads):
        if reached and any(runs_before(statement(node), load) for node in stores):
            continue
        if not _reaches_softmax(work, load, call, depth + 1):
            return False
        above = parent(load)
        reached = reached or not (isinstance(above, ast.Attribute) and above.attr in _FACTS)
    return reached


def _is_fresh(work: Work, name: ast.Name, after: ast.stmt) -> bool:
    """True unless a loop brings the value of a statement back to a place above it."""
    loop = next((above for above in chain(after) if isinstance(above, (ast.For, ast.While, ast.AsyncFor))), None)
    if loop is None:
        return True
    scope = work.scan.scope_of(name)
    inside = [each.node for each in scope.bindings.get(name.id, ()) if loop in chain(each.node)]
    above = [
        load
        for load in work.scan.names.get(name.id, ())
        if loop in chain(load) and statement(load).lineno <= after.lineno
    ]
    return all(
        any(isinstance(store, ast.Name) and runs_before(statement(store), load) for store in inside) for load in above
    )


def _is_softmax_of(work: Work, call: ast.AST, node: ast.expr) -> bool:
    """True for a call of a softmax on a value: of torch, or a module that the class makes."""
    if not isinstance(call, ast.Call) or not call.args or call.args[0] is not node:
        return False
    if work.names.qualified(call.func) in _SOFTMAX:
        return True
    match call.func:
        case ast.Name() as func:
            value = held(work, func)
            made = [value.node] if value is not None and value.index is None else []
        case ast.Call() as func:
            made = [func]
        case func:
            made = attribute_values(work, func)
    return bool(made) and all(is_call_of(work, each, "torch.nn.Softmax") for each in made)
