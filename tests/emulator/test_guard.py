"""What the guard says to leftover CUDA code, and what it lets pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytestmark = pytest.mark.torch

STOPPED = {
    "torch.cuda.synchronize()": "NPU101",
    "x.cuda()": "NPU210",
    "m.cuda()": "NPU210",
    'x.to("cuda")': "NPU201",
    'x.to("cuda:0", non_blocking=True)': "NPU201",
    'm.to(torch.device("cuda"))': "NPU201",
    'torch.zeros(2, device="cuda")': "NPU201",
    'torch.randn(2, device=torch.device("cuda:1"))': "NPU201",
    "from torch.cuda.amp import autocast": "NPU103",
    "from torch.cuda.amp import GradScaler\nGradScaler()": "NPU103",
    "import torch.cuda.amp as a\na.autocast()": "NPU103",
    "from torch import cuda\ncuda.empty_cache()": "NPU104",
    "import torch.cuda\ntorch.cuda.set_device(0)": "NPU101",
    "torch.cuda.manual_seed_all(1)": "NPU106",
    "torch.cuda.Stream()": "NPU105",
    "torch.cuda.FloatTensor([1])": "NPU109",
    "torch.cuda.get_device_name(0)": "NPU101",
    'f = getattr(torch.cuda, "memory_allocated")': "NPU104",
    "torch.cuda.nvtx.range_push('a')": "NPU108",
    "torch.cuda.nccl.version()": "NPU501",
    'torch.autocast("cuda")': "NPU201",
    'torch.amp.autocast(device_type="cuda")': "NPU201",
    "torch.cuda.amp.autocast()": "NPU103",
    "torch.amp.GradScaler()": "NPU121",
    'torch.amp.GradScaler("cuda")': "NPU201",
    '@torch.amp.custom_fwd(device_type="cuda")\ndef f(ctx): pass': "NPU201",
    'torch.distributed.init_process_group("nccl")': "NPU301",
    'import torch.distributed as dist\ndist.init_process_group(backend="cpu:gloo,cuda:nccl")': "NPU301",
    'torch.load("none.pt", map_location="cuda:0")': "NPU201",
    'torch.load("none.pt", map_location={"cuda:1": "cuda:0"})': "NPU201",
    'torch.set_default_device("cuda")': "NPU201",
    'x.new_zeros(2, device="cuda")': "NPU201",
    'torch.zeros_like(x, device="cuda")': "NPU201",
    'torch.linspace(0, 1, 3, device="cuda")': "NPU201",
    'torch.Generator("cuda")': "NPU201",
    'with torch.device("cuda"): torch.eye(2)': "NPU201",
    'x.type("torch.cuda.FloatTensor")': "NPU205",
    'torch.set_default_tensor_type("torch.cuda.FloatTensor")': "NPU125",
    "torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])": "NPU130",
}
NOTED = {
    "torch.cuda.is_available()": "NPU101",
    "x.is_cuda": "NPU211",
    "torch.distributed.is_nccl_available()": "NPU111",
    'os.environ["CUDA_VISIBLE_DEVICES"] = "0"': "NPU220",
}
PASSED = [
    "torch.backends.cudnn.benchmark = True",
    "torch.manual_seed(0)",
    'torch.device("cuda")',
    "nn.DataParallel(m.npu(), device_ids=[0])(x.npu()[None])",
    "torch.optim.Adam(m.parameters()).step()",
    "torch.utils.data.DataLoader([1, 2], pin_memory=True, num_workers=1).__iter__().__next__()",
    "torch.nn.utils.clip_grad_norm_(m.parameters(), 1.)",
    'torch.save(m.state_dict(), "g.pt"); torch.load("g.pt")',
    'torch.random.fork_rng(device_type="npu").__enter__()',
    "nn.functional.relu(x)",
    "torch.jit.script(m)",
    'with torch.autocast("npu"): m.npu()(x.npu())',
    "torch.compile(m)(x)",
    'if x.device.type == "cuda": pass',  # the static check owns comparisons of strings
]


def outcomes(program: Any, snippets: Any, **config: Any) -> dict[str, list[str]]:
    result: dict[str, list[str]] = json.loads(program("guard.py", json.dumps(list(snippets)), **config).stdout)
    return result


def test_errors_stop_with_place_and_code(program: Any) -> None:
    seen = outcomes(program, [*STOPPED, *NOTED, *PASSED])
    assert {s: seen[s][:2] for s in STOPPED} == {s: ["stopped", code] for s, code in STOPPED.items()}
    assert {s: seen[s][:2] for s in NOTED} == {s: ["noted", code] for s, code in NOTED.items()}
    assert {s: seen[s][0] for s in PASSED} == dict.fromkeys(PASSED, "passed")
    for snippet, code in STOPPED.items():
        line = 1 + snippet.count("\n") - snippet.endswith("pass")
        assert seen[snippet][2].startswith((f"train.py:{line}: leftover CUDA use: ", "train.py:1: leftover"))
        assert seen[snippet][2].endswith(f"[{code}]")


RECORDED = [
    "assert torch.cuda.is_available(); assert x.cuda().is_npu",
    'assert m.to("cuda").weight.device.type == "npu"',
    'assert torch.zeros_like(x, device="cuda").is_npu',
    'assert x.to(torch.device("cuda:1")).device.index == 1',
    'torch.amp.GradScaler()\nwith torch.autocast("cuda"): assert (m.npu()(x.npu())).dtype == torch.float16',
    'torch.cuda.nvtx.range_push("a"); torch.cuda.nvtx.range_pop(); torch.cuda.synchronize()',
    'torch.save(x, "a.pt"); assert torch.load("a.pt", map_location="cuda").is_npu',
    "from torch.cuda.amp import autocast, GradScaler\nassert GradScaler().is_enabled()",
    'assert torch.Generator("cuda").device.type == "npu"',
    'assert torch.cuda.FloatTensor([1.0]).is_npu; assert x.type("torch.cuda.FloatTensor").is_npu',
]


def test_record_lists_uses_and_carries_them_out_on_the_npu(program: Any) -> None:
    seen = outcomes(program, RECORDED, cuda="record")
    assert {s: seen[s][0] for s in RECORDED} == dict.fromkeys(RECORDED, "noted"), seen


def test_alias_carries_them_out_unreported(program: Any) -> None:
    seen = outcomes(program, RECORDED, cuda="alias")
    assert {s: seen[s][0] for s in RECORDED} == dict.fromkeys(RECORDED, "passed"), seen


def test_a_portable_project_may_ask_for_cuda(program: Any) -> None:
    probes = [s for s in NOTED if "environ" not in s]
    assert {v[0] for v in outcomes(program, probes, probes="info").values()} == {"passed"}


def test_off(program: Any) -> None:
    seen = outcomes(program, ["torch.cuda.is_available()", "torch.amp.GradScaler()", "x.cuda()"], cuda="off")
    assert [v[0] for v in seen.values()] == ["passed", "passed", "AssertionError"]
