"""Which files of a project its training scripts reach; what only tests, tools or old code meet stands aside.

Read from bytes, for files that nobody parses as well: lines of imports, and words that training has. Where that is not
certain a file does not stand aside: what is imported by a name that is worked out counts as reached.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from transplt.base.closure import closure
from transplt.base.grouped import grouped
from transplt.flow.asked_names import unmet
from transplt.flow.entry_text import BUILDS, COMPILED, NVML, Entry, of_others, third_party
from transplt.flow.option_defaults import joined
from transplt.rules.packages import fails_to_load
from transplt.rules.taken_over import is_known
from transplt.syntax.modules import PROSE, named_aside, outermost_package

#: Scripts for what comes after training, by the names that they are given, in whatever language.
_AFTER = re.compile(
    r"(^|/|_)(eval|validate|demo|test|infer|predict|export|convert|merge|visuali)[a-z]*\d*(_[^/]*)?\.\w+$"
)
#: Scripts that may train by means of a library, by their names.
TO_TRAIN = re.compile(r"(^|[/_-])(pre)?(train|fit|run|main|fine_?tun|learn|sweep|start|launch)", re.IGNORECASE)

#: Folders of settings, beside which a script may lie that fetches data.
_OF_SETTINGS = re.compile(r"(?:^|/)(?:cfgs?|confs?|configs?|configurations?)$", re.IGNORECASE)

#: Libraries beside a framework that hand nothing to torch.
_WITHOUT_TORCH = frozenset(
    "pandas scipy sklearn matplotlib tqdm yaml PIL cv2 absl six requests h5py imageio nibabel plyfile skimage".split()
)

#: So many files of one folder that are loaded by name are a choice.
_SEVERAL = 3

#: Files at the top that torch.hub and Cog load.
_LOADED_BY_NAME = ("hubconf.py", "predict.py", "setup.py")


@dataclass(frozen=True, slots=True)
class Aside:
    """The files of a project that no training script reaches: Python files by path, others by their folder."""

    python: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()  # the Python below them stands aside, all of it
    called: frozenset[str] = frozenset()  # what is loaded by functions alone
    branched: frozenset[str] = frozenset()  # what is loaded in branches alone
    guarded: frozenset[str] = frozenset()  # what cannot be imported, and nobody imports who does not go on without it
    others: frozenset[str] = frozenset()  # what only scripts load that do not train, or settings that are off
    unnamed: frozenset[str] = frozenset()  # what training reaches that nothing starts by its name, where others are
    untorched: Mapping[str, str] = field(default_factory=dict)  # the framework of files that only compute with another
    foreign: frozenset[str] = frozenset()  # the folders of programs of somebody else, of which the project takes parts
    inside: frozenset[str] = frozenset()  # the folders of which nothing is loaded by what is started, or trains outside
    beside: frozenset[str] = frozenset()  # those in which another program of the project trains
    taken: Mapping[str, frozenset[str]] = field(default_factory=dict)  # names that others import, by path; `*` for all
    launching: frozenset[str] = frozenset()  # launch scripts that start what is reached
    trains: bool = False  # whether a Python file trains, and no notebook has to
    chosen: Mapping[str, str] = field(default_factory=dict)  # by path: the name, option or entry that it is loaded by
    whole: frozenset[str] = frozenset()  # what others import to take names from it later
    asked: Mapping[str, str] = field(default_factory=dict)  # by name: the option that all who import it ask first
    tabled: Mapping[tuple[str, str], str] = field(default_factory=dict)  # by path too: what is chosen from a table
    failing: Mapping[str, str] = field(default_factory=dict)  # by path: what its programs do where no CUDA is, in words
    adapted: frozenset[str] = frozenset()  # those of them that an adaptor cures
    trainers: Mapping[str, str] = field(default_factory=dict)  # by path: so where it trains through what takes no NPU
    programs: Mapping[str, bool] = field(default_factory=dict)  # by path, what is started to train: may load any module

    def used(self, path: str, name: str) -> str | None:
        """The option without which no other file uses a name of a file; empty where none does, None where one may."""
        if path in self.whole:
            return None
        names = self.taken.get(path, frozenset())
        if "*" in names:  # a package hands its names on
            names = names.union(*(self.taken.get(package, ()) for package in _packages_above(path)))
        return (self.asked.get(name) or self.tabled.get((path, name))) if name in names else ""

    def late(self, path: str) -> str:
        """When a file is loaded that is not loaded as the training starts: `called`, in a `branch`, by `other` scripts,
        or behind a `guard`, where an NPU never loads it; `unnamed` where only programs load it that no README, launch
        script, container or workflow starts; else empty.
        """
        if not path.endswith(".py") or path.rpartition("/")[2] == "setup.py":  # which no script loads
            beside = self.trains and path.endswith(".ipynb")
            inside = path not in self.launching and _below(path, self.inside) and not self.program(path)
            return "other" if beside or inside else ""
        kinds = (
            ("guard", self.guarded), ("other", self.others), ("called", self.called), ("branch", self.branched),
            ("unnamed", self.unnamed),
        )  # fmt: skip
        return next((kind for kind, held in kinds if path in held), "")

    def program(self, path: str) -> str:
        """The folder of another program of the project that a file is a part of; empty where there is none."""
        return max((each for each in self.beside if path.startswith(f"{each}/")), key=len, default="")

    def holds(self, path: str) -> bool:
        """True for a file that stands aside."""
        if path.endswith(PROSE) or (path in self.launching and not named_aside(path)):
            return False
        if path in self.python or path in self.guarded or named_aside(path) or (self.trains and path in self.untorched):
            return True
        folder = posixpath.dirname(path)
        if folder in self.foreign and not path.endswith(".py"):
            return True  # its container and its own command lines; kernels lie below
        while folder and (not path.endswith(".py") or path.endswith("/setup.py")):
            if folder in self.folders:
                return True
            folder = posixpath.dirname(folder)
        return False


@dataclass(slots=True)
class _Tree:
    """The imports of a project, from file to file, and between units: a package at the top as a whole, else a file.

    A script that lies in a package, and that nothing imports, is a unit of its own.
    """

    entries: Mapping[str, Entry]
    path_of: Callable[[str], str]  # the file that a full name leads to
    units: dict[str, list[str]] = field(default_factory=dict)
    unit_of: dict[str, str] = field(default_factory=dict)
    at_once: dict[str, set[str]] = field(default_factory=dict)
    called: dict[str, set[str]] = field(default_factory=dict)
    needed: dict[str, set[str]] = field(default_factory=dict)  # without what is guarded
    asked: dict[str, set[str]] = field(default_factory=dict)  # without what settings have to ask for
    living: dict[str, set[str]] = field(default_factory=dict)  # without what no run comes to by itself
    choices: dict[str, str] = field(default_factory=dict)  # what is imported for a text that nobody gives
    switches: dict[str, str] = field(default_factory=dict)  # what is imported where an entry of settings is set
    leads: dict[str, set[str]] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)  # what cannot be imported where there is no CUDA, and why
    adapted: set[str] = field(default_factory=set)  # those of them that an adaptor cures
    alone: dict[str, set[str]] = field(default_factory=dict)  # by folder: what its scripts import by the bare name
    taken: dict[str, set[str]] = field(default_factory=dict)  # names that other files import, by path, `*` for all
    imported: set[str] = field(default_factory=set)  # what some file imports
    whole: set[str] = field(default_factory=set)  # what others than a package, for its own names, import whole
    _leads_to: dict[tuple[str, str], tuple[str, bool]] = field(default_factory=dict)  # by folder and name

    def __post_init__(self) -> None:
        options = joined(each for entry in self.entries.values() for each in entry.options)
        given: dict[str, set[str]] = {}
        for function, text in (each for entry in self.entries.values() for each in entry.given):
            given.setdefault(function, set()).add(text)
        for path, entry in self.entries.items():
            switches: dict[str, set[str]] = {}
            for name, switch in entry.unasked:
                plain = options[switch].words if switch in options else switch
                switches.setdefault(name, set()).add(unmet(switch, options) if "=" in switch else plain)
            unasked = {name: words.pop() if len(words) == 1 else "" for name, words in switches.items()}
            kinds, idle = _kinds(entry, given, unasked)
            owners = {name: self._imported(name, path) for names in kinds for name in names}
            self._take(owners, path)
            self.choices.update((owners[name], words) for name, words in idle.items())
            self.switches.update((owners[name], words) for name, words in unasked.items()
                                 if words and not self.entries.get(owners[name], entry).starts)  # fmt: skip
            found = [{owners[name] for name in names} for names in kinds]
            held = [
                {each for each in set().union(*found[: end + 1]) if each in self.entries and each != path}
                for end in range(6)
            ]
            self.at_once[path], self.called[path], self.needed[path], self.asked[path], self.living[path], _ = held
            self.leads[path] = held[-1]
        self.imported = set().union(*self.leads.values())
        self.failing = self._failing()
        for path, entry in self.entries.items():
            package = outermost_package(path, self.entries) if path in self.imported or not entry.starts else ""
            unit = package or path
            self.unit_of[path] = unit
            self.units.setdefault(unit, []).append(path)

    def _failing(self) -> dict[str, str]:
        """By path: the import that stops a file as it is loaded where there is no CUDA, its own or that of what it
        imports, packages around included; not those of a script that nobody imports as a part of them.
        """
        found: tuple[dict[str, str], dict[str, str]] = ({}, {})
        leads: dict[str, set[str]] = {}
        built = any(BUILDS in entry.imports for entry in self.entries.values())
        for path, entry in self.entries.items():
            fails = (each for each in entry.imports if each == NVML or fails_to_load(each)
                     or (each.startswith(COMPILED) and not built))  # fmt: skip
            if names := [each for each in fails if each.startswith(COMPILED) or not self._imported(each, path)]:
                tops = dict.fromkeys(each if each.startswith(COMPILED) else each.partition(".")[0]
                                     for each in names if each != NVML)  # fmt: skip
                at = f"import {' and '.join(tops)}" if tops else "nvmlInit()"
                found[all(map(is_known, names))][path] = f"stop at {at} ({path})"
            around = _packages_above(path) if path in self.imported or not entry.starts else ()
            leads[path] = {*self.at_once[path], *around}
        sure, adapted = (_leading_to(each, self.entries, leads) for each in found)
        self.adapted = {*adapted} - {*sure}
        return {**adapted, **sure}

    def _take(self, owners: Mapping[str, str], by: str) -> None:
        """Notes what one file takes from others: `m.f` is one name, `m` alone is all of it."""
        modules = {name.rpartition(".")[0] for name in owners}
        for name, path in owners.items():
            if path not in ("", by) and name not in modules:
                last, stem = name.rpartition(".")[2], path.removesuffix("/__init__.py").removesuffix(".py")
                module = last == posixpath.basename(stem)
                self.taken.setdefault(path, set()).update((last, "*") if module else (last,))
                if module and by not in _packages_above(path) and not named_aside(by):  # a package hands its names on
                    self.whole.add(path)

    def _imported(self, name: str, path: str) -> str:
        """The file that a name leads to which a file imports: what lies beside it comes first, as far as it leads."""
        folder = path.rpartition("/")[0]
        if (folder, name) not in self._leads_to:
            self._leads_to[folder, name] = self._from_folder(folder, name)
        found, alone = self._leads_to[folder, name]
        if alone:
            self.alone.setdefault(folder, set()).add(path)
        return found

    def _from_folder(self, folder: str, name: str) -> tuple[str, bool]:
        """The file that a name leads to which a file of a folder imports, and whether it lies beside that."""
        plain = self.path_of(name)
        if folder:
            own = self.path_of(f"{folder.replace('/', '.')}.{name}")
            beside = own.startswith(f"{folder}/") and own != f"{folder}/__init__.py"
            if beside and _covers(own, name) >= _covers(plain, name):
                return own, True
        return plain, False


def _kinds(
    entry: Entry, given: Mapping[str, Collection[str]], unasked: Mapping[str, str]
) -> tuple[list[set[str]], dict[str, str]]:
    """What a file imports as it is loaded, in functions, in branches, behind guards, if asked, and never: what nobody
    gives a text for is none, where all texts are in sight that functions get; and how that is chosen.
    """
    kinds = [{*names} for names in (entry.imports, entry.called, entry.branched, entry.guarded)]
    kinds[2] |= {name for name, words in unasked.items() if not words}
    kinds.append({*unasked} - kinds[2])
    asked = {
        name for name, function, words in entry.selected
        if not {words.partition("=")[2], "?"}.isdisjoint(given.get(function, "?"))
    }  # fmt: skip
    kinds[1] |= asked
    idle = {name: words for name, _, words in entry.selected if name not in set().union(*kinds)}
    return [*kinds, {*entry.never, *idle}], idle


def _covers(path: str, name: str) -> int:
    """How many parts of a full name, from its first on, end the path of a file."""
    parts, module = name.split("."), path.removesuffix(".py").removesuffix("/__init__").split("/")
    return next((count for count in range(len(parts), 0, -1) if module[-count:] == parts[:count]), 0)


def aside_of(
    entries: Mapping[str, Entry], path_of: Callable[[str], str], started: Mapping[str, Collection[str]],
    named_in_settings: Collection[str] = (),
) -> Aside:
    """What stands aside of a project, by what its Python files say (by path); `path_of` gives the file of a full name,
    `started` are those that commands start, with the files of these, `named_in_settings` what is loaded by its name.

    Files that train, those that import such a file, those that load modules by name and scripts at the top are what a
    user starts; all that these import is reached, a package as a whole. Where no file trains, only names tell. What
    trains in a copy of a library, as mmcv's runner does, counts where nothing else of the project trains.
    """
    tree = _Tree(_with_own_training(entries), path_of)
    every = tree.entries
    meant = {path for path in every if not named_aside(path)}
    trains = {path for path in meant if every[path].trains}
    by = {path: f"train through {entry.trainer}, which takes no NPU" for path, entry in every.items() if entry.trainer}
    taken = {path: frozenset(names) for path, names in tree.taken.items()}
    never = dict.fromkeys(_of_another_torch(tree), "need another release of torch")
    plain = Aside(untorched=_untorched(tree), taken=taken, whole=frozenset(tree.whole),
                  failing={**never, **tree.failing}, trainers=by, adapted=frozenset(tree.adapted))  # fmt: skip
    if not trains:
        return _late(plain, meant, set(), meant, tree, set(), _for_users(meant, tree))
    foreign = _foreign(trains, tree, started)
    own = {path for path in meant if not _below(path, foreign)}
    leading = {*_leading_to(dict.fromkeys(trains & own, ""), own, tree.leads)}
    loaded = set(map(path_of, named_in_settings))
    starts = leading | {path for path in own if path in loaded or _is_a_start(path, every[path])}
    reached = _reached(starts, tree)
    # what is loaded by name, and what that imports: it lies beside what loads it, or below
    beside = {posixpath.dirname(path) for path in reached if every[path].loads and "/" in path}
    by_name = {path for path in meant if _below(path, beside) and (path in own or not every[path].starts)}
    reached |= _reached(by_name, tree)
    idle, words = _unasked(reached, starts, tree)
    reached -= idle
    python = frozenset(path for path in every if path not in reached)
    loaded &= reached
    late = _late(plain, reached, starts, meant, tree, leading, loaded)
    inside = _programs_inside(leading, tree, started)
    fit = {path for path in leading if _below(path, inside) and not third_party(path)}
    programs_beside = frozenset(folder for folder in inside if any(_below(path, (folder,)) for path in fit))
    apart = reached - _loaded(fit, tree.leads, every)
    others = late.others.union(path for path in apart if _below(path, inside))
    programs = {path: any(every[each].loads for each in closure([path], tree.leads.__getitem__))
                for path in leading if _is_a_program(path, tree)}  # fmt: skip
    named = _loaded(leading.intersection(started), tree.leads, every)
    unnamed = frozenset(reached - named - _loaded(loaded, tree.leads, every) if named else ())
    tops = {path.partition("/")[0] for path in meant if "/" in path}  # some have nothing that what is started loads
    inside |= tops - {path.partition("/")[0] for path in named} if named else set()
    words |= _asked_by(tree.switches, others - _loaded(starts - tree.switches.keys(), tree.asked, every), tree)
    return replace(
        late, python=python, folders=_folders(every, python), others=others, unnamed=unnamed, foreign=foreign,
        inside=inside, beside=programs_beside, trains=True, chosen=_chosen(reached, tree) | words,
        tabled=_from_tables(tree), programs=programs,
    )  # fmt: skip


def _with_own_training(entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The Python files; a library that lies as a copy in a package of the project trains where nothing else does."""
    every = {path: entry for path, entry in entries.items() if path.endswith(".py")}
    trains = {path for path, entry in every.items() if entry.trains and not named_aside(path)}
    libraries = ((path, of_others(path)) for path in trains)
    copied = {path for path, of in libraries if of is not None and f"{posixpath.dirname(of)}/__init__.py" in every}
    return every if copied == trains else every | {path: every[path]._replace(trains=False) for path in copied}


