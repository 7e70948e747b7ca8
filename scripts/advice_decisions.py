"""What is advised of code that runs all the same: the words, for scripts/build_api_support.py."""

from __future__ import annotations

from typing import Any

Entry = dict[str, Any]

#: Advice by its key in transplt/engine/analysis/advice.py. `from` names the fact: its section and name;
#: what no fact tells has a `source` of its own.
ADVICE: dict[str, Entry] = {
    "float64": {
        "code": "NPU710",
        "from": "constraint:fp64",
        "message": "float64 is not generally available on NPU: several operators refuse it, others hand back float32",
        "help": "use float32 on the device, or compute in float64 on the CPU",
    },
    "minus_infinity": {
        "code": "NPU711",
        "from": "constraint:inf_nan_mode",
        "message": "a mask of -inf: a fully masked row becomes nan, and with INF_NAN_MODE_ENABLE=0 "
        "infinities saturate",
        "help": "use torch.finfo(dtype).min, or give a boolean mask to the fused attention operator",
    },
    "dynamic_shape": {
        "code": "NPU712",
        "from": "constraint:dynamic_shape",
        "message": "the shape of this result depends on the data: with jit_compile=True operators are compiled for "
        "each new shape",
        "help": "keep jit_compile=False (the default on A2/A3) or use a form of fixed shape such as torch.where; "
        "`transplt run --shapes` shows which operators really see changing shapes",
    },
    "host_sync": {
        "code": "NPU713",
        "from": "api:TASK_QUEUE_ENABLE",
        "message": "a copy to the host in the training loop waits for all queued work of the device",
        "help": "collect values on the device and read them every so many steps",
    },
    "last_batch": {
        "code": "NPU714",
        "from": "constraint:drop_last",
        "message": "a shuffled DataLoader without drop_last=True: the last batch of an epoch has another shape",
        "help": "pass drop_last=True if it is a loader for training, and jit_compile=True or graphs are used",
    },
    "pin_memory": {
        "code": "NPU720",
        "from": "api:torch.utils.data.DataLoader",
        "message": "DataLoader without pin_memory=True copies from pageable memory",
        "help": "pass pin_memory=True, and non_blocking=True where batches go to the device",
    },
    "workers": {
        "code": "NPU720",
        "from": "api:torch.utils.data.DataLoader",
        "message": "DataLoader with num_workers=0 loads in the process that feeds the device",
        "help": "pass num_workers above 0; a worker must not make NPU tensors",
    },
    "ddp": {
        "code": "NPU721",
        "from": "api:torch.nn.parallel.DistributedDataParallel",
        "message": "DistributedDataParallel sends gradients in buckets of 25 MB",
        "help": "try bucket_cap_mb=500, and model.no_sync() while gradients are accumulated",
    },
    "debug_switch": {
        "code": "NPU722",
        "from": "api:torch.autograd.set_detect_anomaly",
        "message": "a debug option that slows every step",
        "help": "remove it from training runs",
    },
    "channels_last": {
        "code": "NPU723",
        "from": "constraint:channels_last",
        "message": "the memory format channels_last is not supported on NPU",
        "help": "leave the memory format out, or use torch.contiguous_format",
    },
    "fork": {
        "code": "NPU724",
        "from": "constraint:spawn",
        "message": "a forked process cannot use an NPU that its parent uses; so it is with CUDA",
        "help": 'start processes with the method "spawn"',
    },
    "overflow": {
        "code": "NPU715",
        "from": "api:torch.baddbmm",
        "message": "torch.baddbmm can overflow in float16 on NPU",
        "help": "split it into torch.bmm and an addition",
    },
    "deterministic": {
        "code": "NPU725",
        "from": "constraint:deterministic",
        "message": "deterministic algorithms on NPU hold for the thread that sets them first, "
        "and do not cover collectives",
        "help": "set it in the training process itself, and HCCL_DETERMINISTIC=true for reductions across devices",
    },
    "channel_shuffle": {
        "code": "NPU726",
        "message": "a channel shuffle by views, which have to be copied",
        "help": "`--tune channel-shuffle` writes one index_select, where nothing is scripted",
        "source": "Ascend PyTorch porting guide (CANN), copy bottlenecks and the example of ShuffleNet",
    },
    "copy_chain": {
        "code": "NPU726",
        "message": "a chain of views that copies twice: dimensions are exchanged and made contiguous, and "
        "again",
        "help": "order the dimensions once, or use an operator that computes (index_select, einsum, matmul "
        "of other layouts)",
        "source": "Ascend PyTorch porting guide (CANN), copy bottlenecks and the example of ShuffleNet",
    },
    "int64": {
        "code": "NPU727",
        "message": "64-bit indices that only look something up, where 32 bits serve",
        "help": "`--tune int32` makes them in 32 bits",
        "source": "documentation of torch_npu for torch.nn.Embedding and torch.index_select, 2.6 to 2.13",
    },
    "export_training": {
        "code": "NPU731",
        "message": "a model is exported without switching it to eval mode",
        "help": "call model.eval() before the export: BatchNorm and Dropout are exported as they train "
        "otherwise",
        "source": "Ascend PyTorch porting guide (CANN), saving and exporting; torch.onnx.export: `training` "
        "is deprecated, the mode of the model counts (torch 2.13)",
    },
    "opset_default": {
        "code": "NPU732",
        "message": "an export without opset_version: torch takes its own default, 20 in torch 2.13, while ATC "
        "is documented for 9 to 18",
        "help": "pass opset_version where the model goes to ATC: 11 to 13 for any CANN, up to 18 since CANN"
        " 7.0",
        "source": "hiascend canncommercial 5046, 601 and 700: lists of ONNX operators of ATC; "
        "torch/onnx/_constants.py (2.13)",
    },
    "opset": {
        "code": "NPU732",
        "message": "an opset_version that ATC is not documented for: 9 to 18 are",
        "help": "pass 11 to 13 for any CANN, up to 18 since CANN 7.0, where the model goes to ATC",
        "source": "hiascend canncommercial 5046, 601 and 700: lists of ONNX operators of ATC",
    },
    "export_on_card": {
        "code": "NPU733",
        "message": "an export runs on the card: operators of torch_npu go into the file as operators of the "
        "domain npu, which ONNX does not have",
        "help": "move the model and its example to the CPU for the export, where the file is to be a model "
        "of ONNX",
        "source": "torch_npu/onnx/wrapper_onnx_ops.py (torch_npu 2.1 to 2.13); Ascend PyTorch porting guide "
        "(CANN), saving and exporting",
    },
    "fixed_sizes": {
        "code": "NPU734",
        "message": "an export without dynamic_axes: the model only accepts the sizes of the example",
        "help": "leave it where ATC gets one size (the fastest); pass dynamic_axes, and "
        "--dynamic_batch_size or --input_shape to atc, where batches differ",
        "source": "Ascend PyTorch porting guide (CANN), saving and exporting; torch.onnx.export",
    },
    "module_prefix": {
        "code": "NPU735",
        "message": "the state of a wrapped model is saved: its names begin with `module.`, and fit the wrapped"
        " model alone",
        "help": "save model.module.state_dict(), or take the prefix off when it is loaded for inference and"
        " export",
        "source": "Ascend PyTorch porting guide (CANN), saving and exporting",
    },
    "checkpoint_of_parts": {
        "code": "NPU735",
        "message": "a .pth.tar file holds several parts by convention: the state of the model is one of its "
        "entries",
        "help": "take the entry, such as checkpoint[\"state_dict\"], where the file was saved so",
        "source": "Ascend PyTorch porting guide (CANN), saving and exporting",
    },
    "environment": {
        "code": "NPU730",
        "from": "api:TASK_QUEUE_ENABLE",
        "message": "a training loop: a deeper task queue may speed it up",
        "help": "TASK_QUEUE_ENABLE is 1 by default, try 2",
    },
}
