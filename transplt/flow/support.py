"""What the files of a project say to the analysis, and their sum; engine/analysis fills it."""

from __future__ import annotations

from dataclasses import dataclass, field

from transplt.flow.gates.code import Definition


@dataclass(frozen=True, slots=True)
class Built:
    """What `load` or `load_inline` made, by the name it was given."""

    name: str


@dataclass(frozen=True, slots=True)
class Operators:
    """A namespace of torch.ops."""

    name: str


#: Whom code refers to: something compiled, or what a full name stands for.
Referred = Definition | Built | Operators


@dataclass(frozen=True, slots=True)
class ExtensionFacts:
    """What one file says: modules it builds, operators it registers, and (full name, whom it refers to).

    `maybe` are references that stand under a condition; `defined` are the functions and classes of the file,
    `assigned` its other module-level names that look compiled.
    """

    builds: tuple[str, ...] = ()
    registers: tuple[str, ...] = ()
    edges: tuple[tuple[str, Referred], ...] = ()
    maybe: tuple[tuple[str, Referred], ...] = ()
    defined: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fallen:
    """Why something falls: the extension it needs, the full names on the way there, and whether it does for certain."""

    extension: str
    way: tuple[str, ...] = ()
    certain: bool = True


@dataclass(frozen=True, slots=True)
class SupportFacts:
    """What one file says: module-level names it imports, stars by place, the bases of its classes, and its
    references."""

    module: str
    imports: tuple[tuple[str, str], ...] = ()
    stars: tuple[str, ...] = ()
    bases: tuple[tuple[str, tuple[str, ...]], ...] = ()
    extensions: ExtensionFacts = field(default_factory=ExtensionFacts)


@dataclass(slots=True)
class SupportProject:
    """The sum: what names of the project lead to, the bases of its classes, and what falls with an extension."""

    exports: dict[str, str] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fallen: dict[str, Fallen] = field(default_factory=dict)
    saved: tuple[tuple[str, str], ...] = ()  # every name under which something that falls can be imported
