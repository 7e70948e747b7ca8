"""One call of an operator as JSON: what it was given, without the contents of tensors; and arguments drawn from that.

Part of a card pack. A tensor is its type, shape, strides where they are not those of a contiguous one, whether it lay
on the card, the lowest and the highest of its values, and of whole numbers whether all are different, and their order.
"""

from __future__ import annotations

import json
import math
from typing import Any

import torch

_HALF = ("float16", "bfloat16")
#: Elements of all tensors of a call: more are not drawn.
MOST_ELEMENTS = 1 << 28
#: What these write depends on their other results, which drawn tensors do not fit to: prefixes of names.
_DEPENDENT = (
    "_scaled_dot_product_", "_flash_attention_backward", "_efficient_attention_backward", "_ctc_loss_backward",
    "_cudnn_rnn_backward", "miopen_rnn_backward", "_thnn_fused_", "_embedding_bag_",
)  # fmt: skip
_DEPENDENT_BACK = ("_backward", "_backward_impl")
#: These write one value to a place; where two may go there, any may win.
_LAST_WINS = ("index_put", "_index_put_impl", "_unsafe_index_put", "scatter", "index_copy", "put")
_JOINS = ("scatter_add", "scatter_reduce")
#: Right results differ by a sign or an order.
_FREE = ("_linalg_svd", "linalg_svd", "svd", "_linalg_eigh", "linalg_eigh", "linalg_eig", "linalg_qr", "geqrf", "qr")
_HOUSEKEEPING = ("aten::_has_compatible_shallow_copy_type", "aten::set_", "aten::resize_", "aten::_resize_output_")


class Unsayable(Exception):
    """Why a call cannot be written down, or drawn again, as a clause."""


def name_of(op: Any) -> str:
    """`aten::add.Tensor`, as the schema writes it."""
    overload = op._schema.overload_name
    return str(op._schema.name + ("." + overload if overload else ""))


def bare(name: str) -> str:
    """`add` of `aten::add_.Tensor`."""
    return name.partition("::")[2].partition(".")[0].rstrip("_")


def starts_no_kernel(op: Any) -> bool:
    """Whether it only gives another view of its argument, or is of PyTorch's own housekeeping."""
    results = op._schema.returns
    views = bool(results) and all(r.alias_info is not None and not r.alias_info.is_write for r in results)
    return views or op._schema.name in _HOUSEKEEPING


def encode(value: Any) -> Any:
    """An argument as JSON. Unsayable for what has no such form."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (list, tuple)):
        return [encode(each) for each in value]
    if isinstance(value, torch.device):
        return {"device": value.type != "cpu"}
    for kind, name in ((torch.dtype, "dtype"), (torch.layout, "layout"), (torch.memory_format, "format")):
        if isinstance(value, kind):
            return {name: str(value)[6:]}
    raise Unsayable(f"an argument is a {type(value).__name__}")


def _tensor(value: Any) -> dict[str, Any]:
    if value.layout is not torch.strided or value.is_quantized:
        raise Unsayable("a tensor is sparse or quantized")
    found: dict[str, Any] = {"T": str(value.dtype)[6:], "s": list(value.shape), "card": value.device.type != "cpu"}
    if not value.is_contiguous():
        found["stride"] = list(value.stride())
    return found


def key_of(call: dict[str, Any]) -> str:
    """What two calls have in common that differ in numbers with a point only, such as a learning rate."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return "float"
        if isinstance(value, list):
            return [plain(each) for each in value]
        return {name: plain(each) for name, each in value.items()} if isinstance(value, dict) else value

    return json.dumps(plain(call), sort_keys=True)


def note_values(encoded: Any, value: Any) -> None:
    """Add to the encoded form of an argument how its tensors' values lie. Unsayable where some are NaN or infinite."""
    if isinstance(value, torch.Tensor):
        _note_tensor(encoded, value.detach().cpu())
    elif isinstance(value, (list, tuple)):
        for one, other in zip(encoded, value):
            note_values(one, other)


def _note_tensor(encoded: dict[str, Any], values: Any) -> None:
    if not values.numel():
        return
    if values.is_complex():
        values = torch.view_as_real(values.resolve_conj())
    if values.is_floating_point():
        values = values.double()
        low_ones = values == -math.inf
        if bool(low_ones.any()):  # a mask of attention
            encoded["-inf"] = round(float(low_ones.double().mean()), 3)
            values = values[~low_ones]
        if values.numel():
            encoded["lo"], encoded["hi"] = (float(f"{float(each):.3g}") for each in (values.min(), values.max()))
            if not (math.isfinite(encoded["lo"]) and math.isfinite(encoded["hi"])):
                raise Unsayable("a tensor has values that are infinite or no numbers")
        return
    if values.dtype is torch.bool:
        encoded["true"] = int(values.sum())  # a result may have as many elements
        return
    plain = values.reshape(-1).long()
    encoded["lo"], encoded["hi"] = int(plain.min()), int(plain.max())
    if plain.numel() > 1:
        encoded["distinct"] = plain.unique().numel() == plain.numel()
        steps = plain[1:] - plain[:-1]
        encoded["order"] = int(bool((steps >= 0).all())) - int(bool((steps <= 0).all()))


