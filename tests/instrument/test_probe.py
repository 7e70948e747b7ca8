"""`transplt_probe.py` in a process: what it asks of the recorder, which is a stand-in here, and what it makes alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROBE = ROOT / "transplt" / "precision" / "instrument"
pytestmark = pytest.mark.torch

#: What the recorders are asked, as a list of words.
STAND_IN = """
calls = []
def seed_all(seed=1234, mode=False, rm_dropout=False):
    calls.append(f"seed_all {seed} {mode} {rm_dropout}")
def hook(module, *rest):
    pass
class PrecisionDebugger:
    def __init__(self, task, dump_path, level, step):
        calls.append(f"made {task} {level} {step}")
    def start(self, model=None):
        several = model if isinstance(model, list) else [model]
        for each in several:
            if each is not None and not each._forward_hooks:
                each.register_forward_hook(hook)
        calls.append("start " + " ".join(type(each).__name__ for each in several))
    def stop(self):
        calls.append("stop")
    def step(self):
        calls.append("step")
"""
PTDBG = """
from msprobe.pytorch import calls
__version__ = "1.0"
def seed_all(seed=1234, mode=False): pass
def acc_cmp_dump(): pass
def overflow_check(): pass
def set_dump_path(path, dump_tag=""): calls.append("path " + "/".join(path.split("/")[-3:]))
def register_hook(model, hook, **more): calls.append(f"hook {hook.__name__} {more}")
def set_dump_switch(switch, mode="all"): calls.append(f"switch {switch} {mode}")
def set_overflow_check_switch(switch): calls.append(f"check {switch}")
"""
TRAINERS = {
    "transformers.py": "class TrainerCallback: pass\n",
    "lightning/__init__.py": "",
    "lightning/pytorch.py": "class Callback: pass\nclass Trainer:\n    def __init__(self): self.callbacks = []\n",
}

SCRIPT = """
import copy, io, json, sys
import transplt_probe
transplt_probe.begin(seed=7, steps=[0, 1], level="L1")
import torch
from msprobe.pytorch import calls
told = {"begun": [*calls]}

def since(name, function):
    calls.clear()
    try:
        function()
    except ZeroDivisionError:
        pass
    told[name] = [*calls]

def leaving():
    for x in transplt_probe.steps([0, 1, 2, 3]):
        if x == 0:
            continue
        if x == 2:
            break

def failing():
    for x in transplt_probe.steps([0]):
        1 / x

def returning():
    for x in transplt_probe.steps([0]):
        return x

def waiting():
    for _ in range(2):
        transplt_probe.step()
        for x in transplt_probe.steps([0, 1]):
            pass
    transplt_probe._stop()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

def stepping():
    for x in transplt_probe.steps([0]):
        pass

for each in (leaving, failing, returning, waiting):
    since(each.__name__, each)
generator, critic = Net(), torch.nn.Linear(2, 1)
given = [*generator.parameters(), *critic.parameters(), *generator.layer.parameters()]
since("gan", stepping)
torch.save(generator, io.BytesIO())
told["hooks"] = [len(generator._forward_hooks), len(copy.deepcopy(generator)._forward_hooks)]
del critic
since("one network", stepping)

class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

del generator, given
whole = Whole()
parts = [*whole.one.parameters(), *whole.other.parameters()]
since("parts of one network", stepping)
del whole, parts

class Trainer:
    def add_callback(self, callback):
        self.callback = callback

trainer = transplt_probe.recorded(Trainer())
def trained():
    trainer.callback.on_step_begin(None, None, None, model=1)
    trainer.callback.on_step_end(None, None, None)
since("Trainer", trained)
from lightning import pytorch as pl
other = transplt_probe.recorded(pl.Trainer())
def fitted():
    other.callbacks[0].on_train_batch_start(None, None, None, 0)
    other.callbacks[0].on_train_batch_end(None, None, None, None, 0)
since("Lightning", fitted)
transplt_probe.recorded(object())

def drawn(device):
    torch.manual_seed(3)
    g = torch.Generator(device).manual_seed(5)
    kept = torch.full((3,), 0.5, device=device)
    made = [
        torch.randn(3, device=device), torch.randint(0, 9, (3,), device=device), torch.rand_like(kept),
        torch.empty(3, device=device).normal_(), torch.bernoulli(kept), torch.multinomial(kept, 2),
        torch.randperm(4, device=device, generator=g), torch.normal(kept, kept), kept.clone().bernoulli_(kept),
        torch.randn(3, device=device, requires_grad=True).detach(),
        torch.distributions.Normal(kept, kept).sample(), torch.nn.functional.gumbel_softmax(kept),
    ]
    assert all(each.device.type == device for each in made)
    torch.set_default_device(device)
    made.append(torch.rand(2))
    assert made[-1].device.type == device
    torch.set_default_device("cpu")
    return [each.tolist() for each in made]
