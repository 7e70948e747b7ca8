"""Which C++ and CUDA sources, builds and imports are one compiled extension: told by folders and by names.

A kernel goes by the name of its .cu file without what says that it is CUDA: `deform_conv_cuda_kernel.cu`,
`deform_conv_ext.cpp` and `import deform_conv_cuda` are `deform_conv`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from transplt.finding import Finding

SOURCE_SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".cu", ".cuh")
_KERNEL_SUFFIXES = (".cu", ".cuh")
#: Folders that hold the sources of an extension and are not its name.
_SOURCE_FOLDERS = frozenset({"src", "csrc", "source", "cuda", "cpu", "gpu", "kernel", "kernels", "include"})
_ENDINGS = re.compile(r"[_-](cuda|kernels?|cpu|gpu|ext|utils|binding|bindings|ops?)$", re.IGNORECASE)
_CALLED = re.compile(r"\(([\w.]+)\)")
#: The remark that a source holds kernels or binds names.
_HOLDS = "NPU557"
#: What setup.py is told by: CUDAExtension, CUDA_HOME, nvcc and .cu files.
_BUILDS = frozenset({"NPU550", "NPU551", "NPU208"})


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing to port: a kernel, or the C++ code of a folder, which has no `kernel`."""

    folder: str
    kernel: str = ""

    def __str__(self) -> str:
        if not self.kernel:
            return self.folder or "the top folder"
        return f"{self.kernel} ({self.folder})" if self.folder else self.kernel


def plain_name(name: str) -> str:
    """The name of a kernel or of an extension without what says that it is one; small and capital letters stay."""
    while (shorter := _ENDINGS.sub("", name)) and shorter != name:
        name = shorter
    return name


def home_of(folder: str) -> str:
    """The folder of the extension whose sources lie in `folder`."""
    while posixpath.basename(folder) in _SOURCE_FOLDERS and "/" in folder:
        folder = posixpath.dirname(folder)
    return folder


class Kernels:
    """The units of a project."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        """`findings` are all of the project, remarks included: a source may hold a kernel and not name CUDA."""
        known = list(findings)
        native = {each.path for each in known if each.path.lower().endswith(SOURCE_SUFFIXES)}
        #: By path: the kernels in a source, as the remark lists them.
        self.listed = {each.path: each.message for each in known if each.code == _HOLDS and "kernel" in each.message}
        with_kernels = {path for path in native if path.lower().endswith(_KERNEL_SUFFIXES)}
        with_kernels = with_kernels & self.listed.keys() or with_kernels
        #: By folder: the names of the kernels in it.
        self._kernels: dict[str, set[str]] = {}
        for path in with_kernels:
            folder, stem = _parts(path)
            self._kernels.setdefault(folder, set()).add(stem)
        builds = {each.path for each in known if each.code in _BUILDS and each.open and _is_setup(each.path)}
        self._builds = sorted(map(posixpath.dirname, builds), key=lambda folder: (-len(folder), folder))
        self._units = sorted({self.of_source(path) for path in native}, key=lambda unit: (unit.folder, unit.kernel))

    def of_source(self, path: str) -> Unit:
        """The unit of a C++ or CUDA source."""
        folder, stem = _parts(path)
        kernels = self._kernels.get(folder, set())
        fits = [name for name in kernels if _like(name, stem)]
        kernel = max(fits, key=lambda name: (_same(name, stem), len(name), name), default="")
        if not kernel and len(kernels) == 1:
            kernel = next(iter(kernels))
        return Unit(home_of(folder), kernel)

    def named(self, name: str) -> Unit | None:
        """The unit that is imported as `name`, by its own name or that of its folder."""
        parts = {plain_name(part).lower() for part in name.split(".")} - {"", "_c"}
        for unit in self._units:
            names = {unit.kernel.lower(), plain_name(posixpath.basename(unit.folder)).lower()}
            if unit.kernel and parts & names:
                return unit
        return None

    def beside(self, path: str) -> Unit | None:
        """The kernel that a Python file or a build stands beside, where it is the only one or has the file's name."""
        folder, stem = _parts(path)
        here = [unit for unit in self._units if unit.kernel and unit.folder == folder]
        if len(here) > 1:
            here = [unit for unit in here if _same(unit.kernel, stem)]
        return here[0] if len(here) == 1 and folder else None

    def called(self, message: str) -> Unit | None:
        """The unit of the call that a message names in brackets."""
        match = _CALLED.search(message)
        return self.named(match[1]) if match is not None else None

    def build_above(self, unit: Unit) -> str | None:
        """The folder with the build of sources that bind the kernels of folders below; None for other sources."""
        if unit.kernel or not any(other.kernel and _within(other.folder, unit.folder) for other in self._units):
            return None
        return next((folder for folder in self._builds if _within(unit.folder, folder)), None)

    def is_build(self, path: str) -> bool:
        """True for a file that builds extensions."""
        return _is_setup(path) and posixpath.dirname(path) in self._builds


def _is_setup(path: str) -> bool:
    return posixpath.basename(path) == "setup.py"


def _same(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _like(one: str, other: str) -> bool:
    return one.lower() in other.lower() or other.lower() in one.lower()


def _parts(path: str) -> tuple[str, str]:
    folder, name = posixpath.split(path)
    return folder, plain_name(name.partition(".")[0])


def _within(folder: str, above: str) -> bool:
    return not above or folder == above or folder.startswith(f"{above}/")
