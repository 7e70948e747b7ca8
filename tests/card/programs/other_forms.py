"""Forms of operators that PyTorch's own samples do not call: in place, with numbers, of torch_npu alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch_npu

aten = torch.ops.aten
UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp exp2 expm1 floor frac log log10 log1p log2 "
    "neg reciprocal relu round rsqrt sigmoid sign sin sinc sinh sqrt square tan tanh trunc tril triu logical_not "
    "nan_to_num"
).split()
LAYERS = "celu elu hardsigmoid hardswish hardtanh leaky_relu mish relu6 selu silu".split()
BINARY = (
    "add sub mul div floor_divide fmod remainder pow eq ne lt le gt ge logical_and logical_or logical_xor atan2 xlogy "
    "clamp_max clamp_min copysign hypot"
).split()
WITH_NUMBER = "add sub mul div floor_divide fmod remainder pow eq ne lt le gt ge xlogy clamp_max clamp_min fill".split()
BITS = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()


def given(device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Real numbers over and under one, others, and whole ones."""
    torch.manual_seed(0)
    first, second, whole = torch.rand(4, 4) * 1.6 + 0.2, torch.rand(4, 4) + 0.3, torch.randint(1, 9, (4, 4))
    return first.to(device), second.to(device), whole.to(device)


def in_place(name: str, *more: Any) -> Callable[[str], Any]:
    """The form in place of a method; numbers where tensors would be stay numbers."""

    def call(device: str) -> Any:
        first, second, _ = given(device)
        return getattr(first, name + "_")(*[second if each == "second" else each for each in more])

    return call


def of_bits(name: str, tail: str, other: Any) -> Callable[[str], Any]:
    """A function of bits, with a tensor or a number."""

    def call(device: str) -> Any:
        whole = given(device)[2]
        return getattr(whole, name + tail)(whole.flip(0) if other is None else other)

    return call


def with_number_first(name: str) -> Callable[[str], Any]:
    """A function of a number and a tensor."""
    return lambda device: getattr(torch, name)(2.5, given(device)[0])


