"""Public scripts made small enough to run here: their settings, their data, and what stands in for packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from many_cards_scripts import Script

from transplt.proof.launch.runner import READY_STUBS

HERE = Path(__file__).resolve().parent
STUBS = HERE / "stubs"
_PACKAGES = (*STUBS.iterdir(), *(READY_STUBS / "packages").iterdir())
_LEFT_OUT = shutil.ignore_patterns(".git", "*.png", "*.jpg", "*.wav", "*.ipynb", "*.gif", "*.mp4", "*.pt", "*.pth")


def source_of(script: Script, corpus: Path, place: Path) -> Path:
    """A copy of the script's project below `place`, with the small settings of the list.

    Ends the program where a setting is not in the script: the list is then behind its repository.
    """
    source = place / "source" / Path(script.project).name
    shutil.copytree(corpus / script.project, source, ignore=_LEFT_OUT)
    main = source / script.main
    text = main.read_text(encoding="utf-8")
    for old, new in script.settings:
        if old not in text:
            raise SystemExit(f"{script.name}: {old!r} is not in it")
        text = text.replace(old, new)
    main.write_text(text, encoding="utf-8")
    return source


def with_stubs(here: Path, script: Script) -> None:
    """Put into the folder of the main file what stands in for packages, and the data that the script reads."""
    for path in _PACKAGES:
        if path.is_dir():
            shutil.copytree(path, here / path.name, dirs_exist_ok=True)
    for name in script.stubs:
        shutil.copy(STUBS / "anything.py", here / f"{name}.py")
    if script.prepare:
        subprocess.run([sys.executable, "-c", script.prepare], cwd=here, check=True, capture_output=True)


def arguments_of(script: Script, batch: int = 4) -> list[str]:
    """The arguments of the script with the number of samples of a batch."""
    return [each.replace("{batch}", str(batch)) for each in script.arguments]
