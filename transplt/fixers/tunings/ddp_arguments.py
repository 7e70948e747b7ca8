"""`ddp-arguments`: buffers that never change are not sent before each forward, gradients are not copied into buckets.

DistributedDataParallel sends all buffers of rank 0 to the others before each forward pass. That is lost time where no
buffer changes while the model runs, and where SyncBatchNorm keeps them alike. Up to torch 2.12 the argument is
`broadcast_buffers`, which also leaves out the one time they are sent when the wrapper is made; 2.13 deprecates it for
`forward_sync_buffers`, which does not (torch/nn/parallel/distributed.py; pytorch pull requests 100729 and 178054).

`gradient_as_bucket_view` saves the memory of one copy of all gradients. The fused optimizers of torch_npu put gradients
into storage of their own, and take the size of what is there for that of the gradient (npu_fused_optim_base.py).
"""

from __future__ import annotations

import ast
import re

from transplt.base.settings import Settings
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.edits.writer import Writer, on_file
from transplt.fixers.tuning_writer import writer_for
from transplt.fixers.tunings.keywords import add_keyword
from transplt.fixers.tunings.reading import layers_and_all
from transplt.program.models import kind_of
from transplt.program.optimizers import optimizer_calls
from transplt.program.program import SAME_MODULE, File, Program, Variable, enclosing_function
from transplt.rules.torch_callables import full_names
from transplt.rules.versions import oldest_held, versions_of
from transplt.syntax.nodes import by_place, keyword_of, lacks, last_name
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

fixer = Fixer(__name__, code="NPU755", rank=310, theme="tune:ddp-arguments",
              needs=(b"DistributedDataParallel", b"DDP"))  # fmt: skip

API = "torch.nn.parallel.DistributedDataParallel"
_WRAPPERS = full_names("distributes")
_BUFFERS = "no buffer of the model changes during training: rank 0 need not send them before each forward pass"
_SYNCED = "SyncBatchNorm keeps the buffers of all ranks equal: rank 0 need not send them before each forward pass"
_VIEWS = "gradients are views of the buckets: no second copy in memory"
_PLACES = {"broadcast_buffers": 4, "gradient_as_bucket_view": 10, "forward_sync_buffers": 99}
#: Layers and functions whose buffers change while a model runs.
_RUNNING = re.compile(rb"BatchNorm|InstanceNorm|spectral_norm|SpectralNorm|QuantStub|fake_quant|Observer")
_RUNNING_BUT_SYNCED = re.compile(rb"spectral_norm|SpectralNorm|QuantStub|fake_quant|Observer")
#: Libraries of models whose buffers nobody sees here.
_MODELS = re.compile(
    rb"\b(?:torchvision|timm|transformers|segmentation_models|monai|mmcv|mmengine|mmdet|fairseq|diffusers|lightning|"
    rb"detectron2|torchaudio|torch_geometric|vector_quantize_pytorch|kornia|efficientnet_pytorch|open_clip|clip)\b"
)
_MAKERS = frozenset(
    "ones zeros tensor full arange linspace logspace eye tril triu ones_like zeros_like full_like as_tensor meshgrid "
    "cumprod cumsum cat stack exp log sqrt sin cos pow outer einsum bool float long to view reshape expand repeat "
    "unsqueeze squeeze transpose permute flatten masked_fill repeat_interleave clone T sum round clamp flip type "
    "from_numpy array half int register_buffer triu_ tril_ log1p reciprocal item size numel len range list tuple "
    "append get_window hann_window hamming_window".split()
)
#: What may be given parameters without an effect on their gradients.
_COUNTERS = frozenset(
    "sum list filter next len any all zip enumerate print sorted tuple iter max min map format numel named append "
    "extend dict set reversed to norm prod isinstance".split()
)
#: Methods that write into a tensor and are no names of layers.
_WRITES = re.compile(r"(?<!_)_$")


@on_file(fixer, writer_for)
def wrappers(work: Work, writer: Writer) -> None:
    """Look at the wrappers of a file."""
    if not work.calls_by_name(_WRAPPERS):
        return
    program = layers_and_all(work)
    here = [file for file in program.files if file.path == work.scan.path]
    calls = [call for file in here for call in file.scan.calls if file.names.qualified(call.func) in _WRAPPERS]
    for call in by_place(calls):
        _buffers(writer, program, here[0], call)
        name = "gradient_as_bucket_view"  # where plain optimizers of torch are all that touches gradients
        if lacks(call, name, _PLACES[name]) and _plain_gradients(program, work.settings):
            add_keyword(writer, call, fixer.code, _VIEWS, name, "True", api=API)