def _for_users(meant: set[str], tree: _Tree) -> set[str]:
    """The packages that their own files alone import: they begin where a user imports them."""
    around = {package for path in meant for target in tree.leads[path] for package in _packages_above(target)
              if not _below(path, (posixpath.dirname(package),))}  # fmt: skip
    return {path for path in meant - around if path.endswith("/__init__.py")}


def _is_a_start(path: str, entry: Entry) -> bool:
    """True for what loads modules by name, and for a script at the top: one that only defines is dead there where
    nothing imports it.
    """
    if "/" not in path and (entry.starts or entry.acts or path in _LOADED_BY_NAME):
        return True
    return bool(entry.loads) and of_others(path) is None


def _from_tables(tree: _Tree) -> dict[tuple[str, str], str]:
    """By path and name: the option without which nobody takes something from its file, where a table of the only file
    that imports it has it for another text than that of the default, and the default has a row: `dla` for `dla_34`.
    """
    options = joined(each for entry in tree.entries.values() for each in entry.options)
    importers = Counter(target for targets in tree.leads.values() for target in targets)
    found: dict[tuple[str, str], str] = {}
    for path, entry in tree.entries.items():
        for name, asked, key in entry.tabled:
            option, owner = options.get(asked), tree._imported(name, path)
            default = f"{option.default[0]}_".replace("-", "_") if option is not None and option.default else ""
            usual = {text for _, other, text in entry.tabled if other == asked and default.startswith(f"{text}_")}
            if option is not None and usual and key not in usual and importers[owner] == 1:
                found[owner, name.rpartition(".")[2]] = f"{option.words} {key}".replace("= ", "=", 1)
    return found


