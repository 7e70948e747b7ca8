"""Mixed precision and random state where no device is given and torch takes it to be CUDA.

`torch.amp.GradScaler()` and `torch.random.fork_rng()` have `cuda` as their default device: without a GPU the first
disables itself with a warning, the second leaves the state of the NPU alone. `torch.is_autocast_enabled()` without
a device asks CUDA (torch/amp/grad_scaler.py, torch/random.py, torch/csrc/autograd/init.cpp). The plain renames of
torch.cuda.amp are rules/amp.json.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import with_first, with_keyword, with_named
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.rules.versions import version_key
from transplt.syntax.nodes import inner_nodes, lacks, of_kind, place_in_block, shape
from transplt.syntax.scan import FUNCTIONS, parent

fixer = Fixer(__name__, code="NPU121", rank=230, needs=(b"GradScaler", b"fork_rng", b"autocast_enabled"),
              words=("gradscaler", "autocast_enabled", "fork_rng"))  # fmt: skip

SCALERS = frozenset({"torch.amp.GradScaler", "torch.GradScaler", "torch.amp.grad_scaler.GradScaler"})
FORK_RNG = frozenset({"torch.random.fork_rng"})
#: Scalers whose NPU twin has `dynamic` in front of `enabled`.
CUDA_SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"})
NPU_SCALERS = frozenset(
    f"{package}.npu.amp{module}.GradScaler" for package in ("torch", "torch_npu") for module in ("", ".grad_scaler")
)
#: Functions that take the device first from torch 2.4 on, and how many arguments they have without it.
STATE = {"torch.is_autocast_enabled": 0, "torch.set_autocast_enabled": 1}


@fixer.on(ast.Call, name=SCALERS)
def scaler_without_a_device(work: Work, call: ast.Call) -> Finds:
    if not (_brought_by_two(work, call.func) and (_names_the_older(work, call) or _lacks_the_newer(work))):
        yield from _default_device(work, call, "device", 0)


@fixer.on(ast.Call)
def scaler_of_either_import(work: Work, call: ast.Call) -> Finds:
    """Of a name that a condition imports from torch.cuda.amp or from torch.amp only a run says which it is."""
    if work.names.qualified(call.func) is not None or not _brought_by_two(work, call.func):
        return
    if lacks(call, "device", 0) is not False and not _names_the_older(work, call) and not _lacks_the_newer(work):
        full = "torch.amp.GradScaler"
        message = f"two imports bring this name; {full}, one of them, uses CUDA unless a device is given"
        help_ = 'import only torch.amp.GradScaler, and pass "npu" before its other arguments'
        yield work.note(call, "NPU122", message, api=full, help=help_)


@fixer.on(ast.Call, name=FORK_RNG)
def random_state_without_a_device(work: Work, call: ast.Call) -> Finds:
    yield from _default_device(work, call, "device_type", 4)


@fixer.on(ast.Call, name=STATE)
def state_of_autocast(work: Work, call: ast.Call) -> Finds:
    """`torch.is_autocast_enabled()` is CUDA's state; from torch 2.4 on the device may be named."""
    full = work.names.qualified(call.func) or ""
    positional, keywords, starred = shape(call)
    if starred or keywords or positional != STATE[full]:
        return
    if version_key(work.settings.torch_version) >= (2, 4):
        message = f'{full} without a device means CUDA: "npu" added'
        yield from _add(work, call, "NPU123", full, message, with_first('"npu"'))
        return
    yield work.note(
        call,
        "NPU123",
        f"{full} returns the state of CUDA in this version of torch",
        api=full,
        help=f"call torch.npu.{full.rpartition('.')[2]} instead",
    )


@fixer.on(ast.Call, name=("functools.partial", "partial"))
def partial_of_a_scaler(work: Work, call: ast.Call) -> Finds:
    full = work.names.qualified(call.args[0]) if call.args else None
    positional, keywords, starred = shape(call)
    if full not in SCALERS or positional > 1 or "device" in keywords or starred:
        return
    add = with_keyword("device", '"npu"')
    yield from _add(work, call, "NPU121", full, f'{full} without a device means CUDA: device="npu" added', add)


