"""Which version of torch, torchvision and torchaudio a requirement gets, and what an NPU goes without.

Facts: rules/support/versions.json (a torch_npu asks for exactly one release of torch), rules/support/third_party.json.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from transplt.base.settings import TORCH_VERSIONS
from transplt.base.text.requirement import Requirement, normalised
from transplt.engine.files.dependency_files import FOLDERS
from transplt.engine.files.document import Document
from transplt.rules.packages import package_installed_as
from transplt.rules.releases import release_of

#: conda's names of torch.
TORCH = frozenset({"torch", "pytorch", "pytorch-gpu", "pytorch-cpu"})
TORCH_NPU = "torch-npu"
#: What is released for one release of torch each.
FAMILY = ("torchvision", "torchaudio")
#: Choose which build of pytorch conda takes; without conda's pytorch they have no effect.
BUILDS = frozenset({"cpuonly", "pytorch-mutex", "torchtriton"})
#: What conda parts packages of CUDA by: `cuda-nvrtc-dev`, `cuda-nvcc_linux-64`.
_OF_A_PACKAGE = re.compile(r"(?:-(?:dev|static|impl|tools|linux-(?:64|aarch64)))+$")
_LOCAL = re.compile(r"\+[A-Za-z0-9.]+")
_NUMBER = re.compile(r"(===|==|=)?(\s*)v?\d[\w.!*]*(\+[\w.]+)?")
#: Builds for others than CUDA stay what they are; nightly builds have no torch_npu.
_OTHERS = re.compile(r"\+(?:rocm|xpu|hip|gaudi)|\.dev\d|nightly|\d(?:a|b|rc)\d")
#: Patch versions of torch are below this.
_PATCHES = 10
_WRITTEN = re.compile(r"[\d.\s<>=!~^,*+\w|-]*")


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases that a migration aims at, by the name of the package."""

    torch: str
    torch_npu: str
    torchvision: str
    torchaudio: str
    x86_64: str
    cann: str
    pythons: tuple[str, ...]

    @classmethod
    def of(cls, document: Document) -> Releases | None:
        """Those of the target; None where a release of torch or of torch_npu is not known."""
        target = document.target
        if not target.release or not target.torch_npu:
            return None
        return cls._with(target.version, target.release, target.torch_npu)

    @classmethod
    def of_part(cls, document: Document, requirements: Iterable[Requirement]) -> Releases | None:
        """Those of the newest torch with a torch_npu that a file bounds torch to which says nothing of the project: the
        one of a folder of examples, of a service. None for files of the project, and where the target is allowed.

        Where the folders of a project pin torch of their own, one that pins an older torch than any with a torch_npu
        gets the oldest: the way to the target, which is a default then, would be longer.
        """
        first, slash, _ = document.path.lower().partition("/")
        if not slash or first in FOLDERS:
            return None
        for each in requirements:
            if normalised(each.name) in TORCH and not each.address and each.specifier:
                if each.allows(document.target.release):
                    return None
                patches = range(_PATCHES)
                allowed = (v for v in reversed(TORCH_VERSIONS) if any(each.allows(f"{v}.{p}") for p in patches))
                version = next(allowed, "")
                if not version and document.target.of_parts and is_older(each):
                    version = TORCH_VERSIONS[0]
                row = release_of(version)
                return cls._with(version, row.torch, row.torch_npu) if row.torch and row.torch_npu else None
        return None

    @classmethod
    def _with(cls, version: str, torch: str, torch_npu: str) -> Releases:
        row = release_of(version)
        return cls(torch, torch_npu, row.torchvision, row.torchaudio, row.x86_64, row.cann, row.pythons)

    def wanted(self, name: str) -> str:
        """The release of a package of torch's family; empty for others, and where none is known."""
        if name in TORCH:
            return self.torch
        return {"torchvision": self.torchvision, "torchaudio": self.torchaudio}.get(name, "")

    def pins(self, names: Collection[str]) -> list[str]:
        """torch, torch-npu and those of torch's family that are among some names, as pip takes them."""
        family = [(name, self.wanted(name)) for name in FAMILY if name in names]
        pins = [f"{name}=={version}" if version else name for name, version in family]
        return [f"torch=={self.torch}", f"{TORCH_NPU}=={self.torch_npu}", *pins]


def is_other_build(requirement: Requirement, text: str) -> bool:
    """True for a build that is no business of a migration from CUDA: ROCm's, and nightly ones."""
    return _OTHERS.search(text[requirement.whole[0] : requirement.whole[1]] or requirement.versions) is not None


def moved(requirement: Requirement, text: str, releases: Releases) -> str | None:
    """The clauses that a requirement of torch's family gets; None where they may stay, or cannot be read.

    One that allows the release stays, but for the suffix of a build for CUDA. `text` is the whole file.
    """
    wanted = releases.wanted(normalised(requirement.name))
    if not wanted or not requirement.versions or is_other_build(requirement, text):
        return None
    if requirement.address:
        here = text[requirement.whole[0] : requirement.whole[1]]
        fits = requirement.versions == f"=={wanted}" and not re.search(r"(?:\+|%2B)cu\d", here, re.IGNORECASE)
        return None if fits else f"=={wanted}"
    written = text[requirement.clauses[0] : requirement.clauses[1]]
    if _WRITTEN.fullmatch(written) is None:
        return None
    bare = _LOCAL.sub("", written)
    allows = replace(requirement, versions=bare.strip()).allows(wanted)
    if allows is None or (allows and "+cu" not in written):
        return None
    if allows:
        return re.sub(r"\+cu[\w.]*", "", written)
    local = "+cpu" if "+cpu" in written else ""
    one = _NUMBER.fullmatch(written)
    return f"{one[1] or ''}{one[2]}{wanted}{local}" if one is not None else f"=={wanted}{local}"


def is_older(requirement: Requirement) -> bool:
    """True for a requirement of torch that names no version behind the oldest with a torch_npu."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        clauses = [each.version for each in SpecifierSet(requirement.specifier) if each.operator != "!="]
        named = [Version(each.removesuffix(".*")) for each in clauses]
    except (InvalidSpecifier, InvalidVersion):
        return False
    return bool(named) and max(named) <= Version(TORCH_VERSIONS[0])


def is_part_of_cuda(name: str) -> bool:
    """True for a wheel of CUDA's runtime, and a package of its toolkit in conda: CANN takes their place."""
    rows = (package_installed_as(each) for each in (name, _OF_A_PACKAGE.sub("", normalised(name))))
    return any(row is not None and row.get("part_of") == "CUDA" for row in rows)


def lost_names(before: Iterable[Requirement], after: Iterable[Requirement], may_go: Iterable[str] = ()) -> str:
    """Why the requirements of a changed text are not those of the text before, but for some names; empty where they
    are.
    """
    kept = {normalised(each.name) for each in after}
    lost = {normalised(each.name) for each in before} - kept - TORCH - BUILDS - {*may_go}
    lost = {name for name in lost if not is_part_of_cuda(name)}
    return f"it would no longer require {', '.join(sorted(lost))}" if lost else ""
