"""Every kind of bad input: a clear sentence, the right exit code, nothing lost, the input as it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transplt.faces.cli import main as cli

USES_CUDA = "import torch\nprint(torch.cuda.is_available())\n"

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in this process: exit code and stderr."""

    def call(*arguments: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["transplt", *map(str, arguments)])
        monkeypatch.setattr(cli, "_catch_signals", lambda: None)
        code = cli.entry_point()
        out, err = capsys.readouterr()
        assert out == ""
        return code, err

    return call


def migrate(run: Run, tmp_path: Path, name: str, data: bytes) -> tuple[int, str, bytes]:
    """One file beside a good one: exit code, summary, what the file became. The good one is always migrated."""
    source = tmp_path / "proj"
    source.mkdir(exist_ok=True)
    (source / name).write_bytes(data)
    (source / "good.py").write_text(USES_CUDA)
    code, err = run("-i", source, "-o", tmp_path / "out")
    assert (source / name).read_bytes() == data
    out = tmp_path / "out" / "proj_msft"
    assert "torch.npu.is_available" in (out / "good.py").read_text()
    return code, err, (out / name).read_bytes()


def listed(tmp_path: Path) -> list[tuple[str, str]]:
    """(file, code) of the sheet of files that could not be read."""
    from openpyxl import load_workbook

    book = load_workbook(tmp_path / "out" / "proj_msft" / "unsupported_op.xlsx")
    if "unreadable" not in book.sheetnames:
        return []
    return [(row[0], row[3]) for row in book["unreadable"].iter_rows(min_row=2, values_only=True)]


def test_an_empty_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "proj").mkdir()
    code, err = run("-i", tmp_path / "proj")
    assert code == 2
    assert err == f"Error: there is nothing to migrate: {tmp_path / 'proj'} is empty\n"
    assert os.listdir(tmp_path) == ["proj"]


def test_a_folder_with_only_a_git_folder_is_empty(run: Run, tmp_path: Path) -> None:
    (tmp_path / "proj" / ".git").mkdir(parents=True)
    assert run("-i", tmp_path / "proj")[0] == 2


