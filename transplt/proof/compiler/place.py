"""Where the compiler of the card lies: an environment of its own in the user's cache, one that is named, or the host's.

It cannot share an environment with Triton: triton-ascend is installed over the package `triton`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from transplt.base.disk.cache_folder import NoCache, cache_folder
from transplt.base.errors import shown
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.proof.compiler.process import CHILD, NoAnswer, ask
from transplt.proof.launch.options import UsageError

#: Names a Python that has triton-ascend, in place of ours.
VARIABLE = "TRANSPLT_ASCEND_COMPILER"
#: What is installed, and the Pythons that it is there for.
PACKAGES = ("triton-ascend==3.2.0", "ascendnpu-ir==1.2.0", "pybind11")
PYTHONS = ("3.11", "3.10")
#: The command that makes the environment.
INSTALL = "transplt compiler install"
#: Seconds in which it says what it is.
_PATIENCE = 60.0


@dataclass(frozen=True)
class Place:
    """A Python with the compiler, whose it is, in words, and its versions by distribution."""

    python: str
    whose: str
    versions: Mapping[str, str] = field(default_factory=dict)
    chips: Sequence[str] = ()

    @property
    def title(self) -> str:
        """`triton-ascend 3.2.0, ascendnpu-ir 1.2.0`."""
        return ", ".join(f"{name} {version}" for name, version in self.versions.items()) or "unknown versions"

    @property
    def digest(self) -> str:
        """Of the versions and of what asks them: another one may have other answers."""
        asked = json.dumps(dict(self.versions), sort_keys=True).encode() + read_regular(CHILD, SOURCE)
        return hashlib.blake2b(asked, digest_size=16).hexdigest()

    @property
    def front_end(self) -> str:
        """`triton-ascend 3.2.0`."""
        return f"triton-ascend {self.versions.get('triton-ascend', '(unknown version)')}"


def folder() -> Path:
    """Where our own environment lies, whether it is there or not. NoCache without a cache."""
    return cache_folder() / "ascend_compiler"


def find() -> Place | None:
    """The compiler that is to be asked: what the variable names, the host's own beside CANN, or what was installed.
    UsageError where the one that is named will not do."""
    found = _there()
    if found is None:
        return None
    python, whose = found
    told = about(python)
    if not told.get("versions", {}).get("triton-ascend"):
        raise UsageError(f"{shown(python)}, {whose}, has no triton-ascend: {INSTALL} makes an environment with it.")
    return Place(python, whose, told["versions"], told["chips"])


def _there() -> tuple[str, str] | None:
    named = os.environ.get(VARIABLE)
    if named:
        return named, f"named by {VARIABLE}"
    if shutil.which("bishengir-compile") is not None and any(metadata.distributions(name="triton-ascend")):
        return sys.executable, "of this host, installed with CANN"
    try:
        python = folder() / "bin" / "python"
    except NoCache:
        return None
    return (str(python), "installed by transplt") if python.is_file() else None


def hint(how: str = "--compile") -> str:
    """For the end of a command that saw kernels and did not compile them."""
    way = "" if _there() is not None else f"; {INSTALL} downloads it (220 MB)"
    return f"Triton kernels: {how} compiles them for the card, and reports what does not fit or is refused{way}"


def needed() -> Place:
    """The compiler. UsageError, one sentence with the way to get it, where there is none."""
    place = find()
    if place is None:
        raise UsageError(f"--compile needs the compiler for Ascend cards, which is not installed: {INSTALL}.")
    return place


def about(python: str) -> dict[str, Any]:
    """The `versions` and `chips` of the compiler of a Python; nothing where it does not answer."""
    try:
        answer = json.loads(ask(python, "", _PATIENCE, "about"))
    except (NoAnswer, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}
