"""Printed and saved results: what the original does not repeat is left out, and the rest is compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.printed import compared, decided, of_parameters, other_results, reworded, unsaid, within


def _run(output: str = "", path: str = "a.pt", **tensors: float) -> ScriptRun:
    saved = {name: {"sha256": str(norm), "shape": [2], "sum": norm, "norm": norm} for name, norm in tensors.items()}
    process: dict[str, Any] = {"saves": [{"path": path, "rank": None, "tensors": saved}] if saved else []}
    return ScriptRun(0, (process,), 0.0, output)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss: 0.5\n", "loss: 0.5\n"),
        ("loss: 0.5 on cuda:0\n", "loss: 0.5 on npu:0\n"),
        ("took 1.25 s\n", "took 9.5 s\n"),
        (
            "cb7219a2-1973-4bd3-a932-469701fa0fe3 loss 0.5\n",
            "eb84338d-d8f2-407b-9ef5-3bbca0a9218f loss 0.5\n",
        ),
        ("Step: 7s174ms | Tot: 0ms | Loss: 0.5\b\b\b\r", "Step: 36ms | Tot: 1s2ms | Loss: 0.5\b\r"),
    ],
)
def test_the_same_results(one: str, other: str) -> None:
    assert other_results(_run(one), _run(other)) == []


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        ("loss: 0.5\n", "loss: 0.75\n", "the original prints 0.5 in 'loss: #', the migrated program 0.75"),
        ("loss: 0.5\n", "", "the original prints 0.5 in 'loss: #', the migrated program prints nothing"),
        ("7ms loss: 0.5\n", "8ms loss: 0.6\n", "the original prints 0.5 in ' loss: #', the migrated program 0.6"),
    ],
)
def test_other_results(one: str, other: str, told: str) -> None:
    assert [each.what for each in other_results(_run(one), _run(other))] == [told]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("[0/2] train loss 0.5, val acc 0.25\n[1/2] train loss 0.4, val acc 0.75\n", 0),
        ("train loss 0.5\nval acc 0.25\ntrain loss 0.4\nval acc 0.75\n", 0),
        ("loss 9.0\n[0/2] train loss 0.5, val acc 0.25\n[1/2] train loss 0.4, val acc 0.75\n", 0),  # and another one
        ("[0/2] train loss 0.5, val acc 0.25\n[1/2] train loss 0.4, val acc 0.5\n", 1),
        ("[0/2] train loss 0.5, val acc 0.25\n", 1),  # not all of it
        ("[0/2] train loss 0.4, val acc 0.75\n[1/2] train loss 0.5, val acc 0.25\n", 1),  # in another order
    ],
)
def test_other_words_for_the_same_results(other: str, told: int) -> None:
    one = _run("epoch 0: loss 0.5 acc 0.25\nepoch 1: loss 0.4 acc 0.75\n")
    assert len(other_results(one, _run(other))) == told
    assert reworded(one, _run(other)) and not reworded(one, _run("")) and not reworded(one, one)


SAVED = [("net.pt", {"a.w": 1.0, "a.b": 2.0}), ("other.pt", {"v": 3.0})]


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (SAVED, []),
        ([("best.pt", SAVED[0][1]), ("more.pt", {}), SAVED[1]], []),  # under another name
        ([("all.pt", {"net.a.w": 1.0, "net.a.b": 2.0, "other.v": 3.0})], []),  # one for two
        ([("net.pt", {"model": 1.0, "model.b": 2.0}), SAVED[1]], []),  # by what is in them
        ([("all.pt", {"net.a.w": 1.5, "net.a.b": 2.0, "other.v": 3.0})], ["a.w in net.pt differs"]),
        ([("net.pt", {"a.w": 1.0}), SAVED[1]], ["net.pt has no a.b, that of the original has"]),
        (SAVED[:1], ["the original saves other.pt, the migrated program does not"]),
    ],
)
def test_saved_tensors_are_found_in_whatever_file(other: Any, told: list[str]) -> None:
    one, again = (
        replace(_run(), processes=tuple(each for file in files for each in _run(path=file[0], **file[1]).processes))
        for files in (SAVED, other)
    )
    assert [each.what for each in other_results(one, again)] == told


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("loss: 0.5\nloss: 0.4\nloss: 0.3\n", 0),
        ("", 1),
        ("loss: 0.5\nloss: 0.3\n", 1),  # less often
        ("loss: 0.5\nloss: 0.4\nloss: 0.35\nloss: 0.3\n", 1),
        ("loss: 0.5\nloss: 0.2\n", 0),  # another number
        ("loss: 0.5\nloss: 0.4\nloss: 0.2\n", 0),
    ],
)
def test_results_that_are_only_not_said_as_often(other: str, told: int) -> None:
    assert len(unsaid(_run("loss: 0.5\nloss: 0.4\nloss: 0.3\n"), _run(other))) == told


LOGGED = "2026-11-29 18:08:50,2{} INFO train: epoch {} loss: {}\n"


@pytest.mark.parametrize(
    ("logged", "told"),
    [
        (LOGGED.format(7, 0, 0.5) + LOGGED.format(9, 1, 0.25), []),
        (LOGGED.format(9, 1, 0.25), []),  # the end of it
        ("epoch: 0, loss: 0.5\nepoch: 1, loss: 0.25\n", []),  # in other words
        (LOGGED.format(9, 1, 0.75), ["0.25 in 'epoch # loss: #', the migrated program 0.75"]),
        ("INFO train: other\n", ["0.5 in 'epoch # loss: #', the migrated program prints nothing"]),
    ],
)
def test_results_may_be_logged_instead(logged: str, told: list[str]) -> None:
    other = replace(_run(), errors=logged)
    found = other_results(_run("epoch 0 loss: 0.5\nepoch 1 loss: 0.25\n"), other)
    assert [each.what.removeprefix("the original prints ") for each in found] == told


def test_files_named_by_uuids_are_compared() -> None:
    names = (f"{drawn}.pt" for drawn in ("cb7219a219734bd3a932469701fa0fe3", "eb84338dd8f2407b9ef53bbca0a9218f"))
    one, other = (_run(path=name, w=value) for name, value in zip(names, (1.0, 2.0), strict=True))
    assert [each.what for each in other_results(one, other)] == ["w in <uuid>.pt differs"]


def test_a_tensor_that_differs() -> None:
    assert [each.what for each in other_results(_run(w=1.0, b=1.0), _run(w=2.0, b=3.0))] == ["w in a.pt differs"]


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("loss 0.5\n", "loss 0.6\n", []),
        ("loss 0.6\n", "loss 0.5\n", ["the original prints 0.5 in 'loss #', the migrated program 0.6"]),
        ("loss 0.5\n", "", ["the original prints 0.6 in 'loss #', the migrated program prints nothing"]),
    ],
)
def test_ranks_whose_lines_mix_are_compared_one_by_one(first: str, second: str, found: list[str]) -> None:
    def ranks(mixed: str, *lines: str) -> ScriptRun:
        processes = ({"rank": str(rank), "saves": [], "output": each} for rank, each in enumerate(lines))
        return replace(_run(mixed), processes=(*processes, {"rank": None, "saves": [], "output": mixed}))

    one, other = ranks("loss 0.6\nloss 0.5\n", "loss 0.5\n", "loss 0.6\n"), ranks("loss 0.5loss 0.6", first, second)
    assert [each.what for each in other_results(one, other)] == found


def test_buffers_that_ranks_send_are_no_files() -> None:
    one, other = _run(path="<buffer>", w=1.0), _run()
    assert other_results(one, other) != []
    ranks = ({**one.processes[0], "rank": "0"}, {"rank": "1", "saves": []})
    assert other_results(replace(one, processes=ranks), other) == []


def test_what_does_not_repeat_is_left_out_and_the_rest_compared() -> None:
    one, again = _run("acc 0.1\nloss 0.5\n", w=1.0, b=2.0), _run("acc 0.9\nloss 0.5\n", w=1.5, b=2.0)
    bounds = within(one, [again])
    but = decided(bounds)
    assert compared(one) == (2, 2)
    assert compared(one, but) == (1, 1)
    assert other_results(one, _run("acc 0.4\nloss 0.5\n", w=1.7, b=2.0), but, bounds) == []
    told = other_results(one, _run("acc 0.4\nloss 0.6\n", w=1.7, b=2.5), but, bounds)
    assert [each.what.split(",")[0] for each in told] == ["the original prints 0.5 in 'loss #'", "b in a.pt differs"]


@pytest.mark.parametrize(
    ("shaken", "left_out", "port", "told"),
    [
        # What roundings move a little is compared with some times that.
        ("acc 0.502\n", set(), "acc 0.515\n", 0),
        ("acc 0.502\n", set(), "acc 0.52\n", 1),
        ("acc 0.502\n", set(), "acc 0.1\n", 1),
        ("acc 0.5\n", set(), "acc 0.502\n", 1),
        ("acc 0.52\n", {"acc #"}, "acc 0.1\n", 0),
        ("acc nan\n", {"acc #"}, "acc 0.1\n", 0),
    ],
)
def test_how_far_a_result_may_be_apart(shaken: str, left_out: set[str], port: str, told: int) -> None:
    one = _run("acc 0.5\n")
    bounds = within(one, [_run("acc 0.5\n"), _run(shaken)])
    assert decided(bounds) == left_out
    assert len(other_results(one, _run(port), decided(bounds), bounds)) == told


def test_a_line_that_only_one_of_two_runs_prints_does_not_repeat() -> None:
    assert decided(within(_run(), [_run("best acc 0.9\n")])) == {"best acc #"}
    assert decided(within(_run("best acc 0.9\n"), [_run()])) == {"best acc #"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("epoch_1_2026-11-22_17-29-34_0.1.pt", "epoch_1_2026-11-22_17-31-02_0.1.pt"),
        ("runs/1795368574/best.pt", "runs/1795368612/best.pt"),
        ("Nov_22_17:29:34_2026.pt", "Nov_22_17:31:02_2026.pt"),
    ],
)
def test_a_time_in_the_name_of_a_file_is_no_difference(one: str, other: str) -> None:
    assert other_results(_run(path=one, w=1.0), _run(path=other, w=1.0)) == []
    assert [each.what for each in other_results(_run(path=one, w=1.0), _run(path=other, w=2.0))] != []


def test_parameters_that_are_rounding_are_known_under_whatever_they_are_saved() -> None:
    saved = _run(**{"layer1.0.bias": 1.0, "model.layer1.0.bias": 1.0, "layer1.0.weight": 1.0, "xlayer1.0.bias": 1.0})
    assert of_parameters(saved, {"layer1.0.bias"}) == {"a.pt#0: layer1.0.bias", "a.pt#0: model.layer1.0.bias"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("opt.state.0.step", False),
        ("state.12.step", False),
        ("opt.state.0.exp_avg", True),
        ("state.step", True),
        ("model.state.0.step.weight", True),
    ],
)
def test_a_fused_optimizer_counts_its_steps_beside_its_tensors(name: str, told: bool) -> None:
    one, other = _run(**{name: 3.0, "w": 1.0}), _run(w=1.0)
    assert bool(other_results(one, other)) == told
