"""Who imports whom in a project, from which folders each file is found, and where one that is started looks."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from transplt.base.closure import closure
from transplt.base.finding import Finding
from transplt.base.grouped import grouped
from transplt.flow.components import Components
from transplt.flow.entry_points import TO_TRAIN
from transplt.flow.facts import ProjectFacts
from transplt.flow.import_text import GUARD, Placing
from transplt.flow.libraries import is_library
from transplt.syntax.modules import outermost_package

NAME = "npu_port"
#: Who imports a program and is no script of it.
TESTS = re.compile(r"(?:^|/)(?:tests?/.*|test_[^/]*|[^/]*_test|conftest|setup)\.py$|(?:^|/)tests?/")
#: Folders that are on the path of what is installed, and no part of a name.
INIT = "__init__.py"


class ImportEdge(NamedTuple):
    """An import of one file by another: from which folder its name is found, and its name there; `None` for both where
    the import is relative.
    """

    target: str
    base: str | None
    name: str


@dataclass(slots=True)
class ImportLayout:
    """Who imports whom in a project, and which files belong together.

    `bases`: path -> the folders from which others find a file. `paths`: file that is started -> the folders in which it
    looks, as far as they were asked for. `ours`: modules with functions of the port that are there already, and these.
    `name`: how such a module is called.
    """

    edges: dict[str, tuple[ImportEdge, ...]] = field(default_factory=dict)
    importers: dict[str, list[str]] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)  # path -> the files that it belongs together with
    bases: dict[str, set[str]] = field(default_factory=dict)
    paths: dict[str, frozenset[str]] = field(default_factory=dict)
    ours: dict[str, tuple[str, ...]] = field(default_factory=dict)
    name: str = NAME


def layout_of(project: ProjectFacts) -> ImportLayout:
    """What the imports of all files say."""
    layout = ImportLayout()
    files = {path: facts for path, facts in project.placing.items() if path.endswith(".py")}
    linked = Components()
    for path, facts in files.items():
        edges = dict.fromkeys(_edges(project, files, path, facts))
        layout.edges[path] = tuple(edges)
        for edge in edges:
            linked.link(path, edge.target)
            layout.importers.setdefault(edge.target, []).append(path)
    groups = grouped((linked.find(path), path) for path in files)
    layout.parts = {path: group for group in groups.values() for path in group}
    layout.ours = {path: facts.ours for path, facts in files.items() if facts.ours is not None}
    layout.bases = _bases(files, layout)
    taken = {posixpath.basename(path.removesuffix(f"/{INIT}")).removesuffix(".py") for path in files
             if path not in layout.ours}  # fmt: skip
    number = 0
    while layout.name in taken:
        number += 1
        layout.name = f"{NAME}_{number}"
    return layout


def _bases(files: Mapping[str, Placing], layout: ImportLayout) -> dict[str, set[str]]:
    """The folders from which each file is found, where packages are found with what is in them. Relative imports find
    what they name from where their own file is found, and say that it is found as a part of its package.
    """
    found: dict[str, set[str]] = {}
    pending: list[tuple[str, str]] = []
    for path, facts in files.items():
        top = outermost_package(path, files)
        if top and any(name.startswith(".") for name in facts.imported):
            pending.append((path, posixpath.dirname(top)))
            if any(edge.base == posixpath.dirname(path) for edge in layout.edges[path]):
                pending.append((path, posixpath.dirname(path)))  # it is written for both
        for edge in layout.edges[path]:
            if edge.base is not None and (facts.extends or not is_a_library_inside(path, edge.base, top)):
                pending.append((edge.target, edge.base))
    for path, base in pending:
        if base in found.setdefault(path, set()):
            continue
        found[path].add(base)
        folder = posixpath.dirname(path)
        above = posixpath.dirname(folder) if path.endswith(INIT) else folder
        if (package := in_folder(above, INIT, "")) in files and is_below(above, base):
            pending.append((package, base))
        for target in [edge.target for edge in layout.edges[path] if edge.base is None]:
            if is_below(posixpath.commonpath([folder, posixpath.dirname(target)]), base):
                pending.append((target, base))
    return found


def is_a_library_inside(path: str, base: str, top: str) -> bool:
    """True where a file of a package would find what it imports from another folder of it: it is a library's name."""
    return bool(top) and base != posixpath.dirname(path) and (base == top or is_below(base, top))


def _edges(project: ProjectFacts, files: Mapping[str, Placing], path: str, facts: Placing) -> Iterator[ImportEdge]:
    modules = {each.rpartition(".")[0] for each in facts.imported}
    for name in facts.imported:
        relative, within = name.startswith("."), int(name not in modules)
        target = _by_place(files, path, name, within) if relative else _by_name(project, files, path, name, within)
        if target and target != path:
            yield ImportEdge(target, *((None, "") if relative else _base(target, name)))