def _untorched(tree: _Tree) -> dict[str, str]:
    """The framework of each file, in a project that uses torch, that imports another one and that torch never meets: no
    file around it imports torch, neither what it imports nor what imports it, and no library does that may.
    """
    entries = tree.entries
    torch = {path for path, entry in entries.items() if entry.framework == "torch"}
    others = [path for path, entry in entries.items() if entry.framework not in ("", "torch")]
    if not torch or not others:
        return {}
    used = _loaded(torch, tree.leads, entries)
    found = {}
    for path in others:
        loaded = _loaded({path}, tree.leads, entries)
        loaded = {each for each in loaded if entries[each] != Entry()}  # an empty `__init__.py`, mostly
        framework = entries[path].framework
        libraries = (name.partition(".")[0] for each in loaded for name in entries[each].taken
                     if not tree._imported(name, each))  # fmt: skip
        if loaded.isdisjoint(used) and all(root.startswith(framework) or root in _WITHOUT_TORCH for root in libraries):
            found.update(dict.fromkeys(loaded, framework))
    return found


def _foreign(trains: Collection[str], tree: _Tree, started: Mapping[str, Collection[str]]) -> frozenset[str]:
    """The folders of programs that were written to be started there, and of which the project imports parts.

    Their scripts import by names that hold in their folder alone, and nothing of what is around it. A program that the
    project starts from outside, or of which it imports a script that trains, is its own.
    """
    found = set()
    for folder, scripts in tree.alone.items():
        below = {path for path in tree.leads if path.startswith(f"{folder}/")}
        begin = [path for path in scripts if path in trains and tree.entries[path].starts and path not in tree.imported]
        apart = {target for path in begin for target in tree.leads[path]} <= below
        around = not below.issuperset(trains)
        taken = below.intersection(target for path in tree.leads.keys() - below for target in tree.leads[path])
        by = (each for path in below.intersection(started) for each in started[path])
        own = not all(_below(each, (folder,)) for each in by)
        own |= any(tree.entries[path].starts for path in taken.intersection(trains))
        if all((begin, apart, around, taken, not own)):
            found.add(folder)
    return frozenset(found)


