"""Which files of a project its training scripts reach; what only tests, tools or old code meet stands aside.

Read from bytes, for files that nobody parses as well: lines of imports, and words that training has. Where that is not
certain a file does not stand aside: what is imported by a name that is worked out counts as reached.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from transplt.flow.option_defaults import Option, options_in
from transplt.rules.packages import fails_to_load, holds_whole_files
from transplt.syntax.modules import absolute, outermost_package

#: Folders and files that a training script does not run, whatever stands in them.
_NAMED = re.compile(
    r"(^|/)(tests?|testing|unittests?|docs?|benchmarks?|old|legacy|deprecated|archived?|backup|attic"
    r"|\.[\w-]+)/"
    r"|(^|/)(test_[^/]*\.py|[^/]*_test\.py|conftest\.py|\.gitlab-ci\.yml)$"
)
#: Files for people: what is to do in them is tidying, wherever they lie.
_PROSE = (".md", ".rst")
_IMPORT = re.compile(
    rb"^(?P<indent>[ \t]*)(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#(]*)"
    rb"|import[ \t]+(?P<whole>[^\n#]+))",
    re.M,
)
_NAME = re.compile(rb"(?:^|[,(])\s*([.\w]+)")
#: A line that holds something, with its indentation and its first word.
_LINE = re.compile(rb"([ \t]*)([a-z]+)\b")
_BRANCHES = (b"if", b"elif", b"else", b"try", b"except", b"finally", b"case", b"for", b"while", b"with")
#: A question whether a package is there, or whether the card is another than the NPU; not whether there is a GPU.
_ASKED = re.compile(
    rb"(?:if|elif)\b[ \t(]*(?!not\b)(?:[\w.]+(?<!\.is)_(?:available|installed)\b|(?:[\w.]*\.)?find_spec\(|_?(?:HAS|HAVE)_\w+"
    rb"|_?(?:has|have)_\w+)",
)
_ASKED_FOR_A_CARD = re.compile(rb"cuda|gpu|npu|mps|xpu", re.I)
_ASKED_FOR_AN_NPU = re.compile(rb"if\b[ \t(]*(?!not\b)[\w.]*npu_(?:is_)?available|if\b[ \t(]*(?:torch\.)?npu\.is_available")
_CATCHES = re.compile(rb"except\b(?:[ \t]*:|[^:\n]*\b(?:ImportError|ModuleNotFoundError|(?:Base)?Exception)\b)")
_SUPPRESSES = re.compile(rb"with\b[^\n]*\bsuppress\([^)\n]*\b(?:ImportError|ModuleNotFoundError|(?:Base)?Exception)\b")
_GIVES_UP = re.compile(rb"^[ \t]+(?:raise\b|(?:sys\.|os\.)?_?exit\()", re.M)
_COMMENT = re.compile(rb"#[^\n]*")
_BOUND_NAMES = (b"tensorrt", b"torch2trt", b"pycuda", b"cudart", b"cuda.bindings")
_BOUND = re.compile(rb"^(?:import|from)[ \t]+((?:tensorrt|torch2trt|pycuda|cuda|cudart)\b[.\w]*)", re.M)
#: A device that a program works out, or an NPU, which it sets in its settings: `config.trainer.device = get_device_name()`.
_SETS = re.compile(rb"^[ \t]*(?:config|cfg|conf|args|opt)\.([\w.]*\bdevice)[ \t]*=[ \t]*(?:[\w.]+\(|[\"']npu[\"'])", re.M)
_STARTS = (b"__main__", b"parse_args(")
_TRAINS = (b".backward(", b"Trainer(", b".fit(", b"deepspeed.initialize(", b"manual_backward(")
#: What loads modules by names that are worked out.
_LOADS = (
    b"importlib", b"import_module", b"__import__(", b"_target_", b"instantiate(", b"registry", b"Registry", b"REGISTRY",
)  # fmt: skip
_LIBRARIES = frozenset({*sys.stdlib_module_names, "torch", "numpy"})


class Entry(NamedTuple):
    """What a Python file says of what runs: full names that it imports as it is loaded, when a function of it runs
    (`called`), in a branch or a try statement (`branched`), and where the program goes on without it (`guarded`);
    whether it trains, loads modules by name, is written to be started, and stands on a package without which nothing
    of it runs (bound_files.py); the `options` that it defines, and the keys of
    its settings that it `sets` to a device.
    """

    imports: tuple[str, ...] = ()
    called: tuple[str, ...] = ()
    branched: tuple[str, ...] = ()
    guarded: tuple[str, ...] = ()
    trains: bool = False
    loads: bool = False
    starts: bool = False
    bound: bool = False
    options: tuple[Option, ...] = ()
    sets: tuple[str, ...] = ()


def named_aside(path: str) -> bool:
    """True for a file that by its name only tests, benchmarks, documentation or a CI service run, or old code."""
    return _NAMED.search(path) is not None and not path.endswith(_PROSE)


def entry_of(data: bytes, path: str) -> Entry:
    """What a Python file says; comments and strings may be taken for imports, which puts less aside."""
    found: tuple[set[str], ...] = (set(), set(), set(), set())
    for match in _IMPORT.finditer(data):
        if (base := match["base"]) is None:
            names = _names(match["whole"])
        else:
            named = base.decode("ascii", "replace")
            module = named.lstrip(".")
            full = absolute(path, len(named) - len(module), module)
            names = [full, *(f"{full}.{name}" if full else name for name in _names(match["names"]))]
        names = [name for name in names if name and name.partition(".")[0] not in _LIBRARIES]
        if names:
            found[_when(data, match.start(), len(match["indent"]))].update(names)
    at_once, called, branched, guarded = (tuple(sorted(names)) for names in found)
    trains, loads, starts = (any(word in data for word in words) for words in (_TRAINS, _LOADS, _STARTS))
    options = () if named_aside(path) else options_in(data)
    sets = _SETS.findall(data) if b".device" in data and not named_aside(path) else []
    keys = tuple(sorted({each.decode() for each in sets}))
    return Entry(at_once, called, branched, guarded, trains, loads, starts, _stands_on_cuda(data), options, keys)


def _when(data: bytes, at: int, depth: int) -> int:
    """0 for a line that runs as the file is loaded, 1 in a function, 2 in a branch or a try statement, 3 where the
    program goes on without it; `depth` is how far it is indented.
    """
    when, line = 0, at
    while depth and (header := _above(data, at, depth)) is not None:
        if header[2] in (b"def", b"async"):
            return when or 1
        if header[2] in _BRANCHES and _is_guard(data, header, line):
            return 3
        if header[2] in _BRANCHES and header[2] != b"with":
            when = 2
        at, depth = header.start(), len(header[1])
    return when


def _is_guard(data: bytes, header: re.Match[bytes], line: int) -> bool:
    """True for a header below which an import that fails, or a package that is missing, does not stop the program."""
    start, word = header.start() + len(header[1]), header[2]
    text = data[start : max(data.find(b":\n", start, line), start)] or data[start:line].partition(b"\n")[0]
    if word == b"with":
        return _SUPPRESSES.match(text) is not None
    if word in (b"if", b"elif"):
        asked = _ASKED.match(text)
        return asked is not None and not _ASKED_FOR_A_CARD.search(text) and b" or " not in text
    if word == b"else":
        above = _beside(data, header)
        return above is not None and _ASKED_FOR_AN_NPU.match(above) is not None
    return word == b"try" and _is_caught(data, line, len(header[1]))


def _beside(data: bytes, header: re.Match[bytes]) -> bytes | None:
    """The `if` that an `else` belongs to, with its first line; None where there is more between them."""
    at, depth = header.start(), len(header[1])
    while at > 0:
        at = data.rfind(b"\n", 0, at - 1) + 1
        match = _LINE.match(data, at)
        if match is not None and len(match[1]) <= depth:
            return data[match.start() + depth :].partition(b"\n")[0] if match[2] == b"if" else None
    return None


def _is_caught(data: bytes, line: int, depth: int) -> bool:
    """True for a line of a `try` statement, indented that far, whose handler of what an import raises goes on."""
    at = data.find(b"\n", line) + 1
    while at:
        match = _LINE.match(data, at)
        end = data.find(b"\n", at) + 1
        if match is not None and len(match[1]) <= depth:
            if len(match[1]) < depth or match[2] != b"except":
                return False
            if _CATCHES.match(data, at + depth):
                return _GIVES_UP.search(data, end or len(data), _end_of_block(data, end, depth)) is None
        at = end
    return False


def _end_of_block(data: bytes, at: int, depth: int) -> int:
    """Where a block ends that begins at a line, below a header that is indented that far."""
    while 0 < at < len(data):
        end = data.find(b"\n", at)
        text = data[at : end if end >= 0 else len(data)]
        held = text.lstrip(b" \t\r")
        if held and not held.startswith(b"#") and len(text) - len(held) <= depth:
            return at
        at = end + 1
    return len(data)


def _above(data: bytes, at: int, depth: int) -> re.Match[bytes] | None:
    """The nearest line above that is indented less."""
    while at > 0:
        at = data.rfind(b"\n", 0, at - 1) + 1
        match = _LINE.match(data, at)
        if match is not None and len(match[1]) < depth:
            return match
    return None


def _stands_on_cuda(data: bytes) -> bool:
    """True for a file that imports TensorRT or CUDA's own interface at its top, and trains nothing."""
    if not any(name in data for name in _BOUND_NAMES) or b".backward(" in data:
        return False
    return any(holds_whole_files(match[1].decode()) for match in _BOUND.finditer(data))


