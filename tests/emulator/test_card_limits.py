"""The card's own rules at run time: types, casts, memory, collectives, calls, in the words of the static check."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from typing import Any

import pytest

from tests import forked
from tests.harness import migrate
from transplt.rules.card_limits import cards, limit_text

pytestmark = pytest.mark.torch
Told = dict[str, tuple[str, str]]
_REFUSED_TYPES = ("float64", "complex64", "int64")


def _port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


_TOLD: dict[str, Told] = {}


def tell(program: Any, **config: Any) -> Told:
    """What the program tells with these settings; it runs once for all tests of them."""
    key = json.dumps(config)
    if key not in _TOLD:
        _TOLD[key] = _tell(program, **config)
    return _TOLD[key]


def _tell(program: Any, **config: Any) -> Told:
    told = json.loads(program("card_limits.py", _port(), **config).stdout.splitlines()[-1])
    return {name: (error, forked.in_words_of_cann(text)) for name, (error, text) in told.items()}


def refused(told: Told) -> list[str]:
    return [name for name, (error, _) in told.items() if error == "RuntimeError"]


def test_what_a_910b_refuses(program: Any) -> None:
    told = tell(program)
    products = [f"{name} {dtype}" for dtype in _REFUSED_TYPES for name in ("mm", "bmm", "addmm", "mv")]
    layers = ["linear", "conv2d", "conv_transpose", "batch_norm", "layer_norm", "group_norm"]
    reductions = ("all_reduce", "reduce", "reduce_scatter_tensor")
    sums = [f"{name} float64" for name in reductions]
    sums += ["reduce_scatter_tensor uint8", "reduce_scatter_tensor bool"]
    bits = [f"{name} {op}" for op in ("BAND", "BOR", "BXOR") for name in reductions]
    assert refused(told) == [
        *products, *(f"{layer} float64" for layer in layers), "add of 9", "sum of 9", "cat of 9",
        *sums, *bits, "ddp float64", "ddp complex64", "gloo",
    ]  # fmt: skip
    assert told["add of 9"][1] == (
        "[emulated npu] call aclnnAdd failed, error code is 161002. AclNN_Parameter_Error(EZ1001): The self tensor "
        "cannot be larger than 8 dimensions. aten::add takes tensors of 8 dimensions at most: reshape them to fewer "
        "dimensions first [NPU791]"
    )
    assert [told[name][1] for name in ("mul of 8", "views of 9", "9 on the host")] == ["7", "9", "9"]
    assert told["all_reduce BAND"][1].removeprefix("[emulated npu] ").startswith("Cannot use ReduceOp.BAND with HCCL")
    assert told["mm float64"][1] == (
        "[emulated npu] call aclnnMatmul failed, error code is 161002. AclNN_Parameter_Error(EZ1001): Tensor self "
        "not implemented for DT_DOUBLE, should be in dtype support list [DT_FLOAT,DT_FLOAT16,DT_BFLOAT16,]. aten::mm "
        "takes no float64 on Ascend 910B (Atlas A2): make its tensors float32, or compute this on the CPU [NPU791]"
    )
    assert told["conv2d float64"][1].startswith("[emulated npu] call aclnnConvolution failed")
    assert "aten::convolution takes no float64" in told["conv2d float64"][1]
    # What no source calls refused, and complex convolutions, which PyTorch makes of real ones.
    for passes in ("add float64", "sum complex64", "conv2d complex64", "broadcast float64", "all_gather float64"):
        assert told[passes][0] == ""
    assert told["all_reduce complex64"] == ("", "None")  # sent as real numbers


def test_a_cast_to_float64_gives_float32(program: Any) -> None:
    told = tell(program)
    assert told["double"] == told["to float64"] == ("", "torch.float32")
    assert told["warned"][1] == ""  # torch_npu says it in C++, on the terminal
    for kept in ("to device and float64", "made float64", "from the host", "float64 to float64", "on the host"):
        assert told[kept] == ("", "torch.float64")
    assert told["gradient through double"] == ("", "[2.0, 2.0] torch.float32")


def test_memory_is_that_of_live_tensors(program: Any) -> None:
    told = tell(program)
    one = (1 << 20) + 512  # 32 bytes more, in blocks of 512
    assert [told[name][1] for name in ("allocated", "of views", "of a result", "freed")] == [
        str(one), str(one), str(2 * one), "0",
    ]  # fmt: skip
    # torch_npu keeps what was freed, which is neither free nor asked for again.
    assert all(told[name] == ("", "True") for name in ("peak", "peak again"))
    assert (told["full"][0], told["fraction"][0]) == ("OutOfMemoryError", "")
    assert told["kept"][1] == "15"  # of 4 GiB each; something else lies on the card, too
    assert told["full"][1].removeprefix("[emulated npu] ").startswith(
        "NPU out of memory. Tried to allocate 4.00 GiB (NPU 0; 64.00 GiB total capacity; 60.00 GiB "
        "already allocated; 60.00 GiB current active; "
    )
    assert told["other card"] == ("", "npu:1") and told["free again"] == ("", "npu:0")


def test_other_calls(program: Any) -> None:
    told = tell(program)
    assert told["capability"] == ("", "None") and told["capability set"] == ("", "(8, 0)")
    assert told["weight_norm torch.nn.utils.weight_norm"] == ("", "True")
    assert told["weight_norm torch.nn.utils.parametrizations"] == ("", "True")
    assert told["gloo host"] == ("", "None")


def test_another_card_has_other_limits(program: Any) -> None:
    on_950 = refused(tell(program, card="950"))
    assert "mm float64" in on_950 and "reduce_scatter_tensor uint8" in on_950
    assert not {"all_reduce float64", "reduce float64"} & set(on_950)
    assert "aclnnEmbeddingDenseBackward" in tell(program, card="950")["ddp float64"][1]  # not what HCCL says


def test_nothing_is_refused_where_cuda_means_the_npu(program: Any) -> None:
    told = tell(program, cuda="alias")
    # CANN refuses nothing then; torch_npu itself is not ours.
    assert not [name for name in refused(told) if not re.search("reduce|ddp|gloo", name)]
    assert told["double"] == ("", "torch.float32")


# --- one text for the check and the run ------------------------------------------------------------------------------

SUM = """
import torch
import torch_npu
import torch.distributed as dist

