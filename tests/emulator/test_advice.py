"""What a stopped run says of what is missing around it, with the command to type."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.emulator.test_report import process, raised
from transplt.base.errors import UsageError
from transplt.base.render.proofs import Seen
from transplt.faces.cli.main import main as transplt
from transplt.proof.launch.advice import Asked, advice, foretold, missing_packages, smaller_words
from transplt.proof.launch.interpreter import install_with
from transplt.proof.launch.options import RunOptions


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A migrated project `out/net`, whose parent's parent is the current folder."""
    folder = tmp_path / "out" / "net"
    for each in ("data", "models", "scripts"):
        (folder / each).mkdir(parents=True)
    (folder / "data" / "train.csv").write_text("")
    (folder / "tools.py").write_text("")
    (folder / "models" / "layers.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return folder


def told(
    root: Path, reason: str, *, command: str = "run", stubs: tuple[str, ...] = (), writes: bool = False,
    known: tuple[str, ...] = (), **values: Any,
) -> list[str]:  # fmt: skip
    options = RunOptions("out/net/main.py", (), "/py/python", stubs=stubs)
    kind, _, message = reason.partition(": ")
    asked = Asked(command, options, root, root if command == "prove" else Path.cwd(), ("--python",))
    error = {**raised(kind, message), **({"writes": True} if writes else {})}
    return advice(asked, 1, [process(exception=error, **values)], known)


STAND_IN = "to use random pictures and untrained models (torchvision=256 for 256 pictures in each data set), or "
STAND_IN += "install torchvision: /py/python -m pip install torchvision"
SETUP = "install all that the project requires: transplt run --setup out/net; or "
BRINGS = f"{SETUP}install yaml: /py/python -m pip install PyYAML, or use --python with an environment "
OWN = "is a module of the project, in its top folder"
BRINGS += "that has PyTorch as well"


@pytest.mark.parametrize(
    ("reason", "command", "stubs", "line"),
    [
        ("No module named 'torchvision'", "run", (), f"add --stubs torchvision before SCRIPT {STAND_IN}"),
        ("No module named 'torchvision.datasets'", "prove", (), f"add --stubs torchvision {STAND_IN}"),
        ("No module named 'yaml'", "run", (), BRINGS),
        ("No module named 'yaml.x'", "prove", (), BRINGS),
        ("No module named 'models'", "run", (), f"models {OWN}: cd out/net && transplt run ... -m main ..."),
        ("No module named 'tools'", "prove", (),
         f"tools.py {OWN}: PYTHONPATH=. transplt prove ..., since each run starts there"),
        ("No module named 'layers'", "run", (),
         "layers.py is a module of the project, in models: PYTHONPATH=out/net/models transplt run ..."),
        ("No module named 'layers'", "prove", (),
         "layers.py is a module of the project, in models: PYTHONPATH=models transplt prove ..."),
        ("No module named 'spconv'", "prove", (), "spconv is built for CUDA, and cannot be loaded here: write "
         "stand-ins for what the script uses of it, and name their file with --stubs"),
    ],
)  # fmt: skip
def test_a_missing_module(reason: str, command: str, stubs: tuple[str, ...], line: str, root: Path) -> None:
    assert told(root, f"ModuleNotFoundError: {reason}", command=command, stubs=stubs) == [line]


def test_what_else_is_missing_is_told_at_once(root: Path) -> None:
    """What loading the script leads to, in its own modules too; not what a function imports, nor what may fail."""
    (root / "requirements.txt").write_text("einops==0.7\n")
    (root / "main.py").write_text(
        "import cv2, torch, json\nfrom tools import a\nfrom models.net import Net\nimport no_such_a\n"
        "try:\n    import no_such_b\nexcept ImportError:\n    no_such_b = None\ndef f():\n    import no_such_c\n"
    )
    (root / "tools.py").write_text("from no_such_d.sub import x\nimport apex, torch_npu, spconv, pytest\n")
    (root / "models" / "net.py").write_text("from .layers import y\nfrom . import layers\n")
    (root / "models" / "layers.py").write_text("import no_such_e as e, torchvision.models\n")
    options = RunOptions("out/net/main.py", (), sys.executable, stubs=("torchvision",))
    asked = Asked("run", options, root, Path.cwd())
    error = raised("ModuleNotFoundError", "No module named 'no_such_a'")
    lines = advice(asked, 1, [process(exception=error)])
    names = [name for name in ("cv2", "no_such_a", "no_such_d", "no_such_e") if find_spec(name) is None]
    names.sort(key=lambda name: name != "no_such_a")
    what = " ".join("opencv-python-headless" if name == "cv2" else name for name in names)
    start = f"install {', '.join(names[:-1])} and {names[-1]}, by its line in requirements.txt where it has one"
    assert lines == [
        "spconv is built for CUDA, and cannot be loaded here: write stand-ins for what the script uses of it, and "
        "name their file with --stubs before SCRIPT",
        f"{SETUP}{start}: {sys.executable} -m pip install {what}",
    ]


STARTED = "the script started in the current folder"
FILE = "FileNotFoundError: [Errno 2] No such file or directory: "


@pytest.mark.parametrize(
    ("path", "command", "line"),
    [
        ("./data/train.csv", "run",
         f"data is in out/net, and {STARTED}: cd out/net && transplt run ... main.py ..."),
        # What the script writes: only its folder can be there.
        ("data/result.png", "run",
         f"data is in out/net, and {STARTED}: cd out/net && transplt run ... main.py ..."),
        ("../data/a.csv", "prove", "each run starts in a copy of its project, and ../data/a.csv leads out of it: "),
        ("coco/a.csv", "prove", "put the data, a link to it or a small sample at "
         "out/net/coco/a.csv and add --data coco, for both programs; or "),
        ("out/net/tools.py", "prove",
         "each run starts in a copy of its project: give out/net/tools.py as an absolute path, "),
        ("/nowhere/a.csv", "run", "there is no /nowhere/a.csv on this machine: "),
        ("/nowhere/a.csv", "prove", "there is no /nowhere/a.csv on this machine: "),
    ],
)  # fmt: skip
def test_a_missing_file(path: str, command: str, line: str, root: Path) -> None:
    (found,) = told(root, f"{FILE}'{path}'", command=command)
    assert found.startswith(line)


def test_data_that_are_nowhere_name_the_working_folder(root: Path) -> None:
    (line,) = told(root, f"{FILE}'coco/a.csv'")
    assert line.startswith(f"the script started in {Path.cwd()} and looked for coco/a.csv there: ")


IN_SCRIPT = "; or create it in the script: os.makedirs(..., exist_ok=True)"
COPIES = ", in the other project too, since each run starts in a copy"


@pytest.mark.parametrize(
    ("path", "command", "line"),
    [
        ("logs/a/b.txt", "run", "the script writes logs/a/b.txt into logs/a, a folder that does not exist: "
         f"mkdir -p logs/a{IN_SCRIPT}"),
        ("/nowhere/my logs/b.txt", "run", "the script writes /nowhere/my logs/b.txt into /nowhere/my logs, a folder "
                                          f"that does not exist: mkdir -p '/nowhere/my logs'{IN_SCRIPT}"),
        # The project has the folder, and the script started elsewhere.
        ("data/result.png", "run", f"data is in out/net, and {STARTED}: cd out/net && transplt run ... main.py ..."),
        ("data/new/a.txt", "run", "the script writes data/new/a.txt into data/new, a folder that does not exist: "
         f"mkdir -p data/new{IN_SCRIPT}"),
        ("logs/b.txt", "prove", "the script writes logs/b.txt into logs, a folder that does not exist: "
         f"mkdir -p out/net/logs{COPIES}{IN_SCRIPT}"),
        ("/tmp/transplt-prove-x1/net/logs/b.txt", "prove", "the script writes logs/b.txt into logs, a folder that "
                                                           f"does not exist: mkdir -p out/net/logs{COPIES}{IN_SCRIPT}"),
        ("../logs/b.txt", "prove", "the script writes ../logs/b.txt into ../logs, a folder that does not exist: "
         f"mkdir -p ../logs{IN_SCRIPT}"),
    ],
)  # fmt: skip
def test_a_file_that_is_written_into_a_missing_folder(path: str, command: str, line: str, root: Path) -> None:
    assert told(root, f"{FILE}'{path}'", command=command, writes=True) == [line]


@pytest.mark.parametrize(
    ("reason", "what"),
    [
        ("RuntimeError: Parent directory logs does not exist.", "a file"),
        ("OSError: Cannot save file into a non-existent directory: 'logs'", "a file"),
        ("FileNotFoundError: [Errno 2] Unable to synchronously create file (unable to open file: name = 'logs/a.h5', "
         "errno = 2, error message = 'No such file or directory', flags = 13, o_flags = 242)", "logs/a.h5"),
    ],
)  # fmt: skip
def test_a_folder_that_a_library_misses(reason: str, what: str, root: Path) -> None:
    line = f"the script writes {what} into logs, a folder that does not exist: mkdir -p logs{IN_SCRIPT}"
    assert told(root, reason) == [line]


@pytest.mark.parametrize(
    "reason",
    [
        "FileNotFoundError: [Errno 2] Unable to synchronously open file (unable to open file: name = 'logs/a.h5', "
        "errno = 2, error message = 'No such file or directory', flags = 0, o_flags = 0)",
        "RuntimeError: Parent directory",
    ],
)
def test_what_is_no_folder_to_make(reason: str, root: Path) -> None:
    assert not any("mkdir" in line for line in told(root, reason))


@pytest.mark.parametrize(
    ("reason", "path"),
    [
        ("RuntimeError: No input file found in data/imgs, make sure you put your images there", "data/imgs"),
        ("AssertionError: /tmp/transplt-prove-x1/net/data/coco.yaml is missing", "data/coco.yaml"),
        ("RuntimeError: no images in 'data/empty/'", "data/empty"),
        ("ValueError: hp.data.train is empty: please fix data/train.csv", ""),  # it is there
        ("RuntimeError: no pictures in data/hidden", "data/hidden"),
        ("ValueError: a loss of 1/3 and https://example.org/a/b", ""),
        ("ValueError: sizes of input/output differ in train/val", ""),
    ],
)
def test_data_that_a_sentence_of_the_project_names(reason: str, path: str, root: Path) -> None:
    (root / "data" / "empty").mkdir()
    (root / "data" / "hidden").mkdir()
    (root / "data" / "hidden" / ".keep").write_text("")
    lines = told(root, reason, command="prove")
    assert [line.partition(" at ")[2].partition(" and ")[0] for line in lines] == ([f"out/net/{path}"] if path else [])


def test_what_asks_for_a_key(root: Path) -> None:
    reason = "UsageError: No API key configured. Use `wandb login` to log in."
    assert told(root, reason) == ["Weights & Biases needs a key; without one: WANDB_MODE=offline transplt run ..."]


def test_what_is_read_in_a_copy_is_named_as_in_the_project(root: Path) -> None:
    (line,) = told(root, f"{FILE}'/tmp/transplt-prove-x1/net/coco/a.csv'", command="prove")
    assert line.startswith("put the data, a link to it or a small sample at out/net/coco/a.csv ")


ACTION = {"number": 2, "title": "Change uses of torch.Tensor.data", "apis": [], "lines": {"main.py": [[14, 14]]}}


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        (("main.py", 14), ["see action 2 of the migration in report.html, about main.py:14: Change uses of "
                           "torch.Tensor.data"]),
        (("main.py", 13), []),
        (("other.py", 14), []),
    ],
)  # fmt: skip
def test_a_line_that_the_migration_has_an_action_for(stop: tuple[str, int], told: list[str], root: Path) -> None:
    manifest = {"tool": "transplt", "format": 1, "files": {}, "reports": {}, "actions": [ACTION]}
    (root / ".transplt").mkdir()
    (root / ".transplt" / "manifest.json").write_text(json.dumps(manifest))
    assert [*foretold(root, [Seen(*stop, "stopped by IndexError: invalid index")])] == told


