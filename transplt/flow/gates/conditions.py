"""Conditions on the device, and conditions that the user decides: what the parts of a condition are.

A gate asks whether there is a CUDA device, or whether a value is on one. A flag is a variable that may hold the answer
of one; an option is what the user asks for, or whether an import succeeded.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from transplt.flow.marks import DEVICE_NAME
from transplt.flow.slots import Slots
from transplt.syntax.names import SELF
from transplt.syntax.nodes import callee_of, is_none, last_name, own_nodes, string_of
from transplt.syntax.scan import chain

_AVAILABLE = ("torch.cuda.is_available", "torch.cuda.device_count", "torch.cuda.is_initialized")
#: What catches an import that fails.
CAUGHT = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
#: What catches a library that is not there, or does not load.
LOAD_FAILS = CAUGHT | {"OSError", "RuntimeError"}
#: Names under which programs keep their settings.
SETTINGS = frozenset(
    {"args", "opt", "opts", "cfg", "config", "hparams", "params", "FLAGS", "flags", "conf", "options", "hps"}
)
_CUDA_WORD = re.compile(r"cuda|gpu(?!s?_?mem)|on_device", re.I)
_OPTION_WORD = re.compile(
    r"(?:^|_)(?:has|have|use|with|enable|enabled|allow|want|try|do|no|not|is|fused|fuse|apex|flash|xformers|amp|fp16|half|bf16|"
    r"fp8|int8|triton|tensorrt|trt|onnx|dali|nvtx|profile|profiling|debug|verbose|compile|jit|deepspeed|horovod|"
    r"installed|support|supported|supports|available|avail|ok|version|found)(?:$|_)",
    re.I,
)
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")
_OUTSIDE = ("os.environ", "os.getenv", "sys.platform", "sys.version_info", "torch.__version__", "os.name", "platform.")


def is_gate(slots: Slots, node: ast.expr) -> bool:
    """True for a question that is true on CUDA only, by its own words."""
    match node:
        case ast.Attribute():
            return node.attr == "is_cuda"
        case ast.Call(func=ast.Attribute(attr="startswith"), args=[text, *_]):
            return _is_cuda(text)
        case ast.Call():
            return (slots.names.qualified(node.func) or "") in _AVAILABLE
        case ast.Compare(ops=[ast.Eq() | ast.Is() | ast.In()]):
            return _names_cuda(slots, node)
        case ast.NamedExpr():
            return is_gate(slots, node.value)
    return False


def denies_cuda(slots: Slots, node: ast.expr) -> bool:
    """True for a question that is false on CUDA only: `x.device.type != "cuda"`, `x.device.type == "cpu"`."""
    match node:
        case ast.Compare(ops=[ast.NotEq() | ast.IsNot() | ast.NotIn()]):
            return _names_cuda(slots, node)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
            return string_of(left) == "cpu" or string_of(right) == "cpu"
    return False


def _names_cuda(slots: Slots, node: ast.Compare) -> bool:
    for side, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
        elements = side.elts if isinstance(side, (ast.Tuple, ast.List, ast.Set)) else [side]
        if any(_is_cuda(element) for element in elements):
            return True
        if isinstance(other, ast.Constant) and isinstance(other.value, int) and isinstance(side, ast.Call):
            return is_gate(slots, side)  # `torch.cuda.device_count() > 0` is asked by its operands
    return False


def _is_cuda(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return text.startswith("cuda") and bool(DEVICE_NAME.fullmatch(text))
        case ast.Call(func=func, args=[name, *_]):
            return last_name(func) == "device" and (string_of(name) or "").startswith("cuda")
    return False


def speaks_of_cuda(node: ast.expr) -> bool:
    """True for a flag that says by its name that it stands for CUDA: `use_cuda`, `args.gpu`."""
    if isinstance(node, ast.Compare):
        return any(speaks_of_cuda(side) for side in (node.left, *node.comparators))
    return bool(_CUDA_WORD.search(last_name(callee_of(node))))


@lru_cache(maxsize=10_000)
def sounds_like_a_flag(name: str) -> bool:
    """True for the name of something that is true or false: `use_kernel`, `on_gpu`."""
    return bool(_CUDA_WORD.search(name) or _OPTION_WORD.search(name) or _CONSTANT.fullmatch(name))


def is_option(slots: Slots, node: ast.expr) -> bool:
    """True for what the user decides, or the machine that the program was installed on: not for data."""
    if isinstance(node, ast.NamedExpr):
        return is_option(slots, node.value)
    if isinstance(node, ast.Compare):
        if any(map(is_none, node.comparators)):
            return _is_import_or_option(slots, node.left)
        return any(_is_setting(slots, side) for side in (node.left, *node.comparators))
    return _is_setting(slots, node) or (
        isinstance(node, (ast.Name, ast.Attribute)) and _is_import_or_option(slots, node)
    )


#: Nodes without names in them; contexts and operators are children, too.
_NOTHING_INSIDE = frozenset({ast.Constant, ast.Load, ast.Eq, ast.NotEq, ast.Not, ast.And, ast.Or, ast.Is, ast.IsNot})


def _is_setting(slots: Slots, node: ast.expr) -> bool:
    name = last_name(node.func) if isinstance(node, ast.Call) else last_name(node)
    if name and (_OPTION_WORD.search(name) or _CONSTANT.fullmatch(name)):
        return True
    stack: list[ast.AST] = [node]
    while stack:
        inner = stack.pop()
        if isinstance(inner, ast.Name):
            if inner.id in SETTINGS:
                return True
        elif isinstance(inner, ast.Attribute):
            if inner.attr in SETTINGS and isinstance(inner.value, ast.Name) and inner.value.id in SELF:
                return True
            if (slots.names.qualified(inner) or "").startswith(_OUTSIDE):
                return True
            stack.append(inner.value)
        elif type(inner) not in _NOTHING_INSIDE:
            stack += ast.iter_child_nodes(inner)
    return False


def _is_import_or_option(slots: Slots, node: ast.expr) -> bool:
    """A name that an import which may fail has bound, or one that is None until somebody sets it."""
    if not isinstance(node, ast.Name):
        return _is_setting(slots, node)
    bindings = slots.names.bindings_of(node)
    return bool(bindings and _is_setting(slots, node)) or any(
        binding.kind == "import" or any(isinstance(above, ast.Try) for above in chain(binding.node))
        for binding in bindings
    )


def goes_on_without(node: ast.AST, caught: frozenset[str] = CAUGHT) -> bool:
    """True for a `try` that has another way where what it holds raises one of some errors: no handler of them raises
    again or leaves.
    """
    return any(_goes_on(handler, caught) for handler in getattr(node, "handlers", ()))


def _goes_on(handler: ast.ExceptHandler, caught: frozenset[str]) -> bool:
    """True for `except ImportError` that cannot raise again or leave."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {last_name(kind) for kind in kinds if kind is not None}
    if handler.type is not None and not names & caught:
        return False
    for node in own_nodes(handler):
        if isinstance(node, ast.Raise):
            return False
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and last_name(call.func) in ("exit", "_exit"):
            return False
    return True
