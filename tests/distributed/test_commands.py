"""Programs that train in one of several commands: `args.func(args)`, and a function of a table."""

from __future__ import annotations

import textwrap

import pytest

from tests.distributed.test_pairs import HEAD, distributed, left

COMMANDS = """\
import argparse


def train(args):
    loader = DataLoader(dataset, batch_size=8, shuffle=True)
    model = net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for x in loader:
            model(x).backward()
            optimizer.step()


def show(args):
    print(args)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="name")
"""
SUB = """\
one = commands.add_parser("train")
one.add_argument("--epochs", type=int)
one.set_defaults({0}=train)
commands.add_parser("show").set_defaults({0}=show)
args = parser.parse_args()
"""
TABLE = 'table = {{"train": train, "show": show}}\nargs = parser.parse_args()\n'


def ported(setup: str, call: str) -> str:
    body = textwrap.indent(f"{setup}{call}\n", "    ")
    result = distributed(f"{HEAD}{COMMANDS}{body}")
    assert not left(result)
    return result.data.decode()


@pytest.mark.parametrize(
    ("setup", "call"),
    [
        (SUB.format("func"), "args.func(args)"),
        (SUB.format("handler"), "raise SystemExit(args.handler(args))"),
        (SUB.format("func"), "code = args.func(args)"),
        (TABLE.format(), "table[args.name](args)"),
    ],
)
def test_the_command_that_trains(setup: str, call: str) -> None:
    written = ported(setup, call)
    assert "    loader = npu_port.shard(loader)\n" in written and "    model = npu_port.wrap(model)\n" in written
    assert f"    npu_port.start()\n    {call}\n" in written
    assert "    if npu_port.is_first():\n        print(args)\n" in written


def test_a_command_that_cannot_be_seen() -> None:
    body = textwrap.indent(f"{SUB.format('func')}args.other(args)\n", "    ")
    assert left(distributed(f"{HEAD}{COMMANDS}{body}")) == ["NPU332"]
