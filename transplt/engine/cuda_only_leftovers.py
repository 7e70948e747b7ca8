"""Code for CUDA alone, in code that supports NPUs too, of which nothing is left to do: defaults, fallbacks, tests."""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit
from transplt.edits.work import Work
from transplt.flow.callees import PARSER_CALLS
from transplt.flow.gates.idle import sets_libraries
from transplt.program.program import enclosing_function
from transplt.syntax.nodes import argument_at, called_name, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, parent, statement

#: What is caught where a torch lacks a name that the `try` uses.
_LACKS = frozenset({"AttributeError", "TypeError", "ImportError", "ModuleNotFoundError"})
#: Parts of torch that take any device.
_NEUTRAL = ("torch.amp.", "torch.accelerator", "device_module")
#: The module of a device, whichever it is.
_BY_NAME = "getattr(torch, "
#: What returns without CUDA, and changes nothing.
_IDLE_WITHOUT_CUDA = frozenset({"torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.cuda.empty_cache"})
_VISIBLE, _VISIBLE_NPUS = "CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"
_OF_AMD = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_SKIPS = frozenset({"skipif", "skipIf", "skipUnless"})


def answered(work: Work, edit: Edit) -> str:
    """The name of the reason why code for CUDA needs nothing beside it; empty where that is not certain."""
    node = edit.node
    if _is_default(edit, node):
        return "default"
    if edit.api in _IDLE_WITHOUT_CUDA:  # the function around it makes the NPU's call as well
        calls = work.calls_by_name((edit.api.replace("torch.cuda.", "torch.npu."),))
        if any(enclosing_function(call) is enclosing_function(node) for call in calls):
            return "cuda-side"
    if edit.api.startswith("torch.profiler.") and not edit.api.endswith(".CUDA"):
        return "both"
    function = enclosing_function(node) if edit.api == _VISIBLE else None
    if function is not None and any(name in work.text(function) for name in _OF_AMD):  # where NVIDIA's are right too
        return "amd-names"
    if edit.api == _VISIBLE and _is_set_for_both(work, node):
        return "both"
    return _above(work, node)


def _is_set_for_both(work: Work, node: ast.AST) -> bool:
    """True where this statement or the next one sets the variable of NPUs too."""
    block, index = place_in_block(statement(node))
    texts = [work.text(each) for each in block[index : index + 2]]
    heads = {text.replace(_VISIBLE, _VISIBLE_NPUS).partition(" = ")[0] for text in texts}
    return _VISIBLE_NPUS in texts[0] or (len(texts) == 2 and len(heads) == 1)


def _above(work: Work, node: ast.AST) -> str:
    """What stands around a node and makes it needless."""
    while not isinstance(node, ast.Module):
        above = parent(node)
        match above:
            case ast.BoolOp(op=ast.And()) if _asks_and_misses(work, above):
                return "missing-cuda"
            case ast.If(test=test, orelse=[]) if node is test and sets_libraries(work.names, above.body):
                return "cuda-settings"
            case ast.IfExp(test=test, body=body, orelse=other) if node is other and _has_neutral(work, test, body):
                return "older-torch"
            case ast.If(test=test, body=block, orelse=others) if node in others and _has_neutral(work, test, *block):
                return "older-torch"
            case ast.Try() if isinstance(node, ast.ExceptHandler) and _lacks(work, above, node):
                return "older-torch"
        if isinstance(above, (*FUNCTIONS, ast.ClassDef)) and any(_skips(work, each) for each in above.decorator_list):
            return "cuda-test"
        node = above
    return ""


def _is_default(edit: Edit, node: ast.AST) -> bool:
    """True for a device that stands in for one that somebody gives: a default of a parameter, a flag, of getattr."""
    match parent(node):
        case ast.arguments():
            return edit.code == "NPU201"
        case ast.keyword(arg="default") as above:
            return called_name(parent(above)) in PARSER_CALLS
        case ast.Call(func=func, args=[*_, last]) as call if last is node:
            return (last_name(func), len(call.args)) in (("getattr", 3), ("get", 2))
    return False


def _asks_and_misses(work: Work, node: ast.BoolOp) -> bool:
    """`device == "cuda" and not torch.cuda.is_available()`: CUDA was asked for, and is not there."""
    asks = misses = False
    for each in node.values:
        match each:
            case ast.Compare(comparators=[*_, ast.Constant(value="cuda")]):
                asks = True
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                misses = misses or _asks_for_cuda(work, operand)
    return asks and misses


def _asks_for_cuda(work: Work, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and work.names.qualified(node.func) == "torch.cuda.is_available"


def _has_neutral(work: Work, test: ast.expr, *body: ast.AST) -> bool:
    """`hasattr(torch, "accelerator")` and the like, in front of what holds for every device."""
    return "hasattr" in work.text(test) and any(name in _text(work, each) for each in body for name in _NEUTRAL)


def _lacks(work: Work, node: ast.Try, handler: ast.ExceptHandler) -> bool:
    """A `try` of what holds for every device, and a handler for a torch that lacks it."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    if not all(each is not None and last_name(each) in _LACKS for each in caught):
        return False
    return any(name in _text(work, each) for each in node.body for name in (*_NEUTRAL, _BY_NAME))


def _skips(work: Work, node: ast.expr) -> bool:
    """`@pytest.mark.skipif(not torch.cuda.is_available())`, `@unittest.skipUnless(torch.cuda.is_available())`."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in _SKIPS:
        return False
    test = argument_at(node, 0, "condition")
    if last_name(node.func) != "skipUnless":
        test = test.operand if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) else None
    return test is not None and _asks_for_cuda(work, test)


def _text(work: Work, node: ast.AST) -> str:
    assert isinstance(node, (ast.expr, ast.stmt))
    return work.text(node)