def _names(text: bytes) -> list[str]:
    return [match[1].decode("ascii", "replace") for match in _NAME.finditer(_COMMENT.sub(b"", text))]


@dataclass(frozen=True, slots=True)
class Aside:
    """The files of a project that no training script reaches: Python files by path, others by their folder."""

    python: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()  # the Python below them stands aside, all of it
    called: frozenset[str] = frozenset()  # what is loaded by functions alone
    branched: frozenset[str] = frozenset()  # what is loaded in branches alone
    guarded: frozenset[str] = frozenset()  # what cannot be imported, and nobody imports who does not go on without it
    taken: Mapping[str, frozenset[str]] = field(default_factory=dict)  # names that others import, by path; `*` for all

    def late(self, path: str) -> str:
        """When a file is loaded that is not loaded as the training starts: `called` or `branch`, or behind a `guard`,
        where an NPU never loads it; else empty.
        """
        if path in self.guarded:
            return "guard"
        return "called" if path in self.called else "branch" if path in self.branched else ""

    def holds(self, path: str) -> bool:
        """True for a file that stands aside."""
        if path.endswith(_PROSE):
            return False
        if path in self.python or path in self.guarded or named_aside(path):
            return True
        folder = posixpath.dirname(path)
        while folder and not path.endswith(".py"):
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
    leads: dict[str, set[str]] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)  # what cannot be imported where there is no CUDA
    taken: dict[str, set[str]] = field(default_factory=dict)  # names that other files import, by path

    def __post_init__(self) -> None:
        for path, entry in self.entries.items():
            kinds = (entry.imports, entry.called, entry.branched, entry.guarded)
            owners = {name: self._imported(name, path) for names in kinds for name in names}
            self._take(owners)
            found = [{owners[name] for name in names} for names in kinds]
            held = [set().union(*found[: end + 1]).intersection(self.entries) - {path} for end in range(4)]
            self.at_once[path], self.called[path], self.needed[path], self.leads[path] = held
        imported = {target for targets in self.leads.values() for target in targets}
        guarded = {target for path in self.entries for target in self.leads[path] - self.needed[path]}
        if guarded:
            bound = {path for path, entry in self.entries.items() if self._is_bound(entry, path)}
            self.failing = _leading_to(bound, self.entries, self.at_once) if bound else set()
        for path, entry in self.entries.items():
            package = outermost_package(path, self.entries) if path in imported or not entry.starts else ""
            unit = package or path
            self.unit_of[path] = unit
            self.units.setdefault(unit, []).append(path)

    def names_taken(self) -> dict[str, frozenset[str]]:
        """By path: the names that other files import, `*` for all of them."""
        return {path: frozenset(names) for path, names in self.taken.items()}

    def _take(self, owners: Mapping[str, str]) -> None:
        """Notes what one file takes from others: `m.f` is one name, `m` alone is all of it."""
        modules = {name.rpartition(".")[0] for name in owners}
        for name, path in owners.items():
            if path and name not in modules:
                self.taken.setdefault(path, set()).update((name.rpartition(".")[2], *self._whole(name, path)))

    def _whole(self, name: str, path: str) -> tuple[str, ...]:
        stem = posixpath.basename(path.removesuffix("/__init__.py").removesuffix(".py"))
        return ("*",) if name.rpartition(".")[2] == stem else ()

    def _is_bound(self, entry: Entry, path: str) -> bool:
        """True for a file that imports a package bound to CUDA as it is loaded, and not a module of the project."""
        names = [name for name in entry.imports if fails_to_load(name)]
        return bool(names) and not all(self._imported(name, path) for name in names)

    def _imported(self, name: str, path: str) -> str:
        """The file that a name leads to which a file imports: what lies beside it comes first."""
        folder = posixpath.dirname(path)
        if folder:
            own = self.path_of(f"{folder.replace('/', '.')}.{name}")
            if own.startswith(f"{folder}/") and own != f"{folder}/__init__.py":
                return own
        return self.path_of(name)


