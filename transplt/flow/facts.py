"""What files say to each other: the facts of one module, and their sum over a project."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

from transplt.base.closure import closure
from transplt.base.grouped import grouped
from transplt.base.text.memo import Memo, Memoized
from transplt.flow.asked_names import asked_for
from transplt.flow.attributes import unify_attributes
from transplt.flow.components import Components
from transplt.flow.definition_facts import NameUse, Renaming, decide
from transplt.flow.entry_points import Aside, aside_of
from transplt.flow.entry_text import Entry
from transplt.flow.gates.code import CodeFacts
from transplt.flow.gates.cuda_reach import Reach
from transplt.flow.gates.graph import Graph, canonical_name, unique_suffixes
from transplt.flow.import_text import Placing
from transplt.flow.key_facts import KeyRead, KeyReads
from transplt.flow.marks import marks_by_name
from transplt.flow.option_defaults import Constant, Option, met_options, not_given
from transplt.flow.option_defaults import joined as options_joined
from transplt.flow.saved_files import options_published
from transplt.flow.support import SupportFacts, SupportProject
from transplt.flow.vendored import Copy
from transplt.syntax.files import Files
from transplt.syntax.modules import module_name, named_aside
from transplt.syntax.names import SELF


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What one file tells the rest of its project; small and picklable.

    `imports`: local module-level name -> full name it imports. `stars`: modules it imports everything from.
    `defined`: its other module-level names. `used_from`: full names that it takes from other modules.
    `links`: groups of slots that share their values. `marks`: (slot of a group, or alone; what its values are).
    `parameters`: (function, its positional parameters) where a parameter holds a device or a backend.
    `own_cuda`: `Class.cuda` and `Class.is_cuda` that are something else than those of tensors (see own_cuda.py).
    `cuda_data`: `cuda` where it gives that name to attributes that are data. `flags`: destinations of command line
    flags that mention cuda.
    `instances`: (module-level name, its class).
    `sets_double`: it makes float64 the default type.
    `uses_cuda`: it speaks of CUDA or of the NPU. `handles_npu`: it chooses between the two (see npu_choices.py).
    `scales`: it speaks of a GradScaler.
    `code`: what its code reaches that runs on CUDA alone (see reach.py).
    `analysis`: what it says to the analysis, where that is asked for.
    """

    path: str
    module: str
    imports: tuple[tuple[str, str], ...] = ()
    stars: tuple[str, ...] = ()
    defined: tuple[str, ...] = ()
    used_from: tuple[str, ...] = ()
    links: tuple[tuple[str, ...], ...] = ()
    marks: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    own_cuda: tuple[str, ...] = ()
    cuda_data: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    instances: tuple[tuple[str, str], ...] = ()
    sets_double: bool = False
    uses_cuda: bool = False
    handles_npu: bool = False
    scales: bool = False
    code: CodeFacts = field(default_factory=CodeFacts)
    analysis: SupportFacts | None = None
    text: bytes = b""  # of the whole file, for those who read programs
    imported: tuple[str, ...] = ()  # full names in its imports, by place, `m.*` for all of m; collected with the text
    guarded: bool = False  # it has `if __name__ == "__main__":`
    copy: Copy | None = None  # the copy of another package whose version it says
    saved: tuple[tuple[str, bool], ...] = ()  # names of files it saves, and whether from the CPU (saved_files.py)
    loaded: tuple[str, ...] = ()  # what names the files that it loads (saved_files.py)
    loads: bool = False  # checkpoints, in the way that refuses objects
    numpy_results: tuple[str, ...] = ()  # its functions that return what NumPy made (numpy_values.py)
    switches: tuple[str, ...] = ()  # settings that hold for all of a program (program_switches.py)
    renames: tuple[tuple[str, str], ...] = ()  # (old, new) of the rules with `definitions`, and what it says of them
    uses: tuple[NameUse, ...] = ()
    reads: tuple[KeyRead, ...] = ()  # what it reads from configurations, command lines and the environment
    matched: tuple[str, ...] = ()  # what it looks for in the text of errors (`match=`), with a CUDA word
    tabled: tuple[str, ...] = ()  # names that it defines and that tables know as those of a package (own_packages.py)
    gives: tuple[str, ...] = ()  # of a configuration, also in Python: names beside words of CUDA (given_values.py)
    compiled: str = ""  # of a Cython file without CUDA: the full name of what it is built to
    kernels: tuple[tuple[str, bool], ...] = ()  # of a source of kernels: functions of ours, and whether it has the same
    placing: Placing | None = None  # how it is found, where a module of ours may go in (helper_place.py)
    entry: Entry | None = None  # what it says of what runs (entries.py)
    configured: tuple[Option, ...] = ()  # of a configuration in YAML: its entries
    started: tuple[tuple[str, str], ...] = ()  # of a README, a launch script, a container: what it starts, and how

    @property
    def speaks(self) -> bool:
        """True for the facts of Python, and for commands; False for those of configurations and compiled sources."""
        return bool(self.started) or not (self.gives or self.compiled or self.kernels or self.configured)

    @property
    def named(self) -> list[str]:
        """Of settings the full names of what a program loads."""
        return [name for name, _ in self.started if not name.endswith((".py", ".sh"))]


