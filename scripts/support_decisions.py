"""Decisions of the support analysis that no fact can make; used by `build_api_support.py`."""

from __future__ import annotations

from typing import Any

Entry = dict[str, Any]

_BY_ONE_FUNCTION = "{} is documented as supported, and calls the same function (fully_sharded_data_parallel.py)"
_LOADED = _BY_ONE_FUNCTION.format("optim_state_dict_to_load")
_OF_FSDP = {
    "set_state_dict_type": "state_dict_type is documented as supported, and calls it",
    "get_state_dict_type": "optim_state_dict_to_load is documented as supported, and calls it",
    "optim_state_dict": _BY_ONE_FUNCTION.format("full_optim_state_dict"),
    "sharded_optim_state_dict": _BY_ONE_FUNCTION.format("full_optim_state_dict"),
    "shard_full_optim_state_dict": _LOADED,
    "scatter_full_optim_state_dict": _LOADED,
    "flatten_sharded_optim_state_dict": _LOADED,
    "rekey_optim_state_dict": "it renames the keys of a dict on the host",
    "summon_full_params": "a full state dict, documented as supported, gathers by the same function "
    "(_unshard_param_utils.py)",
}
#: The interfaces of what checkpoints are written to, and their methods.
_STORAGES = {
    "StorageReader": (
        "prepare_global_plan", "prepare_local_plan", "read_data", "read_metadata", "reset", "set_up_storage_reader",
        "validate_checkpoint_id",
    ),
    "StorageWriter": (
        "finish", "prepare_global_plan", "prepare_local_plan", "reset", "set_up_storage_writer", "storage_meta",
        "validate_checkpoint_id", "write_data",
    ),
}  # fmt: skip
#: Entries of the documentation that other entries of it, or the wheels, contradict: left out, so that they are
#: unverified.
CONTRADICTED = {
    "torch.optim.Adam.step": "torch.optim.Adam is documented as supported, and is nothing without its step",
    "torch.optim.Adadelta.step": "torch.optim.Adadelta is documented as supported, and is nothing without its step",
    "torch.optim.LBFGS.step": "torch.optim.LBFGS is documented as supported, and is nothing without its step",
    "torch.nn.MaxPool2d": "it is aten::max_pool2d_with_indices alone, which has an NPU kernel from 2.1 on",
    "torch.nn.MaxPool3d": "torch.nn.functional.max_pool3d is documented as supported, and it is nothing else",
    "torch.nn.AvgPool3d": "it is aten::avg_pool3d alone, which has an NPU kernel from 2.1 on",
    "torch.nn.functional.embedding_bag": "torch.nn.EmbeddingBag is documented with a limit, and it is nothing else",
    **dict.fromkeys(
        "torch.Tensor.share_memory_ torch.nn.Module.share_memory torch.Tensor.is_shared "
        "torch.TypedStorage.share_memory_".split(),
        "it is tensors of the host that are shared, and one of a card is returned as it is (torch/storage.py)",
    ),
    **dict.fromkeys(
        (f"torch.compiler.{name}" for name in ("reset", "disable", "allow_in_graph", "list_backends")),
        "it keeps TorchDynamo's own records on the host (torch/compiler/__init__.py)",
    ),
    "torch.is_deterministic_algorithms_warn_only_enabled": "it reads a flag of the host (torch/__init__.py)",
    **{f"torch.distributed.fsdp.FullyShardedDataParallel.{name}": why for name, why in _OF_FSDP.items()},
    **dict.fromkeys(
        "torch.distributed.tensor.parallel.parallelize_module torch.distributed.tensor.parallel.RowwiseParallel "
        "torch.distributed.tensor.parallel.PrepareModuleInput".split(),
        "ColwiseParallel is documented as supported, which only parallelize_module applies; all are made of "
        "DTensor.from_local, redistribute and distribute_tensor, which are documented, too (tensor/parallel/style.py)",
    ),
    **dict.fromkeys(
        (
            *(f"torch.distributed.checkpoint.{kind}" for kind in _STORAGES),
            *(f"torch.distributed.checkpoint.{kind}.{name}" for kind, names in _STORAGES.items() for name in names),
        ),
        "an abstract class that files of the host are read and written by (torch/distributed/checkpoint/storage.py)",
    ),
    **dict.fromkeys(
        (f"torch.export.{name}" for name in ("export", "save", "load", "ExportedProgram", "ExportedProgram.module")),
        "a program of a module on an NPU was traced, saved, loaded and run by torch_npu 2.13 on the emulated card",
    ),
    "torch.utils.mobile_optimizer.optimize_for_mobile": "it rewrites a TorchScript program on the host "
    "(torch/utils/mobile_optimizer.py)",
    "torch.nn.Module.npu": "defined by torch_npu itself",
    "torch.profiler.ProfilerActivity.name": "a property of every enumeration",
    "torch.distributed.fsdp.FullyShardedDataParallel.module": "an attribute of the wrapper",
    "torch.onnx.OnnxExporterError": "an exception",
}