def _by_name(project: ProjectFacts, files: Mapping[str, Placing], path: str, name: str, within: int) -> str:
    """The file that an absolute import names: one beside a script comes first, as for the interpreter."""
    if name.partition(".")[0] == "torch":
        return ""  # whatever has this name beside a file, the project would not run if it were found
    folder = posixpath.dirname(path)
    package = in_folder(folder, INIT, "") in files
    beside = "" if name.partition(".")[0] in sys.stdlib_module_names else _by_place(files, path, f".{name}", within)
    if beside == in_folder(folder, INIT, ""):
        beside = ""  # the folder of the file itself
    known = project.path_of(name)
    known = known if known in files else ""
    if known and is_library(name):  # not in some folder of it that nobody finds it from
        base, _ = _base(known, name)
        known = "" if base and (package or not is_below(path, base)) else known
    elif known and not files[path].extends:
        base, _ = _base(known, name)
        inside = base and in_folder(base, INIT, "") in files  # who stands outside of it has a library of that name
        known = "" if inside and not is_below(path, base) else known
    by_package = package and not _starts_here(project, files, path, (known, beside))
    return (known or beside) if by_package else (beside or _nearest_above(files, folder, name, within) or known)


def _nearest_above(files: Mapping[str, Placing], folder: str, name: str, within: int) -> str:
    """The file of a name that several have, each in a program of its own: the one in the next folder above."""
    while folder and not is_library(name):
        folder = posixpath.dirname(folder)
        found = _by_place(files, in_folder(folder, name), f".{name}", within)
        if found and found != in_folder(folder, INIT, ""):
            return found
    return ""


def _starts_here(project: ProjectFacts, files: Mapping[str, Placing], path: str, either: tuple[str, str]) -> bool:
    """Whether a file of a package finds something only as a script beside it does: of two files of one name that in its
    own folder comes first then."""
    if "" in either or either[0] == either[1]:
        return False
    found = ((known, each) for each in files[path].imported if each[:1] != "." and (known := project.path_of(each)))
    return any(known in files and _base(known, each)[0] == posixpath.dirname(path) for known, each in found)


def _by_place(files: Mapping[str, Placing], path: str, name: str, within: int) -> str:
    """The file that a relative import names; empty where there is none. Of a name the last `within` parts may be what
    a module defines: `utils.masking.Mask` is nothing of a file `utils.py`.
    """
    dotted = name.lstrip(".")
    folder = path.rpartition("/")[0]
    for _ in range(len(name) - len(dotted) - 1):
        if not folder:
            return ""
        folder = folder.rpartition("/")[0]
    stem = (f"{folder}/" if folder else "") + dotted.replace(".", "/") if dotted else folder
    while len(stem) > len(folder):
        for each in (f"{stem}.py", f"{stem}/{INIT}")[within < 0 :]:
            if each in files:
                return each
        stem, within = stem.rpartition("/")[0], within - 1
    beside = in_folder(folder, INIT, "")
    return beside if beside in files else ""


def _base(target: str, name: str) -> tuple[str, str]:
    """The folder from which a file is found by a name, and its module's name there."""
    parts = target.removesuffix(f"/{INIT}").removesuffix(".py").split("/")
    dotted = name.split(".")
    for count in range(min(len(parts), len(dotted)), 0, -1):
        if parts[-count:] == dotted[:count]:
            return "/".join(parts[:-count]), ".".join(dotted[:count])
    return posixpath.dirname(target), parts[-1]


def scripts_among(project: ProjectFacts, layout: ImportLayout, together: Iterable[str], entry: str) -> list[str]:
    """The files that are started; tests, and modules that try themselves, only where there are no others."""
    found = [path for path in together if path not in layout.ours and is_started(project, layout, path, entry)]
    found = [path for path in found if not TESTS.search(path) and not path.endswith(INIT)] or found
    return [path for path in found if path == entry or not tries_itself(project, layout, path)] or found


def tries_itself(project: ProjectFacts, layout: ImportLayout, path: str) -> bool:
    """True for a part of a program with a main guard: it is imported from a folder that is not its own."""
    bases = layout.bases.get(path, set())
    return project.placing[path].guarded and bool(bases) and posixpath.dirname(path) not in bases


def is_started(project: ProjectFacts, layout: ImportLayout, path: str, entry: str = "") -> bool:
    """True for a file that nobody imports, one with a main guard, and the script `entry`."""
    return project.placing[path].guarded or not layout.importers.get(path) or path == entry


