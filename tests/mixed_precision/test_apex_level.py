"""`--amp apex` without a level: O2 where it is right, else O1; programs that share training code share the level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import harness
from tests.harness import check_noop
from transplt.base.finding import APEX_LEVEL
from transplt.project import tree
from transplt.project.options import Options, make_plan

HEAD = """
import torch
from project import Net, loader

model = Net().to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOOP = """
for x in loader:
    loss = model(x)
    loss.backward()
    optimizer.step()
"""
FIT = """
def fit(model, optimizer, loader):
    for x in loader:
        optimizer.zero_grad()
        loss = model(x)
        loss.backward()
        optimizer.step()
"""
USES_FIT = HEAD + "from fit import fit\n\nfit(model, optimizer, loader)\n"
ENCODES = "print(model.encode(next(iter(loader))))\n"


def written(source: str, **more: Any) -> tuple[str, list[str]]:
    """The output, and what is said of the level."""
    result = harness.migrate(source, amp="apex", **more)
    return result.data.decode(), [finding.message for finding in result.findings if finding.code == APEX_LEVEL]


def test_the_default_of_the_guide_where_nothing_speaks_against_it() -> None:
    text, said = written(HEAD + LOOP)
    assert 'opt_level="O2"' in text
    assert said == ["level O2 of apex: nothing found in the program prevents it"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (ENCODES, "model.encode(...) runs a part of the model, and O2 only casts inputs of the model itself"),
        ("torch.save(model, 'last.pt')\n", "torch.save saves the whole model here"),
        ("print([p.grad.norm() for p in model.parameters()])\n", "this reads gradients of the model"),
    ],
)
def test_o1_where_o2_cannot_be_right(more: str, why: str) -> None:
    text, (said,) = written(HEAD + LOOP + more)
    assert 'opt_level="O1"' in text
    line = (HEAD + LOOP).strip("\n").count("\n") + 2
    assert said.startswith(f"level O1 of apex, not O2: {why}")
    assert said.endswith(f"(train.py:{line})")


def test_an_optimizer_of_its_own_reads_the_gradients_of_its_weights() -> None:
    """amp.initialize gives it weights in float32 with O2, and these have their gradients unscaled by then."""
    own = (
        "class Plain(torch.optim.Optimizer):\n    def step(self):\n        for group in self.param_groups:\n"
        "            for p in group['params']:\n                p.data.add_(p.grad.data, alpha=-0.1)\n"
    )
    text, _ = written(HEAD.replace("\nmodel", f"\n{own}\nmodel").replace("torch.optim.SGD", "Plain") + LOOP)
    assert 'opt_level="O2"' in text


def test_a_level_that_is_asked_for_is_taken_or_refused() -> None:
    text, said = written(HEAD + LOOP, opt_level="O1")
    assert 'opt_level="O1"' in text
    assert said == []
    result = check_noop(HEAD + LOOP + ENCODES, open_codes=("NPU743",), amp="apex", opt_level="O2")
    (finding,) = result.findings
    assert finding.help == "call it in forward(), or run transplt with --opt-level O1"


def test_neither_level() -> None:
    """The reason is that of O1, and no other level is offered."""
    source = HEAD + LOOP.replace("loss.backward()", "loss.backward(create_graph=True)") + ENCODES
    for level in ("", "O1", "O2"):
        result = check_noop(source, open_codes=("NPU743",), amp="apex", opt_level=level)
        (finding,) = result.findings
        assert "create_graph" in finding.message
        assert "--opt-level" not in finding.help


def migrated(tmp_path: Path, files: dict[str, str], **more: Any) -> dict[str, str]:
    source = tmp_path / "source"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text)
    plan = make_plan(Options(source=source, out=tmp_path / "out", jobs=0, page=False, amp="apex", **more))
    tree.migrate_tree(plan)
    return {name: (plan.target / name).read_text() for name in files}


FILES = {"fit.py": FIT, "one.py": USES_FIT, "other.py": USES_FIT + ENCODES, "alone.py": HEAD + LOOP}


def test_programs_that_share_training_code_share_the_level(tmp_path: Path) -> None:
    texts = migrated(tmp_path, FILES)
    assert "amp.scale_loss(loss, optimizer)" in texts["fit.py"]
    assert 'opt_level="O1"' in texts["one.py"]
    assert 'opt_level="O1"' in texts["other.py"]
    assert 'opt_level="O2"' in texts["alone.py"]


