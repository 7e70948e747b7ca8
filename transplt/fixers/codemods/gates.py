"""Gates: what a program asks about the GPU before it decides, where the answer of an NPU means something else.

Renames that carry the meaning over (`is_available`, `device_count`, `is_bf16_supported`) are in the tables; so are the
findings for names that have no counterpart. Here is what needs the place: whether an answer is only shown, and
what is done with the properties and the name of a device.
"""

from __future__ import annotations

import ast
import re

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Note
from transplt.edits.fixer import Fixer
from transplt.edits.trees.expressions import module_named
from transplt.edits.work import Work
from transplt.flow.only_shown import only_shown
from transplt.syntax.nodes import call_of, called_name, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, chain, parent

fixer = Fixer(__name__, code="NPU241", rank=300)

_CAPABILITY = "torch.cuda.get_device_capability"
#: What a message says of an answer without which the program does not go on.
RAISES = "and its use here raises an error"
_PROPERTIES = "torch.cuda.get_device_properties"
_NAME = "torch.cuda.get_device_name"
#: Attributes of device properties without a value on NPU, and what to ask instead.
#: Ascend/pytorch, torch_npu/csrc/npu/Module.cpp of all release branches: up to 2.4 they do not exist at all; later they
#: are None, but for multi_processor_count in 2.6, 2.8 and 2.13, which is the number of vector cores.
_CORES = "use vector_core_num or cube_core_num (torch 2.1, and 2.5 or newer)"
_NO_SHARED = "NPUs have no such shared memory"
_MISSING = {
    "major": "NPUs have no compute capability: test for the feature itself, such as torch.npu.is_bf16_supported()",
    "minor": "NPUs have no compute capability: test for the feature itself",
    "multi_processor_count": _CORES,
    "warp_size": "NPUs have no warps",
    "regs_per_multiprocessor": "NPUs have no such registers",
    "gcnArchName": "a name of ROCm: torch.npu.get_device_name() names the chip",
    **{f"max_threads_per_{each}": "NPUs have no such threads" for each in ("multi_processor", "block")},
    **{f"shared_memory_per_{each}": _NO_SHARED for each in ("block", "block_optin", "multiprocessor")},
    **dict.fromkeys(("is_integrated", "is_multi_gpu_board"), "not filled on NPU"),
    **dict.fromkeys(("clock_rate", "memory_clock_rate", "memory_bus_width", "pci_bus_id"), "npu-smi shows it"),
    # Ascend/pytorch, torch_npu/csrc/npu/Module.cpp, initDeviceProperty; vllm-ascend, npu_ipc_engine.py
    "uuid": "or all zeros on every card, if CANN has no aclrtDeviceGetUuid: name a card by host and by its id in "
            "ASCEND_RT_VISIBLE_DEVICES, on both sides alike, as vllm-ascend does",
}
#: What a comparison of the capability gives for 8.0 and later: the tuple, and its first number.
_AMPERE_TUPLE = {(ast.GtE, "(8, 0)"): True, (ast.Lt, "(8, 0)"): False}
_AMPERE_MAJOR = {(ast.GtE, "8"): True, (ast.Gt, "7"): True, (ast.Lt, "8"): False, (ast.LtE, "7"): False}
_GATE = re.compile(r"is_available|device_count|is_cuda|\.device\b")
_AMD = re.compile(r"(?<![a-z])(?:hip|rocm|amd)(?![a-z])", re.IGNORECASE)
#: What stores its arguments for people, or for later.
_KEEPS = frozenset({"append", "dict", "str", "repr", "update", "setdefault", "add_text", "join"})
#: Names of test helpers that return whether there is a CUDA device, by the package that has them.
_TEST_PACKAGES = ("torch.testing._internal", "transformers.testing_utils", "accelerate.test_utils", "diffusers.utils")
_TEST_WORDS = re.compile(r"cuda|multigpu|nccl|(?:^|_)gpus?(?:_|$)|SM\d\dOrLater", re.I)
#: Helpers for any kind of card: `HAS_GPU` of torch.testing._internal.inductor_utils, `GPU_TYPE`.
_ANY_CARD = frozenset({"HAS_GPU", "GPU_TYPE", "GPU_TYPES", "get_gpu_type", "HAS_MULTIGPU", "is_gpu"})
#: Helpers that ask for CUDA where one of their keywords is given: Lightning-AI/pytorch-lightning,
#: src/lightning/fabric/utilities/testing/_runif.py (num_cuda_devices, torch.cuda.is_bf16_supported).
_BY_KEYWORD = frozenset({"_runif_reasons"})
_RUNIF_PACKAGES = ("lightning.fabric.utilities.testing", "lightning_fabric.utilities.testing")
_RUNIF_KEYWORDS = frozenset({"min_cuda_gpus", "bf16_cuda"})