@dataclass(slots=True)
class ProjectFacts(Memoized):
    """The sum of all `ModuleFacts`. An empty one stands for a file seen without its project.

    `reexports`: full name -> what of torch it stands for. `used_names`: full names that some file takes from another.
    `parameters`, `own_cuda`, `cuda_data`, `flags` are those of all files, `defined` and `instances` by full name.
    `portable`: at least a tenth of the files that speak of CUDA or of the NPU choose between them.
    """

    known: bool = False
    modules: dict[str, str] = field(default_factory=dict)  # module name -> path
    suffixes: dict[str, str] = field(default_factory=dict)  # shorter dotted name -> module name, where unique
    reexports: dict[str, str] = field(default_factory=dict)
    renamed: frozenset[str] = frozenset()  # full names under which a file has what is called otherwise where it is made
    used_names: frozenset[str] = frozenset()
    imported: frozenset[str] = frozenset()  # full names in the imports of all files, also of those that nobody follows
    slots: dict[str, str] = field(default_factory=dict)  # slot -> representative
    marks: dict[str, frozenset[str]] = field(default_factory=dict)  # representative -> marks
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    own_cuda: frozenset[str] = frozenset()
    cuda_data: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    matched: frozenset[str] = frozenset()  # texts of errors that some file looks for
    defined: frozenset[str] = frozenset()
    portable: bool = False
    default_is_double: bool = False
    scales: bool = False  # some file speaks of a GradScaler
    instances: dict[str, str] = field(default_factory=dict)
    reach: Reach = field(default_factory=Reach)
    packages: frozenset[str] = frozenset()  # names under which the project itself is imported
    analysis: SupportProject = field(default_factory=SupportProject)
    sources: dict[str, bytes] = field(default_factory=dict)  # path -> text, for those who read programs
    kernels: dict[str, dict[str, bool]] = field(default_factory=dict)  # by path of a source of kernels (ModuleFacts)
    imports: dict[str, tuple[str, ...]] = field(default_factory=dict)  # path -> paths of the files it imports, by place
    guarded: frozenset[str] = frozenset()  # paths of files with a main guard
    copies: tuple[Copy, ...] = ()  # copies of other packages in the tree, whose version is known
    saved: tuple[tuple[str, bool], ...] = ()  # names of files that the project saves, and whether from the CPU
    loaded: frozenset[str] = frozenset()  # what names the files that it loads; empty texts for what is not known
    loads: tuple[str, ...] = ("",)  # paths of files that load checkpoints in the way that refuses objects
    numpy_results: frozenset[str] = frozenset()  # full names of functions that return what NumPy made
    switches: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by path of what runs (program_switches.py)
    renamings: dict[str, Renaming] = field(default_factory=dict)  # by the old name of a rule with `definitions`
    reads: KeyReads = field(default_factory=KeyReads)
    placing: dict[str, Placing] = field(default_factory=dict)  # by path, for where a module of ours goes
    given: frozenset[str] = frozenset()  # those of `reads` that get a word of CUDA outside of Python
    aside: Aside = field(default_factory=Aside)  # files that no training script reaches
    floors: frozenset[tuple[str, str]] = frozenset()  # packages, and the versions that what it uses of them needs
    sets: frozenset[str] = frozenset()  # keys of settings that some file sets to a device that it works out
    options: dict[str, Option] = field(default_factory=dict)  # by the attribute that holds one, and its default
    given_at: dict[tuple[str, str], tuple[Constant, ...]] = field(default_factory=dict)  # see `met_options`
    published: frozenset[tuple[str, str]] = frozenset()  # paths and options that some command gives weights of others
    tabled: dict[str, frozenset[str]] = field(default_factory=dict)  # by package, and of all files (own_packages.py)
    first: frozenset[str] = frozenset()  # functions between steps that the first step calls all the same: `plot(`
    configured: dict[str, Option] = field(default_factory=dict)  # entries of configurations in YAML, by all their keys
    bound: frozenset[str] = frozenset()  # paths of files whose classes derive from what stays for CUDA as a whole
    files: Files = field(default_factory=Files, compare=False, repr=False)  # those that this process has parsed
    _canonical: Memo = field(default_factory=Memo, init=False, compare=False, repr=False)

    @classmethod
    def join(
        cls, facts: Iterable[ModuleFacts], said: Callable[[ProjectFacts], Collection[str]] | None = None
    ) -> ProjectFacts:
        """The sum of the facts of all files, in any order; `said` gives what is not needed of compiled modules."""
        in_order = sorted(facts, key=lambda item: item.path)
        every = [item for item in in_order if item.speaks]
        joined = cls(known=True)
        for item in every:
            joined.modules.setdefault(item.module, item.path)
        joined.modules.pop("", None)  # that of a README
        joined.suffixes = unique_suffixes(joined.modules)
        joined.packages = _packages(joined.modules)
        joined.kernels = {item.path: dict(item.kernels) for item in in_order if item.kernels}
        joined.configured = options_joined(each for item in in_order for each in item.configured)
        _join_files(joined, every)
        _join_names(joined, every)
        codes = [item.code for item in every]
        graph = Graph.join(codes, joined.canonical, frozenset(joined.modules))
        joined.instances = {name: graph.settled(cls) for item in every for name, cls in item.instances}
        _join_slots(joined, every, graph)
        joined.reads = KeyReads.join((read for item in every for read in item.reads), joined.marks_of)
        joined.given = frozenset(joined.reads.named().intersection(name for item in in_order for name in item.gives))
        renames = dict.fromkeys(rename for item in every for rename in item.renames)
        if renames:
            uses = [use for item in every for use in item.uses]
            joined.renamings = decide(renames, uses, joined.canonical, joined.modules.keys())
        compiled = [item.compiled for item in in_order if item.compiled]
        gone = said(joined) if said is not None else ()
        joined.reach = Reach.join(codes, graph, joined.packages, compiled, said=gone)
        return joined

    def as_given(self, option: Option, path: str) -> Option:
        """An option of a file, with what every command gives it for its default."""
        default = self.given_at.get((path, option.words), self.given_at.get(("", option.words)))
        return option if default is None else option._replace(default=default)

    def marks_of(self, slot: str) -> frozenset[str]:
        """What the values of a slot are in the project; a file that knows the slot may know more (Slots.marks_of)."""
        return self.marks.get(self.slots.get(slot, slot), frozenset()) | marks_by_name(slot)

    def global_slot(self, known: str) -> str:
        """The slot of a module-level name, or of an attribute where a class or an instance is before the last dot."""
        owner, _, name = known.rpartition(".")
        if owner in self.instances:
            return f"s:{self.instances[owner]}.{name}"
        return f"s:{known}" if owner in self.defined and owner not in self.modules else f"g:{known}"

    def path_of(self, name: str) -> str:
        """The file of the project that a full name leads to, empty for names of libraries."""
        known = self.canonical(name)
        while known and known not in self.modules:
            known = known.rpartition(".")[0]
        return self.modules[known] if known else ""

    def imports_own(self, module: str, path: str, utf8: bytes) -> bool:
        """True for a module that the project has itself where a file imports it: under its full name (`basicsr.data`,
        also where `basicsr` has no `__init__.py`, and its version, which a build writes), below another folder, or
        beside the file.
        """
        package, dot, last = module.rpartition(".")
        if module in self.modules or (last in _WRITTEN_BY_BUILDS and self.has_parts(package)):
            return True
        return bool(dot and self.once(ProjectFacts.below, module)) or self.has_beside(module, path, utf8)

    def below(self, module: str) -> list[str]:
        """Where a module of a package lies somewhere in the project: `bert/nvidia/model.py` is nvidia.model."""
        return [each for each in self.modules if each.endswith(f".{module}")]

    def has_beside(self, module: str, path: str, utf8: bytes) -> bool:
        """True for a module that lies beside a file which finds it there: a script, or one that extends `sys.path`.

        So is a package of its own in a folder that is none and has the file below it: `src/python/kernels/__init__.py`.
        """
        root = module.partition(".")[0]
        folder = module_name(path).rpartition(".")[0] if "/" in path else ""
        if folder and f"{folder}.{root}" in self.modules and (folder not in self.modules or b"sys.path" in utf8):
            return True
        for top in self.once(ProjectFacts.below, root):
            if f"{folder}.".startswith(top[: -len(root)]) and self.has_parts(top):
                parts = top.split(".")
                if not any(".".join(parts[:end]) in self.modules for end in range(1, len(parts))):
                    return True
        return False

    def has_parts(self, module: str) -> bool:
        return any(each.startswith(f"{module}.") for each in self.modules)

    def canonical(self, name: str) -> str:
        """A full name with its module part as the project knows it (`utils.f` may be `src.utils.f`)."""
        known: str | None = self._canonical.get(name)
        if known is None:
            self._canonical.make_room()
            known = self._canonical[name] = canonical_name(name, self.modules, self.suffixes)
        return known