@pytest.mark.parametrize("level", [None, "O2"])
def test_one_program_that_gets_nothing_keeps_those_that_train_with_the_same_code(
    tmp_path: Path, level: str | None
) -> None:
    """Losses are scaled for all who run the code, so all have amp.initialize or none has."""
    more = ENCODES if level else "model.compile()\nfor each in (1, 2):\n    optimizer = torch.optim.SGD(each)\n"
    texts = migrated(tmp_path, {**FILES, "other.py": USES_FIT + more}, opt_level=level)
    assert {name: "amp" in text for name, text in texts.items()} == {
        "fit.py": False, "one.py": False, "other.py": False, "alone.py": True,
    }  # fmt: skip


def test_the_level_is_an_option_of_the_script_with_its_reason() -> None:
    head = HEAD.replace("\nmodel", "\nparser = argparse.ArgumentParser()\nargs = parser.parse_args()\nmodel")
    head = "import argparse\n" + head.lstrip()
    text, _ = written(head + LOOP + ENCODES, amp_flag=True)
    assert 'parser.add_argument("--opt-level", default="O1", help="O1 of apex: no other level is right here")' in text
    text, _ = written(head + LOOP, amp_flag=True)
    assert 'parser.add_argument("--opt-level", default="O2", help="O1 or O2 of apex")' in text


FREED_LATER = "    if len(x) > 4:\n        for p in model.parameters():\n            p.requires_grad = True\n"
THAWS = "for p in model.parameters():\n    p.requires_grad_(True)\n"
FREES = "for p in model.body.parameters():\n        p.requires_grad = True"
FIT_ONCE = "    fit(model, optimizer, loader)\n"
IN_MAIN = """
import torch
from project import Net, loader
"""
IN_MAIN += FIT + """

def main():
    model = Net().to("npu")
    {more}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    fit(model, optimizer, loader)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("source", "written_all_the_same"),
    [
        (HEAD + THAWS + LOOP, True),
        (HEAD + LOOP + "for p in model.parameters():\n    p.requires_grad_(False)\n", True),
        (
            HEAD + LOOP.replace(
                "    loss = ", "    for p in model.parameters():\n        p.requires_grad = True\n    loss = "
            ),
            True,
        ),
        (HEAD + LOOP.replace("    loss = ", "    x.requires_grad_(True)\n    loss = "), True),
        (HEAD + LOOP + THAWS + LOOP, False),
        (HEAD + LOOP.replace("    loss = ", FREED_LATER + "    loss = "), False),
        (HEAD + LOOP + "model.body.weight.requires_grad = True\n" + LOOP, False),
        (HEAD + LOOP + "model.body.requires_grad_()\n" + LOOP, False),
        (HEAD + LOOP + "for p in model.parameters():\n    setattr(p, 'requires_grad', True)\n" + LOOP, False),
        (HEAD + LOOP + "for p in model.parameters():\n    setattr(p, 'requires_grad', False)\n" + LOOP, True),
        (HEAD + LOOP + "print([p.requires_grad_() for p in model.parameters()])\n" + LOOP, False),
        (IN_MAIN.replace("{more}", FREES), True),
        (IN_MAIN.replace("{more}", "pass").replace("    fit(", FIT_ONCE + "    " + FREES + "\n    fit("), False),
    ],
)  # fmt: skip
def test_parameters_that_are_freed_while_the_program_trains(source: str, written_all_the_same: bool) -> None:
    """amp.initialize takes what can have gradients at the first backward pass; what comes later is not unscaled."""
    for level in ("", "O1", "O2"):
        if written_all_the_same:
            text, _ = written(source, opt_level=level)
            assert "amp.initialize" in text
        else:
            result = check_noop(source, open_codes=("NPU743",), amp="apex", opt_level=level)
            assert "parameters are unfrozen here during training" in result.findings[0].message


def in_loop(line: str) -> str:
    """A loop that trains, with a line of its own under a condition."""
    return LOOP.replace("    loss = ", f"    if len(x) > 4:\n        {line}\n    loss = ")


SPAWNED = IN_MAIN.replace("def main():", "def main(rank=0):").replace(
    '"__main__":\n    main()',
    '"__main__":\n    if torch.npu.device_count() > 1:\n        torch.multiprocessing.spawn(main, nprocs=2)\n'
    "    else:\n        main()",
)


@pytest.mark.parametrize(
    "source",
    [
        SPAWNED.replace("{more}", "model.features = torch.nn.DataParallel(model.features)"),
        SPAWNED.replace("{more}", "model.head = torch.nn.Linear(4, 2).npu()"),
        SPAWNED.replace("{more}", "if torch.npu.is_available():\n        model.head = torch.nn.Linear(4, 2).npu()"),
        HEAD + in_loop("model.features = torch.nn.DataParallel(model.features)"),
        HEAD + in_loop("model.training = False"),
        HEAD + in_loop("model.head.out_features = 7"),
        HEAD + in_loop("model.seen = len(x)"),
        HEAD + in_loop("model.state = torch.zeros(4)"),
        HEAD + in_loop("x.head = torch.nn.Linear(4, 2)"),
        HEAD + LOOP + "model.best = 3\nmodel.head.p, model.epoch = 0.1, 7\n" + LOOP,
    ],
)
def test_what_is_stored_in_a_model_frees_no_parameters(source: str) -> None:
    for level in ("", "O1", "O2"):
        text, _ = written(source, opt_level=level)
        assert "amp.initialize" in text


@pytest.mark.parametrize(
    "more",
    [
        in_loop("model.head = torch.nn.Linear(4, 2).npu()"),
        LOOP.replace("    loss = ", "    model.head = torch.nn.Linear(4, 2).npu()\n    loss = "),
        LOOP + "model.head = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(4, 2)).npu()\n" + LOOP,
        LOOP + "model.head.weight = torch.nn.Parameter(model.head.weight * 2)\n" + LOOP,
    ],
)
def test_parts_that_are_made_while_the_program_trains(more: str) -> None:
    """amp.initialize has seen neither their weights (O2 leaves them float32 below a float16 model) nor gradients."""
    for level in ("", "O1", "O2"):
        result = check_noop(HEAD + more, open_codes=("NPU743",), amp="apex", opt_level=level)
        assert "a part of the model is created here during training" in result.findings[0].message


def test_gradients_of_layers_that_some_steps_leave_out_are_not_combined() -> None:
    net = """
