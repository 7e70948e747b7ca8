"""Where the module lies that chooses the accelerator of a project, in the portable style, and how it is called.

It is found by all files of the program as `npu_port.py` would be (helper_place.py). It goes beside the package's other
helpers where that is a folder which all find as well, and which imports nothing that could lead back to them.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from dataclasses import replace

from transplt.base.grouped import grouped
from transplt.base.settings import Settings
from transplt.flow.chooser_place import finds, is_harmless, is_installed, npu_chooser, own_place, stop_of
from transplt.flow.facts import ProjectFacts
from transplt.flow.helper_place import NO_HOME, HelperPlace, place_of
from transplt.flow.import_layout import (
    INIT,
    ImportLayout,
    common_folders,
    in_folder,
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

#: How it is called, the first that is free (import_text.py looks for the first two in every `__init__`).
NAMES = ("device", "accelerator", "accelerator_device", "accelerator_1", "accelerator_2")
#: How the path of a notebook ends.
NOTEBOOK = ".ipynb"
#: So many scripts of a folder have no module for themselves, and so many lines of one file.
_FEW = 2
_HELPERS = ("utils", "util", "common")
#: First names of modules that are of no package which one installs.
_OF_PROGRAMS = frozenset({"common", "lib", "model", "models", "src", "util", "utils"})


def module_place(
    project: ProjectFacts, path: str, settings: Settings, *, starts: bool, tried: bool = False
) -> HelperPlace | None:
    """Where the module for a file lies, in either style; None where functions have to stand in the file itself, and
    without paths where neither may be: in the portable style for a file of which all that would be edited is there to
    try it out (`tried`), if it would not find the module then.
    """
    if settings.style != "portable":
        return place_of(project, path, starts=starts, entry=settings.entry)
    if npu_chooser(project, path) or stop_of(project, path, settings):
        return HelperPlace((), "", None)
    if path.endswith(NOTEBOOK):
        place = _of_a_notebook(project, path, settings)
    elif (place := own_place(project, path, settings)) is not None:
        place = None if place.there is None and path in place.paths else place  # the choice stands in it
    else:
        place = _of_the_program(project, path, settings, _written(project, path, settings, starts))
        # What a loader reads finds the module as the files beside it do.
        is_read = not starts and _as_beside(project, project.once(layout_of), path, settings.entry) is not None
        place = place if is_read else _first(project, path, settings, place)
    if place is None or _belongs_elsewhere(project, path) or _is_alone(project, path, place, settings):
        return None
    if _is_lost_when_started(project, path, place):
        return replace(place, paths=()) if tried else None
    above = (in_folder(each, INIT, "") for one in place.paths for each in packages_of(one, project.placing))
    return None if any(stop_of(project, each, settings) for each in above) else place


def _belongs_elsewhere(project: ProjectFacts, path: str) -> bool:
    """Whether a file below the top, of no package, imports what the project lacks: people copy it to where that is."""
    facts, edges = project.placing.get(path), project.once(layout_of).edges.get(path)
    if facts is None or edges is None or "/" not in path or facts.extends or outermost_package(path, project.placing):
        return False
    found = {"" if edge.base is None else edge.name.partition(".")[0] for edge in edges}
    asked = {"", *_OF_PROGRAMS}.intersection(each.partition(".")[0] for each in facts.imported) - found
    # Of two folders `models` that beside what else it imports: `import models, utils.log`, with utils in lib.
    bases = {edge.base for edge in edges if edge.base is not None}
    files = ((in_folder(base, name), in_folder(base, f"{name}/{INIT}", "")) for name in asked for base in bases)
    return len(asked) > sum(any(each in project.placing for each in either) for either in files)


def _is_alone(project: ProjectFacts, path: str, place: HelperPlace, settings: Settings) -> bool:
    """Whether a file of a package speaks of CUDA in a line or two, and no other one does that would take the module."""
    facts, parts = project.placing.get(path), project.once(layout_of).parts
    if facts is None or not 0 < facts.speaks <= _FEW or not place.package or place.there is not None:
        return False
    folder = _base(place)
    others = (each for each in project.once(_speaking) if each != path)
    alone = not any(is_below(each, folder) or parts.get(each) is parts.get(path) for each in others)
    return alone and not (settings.helper or settings.adds_code)


def _speaking(project: ProjectFacts) -> list[str]:
    """The files that speak of CUDA."""
    return [path for path, facts in project.placing.items() if facts.speaks]


def _is_lost_when_started(project: ProjectFacts, path: str, place: HelperPlace) -> bool:
    """Whether a part of a program with a main guard, which starts from its own folder too, would not do so with an
    import of the module.
    """
    facts = project.placing.get(path)
    if facts is None or not (facts.guarded and place.paths) or facts.extends or takes_from_its_package(project, path):
        return False
    if place.package and is_installed(project, _base(place)):
        return False
    found = {_base(place), *(posixpath.dirname(each) for each in place.paths if not place.package)}
    return found.isdisjoint(search_path_of(project, project.once(layout_of), path))


def is_added_to(project: ProjectFacts, settings: Settings, place: HelperPlace) -> bool:
    """Whether a module that was written earlier gets what is called beside what it has."""
    written = project.once(layout_of).ours
    return settings.style == "portable" and settings.helper_file and {*place.paths} <= {*written}


def _written(project: ProjectFacts, path: str, settings: Settings, starts: bool) -> HelperPlace | None:
    """Where the module is written for a file, or was."""
    place = place_of(project, path, starts=starts, entry=settings.entry)
    layout = project.once(layout_of)
    place = place or (_as_beside(project, layout, path, settings.entry) if settings.helper_file else None)
    if place is not None and (place.there is not None or not place.paths):
        return place
    if (known := _of_the_package(project, layout, path)) is not None:
        return known
    if not settings.helper_file:
        return None
    if place is None or not place.package:
        imported = _of_an_imported_package(project, layout, path, settings, installed=place is not None)
        if place is None or imported is not None:
            return imported
    if len(place.paths) == 1:
        place = _beside_helpers(project, layout, _in_the_package(project, layout, path, place, settings.entry))
    folders = [posixpath.dirname(each) for each in place.paths]
    name = _free_name(project, layout, folders, settings.helper)
    paths = tuple(in_folder(folder, name) for folder in folders)
    there = [{*layout.ours[each]} for each in paths if each in layout.ours]
    return HelperPlace(paths, place.package, tuple(sorted(set.intersection(*there))) if there else None)


def _of_the_program(
    project: ProjectFacts, path: str, settings: Settings, place: HelperPlace | None
) -> HelperPlace | None:
    """The place that the scripts of a program have, in place of a copy for a file that finds it there by every start
    but its own.
    """
    if place is None or place.there is not None or (place.package and is_installed(project, _base(place))):
        return place
    layout = project.once(layout_of)
    folders = common_folders(project, layout, path)
    if len(place.paths) == 1 and not (layout.edges.get(path) or layout.importers.get(path)):
        folders |= {_base(place)}  # as a loader reads it
    for main in (project.once(_mains).get(folder, path) for folder in sorted(folders)):
        its = _written(project, main, settings, True) if main != path else None
        if its is not None and len(its.paths) == 1 and (base := _base(its)) in folders:
            if not finds(project, layout, path, its.paths[0], base):
                break
            return its
    return place


def _mains(project: ProjectFacts) -> dict[str, str]:
    """A script by the folder from which its module is found: one that lies there, with most of the project, if any."""
    layout = project.once(layout_of)
    started = scripts_among(project, layout, (each for each, edges in layout.edges.items() if edges), "")
    started.sort(key=lambda each: (len(layout.parts[each]), project.placing[each].speaks > 0))
    found: dict[str, str] = {}
    for folder, path in {posixpath.dirname(each): each for each in started}.items():
        place = place_of(project, path, starts=True)
        if place is not None and len(place.paths) == 1 and (_base(place) == folder or _base(place) not in found):
            found[_base(place)] = path
    return found


def _of_a_notebook(project: ProjectFacts, path: str, settings: Settings) -> HelperPlace | None:
    """The place of what a notebook imports from its own folder or one above; None where that is nothing of the project:
    a cell may have gone there in any way, and finds what lies beside it. So with an installed package: people open a
    notebook with a release of it that may lack the module.
    """
    above = posixpath.dirname(path).split("/")
    bases = ["/".join(above[:end]) for end in range(len(above), -1, -1)]
    for name in project.placing[path].imported:
        for base in bases:
            files = (in_folder(base, f"{name.replace('.', '/')}{end}", "") for end in (".py", f"/{INIT}"))
            for target in (each for each in files if each in project.placing):
                place = module_place(project, target, settings, starts=False)
                if place is not None and len(place.paths) == 1 and _base(place) == base:
                    return None if place.package and is_installed(project, base) else place
    return None


def _as_beside(project: ProjectFacts, layout: ImportLayout, path: str, entry: str) -> HelperPlace | None:
    """The place for a file of which nothing tells how it is read: that of its package, if this is installed, or as it
    is for what lies beside it: all there that nobody imports find the project's modules from one folder. So a loader
    reads configurations.
    """
    folder = posixpath.dirname(path)
    if not folder or layout.edges.get(path) or layout.importers.get(path):
        return None
    if (top := outermost_package(path, project.placing)) and is_installed(project, posixpath.dirname(top)):
        place = place_of(project, in_folder(top, INIT, ""), starts=False, entry=entry)
        if place is not None and place.package == posixpath.basename(top):
            return place
    beside = [each for each in sorted(layout.edges) if posixpath.dirname(each) == folder and layout.edges[each]
              and not layout.importers.get(each)]  # fmt: skip
    bases = {edge.base for each in beside for edge in layout.edges[each]}
    place = place_of(project, beside[0], starts=False, entry=entry) if len(bases) == 1 else None
    return place if place is not None and len(place.paths) == 1 and bases == {_base(place)} else None


def _base(place: HelperPlace) -> str:
    """The folder from which a module is found by the name that it has."""
    inner = f"/{place.package.replace('.', '/')}" if place.package else ""
    return f"/{posixpath.dirname(place.paths[0])}".removesuffix(inner)[1:]


def _of_the_package(project: ProjectFacts, layout: ImportLayout, path: str) -> HelperPlace | None:
    """The one module of the package of a file, of which nothing says yet that they belong together."""
    top = outermost_package(path, project.placing)
    ours = [each for each in layout.ours if top and is_below(each, top)]
    if len(ours) != 1:
        return None
    return HelperPlace((ours[0],), _package_in(ours[0], top), layout.ours[ours[0]])


def _package_in(path: str, top: str) -> str:
    """The dotted name of the package that holds a file, from the outermost one on, whose folder is `top`."""
    return posixpath.dirname(path)[len(posixpath.dirname(top)) :].strip("/").replace("/", ".")


def _of_an_imported_package(
    project: ProjectFacts, layout: ImportLayout, path: str, settings: Settings, *, installed: bool
) -> HelperPlace | None:
    """The module of the package from which a file takes most, or of one that is `installed` from a folder above:
    whoever runs the file, a test as a rule, finds that already. That of an installed one around the file comes first.
    """
    if (around := _of_a_package_around(project, path, settings)) is not None:
        return around
    targets = [edge.target for edge in layout.edges.get(path, ()) if not edge.name.startswith(".")]
    tops = Counter(outermost_package(each, project.placing) for each in targets)
    for top, _ in tops.most_common():
        folder = posixpath.dirname(top)
        elsewhere = installed and not (is_below(path, folder) and is_installed(project, folder))
        if not top or is_below(path, top) or elsewhere:
            continue
        inside = next(each for each in targets if is_below(each, top))
        place = module_place(project, inside, settings, starts=False)
        if place is not None and len(place.paths) == 1 and place.package.partition(".")[0] == posixpath.basename(top):
            return place
    return None


def _of_a_package_around(project: ProjectFacts, path: str, settings: Settings) -> HelperPlace | None:
    """The module of an installed package of which a folder holds the file, and is none of its packages itself."""
    folder = posixpath.dirname(path)
    while folder and in_folder(folder, INIT, "") not in project.placing:
        folder = posixpath.dirname(folder)
    inside = in_folder(folder, INIT, "")
    top = outermost_package(inside, project.placing) if folder else ""
    if not top or folder == posixpath.dirname(path) or not is_installed(project, posixpath.dirname(top)):
        return None
    place = module_place(project, inside, settings, starts=False)
    return place if place is not None and len(place.paths) == 1 and place.package else None


def _first(project: ProjectFacts, path: str, settings: Settings, place: HelperPlace | None) -> HelperPlace | None:
    """The place of a file, by the name of its package if that is installed; or that of a script with a module of its
    own beside it, which the file finds by every start before the one at its place: nobody would read that.
    """
    folder, layout = posixpath.dirname(path), project.once(layout_of)
    if place is None and settings.helper_file and not (layout.importers.get(path) or path in layout.ours):
        beside = project.once(_with_their_own).get(folder, path)  # which a script finds first by every start
        return None if beside == path else _written(project, beside, settings, True)
    if place is None or place.package or place.there is not None or not place.paths:
        return place
    top = outermost_package(path, project.placing)
    if top and is_below(place.paths[0], top) and is_installed(project, posixpath.dirname(top)):
        return replace(place, package=_package_in(place.paths[0], top))  # who installs it imports a script of it too
    if path in project.once(_on_their_own) and not settings.helper:
        return None
    starts = {posixpath.dirname(each) for each in starts_leading_to(project, layout, path)}
    first = project.once(_with_their_own).get(folder, path) if starts == {folder} else path
    return place if first == path else _written(project, first, settings, True)


def _with_their_own(project: ProjectFacts) -> dict[str, str]:
    """A script, outside of packages, that speaks of CUDA and has its module beside it, by its folder."""
    layout = project.once(layout_of)
    speaking = [path for path in project.once(_speaking) if path in layout.edges]
    aside = (path for path in speaking if not outermost_package(path, project.placing))
    alone = project.once(_on_their_own)
    started = [path for path in aside if is_started(project, layout, path) and path not in alone]
    places = [(posixpath.dirname(path), path, place_of(project, path, starts=True)) for path in started]
    return {folder: path for folder, path, place in places if place is not None and not place.package
            and [*map(posixpath.dirname, place.paths)] == [folder]}  # fmt: skip


def _on_their_own(project: ProjectFacts) -> frozenset[str]:
    """Scripts below the top that take nothing of the project, one or two in a folder, where a program of it speaks of
    CUDA too: what they need of its module, which they would not find, stands in them.
    """
    layout = project.once(layout_of)
    speaking = [path for path in project.once(_speaking) if path in layout.edges]
    linked = {path for path in speaking if layout.edges[path] or layout.importers.get(path)}
    if not linked:
        return frozenset()
    of_folder = grouped((posixpath.dirname(path), path) for path in speaking)
    return frozenset(path for folder, each in of_folder.items()
                     if folder and len(each) <= _FEW and linked.isdisjoint(each) for path in each)  # fmt: skip


def _in_the_package(
    project: ProjectFacts, layout: ImportLayout, path: str, place: HelperPlace, entry: str
) -> HelperPlace:
    """The place, or the one package beside it that all scripts import, or of several the file's own: they may be
    installed without what lies there.
    """
    folder = posixpath.dirname(place.paths[0])
    if place.package:
        return place
    together = layout.parts.get(path, [path])
    edges = [edge for each in together for edge in layout.edges.get(each, ()) if edge.base == folder]
    names = {edge.name.partition(".")[0] for edge in edges}
    packages = [name for name in names - NO_HOME if in_folder(folder, f"{name}/{INIT}", "") in project.placing]
    top = outermost_package(path, project.placing)
    if len(packages) > 1 and top and posixpath.dirname(top) == folder and is_installed(project, folder):
        return replace(place, paths=(f"{top}/{posixpath.basename(place.paths[0])}",), package=posixpath.basename(top))
    if len(packages) != 1 or (len(names) > 1 and not is_installed(project, folder)):
        return place  # with other modules beside it, the package is one folder of the program
    inner = f"{folder}/{packages[0]}" if folder else packages[0]
    starting = [reached_from(layout, each) for each in scripts_among(project, layout, together, entry)]
    if all(any(is_below(each, inner) for each in reached) for reached in starting) and all(
        is_below(each, inner) for each in reached_from(layout, f"{inner}/{INIT}")
    ):
        return replace(place, paths=(f"{inner}/{posixpath.basename(place.paths[0])}",), package=packages[0])
    return place


def _beside_helpers(project: ProjectFacts, layout: ImportLayout, place: HelperPlace) -> HelperPlace:
    """The place, or the folder of helpers below it."""
    folder = posixpath.dirname(place.paths[0])
    for name in _HELPERS:
        inner = f"{folder}/{name}" if folder else name
        init = in_folder(inner, INIT, "")
        if init not in project.placing or not is_harmless(project, layout, init):
            continue
        twin = any(f"/{each}".endswith(f"/{name}/{INIT}") and each != init for each in project.placing)
        known = any(
            edge.base == folder and is_below(edge.target, inner) for edges in layout.edges.values() for edge in edges
        )
        if place.package or (known and not twin):
            package = f"{place.package}.{name}" if place.package else name
            return replace(place, paths=(in_folder(inner, posixpath.basename(place.paths[0])),), package=package)
    return place


def _free_name(project: ProjectFacts, layout: ImportLayout, folders: list[str], given: str) -> str:
    """The name that the owner has given, or one that no module of the project has, and no `__init__` of these folders
    speaks of: it would be replaced. Whoever loads the project by torch.hub may have a module of a plain name already.
    """
    taken = {posixpath.basename(path.removesuffix(f"/{INIT}")).removesuffix(".py") for path in project.placing
             if path not in layout.ours}  # fmt: skip
    for folder in folders:
        if (facts := project.placing.get(in_folder(folder, INIT, ""))) is not None:
            taken.update(facts.speaks_of)
    hub = reached_from(layout, "hubconf.py") if "" in folders and "hubconf.py" in project.placing else ()
    names = NAMES[2:] if any(project.placing[each].speaks for each in hub) else NAMES
    return given or next(name for name in names if name not in taken)
