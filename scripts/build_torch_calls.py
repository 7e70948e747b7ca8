"""Builds rules/support/torch_calls.json: what the overloads of torch's operators take, by place.

    python scripts/build_torch_calls.py        (needs torch, the installed one is read, and expecttest for its tests)

Only operators that refuse some type on some card (rules/support/card_types.json) and that code can name as `torch.X` or
as a method of a tensor are told. What code names otherwise stands in NAMED, by hand: the operator that PyTorch makes of
it (aten/src/ATen/native of PyTorch: LinearAlgebra.cpp, SoftMax.cpp, Convolution.cpp, BatchLinearAlgebra.cpp).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import build_api_support

ROOT = Path(__file__).resolve().parent.parent
#: Full name in code -> operators of which it runs one, and the arguments that are tensors, by place.
NAMED: dict[str, tuple[str, str]] = {
    "torch.matmul": ("mm bmm mv dot", "self mat2"),
    "torch.Tensor.matmul": ("mm bmm mv dot", "self mat2"),
    "torch.nn.functional.linear": ("mm addmm", "self mat2"),
    "torch.softmax": ("_softmax", "self"),
    "torch.Tensor.softmax": ("_softmax", "self"),
    "torch.nn.functional.softmax": ("_softmax", "self"),
    "torch.log_softmax": ("_log_softmax", "self"),
    "torch.Tensor.log_softmax": ("_log_softmax", "self"),
    "torch.nn.functional.log_softmax": ("_log_softmax", "self"),
    "torch.nn.functional.conv1d": ("convolution_overrideable", "input weight bias"),
    "torch.nn.functional.conv2d": ("convolution_overrideable", "input weight bias"),
    "torch.nn.functional.conv3d": ("convolution_overrideable", "input weight bias"),
    "torch.nn.functional.embedding": ("embedding", "indices weight"),
    "torch.linalg.svd": ("_linalg_svd", "A"),
    "torch.svd": ("_linalg_svd", "A"),
    "torch.linalg.qr": ("linalg_qr", "A"),
}
#: Functions of torch.nn.functional that are the operator of their name, with its arguments in their order.
FUNCTIONAL = (
    "gelu elu celu hardtanh hardswish hardsigmoid hardshrink softplus mish silu relu leaky_relu softshrink glu "
    "binary_cross_entropy binary_cross_entropy_with_logits kl_div smooth_l1_loss"
).split()
_NUMBERS = ("Scalar", "int", "SymInt", "float", "bool", "number", "complex")


def _argument(argument: Any) -> str:
    kind = str(argument.type).removeprefix("Optional[").removesuffix("]")
    listed = "List[Tensor" in kind or "List[Optional[Tensor" in kind
    mark = "[]" if listed else "" if kind == "Tensor" else "#" if kind in _NUMBERS else "~"
    return f"{argument.name}{mark}{'?' if argument.has_default_value() else ''}"


def _signature(schema: Any) -> str:
    plain = [_argument(each) for each in schema.arguments if not each.kwarg_only]
    named = [_argument(each) for each in schema.arguments if each.kwarg_only]
    return " ".join([*plain, *(["*", *named] if named else [])])


def _real_only(names: Iterable[str]) -> list[str]:
    """The operators that PyTorch's own tests give no complex numbers, on CUDA and on the CPU."""
    from torch.testing._internal.common_methods_invocations import op_db

    takes: dict[str, set[str]] = {}
    for each in op_db:
        found = {str(dtype) for dtype in (*each.dtypes, *each.dtypesIfCUDA)}
        takes.setdefault(each.name.removeprefix("nn.functional."), set()).update(found)
    return sorted(name for name in names if "torch.complex64" not in takes.get(name, {"torch.complex64"}))


def operators(types: dict[str, Any]) -> dict[str, dict[str, str]]:
    """By operator, what each overload takes; `types` is the table of the types."""
    import torch

    found: dict[str, dict[str, str]] = {}
    for name in sorted({each.partition(".")[0] for each in types["operators"]}):
        packet = getattr(torch.ops.aten, name, None)
        named = name in FUNCTIONAL or hasattr(torch, name) or hasattr(torch.Tensor, name)
        if packet is None or name.startswith("_") or not named:
            continue
        for overload in packet.overloads():
            schema = getattr(packet, overload)._schema
            text = str(schema)
            tensors = "Tensor" in text.partition("->")[0] and "Tensor" in text.partition("->")[2]
            if tensors and "Dimname" not in text and not any(each.is_out for each in schema.arguments):
                found.setdefault(name, {})["" if overload == "default" else overload] = _signature(schema)
    return found


def table(types: dict[str, Any]) -> dict[str, Any]:
    """The table as a value; `types` is that of the types."""
    import torch

    found = operators(types)
    return {
        "_meta": {
            "about": "operators: overload -> its arguments by place: # a number, ~ something else that is no tensor, "
            "[] a list of tensors, ? with a default; behind * by keyword alone. named: what code calls -> the "
            "operators of which PyTorch runs one, and its tensors by place. functional: names below "
            "torch.nn.functional that are the operator. real_only: operators that take no complex numbers on CUDA "
            "either (torch/testing/_internal/common_methods_invocations.py).",
            "source": f"schemas of torch {torch.__version__.partition('+')[0]}, and scripts/build_torch_calls.py",
        },
        "functional": sorted(FUNCTIONAL),
        "named": {name: list(row) for name, row in sorted(NAMED.items())},
        "real_only": _real_only(found),
        "operators": dict(sorted(found.items())),
    }


def main(rules: Path = ROOT / "rules") -> None:
    """Write the table."""
    made = table(json.loads((rules / "support" / "card_types.json").read_bytes()))
    build_api_support.write(rules / "support" / "torch_calls.json", made)


if __name__ == "__main__":
    main()