@fixer.on(ast.Module)
def questions_about_the_card(work: Work, tree: ast.Module) -> Finds:
    for full, look in _ASKED:
        last = full.rpartition(".")[2]
        for node in [*work.scan.attributes.get(last, ()), *work.scan.names.get(last, ())]:
            if (call := call_of(node)) is not None and work.names.qualified(node) == full:
                yield from look(work, node, call)


@fixer.on(ast.Attribute, last="hip")
def not_a_card_of_amd(work: Work, node: ast.Attribute) -> Finds:
    """`torch.cuda.is_available() and torch.version.hip is None`: asks for a card of NVIDIA, and would take an NPU."""
    if work.names.qualified(node) != "torch.version.hip":
        return
    current: ast.AST = node
    above = parent(node)
    denied = False
    while isinstance(above, (ast.Compare, ast.UnaryOp)):
        match above:
            case ast.UnaryOp(op=ast.Not()):
                denied = True
            case ast.Compare(ops=[op, *_]):
                denied = isinstance(op, (ast.Is, ast.Eq))
        current, above = above, parent(above)
    match above:
        case ast.BoolOp(op=ast.And(), values=values) if denied:
            if any("is_available" in ast.dump(value) for value in values if value is not current):
                yield work.note(
                    above,
                    "NPU243",
                    "this tests for a GPU that is not from AMD; an NPU passes too",
                    api="torch.version.hip",
                    help="if the code is only for NVIDIA, test torch.version.cuda is not None",
                    effort=Effort.LOW,
                )


@fixer.on(ast.Import)
def helpers_of_tests(work: Work, statement: ast.Import | ast.ImportFrom) -> Finds:
    """Helpers of test packages that are false without CUDA: what they guard is skipped and nobody sees it."""
    module = getattr(statement, "module", None) or ""
    if work.defines_package(module):
        return
    if module.startswith(_TEST_PACKAGES):
        for alias in statement.names:
            if _asks_for_a_gpu(alias.name):
                yield _skipped(work, alias, f"{module}.{alias.name}")
    elif module.startswith(_RUNIF_PACKAGES):
        for alias in statement.names:
            calls = work.scan.calls_by_last_name((alias.asname or alias.name,)) if alias.name in _BY_KEYWORD else ()
            # it asks for CUDA, or passes on what it is asked
            if any(each.arg is None or each.arg in _RUNIF_KEYWORDS for call in calls for each in call.keywords):
                yield _skipped(work, alias, f"{module}.{alias.name}")


def _capability(work: Work, node: ast.expr, call: ast.Call) -> Finds:
    """A capability that is only printed: the call must not fail, its value does not matter."""
    if not only_shown(call):
        yield from _ampere(work, node, call)
        yield from _of_none(work, node, call)
    elif isinstance(node, ast.Attribute) and work.names.qualified(node.value) == "torch.cuda" and work.take(node):
        local = work.source.slice(*work.source.extent(node.value))
        if not local.endswith(".cuda"):
            work.taken.discard(id(node))
            return
        yield Edit(
            node,
            "NPU240",
            f"{_CAPABILITY} -> torch.npu.get_device_capability (None on NPU; it is only shown)",
            module_named("npu"),
            api=_CAPABILITY,
            writes_npu=True,
        )


def _of_none(work: Work, node: ast.expr, call: ast.Call) -> Finds:
    """A capability that is taken apart or compared by size: of the None of an NPU either is a TypeError."""
    rule = work.rules.builtin.resolve(_CAPABILITY)
    reads: list[ast.expr] = [call]
    above = parent(call)
    if isinstance(above, ast.Assign) and isinstance(target := above.targets[0], ast.Name):
        scope = work.scan.scope_of(target)
        reads += [each for each in work.scan.names.get(target.id, ()) if work.scan.scope_of(each) is scope]
    if rule is None or rule[0].user or not any(map(_takes_apart, reads)) or _behind_cuda(work, call):
        return
    if not work.take(node):
        return
    message = f"{_CAPABILITY} is None on NPU, {RAISES}"
    yield work.note(
        node, rule[0].code, message, api=_CAPABILITY, help=rule[0].help, effort=rule[0].effort, blocks="first step",
    )  # fmt: skip


def _behind_cuda(work: Work, node: ast.AST) -> bool:
    """True for what runs only where a condition of the function, which speaks of CUDA, has been answered with yes."""
    while not isinstance(node, (*FUNCTIONS, ast.Module)):
        inner, node = node, parent(node)
        asked: list[ast.expr] = []
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                asked = [each for each in values if each is not inner]
            case ast.If(test=test) | ast.IfExp(test=test) if test is not inner:
                asked = [test]
        if any("cuda" in work.text(each).lower() for each in asked):
            return True
    return False


