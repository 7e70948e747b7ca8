"""`transplt judge` as it is called: formats, exit codes, branches, and what a port says about its own judge."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner

from tests.forked import transplt
from transplt.faces.cli.main import main

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "samples" / "distributed" / "flat"
ORIGINAL = """\
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
args = parser.parse_args()
torch.manual_seed(1)
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
for step in range(4):
    data = torch.randn(6, 4).cuda()
    optimizer.zero_grad()
    loss = model(data).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
"""
PORT = ORIGINAL.replace("import torch\n", "import torch\nimport torch_npu\n", 1).replace("cuda", "npu")


def judged(
    folder: Path, port: str | dict[str, str], *options: str, original: str = ORIGINAL
) -> tuple[int, dict[str, Any]]:
    """The exit code and the JSON of a judgement of a port of an original."""
    files = port if isinstance(port, dict) else {"main.py": port}
    for side, texts in (("original", {"main.py": original}), ("port", files)):
        for path, text in texts.items():
            (folder / side / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / side / path).write_text(text, encoding="utf-8")
    out = folder / "judgement.json"
    words = ["judge", str(folder / "original"), str(folder / "port"), "--format", "json", "--output-file", str(out)]
    code, _, _ = transplt([*words, *options], folder)
    return code, json.loads(out.read_text(encoding="utf-8"))


def marks(table: dict[str, Any]) -> list[str]:
    return [part["mark"] for part in table["parts"]]


def test_a_right_port_is_accepted_as_read(tmp_path: Path) -> None:
    code, table = judged(tmp_path, PORT)
    assert (code, table["accepted"]) == (0, True)
    assert marks(table) == ["good", "good", "good", "good", "not judged"]
    assert table["sentence"].startswith("accepted as read: nothing speaks against it; nothing was run")
    assert table["unknown"][-1] == "whether it runs, and whether it trains the same"
    assert table["badge"]["message"] == "accepted"


def test_a_port_that_was_rewritten_is_neither_accepted_nor_accused(tmp_path: Path) -> None:
    loop = PORT[PORT.index("for step in") :]
    anew = "def losses(steps):\n    for step in range(steps):\n        data = torch.randn(6, 4).npu()\n"
    anew += "        error = model(data).square().sum() / 6\n        yield step, error, error.norm()\n\n\n"
    anew += "for step, loss, size in losses(4):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"
    code, table = judged(tmp_path, PORT.replace(loop, anew))
    assert (code, table["accepted"], table["badge"]["message"]) == (1, False, "not decided")
    assert table["sentence"].startswith("not decided: 3 differences to look at, only --prove can tell")
    jsonschema.validate(table, json.loads((ROOT / "docs" / "judge.schema.json").read_text(encoding="utf-8")))
    assert marks(table) == ["good", "not judged", "good", "good", "not judged"]
    assert (
        judged(tmp_path, PORT.replace(loop, anew), "--allow", "loss", "--allow", "computing", "--allow", "model")[0]
        == 0
    )


def test_what_is_left_of_cuda_speaks_against_it(tmp_path: Path) -> None:
    code, table = judged(tmp_path, PORT.replace("nn.Linear(4, 1).npu()", "nn.Linear(4, 1).cuda()"))
    assert (code, marks(table)[0]) == (1, "against")
    assert [(each["path"], each["line"], each["code"]) for each in table["parts"][0]["findings"]] == [
        ("main.py", 11, "NPU210")
    ]


#: A layer that torch_npu does not give a packed sequence, and the line that stops for it.
PACKED = """\
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