def aside_of(entries: Mapping[str, Entry], path_of: Callable[[str], str]) -> Aside:
    """What stands aside of a project, by what its Python files say (by path); `path_of` gives the file of a full name.

    Files that train, those that import such a file, those that load modules by name and scripts at the top are what a
    user starts; all that these import is reached, a package as a whole. Where no file trains, only names tell.
    """
    every = {path: entry for path, entry in entries.items() if path.endswith(".py")}
    meant = {path for path in every if not named_aside(path)}
    trains = {path for path in meant if every[path].trains}
    tree = _Tree(every, path_of)
    if not trains:
        return Aside(frozenset(), frozenset(), *_late(meant, set(), meant, tree), tree.names_taken())
    starts = _leading_to(trains, meant, tree.leads)
    starts |= {path for path in meant if every[path].loads or "/" not in path}
    reached = _reached(starts, tree)
    beside = {posixpath.dirname(path) for path in reached if every[path].loads and "/" in path}
    if beside:  # what is loaded by name lies beside what loads it, or below
        named = {path for path in meant if any(f"{path}/".startswith(f"{folder}/") for folder in beside)}
        reached |= _reached(named, tree)
    python = frozenset(path for path in every if path not in reached)
    return Aside(python, _folders(every, python), *_late(reached, starts, meant, tree), tree.names_taken())


