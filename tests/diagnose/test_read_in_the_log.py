"""What stands in a log, as pairs of a log and what is said of it; beside each pair a log that is near to it and is not
read so."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnoses import diagnosed
from tests.diagnose.test_readings import SITE, TRACE, collected_from, told

CARDS = "export ASCEND_RT_VISIBLE_DEVICES={}\n"
NO_CARD = (
    "RuntimeError: ExchangeDevice:build/CMakeFiles/torch_npu.dir/compiler_depend.ts:293 NPU function error: "
    "c10_npu::SetDevice(device), error code is 107001\n"
)
FULL = "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity)\n"
EXPANDS = "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:{}\n"
TYPES = (
    "AssertionError: Current device type: AscendDeviceType.A3 does not match the installed version's device type: "
    "AscendDeviceType.A2, please check your installation package.\n"
)
NO_DRIVER = "ImportError: libascend_hal.so: cannot open shared object file: No such file or directory\n"
ENDED = 'ERROR: {}process "/bin/sh -c pip install ." did not complete successfully: exit code: 1\n'
REFUSED = (
    "EZ3002: 2025-01-18-12:11:20.101.202 Optype [{}] of Ops kernel [AIcoreEngine] is unsupported. Reason: [Dynamic "
    "shape check]: data type DT_{} of input [x] is not supported. All supported data type and format of tensor "
    "input0.x is: Data Type: {{DT_FLOAT16,DT_INT8}}Format:{{ND,ND}}.\n"
)
KERNEL = (
    'Traceback (most recent call last):\n  File "{}", line 20, in {}\n    call(x)\n'
    "triton.compiler.errors.CompilationError: at 22:12:\n    tmp5 = tl.where(mask, tmp3, 0)\n           ^\n"
    "NameError('{} is not defined')\n"
)
GROUP = "RuntimeError: {0}:build/a.ts:1 HCCL function error: {0}(comm), error code is 5\n"
INNER = (
    "RuntimeError: The Inner error is reported as above. The process exits for this inner error, and the current "
    "working operator name is {}.\n"
)
ROPE = "AttributeError: module 'torch_npu' has no attribute 'npu_rope'\n"
ARGS = "AssertionError: args is not initialized.\n"
QUANT = TRACE.format("/job/load.py", "{}(description)") + "KeyError: 'lm_head.weight'\n"
CONFIG = (
    TRACE.format(f"{SITE}/transformers/configuration_utils.py", "super().__getattribute__(key)")
    + "AttributeError: 'Qwen3Config' object has no attribute '{}'\n"
)
STREAMS = "stream {} failed, runtime result = 207005[FUNC:ReportCallError][FILE:log_inner.cpp][LINE:161]\n"


@pytest.mark.parametrize(
    ("log", "names", "near", "not_names"),
    [
        (CARDS.format("0,1,3,4") + NO_CARD, "with four cards the list is 0,1,2,3", NO_CARD, "the list is 0,1,2,3"),
        (CARDS.format("4,5") + NO_CARD, "from 0 on", CARDS.format("0,1,2,3") + NO_CARD, "not the slots"),
        (EXPANDS.format("True") + "--enable-sleep-mode\n" + FULL, "expandable_segments:False",
         EXPANDS.format("True") + FULL, "expandable_segments:False"),
        (EXPANDS.format("True") + "enable_sleep_mode=True\n" + FULL, "exclude each other",
         EXPANDS.format("False") + "enable_sleep_mode=True\n" + FULL, "exclude each other"),
        (TYPES, "built for A2, and the card is A3", TYPES.replace("does not match", "matches"), "built for A2"),
        (f"#15 3.101     {NO_DRIVER}#15 {ENDED.format('')}", "docker build", NO_DRIVER, "docker build"),
        (f"0.903 {NO_DRIVER}{ENDED.format('failed to solve: ')}", "belongs into the start",
         f"#15 DONE 3.1s\n{NO_DRIVER}", "docker build"),
        (REFUSED.format("Conv3DBackpropFilter", "BFLOAT16"), "Keep the vision tower frozen",
         REFUSED.format("Conv3DBackpropFilter", "DOUBLE"), "vision tower"),
        (REFUSED.format("Gather", "BFLOAT16"), "Gather does not accept BFLOAT16 for its input [x]",
         REFUSED.format("TransData", "BFLOAT16"), "TransData does not accept"),
        (KERNEL.format("/tmp/torchinductor_u/ab/c.py", "triton_poi_fused_add_0", "loop_x0"), "not of your program",
         KERNEL.format("/home/u/kernels.py", "my_kernel", "BLOCK"), "inductor"),
        (GROUP.format("HcclGroupEnd"), "batch_isend_irecv", GROUP.format("HcclAllReduce"), "batch_isend_irecv"),
        (STREAMS.format("wait event"), "cudagraph_capture_sizes", STREAMS.format("create"), "cudagraph"),
        ("AssertionError: camem allocator is not available\n", "COMPILE_CUSTOM_KERNELS=1",
         "AssertionError: my allocator is not available\n", "COMPILE_CUSTOM"),
        ("RuntimeError: NPUModelRunner init failed, ERROR is frob: only 64 heads are supported\n", "only 64 heads",
         "RuntimeError: NPUModelRunner init failed\n", "heads"),
        ("train.py: error: unrecognized arguments: --local-rank=0\n", "torchrun instead",
         "train.py: error: unrecognized arguments: --flash\n", "torchrun"),
        ("train.py: error: argument --dtype: invalid choice: 'fp8' (choose from 'fp16', 'bf16')\n",
         "--dtype of this version does not accept 'fp8'; it takes 'fp16', 'bf16'",
         "train.py: error: argument --dtype: expected one argument\n", "invalid"),
        ("ValueError: Some keys are not used by the HfArgumentParser: ['enable_liger']\n", "['enable_liger']",
         "ValueError: Some keys are not used: ['a']\n", "leave those out"),
        (QUANT.format("get_linear_quant_type"), "no line for lm_head.weight", QUANT.format("load"), "no line for"),
        ("ImportError: accelerate>=0.30.1,<=0.33.0 is required for a normal functioning of this module, but found "
         "accelerate==0.34.2.\n", 'pip install "accelerate>=0.30.1,<=0.33.0"',
         "ImportError: accelerate is required for a normal functioning of this module\n", "pip install \"accelerate>"),
        ("TypeError: Too few arguments for numpy.ndarray\n", "numpy is older",
         "TypeError: Too few arguments for f\n", "numpy is"),
        (TRACE.format("/job/mindspeed/args_utils.py", "get_args()") + ARGS, "MindSpeed at the newest commit",
         TRACE.format("/job/train.py", "get_args()") + ARGS, "MindSpeed"),
        ("AssertionError: Duplicate op name: apply_rotary_emb\n", "operator apply_rotary_emb is registered a second",
         "AssertionError: Duplicate name: apply_rotary_emb\n", "registered a second"),
        (CONFIG.format("draft_vocab_size"), "no draft model of that method", CONFIG.format("odd_size"), "draft model"),
        (CONFIG.format("odd_size"), "for another kind of model", CONFIG.format("text_config"), "another kind of model"),
        ("ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (32768).\n", "One value goes beyond",
         "ValueError: this tensor is small\n", "goes beyond"),
        ("ValueError: Unknown attention backend: FLASHINFER\n", "FLASHINFER is no attention backend",
         "ValueError: invalid literal for int() with base 10: 'a'\n", "is no "),
        ("TypeError: unsupported operand type(s) for //: 'NoneType' and 'int'\n", "A value is None",
         "RuntimeError: Unsupported dtype Half\n", "A value is None"),
        (TRACE.format("/job/vllm/models/qwen2_5_vl.py", "all_gather_interleave(x)") + FULL, "max_pixels",
         TRACE.format("/job/fsdp.py", "all_gather(x)") + FULL, "max_pixels"),
        (TRACE.format("/job/vllm_ascend/ops/rope.py", "torch_npu.npu_rope(") + ROPE, "npu_rope is an operator",
         TRACE.format("/job/rope.py", "torch_npu.npu_rope(") + ROPE, "vllm-ascend"),
        (INNER.format("_my_kernel"), "A Triton kernel (_my_kernel)", INNER.format("aclnnMul"), "Triton"),
        ('loc(".../verl/utils/kernel/kernels.py":188:0): error: ub overflow, requires 8577280 bits while 1572864 bits '
         "available!\n", "use_fused_kernels=False",
         "error: ub overflow, requires 8577280 bits while 1572864 bits available!\n", "use_fused_kernels"),
        ('Exception: Error setting ASCEND_RT_VISIBLE_DEVICES: local range: [8, 12) base value: "0,1,2,3"\n',
         "cards 8 to 12", "Exception: Error setting ASCEND_RT_VISIBLE_DEVICES\n", "cards 8"),
        ("ValueError: 'qwen3_coder' is not a valid tool call parser. Available: hermes, llama3_json\n",
         "it has hermes, llama3_json", "ValueError: 3 is not a valid seed\n", "it has"),
        (INNER.format("Conv2D") + "E39999: Failed to allocate memory for workspace, size 96\n", "the card is full",
         INNER.format("Conv2D") + "E39999: odd workspace\n", "got no memory"),
    ],
)  # fmt: skip
def test_a_log_and_its_answer_beside_one_that_is_near(log: str, names: str, near: str, not_names: str) -> None:
    assert names in told(log) and not_names not in told(near)


FLOAT = "EC0010: Failed to import Python module [AttributeError: `np.float_` was removed in the NumPy 2.0 release.].\n"
INFER = "RuntimeError: Failed to infer device type\n"
ATB = "ImportError: libatb.so: cannot open shared object file: No such file or directory\n"
CHIP = "RuntimeError: Unsupported soc version: {}\n"
TARGET = "bishengir-compile: for the --target option: Cannot find option named '{}'!\n"
CLASS = "AttributeError: '{}' object has no attribute 'cos_cached'\n"
NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled\n"
NEW = "torch==2.2.0, torch-npu==2.2.0, transformers==4.51.0\n"
MODEL = (
    "ImportError: This modeling file requires the following packages that were not found in your environment: {}. Run "
    "`pip install {}`\n"
)
GLOO = (
    "RuntimeError: [/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to "
    "complete\n"
)
RAY = "export RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES={}\n"
DCMI = "dcmi module initialize failed. ret is -8005\n"
DEVICES = "docker run --device /dev/davinci7 {} -it image bash\n"


@pytest.mark.parametrize(
    ("log", "names", "near", "not_names"),
    [
        # a cause in words before the consequence
        (INFER + ATB, "install Ascend-cann-nnal", INFER, "install Ascend-cann-nnal"),
        (f"(A pid=1) {INFER}(B pid=2) {ATB}", "install Ascend-cann-nnal", f"(A pid=1) {INFER}", "Ascend-cann-nnal"),
        (FLOAT, "numpy<2", "EC0010: Failed to import Python module [No module named 'decorator'.].\n", "numpy<2"),
        # versions and chips of the log
        (CHIP.format("Ascend950PR 9579"), "torch_npu 2.11.0 or later",
         CHIP.format("Ascend310B4"), "older than the chip"),
        (CHIP.format("Ascend910_9382"), "older than the chip Ascend910_9382",
         CHIP.format("Ascend310"), "older than the"),
        (TARGET.format("Ascend910B"), "the first Ascend 910", TARGET.format("Ascend910B3"), "the first Ascend 910"),
        (NEW + NO_CUDA, "torch and torch_npu 2.5.1 or later, of",
         NEW.replace("2.2.0", "2.6.0") + NO_CUDA, "2.5.1 or later, of"),
        (NEW + TRACE.format(f"{SITE}/transformers/m.py", "x.to(0)") + NO_CUDA, "Until then transformers below 4.49",
         NEW + TRACE.format(f"{SITE}/mmcv/m.py", "x.cuda()") + NO_CUDA, "transformers below"),
        (CLASS.format("AscendRotaryEmbedding"), "Another release of vllm-ascend",
         TRACE.format("/job/sglang/a.py", "x()") + CLASS.format("AscendAttnBackend"), "Another release of vllm-ascend"),
        ("AttributeError: 'GDNAttentionMetadataBuilder' object has no attribute 'aclgraph_support'\n",
         "asks of a class",
         "AttributeError: 'GDNAttentionMetadataBuilder' object has no attribute 'graph'\n", "asks of a class"),
        ("TypeError: NPUModelRunner.execute_model() got an unexpected keyword argument 'x'\n",
         "NPUModelRunner is by its",
         "TypeError: Runner.execute_model() got an unexpected keyword argument 'x'\n", "vllm-ascend"),
        # the command line
        ("vllm serve m --gpu-memory-utilization 0.85\n" + FULL, "a smaller --gpu-memory-utilization than 0.85",
         "vllm serve m\n" + FULL, "smaller --gpu-memory-utilization than"),
        ("vllm serve m --gpu-memory-utilization 0.6\n" + FULL, "given 0.6 of the card alone",
         "vllm serve m --gpu-memory-utilization=0.9\n" + FULL, "of the card alone"),
        ("python -m sglang.launch_server --mem-fraction-static 0.90\n" + FULL,
         "a smaller --mem-fraction-static than 0.90",
         "python -m sglang.launch_server\n" + FULL, "a smaller --mem"),
        ("actor_rollout_ref.rollout.gpu_memory_utilization=0.6 \\\n" + FULL, "free_cache_engine=True",
         "gpu_memory_utilization=0.8\n" + FULL, "free_cache_engine"),
        ("torchrun train.py --per_device_train_batch_size 8\n" + FULL, "a smaller --per_device_train_batch_size than 8",
         "torchrun train.py --per_device_train_batch_size 1\n" + FULL, "smaller --per_device_train"),
        ("deepspeed train.py --per_device_train_batch_size 1 --cutoff_len 8192\nEL0004: Failed to allocate memory.\n",
         "a smaller --cutoff_len than 8192", "EL0004: Failed to allocate memory.\n", "cutoff_len"),
        # packages in other words
        (MODEL.format("flash_attn", "flash_attn"), "Not pip install flash_attn",
         MODEL.format("einops", "einops"), "Not pip"),
        ("ImportError: XXX not found in your environment: flash_attn\n", "leave flash_attn out",
         "ImportError: flash_attn was found in your environment\n", "leave flash_attn out"),
        (MODEL.format("timm, einops", "timm einops"), "imports timm, einops, which",
         "ImportError: timm not found in your home\n", "imports"),
        # time-outs of Gloo and of the store
        ("  -> dist_cp.save()\n    -> RuntimeError: Timed out waiting 1800\n", "SHARDED_STATE_DICT",
         "  -> run()\n    -> RuntimeError: Timed out waiting 1800\n", "SHARDED_STATE_DICT"),
        (TRACE.format("/job/a.py", "dist.barrier()").replace("in step", "in save_model") + GLOO,
         "writes the checkpoint",
         TRACE.format("/job/a.py", "dist.barrier()") + GLOO, "checkpoint"),
        ("RuntimeError: [Rank 0]: Ranks 4, 5 failed to pass monitoredBarrier in 2000000 ms\n", "Rank 4, 5 did not come",
         "RuntimeError: Application timeout caused pair closure\n", "did not come"),
        ("torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/8 clients joined.\n",
         "1 of 8 processes reached it", "torch.distributed.DistStoreError: Socket Timeout\n", "processes reached"),
        # cards and devices
        (RAY.format(1) + "[Error]: Invalid device ID.\n", "card 5 is npu:1",
         RAY.format(0) + "[Error]: Invalid device ID.\n", "card 5 is npu:1"),
        (CARDS.format("4,5") + "[Error]: Invalid device ID.\n", "leaves fewer cards",
         RAY.format(1) + "[Error]: Invalid device ID.\n", "leaves fewer cards"),
        (DEVICES.format("--device /dev/davinci_manager") + DCMI, "started with the devices",
         DEVICES.format("") + DCMI, "started with the devices"),
    ],
)  # fmt: skip
def test_what_the_log_names_leads(log: str, names: str, near: str, not_names: str) -> None:
    assert names in told(log) and not_names not in told(near)


@pytest.mark.parametrize(
    "before",
    [
        "-> ", "          -> ", "=> ", "| ", "  | ", "train-1  | ", "\u2514\u2500\u2500 ", "0: ", "12:", "E       ",
        "(pid=9045) ", "[rank0]: ", "[rank0]: | ", "#15 3.101 ", "[pod/train-0/main] ",
        "2026-01-02T03:04:05.678901234Z stderr F ",
    ],
)  # fmt: skip
def test_what_stands_before_a_line_does_not_hide_the_error(before: str) -> None:
    assert [failure.head.text for failure in diagnosed(f"step 1\n{before}ValueError: odd\n").failures] == [
        "ValueError: odd"
    ]


def test_a_traceback_in_a_group_of_exceptions_keeps_its_source() -> None:
    log = TRACE.format("/job/a.py", "x.odd()").replace("\n", "\n    | ") + "ValueError: odd\n"
    (failure,) = diagnosed(f"    | {log}").failures
    assert failure.head.text == "ValueError: odd" and failure.first.frames[-1].source == "x.odd()"


@pytest.mark.parametrize(
    "line",
    [
        "- ValueError is raised where the shape is odd",
        "| ValueError | 3 |",
        "0: 12 errors",
        "x -> y: no Error",
        "| 0 910B3 | OK |",
    ],
)
def test_lists_and_tables_are_no_errors(line: str) -> None:
    assert diagnosed(f"step 1\n{line}\nstep 2\n").heads == []


@pytest.mark.parametrize(
    ("line", "ordered"),
    [
        ("ASCEND_RT_VISIBLE_DEVICES=1,0 python train.py", "0,1"),
        ("os.environ['ASCEND_RT_VISIBLE_DEVICES'] = '7,6,5'", "5,6,7"),
        ('"ASCEND_RT_VISIBLE_DEVICES": "0,2,2"', "0,2"),
        ("export ASCEND_RT_VISIBLE_DEVICES=0,9,10", ""),
        ("export ASCEND_RT_VISIBLE_DEVICES=0,1,3,4", ""),
        ("export CUDA_VISIBLE_DEVICES=1,0", ""),
        ("ASCEND_RT_VISIBLE_DEVICES=3", ""),
        ("ASCEND_RT_VISIBLE_DEVICES=$LIST,1,0", ""),
    ],
)
def test_a_list_of_cards_that_does_not_ascend_is_told_of(line: str, ordered: str) -> None:
    notes = collected_from(f"{line}\nRuntimeError: No NPU found\n").versions.notes()
    assert [note.rsplit(" ", 1)[-1] for note in notes] == ([f"{ordered}."] if ordered else [])


@pytest.mark.parametrize("log", ["#7 0.231 step 10 loss 0.3\n#7 DONE 4.1s\n", "#12 1.5 warnings: 0\n", "3.141 is pi\n"])
def test_lines_of_a_build_that_goes_well_are_no_errors(log: str) -> None:
    assert diagnosed(log).heads == []


def test_the_advice_names_torchair_no_more() -> None:
    for log in ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\n",
                "torch._inductor.exc.TritonMissing: Cannot find a working triton installation.\n"):  # fmt: skip
        assert "torchair" not in told(log)
