"""A card pack, made of a small program and started on the emulated card: as it is, and with planted differences."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from tests import forked
from transplt.base.errors import UsageError
from transplt.faces.cli.main import main as transplt
from transplt.proof.launch.options import RunOptions, Trace
from transplt.proof.prove.card_pack import HOST_MODULES, check_pack, write_pack
from transplt.proof.prove.projects import Project

ON_CARD = Path(__file__).parents[2] / "transplt" / "emulator" / "on_card"
PROGRAM = """\
import torch
import torch_npu
import torch.nn as nn

model = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(32, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 4))
model = model.npu()
words = torch.randint(3, 50, (32, 4))
data = torch.utils.data.TensorDataset(words, words.sum(1) % 4)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for words, targets in torch.utils.data.DataLoader(data, 8, shuffle=True):
    noise = torch.randn(8, 4, device="npu")
    loss = nn.functional.cross_entropy(model(words.npu()) + 0.1 * noise, targets.npu())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(open("notes.txt").read(), loss.item())
"""
#: A card on which relu adds something, log_softmax ends the process, and an embedding refuses its types; of training
#: only the first.
PLANTED = """\
import os
import sys

import torch
import torch_npu

library = torch.library.Library("aten", "IMPL")
library.impl("relu", lambda x: (x.cpu().relu() + 0.25).to("npu"), "PrivateUse1")
if sys.argv[0].endswith("card_operators.py"):

    def refuse(*args, **kwargs):
        raise RuntimeError("call aclnnEmbedding failed, error code is 161002. AclNN_Parameter_Error(EZ1001)")

    library.impl("embedding", refuse, "PrivateUse1")
    library.impl("_log_softmax", lambda *args: os.abort(), "PrivateUse1")
"""


def project(folder: Path, text: str = PROGRAM) -> Project:
    folder.mkdir()
    (folder / "train.py").write_text(text)
    (folder / "notes.txt").write_text("a note of the program")
    (folder / "pictures").mkdir()
    (folder / "pictures" / "one.bin").write_bytes(b"\0" * 9)
    return Project(folder, "train.py", ("pictures",))


def options(**more: Any) -> RunOptions:
    own = forked.torch_npu()
    return RunOptions(
        "train.py", (), sys.executable, random="cpu", timeout=300.0, trace=Trace(), threads=1, torch_npu=own, **more
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack of PROGRAM."""
    top = tmp_path_factory.mktemp("packed")
    found = write_pack(project(top / "program"), options(), top / "pack", lambda text: None)
    assert (found.steps, found.stopped) == (2, "") and found.operators > 15
    return top / "pack"