def _programs_inside(leading: Collection[str], tree: _Tree, started: Collection[str]) -> frozenset[str]:
    """The folders of projects inside of the project, of which no script outside that trains loads anything: with a
    setup.py of their own, or, below the folder of a script that is started, with scripts that are started there; none
    where the project itself starts no such script.
    """
    inside = {posixpath.dirname(path) for path in tree.entries if path.endswith("/setup.py")}
    above = tuple({posixpath.join(posixpath.dirname(path), "") for path in started if path in leading})
    inside |= {folder for folder, scripts in tree.alone.items()
               if any(path in leading and tree.entries[path].starts for path in scripts)
               and any(f"{folder}/" != each and folder.startswith(each) for each in above)}  # fmt: skip
    training = {path for path in leading if not _below(path, inside)}
    if not inside or training.isdisjoint(started):
        return frozenset()
    loaded = _loaded(training, tree.leads, tree.entries)
    return frozenset(folder for folder in inside if not any(path.startswith(f"{folder}/") for path in loaded))


def _is_a_program(path: str, tree: _Tree) -> bool:
    """True for a file that acts as it is started; one that others import by its main guard and its name."""
    starts = tree.entries[path].starts
    return starts and TO_TRAIN.search(path) is not None if path in tree.imported else starts or tree.entries[path].acts


