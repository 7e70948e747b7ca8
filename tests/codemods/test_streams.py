"""Streams, events, graphs, ranges, random state and torch's private functions."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.engine.actions.actions import actions_of


def rewritten(before: str, after: str, **more: object) -> None:
    check_rewrite(f"import torch\n{before}\n", f"import torch\nimport torch_npu  # noqa: F401\n{after}\n", **more)  # type: ignore[arg-type]


@pattern("P10", "P11")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s = torch.cuda.Stream(device='cuda:0', priority=-1)", "s = torch.npu.Stream(device='npu:0', priority=-1)"),
        ("e = torch.cuda.Event(enable_timing=True)", "e = torch.npu.Event(enable_timing=True)"),
        ("with torch.cuda.stream(s): pass", "with torch.npu.stream(s): pass"),
        ("with torch.cuda.device(0): pass", "with torch.npu.device(0): pass"),
        ("x.record_stream(torch.cuda.current_stream())", "x.record_stream(torch.npu.current_stream())"),
        ("h = torch.cuda.current_stream().cuda_stream", "h = torch.npu.current_stream().npu_stream"),
        ("s = torch.cuda.Stream()\nh = s.cuda_stream", "s = torch.npu.Stream()\nh = s.npu_stream"),
        ("e = torch.cuda.Event()\nh = e.cuda_event", "e = torch.npu.Event()\nh = e.npu_event"),
    ],
)
def test_streams_and_events(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P10", "T7")
def test_a_stream_that_the_project_calls_cuda_stream() -> None:
    check_rewrite(
        """
        import torch

        class Worker:
            def __init__(self):
                self.cuda_stream = torch.cuda.Stream()

            def run(self):
                with torch.cuda.stream(self.cuda_stream):
                    pass
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        class Worker:
            def __init__(self):
                self.cuda_stream = torch.npu.Stream()

            def run(self):
                with torch.npu.stream(self.cuda_stream):
                    pass
        """,
    )


@pattern("P10")
def test_a_handle_of_something_unknown() -> None:
    check_noop("def handle(stream):\n    return stream.cuda_stream\n", open_codes=["NPU128"])


@pattern("P61")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("g = torch.cuda.CUDAGraph()", "g = torch.npu.NPUGraph()"),
        ("with torch.cuda.graph(g): pass", "with torch.npu.graph(g): pass"),
        ("with torch.cuda.graph(g, pool, stream): pass", "with torch.npu.graph(g, pool, stream): pass"),
        ("with torch.cuda.graph(cuda_graph=g, pool=p): pass", "with torch.npu.graph(npu_graph=g, pool=p): pass"),
        (
            "with torch.cuda.graph(g, None, None, 'thread_local'): pass",
            "with torch.npu.graph(g, None, None, capture_error_mode='thread_local'): pass",
        ),
    ],
)
def test_graphs(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P61")
@pytest.mark.parametrize("line", ["g = torch.cuda.CUDAGraph(keep_graph=True)", "g.replay()", "torch.cuda.graph(*args)"])
def test_graphs_that_stay(line: str) -> None:
    result = migrate(f"import torch\n{line}\n")
    assert not result.changed
    assert result.tokens.unknown == 0


@pattern("P60")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('torch.cuda.nvtx.range_push("a")', 'torch.npu.mstx.range_push("a")'),
        ('torch.cuda.nvtx.range_push(msg="a")', 'torch.npu.mstx.range_push(message="a")'),
        ("torch.cuda.nvtx.range_pop()", "torch.npu.mstx.range_pop()"),
        ('torch.cuda.nvtx.mark("a")', 'torch.npu.mstx.mark("a")'),
        ('i = torch.cuda.nvtx.range_start("a")', 'i = torch.npu.mstx.range_start("a")'),
        ("torch.cuda.nvtx.range_end(i)", "torch.npu.mstx.range_end(i)"),
    ],
)
def test_ranges(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P60")
@pytest.mark.parametrize("line", ['torch.cuda.nvtx.range_push("a")', "torch.cuda.nvtx.range_pop()"])
def test_2_8_has_no_nested_ranges(line: str) -> None:
    check_noop(f"import torch\n{line}\n", torch_version="2.8", open_codes=["NPU502"])


@pattern("P60")
def test_ranges_around_a_block() -> None:
    before = 'import torch\nwith torch.cuda.nvtx.range("a"):\n    pass\n'
    check_noop(before, open_codes=["NPU501"])
    check_rewrite(
        before,
        'import torch\nwith torch.profiler.record_function("a"):\n    pass\n',
        similar=True,
        codes_applied=["NPU120"],
    )


@pattern("P9", "T14")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "state = {'cuda_rng_state': torch.cuda.get_rng_state_all()}",
            "state = {'cuda_rng_state': torch.npu.get_rng_state_all()}",
        ),
        ("torch.cuda.set_rng_state(state['cuda_rng_state'])", "torch.npu.set_rng_state(state['cuda_rng_state'])"),
        ("states['torch.cuda'] = torch.cuda.get_rng_state()", "states['torch.cuda'] = torch.npu.get_rng_state()"),
        ("torch.cuda.random.set_rng_state_all(s)", "torch.npu.random.set_rng_state_all(s)"),
        ("g = torch.cuda.default_generators[0]", "g = torch.npu.default_generators[0]"),
    ],
)
def test_random_state_keeps_the_keys_of_checkpoints(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("P8")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("m = torch.cuda.max_memory_allocated() / 2**20", "m = torch.npu.max_memory_allocated() / 2**20"),
        ("torch.cuda.reset_peak_memory_stats(device)", "torch.npu.reset_peak_memory_stats(device)"),
        ("free, total = torch.cuda.mem_get_info()", "free, total = torch.npu.mem_get_info()"),
        ('n = torch.cuda.memory_stats()["num_ooms"]', 'n = torch.npu.memory_stats()["num_ooms"]'),
    ],
)
def test_memory_statistics(before: str, after: str) -> None:
    rewritten(before, after)


@pattern("T22")
@pytest.mark.parametrize(
    "line",
    [
        "torch._C._cuda_setDevice(0)",
        "v = torch._C._nccl_version()",
        "s = torch._C._cuda_getCurrentRawStream(0)",
        "from torch._C import _cuda_init",
    ],
)
def test_private_functions_are_for_a_person(line: str) -> None:
    check_noop(f"import torch\n{line}\n", open_codes=["NPU129"])


def test_private_functions_of_a_file_are_one_decision_and_the_help_names_what_there_is() -> None:
    names = ("_cuda_beginAllocateToPool", "_cuda_releasePool", "_cuda_getCurrentRawStream", "_nccl_version")
    source = "import torch\nclass Pool:\n" + "".join(f"    {n}_ = torch._C.{n}\n" for n in names)
    found = [each for each in migrate(source).findings if each.open]
    (action,) = actions_of(found)
    assert (action.title, action.count) == ("Replace the private functions of CUDA builds of torch in train.py", 4)
    helps = [(each.help or "").split(" ")[0] for each in found]
    assert helps[:3] == ["torch_npu._C._npu_beginAllocateToPool", "torch_npu._C._npu_releasePool",
                         "torch.npu.current_stream().npu_stream"]  # fmt: skip
    assert "hasattr(torch._C, '_nccl_version')" in (found[3].help or "")


@pattern("T22", "T23")
def test_private_functions_behind_a_question() -> None:
    check_noop(
        """
        import torch
        from torch import _C

        def restore(state):
            if hasattr(_C, "_cuda_setRNGState") and callable(_C._cuda_setRNGState):
                _C._cuda_setRNGState(state)
        """
    )


@pattern("T22")
def test_lazy_calls() -> None:
    rewritten("torch.cuda._lazy_call(run)", "torch.npu._lazy_call(run)")


@pattern("P18", "P60")
def test_ranges_are_members_of_a_class_that_cannot_be_imported_from() -> None:
    check_rewrite(
        """
        from torch.cuda.nvtx import range_pop, range_push as push

        def step():
            push(msg="step")
            range_pop()
        """,
        """
        import torch_npu  # noqa: F401
        from torch.npu import mstx
        range_pop = mstx.range_pop
        push = mstx.range_push

        def step():
            push(message="step")
            range_pop()
        """,
    )


@pattern("P18", "P60")
def test_what_has_no_counterpart_stays_beside_what_has() -> None:
    check_rewrite(
        """
        try:
            from torch.cuda.nvtx import range as block, range_push
        except ImportError:
            range_push = None
        """,
        """
        import torch_npu  # noqa: F401
        try:
            from torch.cuda.nvtx import range as block
            from torch.npu import mstx
            range_push = mstx.range_push
        except ImportError:
            range_push = None
        """,
        open_codes=["NPU501"],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("s = torch.cuda.Stream(priority=-1)\np = s.priority", "s = torch.npu.Stream(priority=-1)\np = s.priority"),
        ("p = torch.cuda.current_stream().priority", "p = torch.npu.current_stream().priority"),
    ],
)
def test_a_stream_tells_no_priority(before: str, after: str) -> None:
    rewritten(before, after, open_codes=["NPU501"])


@pytest.mark.parametrize(
    "line",
    ["p = task.priority", "e = make()\np = e.priority", "class Task:\n    def f(self):\n        return self.priority"],
)
def test_a_priority_of_something_else(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


def test_pictures_that_torch_npu_does_not_draw() -> None:
    rewritten(
        "from torch.cuda import _memory_viz\na = _memory_viz.segments(s, str)\nb = _memory_viz.trace_plot(s)",
        "from torch.npu import _memory_viz\na = _memory_viz.segments(s, str)\nb = _memory_viz.trace_plot(s)",
        open_codes=["NPU501"],
    )