@pytest.mark.parametrize(("called", "known"), [("gym", True), ("gymnasium", False), ("torch", False), ("", False)])
def test_a_package_that_the_migration_has_an_action_for(called: str, known: bool, root: Path) -> None:
    actions = [{**ACTION, "apis": ["gym.make"]}, {**ACTION, "number": 3, "apis": ["torch.load"]}]
    manifest = {"tool": "transplt", "format": 1, "files": {}, "reports": {}, "actions": actions}
    (root / ".transplt").mkdir()
    (root / ".transplt" / "manifest.json").write_text(json.dumps(manifest))
    stop = Seen("other.py", 14, "stopped by AttributeError: no bool8", called)
    told = "see action 2 of the migration in report.html, about other.py:14: Change uses of torch.Tensor.data"
    assert [*foretold(root, [stop])] == [told] * known


def test_a_folder_without_a_manifest_foretells_nothing(root: Path) -> None:
    assert [*foretold(root, [Seen("main.py", 14, "stopped")])] == []


BEHIND = "what follows is for the script"


def test_too_few_pictures(root: Path) -> None:
    note = {"MNIST of torchvision was 16 random pictures": 1}
    error = "RuntimeError: shape '[128]' is invalid for input of size 16"
    few = "data sets had 16 pictures, fewer than a batch may need: --stubs torchvision=256 makes more"
    assert told(root, error, stubs=("torchvision",), notes=note) == [few]
    assert told(root, error, stubs=("torchvision=16",), notes=note) == []
    # What the migration said of the line comes first.
    assert told(root, error, stubs=("torchvision",), notes=note, known=("action 2",)) == ["action 2"]


