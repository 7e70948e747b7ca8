"""Names of calls, by what they do with what they are given: show it, run it, keep it, pass it on, test it.

They are last names: `info` is that of `logger.info` and of `log.info`. `FOREIGN` and `COMMAND_MODULES` are what full
names begin with.
"""

from __future__ import annotations

import re

from transplt.rules.torch_callables import full_names

#: Top-level packages with a `cuda` or a device notation of their own.
FOREIGN = frozenset(
    "numba cupy cupyx pycuda jax jaxlib flax paddle tensorflow tf keras mxnet chainer theano dgl polygraphy triton "
    "caffe2 tensorrt onnxruntime tvm cudf cuml cugraph cuda taichi warp wp nvidia faiss cumm".split()
)
#: Frameworks whose tensors have a `.cuda()` or devices of their own.
FRAMEWORKS = frozenset("paddle mxnet chainer tensorflow jax jittor oneflow mindspore tinygrad".split())
#: Those whose names with CUDA in them ask for a card of NVIDIA: its own, and other frameworks (`chainer.cuda.to_gpu`,
#: `ti.init(arch=ti.cuda)`). Of dgl, triton, onnxruntime and faiss rules know what they are.
NEEDS_A_CARD = FOREIGN - frozenset({"dgl", "triton", "onnxruntime", "faiss"})
#: Physics engines, renderers and simulators, which compute on a card of NVIDIA by themselves.
SIMULATORS = frozenset(
    "isaacgym isaacgymenvs isaacsim isaaclab omni genesis sapien mani_skill habitat habitat_sim mujoco mujoco_warp "
    "brax gymnasium gym envpool pybullet carla airsim omnigibson nvdiffrast kaolin bpy".split()
)
#: Packages that compute on a card by kernels of their own: a device that they are given is theirs, and none is an NPU.
OTHER_DEVICES = SIMULATORS | frozenset(
    "catboost ctransformers ctranslate2 decord faster_whisper implicit lightgbm open3d openmm pykeops simtk torchcodec "
    "whisperx xgboost".split()
)
#: Of the simulators, those that run scripts in a Python of their own: without torch, a device there is theirs.
HOSTS = frozenset(["bpy"])
#: How the device of one is called beside that of torch: `sim_device`, `graphics_device_id`.
SIMULATOR_DEVICE = re.compile(
    r"(?:^|_|\b)(?:sim|physics|graphics|render|renderer|rendering|simulation)_device(?:_id)?$"
)
#: The names of torch's DataParallel.
DATA_PARALLEL = full_names("replicates")
#: Calls whose text arguments are for people.
PROSE_CALLS = frozenset(
    "print info debug warning warn error exception critical log write format_exc fail skip warning_once rank_zero_info "
    "rank_zero_warn echo secho log_dist print_rank_0 print_rank_last main_print rank0_print add_row "
    "set_description".split()
)
#: Keywords whose values are for people, whatever the call.
PROSE_KEYWORDS = frozenset("description msg reason title desc message doc epilog metavar match".split())
#: Calls that run a command line, or hand one to a compiler.
COMMAND_CALLS = frozenset("system Popen run check_output check_call call getoutput getstatusoutput".split())
#: What they belong to.
COMMAND_MODULES = ("os", "subprocess", "sp", "commands")
#: Calls that define a flag of a command line: of argparse, optparse and click; of absl.
PARSER_CALLS = frozenset({"add_argument", "option", "add_option", "argument"})
ABSL_CALLS = frozenset({"DEFINE_string", "DEFINE_enum", "DEFINE_list", "DEFINE_multi_string", "DEFINE_multi_enum"})
#: Calls whose result is what they are given, as text or in a container.
WRAPPERS = frozenset("str repr cast list tuple set frozenset sorted reversed iter intern".split())
#: Calls that give one of the things in a collection that they are given, or a text of all.
PICKS = frozenset({"join", "Choice", "choice", "sampled_from", "one_of", "just", "min", "max", "next"})
#: Calls that define a field of a class, with its default.
FIELD_CALLS = frozenset({"field", "Field", "ib", "attrib", "Factory"})
#: Calls that make or change an object whose attributes are their keywords.
OBJECTS = frozenset(
    "Namespace SimpleNamespace HParams EasyDict edict Munch AttrDict DotDict ConfigDict set_defaults replace "
    "_replace".split()
)
#: Methods of collections that put a thing in, take it out, or look for it.
ITEM_CALLS = frozenset("append add extend insert remove discard index count".split())
#: Methods of strings that compare a text with their own, or look for it there.
TESTS = frozenset(
    "startswith endswith find index replace split rsplit removeprefix removesuffix count partition rpartition strip "
    "lstrip rstrip rfind rindex __eq__ __contains__".split()
)
#: Functions of `re` whose first argument is a pattern.
REGEX_CALLS = frozenset({"match", "fullmatch", "search", "compile", "sub", "split", "findall", "finditer"})
