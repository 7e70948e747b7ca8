"""`--stubs`: which files it means, what is ready, and how large the data sets of what is ready are."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.faces.cli.main import main as transplt
from transplt.proof.launch.options import RunOptions, UsageError
from transplt.proof.launch.runner import READY_STUBS, _config, ready_stubs

READY = str(READY_STUBS / "torchvision.py")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "files", "path", "pictures"),
    [
        ("torchvision", (), READY, 0),
        ("torchvision=256", (), READY, 256),
        ("mine.py", ("mine.py",), "mine.py", 0),
        ("a=b.py", ("a=b.py",), "a=b.py", 0),
        ("torchvision=256", ("torchvision=256",), "torchvision=256", 0),
        ("torchvision", ("torchvision",), "torchvision", 0),
    ],
)
def test_what_is_meant(given: str, files: tuple[str, ...], path: str, pictures: int, folder: Path) -> None:
    for name in files:
        (folder / name).write_text("")
    config = _config(RunOptions("main.py", (), "python", stubs=(given,)), (), folder / "records", None)
    meant = path if path == READY else str((folder / path).resolve())
    assert config["stubs"] == [meant]
    assert config["pictures"] == ({meant: pictures} if pictures else {})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("gone.py", "--stubs gone.py: neither a file nor a built-in stub (torchvision)."),
        ("gone=5", "--stubs gone=5: neither a file nor a built-in stub (torchvision)."),
        *(
            (f"torchvision={count}",
             f"--stubs torchvision={count}: write the number of images after =, such as torchvision=256.")
            for count in ("", "0", "-1", "many", "1.5", "1000000", "\u0663")
        ),
    ],
)  # fmt: skip
def test_what_is_not_there(given: str, told: str, folder: Path) -> None:
    with pytest.raises(UsageError) as raised:
        _config(RunOptions("main.py", (), "python", stubs=(given,)), (), folder / "records", None)
    assert str(raised.value) == told


@pytest.mark.parametrize("words", ["run --stubs list", "prove --stubs list", "--stubs list", "prove a b --stubs=list"])
def test_what_is_ready_is_listed(words: str, folder: Path) -> None:
    done = CliRunner().invoke(transplt, words.split())
    assert done.exit_code == 0
    assert done.output.splitlines() == [f"{name}  {line}" for name, line in ready_stubs().items()]
    assert done.output.startswith("torchvision  Random pictures ")


def test_a_file_of_that_name_is_a_file(folder: Path) -> None:
    (folder / "list").write_text("")
    done = CliRunner().invoke(transplt, ["run", "--stubs", "list"])
    assert done.exit_code == 2 and "Missing argument 'SCRIPT'" in done.output


@pytest.mark.torch
def test_a_run_says_how_large_the_data_sets_were(folder: Path) -> None:
    from tests.forked import transplt_run

    text = "import torch_npu\nimport torchvision\nimport torch\n"
    text += "to = torchvision.transforms.Normalize(mean=[0.5] * 3, std=[0.5] * 3, inplace=True)\n"
    text += "kept = [torchvision.datasets.CIFAR10('data', train=train, transform=to) for train in (True, False)]\n"
    text += "print([len(each) for each in kept], torch.ones(1).npu().item())\n"
    (folder / "main.py").write_text(text)
    code, out, err = transplt_run(["--stubs", "torchvision=7", "main.py"], folder)
    assert (code, out) == (0, "[7, 7] 1.0\n"), err
    assert "  note: CIFAR10 of torchvision was 7 random pictures (2 times)\n" in err