@fixer.on(ast.ClassDef)
def scaler_of_the_project(work: Work, node: ast.ClassDef) -> Finds:
    if any(work.names.qualified(base) in CUDA_SCALERS for base in node.bases):
        # `super().__init__(scale, growth, backoff, interval, enabled)`: the fifth place is `dynamic` on the NPU.
        for call in ast.walk(node):
            match call:
                case ast.Call(func=ast.Attribute(attr="__init__", value=ast.Call(func=ast.Name(id="super")))):
                    if shape(call)[0] > 4 and work.take(call):
                        message = "the fifth argument of torch.npu.amp.GradScaler is dynamic: enabled is given by name"
                        api = "torch.cuda.amp.GradScaler"
                        yield Edit(call, "NPU103", message, with_named(4, "enabled"), api=api)


def _brought_by_two(work: Work, func: ast.expr) -> bool:
    """True for a name that is imported from torch.amp and from torch.cuda.amp (torch.npu.amp), whose scaler takes no
    device: its first argument is the scale.
    """
    targets = {binding.target for binding in work.names.bindings_of(func)}
    return not targets.isdisjoint(SCALERS) and not targets.isdisjoint(CUDA_SCALERS | NPU_SCALERS)


def _lacks_the_newer(work: Work) -> bool:
    """True for a torch whose torch.amp has no scaler: the other import brings the name."""
    return version_key(work.settings.torch_version) < (2, 3)


def _names_the_older(work: Work, call: ast.Call) -> bool:
    """True where the code tells the two apart: it names a device in a call on the other side of a condition."""
    node: ast.AST = call
    while not isinstance(node, (ast.Module, *FUNCTIONS, ast.ClassDef)):
        if any(_names_a_device(work, each) for other in _instead_of(node) for each in ast.walk(other)):
            return True
        node = parent(node)
    return False


def _instead_of(node: ast.AST) -> list[ast.AST]:
    """What runs in place of a part of a condition, of a `try` or its handlers, or of what stands below a way out."""
    found: list[ast.AST] = []
    if isinstance(node, ast.stmt):
        block, index = place_in_block(node)
        left = of_kind(ast.If, block[:index])
        found += [each for each in left if isinstance(each.body[-1], (ast.Return, ast.Raise))]
    match parent(node):
        case ast.IfExp(test=test, body=body, orelse=other) if node is not test:
            found.append(other if node is body else body)
        case ast.If(body=block, orelse=others) if isinstance(node, ast.stmt):
            found += others if node in block else block
        case ast.Try(body=block, handlers=handlers):
            found += handlers if node in block else block
    return found


def _names_a_device(work: Work, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or lacks(node, "device", 0) is not False:
        return False
    known = work.names.qualified(node.func) in SCALERS or _brought_by_two(work, node.func)
    scale = bool(node.args) and isinstance(node.args[0], ast.Constant) and not isinstance(node.args[0].value, str)
    return known and not scale


def _default_device(work: Work, call: ast.Call, keyword: str, index: int) -> Finds:
    full = work.names.qualified(call.func) or ""
    missing = lacks(call, keyword, index)
    if missing is False:
        return
    if missing is None:
        yield work.note(
            call,
            "NPU122",
            f"{full} uses CUDA unless the starred arguments set another device",
            api=full,
            help=f'check that they contain {keyword}="npu"',
        )
        return
    add = with_first('"npu"') if index == 0 else with_keyword(keyword, '"npu"')
    yield from _add(work, call, "NPU121", full, f'{full} without a device means CUDA: {keyword}="npu" added', add)


def _add(work: Work, call: ast.Call, code: str, full: str, message: str, new: New) -> Finds:
    if _beside_other_device(call) or not work.take(call):
        return
    yield Edit(call, code, message, new, api=full, writes_npu=True)


def _beside_other_device(call: ast.Call) -> bool:
    """True in the branch of an `if` that asks for a device that is not CUDA (`if device == "cpu": GradScaler()`)."""
    node: ast.AST = call
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.If) and node in above.body:
            words = {n.value for n in inner_nodes(above.test, ast.Constant) if isinstance(n.value, str)}
            if words & {"cpu", "mps", "xpu"} and not any("cuda" in word for word in words):
                return True
        node = above
    return False
