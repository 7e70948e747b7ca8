"""Where the module lies that chooses the device of a project already (edits/device_choosers.py): ours are added there.

It has to be the only one of a program, and all files of it that speak of CUDA have to find it.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections import Counter

from transplt.base.closure import closure
from transplt.base.settings import Settings
from transplt.flow.entry_text import COMPILED
from transplt.flow.facts import ProjectFacts
from transplt.flow.helper_place import HelperPlace
from transplt.flow.import_layout import (
    INIT,
    TESTS,
    ImportLayout,
    common_folders,
    in_folder,
    is_below,
    is_started,
    layout_of,
    reached_from,
)
from transplt.syntax.modules import outermost_package, packages_of

#: How the lists of packages are called that have one for NPUs beside them.
LISTS = ("requirements.txt", "environment.yml", "environment.yaml")
#: What a file of settings holds by which packages are installed, and a list by which torch is.
_INSTALLS = {
    **dict.fromkeys(LISTS, re.compile(rb"\b(?:py)?torch\b")),
    "pyproject.toml": re.compile(rb"^\[(?:project|build-system|tool\.poetry)\]", re.M),
    "setup.cfg": re.compile(rb"^\[(?:metadata|options)\]", re.M),
}
#: The detail of what stays since no program on an NPU comes to it: what programs do there instead.
STOPS = "stops"
#: What is said there of what nothing comes to, whatever the card, and how such files and folders are called.
OLD = "old or copied code, which no training uses"
_OLD = re.compile(
    r"(?:^|/)(?:old|deprecated|archived?|backups?|attic|third_?party|vendor(?:ed)?|external|submodules|dependencies)/|"
    r"[._-](?:old|bak|backup)\.(?:py|ipynb)$"
)
#: What is said of notebooks for hosts that have no NPUs, and what their facts say that they import.
ON_COLAB, COLAB = "for Colab, which has no NPUs", "google.colab"
#: Why files stay that nothing stops.
NO_STOP = (OLD, ON_COLAB)
#: What an `__init__` may import without that a file which did without it now needs a package more.
_HARMLESS = frozenset({*sys.stdlib_module_names, "torch", "numpy"})


def npu_chooser(project: ProjectFacts, path: str) -> str:
    """The module that chooses NPUs too in the package of a file, or in one that the file imports; empty where there is
    none: a second one would be one too many.
    """
    choosers = project.once(_npu_choosers)
    if not choosers:
        return ""
    if (top := outermost_package(path, project.placing)) in choosers:
        return choosers[top]
    imported = {name.partition(".")[0] for name in project.placing[path].imported} if path in project.placing else ()
    return next((chooser for top, chooser in choosers.items() if posixpath.basename(top) in imported), "")


def _npu_choosers(project: ProjectFacts) -> dict[str, str]:
    """The first of these modules, by the folder of its package."""
    paths = sorted((path for path, facts in project.placing.items() if facts.for_npus), reverse=True)
    return {top: path for path in paths if (top := outermost_package(path, project.placing))}


def own_place(project: ProjectFacts, path: str, settings: Settings) -> HelperPlace | None:
    """Where that module lies for a file of the program, itself too; `there` is what it has of ours once it is
    completed. Only where files are written that others import can it be, and what themes call does not go in there.
    """
    if settings.completes is None or settings.entry or settings.adapt:
        return None
    layout = project.once(layout_of)
    together = layout.parts.get(path, [path])
    found = [each for each in together if project.placing[each].own is not None and each not in project.aside.failing]
    if len(found) != 1 or any(each in layout.ours for each in together):
        return None
    place = project.once(_found_by_all, found[0])
    if place is None or settings.helper not in ("", place.module):
        return None
    return place if settings.helper_file or place.there is not None else None


def _found_by_all(project: ProjectFacts, path: str) -> HelperPlace | None:
    """The module at a path; None where some file that speaks of CUDA would not find it, or where nothing imports it."""
    layout = project.once(layout_of)
    users = layout.importers.get(path, [])
    facts = project.placing[path]
    if all(map(TESTS.search, users)):
        return None
    every = f".{posixpath.basename(path)[: -len('.py')]}.*"
    if not facts.own and any(f".{name}".endswith(every) for user in users for name in project.placing[user].imported):
        return None  # what it gets would be theirs too
    edges = (edge for user in users for edge in layout.edges[user] if edge.target == path)
    bases = {edge.base for edge in edges if edge.base is not None}
    if not bases and (top := outermost_package(path, project.placing)):
        bases = {posixpath.dirname(top)}
    if len(bases) != 1:
        return None
    (base,) = bases
    speaking = (each for each in layout.parts[path] if each not in (path, *users) and project.placing[each].speaks)
    if not all(finds(project, layout, each, path, base) for each in speaking):
        return None
    package = posixpath.dirname(path)[len(base) :].strip("/").replace("/", ".")
    return HelperPlace((path,), package, facts.own or None)


def finds(project: ProjectFacts, layout: ImportLayout, path: str, module: str, base: str) -> bool:
    """Whether a file finds the module from the folder `base`, whoever starts it, and needs no package more for it."""
    if base not in common_folders(project, layout, path):
        return False
    edges = layout.edges.get(path, ())
    top = outermost_package(path, project.placing)
    if top and not is_below(module, top) and is_installed(project, posixpath.dirname(top)):
        return False
    return all(
        is_below(path, package)
        or any(is_below(edge.target, package) for edge in edges)
        or is_harmless(project, layout, in_folder(package, INIT, ""))
        for package in packages_of(module, project.placing)
    )


def is_of_a_package(path: str, data: bytes) -> bool:
    """True for a pyproject.toml or a setup.cfg by which the packages beside it are installed, and not linted alone; and
    for a list with torch.
    """
    asked = _INSTALLS.get(posixpath.basename(path))
    return asked is not None and asked.search(data) is not None


def is_installed(project: ProjectFacts, folder: str) -> bool:
    """Whether the packages of a folder may be installed without what lies beside them."""
    return any(in_folder(folder, each, "") in project.placing for each in ("setup.py", "setup.cfg", "pyproject.toml"))


def is_harmless(project: ProjectFacts, layout: ImportLayout, init: str) -> bool:
    """Whether an `__init__` imports nothing that leads out of its folder, and no package that not everybody has."""
    inner = posixpath.dirname(init)
    reached = reached_from(layout, init)
    named = {each.partition(".")[0] for one in reached for each in project.placing[one].imported}
    return all(is_below(each, inner) for each in reached) and named - {posixpath.basename(inner), ""} <= _HARMLESS


def stop_of(project: ProjectFacts, path: str, settings: Settings) -> str:
    """What stops whatever comes to a file, in words; empty where nothing does, or an adaptor is to cure it."""
    attention, trainers = (settings.asks_for(f"adapt:{name}") for name in ("attention", "lightning"))
    return project.once(_stopped, attention, trainers).get(path, "")


def _stopped(project: ProjectFacts, attention: bool, trainers: bool) -> dict[str, str]:
    """What programs do before they come to a file: it cannot be imported where there is no CUDA, or scripts alone lead
    to it that train through a library which takes CUDA or the CPU; but for what is adapted.
    """
    layout, aside, placing = project.once(layout_of), project.aside, project.placing
    failing = {path: why for path, why in aside.failing.items() if not (attention and path in aside.adapted)}
    through = {} if trainers else aside.trainers
    ends = {**through, **failing}
    tops = ((path, outermost_package(path, placing)) for path in layout.edges if path not in ends)
    begun = [path for path, top in tops if is_started(project, layout, path)
             or (top and is_installed(project, posixpath.dirname(top)))]  # whose users import it  # fmt: skip
    living = closure(begun, lambda path: (edge.target for edge in layout.edges[path]))
    alive = {*living} - ends.keys()
    reached = ((each, why) for path, why in through.items() for each in reached_from(layout, path))
    found = _but_of_halves(project, {**{each: why for each, why in reached if each not in alive}, **ends})
    colab = (path for path, facts in placing.items() if path.endswith(".ipynb") and COLAB in facts.imported)
    return {**dict.fromkeys(_old_code(project, layout), OLD), **dict.fromkeys(colab, ON_COLAB), **found}


def is_old(path: str) -> bool:
    """Whether a path is that of old code, or of what was copied from elsewhere."""
    return _OLD.search(path) is not None


def _old_code(project: ProjectFacts, layout: ImportLayout) -> set[str]:
    """Files of old code, or copied from elsewhere, to which nothing else leads, where other code is for CUDA; none that
    users may import, but of a project that was copied whole.
    """
    old = {*filter(is_old, project.placing)}
    if all(path in old for path, facts in project.placing.items() if facts.speaks):
        return set()
    # What tools and tests come to in a copy stays, too, where something trains.
    begun = {path for path in layout.edges.keys() - old if not (project.aside.trains and project.aside.holds(path))}
    living = closure(begun, lambda path: (edge.target for edge in layout.edges.get(path, ())))
    tops = {path: outermost_package(path, project.placing) for path in old.difference(living)}
    whole = {path for path, top in tops.items() if is_old(f"{posixpath.dirname(top)}/")}
    return whole.union(each for each, top in tops.items()
                       if not (top and is_installed(project, posixpath.dirname(top))))  # fmt: skip


def _but_of_halves(project: ProjectFacts, found: dict[str, str]) -> dict[str, str]:
    """Without what a package stops that would be ported by halves: whoever replaces the cause needs the rest. Nobody
    replaces what is compiled and not in the project.
    """
    placing = project.placing
    speaking = (path for path, facts in placing.items() if facts.speaks)
    count = Counter((outermost_package(path, placing), path in found) for path in speaking)
    halves = {top for top, _ in count if top and 0 < count[top, False] <= count[top, True]}
    halves -= {top for top in halves if in_folder(top, INIT, "") in found}
    causes = ((path, why, why.rpartition("(")[2].rstrip(")")) for path, why in found.items())
    return {path: why for path, why, at in causes
            if COMPILED in why or outermost_package(at, placing) not in halves}  # fmt: skip
