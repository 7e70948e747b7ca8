"""What is recorded of one collective: its kind, shape, type, group, operation and root, read from the arguments."""

from __future__ import annotations

import inspect
from typing import Any

import torch

DEFAULT = "default"
#: The fields of what carries no tensors.
NOTHING: dict[str, Any] = {"shape": None, "dtype": None, "op": None, "root": None, "async": False}
#: Functions of torch.distributed -> the recorded kind, the argument whose tensors travel, the one that names the
#: root (its twin `group_...` counts within the group).
FUNCTIONS: dict[str, tuple[str, str, str]] = {
    "all_reduce": ("all_reduce", "tensor", ""),
    "all_reduce_coalesced": ("all_reduce_coalesced", "tensors", ""),
    "broadcast": ("broadcast", "tensor", "src"),
    "reduce": ("reduce", "tensor", "dst"),
    "all_gather": ("all_gather", "tensor", ""),
    "all_gather_single": ("all_gather_into_tensor", "input_tensor", ""),
    "all_gather_into_tensor": ("all_gather_into_tensor", "input_tensor", ""),
    "_all_gather_base": ("all_gather_into_tensor", "input_tensor", ""),
    "all_gather_coalesced": ("all_gather_coalesced", "input_tensor_list", ""),
    "gather": ("gather", "tensor", "dst"),
    "scatter": ("scatter", "tensor", "src"),
    "reduce_scatter": ("reduce_scatter", "output", ""),
    "reduce_scatter_single": ("reduce_scatter_tensor", "output", ""),
    "reduce_scatter_tensor": ("reduce_scatter_tensor", "output", ""),
    "_reduce_scatter_base": ("reduce_scatter_tensor", "output", ""),
    "all_to_all": ("all_to_all", "", ""),
    "all_to_all_single": ("all_to_all_single", "input", ""),
    "barrier": ("barrier", "", ""),
    "monitored_barrier": ("monitored_barrier", "", ""),
    "all_gather_object": ("all_gather_object", "", ""),
    "gather_object": ("gather_object", "", "dst"),
    "broadcast_object_list": ("broadcast_object_list", "", "src"),
    "scatter_object_list": ("scatter_object_list", "", "src"),
    "send": ("send", "tensor", "dst"),
    "isend": ("send", "tensor", "dst"),
    "recv": ("recv", "tensor", "src"),
    "irecv": ("recv", "tensor", "src"),
    "send_object_list": ("send_object_list", "", "dst"),
    "recv_object_list": ("recv_object_list", "", "src"),
}
#: Operators of c10d -> the kind, the place of the tensors that travel, whether they have a root.
_OPERATORS: dict[str, tuple[str, int, bool]] = {
    "allreduce_": ("all_reduce", 0, False),
    "allreduce_coalesced_": ("all_reduce_coalesced", 0, False),
    "broadcast_": ("broadcast", 0, True),
    "reduce_": ("reduce", 0, True),
    "allgather_": ("all_gather", 1, False),
    "_allgather_base_": ("all_gather_into_tensor", 1, False),
    "allgather_coalesced_": ("all_gather_coalesced", 1, False),
    "allgather_into_tensor_coalesced_": ("all_gather_coalesced", 1, False),
    "gather_": ("gather", 1, True),
    "scatter_": ("scatter", 0, True),
    "reduce_scatter_": ("reduce_scatter", 0, False),
    "_reduce_scatter_base_": ("reduce_scatter_tensor", 0, False),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter_coalesced", 0, False),
    "alltoall_": ("all_to_all", -1, False),
    "alltoall_base_": ("all_to_all_single", -1, False),
}