#: Calls that are certain to meet a documented limit. `limit` is what the version's limit has to say for it to hold;
#: `at` is the position of the parameter; `when`: given (and not None), is (one of `values`), not (none of `values`).
#: What torch works out before it calls the kernel is none: interpolate makes sizes of scale_factor in
#: aten/src/ATen/native/UpSample.h (compute_output_size), and the kernel is the same as with size. Nor is what asks for
#: less than it gets: `topk(sorted=False)` takes the values in any order, sorted ones too.
SURE_LIMITS: dict[str, list[Entry]] = {
    "torch.sum": [{"param": "dtype", "at": 9, "when": "given", "limit": "dtype argument unsupported"}],
    "torch.nn.LSTM": [
        {"param": "proj_size", "at": 9, "when": "not", "values": [0], "limit": "proj_size argument unsupported"},
        {"param": "dropout", "at": 5, "when": "not", "values": [0, 0.0], "limit": "dropout argument unsupported"},
    ],
    "torch.nn.GRU": [
        {"param": "dropout", "at": 5, "when": "not", "values": [0, 0.0], "limit": "dropout argument unsupported"}
    ],
    "torch.nn.KLDivLoss": [
        {"param": "log_target", "at": 3, "when": "is", "values": [True], "limit": "log_target must be False"}
    ],
    "torch.nn.functional.kl_div": [
        {"param": "log_target", "at": 5, "when": "is", "values": [True], "limit": "log_target must be False"}
    ],
    "torch.nn.functional.max_pool1d": [
        {"param": "dilation", "at": 4, "when": "not", "values": [1], "limit": "dilation must be 1"}
    ],
    "torch.nn.functional.max_pool2d": [
        {"param": "dilation", "at": 4, "when": "not", "values": [1, [1, 1]], "limit": "dilation must be 1"}
    ],
    "torch.nn.functional.max_pool3d": [
        {"param": "dilation", "at": 4, "when": "not", "values": [1, [1, 1, 1]], "limit": "dilation must be 1"}
    ],
}

#: Functions that are a call of another one and nothing else, with the same arguments in the same places: what comes of
#: that comes of them (torch/nn/functional.py: `return interpolate(...)`).
CALLS = {
    f"torch.nn.functional.{name}": "torch.nn.functional.interpolate"
    for name in ("upsample", "upsample_bilinear", "upsample_nearest")
}

_FUSED = "a fused optimizer needs only one kernel per step"

