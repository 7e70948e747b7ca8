"""The example of docs/triton.md: its file, its commands, and what they print."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from tests.test_quick_start import ROOT, typed

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs pip install '.[triton]'"),
]
SECTION = (ROOT / "docs" / "triton.md").read_text("utf-8").partition("\n## From a kernel")[2].partition("\n## ")[0]


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", SECTION, re.M | re.S)


@pytest.mark.slow
def test_the_example_goes_as_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "main.py").write_text(*blocks("python"))
    printed = ""
    for line in "".join(blocks("sh")).splitlines():
        fails = " check " in line or shlex.split(line)[-1] == "70000"
        printed += typed(tmp_path, line, 1 if fails else 0)
    assert len(blocks("text")) == 3
    for block in blocks("text"):
        assert block in printed, printed


def test_a_kernel_that_does_not_fit_is_mended_as_the_page_says(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "triton.md").read_text("utf-8").partition("\n## A kernel that")[2].partition("\n## ")[0]
    (tmp_path / "project").mkdir()
    kernel, mended = re.findall(r"^```python\n(.*?)^```", section, re.M | re.S)
    (tmp_path / "project" / "main.py").write_text(kernel)
    (command,) = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    printed = typed(tmp_path, command.strip(), 1)
    assert re.findall(r"^```text\n(.*?)^```", section, re.M | re.S)[1] in printed
    typed(tmp_path, "transplt -q -i project -o tuned --tune triton --exit-zero", 0)
    assert mended in (tmp_path / "tuned" / "project_msft" / "main.py").read_text()
