"""Checkpoints that torch.load refuses since torch 2.6."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate
from transplt.base.settings import TORCH_VERSIONS

HEAD = "import torch\nimport torch as t\n\nuse_cuda = True\n"


def told(body: str, version: str = TORCH_VERSIONS[-1]) -> list[str]:
    """What NPU154 says of a function with this body."""
    source = f"{HEAD}\n\ndef f(args, model, other, path):\n{textwrap.indent(body, '    ')}\n"
    result = migrate(source, torch_version=version)
    assert not result.changed
    return [finding.message.partition("holds ")[2] for finding in result.findings if finding.code == "NPU154"]


@pytest.mark.parametrize(
    ("body", "holds"),
    [
        ("path = args.output\ntorch.save({'args': args, 'model': model.state_dict()}, path)", "args"),
        ("state = {'epoch': 1, 'args': args}\nif args.rank == 0:\n    torch.save(state, path)", "args"),
        ("torch.save(dict(args=args), args.output)", "args"),
        ("model.load_state_dict(other)\nt.save({'model': model}, path)", "model"),
        ("model.eval()\ntorch.save(model, path)", "model"),
        ("torch.save(obj={'a': args, 'm': model}, f=f'{args.lr}-{model.training}')", "args, model"),
    ],
)
def test_objects(body: str, holds: str) -> None:
    assert told(body) == [holds]
    assert told(body, "2.6") == [holds]
    assert told(body, "2.5") == []


@pytest.mark.parametrize(
    "body",
    [
        "torch.save({'args': args}, path)",
        "torch.save({'args': vars(args), 'lr': args.lr}, path)",
        "lr = args.lr\nargs = vars(args)\ntorch.save({'args': args}, path)",
        "model.eval()\nstate = model.state_dict()\ntorch.save(state, path)",
        "model.eval()\nmodel = model.state_dict()\ntorch.save({'model': model}, path)",
        "torch.save({'x': other.cpu(), 'y': other}, path)\nother.shape",
        "other.items()\ntorch.save(other, path)",
        "path.exists()\ntorch.save(other, path)",
        "args.x\nother.save({'args': args}, path)",
        "args.x\ntorch.save({'args': args}, path)\ntorch.load(path, weights_only=False, map_location='cpu')",
        "torch.save(*other)",
        "torch.save()",
        "save = torch.save",
    ],
)
def test_what_loads_again(body: str) -> None:
    assert told(body) == []


def test_attributes_of_self() -> None:
    source = """
        import torch

        use_cuda = True


        class Trainer:
            def save(self, path):
                torch.save({"args": self.args, "best": self.best, "steps": self.steps, "log": other.log}, path)

            def run(self):
                self.best.append(self.args.lr)
        """
    (found,) = [each for each in migrate(source).findings if each.code == "NPU154"]
    assert found.message.endswith("holds self.args")
    assert found.open


@pytest.mark.parametrize(("forwarded", "count"), [("*args, **kwargs", 1), ("state, path", 0)])
def test_a_function_that_hands_everything_on(forwarded: str, count: int) -> None:
    source = f"""
        import torch

        use_cuda = True


        def save_on_master({forwarded}):
            if is_main_process():
                torch.save({forwarded})


        def save(args, model):
            to_save = {{"model": model.state_dict(), "args": args}}
            save_on_master(to_save, args.output_dir)
        """
    found = [each for each in migrate(source).findings if each.code == "NPU154"]
    assert len(found) == count