def _packages(modules: dict[str, str]) -> frozenset[str]:
    """Modules and packages at the top, and packages in a folder that is no package itself, such as `src`."""
    found = {module for module in modules if "." not in module}
    for module in modules:
        first, _, rest = module.partition(".")
        package, dot, _ = rest.partition(".")
        if dot and first not in modules and f"{first}.{package}" in modules:
            found.add(package)
    return frozenset(found)


def _tabled(every: list[ModuleFacts]) -> dict[str, frozenset[str]]:
    """The names of `ModuleFacts.tabled` that the files below each package define; below "" those of all files."""
    found: dict[str, set[str]] = {}
    for item in every:
        for part in ("", *item.module.split(".")) if item.tabled else ():
            found.setdefault(part, set()).update(item.tabled)
    return {part: frozenset(names) for part, names in found.items()}


#: Modules of a package that its build writes.
_WRITTEN_BY_BUILDS = ("version", "_version")
#: So many files hand a name on.
_WAY = 8
_LAUNCH_SCRIPT = re.compile(r"\.(?:sh|bash|slurm|sbatch|pbs|lsf)$")
_HANDED_ON = re.compile(r"\$\{?[@*]")


def _bound(joined: ProjectFacts, every: list[ModuleFacts], entries: Mapping[str, Entry]) -> frozenset[str]:
    """The files with a class below one of a file that stands on a package bound to CUDA; without these themselves."""
    whole = {path for path, entry in entries.items() if entry.bound}

    def made_in(name: str) -> str:
        """The file of a class, also where a package hands it on."""
        path, last = joined.path_of(name), name.rpartition(".")[2]
        for _ in range(_WAY):
            handed = entries[path].imports if path in entries and path not in whole else ()
            further = (joined.path_of(each) for each in handed if each.rpartition(".")[2] == last)
            other = next((each for each in further if each not in ("", path)), "")
            if not other:
                break
            path = other
        return path

    classes = ((item.path, bases) for item in (every if whole else ()) for _, bases in item.code.classes)
    heirs = grouped((made_in(base), path) for path, bases in classes for base in bases)
    return frozenset(closure(whole, lambda path: heirs.get(path, ()))) - whole


