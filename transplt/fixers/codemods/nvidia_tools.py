"""nvidia-smi, the execution provider of ONNX Runtime for CUDA, EGL: things of NVIDIA that are named in strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.destinations import places
from transplt.flow.device_strings import whole_value
from transplt.flow.gates.conditions import goes_on_without
from transplt.syntax.nodes import by_place, index_in, inner_nodes, of_kind
from transplt.syntax.scan import FUNCTIONS, chain, parent

#: Variables that choose how MuJoCo, dm_control and pyrender draw.
_RENDERERS = ("MUJOCO_GL", "PYOPENGL_PLATFORM")

fixer = Fixer(__name__, code="NPU245", rank=510, words=_RENDERERS)

_COMMAND = re.compile(r"(?:^|[\s/\\;|&`(])nvidia-smi(?:\.exe)?(?=$|[\s;|&`)])")
_PROVIDER = "CUDAExecutionProvider"
#: What starting a program that is not installed raises, and what catches it.
_MISSING = frozenset({"FileNotFoundError", "OSError", "EnvironmentError", "Exception", "BaseException"})
_HELP = (
    "npu-smi info lists the cards in another format; torch.npu.mem_get_info, torch.npu.utilization and "
    "torch.npu.get_device_name give most of it in Python"
)


#: What the name of a card is held in.
_NAME = re.compile(r"name|vendor", re.I)
#: So many callers are gone up.
_CALLERS = 3


@fixer.on(ast.Constant)
def named_in_a_string(work: Work, node: ast.Constant) -> Finds:
    """Report commands of NVIDIA that are run, and providers that are asked for."""
    if node.value == _PROVIDER:
        if not isinstance(parent(node), ast.Expr) and work.take(node):
            yield work.note(
                node,
                "NPU246",
                f"{_PROVIDER} needs an NVIDIA card; ONNX Runtime has CANNExecutionProvider for NPUs",
                api=_PROVIDER,
                help="install onnxruntime-cann and name CANNExecutionProvider. Keep the options device_id and "
                     "arena_extend_strategy, rename gpu_mem_limit to npu_mem_limit, and remove those of cuDNN",
                effort=Effort.LOW,
            )
    elif "nvidia-smi" in str(node.value):
        yield from _command(work, node)


@fixer.on(ast.Module)
def rendered_by_the_driver(work: Work, tree: ast.Module) -> Finds:
    """Report `os.environ["MUJOCO_GL"] = "egl"`: dm_control opens such a device as it is imported (egl_renderer.py)."""
    wanted = [name for name in _RENDERERS if name.encode() in work.source.utf8]
    reads = (each for attr in ("environ", "getenv") for each in work.scan.attributes.get(attr, ()) if wanted)
    statements = by_place({next(of_kind(ast.stmt, chain(each))) for each in reads})
    for statement in (each for each in statements if not hasattr(each, "body")):
        texts = {each.value: each for each in inner_nodes(statement, ast.Constant)}
        for name in (each for each in wanted if each in texts and "egl" in texts):
            yield work.note(
                texts[name],
                "NPU221",
                f"{name}=egl opens a device of the graphics driver, which a host with NPUs has only from Mesa",
                api=name,
                help=f"install Mesa's EGL (apt-get install libegl1 libegl-mesa0), or set {name}=osmesa and install "
                "libosmesa6: both draw on the CPU",
                blocks="import",
                details=(("condition", "hosts without Mesa's EGL"),),
            )


def _command(work: Work, node: ast.Constant) -> Finds:
    above = parent(node)
    outer: ast.expr = above if isinstance(above, ast.JoinedStr) else node
    if not _COMMAND.search(whole_value(outer)) or id(outer) in work.taken or isinstance(parent(outer), ast.Expr):
        return
    kinds = {place.kind for place in places(work.slots, outer)}
    if kinds == {"prose"} or kinds & {"key", "row", "named"} or not work.take(outer):
        return
    if _is_for_nvidia(work, outer, _CALLERS):
        message = "nvidia-smi is an NVIDIA program; it is only started if the card is from NVIDIA"
        yield work.note(outer, "NPU245", message, api="nvidia-smi", level=Level.INFO)
        return
    message, blocks = "nvidia-smi is an NVIDIA program", ""
    call = parent(outer)  # of an os.system that nobody asks how it ended: the shell says that there is no such program
    of_a_shell = isinstance(call, ast.Call) and work.names.qualified(call.func) == "os.system"
    unread = of_a_shell and isinstance(parent(call), ast.Expr)
    if unread or any(goes_on_without(above, _MISSING) for above in tries_around(outer)):
        message, blocks = f"{message}; the program also runs without it", "tidy"
    yield work.note(outer, "NPU245", message, api="nvidia-smi", help=_HELP, effort=Effort.MEDIUM, blocks=blocks)


def tries_around(node: ast.AST) -> Iterator[ast.Try]:
    """Each `try` in whose body a node stands, up to its function."""
    inside = takewhile(lambda each: not isinstance(each, FUNCTIONS), chain(node))
    for below, above in pairwise([node, *inside]):
        if isinstance(above, ast.Try) and below in above.body:
            yield above


def _is_for_nvidia(work: Work, node: ast.AST, callers: int) -> bool:
    """True for what stands behind `if "nvidia" in name:`, or in a function that its file alone calls, and only there.

    The name of an NPU is that of a chip of Ascend: such a branch is never taken.
    """
    while not isinstance(node, ast.Module):
        above = parent(node)
        if isinstance(above, ast.If) and index_in(above, "body", node) >= 0 and _says_nvidia(above.test):
            return True
        match node, above:
            case ast.FunctionDef(name=name, decorator_list=decorators), ast.Module():
                taken = work.project.aside.taken.get(work.scan.path, frozenset())
                uses = work.scan.names.get(name, [])
                if not callers or not uses or taken & {"*", name} or decorators:
                    return False
                return all(isinstance(use.ctx, ast.Load) and _is_for_nvidia(work, use, callers - 1) for use in uses)
        node = above
    return False


def _says_nvidia(test: ast.expr) -> bool:
    match test:
        case ast.Compare(
            left=ast.Constant(value=str() as word),
            ops=[ast.In()],
            comparators=[ast.Name() | ast.Attribute() | ast.Call() as text],
        ):
            return "nvidia" in word.lower() and _NAME.search(ast.unparse(text)) is not None
    return False
