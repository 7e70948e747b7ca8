"""Releases that go together, by the minor version of torch: torch_npu, CANN, Python, torchvision, torchaudio."""

from __future__ import annotations

import re
from dataclasses import dataclass

from transplt.base.settings import Settings
from transplt.base.text.requirement import Requirement
from transplt.rules.tables import read_table
from transplt.rules.versions import oldest_held

#: What a package lacks that runs on NPUs, too, and that is installed by its own metadata.
AS_EXTRA = "torch-npu as an extra"
#: The index of PyTorch's builds for the CPU, which are those that run beside torch_npu.
#: Source: github.com/Ascend/pytorch, docs/zh/installation_guide/references/installation_via_pip.md (August 2026).
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
#: Patch versions of Python are below this.
_PATCHES = 40


@dataclass(frozen=True, slots=True)
class Release:
    """One row of rules/support/versions.json; what is not known is empty.

    `x86_64` is the build of torch (`2.1.0+cpu`) that the wheel of torch_npu for x86_64 asks for where PyPI does not
    have it: pip finds it in `CPU_INDEX`. `python` is `3.8 to 3.11`.
    """

    torch: str = ""
    torch_npu: str = ""
    cann: str = ""
    python: str = ""
    torchvision: str = ""
    torchaudio: str = ""
    x86_64: str = ""

    @property
    def pythons(self) -> tuple[str, ...]:
        """The minor versions of Python that there are wheels for, oldest first."""
        match = re.fullmatch(r"3\.(\d+) to 3\.(\d+)", self.python)
        return tuple(f"3.{minor}" for minor in range(int(match[1]), int(match[2]) + 1)) if match else ()


def release_of(version: str) -> Release:
    """The releases that go with a minor version of torch; an empty row where none is known."""
    try:
        rows = read_table("support/versions.json")["torch"]
    except (OSError, ValueError, KeyError):
        return Release()
    row = rows.get(version, {})
    return Release(**{key: str(row.get(key) or "") for key in Release.__dataclass_fields__})


def index_option(x86_64: str) -> str:
    """What a command of pip needs so that torch-npu finds its torch on x86_64 too, a blank in front; empty for none."""
    return f" --extra-index-url {CPU_INDEX}" if x86_64 else ""


def of_a_library(settings: Settings) -> str:
    """The versions of torch-npu in an extra: the package stays open to every torch that it admits, and each torch-npu
    asks for the one that it is for (its metadata).
    """
    return f">={oldest_held(settings)}"


def wheels_for(torch_npu: str, pythons: tuple[str, ...]) -> str:
    """What to do about a Python that a torch_npu has no wheels for."""
    return f"take one of Python {pythons[0]} to {pythons[-1]}, for which torch_npu {torch_npu} has wheels"


def fits(versions: str, pythons: tuple[str, ...]) -> bool:
    """True where one of some minor versions of Python is allowed (`>=3.6, <3.9`), or it cannot be decided."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    specifier = Requirement("python", versions, 0, 0).specifier
    if not specifier or not pythons:
        return True
    try:
        allowed = SpecifierSet(specifier)
    except InvalidSpecifier:
        return True
    return any(allowed.contains(f"{python}.{patch}") for python in pythons for patch in range(_PATCHES))
