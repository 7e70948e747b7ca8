"""Where `npu_port.py` of a program lies, so that all its files import the same one module.

A file that is started has its folder in the path of the interpreter; an import of one of the project's own modules
shows from which folder it is found (import_layout.py). What of this holds for all scripts of a program is where the
module goes: beside the scripts, or inside the package that all of them import. Scripts in several folders that share no
such folder get one each; but a file of a package that is named in full from everywhere has it in that package. Whoever
imports a package, a test among them, has to find the module as well: where one place does not serve a file of it, the
module goes into the package, or where the file is also found without its package, into each of the folders from which
it is found.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from transplt.flow.facts import ProjectFacts
from transplt.flow.import_layout import (
    INIT,
    NAME,
    TESTS,
    ImportLayout,
    has_relative,
    in_folder,
    is_a_library_inside,
    is_below,
    is_started,
    layout_of,
    reached_from,
    scripts_among,
    search_path_of,
    starts_leading_to,
    takes_from_its_package,
)
from transplt.syntax.modules import outermost_package, packages_of

__all__ = ["NAME", "NO_HOME", "HelperPlace", "place_of", "program_of"]

#: Packages that all scripts may import, and that are for something else.
NO_HOME = frozenset({"log", "logs", "logger", "logging", "data", "dataset", "datasets", "config", "configs"})

#: The settings of a manual: they name the folder of what is described.
_OF_SPHINX = re.compile(r"(?:^|/)docs?/(?:source/)?conf\.py$")


@dataclass(frozen=True, slots=True)
class HelperPlace:
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
        return posixpath.basename(self.paths[0])[: -len(".py")] if self.paths else ""


def place_of(project: ProjectFacts, path: str, *, starts: bool, entry: str = "") -> HelperPlace | None:
    """Where the module for a file lies; None where nobody can tell how the file is found, so that functions have to
    stand in it. `starts`: the file does something when it is executed; `entry`: a script that the user has named.
    """
    layout = project.once(layout_of)
    together = layout.parts.get(path, [path])
    started = (starts or path == entry) and is_started(project, layout, path, entry)
    if there := _there(layout, path, together):
        has_it = any(edge.target in layout.ours for edge in layout.edges.get(path, ()))
        return there if has_it else _found_by_importers(project, layout, path, there, started)
    if len(together) == 1:
        folder = posixpath.dirname(path)
        package = outermost_package(path, project.placing)
        if package and takes_from_its_package(project, path):
            return _new(layout, package, package.replace("/", "."))  # what it imports is no file, as a compiled module
        at_the_top = not folder and INIT not in project.placing  # whoever imports it has this folder on the path
        return _new(layout, folder) if starts or at_the_top or path == entry else None
    scripts = scripts_among(project, layout, together, entry)
    place = _beside(layout, together, scripts)
    if place is None:
        top = _named_in_full(project, layout, path, together)
        place = (
            _found_by_all(project, layout, together, scripts, top)
            or _in_package(layout, path, scripts, top)
            or _beside_each(layout, path, scripts)
            or _relative(project, layout, path)
        )
    return place and _found_by_importers(project, layout, path, place, started)


def program_of(project: ProjectFacts, path: str) -> str:
    """What the modules of one program have in common, where each script finds one by the same name.

    The interpreter keeps the first that it finds, whoever asks for it next. Where a file says in which folders it
    looks, every folder of the project may be one; tests and Sphinx look for what is theirs.
    """
    if project.once(_extends):
        return "sys.path"
    return min(project.once(layout_of).parts.get(path, [path]))


def _extends(project: ProjectFacts) -> bool:
    """Whether some file looks in a folder of the project, or in one whose name its text does not tell."""
    folders = {"", *(posixpath.basename(posixpath.dirname(each)) for each in project.placing)}
    extending = (path for path, facts in project.placing.items()
                 for each in facts.extends if posixpath.basename(each.rstrip("/")).strip(".") in folders)  # fmt: skip
    return not all(TESTS.search(each) or _OF_SPHINX.search(each) for each in extending)


# --- the five ways ---------------------------------------------------------------------------------------------------


def _there(layout: ImportLayout, path: str, together: Collection[str]) -> HelperPlace | None:
    """The module that an earlier migration wrote for one of the files."""
    for ours in sorted(each for each in layout.ours if each in together):
        if ours == path:
            continue
        edges = [edge for other in together for edge in layout.edges.get(other, ()) if edge.target == ours]
        package = next((edge.name.rpartition(".")[0] for edge in edges if edge.base is not None), None)
        if package is None:
            package = posixpath.dirname(ours).replace("/", ".")
        return HelperPlace((ours,), package, layout.ours[ours])
    return None


def _beside(layout: ImportLayout, together: Collection[str], scripts: Collection[str]) -> HelperPlace | None:
    """Beside the scripts, where they lie in one folder, and the rest in it or below."""
    folders = {posixpath.dirname(script) for script in scripts}
    if len(folders) != 1 or any(has_relative(layout, script) for script in scripts):
        return None
    (folder,) = folders
    if all(is_below(path, folder) or TESTS.search(path) for path in together):
        return _new(layout, folder)
    return None


def _found_by_all(
    project: ProjectFacts, layout: ImportLayout, together: Collection[str], scripts: Collection[str], top: str | None
) -> HelperPlace | None:
    """In the folder from which all scripts find the project's own modules, or the one package there that all import.
    `top`: the package of the file, which others that install it find from its own folder alone.
    """
    bases: set[str] | None = None
    for script in scripts:
        reached = reached_from(layout, script)
        found = {edge.base for each in reached for edge in layout.edges.get(each, ()) if edge.base is not None}
        bases = found if bases is None else bases & found
    bases = (bases or set()) & ({posixpath.dirname(top)} if top is not None else bases or set())
    for base in sorted(bases, key=lambda each: (each.count("/"), each)):
        imported = {edge.name.partition(".")[0] for each in together for edge in layout.edges.get(each, ())
                    if edge.base == base}  # fmt: skip
        packages = sorted(name for name in imported if in_folder(base, f"{name}/{INIT}", "") in project.placing)
        packages = _installed(packages, base, scripts)
        beside = any(posixpath.dirname(script) == base for script in scripts)
        if len(packages) == 1 and packages[0] not in NO_HOME and not beside:
            return _new(layout, posixpath.join(base, packages[0]), packages[0])
        return _new(layout, base)
    return None


def _installed(packages: list[str], base: str, scripts: Collection[str]) -> list[str]:
    """The packages of a folder, where there are several without those of examples and tests: nobody installs these."""
    folders = {name: in_folder(base, name, "") for name in packages}
    aside = {name for name, folder in folders.items()
             if TESTS.search(f"{folder}/") or any(is_below(each, folder) for each in scripts)}  # fmt: skip
    return [name for name in packages if name not in aside] if len(packages) > 1 else packages


def _in_package(layout: ImportLayout, path: str, scripts: Collection[str], top: str | None) -> HelperPlace | None:
    """In the package of a file, where `top` is its folder and all name it in full, whatever else its scripts import."""
    if top is None:
        return None
    if path in scripts and not any(is_below(edge.target, top) for edge in layout.edges.get(path, ())):
        return None  # started from its own folder, it would not find the package
    return _new(layout, top, posixpath.basename(top))


def _named_in_full(project: ProjectFacts, layout: ImportLayout, path: str, together: Collection[str]) -> str | None:
    """The folder of the outermost package that holds a file, where all that import from it name it in full."""
    top = outermost_package(path, project.placing)
    if not top:
        return None
    bases: set[str] = set()
    for each in together:
        named = [edge.base for edge in layout.edges.get(each, ()) if is_below(edge.target, top)]
        for base in [found for found in named if found is not None]:
            if not is_a_library_inside(each, base, top if is_below(each, top) else ""):
                bases.add(base)
    return top if bases == {posixpath.dirname(top)} else None


def _beside_each(layout: ImportLayout, path: str, scripts: Collection[str]) -> HelperPlace | None:
    """One beside each of the scripts that lead to a file."""
    leading = [script for script in scripts if path in reached_from(layout, script)]
    if not leading or any(has_relative(layout, script) for script in leading):
        return None
    return _copies(layout, dict.fromkeys(posixpath.dirname(script) for script in leading))


def _relative(project: ProjectFacts, layout: ImportLayout, path: str) -> HelperPlace | None:
    """In the package that holds a file, where its files import one another by relative imports."""
    if not has_relative(layout, path) and not any(
        edge.target == path and edge.base is None
        for other in layout.importers.get(path, ()) for edge in layout.edges[other]
    ):  # fmt: skip
        return None
    top = outermost_package(path, project.placing) or posixpath.dirname(path)
    if not top:
        return None
    return _new(layout, top, top.replace("/", "."))


def _found_by_importers(
    project: ProjectFacts, layout: ImportLayout, path: str, place: HelperPlace, started: bool
) -> HelperPlace:
    """A place, or another one where the file would not find the module there in some way that it is imported itself, or
    `started`.

    Inside of its package a file finds the module by whatever name it is imported, unless that is a name without a
    package; then there is one in each folder from which the file is found.
    """
    bases = layout.bases.get(path, set())
    top = outermost_package(path, project.placing)
    outside = posixpath.dirname(top)
    in_full = bool(top) and (outside in bases or _names(layout, path, top))
    # What nobody imports and is not started is a part of its package, if that is imported as a whole.
    unnamed = bool(top) and not (started or bases) and outside in layout.bases.get(in_folder(top, INIT, ""), ())
    ways = [search_path_of(project, layout, each) for each in starts_leading_to(project, layout, path)
            if started or each != path]  # fmt: skip
    folders = [posixpath.dirname(each) for each in place.paths]
    if (in_full or unnamed) and (place.package or not any(is_below(top, folder) for folder in folders)):
        ways.append(frozenset({outside}))  # who imports the package, and starts none of these scripts
    if not place.package:
        if all(way.intersection(folders) for way in ways):
            return place
    elif not is_below(path, folders[0]) or _finds(project, layout, path, folders[0], started, guarded=True):
        return place
    packages = packages_of(path, project.placing)
    for package in packages if in_full or bases else packages[::-1]:
        if _finds(project, layout, path, package, started):
            name = package.removeprefix(f"{outside}/") if in_full else package
            return _new(layout, package, name.replace("/", "."))
    found: list[str] = []
    for way in ways:
        if not way.intersection(found):
            found += [*sorted(way & {posixpath.dirname(path)}), *sorted(way & bases), *sorted(way)][:1]
    return _copies(layout, found) if found else place


def _finds(
    project: ProjectFacts, layout: ImportLayout, path: str, package: str, started: bool, *, guarded: bool = False
) -> bool:
    """True for a package that holds a file, which finds it by whatever name it is imported itself.

    Where it is `started`, it finds its package if it imports more of that by its full name; `guarded`: or if it has a
    main guard and looks in that folder.
    """
    if started and not takes_from_its_package(project, path) and not _names(layout, path, package):
        known = TESTS.search(path) or (guarded and project.placing[path].guarded)
        if not known or posixpath.dirname(package) not in search_path_of(project, layout, path):
            return False
    return all(is_below(package, base) for base in layout.bases.get(path, ()))


def _names(layout: ImportLayout, path: str, package: str) -> bool:
    """True for a file that imports from a package by its full name."""
    outside = posixpath.dirname(package)
    return any(edge.base == outside and is_below(edge.target, package) for edge in layout.edges.get(path, ()))


def _copies(layout: ImportLayout, folders: Iterable[str]) -> HelperPlace:
    """The same module in each of some folders, imported by its name alone."""
    places = [_new(layout, folder) for folder in folders]
    there = [{*place.there} for place in places if place.there is not None]
    paths = tuple(place.paths[0] for place in places)
    return HelperPlace(paths, "", tuple(sorted(set.intersection(*there))) if there else None)


def _new(layout: ImportLayout, folder: str, package: str = "") -> HelperPlace:
    """A module in a folder; the one that lies there already, where it is ours."""
    path = in_folder(folder, layout.name)
    return HelperPlace((path,), package, layout.ours.get(path))
