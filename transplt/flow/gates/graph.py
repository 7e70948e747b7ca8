"""What the references of code lead to, over all files of a project.

`Graph` alone follows re-exports, stars and aliases, and finds the code or the slot that a reference leads to.
`ancestors` is the one walk over the bases of a class.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from transplt.base.closure import closure
from transplt.base.text.memo import Memo
from transplt.flow.gates.code import CodeFacts, CodePiece, Definition, Guard, ImportedModule, Leading, Slot, SlotValue

_Class = TypeVar("_Class", bound=Hashable)
#: Methods that a call of an instance, or of a class of torch.autograd.Function, comes to.
_RUN = ("forward", "__call__", "apply")
_LONGEST_WAY = 20


def unique_suffixes(modules: Collection[str]) -> dict[str, str]:
    """Shorter names by which modules may be imported (`utils.f` for `src.utils.f`), where only one module fits."""
    found: dict[str, str | None] = {}
    for module in modules:
        tail = module
        while "." in tail:
            tail = tail.partition(".")[2]
            if tail not in modules:
                found[tail] = None if tail in found else module
    return {tail: module for tail, module in found.items() if module is not None}


def canonical_name(name: str, modules: Collection[str], suffixes: Mapping[str, str]) -> str:
    """A full name with its module under the name that it has among `modules`; `suffixes` are their shorter names."""
    end = len(name)
    while end > 0:
        head = name[:end]
        if head in modules:
            return name
        if head in suffixes:
            return suffixes[head] + name[end:]
        end = name.rfind(".", 0, end)
    return name


def ancestors(start: _Class, bases: Callable[[_Class], Iterable[_Class]]) -> Iterator[_Class]:
    """The classes above one, nearest first, each once; a class that inherits from itself is not above itself."""
    return islice(closure([start], bases), 1, None)


@dataclass(slots=True)
class Graph:
    """What the full names of a project stand for.

    `canonical` gives a full name with its module as the project knows it. `defined`: module-level names. `aliases`:
    full name -> what its module imports under it. `stars`: module -> those it imports everything from, in the order
    of the lines. `parameters`:
    of functions that ask one of them for a truth value. `code`, `held`: what has pieces.
    """

    canonical: Callable[[str], str] = field(default=str, compare=False, repr=False)
    modules: frozenset[str] = frozenset()
    defined: frozenset[str] = frozenset()
    aliases: dict[str, str] = field(default_factory=dict)
    stars: dict[str, tuple[str, ...]] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    code: frozenset[str] = frozenset()
    held: frozenset[Slot] = frozenset()
    _sources: Memo = field(default_factory=Memo, init=False, compare=False, repr=False)

    @classmethod
    def join(cls, every: Collection[CodeFacts], canonical: Callable[[str], str], modules: frozenset[str]) -> Graph:
        """The names that the facts of all files tell."""
        texts = dict[str, str]()

        def once(text: str) -> str:
            """One text in memory for all that are equal: each file has its own ones."""
            return texts.setdefault(text, text)

        joined = cls(
            canonical,
            modules,
            defined=frozenset(once(f"{facts.module}.{name}") for facts in every for name in facts.defined),
            aliases={
                once(f"{facts.module}.{local}"): once(target) for facts in every for local, target in facts.aliases
            },
            stars={facts.module: facts.stars for facts in every if facts.stars},
            bases={name: bases for facts in every for name, bases in facts.classes},
            parameters={name: names for facts in every for name, names in facts.parameters},
        )
        slots, code = dict[Slot, None](), set[str]()
        for piece in (piece for facts in every for piece, _ in facts.pieces):
            if isinstance(piece, Definition):
                code.add(once(canonical(piece.name)))
            elif isinstance(piece, SlotValue):
                slots[piece.slot] = None
        joined.code = frozenset(code)
        joined.held = frozenset(map(joined.slot, slots))
        return joined

    # --- names -------------------------------------------------------------------------------------------------------

    def ways(self, full: str) -> Iterator[str]:
        """A full name, and the names that it stands for, one import or star after the other."""
        here: str | None = full
        for _ in range(_LONGEST_WAY):
            if here is None:
                break
            known = self.canonical(here)
            yield known
            here = self._source(known)

    def settled(self, full: str) -> str:
        """The name under which something is defined that a full name stands for."""
        *_, last = self.ways(full)
        return last

    def is_passed_on(self, full: str) -> bool:
        """True for a name that its module has from another one."""
        return self._source(full) is not None

    def knows(self, full: str) -> bool:
        """True for a module of the project, a name that one of them has, or a class."""
        return full in self.modules or full in self.defined or full in self.bases

    def has(self, full: str) -> bool:
        """True for a module of the project, a name that one of them has, and any attribute of a class with bases."""
        return full in self.modules or full in self.defined or full.rpartition(".")[0] in self.bases

    def above(self, cls: str) -> Iterator[str]:
        """The bases of a class that may be the project's own, nearest first."""
        return ancestors(cls, lambda each: map(self.settled, self.bases.get(each, ())))

    def _source(self, full: str) -> str | None:
        """What a full name is by the import, or the star, that its module, or that of its owner, has it from."""
        if full not in self._sources:
            self._sources.make_room()
            self._sources[full] = self._found_source(full)
        known: str | None = self._sources[full]
        return known

    def _found_source(self, full: str) -> str | None:
        head, tail = full, ""
        while head:
            if tail and head in self.modules:
                return None  # it has what is in it, though its package may bind its name to something else
            if head in self.aliases:
                target = self.aliases[head] + tail
                return target if self.canonical(target) != full else None
            owner, _, last = head.rpartition(".")
            if (source := self._by_star(owner, last, {owner})) is not None:
                return source + tail
            head, tail = owner, f".{last}{tail}"
        return None

    def _by_star(self, module: str, name: str, seen: set[str]) -> str | None:
        """The full name of what `from x import *` brings into a module under a name; the last such line has it."""
        for star in reversed(self.stars.get(module, ())) if name[:1] != "_" else ():
            source = self.canonical(star)
            full = f"{source}.{name}"
            if full in self.defined or full in self.aliases or full in self.code:
                return full
            if source not in seen:
                seen.add(source)
                if (full_there := self._by_star(source, name, seen)) is not None:
                    return full_there
        return None

    # --- references --------------------------------------------------------------------------------------------------

    def piece(self, ref: Leading) -> CodePiece | None:
        """The code, or the slot, that a reference leads to."""
        if isinstance(ref, SlotValue):
            return self._holder(self.slot(ref.slot))
        if isinstance(ref, ImportedModule):
            module = self.canonical(ref.name)
            return Definition(module) if module in self.modules and module in self.code else None
        full = ref.name
        for full in self.ways(ref.name):
            if full in self.code:
                return Definition(full)
            if (slot := Slot("global", full)) in self.held:
                return SlotValue(slot)
        owner, _, last = full.rpartition(".")
        for name in (f"{base}.{last}" for base in self.above(owner)):
            if name in self.code:
                return Definition(name)
        return Definition(owner) if last in _RUN and owner in self.code else None

    def _holder(self, slot: Slot) -> CodePiece | None:
        """What a slot holds: of an attribute what its class, or a base, has under that name, the method too."""
        if slot in self.held:
            return SlotValue(slot)
        if slot.kind != "attribute":
            return None
        owner, _, attr = slot.name.rpartition(".")
        above = [f"{base}.{attr}" for base in self.above(owner)]
        for name in above:
            if (inherited := Slot("attribute", name)) in self.held:
                return SlotValue(inherited)
        return next((Definition(name) for name in (slot.name, *above) if name in self.code), None)

    def own(self, piece: CodePiece) -> CodePiece:
        """A piece under the name by which the project knows it."""
        if isinstance(piece, SlotValue):
            return SlotValue(self.slot(piece.slot))
        return Definition(self.canonical(piece.name))

    def guard(self, guard: Guard) -> Guard:
        """A guard with its slot as the project knows it."""
        return Guard(self.slot(guard.slot), guard.truth)

    def slot(self, slot: Slot) -> Slot:
        """A slot under the name by which the project knows it."""
        if slot.kind in ("global", "returned"):
            return Slot(slot.kind, self.settled(slot.name))
        if slot.kind == "attribute":
            return Slot(slot.kind, self.canonical(slot.name))
        if slot.kind == "parameter":
            owner, _, last = self.canonical(slot.name).rpartition(".")
            owner = self.settled(owner)
            names = self.parameters.get(owner) if last[:1] == "#" else None  # the name of one at a position, `#1`
            at = int(last[1:]) + (names[0] in ("self", "cls")) if names else 0
            return Slot(slot.kind, self.canonical(f"{owner}.{names[at] if names and at < len(names) else last}"))
        return slot
