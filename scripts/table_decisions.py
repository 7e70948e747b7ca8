"""What `build_tables.py` cannot read from the facts: decisions made by hand, each with its reason."""

from __future__ import annotations

#: Facts whose subject is an argument, a string or an instance attribute, or that hold only when a whole group of names
#: moves together: a codemod applies them (see rules/support/codemod_facts.json), no rename does.
CODEMOD = {
    "torch.TypedStorage.cuda": "a method; the codemod for .cuda() covers it",
    "torch.TypedStorage.is_cuda": "an attribute; the codemod for .is_cuda covers it",
    "torch.UntypedStorage.cuda": "a method; the codemod for .cuda() covers it",
    "torch.UntypedStorage.is_cuda": "an attribute; the codemod for .is_cuda covers it",
    "torch.nn.utils.rnn.PackedSequence.cuda": "a method; the codemod for .cuda() covers it",
    "torch.nn.utils.rnn.PackedSequence.is_cuda": "an attribute; the codemod for .is_cuda covers it",
    "torch.jit.ScriptModule.cuda": "a method; the codemod for .cuda() covers it",
    "torch.is_autocast_enabled": "the form without an argument means CUDA, the other names its device",
    "torch.set_autocast_enabled": "the form with one argument means CUDA, the other names its device",
    "torch.profiler.ProfilerAction": "moves only with the whole profiler",
    "torch.profiler.ProfilerActivity": "moves only with the whole profiler",
    "torch.profiler.ProfilerActivity.CPU": "moves only with the whole profiler",
    "torch.profiler.ProfilerActivity.CUDA": "moves only with the whole profiler",
    "torch.profiler._ExperimentalConfig": "moves only with the whole profiler; its fields differ",
    "torch.profiler._KinetoProfile": "moves only with the whole profiler",
    "torch.profiler.profile": "moves only with the whole profiler; key_averages() and events() do not exist there",
    "torch.profiler.profile.add_metadata": "moves only with the whole profiler",
    "torch.profiler.profile.add_metadata_json": "moves only with the whole profiler",
    "torch.profiler.profile.events": "a method of the profiler object",
    "torch.profiler.profile.export_chrome_trace": "moves only with the whole profiler",
    "torch.profiler.profile.export_memory_timeline": "moves only with the whole profiler",
    "torch.profiler.profile.export_stacks": "moves only with the whole profiler",
    "torch.profiler.profile.key_averages": "a method of the profiler object",
    "torch.profiler.profile.start": "moves only with the whole profiler",
    "torch.profiler.profile.step": "moves only with the whole profiler",
    "torch.profiler.profile.stop": "moves only with the whole profiler",
    "torch.profiler.schedule": "moves only with the whole profiler",
    "torch.profiler.supported_activities": "moves only with the whole profiler",
    "torch.profiler.tensorboard_trace_handler": "moves only with the whole profiler",
}

#: Names that stay as they are and need no word.
KEEP = {
    "torch.jit.script": "works on NPU",
    "torch.onnx.export": "works on NPU",
    "torch.nn.SyncBatchNorm": "works on NPU",
    "torch.profiler.record_function": "works on NPU",
    "torch.profiler.itt": "Intel's; not bound to CUDA",
    "torch.profiler.kineto_available": "says what torch was built with; works",
    "torch.backends.fp32_precision": "a setting of torch; not bound to CUDA",
    "torch.utils.collect_env": "works; torch_npu.utils.collect_env also reports CANN",
    "torch.utils.cpp_extension.BuildExtension": "works with NpuExtension too",
    "torch.utils.cpp_extension.CppExtension": "valid where no NPU headers are needed",
    "torch.utils.cpp_extension.load": "valid for C++ sources; a codemod looks at the sources",
    "torch.utils.cpp_extension.load_inline": "valid for C++ sources; a codemod looks at the sources",
}