@pytest.mark.parametrize(
    ("script", "arguments", "code", "lines"),
    [
        ("main.py", ("--stubs", "torchvision"), 2,
         [f"--stubs is an option of transplt run: write it before SCRIPT; {BEHIND}"]),
        ("main.py", ("--stubs=x", "--npus"), 2,
         [f"--stubs, --npus are options of transplt run: write them before SCRIPT; {BEHIND}"]),
        ("main.py", ("--lr", "1"), 2, []),
        ("main.py", ("--stubs",), 1, []),
        ("main.py", ("--stubs",), 0, []),
        ("out/net/scripts/a.sh", (), 2,
         ["launch scripts start in the current folder: cd out/net && transplt run ... scripts/a.sh ..."]),
    ],
)  # fmt: skip
def test_a_command_line_that_is_not_understood(
    script: str, arguments: tuple[str, ...], code: int, lines: list[str], root: Path
) -> None:
    asked = Asked("run", RunOptions(script, arguments, "python"), root, Path.cwd(), ("--stubs", "--npus"))
    assert advice(asked, code, [process(torch="")]) == lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run --epochs 1 main.py", "Options of the script go last: transplt run SCRIPT ARGS."),
        ("prove a b --epochs 1", "Options of the script go last: transplt prove ORIGINAL MIGRATED -- ARGS."),
    ],
)
def test_an_option_of_the_script_at_the_wrong_place(words: str, said: str, root: Path) -> None:
    done = CliRunner().invoke(transplt, words.split())
    assert done.exit_code == 2 and f"No such option '--epochs'. {said}" in " ".join(done.output.split())


