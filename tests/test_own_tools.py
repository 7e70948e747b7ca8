"""What a project's own linters, formatters and type checker say of a port."""

from __future__ import annotations

import shutil
import sys
import textwrap
from pathlib import Path

import pytest

from transplt.project.port.own_tools import OwnTools

#: A tool that writes down how it was started, and says of each line with a word in it what a test wants.
FAKE = """\
#!{python}
import pathlib, sys
here = pathlib.Path(__file__)
with here.with_suffix(".calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
found = 0
for path in (each for each in sys.argv[1:] if each.startswith("./")):
    for number, line in enumerate(open(path), 1):
        if "DEVICE_TYPE" in line:
            found = 1
            print({said!r}.replace("PATH", path).replace("LINE", str(number)))
sys.exit({code} or found)
"""
BEFORE = "x = 'cuda'\n"
AFTER = "x = DEVICE_TYPE\n"


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """`before` and `after` of one file, and a folder for programs."""
    for name, text in (("before", BEFORE), ("after", AFTER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(text)
    (tmp_path / "bin").mkdir()
    return tmp_path


def settings(folders: Path, **files: str) -> None:
    for name, text in files.items():
        (folders / "before" / name.replace("__", ".")).write_text(textwrap.dedent(text))


def fake(folders: Path, name: str, said: str, code: int = 0) -> None:
    program = folders / "bin" / name
    program.write_text(FAKE.format(python=sys.executable, said=said, code=code))
    program.chmod(0o755)


def calls(folders: Path, name: str) -> list[str]:
    return (folders / "bin" / f"{name}.calls").read_text().splitlines()


def tools(folders: Path) -> OwnTools:
    return OwnTools(folders / "before", ["a.py", "notes.txt"], str(folders / "bin" / "python"))


def differences(folders: Path) -> list[str]:
    return [*tools(folders).differences(folders / "after")]


def test_a_project_that_names_none(folders: Path) -> None:
    fake(folders, "flake8", "PATH:LINE:80: E501 line too long")
    settings(folders, setup__cfg="[metadata]\nname = x\n", pyproject__toml="[tool.poetry]\n")
    assert differences(folders) == []


@pytest.mark.parametrize(
    ("name", "said", "asked", "shown"),
    [
        ("flake8", "PATH:LINE:80: E501 long", {"setup__cfg": "[flake8]\n"}, "flake8 ORIGINAL E501 a.py:1"),
        ("flake8", "PATH:LINE:80: E501 long", {"__flake8": "[flake8]\n"}, "flake8 ORIGINAL E501 a.py:1"),
        ("flake8", "PATH:LINE:80: E501 long", {"tox__ini": "[flake8]\n"}, "flake8 ORIGINAL E501 a.py:1"),
        ("ruff", "PATH:LINE:1: F821 Undefined", {"ruff__toml": ""}, "ruff check ORIGINAL F821 a.py:1"),
        ("ruff", "PATH:LINE:1: F821 No", {"pyproject__toml": "[tool.ruff]\n"}, "ruff check ORIGINAL F821 a.py:1"),
        ("mypy", "PATH:LINE: error: No  [attr-defined]", {"pyproject__toml": "[tool.mypy]\n"},
         "mypy ORIGINAL attr-defined a.py:1"),
        ("black", "--- PATH\t2026\n+++ PATH\n@@ -LINE,1 @@", {"pyproject__toml": "[tool.black]\n"},
         "black ORIGINAL would reformat a.py:1"),
        ("isort", "--- PATH:before\t2026\n@@ -LINE,1 @@", {"__isort__cfg": "[settings]\n"},
         "isort ORIGINAL would reformat a.py:1"),
    ],
)  # fmt: skip
def test_what_is_said_of_the_result_alone(
    folders: Path, name: str, said: str, asked: dict[str, str], shown: str
) -> None:
    settings(folders, **asked)
    fake(folders, name, said)
    assert differences(folders) == [shown.replace(" ORIGINAL", ": new errors:")]


def test_what_was_said_before_is_no_difference(folders: Path) -> None:
    settings(folders, setup__cfg="[flake8]\n")
    fake(folders, "flake8", "PATH:LINE:80: E501 long")
    (folders / "before" / "a.py").write_text("y = DEVICE_TYPE\n")
    assert differences(folders) == ["flake8: no new errors in 1 file, without plugins"]


def test_a_hook_names_a_tool_and_a_local_hook_is_not_run(folders: Path) -> None:
    hooks = """\
        repos:
          - repo: https://github.com/PyCQA/flake8
            rev: 6.0.0
            hooks:
              - id: flake8
                args: ["--max-line-length=100", "--config=evil.cfg", '--output-file=x', --extend-ignore, "E203, W503"]
          - repo: local
            hooks:
              - id: mine
                entry: ./evil.sh
                language: system
        """
    settings(folders, **{"__pre-commit-config__yaml": hooks})
    fake(folders, "flake8", "PATH:LINE:80: E501 long")
    assert differences(folders)[0].startswith("flake8: new errors")
    assert set(calls(folders, "flake8")) == {"--isolated --max-line-length=100 --extend-ignore=E203,W503 ./a.py"}


def test_settings_that_name_code_or_files_are_not_passed_on(folders: Path) -> None:
    settings(
        folders,
        setup__cfg="[flake8]\nmax_line_length = 79\nignore =\n    # why\n    W503,\n    E203\noutput-file = x\n"
        "[flake8:local-plugins]\nextension = X = evil:Plugin\n",
        pyproject__toml='[tool.mypy]\nstrict = true\nplugins = ["./evil.py"]\npython_executable = "./evil"\n'
        'html_report = "x"\nwarn_unused_ignores = false\n',
    )
    fake(folders, "flake8", "")
    fake(folders, "mypy", "")
    differences(folders)
    assert set(calls(folders, "flake8")) == {"--isolated --ignore=W503,E203 --max-line-length=79 ./a.py"}
    assert {"--strict", "--config-file="} <= {*calls(folders, "mypy")[0].split()}
    assert not [each for each in calls(folders, "mypy") if "evil" in each or "report" in each or "unused" in each]


def test_one_that_is_not_there_or_fails_is_said(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(folders / "bin" / "python"))
    monkeypatch.setenv("PATH", str(folders / "bin"))
    settings(folders, setup__cfg="[flake8]\n", pyproject__toml="[tool.black]\n[tool.mypy]\n")
    (folders / "bin" / "mypy").write_text("#!/bin/sh\necho 'no such option: --x' >&2\nexit 2\n")
    (folders / "bin" / "mypy").chmod(0o755)
    assert differences(folders) == [
        "black: not run (the project uses it, but it is not installed here)",
        "flake8: not run (the project uses it, but it is not installed here)",
        "mypy: not run: it ended with 2: no such option: --x",
    ]


# --- with ruff -------------------------------------------------------------------------------------------------------

with_ruff = pytest.mark.skipif(shutil.which("ruff", path=str(Path(sys.executable).parent)) is None, reason="no ruff")
RUFF = '[tool.ruff]\nline-length = 40\n[tool.ruff.lint]\nselect = ["E", "F", "I"]\n[tool.ruff.format]\n'


@with_ruff
def test_what_was_formatted_is_formatted_again(folders: Path) -> None:
    settings(folders, pyproject__toml=RUFF)
    shutil.copy(folders / "before" / "pyproject.toml", folders / "after")
    old = "import os\n\nimport b\n\nx = b.f(os, 'cuda')\n".replace("'", '"')
    new = "import os\nimport sys\n\nimport b\nfrom a import DEVICE_TYPE\n\nx = b.f(os, DEVICE_TYPE, NUMBER)\n"
    new = new.replace("NUMBER", "12345678901234567")
    (folders / "before" / "a.py").write_text(old)
    (folders / "after" / "a.py").write_text(new)
    own = OwnTools(folders / "before", ["a.py"], "")
    own.look(folders / "after")
    own.mend(folders / "after", ["a.py"])
    assert (folders / "after" / "a.py").read_text() == (
        "import os\n\nimport b\n\nfrom a import DEVICE_TYPE\n\nx = b.f(\n    os, DEVICE_TYPE, 12345678901234567\n)\n"
    )
    assert [*own.differences(folders / "after")] == [
        f"{name}: no new errors in 1 file" for name in ("ruff check", "ruff format")
    ]


@with_ruff
@pytest.mark.parametrize(("selected", "gap"), [('"I", "F"', "\n"), ('"F"', "\n\n")])
def test_what_stands_around_an_import_that_went_is_in_order(folders: Path, selected: str, gap: str) -> None:
    settings(folders, pyproject__toml=f"[tool.ruff.lint]\nselect = [{selected}]\n")
    shutil.copy(folders / "before" / "pyproject.toml", folders / "after")
    text = "import os\n\nimport torch\n\nfrom a import b\n\nprint(os, b{})\n"
    (folders / "before" / "a.py").write_text(text.format(", torch"))
    (folders / "after" / "a.py").write_text(text.format(""))
    own = OwnTools(folders / "before", ["a.py"], "")
    own.look(folders / "after")
    own.mend(folders / "after", ["a.py"])
    assert (folders / "after" / "a.py").read_text() == f"import os\n{gap}from a import b\n\nprint(os, b)\n"


@with_ruff
def test_an_unused_import_that_was_there_stays(folders: Path) -> None:
    settings(folders, pyproject__toml='[tool.ruff.lint]\nselect = ["I", "F"]\n')
    shutil.copy(folders / "before" / "pyproject.toml", folders / "after")
    (folders / "before" / "a.py").write_text("import os\n")
    (folders / "after" / "a.py").write_text("import sys\nimport os\n")
    own = OwnTools(folders / "before", ["a.py"], "")
    own.look(folders / "after")
    own.mend(folders / "after", ["a.py"])
    assert (folders / "after" / "a.py").read_text() == "import os\nimport sys\n"
    assert [*own.differences(folders / "after")] == [
        "ruff check: new errors: F401 a.py:2"
    ]


@with_ruff
def test_what_was_not_formatted_stays_as_it_is(folders: Path) -> None:
    settings(folders, pyproject__toml=RUFF)
    shutil.copy(folders / "before" / "pyproject.toml", folders / "after")
    (folders / "before" / "a.py").write_text("import b, os\nx = { 'cuda' }\n")
    (folders / "after" / "a.py").write_text("import b, os\nx = { DEVICE }\n")
    own = OwnTools(folders / "before", ["a.py"], "")
    own.look(folders / "after")
    own.mend(folders / "after", ["a.py"])
    assert (folders / "after" / "a.py").read_text() == "import b, os\nx = { DEVICE }\n"
    assert next(own.differences(folders / "after")) == (
        "ruff check: new errors: F821 a.py:2"
    )


def test_what_is_said_to_a_linter_stays(folders: Path) -> None:
    """isort with ignore_comments takes `# noqa` away, and what loads torch_npu would be an unused import."""
    settings(folders, pyproject__toml="[tool.isort]\n")
    fake(folders, "isort", "--- PATH:before\t2026\n@@ -LINE,1 @@")
    own = tools(folders)
    own.look(folders / "after")
    text = "import torch_npu  # noqa: F401\n"
    (folders / "after" / "a.py").write_text(text)
    (folders / "bin" / "isort").write_text("#!/bin/sh\nfor each; do echo 'import torch_npu' > $each; done\n")
    own.mend(folders / "after", ["a.py"])
    assert (folders / "after" / "a.py").read_text() == text