def _buffers(writer: Writer, program: Program, file: File, call: ast.Call) -> None:
    settings = writer.work.settings
    oldest = oldest_held(settings)  # CUDA goes on with what the project admits
    runs_on = oldest if settings.style == "portable" else settings.torch_version
    later = "forward_sync_buffers" if runs_on not in versions_of("<=2.12") else ""
    if not all(lacks(call, name, _PLACES[name]) for name in ("broadcast_buffers", "forward_sync_buffers")):
        return
    name = later or "broadcast_buffers"
    at_start = not later  # what is not sent when the wrapper is made has to be alike on all ranks by itself
    synced = _synced(program, file, call)
    if synced:
        missed = at_start and _loads_on_one_rank(program)
        if not (missed or _RUNNING_BUT_SYNCED.search(_layers(program)) or _changing(program, at_start)):
            add_keyword(writer, call, fixer.code, _SYNCED, name, "False", api=API)
            return
    layers = _layers(program)
    running = _RUNNING.search(layers) or _MODELS.search(_text(program))
    if not (running or b"register_buffer" in layers or b"Buffer" in layers):
        return  # there is nothing to send
    if not (synced or running) and _own_model(program, file, call) and not _changing(program, at_start):
        add_keyword(writer, call, fixer.code, _BUFFERS, name, "False", api=API)
        return
    writer.remark(
        call,
        fixer.code,
        "rank 0 sends all buffers of the model before each forward pass",
        f"pass {name}=False if the model has no buffers that change (running statistics), or if only rank 0 "
        "evaluates and saves it",
    )


def _text(program: Program) -> bytes:
    return b"\n".join(file.source.utf8 for file in program.files)


def _layers(program: Program) -> bytes:
    """The names in a program: what is written in comments and strings makes no layer."""
    names: set[str] = set()
    for file in program.files:
        names |= {*file.scan.names, *file.scan.attributes}
        names |= {alias.name for node in file.scan.imports for alias in node.names}
    return "\n".join(sorted(names)).encode()


def _synced(program: Program, file: File, call: ast.Call) -> bool:
    """True when the model went through convert_sync_batchnorm for certain before it is wrapped."""
    model = _model(call)
    slot = program.slot(file, model) if model is not None else None
    for other in file.scan.calls:
        last = getattr(other.func, "attr", "")
        if last != "convert_sync_batchnorm" or enclosing_function(other) is not enclosing_function(call):
            continue
        stored = statement(other)
        targets = stored.targets if isinstance(stored, ast.Assign) else []
        held = slot is not None and any(program.slot(file, target) == slot for target in targets)
        # Whoever gets to the call came by the conversion: it stands above, in a block around the call.
        if (held or other in [*call.args]) and other.lineno <= call.lineno and (parent(stored) in chain(call)):
            return True
    return False


def _model(call: ast.Call) -> ast.expr | None:
    if call.args and not isinstance(call.args[0], ast.Starred):
        return call.args[0]
    return keyword_of(call, "module")


def _own_model(program: Program, file: File, call: ast.Call) -> bool:
    """True when all values that the model may be come from classes and functions of the program."""
    model = _model(call)
    if model is None:
        return False
    pending: list[tuple[File, ast.expr]] = [(file, model)]
    seen: set[int] = set()
    made = 0
    while pending:
        at, node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match node:
            case ast.Call(func=ast.Attribute(value=module, attr=method)) if method in SAME_MODULE:
                pending.append((at, module))
            case ast.Call():
                given = _handed_through(program, at, node)
                if given is None:
                    return False
                made += not given
                pending += given
            case ast.Name() | ast.Attribute():
                slot: Variable | None = program.slot(at, node)
                values = program.values.get(slot, []) if slot else []
                if not values or any(value.index is not None for value in values):
                    return False
                pending += [(value.file, value.node) for value in values]
            case _:
                return False
    return made > 0


