"""Versions of torch: which of those that we know a rule or a fixer holds for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from transplt.base.settings import TORCH_VERSIONS, Settings

#: The last torch whose DataLoader pins memory for CUDA unless a device is given.
LAST_CUDA_PINNING = "2.6"
_CLAUSE = re.compile(r"\s*(==|!=|>=|<=|>|<)\s*(\d+)\.(\d+)\s*")


def version_key(version: str) -> tuple[int, int]:
    """`"2.10"` -> `(2, 10)`. Raises ValueError for anything but major.minor."""
    major, minor = version.split(".")
    return int(major), int(minor)


def loads_itself(version: str) -> bool:
    """True for a torch that loads torch_npu by itself (the entry point torch.backends)."""
    return version_key(version) >= (2, 5)


def oldest_held(settings: Settings) -> str:
    """The oldest torch that an edit has to hold for, by the target and by what a project admits, where it says so:
    torch_npu begins with 2.1, and no pin is not the newest.
    """
    return max("2.1", min((settings.torch_version, settings.oldest_torch or "2.1"), key=version_key), key=version_key)


def versions_of(spec: str | Sequence[str] | None) -> frozenset[str]:
    """The torch versions (minors that transplt knows) a `versions` value names; None means all.

    `spec` is a specifier such as `">=2.1,!=2.8"` or a list of minors. Raises ValueError when it cannot be read.
    """
    if spec is None:
        return frozenset(TORCH_VERSIONS)
    if not isinstance(spec, str):
        wrong = [item for item in spec if item not in TORCH_VERSIONS]
        if wrong:
            raise ValueError(f"{wrong[0]!r} is not one of {', '.join(TORCH_VERSIONS)}")
        return frozenset(spec)
    return _compared(spec)


@cache
def _compared(spec: str) -> frozenset[str]:
    chosen = set(TORCH_VERSIONS)
    for clause in spec.split(","):
        match = _CLAUSE.fullmatch(clause)
        if match is None:
            raise ValueError(f"{clause.strip()!r} is not a comparison such as >=2.1 or !=2.8")
        operator, wanted = match[1], (int(match[2]), int(match[3]))
        chosen = {version for version in chosen if _compare(version_key(version), operator, wanted)}
    return frozenset(chosen)


def in_order(spec: str) -> tuple[str, ...]:
    """`versions_of`, oldest first."""
    held = versions_of(spec)
    return tuple(version for version in TORCH_VERSIONS if version in held)


def _compare(have: tuple[int, int], operator: str, wanted: tuple[int, int]) -> bool:
    if operator == "==":
        return have == wanted
    if operator == "!=":
        return have != wanted
    if operator == ">=":
        return have >= wanted
    if operator == "<=":
        return have <= wanted
    return have > wanted if operator == ">" else have < wanted


def spans(versions: Sequence[str]) -> str:
    """`2.1-2.13`, `2.6, 2.8-2.13`: runs of versions that follow each other; they come in order."""
    runs: list[list[str]] = []
    for version in versions:
        at = TORCH_VERSIONS.index(version)
        if runs and at and runs[-1][-1] == TORCH_VERSIONS[at - 1]:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