@pytest.mark.torch
def test_a_run_says_it(root: Path, tmp_path: Path) -> None:
    from tests.forked import transplt_run

    (root / "main.py").write_text("import sys\nprint(sys.argv[1:])\nimport torch\nopen('coco/a.csv')\n")
    code, output, errors = transplt_run([str(root / "main.py"), "--", "--lr", "1"], tmp_path)
    # torch_npu prints a line of its own about an error that ends a script.
    assert code == 1 and output.splitlines(keepends=True)[0] == "['--lr', '1']\n"
    assert f"\n  what helps: the script started in {tmp_path} and looked for coco/a.csv there: " in errors


@pytest.mark.torch
@pytest.mark.slow
def test_a_proof_says_it(root: Path, tmp_path: Path) -> None:
    (root / "main.py").write_text("import torch\nopen('coco/a.csv')\n")
    shutil.copytree(root, tmp_path / "net")
    done = CliRunner().invoke(transplt, ["prove", "net", "out/net", "--python", sys.executable, "--no-cache"])
    at = "put the data, a link to it or a small sample at net/coco/a.csv "
    assert f"    what helps: {at}" in done.output


def test_what_is_missing_is_told_before_a_migration_that_is_to_be_proved(root: Path, tmp_path: Path) -> None:
    """All packages at once, by the names that pip has for them; a stub file of the user's may stand for any."""
    (root / "main.py").write_text("import no_such_a, torch\nfrom no_such_b.x import y\nimport tools\n")
    options = RunOptions("main.py", (), sys.executable)
    (line,) = missing_packages(Asked("prove", options, root, root))
    start = f"install no_such_a and no_such_b: {sys.executable} -m pip install no_such_a no_such_b"
    assert line == SETUP + start
    stub = tmp_path / "stub.py"
    stub.write_text("")
    assert missing_packages(Asked("prove", replace(options, stubs=(str(stub),)), root, root)) == []
    (root / "main.py").write_text("import tools, torch\n")
    assert missing_packages(Asked("prove", options, root, root)) == []


@pytest.mark.torch
def test_a_migration_that_cannot_be_proved_is_not_begun(root: Path) -> None:
    (root / "main.py").write_text("import no_such_a, torch\n")
    words = ["-i", "out/net", "-o", "out", "--prove", "main.py", "--python", sys.executable]
    done = CliRunner().invoke(transplt, words)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("--prove: main.py cannot be loaded: install all that the project requires: ")
    assert not (root.parent / "net_msft").exists()


