"""Autocast rules for the PrivateUse1 key: PyTorch ships none, the backend brings them. The lists are CUDA's."""

from __future__ import annotations

from typing import Any

import torch

LOWER = """
conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input conv_transpose3d.input convolution prelu
addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm baddbmm bmm chain_matmul linalg_multi_dot
_thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell
scaled_dot_product_attention
""".split()
FLOAT32 = """
acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar
pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm group_norm cosine_similarity poisson_nll_loss
cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss
margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest2d.vec
upsample_bilinear2d.vec upsample_bicubic2d.vec linalg_vector_norm cross_entropy_loss
""".split()
FLOAT32_OUT = "softmax.int log_softmax.int cumprod cumsum prod prod.dim_int sum sum.dim_IntList".split()
PROMOTE = "addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put tensordot scatter_add".split()
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastPrivateUse1)
_map_tensors: Any = torch.utils._pytree.tree_map_only
_libraries: list[Any] = []


def _eligible(tensor: Any) -> bool:
    return tensor.is_floating_point() and tensor.device.type == "npu" and tensor.dtype in _FLOATS


def _low(args: Any, kwargs: Any) -> Any:
    return torch.get_autocast_dtype("npu")


def _float32(args: Any, kwargs: Any) -> Any:
    return torch.float32


def _widest(args: Any, kwargs: Any) -> Any:
    seen: list[Any] = []
    _map_tensors(torch.Tensor, lambda t: seen.append(t.dtype) if _eligible(t) else None, (args, kwargs))
    if torch.float32 in seen:
        return torch.float32
    return torch.get_autocast_dtype("npu") if seen else None


def _cast(op: Any, dtype_of: Any) -> Any:
    def rule(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            dtype = dtype_of(args, kwargs)
            if dtype is not None:

                def to(tensor: Any) -> Any:
                    return tensor.to(dtype) if _eligible(tensor) and tensor.dtype != dtype else tensor

                args, kwargs = _map_tensors(torch.Tensor, to, (args, kwargs))
            return op(*args, **kwargs)

    return rule


def _float32_out(op: Any) -> Any:
    position = [a.name for a in op._schema.arguments].index("dtype")

    def rule(*args: Any, **kwargs: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(_KEYS):
            given = kwargs.get("dtype") if "dtype" in kwargs else (args[position] if position < len(args) else None)
            if given is None and isinstance(args[0], torch.Tensor) and _eligible(args[0]):
                if position < len(args):
                    args = (*args[:position], torch.float32, *args[position + 1 :])
                else:
                    kwargs = {**kwargs, "dtype": torch.float32}
            return op(*args, **kwargs)

    return rule


def _binary_cross_entropy(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: use "
        "binary_cross_entropy_with_logits / BCEWithLogitsLoss"
    )


def install() -> None:
    """Register the rules."""
    fallthrough = torch.library.Library("_", "IMPL")
    fallthrough.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    aten = torch.library.Library("aten", "IMPL")
    _libraries.extend([fallthrough, aten])
    makers: tuple[tuple[list[str], Any], ...] = (
        (LOWER, lambda op: _cast(op, _low)),
        (FLOAT32, lambda op: _cast(op, _float32)),
        (PROMOTE, lambda op: _cast(op, _widest)),
        (FLOAT32_OUT, _float32_out),
    )
    for names, make in makers:
        for name in names:
            base, _, overload = name.partition(".")
            op = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
            if op is not None:
                aten.impl(name, make(op), "AutocastPrivateUse1")
    aten.impl("binary_cross_entropy", _binary_cross_entropy, "AutocastPrivateUse1")
