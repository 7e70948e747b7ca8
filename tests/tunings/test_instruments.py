"""NPU780, NPU781 and NPU782: what measures a loop over batches, or ends it."""

from __future__ import annotations

import pytest

from tests.harness import clean, codes, migrate
from transplt.base.settings import TORCH_VERSIONS
from transplt.fixers.tunings.table import parse_tunings

FLAT = """
    import torch
    from torch.utils.data import DataLoader

    loader = DataLoader(data, batch_size=4)
    model = torch.nn.Linear(2, 2).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x in loader:
            # forward
            if skip(x):
                continue
            model(x.cuda()).sum().backward()
            optimizer.step()
        torch.save(model.state_dict(), "last.pt")
    """


def asked(source: str, tune: str, **more: object) -> str:
    """What the tuning makes of a file; it makes nothing of the result."""
    chosen = parse_tunings(tune, TORCH_VERSIONS[-1])
    text = migrate(source, tune=chosen, **more).data.decode()
    assert migrate(text, tune=chosen, **more).data.decode() == text
    return text


def test_step_time() -> None:
    assert asked(FLAT, "step-time") == clean(
        """
        import time
        import torch
        import torch_npu  # noqa: F401
        from torch.utils.data import DataLoader

        loader = DataLoader(data, batch_size=4)
        model = torch.nn.Linear(2, 2).npu()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(3):
            timed_steps = 0
            for x in loader:
                if timed_steps == 5:
                    torch.npu.synchronize()
                    timed_from = time.perf_counter()
                timed_steps += 1
                # forward
                if skip(x):
                    continue
                model(x.npu()).sum().backward()
                optimizer.step()
            if timed_steps > 5:
                torch.npu.synchronize()
                step_time = (time.perf_counter() - timed_from) / (timed_steps - 5)
                print(f"step time {step_time * 1000:.1f} ms, {loader.batch_size / step_time:.1f} samples/s")
            torch.save(model.state_dict(), "last.pt")
        """
    )


def test_step_time_without_samples_where_the_loader_is_given_by_name() -> None:
    text = asked(FLAT.replace("in loader", "in tqdm(iterable=loader)"), "step-time")
    assert 'print(f"step time {step_time * 1000:.1f} ms, {1 / step_time:.2f} steps/s")' in text


@pytest.mark.parametrize(
    ("made", "rate"),
    [
        ("loader = tqdm.tqdm(loader)", "1 / step_time:.2f} steps"),
        ("loader = tqdm.tqdm(enumerate(loader))", "1 / step_time:.2f} steps"),
        ("loader = Prefetcher(loader)", "1 / step_time:.2f} steps"),
        ("loader = again(loader)", "loader.batch_size / step_time:.1f} samples"),
    ],
)
def test_a_bar_over_a_loader_has_no_batch_size(made: str, rate: str) -> None:
    head = "import tqdm\n\n\ndef again(of):\n    return DataLoader(of.dataset, batch_size=4)\n\n"
    source = clean(FLAT).replace("loader = Data", f"{head}loader = Data").replace("model = ", f"{made}\nmodel = ", 1)
    if made.endswith("again(loader)"):
        source = source.replace("loader = again(loader)", "loader = again(data)")
        source = source.replace("loader = DataLoader(data, batch_size=4)\n", "")
    assert f"{{{rate}/s" in asked(source, "step-time")


def test_max_steps() -> None:
    assert asked(FLAT, "max-steps=7") == clean(
        """
        import torch
        import torch_npu  # noqa: F401
        from torch.utils.data import DataLoader

        loader = DataLoader(data, batch_size=4)
        model = torch.nn.Linear(2, 2).npu()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train_steps = 0
        for epoch in range(3):
            if train_steps >= 7:
                break
            for x in loader:
                if train_steps >= 7:
                    break
                # forward
                if skip(x):
                    continue
                model(x.npu()).sum().backward()
                optimizer.step()
                train_steps += 1
            torch.save(model.state_dict(), "last.pt")
        """
    )


def test_profiler() -> None:
    text = asked(FLAT, "profiler=3-6")
    start = text.index("profiler.start()")
    assert text.index("schedule(wait=2, warmup=1, active=4, repeat=1)") < start < text.index("for epoch")
    assert "    for x in loader:\n        profiler.step()\n        # forward\n" in text
    assert text.endswith('    torch.save(model.state_dict(), "last.pt")\nprofiler.stop()\n')


def test_profiler_with_options() -> None:
    text = asked(FLAT, "profiler=3-6:shapes:memory:stacks:level=1:to=traces/first")
    assert (
        """\
    on_trace_ready=torch_npu.profiler.tensorboard_trace_handler("traces/first"),
    record_shapes=True,
    profile_memory=True,
    with_stack=True,
    experimental_config=torch_npu.profiler._ExperimentalConfig(profiler_level=torch_npu.profiler.ProfilerLevel.Level1),
)
"""
        in text
    )
    assert "activities=[torch_npu.profiler.ProfilerActivity.CPU, torch_npu.profiler.ProfilerActivity.NPU]," in text


