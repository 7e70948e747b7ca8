"""The lines in which a port differs but for devices, and which of them a difference is said to come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from transplt.proof.prove.branches import inserted, ways
from transplt.proof.prove.edited import Edit, _Line, edits, pointed
from transplt.proof.prove.evaluation import RESULTS
from transplt.proof.prove.found import Difference
from transplt.proof.prove.training import Place

ORIGINAL = """
import torch
net = Net().cuda()
state = net.start()
for x in loader:
    loss = net(x.to("cuda"), state)
    loss.backward()
    optimizer.step()
"""


def found(before: str, after: str, folder: Path) -> list[tuple[int, int, int, bool]]:
    for name, text in (("original", before), ("migrated", after)):
        (folder / name).mkdir()
        (folder / name / "main.py").write_text(text, encoding="utf-8")
    return [
        (each.first, each.last, each.original, each.of_ranks)
        for each in edits(folder / "original", folder / "migrated")
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch\n", "import torch\nimport torch_npu\n"),
        ("cuda", "npu"),
        ("    loss.backward()\n", "    # The mean of all samples.\n\n    loss.backward()\n"),
        ("net = Net().cuda()", "net = Net().npu()  "),
        ("\n    ", "\n\t"),
    ],
)
def test_devices_imports_and_comments_are_no_edits(old: str, new: str, tmp_path: Path) -> None:
    assert found(ORIGINAL, ORIGINAL.replace(old, new), tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "edit"),
    [
        ("    loss.backward()\n", "    loss = loss / 2\n    loss.backward()\n", (7, 7, 7, False)),
        ("    loss = net", "    state = net.start()\n    loss = 2 * net", (6, 7, 6, False)),
        # Where lines are lost, the next one stands for them.
        ("    loss.backward()\n", "", (7, 7, 7, False)),
        ("    optimizer.step()\n", "", (7, 7, 8, False)),
        # The same line in another block.
        ("    optimizer.step()\n", "optimizer.step()\n", (8, 8, 8, False)),
        ("    optimizer.step()\n", "    if rank == 0:\n        optimizer.step()\n", (8, 8, 8, True)),
    ],
)
def test_edits(old: str, new: str, edit: tuple[int, int, int, bool], tmp_path: Path) -> None:
    assert found(ORIGINAL, ORIGINAL.replace(old, new), tmp_path) == [edit]


def test_what_a_port_does_by_its_helper_is_for_many_cards(tmp_path: Path) -> None:
    (tmp_path / "migrated" / "tools").mkdir(parents=True)
    (tmp_path / "original").mkdir()
    after = ORIGINAL.replace("state = ", "net = npu_port.wrap(net)\nstate = ")
    for folder, text in (("original", ORIGINAL), ("migrated", after)):
        (tmp_path / folder / "main.py").write_text(text, encoding="utf-8")
    for name in ("npu_port.py", "tools/npu_port.py"):
        (tmp_path / "migrated" / name).write_text("def wrap(net):\n    return net\n", encoding="utf-8")
    assert edits(tmp_path / "original", tmp_path / "migrated") == [Edit("main.py", 4, 4, 4, True)]


def test_a_block_that_gets_a_header_goes_with_it(tmp_path: Path) -> None:
    after = ORIGINAL.replace("    loss = net", "    with autocast():\n        loss = net")
    after = after.replace("    loss.back", "        loss.back")
    assert found(ORIGINAL, after, tmp_path) == [(6, 6, 6, False)]


@pytest.mark.parametrize(
    ("head", "encoding"),
    [
        ("\f\n", "utf-8"), ("# a\x1cb\u2028c\n", "utf-8"), ("# coding: latin-1 (\xe9)\n", "latin-1"),
        ("#\n", "utf-8-sig"),
    ],
    ids=["form feed", "separators", "latin-1", "BOM"],
)  # fmt: skip
def test_lines_are_those_of_python(head: str, encoding: str, tmp_path: Path) -> None:
    after = ORIGINAL.replace("    optimizer", "    clip()\n    optimizer")
    for name, text in (("original", ORIGINAL), ("migrated", after)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_bytes((head + text).encode(encoding))
    assert [each.place for each in edits(tmp_path / "original", tmp_path / "migrated")] == [Place("main.py", 9)]
    assert inserted(tmp_path / "original", tmp_path / "migrated") == {"main.py": [9]}
    branch = "\nif net:\n    net()\n"
    for name, text in (("original", ORIGINAL), ("migrated", after)):
        (tmp_path / name / "main.py").write_bytes((head + text + branch).encode(encoding))
    assert [way.header for way in ways(tmp_path / "original", tmp_path / "migrated")] == [(11, 12)]


def edit(first: int, last: int, of_ranks: bool = False) -> Edit:
    return Edit("main.py", first, last, first - 1, of_ranks)


_DETAIL = "mul gives a different result here"
SEEN = Difference("the loss differs", Place("main.py", 40), Place("main.py", 38), 2, _DETAIL)


@pytest.mark.parametrize(
    "others",
    [
        [],
        [edit(40, 40)], [edit(41, 44), edit(3, 3)], [edit(3, 3), edit(20, 39)],  # it is one of them, or beside one
        [edit(3, 3, True)],  # only many cards need it
        [edit(3, 20)] * 2,  # too many
    ],
)  # fmt: skip
def test_a_place_that_stays(others: list[Edit]) -> None:
    assert pointed(SEEN, others) == SEEN


def test_the_one_line_that_is_another() -> None:
    told = pointed(SEEN, [edit(9, 9), edit(3, 30, True)])
    assert (told.place, told.original) == (Place("main.py", 9), Place("main.py", 8))
    assert told.cause == (
        "no other line differs from the original in more than devices and distributed training; main.py:40: mul gives "
        "a different result here"
    )


def test_a_few_lines_that_are_others() -> None:
    told = pointed(SEEN, [edit(9, 10), edit(30, 30)])
    assert told.place == SEEN.place
    assert told.cause.endswith(
        "lines that differ from the original in more than devices: main.py:9, main.py:10, main.py:30"
    )


def test_beside_the_only_line_that_is_another() -> None:
    assert pointed(SEEN, [edit(39, 39)]).place == Place("main.py", 39)
    assert pointed(SEEN, [edit(41, 44)]).place == Place("main.py", 41)


FILES = Difference("ranks 0 and 1 both write a.pt", Place("main.py", 40), None, None, "", event=True)
WAIT = Difference("rank 1 of the migrated program: FileNotFoundError: No such file", event=True)
NOISE = Difference("rank 1 draws the noise of rank 0 at step 1", Place("main.py", 40), None, 1, "", event=True)
NORM = Difference("the gradient of Net.w has the norm 2, in the original 1", Place("main.py", 40), None, 1, "")


@pytest.mark.parametrize(
    ("first", "texts", "place"),
    [
        (NOISE, {9: "x = x + 1", 20: "torch.manual_seed(1)"}, 20),
        (NOISE, {9: "torch.manual_seed(0)", 20: "torch.manual_seed(1)", 50: "seed()"}, 20),  # the last before it
        (FILES, {9: "if rank == 0:", 20: "x = x + 1"}, 9),
        (WAIT, {9: "dist.barrier()", 20: "x = x + 1"}, 9),
        (NORM, {9: "average(net)", 20: "x = x + 1"}, 9),
        (NORM, {9: "y = y + 1", 20: "x = x + 1"}, 40),
        (SEEN, {9: "average(net)", 20: "torch.manual_seed(0)"}, 40),
    ],
)
def test_of_a_few_lines_the_one_that_does_what_it_comes_from(
    first: Difference, texts: dict[int, str], place: int
) -> None:
    own = [replace(edit(line, line), text=text) for line, text in texts.items()]
    assert pointed(first, own, None).place == Place("main.py", place)


UNSYNCED = Difference("Net.w differs between ranks", Place("main.py", 40), None, 4, "no gradients were exchanged")
MOVED = Difference("rank 1: Expected all tensors to be on the same device", event=True)
GONE = "no_grad of the original is missing"
LOST = Difference("0.w differs", Place("main.py", 40), Place("main.py", 8), None, GONE, event=True)


@pytest.mark.parametrize(
    ("first", "place"),
    [(UNSYNCED, 5), (MOVED, 3), (LOST, 7)],
)
def test_a_line_that_is_known_by_what_is_told(first: Difference, place: int, tmp_path: Path) -> None:
    before = "import torch\n\na = f()\n\n\n\n\nkept = copy.deepcopy(net.state_dict())\n"
    after = "import torch\n\ndevice = torch.device('npu:0')\na = g()\nwith no_sync():\n    a()\nkept = net.state()\n"
    for name, text in (("original", before), ("migrated", after)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "main.py").write_text(text, encoding="utf-8")
    told = pointed(first, edits(tmp_path / "original", tmp_path / "migrated"), True)
    assert told.place == Place("main.py", place)


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ({9: "x = x + 1", 20: "x = y"}, 20),  # the nearest of those that the place hangs on
        ({9: "x = x[rank::world]", 20: "x = y"}, 9),  # one that reckons with ranks
        ({9: "net = DDP(net)", 20: "sampler.set_epoch(1)"}, 40),  # what each port has
        ({11: "z = 1", 21: "z = 2"}, 40),
    ],
)
def test_the_line_that_a_place_hangs_on(texts: dict[int, str], line: int) -> None:
    own = [replace(edit(number, number, True), code=[_Line(number, text, 0)]) for number, text in texts.items()]
    told = pointed(SEEN, own, True, lambda place: [range(20, 21), range(9, 10)])
    assert told.place == Place("main.py", line)


def test_the_first_line_that_computes_otherwise_than_one_process_is_told() -> None:
    first = replace(SEEN, cause="add gives a different result than with one process")
    own = [replace(edit(9, 9, True), code=[_Line(9, "x = x[rank::world]", 0)]), edit(3, 3, True)]
    assert pointed(first, own, True, lambda place: [range(9, 10)]).place == SEEN.place


@pytest.mark.parametrize("first", [FILES, WAIT, NORM], ids=["files", "stops", "norm"])
def test_the_only_line_that_is_another_whatever_is_seen(first: Difference) -> None:
    told = pointed(first, [edit(9, 9)], None)
    assert (told.place, told.what) == (Place("main.py", 9), first.what)
    assert "no other line differs from the original in more than devices" in told.cause


def test_a_caller_that_is_another() -> None:
    called = Difference("x", Place("main.py", 40), None, 1, "", (), (Place("main.py", 50), Place("main.py", 60)))
    told = pointed(called, [edit(9, 9), edit(60, 60)])
    assert told.place == Place("main.py", 60)
    assert told.cause == "this line differs from the original; seen at main.py:40"


@pytest.mark.parametrize(("number", "text"), [(59, "sampler.set_epoch(epoch)"), (60, "dist.barrier()"), (59, "x = y")])
def test_a_caller_beside_what_many_cards_need_is_as_it_was(number: int, text: str) -> None:
    called = replace(SEEN, callers=(Place("main.py", 60),))
    beside = [replace(edit(number, number, True), code=[_Line(number, text, 0)]), edit(3, 3, True)]
    assert pointed(called, beside, True).place == called.place


@pytest.mark.parametrize(
    ("of_ranks", "place"),
    [(False, 9), (True, 20), (None, 40)],
)
def test_lines_that_are_asked(of_ranks: bool | None, place: int) -> None:
    told = pointed(SEEN, [edit(9, 9), edit(20, 20, True)], of_ranks)
    assert told.place == Place("main.py", place)


def test_what_differs_from_one_process_comes_from_other_lines_where_none_is_for_many_cards() -> None:
    told = pointed(SEEN, [edit(9, 9)], True)
    assert told.place == Place("main.py", 9)
    assert told.cause.startswith("no other line differs from the original in more than devices; ")
    # Of many lines that are for many cards nobody knows which: the one that is not is not it.
    many = [edit(9, 9), edit(20, 39, True), edit(50, 60, True)]
    assert pointed(SEEN, many, True) == SEEN


def test_no_other_line_is_said_of_the_lines_that_were_asked() -> None:
    told = pointed(SEEN, [edit(9, 9), edit(20, 20, True)], True)
    assert told.cause.startswith("no other line for several cards differs from the original; main.py:40: ")


def test_the_place_of_an_event_stays() -> None:
    event = replace(SEEN, event=True, callers=(Place("main.py", 60),))
    told = pointed(event, [edit(60, 60), edit(9, 9)])
    assert told.place == SEEN.place
    assert told.cause.endswith("; lines that differ from the original in more than devices: main.py:60, main.py:9")


def test_the_line_of_the_original_is_told_where_it_was_not_known() -> None:
    assert pointed(Difference("x", Place("main.py", 40)), [edit(40, 40)]).original == Place("main.py", 39)


SAMPLED = "the sampler is a DistributedSampler"
SAMPLERS = {3: "sampler = DistributedSampler(data)", 9: "test = DistributedSampler(held)", 20: "x = x[rank::world]"}


@pytest.mark.parametrize(
    ("cause", "texts", "way", "line"),
    [
        (SAMPLED, SAMPLERS, [40, 20, 3], 3),
        ("set_epoch is not called on the sampler of main.py:40", SAMPLERS, [40, 9], 9),
        (SAMPLED, SAMPLERS, [40, 20], 40),  # another loader's
        (SAMPLED, {40: "loader = DataLoader(data, sampler=DistributedSampler(data))", **SAMPLERS}, [40, 3], 40),
        ("the sampler is a RandomSampler", SAMPLERS, [40, 3], 40),
    ],
)
def test_the_sampler_of_the_loader(cause: str, texts: dict[int, str], way: list[int], line: int) -> None:
    own = [replace(edit(number, number, True), code=[_Line(number, text, 0)]) for number, text in texts.items()]
    first = Difference("2 samples are given to more than one rank", SEEN.place, cause=cause, event=True)
    told = pointed(first, own, True, lambda place: [range(each, each + 1) for each in way], follow=False)
    assert told.place == Place("main.py", line)


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        ({9: "torch.manual_seed(1 + rank)"}, 9),
        ({9: "torch.manual_seed(1)", 30: "y = 1"}, 40),
        ({9: "torch.manual_seed(1 + rank)", 20: "np.random.seed(args.seed + dist.get_rank())"}, 20),
    ],
)
def test_weights_that_the_seed_of_a_rank_draws(texts: dict[int, str], line: int) -> None:
    own = [replace(edit(number, number, True), code=[_Line(number, text, 0)]) for number, text in texts.items()]
    first = Difference("Net.w starts with other values on rank 1 than on rank 0", SEEN.place, step=0)
    told = pointed(first, [*own, edit(3, 3), edit(60, 90)], True, lambda place: [range(20, 21)], follow=False)
    assert told.place == Place("main.py", line)


RATE = Difference("the learning rate is 0.1", Place("main.py", 40), None, 4, figure=("hyper", 0, 3, "lr"), event=True)
APART = Difference("each rank evaluates its own share", Place("main.py", 40), figure=RESULTS, event=True)


@pytest.mark.parametrize(
    ("first", "texts", "line"),
    [
        (RATE, {9: "total = steps // world", 41: "y = 1"}, 9),
        (RATE, {9: "total = steps // world", 40: "schedule = Cosine(net, total)"}, 40),  # it has the place itself
        (RATE, {9: "sampler.set_epoch(1)", 41: "y = 1"}, 40),
        (replace(RATE, figure=()), {9: "total = steps // world", 41: "y = 1"}, 40),
        (APART, {9: "table = self.table.clone()", 20: "x = x[rank::world]"}, 9),
    ],
)
def test_what_the_line_of_a_number_or_of_results_is_given(first: Difference, texts: dict[int, str], line: int) -> None:
    own = [replace(edit(number, number, True), code=[_Line(number, text, 0)]) for number, text in texts.items()]
    told = pointed(first, own, True, lambda place: [range(40, 41), range(9, 10), range(20, 21)])
    assert told.place == Place("main.py", line)