#: name -> (code, level, effort, help or "" for the fact's note): reported, never renamed, in every version.
REPORT = {
    # torch_npu has the name, but a rename would change what the program does.
    "torch.cuda.get_device_capability": (
        "NPU503",
        "manual",
        "low",
        "torch_npu returns None (from 2.7 on: the value of TORCH_NPU_DEVICE_CAPABILITY when that is set), so a "
        "comparison with a tuple raises TypeError. Decide what the check is meant for: bf16 is there on Ascend 910B "
        "and "
        "later (torch.npu.is_bf16_supported()), there is no SM number to compare",
    ),
    "torch.cuda.nvtx.range": (
        "NPU501",
        "manual",
        "low",
        "without CUDA it raises; torch.npu.mstx.mstx_range(message) decorates functions and is no context manager: "
        "use it as a decorator, or torch.npu.mstx.range_start and range_end around the block",
    ),
    "torch.cuda.cudart": (
        "NPU501",
        "manual",
        "low",
        "torch.npu.npurt (where it exists) offers host registration and streams only; for cudaProfilerStart and Stop "
        "use torch_npu.profiler.profile",
    ),
    "torch.cuda.profiler.cudart": ("NPU501", "manual", "low", "see torch.cuda.cudart"),
    "torch.cuda.CUDAPluggableAllocator": (
        "NPU552",
        "manual",
        "high",
        "torch.npu.NPUPluggableAllocator takes a C++ allocator in the same way, written with ACL memory calls",
    ),
    "torch.cuda.memory.CUDAPluggableAllocator": (
        "NPU552",
        "manual",
        "high",
        "torch.npu.NPUPluggableAllocator takes a C++ allocator in the same way, written with ACL memory calls",
    ),
    "torch.version.cuda": (
        "NPU506",
        "manual",
        "low",
        "None on the CPU build of torch that torch_npu needs, so parsing it raises: guard the check, or ask for what "
        "it stands for (torch.npu.is_available(), torch_npu.__version__)",
    ),
    "torch.distributed.rpc.TensorPipeRpcBackendOptions": (
        "NPU506",
        "manual",
        "medium",
        "torch_npu.distributed.rpc.options.NPUTensorPipeRpcBackendOptions, with "
        "backend=BackendType.NPU_TENSORPIPE in init_rpc",
    ),
    "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler": (
        "NPU508",
        "info",
        None,
        "torch_npu puts its own class in this place: import torch_npu before this name is imported",
    ),
    # Flags and queries of the CUDA backend that a CPU build of torch still accepts (each one tried there).
    **{
        f"torch.backends.{name}": ("NPU504", "info", None, help_text)
        for name, help_text in {
            "cuda.enable_flash_sdp": "the kernel choice on NPU does not depend on it",
            "cuda.enable_math_sdp": "the kernel choice on NPU does not depend on it",
            "cuda.enable_mem_efficient_sdp": "the kernel choice on NPU does not depend on it",
            "cuda.enable_cudnn_sdp": "the kernel choice on NPU does not depend on it",
            "cuda.flash_sdp_enabled": "says what the flag holds, not which kernel runs on NPU",
            "cuda.math_sdp_enabled": "says what the flag holds, not which kernel runs on NPU",
            "cuda.mem_efficient_sdp_enabled": "says what the flag holds, not which kernel runs on NPU",
            "cuda.cudnn_sdp_enabled": "says what the flag holds, not which kernel runs on NPU",
            "cuda.sdp_kernel": "the kernel choice on NPU does not depend on it",
            "cuda.allow_fp16_bf16_reduction_math_sdp": "the kernel choice on NPU does not depend on it",
            "cuda.fp16_bf16_reduction_math_sdp_allowed": "says what the flag holds, not which kernel runs on NPU",
            "cuda.preferred_linalg_library": "linear algebra on NPU does not depend on it",
            "cuda.preferred_blas_library": "matrix products on NPU do not depend on it",
            "cuda.preferred_rocm_fa_library": "attention on NPU does not depend on it",
            "cuda.matmul.allow_tf32": "use torch.npu.matmul.allow_hf32, which is also False by default",
            "cuda.matmul.allow_fp16_reduced_precision_reduction": "matrix products on NPU do not depend on it",
            "cuda.matmul.allow_bf16_reduced_precision_reduction": "matrix products on NPU do not depend on it",
            "cuda.matmul.allow_fp16_accumulation": "matrix products on NPU do not depend on it",
            "cuda.matmul.fp32_precision": "use torch.npu.matmul.allow_hf32",
            "cuda.SDPAParams": "can be built; only the CUDA checks read it",
            "cudnn.allow_tf32": "use torch.npu.conv.allow_hf32, which is also True by default",
            "cudnn.benchmark": "kernels on NPU are chosen by torch.npu.set_compile_mode(jit_compile=...)",
            "cudnn.benchmark_limit": "there is no such search on NPU",
            "cudnn.conv.fp32_precision": "use torch.npu.conv.allow_hf32",
            "cudnn.deterministic": "use torch.use_deterministic_algorithms(True) where results must repeat",
            "cudnn.enabled": "there is no cuDNN on NPU",
            "cudnn.flags": "a context over flags without effect on NPU",
            "cudnn.set_flags": "sets flags without effect on NPU",
            "cudnn.fp32_precision": "there is no cuDNN on NPU",
            "cudnn.depthwise_kernel": "there is no cuDNN on NPU",
            "cudnn.rnn": "there is no cuDNN on NPU",
            "cudnn.rnn.fp32_precision": "there is no cuDNN on NPU",
            "cudnn.is_available": "False on NPU; what it guards is cuDNN's",
            "cudnn.is_acceptable": "False for NPU tensors; what it guards is cuDNN's",
            "cudnn.CUDNN_TENSOR_DTYPES": "there is no cuDNN on NPU",
        }.items()
    },
    "torch.set_float32_matmul_precision": (
        "NPU504",
        "info",
        None,
        "sets a value that torch_npu does not read; HF32 is switched by torch.npu.matmul.allow_hf32",
    ),
    "torch.backends.cudnn.version": (
        "NPU506",
        "manual",
        "low",
        "None on NPU, so a comparison with a number raises TypeError: guard it",
    ),
    **{
        f"torch.backends.cuda.{name}": (
            "NPU506",
            "manual",
            "low",
            "False on NPU, so the branch never runs: decide what the check is meant for",
        )
        for name in (
            "is_built",
            "is_flash_attention_available",
            "is_ck_sdpa_available",
            "can_use_flash_attention",
            "can_use_efficient_attention",
            "can_use_cudnn_attention",
        )
    },
    # Other codes or efforts than the plain NPU501.
    "torch.nn.DataParallel": (
        "NPU507",
        "manual",
        "medium",
        "several cards need one process per card, with torch.nn.parallel.DistributedDataParallel: `transplt -i "
        "PROJECT -o OUT distributed -m SCRIPT` writes that into a training script, or says why it cannot",
    ),
    "torch.utils.cpp_extension.CUDAExtension": (
        "NPU550",
        "manual",
        "high",
        "kernels in .cu files must be rewritten (torch ops, triton-ascend or Ascend C); torch_npu.utils.cpp_extension."
        "NpuExtension builds C++ sources",
    ),
    "torch.utils.cpp_extension.CUDA_HOME": (
        "NPU551",
        "manual",
        "low",
        "the folder of CANN is the environment variable ASCEND_HOME_PATH",
    ),
    "torch.cuda.jiterator": ("NPU552", "manual", "high", ""),
    "torch.cuda._compile_kernel": (
        "NPU552",
        "manual",
        "high",
        "run-time compilation of CUDA source has no counterpart; rewrite the kernel as torch ops, a triton-ascend "
        "kernel or an Ascend C operator",
    ),
    "torch.cuda.comm": (
        "NPU501",
        "manual",
        "medium",
        "use collectives of torch.distributed with one process per card",
    ),
    "torch.autograd.profiler.emit_nvtx": ("NPU501", "manual", "low", ""),
    "torch.autograd.profiler.load_nvprof": ("NPU501", "manual", "low", ""),
    "torch.profiler.ExecutionTraceObserver": ("NPU501", "manual", "low", ""),
    "torch.distributed.distributed_c10d.default_pg_nccl_timeout": ("NPU501", "manual", "low", ""),
}