@pytest.fixture
def pack(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "pack"))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """`card_pack.py`, which needs no torch."""
    spec = importlib.util.spec_from_file_location("card_pack_under_test", ON_CARD / "card_pack.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def started(pack: Path, *words: str) -> dict[str, Any]:
    """The file that the pack writes when it is started on the emulated card."""
    forked.transplt_run([*words, str(pack / "card_pack.py")], pack.parent)
    found: dict[str, Any] = json.loads((pack / "card_result.json").read_text())
    return found


def card_read(pack: Path) -> tuple[int, str]:
    # It writes what the card did into the user's settings, which a later run would refuse by.
    settings = {"XDG_CONFIG_HOME": str(pack.parent / "settings")}
    words = ["card-read", str(pack / "card_result.json")]
    done = CliRunner(env=settings).invoke(transplt, words, standalone_mode=False)
    assert done.exception is None
    return int(done.return_value), done.output


def test_what_a_module_of_the_pack_imports_of_ours_is_in_the_pack() -> None:
    ours = {f"transplt.{name}".replace("/", ".") for name in HOST_MODULES}
    texts = {name: (ON_CARD.parents[1] / f"{name}.py").read_text() for name in HOST_MODULES}
    heads = {name: re.findall(r"^(?:from|import) (transplt[\w.]*)", text, re.MULTILINE) for name, text in texts.items()}
    assert {name: found for name, heads_of in heads.items() if (found := {*heads_of} - ours)} == {}


def test_programs_are_compiled_without_our_future_import() -> None:
    """Its annotations would be texts: argparse would get "int" from the fields of a dataclass, and stop."""
    texts = {path: path.read_text() for path in ON_CARD.parent.rglob("*.py")}
    calls = [(path, ast.unparse(node)) for path, text in texts.items() for node in ast.walk(ast.parse(text))
             if isinstance(node, ast.Call) and ast.unparse(node.func) == "compile"]  # fmt: skip
    of_programs = [(path, call) for path, call in calls if "'exec'" in call]
    assert len(of_programs) >= 6 and [each for each in of_programs if "dont_inherit=True" not in each[1]] == []


@pytest.mark.torch
def test_the_pack_holds_the_program_and_no_data(made: Path) -> None:
    names = {path.relative_to(made).as_posix() for path in made.rglob("*") if path.is_file()}
    assert {name for name in names if not name.startswith("on_card/")} == {
        "card_pack.py", "pack.json", "recorded.json", "README.txt", "program/train.py", "program/notes.txt",
    }  # fmt: skip
    lib = {name.removeprefix("on_card/lib/transplt/").removesuffix(".py") for name in names if "/lib/" in name}
    assert {name for name in lib if not name.endswith(("__init__", ".json"))} == {*HOST_MODULES}
    settings = json.loads((made / "pack.json").read_text())
    assert (settings["main"], settings["data"], settings["steps"]) == ("train.py", ["pictures"], 2)


@pytest.mark.torch
def test_calls_are_recorded_with_types_shapes_and_ranges(made: Path) -> None:
    recorded = json.loads((made / "recorded.json").read_text())
    calls = {call["op"]: call for call in recorded["calls"]}
    table, words = calls["aten::embedding"]["args"][:2]
    assert (table["T"], table["s"], table["card"]) == ("float32", [50, 8], True)
    assert (words["T"], words["s"], words["lo"] >= 3, words["hi"] <= 49) == ("int64", [8, 4], True, True)
    assert calls["aten::embedding_dense_backward"]["types"] == ["float32", "int64"]
    assert "aten::view" not in calls and "aten::t" not in calls  # they start no kernel
    assert not any("dropout" in name for name in calls)
    assert [len(step["gradients"]) for step in recorded["steps"]] == [5, 5]
    assert all(step["losses"][0] > 0 for step in recorded["steps"])


@pytest.mark.torch
def test_calls_are_drawn_again_and_judged(program: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert program("card_calls.py").stdout == "ok\n"


@pytest.mark.torch
def test_on_the_same_card_all_holds(pack: Path) -> None:
    result = started(pack)
    assert {each["state"] for each in result["operators"]} <= {"equal", "ran"}
    assert len([each for each in result["operators"] if each["state"] == "equal"]) > 15
    assert (result["training"]["state"], result["training"]["message"]) == ("equal", "")
    assert [step["losses"] == step["recorded"] for step in result["training"]["steps"]] == [True, True]
    assert result["about"]["emulated"] is True
    assert all(each["bytes"] >= 0 and len(each["ms"]) == 2 for each in result["operators"] if "ms" in each)
    checks = {check["what"]: check["state"] for check in result["host"]["checks"]}
    assert checks["torch"] == "fine" and checks["driver"] == "missing"
    code, told = card_read(pack)
    assert code == 0 and "training: 2 steps as recorded" in told and "This is the emulated card" in told


@pytest.mark.torch
@pytest.mark.slow
def test_planted_differences_are_named(pack: Path, tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(PLANTED)
    result = started(pack, "--stubs", str(planted))
    wrong = {each["op"]: each["state"] for each in result["operators"] if each["state"] not in ("equal", "ran")}
    assert wrong == {"aten::relu": "differs", "aten::embedding": "raised", "aten::_log_softmax": "raised"}
    code, told = card_read(pack)
    assert code == 1
    assert "differs   aten::relu(float32[8, 16]): off by " in told
    assert "raised    aten::embedding(float32[50, 8], int64[8, 4]): RuntimeError: call aclnnEmbedding failed" in told
    assert "raised    aten::_log_softmax(float32[8, 4]): the process ended: signal 6" in told
    assert "training: differs from the recording" in told and "    loss: recorded " in told


@pytest.mark.slow
@pytest.mark.torch
def test_a_program_that_stops_on_the_card_is_named_with_its_line(pack: Path) -> None:
    text = (pack / "program" / "train.py").read_text()
    (pack / "program" / "train.py").write_text(text.replace("open(", "open('gone' if optimizer.state else "))
    result = started(pack)["training"]
    assert (result["state"], len(result["steps"])) == ("stopped", 1)
    assert result["message"].startswith("train.py:16: FileNotFoundError")


@pytest.mark.torch
def test_a_program_that_reaches_no_card_gives_no_pack(tmp_path: Path) -> None:
    still = project(tmp_path / "still", "import torch\nprint(torch.ones(2) + 1)\n")
    with pytest.raises(UsageError, match="nothing was recorded of the migrated program: it called no operator"):
        write_pack(still, options(), tmp_path / "pack", lambda text: None)
    assert {path.name for path in tmp_path.iterdir()} == {"still"}


@pytest.mark.slow
@pytest.mark.torch
def test_stand_ins_go_with_the_pack(tmp_path: Path) -> None:
    """The data sets of torchvision are random pictures in the recording; on a card, without the emulator, too."""
    text = PROGRAM.replace("words = torch.randint(3, 50, (32, 4))\n", (
        "import torchvision\n"
        "pictures = torchvision.datasets.MNIST('none')\n"
        "assert len(pictures) == 12\n"
        "words = pictures.data[:, :2, :2].reshape(12, 4).long() % 50\n"
    ))  # fmt: skip
    write_pack(project(tmp_path / "program", text), options(stubs=("torchvision=12",)), tmp_path / "pack", print)
    code = (
        "import sys; sys.path.insert(0, 'on_card'); import json, card_training as t;"
        "t._stand_ins(json.load(open('pack.json'))); import torchvision;"
        "print(len(torchvision.datasets.MNIST('none')), 'npu_emulator.stubs' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path / "pack", capture_output=True, text=True, check=False
    )
    assert done.stdout == "12 True\n", done.stderr


def test_where_a_pack_may_go(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    assert check_pack(tmp_path / "new", tmp_path / "program") == tmp_path / "new"
    with pytest.raises(UsageError, match="exists; name a new folder"):
        check_pack(tmp_path / "program", tmp_path)
    with pytest.raises(UsageError, match=r"lies in .*program; name a folder outside it"):
        check_pack(tmp_path / "program" / "pack", tmp_path / "program")


STEP = {"optimizer": 0, "step": 1, "losses": [2.0], "gradients": [1.0, 3.0, 0.00001, None],
        "parameters": [5.0, 7.0, 1.0, 2.0], "seconds": 1.0}  # fmt: skip
RECORDED: dict[str, Any] = {"steps": [STEP], "calls": [{"types": ["float32"]}]}
HALF: dict[str, Any] = {"steps": [STEP], "calls": [{"types": ["float32", "bfloat16"]}]}


@pytest.mark.parametrize(
    ("recorded", "here", "state", "off"),
    [
        (RECORDED, {}, "equal", []),
        (RECORDED, {"losses": [2.009]}, "equal", []),
        (RECORDED, {"losses": [2.02]}, "differs", ["loss"]),
        (HALF, {"losses": [2.02]}, "equal", []),
        (HALF, {"losses": [2.1]}, "differs", ["loss"]),
        (RECORDED, {"losses": [float("nan")]}, "differs", ["loss"]),
        (RECORDED, {"losses": []}, "differs", ["number of losses"]),
        (RECORDED, {"gradients": [1.02, 3.0, 0.0, None]}, "equal", []),
        (RECORDED, {"gradients": [1.2, 3.0, 0.0, None]}, "differs", ["gradient 0"]),
        (RECORDED, {"gradients": [1.0, 3.0, 0.0, 0.5]}, "differs", ["gradient 3"]),
        (RECORDED, {"parameters": [5.0, 7.1, 1.0, 2.0]}, "differs", ["parameter 1"]),
        # Adam takes a step of full length of a gradient that is rounding, and none where there is no gradient.
        (RECORDED, {"parameters": [5.0, 7.0, 9.0, 9.0]}, "equal", []),
    ],
)
def test_steps_are_held_against_the_recording(
    recorded: dict[str, Any], here: dict[str, Any], state: str, off: list[str], script: ModuleType
) -> None:
    found = script.compared(recorded, [{**STEP, **here}], {"stopped": "", "bytes": 0})
    assert (found["state"], [each["what"] for each in found["steps"][0]["off"]]) == (state, off)


def test_fewer_steps_than_recorded_differ(script: ModuleType) -> None:
    found = script.compared(RECORDED, [], {"stopped": ""})
    assert (found["state"], found["message"]) == ("differs", "0 of 1 steps")
    found = script.compared(RECORDED, [], {"stopped": "train.py:3: RuntimeError: no"})
    assert (found["state"], found["message"]) == ("stopped", "train.py:3: RuntimeError: no")


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program for CUDA, `cuda`, in a folder that is the current one."""
    (tmp_path / "cuda").mkdir()
    text = PROGRAM.replace("import torch_npu\n", "").replace("npu", "cuda")
    (tmp_path / "cuda" / "train.py").write_text(text.replace('open("notes.txt").read(), ', ""))
    monkeypatch.chdir(tmp_path)
    yield tmp_path


@pytest.mark.slow
@pytest.mark.torch
def test_prove_and_a_migration_write_packs(two: Path) -> None:
    call: Callable[[list[str]], Any] = lambda words: CliRunner().invoke(transplt, words, standalone_mode=False)  # noqa: E731
    done = call(["-i", "cuda", "-o", "out", "--prove", "train.py", "--card-pack", "one"])
    assert done.return_value == 0 and "card pack: " in done.output and "2 training steps" in done.output, done.output
    done = call(["prove", "cuda", "out/cuda_msft", "--main", "train.py", "--card-pack", "other"])
    assert done.return_value == 0 and "2 training steps" in done.output, done.output
    for name in ("one", "other"):
        recorded = json.loads((two / name / "recorded.json").read_text())
        assert "aten::embedding" in {call["op"] for call in recorded["calls"]}
        assert '"npu"' in (two / name / "program" / "train.py").read_text() or ".npu()" in (
            two / name / "program" / "train.py"
        ).read_text()


@pytest.mark.slow
@pytest.mark.torch
def test_a_port_packs_the_tip_of_its_branch(two: Path) -> None:
    for words in ("init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm first"):
        subprocess.run(["git", "-C", "cuda", *words.split()], check=True)
    for name in ("user.name", "user.email"):
        subprocess.run(["git", "-C", "cuda", "config", name, "a@b"], check=True)
    words = ["port", "cuda", "--prove", "train.py", "--card-pack", "pack"]
    done = CliRunner().invoke(transplt, words, standalone_mode=False)
    assert done.return_value == 0 and "2 training steps" in done.output, done.output
    told = subprocess.run(["git", "-C", "cuda", "show", "npu-port:train.py"], check=True, capture_output=True).stdout
    assert (two / "pack" / "program" / "train.py").read_bytes() == told


@pytest.mark.parametrize(
    "words", [["-i", "cuda", "-o", "out", "--card-pack", "pack"], ["port", "cuda", "--card-pack", "pack"]]
)
def test_a_pack_goes_with_a_proof(words: list[str], two: Path) -> None:
    done = CliRunner().invoke(transplt, words, standalone_mode=False)
    assert isinstance(done.exception, UsageError) and "--prove" in str(done.exception)
    assert {path.name for path in two.iterdir()} == {"cuda"}