#: Faster forms: fact -> the APIs that have it, or the shape of code (`shape`, see engine/analysis/affinity.py), and a
#: title; also what the source of torch_npu says beyond the fact.
AFFINITY: dict[str, Entry] = {
    "sdpa": {
        "apis": ["torch.nn.functional.scaled_dot_product_attention"],
        "title": "attention has a fused NPU operator",
    },
    "flash_attn_func": {
        "apis": ["flash_attn.flash_attn_func", "flash_attn.flash_attn_interface.flash_attn_func"],
        "title": "flash attention has an NPU operator",
    },
    "flash_attn_varlen": {
        "apis": [
            "flash_attn.flash_attn_varlen_func",
            "flash_attn.flash_attn_interface.flash_attn_varlen_func",
            "flash_attn.flash_attn_unpadded_func",
            "flash_attn.flash_attn_interface.flash_attn_unpadded_func",
        ],
        "title": "flash attention of packed sequences has an NPU operator",
    },
    "flash_attn_qkvpacked": {
        "apis": ["flash_attn.flash_attn_qkvpacked_func", "flash_attn.flash_attn_kvpacked_func"],
        "title": "flash attention has an NPU operator",
    },
    "xformers_mea": {
        "apis": ["xformers.ops.memory_efficient_attention"],
        "title": "memory efficient attention has an NPU operator",
    },
    "rms_norm": {
        "apis": [
            "torch.nn.RMSNorm",
            "torch.nn.functional.rms_norm",
            "apex.normalization.FusedRMSNorm",
            "flash_attn.ops.rms_norm.rms_norm",
        ],
        "shape": "rms_norm",
        "title": "RMS normalisation has a fused NPU operator",
    },
    "rope": {
        "apis": ["flash_attn.layers.rotary.apply_rotary_emb"],
        "shape": "rotary",
        "title": "rotary position embedding has a fused NPU operator",
    },
    "swiglu": {
        "apis": ["xformers.ops.SwiGLU", "xformers.ops.swiglu", "flash_attn.ops.activations.swiglu"],
        "shape": "swiglu",
        "title": "silu(gate) * up has a fused NPU operator",
    },
    "geglu": {"apis": [], "shape": "geglu", "title": "gelu(gate) * hidden has a fused NPU operator"},
    "fast_gelu": {"apis": [], "shape": "quick_gelu", "title": "x * sigmoid(1.702 * x) has an NPU operator"},
    "cross_entropy": {
        "apis": ["flash_attn.losses.cross_entropy.CrossEntropyLoss", "apex.contrib.xentropy.SoftmaxCrossEntropyLoss"],
        "title": "cross entropy has a fused NPU operator",
    },
    "scaled_masked_softmax": {
        "apis": ["apex.transformer.functional.FusedScaleMaskSoftmax"],
        "title": "scaled and masked softmax has a fused NPU operator",
    },
    "grouped_matmul": {"apis": ["grouped_gemm.ops.gmm"], "title": "grouped matrix products have an NPU operator"},
    "optim_NpuFusedAdam": {"apis": ["torch.optim.Adam"], "title": _FUSED},
    "optim_NpuFusedAdamW": {
        "apis": ["torch.optim.AdamW", "apex.optimizers.FusedAdam", "transformers.AdamW"],
        "title": _FUSED,
    },
    "optim_NpuFusedSGD": {"apis": ["torch.optim.SGD", "apex.optimizers.FusedSGD"], "title": _FUSED},
    "optim_NpuFusedAdadelta": {"apis": ["torch.optim.Adadelta"], "title": _FUSED},
    "optim_NpuFusedRMSprop": {"apis": ["torch.optim.RMSprop"], "title": _FUSED},
    "optim_NpuFusedLamb": {"apis": ["apex.optimizers.FusedLAMB"], "title": _FUSED},
    "optim_NpuFusedRMSpropTF": {"apis": ["timm.optim.RMSpropTF"], "title": _FUSED},
    "drop_path": {
        "apis": ["timm.models.layers.DropPath", "timm.layers.DropPath"],
        "title": "stochastic depth has a form that keeps its random numbers on the NPU",
        "caveats": "call NpuDropPath.enable_droppath_ensemble(model) once before the training: without it nothing is "
        "ever dropped, and nothing says so; fixed shapes only; drop_prob must be a number (None fails in __init__)",
        "source": "torch_npu/contrib/module/drop_path.py (Ascend/pytorch@master)",
    },
    "roll": {
        "apis": [],
        "shape": "roll",
        "title": "rolling the height and width of (N, H, W, C) has a form that keeps its indices",
        "schema": "roll(x, shifts, dims)",
        "caveats": "x has four dimensions, shifts and dims are tuples of two; the indices of each size are kept",
        "source": "torch_npu/contrib/function/roll.py (Ascend/pytorch@master)",
    },
    "roi_align": {"apis": ["detectron2.layers.ROIAlign"], "title": "ROIAlign has an NPU form"},
    "deform_conv": {
        "apis": ["mmcv.ops.ModulatedDeformConv2d", "mmcv.ops.DCNv2"],
        "title": "deformable convolution has an NPU form",
    },
    "mx_Voxelization": {"apis": ["mmcv.ops.Voxelization"], "title": "an NPU form is in DrivingSDK"},
    "mx_dynamic_scatter": {"apis": ["mmcv.ops.DynamicScatter"], "title": "an NPU form is in DrivingSDK"},
    "mx_furthest_point_sampling": {"apis": ["mmcv.ops.furthest_point_sample"], "title": "an NPU form is in DrivingSDK"},
    "mx_knn": {"apis": ["mmcv.ops.knn"], "title": "an NPU form is in DrivingSDK"},
    "mx_three_nn": {"apis": ["mmcv.ops.three_nn"], "title": "an NPU form is in DrivingSDK"},
    "mx_three_interpolate": {"apis": ["mmcv.ops.three_interpolate"], "title": "an NPU form is in DrivingSDK"},
    "mx_group_points": {"apis": ["mmcv.ops.grouping_operation"], "title": "an NPU form is in DrivingSDK"},
    "mx_MultiScaleDeformableAttnFunction": {
        "apis": [
            "mmcv.ops.MultiScaleDeformableAttnFunction",
            "mmcv.ops.multi_scale_deform_attn.MultiScaleDeformableAttnFunction",
        ],
        "title": "an NPU form is in DrivingSDK",
    },
    "mx_modulated_deform_conv2d": {
        "apis": ["mmcv.ops.modulated_deform_conv2d"],
        "title": "an NPU form is in DrivingSDK",
    },
    "mx_deform_conv2d": {"apis": ["mmcv.ops.deform_conv2d"], "title": "an NPU form is in DrivingSDK"},
    "mx_box_iou_rotated": {"apis": ["mmcv.ops.box_iou_rotated"], "title": "an NPU form is in DrivingSDK"},
    "mx_sigmoid_focal_loss": {"apis": ["mmcv.ops.sigmoid_focal_loss"], "title": "an NPU form is in DrivingSDK"},
    "mx_SparseConv3d": {"apis": ["spconv.pytorch.SparseConv3d"], "title": "an NPU form is in DrivingSDK"},
    "mx_SubMConv3d": {"apis": ["spconv.pytorch.SubMConv3d"], "title": "an NPU form is in DrivingSDK"},
    "mx_SparseConvTensor": {"apis": ["spconv.pytorch.SparseConvTensor"], "title": "an NPU form is in DrivingSDK"},
    "mx_SparseSequential": {"apis": ["spconv.pytorch.SparseSequential"], "title": "an NPU form is in DrivingSDK"},
    "mx_scatter_max": {"apis": ["torch_scatter.scatter_max"], "title": "an NPU form is in DrivingSDK"},
    "mx_scatter_mean": {"apis": ["torch_scatter.scatter_mean"], "title": "an NPU form is in DrivingSDK"},
    "mx_radius": {"apis": ["torch_cluster.radius"], "title": "an NPU form is in DrivingSDK"},
}