def _unasked(reached: set[str], starts: Collection[str], tree: _Tree) -> tuple[set[str], dict[str, str]]:
    """What is loaded with another torch alone, or by nothing but its own package, where no module is loaded by a name
    that is worked out; and with it the texts that nobody gives, without which some of it is not loaded.
    """
    above = {package for path in tree.imported for package in _packages_above(path)}
    begin = {path for path in reached if path in starts or path not in tree.imported | above}
    builds = {path for path in begin if path.endswith("/setup.py")}  # which lies in a package and loads none of it
    loaded = _loaded(begin - builds, tree.leads, tree.entries)
    idle = loaded - _loaded(begin - builds, tree.living, tree.entries)
    if not any(tree.entries[path].loads_by_name for path in reached):
        living = _loaded(starts, tree.leads, tree.entries)
        packages = {path: f"{posixpath.dirname(path)}/__init__.py" for path in begin - builds - living}
        idle_package = {path for path, package in packages.items() if package in tree.entries.keys() - living}
        scripts = {path for path in idle_package if tree.entries[path].starts}
        apart = reached - builds - _loaded(begin - idle_package | scripts, tree.leads, tree.entries)
        registered = {posixpath.dirname(path) for path in apart if tree.entries[path].loads}
        idle |= {path for path in apart if not _below(path, registered)}
    return idle, _asked_by(tree.choices, idle, tree)


