"""Where `npu_port.py` of a program lies, so that all its files import the same one module.

A file that is started has its folder in the path of the interpreter; an import of one of the project's own modules
shows from which folder it is found. What of this holds for all scripts of a program is where the module goes: beside
the scripts, or inside the package that all of them import. Scripts in several folders that share no such folder get one
each; but a file of a package that is named in full from everywhere has it in that package.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from transplt.flow.components import Components
from transplt.flow.facts import ProjectFacts
from transplt.flow.libraries import is_library
from transplt.flow.placing import Placing
from transplt.syntax.modules import outermost_package

NAME = "npu_port"
#: Who imports a program and is no script of it.
_TESTS = re.compile(r"(?:^|/)(?:tests?/.*|test_[^/]*|[^/]*_test|conftest|setup)\.py$|(?:^|/)tests?/")
#: Folders that are on the path of what is installed, and no part of a name.
_INIT = "__init__.py"


@dataclass(frozen=True, slots=True)
class Place:
    """`paths` are the files to write, all the same: several where scripts of several folders find each its own.

    `package`: the package that holds it, as the program names it; empty where it is imported by its name alone.
    `there`: what the module has, where the project has it already; None where it is to be written.
    """

    paths: tuple[str, ...]
    package: str = ""
    there: tuple[str, ...] | None = None

    @property
    def module(self) -> str:
        """The name of the module."""
        return posixpath.basename(self.paths[0])[: -len(".py")]


class _Edge(NamedTuple):
    """An import of one file by another: from which folder its name is found, and its name there; `None` for both where
    the import is relative.
    """

    target: str
    base: str | None
    name: str


@dataclass(slots=True)
class _Layout:
    """Who imports whom in a project, and in which files of it one may be that belong together."""

    edges: dict[str, tuple[_Edge, ...]] = field(default_factory=dict)
    importers: dict[str, list[str]] = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)  # path -> the files that it belongs together with
    ours: dict[str, tuple[str, ...]] = field(default_factory=dict)
    name: str = NAME


def place_of(project: ProjectFacts, path: str, *, starts: bool, entry: str = "") -> Place | None:
    """Where the module for a file lies; None where nobody can tell how the file is found, so that functions have to
    stand in it. `starts`: the file does something when it is executed; `entry`: a script that the user has named.
    """
    layout = project.once(_layout)
    together = layout.parts.get(path, [path])
    if there := _there(layout, path, together):
        return there
    if len(together) == 1:
        folder = posixpath.dirname(path)
        package = outermost_package(path, project.placing)
        if package and _takes_from_its_package(project, path):
            return _new(layout, package, package.replace("/", "."))  # what it imports is no file, as a compiled module
        at_the_top = not folder and _INIT not in project.placing  # whoever imports it has this folder on the path
        return _new(layout, folder) if starts or at_the_top or path == entry else None
    scripts = _scripts(project, layout, together, entry)
    if (place := _beside(layout, together, scripts)) and not _is_of_a_package(project, path, place):
        return place
    top = _named_in_full(project, layout, path, together)
    return (
        _found_by_all(project, layout, together, scripts, top)
        or _in_package(layout, path, scripts, top)
        or _beside_each(layout, path, scripts)
        or _relative(project, layout, path)
    )


def program_of(project: ProjectFacts, path: str) -> str:
    """What the modules of one program have in common, where each script finds one by the same name.

    The interpreter keeps the first that it finds, whoever asks for it next. Where a file says in which folders it
    looks, every folder of the project may be one.
    """
    if any(facts.extends and not _TESTS.search(each) for each, facts in project.placing.items()):
        return "sys.path"
    return min(project.once(_layout).parts.get(path, [path]))


# --- the five ways ---------------------------------------------------------------------------------------------------


def _there(layout: _Layout, path: str, together: Collection[str]) -> Place | None:
    """The module that an earlier migration wrote for one of the files."""
    for ours in sorted(each for each in layout.ours if each in together):
        if ours == path:
            continue
        edges = [edge for other in together for edge in layout.edges.get(other, ()) if edge.target == ours]
        package = next((edge.name.rpartition(".")[0] for edge in edges if edge.base is not None), None)
        if package is None:
            package = posixpath.dirname(ours).replace("/", ".")
        return Place((ours,), package, layout.ours[ours])
    return None


def _beside(layout: _Layout, together: Collection[str], scripts: Collection[str]) -> Place | None:
    """Beside the scripts, where they lie in one folder, and the rest in it or below."""
    folders = {posixpath.dirname(script) for script in scripts}
    if len(folders) != 1 or any(_has_relative(layout, script) for script in scripts):
        return None
    (folder,) = folders
    if all(_is_below(path, folder) or _TESTS.search(path) for path in together):
        return _new(layout, folder)
    return None


def _is_of_a_package(project: ProjectFacts, path: str, place: Place) -> bool:
    """True where a file that imports from its package would find a module only from a folder inside of that."""
    top = outermost_package(path, project.placing)
    return bool(top) and _is_below(place.paths[0], top) and _takes_from_its_package(project, path)


def _takes_from_its_package(project: ProjectFacts, path: str) -> bool:
    facts = project.placing.get(path)
    return facts is not None and any(name.startswith(".") for name in facts.imported)


def _found_by_all(
    project: ProjectFacts, layout: _Layout, together: Collection[str], scripts: Collection[str], top: str | None
) -> Place | None:
    """In the folder from which all scripts find the project's own modules, or the one package there that all import.
    `top`: the package of the file, which others that install it find from its own folder alone.
    """
    bases: set[str] | None = None
    for script in scripts:
        reached = _reached(layout, script)
        found = {edge.base for each in reached for edge in layout.edges.get(each, ()) if edge.base is not None}
        bases = found if bases is None else bases & found
    bases = (bases or set()) & ({posixpath.dirname(top)} if top is not None else bases or set())
    for base in sorted(bases, key=lambda each: (each.count("/"), each)):
        imported = {edge.name.partition(".")[0] for each in together for edge in layout.edges.get(each, ())
                    if edge.base == base}  # fmt: skip
        packages = sorted(name for name in imported if _in(base, f"{name}/{_INIT}", "") in project.placing)
        if len(packages) == 1 and not any(_is_beside(script, base) for script in scripts):
            return _new(layout, posixpath.join(base, packages[0]), packages[0])
        return _new(layout, base)
    return None


def _in_package(layout: _Layout, path: str, scripts: Collection[str], top: str | None) -> Place | None:
    """In the package of a file, where `top` is its folder and all name it in full, whatever else its scripts import."""
    if top is None:
        return None
    if path in scripts and not any(_is_below(edge.target, top) for edge in layout.edges.get(path, ())):
        return None  # started from its own folder, it would not find the package
    return _new(layout, top, posixpath.basename(top))


def _named_in_full(project: ProjectFacts, layout: _Layout, path: str, together: Collection[str]) -> str | None:
    """The folder of the outermost package that holds a file, where all that import from it name it in full."""
    top = outermost_package(path, project.placing)
    if not top:
        return None
    bases: set[str] = set()
    for each in together:
        folder = posixpath.dirname(each)
        named = [edge.base for edge in layout.edges.get(each, ()) if _is_below(edge.target, top)]
        for base in [found for found in named if found is not None]:
            # Inside of a package, a name that would be found from another of its folders is a library's.
            if base == folder or not (_is_below(each, top) and (base == top or _is_below(base, top))):
                bases.add(base)
    return top if bases == {posixpath.dirname(top)} else None


def _beside_each(layout: _Layout, path: str, scripts: Collection[str]) -> Place | None:
    """One beside each of the scripts that lead to a file."""
    leading = [script for script in scripts if path in _reached(layout, script)]
    if not leading or any(_has_relative(layout, script) for script in leading):
        return None
    folders = dict.fromkeys(posixpath.dirname(script) for script in leading)
    places = [_new(layout, folder) for folder in folders]
    paths = tuple(place.paths[0] for place in places)
    there = [{*place.there} for place in places if place.there is not None]
    return Place(paths, "", tuple(sorted(set.intersection(*there))) if there else None)


def _relative(project: ProjectFacts, layout: _Layout, path: str) -> Place | None:
    """In the package that holds a file, where its files import one another by relative imports."""
    if not _has_relative(layout, path) and not any(
        edge.target == path and edge.base is None
        for other in layout.importers.get(path, ()) for edge in layout.edges[other]
    ):  # fmt: skip
        return None
    top = outermost_package(path, project.placing) or posixpath.dirname(path)
    if not top:
        return None
    return _new(layout, top, top.replace("/", "."))


def _new(layout: _Layout, folder: str, package: str = "") -> Place:
    """A module in a folder; the one that lies there already, where it is ours."""
    path = _in(folder, layout.name)
    return Place((path,), package, layout.ours.get(path))


# --- who imports whom ------------------------------------------------------------------------------------------------


def _layout(project: ProjectFacts) -> _Layout:
    layout = _Layout()
    files = {path: facts for path, facts in project.placing.items() if path.endswith(".py")}
    linked = Components()
    for path, facts in files.items():
        edges = dict.fromkeys(_edges(project, files, path, facts))
        layout.edges[path] = tuple(edges)
        for edge in edges:
            linked.link(path, edge.target)
            layout.importers.setdefault(edge.target, []).append(path)
    groups: dict[str, list[str]] = {}
    for path in files:
        groups.setdefault(linked.find(path), []).append(path)
    layout.parts = {path: group for group in groups.values() for path in group}
    layout.ours = {path: facts.ours for path, facts in files.items() if facts.ours is not None}
    taken = {posixpath.basename(path.removesuffix(f"/{_INIT}")).removesuffix(".py") for path in files
             if path not in layout.ours}  # fmt: skip
    number = 0
    while layout.name in taken:
        number += 1
        layout.name = f"{NAME}_{number}"
    return layout


def _edges(project: ProjectFacts, files: Mapping[str, Placing], path: str, facts: Placing) -> Iterator[_Edge]:
    for name in facts.imported:
        if name.startswith("."):
            target = _by_place(files, path, name)
            if target and target != path:
                yield _Edge(target, None, "")
            continue
        target = _by_name(project, files, path, name)
        if target and target != path:
            yield _Edge(target, *_base(target, name))


def _by_name(project: ProjectFacts, files: Mapping[str, Placing], path: str, name: str) -> str:
    """The file that an absolute import names: one beside a script comes first, as for the interpreter."""
    if name.partition(".")[0] == "torch":
        return ""  # whatever has this name beside a file, the project would not run if it were found
    folder = posixpath.dirname(path)
    package = _in(folder, _INIT, "") in files
    beside = "" if name.partition(".")[0] in sys.stdlib_module_names else _by_place(files, path, f".{name}")
    if beside == _in(folder, _INIT, ""):
        beside = ""  # the folder of the file itself
    known = project.path_of(name)
    known = known if known in files else ""
    if known and is_library(name):  # not in some folder of it that nobody finds it from
        base, _ = _base(known, name)
        known = "" if base and (package or not _is_below(path, base)) else known
    elif known and not files[path].extends:
        base, _ = _base(known, name)
        inside = base and _in(base, _INIT, "") in files  # of a package: who stands outside has a library of that name
        known = "" if inside and not _is_below(path, base) else known
    return (known or beside) if package else (beside or known)


def _by_place(files: Mapping[str, Placing], path: str, name: str) -> str:
    """The file that a relative import names; empty where there is none."""
    dotted = name.lstrip(".")
    folder = path.rpartition("/")[0]
    for _ in range(len(name) - len(dotted) - 1):
        if not folder:
            return ""
        folder = folder.rpartition("/")[0]
    stem = (f"{folder}/" if folder else "") + dotted.replace(".", "/") if dotted else folder
    while len(stem) > len(folder):
        for each in (f"{stem}.py", f"{stem}/{_INIT}"):
            if each in files:
                return each
        stem = stem.rpartition("/")[0]
    beside = _in(folder, _INIT, "")
    return beside if beside in files else ""


def _base(target: str, name: str) -> tuple[str, str]:
    """The folder from which a file is found by a name, and its module's name there."""
    parts = target.removesuffix(f"/{_INIT}").removesuffix(".py").split("/")
    dotted = name.split(".")
    for count in range(min(len(parts), len(dotted)), 0, -1):
        if parts[-count:] == dotted[:count]:
            return "/".join(parts[:-count]), ".".join(dotted[:count])
    return posixpath.dirname(target), parts[-1]


def _scripts(project: ProjectFacts, layout: _Layout, together: Iterable[str], entry: str) -> list[str]:
    """The files that are started: nobody imports them, or they have a main guard; tests only where there are no others.
    """
    every = [path for path in together if path not in layout.ours]
    guarded = [path for path in every if project.placing[path].guarded]
    found = [path for path in every if path in guarded or not layout.importers.get(path) or path == entry]
    return [path for path in found if not _TESTS.search(path) and not path.endswith(_INIT)] or found


def _reached(layout: _Layout, path: str) -> list[str]:
    found = {path: None}
    pending = [path]
    for each in pending:
        for edge in layout.edges.get(each, ()):
            if edge.target not in found:
                found[edge.target] = None
                pending.append(edge.target)
    return list(found)


def _has_relative(layout: _Layout, path: str) -> bool:
    return any(edge.base is None for edge in layout.edges.get(path, ()))


def _is_below(path: str, folder: str) -> bool:
    return not folder or path.startswith(f"{folder}/")


def _is_beside(path: str, folder: str) -> bool:
    return posixpath.dirname(path) == folder


def _in(folder: str, name: str, suffix: str = ".py") -> str:
    return f"{folder}/{name}{suffix}" if folder else f"{name}{suffix}"
