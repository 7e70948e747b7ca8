"""Port your first repository: its output is typed, on the repository itself or on a tree with the same lines.

`TRANSPLT_MINGPT=CHECKOUT`, a checkout of karpathy/minGPT at commit 37baab7, makes the whole page be typed on that.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.regen_samples import ROOT

CHECKOUT = os.environ.get("TRANSPLT_MINGPT", "")
PAGE = (ROOT / "docs" / "first_port.md").read_text(encoding="utf-8")
#: The lines that the page is about, each in the line where the repository has it; the other files are empty.
CELL = (
    '{{\n"cell_type": "code", "execution_count": null, "metadata": {{}}, '
    '"outputs": [{outputs}], "source": [\n{source}]}}'
)
PRINTED = '{"output_type": "stream", "name": "stdout", "text": [' + 155 * "\n" + '      "running on device cuda"]}'
IMPORTS = '"import torch\\n",\n"from mingpt.trainer import Trainer\\n",\n"from mingpt.utils import set_seed\\n"\n'
ASKS = "device = 'cuda' if torch.cuda.is_available() else 'cpu'"
FILES = {
    "setup.py": "from setuptools import setup\n\nsetup(\n    name='gpt',\n    version='1',\n    packages=['mingpt'],\n"
    "\n    license='MIT',\n    install_requires=[\n            'torch',\n    ],\n)\n",
    "generate.ipynb": CELL.format(outputs="", source=IMPORTS) + ",\n"
    + CELL.format(outputs="", source="\"device = 'cuda'\""),
    "demo.ipynb": CELL.format(outputs=PRINTED, source='"1"'),
    "mingpt/__init__.py": "",
    "mingpt/trainer.py": 34 * "\n" + "import torch\n\n\nclass Trainer:\n    def __init__(self):\n            self."
    + ASKS + "\n",
    "mingpt/utils.py": "import torch\n" + 14 * "\n" + "def set_seed(seed):\n    torch.cuda.manual_seed_all(seed)\n",
    "tests/test_huggingface_import.py": 5 * "\n" + "import torch\n" + 9 * "\n" + ASKS + "\n",
    **{f"empty/{number}": "" for number in range(11)},
}  # fmt: skip


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page and the lines that it shows of the output; the two that fetch it are left out."""
    found: list[tuple[str, list[str]]] = []
    for kind, block in re.findall(r"^```(sh|text)\n(.*?)^```", PAGE, re.M | re.S):
        if kind == "sh":
            found += [(line, []) for line in block.splitlines()]
        else:
            found[-1][1].extend(block.splitlines())
    return found[2:]


def type_page(folder: Path, commands: list[tuple[str, list[str]]]) -> None:
    """Type commands in a folder that holds minGPT; what the page shows is what they print, in that order."""
    transplt = folder / "bin" / "transplt"
    transplt.parent.mkdir()
    transplt.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{ROOT}" exec "{sys.executable}" -m transplt "$@"\n')
    transplt.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{transplt.parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": "",
    }
    for command, shown in commands:
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, check=False)
        printed = iter((done.stdout + done.stderr).splitlines())
        for line in shown:
            assert line in printed, (command, line, done.stdout + done.stderr)


def test_what_the_page_shows_up_to_the_proof(tmp_path: Path) -> None:
    """On a tree with the lines that matter, of which minGPT has more."""
    notebook = '{{"cells": [{}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}\n'
    for name, text in FILES.items():
        file = tmp_path / "minGPT" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(notebook.format(text) if name.endswith(".ipynb") else text, encoding="utf-8")
    before = [(command, shown) for command, shown in steps() if "prove" not in command]
    assert len(before) == 6
    type_page(tmp_path, before)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.skipif(not CHECKOUT, reason="TRANSPLT_MINGPT names no checkout of karpathy/minGPT")
def test_every_command_on_the_repository(tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT, tmp_path / "minGPT", ignore=shutil.ignore_patterns(".git"))
    assert len(steps()) == 8
    type_page(tmp_path, steps())