def _of_another_torch(tree: _Tree) -> set[str]:
    """What nothing loads but a branch for another torch."""
    never = {tree._imported(name, path) for path, entry in tree.entries.items() for name in entry.never}
    above = {package for path in never for package in _packages_above(path)}
    begin = {path for path, entry in tree.entries.items() if entry.starts or path not in tree.imported | above}
    living = _loaded(begin, tree.living, tree.entries) if never - {""} else set()
    return _loaded(never - {""}, tree.leads, tree.entries) - living


def _chosen(reached: set[str], tree: _Tree) -> dict[str, str]:
    """By path: the name without which nobody loads a file, one of several in a folder that no file imports, where a
    program loads by name. One that an option has by default is loaded, and all of a folder that loads its own.
    """
    entries = tree.entries
    given = {str(each.default[0]).lower() for path in reached for each in entries[path].options if each.default}
    folders: dict[str, list[str]] = {}
    for path in reached - tree.imported if any(entries[path].loads for path in reached) else ():
        folder, name = posixpath.split(path)
        loads_all = entries.get(f"{folder}/__init__.py", Entry()).loads
        if True not in (entries[path].starts, entries[path].trains, loads_all):
            folders.setdefault(folder, []).extend([path] if folder and name != "__init__.py" else [])
    several = sorted(path for paths in folders.values() if len(paths) >= _SEVERAL for path in paths)
    choices = {path: name for path in several if (name := posixpath.basename(path)[:-3]).lower() not in given}
    rest = entries.keys() - _loaded(reached - tree.imported - choices.keys(), tree.leads, entries)
    found = grouped((each, name) for path, name in choices.items() for each in _loaded({path}, tree.leads, rest))
    return {path: f"the module {names[0]}" for path, names in found.items() if len(names) == 1}