def test_environments_without_pip_are_installed_into_by_uv(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho pip\n")
    python.chmod(0o755)
    assert install_with(str(python)) == f"uv pip install --python {python}"
    assert install_with("/no/python") == "/no/python -m pip install"


OPTIONS = """\
import argparse
from tools import more
parser = argparse.ArgumentParser()
parser.add_argument("-b", "--batch-size", type=int, default=256)
parser.add_argument("--warmup-epochs", type=int, default=5)
parser.add_argument("--max_steps", type=int)
parser.add_argument("--no-epochs", action="store_true")
"""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ["--epochs", "1", "--batch-size", "4", "--max_steps", "20"]),
        (("--epochs=3", "-b", "2"), ["--batch-size", "4", "--max_steps", "20"]),
        (("--epochs", "3", "--batch-size", "2", "--max_steps", "9"), []),
    ],
)
def test_sizes_are_cut_down_with_what_the_script_declares(
    root: Path, arguments: tuple[str, ...], words: list[str]
) -> None:
    (root / "main.py").write_text(OPTIONS)
    (root / "tools.py").write_text("def more(p):\n    p.add_argument('--epochs', default=90)\n")
    options = RunOptions("main.py", arguments, sys.executable)
    asked = Asked("prove", options, root, root)
    assert smaller_words(asked) == words
    start = " ".join(["main.py", *arguments, *words])
    lines = [f"cut it down with the options that the script has: --prove '{start}'"] if words else []
    assert advice(asked, 0, [], too_long=True) == lines
    assert advice(asked, -9, []) == lines and advice(asked, 0, []) == []


def test_a_script_without_such_options_is_left_as_it_is(root: Path) -> None:
    (root / "main.py").write_text("import argparse\nargparse.ArgumentParser().add_argument('--lr', default=0.1)\n")
    asked = Asked("run", RunOptions("out/net/main.py", (), sys.executable), root, root)
    assert advice(asked, 0, [], too_long=True) == []


@pytest.mark.torch
def test_what_takes_too_long_names_the_whole_command(root: Path) -> None:
    (root / "main.py").write_text(OPTIONS + "import time\ntime.sleep(60)\n")
    (root / "tools.py").write_text("more = 1\n")
    words = ["run", "--timeout", "3", "--cuda", "off", "--python", sys.executable, "out/net/main.py", "--no-epochs"]
    done = CliRunner().invoke(transplt, words)
    command = f"transplt run --cuda off --timeout 3.0 --python {sys.executable} out/net/main.py --no-epochs"
    assert f"what helps: cut it down with the options that the script has: {command} --batch-size 4 --max_steps 20" in (
        done.output
    )


def test_arguments_that_a_script_does_not_take_in_a_proof(root: Path) -> None:
    """Nobody sees what it prints there."""
    options = RunOptions("main.py", ("--lr", "a b"), "/py/python")
    start = "the script does not accept the arguments after --: "
    (line,) = advice(Asked("prove", options, root, root), 2, [process()])
    assert line == f"{start}why: cd out/net && /py/python main.py --lr 'a b'"
    said = "usage: main.py [-h] --data DATA\nmain.py: error: the following arguments are required: --data\n"
    (line,) = advice(Asked("prove", options, root, root), 2, [process()], errors=said)
    assert line == f"{start}it says: the following arguments are required: --data"


def test_names_that_numpy_no_longer_has(root: Path) -> None:
    (line,) = told(root, "AttributeError: `np.Inf` was removed in the NumPy 2.0 release. Use `np.inf` instead.")
    assert line.startswith("the script needs NumPy 1 (np.int and np.float: before 1.24): write numpy<2 into a new ")
    assert line.endswith("run --setup out/net; or replace the name in the original, and migrate again")
    (root / "setup.py").touch()
    error = {**raised("AttributeError", "module 'numpy' has no attribute 'bool8'"), "called": "gym"}
    (line,) = advice(Asked("run", RunOptions("main.py", (), "/py/python"), root, root), 1, [process(exception=error)])
    assert line.startswith("gym needs NumPy 1 ") and "numpy<2 into setup.py, and install" in line
    assert line.endswith("run --setup out/net")


@pytest.mark.parametrize(
    "reason",
    [
        "ConnectionError: Couldn't reach 'a/b' on the Hub (LocalEntryNotFoundError)",
        "URLError: <urlopen error [Errno -2] Name or service not known>",
        "OSError: We couldn't connect to 'https://huggingface.co' to load the files",
        "gaierror: [Errno -3] Temporary failure in name resolution",
    ],
)
def test_a_download_without_a_network(root: Path, reason: str) -> None:
    start = "the script downloads something, and the server did not answer: "
    (line,) = told(root, reason)
    assert line.startswith(start) and "--stubs FILE.py" in line and "--data" not in line
    assert "name it with --data" in told(root, reason, command="prove")[0]
    assert told(root, "ConnectionRefusedError: [Errno 111] Connection refused") == []
