"""Where torch and common libraries take a device, a backend, or text for people: names and argument positions."""

from __future__ import annotations

#: Index of the positional arguments that are devices, for callees of torch.
TORCH_POSITIONS: dict[str, tuple[int, ...]] = {
    "torch.device": (0,),
    "torch.load": (1,),
    "torch.jit.load": (1,),
    "torch.set_default_device": (0,),
    "torch.autocast": (0,),
    "torch.amp.autocast": (0,),
    "torch.amp.autocast_mode.autocast": (0,),
    "torch.amp.GradScaler": (0,),
    "torch.amp.grad_scaler.GradScaler": (0,),
    "torch.GradScaler": (0,),
    "torch.Generator": (0,),
    "torch.get_device_module": (0,),
    "torch.get_autocast_dtype": (0,),
    "torch.set_autocast_dtype": (0,),
    "torch.is_autocast_enabled": (0,),
    "torch.set_autocast_enabled": (0,),
    "torch.amp.is_autocast_available": (0,),
    "torch.cuda.set_device": (0,),
    "torch.cuda.device": (0,),
    "torch.cuda.synchronize": (0,),
    "torch.cuda.current_stream": (0,),
    "torch.cuda.get_device_name": (0,),
    "torch.cuda.get_device_properties": (0,),
    "torch.distributed.init_device_mesh": (0,),
    "torch.distributed.device_mesh.init_device_mesh": (0,),
    "torch.distributed.device_mesh.DeviceMesh": (0,),
    "torch.distributed.DeviceMesh": (0,),
    "torch.distributed.DeviceMesh.from_group": (1,),
    "torch.distributed.device_mesh.DeviceMesh.from_group": (1,),
    "torch.distributed.tensor.DeviceMesh.from_group": (1,),
    "torch.distributed.tensor.DeviceMesh": (0,),
    "torch.distributed.tensor.init_device_mesh": (0,),
    "torch.distributed._tensor.DeviceMesh": (0,),
    "torch.distributed._tensor.init_device_mesh": (0,),
    "torch.distributed._tensor.device_mesh.init_device_mesh": (0,),
}
DEVICE_KEYWORDS = frozenset({"device", "map_location", "device_type", "pin_memory_device", "target_device"})
BACKEND_POSITIONS = {
    "torch.distributed.init_process_group": (0,),
    "torch.distributed.distributed_c10d.init_process_group": (0,),
    "torch.distributed.Backend": (0,),
    "torch.distributed.is_backend_available": (0,),
}
#: Top-level packages with a `cuda` or a device notation of their own.
FOREIGN = frozenset(
    "numba cupy cupyx pycuda jax jaxlib flax paddle tensorflow tf keras mxnet chainer theano dgl polygraphy triton "
    "caffe2 tensorrt onnxruntime tvm cudf cuml cugraph cuda taichi warp wp nvidia faiss".split()
)
#: Calls whose text arguments are for people.
PROSE_CALLS = frozenset(
    "print info debug warning warn error exception critical log write format_exc fail skip warning_once rank_zero_info "
    "rank_zero_warn echo secho log_dist print_rank_0 print_rank_last main_print rank0_print add_row "
    "set_description".split()
)
PROSE_KEYWORDS = frozenset("description msg reason title desc message doc epilog metavar match".split())
#: Calls that run a command line, or hand one to a compiler.
COMMAND_CALLS = frozenset("system Popen run check_output check_call call getoutput getstatusoutput".split())
PARSER_CALLS = frozenset({"add_argument", "option", "add_option", "argument"})
ABSL_CALLS = frozenset({"DEFINE_string", "DEFINE_enum", "DEFINE_list", "DEFINE_multi_string", "DEFINE_multi_enum"})
WRAPPERS = frozenset("str repr cast list tuple set frozenset sorted reversed iter intern".split())
#: Calls that give one of the things they are given a collection of.
PICKS = frozenset({"join", "Choice", "choice", "sampled_from", "one_of", "just", "min", "max", "next"})
FIELD_CALLS = frozenset({"field", "Field", "ib", "attrib", "Factory"})
OBJECTS = frozenset(
    "Namespace SimpleNamespace HParams EasyDict edict Munch AttrDict DotDict ConfigDict set_defaults replace "
    "_replace".split()
)
STRING_METHODS = frozenset({"format", "lower", "upper", "strip", "rstrip", "lstrip", "encode", "casefold"})
TESTS = frozenset(
    {"startswith", "endswith", "find", "index", "replace", "split", "rsplit", "removeprefix", "removesuffix", "count",
     "partition", "rpartition", "strip", "lstrip", "rstrip", "rfind", "rindex", "__eq__", "__contains__"}
)
REGEX_CALLS = frozenset({"match", "fullmatch", "search", "compile", "sub", "split", "findall", "finditer"})
GROUP_CALLS = frozenset({"init_process_group", "new_group", "init_dist", "init_distributed", "new_subgroups"})
