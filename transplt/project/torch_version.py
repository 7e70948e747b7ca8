"""The torch that a migration aims at: what was asked for, else what the project pins (`pins.py`), else the newest."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from transplt.base.errors import UsageError
from transplt.base.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS, TorchTarget
from transplt.project.pins import pins
from transplt.rules.releases import release_of
from transplt.rules.versions import version_key


def choose_target(root: Path, asked: str | None, configured: str | None = None) -> TorchTarget:
    """The version asked for, else that of the settings, else what the project at `root` pins, else the default.

    UsageError for one that is not known.
    """
    if asked is not None:
        return _target(check_version(asked), "--torch-version")
    if configured is not None:
        return _target(check_version(configured), "[tool.transplt] in pyproject.toml")
    unread: list[str] = []
    open_above: tuple[str, Asked] | None = None
    for path, _, requirement in pins(root, ("torch", "pytorch"), unread):
        pin = read_pin(requirement)
        if pin is None:
            continue
        reason = f"{path} asks for torch{requirement}"
        if pin.pinned:
            return _of_pin(reason, pin)
        open_above = open_above or (reason, pin)
    if open_above is not None:
        return _of_pin(*open_above)
    return _target(DEFAULT_TORCH_VERSION, "; ".join(("the default: no requirement file pins torch", *unread)))


def check_version(text: str) -> str:
    """The minor version that `text` (`2.8` or `2.8.0`) names. UsageError when it is not one that we know."""
    match = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?", text.strip())
    if match is None or match[1] not in TORCH_VERSIONS:
        known = f"{TORCH_VERSIONS[0]} to {TORCH_VERSIONS[-1]}"
        raise UsageError(f"torch version {text!r} is not known; choose one of {known}")
    return match[1]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a requirement asks for: the newest version with a torch_npu that it allows (empty: none of them),
    a version that it names as text, and whether it bounds one from above."""

    allowed: str
    named: str
    pinned: bool


def read_pin(specifier: str) -> Asked | None:
    """What a specifier asks for; None for one that is none, or names no version (`!=2.1` alone)."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        wanted = SpecifierSet(specifier)
        parts = [(part.operator, part.version.removesuffix(".*")) for part in wanted if part.operator != "!="]
        named = [Version(version) for _, version in parts]
    except (InvalidSpecifier, InvalidVersion):
        return None
    if not named:
        return None
    pinned = any(operator in ("==", "===", "~=", "<", "<=") for operator, _ in parts)
    exact = {version.release[:2] for (operator, text), version in zip(parts, named, strict=True)
             if operator in ("==", "===") and len(version.release) > 1}  # fmt: skip
    floors = [version for (operator, _), version in zip(parts, named, strict=True) if operator in (">=", ">", "~=")]
    name = ".".join(map(str, (*(max(floors) if floors and not exact else min(named)).release, 0)[:2]))
    for version in reversed(TORCH_VERSIONS):
        fits = version_key(version) in exact if exact else any(wanted.contains(f"{version}.{n}") for n in range(10))
        if fits:
            return Asked(version, name, pinned)
    return Asked("", name, pinned)


def _of_pin(reason: str, asked: Asked) -> TorchTarget:
    oldest, newest = TORCH_VERSIONS[0], TORCH_VERSIONS[-1]
    if asked.allowed and asked.pinned:
        return _target(asked.allowed, reason)
    if asked.allowed:
        return _target(asked.allowed, f"{reason}, of which this is the newest with a torch_npu", asked.named)
    older = version_key(asked.named) < version_key(oldest)
    nearest, end = (oldest, "oldest") if older else (newest, "newest")
    why = f"{reason}, for which there is no torch_npu: this is the {end} that has one"
    return replace(_target(nearest, why, asked.named if older else ""), gap=True)


def _target(version: str, why: str, written_for: str = "") -> TorchTarget:
    row = release_of(version)
    changes = _changes(written_for, version) if written_for else ()
    return TorchTarget(version, why, row.torch_npu, row.cann, row.torch, changes)


def _changes(first: str, last: str) -> tuple[str, ...]:
    """What PyTorch changed after one version, up to another."""
    from transplt.rules.tables import read_table

    rows: dict[str, str] = read_table("support/torch_changes.json")["changes"]
    between = [text for text in rows if version_key(first) < version_key(text) <= version_key(last)]
    return tuple(f"torch {version}: {rows[version]}" for version in between)
