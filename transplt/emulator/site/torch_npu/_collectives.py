"""'hccl' = gloo behind the c10d operators of the PrivateUse1 key.

The process group is PyTorch's own C++ ProcessGroup whose npu backend is a ProcessGroupGloo. The c10d operators are
overridden for npu tensors: they run on the CPU aliases, through an inner process group that has the same gloo backend
registered for the CPU, so results land in place. The inner group stays unnamed: a name is stored in the shared backend.
It is made anew for each call: a kept one would keep gloo's threads running after destroy_process_group().
"""

from __future__ import annotations

import atexit
import functools
import inspect
import warnings
from dataclasses import replace
from typing import Any

import torch
from npu_emulator import gloo_threads, limits
from npu_emulator.record import record, write
from npu_emulator.trace import collectives as trace

from . import _limits
from ._kernel import count
from ._kind import EMULATED, KEY, KIND
from ._relabel import to_cpu

_libraries: list[Any] = []
_FLAT = ("c10d::_allgather_base_", "c10d::_reduce_scatter_base_")
_POINT_TO_POINT = ("c10d::send", "c10d::recv_", "c10d::recv_any_source_")


def _inner_group(outer: Any) -> Any:
    from torch._C._distributed_c10d import ProcessGroup

    group = ProcessGroup(outer.rank(), outer.size())
    try:
        backend = outer._get_backend(torch.device(KIND))
    except RuntimeError as error:
        if "No backend type associated" in str(error) and _limits.ENFORCED:
            _limits.refuse(limits.text("gloo"), words=str(error))
        raise
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


def _check_types(refused: Any, value: Any) -> None:
    """RuntimeError for a tensor, or one in nested lists, of a type that HCCL does not take."""
    if isinstance(value, torch.Tensor):
        if value.dtype in refused:
            refused[value.dtype](value.dtype)
        return
    for each in value:
        _check_types(refused, each)


def _override(op: Any) -> Any:
    from torch._C._distributed_c10d import ProcessGroup, Work, _create_work_from_future

    schema = op._schema
    group_position = [a.name for a in schema.arguments].index("process_group")
    tensor_positions = [i for i, a in enumerate(schema.arguments) if "Tensor" in str(a.type)]
    results = len(schema.returns)
    name = schema.name[6:].rstrip("_")
    known = limits.collectives() if _limits.ENFORCED else {}
    refused = _limits.refused((*known.get(name, ()), *(replace(each, name=name) for each in known.get("*", ()))))

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
                if refused:
                    _check_types(refused, args[i])
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


def install() -> None:
    """Register the overrides and the hccl backend; does nothing in a torch without torch.distributed."""
    import torch.distributed as dist

    if not dist.is_available():
        return
    install_overrides()
    _add_hccl(dist)


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


def _add_hccl(dist: Any) -> None:
    from torch._C._distributed_c10d import ProcessGroupGloo

    def create(store: Any, rank: int, size: int, timeout: Any) -> Any:
        if record.rank is None:  # the first group is the whole world
            record.rank = str(rank)
            write("running")  # a process that is stopped has recorded which rank it was
        return ProcessGroupGloo(store, rank, size, timeout)

    dist.Backend.register_backend("hccl", create, devices=["npu"])
    _patch_barrier(dist)
    _refuse_reductions(dist)
    dist.is_hccl_available = lambda: True


def _over_hccl(dist: Any, group: Any) -> bool:
    """Whether tensors of the device go through hccl in a group that this process is in."""
    return group is not dist.GroupMember.NON_GROUP_MEMBER and "hccl" in str(dist.get_backend_config(group))


def _refuse_reductions(dist: Any) -> None:
    """The reductions that HCCL does not have; what reaches the operators does not show which one it is."""
    if not _limits.ENFORCED:
        return
    named = {getattr(dist.ReduceOp, name): found[0] for name, found in limits.reductions().items()}

    def checked(original: Any) -> Any:
        asked = inspect.signature(original)

        @functools.wraps(original)
        def reduction(*args: Any, **kwargs: Any) -> Any:
            given = asked.bind(*args, **kwargs).arguments
            tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, torch.Tensor)]
            host = tensors and all(tensor.device.type == "cpu" for tensor in tensors)
            limit = next((limit for op, limit in named.items() if given.get("op") == op), None)
            if limit is not None and not host and _over_hccl(dist, given.get("group") or dist.group.WORLD):
                _limits.refuse(limit)
            return original(*args, **kwargs)

        return reduction

    for name in ("all_reduce", "all_reduce_coalesced", "reduce", "reduce_scatter", "reduce_scatter_tensor"):
        refusing = checked(getattr(dist.distributed_c10d, name))
        for module in (dist, dist.distributed_c10d):
            vars(module)[name] = refusing


def _patch_barrier(dist: Any) -> None:
    """PyTorch sends barrier() on a custom backend through a CPU tensor."""
    original = dist.barrier

    @functools.wraps(original)
    def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
        group = group or dist.group.WORLD
        if not _over_hccl(dist, group):
            return original(group, async_op, device_ids)
        work = _inner_group(group).barrier()
        if async_op:
            return work
        work.wait()
        return None

    dist.barrier = barrier
    dist.distributed_c10d.barrier = barrier