def starts_leading_to(project: ProjectFacts, layout: ImportLayout, path: str) -> list[str]:
    """The files that are started and import a file, by whatever way, tests among them."""
    return [each for each in leading_to(layout, [path]) if is_started(project, layout, each)]


def common_folders(project: ProjectFacts, layout: ImportLayout, path: str) -> frozenset[str]:
    """The folders in which every start looks that leads to a file, but those of parts that try themselves."""
    starts = [each for each in starts_leading_to(project, layout, path) if not tries_itself(project, layout, each)]
    return frozenset.intersection(*(search_path_of(project, layout, each) for each in starts or [path]))


def leading_to(layout: ImportLayout, paths: Iterable[str]) -> list[str]:
    """Some files, and all that import one of them by whatever way."""
    importers = layout.importers
    return [*closure(paths, lambda each: (one for one in importers.get(each, ()) if one not in layout.ours))]


def search_path_of(project: ProjectFacts, layout: ImportLayout, script: str) -> frozenset[str]:
    """The folders of the project in which a file that is started looks for modules: its own, unless it is started as a
    part of its package, and all from which something is found that it imports.
    """
    if script not in layout.paths:
        top = outermost_package(script, project.placing)
        as_a_part = script.endswith(INIT) or takes_from_its_package(project, script)
        found = {posixpath.dirname(top if as_a_part else script)}
        if top and TESTS.search(script):
            found.add(posixpath.dirname(top))
        for each in reached_from(layout, script):
            found.update(edge.base for edge in layout.edges.get(each, ()) if edge.base is not None)
        layout.paths[script] = frozenset(found)
    return layout.paths[script]


def reached_from(layout: ImportLayout, path: str) -> list[str]:
    """A file, and all that it imports by whatever way."""
    return [*closure([path], lambda each: (edge.target for edge in layout.edges.get(each, ())))]


def has_relative(layout: ImportLayout, path: str) -> bool:
    """True for a file that takes something of the project by a relative import."""
    return any(edge.base is None for edge in layout.edges.get(path, ()))


def takes_from_its_package(project: ProjectFacts, path: str) -> bool:
    """True for a file with a relative import, whether the project has what it names or not."""
    facts = project.placing.get(path)
    return facts is not None and any(name.startswith(".") for name in facts.imported)


def is_below(path: str, folder: str) -> bool:
    """True for what lies in a folder, or below."""
    return not folder or path.startswith(f"{folder}/")


def in_folder(folder: str, name: str, suffix: str = ".py") -> str:
    """The path of a file in a folder."""
    return f"{folder}/{name}{suffix}" if folder else f"{name}{suffix}"


def placed(found: Sequence[Finding], path: str, data: bytes, project: ProjectFacts) -> tuple[Finding, ...]:
    """The findings of a file, which say whether a training script of the project reaches it."""
    aside, late = project.aside.holds(path), project.aside.late(path)
    if project.portable and late != "guard" and not project.once(layout_of).ours:
        late = "handled"  # a port that has just been written is no proof that it trains
    chosen = project.aside.chosen.get(path, "")
    late = "branch" if chosen and late == "other" else late
    aside = aside or _is_idle(found, path, data, project)
    tried = len(data) if aside or late else _tried_from(path, data, project)
    program = "" if aside or late == "other" else project.aside.program(path)
    if tried >= len(data) and not any((aside, late, chosen, program)):
        return tuple(found)
    return tuple(
        replace(
            each, aside=aside, late=late if each.span.start < tried else "other",
            option=each.option or (chosen if each.open and not aside else ""),
            details=(*each.details, ("program", program)) if program else each.details,
        )
        for each in found
    )  # fmt: skip


def _tried_from(path: str, data: bytes, project: ProjectFacts) -> int:
    """Where the part of a module begins that tries it out, behind a main guard: others import the module, and the part
    trains nothing. The end of the file where there is none.
    """
    guard = GUARD.search(data)
    imported = any(not TESTS.search(each) for each in project.once(layout_of).importers.get(path, ()))
    if guard is None or not imported or TO_TRAIN.search(path) or b"backward(" in data[guard.start() :]:
        return len(data)
    return guard.start()


def _is_idle(found: Sequence[Finding], path: str, data: bytes, project: ProjectFacts) -> bool:
    """True for a module of a package that does not parse, is imported by nobody, and is no script."""
    if path in project.aside.taken or not any(each.code == "NPU901" for each in found):
        return False
    return f"{path.rpartition('/')[0]}/__init__.py" in project.modules.values() and b"__main__" not in data
