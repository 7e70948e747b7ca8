"""What diverged first where the operator of the first bad figures is not the cause; and what is no divergence at all.

Each is a step as a recorder leaves it, of the NPU and of the bench.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.precision.recorder import tensor, write_rank
from transplt.precision.compare import compare
from transplt.precision.dumps import open_dump
from transplt.precision.first_line import sentence

X, Y, Z, W = ([value, -2 * value, 0.5] for value in (1.0, 3.0, 7.0, 0.25))
Rows = dict[str, Any]


def call(inputs: list[Any], outputs: list[Any], **kwargs: Any) -> Any:
    return {"input_args": inputs, "input_kwargs": kwargs, "output": outputs}


def back(inputs: list[Any], outputs: list[Any]) -> Any:
    return {"input": inputs, "output": outputs}


def module(inputs: list[Any], outputs: list[Any], weight: list[float]) -> Any:
    return {**call(inputs, outputs), "parameters": {"weight": tensor(weight)}}


def number(value: Any) -> Any:
    return {"type": type(value).__name__, "value": value}


def said(tmp_path: Path, npu: Rows, bench: Rows) -> str:
    for side, rows in (("npu", npu), ("bench", bench)):
        write_rank(tmp_path / side, rows)
    return sentence(compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench"))))


LOSS = {
    "Functional.linear.0.forward": call([tensor(X)], [tensor(Y)]),
    "Functional.mse_loss.0.forward": call([tensor(Y)], [tensor([5.0])]),
    "Functional.mse_loss.0.backward": back([tensor([1.0])], [tensor(Z)]),
    "Functional.linear.0.backward": back([tensor(Z)], [tensor(W)]),
}


def inserted(rows: Rows, behind: str, **more: Any) -> Rows:
    """`rows` with others behind one of them; dots in names as `__`."""
    found: Rows = {}
    for name, row in rows.items():
        found[name] = row
        if name == behind:
            found |= {each.replace("__", "."): value for each, value in more.items()}
    return found


SHOWN = inserted(LOSS, "Functional.mse_loss.0.forward", Tensor__div__0__forward=call([tensor([5.0])], [tensor([2.5])]))
UNWRITTEN = inserted(LOSS, "Functional.linear.0.forward", Torch__empty__0__forward=call([], [tensor([1e30])]))
FUSED = {
    "Functional.attention.0.forward": call([tensor(X)], [tensor(Y)]),
    "Functional.linear.0.forward": call([tensor(Y)], [tensor(Z)]),
    "Functional.linear.0.backward": back([tensor(Z)], [tensor(W)]),
    "Functional.attention.0.backward": back([tensor(W)], [tensor(X)]),
}
APART = {
    "Torch.matmul.0.forward": call([tensor(X)], [tensor(W)]),
    "Torch.softmax.0.forward": call([tensor(W)], [tensor(Y)]),
    "Functional.linear.0.forward": FUSED["Functional.linear.0.forward"],
    "Functional.linear.0.backward": FUSED["Functional.linear.0.backward"],
    "Torch.softmax.0.backward": back([tensor(W)], [tensor(Y)]),
    "Torch.matmul.0.backward": back([tensor(Y)], [tensor(X)]),
}


@pytest.mark.parametrize(
    ("npu", "bench"),
    [(SHOWN, LOSS), (LOSS, SHOWN), (UNWRITTEN, LOSS), (FUSED, APART), (APART, FUSED)],
    ids=["a loss that is shown", "that the bench shows", "memory", "fused on the NPU", "fused on the bench"],
)
def test_no_divergence(tmp_path: Path, npu: Rows, bench: Rows) -> None:
    assert said(tmp_path, npu, bench).startswith("no divergence")


#: The result of the additional operator goes on.
TAKEN = {
    "Functional.linear.0.forward": LOSS["Functional.linear.0.forward"],
    "Functional.relu6.0.forward": call([tensor(Y)], [tensor(W)]),
    "Functional.mse_loss.0.forward": call([tensor(W)], [tensor([5.0])]),
    "Functional.mse_loss.0.backward": LOSS["Functional.mse_loss.0.backward"],
    "Functional.linear.0.backward": LOSS["Functional.linear.0.backward"],
}
WRONG = APART | {"Torch.softmax.0.forward": call([tensor(W)], [tensor(Z)])}


@pytest.mark.parametrize(
    ("npu", "bench", "expected"),
    [
        (TAKEN, LOSS, "Functional.relu6.0.forward is only on the NPU's side"),
        (FUSED, WRONG, "Functional.attention.0.forward is where the other side has Torch.matmul.0.forward"),
    ],
)
def test_an_operator_whose_result_is_another_is_one_too_many(
    tmp_path: Path, npu: Rows, bench: Rows, expected: str
) -> None:
    assert expected in said(tmp_path, npu, bench)


def test_a_tensor_of_another_operator_is_taken_in(tmp_path: Path) -> None:
    made = {"Torch.ones.0.forward": call([], [tensor(Y)]), "Torch.zeros.0.forward": call([], [tensor(Z)])}
    npu, bench = (
        made | {"Functional.mse_loss.0.forward": call([tensor(X), tensor(labels)], [tensor([labels[0]])])}
        for labels in (Z, Y)
    )
    data = {"Tensor.mul.0.forward": call([tensor(W)], [tensor(X)])}
    text = said(tmp_path, data | npu, data | bench)
    assert "input inconsistent: Functional.mse_loss.0.forward input.1 is of other values" in text
    assert "Torch.zeros.0.forward output.0 made it, and what the bench takes Torch.ones.0.forward output.0 made" in text


def test_figures_that_cannot_tell_a_mask_from_another(tmp_path: Path) -> None:
    """Of truth and integers a dump has the largest and the smallest; the argument says it."""
    mask = tensor([0, 1], dtype="bool", Mean=None, Norm=None)
    npu, bench = (
        {
            "Tensor.triu.0.forward": call([mask, number(diagonal)], [mask]),
            "Torch.softmax.0.forward": call([tensor(X), mask], [tensor(made)]),
        }
        for diagonal, made in ((2, Y), (1, Z))
    )
    text = said(tmp_path, npu, bench)
    assert "Tensor.triu.0.forward: its inputs agree and its output is alike in its figures" in text
    assert "its argument input.1 is 2 and not 1" in text


def test_an_argument_that_one_side_gives(tmp_path: Path) -> None:
    npu = {"Functional.gelu.0.forward": call([tensor(X)], [tensor(Y)], approximate=number("tanh"))}
    bench = {"Functional.gelu.0.forward": call([tensor(X)], [tensor(Z)])}
    assert "its argument kwargs.approximate is tanh and not given" in said(tmp_path, npu, bench)


def test_a_state_that_differs_by_an_argument(tmp_path: Path) -> None:
    npu, bench = (
        {"Functional.batch_norm.0.forward": call([tensor(X), tensor(mean)], [tensor(Y)], momentum=number(momentum))}
        for mean, momentum in ((Z, 0.9), (W, 0.1))
    )
    assert "no recorded operator made it; its argument kwargs.momentum is 0.9 and not 0.1" in said(tmp_path, npu, bench)


def test_a_weight_that_differs_within_a_step_comes_from_an_optimizer(tmp_path: Path) -> None:
    def side(weight: list[float], made: list[float]) -> Rows:
        return {
            "Functional.linear.0.forward": call([tensor(X), tensor(Y)], [tensor(Z)]),
            "Module.judge.Linear.forward.0": module([tensor(X)], [tensor(Z)], Y),
            "Functional.linear.0.backward": back([tensor(Z)], [tensor(X)]),
            "Functional.linear.1.forward": call([tensor(X), tensor(weight)], [tensor(made)]),
            "Module.judge.Linear.forward.1": module([tensor(X)], [tensor(made)], weight),
            "Functional.linear.1.backward": back([tensor(Z)], [tensor(X)]),
        }

    text = said(tmp_path, side([9.0, 1.0], Y), side([8.0, 2.0], Z))
    assert "the optimizer's step: judge.weight is" in text
    assert "where it is used again, in Functional.linear.1.forward, and at first it was the same" in text


def test_a_gradient_that_changes_between_operators(tmp_path: Path) -> None:
    npu = LOSS | {"Functional.linear.0.backward": back([tensor([1.5 * each for each in Z])], [tensor(Y)])}
    text = said(tmp_path, npu, LOSS)
    assert "Functional.linear.0.backward input.0 is scaled by 1.5, and every operator before agrees" in text


def test_operators_come_before_the_modules_around_them(tmp_path: Path) -> None:
    """Without a gradient of its input a module has no row backward; the operator that got none says where it ends."""
    bench = {
        "Functional.relu.0.forward": call([tensor(X)], [tensor(Y)]),
        "Functional.linear.0.forward": call([tensor(Y)], [tensor(Z)]),
        "Module.net.Linear.forward.0": call([tensor(Y)], [tensor(Z)]),
        "Functional.linear.0.backward": back([tensor(Z)], [tensor(W)]),
        "Module.net.Linear.backward.0": back([tensor(Z)], [tensor(W)]),
        "Functional.relu.0.backward": back([tensor(W)], [tensor(X)]),
    }
    lost = ("Module.net.Linear.backward.0", "Functional.relu.0.backward")
    npu = {name: row for name, row in bench.items() if name not in lost}
    assert "Functional.relu.0.backward is missing on the NPU's side" in said(tmp_path, npu, bench)


def test_what_clips_gradients_belongs_to_the_optimizer(tmp_path: Path) -> None:
    gradients = "Module.net.Linear.parameters_grad.0"
    npu = LOSS | {gradients: {"weight": [tensor(Z)]}}
    bench = LOSS | {"Torch.stack.0.forward": call([tensor(Z)], [tensor(Z)]), gradients: {"weight": [tensor(W)]}}
    assert f"the gradients of {gradients} are" in said(tmp_path, npu, bench)


@pytest.mark.parametrize(
    ("passes", "others", "agree"),
    [
        # What 8.3 of msprobe has is the gradient at the end of the step; later ones have that of each backward pass.
        ({"": W}, {".0": Z, ".1": X}, True),
        ({".0": Z, ".1": X}, {"": W}, True),
        ({".0": Z, ".1": X}, {".0": Z, ".1": W}, False),
        ({"": W}, {".0": Z}, False),
        ({"": W}, {".0": W}, True),
    ],
)
def test_gradients_of_each_pass_are_no_sum_of_a_step(
    tmp_path: Path, passes: dict[str, list[float]], others: dict[str, list[float]], agree: bool
) -> None:
    name = "Module.net.Linear.parameters_grad"
    sides = [LOSS | {name + end: {"weight": [tensor(each)]} for end, each in side.items()} for side in (passes, others)]
    assert ("no divergence" in said(tmp_path, *sides)) == agree


def test_a_type_that_no_recorded_operator_made(tmp_path: Path) -> None:
    """Recorders leave out what only changes a type; figures are off by rounding from there on."""
    rounded = [value * 1.002 for value in Z]
    npu, bench = (
        {
            "Functional.gelu.0.forward": call([tensor(Y, dtype=dtype)], [tensor(made, dtype=dtype)]),
            "Functional.linear.0.forward": call([tensor(made)], [tensor([each * 3 for each in made])]),
        }
        for dtype, made in (("bfloat16", rounded), ("float32", Z))
    )
    text = said(tmp_path, npu, bench)
    told = "Functional.gelu.0.forward input.0 is in bfloat16 and not in float32, and no recorded operator caused this"
    assert told in text


def test_a_product_with_other_leading_axes_is_the_same(tmp_path: Path) -> None:
    """A kernel for another layout of memory merges them; another size is another input."""
    values = [float(number) for number in range(6)]

    def rows(shape: list[int]) -> Rows:
        return {"Functional.linear.0.forward": call([tensor(values, shape)], [tensor(values, shape)])}

    assert said(tmp_path / "a", rows([2, 1, 3]), rows([2, 3])).startswith("no divergence: ")
    assert "of shape [1, 3] and not [2, 3]" in said(tmp_path / "b", {
        "Functional.linear.0.forward": call([tensor(values[:3], [1, 3])], [tensor(values[:3], [1, 3])])
    }, rows([2, 3]))  # fmt: skip


def whole(values: list[int], **more: Any) -> Any:
    """Integers as dumps of figures have them: the largest and the smallest."""
    return tensor(values, dtype="int64", **{"Mean": None, "Norm": None} | more)


def test_what_is_made_of_integers_is_not_blamed_on_the_operator(tmp_path: Path) -> None:
    npu, bench = (
        {"Functional.embedding.0.forward": call([whole([0, 3, 5]), tensor(W)], [tensor(made)])} for made in (X, Y)
    )
    text = said(tmp_path, npu, bench)
    assert "of its input.0 only the largest and smallest are known: look at this data first" in text


@pytest.mark.parametrize(
    ("numbers", "argument"),
    [
        (whole([4]), {}),  # one number is known
        (whole([2, 2]), {}),
        (whole([0, 3], md5="1"), {}),
        (whole([0, 3]), {"other": True}),  # the argument is the cause
    ],
)
def test_what_is_known_of_integers_is_no_excuse(tmp_path: Path, numbers: Any, argument: dict[str, bool]) -> None:
    npu, bench = (
        {"Functional.embedding.0.forward": call([numbers, tensor(W)], [tensor(made)], scale=number(scale))}
        for made, scale in ((X, 2.0 if argument else 1.0), (Y, 1.0))
    )
    text = said(tmp_path, npu, bench)
    assert "Functional.embedding.0.forward: its inputs agree" in text and "only the largest" not in text
    assert ("its argument kwargs.scale is 2 and not 1" in text) == bool(argument)


def _branches(flows: bool, gradient: list[float]) -> Rows:
    """y goes through two operators; into the second one of them a gradient flows or does not."""
    y = tensor(Y, requires_grad=True)
    return {
        "Functional.linear.0.forward": call([tensor(X)], [y]),
        "Functional.gelu.0.forward": call([y], [tensor(Z, requires_grad=True)]),
        "Tensor.mul.0.forward": call([tensor(Z, requires_grad=True), tensor(Y, requires_grad=flows)],
                                     [tensor(W, requires_grad=True)]),
        "Tensor.mul.0.backward": back([tensor([1.0])], [tensor(X)]),
        "Functional.linear.0.backward": back([tensor(gradient)], [tensor(gradient)]),
    }  # fmt: skip


def test_a_branch_that_is_detached_is_named(tmp_path: Path) -> None:
    text = said(tmp_path, _branches(False, W), _branches(True, Z))
    assert "the gradient is cut off: no gradient flows through Tensor.mul.0.forward input.1" in text


def test_a_gradient_that_nobody_takes_may_be_cut_off(tmp_path: Path) -> None:
    assert said(tmp_path, _branches(False, Z), _branches(True, Z)).startswith("no divergence")


def test_a_norm_says_in_which_mode_it_is(tmp_path: Path) -> None:
    npu, bench = (
        {
            **({"Tensor.add_.0.forward": call([whole([1], shape=[])], [whole([2], shape=[])])} if train else {}),
            "Functional.batch_norm.0.forward": {
                "input_args": [tensor(X), tensor(W), tensor(W), None, None, number(train)], "output": [tensor(made)],
            },
        }
        for train, made in ((False, Y), (True, Z))
    )  # fmt: skip
    text = said(tmp_path, npu, bench)
    assert "Functional.batch_norm.0.forward: its inputs agree" in text
    assert "it is in eval mode and not in training mode" in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Tensor.add", "Tensor.__add__"), ("Torch.add", "Tensor.add"), ("Functional.softmax", "Tensor.softmax"),
        ("Tensor.__truediv__", "Torch.div"), ("Tensor.__iadd__", "Tensor.add_"), ("Torch.concat", "Torch.cat"),
    ],
)  # fmt: skip
def test_recorders_have_two_names_for_a_function(tmp_path: Path, one: str, other: str) -> None:
    npu, bench = ({f"{api}.3.forward": call([tensor(X), tensor(W)], [tensor(Z)])} | LOSS for api in (one, other))
    text = said(tmp_path, npu, bench)
    assert text.startswith("no divergence") and "5 operators" in text
    wrong = said(tmp_path / "wrong", npu, bench | {f"{other}.3.forward": call([tensor(X), tensor(W)], [tensor(Y)])})
    assert f"{one}.3.forward: its inputs agree and its output is" in wrong


@pytest.mark.extra
def test_another_order_of_the_same_values_is_told(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    for side, values in (("npu", [3.0, 1.0, 2.0]), ("bench", [1.0, 2.0, 3.0])):
        row = {"Functional.embedding.0.forward": call([tensor(X)], [tensor([1.0, 2.0, 3.0], data_name="a.npy")])}
        write_rank(tmp_path / side, row, task="tensor")
        (tmp_path / side / "dump_tensor_data").mkdir()
        np.save(tmp_path / side / "dump_tensor_data" / "a.npy", np.array(values, dtype="f4"))
    text = sentence(compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench"))))
    assert "its output is another order of the same values" in text


def test_backward_rows_of_two_recorders_are_those_of_modules(tmp_path: Path) -> None:
    """msprobe has an operator's last node, ours the whole operator; modules begin and end in another order."""
    forward = {
        "Module.net.Net.forward.0": module([tensor(X)], [tensor(Z)], W),
        "Module.one.Linear.forward.0": module([tensor(X)], [tensor(Y)], W),
        "Functional.linear.0.forward": call([tensor(X)], [tensor(Y)]),
    }
    net, one = ({f"Module.{name}.backward.0": back([tensor(Z)], [tensor(W)])} for name in ("net.Net", "one.Linear"))
    ours = forward | net | one | {"Functional.linear.0.backward": back([tensor(Z)], [tensor(W)])}
    theirs = forward | one | {"Functional.linear.0.backward": back([tensor(Y)], [tensor(X)])} | net
    for side, rows in (("npu", ours), ("bench", theirs)):
        write_rank(tmp_path / side, rows)
    document = json.loads((tmp_path / "npu" / "dump.json").read_text())
    dumps = [str(tmp_path / side) for side in ("npu", "bench")]
    assert "first divergence" in sentence(compare(*map(open_dump, dumps)))
    (tmp_path / "npu" / "dump.json").write_text(json.dumps(document | {"recorder": "transplt"}))
    assert sentence(compare(*map(open_dump, dumps))).startswith("no divergence")
    assert sentence(compare(*map(open_dump, reversed(dumps)))).startswith("no divergence")


