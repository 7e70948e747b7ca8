"""What is told of devices, groups and asserts: in prose, by a bar of the data, by a check in C++."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnoses import diagnosed
from tests.diagnose.test_readings import TRACE, collected_from, told
from transplt.precision.diagnose.remedies import state_of

SITE = "/opt/py/lib/python3.10/site-packages"
BAR = "Running tokenizer on dataset (num_proc=16): {}|### | 48000/157712 [07:55<02:22, 772.28 examples/s]\n"
LATE = (
    "[E x.ts:421] [Rank 5] Watchdog caught collective operation timeout: WorkHCCL(SeqNum=11, OpType=ALLREDUCE, "
    "Timeout(ms)=600000) ran for 600196 milliseconds before timing out.\n"
)


def test_who_waits_for_a_rank_that_prepares_the_data() -> None:
    assert "still prepares the data" in told(BAR.format(" 30%") + LATE)
    assert "still prepares the data" not in told(BAR.format(" 30%") + BAR.format("100%") + LATE)
    # So often that the bar's end may have been missed.
    assert "still prepares the data" not in told(BAR.format(" 30%") * 2_100 + BAR.format("100%") + LATE)
    assert "nccl_timeout" in told(LATE) and "ALLREDUCE for the whole time" in told(LATE)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("On 8 NPUs it would load on cpu with device_map=\"auto\"", "accelerate 0.26"),
        ("NPU上训练时报无法找到nccl的错误", "--ddp_backend hccl"),
        ("跑起来后模型到了cpu上, device_map=\"auto\", 8张npu卡", "accelerate 0.26"),
        ("rank0还在预处理数据, 其他卡等待超时", "ddp_timeout"),
        ("With torch_npu the environment variable is set, and os.environ.get returns None", "num_proc off"),
        ("With flash attention 2 on Ascend the CPU memory keeps increasing in npu_flash_attn_func", "causal mask"),
    ],
)  # fmt: skip
def test_what_people_write_of_devices(text: str, names: str) -> None:
    assert names in _state(text)


@pytest.mark.parametrize(
    ("text", "not_names"),
    [
        ("On 8 NPUs I use device_map=\"auto\" and it is fast", "accelerate 0.26"),
        ("could not load nccl, hccl is used on npu", "--ddp_backend"),
        ("The memory of the card keeps increasing with flash attention on NPU", "causal mask"),
    ],
)  # fmt: skip
def test_what_only_sounds_like_it(text: str, not_names: str) -> None:
    assert not_names not in _state(text)


def _state(text: str) -> str:
    last = collected_from(text + "\n").last_lines[0]
    state = state_of(last.text, last.around)
    return " ".join((state.cause, *state.do))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("deepspeed offload: RuntimeError: inplace tensor self must be NPU-Tensor", "DeepSpeed 0.14.3"),
        ("RuntimeError: inplace tensor self must be NPU-Tensor", "changes a tensor in place"),
        ("RuntimeError: Could not run 'aten::empty_with_format' with arguments from the 'CPUTensorId' backend.",
         "x.npu()"),
        (TRACE.format(f"{SITE}/torch/__init__.py", "x()").replace("in step", "in _npu_shutdown") + "RuntimeError",
         "set_device"),
        ("AssertionError: data parallel group is not initialized", "Megatron"),
        (TRACE.format(f"{SITE}/vllm/distributed/x.py", "x()")
         + "AssertionError: tensor model parallel group is not initialized", "vllm's group"),
        ("TypeError: _sdpa_npu_redirect() got an unexpected keyword argument 'foo'", "A newer LLaMA-Factory"),
        ("TypeError: npu_rms_forward() got an unexpected keyword argument 'foo'", "instead of another package's"),
        ("TypeError: npu_fusion_attention() got an unexpected keyword argument 'foo'", "torch_npu"),
        ("ValueError: 'npu' is not a valid DeviceType", "does not know NPUs"),
        ('RuntimeError: x INTERNAL ASSERT FAILED at "c10/a.cpp":26, please report a bug to PyTorch. y', "c10/a.cpp"),
        ("ValueError: ddp_backend should be one of nccl, mpi, gloo", "does not have hccl"),
        ("ValueError: ddp_backend should be one of nccl, hccl, gloo", "A check of a value"),
        ("AttributeError: SOME_STATE\nvllm 0.9.1", "vllm and vllm-ascend are not of one release"),
        ("AttributeError: SOME_STATE", "An enumeration has no member SOME_STATE"),
        ("RuntimeError: Currently, there are 0 operators that need to be updated by capture", "--disable-cuda-graph"),
        ("ggml/src/ggml-cann/x.cpp:7: GGML_ASSERT(n_dims == src0->ne[0]) failed\nAborted (core dumped)", "RoPE"),
        ("ggml/src/ggml-cann/x.cpp:7: GGML_ASSERT(a == b) failed\nAborted (core dumped)", "-ngl 0"),
        ("x: main.cpp:9: int main(): Assertion `n > 0' failed.\nAborted (core dumped)", "File and condition"),
        ("AttributeError: 'AcceleratorState' object has no attribute 'foo'\nos.getenv(\"ACCELERATE_USE_X\") == None",
         "torch_npu replaces os.getenv"),
        ("AttributeError: 'AcceleratorState' object has no attribute 'foo'", "No Accelerator was made yet"),
    ],
)  # fmt: skip
def test_which_cause_a_line_has(text: str, names: str) -> None:
    assert names in told(text + "\n")


def test_a_heading_is_no_error() -> None:
    assert not diagnosed("step 5 done\nerror message:\n").heads