def _takes_apart(read: ast.expr) -> bool:
    """True where a pair is unpacked, indexed or compared by size."""
    match parent(read):
        case ast.Assign(targets=[ast.Tuple() | ast.List(), *_], value=value) | ast.Subscript(value=value):
            return value is read
        case ast.Compare(ops=ops):
            return all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in ops)
    return False


def _ampere(work: Work, node: ast.expr, call: ast.Call) -> Finds:
    """A test for capability 8.0, the first with bf16: mostly it stands for just that, but only the reader knows."""
    above = parent(call)
    side: ast.expr = call
    match above:
        case ast.Subscript(slice=ast.Constant(value=0)):
            side, above = above, parent(above)
    if not (isinstance(above, ast.Compare) and above.left is side and len(above.ops) == 1):
        return
    wanted = (type(above.ops[0]), ast.unparse(above.comparators[0]))
    answer = (_AMPERE_TUPLE if side is call else _AMPERE_MAJOR).get(wanted)
    torch = node.value.value if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) else None
    if answer is None or torch is None or work.names.qualified(torch) != "torch" or not work.take(node):
        return
    text = f"{work.source.slice(*work.source.extent(torch))}.npu.is_bf16_supported()"
    if not answer:
        text = f"(not {text})" if isinstance(parent(above), (ast.UnaryOp, ast.Compare, ast.BinOp)) else f"not {text}"
    yield Edit(
        above,
        "NPU249",
        f"a test for compute capability 8.0 -> {text}",
        text,
        level=Level.UNSAFE,
        api=_CAPABILITY,
        help=f"if this tests for bf16, write {text} (--unsafe-fixes does it); NPUs have no compute capability",
        effort=Effort.LOW,
        writes_npu=True,
    )


@fixer.on(ast.Attribute, last="cuda")
def version_of_cuda(work: Work, node: ast.Attribute) -> Finds:
    """`torch.version.cuda` that is only printed prints None: nothing to do."""
    if last_name(node.value) != "version" or work.names.qualified(node) != "torch.version.cuda":
        return
    if (only_shown(node) or _is_only_kept(work, node)) and work.take(node):
        yield work.note(
            node,
            "NPU240",
            f"torch.version.cuda is only {'shown' if only_shown(node) else 'kept or shown'}: it is None on NPU",
            level=Level.INFO,
            api="torch.version.cuda",
            help="torch_npu.version.cann and torch_npu.__version__ name the versions that matter on NPU",
        )
    elif _asks_whether_there_is_one(node) and work.take(node):
        yield work.note(
            node,
            "NPU240",
            "this tests for a CUDA version: there is none on NPU, as on a CPU",
            level=Level.INFO,
            api="torch.version.cuda",
        )