def not_drawn(call: dict[str, Any]) -> str:
    """Why no tensors can be drawn for a call that say something of the operator; empty where they can."""
    name, given = bare(call["op"]), [*_tensors(call["args"]), *_tensors(list(call["kwargs"].values()))]
    if name.startswith(_DEPENDENT) and name.endswith(_DEPENDENT_BACK):
        return "its tensors depend on one another"
    accumulates = name.startswith(_JOINS) or any(each is True for each in (*call["args"], *call["kwargs"].values()))
    if name.startswith(_LAST_WINS) and not accumulates:
        places = [each for each in given if each["T"] in ("int64", "int32")]
        if name.startswith("scatter") and isinstance(call["args"][2], dict):
            places = [call["args"][2]]
            if places[0]["s"] and places[0]["s"][call["args"][1]] == 1:
                places = []
        if not all(each.get("distinct", math.prod(each["s"]) < 2) for each in places):
            return "two values may go to one place, and any of them may stay"
    if sum(math.prod(each["s"]) for each in given) > MOST_ELEMENTS:
        return "its tensors are too large"
    return ""


def not_compared(call: dict[str, Any], op: Any) -> str:
    """Why a result says nothing beside another one; empty where it does."""
    name = bare(call["op"])
    tags = {str(tag).rpartition(".")[2] for tag in getattr(op, "tags", ())}
    if "nondeterministic_seeded" in tags:
        return "it draws"
    if "empty" in name:
        return "its result is not set"
    return "several results are right" if name in _FREE else ""


def tensors_of(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Its tensors in their order; of a list of tensors one of each type."""
    found: list[dict[str, Any]] = []
    for value in [*call["args"], *(call["kwargs"][name] for name in sorted(call["kwargs"]))]:
        first: dict[str, dict[str, Any]] = {}
        for each in _tensors([value]):
            first.setdefault(each["T"], each)
        found += first.values()
    return found


def _tensors(values: Any) -> list[dict[str, Any]]:
    if isinstance(values, dict):
        return [values] if "T" in values else []
    return [each for value in values for each in _tensors(value)] if isinstance(values, list) else []


def decode(value: Any, generator: Any, device: str) -> Any:
    """An argument for the CPU, or for a card whose name `device` is; tensors are drawn on the CPU."""
    if isinstance(value, list):
        return [decode(each, generator, device) for each in value]
    if not isinstance(value, dict):
        return value
    if "T" in value:
        flat, shape, stride = _drawn(value, generator)
        return (flat.to(device) if value["card"] else flat).as_strided(shape, stride)
    kind, held = next(iter(value.items()))
    if kind == "float":
        return float(held)
    if kind == "complex":
        return complex(*held)
    if kind == "device":
        return torch.device(device if held else "cpu")
    return getattr(torch, held)


def _drawn(value: dict[str, Any], generator: Any) -> tuple[Any, list[int], list[int]]:
    """The memory of a tensor as a row, its shape and its strides."""
    shape = value["s"]
    stride = value.get("stride")
    if stride is None:
        stride = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
        size = math.prod(shape)
    else:
        size = 1 + sum((many - 1) * step for many, step in zip(shape, stride)) if math.prod(shape) else 0
    dtype = getattr(torch, value["T"])
    low, high = value.get("lo", 0), value.get("hi", 1)
    if dtype.is_floating_point or dtype.is_complex:
        # All of them of one type, or a row drawn for another type would be another one.
        double = torch.rand(size * (2 if dtype.is_complex else 1), generator=generator, dtype=torch.float64)
        values = low + (high - low) * double
        if "-inf" in value:
            chosen = torch.rand(values.shape, generator=generator) < value["-inf"]
            values[chosen] = -math.inf
        return (torch.view_as_complex(values.view(-1, 2)) if dtype.is_complex else values).to(dtype), shape, stride
    if dtype is torch.bool:
        return torch.randperm(size, generator=generator) < value.get("true", size // 2), shape, stride
    if value.get("distinct") and 1 < size <= high - low + 1 <= MOST_ELEMENTS:
        whole = torch.randperm(high - low + 1, generator=generator)[:size] + low
    else:
        whole = torch.randint(low, high + 1, (size,), generator=generator)
        if size > 1:
            whole[0], whole[-1] = low, high
    if value.get("order"):
        whole = whole.sort(descending=value["order"] < 0)[0]
    return whole.to(dtype), shape, stride


def widened(value: Any) -> Any:
    """A call whose tensors have float32 where they had half the bits."""
    if isinstance(value, list):
        return [widened(each) for each in value]
    if isinstance(value, dict):
        wide = {name: widened(each) for name, each in value.items()}
        for name in ("T", "dtype"):
            if wide.get(name) in _HALF:
                wide[name] = "float32"
        return wide
    return value