def of_two_recorders(tmp_path: Path, ours: Rows, theirs: Rows) -> str:
    said(tmp_path, ours, theirs)
    document = json.loads((tmp_path / "npu" / "dump.json").read_text())
    (tmp_path / "npu" / "dump.json").write_text(json.dumps(document | {"recorder": "transplt"}))
    return sentence(compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench"))))


BACK = {"Module.net.Net.backward.0": back([tensor(Z)], [tensor(W)])}


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        # What clipping calls has another name in each.
        (
            {"Torch.linalg_vector_norm.0.forward": call([tensor(Z)], [tensor([9.0])])},
            {"Torch._foreach_norm.0.forward": call([tensor(Z)], [tensor([9.0])])},
            "no divergence",
        ),
        # Gradients in front of the ranks' sum, and behind it.
        (
            {"Module.module.net.Net.parameters_grad.0": {"weight": [tensor(W)]}},
            {"Module.module.net.Net.parameters_grad.0": {"weight": [tensor(X)]}},
            "no divergence",
        ),
        (
            {"Module.net.Net.parameters_grad.0": {"weight": [tensor(W)]}},
            {"Module.net.Net.parameters_grad.0": {"weight": [tensor(X)]}},
            "the gradients of Module.net.Net.parameters_grad.0",
        ),
    ],
)
def test_behind_the_backward_pass_of_two_recorders(tmp_path: Path, ours: Rows, theirs: Rows, text: str) -> None:
    rows = {"Module.net.Net.forward.0": module([tensor(X)], [tensor(Y)], W)} | BACK
    assert text in of_two_recorders(tmp_path, rows | ours, rows | theirs)