#: Parts of torch where an unsupported API is left out or replaced within minutes: switches and tools, no operators.
LOW_EFFORT = tuple(
    """
    torch.compiler. torch.autograd.profiler. torch.is_deterministic_algorithms_warn_only_enabled torch.onnx.
    torch.utils.get_cpp_backtrace torch.Tensor.is_shared torch.nn.Module.share_memory torch.Tensor.share_memory_
    torch.nn.utils.clip_grad_norm torch.utils.mobile_optimizer. torch.sparse.check_sparse_tensor_invariants.
    """.split()
)

#: What torch runs on the host, or what only names a type: it needs nothing of a device, so that the silence of the
#: documentation says nothing about it. Also other spellings of documented
#: operators (torch.log_softmax). A name ending in a dot stands for all below it.
HOST = tuple(
    """
    torch.log_softmax torch.Tensor.log_softmax torch.scalar_tensor torch.nn.functional.has_torch_function
    torch.nn.functional.handle_torch_function
    torch.Size torch.dtype torch.finfo torch.iinfo torch.memory_format torch.layout torch.qscheme torch.Generator
    torch.TensorType torch.SymInt torch.SymFloat torch.SymBool torch.OutOfMemoryError torch.AcceleratorError
    torch.inference_mode torch.set_grad_enabled torch.is_inference torch.is_inference_mode_enabled torch.is_grad_enabled
    torch.get_default_device torch.set_default_device torch.get_num_threads torch.set_num_threads torch.set_printoptions
    torch.typename torch.set_warn_always torch.get_autocast_gpu_dtype torch.is_autocast_enabled torch.get_file_path
    torch.is_autocast_cpu_enabled torch.get_autocast_dtype torch.set_autocast_enabled torch.clear_autocast_cache
    torch.set_autocast_dtype torch.set_autocast_gpu_dtype torch.set_autocast_cache_enabled
    torch.is_autocast_cache_enabled
    torch.autocast_increment_nesting torch.autocast_decrement_nesting torch.get_float32_matmul_precision
    torch.FloatTensor torch.LongTensor torch.IntTensor torch.ByteTensor torch.BoolTensor torch.DoubleTensor
    torch.HalfTensor torch.ShortTensor torch.CharTensor torch.BFloat16Tensor torch.FloatStorage torch.LongStorage
    torch.nn.Parameter torch.nn.Buffer torch.nn.modules.utils. torch.nn.modules.batchnorm._BatchNorm
    torch.nn.modules.batchnorm._NormBase torch.nn.modules.conv._ConvNd torch.nn.modules.loss._Loss
    torch.nn.modules.loss._WeightedLoss torch.nn.modules.instancenorm._InstanceNorm torch.nn.modules.pooling.
    torch.nn.modules.module. torch.nn.init._calculate_fan_in_and_fan_out torch.nn.init._calculate_correct_fan
    torch.nn.Flatten torch.nn.Unflatten torch.nn.utils.remove_weight_norm torch.nn.utils.weight_norm
    torch.nn.utils.stateless. torch.nn.parallel.DistributedDataParallel torch.nn.parallel.distributed.
    torch.autograd.Variable torch.autograd.variable. torch.autograd.profiler. torch.autograd.function.
    torch.autograd.Function torch.autograd.profiler_util. torch.autograd.graph.
    torch.optim.lr_scheduler. torch.optim.optimizer. torch.optim.swa_utils.
    torch.amp.GradScaler torch.amp.custom_fwd torch.amp.custom_bwd torch.amp.autocast torch.amp.grad_scaler.
    torch.jit.ignore torch.jit.unused torch.jit.export torch.jit.Final torch.jit.is_scripting torch.jit.is_tracing
    torch.jit.annotate torch.jit.annotations. torch.jit.interface torch.jit.TracerWarning torch.jit.isinstance
    torch.jit.ScriptModule torch.jit.RecursiveScriptModule torch.jit.ScriptFunction torch.jit.script_if_tracing
    torch.compiler.is_compiling torch.compiler.is_dynamo_compiling torch.library. torch.serialization. torch.hub.
    torch.multiprocessing. torch.package. torch.random. torch.testing. torch.types. torch.storage. torch.overrides.
    torch.futures. torch.fx. torch.monitor. torch.quantization. torch.ao. torch.onnx. torch.sparse.
    torch.utils. torch.distributed.group torch.distributed.GroupMember torch.distributed.ProcessGroup
    torch.distributed.Work torch.distributed.destroy_process_group torch.distributed.is_torchelastic_launched
    torch.distributed.device_mesh. torch.distributed.init_device_mesh torch.distributed.DeviceMesh
    torch.distributed.tensor.Shard torch.distributed.tensor.Replicate torch.distributed.tensor.Partial
    torch.distributed.tensor.Placement torch.distributed.tensor.DeviceMesh torch.distributed.tensor.placement_types.
    torch.distributed.checkpoint. torch.distributed.elastic. torch.distributed.launcher. torch.distributed.run
    torch.distributed.launch torch.distributed.constants. torch.distributed.utils. torch.distributed.logging_handlers.
    torch.distributed.fsdp.wrap. torch.distributed.fsdp.api. torch.distributed.fsdp.StateDictType
    torch.distributed.fsdp.MixedPrecision torch.distributed.fsdp.CPUOffload torch.distributed.fsdp.BackwardPrefetch
    torch.distributed.fsdp.ShardingStrategy torch.distributed.fsdp.MixedPrecisionPolicy
    torch.distributed.fsdp.CPUOffloadPolicy torch.distributed.fsdp.OffloadPolicy
    torch.distributed.fsdp.OptimStateKeyType
    torch.distributed.fsdp.FullStateDictConfig torch.distributed.fsdp.FullOptimStateDictConfig
    torch.distributed.fsdp.ShardedStateDictConfig torch.distributed.fsdp.LocalStateDictConfig
    torch.distributed.fsdp.ShardedOptimStateDictConfig torch.distributed.fsdp.DataParallelMeshDims
    torch.distributed.fsdp.fully_sharded_data_parallel.StateDictType
    torch.distributed.fsdp.fully_sharded_data_parallel.FullOptimStateDictConfig
    torch.distributed.fsdp.fully_sharded_data_parallel.LocalOptimStateDictConfig
    torch.distributed.fsdp.fully_sharded_data_parallel.ShardingStrategy
    torch.distributed.fsdp.fully_sharded_data_parallel.MixedPrecision
    torch.distributed.fsdp.fully_sharded_data_parallel.CPUOffload
    torch.distributed.fsdp.fully_sharded_data_parallel.BackwardPrefetch
    torch._utils. torch._six. torch._utils_internal. torch._tensor. torch._jit_internal. torch._check
    torch._check_is_size
    torch._namedtensor_internals. torch._appdirs. torch._logging. torch._sources. torch._classes. torch._VF
    torch.Tensor.share_memory_ torch.nn.Module.share_memory torch.Tensor.is_shared torch.TypedStorage.share_memory_
    torch.Tensor.device torch.Tensor.dtype torch.Tensor.shape torch.Tensor.layout torch.Tensor.names
    torch.Tensor.tolist torch.Tensor.dim torch.Tensor.type torch.Tensor.storage torch.Tensor.untyped_storage
    torch.Tensor.register_hook torch.Tensor.requires_grad_ torch.Tensor.grad_fn torch.Tensor.data_ptr
    """.split()
)
#: Parts of torch that belong to other devices: what is said of them says nothing about an NPU.
OTHER_DEVICES = tuple(
    "torch.mlu torch.musa torch.sdaa torch.hpu torch.xpu torch.mps torch.neuron torch.mtia torch.cpu torch.xla".split()
)
#: Limits that are the dtypes a page was checked with, of things that compute nothing.
NO_OPERATORS = tuple(
    """
    torch.nn.Module torch.nn.Module. torch.nn.Sequential torch.nn.Sequential. torch.nn.ModuleList torch.nn.ModuleList.
    torch.nn.ModuleDict torch.nn.ModuleDict. torch.nn.ParameterList torch.nn.ParameterList. torch.nn.ParameterDict
    torch.nn.ParameterDict. torch.nn.parameter. torch.nn.utils. torch.nn.modules. torch.nn.Identity torch.nn.init.
    torch.fx. torch.autograd. torch.testing. torch.utils. torch.optim. torch.distributed. torch.distributions.
    torch.TypedStorage torch.UntypedStorage torch.sym_ torch.equal torch.allclose torch.is_tensor torch.is_storage
    torch.from_numpy torch.Tensor.size torch.Tensor.numel torch.Tensor.stride torch.Tensor.shape torch.Tensor.dim
    torch.Tensor.ndim torch.Tensor.detach torch.Tensor.detach_ torch.Tensor.requires_grad_ torch.Tensor.item
    torch.Tensor.tolist torch.Tensor.numpy torch.Tensor.cpu torch.Tensor.backward torch.Tensor.is_contiguous
    torch.Tensor.contiguous torch.Tensor.storage torch.Tensor.element_size torch.Tensor.nelement torch.Tensor.type
    torch.Tensor.to torch.Tensor.view torch.Tensor.reshape torch.Tensor.data_ptr torch.Tensor.grad
    torch.Tensor.is_floating_point
    torch.Tensor.storage_offset torch.Tensor.get_device torch.Tensor.register_hook torch.Tensor.retain_grad
    torch.Tensor.is_pinned torch.Tensor.pin_memory torch.Tensor.dim_order torch.numel torch.ao. torch.package.
    torch.jit.
    """.split()
)
#: Operators that are in no list of NPU kernels and need none -> why.
NO_KERNEL_NEEDED = {
    "pixel_shuffle": "PyTorch composes it for every device but the CPU",
    "pixel_unshuffle": "PyTorch composes it for every device but the CPU",
    "_efficientzerotensor": "a tensor of zeros without memory, which forward differentiation multiplies with",
    "narrow_copy": "PyTorch composes it of narrow and clone for dense tensors of every device but the CPU",
    **dict.fromkeys(
        "_sparse_coo_tensor_with_dims_and_tensors _coalesced _indices _values _nnz _to_dense _dimI _dimV sparse_mask "
        "_sparse_mask_projection copy_sparse_to_sparse sparse_resize_and_clear sparse_resize is_coalesced".split(),
        "of sparse tensors, where torch_npu registers PyTorch's own function (torchnpugen/utils.py of Ascend/pytorch)",
    ),
}
#: Operators that PyTorch comes to in one version and not in others -> the operator that serves where it does not, why.
OTHER_WAY = {
    "_thnn_fused_gru_cell": (
        "gru",
        "torch.nn.GRU comes to aten::gru, which op-plugin has in each version; the cell of older torch is composed",
    ),
}
#: APIs whose point is a type of numbers: that their operators have kernels says nothing of it.
OF_TYPES = (
    "torch.nn.Module.double torch.nn.Module.half torch.Tensor.double torch.Tensor.half torch.Tensor.cdouble "
    "torch.Tensor.cfloat torch.Tensor.chalf torch.polar torch.complex"
).split()
#: APIs that ports name and do not use.
NOT_WITNESSED = {
    "torch.nn.DataParallel": "a branch that ports do not take: they start a process for each card",
}
