"""A place that a value reaches.

A value may travel inside containers. A *path* lists the containers around it, innermost first: an integer for the place
in a tuple, a string for the key in a mapping, None for a list, a set or anything else that is all of one kind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from transplt.rules.communication_backends import OwnNames

Path = tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True)
class ReachedPlace:
    """One place a value reaches.

    `kind`: device, backend (certain positions); slot (`detail` is its key); compare (`other` is what it is compared
    with, `detail` how); named (an argument or entry, `detail` its name); key (subscript, `other` what is looked
    into); row (key of a dict display, `other` is the dict); simulator (a device of a physics engine or a renderer,
    `detail` its name); operator (the name of an operator of the project's own); foreign (the call of another
    library, `detail` its name); prose; help (of a flag, `other` is the call); flag (a command line flag);
    annotation; probe (a name given to getattr, hasattr, `other` is the call); environment (`detail` is the
    variable); command; kernel (which device a custom operator is for); exported (a name in `__all__`); path (a part
    of one in the file system); other.
    """

    kind: str
    detail: str = ""
    other: ast.expr | None = None


@dataclass(frozen=True, slots=True)
class Taker:
    """What takes a backend and is not known to hand it to torch.distributed: its name, as far as that is known.

    `names`: what its library makes of the string, where a table says it.
    """

    called: str
    names: OwnNames | None = None


class Up(NamedTuple):
    """The value goes on as that of an expression around it, inside the containers of `path`."""

    node: ast.AST
    path: Path


#: The places that a value reaches with its next step, and where it goes on.
Reached = Iterable[ReachedPlace | Up]