def test_profiler_of_kernels_alone() -> None:
    text = asked(FLAT, "profiler=3-6:simple:level=none")
    assert "    activities=[torch_npu.profiler.ProfilerActivity.NPU],\n" in text
    assert "profiler_level=torch_npu.profiler.ProfilerLevel.Level_none)" in text
    assert "record_shapes" not in text and 'tensorboard_trace_handler("npu_profile")' in text


FUNCTION = """
    import torch


    def one_pass(model, optimizer):
        '''One pass.'''
        for x in range(9):
            model(torch.ones(2).cuda()).sum().backward()
            optimizer.step()


    def main():
        model = torch.nn.Linear(2, 2).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        while True:
            one_pass(model, optimizer)


    if __name__ == "__main__":
        main()
    """


def test_passes_in_a_function() -> None:
    text = asked(FUNCTION, "max-steps=7,profiler=1-2")
    assert "    '''One pass.'''\n    global train_steps\n    for x in range(9):\n        if train_steps >= 7:\n" in text
    assert "        optimizer.step()\n        train_steps += 1\n" in text
    assert "    global train_steps\n    train_steps = 0\n" in text
    assert "    while True:\n        if train_steps >= 7:\n            break\n" in text
    assert "    global profiler\n    profiler = torch_npu.profiler.profile(\n" in text
    assert "schedule(wait=0, warmup=1, active=2, repeat=1)" in text


def test_the_loop_of_accumulated_steps_is_not_that_of_batches() -> None:
    text = asked(
        """
        import torch

        while True:
            for part in range(4):
                model(torch.ones(2).cuda()).sum().backward()
            optimizer.step()
        """,
        "max-steps=7",
    )
    assert text.endswith(
        "while True:\n    if train_steps >= 7:\n        break\n    for part in range(4):\n"
        "        model(torch.ones(2).npu()).sum().backward()\n    optimizer.step()\n    train_steps += 1\n"
    )


@pytest.mark.parametrize("tune", ["max-steps=7", "profiler=1-2"])
def test_a_function_that_others_call_is_a_finding(tune: str) -> None:
    source = FUNCTION.partition("def main")[0]
    files = {"main.py": "from train import one_pass\n\nfor epoch in range(3):\n    one_pass(model, optimizer)\n"}
    result = migrate(source, files=files, tune=parse_tunings(tune, TORCH_VERSIONS[-1]))
    assert b"train_steps" not in result.data and b"profiler" not in result.data
    assert codes(result, applied=False)


@pytest.mark.parametrize("tune", ["max-steps=7", "profiler=1-2"])
def test_two_loops_are_findings(tune: str) -> None:
    loop = "for x in {}:\n    model(x.cuda()).sum().backward()\n    optimizer.step()\n"
    source = "import torch\n\n" + loop.format("a") + loop.format("b")
    result = migrate(source, tune=parse_tunings(tune, TORCH_VERSIONS[-1]))
    assert len([finding for finding in result.findings if finding.code.startswith("NPU78")]) == 2


def test_the_line_of_a_loop_is_parted() -> None:
    source = "import torch\n\nfor x in loader: model(x.to(0)).backward(); optimizer.step()\n"
    result = migrate(source, tune=parse_tunings("max-steps=7", TORCH_VERSIONS[-1]))
    assert result.data.decode() == (
        "import torch\n\ntrain_steps = 0\nfor x in loader:\n    if train_steps >= 7:\n        break\n"
        "    model(x.to(0)).backward(); optimizer.step()\n    train_steps += 1\n"
    )


@pytest.mark.parametrize("tune", ["step-time", "max-steps=7", "profiler=1-2"])
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import torch\n\nfor x in loader:\n    model(x.to(0))\n", False),
        ("import torch\n\nfor x in loader:\n    model(x).sum().backward()\n    optimizer.step()\n", False),  # on a CPU
        ("import torch\n\nfor x in loader:\n    for name in x:\n        print(name)\n", False),
        ("import torch\n\nfor x in loader: model(x.to(0)).backward(); optimizer.step()  # transplt: ignore[X]\n", True),
        ("import torch\n\n\ndef run(x):\n    model(x.to(0)).sum().backward()\n", True),
        ("import torch\n\n\nclass Loss(torch.autograd.Function):\n    def backward(self):\n        pass\n", False),
    ],
)
def test_nothing_is_written(tune: str, source: str, told: bool) -> None:
    result = migrate(source, tune=parse_tunings(tune, TORCH_VERSIONS[-1]))
    assert result.data.decode() == source
    assert bool([finding for finding in result.findings if finding.code.startswith("NPU78")]) is told
