"""The texts of the guide's FAQ and whole excerpts of public logs lead to the right error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.diagnose.diagnoses import diagnosed
from transplt.rules.errors import known_errors

HERE = Path(__file__).parent
TEXTS = json.loads((HERE / "texts.json").read_text("utf-8"))["texts"]
PUBLIC = json.loads((HERE / "public.json").read_text("utf-8"))
HELD_BACK = json.loads((HERE / "held_back.json").read_text("utf-8"))

#: The entries of the guide's FAQ (pytorch_porting_guide v1.5.0-3.0.rc2), in its order. Where the guide has the text of
#: a log it is that; where it has a picture it is the title. Left-over processes are seen by doctor, not in a log.
GUIDE = [
    ("pip3.7 install pillow==5.3.0安装失败", "pillow-build"),
    ("RuntimeError: ExchangeDevice:", "exchange-device"),
    ("Error in atexit._run_exitfuncs:", "npu-shutdown"),
    ("terminate called after throwing an instance of 'c10::Error' what(): HelpACLExecute:", "help-acl-execute"),
    ("terminate called after throwing an instance of 'c10::Error' what(): 0 INTERNAL ASSERT", "backward-other-device"),
    ("ImportError: libhccl.so.", "libhccl-missing"),
    ("RuntimeError: Initialize.", "initialize-old"),
    ("TVM/te/cce error.", "cann-python-missing"),
    (
        "    RuntimeError: Run:/usr1/workspace/PyTorch_Apex_Daily_c20tr5/CODE/aten/src/ATen/native/npu/utils/"
        "OpParamMaker.h:280 NPU error,NPU error code is:500002\n"
        "    [ERROR] RUNTIME(160809)kernel task happen error, retCode=0x28, [aicpu timeout].\n"
        "    [ERROR] RUNTIME(160809)aicpu kernel execute failed, device_id=0, stream_id=512, task_id=24, fault so_name=, "
        "fault kernel_name=, extend_info=.\n    Error in atexit._run_exitfuncs:\n    Traceback (most recent call last):\n"
        '    File "/usr/local/python3.7.5/lib/python3.7/site-packages/torch/__init__.py", line 429, in _npu_shutdown\n'
        "        torch._C._npu_shutdown()\n",
        "aicpu-timeout",
    ),
    (
        "    [ERROR] RUNTIME(12731,python3.7):2021-02-02-22:23:56.475.679 [../../../../../../runtime/feature/src/"
        "npu_driver.cc:1408]12828 MemCopySync:drvMemcpy failed: dst=0x108040288000, destMax=1240, src=0x7fe7649556d0, "
        "size=1240, kind=1, drvRetCode=17!\n"
        "    [ERROR] RUNTIME(12731,python3.7):2021-02-02-22:23:56.475.698 [../../../../../../runtime/feature/src/"
        "logger.cc:113]12828 KernelLaunch:launch kernel failed, kernel=140631803535760/ArgMinWithValue_tvmbin, dim=32, "
        "stream=0x55b22b3def50\n"
        "    [ERROR] RUNTIME(12731,python3.7):2021-02-02-22:23:56.475.717 [../../../../../../runtime/feature/src/"
        "api_c.cc:224]12828 rtKernelLaunch:ErrCode=207001, desc=[module new memory error], InnerCode=0x70a0002\n",
        "drv-memcpy",
    ),
    ("RuntimeError: HelpACLExecute.", "help-acl-execute"),
    ("The number of attrs in op desc and op store does not match. ", "op-attrs-differ"),
    ("55056 GetInputConstDataOut: ErrorNo: -1(failed)", "const-data-out"),
    (
        "RuntimeError: malloc:/..../pytorch/c10/npu/NPUCachingAllocator.cpp:293 NPU error, error code is 500000.",
        "allocator-malloc",
    ),
    ("RuntimeError: Could not run 'aten::trunc.out' with arguments from the 'NPUTensorId' backend.", "could-not-run"),
    ("MaxPoolGradWithArgmaxV1算子和max算子报错", "aclop-operator"),
    ("ModuleNotFoundError: No module named 'torch._C'", "torch-own-folder"),
    ("AttributeError: module 'torch._C' has no attribute '_cuda_synchronize'", "cuda-stream-sync"),
    ("aicpu_kernels/libpt_kernels.so不存在", "aicpu-kernels"),
    ("match op inputs failed", "dynamic-shape-op"),
    (
        "[ERROR] GE(24836,python3.7):2021-01-27-18:27:51.562.111 [../../../../../../graphengine/ge/engine_manager/"
        "dnnengine_manager.cc:266]25155 GetDNNEngineName: ErrorNo: 1343242282(assign engine failed) GetDNNEngineName:"
        "Op type SigmoidCrossEntropyWithLogitsV2 of ops kernel AIcoreEngine is unsupported, reason:Op "
        "SigmoidCrossEntropyWithLogitsV2 not supported",
        "op-not-in-store",
    ),
    (
        "Traceback (most recent call last):\n"
        '  File "tools/train.py", line 227, in <module>\n    main()\n'
        '  File "tools/train.py", line 221, in main\n    meta=meta)\n'
        '  File "/root/YoloV3/mmdetection/mmdet/models/detectors/base.py", line 251, in train_step\n'
        "    losses = self(**data)\n"
        '  File "/usr/local/python3.7.5/lib/python3.7/site-packages/torch/nn/modules/module.py", line 660, in __call__\n'
        "    var = next((v for v in var.values() if isinstance(v, torch.Tensor)))\nStopIteration\n",
        "hook-stop-iteration",
    ),
    ("load state_dict error.", "state-dict-prefix"),
    ("host not found.", "host-not-found"),
    ("RuntimeError:connect() timed out.", "connect-timed-out"),
]


@pytest.mark.parametrize(("text", "name"), GUIDE, ids=[name for _, name in GUIDE])
def test_the_faq_of_the_guide(text: str, name: str) -> None:
    assert diagnosed(text).first == name


def test_what_the_shell_and_the_log_say_of_one_error_in_the_guide() -> None:
    """The FAQ on MemCopySync: the error on the AI CPU is named, not the copy and the memory that failed behind it."""
    shell, log = (text for text, name in GUIDE if name in ("aicpu-timeout", "drv-memcpy"))
    said = diagnosed(f"{shell}\n{log}")
    assert said.heads == ["aicpu-timeout"]
    assert "acl-207001" not in said.named and "drv-memcpy" in said.named
    assert said.failures[0].operators == ("ArgMinWithValue",)


@pytest.mark.parametrize("row", TEXTS, ids=[f"{row['head']}-{number}" for number, row in enumerate(TEXTS)])
def test_public_texts(row: dict[str, str]) -> None:
    said = diagnosed(row["text"])
    assert said.first == row["head"]
    assert said.named <= {row["head"], *row["also"]}


@pytest.mark.parametrize("row", PUBLIC["learnt"], ids=[f"{row['head']}-{n}" for n, row in enumerate(PUBLIC["learnt"])])
def test_texts_that_patterns_were_widened_for(row: dict[str, str]) -> None:
    assert diagnosed(row["text"]).first == row["head"]


@pytest.mark.parametrize(("part", "wrong"), [("aside", "issues/2239"), ("later", "issues/5707")])
def test_public_texts_that_were_set_aside(part: str, wrong: str) -> None:
    """`right_at_first` is the figure of the one run before anything was changed for them; one is wrong until today."""
    rows = PUBLIC[part]
    assert (len(rows), PUBLIC["right_at_first"][part]) == {"aside": (30, 20), "later": (19, 12)}[part]
    missed = [row["where"].split(" (")[0] for row in rows if diagnosed(row["text"]).first != row["head"]]
    assert missed == [f"https://github.com/vllm-project/vllm-ascend/{wrong}"]


SHOWN = [*PUBLIC["shown"], *PUBLIC["shown_later"]]


@pytest.mark.parametrize("row", SHOWN, ids=[f"{row['head']}-{n}" for n, row in enumerate(SHOWN)])
def test_public_texts_with_the_facts_that_a_diagnosis_must_name(row: dict[str, str]) -> None:
    assert diagnosed(row["text"]).first == row["head"]


def test_texts_that_were_held_back() -> None:
    """The figure of the first run, before anything was changed for them, stands in the file; it may not fall."""
    right = [row["where"] for row in HELD_BACK["texts"] if diagnosed(row["text"]).first == row["head"]]
    assert len(right) >= HELD_BACK["recognised_untuned"]


def test_the_second_texts_that_were_held_back() -> None:
    """Drawn later, from other threads; what the first run recognised stands in the file, and may not fall either."""
    found = {row["where"]: diagnosed(row["text"]).first for row in HELD_BACK["second"]}
    right = [row["where"] for row in HELD_BACK["second"] if found[row["where"]] == row["head"]]
    assert len(right) >= HELD_BACK["second_recognised_untuned"]
    assert {row["where"]: row["head"] for row in HELD_BACK["second"]} == found


@pytest.mark.parametrize("row", HELD_BACK["foreign"], ids=[str(n) for n in range(len(HELD_BACK["foreign"]))])
def test_what_is_no_error_of_an_npu_is_named_as_none(row: dict[str, str]) -> None:
    """A general form (a container that did not start) may be read; nothing of NPUs is."""
    general = {error.name for error in known_errors() if error.alone}
    assert diagnosed(row["text"]).named <= general
