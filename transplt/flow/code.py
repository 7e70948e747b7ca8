"""What the code of one file says to its project: pieces of it, what each needs of CUDA and what it calls.

How a piece names what it reaches:

- `@text` needs CUDA, in the words of a finding; `+full` a name that the rules know for CUDA's, unless the project has a
  package of that name;
- `full` a function, a class or a value of another module or of its own; `!full` a module that is imported;
- `~name` the callee of that last name, which speaks of CUDA; `=slot` what is held in a slot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

#: Called names that speak of CUDA code, and those that move values or say something of a card.
NAMED_CUDA = re.compile(r"_cuda$|_gpu$|^_?cuda_", re.I)
MOVES_OR_SAYS = re.compile(r"(?:^|_)(?:to|use|has|num|is)_|^(?:cuda_to|cuda_is)", re.I)
PLACED = "#"


class Step(NamedTuple):
    """One thing that a piece reaches. `option`: only where the user asks for it, or where an import succeeds.
    `guards`: `T slot` or `F slot`, the variables that have to be true or false. `site`: of what is behind a variable,
    the line on which that is asked; `PLACED` for a `ref` says that a value is put on the device there."""

    ref: str
    option: bool = False
    guards: tuple[str, ...] = ()
    site: str = ""


@dataclass(frozen=True, slots=True)
class CodeFacts:
    """What the code of one file reaches.

    `pieces`: (name, what it reaches). `gates`: (`T slot` or `F slot`, the atoms it says yes to): `cuda`, or another
    slot. `aliases`: local name -> full name. `modules`: full names of modules in its imports. `classes`: its classes
    with their bases. `extensions`: names of modules that it builds. `cuda_named`: what it defines that speaks of CUDA.
    `defined`: its module-level names. `parameters`: those of the functions that ask one of them for a truth value.
    """

    module: str = ""
    pieces: tuple[tuple[str, tuple[Step, ...]], ...] = ()
    gates: tuple[tuple[str, str], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    stars: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    classes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    extensions: tuple[str, ...] = ()
    cuda_named: tuple[str, ...] = ()
    defined: tuple[str, ...] = ()
    parameters: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __reduce__(self) -> tuple[object, ...]:
        """Most steps are a reference and nothing else: they travel as that."""
        pieces = [
            (name, [step.ref if not (step.option or step.guards or step.site) else tuple(step) for step in steps])
            for name, steps in self.pieces
        ]
        return _unpacked, (pieces, *(getattr(self, name) for name in self.__slots__ if name != "pieces"))


def _unpacked(
    pieces: list[tuple[str, list[str | tuple[str, bool, tuple[str, ...], str]]]], module: str, *rest: Any
) -> CodeFacts:
    steps = (
        (name, tuple(Step(each) if isinstance(each, str) else Step(*each) for each in found)) for name, found in pieces
    )
    return CodeFacts(module, tuple(steps), *rest)


@lru_cache(maxsize=10_000)
def names_cuda_code(name: str) -> bool:
    """True for the name of a callee that speaks of code for CUDA: `nms_cuda`, `sort_gpu`; not for `to_gpu`."""
    return bool(NAMED_CUDA.search(name)) and not MOVES_OR_SAYS.search(name)
