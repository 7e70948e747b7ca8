"""What torch_npu has besides operators, on the emulated card: a program for each row of docs/reference/torch_npu.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.faces.cli.main import main as transplt

pytestmark = pytest.mark.torch
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "torch_npu.md"
_HEAD = "| of torch_npu | on the emulated card |\n|---|---|\n"
_NET = """
import torch, torch_npu, os, pathlib, pickle, time, warnings
x = torch.ones(4, device="npu")
net = torch.nn.Linear(4, 2).npu()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def step():
    net(x).sum().backward()
    optimizer.step()
"""
#: What the row begins with (its first cell) -> a program. It asserts what works; what it stops with stands in the row.
ROWS = {
    "`torch.npu.NPUGraph`": """
graph = torch.npu.NPUGraph()
with torch.npu.graph(graph):
    y = x * 2
""",
    "`torch.npu.make_graphed_callables`": "torch.npu.make_graphed_callables(net, (torch.ones(3, 4, device='npu'),))",
    "`torch_npu.profiler`": """
profiler = torch_npu.profiler
with profiler.profile(
    schedule=profiler.schedule(wait=0, warmup=1, active=2, repeat=1),
    on_trace_ready=profiler.tensorboard_trace_handler("prof"), record_shapes=True, with_stack=True,
) as profile:
    for _ in range(4):
        step()
        profile.step()
(folder,) = pathlib.Path("prof").glob("*_ascend_pt/ASCEND_PROFILER_OUTPUT")
found = {path.name for path in folder.iterdir()}
assert {"operator_details.csv", "trace_view.json"} <= found and "kernel_details.csv" not in found, found
""",
    "`torch_npu.profiler.dynamic_profile`": """
from torch_npu.profiler import dynamic_profile
dynamic_profile.init("asked")
step()
dynamic_profile.step()
""",
    "`torch.profiler`": """
with torch.profiler.profile() as profile:
    step()
assert any(each.key == "aten::addmm" for each in profile.key_averages())
""",
    "`torch.npu.mstx`": """
torch.npu.mstx.mark("here")
torch.npu.mstx.range_end(torch.npu.mstx.range_start("a step"))
""",
    "`torch.npu.memory._record_memory_history`": """
memory = torch.npu.memory
memory._record_memory_history(max_entries=100)
y = x * 2
del y
(trace, *_) = memory._snapshot()["device_traces"]
assert {"alloc", "free_completed"} <= {each["action"] for each in trace}
assert any(frame["filename"].endswith("train.py") for each in trace for frame in each["frames"])
memory._dump_snapshot("snapshot.pickle")
assert pickle.loads(pathlib.Path("snapshot.pickle").read_bytes())["segments"]
""",
    "`torch.npu.memory_summary`": """
npu = torch.npu
assert "PyTorch NPU memory summary" in npu.memory_summary() and npu.memory_snapshot()
before = npu.memory_allocated()
y = torch.ones(1 << 20, device="npu")
held = npu.memory_allocated()
assert 4 << 20 <= held - before < 5 << 20 and held == npu.memory_stats()["allocated_bytes.all.current"]
free, total = npu.mem_get_info()
assert total == 64 << 30 and free <= total - npu.memory_reserved()
""",
    "`torch.npu.MemPool`": """
pool = torch.npu.MemPool()
with torch.npu.use_mem_pool(pool):
    y = torch.ones(1000, device="npu")
assert y.sum().item() == 1000
""",
    "`torch.npu.get_device_properties`": """
found = torch.npu.get_device_properties(0)
assert found.total_memory == 64 << 30 and found.name == torch.npu.get_device_name() == "Ascend910B2"
""",
    "`torch.npu.set_sync_debug_mode`": """
torch.npu.set_sync_debug_mode("warn")
x.sum().item()
torch.npu.set_sync_debug_mode("error")
x.sum().item()
""",
    "`torch.npu._sanitizer`": """
import torch.npu._sanitizer as sanitizer
sanitizer.enable_npu_sanitizer()
y = torch.rand(4, device="npu")
with torch.npu.stream(torch.npu.Stream()):
    y.mul_(2)
""",
    "`torch.npu.utils.npu_check_overflow`": """
assert not torch.npu.utils.npu_check_overflow(x) and torch.npu.utils.npu_check_overflow(x / 0)
""",
    "`torch.npu.utils.get_npu_overflow_flag`": "torch.npu.utils.get_npu_overflow_flag()",
    "`torch.npu.set_stream_limit`": """
stream = torch.npu.Stream()
torch.npu.set_stream_limit(stream, 8, 16)
assert torch.npu.get_stream_limit(stream) == {"cube_core_num": 8, "vector_core_num": 16}
torch.npu.reset_stream_limit(stream)
torch.npu.set_device_limit(0, 12, 13)
assert torch.npu.get_device_limit(0) == {"cube_core_num": 12, "vector_core_num": 13}
""",
    "`torch.npu.utilization`": "assert torch.npu.utilization() == 0",
    "`torch.npu.set_compile_mode`": """