@pytest.mark.parametrize(
    ("eps", "result", "text"),
    [(1e-5, Y, "no divergence"), (1e-2, Z, "its argument kwargs.eps is 0.01 and not 1e-05")],
)
def test_arguments_by_name_and_by_place(tmp_path: Path, eps: float, result: list[float], text: str) -> None:
    """One recorder has the defaults, by their names, and the other what the call has given."""
    rows = {"Module.net.Net.forward.0": module([tensor(X)], [tensor(X)], W)}
    name = "Functional.batch_norm.0.forward"
    ours = call([tensor(X)], [tensor(result)], training=number(True), momentum=number(0.1), eps=number(eps))
    theirs = call([tensor(X), number(True), number(0.1), number(1e-5)], [tensor(Y)])
    told = of_two_recorders(tmp_path, rows | {name: ours} | BACK, rows | {name: theirs} | BACK)
    assert text in told and "mode" not in told


@pytest.mark.parametrize(("indices", "text"), [([1, 0], "no divergence"), ([1, 2], "the operators differ")])
def test_two_results_of_one_operator_that_others_make_too(tmp_path: Path, indices: list[int], text: str) -> None:
    whole, best, where = [4.0, 3.0, 1.0], [4.0, 3.0], tensor(indices, dtype="int64")
    sort = {
        "Tensor.sort.0.forward": call([tensor(X)], [tensor(whole), tensor([1, 0, 2], dtype="int64")]),
        "Tensor.__getitem__.0.forward": call([tensor(whole)], [tensor(best)]),
        "Tensor.__getitem__.1.forward": call([tensor([1, 0, 2], dtype="int64")], [where]),
    }
    topk = {"Tensor.topk.0.forward": call([tensor(X)], [tensor(best), tensor([1, 0], dtype="int64")])}
    last = {"Tensor.sum.0.forward": call([tensor(best)], [tensor([7.0])])}
    assert text in said(tmp_path, sort | last, topk | last)