def _started(every: list[ModuleFacts], entries: Mapping[str, Entry]) -> dict[str, dict[str, list[str]]]:
    """The paths of the Python files that commands start, from the folder of the file that has them or one above, and
    by the path of that file what each gives them. What a launch script hands on is what it is started with, where a
    command does so.
    """
    scripts = {item.path for item in every if item.started and item.path.endswith(".sh")}
    found: dict[str, dict[str, list[str]]] = {}  # by what is started, and by the file of the command
    for item in every:
        for name, rest in item.started:
            if path := next((path for path in _meant(name, item.path) if path in entries or path in scripts), ""):
                found.setdefault(path, {}).setdefault(item.path, []).append(rest)

    def full(by: str, rests: list[str]) -> list[str]:
        handed = [more for each in found.get(by, {}).values() for more in each] or [""]
        return [f"{rest} {more}" for rest in rests for more in (handed if _HANDED_ON.search(rest) else [""])]

    given = ((path, given) for path, given in found.items() if path not in scripts)
    return {path: {by: full(by, rests) for by, rests in each.items()} for path, each in given}


def _meant(name: str, path: str) -> Iterator[str]:
    """The paths that a command in a file may mean."""
    parts = path.split("/")[:-1]
    for end in range(len(parts), -1, -1):
        for each in (name, f"{name.removesuffix('.py')}/__main__.py"):
            yield posixpath.normpath(posixpath.join("/".join(parts[:end]), each))
    if "/" in name:  # as from the folder in which the clone lies
        yield from _meant(name.partition("/")[2], "")