def _asked_by(choices: Mapping[str, str], held: frozenset[str] | set[str], tree: _Tree) -> dict[str, str]:
    """By path: what has to be asked for before one of some files is loaded; `choices` has it for what is imported."""
    loaded = ((words, _loaded({target}, tree.leads, tree.entries)) for target, words in choices.items() if target)
    return {path: words for words, paths in loaded for path in held & paths}


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _late(
    plain: Aside, reached: set[str], starts: Collection[str], meant: Iterable[str], tree: _Tree,
    leading: set[str], chosen: set[str],
) -> Aside:
    """With what of the reached files functions alone load, and branches; what nothing imports may begin, or be loaded
    by a name that is worked out: not a module that only leads to training, or loads others. Then those that an NPU
    never loads: they fail behind a guard, or lie behind such; and those that no script loads which trains.
    """
    imported = {target for path in meant for target in tree.leads[path]}
    imported |= {package for path in imported for package in _packages_above(path)}
    begun = {path for path in starts if "/" not in path or tree.entries[path].starts or tree.entries[path].trains}
    begun, leading = begun.union(chosen), leading and leading.union(chosen)
    begin = {path for path in reached if path in begun or path not in imported if not named_aside(path)}
    training, after = _training(begin, imported, begun, leading, tree)
    at_once, called, every = (_loaded(training, each, tree.entries) for each in (tree.at_once, tree.called, tree.leads))
    others = reached & _loaded(after, tree.leads, tree.entries) - every
    others |= (reached & _loaded(begin, tree.leads, tree.entries)) - _loaded(begin, tree.asked, tree.entries)
    held, guarded = reached - others, set[str]()
    if tree.failing and tree.needed != tree.leads:  # and some import is guarded
        begin -= imported & tree.failing.keys()
        begin |= {path for path in reached & tree.failing.keys() if tree.entries[path].starts and not named_aside(path)}
        stopped = tree.failing.keys() - tree.switches.keys()
        ways = {path: tree.needed[path] | (leads - stopped) for path, leads in tree.leads.items()}
        guarded = reached - _loaded(begin, ways, tree.entries)
    return replace(plain, called=frozenset(held & called - at_once), branched=frozenset(held - called - at_once),
                   guarded=frozenset(guarded), others=frozenset(others))  # fmt: skip