layer = nn.GRU(4, 4)
layer.cuda()
given = pack_padded_sequence(torch.randn(3, 2, 4).cuda(), torch.tensor([3, 2]))
given, _ = layer(given)
given, _ = pad_packed_sequence(given)
"""


def test_what_the_original_does_and_an_npu_refuses_stops_a_port(tmp_path: Path) -> None:
    code, table = judged(tmp_path, PORT + PACKED.replace("cuda", "npu"), original=ORIGINAL + PACKED)
    assert (code, marks(table)) == (1, ["against", "good", "good", "good", "not judged"])
    told = table["parts"][0]["sentence"]
    assert told.startswith("main.py:22: nn.GRU gives wrong results for a packed sequence on an NPU"), told
    assert told.endswith("(as in the original) (stops at the first step: 1)")


@pytest.mark.torch
def test_a_port_that_stops_as_its_original_would_is_not_accused_of_another_training(tmp_path: Path) -> None:
    port, original = PORT + PACKED.replace("cuda", "npu"), ORIGINAL + PACKED
    code, table = judged(tmp_path, port, "--prove", "main.py", original=original)
    told = table["parts"][-1]["sentence"]
    assert code == 1
    assert "the original has this line, too: what it does there does not work on an NPU" in told
    assert "caught" not in told


def test_a_port_that_was_never_made_names_no_card(tmp_path: Path) -> None:
    code, table = judged(tmp_path, ORIGINAL.replace(".cuda()", ""))
    assert (code, table["parts"][0]["sentence"]) == (1, "no file of the port names an NPU")


def test_transfer_to_npu_redirects_what_it_redirects(tmp_path: Path) -> None:
    code, table = judged(tmp_path, f"from torch_npu.contrib import transfer_to_npu\n{ORIGINAL}")
    assert (code, marks(table)[0]) == (0, "good")
    assert any(line.startswith("redirected by transfer_to_npu: 2 places") for line in table["parts"][0]["lines"])


def test_transfer_to_npu_redirects_the_device_of_settings(tmp_path: Path) -> None:
    """What the settings give to `.to()` is redirected, too; without the import it has to be an NPU."""
    read = 'import yaml\ndevice = yaml.safe_load(open("base.yaml"))["device"]\ntorch.zeros(1).to(device)\n'
    for text, mark in ((f"from torch_npu.contrib import transfer_to_npu\n{ORIGINAL}", "good"), (PORT, "not judged")):
        _, table = judged(tmp_path, {"main.py": text + read, "base.yaml": "device: cuda\n"}, "--allow", "computing")
        assert marks(table)[0] == mark, table["parts"][0]


@pytest.mark.parametrize(
    "told",
    [
        {"pyproject.toml": '[tool.transplt]\nexclude = ["main.py"]\nper-file-ignores = {"*" = ["NPU"]}\n'},
        {".transplt/manifest.json": '{"tool": "transplt", "format": 1, "files": {}, "reports": {"main.py": "0"}}'},
        {".gitignore": "*.py\n"},
    ],
)
def test_settings_of_a_port_switch_nothing_off(told: dict[str, str], tmp_path: Path) -> None:
    code, table = judged(tmp_path, {"main.py": PORT.replace(".npu()", ".cuda()"), **told})
    assert (code, marks(table)[0]) == (1, "against")


@pytest.mark.parametrize("comment", ["# transplt: ignore", "# transplt: ignore[NPU210] meant"])
def test_comments_of_a_port_switch_nothing_off(comment: str, tmp_path: Path) -> None:
    code, table = judged(tmp_path, PORT.replace("(4, 1).npu()", f"(4, 1).cuda()  {comment}"))
    assert [each["code"] for each in table["parts"][0]["findings"]] == ["NPU210"]
    assert code == 1


def test_a_theme_that_is_meant_is_listed_only(tmp_path: Path) -> None:
    port = PORT.replace("default=0.1", "default=0.2")
    code, table = judged(tmp_path, port)
    assert (code, [each["code"] for each in table["parts"][1]["findings"]]) == (1, ["NPU881"])
    code, table = judged(tmp_path, port, "--allow", "learning rate")
    assert (code, [each["level"] for each in table["also"]]) == (0, ["info"])


def test_what_gets_round_a_judge_cannot_be_allowed(tmp_path: Path) -> None:
    port = PORT.replace("    optimizer.step()\n", "    optimizer.step()\n    break\n")
    code, table = judged(tmp_path, port, "--allow", "judge")
    assert (code, marks(table)[2]) == (1, "against")


def test_every_format_says_it(tmp_path: Path) -> None:
    judged(tmp_path, PORT.replace("default=0.1", "default=0.2"))
    words = ["judge", "-q", str(tmp_path / "original"), str(tmp_path / "port"), "--format"]

    def output(form: str) -> str:
        done = CliRunner().invoke(main, [*words, form], standalone_mode=False)
        assert done.return_value == 1
        return done.output

    assert """\
    main.py:8: NPU881 learning rate: 0.1 became 0.2 in the module (original: main.py:7)
      - parser.add_argument('--lr', type=float, default=0.1)
      + parser.add_argument('--lr', type=float, default=0.2)
