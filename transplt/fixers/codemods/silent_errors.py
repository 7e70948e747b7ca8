"""Operators that are known to give wrong numbers on an NPU without an error, where the code meets their condition.

Facts: rules/support/silent_errors.json, each from a public thread. A row is told once for a file, at its first place.
`pattern` of a row names one of the functions below, which say whether a call stands in code of that form.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import takewhile

from transplt.base.finding import Level
from transplt.base.grouped import grouped
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.rules.silent_errors import CODE, Given, SilentError, holds, silent_errors
from transplt.syntax.nodes import (
    argument_at,
    by_place,
    ends,
    hides_arguments,
    inner_nodes,
    keyword_of,
    of_kind,
    string_of,
)
from transplt.syntax.scan import chain, parent

#: A text of each operator that is told of: of those of Triton the name of the package.
_WORDS = (
    "triton", "npu_fused_infer_attention_score", "flag_gems", "graph", "mindiesd", "_native_npu_attention",
    "sdpa_attention_forward", "flash_attn_npu", "bgmv_expand_slice", "return_indices",
)  # fmt: skip
fixer = Fixer(
    __name__, code=CODE, edits=False, needs=tuple(word.encode() for word in _WORDS),
    words=tuple(w for w in _WORDS if w != "graph"),
)  # fmt: skip
_TRITON = "triton.language."
_REDUCTIONS = frozenset(f"{_TRITON}{name}" for name in ("sum", "max", "min", "argmax", "argmin", "cumsum", "dot"))
_GRAPHS = frozenset({"torch.npu.graph", "torch_npu.npu.graph", "torch.cuda.graph"})
_HALVES = frozenset({"fp16", "bf16"})
#: Tensors that an operator of torch_npu takes by position before anything that a test asks for.
_LEADING = 3
_MOST_LINES = 5


@fixer.on(ast.Module)
def silent(work: Work, module: ast.Module) -> Finds:
    """Report each row that the file meets."""
    for row in silent_errors():
        if row.check == "never":
            continue
        met = by_place(_affected(work, row))
        if not met:
            continue
        called = work.names.qualified(met[0].func if isinstance(met[0], ast.Call) else met[0])
        name = called if called in row.operators else row.operators[0]
        lines = list(dict.fromkeys(node.lineno for node in met[1:] if node.lineno != met[0].lineno))
        shown = ", ".join(map(str, lines[:_MOST_LINES])) + (" ..." if len(lines) > _MOST_LINES else "")
        also = f" (also in {'line' if len(lines) == 1 else 'lines'} {shown})" if lines else ""
        message = f"{name} is known to give wrong results without an error: {row.text()}{also}"
        more = row.more()
        help_text = f"{row.do}; {row.source}" + (f" ({more})" if more else "")
        yield work.note(met[0], CODE, message, level=Level.INFO, api=name, help=help_text)


def _affected(work: Work, row: SilentError) -> Iterator[ast.Call | ast.AugAssign]:
    if row.pattern == "augmented-assignment-in-with":
        for call in work.calls_by_name(_GRAPHS):  # `x += y` in a block that is captured as a graph
            block = parent(parent(call))
            inside = (node for each in block.body for node in ast.walk(each)) if isinstance(block, ast.With) else ()
            yield from of_kind(ast.AugAssign, inside)
        return
    for call in work.calls_by_name(row.operators):
        if row.pattern:
            if _PATTERNS[row.pattern](work, call):
                yield call
        else:
            answer = holds(row, lambda name, call=call: _argument_by_name(call, name)) if row.when else True  # type: ignore[misc]
            if answer is True or (answer is None and row.check == "maybe"):
                yield call


def _argument_by_name(call: ast.Call, name: str) -> Given | None:
    """What the source says of an argument that is given by its name."""
    value = keyword_of(call, name)
    if value is None:
        return Given() if hides_arguments(call) or len(call.args) > _LEADING else None
    return Given(known=True, value=value.value) if isinstance(value, ast.Constant) else Given()


# --- patterns: True where a call stands in code of that form ---------------------------------------------------------


def _left_operand_used_again(work: Work, call: ast.Call) -> bool:
    """The tile is read behind `tl.dot`, or in the next round of a loop, before it is set anew."""
    tile = argument_at(call, 0, "input")
    function = _kernel(call)
    if not isinstance(tile, ast.Name) or function is None:
        return False
    uses = work.once(_names_in, function).get(tile.id, [])
    stored = _target(call) == tile.id  # the statement itself sets it, after it was read
    later = [node for node in uses if (node.lineno, node.col_offset) >= ends(call)]
    if later and not stored and isinstance(later[0].ctx, ast.Load):
        return True
    inside = takewhile(lambda each: each is not function, chain(call))
    loop = next((each for each in inside if isinstance(each, (ast.For, ast.While))), None)
    return loop is not None and not any(isinstance(node.ctx, ast.Store) and loop in chain(node) for node in uses)


def _load_after_store(work: Work, call: ast.Call) -> bool:
    """`tl.load` of an address that `tl.store` wrote before it in the kernel, with nothing of it set between them."""
    function = _kernel(call)
    address = argument_at(call, 0, "pointer")
    if function is None or address is None:
        return False
    names = {node.id for node in inner_nodes(address, ast.Name)}
    for store in _calls(work, function, f"{_TRITON}store"):
        written = argument_at(store, 0, "pointer")
        if written is None or ends(store) > (call.lineno, call.col_offset):
            continue
        if work.once(_text, written) != work.once(_text, address):
            continue
        between = (node for name in names for node in work.once(_names_in, function).get(name, ()))
        if not any(
            isinstance(node.ctx, ast.Store) and ends(store) <= (node.lineno, node.col_offset) <= ends(call)
            for node in between
        ):
            return True
    return False


def _mask_without_other(work: Work, call: ast.Call) -> bool:
    """A masked load whose other lanes come into a reduction or a product of the same kernel, as they are."""
    masked = keyword_of(call, "mask") is not None or len(call.args) > 1
    if not masked or keyword_of(call, "other") is not None or len(call.args) > 2:
        return False
    name, function = _target(call), _kernel(call)
    return bool(name) and function is not None and name in work.once(_given_to, _REDUCTIONS).get(function, ())


def _flip_of_cumsum(work: Work, call: ast.Call) -> bool:
    given = call.args[0] if call.args else None
    if isinstance(given, ast.Call):
        return work.names.qualified(given.func) == f"{_TRITON}cumsum"
    function = _kernel(call)
    if not isinstance(given, ast.Name) or function is None:
        return False
    return any(_target(each) == given.id for each in _calls(work, function, f"{_TRITON}cumsum"))


def _half_precision_signature(work: Work, call: ast.Call) -> bool:
    signature = keyword_of(call, "signature")
    return isinstance(signature, ast.Dict) and any(string_of(value) in _HALVES for value in signature.values)


_PATTERNS: dict[str, Callable[[Work, ast.Call], bool]] = {
    "result-used": lambda _, call: not isinstance(parent(call), ast.Expr),
    "left-operand-used-again": _left_operand_used_again,
    "load-after-store": _load_after_store,
    "mask-without-other": _mask_without_other,
    "flip-of-cumsum": _flip_of_cumsum,
    "half-precision-signature": _half_precision_signature,
}


# --- questions about a kernel ----------------------------------------------------------------------------------------


def _kernel(node: ast.AST) -> ast.FunctionDef | None:
    """The function that a call stands in."""
    return next(of_kind(ast.FunctionDef, chain(node)), None)


def _names_in(_work: Work, function: ast.FunctionDef) -> dict[str, list[ast.Name]]:
    """Where a function reads and writes each name, by place."""
    found = grouped((node.id, node) for node in of_kind(ast.Name, ast.walk(function)))
    return {name: by_place(nodes) for name, nodes in found.items()}


def _text(_work: Work, node: ast.expr) -> str:
    return ast.dump(node)


def _calls(work: Work, function: ast.FunctionDef, name: str) -> list[ast.Call]:
    return work.once(_by_kernel, frozenset({name})).get(function, [])


def _by_kernel(work: Work, names: frozenset[str]) -> dict[ast.FunctionDef | None, list[ast.Call]]:
    return grouped((_kernel(call), call) for call in work.calls_by_name(names))


def _target(call: ast.Call) -> str:
    """The name that a statement gives the result of a call, alone or cast (`x = tl.load(...).to(...)`); else empty."""
    above = parent(call)
    while isinstance(above, (ast.Attribute, ast.Call)):
        above = parent(above)
    match above:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _given_to(work: Work, names: frozenset[str]) -> dict[ast.FunctionDef | None, set[str]]:
    """The names that the calls of some functions are given, by the function around them."""
    return {
        function: {each.id for call in calls for each in of_kind(ast.Name, call.args)}
        for function, calls in _by_kernel(work, names).items()
    }