def of_function(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any] | None:
    """What is recorded of a call of torch.distributed; None for one that does nothing, or that raises before it."""
    dist: Any = torch.distributed
    values = bound(signature, args, kwargs)
    if not values and signature.parameters:
        return None
    group = values.get("group") or (dist.group.WORLD if dist.is_initialized() else None)
    members = members_of(group)
    if not members:
        return None
    kind, tensors, root = FUNCTIONS[name]
    fields: dict[str, Any] = {"kind": kind, "group": members, "name": name_of(group)}
    fields |= _of_tensors(values.get(tensors) if tensors else None)
    fields["op"] = _operation(values["op"]) if "op" in values else None
    fields["root"] = _global_root(values, root, members)
    fields["async"] = bool(values.get("async_op")) or name in ("isend", "irecv")
    if "tag" in values:
        fields["tag"] = values["tag"]
    if kind == "broadcast_object_list":
        fields["shape"] = [len(values["object_list"])]
    if kind.startswith("all_to_all"):
        fields["rank_in_group"] = members.index(dist.get_rank()) if dist.get_rank() in members else None
    if kind == "all_to_all":
        fields["sends"] = [each.numel() for each in values["input_tensor_list"]]
        fields["receives"] = [each.numel() for each in values["output_tensor_list"]]
        fields["dtype"] = _of_tensors(values["input_tensor_list"])["dtype"]
    if kind == "all_to_all_single":
        fields["shape"] = None
        for key, tensor in (("sends", "input"), ("receives", "output")):
            fields[key] = _parts(values[tensor], values.get(f"{tensor}_split_sizes"), len(members))
    return fields


def _parts(tensor: Any, sizes: Any, count: int) -> list[int]:
    """How many elements each rank of an all_to_all_single gets."""
    if not sizes:
        return [tensor.numel() // max(count, 1)] * count
    row = tensor.numel() // max(tensor.shape[0], 1) if tensor.dim() else 1
    return [int(size) * row for size in sizes]


def members_of(group: Any) -> list[int]:
    dist: Any = torch.distributed
    if group is None or group is dist.GroupMember.NON_GROUP_MEMBER:
        return []
    try:
        return list(dist.get_process_group_ranks(group))
    except (KeyError, ValueError, RuntimeError, AttributeError):
        return []


def name_of(group: Any) -> str:
    dist: Any = torch.distributed
    return DEFAULT if group is dist.group.WORLD else str(getattr(group, "group_name", ""))


def _of_tensors(value: Any) -> dict[str, Any]:
    """Shape and type of a tensor; a list of shapes for several."""
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, (list, tuple)) and value:
        parts = [_of_tensors(each) for each in value]
        dtypes = sorted({str(each["dtype"]) for each in parts})
        if len(parts) == 1:
            return parts[0]
        return {"shape": [each["shape"] for each in parts], "dtype": " and ".join(dtypes)}
    return {"shape": None, "dtype": None}


def _operation(op: Any) -> str | None:
    name = getattr(op, "name", None) or getattr(getattr(op, "op", None), "name", None)
    return str(name) if name else None


def _global_root(values: dict[str, Any], name: str, members: list[int]) -> int | None:
    """The rank of the root, or of the other end; None for a recv that takes what comes."""
    if name not in values:
        return None
    if values[name] is not None:
        return int(values[name])
    within = values.get(f"group_{name}")
    if within is not None:
        return _global(int(within), members)
    return None if "tag" in values else 0


def _global(rank: int, members: list[int]) -> int:
    return members[rank] if 0 <= rank < len(members) else rank


def bound(signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    """The arguments by name, with the defaults; empty for a call that does not fit."""
    try:
        given = signature.bind(*args, **kwargs)
    except TypeError:
        return {}
    given.apply_defaults()
    return dict(given.arguments)


def of_operator(name: str, given: list[Any], group: Any) -> dict[str, Any] | None:
    """What is recorded of `c10d::name`, whose root counts within the group; None for what is no collective."""
    known = _OPERATORS.get(name)
    members = members_of(group)
    if known is None or not members:
        return None
    kind, position, rooted = known
    fields = {**NOTHING, "kind": kind, "group": members, "name": name_of(group)}
    if position >= 0:
        fields |= _of_tensors(given[position])
    roots = [each for each in given if isinstance(each, int) and not isinstance(each, bool)]
    if rooted and roots:
        fields["root"] = _global(roots[0], members)
    return fields