#: What the work costs where it is not "medium".
EFFORT = {
    "low": (
        "torch.cuda.clock_rate torch.cuda.temperature torch.cuda.power_draw torch.cuda.memory_usage "
        "torch.cuda.device_memory_used torch.cuda.list_gpu_processes torch.cuda.memory.list_gpu_processes "
        "torch.cuda.get_arch_list torch.cuda.get_gencode_flags torch.cuda.has_half torch.cuda.has_magma "
        "torch.cuda.is_tf32_supported torch.cuda.check_error torch.cuda.CudaError torch.cuda.cudaStatus "
        "torch.cuda.DeferredCudaCallError torch.cuda.profiler torch.cuda.ipc_collect "
        "torch.cuda.host_memory_stats torch.cuda.host_memory_stats_as_nested_dict "
        "torch.cuda.reset_peak_host_memory_stats torch.cuda.reset_accumulated_host_memory_stats "
        "torch.cuda.nvtx.range_push torch.cuda.nvtx.range_pop torch.cuda.tunable torch.cuda._sleep "
        "torch.cuda.current_blas_handle torch.cuda.current_solver_handle "
        "torch.backends.cuda.blas_workspace_size torch.backends.cuda.cublas_workspace_size "
        "torch.backends.cuda.cublaslt_workspace_size torch.cuda._device_count_nvml"
    ).split(),
    "high": "torch.cuda.gds torch.cuda.green_contexts torch.cuda.GreenContext torch.cuda.nccl".split(),
}