def _join_files(joined: ProjectFacts, every: list[ModuleFacts]) -> None:
    """What each file says of itself, by its path or for all of them."""

    def of_any(field_of: Callable[[ModuleFacts], Iterable[str]]) -> frozenset[str]:
        return frozenset(name for item in every for name in field_of(item))

    joined.sources = {item.path: item.text for item in every if item.text}
    for item in every:
        if item.imported:
            paths = dict.fromkeys(map(joined.path_of, item.imported))
            joined.imports[item.path] = tuple(path for path in paths if path in joined.sources and path != item.path)
    joined.guarded = frozenset(item.path for item in every if item.guarded)
    joined.placing = {item.path: item.placing for item in every if item.placing is not None}
    _join_entries(joined, every)
    joined.tabled = _tabled(every)
    joined.copies = tuple(item.copy for item in every if item.copy is not None)
    joined.saved = tuple(sorted({each for item in every for each in item.saved}))
    joined.portable = 0 < sum(item.uses_cuda for item in every) <= 10 * sum(item.handles_npu for item in every)
    joined.switches = {item.path: item.switches for item in every if item.switches and not named_aside(item.path)}
    joined.numpy_results = frozenset(
        f"{module}.{each}"  # as its package hands it on, too
        for item in every for each in item.numpy_results for module in (item.module, item.module.rpartition(".")[0])
    )  # fmt: skip
    joined.loads, joined.scales = tuple(item.path for item in every if item.loads), any(item.scales for item in every)
    joined.default_is_double = any(item.sets_double for item in every)
    joined.loaded = of_any(lambda item: item.loaded)
    joined.own_cuda = of_any(lambda item: item.own_cuda)
    joined.cuda_data = of_any(lambda item: item.cuda_data)
    joined.flags = of_any(lambda item: item.flags)
    joined.matched = of_any(lambda item: item.matched)


def _join_entries(joined: ProjectFacts, every: list[ModuleFacts]) -> None:
    """What the files say of what runs, and what commands give it."""
    entries = {item.path: item.entry for item in every if item.entry is not None}
    in_order, starting = sorted(entries.items()), _started(every, entries)
    started = {path: [*chain.from_iterable(by.values())] for path, by in starting.items()}
    joined.given_at = met_options({path: entry.options for path, entry in entries.items()}, started)
    joined.configured = not_given(joined.configured, started)
    joined.published = options_published(started)
    joined.options = options_joined(joined.as_given(each, path) for path, entry in in_order for each in entry.options)
    # a package hands names on, and tests start no program
    taking = [(entry.asked, () if path.endswith("__init__.py") else entry.taken)
              for path, entry in in_order if not named_aside(path)]  # fmt: skip
    named = frozenset(name for item in every for name in item.named)
    aside = aside_of(entries, joined.path_of, starting, named)
    launching = (each for path in started.keys() - aside.python for each in starting[path])
    scripts = frozenset(filter(_LAUNCH_SCRIPT.search, launching))
    taken = _taken_by_notebooks(joined, every, aside.taken)
    joined.aside = replace(aside, asked=asked_for(taking, joined.options), launching=scripts, taken=taken)
    joined.imported = frozenset(name for each in entries.values() for name in (*each.imports, *each.called))
    joined.bound = _bound(joined, every, entries)
    joined.floors = frozenset(chain.from_iterable(entry.floors for entry in entries.values()))
    joined.first = frozenset(chain.from_iterable(entry.first for entry in entries.values()))
    joined.sets = frozenset(chain.from_iterable(entry.sets for entry in entries.values()))


