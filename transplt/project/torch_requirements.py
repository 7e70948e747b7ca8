"""What each file of a project allows of torch: its own requirement, or that of a package that goes with one torch.

Minor versions (`2.8`) are compared, since a torch_npu is there for one release of each; those without a torch_npu count
too, so that `torch==1.5` and `torch>=1.5` agree. `NEWER` stands for what comes after the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from transplt.base.settings import TORCH_VERSIONS
from transplt.base.text.markers import holds_on_linux
from transplt.engine.files.dependencies.others import speaks_for_others
from transplt.project.pins import IMAGE, Pin, pins
from transplt.rules.companions import companions, has_torchs_numbers, is_weak, torch_beside, torch_minors
from transplt.rules.releases import release_of
from transplt.rules.versions import spans, version_key

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

NEWER = "newer"
#: The names of torch on PyPI and in conda.
TORCH = ("torch", "pytorch", "pytorch-gpu", "pytorch-cpu")
#: What goes with one torch each, floors included.
_FAMILY = ("torchvision", "torchaudio")
#: Lists that not everybody installs.
_OF_SOME = re.compile(r"optional|groups?\b|extras?\b|\bdev\b|dev-(?:packages|dependencies)")
_BOUNDED = ("==", "===", "~=", "<", "<=")
#: Patch versions of torch are below this.
_PATCHES = 10


@dataclass(frozen=True, slots=True)
class Read:
    """What a specifier of torch says: the minor versions it allows (of all that are known, and `NEWER`), one that it
    names, and whether it bounds them from above."""

    allowed: frozenset[str]
    named: str
    pinned: bool


@dataclass(frozen=True, slots=True)
class Ask:
    """One requirement of a file that says something of torch. `conditional`: it holds in some environments only."""

    pin: Pin
    read: Read
    direct: bool
    conditional: bool = False

    @property
    def text(self) -> str:
        """`torch==2.4.1`, `torchvision==0.20.0 (torch 2.5)`."""
        return self._text(())

    @property
    def weighed(self) -> str:
        """The same, and whether there is a torch_npu for it."""
        return self._text(() if self.read.allowed & {*TORCH_VERSIONS} else ("no torch_npu",))

    def meets(self, other: Ask) -> bool:
        """Whether a release of torch is in both, be there a torch_npu for it or not."""
        wanted = _set_of(f"{self.pin.specifier},{other.pin.specifier}") if self.direct and other.direct else None
        releases = (f"{minor}.{patch}" for minor in torch_minors() for patch in range(_PATCHES))
        return wanted is not None and any(map(wanted.contains, releases))

    def _text(self, more: tuple[str, ...]) -> str:
        name = "torch" if self.pin.package in TORCH else self.pin.package
        said = (*(() if self.direct else (_spelled(self.read.allowed),)), *more)
        return f"{name}{self.pin.specifier}" + (f" ({', '.join(said)})" if said else "")


@dataclass(frozen=True, slots=True)
class Voice:
    """What a file, or several that stand for each other, asks for by one package: alternatives are joined."""

    asks: tuple[Ask, ...]
    allowed: frozenset[str]

    @property
    def direct(self) -> bool:
        return self.asks[0].direct

    @property
    def pinned(self) -> bool:
        return any(ask.read.pinned for ask in self.asks)

    @property
    def with_npu(self) -> tuple[str, ...]:
        """The versions with a torch_npu that it allows, oldest first."""
        return tuple(version for version in TORCH_VERSIONS if version in self.allowed)

    def ask_without(self, other: Voice) -> Ask:
        """The ask that leaves nothing to another voice, else the first."""
        return next((ask for ask in self.asks if not ask.read.allowed & other.allowed), self.asks[0])

    def ask_for(self, version: str) -> Ask:
        """The ask that is the reason for a version: a bound before others."""
        fits = [ask for ask in self.asks if version in ask.read.allowed] or list(self.asks)
        return next((ask for ask in fits if ask.read.pinned), fits[0])


def voices(root: Path, unread: list[str]) -> list[Voice]:
    """What the files of the project at `root` say of torch, in the order of trust.

    Several containers stand for each other, and so do several environments of conda. What is for another device, for
    documents, or goes with a torch only by habit, is heard where nothing else speaks; an image of PyTorch where nothing
    asks for torch_npu. With one that does, neither containers for CUDA nor extras are heard.
    """
    strong: list[Ask] = []
    weak: list[Ask] = []
    for pin in pins(root, (*TORCH, *companions()), unread):
        ask = ask_of(pin)
        if ask is not None:
            others = speaks_for_others(pin.path) or speaks_for_others(pin.section)
            (weak if is_weak(pin.package) or others else strong).append(ask)
    if npu := {ask.pin.path for ask in strong if has_torchs_numbers(ask.pin.package)}:
        # The image has to be another one for torch_npu, which is a finding of its own. Files for CUDA beside one that
        # installs torch_npu, and lists that not everybody installs, say nothing of the torch on an NPU.
        strong = [
            ask for ask in strong if ask.pin.section != IMAGE
            and (ask.pin.path in npu or not (ask.conditional or _group(ask.pin.path) == "containers"))
        ]
    groups: dict[tuple[str, str], list[Ask]] = {}
    for ask in strong or weak:
        package = "torch" if ask.pin.package in TORCH else ask.pin.package
        groups.setdefault((_group(ask.pin.path), package), []).append(ask)
    return _narrowed(groups)


def _narrowed(groups: dict[tuple[str, str], list[Ask]]) -> list[Voice]:
    """The voices of asks by file and package: what is open of torch's family narrows the torch of its file, and says no
    more.
    """
    allowed = {key: together(asks) for key, asks in groups.items()}
    for group, package in [*groups]:
        if package != "torch" and not any(ask.read.pinned for ask in groups[group, package]):
            asks = groups.pop((group, package))
            if both := allowed.get((group, "torch"), frozenset()) & allowed[group, package]:
                allowed[group, "torch"] = both
                groups[group, "torch"] += asks
    return [Voice(tuple(asks), allowed[key]) for key, asks in groups.items()]


def ask_of(pin: Pin) -> Ask | None:
    """What a requirement says of torch; None where it says nothing, or holds on no Linux."""
    holds = holds_on_linux(pin.marker)
    if holds is False:
        return None
    if pin.package in TORCH or has_torchs_numbers(pin.package):
        read = read_specifier(pin.specifier)
    else:
        read = _of_companion(pin)
    conditional = holds is None or _OF_SOME.search(pin.section) is not None
    return None if read is None else Ask(pin, read, pin.package in TORCH, conditional)


def read_specifier(specifier: str) -> Read | None:
    """What a specifier of torch says; None for one that is none, or names no version (`!=2.1` alone)."""
    from packaging.version import InvalidVersion, Version

    wanted = _set_of(specifier)
    if wanted is None:
        return None
    try:
        every = [(part.operator, Version(part.version.removesuffix(".*"))) for part in wanted]
    except InvalidVersion:
        return None
    parts = [(operator, version) for operator, version in every if operator != "!="]
    if not parts:
        return None
    exact = {
        version.release[:2]
        for operator, version in parts
        if operator in ("==", "===") and len(version.release) > 1
    }
    floors = [version for operator, version in parts if operator in (">=", ">", "~=")]
    named = max(floors) if floors and not exact else min(version for _, version in parts)
    name = ".".join(map(str, (*named.release, 0)[:2]))
    spoken_of = {(*version.release, 0)[:2] for _, version in every}
    excluded = {str(version) for operator, version in every if operator == "!="}
    allowed = set()
    for minor in torch_minors():
        key = version_key(minor)
        patches = range(_PATCHES if key in spoken_of else 1)
        if minor in TORCH_VERSIONS and release_of(minor).torch in excluded:
            continue  # the one that torch_npu goes with
        if key in exact if exact else any(wanted.contains(f"{minor}.{patch}") for patch in patches):
            allowed.add(minor)
    if wanted.contains("9999.0") or (not allowed and version_key(name) > version_key(TORCH_VERSIONS[-1])):
        allowed.add(NEWER)
    return Read(frozenset(allowed), name, any(operator in _BOUNDED for operator, _ in parts))


def _set_of(specifier: str) -> SpecifierSet | None:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifier)
    except InvalidSpecifier:
        return None


def _of_companion(pin: Pin) -> Read | None:
    """What a requirement of a package says of the torch that it goes with; one of torch's own family that is open says
    which are too old, another open one nothing.
    """
    wanted = _set_of(pin.specifier)
    bounded = wanted is not None and any(part.operator in _BOUNDED for part in wanted)
    if wanted is None or not (bounded or (pin.package in _FAMILY and len(wanted))):
        return None
    allowed = torch_beside(pin.package, lambda release: wanted.contains(release, prereleases=True))
    if not allowed:
        return None
    named = min(allowed, key=version_key)
    return Read(allowed if bounded else allowed | {NEWER}, named, bounded)


def _group(path: str) -> str:
    """Files that stand for each other have one name: a project has an environment for each of its machines."""
    name = path.lower().rpartition("/")[2]
    if "docker" in name or "container" in name or name.startswith("compose"):
        return "containers"
    return "environments" if name.endswith((".yml", ".yaml")) else path


def together(asks: Iterable[Ask]) -> frozenset[str]:
    """What some asks for one package allow: all that hold everywhere, with one of the others. Where that is nothing,
    those that bound it are alternatives, as the extras of a setup.py are.
    """
    asks = list(asks)
    always = [ask.read.allowed for ask in asks if not ask.conditional]
    sometimes = [ask.read.allowed for ask in asks if ask.conditional]
    one_of = [frozenset[str]().union(*sometimes)] if sometimes else []
    common = reduce(frozenset.intersection, [*always, *one_of])
    if common:
        return common
    opened = [ask.read.allowed for ask in asks if not ask.conditional and not ask.read.pinned]
    bounded = frozenset[str]().union(*(ask.read.allowed for ask in asks if ask.conditional or ask.read.pinned))
    return reduce(frozenset.intersection, opened, bounded) or bounded


def _spelled(allowed: frozenset[str]) -> str:
    """`torch 1.7`, `torch 2.1-2.4`."""
    known = torch_minors()
    before = [version for version in known if version in allowed and version not in TORCH_VERSIONS]
    after = [version for version in TORCH_VERSIONS if version in allowed]
    ends = [before[0] if len(before) == 1 else f"{before[0]}-{before[-1]}"] if before else []
    if before and after and known.index(after[0]) == known.index(before[-1]) + 1:
        run, _, rest = spans(after).partition(",")
        return f"torch {before[0]}-{run.rpartition('-')[2]}{',' * bool(rest)}{rest}"
    return f"torch {', '.join([*ends, *([spans(after)] if after else [])])}"


def asks_in(found: Iterable[Voice]) -> Iterator[Ask]:
    """Every ask of some voices, each with other words once for a file."""
    seen = set[tuple[str, str]]()
    for voice in found:
        for ask in voice.asks:
            if (ask.pin.path, ask.text) not in seen:
                seen.add((ask.pin.path, ask.text))
                yield ask
