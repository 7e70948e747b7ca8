"""What a project asks for, as pip is told it: from its own files, and from what its scripts import.

Nothing of the project is executed: a setup.py is read, not run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from packaging.requirements import InvalidRequirement
from packaging.requirements import Requirement as Parsed

from transplt.base.text.regular_file import REQUIREMENTS, SOURCE, read_regular
from transplt.base.text.requirement import Requirement, normalised
from transplt.engine.files.dependency_files import LOCK_FILES, PIP, requirements_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.flow.entry_points import TO_TRAIN, named_after
from transplt.program.outside_packages import outside_packages
from transplt.rules.distributions import distribution_of
from transplt.rules.packages import package_installed_as
from transplt.syntax.modules import named_aside

#: Packages that are built together with one release of torch.
OF_TORCH = ("torchvision", "torchaudio")
#: Sections that are installed with a project itself; others are for its developers, or are extras.
_SECTIONS = frozenset({"", PIP, "project.dependencies", "tool.poetry.dependencies", "packages", "dependencies"})
_ASIDE = re.compile(
    r"(?<![a-z])(?:dev|develop|test|tests|testing|doc|docs|lint|ci|build|xpu|rocm|amd|hpu|tpu|mps)(?![a-z])"
)
_IN_THEIR_FOLDER = tuple(f"requirements/{name}.txt" for name in ("requirements", "base", "runtime", "default"))
_NESTED = re.compile(r"^[ \t]*(?:-r|--requirement)[= \t]+([^\s#]+)", re.M)
#: Of a file that another one names, by its suffix.
_KINDS = {".py": FileKind.PYTHON, ".txt": FileKind.REQUIREMENTS, ".in": FileKind.REQUIREMENTS}
#: These do load without CUDA, and their wheels ask for its libraries, or for one release of torch.
_PULL_CUDA = frozenset({"xformers", "bitsandbytes", "onnxruntime-gpu", "tensorflow-gpu"})
_BOUND = frozenset({"unsupported", "replacement", "drop", "ascend_fork"})
_OF_CARD = re.compile(r"(?:^|-)(?:npu|ascend)(?:-|$)|^mindspeed")
#: Windows of OpenCV need a display and its libraries, which containers and hosts lack; the modules are the same.
#: So many are read where a project has none at its top.
_MOST_SCRIPTS = 200
_HEADLESS = {name: f"{name}-headless" for name in ("opencv-python", "opencv-contrib-python")}
_OF_OPENCV = {*_HEADLESS, *_HEADLESS.values()}  # distributions that hold the same modules


@dataclass(frozen=True)
class Wanted:
    """A package: the name, what pip is told, and the file that asks for it."""

    name: str
    words: str
    source: str


@dataclass
class Needs:
    """What is installed, what is not and why, the clauses of torch that somebody asked for, those of `OF_TORCH` that
    are asked for, and the modules that the scripts import."""

    wanted: list[Wanted] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    torch: str = ""
    of_torch: list[str] = field(default_factory=list)
    modules: frozenset[str] = frozenset()


def needs_of(project: Path, scripts: Iterable[Path]) -> Needs:
    """What the program of some scripts needs; the first file that names a package decides on its version."""
    modules = frozenset(name for script in scripts for name in outside_packages(script, project))
    found = Needs(modules=modules)
    imported = {normalised(distribution_of(each)) for each in modules}
    seen: set[str] = set()
    for source, each, words in _asked(project):
        name = normalised(each.name)
        name = "torch" if name == "pytorch" else name
        if name in seen or (words is None and name not in {*imported, "torch"}):
            continue
        seen.add(name)
        if name == "torch":
            found.torch = each.specifier
        else:
            _take(found, name, words if words is not None else _words(each), source)
    for module in sorted(modules):
        name = normalised(distribution_of(module))
        same = _OF_OPENCV if name in _OF_OPENCV else ()
        if not seen & {name, normalised(module), *same}:
            seen.add(name)
            _take(found, name, distribution_of(module), "imports")
    return found


def _take(found: Needs, name: str, words: str, source: str) -> None:
    """Put a package where it belongs."""
    row = package_installed_as(name)
    status = str(row["status"]) if row is not None else ""
    imported = row["import"][0] if row is not None and row["import"] else ""
    if name in OF_TORCH:
        found.of_torch.append(name)
    elif _OF_CARD.search(name):
        found.left_out[name] = "it is for the card"
    elif name.startswith("nvidia-") and status == "drop":
        found.left_out[name] = "a part of CUDA"
    elif name in _PULL_CUDA or (status in _BOUND and row is not None and not row.get("loads")):
        found.left_out[name] = "built for CUDA"
    elif status in _BOUND and normalised(distribution_of(imported)) not in (name, normalised(imported)):
        # `faiss-gpu`: of a package with several builds the one that runs here.
        found.wanted.append(Wanted(name, distribution_of(imported), source))
    else:
        parsed = _parsed(words)
        if parsed is None or parsed.marker is None or parsed.marker.evaluate({"extra": ""}):
            headless = _HEADLESS.get(name, "")
            found.wanted.append(Wanted(name, headless + words[len(name) :] if headless else words, source))


def _asked(project: Path) -> Iterator[tuple[str, Requirement, str | None]]:
    """The file, the requirement, and what pip is told: None for one that counts where a script imports it."""
    for path in _files(project):
        try:
            data = read_regular(path, REQUIREMENTS)
        except OSError:
            continue
        inside = path.relative_to(project).as_posix()
        text, kind = data.decode("utf-8", "replace"), kind_of(inside, data)
        kind = _KINDS.get(path.suffix, kind)
        for each in requirements_of(text, inside, kind):
            if each.section not in _SECTIONS and each.section != "conda":
                continue
            lines = path.suffix in (".txt", ".in") or each.section in (PIP, "project.dependencies")
            if each.name in ("", "python") or (each.address and not lines):
                continue
            words = text[slice(*each.whole)].replace("\\\n", " ").strip() if lines else ""
            if words and (each.address or _parsed(words) is not None):
                yield inside, each, words
            else:  # `conda list --export` writes a requirements.txt too, with all that the packages need
                loose = lines or path.name in ("setup.py", "setup.cfg") or each.section == "conda"
                yield inside, each, None if loose else _words(each)


def _files(project: Path) -> Iterator[Path]:
    """The files at the top of a project, those first that are made for pip, and the ones that they name."""
    names = sorted(os.listdir(project))
    lists = [name for name in names if re.fullmatch(r"requirements?.*\.(?:txt|in)", name, re.I)]
    plain = [name for name in lists if name.lower() == "requirements.txt"]
    chosen = plain or [name for name in lists if not _ASIDE.search(name.lower())] or [*_IN_THEIR_FOLDER]
    chosen += ["pyproject.toml", "Pipfile", "setup.cfg", "setup.py"]
    chosen += [name for name in names if re.fullmatch(r"(?:conda|env|environment).*\.ya?ml", name, re.I)]
    waiting = [project / name for name in chosen if not LOCK_FILES.fullmatch(name.lower())]
    seen: set[Path] = set()
    for path in waiting:  # grows
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        yield path
        if path.suffix in (".txt", ".in"):
            text = read_regular(path, REQUIREMENTS).decode("utf-8", "replace")
            nested = (Path(os.path.normpath(path.parent / name)) for name in _NESTED.findall(text))
            waiting += [each for each in nested if each.is_relative_to(project)]


def _words(each: Requirement) -> str:
    """A requirement of a table, as a line of requirements.txt."""
    marker = f" ; {each.marker}" if each.marker else ""
    words = f"{each.name}{each.specifier}{marker}"
    return words if _parsed(words) is not None else each.name


def _parsed(words: str) -> Parsed | None:
    try:
        return Parsed(words)
    except InvalidRequirement:
        return None


def scripts_of(project: Path) -> list[Path]:
    """The scripts of a project where none is named: those at its top that are written to be started, else all of it."""
    top = [path for path in sorted(project.glob("*.py")) if path.name != "setup.py"]
    starting = [path for path in top if _starts(path)]
    if starting or top:
        return starting or top
    below = (path for path in sorted(project.rglob("*.py")) if not named_aside(path.relative_to(project).as_posix()))
    return [*islice(below, _MOST_SCRIPTS)]


def script_to_train(project: Path) -> str:
    """The one script at the top of a project that trains by its name; "" where there is none, or several."""
    names = [each.name for each in project.glob("*.py") if TO_TRAIN.search(each.name) and not named_after(each.name)]
    return names[0] if len(names) == 1 else ""


def _starts(path: Path) -> bool:
    try:
        return b"__main__" in read_regular(path, SOURCE)
    except OSError:
        return False
