"""Pairs of `--amp-flag`: where the option goes, and what follows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import check_noop, migrate
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts

KINDS = ("native", "apex")
PARSER = """
import argparse
import torch
from project import loader, net

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
args = parser.parse_args()
"""
LOOP = """
model = net.to("npu")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in loader:
    loss = model(x)
    loss.backward()
    optimizer.step()
"""
LINE = 'parser.add_argument("--amp", action="store_true", help="mixed precision on the NPU")\n'
LEVELS = (
    'parser.add_argument("--opt-level", default="O2", help="O1 or O2 of apex")\n'
    'parser.add_argument("--loss-scale", default="dynamic", help="a number, or dynamic")\n'
)


def lines(amp: str, indent: str = "") -> str:
    """The options that go in."""
    text = LINE + (LEVELS if amp == "apex" else "")
    return "".join(f"{indent}{line}\n" for line in text.splitlines())


def flagged(source: str, amp: str, **more: Any) -> str:
    """The output for `--amp-flag`, in which the same options change nothing."""
    result = migrate(source, amp=amp, amp_flag=True, **more)
    text = result.data
    settings = Settings(amp=amp, amp_flag=True)
    if "files" not in more:
        project = ProjectFacts.join([index_source(text, result.path, settings)])
        assert migrate_source(text, result.path, settings, project).data == text
    return text.decode()


def holds(text: str, amp: str, value: str) -> None:
    """What makes the precision reads the option."""
    wanted = [f'torch.amp.GradScaler("npu", enabled={value})', f"dtype=torch.float16, enabled={value})"]
    for words in wanted if amp == "native" else [f"enabled={value}, opt_level={value[:-4]}.opt_level"]:
        assert words in text, text


def stays(source: str, amp: str, **more: Any) -> None:
    """Nothing is written, and NPU743 says why."""
    result = check_noop(source, open_codes=["NPU743"], amp=amp, amp_flag=True, **more)
    assert "--amp-flag" in "".join(finding.help for finding in result.findings)


@pytest.mark.parametrize("amp", KINDS)
def test_a_flat_script(amp: str) -> None:
    text = flagged(PARSER + LOOP, amp)
    assert f'parser.add_argument("--lr", type=float)\n{lines(amp)}args = ' in text
    holds(text, amp, "args.amp")


@pytest.mark.parametrize("amp", KINDS)
@pytest.mark.parametrize(
    ("head", "line"),
    [
        (PARSER.replace('"', "'"), LINE.replace('"', "'")),
        (PARSER.replace('parser.add_argument("--lr", type=float)\n', ""), LINE),
        (PARSER.replace("parser.add_argument(", "group = parser.add_argument_group('x')\ngroup.add_argument("), LINE),
        (PARSER.replace("args = parser.parse_args()", "args, rest = parser.parse_known_args()"), LINE),
        (PARSER.replace("parser", "p"), LINE.replace("parser", "p")),
    ],
)
def test_parsers(head: str, line: str, amp: str) -> None:
    text = flagged(head + LOOP, amp)
    assert text.count(line) == 1
    holds(text, amp, "args.amp")


FUNCTIONS = """
import argparse
import torch
from project import loader, net


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    return parser.parse_args()