dist.init_process_group("{backend}")
totals = torch.ones(2, dtype=torch.{dtype}, device="npu")
dist.all_reduce(totals)
"""


@pytest.mark.parametrize(
    ("backend", "dtype", "code"),
    [("hccl", "float64", "NPU314"), ("gloo", "float32", "NPU276"), ("hccl", "float32", "")],
)
def test_a_run_says_what_the_check_says(
    transplt_run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, backend: str, dtype: str, code: str
) -> None:
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", _port())):
        monkeypatch.setenv(name, value)
    source = SUM.format(backend=backend, dtype=dtype)
    _, report, _ = transplt_run(source)
    seen = [(f["code"], f["message"], f["help"]) for f in report["findings"]]
    assert [found[0] for found in seen] == ([code] if code else [])
    checked = migrate(source.replace('"npu"', '"cuda"').replace("import torch_npu\n", "").replace("hccl", "nccl"))
    assert seen == [(f.code, f.message, f.help) for f in checked.findings if f.code in ("NPU314", "NPU276")]


def test_a_call_is_said_in_the_words_of_the_rules(transplt_run: Callable[..., Any]) -> None:
    shown = "import torch, torch_npu\nprint(torch.npu.get_device_capability())\ntorch.ones(1).npu()\n"
    code, report, _ = transplt_run(shown)
    (found,) = report["findings"]
    checked = migrate("import torch\nhopper = torch.cuda.get_device_capability() == (9, 0)\n")
    (said,) = [f for f in checked.findings if f.code == "NPU503"]
    assert (found["code"], found["message"], found["help"]) == (said.code, said.message, said.help)
    assert (found["level"], found["line"], code) == ("info", 2, 0)  # a migration writes it where it is only shown
    # ... nor does the guard advise the call that does nothing
    _, report, _ = transplt_run("import torch\nprint(torch.cuda.get_device_capability())\n")
    (left,) = report["findings"]
    assert left["code"] == "NPU503" and left["help"] == f"{said.message}: {said.help}"


def test_a_cast_of_the_user_is_a_finding_and_one_of_torch_is_not(transplt_run: Callable[..., Any]) -> None:
    source = """
import torch, torch_npu
model = torch.nn.Linear(2, 2).npu()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("npu")
scaler.scale(model(torch.ones(1, 2).npu()).sum()).backward()
scaler.unscale_(optimizer)
scaler.step(optimizer)
scaler.update()
"""
    _, report, _ = transplt_run(source)
    assert report["findings"] == []
    code, report, _ = transplt_run(source + "print(model.weight.sum().double())\n")
    (found,) = report["findings"]
    limit = limit_text("cast")
    assert (found["code"], found["message"], found["help"]) == (limit.code, limit.message, limit.help)
    assert (found["level"], found["line"], code) == ("warning", 10, 0)


def test_a_layer_with_weight_norm_has_its_kernels(transplt_run: Callable[..., Any]) -> None:
    _, report, _ = transplt_run(
        "import torch, torch_npu\nfrom torch.nn.utils.parametrizations import weight_norm\n"
        "weight_norm(torch.nn.Linear(3, 2)).npu()(torch.ones(1, 3).npu()).sum().backward()\n"
    )
    assert report["findings"] == []


def test_a_host_that_is_too_small_says_nothing_of_the_program(transplt_run: Callable[..., Any]) -> None:
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))\n"
    code, report, _ = transplt_run(
        limit
        + "import torch, torch_npu\ntorch.ones(1).npu()\ntorch.empty(20 << 30, dtype=torch.uint8, device='npu')\n"
    )
    assert (code, report["verdict"]) == (1, "not run")
    assert report["sentence"].startswith("this machine has no 20.0 GiB left for the emulated card")


def test_the_card_is_chosen(transplt_run: Callable[..., Any]) -> None:
    assert cards()[0] == "910B"
    name = "import torch, torch_npu\ntorch.ones(1).npu()\nprint(torch.npu.get_device_name())\n"
    assert "Ascend910B2" in transplt_run(name)[1]["stdout"]
    assert "Ascend950" in transplt_run(name, options=["--card", "950"])[1]["stdout"]


def test_the_backend_that_programs_import(program: Any) -> None:
    told = tell(program)
    assert (told["options"][0], told["backend"]) == ("", ("", "True"))