""" in output("text")
    sarif = json.loads(output("sarif"))
    schema = json.loads((ROOT / "tests" / "data" / "sarif_subset.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(sarif, schema)
    (result,) = sarif["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("NPU881", "error")
    page = output("html")
    assert "refused" in page
    assert "main.py:8" in page
    assert "\n+ parser.add_argument(&#39;--lr&#39;, type=float, default=0.2)</pre>" in page
    assert "http" not in page.partition("<main>")[2]


def test_a_page_shows_no_text_as_markup(tmp_path: Path) -> None:
    judged(tmp_path, PORT.replace("default=0.1", 'default=0.2, help="<script>alert(1)</script>"'))
    done = CliRunner().invoke(
        main,
        ["judge", "-q", str(tmp_path / "original"), str(tmp_path / "port"), "--format", "html"],
        standalone_mode=False,
    )
    assert "<script>alert" not in done.output


def test_a_port_may_be_a_branch(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        plain = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *plain, *words], check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    for text, branch in ((ORIGINAL, "port"), (PORT.replace("default=0.1", "default=0.2"), "other")):
        (tmp_path / "main.py").write_text(text, encoding="utf-8")
        git("add", ".")
        git("commit", "-qm", "as it is")
        git("checkout", "-q", "-b", branch)
    git("checkout", "-q", "main")
    done = CliRunner().invoke(main, ["judge", "-q", str(tmp_path), "other"], standalone_mode=False)
    assert done.return_value == 1
    assert "learning rate" in done.output
    assert (tmp_path / "main.py").read_text(encoding="utf-8") == ORIGINAL


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("nowhere", "{port}"), "is no folder, and no commit"),
        (("{port}", "{port}", "--nproc", "2"), "need --prove"),
        (("{port}", "{port}", "--prove", "main.py", "--nproc", "x"), "numbers of processes"),
        (("{port}", "{port}", "--output-file", "nowhere/x.json"), "does not exist"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PORT, encoding="utf-8")
    done = CliRunner().invoke(main, ["judge", *(word.format(port=tmp_path) for word in words)], standalone_mode=False)
    assert getattr(done.exception, "exit_code", None) == 2
    assert why in str(done.exception)


#: An error that the program prints, and goes on from.
CAUGHT = """\
    try:
        torch.ones(2).npu() + torch.ones(3).npu()
    except Exception as error:
        print(f"RuntimeError: {error}")
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("port", "mark", "what"),
    [
        (PORT, "good", "equal: 4 steps"),
        (PORT.replace(".npu()", ".cpu()"), "against", "not run: nothing was computed on the NPU"),
        (
            PORT.replace("    optimizer.step()\n", f"    optimizer.step()\n{CAUGHT}"),
            "against",
            "it caught an error and went on",
        ),
    ],
    ids=["right", "on the CPU", "an error caught"],
)
def test_a_run_has_the_last_word(port: str, mark: str, what: str, tmp_path: Path) -> None:
    """A script that is renamed is run by its new name."""
    code, table = judged(tmp_path, {"train_npu.py": port}, "--prove", "main.py")
    run = table["parts"][-1]
    assert (run["mark"], code) == (mark, int(mark == "against"))
    assert what in run["sentence"]
    assert run["lines"][1].startswith("operators on the card: ")


@pytest.mark.torch
def test_a_run_that_differs_names_what_differs(tmp_path: Path) -> None:
    code, table = judged(tmp_path, PORT.replace(".pow(2)", ".abs()"), "--prove", "main.py")
    assert (code, table["badge"]["message"], table["parts"][-1]["mark"]) == (1, "refused", "against")
    assert "; what differs there: main.py:" in table["sentence"], table["sentence"]
    assert "abs()" in table["sentence"].partition("what differs there")[2]


#: What ends a program by a signal when all is done.
KILLED = "import os\nos.kill(os.getpid(), 6)\n"
#: A program that trains nothing, and tells nothing.
ADDS = "import torch\nx = torch.ones(2).cuda() + 1\n"
#: A device that is chosen by hand, and the same where an NPU comes first.
CHOSEN = """\
if args.lr > 0:
    device = "cuda" if torch.cuda.is_available() else "cpu"
else:
    device = "cpu"
model = nn.Linear(4, 1).to(device)
"""
CHOSEN_BY_HAND = """\
if args.lr > 0:
    if torch.npu.is_available():
        device = "npu"
    else:
        device = "cuda" if torch.cuda.is_available() else "cpu"
else:
    device = "cpu"
model = nn.Linear(4, 1).to(device)
"""


@pytest.mark.torch
@pytest.mark.parametrize(
    ("original", "port", "mark", "what"),
    [
        (ORIGINAL + KILLED, PORT, "not judged", "stops, after 4 steps that agree: ended with exit code -6"),
        (ORIGINAL, PORT + KILLED, "against", "ended with exit code -6"),
        (ADDS, f"import torch_npu\n{ADDS.replace('cuda', 'npu')}", "not judged", "no optimizer step, saved tensor"),
        (ORIGINAL.replace("model = nn.Linear(4, 1).cuda()\n", CHOSEN),
         PORT.replace("model = nn.Linear(4, 1).npu()\n", CHOSEN_BY_HAND), "good", "equal: 4 steps"),
    ],
    ids=["the original is killed", "the port is killed", "nothing to compare", "a device chosen by hand"],
)  # fmt: skip
def test_a_port_is_not_blamed_for_its_original(original: str, port: str, mark: str, what: str, tmp_path: Path) -> None:
    _, table = judged(tmp_path, port, "--prove", "main.py", original=original)
    run = table["parts"][-1]
    assert (run["mark"], what in run["sentence"]) == (mark, True), run


def test_the_samples_are_accepted(subtests: pytest.Subtests) -> None:
    for name in (
        "distributed/flat",
        "distributed/trainer",
        "amp/flat",
        "amp_apex/project",
        "portable",
        "image_classifier",
    ):
        with subtests.test(name):
            folder = ROOT / "samples" / name
            words = ["judge", "-q", str(folder / "cuda"), str(folder / "expected")]
            assert CliRunner().invoke(main, words, standalone_mode=False).return_value == 0