told["drawn"] = [drawn("cpu"), drawn("npu")]

F = torch.nn.functional
x = torch.randn(2, 4, 4)
attention = torch.nn.MultiheadAttention(4, 2, dropout=0.9)
lstm = torch.nn.LSTM(4, 4, 2, dropout=0.9)
layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.9)
told["dropped"] = [
    torch.equal(F.dropout(x, 0.9, training=True), x),
    torch.equal(torch.nn.AlphaDropout(0.9)(x), x),
    torch.equal(torch.nn.Dropout1d(0.9)(x), x),
    torch.equal(attention(x, x, x)[0], attention(x, x, x)[0]),
    torch.equal(lstm(x)[0], lstm(x)[0]),
    torch.equal(layer(x), layer(x)),
    torch.equal(F.scaled_dot_product_attention(x, x, x, dropout_p=0.9), F.scaled_dot_product_attention(x, x, x)),
]
for task in ("statistics", "overflow"):
    since(f"ptdbg {task}", lambda: transplt_probe.begin(api="ptdbg", task=task, steps=[1]))
    since(f"ptdbg {task} steps", lambda: [*transplt_probe.steps([0, 1])])
import ptdbg_ascend
del ptdbg_ascend.__version__
transplt_probe.begin(api="ptdbg", steps=[0])
since("ptdbg without a version", lambda: [*transplt_probe.steps([0])])
transplt_probe._recorder = None
transplt_probe._last = transplt_probe._done - 1
told["ended"] = False
try:
    for x in transplt_probe.steps([0]):
        told["ended"] = None
except SystemExit as error:
    told["ended"] = error.code
json.dump(told, sys.stdout)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("probe")
    files = {"msprobe/__init__.py": "", "msprobe/pytorch.py": STAND_IN, "ptdbg_ascend.py": PTDBG, **TRAINERS}
    for name, text in {**files, "script.py": SCRIPT}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, PROBE))), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "transplt.proof", str(folder / "script.py")]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("{"), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    answer["said"] = done.stderr
    return answer


STEP = ["stop", "step"]


def test_the_recorder_is_seeded_and_made_with_what_was_asked(told: dict[str, Any]) -> None:
    assert told["begun"] == ["seed_all 7 False False", "made statistics L1 [0, 1]"]


@pytest.mark.parametrize(
    ("name", "steps"),
    [("leaving", 3), ("failing", 1), ("returning", 1), ("waiting", 2), ("Trainer", 1), ("Lightning", 1)],
)
def test_each_step_begins_and_ends_however_it_is_left(name: str, steps: int, told: dict[str, Any]) -> None:
    starts = [call for call in told[name] if call.startswith("start")]
    assert told[name] == [each for start in starts for each in (start, *STEP)] and len(starts) == steps


def test_the_outermost_networks_that_are_alive_are_recorded(told: dict[str, Any]) -> None:
    assert told["gan"] == ["start Net Linear", *STEP]
    assert told["one network"] == ["start Net", *STEP]
    assert told["parts of one network"] == ["start Whole", *STEP]


def test_a_network_is_saved_and_copied_without_hooks_of_the_recorder(told: dict[str, Any]) -> None:
    assert told["hooks"] == [1, 0]


def test_of_what_takes_no_callbacks_nothing_is_recorded_and_that_is_said(told: dict[str, Any]) -> None:
    assert "nothing is recorded of object" in told["said"]


def test_random_tensors_are_those_of_the_host(told: dict[str, Any]) -> None:
    on_host, on_npu = told["drawn"]
    assert on_npu == on_host


def test_nothing_is_dropped(told: dict[str, Any]) -> None:
    assert told["dropped"] == [True] * 7


def test_it_ends_behind_the_last_step_where_that_is_asked_for(told: dict[str, Any]) -> None:
    assert told["ended"] == 0 and "are recorded" in told["said"]


def test_ptdbg_that_names_no_version(told: dict[str, Any]) -> None:
    assert told["ptdbg without a version"][0] == "path step0_v0/rank0/dump.pkl"


def test_ptdbg_is_hooked_once_and_switched_for_each_step_that_is_asked_for(told: dict[str, Any]) -> None:
    assert told["ptdbg statistics"][1:] == ["hook acc_cmp_dump {'rank': 0}", "switch OFF api_stack"]
    steps = ["path step1_v1.0/rank0/dump.pkl", "switch ON api_stack", "switch OFF api_stack"]
    assert told["ptdbg statistics steps"] == steps
    assert told["ptdbg overflow"][1:] == ["hook overflow_check {'rank': 0}", "check OFF"]
    assert told["ptdbg overflow steps"] == ["path step1_v1.0/rank0/dump.pkl", "check ON", "check OFF"]
