"""How long a line of a project may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from transplt.project.line_length import line_length


@pytest.mark.parametrize(
    ("files", "length"),
    [
        ({}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 119\n"}, 119),
        ({"pyproject.toml": "[tool.black]\nline-length = 100\n\n[tool.ruff]\nline-length = 120\n"}, 100),
        ({"setup.cfg": "[flake8]\nmax-line-length = 79\n"}, 79),
        ({"setup.cfg": "[flake8]\nmax-line-length = 120\n", "pyproject.toml": "[tool.black]\nline-length = 90\n"}, 90),
        ({".editorconfig": "root = true\n\n[*]\nindent_size = 4\nmax_line_length = 110\n"}, 110),
        ({".editorconfig": "root = true\n[*.py]\nmax_line_length = off\n"}, 88),
        ({"ruff.toml": "line-length = 99\n"}, 99),
        ({"pyproject.toml": "not toml", "setup.cfg": "not a section"}, 88),
        ({"pyproject.toml": "[tool.ruff]\nline-length = 'wide'\n"}, 88),
    ],
)
def test_what_says_it(files: dict[str, str], length: int, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert line_length(tmp_path) == length


def test_it_is_looked_for_up_to_the_top_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 70\n")
    inner = tmp_path / "repository" / "src"
    inner.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    assert line_length(inner) == 88
    (tmp_path / "repository" / "setup.cfg").write_text("[flake8]\nmax-line-length = 100\n")
    assert line_length(inner) == 100