def _late(
    reached: set[str], starts: Collection[str], meant: Iterable[str], tree: _Tree
) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What of the reached files functions alone load, and branches; what nothing imports may begin, or be loaded by a
    name that is worked out: not a module that only leads to training, or loads others. The third are those that an NPU never loads: they fail behind a guard, or lie behind such.
    """
    imported = {target for path in meant for target in tree.leads[path]}
    imported |= {package for path in imported for package in _packages_above(path)}
    begun = {path for path in starts if "/" not in path or tree.entries[path].starts or tree.entries[path].trains}
    begin = {path for path in reached if path in begun or path not in imported if not named_aside(path)}
    at_once, called = (_loaded(begin, leads, tree.entries) for leads in (tree.at_once, tree.called))
    late = frozenset(reached & called - at_once), frozenset(reached - called - at_once)
    if not tree.failing:
        return *late, frozenset()
    begin -= imported & tree.failing
    begin |= {path for path in reached & tree.failing if tree.entries[path].starts and not named_aside(path)}
    ways = {path: tree.needed[path] | (leads - tree.failing) for path, leads in tree.leads.items()}
    return *late, frozenset(reached - _loaded(begin, ways, tree.entries))


def _loaded(begin: Collection[str], leads: Mapping[str, set[str]], every: Collection[str]) -> set[str]:
    """What is loaded from some files on, with the packages that modules lie in."""
    found, queue = set(begin), [*begin]
    for path in queue:  # grows
        for other in {*leads[path], *_packages_above(path)}:
            if other in every and other not in found:
                found.add(other)
                queue.append(other)
    return found


def _leading_to(goals: Collection[str], among: Collection[str], leads: Mapping[str, set[str]]) -> set[str]:
    above: dict[str, list[str]] = {}
    for path in among:
        for target in leads[path]:
            above.setdefault(target, []).append(path)
    found, queue = set(goals), [*goals]
    for path in queue:  # grows
        for other in above.get(path, ()):
            if other not in found:
                found.add(other)
                queue.append(other)
    return found


def _reached(starts: Iterable[str], tree: _Tree) -> set[str]:
    units = {tree.unit_of[path] for path in starts}
    queue = [*units]
    for unit in queue:  # grows
        for path in tree.units[unit]:
            if named_aside(path):
                continue  # tests inside of a package lead nowhere
            for target in tree.leads[path]:
                other = tree.unit_of[target]
                if other not in units:
                    units.add(other)
                    queue.append(other)
    return {path for unit in units for path in tree.units[unit]}


def _folders(every: Collection[str], python: Collection[str]) -> frozenset[str]:
    """The folders below which there is Python, and all of it stands aside."""
    held: dict[str, bool] = {}
    for path in every:
        folder = posixpath.dirname(path)
        while folder:
            held[folder] = held.get(folder, True) and (path in python or named_aside(path))
            folder = posixpath.dirname(folder)
    return frozenset(folder for folder, aside in held.items() if aside)


def _packages_above(path: str) -> Iterator[str]:
    """Where the packages that a file lies in would begin."""
    folder = posixpath.dirname(path)
    while folder:
        yield f"{folder}/__init__.py"
        folder = posixpath.dirname(folder)
