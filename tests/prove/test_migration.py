"""A migration that proves itself: which of what was asked for stays in the output."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.base.errors import UsageError
from transplt.base.render.verdict import Verdict, Word
from transplt.faces.cli.main import main
from transplt.project import proving as migration
from transplt.project.options import Options
from transplt.project.proving import Proving
from transplt.project.tree import migrate_tree
from transplt.proof.launch.environments import Chosen
from transplt.proof.launch.interpreter import Versions
from transplt.proof.prove.found import Findings, Part
from transplt.proof.prove.proof import Proof

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Linear(8, 1).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for x, y in loader:
    loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
AMP, TUNE = "autocast", "foreach"
HERE = Versions("2.13.0", "2.0.0", "3.11.7")


@pytest.fixture
def proving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[str, list[str], Word]]:
    """Migrate with options and a judge of the written text: the text in the output, the findings NPU793, the word."""
    source = tmp_path / "project"
    source.mkdir()
    (source / "train.py").write_text(SCRIPT, encoding="utf-8")

    def go(judge: Callable[[str], Word], **asked: Any) -> tuple[str, list[str], Word]:
        class Judge:
            def __init__(self, text: str) -> None:
                self.text = text

            def prove(self, worlds: tuple[int, ...]) -> Proof:
                return Proof([Part("all", Verdict(judge(self.text), "train.py:9: said so"), Findings())])

        def between(before: Any, after: Any, options: Any, say: Any, warm: Any) -> Judge:
            return Judge((after.root / after.main).read_text(encoding="utf-8"))

        monkeypatch.setattr(migration, "between", between)
        monkeypatch.setattr(migration, "for_output", lambda options, *folders: (options, "2.13.0"))
        monkeypatch.setattr(migration, "choose", lambda python, project: Chosen(sys.executable, HERE))
        options = Options(source=source, out=tmp_path / "out", jobs=0, page=False, **asked)
        result, proof = Proving(options, "train.py --epochs 1", lambda text: None).migrate(migrate_tree)
        written = (tmp_path / "out" / "project_msft" / "train.py").read_text(encoding="utf-8")
        findings = [finding.message for finding in result.findings if finding.code == "NPU793"]
        return written, findings, proof.verdict.word

    return go


def test_what_holds_stays(proving: Any) -> None:
    text, findings, word = proving(lambda text: Word.EQUAL, amp="native")
    assert AMP in text
    assert (findings, word) == ([], Word.EQUAL)


def test_a_theme_that_differs_is_taken_back(proving: Any) -> None:
    text, findings, word = proving(lambda text: Word.DIFFERS if AMP in text else Word.EQUAL, amp="native")
    assert AMP not in text
    assert "npu" in text
    assert findings == ["--amp native was undone: differs: train.py:9: said so"]
    assert word is Word.EQUAL


def test_only_the_theme_that_stops_is_taken_back(proving: Any) -> None:
    judge = lambda text: Word.STOPS if AMP in text else Word.EQUAL  # noqa: E731
    text, findings, _ = proving(judge, amp="native", tune="fused-optimizer")
    assert AMP not in text
    assert "NpuFused" in text
    assert findings == ["--amp native was undone: stops: train.py:9: said so"]


def test_a_migration_that_differs_by_itself_keeps_what_was_asked_for(proving: Any) -> None:
    text, findings, word = proving(lambda text: Word.DIFFERS, amp="native")
    assert AMP in text
    assert (findings, word) == (["the proof failed: differs: train.py:9: said so"], Word.DIFFERS)


def test_what_could_not_be_run_is_no_reason(proving: Any) -> None:
    text, findings, word = proving(lambda text: Word.NOT_RUN, amp="native")
    assert AMP in text
    assert (findings, word) == ([], Word.NOT_RUN)


def test_a_migration_without_more_is_proven_as_it_is(proving: Any) -> None:
    text, findings, word = proving(lambda text: Word.DIFFERS)
    assert "npu" in text
    assert (findings, word) == (["the proof failed: differs: train.py:9: said so"], Word.DIFFERS)


@pytest.mark.parametrize("command", ["", "--epochs 1", "train"])
def test_a_command_without_a_script_is_refused(command: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the script and its arguments"):
        Proving(Options(source=tmp_path), command, lambda text: None)


def test_the_command_of_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names what runs, and runs nothing by itself: that is asked for on the command line."""
    source, seen = tmp_path / "project", []
    source.mkdir()
    (source / "train.py").write_text(SCRIPT, encoding="utf-8")

    class Seen(Exception):
        pass

    class Proofs:
        def __init__(self, options: Options, command: str, *_: Any) -> None:
            seen.append(command)
            raise Seen

    asked = ["-i", str(source), "-o", str(tmp_path / "out")]
    with monkeypatch.context() as patch:
        patch.setattr(migration, "Proving", Proofs)
        for given in (["--prove"], ["--prove", "train.py"], ["--prove", "--quiet"], ["--quiet"]):
            CliRunner().invoke(main, [*asked, *given])
        command = [*asked, "distributed", "-m", str(source / "train.py")]
        CliRunner().invoke(main, [*command, "--prove"])
        CliRunner().invoke(main, ["--prove", *command])
    assert seen == [".", "train.py", ".", ".", "."]
    with pytest.raises(UsageError, match="--prove needs a COMMAND"):
        Proving(Options(source=source), ".", lambda text: None)
    (source / "pyproject.toml").write_text('[tool.transplt]\nprove = "train.py --epochs 1"\n', encoding="utf-8")
    monkeypatch.setattr(migration, "for_output", lambda options, *folders: (options, "2.13.0"))
    monkeypatch.setattr(migration, "choose", lambda python, project: Chosen(sys.executable, HERE))
    run = Proving(Options(source=source), ".", lambda text: None).run
    assert (run.script, run.arguments) == ("train.py", ("--epochs", "1"))


