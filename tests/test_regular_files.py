"""What is read is a regular file of bounded size: a FIFO, a device or a sparse giant is a sentence, never a hang."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transplt.base.text.regular_file import Limit, open_regular, read_regular
from transplt.base.text.toml import parse_toml

ROOT = Path(__file__).resolve().parent.parent
LIMIT = Limit("notes are read", 1024 * 1024)
GIANT = 3 * 1024**3

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="FIFOs and devices")


def sparse(path: Path, size: int = GIANT) -> None:
    path.touch()
    os.truncate(path, size)


def socket_at(path: Path) -> None:
    server = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    try:
        os.chdir(path.parent)  # the name of a socket may have some 100 bytes
        server.bind(path.name)
    finally:
        os.chdir(here)
        server.close()


#: How something that is no regular file of bounded size comes to lie at a path, and what is said of it.
ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "fifo": (os.mkfifo, "it is a FIFO, and only regular files are read"),
    "socket": (socket_at, "it is a socket, and only regular files are read"),
    "folder": (os.mkdir, "it is a folder, and only regular files are read"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is a device, and only regular files are read"),
    "giant": (sparse, "it has 3072.0 MB, and "),
    "link": (lambda path: (os.mkfifo(f"{path}.1"), path.symlink_to(f"{path}.1")), "it is a FIFO, and only regular"),
    "loop": (lambda path: path.symlink_to(path.name), "Too many levels of symbolic links"),
}
odd = pytest.mark.parametrize(("make", "said"), ODD.values(), ids=ODD)
#: The kinds on which a command without the reader hangs or runs out of memory.
WORST = ("fifo", "device", "giant", "link")
#: The reader, above, is tried with each; that a command asks it shows with one, and the long checks try the others.
worst = pytest.mark.parametrize(
    ("make", "said"),
    [pytest.param(*ODD[name], id=name, marks=[] if name == "fifo" else [pytest.mark.slow]) for name in WORST],
)


def transplt(folder: Path, *arguments: str, data: bytes | None = None) -> tuple[int, str]:
    """The command in a process of its own, which may hang: exit code, and both outputs."""
    command = [sys.executable, "-m", "transplt", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/zero", "rb") as zero:
        given: dict[str, Any] = {"stdin": zero} if data is None else {"input": data}
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, **given
        )
    said = done.stdout.decode()
    assert "Traceback" not in said and "defect" not in said
    return done.returncode, said


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    folder.mkdir()
    (folder / ".git").mkdir()
    (folder / "a.py").write_text('import torch\nx = torch.zeros(1, device="cuda")\n')
    return folder


@odd
def test_the_reader(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    make(tmp_path / "x")
    with pytest.raises(OSError) as raised:
        read_regular(tmp_path / "x", LIMIT)
    assert (raised.value.strerror or "").startswith(said)


def test_what_the_reader_reads(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for data in (b"", b"text\r\n\0", b"x" * LIMIT.size):
        path.write_bytes(data)
        assert read_regular(path, LIMIT) == data
    (tmp_path / "y").symlink_to(path)
    assert read_regular(tmp_path / "y", LIMIT) == data
    with pytest.raises(OSError, match="it is a link, and only regular files are read"):
        read_regular(tmp_path / "y", LIMIT, follow=False)
    path.write_bytes(b"x" * (LIMIT.size + 1))
    with pytest.raises(OSError, match=r"it has 1\.0 MB, and notes are read up to 1 MB"):
        read_regular(path, LIMIT)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "z", LIMIT)
    with pytest.raises(FileNotFoundError), open_regular("a\0b"):
        pass


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")
def test_a_file_that_does_not_know_its_size() -> None:
    assert read_regular("/proc/self/maps", LIMIT)
    with pytest.raises(OSError, match="it is too large: notes are read up to 0 MB"):
        read_regular("/proc/self/maps", Limit("notes are read", 5))


@worst
def test_settings(project: Path, make: Callable[[Path], object], said: str) -> None:
    make(project / "pyproject.toml")
    for arguments in (["-i", "."], ["check"], ["analyze", "."], ["config"]):
        code, output = transplt(project, *arguments, data=b"")
        assert code == 2, output
        assert f"cannot read {project}/pyproject.toml: {said}" in output
        assert "--isolated ignores" in output
    assert os.listdir(project.parent) == ["proj"]


@worst
def test_rules_that_the_settings_name(project: Path, make: Callable[[Path], object], said: str) -> None:
    (project / "pyproject.toml").write_text('[tool.transplt]\nrules = ["r.json"]\n')
    make(project / "r.json")
    code, output = transplt(project, "check", data=b"")
    assert code == 2
    assert "r.json: the rule file cannot be read: " + said in output or "is outside the project" in output


def test_names_of_rules_that_no_system_has(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.transplt]\nrules = ["a\\u0000b"]\n')
    code, output = transplt(project, "check", data=b"")
    assert code == 2 and "is not a possible file name" in output


@worst
def test_rules_and_baselines_that_the_command_names(
    project: Path, tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    make(tmp_path / "x")
    for option in ("-r", "--baseline"):
        code, output = transplt(project, "check", option, "../x", data=b"")
        assert code == 2
        assert said in output
    code, output = transplt(project, "analyze", ".", "--library", "../x", data=b"")
    assert code == 2


@worst
def test_a_python_file(project: Path, make: Callable[[Path], object], said: str) -> None:
    make(project / "b.py")
    code, output = transplt(project, "-i", ".", "-o", "../out", data=b"")
    assert code == ("MB" in said)
    assert " in 1 of " in output and "b.py" in output
    code, output = transplt(project, "check", data=b"")
    assert code == 1 and "a.py:2" in output
    code, output = transplt(project, "check", "b.py", data=b"")
    assert said in output if "MB" in said else code == 2 and "b.py is neither a file nor a folder" in output


def test_a_giant_python_file_costs_itself(project: Path) -> None:
    sparse(project / "b.py")
    code, output = transplt(project, "-i", ".", "-o", "../out", data=b"")
    assert code == 1
    why = "it has 3072.0 MB, and Python files are read up to 32 MB"
    assert f"failed: b.py: this cannot be opened, so it is missing from the output: {why}" in output
    assert sorted(os.listdir(project.parent / "out/proj_msft"))[0] == ".transplt"
    assert "b.py" not in os.listdir(project.parent / "out/proj_msft")
    manifest = json.loads((project.parent / "out/proj_msft/.transplt/manifest.json").read_bytes())
    assert manifest["left_out"] == ["b.py"]  # so that it may be brought
    for arguments in (["check"], ["check", "b.py"]):
        code, output = transplt(project, *arguments, data=b"")
        assert code == 1
        assert f"b.py:1:1: NPU909 this cannot be opened, so it is missing from the output: {why}" in output
    code, output = transplt(project, "-i", "b.py", data=b"")
    assert code == 2 and output == f"Error: cannot read {project}/b.py: {why}\n"


@worst
def test_files_that_are_looked_at_on_the_way(project: Path, make: Callable[[Path], object], said: str) -> None:
    """Requirement files, ignore files, the index and configuration of git, a manifest: the run goes on without."""
    for name in ("requirements.txt", ".gitignore", ".git/index", ".git/config", ".transplt/manifest.json"):
        (project / name).parent.mkdir(exist_ok=True)
        make(project / name)
    (project / ".git/info").mkdir()
    make(project / ".git/info/exclude")
    code, output = transplt(project, "-i", ".", "-o", "../out", data=b"")
    assert code == 0
    assert f"no requirement file pins torch; requirements.txt cannot be read: {said}" in output


def test_standard_input_without_end(project: Path) -> None:
    code, output = transplt(project, "check", "-")
    assert code == 2
    assert output == "Error: cannot read standard input: it is too large: Python files are read up to 32 MB\n"


def test_standard_input_of_a_pipe(project: Path) -> None:
    code, output = transplt(project, "check", "-", data=(project / "a.py").read_bytes())
    assert code == 1 and "stdin.py:2" in output


def test_settings_that_nest_deeper_than_python(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.transplt]\nx = " + "[" * 100_000 + "]" * 100_000)
    code, output = transplt(project, "check", data=b"")
    assert code == 2 and "pyproject.toml is not TOML: it is nested too deeply" in output


def test_settings_with_endless_keys(project: Path) -> None:
    """The standard library's parser takes half a minute for a key of 40 kB, and hours for one of the size allowed."""
    for text in (".".join("a" * 400_000) + " = 1", "[" + " . ".join(['"a"'] * 100_000) + "]"):
        (project / "pyproject.toml").write_text(text + "\n[tool.transplt]\n")
        code, output = transplt(project, "-i", ".", "-o", "../out", data=b"")
        assert code == 2 and "pyproject.toml is not TOML: a key has more than 60 steps" in output


def test_dots_that_are_no_steps() -> None:
    dots = "." * 100
    text = f'a = "{dots}" # {dots}\nb.c = [{"1.5, " * 100}]\n"{dots}".d = \'{dots}\'\n'
    assert parse_toml(text) == {"a": dots, "b": {"c": [1.5] * 100}, dots: {"d": dots}}
