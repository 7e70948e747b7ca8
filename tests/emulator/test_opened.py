"""Whether a file that is missing was to be written: what the emulator adds to an error of `open`."""

from __future__ import annotations

import importlib.util
import linecache
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[2] / "transplt/emulator/site/npu_emulator/opened.py"
_spec = importlib.util.spec_from_file_location("opened", _FILE)
assert _spec is not None and _spec.loader is not None
opened = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(opened)

IMPORTS = "import gzip, io, logging, os, pathlib, shutil\n"


def error_of(source: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> BaseException:
    """What a script raises that is run in a folder."""
    monkeypatch.chdir(folder)
    (folder / "there").mkdir()
    (folder / "file.txt").write_text("")
    script = folder / "script.py"
    script.write_text(IMPORTS + source, encoding="utf-8")
    linecache.checkcache()
    with pytest.raises(Exception) as caught:
        exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), {})
    return caught.value


@pytest.mark.parametrize(
    "source",
    [
        'open("logs/a.txt", "w")\n',
        'with open("logs/a.txt", mode="ab") as file:\n    pass\n',
        'mode = "x"\nopen("logs/a.txt", mode)\n',
        'open(\n    os.path.join("logs", "a.txt"),\n    "r+",\n)\n',
        'def save(path, mode="w"):\n    open(path, mode)\nsave("logs/a.txt")\n',
        'io.open("logs/a.txt", "wt")\n',
        'flags = os.O_WRONLY | os.O_CREAT\nos.open("logs/a.txt", flags)\n',
        'pathlib.Path("logs/a.txt").write_text("a")\n',
        'pathlib.Path("logs/a.txt").open("w")\n',
        'pathlib.Path("logs/a.txt").touch()\n',
        'logging.FileHandler("logs/a.txt")\n',
        'gzip.open("logs/a.gz", "wb")\n',
        'shutil.copy("file.txt", "logs/a.txt")\n',
        'os.mkdir("logs/run")\n',
        'pathlib.Path("logs/run").mkdir()\n',
    ],
)
def test_it_was_to_be_written(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened.is_to_write(error_of(source, tmp_path, monkeypatch))


@pytest.mark.parametrize(
    "source",
    [
        'open("data/a.txt")\n',
        'open("data/a.txt", "rb")\n',
        'open("data/a.txt", encoding="w")\n',
        'open("a.txt")\n',
        # The folder is there: what is missing is the file, which is read.
        'open("there/a.txt")\n',
        'mode = "rw"[:1]\nopen("data/a.txt", mode)\n',
        # Which of the two is missing is not told.
        'with open("data/a.txt") as one, open("logs/b.txt", "w") as other:\n    pass\n',
        'open("data/a.txt", *["w"][1:])\n',
        'pathlib.Path("data/a.txt").read_text()\n',
        'gzip.open("data/a.gz")\n',
        'shutil.copy("data/a.txt", "there/a.txt")\n',
        'os.listdir("data")\n',
        'os.rename("data/a", "data/b")\n',
        # A folder cannot be made in the place of a file.
        'open("file.txt/a.txt", "w")\n',
        'open("there", "w")\n',
        "int('w')\n",
    ],
)
def test_it_was_not(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not opened.is_to_write(error_of(source, tmp_path, monkeypatch))
