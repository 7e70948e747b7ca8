"""The `-sim` rules: APIs without a counterpart on NPU, and a similar one that runs there, with what may differ.

Signatures were read in NVIDIA/apex, bitsandbytes-foundation/bitsandbytes, Dao-AILab/flash-attention and torch;
arguments that the similar form does not take are rejected, so that such a call stays a finding.
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
    *(
        _rename(
            f"bitsandbytes.optim.{name}",
            "torch.optim.RMSprop",
            _BNB_DIFFERS,
            "bitsandbytes/optim/rmsprop.py",
            args={
                "positional_max": 5,
                "reject_keyword": ["momentum", "centered", *_BNB],
                "message": "torch.optim.RMSprop has no 8-bit options and another momentum",
            },
        )
        for name in ("RMSprop", "RMSprop8bit", "RMSprop32bit")
    ),
    *(
        _rename(
            f"bitsandbytes.optim.{name}",
            "torch.optim.Adagrad",
            _BNB_DIFFERS,
            "bitsandbytes/optim/adagrad.py",
            args={
                "positional_max": 6,
                "reject_keyword": _BNB,
                "message": "torch.optim.Adagrad has no 8-bit options",
            },
        )
        for name in ("Adagrad", "Adagrad8bit", "Adagrad32bit")
    ),
    *(
        _rename(
            name,
            "torch.nn.LayerNorm",
            "several kernels instead of a fused one: a little slower; rounding differs in the last bits",
            "apex/contrib/layer_norm/layer_norm.py; its eps is no attribute named eps",
            args={
                "positional_max": 2,
                "reject_keyword": ["hidden_size", "memory_efficient"],
                "message": "torch.nn.LayerNorm calls the size normalized_shape and has no memory_efficient",
            },
        )
        for name in ("apex.contrib.layer_norm.FastLayerNorm", "apex.contrib.layer_norm.layer_norm.FastLayerNorm")
    ),
    *(
        _rename(
            name,
            "torch.nn.GroupNorm",
            "the same formula in the layout NCHW: a copy where the input is channels_last; input and weights have one "
            "dtype; rounding differs in the last bits",
            "apex/contrib/group_norm/group_norm.py",
            args={
                "positional_max": 4,
                "reject_keyword": ["act"],
                "message": "torch.nn.GroupNorm has no act: put the activation behind it",
            },
        )
        for name in ("apex.contrib.group_norm.GroupNorm", "apex.contrib.group_norm.group_norm.GroupNorm")
    ),
    *(
        _rename(
            name,
            "torch_npu.optim.NpuFusedLamb",
            "no bias correction and no clipping by max_grad_norm: the first steps differ; only where weight_decay is "
            "given, whose default differs",
            "apex/optimizers/fused_lamb.py; torch_npu/optim/npu_fused_lamb.py of the wheels for torch 2.13 and 2.14",
            versions=">=2.13",
            skip_if={"lacks_keyword": ["weight_decay"]},
            args={
                "positional_max": 2,
                "reject_keyword": [
                    "bias_correction",
                    "amsgrad",
                    "adam_w_mode",
                    "grad_averaging",
                    "set_grad_none",
                    "max_grad_norm",
                    "use_nvlamb",
                ],
                "message": "torch_npu.optim.NpuFusedLamb takes other options than apex FusedLAMB",
            },
        )
        for name in ("apex.optimizers.FusedLAMB", "apex.optimizers.fused_lamb.FusedLAMB")
    ),
    _rename(
        "flash_attn.losses.cross_entropy.CrossEntropyLoss",
        "torch.nn.CrossEntropyLoss",
        "the loss has the dtype of the logits instead of float32, and a copy of the logits stays in memory",
        "flash_attn/losses/cross_entropy.py",
        args={
            "positional_max": 0,
            "reject_keyword": [
                "logit_scale",
                "lse_square_scale",
                "inplace_backward",
                "process_group",
                "return_z_loss",
            ],
            "message": "torch.nn.CrossEntropyLoss takes other options than that of flash_attn",
        },
    ),
    _rename(
        "flash_attn.ops.fused_dense.FusedDense",
        "torch.nn.Linear",
        "matrix product and bias in separate kernels: a little slower; the same parameters",
        "flash_attn/ops/fused_dense.py, a subclass of torch.nn.Linear",
        args={
            "positional_max": 3,
            "reject_keyword": ["return_residual"],
            "message": "torch.nn.Linear has no return_residual",
        },
    ),
    _rename(
        "torch.cuda.get_stream_from_external",
        "torch.npu.ExternalStream",
        "it takes the address of a stream of CANN: one of CUDA means nothing there",
        "torch/cuda/__init__.py; torch_npu/npu/streams.py of the wheels for torch 2.7 and 2.9 and later",
        versions=">=2.7,!=2.8",
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
