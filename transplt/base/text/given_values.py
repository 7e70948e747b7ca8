"""What is not Python and gives a program its settings: beside which names it speaks of CUDA."""

from __future__ import annotations

import re

_SUFFIXES = (
    ".json", ".jsonc", ".json5", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".env", ".gin", ".properties",
    ".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".pbs", ".mk", ".envrc",
)  # fmt: skip
_NAMES = re.compile(r"\.env.*|(?:.*\.)?(?:docker|container|make)file.*|readme\.(?:md|rst)", re.I)
_CUDA = re.compile(rb"cuda|nccl", re.I)
_WORD = re.compile(rb"[A-Za-z_][\w-]*")
#: The name of a value stands so near before it: `"device": "cuda:0"`, `--dist-backend nccl`, `DEVICE=cuda`.
_NEAR = 60


def gives_settings(name: str) -> bool:
    """True for the name of a file that may give a program its settings."""
    return name.endswith(_SUFFIXES) or _NAMES.fullmatch(name) is not None


def names_given(data: bytes) -> tuple[str, ...]:
    """The names before the words of CUDA in a file; some of them are none of settings."""
    found: set[bytes] = set()
    for match in _CUDA.finditer(data):
        found.update(_WORD.findall(data, max(match.start() - _NEAR, 0), match.start()))
    return tuple(sorted(name.decode().replace("-", "_") for name in found))