def _taken_by_notebooks(
    joined: ProjectFacts, every: list[ModuleFacts], taken: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """What others import of each file, and what notebooks do, too."""
    names = (target for item in every if item.path.endswith(".ipynb") for _, target in item.imports)
    shown = grouped((joined.path_of(name), name.rpartition(".")[2]) for name in names)
    return {path: taken.get(path, frozenset()).union(shown.get(path, ())) for path in {*taken, *shown}}


def _join_names(joined: ProjectFacts, every: list[ModuleFacts]) -> None:
    """Which names the files define, pass on, and take from each other."""
    used: set[str] = set()
    defined: set[str] = set()
    imported = {f"{item.module}.{local}": target for item in every for local, target in item.imports}
    for item in every:
        used.update(joined.canonical(name) for name in (*item.used_from, *item.imported))
        defined.update(f"{item.module}.{name}" for name in item.defined)
        joined.parameters.update(dict(item.parameters))
    names_of = grouped((name.rpartition(".")[0], name) for name in (*defined, *imported))
    for star in (star for item in every for star in item.stars):
        source = joined.canonical(star)
        if source in joined.modules:
            used.update(names_of.get(source, ()))
    renamed = (name for name, target in imported.items() if name.rpartition(".")[2] != target.rpartition(".")[2])
    joined.renamed = frozenset(renamed)
    joined.reexports = {name: target for name, target in imported.items() if f"{target}.".startswith("torch.")}
    joined.used_names, joined.defined = frozenset(used), frozenset(defined)


def _join_slots(joined: ProjectFacts, every: list[ModuleFacts], graph: Graph) -> None:
    shared = Components()
    known: dict[str, str] = {}
    named: list[tuple[str, str]] = []

    def name(slot: str) -> str:
        found = known.get(slot)
        if found is None:
            found = _known(joined, graph, slot)
            found = known[slot] = slot if found == slot else found  # one text in memory
            if found != slot:
                shared.link(slot, found)  # files go on calling it by the name they know
                named.extend((found, mark) for mark in marks_by_name(found))
        return found

    for item in every:
        for group in item.links:
            first = name(group[0])
            for other in group[1:]:
                shared.link(first, name(other))
    marked = [(name(slot), mark) for item in every for slot, mark in item.marks] + named
    slots = sorted(set(known) | set(known.values()))
    classes = ((cls, map(graph.settled, bases)) for item in every for cls, bases in item.code.classes)
    for a, b in unify_attributes(slots, classes):
        shared.link(a, b)
    marks: dict[str, set[str]] = {}
    for slot, mark in marked:
        marks.setdefault(shared.find(slot), set()).add(mark)
    # A slot without marks has none by its component either.
    joined.slots = {slot: root for slot in shared.above if (root := shared.find(slot)) in marks}
    joined.marks = {root: frozenset(found) for root, found in marks.items()}


def _known(joined: ProjectFacts, graph: Graph, slot: str) -> str:
    """A slot under the name by which the project knows its module, and its parameter, whoever passes that on."""
    kind, name = slot[:2], slot[2:]
    if kind == "g:":
        return joined.global_slot(graph.settled(name))
    if kind in ("p:", "r:", "s:"):
        path, mark, index = name.partition(".#")
        path, part, element = path.partition("<")
        path = f"{graph.settled(path)}{part}{element}"
        if not mark:
            if kind == "p:" and path not in joined.modules:
                # A class without a constructor of its own may have been taken for a function, or the reverse.
                owner, _, last = path.rpartition(".")
                if f"{owner}.__init__" in joined.parameters:
                    return f"p:{owner}.__init__.{last}"
            return f"{kind}{path}"
        for owner in (path, f"{path}.__init__"):
            names = joined.parameters.get(owner)
            if names is not None:
                at = int(index) + (1 if names[0] in SELF else 0)
                if at < len(names):
                    return f"p:{owner}.{names[at]}"
        return f"p:{path}.#{index}"
    return slot
