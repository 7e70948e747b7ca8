"""Which torch a project asks for, read from its requirement files; nothing of the project is executed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from transplt.errors import UsageError
from transplt.run.requirements import requirements
from transplt.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS, TorchTarget


def choose_target(root: Path, asked: str | None, configured: str | None = None) -> TorchTarget:
    """The version asked for, else that of the settings, else what the project at `root` pins, else the default.

    UsageError for one that is not known.
    """
    if asked is not None:
        return _target(check_version(asked), "--torch-version")
    if configured is not None:
        return _target(check_version(configured), "[tool.transplt] in pyproject.toml")
    unread: list[str] = []
    for path, _, requirement in requirements(root, ("torch", "pytorch"), unread):
        version = _highest(requirement)
        if version is not None:
            return _target(version, f"{path} asks for torch{requirement}")
    return _target(DEFAULT_TORCH_VERSION, "; ".join(("the default: no requirement file pins torch", *unread)))


def check_version(text: str) -> str:
    """The minor version that `text` (`2.8` or `2.8.0`) names. UsageError when it is not one that we know."""
    match = re.fullmatch(r"(\d+\.\d+)(?:\.\d+)?", text.strip())
    if match is None or match[1] not in TORCH_VERSIONS:
        known = f"{TORCH_VERSIONS[0]} to {TORCH_VERSIONS[-1]}"
        raise UsageError(f"torch version {text!r} is not known; choose one of {known}")
    return match[1]


def _target(version: str, why: str) -> TorchTarget:
    releases = _releases().get(version, {})
    npu, cann, release = (str(releases.get(key) or "") for key in ("torch_npu", "cann", "torch"))
    return TorchTarget(version, why, npu, cann, release)


def _releases() -> dict[str, dict[str, Any]]:
    from transplt.rules.tables import read_table

    try:
        table = read_table("support/versions.json")
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in table.get("torch", {}).items() if isinstance(value, dict)}


def _highest(specifier: str) -> str | None:
    """The highest minor version inside `specifier` when it says one from above, else None.

    `>=1.10` alone pins nothing: any later version will do.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        wanted = SpecifierSet(specifier)
        if not any(part.operator in {"==", "===", "~=", "<", "<="} for part in wanted):
            return None
        pinned = [part.version for part in wanted if part.operator in {"==", "==="} and not part.version.endswith(".*")]
        releases = {Version(pin).release[:2] for pin in pinned}
    except (InvalidSpecifier, InvalidVersion):
        return None
    for version in reversed(TORCH_VERSIONS):
        if Version(version).release[:2] in releases:
            return version
        if not pinned and any(wanted.contains(f"{version}.{patch}") for patch in range(4)):
            return version
    return None