def _asks_whether_there_is_one(node: ast.Attribute) -> bool:
    """`torch.version.cuda is None`, or its truth: what is done then is for hosts without CUDA. Behind a gate of the
    device, and beside what speaks of AMD, it asks for another card.
    """
    inner: ast.AST = node
    above = parent(node)
    match above:
        case ast.Compare(ops=[_], comparators=[ast.Constant(value=None)]):
            inner, above = above, parent(above)
    while isinstance(above, ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
        inner, above = above, parent(above)
    if not isinstance(above, (ast.If, ast.IfExp, ast.Assert)) or above.test is not inner:
        return False
    if ast.unparse(above.test).count("version.cuda") > 1:
        return False  # something is done with it, too
    around = [each for each in (above, *chain(above)) if isinstance(each, (ast.If, ast.IfExp, ast.Assert))]
    return not any(_GATE.search(ast.unparse(each.test)) for each in around) and not _AMD.search(ast.unparse(above))


def _cudnn(work: Work, node: ast.expr, call: ast.Call) -> Finds:
    """The version of cuDNN that is only printed, or kept for people."""
    if (only_shown(call) or _is_only_kept(work, call, in_text=True)) and work.take(node):
        message = "the version of cuDNN is only kept or shown: it is None on NPU"
        yield work.note(node, "NPU240", message, level=Level.INFO, api="torch.backends.cudnn.version")


def _is_only_kept(work: Work, node: ast.expr, *, in_text: bool = False) -> bool:
    """True for a value that is stored with others, or in a variable that is shown or stored so: nothing is decided or
    computed with it. `in_text`: in text, too, which may name a file or a package.
    """
    above = parent(node)
    match above:
        case ast.Dict(values=values) if node in values:
            return True
        case ast.keyword():
            return called_name(parent(above)) in _KEEPS
        case ast.Call(func=func) if node is not func:
            return last_name(func) in _KEEPS
        case ast.Tuple() | ast.List() | ast.IfExp() if getattr(above, "test", None) is not node:
            return only_shown(above) or _is_only_kept(work, above, in_text=in_text)
        case ast.FormattedValue():
            return in_text
        case ast.Assign(targets=[ast.Subscript()]):
            return True
        case ast.Assign(targets=[ast.Name(id=name)]):
            taken = work.project.aside.taken.get(work.scan.path, frozenset())
            reads = [each for each in work.scan.names.get(name, ()) if isinstance(each.ctx, ast.Load)]
            if name in taken or not (reads or work.project.known):
                return False  # somebody else may read it
            return all(only_shown(each) or _is_only_kept(work, each, in_text=in_text) for each in reads)
    return False


# --- properties and names of devices ---------------------------------------------------------------------------------


def _uses(work: Work, call: ast.Call) -> list[ast.expr]:
    """The call itself, or the reads of the one variable that it is assigned to."""
    above = parent(call)
    if not (isinstance(above, ast.Assign) and len(above.targets) == 1 and isinstance(above.targets[0], ast.Name)):
        return [call]
    target = above.targets[0]
    if len(work.scan.scope_of(target).bindings.get(target.id, ())) != 1:
        return []
    return [*work.names.uses(target)]


def _properties(work: Work, node: ast.expr, call: ast.Call) -> Finds:
    for use in _uses(work, call):
        above = parent(use)
        if isinstance(above, ast.Attribute) and above.attr in _MISSING and not only_shown(above):
            yield work.note(
                above,
                "NPU241",
                f"the properties of an NPU have no {above.attr}" + (" to rely on" if above.attr == "uuid" else ""),
                api=f"{_PROPERTIES}().{above.attr}",
                help=f"an NPU has None there, or nothing; {_MISSING[above.attr]}",
                effort=Effort.LOW,
            )


def _chip_name(work: Work, node: ast.expr, call: ast.Call) -> Finds:
    for use in _uses(work, call):
        compared = _compared(use)
        if compared is not None:
            yield work.note(
                compared,
                "NPU242",
                "the device name is compared with a name of NVIDIA or AMD",
                api=_NAME,
                help="NPUs have names such as Ascend910B3, so this is never true: decide what the program does on NPUs",
                effort=Effort.LOW,
            )


def _compared(node: ast.expr) -> ast.expr | None:
    """The comparison with a literal in which a text is used, None when there is none."""
    current: ast.AST = node
    while True:
        match parent(current):
            case ast.Compare(left=left, comparators=others) as above:
                return above if any(string_of(side) is not None for side in (left, *others)) else None
            case ast.Attribute(attr=method) as above if isinstance(call := parent(above), ast.Call):
                if method in ("startswith", "endswith", "find"):
                    return call
                if method not in ("lower", "upper", "strip"):
                    return None
                current = call
            case _:
                return None


# --- tests that ask for CUDA -----------------------------------------------------------------------------------------


@fixer.on(ast.Module)
def helpers_by_their_module(work: Work, tree: ast.Module) -> Finds:
    """`import transformers.testing_utils as testing`, and `@testing.require_torch_gpu`: each helper once."""
    if b"test" not in work.source.utf8 or b"import" not in work.source.utf8:
        return
    seen: set[str] = set()
    for last, nodes in work.scan.attributes.items():
        for node in nodes if _asks_for_a_gpu(last) else ():
            full = work.names.qualified(node) or ""
            if full.startswith(_TEST_PACKAGES) and full not in seen and not work.defines_package(full):
                seen.add(full)
                yield _skipped(work, node, full)


def _asks_for_a_gpu(name: str) -> bool:
    return name not in _ANY_CARD and _TEST_WORDS.search(name) is not None


def _skipped(work: Work, node: ast.expr | ast.alias, full: str) -> Note:
    return work.note(
        node,
        "NPU244",
        f"{full.rpartition('.')[2]} requires CUDA: on NPU the tests it guards are silently skipped",
        api=full,
        help="remove min_cuda_gpus and bf16_cuda from its arguments, and test torch.npu.device_count() and "
             "torch.npu.is_bf16_supported() instead"
        if full.rpartition(".")[2] in _BY_KEYWORD
        else "guard them with torch.npu.is_available(), or with the package's helper for any accelerator",
        effort=Effort.LOW,
    )


_ASKED = (
    (_CAPABILITY, _capability),
    ("torch.backends.cudnn.version", _cudnn),
    (_PROPERTIES, _properties),
    (_NAME, _chip_name),
)