def test_stubs_and_data_go_to_what_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data that the output lacks, since they are large, are those of the input."""
    source = tmp_path / "project"
    (source / "images").mkdir(parents=True)
    (source / "images" / "a.bin").write_bytes(b"0123456789")
    (source / "train.py").write_text(SCRIPT, encoding="utf-8")
    seen: list[Any] = []

    class Judge:
        def prove(self, worlds: tuple[int, ...]) -> Proof:
            return Proof([Part("all", Verdict(Word.EQUAL, "said so"), Findings())])

    def between(before: Any, after: Any, options: Any, say: Any, warm: Any) -> Judge:
        shutil.rmtree(after.root / "images")
        copies = [each.copy_to(tmp_path / f"copy{number}") for number, each in enumerate((before, after))]
        seen.extend([options.stubs, *((copy / "images").is_symlink() for copy in copies)])
        seen.append((copies[1] / "images" / "a.bin").read_bytes())
        return Judge()

    monkeypatch.setattr(migration, "between", between)
    monkeypatch.setattr(migration, "for_output", lambda options, *folders: (options, "2.13.0"))
    monkeypatch.setattr(migration, "choose", lambda python, project: Chosen(sys.executable, HERE))
    options = Options(source=source, out=tmp_path / "out", jobs=0, page=False)
    Proving(options, "train.py", lambda text: None, ("torchvision",), ("images",)).migrate(migrate_tree)
    assert seen == [("torchvision",), True, True, b"0123456789"]


@pytest.mark.parametrize(
    "given", [["--stubs", "torchvision"], ["--data", "images"], ["--card-pack", "pack"], ["--python", "/py"]]
)
def test_they_go_with_prove_only(given: list[str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    done = CliRunner().invoke(main, ["-i", str(tmp_path / "train.py"), "-o", str(tmp_path / "out"), *given])
    assert isinstance(done.exception, UsageError)
    assert str(done.exception) == "--stubs, --data, --python, --compile and --card-pack need --prove"
    assert not (tmp_path / "out").exists()