#: Names that no fact lists.
OUT_OF_MEMORY = "NPUCachingAllocator.cpp of the torch_npu branches v2.1.0 to v2.8.0"
#: Public functions of torch.cuda._memory_viz that torch_npu/npu/_memory_viz.py lacks (torch 2.13, and 2.9).
_PICTURES = "calc_active compare filter_alloc_free_pairs profile_plot segment_plot segsum trace trace_plot".split()
EXTRA = {
    "memory": {
        "FuncNameModifyRule": [
            {
                "old_name": "torch.cuda.OutOfMemoryError",
                "new_name": "torch.OutOfMemoryError",
                "versions": ">=2.6",
                "help": "the out of memory error of torch_npu",
                "source": OUT_OF_MEMORY,
            }
        ],
        "UnsupportedRule": [
            {
                "name": "torch.cuda.OutOfMemoryError",
                "versions": "<2.6",
                "code": "NPU502",
                "effort": "low",
                "message": "torch_npu before 2.6 raises RuntimeError when memory runs out, not OutOfMemoryError",
                "help": 'catch RuntimeError and test for "NPU out of memory" in its text',
                "source": OUT_OF_MEMORY,
            },
            *(
                {
                    "name": f"torch.cuda._memory_viz.{name}",
                    "code": "NPU501",
                    "effort": "low",
                    "message": f"torch.cuda._memory_viz.{name} has no counterpart on NPU",
                    "help": "save the snapshot with torch.npu.memory._dump_snapshot: pytorch.org/memory_viz shows it",
                    "source": "torch_npu/npu/_memory_viz.py",
                }
                for name in _PICTURES
            ),
        ],
    },
    "distributed": {
        "UnsupportedRule": [
            {
                "name": name,
                "code": "NPU507",
                "blocks": "later",  # one card takes it
                "effort": "medium",
                "message": f"{name} works on one NPU only",
                "help": REPORT["torch.nn.DataParallel"][3],
            }
            for name in (
                "torch.nn.parallel.DataParallel",
                "torch.nn.parallel.data_parallel",
                "torch.nn.parallel.data_parallel.DataParallel",
            )
        ]
    },
    "backends": {
        "UnsupportedRule": [
            {
                "name": name,
                "code": "NPU504",
                "level": "info",
                "message": f"{name} has no effect on NPU",
                "help": "the module can be imported; its flags do nothing on NPU",
            }
            for name in ("torch.backends.cuda", "torch.backends.cudnn", "torch.backends.cuda.matmul")
        ]
        + [
            {
                "name": "torch.backends.cusparselt",
                "code": "NPU504",
                "level": "info",
                "message": "torch.backends.cusparselt has no effect on NPU",
                "help": "False and None on NPU; what it guards is cuSPARSELt's",
            }
        ]
    },
    "extensions": {
        "UnsupportedRule": [
            {
                "name": "torch.utils.cpp_extension.CUDNN_HOME",
                "code": "NPU551",
                "effort": "low",
                "message": "torch.utils.cpp_extension.CUDNN_HOME is None on NPU machines",
                "help": "there is no cuDNN on NPU",
            },
        ]
    },
}

#: What to do where a torch version lacks the counterpart, when "use another version" is not all.
MISSING_HELP = {
    "torch.cuda.nvtx.range_push": "use torch.npu.mstx.range_start and range_end, or torch_npu for torch 2.7 or 2.9",
    "torch.cuda.nvtx.range_pop": "use torch.npu.mstx.range_start and range_end, or torch_npu for torch 2.7 or 2.9",
    "torch.nn.attention.flex_attention.flex_attention": (
        "torch refuses NPU tensors here; torch_npu for torch 2.7 and 2.13 brings an implementation"
    ),
}

#: What a reader should know after the rename, by old or new name.
HELP = {
    "torch.cuda.device_count": "the count is that of the cards in ASCEND_RT_VISIBLE_DEVICES, where it is set",
    "torch.cuda.get_device_name": "the result is the name of an Ascend chip",
    "torch.cuda.get_device_properties": (
        "the result has values for name, total_memory, L2_cache_size, cube_core_num and vector_core_num only"
    ),
    "torch.cuda.utilization": "the result is the utilisation of the AI cores",
    "torch.npu.NPUGraph": "documented for inference only",
    "torch.npu.graphs.NPUGraph": "documented for inference only",
    "torch.backends.cuda.cufft_plan_cache": (
        "torch_npu will remove this cache; max_size must be 1 to 99; it is that of the current device: no index"
    ),
    **dict.fromkeys(
        ("torch.cuda.current_stream", "torch.cuda.default_stream"),
        "this raises an error for a card that is not the current one and was not used before",
    ),
    **dict.fromkeys(
        ("torch.cuda.nvtx.range_push", "torch.cuda.nvtx.range_pop"), "the depth is -1 where no profiler runs"
    ),
    **{
        f"torch.cuda.{kind}Tensor": (
            "only set_default_tensor_type refuses it: call set_default_dtype and set_default_device there"
        )
        for kind in "BFloat16 Bool Byte Char Double Float Half Int Long Short".split()
    },
}
