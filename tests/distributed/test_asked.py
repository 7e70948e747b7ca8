"""Programs that ask whether a model is wrapped take it out of the wrapper that there is now."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.distributed.running import launched, migrated
from tests.distributed.test_pairs import distributed, left, output, script

PROGRAM = Path(__file__).parent / "programs" / "checkpoints.py"
SAVE = 'torch.save(m.state_dict(), "m.pt")'
SAVED = f"if npu_port.is_first():\n    {SAVE}\n"
DP, DDP = "torch.nn.DataParallel", "DistributedDataParallel"
BOTH = f"({DP}, {DDP})"


def written(tail: str) -> str:
    """What becomes of the lines behind a training loop."""
    result = distributed(script(tail=tail))
    assert left(result) == []
    return result.data.decode().partition("model(x).backward()\n")[2]


@pytest.mark.torch
@pytest.mark.xdist_group("distributed_training")
@pytest.mark.parametrize("world", [1, 2])
def test_checkpoints_have_the_names_of_the_model(world: int, tmp_path: Path) -> None:
    """With one process as with two; what programs save so, `module.` begins no name of it."""
    folder = migrated(PROGRAM, tmp_path / "out", "distributed", "-m", str(PROGRAM))
    # torch_npu prints of itself that it does not recommend the older form of files.
    lines = [line for line in launched(folder, world) if not line.startswith("Warning: torch.save ")]
    forms = PROGRAM.read_text(encoding="utf-8").count("found[") - 1  # one form has two branches
    assert len(lines) == len(set(lines)) == forms + len(["other", "either", "saver", "last"])
    assert {line.partition(" ")[2] for line in lines} == {"weight bias"}


@pytest.mark.parametrize(
    "test",
    [
        'hasattr(model, "module")',
        "isinstance(model, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel))",
        "isinstance(model, torch.nn.parallel.DistributedDataParallel)",
        'hasattr(model, "module") and n > 1',
    ],
)
def test_questions_that_stay(test: str) -> None:
    found = written(f"m = model.module if {test} else model\n{SAVE}")
    other = "model.module" if "n > 1" in test else "model"
    assert found == f"m = model.module if {test} else {other}\n{SAVED}"


@pytest.mark.parametrize(
    ("test", "after"),
    [
        (f"isinstance(model, {DP})", f"isinstance(model, {BOTH})"),
        ("isinstance(model, nn.parallel.DataParallel)", f"isinstance(model, (nn.parallel.DataParallel, {DDP}))"),
        (f"isinstance(model, ({DP}, C))", f"isinstance(model, ({DP}, {DDP}, C))"),
        (f"isinstance(model, {DP} | C)", f"isinstance(model, {DP} | {DDP} | C)"),
        (f"issubclass(type(model), {DP})", f"issubclass(type(model), {BOTH})"),
        (f"type(model) is {DP}", f"isinstance(model, {BOTH})"),
        (f"model.__class__ == {DP}", f"isinstance(model, {BOTH})"),
        (f"type(model) in [{DP}, C]", f"isinstance(model, ({DP}, C, {DDP}))"),
    ],
)
def test_questions_that_know_the_wrapper(test: str, after: str) -> None:
    found = written(f"from torch import nn\nif {test}:\n    state = model.module.state_dict()")
    assert found == f"from torch import nn\nif {after}:\n    state = model.module.state_dict()\n"


@pytest.mark.parametrize(
    ("test", "after"),
    [
        ('type(model).__name__ == "DataParallel"', "type(model).__name__ in ({})"),
        ("model.__class__.__name__ != 'DataParallel'", "model.__class__.__name__ not in ({})"),
        ('type(model).__name__ in ["DataParallel"]', "type(model).__name__ in [{}]"),
        ('type(model).__name__ in ("DataParallel", "Net")', 'type(model).__name__ in ({}, "Net")'),
    ],
)
def test_names_of_the_wrapper(test: str, after: str) -> None:
    found = written(f"if {test}:\n    n = 1")
    names = '"DataParallel", "OneCardDataParallel", "DistributedDataParallel"'
    assert found == f"if {after.format(names)}:\n    n = 1\n"


@pytest.mark.parametrize(
    "test",
    [
        "isinstance({}, net)",
        "isinstance({}, torch.nn.Module)",
        'hasattr({}, "freeze")',
        'hasattr({}, "module_list")',
        "type({}) is net",
        'type({}).__name__ == "Net"',
        "net.ready({})",
        'getattr({}, "depth", 3) > 2',
    ],
)
def test_other_questions_are_asked_of_the_model(test: str) -> None:
    found = written(f"if {test.format('model')}:\n    n = 1")
    assert found == f"if {test.format('model.module')}:\n    n = 1\n"


@pytest.mark.parametrize(
    ("before", "after", "given"),
    [
        # Under its own name it stays in the wrapper, whatever the condition says.
        (
            'm = model\nif hasattr(m, "module"):\n    m = m.module',
            'm = model\nif hasattr(m, "module"):\n    m.module = m.module',
            "m.module",
        ),
        (
            "m = model\nm = m.module if n > 1 else m",
            "m = model\nm.module = m.module if n > 1 else m.module",
            "m.module",
        ),
        # Under another name it may be either.
        ('m = model\nif "module" in dir(model):\n    m = model.module', "", "npu_port.bare(m)"),
        ("if n > 1:\n    m = model.module\nelse:\n    m = model", "", "npu_port.bare(m)"),
        # Of a condition on something else both sides mean the model.
        ("m = model.module if n > 1 else model", "m = model.module if n > 1 else model.module", "m"),
        ('m = getattr(model, "module", model)', "", "m"),
    ],
)
def test_a_model_that_is_taken_out(before: str, after: str, given: str) -> None:
    assert written(f"{before}\n{SAVE}") == f"{after or before}\n{SAVED.replace('m.state_dict', given + '.state_dict')}"


@pytest.mark.parametrize("value", ["model.module", 'getattr(model, "module", model)'])
def test_the_model_itself_stays_in_the_wrapper(value: str) -> None:
    found = written(f"model = {value}\nmodel.freeze()")
    assert found == f"model.module = {value}\nmodel.module.freeze()\n"


def test_a_function_goes_on_with_the_wrapper() -> None:
    """It would train without it from the second epoch on."""
    fit = """
        def fit(m):
            for epoch in range(3):
                for x in loader:
                    m(x).backward()
                    optimizer.step()
                if hasattr(m, "module"):
                    m = m.module
                m.freeze()
    """
    found = output(script(loop=f"{textwrap.dedent(fit)}\nfit(model)"))
    assert found.endswith("            m.module = m.module\n        m.module.freeze()\n\nfit(model)\n")


def test_what_a_test_says_is_not_wrapped_stays() -> None:
    test = 'if not hasattr(model, "module"):\n    model.freeze()'
    tail = f"{test}\nelif n:\n    model{{0}}.freeze()\nelse:\n    net.use(model{{0}})"
    assert written(tail.format("")) == tail.format(".module") + "\n"


def test_what_is_done_to_a_bare_model_alone_goes_on() -> None:
    tail = 'if not hasattr(model{0}, "module"):\n    model{0}.freeze()'
    assert written(tail.format("")) == tail.format(".module") + "\n"
    refused = 'if not hasattr(model, "module"):\n    raise ValueError("one card")'
    assert written(refused) == refused + "\n"


def test_wrappers_are_taken_off_one_by_one() -> None:
    tail = f'while hasattr(model, "module"):\n    model = model.module\nassert not isinstance(model, {DP})'
    found = written(tail)
    assert 'while hasattr(model.module, "module"):\n' in found
    assert f"assert not isinstance(model.module, {BOTH})\n" in found


IMPORT = f"from torch.nn.parallel import {DDP}"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (f"{IMPORT} as Many", "Many"),
        (f"from torch.nn.parallel.distributed import {DDP}", DDP),
        (f"try:\n    {IMPORT}\nexcept ImportError:\n    pass", f"torch.nn.parallel.{DDP}"),
        (f"class {DDP}: ...", f"torch.nn.parallel.{DDP}"),
        (f"def f({DDP}): ...", f"torch.nn.parallel.{DDP}"),
        (f"from apex.parallel import {DDP}", f"torch.nn.parallel.{DDP}"),
    ],
)
def test_the_name_of_the_wrapper_that_is_there(head: str, name: str) -> None:
    found = output(script(head=head, tail=f"m = isinstance(model, {DP})"))
    assert found.endswith(f"m = isinstance(model, ({DP}, {name}))\n")
    assert f"\n{IMPORT}\n" not in found


@pytest.mark.parametrize("head", ["", f"if net.many:\n    {IMPORT} as Many"])
def test_the_name_of_the_wrapper_is_imported(head: str) -> None:
    found = output(script(head=head, tail=f"m = isinstance(model, {DP})"))
    assert found.endswith(f"m = isinstance(model, {BOTH})\n") and found.count(f"\n{IMPORT}\n") == 1


def test_functions_that_only_ask() -> None:
    asks = "def wrapped(m):\n    return type(m) in (torch.nn.DataParallel,)\n"
    takes = "def plain(m):\n    return m.module if wrapped(m) else m\n"
    tail = f"{asks}\n\n{takes}\n\nif wrapped(model):\n    plain(model).freeze()"
    found = written(tail)
    assert f"    return isinstance(m, {BOTH})\n" in found
    assert "if wrapped(model):\n    plain(model.module).freeze()\n" in found


def test_classes_in_a_variable() -> None:
    head = f"KINDS = ({DP}, net)\nOTHERS = ({DP}, net)"
    found = output(script(head=head, tail="m = model.module if isinstance(model, KINDS) else model"))
    assert f"KINDS = ({DP}, {DDP}, net)\nOTHERS = ({DP}, net)\n" in found
    assert found.endswith("m = model.module if isinstance(model, KINDS) else model\n")


def test_a_model_in_data_parallel_is_taken_out_as_before() -> None:
    """The wrapper is where DataParallel was, and the program asks each what it asked the other."""
    model = "model = torch.nn.DataParallel(net())"
    tail = f"if isinstance(model, {DP}):\n    model = model.module\n{SAVE.replace('m.state', 'model.state')}"
    found = output(script(model=model, tail=tail))
    assert f"if isinstance(model, {BOTH}):\n    model = model.module\n" in found
    assert '    torch.save(model.state_dict(), "m.pt")\n' in found


def test_a_file_that_other_scripts_run() -> None:
    """There the model is not wrapped."""
    save = f'def save(m):\n    m = m.module if hasattr(m, "module") else m\n    {SAVE}'
    found = distributed(script(tail=f"{save}\n\nsave(model)"), files={"other.py": "import train\n"}).data.decode()
    assert 'm = m.module if hasattr(m, "module") else m\n' in found
    assert "save(npu_port.bare(model))\n" in found


def test_without_a_wrapper_nothing_changes() -> None:
    """Two backward passes over one forward pass: the gradients are averaged."""
    passes = "    loss = model(x)\n    loss.backward(retain_graph=True)\n    loss.backward()\n    optimizer.step()"
    loop = f"for x in loader:\n{passes}"
    tail = f'm = model.module if isinstance(model, {DP}) else model\nn = hasattr(model, "module")'
    found = output(script(loop=loop, tail=tail))
    assert "npu_port.average(optimizer)" in found and found.endswith(f"{tail}\n")
