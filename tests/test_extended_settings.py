"""`extend` in [tool.transplt]: settings of another file of the project."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from transplt.base.errors import UsageError
from transplt.project.checking.watching import each_change
from transplt.project.config import read_config
from transplt.project.options import Options

HEAD = "[tool.transplt]\n"


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    return tmp_path


def test_the_nearest_file_wins_key_by_key(repo: Path) -> None:
    write(repo / "base.toml", 'extend = "root.toml"', 'style = "npu"', "texts = true", 'exclude = ["a/"]')
    write(repo / "root.toml", "docs = true", "texts = false", 'exclude = ["b/"]')
    write(repo / "sub/pyproject.toml", 'extend = "../base.toml"', 'style = "portable"')
    found = read_config(repo / "sub")
    assert (found.style, found.texts, found.docs, found.exclude) == ("portable", True, True, ("a/",))
    assert found.folder == repo / "sub" and found.similar is None
    names = {key: path.name for key, path in found.inherited}
    assert names == {"texts": "base.toml", "exclude": "base.toml", "docs": "root.toml"}


def test_rule_files_lie_beside_the_file_that_names_them(repo: Path) -> None:
    (repo / "rules.json").write_text('{"rules": {}}')
    write(repo / "base.toml", 'rules = ["rules.json"]')
    write(repo / "sub/pyproject.toml", 'extend = "../base.toml"')
    (rule,) = read_config(repo / "sub").rules
    assert rule.resolve() == (repo / "rules.json").resolve()


def test_without_extend_nothing_is_inherited(repo: Path) -> None:
    write(repo / "pyproject.toml", "docs = true")
    write(repo / "sub/pyproject.toml", "texts = true")
    found = read_config(repo / "sub")
    assert (found.docs, found.texts, found.inherited, found.extended) == (None, True, (), ())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('"none.toml"', "pyproject.toml:3: extend: no such file: 'none.toml'"),
        ('"empty.toml"', "extend: 'empty.toml' has no table [tool.transplt]"),
        ('"pyproject.toml"', "extend: 'pyproject.toml' extends this file itself, in a circle"),
        ('"other.toml"', "other.toml:2: extend: 'pyproject.toml' extends this file itself, in a circle"),
        ('"../outside.toml"', "extend: '../outside.toml' is outside"),
        ('"/etc/passwd"', "extend: '/etc/passwd' is outside"),
        ('"link.toml"', "extend: 'link.toml' is outside"),
        ("3", 'pyproject.toml:3: extend must be the path of one file, such as "../base.toml"'),
        ('["a.toml"]', "extend must be the path of one file"),
        ('"fixers.toml"', "fixers.toml: [tool.transplt]: unknown key 'fixers'"),
        ('"wrong.toml"', "wrong.toml: [tool.transplt]: style must be one of"),
        ('"\\u0000"', "is not a possible file name"),
    ],
)
def test_what_is_refused(value: str, said: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(project / "pyproject.toml", "docs = true", f"extend = {value}")
    write(project / "other.toml", 'extend = "pyproject.toml"')
    write(project / "fixers.toml", 'fixers = ["acme"]')
    write(project / "wrong.toml", 'style = "x"')
    (project / "empty.toml").write_text("")
    write(tmp_path / "outside.toml")
    (project / "link.toml").symlink_to(tmp_path / "outside.toml")
    with pytest.raises(UsageError) as error:
        read_config(project)
    assert said in str(error.value) and "\n" not in str(error.value)


def test_the_command_names_the_source(repo: Path) -> None:
    write(repo / "base.toml", "texts = true", '[tool.transplt.per-file-ignores]\n"a.py" = ["NPU3"]')
    write(repo / "sub/pyproject.toml", 'extend = "../base.toml"', "docs = true")
    command = [sys.executable, "-m", "transplt", "config", "--format", "json"]
    done = subprocess.run(command, cwd=repo / "sub", capture_output=True, text=True, check=True)
    rows = {key: row["source"] for key, row in json.loads(done.stdout).items()}
    assert (rows["texts"], rows["docs"], rows["similar"]) == ("../base.toml", "pyproject.toml", "default")
    assert rows["per-file-ignores"] == "../base.toml"
    assert done.stderr.startswith("../base.toml: per-file-ignores turns off NPU3 for 'a.py'")


def test_watch_sees_what_is_extended(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write(repo / "base.toml", "texts = true")
    write(repo / "sub/pyproject.toml", 'extend = "../base.toml"')
    monkeypatch.setattr(
        "transplt.project.checking.watching._wait", lambda state, took: write(base, "texts = false", "docs = true")
    )
    found = each_change([repo / "sub"], Options(source=repo / "sub"))
    assert next(found) == next(found)
