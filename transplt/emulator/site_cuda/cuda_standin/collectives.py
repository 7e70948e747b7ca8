"""'nccl' = gloo behind the c10d operators of the dispatch key.

The process group is PyTorch's own C++ ProcessGroup whose backend is a ProcessGroupGloo. The c10d operators are
overridden for tensors of the device: they run on the CPU aliases, through an inner process group that has the same
gloo backend registered for the CPU, so results land in place. The inner group stays unnamed: a name is stored in the
shared backend. It is made anew for each call: a kept one would keep gloo's threads running after
destroy_process_group().
"""

from __future__ import annotations

import atexit
import functools
import warnings
from typing import Any

import torch
from npu_emulator import gloo_threads
from npu_emulator.trace import collectives as trace

from .kernel import count
from .kind import EMULATED, KEY, KIND
from .relabel import to_cpu

_libraries: list[Any] = []
_FLAT = ("c10d::_allgather_base_", "c10d::_reduce_scatter_base_")
_POINT_TO_POINT = ("c10d::send", "c10d::recv_", "c10d::recv_any_source_")


def _inner_group(outer: Any) -> Any:
    from torch._C._distributed_c10d import ProcessGroup

    group = ProcessGroup(outer.rank(), outer.size())
    backend = outer._get_backend(torch.device(KIND))
    group._register_backend(torch.device("cpu"), ProcessGroup.BackendType.GLOO, backend)
    return group


def _on_cpu(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if value.device.type != KIND:
            raise RuntimeError(f"{EMULATED} the group takes {KIND} tensors only, this one is on {value.device}")
        return to_cpu(value.detach())
    if isinstance(value, (list, tuple)):
        return [_on_cpu(v) for v in value]
    return value


def _override(op: Any) -> Any:
    from torch._C._distributed_c10d import ProcessGroup, Work, _create_work_from_future

    schema = op._schema
    group_position = [a.name for a in schema.arguments].index("process_group")
    tensor_positions = [i for i, a in enumerate(schema.arguments) if "Tensor" in str(a.type)]
    results = len(schema.returns)

    def collective(*given: Any) -> Any:
        count(schema.name)
        outer = ProcessGroup.unbox(given[group_position])
        with trace.operator(schema.name.removeprefix("c10d::"), list(given), outer):
            return carry_out(outer, given)

    def carry_out(outer: Any, given: tuple[Any, ...]) -> Any:
        args = list(given)
        args[group_position] = _inner_group(outer).boxed()
        for i in tensor_positions:
            if args[i] is not None:
                args[i] = _on_cpu(args[i])
        if schema.name in _FLAT:
            args[0], args[1] = args[0].view(-1), args[1].reshape(-1)
        result = op(*args)
        if schema.name in _POINT_TO_POINT:
            return result
        if not results:
            return None
        Work.unbox(result[-1] if isinstance(result, tuple) else result).wait()
        future: Any = torch.futures.Future()
        future.set_result(given[0] if isinstance(given[0], list) else [given[0]])
        work = _create_work_from_future(future).boxed()
        return (given[0], work) if results == 2 else work

    return collective


def install_overrides() -> None:
    """Let the collectives of our dispatch key run on the CPU aliases."""
    library = torch.library.Library("c10d", "IMPL")
    _libraries.append(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in torch._C._dispatch_get_all_op_names():
            if name.startswith("c10d::") and name != "c10d::check_for_nan":
                op = getattr(torch.ops.c10d, name[6:]).default
                library.impl(name[6:], _override(op), KEY, allow_override=True)

    atexit.register(gloo_threads.wait_until_idle)
    _patch_end()


def _patch_end() -> None:
    """A group that is taken down joins gloo's threads under the GIL, for which they may wait to let tensors go."""
    import torch.distributed as dist
    import torch.distributed.distributed_c10d as c10d

    original = c10d.destroy_process_group

    @functools.wraps(original)
    def destroy_process_group(group: Any = None) -> None:
        gloo_threads.wait_until_idle()
        original(group)

    for module in (c10d, dist):
        vars(module)["destroy_process_group"] = destroy_process_group