def _training(
    begin: set[str], imported: set[str], begun: set[str], leading: set[str], tree: _Tree
) -> tuple[set[str], set[str]]:
    """What begins a training of what may, and what comes after it: neither is what lies beside a module that loads by
    name, where other scripts alone load that one.
    """
    after = {path for path in begin - imported if _is_after(path, tree.entries[path], leading)} if leading else set()
    before = begin - after
    if not after or before.isdisjoint(leading):
        return begin, set()
    sure = before & (begun | leading)
    folders = {posixpath.dirname(path) for path in _loaded(sure, tree.leads, tree.entries) if tree.entries[path].loads}
    return sure | {path for path in before if _below(path, folders)}, after


def named_after(path: str) -> bool:
    """True for a script that by its name is for what comes after training: an evaluation, a demo, an export."""
    return _AFTER.search(path) is not None


def _is_after(path: str, entry: Entry, leading: Collection[str]) -> bool:
    """True for a script that does not train, nor starts what does, or that is called after what comes then."""
    runs = entry.starts or (entry.acts and not TO_TRAIN.search(path))
    infers = entry.starts and entry.infers and not (entry.trains or TO_TRAIN.search(path))
    return (runs and path not in leading) or infers or (not entry.trains and named_after(path))


def _loaded(begin: Collection[str], leads: Mapping[str, set[str]], every: Collection[str]) -> set[str]:
    """What is loaded from some files on, with the packages that modules lie in."""
    return {*closure(begin, lambda path: [each for each in (*leads[path], *_packages_above(path)) if each in every])}


def _leading_to(goals: Mapping[str, str], among: Iterable[str], leads: Mapping[str, set[str]]) -> dict[str, str]:
    above = grouped((target, path) for path in among for target in leads[path])
    found = dict(goals)
    for path in closure(goals, lambda path: above.get(path, ())):
        found.update({each: found[path] for each in above.get(path, ()) if each not in found})
    return found


def _reached(starts: Iterable[str], tree: _Tree) -> set[str]:
    def further(unit: str) -> Iterator[str]:
        leading = (path for path in tree.units[unit] if not named_aside(path))  # tests inside of a package lead nowhere
        return (tree.unit_of[target] for path in leading for target in tree.leads[path])

    return {path for unit in closure((tree.unit_of[path] for path in starts), further) for path in tree.units[unit]}


def _folders(every: Collection[str], python: Collection[str]) -> frozenset[str]:
    """The folders below which there is Python, and all of it stands aside; settings are read by no import."""
    held: dict[str, bool] = {}
    for path in every:
        folder = "" if path.endswith("/setup.py") else posixpath.dirname(path)  # it builds what is there
        while folder:
            held[folder] = held.get(folder, True) and (path in python or named_aside(path))
            folder = posixpath.dirname(folder)
    return frozenset(folder for folder, aside in held.items() if aside and not _OF_SETTINGS.search(folder))


def _packages_above(path: str) -> Iterator[str]:
    """Where the packages that a file lies in would begin."""
    folder = posixpath.dirname(path)
    while folder:
        yield f"{folder}/__init__.py"
        folder = posixpath.dirname(folder)
