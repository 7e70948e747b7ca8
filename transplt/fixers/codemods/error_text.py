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
from transplt.edits.trees.displays import with_twin
from transplt.edits.trees.expressions import compared_with
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.syntax.nodes import attribute_of, last_name, of_kind, plain_name, string_of
from transplt.syntax.scan import parent

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
            f"the code searches for an error message of CUDA: {value!r}",
            help="torch_npu and CANN have other error messages (with codes such as ERR00100 or EE9999): also search "
                 "for the corresponding one",
            effort=Effort.LOW,
        )


def _is_needle(node: ast.expr) -> bool:
    """True where a string is compared or searched for."""
    above = parent(node)
    while isinstance(above, (ast.Tuple, ast.List, ast.Set, ast.BoolOp)):
        node, above = above, parent(above)
    match above:
        case ast.Compare() | ast.keyword(arg="match"):
            return True
        case ast.For(iter=each) | ast.comprehension(iter=each):
            return each is node
        case ast.Call(func=ast.Attribute(attr=method), args=args):
            return node in args and method in _LOOKS
    return False


def _word_in_error(work: Work, node: ast.Constant) -> bool:
    """`"CUDA" in str(error)`: a bare word that is looked for in the text of an exception."""
    above = parent(node)
    if not isinstance(above, ast.Compare) or above.left is not node or str(node.value).strip().lower() not in _WORDS:
        return False
    found: ast.AST = above.comparators[0]
    while True:
        match found:
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[inner]):
                found = inner
            case ast.Call(func=inner) | ast.Attribute(value=inner) | ast.Subscript(value=inner):
                found = inner
            case ast.Name(id="error" | "err" | "exc" | "exception"):
                return True
            case _:
                return any(isinstance(each.node, ast.ExceptHandler) for each in work.names.bindings_of(found))


def _word_of_memory(work: Work, node: ast.Constant) -> bool:
    """`"CUDA" in text and "out of memory" in text`: the word gets its partner, the rest holds for both."""
    above = parent(node)
    match above, parent(above):
        case ast.Compare(ops=[ast.In(), *_]) as asked, ast.BoolOp(op=ast.And()) as both:
            others = any(each is not asked for each in _of_memory(both)[:2])
            plain = work.text(node).lower().count("cuda") == 1
            return others and _word_in_error(work, node) and _repeatable(asked) and plain
    return False


def _of_memory(condition: ast.BoolOp) -> list[ast.expr]:
    """The parts of a condition that look for "out of memory"; every other part asks for them."""
    known: list[ast.expr] | None = condition.__dict__.get("_of_memory")
    if known is None:
        known = condition.__dict__["_of_memory"] = [
            each for each in of_kind(ast.Compare, condition.values)
            if isinstance(each.left, ast.Constant)
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
    elif plain and _is_prefix(node) and work.take(node):
        yield work.keep(node, _PARTNER)
        yield _for_both(node, f"({text}, {new})", new)
    elif _is_needle(node) and work.take(node):
        yield work.note(
            node,
            "NPU230",
            "the code searches for CUDA's out-of-memory message",
            help=f"torch_npu's message is {new}: search for both",
            effort=Effort.LOW,
        )


def _has_partner(node: ast.expr) -> bool:
    """True where a text that names the NPU is looked for beside this one."""
    others: list[ast.expr] = []
    match parent(node):
        case ast.Tuple(elts=others) | ast.List(elts=others) | ast.Set(elts=others):
            pass
        case ast.Compare() as above if isinstance(over := parent(above), ast.BoolOp):
            others = [value.left for value in of_kind(ast.Compare, over.values)]
    return any("npu" in (string_of(each) or "").lower() for each in others)


def _for_both(node: ast.expr, new: New, text: str) -> Edit:
    message = f"{text} is also searched for: torch_npu's out-of-memory message"
    return Edit(node, "NPU230", message, new, api="out of memory")


# --- "CUDA out of memory" in str(error) ------------------------------------------------------------------------------


def _repeatable(compare: ast.Compare) -> bool:
    """True for `needle in text` where the text may be computed twice."""
    if len(compare.ops) != 1 or not isinstance(compare.ops[0], (ast.In, ast.NotIn)):
        return False
    stack = [compare.comparators[0]]
    while stack:
        match stack.pop():
            case ast.Call(func=func, args=args, keywords=[]) if last_name(func) in _PURE:
                stack += [*args, func]
            case ast.Attribute(value=value) | ast.Subscript(value=value):
                stack.append(value)
            case ast.Name() | ast.Constant():
                pass
            case _:
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
    match parent(compare):
        case ast.BoolOp(op=op):
            return isinstance(op, ast.Or if both == "or" else ast.And)
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
            return test is compare
        case ast.Return() | ast.Assign():
            return True
    return False


# --- lists of messages, startswith -----------------------------------------------------------------------------------


def _searched(work: Work, display: ast.List) -> bool:
    """True for a list of texts each of which is looked for in something: `any(m in str(e) for m in [...])`."""
    match parent(display):
        case ast.For(iter=each) | ast.comprehension(iter=each) as loop if each is display:
            return _target_is_needle(work, loop)
        case ast.Assign(targets=[ast.Name(id=name)]):
            loops = [parent(read) for read in work.scan.names.get(name, ())]
            return any(isinstance(at, (ast.For, ast.comprehension)) and _target_is_needle(work, at) for at in loops)
    return False


def _target_is_needle(work: Work, loop: ast.For | ast.comprehension) -> bool:
    for read in work.scan.names.get(plain_name(loop.target), ()):
        match parent(read):
            case ast.Compare(left=left, ops=[ast.In(), *_]) if left is read:
                return True
    return False


def _is_prefix(node: ast.expr) -> bool:
    above = parent(node)
    return isinstance(above, ast.Call) and above.args == [node] and attribute_of(above.func) == "startswith"
