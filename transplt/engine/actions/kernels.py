"""Which C++ and CUDA sources, builds and imports are one compiled extension: told by builds, by folders and by names.

What a build names is its extension; else the sources of a folder are one. A kernel goes by the name of its .cu file
without what says that it is CUDA: `deform_conv_cuda_kernel.cu`, `deform_conv_ext.cpp` and `import deform_conv_cuda` are
`deform_conv`.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from transplt.base.finding import Finding
from transplt.engine.files.native_text import SOURCE_SUFFIXES
from transplt.rules.kernel_functions import SAID

_KERNEL_SUFFIXES = (".cu", ".cuh")
_HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inl", ".cuh")
#: Folders that hold the sources of an extension and are not its name.
_SOURCE_FOLDERS = frozenset({"src", "csrc", "source", "cuda", "cpu", "gpu", "kernel", "kernels", "include"})
_ENDINGS = re.compile(r"[_-](cuda|kernels?|cpu|gpu|ext|utils|binding|bindings|ops?|plugin)$", re.IGNORECASE)
#: The folder for sources alone: what lies below it belongs to the folder above, unless it has a build of its own.
_SOURCES = "csrc"
#: A line of C++, and the names of TensorRT that hold a word of CUDA.
_NATIVE = "NPU806"
_OF_ENGINES = re.compile(r"\bnvinfer\d*\b|\bICudaEngine\b|\bdeserializeCudaEngine\b|\bdeepstream\b|\bNVBUF_MEM_")
#: What a source is called that gets its name from the build.
_MACROS = frozenset({"TORCH_EXTENSION_NAME", "NAME"})
_CALLED = re.compile(r"[\w.]+")
#: The remark that a source holds kernels or binds names.
_HOLDS = "NPU557"
_IMPORTS = "NPU553"
#: The remark that names an extension and what it is built from.
_DECLARES = "NPU860"
LEADS = "NPU272"  # a test that NPUs pass in front of code for CUDA
_MADE_BY = frozenset({"makefile", "gnumakefile", "cmakelists.txt"})
#: What imports an extension, or builds it when the program runs.
_ASKS_FOR = frozenset({"NPU553", "NPU554", "NPU501"})
#: What setup.py is told by: CUDAExtension, CUDA_HOME, nvcc and .cu files.
_BUILDS = frozenset({"NPU550", "NPU551", "NPU208"})


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to port: an extension with kernels, or the C++ code of a folder, which has no `kernel`.

    `kernel` is the name of its only kernel, else of the extension or its folder; `parts` is how many it has.
    """

    folder: str
    kernel: str = ""
    parts: int = field(default=1, compare=False)

    def __str__(self) -> str:
        if not self.kernel:
            return self.folder or "the top folder"
        return f"{self.kernel} ({self.folder})" if self.folder not in ("", self.kernel) else self.kernel


@dataclass(frozen=True, slots=True)
class _Extension:
    """What a build says: the full name of the extension, the file and its folder, the sources that it names."""

    name: str
    build: str
    sources: frozenset[str]

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.build)


def plain_name(name: str) -> str:
    """The name of a kernel or of an extension without what says that it is one; small and capital letters stay."""
    while (shorter := _ENDINGS.sub("", name)) and shorter != name:
        name = shorter
    return name


def home_of(folder: str) -> str:
    """The folder of the extension whose sources lie in `folder`."""
    parts = folder.split("/")
    if _SOURCES in parts[1:]:
        return "/".join(parts[: parts.index(_SOURCES, 1)])
    while posixpath.basename(folder) in _SOURCE_FOLDERS and "/" in folder:
        folder = posixpath.dirname(folder)
    return folder


