"""Whether anything of a project asks for torch_npu, which its files import after the migration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.settings import TorchTarget
from transplt.base.text.regular_file import REQUIREMENTS, read_regular
from transplt.base.text.requirement import normalised
from transplt.engine.files.dependencies.codes import NOT_ADDED
from transplt.engine.files.dependency_files import BUILD, INSTALLING, LOCK_FILES, requirements_of
from transplt.engine.files.kind import FileKind
from transplt.syntax.modules import named_aside

_TORCH_NPU = "torch-npu"
#: Kinds of files that may ask for packages.
_MAY_ASK = frozenset(each.value for each in (FileKind.REQUIREMENTS, *INSTALLING))
#: The name of the list that everybody gets who installs a project.
_LIST = re.compile(rb"\binstall_requires\b|^(?:dependencies\b|\[tool\.poetry\.dependencies\])", re.M)


def unasked(
    first: Callable[[], Finding | None], kinds: Mapping[str, str], root: Path, target: TorchTarget
) -> Finding | None:
    """The finding in the list of packages that torch-npu goes into, or, where there is none, at the first import of
    torch_npu. None where a file of the tree asks for it, and where there is no import. `first` looks for that; `kinds`
    are the files of the tree, in the order of their paths.
    """
    asked = {path: _packages_in(path, kind, root) for path, kind in kinds.items() 
             if (kind in _MAY_ASK or _is_setup(path)) and not LOCK_FILES.fullmatch(path.rpartition("/")[2].lower())}
    if any(_TORCH_NPU in names for names in asked.values()) or (place := first()) is None:
        return None
    lists = {path for path, kind in kinds.items() if kind == FileKind.REQUIREMENTS.value or _is_setup(path)}
    dependencies = [path for path, names in asked.items() if names and path in lists]
    dependencies.sort(key=lambda path: (named_aside(path), "torch" not in asked[path], path.count("/"), path))
    beside = "to what installs the project"
    if dependencies:
        main = dependencies[0]
        beside = f"next to torch in {main}" if "torch" in asked[main] else f"to the packages of {main}"
        if not named_aside(main):
            place = replace(place, path=main, span=_list_in(root / main), aside=False, late="")
    pin = f"torch-npu=={target.torch_npu}" if target.torch_npu else "torch-npu"
    return replace(
        place,
        code=NOT_ADDED,
        level=Level.MANUAL if dependencies else Level.INFO,
        message="torch_npu is imported, but no file of the project requires torch-npu",
        api=_TORCH_NPU,
        effort=Effort.LOW if dependencies else None,
        help=f"add {pin} {beside}; it goes with torch {target.pin}",
        edit=None,
        applied=False,
    )


def _list_in(path: Path) -> Span:
    """Where the packages of a file begin."""
    data = read_regular(path, REQUIREMENTS)
    match = _LIST.search(data) if path.suffix in (".py", ".toml", ".cfg", ".yml", ".yaml") else None
    start, end = match.span() if match is not None else (0, 0)
    line, before = data.count(b"\n", 0, start) + 1, data.rfind(b"\n", 0, start) + 1
    return Span(line, start - before + 1, line, end - before + 1, start, end)


def _is_setup(path: str) -> bool:
    return path.rpartition("/")[2] == "setup.py"


def _packages_in(path: str, kind: str, root: Path) -> frozenset[str]:
    """The packages that a file of the input asks for."""
    try:
        text = read_regular(root / path, REQUIREMENTS).decode("utf-8", "replace")
    except OSError:
        return frozenset()
    if _is_setup(path) and "install_requires" not in text:
        return frozenset()  # it builds, and installs nothing
    known = FileKind.PYTHON if _is_setup(path) else FileKind(kind)
    every = [each for each in requirements_of(text, path, known) if not each.is_elsewhere]
    return frozenset(normalised(each.name) for each in every if each.section != ".".join(BUILD))  # not what builds it
