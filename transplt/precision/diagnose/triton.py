"""Which Triton a Python has: triton for GPUs and triton-ascend lie in one folder, and what was installed last is there.

Nothing is imported: the files of the folder are held against the lists that both packages keep of theirs (RECORD).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from transplt.base.text.regular_file import SOURCE, read_regular

GPU, ASCEND = "triton", "triton-ascend"
#: Files that differ between the two; of the last one only the size is compared, it is large.
_TOLD_BY = ("triton/__init__.py", "triton/compiler/compiler.py", "triton/runtime/jit.py", "triton/_C/libtriton.so")


@dataclass(frozen=True, slots=True)
class Triton:
    """Versions, empty for what is not installed; `in_force` is the package whose files are there: triton,
    triton-ascend, `mixed` for files of both, empty where that cannot be said."""

    triton: str = ""
    ascend: str = ""
    in_force: str = ""


def installed_triton() -> Triton:
    """What this Python has."""
    gpu, ascend = _distribution(GPU), _distribution(ASCEND)
    versions = gpu.version if gpu else "", ascend.version if ascend else ""
    if gpu is None or ascend is None:
        return Triton(*versions, GPU if gpu else ASCEND if ascend else "")
    return Triton(*versions, _in_force(gpu, ascend))


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _in_force(gpu: Distribution, ascend: Distribution) -> str:
    """Whose files are in the folder that both share."""
    of_gpu, of_ascend = _recorded(gpu), _recorded(ascend)
    found = set()
    for name in _TOLD_BY:
        first, second = of_gpu.get(name), of_ascend.get(name)
        if first is None or second is None or first == second:
            continue
        there = _identity(Path(str(gpu.locate_file(name))), name)
        found |= {GPU} if there == first else {ASCEND} if there == second else set()
    return "mixed" if len(found) == 2 else found.pop() if found else ""


def _recorded(package: Distribution) -> dict[str, str]:
    found = {}
    for file in package.files or ():
        name = file.as_posix()
        if name in _TOLD_BY:
            found[name] = str(file.size) if name.endswith(".so") else file.hash.value if file.hash else ""
    return found


def _identity(path: Path, name: str) -> str:
    try:
        if name.endswith(".so"):
            return str(path.stat().st_size)
        digest = hashlib.sha256(read_regular(path, SOURCE)).digest()
    except OSError:
        return ""
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
