"""The `-sim` rules: APIs without a counterpart on NPU, and a similar one that runs there, with what may differ.

Signatures were read in NVIDIA/apex, bitsandbytes-foundation/bitsandbytes and torch; arguments that the similar form
does not take are rejected, so that such a call stays a finding.
"""

from __future__ import annotations

from typing import Any

_APEX_OPTIMIZER = ["set_grad_none", "capturable", "master_weights"]
_BNB = ["optim_bits", "args", "min_8bit_size", "percentile_clipping", "block_wise", "is_paged", "max_unorm"]
_BNB_DIFFERS = "optimizer state stays in 32 bits: the same or better precision, up to four times the state memory"


def _rename(old: str, new: str, differs: str, source: str, **keys: Any) -> dict[str, Any]:
    return {"old_name": old, "new_name": new, "differs": differs, "source": source, **keys}


def _bnb_adamw(name: str) -> dict[str, Any]:
    return _rename(
        f"bitsandbytes.optim.{name}",
        "torch.optim.AdamW",
        _BNB_DIFFERS,
        "bitsandbytes/optim/adamw.py",
        args={
            "positional_max": 6,
            "reject_keyword": _BNB,
            "message": "torch.optim.AdamW has no 8-bit or paged options",
        },
    )


_FUNCTIONS = [
    *(
        _rename(
            name,
            "torch.nn.LayerNorm",
            "several kernels instead of a fused one: a little slower; rounding differs in the last bits",
            "apex/normalization/fused_layer_norm.py",
            args={
                "positional_max": 3,
                "reject_keyword": ["memory_efficient"],
                "message": "torch.nn.LayerNorm has no memory_efficient",
            },
        )
        for name in ("apex.normalization.FusedLayerNorm", "apex.normalization.fused_layer_norm.FusedLayerNorm")
    ),
    *(
        _rename(
            name,
            "torch.nn.RMSNorm",
            "the default eps is that of the dtype instead of 1e-5; rounding differs in the last bits; slower than a "
            "fused kernel",
            "apex/normalization/fused_layer_norm.py; torch.nn.RMSNorm exists from torch 2.4 on",
            versions=">=2.4",
            args={
                "positional_max": 3,
                "reject_keyword": ["memory_efficient"],
                "message": "torch.nn.RMSNorm has no memory_efficient",
            },
        )
        for name in ("apex.normalization.FusedRMSNorm", "apex.normalization.fused_layer_norm.FusedRMSNorm")
    ),
    *(
        _rename(
            name,
            "torch.optim.AdamW",
            "the same update in several kernels: slower; only where weight_decay is given, whose default differs",
            "apex/optimizers/fused_adam.py",
            skip_if={"lacks_keyword": ["weight_decay"]},
            args={
                "positional_max": 2,
                "reject_keyword": ["bias_correction", "adam_w_mode", *_APEX_OPTIMIZER],
                "message": "torch.optim.AdamW takes other options than apex FusedAdam",
            },
        )
        for name in ("apex.optimizers.FusedAdam", "apex.optimizers.fused_adam.FusedAdam")
    ),
    *(
        _rename(
            name,
            "torch.optim.SGD",
            "the same update in several kernels: slower",
            "apex/optimizers/fused_sgd.py",
            args={
                "positional_max": 6,
                "reject_keyword": ["wd_after_momentum", "materialize_master_grads", "set_grad_none"],
                "message": "torch.optim.SGD takes other options than apex FusedSGD",
            },
        )
        for name in ("apex.optimizers.FusedSGD", "apex.optimizers.fused_sgd.FusedSGD")
    ),
    _rename(
        "apex.optimizers.FusedAdagrad",
        "torch.optim.Adagrad",
        "the same update in several kernels: slower",
        "apex/optimizers/fused_adagrad.py",
        args={
            "name_positional": {"2": "eps", "3": "weight_decay"},
            "positional_max": 2,
            "reject_keyword": ["set_grad_none", "adagrad_w_mode"],
            "message": "torch.optim.Adagrad takes other options than apex FusedAdagrad",
        },
    ),
    _rename(
        "apex.contrib.clip_grad.clip_grad_norm_",
        "torch.nn.utils.clip_grad_norm_",
        "the same norm, computed tensor by tensor: a little slower",
        "apex/contrib/clip_grad/clip_grad.py",
    ),
    _rename(
        "apex.fused_dense.FusedDense",
        "torch.nn.Linear",
        "weights are initialised otherwise; parameters have the same names and shapes",
        "apex/fused_dense/fused_dense.py",
    ),
    _rename(
        "apex.parallel.DistributedDataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "gradients are reduced in other buckets and buffers are broadcast before each forward pass: sums may round "
        "otherwise",
        "apex/parallel/distributed.py (older releases)",
        args={
            "positional_max": 1,
            "reject_keyword": [
                "message_size",
                "delay_allreduce",
                "shared_param",
                "allreduce_trigger_params",
                "retain_allreduce_buffers",
                "allreduce_always_fp32",
                "num_allreduce_streams",
                "allreduce_communicators",
                "gradient_average",
                "gradient_predivide_factor",
                "gradient_average_split_factor",
                "prof",
            ],
            "message": "torch's DistributedDataParallel takes other options than apex's",
        },
    ),
    _rename(
        "apex.parallel.SyncBatchNorm",
        "torch.nn.SyncBatchNorm",
        "statistics are merged in another order: rounding differs in the last bits",
        "apex/parallel (older releases)",
        args={
            "positional_max": 6,
            "reject_keyword": ["channel_last", "fuse_relu"],
            "message": "torch.nn.SyncBatchNorm has neither channel_last nor fuse_relu",
        },
    ),
    _rename(
        "apex.parallel.convert_syncbn_model",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "statistics are merged in another order: rounding differs in the last bits",
        "apex/parallel (older releases)",
        args={
            "positional_max": 2,
            "reject_keyword": ["channel_last"],
            "message": "torch.nn.SyncBatchNorm has no channel_last",
        },
    ),
    *(
        _bnb_adamw(name)
        for name in ("AdamW", "AdamW8bit", "AdamW32bit", "PagedAdamW", "PagedAdamW8bit", "PagedAdamW32bit")
    ),
    *(
        _rename(
            f"bitsandbytes.optim.{name}",
            "torch.optim.Adam",
            _BNB_DIFFERS,
            "bitsandbytes/optim/adam.py; its weight decay is decoupled, that of torch.optim.Adam is not",
            args={
                "positional_max": 4,
                "reject_keyword": ["weight_decay", *_BNB],
                "message": "torch.optim.Adam has no 8-bit or paged options and another weight decay",
            },
        )
        for name in ("Adam", "Adam8bit", "Adam32bit", "PagedAdam", "PagedAdam8bit", "PagedAdam32bit")
    ),
    *(
        _rename(
            f"bitsandbytes.optim.{name}",
            "torch.optim.SGD",
            _BNB_DIFFERS,
            "bitsandbytes/optim/sgd.py",
            args={
                "positional_max": 6,
                "reject_keyword": _BNB,
                "message": "torch.optim.SGD has no 8-bit options",
            },
        )
        for name in ("SGD", "SGD8bit", "SGD32bit")
    ),
    _rename(
        "torch.cuda.ipc_collect",
        "torch.npu.empty_cache",
        "frees unused cached blocks, not memory that another process released",
        "torch_npu wheels for torch 2.3 to 2.5, which lack ipc_collect",
        versions=">=2.2,<=2.5",
    ),
]

SIMILAR = {
    "description": "-sim: APIs without a counterpart on NPU, replaced by similar ones; each says what may differ",
    "defaults": {"FuncNameModifyRule": {"code": "NPU120", "level": "unsafe", "similar": True}},
    "rules": {"FuncNameModifyRule": _FUNCTIONS},
}
