"""The profiler of a file moves as a whole or stays as a whole."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.base.settings import TORCH_VERSIONS
from transplt.rules.tables import read_table


@pattern("P59")
def test_the_whole_profiler_moves() -> None:
    check_rewrite(
        """
        import torch
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities += [torch.profiler.ProfilerActivity.CUDA]
        with torch.profiler.profile(
            activities=activities,
            schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=2),
            on_trace_ready=torch.profiler.tensorboard_trace_handler('./log'),
            record_shapes=True,
        ) as prof:
            with torch.profiler.record_function("step"):
                prof.step()
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        activities = [torch_npu.profiler.ProfilerActivity.CPU]
        if torch.npu.is_available():
            activities += [torch_npu.profiler.ProfilerActivity.NPU]
        with torch_npu.profiler.profile(
            activities=activities,
            schedule=torch_npu.profiler.schedule(wait=1, warmup=1, active=3, repeat=2),
            on_trace_ready=torch_npu.profiler.tensorboard_trace_handler('./log'),
            record_shapes=True,
        ) as prof:
            with torch.profiler.record_function("step"):
                prof.step()
        """,
    )


@pattern("P59")
def test_imported_names_move_with_their_import() -> None:
    check_rewrite(
        """
        from torch.profiler import profile, record_function, ProfilerActivity
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
            with record_function("step"):
                pass
        prof.export_chrome_trace("trace.json")
        """,
        """
        import torch_npu  # noqa: F401
        from torch_npu.profiler import profile, ProfilerActivity
        from torch.profiler import record_function
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU]) as prof:
            with record_function("step"):
                pass
        prof.export_chrome_trace("trace.json")
        """,
    )


@pattern("P59")
def test_a_module_under_another_name() -> None:
    check_rewrite(
        """
        import torch.profiler as tp
        with tp.profile(activities=[tp.ProfilerActivity.CUDA]):
            pass
        """,
        """
        import torch.profiler as tp
        import torch_npu  # noqa: F401
        with torch_npu.profiler.profile(activities=[torch_npu.profiler.ProfilerActivity.NPU]):
            pass
        """,
    )


@pattern("P59")
@pytest.mark.parametrize(
    "rest",
    [
        "print(prof.key_averages())",
        'print(prof.key_averages().table(sort_by="cuda_time_total"))',
        "events = prof.events()",
        "total = prof.profiler.total_average()",
        "from torch.profiler import ExecutionTraceObserver\nseen = ExecutionTraceObserver",
        "options = dict(experimental_config=torch.profiler._ExperimentalConfig(verbose=True))",
        "class Mine(torch.profiler.profile):\n    pass",
        "more = torch.profiler.profile(**options)",
        "more = torch.profiler.profile(acc_events=True)",
        'handler = torch.profiler.tensorboard_trace_handler("log", "w", True)',
        'handler = torch.profiler.tensorboard_trace_handler("log", use_gzip=True)',
        "other = torch.profiler.ProfilerActivity.XPU",
        "kernels = project.collect(prof)",
        "def last(prof):\n    return prof",
        "other = torch.profiler.ProfilerActivity.PrivateUse1",
    ],
)
def test_what_keeps_the_profiler_where_it_is(rest: str) -> None:
    source = (
        "import torch\n"
        "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:\n"
        f"    pass\n{rest}\n"
    )
    result = migrate(source)
    assert result.data.decode() == source
    assert "NPU131" in {finding.code for finding in result.findings}
    assert result.tokens.unknown == 0


@pattern("P59")
def test_activities_for_a_profiler_made_elsewhere() -> None:
    check_noop(
        """
        from torch.profiler import ProfilerActivity
        from project.tools import make_profiler
        prof = make_profiler([ProfilerActivity.CPU, ProfilerActivity.CUDA])
        """,
        open_codes=["NPU131"],
    )


@pattern("P59")
def test_a_profiler_of_the_cpu_alone() -> None:
    check_noop(
        """
        import torch
        note = "cuda"
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
            pass
        print(prof.key_averages())
        print(note)
        """,
        open_codes=["NPU203"],
    )


@pattern("P59", "T21")
def test_a_profiler_that_knows_the_npu() -> None:
    check_noop(
        """
        import torch
        import torch_npu
        if on_npu:
            prof = torch_npu.profiler.profile(activities=[torch_npu.profiler.ProfilerActivity.NPU])
        else:
            prof = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        """
    )


@pattern("P59")
def test_the_profiler_of_autograd_names_its_device() -> None:
    check_rewrite(
        """
        import torch
        with torch.autograd.profiler.profile(use_cuda=True, record_shapes=True) as prof:
            pass
        with torch.autograd.profiler.profile(use_cuda=args.gpu) as more:
            pass
        print(prof.key_averages().table(sort_by="self_cuda_time_total"))
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        with torch.autograd.profiler.profile(use_device="npu", record_shapes=True) as prof:
            pass
        with torch.autograd.profiler.profile(use_device="npu" if args.gpu else None) as more:
            pass
        print(prof.key_averages().table(sort_by="self_cuda_time_total"))
        """,
        codes_applied=["NPU132", "NPU403"],
    )


@pattern("P59")
@pytest.mark.parametrize(
    "line",
    [
        "torch.autograd.profiler.profile(use_cuda=False)",
        "torch.autograd.profiler.profile(enabled=on)",
        "project.profile(use_cuda=True)",
    ],
)
def test_profilers_of_autograd_that_stay(line: str) -> None:
    check_noop(f"import torch\nimport project\nwith {line}:\n    pass\n")


@pattern("P59")
def test_columns_of_cuda_times() -> None:
    source = """
        def show(prof):
            print(prof.table(sort_by="cuda_time_total"))
            return [event.self_cuda_time_total for event in prof]
        """
    check_noop(source)
    check_noop(source, torch_version="2.3", open_codes=["NPU133"])


@pattern("P59")
def test_emit_nvtx_has_no_counterpart() -> None:
    check_noop("import torch\nwith torch.autograd.profiler.emit_nvtx():\n    pass\n", open_codes=["NPU501"])


MOVED = [rule["new_name"] for rule in read_table("support/profiler.json")["rules"]["FuncNameModifyRule"]]


@pytest.mark.parametrize("name", [name for name in MOVED if "ProfilerActivity." not in name])
def test_the_names_exist_in_every_version(name: str) -> None:
    assert name in read_table("support/npu_names.json")["names"][f">={TORCH_VERSIONS[0]}"]


@pattern("P59")
def test_a_profiler_handed_to_a_function_of_the_file_moves() -> None:
    result = migrate(
        """
        import torch

        def train(prof):
            prof.step()

        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
            train(prof)
        """
    )
    assert b"torch_npu.profiler.ProfilerActivity.NPU" in result.data


def test_a_flag_is_asked_again_and_a_call_is_not() -> None:
    source = "import torch\n{}with torch.autograd.profiler.profile({}) as prof:\n    pass\n"
    after = source.format("import torch_npu  # noqa: F401\n", 'use_device="npu" if flag else None')
    check_rewrite(source.format("", "use_cuda=flag"), after)
    check_noop(source.format("", "use_cuda=ask()"), open_codes=["NPU131"])


@pytest.mark.parametrize(
    ("activities", "blocks"),
    [("ProfilerActivity.CPU, ProfilerActivity.CUDA", "tidy"), ("ProfilerActivity.CUDA", "")],
)
def test_what_a_profiler_that_stays_stops(activities: str, blocks: str) -> None:
    """With the CPU's activity torch warns and goes on; it raises where CUDA's is the only one."""
    source = "from torch.profiler import ProfilerActivity, profile\n"
    source += f"with profile(activities=[{activities}]) as prof:\n    pass\nprint(prof.key_averages())\n"
    (finding,) = [each for each in migrate(source).findings if each.open]
    assert (finding.code, finding.blocks) == ("NPU131", blocks)
