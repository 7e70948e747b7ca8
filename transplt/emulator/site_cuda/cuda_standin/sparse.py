"""Sparse tensors of layout COO.

What PyTorch computes alike on CPUs and GPUs, in one function that calls operators on indices and values, comes to the
device for these; the rest is computed by the kernels of the CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from . import devices
from .kernel import CPU_KEYS, Call, count, info_of, wrap
from .kind import EMULATED, KEY, KIND
from .relabel import to_card, to_cpu

#: Operators whose function is one for CPUs and GPUs: `dispatch` of PyTorch's native_functions.yaml (a test reads it).
SHARED = frozenset(
    """
    abs abs_ abs.out view_as_real view_as_complex sgn sgn_ sgn.out conj_physical.out add.Tensor add_.Tensor asinh
    asinh_ asinh.out atanh atanh_ atanh.out asin asin_ asin.out atan atan_ atan.out _sparse_broadcast_to cat ceil
    ceil_ ceil.out copy_ div.Tensor div_.Tensor div.out div.Tensor_mode div_.Tensor_mode div.out_mode
    empty.memory_format empty_like erf erf_ erf.out expm1 expm1_ expm1.out floor floor_ floor.out floor_divide
    floor_divide_.Tensor floor_divide.out frac frac_ frac.out isnan nan_to_num nan_to_num_ nan_to_num.out log1p
    log1p_ log1p.out mm mm.out mul.Tensor mul_.Tensor mv narrow_copy permute rad2deg rad2deg_ rad2deg.out deg2rad
    deg2rad_ deg2rad.out neg neg_ neg.out round round_ round.out relu relu_ sin sin_ sin.out sinh sinh_ sinh.out sum
    sum.dim_IntList sqrt sqrt_ sqrt.out tan tan_ tan.out tanh tanh_ tanh.out threshold_backward.grad_input
    threshold_backward trunc trunc_ trunc.out unsqueeze zeros.out native_norm native_norm.ScalarOpt_dim_dtype
    norm.ScalarOpt_dim_dtype norm.ScalarOpt_dim clone resize_as_sparse_ zero_ sub.out sub.Tensor sub_.Tensor
    _sparse_coo_tensor_with_dims _sparse_coo_tensor_with_dims_and_tensors sparse_resize_ sparse_resize_and_clear_
    sparse_mask _sparse_mask_projection _to_dense sparse_dim _dimI dense_dim _dimV _nnz is_coalesced _indices
    _values _coalesced_ indices values copy_sparse_to_sparse_ _to_sparse.sparse_dim _to_sparse _to_sparse_csr
    _to_sparse_csc _to_sparse_bsr _to_sparse_bsc erfinv erfinv_ erfinv.out sign sign_ sign.out signbit signbit.out
    any pow.Tensor_Scalar_out pow.Tensor_Scalar isinf isposinf isposinf.out isneginf isneginf.out
    """.split()
)
#: Operators that write into what they are given, or join values.
OWN = ("add.out", "_coalesce", "mul.out")
_KEY = "SparseCUDA"
_CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.SparseCPU)
_libraries: list[Any] = []
_aten: Any = torch.ops.aten


def install() -> None:
    """Register the operators of this device's sparse tensors."""
    aten, others = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")
    _libraries.extend([aten, others])
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in sorted(SHARED):
        if has(f"aten::{name}", "SparseCPU"):
            kernel = _other_layout if name.startswith("_to_sparse_") else _shared
            aten.impl(name, functools.partial(kernel, _operator(name)), _KEY)
    for name in OWN:
        aten.impl(name, functools.partial(_on_host, _operator(name)), _KEY)
    for name in ("_to_sparse", "_to_sparse.sparse_dim"):  # of dense tensors: composed of operators of this device
        aten.impl(name, functools.partial(_operator(name).redispatch, CPU_KEYS), KEY)
    others.fallback(_on_host, dispatch_key=_KEY)


def _operator(name: str) -> Any:
    base, _, overload = name.partition(".")
    return getattr(getattr(_aten, base), overload or "default")


def _shared(op: Any, *args: Any, **kwargs: Any) -> Any:
    """PyTorch's own function: what it calls for indices and values comes to this device again."""
    count(info_of(op).name)
    return op.redispatch(_CPU_KEYS, *_numbers(op, args), **kwargs)


def _other_layout(op: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError(f"{EMULATED} {info_of(op).name}: of sparse tensors, only COO is emulated")


def _numbers(op: Any, args: Any) -> list[Any]:
    """Arguments with tensors where a number stands in place of one: kernels in Python get numbers unwrapped."""
    kinds = [str(argument.type) for argument in op._schema.arguments]
    return [
        torch.tensor(value) if kind == "Tensor" and isinstance(value, (int, float, complex)) else value
        for kind, value in zip(kinds, args, strict=False)
    ]


class _SparseCall(Call):
    """A call whose sparse arguments become sparse tensors of the host, over the same memory."""

    def unwrap(self, value: Any, info: Any, argument: str) -> Any:
        if isinstance(value, torch.Tensor) and value.layout is torch.sparse_coo and value.device.type == KIND:
            self.index = value.device.index if self.index is None else self.index
            return _made(to_cpu(value._indices()), to_cpu(value._values()), value, torch.device("cpu"))
        return super().unwrap(value, info, argument)


def _on_host(op: Any, *args: Any, **kwargs: Any) -> Any:
    """The kernel of the CPU; what it was to write into a sparse tensor is copied there."""
    info = info_of(op)
    count(info.name)
    call = _SparseCall()
    given = [call.unwrap(value, info, name) for name, value in zip(info.arguments, args, strict=False)]
    named = {name: call.unwrap(value, info, name) for name, value in kwargs.items()}
    index = call.target if call.target is not None else call.index
    if info.is_out:  # the memory of an alias cannot grow
        named |= {name: torch.empty_like(value) for name, value in named.items() if name in info.written}
    result = op(*_numbers(op, given), **named)
    if info.results != 1 or info.written[0] is None:
        return _wrapped(result, index if index is not None else devices.state.device)
    name = info.written[0]
    target = kwargs[name] if name in kwargs else args[info.arguments.index(name)]
    done = _wrapped(result, target.device.index)
    if target.layout is not torch.sparse_coo and target.shape != done.shape:
        target.resize_as_(done)
    return target.copy_(done)


def _wrapped(result: Any, index: int) -> Any:
    if isinstance(result, torch.Tensor) and result.layout is torch.sparse_coo:
        device = torch.device(KIND, index)
        return _made(to_card(result._indices(), index), to_card(result._values(), index), result, device)
    if isinstance(result, (tuple, list)):
        return type(result)(_wrapped(each, index) for each in result)
    return wrap(result, index)


def _made(indices: Any, values: Any, like: Any, device: torch.device) -> Any:
    """A sparse tensor of a device, shaped as another one."""
    make: Callable[..., Any] = _aten._sparse_coo_tensor_with_dims_and_tensors
    return make(
        like.sparse_dim(), like.dense_dim(), like.shape, indices, values,
        dtype=like.dtype, layout=torch.sparse_coo, device=device, is_coalesced=like.is_coalesced(),
    )  # fmt: skip
