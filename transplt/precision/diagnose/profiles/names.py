"""Names of kernels, of their types, of the aclnn functions and PyTorch operators that launch them."""

from __future__ import annotations

import re
from functools import lru_cache

_BACKENDS = re.compile(
    r"npufused(?=adam|sgd|lamb|rmsprop|adadelta|bert)|cudnn|miopen|mkldnn|native|npu|"
    r"(?:flash|efficient|fused)(?=attention)|overrideable|forcpu"
)
_NUMBERED = re.compile(r"(?:[-_]\d+)+$|(?<=[A-Za-z])(?<!V)\d+$|(?<=V\d)\d+$")


@lru_cache(maxsize=20_000)
def type_of(kernel: str) -> str:
    """The type of a kernel by its name, where the table does not say it.

    >>> type_of("trans_TransData_20"), type_of("Cast16"), type_of("aclnnMatmul_MatMulCommon_MatMulV2")
    ('TransData', 'Cast', 'MatMulV2')
    >>> type_of("hcom_allReduce__445_0"), type_of("MaxPoolV1_12"), type_of("Conv2D17"), type_of("MatMulV215")
    ('hcom_allReduce', 'MaxPoolV1', 'Conv2D', 'MatMulV2')
    """
    if kernel.lower().startswith("hcom_"):
        return kernel.split("__", 1)[0].rstrip("_")
    if kernel.startswith("aclnn") and "_" in kernel:
        return kernel.rpartition("_")[2] or kernel
    if kernel.startswith(("aten::", "npu::", "c10d::", "aclnn")):
        return kernel
    return _NUMBERED.sub("", kernel.removeprefix("trans_")) or kernel


@lru_cache(maxsize=20_000)
def meaning_of(name: str) -> str:
    """What kernels, aclnn functions and PyTorch operators have in common in their names, to bring them together.

    >>> {meaning_of(each) for each in ("aclnnInplaceMul", "aten::mul_", "Mul")}
    {'mul'}
    >>> meaning_of("aclnnIndexPutImpl") == meaning_of("aten::_index_put_impl_")
    True
    """
    last = name.rpartition("::")[2].removeprefix("aclnn").removeprefix("Inplace")
    return re.sub(r"v\d+$", "", last.lower()).replace("_", "")


@lru_cache(maxsize=20_000)
def operator_of(name: str) -> str:
    """What a PyTorch operator, its step of autograd or an optimizer is called, whichever library computes it.

    >>> {operator_of(each) for each in ("aten::cudnn_batch_norm", "aten::native_batch_norm", "npu::npu_batch_norm")}
    {'batchnorm'}
    >>> operator_of("npu::npu_fusion_attention_grad")
    'scaleddotproductattentionbackward'
    >>> operator_of("Optimizer.step#NpuFusedAdamW.step"), operator_of("aten::_scaled_dot_product_flash_attention")
    ('optimizer.step#adamw.step', 'scaleddotproductattention')
    """
    if "(" in name:  # a kernel in C++, which no operator launched
        return name
    bare = _BACKENDS.sub("", meaning_of(name.rpartition(": ")[2]))
    return (
        bare.replace("fusionattention", "scaleddotproductattention").replace("attentiongrad", "attentionbackward")
        or name
    )


def called_by(kernel: str) -> str:
    """The aclnn function in the name of a kernel, empty for none: aclnnMatmul of aclnnMatmul_MatMulCommon_MatMulV2."""
    return kernel.partition("_")[0] if kernel.startswith("aclnn") else ""