CASES: dict[str, Callable[[str], Any]] = {
    **{f"{name}_": in_place(name) for name in UNARY},
    **{f"{name}_ layer": lambda device, n=name: getattr(torch.nn.functional, n)(given(device)[0], inplace=True)
       for name in LAYERS},
    **{f"{name}_ tensor": in_place(name, "second") for name in BINARY},
    **{f"{name}_ number": in_place(name, 1.5) for name in WITH_NUMBER},
    **{f"{name} {tail} {other}": of_bits(name, tail, other)
       for name in BITS for tail in ("", "_") for other in (None, 1)},
    **{f"{name} of a number": with_number_first(name) for name in ("remainder", "pow", "xlogy")},
    "lerp_": in_place("lerp", "second", 0.3), "addcmul_": in_place("addcmul", "second", "second"),
    "addcdiv_": in_place("addcdiv", "second", "second"), "addmm_": in_place("addmm", "second", "second"),
    "renorm_": in_place("renorm", 2, 0, 1.0), "fill_diagonal_": in_place("fill_diagonal", 3.0),
    "addr_": lambda d: given(d)[0].addr_(given(d)[0][0], given(d)[1][0]),
    "div floor_": lambda d: given(d)[0].div_(given(d)[1], rounding_mode="floor"),
    "div trunc number": lambda d: torch.div(given(d)[0], 0.3, rounding_mode="trunc"),
    "div trunc number_": lambda d: given(d)[0].div_(0.3, rounding_mode="trunc"),
    "floor_divide number": lambda d: given(d)[2].floor_divide(3), "fmod number": lambda d: given(d)[2].fmod(4),
    "gt number": lambda d: given(d)[0].gt(1), "clamp_max number": lambda d: given(d)[0].clamp_max(1),
    "threshold_": lambda d: torch.nn.functional.threshold_(given(d)[0], 0.8, 9.0),
    "round decimals_": lambda d: given(d)[0].round_(decimals=1),
    "index_fill": lambda d: given(d)[0].index_fill(1, torch.tensor([0, 2], device=d), 7.0),
    "index_fill_": lambda d: given(d)[0].index_fill_(0, torch.tensor([0, 2], device=d), 7.0),
    "index_fill_ tensor": lambda d: given(d)[0].index_fill_(
        0, torch.tensor([1], device=d), torch.tensor(5.0, device=d)
    ),
    "index_put null": lambda d: given(d)[2].index_put_(
        (torch.tensor([1, 2], device=d),), torch.tensor(0, device=d)
    ),
    "second index": lambda d: given(d)[2][:, torch.tensor([3, 0], device=d)],
    "second index put": lambda d: torch.ops.aten.index_put_(
        given(d)[2], [None, torch.tensor([3, 0], device=d)], torch.tensor(-1, device=d)
    ),
    "empty index": lambda d: given(d)[2][torch.tensor([], dtype=torch.int64, device=d)],
    "empty index put": lambda d: given(d)[2].index_put_(
        (torch.tensor([], dtype=torch.int64, device=d),), torch.tensor(5, device=d)
    ),
    "scatter_": lambda d: given(d)[0].scatter_(1, given(d)[2] % 4, given(d)[1].sort().values * 0 + 2),
    "scatter_ number": lambda d: given(d)[0].scatter_(1, given(d)[2] % 4, 3.0),
    "scatter number": lambda d: given(d)[0].scatter(1, given(d)[2] % 4, 3.0),
    "scatter_ multiply": lambda d: given(d)[0].scatter_(1, given(d)[2] % 4, 3.0, reduce="multiply"),
    "scatter_reduce_": lambda d: given(d)[0].scatter_reduce_(1, given(d)[2] % 4, given(d)[1], "amax"),
    "embedding backward": lambda d: aten.embedding_dense_backward(given(d)[0], given(d)[2][0] % 3, 3, -1, False),
    "embedding backward scaled": lambda d: aten.embedding_dense_backward(given(d)[0], given(d)[2][0] % 3, 3, 1, True),
    "searchsorted number": lambda d: torch.searchsorted(given(d)[0].flatten().sort().values, 1.0),
    "bucketize": lambda d: torch.bucketize(given(d)[0], given(d)[1].flatten().sort().values),
    "bucketize whole": lambda d: torch.bucketize(given(d)[0], torch.tensor([0.5, 1.0], device=d), out_int32=True),
    "repeat_interleave": lambda d: torch.repeat_interleave(given(d)[0], given(d)[2][0], 1),
    "repeat_interleave flat": lambda d: torch.repeat_interleave(given(d)[0][0], given(d)[2][0]),
    "repeat_interleave numbers": lambda d: torch.repeat_interleave(given(d)[2][0]),
    "unfold backward": lambda d: aten.unfold_backward(torch.ones(2, 4, 3, device=d), [4, 4], 0, 3, 1),
    "range": lambda d: torch.range(1, 9, 2, device=d), "arange down": lambda d: torch.arange(9, 1, -2, device=d),
    "slogdet": lambda d: torch.linalg.slogdet(given(d)[0]), "inverse": lambda d: torch.linalg.inv(given(d)[0]),
    "normal std": lambda d: torch.normal(1.0, torch.zeros(3, device=d)),
    "split": lambda d: torch.split(given(d)[0], [1, 3]), "isin": lambda d: torch.isin(given(d)[2], 3),
    "isin number": lambda d: torch.isin(3, given(d)[2]), "aminmax": lambda d: torch.aminmax(given(d)[0], dim=1),
    "aminmax all": lambda d: torch.aminmax(given(d)[0]),
    "rfft": lambda d: torch.fft.rfft(given(d)[0], norm="ortho"), "rfft 3": lambda d: torch.fft.rfft(given(d)[0], 3, 0),
    "nan max": lambda d: torch.max(torch.tensor([1.0, float("nan"), 2.0], device=d), 0),
    "maximum nan": lambda d: torch.maximum(torch.tensor([float("nan")], device=d), torch.tensor([1.0], device=d)),
    "divide whole": lambda d: torch.tensor([-7, 7], device=d) // torch.tensor([2, -2], device=d),
    "overlap": lambda d: given(d)[0].flatten()[1:].copy_(given(d)[0].flatten()[:-1]),
    "transposed": lambda d: given(d)[0].t().mul_(given(d)[1]), "expanded": lambda d: given(d)[0] * given(d)[1][:, :1],
    "out larger": lambda d: torch.add(given(d)[0][:1], given(d)[0][:, :1]),
    "half and float": lambda d: given(d)[0].half() + given(d)[1], "whole and number": lambda d: given(d)[2] + 0.5,
    "into half": lambda d: torch.add(given(d)[0], given(d)[1], out=torch.empty(4, 4, dtype=torch.float16, device=d)),
    "sort ties": lambda d: torch.sort(given(d)[2].flatten().repeat(9), stable=True),
    "cumsum whole": lambda d: torch.cumsum(given(d)[2].int(), 0), "sum of bool": lambda d: (given(d)[2] > 3).sum(),
    "unique": lambda d: torch.unique(given(d)[2], return_inverse=True, return_counts=True),
    "number of the CPU": lambda d: torch.add(torch.tensor(2.5), given(d)[0]),
    "aminmax of old": lambda d: torch._aminmax(given(d)[0]), "aminmax along": lambda d: torch._aminmax(given(d)[0], 1),
    "add_relu": lambda d: torch._add_relu(given(d)[0], -2 * given(d)[1]),
    "add_relu_": lambda d: torch._add_relu_(given(d)[0], -2 * given(d)[1]),
    "pad reflect": lambda d: torch.nn.functional.pad(given(d)[0].view(1, 1, 4, 4), (1, 2, 3, 0), mode="reflect"),
    "pad replicate": lambda d: torch.nn.functional.pad(given(d)[0].view(1, 1, 2, 2, 4), (1,) * 6, mode="replicate"),
    "coalesce": lambda d: torch.sparse_coo_tensor(
        torch.tensor([[1, 0, 1], [2, 1, 2]]), torch.tensor([1.0, 2.0, 3.0]), (3, 4)
    ).to(d).coalesce().to_dense(),
    "fake_quantize": lambda d: torch.fake_quantize_per_tensor_affine(
        given(d)[0], torch.tensor(0.1, device=d), torch.tensor(3, dtype=torch.int32, device=d), 0, 9
    ),
    "fake_quantize channels": lambda d: torch.fake_quantize_per_channel_affine(
        given(d)[0], given(d)[1][0], given(d)[2][0].int(), 1, 0, 9
    ),
    "qkv": lambda d: aten._transform_bias_rescale_qkv(
        torch.arange(48.0, device=d).view(1, 2, 24), torch.arange(24.0, device=d), 2
    ),
    "unique rows": lambda d: torch.unique(given(d)[2] % 2, dim=0, return_counts=True),
}  # fmt: skip
#: What torch_npu has and the CPU has not, beside what it is documented to be.
OWN: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "scatter_nd_update": (
        lambda: torch_npu.npu_scatter_nd_update(
            given("npu")[0], torch.tensor([[0], [2]], device="npu"), torch.zeros(2, 4, device="npu")
        ),
        lambda: given("cpu")[0].index_fill(0, torch.tensor([0, 2]), 0.0),
    ),
    "scatter_update": (
        lambda: torch_npu.scatter_update(
            given("npu")[0].view(2, 2, 4), torch.tensor([1, 0], device="npu"), torch.zeros(2, 1, 4, device="npu"), -2
        ),
        lambda: given("cpu")[0].index_fill(0, torch.tensor([1, 2]), 0.0).view(2, 2, 4),
    ),
    "scatter_list": (
        lambda: torch_npu.npu_scatter_list(
            list(given("npu")[0].view(2, 2, 2, 2)), torch.tensor([1, 0], dtype=torch.int32, device="npu"),
            torch.zeros(2, 2, 1, 2, device="npu"), torch.ones(2, dtype=torch.uint8, device="npu"), "update", -2,
        ),
        lambda: list(given("cpu")[0].view(2, 2, 2, 2) * torch.tensor([[[[1.0], [0.0]]], [[[0.0], [1.0]]]])),
    ),
    "top_k_top_p": (
        lambda: torch_npu.npu_top_k_top_p(
            torch.tensor([[0.1, 0.5, 0.2, 0.4]], device="npu").log(), torch.tensor([0.7], device="npu"),
            torch.tensor([3], dtype=torch.int32, device="npu"),
        ),
        lambda: torch.tensor([[0.0, 0.5, 0.0, 0.4]]).log(),
    ),
    "masked_scale": (
        lambda: torch._masked_scale(given("npu")[0], (given("npu")[1] > 0.7).to(torch.uint8), 2.0),
        lambda: given("cpu")[0] * (given("cpu")[1] > 0.7) * 2,
    ),
    "gather_sparse_index": (
        lambda: torch_npu.npu_gather_sparse_index(given("npu")[0], torch.tensor([[2, 0], [1, 1]], device="npu")),
        lambda: given("cpu")[0][torch.tensor([[2, 0], [1, 1]])],
    ),
    "index_add": (
        lambda: torch_npu._npu_index_add(given("npu")[0], torch.tensor([2, 2], device="npu"), given("npu")[1][:2]),
        lambda: given("cpu")[0].index_add(0, torch.tensor([2, 2]), given("cpu")[1][:2]),
    ),
    "one_": (lambda: torch_npu.one_(given("npu")[0]), lambda: torch.ones(4, 4)),
    "npu_dtype_cast": (lambda: torch_npu.npu_dtype_cast(given("npu")[0], torch.int32), lambda: given("cpu")[0].int()),
    "transpose_batchmatmul": (
        lambda: torch_npu.npu_transpose_batchmatmul(
            given("npu")[0].half().view(2, 2, 4), given("npu")[1].half().view(2, 4, 2),
            perm_x1=(0, 1, 2), perm_x2=(0, 1, 2), perm_y=(1, 0, 2),
        ),
        lambda: torch.bmm(given("cpu")[0].half().view(2, 2, 4), given("cpu")[1].half().view(2, 4, 2)).transpose(0, 1),
    ),
}  # fmt: skip


def compare(name: str, found: Any, expected: Any) -> str:
    """How two results differ; "" where they agree."""
    if isinstance(expected, (tuple, list)):
        return "; ".join(filter(None, (compare(name, *pair) for pair in zip(found, expected, strict=True))))
    if found.dtype != expected.dtype:
        return f"{name}: type {found.dtype} for {expected.dtype}"
    try:
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-4, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return f"{name}: {' '.join(str(error).split())}"
    return ""


different = []
for name, case in CASES.items():
    try:
        different.append(compare(name, case("npu"), case("cpu")))
    except Exception as error:
        different.append(f"{name}: {' '.join(str(error).split())[:300]}")
for name, (found, expected) in OWN.items():
    try:
        different.append(compare(name, found(), expected()))
    except Exception as error:
        different.append(f"{name}: {' '.join(str(error).split())[:300]}")
assert not any(different), "\n".join(filter(None, different))