def _handed_through(program: Program, file: File, call: ast.Call) -> list[tuple[File, ast.expr]] | None:
    """The models that a call gives back, none where it makes one itself; None where that is not in sight."""
    full = file.names.qualified(call.func) or ""
    if full in ("torch.compile", "copy.deepcopy") or full in _WRAPPERS:
        return [(file, argument) for argument in call.args[:1]]
    callee = program.callee(file, call)
    if isinstance(callee, FUNCTIONS):
        return [(program.owner[callee], result) for result in program.returns(callee)] or None
    return [] if callee is not None or full.startswith("torch.nn.") else None


def _changing(program: Program, at_start: bool) -> bool:
    """True when a buffer may change while the model runs, or (`at_start`) may be made differently on the ranks."""
    names: set[str] = set()
    for file in program.files:
        for call in file.scan.calls:
            if last_name(call.func) == "Buffer":
                return True
            match call:
                case ast.Call(
                    func=ast.Attribute(attr="register_buffer"), args=[ast.Constant(value=str() as name), *made]
                ):
                    names.add(name)
                    if at_start and not (made and _made_alike(program, file, made[0])):
                        return True
                case ast.Call(func=ast.Attribute(attr="register_buffer")):
                    return True
    return any(_written(file, name) for file in program.files for name in names)


def _written(file: File, name: str) -> bool:
    """True when something is stored in an attribute of that name, or one of its methods writes into it."""
    for node in file.scan.attributes.get(name, ()):
        if not isinstance(node.ctx, ast.Load):
            return True
        above = parent(node)
        while isinstance(above, ast.Subscript) and above.value is node:
            if not isinstance(above.ctx, ast.Load):
                return True
            node, above = above, parent(above)  # type: ignore[assignment]
        match above:
            case ast.Attribute(attr=method) if method == "data" or _WRITES.search(method):
                return True
            case ast.keyword(arg="out"):
                return True
    return False


def _made_alike(program: Program, file: File, node: ast.expr, depth: int = 0) -> bool:
    """True for a tensor that every rank makes alike: from constants and arithmetic, nothing random, nothing read."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and last_name(inner.func) not in _MAKERS:
            return False
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            slot = program.slot(file, inner)
            for value in program.values.get(slot, ()) if slot else ():
                if depth > 5 or not _made_alike(program, value.file, value.node, depth + 1):
                    return False
    return True


def _loads_on_one_rank(program: Program) -> bool:
    """True when a checkpoint is loaded under a condition that speaks of the rank: the others get it from rank 0."""
    loads = [node for file in program.files for node in file.scan.attributes.get("load_state_dict", ())]
    conditions = (above for node in loads for above in chain(node) if isinstance(above, ast.If))
    return any("rank" in ast.dump(condition.test) for condition in conditions)


# --- gradients -------------------------------------------------------------------------------------------------------


def _plain_gradients(program: Program, settings: Settings) -> bool:
    if settings.amp == "apex" or any("optimizer" in name for name, _ in settings.tune):
        return False  # optimizers that put gradients into storage of their own
    if re.search(rb"NpuFused|apex|deepspeed|fairscale|accelerate", _text(program)):
        return False
    kinds = [kind for _, _, kind in optimizer_calls(program)]
    if not kinds or not all(kind.startswith("torch.optim") for kind in kinds):
        return False
    for file in program.files:
        if any(not _known_taker(program, file, node) for node in file.scan.attributes.get("parameters", ())):
            return False
        for node in file.scan.attributes.get("grad", ()):
            if not isinstance(node.ctx, ast.Load):
                return False
            above = parent(node)
            if isinstance(above, ast.Attribute) and above.attr in ("detach_", "data", "set_", "resize_"):
                return False
    return True


def _known_taker(program: Program, file: File, node: ast.Attribute) -> bool:
    """True when what gets `x.parameters()` is an optimizer of torch, a function in sight, or only counts them."""
    for above in chain(node):
        match above:
            case ast.stmt():
                return True
            case ast.Call(func=func) if func is not node:
                known = file.names.qualified(func) or ""
                of_torch = known.startswith("torch.nn.utils.") or (kind_of(file, above) or "").startswith("torch.optim")
                if of_torch or program.callee(file, above) is not None:
                    return True
                if last_name(func) not in _COUNTERS:
                    return False
    return True
