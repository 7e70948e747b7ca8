"""Error text compared at run time: the needle that finds "CUDA out of memory" finds the NPU's message too.

The allocator of torch_npu says "NPU out of memory. Tried to allocate ..." in every version
(Ascend/pytorch, torch_npu/csrc/core/npu/NPUCachingAllocator.cpp): as RuntimeError up to torch 2.5, as
torch.OutOfMemoryError from 2.6 on. Other errors of CUDA have no text that corresponds word for word.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort
from transplt.base.text.lexer import one_plain_literal
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.syntax.asks import last_name
from transplt.syntax.scan import parent
from transplt.trees.displays import with_twin
from transplt.trees.expressions import compared_with
from transplt.trees.transform import New

fixer = Fixer(__name__, code="NPU230", rank=530)

_PARTNER = "text-beside"

_MEMORY = re.compile(r"\W*(?:RuntimeError: )?(cuda)(?: runtime)? out of memory\W*(?:tried to allocate\W*)?", re.I)
_ERROR = re.compile(
    r"(?:cuda|cudnn|cublas|nccl|nvml|cufft|cusparse|cusolver)[\s_]*(?:runtime |driver |internal |unhandled )*"
    r"(?:error|out of memory|status_\w+)|CUDNN_STATUS_|CUBLAS_STATUS_|ncclUnhandledCudaError|ncclSystemError|"
    r"ncclInternalError|CUDA_LAUNCH_BLOCKING|cudaError\w*|CUDA_ERROR_\w+",
    re.I,
)
_LOOKS = frozenset(
    {"find", "rfind", "index", "count", "search", "match", "fullmatch", "findall", "compile", "startswith", "endswith"}
)
_WORDS = ("cuda", "nccl", "cudnn", "cublas")
#: Calls that only give text another form, so that a second evaluation costs nothing and changes nothing.
_PURE = frozenset({"str", "repr", "lower", "upper", "strip", "rstrip", "lstrip", "format_exc", "casefold"})


@fixer.on(ast.Constant)
def looked_for(work: Work, node: ast.Constant) -> Finds:
    """Look at a string that holds an error message of CUDA and stands in a comparison."""
    value = str(node.value)
    if id(node) in work.taken or len(value) > 120 or isinstance(parent(node), (ast.JoinedStr, ast.Expr)):
        return
    if (matched := _MEMORY.fullmatch(value)) is not None:
        yield from _memory(work, node, matched.group(1))
    elif _word_of_memory(work, node) and work.take(node):
        above = parent(node)
        assert isinstance(above, ast.Compare)
        yield work.keep(node, _PARTNER)
        yield _compared(work, above, work.text(node).replace("CUDA", "NPU").replace("cuda", "npu"))
    elif ((_ERROR.search(value) and _is_needle(node)) or _word_in_error(work, node)) and work.take(node):
        yield work.note(
            node,
            "NPU231",
            f"the code looks for an error message of CUDA: {value!r}",
            help="errors of torch_npu and CANN have other texts (with codes such as ERR00100 or EE9999): "
            "also look for the corresponding text",
            effort=Effort.LOW,
        )


def _is_needle(node: ast.expr) -> bool:
    """True where a string is compared or searched for."""
    above = parent(node)
    while isinstance(above, (ast.Tuple, ast.List, ast.Set, ast.BoolOp)):
        node, above = above, parent(above)
    if isinstance(above, ast.Compare):
        return True
    if isinstance(above, (ast.For, ast.comprehension)):
        return above.iter is node
    if isinstance(above, ast.keyword):
        return above.arg == "match"
    if isinstance(above, ast.Call) and node in above.args and isinstance(above.func, ast.Attribute):
        return above.func.attr in _LOOKS
    return False


def _word_in_error(work: Work, node: ast.Constant) -> bool:
    """`"CUDA" in str(error)`: a bare word that is looked for in the text of an exception."""
    above = parent(node)
    if not isinstance(above, ast.Compare) or above.left is not node or str(node.value).strip().lower() not in _WORDS:
        return False
    found: ast.AST = above.comparators[0]
    while isinstance(found, (ast.Call, ast.Attribute, ast.Subscript)):
        if isinstance(found, ast.Call):
            texts = isinstance(found.func, ast.Name) and found.func.id in ("str", "repr") and len(found.args) == 1
            found = found.args[0] if texts else found.func
        else:
            found = found.value
    if not isinstance(found, ast.Name):
        return False
    if found.id in ("error", "err", "exc", "exception"):
        return True
    known = work.names.lookup(found.id, work.scan.scope_of(found))
    return known is not None and any(isinstance(binding.node, ast.ExceptHandler) for binding in known[1])


def _word_of_memory(work: Work, node: ast.Constant) -> bool:
    """`"CUDA" in text and "out of memory" in text`: the word gets its partner, the rest holds for both."""
    above = parent(node)
    over = parent(above)
    if not isinstance(above, ast.Compare) or not isinstance(over, ast.BoolOp) or not isinstance(over.op, ast.And):
        return False
    of_memory = _of_memory(over)
    if all(each is above for each in of_memory[:2]) or not _word_in_error(work, node) or not _repeatable(above):
        return False
    return isinstance(above.ops[0], ast.In) and work.text(node).lower().count("cuda") == 1


def _of_memory(condition: ast.BoolOp) -> list[ast.expr]:
    """The parts of a condition that look for "out of memory"; every other part asks for them."""
    known: list[ast.expr] | None = condition.__dict__.get("_of_memory")
    if known is None:
        known = condition.__dict__["_of_memory"] = [
            each for each in condition.values
            if isinstance(each, ast.Compare) and isinstance(each.left, ast.Constant)
            and "out of memory" in str(each.left.value).lower()
        ]  # fmt: skip
    return known


def _memory(work: Work, node: ast.Constant, word: str) -> Finds:
    """The text of an error when memory runs out: that of the NPU is looked for beside it."""
    above = parent(node)
    text = work.text(node)
    plain = one_plain_literal(text, [word])
    new = text.replace(word, "NPU" if word.isupper() else "npu")
    if _has_partner(node):
        if work.take(node):
            yield work.keep(node, _PARTNER)
    elif plain and isinstance(above, ast.Compare) and above.left is node and _repeatable(above) and work.take(node):
        yield work.keep(node, _PARTNER)
        yield _compared(work, above, new)
    elif plain and isinstance(above, ast.List) and node in above.elts and _searched(work, above) and work.take(node):
        yield work.keep(node, _PARTNER)
        yield _for_both(above, with_twin(text, new), new)
    elif plain and _starts(node) and work.take(node):
        yield work.keep(node, _PARTNER)
        yield _for_both(node, f"({text}, {new})", new)
    elif _is_needle(node) and work.take(node):
        yield work.note(
            node,
            "NPU230",
            "the code looks for the text of CUDA's out of memory error",
            help=f"torch_npu says {new}: look for both",
            effort=Effort.LOW,
        )


def _has_partner(node: ast.expr) -> bool:
    """True where a text that names the NPU is looked for beside this one."""
    above = parent(node)
    others: list[ast.expr] = []
    if isinstance(above, (ast.Tuple, ast.List, ast.Set)):
        others = above.elts
    elif isinstance(above, ast.Compare):
        over = parent(above)
        values = over.values if isinstance(over, ast.BoolOp) else []
        others = [value.left for value in values if isinstance(value, ast.Compare)]
    return any(isinstance(o, ast.Constant) and isinstance(o.value, str) and "npu" in o.value.lower() for o in others)


def _for_both(node: ast.expr, new: New, text: str) -> Edit:
    message = f"{text} is also looked for: the out of memory text of torch_npu"
    return Edit(node, "NPU230", message, new, api="out of memory")


# --- "CUDA out of memory" in str(error) ------------------------------------------------------------------------------


def _repeatable(compare: ast.Compare) -> bool:
    """True for `needle in text` where the text may be computed twice."""
    if len(compare.ops) != 1 or not isinstance(compare.ops[0], (ast.In, ast.NotIn)):
        return False
    stack: list[ast.AST] = [compare.comparators[0]]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call):
            func = node.func
            last = last_name(func)
            if last not in _PURE or node.keywords:
                return False
            stack += [*node.args, func]
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            stack.append(node.value)
        elif not isinstance(node, (ast.Name, ast.Constant)):
            return False
    return True


def _compared(work: Work, compare: ast.Compare, new: str) -> Edit:
    both = "or" if isinstance(compare.ops[0], ast.In) else "and"
    (start, end), utf8 = work.source.extent(compare), work.source.utf8
    bracketed = utf8[start - 1 : start] == b"(" and utf8[end : end + 1] == b")"
    brackets = not (_stands_alone(compare, both) or bracketed)
    return _for_both(compare, compared_with(new, both, brackets=brackets), new)


def _stands_alone(compare: ast.Compare, both: str) -> bool:
    """True where an `or` (an `and`) needs no brackets of its own."""
    above = parent(compare)
    if isinstance(above, ast.BoolOp):
        return isinstance(above.op, ast.Or if both == "or" else ast.And)
    if isinstance(above, (ast.If, ast.While, ast.Assert)):
        return above.test is compare
    return isinstance(above, (ast.Return, ast.Assign))


# --- lists of messages, startswith -----------------------------------------------------------------------------------


def _searched(work: Work, display: ast.List) -> bool:
    """True for a list of texts each of which is looked for in something: `any(m in str(e) for m in [...])`."""
    above = parent(display)
    if isinstance(above, (ast.For, ast.comprehension)) and above.iter is display:
        return _target_is_needle(work, above)
    if isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name):
        name = above.targets[0].id
        loops = [parent(read) for read in work.scan.names.get(name, ())]
        return any(isinstance(loop, (ast.For, ast.comprehension)) and _target_is_needle(work, loop) for loop in loops)
    return False


def _target_is_needle(work: Work, loop: ast.For | ast.comprehension) -> bool:
    if not isinstance(loop.target, ast.Name):
        return False
    for read in work.scan.names.get(loop.target.id, ()):
        above = parent(read)
        if isinstance(above, ast.Compare) and above.left is read and isinstance(above.ops[0], ast.In):
            return True
    return False


def _starts(node: ast.expr) -> bool:
    above = parent(node)
    if not (isinstance(above, ast.Call) and above.args == [node] and isinstance(above.func, ast.Attribute)):
        return False
    return above.func.attr == "startswith"