class Kernels:
    """The units of a project."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        """`findings` are all of the project, remarks included: a source may hold a kernel and not name CUDA."""
        of: dict[str, list[Finding]] = defaultdict(list)
        paths: set[str] = set()
        for each in findings:
            of[each.code].append(each)
            paths.add(each.path)
        native = {path for path in paths if path.lower().endswith(SOURCE_SUFFIXES)}
        self._held = of[_HOLDS]
        #: By path: the kernels in a source, as the remark lists them.
        self.listed = {each.path: kernels for each in self._held if (kernels := each.detail("kernels"))}
        self._find_builds(of, paths, native)
        self._find_units(native)
        asked = [each for code in _ASKS_FOR for each in of[code]]
        self._asked = self._units_of(asked)
        #: What the program imports, and does without where that fails.
        self.spared = self._asked - self._units_of(each for each in asked if each.blocks != "slow")
        #: What only programs ask for that do not train, or options that are off.
        self.late = self._asked - self._units_of(each for each in asked if each.late != "other" and not each.option)
        #: What has a path for the CPU beside it: a test that names no API asks for another device than that.
        self.on_the_cpu = {self.led_to(each) for each in of[LEADS] if not each.api}
        said = {(each.api.partition(".")[0], each.path) for each in of[SAID] if not each.open}
        self._said = {self.named(name) or self._only_below(path) for name, path in said if name} - {None}

    def _units_of(self, asked: Iterable[Finding]) -> set[Unit]:
        """The units that findings of imports ask for."""
        found = ((each.api and self.named(each.api, each.path)) or self.beside(each.path) for each in asked)
        return {each for each in found if each}

    def _find_builds(self, of: dict[str, list[Finding]], paths: Collection[str], native: Collection[str]) -> None:
        """Find the folders of builds, the extensions that they declare, and the names that are imported."""
        declared = of[_DECLARES]
        builds = {each.path for each in declared}.union(each.path for code in _BUILDS for each in of[code] if each.open)
        folders = {posixpath.dirname(path) for path in builds if _is_setup(path)}
        self._builds = sorted(folders, key=lambda folder: (-len(folder), folder))
        #: The folders with files by which make or CMake build.
        made_by = [path for path in paths if posixpath.basename(path).lower() in _MADE_BY or path.endswith(".cmake")]
        self._made = {posixpath.dirname(path) for path in made_by}
        self._extensions = _with_twins([_declared(each, native) for each in declared])
        self._names = {plain_name(part) for each in of[_IMPORTS] for part in each.api.split(".")}
        self._names |= {plain_name(each.name) for each in self._extensions if not each.sources}

    def _find_units(self, native: Collection[str]) -> None:
        """Find what each source belongs to."""
        self._owner = {path: self._owner_of(path, native) for path in native}
        with_kernels = {path for path in native if path.lower().endswith(_KERNEL_SUFFIXES)}
        #: By owner: the names of the kernels in its sources.
        self._kernels: dict[_Owner, set[str]] = defaultdict(set)
        for path in with_kernels & self.listed.keys() or with_kernels:
            self._kernels[self._owner[path]].add(_parts(path)[1])
        self._by_path = {path: self._unit(path) for path in native}
        self._units = sorted(set(self._by_path.values()), key=lambda unit: (unit.folder, unit.kernel))

    def of_source(self, path: str) -> Unit:
        """The unit of a C++ or CUDA source."""
        return self._by_path[path]

    def _owner_of(self, path: str, native: Iterable[str]) -> _Owner:
        """The extension of a source, or else its folder."""
        naming = [each for each in self._extensions if path in each.sources] or self._extensions_beside(path)
        if len(naming) == 1:
            folders = {home_of(posixpath.dirname(each)) for each in naming[0].sources}
            return _Owner(posixpath.commonpath(folders) if folders else "", naming[0].name)
        home = home_of(posixpath.dirname(path))
        if len(above := self._build_of(posixpath.dirname(path)) or "") > len(home):
            home = above  # that of their own build, at the highest
        build = self._build_of(home)
        built = [each for each in self._extensions if each.folder == build and _is_setup(each.build)]
        looking = [each for each in built if not each.sources]
        if len(looking) == 1:
            package = posixpath.join(build or "", *looking[0].name.split(".")[:-1])
            if _within(path, package) or not any(_within(other, package) for other in native):
                return _Owner(looking[0].folder, looking[0].name)
        return _Owner(home)

    def _extensions_beside(self, path: str) -> list[_Extension]:
        """Those with sources in the folder of another one, or above the folder of a header; of several, those with a
        source of its name.
        """
        folder, stem = posixpath.dirname(path), _parts(path)[1]
        beside = [each for each in self._extensions if any(posixpath.dirname(s) == folder for s in each.sources)]
        if not beside and path.endswith(_HEADERS):
            beside = [e for e in self._extensions if any(_within(folder, posixpath.dirname(s)) for s in e.sources)]
        if len(beside) == 1:
            return beside
        return [each for each in beside if any(_parts(source)[1].lower() == stem.lower() for source in each.sources)]

    def _build_of(self, folder: str) -> str | None:
        """The nearest folder with a build, from `folder` up."""
        return next((build for build in self._builds if _within(folder, build)), None)

    def _unit(self, path: str) -> Unit:
        owner = self._owner[path]
        kernels = self._kernels.get(owner, set())
        if not kernels:
            return Unit(owner.folder)
        if len(kernels) == 1:
            return Unit(owner.folder, next(iter(kernels)))
        apart = {name for name in kernels if name in self._names} if not owner.extension else set()
        if len(apart) > 1:  # each is imported by its own name
            stem = _parts(path)[1]
            fits = [name for name in apart if name.lower() in stem.lower() or stem.lower() in name.lower()]
            kernel = max(fits, key=lambda name: (name.lower() == stem.lower(), len(name), name), default="")
            return Unit(owner.folder, kernel)
        name = owner.extension or posixpath.basename(owner.folder) or "the top folder"
        return Unit(owner.folder, name, len(kernels))

    def named(self, name: str, path: str = "") -> Unit | None:
        """The unit that is imported as `name` by the file at `path`: by its own name or that of its folder."""
        last = name.rpartition(".")[2]
        called = [each for each in self._extensions if each.name == name or each.name.rpartition(".")[2] == last]
        if called:
            called.sort(key=lambda each: (each.name != name, -len(each.folder) * _within(path, each.folder)))
            if (unit := next(filter(None, map(self._of_extension, called)), None)) is not None:
                return unit
        parts = {plain_name(part).lower() for part in name.split(".")} - {"", "_c"}
        for unit in self._units:
            of_unit = unit.kernel.rpartition(".")[2], posixpath.basename(unit.folder)
            if unit.kernel and parts & {plain_name(each).lower() for each in of_unit}:
                return unit
        return None

    def _only_below(self, path: str) -> Unit | None:
        """The only kernels below the folder of a file."""
        folder = posixpath.dirname(path)
        below = [unit for unit in self._units if unit.kernel and folder and _within(unit.folder, folder)]
        return below[0] if len(below) == 1 else None

    def _of_extension(self, extension: _Extension) -> Unit | None:
        units = {self._by_path[path] for path, owner in self._owner.items() if owner.extension == extension.name}
        units = units or {self._by_path[path] for path in extension.sources}  # of which two builds make one
        if not units and not extension.sources:
            units = {each for each in self._units if each.kernel and _within(each.folder, extension.folder)}
        return next(iter(units)) if len(units) == 1 else None

    def idle(self, unit: Unit) -> bool:
        """True for kernels whose functions the project has in npu_port.py, and that nothing builds or imports."""
        if unit not in self._said or unit in self._asked or self._build_of(unit.folder) is not None:
            return False
        return not any(_within(unit.folder, folder) or _within(folder, unit.folder) for folder in self._made)

    def beside(self, path: str) -> Unit | None:
        """The kernel that a Python file or a build stands beside, where it is the only one or has the file's name."""
        folder, stem = _parts(path)
        if _is_setup(path) or posixpath.basename(path).lower() in _MADE_BY:
            return self._only_one_built(path, folder)
        compiled = [each for each in self._extensions if each.build == path]
        if len(compiled) == 1 and (unit := self.named(compiled[0].name, path)) is not None:
            return unit  # compiled as it runs, maybe where what is installed by this name is not there
        here = [unit for unit in self._units if unit.kernel and unit.folder in (folder, home_of(folder))]
        if len(here) > 1:
            here = [unit for unit in here if unit.kernel.lower() == stem.lower()]
        return here[0] if len(here) == 1 and folder else None

    def _only_one_built(self, path: str, folder: str) -> Unit | None:
        """The only extension with kernels that a build makes; None where it makes several, or none is known."""
        named = [each for each in self._extensions if each.build == path]
        if named:
            units = {self._of_extension(each) for each in named}
            units = {each for each in units if len(units) == 1 or each is None or each.kernel}  # C++ beside it is built
            return next(iter(units)) if len(units) == 1 else None
        native = [unit for unit in self._units if _within(unit.folder, folder)]
        if _is_setup(path):
            native = [unit for unit in native if self._build_of(unit.folder) in (None, folder)]
        if not folder:
            native = [unit for unit in native if unit.kernel and unit.folder == folder]
        return native[0] if len(native) == 1 else None

    def led_to(self, finding: Finding) -> Unit | None:
        """The unit that a gate leads to, where that is a call by name; from what NPUs pass, through other code, too."""
        name, _, through = finding.detail("needs").partition(", through")
        known = _CALLED.fullmatch(name) and (finding.code == LEADS or not through)
        return (self.named(name) or self.named(name.rpartition(".")[0])) if known else None

    def build_above(self, unit: Unit) -> str | None:
        """The folder with the build of sources that no extension of it names, but that stand above its extensions."""
        if any(owner.extension and self._by_path[path] == unit for path, owner in self._owner.items()):
            return None
        build = self._build_of(unit.folder)
        others = [other for other in self._units if other.kernel and other != unit]
        above = [other for other in others if _within(other.folder, unit.folder)]
        names = [each for each in self._extensions if each.folder == build and each.sources]
        if build is None or not above or (unit.kernel and not names):
            return None
        return build

    def is_build(self, path: str) -> bool:
        """True for a file that builds extensions."""
        return _is_setup(path) and posixpath.dirname(path) in self._builds

    def is_program(self, unit: Unit) -> bool:
        """True for a program in C++ that has no kernel of its own, and that nothing imports."""
        ours = [each for each in self._held if self._by_path.get(each.path) == unit]
        return bool(ours) and unit not in self._asked and all(each.detail("program") for each in ours)

    def binds(self, unit: Unit) -> str:
        """The names that the sources of a unit bind to Python, and what takes their place; empty for none."""
        bound: list[str] = []
        instead: list[str] = []
        for each in self._held:
            if self._by_path.get(each.path) == unit:
                if functions := each.detail("functions"):
                    name = each.detail("binds")
                    bound.append(functions if name in _MACROS else f"{name} ({functions})")
                instead += each.every_detail("instead")
        parts = [f"The replacement must have the functions: {', '.join(dict.fromkeys(bound))}"] if bound else []
        # One line for what takes the place of several, by a name that is bound.
        instead.sort(key=lambda text: text.partition(":")[0].rpartition(" ")[2] in ", ".join(bound))
        return "; ".join([*parts, *{text.partition(": ")[2]: text for text in instead}.values()])