@pytest.mark.parametrize(("keeps", "line"), [(True, 55), (False, 28)])
def test_where_a_gradient_is_cut_off(tmp_path: Path, keeps: bool, line: int) -> None:
    """Behind a module that hands a value on with its gradient, or in it."""

    def rows(kept: bool) -> Rows:
        return {
            "Tensor.mul.0.forward": call([tensor(X, requires_grad=True)], [tensor(Y, requires_grad=True)]),
            "Module.net.Net.forward.0": call([tensor(X)], [tensor(Y, requires_grad=keeps)]),
            "Tensor.add.0.forward": call([tensor(Y, requires_grad=kept)], [tensor(Z, requires_grad=True)]),
            "Tensor.add.0.backward": back([tensor([1.0])], [tensor(W)]),
            "Tensor.mul.0.backward": back([tensor(W)], [tensor(W if kept else Z)]),
        }

    frames = {"Tensor.mul.0.forward": 28, "Module.net.Net.forward.0": 54, "Tensor.add.0.forward": 55}
    for side, kept in (("npu", False), ("bench", True)):
        stack = {name: [f"File /job/net.py, line {at}, in forward, \n x"] for name, at in frames.items()}
        write_rank(tmp_path / side, rows(kept), stack)
    told = sentence(compare(open_dump(str(tmp_path / "npu")), open_dump(str(tmp_path / "bench"))))
    assert "the gradient is cut off" in told and f"net.py:{line}" in told
