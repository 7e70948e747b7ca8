"""A project that asks for no card is told so, and is not sent to a proof that has nothing to compare."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.running import in_process as transplt

NETWORK = "import torch\nmodel = torch.nn.Linear(2, 2)\n"


def test_requirements_of_what_asks_for_no_card_may_stay(tmp_path: Path) -> None:
    project = tmp_path / "net"
    project.mkdir()
    (project / "train.py").write_text(f"{NETWORK}model(torch.ones(2)).sum().backward()\n")
    (project / "setup.py").write_text(
        "from setuptools import setup\nsetup(install_requires=['torch==1.3.1', 'matplotlib==3.1.1'])\n"
    )
    assert "nothing left to do" in transplt("-i", str(project), "-o", str(tmp_path / "out"), cwd=tmp_path).stderr
    (project / "train.py").write_text(f"{NETWORK}model.cuda()\n")
    assert "stops at import" in transplt("-i", str(project), "-o", str(tmp_path / "new"), cwd=tmp_path).stderr


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (f"{NETWORK}model(torch.ones(2)).sum().backward()\n", True),
        (f"{NETWORK}import gym\nenv = gym.make('CartPole-v1')\nenv.seed(1)\n", True),
        (f"{NETWORK}model.to('npu')\n", False),  # ported already
        (f"{NETWORK}model.to('mps')\n", False),
        (f"{NETWORK}model.cuda()\n", False),
        (f"{NETWORK}from accelerate import Accelerator\nmodel = Accelerator().prepare(model)\n", False),
        (f"{NETWORK}import lightning as L\nL.Trainer(max_epochs=1).fit(model)\n", False),
        (f"{NETWORK}from transformers import Trainer\nTrainer(model=model).train()\n", False),
        (f"{NETWORK}import apex\n", False),
        ("print('no torch')\n", False),
    ],
)
def test_what_is_said_of_a_card(tmp_path: Path, source: str, told: bool) -> None:
    project = tmp_path / "net"
    project.mkdir()
    (project / "train.py").write_text(source)
    said = transplt("-i", str(project), "-o", str(tmp_path / "out"), cwd=tmp_path).stderr
    assert ("nothing in this project asks for a card: it runs on the CPU, as before; to use an NPU" in said) == told
    assert ("transplt prove" in said) == (".cuda()" in source)  # where something was edited


SETUP = "from setuptools import setup\nsetup(install_requires=['torch==1.3.1', 'matplotlib==3.1.1'])\n"
LISTED = "torch==1.8.1\nmatplotlib==3.1.1\n"
RAISED = "; before that, raise the pins that are too old for torch_npu: torch, matplotlib"
CPU = f"{NETWORK}model(torch.ones(2)).sum().backward()\n"


@pytest.mark.parametrize(
    ("source", "name", "requirements", "stops", "told"),
    [
        (CPU, "setup.py", SETUP, False, RAISED),
        (f"{CPU}import scipy.misc\nscipy.misc.imread('x')\n", "setup.py", SETUP, True, RAISED),
        (f"{NETWORK}model.cuda()\n", "setup.py", SETUP, True, ""),
        (CPU, "requirements.txt", LISTED, True, ""),  # edited: the new torch needs a newer Python
        (CPU, "setup.py", SETUP.replace("1.3.1", "2.4.0").replace("==3.1.1", ""), False, ".to('npu')"),
    ],
)
def test_pins_stop_what_is_moved(
    tmp_path: Path, source: str, name: str, requirements: str, stops: bool, told: str
) -> None:
    project = tmp_path / "net"
    project.mkdir()
    (project / "train.py").write_text(source)
    (project / name).write_text(requirements)
    said = transplt("-i", str(project), "-o", str(tmp_path / "out"), cwd=tmp_path).stderr
    assert ("otherwise the program stops" in said) == stops
    assert f"{told}\n" in said and ("before that" in said) == ("before that" in told)
