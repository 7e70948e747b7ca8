"""What the code of one file says to its project: pieces of it, what each needs of CUDA and what it calls.

A file is read by itself, so its references are what it can say; transplt/flow/gates/graph.py knows where they lead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

#: Called names that speak of CUDA code, and those that move values or say something of a card.
NAMED_CUDA = re.compile(r"_cuda$|_gpu$|^_?cuda_", re.I)
MOVES_OR_SAYS = re.compile(r"(?:^|_)(?:to|use|has|num|is)_|^(?:cuda_to|cuda_is)", re.I)
SlotKind = Literal["global", "parameter", "returned", "attribute", "of any object", "entry", "local"]
#: The letters with which transplt/flow/slots.py writes the kinds.
_KINDS: dict[str, SlotKind] = {
    "g": "global", "p": "parameter", "r": "returned", "s": "attribute", "n": "of any object", "k": "entry"
}  # fmt: skip
_LETTERS = {kind: letter for letter, kind in _KINDS.items()}


class _Record:
    """Pickled as a call of its class: the default of dataclasses with slots asks for the fields by name, each time.

    The hash is that of its text alone, which Python keeps: facts are keys of many tables.
    """

    __slots__: tuple[str, ...] = ()
    __match_args__: ClassVar[tuple[str, ...]]
    TAG: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.TAG = cls.__name__

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


@dataclass(frozen=True, slots=True)
class _Named(_Record):
    """What is known by one name."""

    name: str

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Slot(_Record):
    """A place that holds a value, under a name that other files understand; `function|v:name` for a local variable."""

    kind: SlotKind
    name: str

    def __hash__(self) -> int:
        return hash(self.name)

    @classmethod
    def read(cls, text: str) -> Slot:
        """The slot that transplt/flow/slots.py writes so; local variables have to be named by their functions."""
        return cls(_KINDS[text[0]], text[2:])

    def __str__(self) -> str:
        return self.name if self.kind == "local" else f"{_LETTERS[self.kind]}:{self.name}"


@dataclass(frozen=True, slots=True)
class Needs(_Record):
    """Something that runs on CUDA alone, in the words of a finding."""

    what: str

    def __hash__(self) -> int:
        return hash(self.what)


class OfPackage(_Named):
    """A full name that the rules know for CUDA's, unless the project has a package of that name."""

    __slots__ = ()


class Callee(_Named):
    """A called name that speaks of CUDA; whose it is nobody knows."""

    __slots__ = ()


class Definition(_Named):
    """A function, a class, a value or the code of a module, by its full name or one that it is passed on by."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.name


class ImportedModule(_Named):
    """The full name of a module that is imported, or of what is imported from one."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SlotValue(_Record):
    """What a slot holds that may be called."""

    slot: Slot

    def __hash__(self) -> int:
        return hash(self.slot.name)

    def __str__(self) -> str:
        return str(self.slot)


@dataclass(frozen=True, slots=True)
class Placing(_Record):
    """A value is put on a device."""


@dataclass(frozen=True, slots=True)
class Guard(_Record):
    """A slot that has to be true, or false."""

    slot: Slot
    truth: bool

    def __hash__(self) -> int:
        return hash(self.slot.name)

    def __str__(self) -> str:
        return f"{'T' if self.truth else 'F'} {self.slot}"


#: References that say themselves what they need, and those that lead to code; what has code: a *piece*.
Direct = Needs | OfPackage | Callee
Leading = Definition | ImportedModule | SlotValue
Reference = Direct | Leading | Placing
CodePiece = Definition | SlotValue
#: What holds on one side of a gate: another guard does, or the device is one of CUDA.
Behind = Guard | Literal["cuda"]


class CodeStep(NamedTuple):
    """One thing that a piece reaches. `option`: only where the user asks for it, or where an import succeeds.
    `guards`: they all hold there. `site`: of what is behind a guard, the line on which that is asked.
    """

    ref: Reference
    option: bool = False
    guards: tuple[Guard, ...] = ()
    site: str = ""


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What the code of one file reaches.

    `pieces`: (piece, what it reaches), and (guard, what runs behind it). `gates`: (guard, what holds if it does).
    `aliases`: local name -> full name. `stars`: by place. `modules`: full names of modules in its
    imports. `classes`: its classes with their bases. `extensions`: names of modules that it builds, `host_built` those
    of them that it builds without CUDA too. `cuda_named`: what it defines that speaks of CUDA. `defined`: its
    module-level names. `parameters`: those of the functions that ask one of them for a truth value. `relative`: full
    names of what its relative imports say to be a module.
    """

    module: str = ""
    pieces: tuple[tuple[CodePiece | Guard, tuple[CodeStep, ...]], ...] = ()
    gates: tuple[tuple[Guard, Behind], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    stars: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    classes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    extensions: tuple[str, ...] = ()
    host_built: tuple[str, ...] = ()
    cuda_named: tuple[str, ...] = ()
    defined: tuple[str, ...] = ()
    parameters: tuple[tuple[str, tuple[str, ...]], ...] = ()
    relative: tuple[str, ...] = ()


@lru_cache(maxsize=10_000)
def names_cuda_code(name: str) -> bool:
    """True for the name of a callee that speaks of code for CUDA: `nms_cuda`, `sort_gpu`; not for `to_gpu`."""
    return bool(NAMED_CUDA.search(name)) and not MOVES_OR_SAYS.search(name)