import torch
from project import loader


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.aux = torch.nn.Linear(4, 1), None
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(x) if {test} else x


model = Net().to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
    text, _ = written(net.replace("{test}", "x.mean() > 0") + LOOP)
    assert "combine_grad" not in text
    text, _ = written(net.replace("{test}", "self.training") + LOOP)
    assert "combine_grad=True" in text


def test_masks_beyond_float16() -> None:
    attend = "def attend(scores, mask):\n    return scores.masked_fill(mask, -1e9).softmax(-1)\n\n\n"
    text, _ = written(HEAD.replace("\nmodel", f"\n{attend}model") + LOOP)
    assert "masked_fill(mask, max(-1e9, torch.finfo(scores.dtype).min))" in text
    refused = LOOP.replace("loss.backward()", "loss.backward(create_graph=True)")
    text, _ = written(HEAD.replace("\nmodel", f"\n{attend}model") + refused)
    assert "finfo" not in text


MAKES = """
import torch
from project import loader


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)

    def optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Trainer:
    def __init__(self):
        self.model = Net().to("npu")
        self.optimizer = {made}

    def build_optimizer(self):
        return torch.optim.SGD([p for p in self.model.parameters() if p.requires_grad], lr=0.1)

    def fit(self):
        for x in loader:
            loss = self.model(x).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


Trainer().fit()
"""


@pytest.mark.parametrize(
    ("made", "level"), [("self.build_optimizer()", "O2"), ("self.model.optimizers()", "O1"), ("make(self)", "")]
)
def test_an_optimizer_that_a_method_makes(made: str, level: str) -> None:
    source = MAKES.replace("{made}", made)
    if not level:
        helper = "\ndef make(x):\n    return torch.optim.SGD(x.model.parameters())\n\n\nclass Trainer"
        source = source.replace("\nclass Trainer", helper)
        check_noop(source, open_codes=("NPU743",), amp="apex")
        return
    text, _ = written(source)
    assert f'opt_level="{level}"' in text
    assert "self.model, self.optimizer = amp.initialize(" in text