class Engines:
    """The folders with C++ programs over TensorRT or DeepStream: nothing binds what lies in them to Python."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        known = list(findings)
        lines = [(each.path, [each.api, *each.every_detail("name")]) for each in known if each.code == _NATIVE]
        folders = {posixpath.dirname(path) for path, names in lines if any(map(_OF_ENGINES.search, names))}
        made = {posixpath.dirname(each.path) for each in known if posixpath.basename(each.path).lower() in _MADE_BY}
        folders |= made & {posixpath.dirname(folder) for folder in folders}
        bound = {each.path for each in known if each.code == _HOLDS and each.detail("functions")}
        bound |= {each.path for each in known if each.code in _BUILDS | {_DECLARES} and _is_setup(each.path)}
        free = (folder for folder in folders if not any(_within(path, folder) for path in bound))
        self._folders = sorted(filter(None, free))

    def around(self, path: str) -> str | None:
        """The outermost such folder that a path lies in."""
        return next((folder for folder in self._folders if _within(posixpath.dirname(path), folder)), None)


@dataclass(frozen=True, slots=True)
class _Owner:
    """What sources belong to: the folder, and the name of the extension where a build says it."""

    folder: str
    extension: str = ""


def _declared(finding: Finding, native: Iterable[str]) -> _Extension:
    """The extension that a remark names; its sources are those of the project that end as the build has them."""
    listed = finding.every_detail("source")
    folder = posixpath.dirname(finding.path)
    found: set[str] = set()
    for name in listed:
        exact = posixpath.normpath(posixpath.join(folder, name))
        fits = [path for path in native if path == exact]
        fits = fits or [path for path in native if _within(path, folder) and path.endswith(f"/{name}")]
        found.update(fits if len(fits) == 1 else ())
    return _Extension(finding.api, finding.path, frozenset(found))


def _with_twins(extensions: Sequence[_Extension]) -> list[_Extension]:
    """The extensions, of which those for the CPU alone are one with that of the same name and folder for CUDA."""
    found: list[_Extension] = []
    for each in extensions:
        twin = next((other for other in extensions if other is not each and _is_twin(other, each)), None)
        if twin is None:
            more = [other.sources for other in extensions if other is not each and _is_twin(each, other)]
            found.append(replace(each, sources=each.sources.union(*more)))
    return found


def _is_twin(of_cuda: _Extension, of_cpu: _Extension) -> bool:
    """True for an extension without kernels that has the name of one with kernels."""
    if any(path.endswith(_KERNEL_SUFFIXES) for path in of_cpu.sources) or not of_cpu.sources:
        return False
    folders = [{posixpath.dirname(path) for path in each.sources} for each in (of_cuda, of_cpu)]
    return (
        plain_name(of_cuda.name) == plain_name(of_cpu.name)
        and any(path.endswith(_KERNEL_SUFFIXES) for path in of_cuda.sources)
        and bool(folders[0] & folders[1])
    )


def _is_setup(path: str) -> bool:
    return posixpath.basename(path) == "setup.py"


def _parts(path: str) -> tuple[str, str]:
    folder, name = posixpath.split(path)
    return folder, plain_name(name.partition(".")[0])


def _within(folder: str, above: str) -> bool:
    return not above or folder == above or folder.startswith(f"{above}/")