def test_no_python_files(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "proj"
    source.mkdir()
    (source / "README.md").write_text("hello\n")
    code, err = run("-i", source)
    assert code == 0
    assert "\n  nothing left to do\n  no edits; 1 file looked at\n" in err
    assert (tmp_path / "proj_msft" / "README.md").read_text() == "hello\n"


def test_a_missing_path(run: Run, tmp_path: Path) -> None:
    assert run("-i", tmp_path / "none") == (2, f"Error: no such file or folder: {tmp_path / 'none'}\n")
    (tmp_path / "link").symlink_to("nowhere")
    said = f"Error: no such file or folder: {tmp_path / 'link'} (a broken link)\n"
    assert run("-i", tmp_path / "link") == (2, said)
    (tmp_path / "loop").symlink_to("loop")
    code, err = run("-i", tmp_path / "loop")
    assert code == 2
    assert "Too many levels of symbolic links" in err


def test_a_file_that_is_not_python(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    code, err = run("-i", tmp_path / "a.txt")
    assert code == 2
    assert "is not a .py file; give a folder or one .py file" in err
    os.mkfifo(tmp_path / "pipe.py")
    code, err = run("-i", tmp_path / "pipe.py")
    assert code == 2
    assert "neither a folder nor a file" in err


def test_the_root_of_the_file_system(run: Run) -> None:
    code, err = run("-i", "/")
    assert code == 2
    assert "it has no name to give to the output" in err


def test_an_unreadable_folder(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proj").mkdir()

    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("transplt.base.disk.walk.os.scandir", refuse)
    code, err = run("-i", tmp_path / "proj")
    assert code == 2
    assert err == f"Error: cannot read the folder {tmp_path / 'proj'}: Permission denied\n"


def test_output_inside_the_input_and_the_other_way_round(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "proj"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    for out in (source, source / "out", source / "deep" / "er"):
        code, err = run("-i", source, "-o", out)
        assert code == 2
        assert "lies inside the input" in err
    inner = tmp_path / "inner_msft" / "inner"
    inner.mkdir(parents=True)
    (inner / "a.py").write_text("x = 1\n")
    code, err = run("-i", inner, "-o", tmp_path)
    assert code == 2
    assert "lies inside the output" in err
    (tmp_path / "alias").symlink_to(source)
    code, err = run("-i", source, "-o", tmp_path / "alias")
    assert code == 2
    assert "lies inside the input" in err
    assert os.listdir(source) == ["a.py"]


def test_an_output_that_is_a_file_or_below_one(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "proj"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        code, err = run("-i", source, "-o", out)
        assert code == 2
        assert "is not a folder" in err
    (tmp_path / "proj_msft").write_text("x")
    code, err = run("-i", source)
    assert code == 2
    assert "exists" in err
    code, err = run("-i", source, "--force")
    assert code == 2
    assert "was not written by transplt" in err


def test_a_parent_that_refuses(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "proj"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")

    def refuse(**_: object) -> str:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("transplt.base.disk.publish.tempfile.mkdtemp", refuse)
    code, err = run("-i", source, "-o", tmp_path / "a" / "b")
    assert code == 3
    assert err == f"Error: cannot write into {tmp_path / 'a' / 'b'}: Read-only file system\n"
    assert os.listdir(tmp_path) == ["proj"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("python2.py", b"import torch\nprint torch.cuda.is_available()\n"),
        ("syntax.py", b"import torch\nx = torch.cuda.\n"),
        ("nul.py", b"import torch\nx = 'torch.cuda\0'\n"),
        ("utf16.py", "import torch\ntorch.cuda.synchronize()\n".encode("utf-16")),
        ("latin1.py", "import torch\n# caf\xe9\ntorch.cuda.synchronize()\n".encode("latin-1")),
        ("cookie.py", b"# -*- coding: no-such-codec -*-\nimport torch\ntorch.cuda.synchronize()\n"),
        ("nothing_of_cuda.py", b"row = r'|(\n"),
        ("template.py", b"import torch\n{{ cookiecutter.x }} = torch.cuda.synchronize(\n"),
    ],
)
def test_files_that_python_cannot_read_are_copied_and_listed(run: Run, tmp_path: Path, name: str, data: bytes) -> None:
    code, err, after = migrate(run, tmp_path, name, data)
    assert code == 1
    assert after == data
    assert "in 1 of 2 files\n" in err
    assert f"failed: {name}:" in err
    assert "nothing left to do" not in err and f"not counted: the edits and the work in {name}, not readable" in err
    assert [file for file, _ in listed(tmp_path)] == [name]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        (
            "gbk.py",
            "# coding: gbk\nimport torch\n# \u4e2d\u6587\ntorch.cuda.synchronize()\n".encode("gbk"),
            "# coding: gbk\nimport torch\nimport torch_npu  # noqa: F401\n"
            "# \u4e2d\u6587\ntorch.npu.synchronize()\n".encode(
                "gbk"
            ),
        ),
        (
            "bom.py",
            b"\xef\xbb\xbfimport torch\ntorch.cuda.synchronize()\n",
            b"\xef\xbb\xbfimport torch\nimport torch_npu  # noqa: F401\ntorch.npu.synchronize()\n",
        ),
        (
            "crlf.py",
            b"import torch\r\nif 1:\r\n\ttorch.cuda.synchronize()",
            b"import torch\r\nimport torch_npu  # noqa: F401\r\nif 1:\r\n\ttorch.npu.synchronize()",
        ),
        (
            "\u6570\u636e.py",
            b"import torch\n\x0ctorch.cuda.synchronize()\n",
            b"import torch\nimport torch_npu  # noqa: F401\n\x0ctorch.npu.synchronize()\n",
        ),
    ],
)
def test_odd_but_sound_files_keep_what_is_odd(
    run: Run, tmp_path: Path, name: str, data: bytes, expected: bytes
) -> None:
    code, err, after = migrate(run, tmp_path, name, data)
    assert after == expected
    assert code == 0
    assert "in 2 of 2 files\n" in err and "failed" not in err


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x = " + " + ".join(f"a{i}" for i in range(1500)), id="1,500 terms"),
        pytest.param("x = 'a'" + " + 'b'" * 1500, id="1,500 strings"),
        pytest.param("if a == 0:\n    pass\n" + "elif a == 1:\n    pass\n" * 400, id="400 branches"),
        pytest.param("x = " + "f(" * 90 + ")" * 90, id="90 calls in calls"),
        pytest.param("x = a" + ".b()" * 900, id="a chain of 900 calls"),
        pytest.param("x = " + "(" * 150 + ")" * 150, id="150 brackets"),
        pytest.param("x = " + "not " * 900 + "a", id="900 times not"),
    ],
)
def test_deep_code_is_no_recursion_error(run: Run, tmp_path: Path, source: str) -> None:
    text = f"import torch\ntorch.cuda.synchronize()\n{source}\n"
    _, _, after = migrate(run, tmp_path, "deep.py", text.encode())
    result = after.decode()
    assert result.endswith(f"{source}\n")
    code_of = [code for file, code in listed(tmp_path) if file == "deep.py"]
    assert "torch.npu.synchronize()" in result or code_of


def test_deep_code_around_cuda(run: Run, tmp_path: Path) -> None:
    terms = " + ".join(["torch.cuda.device_count()"] + [f"a{i}" for i in range(1500)])
    chain = "torch.zeros(1).cuda()" + ".abs()" * 700
    branches = "if a == 0:\n    pass\n" + "".join(f"elif a == {i}:\n    torch.cuda.synchronize()\n" for i in range(400))
    text = f"import torch\nx = {terms}\ny = {chain}\n{branches}"
    code, err, after = migrate(run, tmp_path, "deep.py", text.encode())
    assert code in (0, 1)
    assert "failed: deep.py" not in err or after == text.encode()
    compile(after, "deep.py", "exec")
    assert after.count(b"torch.npu.synchronize()") == 400


def test_a_file_of_10_megabytes(run: Run, tmp_path: Path) -> None:
    line = "x = [1, 2, 3]  # " + "a line like any other" * 20 + "\n"
    text = "import torch\ntorch.cuda.synchronize()\n" + line * 24_000
    code, _, after = migrate(run, tmp_path, "big.py", text.encode())
    assert code == 0
    assert after == text.encode().replace(
        b"import torch\ntorch.cuda.", b"import torch\nimport torch_npu  # noqa: F401\ntorch.npu."
    )


def test_an_unreadable_pyproject(run: Run, tmp_path: Path) -> None:
    source = tmp_path / "proj"
    source.mkdir()
    (source / "a.py").write_text("x = 1\n")
    (source / "pyproject.toml").write_text("[tool.transplt\n")
    code, err = run("-i", source)
    assert code == 2
    assert "pyproject.toml is not TOML" in err
    (source / "pyproject.toml").write_text('[tool.transplt]\ntorch_versoin = "2.8"\n')
    code, err = run("-i", source)
    assert code == 2
    assert "unknown key 'torch_versoin'; did you mean 'torch-version'?" in err
    assert os.listdir(tmp_path) == ["proj"]


LONG = "q" * 4000


@pytest.mark.parametrize(
    "arguments",
    [
        ("-i", LONG),
        ("-i", "p", "-o", LONG),
        ("-i", "p", "-r", LONG),
        ("-i", "p", "distributed", "-m", LONG),
        ("distributed", "-m", LONG),
        ("check", LONG),
        ("check", "p", "--baseline", LONG),
        ("check", "p", "--output-file", LONG),
        ("check", "-", "--stdin-filename", LONG),
        ("check", "/".join(["q" * 200] * 30)),
        ("analyze", LONG),
        ("config", LONG),
        ("rules", "validate", LONG),
        ("explain", LONG),
        pytest.param(("run", LONG), marks=pytest.mark.torch),
    ],
)
def test_a_path_that_no_file_can_have(
    arguments: tuple[str, ...], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "a.py").write_text(USES_CUDA)
    code, err = run(*arguments)
    assert code == 2
    assert "qqq...qqq" in err or "known about qqq" in err
    assert len(err) < 600
    assert [path.name for path in tmp_path.iterdir()] == ["p"]


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of Linux")
@pytest.mark.parametrize("length", [4000, 4070, 4094, 4300])
def test_one_path_of_thousands_of_bytes_costs_its_file_only(
    length: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "p"
    source.mkdir()
    (source / "a.py").write_text(USES_CUDA)
    (source / "link.py").symlink_to("x" * 4000)
    (source / ".gitignore").write_text(f"{'y' * 4000}\n{'*' * 4000}\n")
    (source / "sub").mkdir()
    (source / "sub" / ".git").write_text(f"gitdir: {'z' * 4000}\n")
    monkeypatch.chdir(source)
    while len(os.getcwd()) + 202 < length:
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    name = "f" * max(length - len(os.getcwd()) - 4, 1) + ".py"
    Path(name).write_text(USES_CUDA)
    monkeypatch.chdir(tmp_path)
    code, err = run("-i", "p", "-o", "out")
    assert code in (0, 1)
    assert all(len(line) < 700 for line in err.splitlines())
    assert "torch.npu" in (tmp_path / "out" / "p_msft" / "a.py").read_text()
    assert ("ddd...fff" in err or "ddd...ddd" in err) is (length > 4000)
    assert "migrated to" in err
