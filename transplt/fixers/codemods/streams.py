"""Handles of streams and events, and torch's private CUDA functions.

`torch.cuda.Stream.cuda_stream` is `npu_stream` on the NPU, where a stream tells no priority. torch_npu._C has functions
of its own in the place of some of torch._C's private ones (torch_npu/csrc/npu/Module.cpp); none is documented, so they
are findings.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.names import attribute_named
from transplt.edits.work import Work
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import inner_nodes, plain_name
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU129", rank=310)

_HANDLES = {"cuda_stream": "npu_stream", "cuda_event": "npu_event"}
_MAKERS = frozenset(
    f"torch.cuda.{name}" for name in "Stream ExternalStream Event current_stream default_stream streams.Stream".split()
)
#: Private functions that torch_npu._C has under the name with `npu`, in all branches from v2.1.0 to master.
_PRIVATE = frozenset(
    "_cuda_init _cuda_emptyCache _cuda_getDefaultStream _cuda_setStream _cuda_synchronize _cuda_getDeviceCount "
    "_cuda_setDevice _cuda_getDevice _cuda_maybeExchangeDevice _cuda_memoryStats _cuda_getAllocatorBackend "
    "_cuda_getCheckpointState _cuda_setCheckpointPoolState _cuda_releasePool _cuda_beginAllocateToPool".split()
)
#: Public functions of torch.npu that do what other private ones do.
_PUBLIC = {
    "_cuda_getCurrentStream": "torch.npu.current_stream",
    "_cuda_getCurrentRawStream": "torch.npu.current_stream().npu_stream",
    "_cuda_isDriverSufficient": "torch.npu.is_available",
    "_cuda_getRNGState": "torch.npu.get_rng_state",
    "_cuda_setRNGState": "torch.npu.set_rng_state",
    "_cuda_resetPeakMemoryStats": "torch.npu.reset_peak_memory_stats",
    "_cuda_resetAccumulatedMemoryStats": "torch.npu.reset_accumulated_memory_stats",
    "_cuda_memorySnapshot": "torch.npu.memory_snapshot",
    "_cuda_isCurrentStreamCapturing": "torch.npu.is_current_stream_capturing",
    "_cuda_ipc_collect": "torch.npu.ipc_collect",
    "_cuda_canDeviceAccessPeer": "torch.npu.can_device_access_peer",
    "_cuda_setMemoryFraction": "torch.npu.set_per_process_memory_fraction",
}


@fixer.on(ast.Attribute, last=tuple(_HANDLES))
def handle(work: Work, node: ast.Attribute) -> Finds:
    """Rename a handle whose owner is certain."""
    old, new = node.attr, _HANDLES[node.attr]
    if not isinstance(node.ctx, ast.Load):
        return
    if _is_made_by_torch(work, node.value):
        if work.take(node):
            yield Edit(
                node,
                "NPU105",
                f".{old} -> .{new}",
                attribute_named(new),
                api=f"torch.cuda.{'Stream' if 'stream' in old else 'Event'}.{old}",
                writes_npu=True,
            )
        return
    stored = any(not isinstance(other.ctx, ast.Load) for other in work.scan.attributes.get(old, ()))
    if stored or plain_name(node.value) in ("self", "cls"):
        return  # data of the project's own
    if work.take(node):
        yield work.note(
            node,
            "NPU128",
            f"`.{old}` is a CUDA handle if this is a stream or event of torch",
            help=f"write .{new} then; if this is the project's own data, do not change it",
        )


@fixer.on(ast.Attribute, last=("priority",))
def priority(work: Work, node: ast.Attribute) -> Finds:
    """Streams of torch_npu raise when they are asked for it (torch_npu/csrc/npu/Stream.cpp)."""
    if isinstance(node.ctx, ast.Load) and _is_made_by_torch(work, node.value) and work.take(node):
        yield work.note(
            node, "NPU501", "reading the priority of a torch.npu.Stream raises an error",
            api="torch.cuda.Stream.priority", help="store the priority in a variable when the stream is created",
            effort=Effort.LOW,
        )  # fmt: skip


@fixer.on(ast.Module)
def private_functions(work: Work, tree: ast.Module) -> Finds:
    if b"_C" not in work.source.utf8:
        return
    for attr in sorted(work.scan.attributes):
        if _of_cuda(attr) and attr not in ("cuda", "is_cuda"):
            for node in work.scan.attributes[attr]:
                if work.names.qualified(node.value) == "torch._C":
                    yield from _private(work, node, attr)
    for statement in work.scan.imports:
        if isinstance(statement, ast.ImportFrom) and statement.module == "torch._C":
            for alias in statement.names:
                if _of_cuda(alias.name):
                    yield from _private(work, alias, alias.name)


def _of_cuda(name: str) -> bool:
    lowered = name.lower()
    return any(word in lowered for word in ("cuda", "nccl", "cudnn"))


def _is_made_by_torch(work: Work, node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return work.names.qualified(node.func) in _MAKERS
    bindings = work.names.bindings_of(node)
    values = [assigned_value(binding.node) if binding.kind == "assign" else None for binding in bindings]
    made = (isinstance(value, ast.Call) and work.names.qualified(value.func) in _MAKERS for value in values)
    return bool(values) and all(made)


def _private(work: Work, node: ast.Attribute | ast.alias, name: str) -> Finds:
    if not work.take(node):
        return
    if isinstance(node, ast.Attribute) and _asked_before(node, name):
        yield work.keep(node, "asked-before")
        return
    known = _PUBLIC.get(name, "") or (f"torch_npu._C.{name.replace('_cuda_', '_npu_')}" if name in _PRIVATE else "")
    nothing = f"torch_npu has no such function: skip the call on NPU, with hasattr(torch._C, {name!r})"
    yield work.note(
        node,
        "NPU129",
        f"torch._C.{name} is a private function of CUDA builds of torch",
        api=f"torch._C.{name}",
        help=f"{known} does the same" if known else nothing,
        effort=Effort.LOW if known else Effort.MEDIUM,
    )


def _asked_before(node: ast.AST, name: str) -> bool:
    """True inside `if hasattr(torch._C, "name")` or the test itself."""
    while not isinstance(node, ast.Module):
        node = parent(node)
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | (ast.BoolOp() as test):
                if any(each.value == name for each in inner_nodes(test, ast.Constant)):
                    return True
    return False