torch.npu.set_compile_mode(jit_compile=True)
torch.npu.set_option({"ACL_OP_COMPILER_CACHE_MODE": "enable"})
torch.npu.init_dump()
torch.npu.finalize_dump()
""",
    "`torch.npu.stop_device`": """
torch.npu.stop_device(0)
torch.npu.restart_device(0)
step()
torch.npu.stop_device(0)
step()
""",
    "`torch_npu.utils.save_async`": """
torch_npu.utils.save_async({"x": x}, "x.pt")
while not os.path.isfile("x.pt") or not os.path.getsize("x.pt"):
    time.sleep(0.1)
time.sleep(1)
assert torch.load("x.pt")["x"].tolist() == [1.0] * 4
""",
    '`torch.compile(backend="aot_eager")`': """
assert torch.compile(lambda a: a * 2, backend="aot_eager")(x).tolist() == [2.0] * 4
""",
    "`torch.compile()`": "torch.compile(lambda a: a * 2)(x)",
    '`torch.compile(backend="npu")`': "torch.compile(lambda a: a * 2, backend='npu')(x)",
}


def table() -> dict[str, str]:
    """The rows of the page, by the first name in them."""
    rows = PAGE.read_text(encoding="utf-8").partition(_HEAD)[2].partition("\n\n")[0].splitlines()
    cells = [row.strip("| ").split(" | ") for row in rows]
    return {re.match(r"`[^`]+`", first)[0]: comes for first, comes in cells}  # type: ignore[index]


def test_each_row_has_a_program() -> None:
    assert [*table()] == [*ROWS]


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_what_happens(transplt_run: Any, name: str) -> None:
    comes = table()[name]
    code, report, errors = transplt_run(_NET + ROWS[name] + "\nstep()\n")
    words = re.match("stops: `([^`]+)`", comes)
    if words is None:
        assert re.match("works|no effect", comes) and (code, report["verdict"]) == (0, "runs"), errors
    else:
        assert (code, report["verdict"]) == (1, "stops") and words[1] in report["sentence"], report["sentence"]


_REFUSED = """
from torch import nn
from torch.nn.functional import max_pool2d, max_unpool2d
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
rows = torch.arange(60.0).reshape(5, 3, 4) / 60
packed = pack_padded_sequence(rows.npu(), [5, 4, 2])
weight = torch.ones(16, 16).npu()
def of_a_format():
    torch.npu.config.allow_internal_format = True
    torch._foreach_norm([torch_npu.npu_format_cast(weight, 29)])
FORMS = {
    "GRU": lambda: pad_packed_sequence(nn.GRU(4, 4).npu()(packed)[0]),
    "RNN": lambda: pad_packed_sequence(nn.RNN(4, 4).npu()(packed)[0]),
    "proj_size": lambda: nn.LSTM(4, 4, proj_size=2).npu()(torch.ones(5, 3, 4).npu()),
    "unpool": lambda: max_unpool2d(*max_pool2d(torch.ones(1, 1, 4, 4).npu(), 2, return_indices=True), 2),
    "snapshot": lambda: torch.npu.MemPool().snapshot(include_traces=True),
    "format": of_a_format,
}
taken = []
for name, form in FORMS.items():
    try:
        form()
    except (RuntimeError, TypeError):
        continue
    taken.append(name)
assert not taken, taken
assert pad_packed_sequence(nn.LSTM(4, 4).npu()(packed)[0])[0].shape == (5, 3, 4)
gru, on_cpu = nn.GRU(4, 4).npu(), nn.GRU(4, 4)
on_cpu.load_state_dict({name: value.cpu() for name, value in gru.state_dict().items()})
assert not torch.allclose(gru(packed)[1].cpu(), on_cpu(pack_padded_sequence(rows, [5, 4, 2]))[1])
"""


def test_forms_that_a_check_reports_are_refused(transplt_run: Any) -> None:
    """What NPU297 says of forms in one process, held against torch_npu itself."""
    code, report, errors = transplt_run(_NET + _REFUSED)
    assert (code, report["verdict"]) == (0, "runs"), errors


def test_what_the_profiler_writes_is_read(transplt_run: Any, tmp_path: Path) -> None:
    assert transplt_run(_NET + ROWS["`torch_npu.profiler`"])[0] == 0
    done = CliRunner().invoke(transplt, ["profile-read", str(tmp_path / "prof")])
    assert done.exit_code == 0 and "nothing on a card (operator_details.csv, trace_view.json)" in done.output
    assert "Optimizer.step#SGD.step" in done.output
