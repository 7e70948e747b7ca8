"""What files say to each other: the facts of one module, and their sum over a project."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ModuleFacts:
    """What one file tells the rest of its project; small and picklable.

    `imports`: local module-level name -> full name it imports. `stars`: modules it imports everything from.
    `slots`: groups of value slots that share their values, with the marks they carry (see `flow`).
    `cuda_definitions`: (qualified name, kind) of functions, methods, classes and members called cuda or is_cuda.
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
    cuda_methods: tuple[str, ...] = ()
    cuda_data: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


@dataclass(slots=True)
class ProjectFacts:
    """The sum of all `ModuleFacts`. An empty one stands for a file seen without its project."""

    known: bool = False
    modules: dict[str, str] = field(default_factory=dict)  # module name -> path
    suffixes: dict[str, str] = field(default_factory=dict)  # shorter dotted name -> module name, where unique
    reexports: dict[str, str] = field(default_factory=dict)
    used_names: frozenset[str] = frozenset()
    slots: dict[str, str] = field(default_factory=dict)  # slot -> representative
    marks: dict[str, frozenset[str]] = field(default_factory=dict)  # representative -> marks
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cuda_methods: frozenset[str] = frozenset()
    cuda_data: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()

    @classmethod
    def join(cls, facts: Iterable[ModuleFacts]) -> ProjectFacts:
        """The sum of the facts of all files; the order of `facts` does not matter."""
        every = sorted(facts, key=lambda item: item.path)
        joined = cls(known=True)
        for item in every:
            joined.modules.setdefault(item.module, item.path)
        joined.suffixes = _suffixes(joined.modules)
        used: set[str] = set()
        defined: set[str] = set()
        for item in every:
            for local, target in item.imports:
                joined.reexports[f"{item.module}.{local}"] = target
            used.update(joined.canonical(name) for name in item.used_from)
            defined.update(f"{item.module}.{name}" for name in item.defined)
            joined.parameters.update(dict(item.parameters))
        for item in every:
            for star in item.stars:
                source = joined.canonical(star)
                if source in joined.modules:
                    used.update(name for name in defined if name.rpartition(".")[0] == source)
        joined.reexports = {name: target for name, target in joined.reexports.items() if _is_torch(target)}
        joined.used_names = frozenset(used)
        joined.defined = frozenset(defined)
        joined.cuda_methods = frozenset(name for item in every for name in item.cuda_methods)
        joined.cuda_data = frozenset(name for item in every for name in item.cuda_data)
        joined.flags = frozenset(name for item in every for name in item.flags)
        _join_slots(joined, every)
        return joined

    def canonical(self, name: str) -> str:
        """A full name with its module part as the project knows it (`utils.f` may be `src.utils.f`)."""
        head = name
        tail: list[str] = []
        while head:
            if head in self.modules:
                return name
            if head in self.suffixes:
                return ".".join([self.suffixes[head], *reversed(tail)])
            head, _, last = head.rpartition(".")
            tail.append(last)
        return name


def _is_torch(target: str) -> bool:
    return target == "torch" or target.startswith("torch.")


def _suffixes(modules: dict[str, str]) -> dict[str, str]:
    """Shorter names by which modules may be imported (`utils.f` for `src.utils.f`), where only one module fits."""
    found: dict[str, str | None] = {}
    for module in modules:
        tail = module
        while "." in tail:
            tail = tail.partition(".")[2]
            if tail not in modules:
                found[tail] = None if tail in found else module
    return {tail: module for tail, module in found.items() if module is not None}


def _join_slots(joined: ProjectFacts, every: list[ModuleFacts]) -> None:
    roots: dict[str, str] = {}

    def find(slot: str) -> str:
        while (above := roots.get(slot, slot)) != slot:
            slot = above
        return slot

    for item in every:
        for group in item.links:
            first = find(_known(joined, group[0]))
            for other in group[1:]:
                root = find(_known(joined, other))
                if root != first:
                    low, high = min(first, root), max(first, root)
                    roots[high] = low
                    first = low
    marks: dict[str, set[str]] = {}
    for item in every:
        for slot, mark in item.marks:
            marks.setdefault(find(_known(joined, slot)), set()).add(mark)
    joined.slots = {slot: find(slot) for slot in roots}
    joined.marks = {root: frozenset(found) for root, found in marks.items()}


def _known(joined: ProjectFacts, slot: str) -> str:
    """A module-level slot under the name by which the project knows its module."""
    return f"g:{joined.canonical(slot[2:])}" if slot.startswith("g:") else slot
