"""`transplt compiler install`: the environment of the compiler for Ascend cards, in the user's cache."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from transplt.base.disk.cache_folder import Cache, NoCache
from transplt.base.disk.whole_folder import whole_folder
from transplt.base.errors import reason, shown
from transplt.project.environment.installer import Installer
from transplt.proof.compiler.place import PACKAGES, PYTHONS, Place, about, folder
from transplt.proof.launch import interpreter
from transplt.proof.launch.options import UsageError
from transplt.proof.launch.pip import Failed

#: What is downloaded, of whom, and under which licence, as the metadata of the wheels have it.
WHAT = (
    f"{PACKAGES[0]} (the front end of Triton, MIT, 54 MB) and {PACKAGES[1]} (bishengir-compile of Huawei, Apache-2.0, "
    "161 MB), from pip's index: some 220 MB, 700 MB on the disk"
)
_ABI = re.compile(rf"cpython-(?:{'|'.join(PYTHONS)})-(?:x86_64|aarch64)-linux-gnu".replace(".", ""))


def install(say: Callable[[str], None]) -> tuple[Place, bool]:
    """The compiler, and whether it was there already. UsageError, one sentence, where it cannot be had."""
    try:
        Cache.of_user()
        place = folder()
    except NoCache as why:
        raise UsageError(f"the compiler is kept in the user's cache folder, which cannot be used: {why}.") from why
    there = place.is_dir()
    if not there:
        base = _base()
        say(f"into {shown(str(place))}: {WHAT}")
        try:
            with whole_folder(place) as made:
                _fill(made, base)
        except OSError as error:
            raise UsageError(f"the compiler cannot be written to {shown(str(place))}: {reason(error)}.") from error
    python = str(place / "bin" / "python")
    told = about(python)
    if not told.get("versions", {}).get("triton-ascend"):
        raise UsageError(f"{shown(str(place))} does not work: `transplt compiler remove`, then install again.")
    return Place(python, "installed by transplt", told["versions"], told["chips"]), there


def _fill(made: Path, base: str) -> None:
    made.rmdir()  # uv makes none where a folder is
    lock = os.open(made.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        installer = Installer.of(made, lock)
        installer.make(base)
        installer.install(PACKAGES)
    except Failed as why:
        away = "the index of packages cannot be reached" if why.offline else "the compiler cannot be downloaded"
        raise UsageError(f"{away}: {why}.") from why
    finally:
        os.close(lock)


def _base() -> str:
    """A Python that the wheels are for: ours, one on the path, or one that uv has or fetches."""
    if sys.platform != "linux":
        raise UsageError("the compiler is only for Linux (x86_64 and aarch64).")
    for python in (sys.executable, *filter(None, map(shutil.which, (f"python{each}" for each in PYTHONS)))):
        if _ABI.fullmatch(interpreter.whole_of(python).abi):
            return python
    if shutil.which("uv") is not None:
        return PYTHONS[0]
    wanted = " or ".join(reversed(PYTHONS))
    raise UsageError(
        f"the compiler only has wheels for Python {wanted}, and none is on the path: install it, or uv, which "
        "downloads it."
    )