def train(SIGNATURE):
    model = net.to("npu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()


def main():
    args = options()
    train(CALL)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("amp", KINDS)
@pytest.mark.parametrize(
    ("signature", "call", "value"),
    [
        ("args", "args", "args.amp"),
        ("n, opt", "1, args", "opt.amp"),
        ("n, *, opt", "1, opt=args", "opt.amp"),
        ("args=None", "args", "args.amp"),
    ],
)
def test_parameters(signature: str, call: str, value: str, amp: str) -> None:
    text = flagged(FUNCTIONS.replace("SIGNATURE", signature).replace("CALL", call), amp)
    assert f"    {LINE}" in text
    holds(text, amp, value)


@pytest.mark.parametrize("amp", KINDS)
def test_options_that_a_function_returns_beside_others(amp: str) -> None:
    source = FUNCTIONS.replace("SIGNATURE", "args").replace("CALL", "args")
    source = source.replace("parser.parse_args()", "parser.parse_args(), 3").replace("args = opt", "args, n = opt")
    holds(flagged(source, amp), amp, "args.amp")


@pytest.mark.parametrize("amp", KINDS)
@pytest.mark.parametrize(
    ("signature", "call"),
    [("", ""), ("args", "vars(args)"), ("args=None", ""), ("args", "merged(args)"), ("*args", "args")],
)
def test_parameters_that_are_not_certain(signature: str, call: str, amp: str) -> None:
    stays(FUNCTIONS.replace("SIGNATURE", signature).replace("CALL", call), amp)


@pytest.mark.parametrize("amp", KINDS)
def test_parsers_of_functions_that_call_one_another(amp: str) -> None:
    source = FUNCTIONS.replace("SIGNATURE", "args").replace("CALL", "args")
    made = "def one():\n    return other()\n\n\ndef other():\n    return one()\n\n\ndef options"
    stays(source.replace("parser =", "parser = one()\n    parser =").replace("def options", made), amp)


@pytest.mark.parametrize("amp", KINDS)
def test_a_caller_without_the_options(amp: str) -> None:
    source = FUNCTIONS.replace("SIGNATURE", "args").replace("CALL", "args")
    source = source.replace("def main():\n", "def main():\n    train(None)\n")
    check_noop(source, open_codes=["NPU743"], amp=amp, amp_flag=True)


@pytest.mark.parametrize("amp", KINDS)
def test_spawned_processes(amp: str) -> None:
    source = FUNCTIONS.replace("SIGNATURE", "rank, world, args").replace(
        "train(CALL)", "torch.multiprocessing.spawn(train, nprocs=2, args=(2, args))"
    )
    holds(flagged(source, amp), amp, "args.amp")


TRAINER = """
import argparse
import torch
from project import loader, net


class Trainer:
    def __init__(self, model, args):
        self.args = args
        self.model = model.to("npu")
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self):
        for x in loader:
            loss = self.model(x)
            loss.backward()
            self.optimizer.step()


parser = argparse.ArgumentParser()
trainer = Trainer(net, parser.parse_args())
trainer.fit()
"""


@pytest.mark.parametrize("amp", KINDS)
def test_attributes(amp: str) -> None:
    text = flagged(TRAINER, amp)
    assert f"{lines(amp)}trainer = " in text
    assert "enabled=args.amp" in text
    if amp == "native":
        assert 'with torch.autocast("npu", dtype=torch.float16, enabled=self.args.amp):' in text


@pytest.mark.parametrize("amp", KINDS)
def test_the_option_is_in_another_file(amp: str) -> None:
    body = "\n\ndef options():\n    parser = argparse.ArgumentParser()\n    return parser.parse_args()\n"
    files = {"options.py": PARSER.partition("parser =")[0] + body}
    main = "import torch\nfrom options import options\nfrom project import loader, net\n\nargs = options()\n" + LOOP
    holds(flagged(main, amp, files=files), amp, "args.amp")
    text = flagged(files["options.py"], amp, files={"train.py": main}, path="options.py")
    assert f"{lines(amp, '    ')}    return" in text


@pytest.mark.parametrize("amp", KINDS)
def test_no_option_where_nothing_follows_it(amp: str) -> None:
    check_noop(PARSER, amp=amp, amp_flag=True)
    check_noop(PARSER + "torch.save(net.state_dict(), args.out)\n", amp=amp, amp_flag=True)


@pytest.mark.parametrize("amp", KINDS)
@pytest.mark.parametrize(
    "head",
    [
        "import torch\nfrom project import loader, net\n",
        PARSER.replace('"--lr"', '"--amp"'),
        PARSER.replace('"--lr"', '"--amp-level"'),
        PARSER.replace('"--lr"', '"--half", dest="amp"'),
        PARSER.replace("args =", "sub = parser.add_subparsers()\nargs ="),
        PARSER.replace("args =", "other = argparse.ArgumentParser()\nargs ="),
        PARSER.replace("args = parser.parse_args()", "args = vars(parser.parse_args())"),
        PARSER.replace("args = parser.parse_args()", "print(parser.parse_args())\nargs = parser.parse_args()"),
        PARSER + "args = load(args)\n",
    ],
)
def test_scripts_that_get_no_option(head: str, amp: str) -> None:
    stays(head + LOOP, amp)


def test_no_option_for_training_that_stays_in_float32() -> None:
    loss = LOOP.replace("model(x)", "torch.nn.functional.binary_cross_entropy(model(x), x)")
    stays_alone = check_noop(PARSER + loss, amp="native", amp_flag=True, open_codes=["NPU743"])
    assert not stays_alone.changed


@pytest.mark.parametrize("amp", KINDS)
def test_a_program_that_has_mixed_precision(amp: str) -> None:
    check_noop(PARSER + "with torch.autocast('npu'):\n    net()\n", amp=amp, amp_flag=True, open_codes=["NPU742"])


@pytest.mark.parametrize("option", ['"--opt-level"', '"--scale", dest="loss_scale"'])
def test_an_option_for_the_level_that_is_there_already_is_left_alone(option: str) -> None:
    text = flagged(PARSER.replace('"--lr"', option) + LOOP, "apex")
    assert LINE in text and "of apex" not in text
    assert 'enabled=args.amp, opt_level="O2", loss_scale="dynamic"' in text
