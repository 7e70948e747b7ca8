"""Causes of failures of trainings by what the log names beside them, and near texts that mean something else."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnoses import diagnosed
from tests.diagnose.test_readings import SITE, TRACE, collected_from, told
from transplt.precision.diagnose.remedies import state_of
from transplt.precision.diagnose.report import diagnosis_text
from transplt.rules.card_types import lists_of

OOM = (
    "RuntimeError: NPU out of memory. Tried to allocate {} (NPU 0; 60.00 GiB total capacity; {} GiB already allocated; "
    "{} GiB current active; 1.00 GiB free; {} GiB reserved in total by PyTorch)\n"
)
FULL = OOM.format("2.00 GiB", 55, 55, 57)
REFUSED = "RuntimeError: zero_:x.cpp:1 NPU function error: call aclnnInplaceZero failed, error code is 161002\n"
TYPE = "EZ1001: self not implemented for DT_{}, should be in dtype support list [DT_FLOAT,].\n"
RUN = "NotImplementedError: Could not run '{}' with arguments from the 'PrivateUse1' backend.\n"
FILE = "FileNotFoundError: [Errno 2] No such file or directory: '{}'\n"
TILING = "EZ9999: too large, aicore do not support.[FUNC:{}][FILE:{}][LINE:1]\n"
NO_NAME = "AttributeError: '{}' object has no attribute '{}'\n"
INDUCTOR = TRACE.format(f"{SITE}/torch/_inductor/scheduler.py", "self.x.fuse()")
PATCHED = "".join(
    f'  File "{SITE}/{path}", line 1, in f\n    x\n' for path in ("torchvision_npu/utils/loader.py", "torch/utils/l.py")
)


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        (TRACE.format("/a.py", "w = torch.matmul(q, k.transpose(-1, -2))") + FULL, "eager attention", "logits"),
        (TRACE.format("/a.py", "loss = F.cross_entropy(x, y)") + FULL, "whole vocabulary", "eager"),
        (TRACE.format(f"{SITE}/torch/optim/adam.py", "s = zeros_like(p)") + FULL, "state of the optimizer", "eager"),
        (TRACE.format("/a.py", "m = M.from_pretrained(p)") + FULL, "while they are loaded", "optimizer"),
        (TRACE.format("/a.py", "y = self.conv(x)") + FULL, "Batch, sequence or model", "vocabulary"),
        ("RuntimeError: DDP expects same model across all ranks, but Rank 0 has 9 params, while rank 1 has "
         "inconsistent 0 params.\n", "set_device", "same seed"),
        ("RuntimeError: DDP expects same model across all ranks, but Rank 0 has 9 params, while rank 1 has "
         "inconsistent 8 params.\n", "same seed", "set_device"),
        (FILE.format("/c/iter_1/common.pt"), "rank 0 only", "working folder"),
        (FILE.format("/d/alpaca_text_document.idx"), "preprocessing", "rank 0 only"),
        (FILE.format("/d/train.json"), "working folder", "preprocessing"),
        (RUN.format("aten::_flash_attention_forward"), "npu_fusion_attention", "torchvision"),
        (RUN.format("torchvision::nms"), "torchvision_npu", "npu_fusion_attention"),
        (RUN.format("aten::foo_mode"), "transplt explain", "linear algebra"),
        (TRACE.format("/complex/model.py", "f(x)") + RUN.format("aten::foo"), "transplt explain", "Complex numbers"),
        (REFUSED, "EZ1001", "uint64"),
        (TRACE.format("/a.py", "torch.zeros(2, dtype=torch.uint64, device=d)") + REFUSED, "is uint64", "EZ1001"),
        (TYPE.format("COMPLEX64"), "complex numbers (self is COMPLEX64)", "float64"),
        (TYPE.format("BFLOAT16"), "bfloat16 here", "complex"),
        ("EZ1001: mask expected scalar type DT_BOOL but found DT_FLOAT.\n", "mask has the type DT_FLOAT", "float64"),
        (TILING.format("RopeGradTiling", "rope_grad_tiling.cc"), "rotary embedding", "attention"),
        (TILING.format("CheckHeads", "flash_attention_tiling.cc"), "Fused attention", "rotary"),
        (TILING.format("CheckProperties", "add_tiling.cc"), "Numbers of heads", "rotary"),
        (NO_NAME.format("GemmaForCausalLM", "save_checkpoint"), "not wrapped by DeepSpeed", "versions"),
        (NO_NAME.format("GemmaForCausalLM", "save_checkpoints"), "does not have that name", "DeepSpeed"),
        (INDUCTOR + NO_NAME.format("NPUScheduling", "_gemm"), "exactly torch's version", "CUDA only"),
        (NO_NAME.format("NPUFoo", "_gemm"), "does not have that name", "exactly torch's version"),
        ("Traceback (most recent call last):\n" + PATCHED + NO_NAME.format("Loader", "_order"), "(torchvision_npu)",
         "CUDA only"),
        (TRACE.format(f"{SITE}/torch/utils/l.py", "x") + NO_NAME.format("Loader", "_order"), "does not have that name",
         "torchvision_npu"),
        (TRACE.format(f"{SITE}/torch/distributed/c10d.py", "init_process_group()") + NO_NAME.format("device", "index"),
         "7560", "CUDA only"),
        (NO_NAME.format("device", "index"), "does not have that name", "7560"),
        (TRACE.format(f"{SITE}/wandb/auth.py", "a, b = f()") + "ValueError: not enough values to unpack\n",
         "WANDB_MODE", "setting"),
        ("KeyError: 'decoder.layers.0.self_attention.q_layernorm.weight'\n", "qk-layernorm", "os.environ"),
        ("KeyError: 'decoder'\n", "os.environ", "qk-layernorm"),
        ("RuntimeError: NPU function error: aclrtMallocPhysical, error code is 507899\n", "expandable_segments:False",
         "first error"),
        ("RuntimeError: NPU function error: aclrtSynchronizeStream, error code is 507899\n", "first error",
         "expandable"),
        ("AttributeError: partially initialized module 'foo' has no attribute 'bar' (most likely due to a circular "
         "import)\n", "import torch, torch_npu first", "other one"),
        ("bishengir-compile: Unknown command line argument '--pure-simt'.\n", "950 series", "3.2.0"),
        ("bishengir-compile: Unknown command line argument '--target=A'.\n", "3.2.0", "950 series"),
        ("ModuleNotFoundError: No module named 'tbe.common'\n", "set_env.sh", "which one is taken"),
        ("IndexError: invalid index of a 0-dim tensor.\n", "x.item()", "vocabulary"),
        ("Warning: 0Failed to find function aclrtFoo (function f)\n"
         "EZ3003: No supported Ops kernel and engine are found for [A], optype [A].\n", "CANN is older", "replace"),
        ("EZ3003: No supported Ops kernel and engine are found for [A], optype [A].\n", "replace", "CANN is older"),
    ],
)  # fmt: skip
def test_what_stands_beside_a_failure_of_a_training_decides(text: str, names: str, not_names: str) -> None:
    said = told(text)
    assert names in said and not_names not in said


@pytest.mark.parametrize(
    ("asked", "used", "reserved", "said"),
    [
        ("40.00 GiB", 45, 46, "a single tensor of that size"),
        ("5.00 GiB", 49, 57, "fragmented"),
        ("5.00 GiB", 56, 57, "fills the card itself"),
    ],
)
def test_one_tensor_or_many_pieces(asked: str, used: int, reserved: int, said: str) -> None:
    assert said in " ".join(diagnosis_text(collected_from(OOM.format(asked, used, used, reserved)), [], None).split())


def test_the_types_that_an_operator_takes_are_told_where_the_failure_does_not_say_them() -> None:
    shown = diagnosis_text(collected_from(REFUSED), [], None)
    assert "types     aclnnInplaceZero on A2, A3: self may be" in shown and "uint64" not in shown
    assert "types  " not in diagnosis_text(collected_from(REFUSED + TYPE.format("UINT64")), [], None)
    assert "types  " not in diagnosis_text(collected_from(REFUSED.replace("161002", "507035")), [], None)
    assert lists_of("aclnnNoSuch") == {}


@pytest.mark.parametrize(
    ("last", "before", "names"),
    [
        ("Rank 1 initialized", ("torch.set_default_device(device)",), "torch.npu.set_device(rank)"),
        ("Rank 1 initialized", (), "does not say for what it waits"),
        ("time grows with every step, 越来越慢", (), "from step to step"),
        ("npu: 3.5 s", ("interpolate is really slow",), "Warm up"),
        ("the loss does not converge", (), "transplt compare"),
        ("{'loss': 1.25, 'epoch': 0.1}", (), "middle of a training"),
        ("1 nodes have joined so far, waiting for 2", (), "do not reach the head"),
    ],
)
def test_what_the_end_of_a_log_without_an_error_tells(last: str, before: tuple[str, ...], names: str) -> None:
    state = state_of(last, before)
    assert names in " ".join((state.cause, *state.do))


@pytest.mark.parametrize("text", ["train.sh: line 3: $'\\r': command not found", "bash: a: bad interpreter: ^M: x"])
def test_carriage_returns_in_scripts(text: str) -> None:
    assert (diagnosed(text).first == "carriage-returns") == ("\\r" in text)


def test_a_command_that_is_not_found_has_no_carriage_return() -> None:
    assert diagnosed("train.sh: line 3: accelerate: command not found").first == "not-there"


CRASH = "Fatal Python error: Segmentation fault\n"
BUS = "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
WORKER = "RuntimeError: DataLoader worker (pid 9) is killed by signal: {}.\n"
PLAN = TRACE.format(f"{SITE}/torch/distributed/distributed_c10d.py", "dist.scatter_object_list(")
STREAM = "RuntimeError: ACL stream synchronize failed, error code:507018\n"
PAD = "RuntimeError: pad:x.cpp:1 NPU function error: call aclnn{} failed, error code is 561103\n"


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        (CRASH + "PC: @ 0xfffd5c1f  (unknown)  aclnnFooGetWorkspaceSize\n", "inside of an operator", "OpenMP"),
        (CRASH + "PC: @ 0xfffd5c1f  (unknown)  main\n", "OpenMP", "inside of an operator"),
        ("aclnnFoo was called\n" + CRASH, "OpenMP", "inside of an operator"),
        (BUS + WORKER.format("Killed"), "the kernel killed the worker", "64 MB"),
        (WORKER.format("Bus error"), "/dev/shm", "memory.max"),
        (PLAN + STREAM, "scatter and gather of objects", "nan in sort"),
        (TRACE.format("/a.py", "x.sort()") + STREAM, "nan in sort", "gather of objects"),
        (PAD.format("ReplicationPad2dBackward"), "backward of this padding", "simplest operator"),
        (PAD.format("InplaceZero"), "simplest operator", "padding"),
        ("TypeError: 'NoneType' object is not callable\n", "optional package", "vllm-ascend"),
        (TRACE.format("/x/vllm_ascend/device_allocator/camem.py", "init_module(a)")
         + "TypeError: 'NoneType' object is not callable\n", "vllm-ascend's compiled part", "flash_attn"),
        ("ValueError: Image features and image tokens do not match: tokens: 3, features 2\n", "pixels", "releases of"),
        ("ValueError: the labels and the names do not match\n", "", "pixels"),
        ("AttributeError: torch._functorch.config.foo does not exist\n", "switch torch._functorch.config.foo", "class"),
        ("AttributeError: foo.config.bar does not exist\n", "does not have that name", "switch"),
        ("RuntimeError: aten.add: got mixed torch.Tensor and DTensor\n", "fully_shard", "cuda"),
        ("AssertionError: train_batch_size is not equal to micro * steps * world_size 16 != 1 * 1 * 8\n",
         "data parallel cards", "No row"),
        ("pyarrow.lib.ArrowInvalid: JSON parse error: a\n", "files of two formats", "Git LFS"),
        ("NameError: name 'torch_npu' is not defined\n", "import torch_npu", "optional package"),
        ("NameError: name 'foo' is not defined\n", "foo is imported", "import torch_npu"),
    ],
)  # fmt: skip
def test_what_ended_a_training_is_told_from_what_is_near_to_it(text: str, names: str, not_names: str) -> None:
    said = told(text)
    assert names in said and not_names not in said


WATCH = "HCCL watchdog thread terminated with exception: fftsplus timeout\n"
RANGE = "The DDR address of the MTE instruction is out of range\n"
UNREAD = f'  File "{SITE}/ray/exceptions.py", line 1, in from_ray_exception\n    return pickle.loads(x)\n'


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        (TRACE.format(f"{SITE}/torch/a.py", "_sync_params_and_buffers(g)") + WATCH, "map_location", "Prepare it"),
        (TRACE.format("/a.py", "with args.main_process_first():") + WATCH, "prepares the data set", "map_location"),
        (TRACE.format("/a.py", "m.save_pretrained(p)") + WATCH, "writes the checkpoint", "data set"),
        (TRACE.format(f"{SITE}/deepspeed/runtime/zero/stage3.py", "x()") + WATCH, "set_z3_leaf_modules", "checkpoint"),
        (TRACE.format(f"{SITE}/deepspeed/runtime/zero/stage_1_and_2.py", "x()") + WATCH, "only reports", "leaf"),
        (TRACE.format("/a.py", "loss.item()") + WATCH, "only reports", "map_location"),
        (TRACE.format("/a.py", "llm.load_weights(w)") + RANGE, "sleeps", "FSDP2"),
        (TRACE.format("/a.py", "fsdp2_clip_grad_norm_(p)") + RANGE, "FSDP1", "sleeps"),
        (TRACE.format("/a.py", "x[i]") + RANGE, "idx.min()", "FSDP1"),
        ("Traceback (most recent call last):\n" + UNREAD + "TypeError: FooError.__init__() missing 1 required "
         "positional argument: 'a'\n", "worker of ray raised FooError", "requirements of the calling"),
        ("TypeError: Foo.__init__() missing 1 required positional argument: 'a'\n", "requirements of", "ray"),
    ],
)  # fmt: skip
def test_the_place_tells_for_what_a_rank_waited_and_which_memory_was_gone(
    text: str, names: str, not_names: str
) -> None:
    said = told(text)
    assert names in said and not_names not in said


MISSING = "FileNotFoundError: [Errno 2] No such file or directory: '{}'\n"
TORCH = "ModuleNotFoundError: No module named 'torch'\n"
EQUAL = "RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1\n"
WAIT = "There are some potential root causes. (1) The process is killed by SIGKILL. (2) crashed due to SIGSEGV\n"


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        (TRACE.format(f"{SITE}/setuptools/build_meta.py", "exec(code)") + TORCH, "no-build-isolation", "another env"),
        (TRACE.format("/a.py", "import torch") + TORCH, "another environment", "no-build-isolation"),
        (MISSING.format("gdal-config"), "development package", "not mounted"),
        (MISSING.format("/data/a-config.json"), "not mounted", "development package"),
        ("/lib64/libc.so.6: version `GLIBC_2.29' not found\n", "manylinux2014", "conda's"),
        ("/lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found\n", "conda's", "manylinux2014"),
        ("EOFError: Ran out of input\n", "several processes write at once", "other process failed"),
        ("EOFError\n", "other process failed", "write at once"),
        ("The actor is dead because its worker process has died. " + WAIT, "error of that process", "used up"),
        ("ImportError: cannot import name 'gcd' from 'fractions' (/a)\n", "part of Python itself", "requirements name"),
        ("ImportError: cannot import name 'gcd' from 'foo' (/a)\n", "requirements name", "part of Python"),
        ("AttributeError: module 'attr' has no attribute 's'\n", "attrs", "half loaded"),
        ("TypeError: foo() got multiple values for argument 'std'\n", "std is given twice", "YAML"),
        ("TypeError: Type subscription requires python >= 3.9\n", "wants Python 3.9", "YAML"),
        ("RuntimeError: MoE requires grouped_gemm package\n", "wants grouped_gemm,", "None"),
        ("AssertionError: transformer_engine is not installed\n", "wants transformer_engine,", "None"),
        ("ValueError: num_attention_heads (28) must be a multiple of tensor_model_parallel_size (8)\n",
         "multiples of tensor parallel", "pip show"),
        ("AssertionError: the pipeline is a list\n", "check of the program", "parallel"),
        ("KeyError: 'lm_head.weight'\n", "tie_word_embeddings", "print its keys"),
        ("TypeError: can't convert npu:0 device type tensor to numpy.\n", ".cpu().numpy()", "YAML"),
        ("AttributeError: module 'collections' has no attribute 'Iterable'\n", "part of Python itself", "half loaded"),
        ("ImportError: libibverbs.so.1: cannot open shared object file\n", "libibverbs1", "openblas"),
        ("AssertionError: Rank 1: found NaN in local grad norm\n", "masked as a whole", "another env"),
        (TRACE.format("/a/gpt_dataset.py", "x") + EQUAL, "Megatron's index of samples", "images resized"),
        (TRACE.format("/a/collate.py", "x") + EQUAL, "images resized", "Megatron"),
        ("RuntimeError: Only one platform plugin can be activated, but got: ['a', 'b']\n", "VLLM_PLUGINS", "YAML"),
    ],
)  # fmt: skip
def test_packages_and_sizes_that_a_training_asks_for(text: str, names: str, not_names: str) -> None:
    said = told(text)
    assert names in said and not_names not in said


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        ("AssertionError: ppo_mini_batch_size 0 should be larger than 0 after normalization\n",
         "less than one", "YAML"),
        ("AssertionError: real_train_batch_size (4) must be divisible by minimal possible batch size (8)\n",
         "deals it out to 8", "YAML"),
        ("torch._dynamo.exc.Unsupported: Import failure\n", "an import that fails", "compiled part"),
        ("AttributeError: '_OpNamespace' '_C_ascend' object has no attribute 'npu_x'\n",
         "Python part requests npu_x", "CUDA"),
        ("AttributeError: '_OpNamespace' 'my' object has no attribute 'npu_x'\n", "compiled extension", "Python part"),
        ("AssertionError: Expandable segments are not compatible with memory pool.\n", "sleep mode", "YAML"),
        (TRACE.format("/a/parallel_state.py", "assert self.cpu_group is not None") + "AssertionError\n",
         "this rank", "pip"),
        (TRACE.format("/a/wheel.py", "assert os.path.exists(pyc_path)") + "AssertionError\n", "PIP_NO_COMPILE", "rank"),
        ("TypeError: EngineArgs.__init__() got an unexpected keyword argument 'max_seq_len'\n",
         "another framework", "YAML"),
        ("TypeError: f() got an unexpected keyword argument 'max_seq_len'\n", "installed version", "another framework"),
        (MISSING.format("llvm-objdump"), "comes with CANN", "not mounted"),
        (MISSING.format("llvm-notes.txt"), "not mounted", "comes with CANN"),
        ("ModuleNotFoundError: No module named 'torchvision'\n", "--no-deps torchvision==", "its name may differ"),
        ("ModuleNotFoundError: No module named 'foo'\n", "pip install foo", "--no-deps"),
    ],
)  # fmt: skip
def test_what_a_rollout_and_its_packages_lack(text: str, names: str, not_names: str) -> None:
    said = told(text)
    assert names in said and not_names not in said


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        ("AssertionError: only support equal chunk. Got size of DataProto 10 and chunk 8.\n", "multiples of 8", "YAML"),
        ("ValueError: [actor] Please set at least one of 'actor.ppo_micro_batch_size' or "
         "'actor.ppo_micro_batch_size_per_gpu'\n", "use_dynamic_bsz", "YAML"),
        ("AssertionError: max_token_len must be greater than the sequence length. Got 8\n", "whole", "YAML"),
        ("ValueError: sequence length 9 must be divisible by context parallel size * 2\n", "twice as many", "pip show"),
        ("AttributeError: 'Namespace' object has no attribute 'foo'\n", "The option foo", "for CUDA only"),
        ("ValueError: Invalid backend: 'nccl'\n", "hccl", "pip show"),
        ("AssertionError: Error in memory profiling. Initial free memory 3 GiB, current free memory 4 GiB.\n",
         "gave memory back", "YAML"),
        ("IndexError: index out of range in self\n", "resize_token_embeddings", "YAML"),
        ("RuntimeError: result type Float can't be cast to the desired output type Long\n", "in place", "YAML"),
        ("RuntimeError: Event device index 1 does not match recording stream's device index 0\n", "set_device", "pip"),
        ("RuntimeError: torch.cat(): expected a non-empty list of Tensors\n", "is empty", "pip show"),
        ("jinja2.exceptions.TemplateError: Conversation roles must alternate user/...\n", "chat template", "YAML"),
        ("AttributeError: 'NPU_Accelerator' object has no attribute 'foo'\n", "foo came later", "for CUDA only"),
        ("ValueError: Unknown scheme for proxy URL URL('socks://127.0.0.1:7890/')\n", "unset ALL_PROXY", "YAML"),
        ("RuntimeError: Triton Error [NPU]: invalid argument\n", "65535", "pip show"),
        ("RuntimeError: npu_fusion_attn: Sparse mode 2 mask shape must be [2048, 2048]\n", "torch.triu", "YAML"),
        ("AttributeError: 'tuple' object has no attribute 'backward'\n", "", "DeepSpeed"),
        ("AttributeError: 'tuple' object has no attribute 'get_seq_length'\n", "cache of keys", "DeepSpeed"),
        ("AttributeError: 'FooForCausalLM' object has no attribute 'backward'\n", "DeepSpeed", "cache of keys"),
        ("AssertionError: no_sync context manager is incompatible with ZeRO stage 2\n", "accelerate", "YAML"),
        ("EZ1001: Self dtype DT_FLOAT or mat2 dtype DT_FLOAT not support under keep type mode\n", "KEEP_DTYPE", "YAML"),
        ("RuntimeError: x and y are unsafe to autocast\n", "BCEWithLogitsLoss", "YAML"),
        ("RuntimeError: Attempting to deserialize object on NPU device 4 but there is 1\n", "higher number", "YAML"),
        ("NotImplementedError: reshape of sparse tensors is not supported\n", "to_dense", "YAML"),
        ("ValueError: mode 'reduce-overhead' is not supported\n", "CUDA graphs", "YAML"),
        ("RuntimeError: Expected is_sm80 || is_sm90 to be true, but got false.\n", "card of NVIDIA", "YAML"),
        ("ValueError: Flash Attention 2.0 only supports torch.float16 dtypes\n", "in float32", "YAML"),
        ("RuntimeError: setStorage: sizes [5] are out of bounds for storage of size 0\n", "given back", "YAML"),
        ("RuntimeError: Please convert all Tensors to FakeTensors first\n", "is traced", "YAML"),
        ("RuntimeError: Inference tensors cannot be saved for backward.\n", "inference_mode", "YAML"),
        ("ValueError: checkpoint of a different world size\n", "optimizer's state in parts", "YAML"),
        ("ValueError: a different world size\n", "", "optimizer's state in parts"),
        ("RuntimeError: Given normalized_shape=[4], but got input of size[1, 2]\n", "config.hidden_size", "YAML"),
        ("FloatingPointError: gradients are Nan/Inf\n", "set_detect_anomaly", "YAML"),
        ("AttributeError: 'DistributedDataParallel' object has no attribute 'foo'\n", "model.module.foo", "YAML"),
        ("ValueError: Device type npu is not supported\n", "list of devices", "YAML"),
        ("RuntimeError: found dtype Double but expected Float\n", "target.to(output.dtype)", "YAML"),
        ("subprocess.CalledProcessError: Command '['which', 'nvcc']' returned non-zero exit status 1.\n",
         "compiler of CUDA", "first traceback"),
        (TRACE.format("/a.py", "cv2.resize(x, y)") + "cv2.error: error: (-215:Assertion failed) !ssize.empty()\n",
         "empty image", "YAML"),
        (TRACE.format("/a.py", "f(x)") + "struct.error: unpack requires a buffer of 4 bytes\n", "shorter than", "YAML"),
        ("ValueError: SyncBatchNorm expected input tensor to be on GPU\n", "import torch_npu before", "YAML"),
        ("RuntimeError: random_ expects 'from' to be less than 'to', but got from=0\n", "empty data set", "YAML"),
    ],
)  # fmt: skip
def test_single_lines_of_trainings(text: str, names: str, not_names: str) -> None:
    said = told(text)
    assert names in said and not_names not in said


ENGINE = "/a/vllm/fused_moe/layer.py"
A_AND_B = "RuntimeError: The size of tensor a (8) must match the size of tensor b (7) at non-singleton dimension 1\n"
SLICE = "RuntimeError: start (0) + length (4096) exceeds dimension size (1408).\n"
EMPTY = "returned an invalid gradient at index 0 - got [0] but expected shape compatible with [256]\n"


@pytest.mark.parametrize(
    ("text", "names", "not_names"),
    [
        ("RuntimeError: Function SumBackward0 " + EMPTY, "empty there", "exchanged after"),
        ("RuntimeError: Function F " + EMPTY.replace("[0]", "[4]"), "exchanged after", "empty there"),
        (TRACE.format("/a/comm.py", "_allgather_base")
         + "TypeError: output tensor must have the same type as input tensor\n", "different types", "YAML"),
        (TRACE.format("/a/engine.py", "update_weights_from_disk()") + SLICE, "transposed or joined", "longer than"),
        (TRACE.format("/a/engine.py", "load()") + SLICE, "longer than the tensor", "transposed"),
        ("AttributeError: 'FooConfig' object has no attribute 'text_config'\n", "several parts", "YAML"),
        ("AttributeError: 'FooConfig' object has no attribute 'pad_token_id'\n", "", "several parts"),
        ("AssertionError: output.shape: torch.Size([1, 9]), attention_mask.shape: torch.Size([1, 1, 9, 9])\n",
         "use_remove_padding=True", "YAML"),
        ("RuntimeError: shape '[-1, 0]' is invalid for input of size 16\n", "ZeRO-3 a weight", "fused operator"),
        ("RuntimeError: shape '[-1, 7]' is invalid for input of size 16\n", "fused operator", "ZeRO-3"),
        (TRACE.format(ENGINE, "wake_up()") + A_AND_B, "New weights", "fused operator that"),
        (TRACE.format(ENGINE, "load()") + A_AND_B, "fused operator that", "New weights"),
        ("AssertionError: Attempted to load weight (torch.Size([9])) into parameter (torch.Size([0]))\n",
         "is empty", "quantised"),
        ("E90003: Compile operator failed, cause: 'bfloat16' of tbe.dsl.transdata is not supported.\n",
         "takes no bfloat16", "A shape outside"),
        ("EZ3002: Optype [TransData] of Ops kernel [AIcoreEngine] is unsupported.\n",
         "change of layout", "Read the reason"),
        ("EZ3002: Optype [Foo] of Ops kernel [AIcoreEngine] is unsupported.\n", "Read the reason", "change of layout"),
        ("RuntimeError: npu_x_grad: The shapes of the input dy should be 3 or 4 dimensional\n", "view_as", "YAML"),
        ("Exception: Please install cann-nnal package first\n", "NNAL", "YAML"),
        (TRACE.format("/a/stage_1_and_2.py", "unflatten()")
         + "NotImplementedError: Could not run 'npu::x' with arguments from the 'CPU' backend.\n",
         "DeepSpeed flattens", "YAML"),
    ],
)  # fmt: skip
def test_weights_that_are_divided_or_turned(text: str, names: str, not_names: str) -> None:
    said = told(text)
    assert names in said and not_names not in said


def test_the_condition_in_a_check_of_pydantic_is_the_cause() -> None:
    header = "pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig\n"
    value = "  Value error, max_num_batched_tokens (512) must be greater than or equal to max_num_seqs (1024).\n"
    found = diagnosed(header + value)
    assert found.heads[0] == "config-value" and "no fewer tokens" in told(header + value)
    assert diagnosed(header).heads == ["config-check"]
    assert "no fewer tokens" not in told(header + "  Value error, a must be positive [type=value_error]\n")


def test_awk_without_extensions_and_curves_that_part_are_told() -> None:
    assert diagnosed("awk: line 1: syntax error at or near ,\n").heads == ["awk-extension"]
    assert diagnosed("psql: syntax error at or near SELECT\n").heads == []
    said = state_of("step 5 loss: 3.9", ("the curves agree, later the loss on the NPU diverges",))
    assert "drifts" in said.cause and "drifts" not in state_of("step 5 loss: 3.9", ("all is well",)).cause
