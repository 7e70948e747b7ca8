"""Which functions of the project a rule with `definitions` renames: all that they are called by, or nothing.

Each file says where a name stands (`NameUse`, found by flow/definition_uses.py); over all files it is decided which
full names are the function, and whether every use of them can be followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from transplt.flow.gates.graph import ancestors


@dataclass(frozen=True, slots=True)
class NameUse:
    """Something that a file says about a name that a rule renames with its definition.

    `name` is the last part of the rule's name, empty where it holds for any. `kind`: function, method (definitions),
    load, import, attribute, all (uses that can be renamed; `full` is what they name, `gives` the full name under which
    a module passes an import on), class (`gives`: its bases), other (something else of that name), and what stands in
    the way: those of `_ALWAYS` and `_NEAR`, unknown, getattr, star, escape, new, new attribute.
    """

    name: str
    kind: str
    full: str
    path: str
    line: int
    gives: str = ""


@dataclass(frozen=True, slots=True)
class Renaming:
    """What comes of a rule: the full names that get the new one, or why none does (`why`, empty where they do)."""

    new: str
    full: frozenset[str] = frozenset()
    why: str = ""


@dataclass(slots=True)
class _UsesOfName:
    """The uses of one name in all files, with the modules as the project knows them."""

    name: str
    every: list[NameUse]
    canonical: Callable[[str], str]
    modules: Collection[str]
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, *kinds: str) -> Iterator[tuple[NameUse, str]]:
        return ((use, self.canonical(use.full)) for use in self.every if use.kind in kinds)


#: In the way wherever it stands in the project, and in a file that has the function.
_ALWAYS = {
    "string": "has its name in a string",
    "import_module": "imports a module whose name is not written there",
    "unread": "holds the name and is not read by Python",
}
_NEAR = {
    "dynamic": "looks names up or runs text (globals, vars, eval, exec)",
    "ignored": "switches off what this rule does (an ignore comment or per-file-ignores)",
    "global": "declares the name global or nonlocal",
}
RENAMED = ("function", "method", "load", "import", "attribute", "all")


def decide(
    rules: Iterable[tuple[str, str]], uses: Iterable[NameUse], canonical: Callable[[str], str], modules: Collection[str]
) -> dict[str, Renaming]:
    """For the (old, new) names of the rules with `definitions` what is renamed; rules that mean nothing here are left
    out."""
    every = sorted(uses, key=lambda use: (use.path, use.line, use.kind != "string", use.kind, use.full))
    decided = {}
    for old, new in rules:
        name = old.rpartition(".")[2]
        uses_of_name = _UsesOfName(name, [use for use in every if use.name in ("", name)], canonical, modules)
        uses_of_name.bases = {
            canonical(use.full): tuple(map(canonical, use.gives.split(","))) if use.gives else ()
            for use in uses_of_name.every
            if use.kind == "class"
        }
        found = _renaming(uses_of_name, old, new)
        if found is not None:
            decided[old] = found
    return decided


def _renaming(uses_of_name: _UsesOfName, old: str, new: str) -> Renaming | None:
    meant = uses_of_name.canonical(old) if "." in old else ""
    functions = {full for _, full in uses_of_name.of("function") if meant in ("", full)}
    methods = {full for _, full in uses_of_name.of("method") if meant in ("", full)}
    if not functions and not methods:
        return None
    full = _passed_on(uses_of_name, functions) | methods
    for _, named in uses_of_name.of("attribute", "load"):
        if methods and _inherits(uses_of_name, named, methods):
            full.add(named)
    why = next(_in_the_way(uses_of_name, full, methods, new), "")
    return Renaming(new, frozenset(full), why)


def _passed_on(uses_of_name: _UsesOfName, functions: set[str]) -> set[str]:
    """The functions, and the names under which modules that import them pass them on."""
    full = set(functions)
    passed = {(named, uses_of_name.canonical(use.gives)) for use, named in uses_of_name.of("import") if use.gives}
    while more := {gives for named, gives in passed if named in full} - full:
        full |= more
    return full


def _above(uses_of_name: _UsesOfName, cls: str) -> set[str]:
    """A class and all classes that it is known to inherit from."""
    return {cls, *ancestors(cls, lambda each: uses_of_name.bases.get(each, ()))}


def _inherits(uses_of_name: _UsesOfName, named: str, methods: set[str]) -> bool:
    """True for `Class.name` whose class inherits one of the methods, or is inherited by a class that has one."""
    cls = named.rpartition(".")[0]
    owners = {method.rpartition(".")[0] for method in methods}
    return bool(_above(uses_of_name, cls) & owners) or any(cls in _above(uses_of_name, owner) for owner in owners)


def _in_the_way(uses_of_name: _UsesOfName, full: set[str], methods: set[str], new: str) -> Iterator[str]:
    """What keeps the names from being renamed, one sentence each."""
    holders = {each.rpartition(".")[0] for each in full - methods}
    near = {use.path for use, named in uses_of_name.of(*RENAMED) if named in full}
    # What is known and not meant: other values of that name, and functions that a rule with dots is not for.
    others = _passed_on(uses_of_name, {named for _, named in uses_of_name.of("other", "function", "method")}) - full
    for use, named in ((use, uses_of_name.canonical(use.full)) for use in uses_of_name.every):
        at = f"{use.path}:{use.line}"
        if use.kind in _ALWAYS:
            yield f"{at} {_ALWAYS[use.kind]}"
        elif use.kind in _NEAR and use.path in near:
            yield f"{at} {_NEAR[use.kind]}"
        elif use.kind == "twice" and named in full:
            yield f"{at} gives the name a value twice"
        elif use.kind == "star" and named in holders:
            yield f"{at} imports it with a star"
        elif use.kind == "escape" and named in holders:
            yield f"{at} hands on the module that has it"
        elif use.kind == "new" and use.full == new and holders and use.path in near:
            yield f"{at} has a {new} already"
        elif use.kind in ("import", "attribute") and named not in full and named not in others:
            owner = named.rpartition(".")[0]
            if owner in uses_of_name.modules:
                yield f"{at} takes it from {owner}, which does not define it"
            elif methods and owner in uses_of_name.bases:
                yield f"{at} uses the name of a class that does not define it"
        elif methods:
            yield from _of_methods(uses_of_name, use, named, methods, new, at)
    for method in sorted(methods):
        cls = method.rpartition(".")[0]
        unknown = sorted(_above(uses_of_name, cls) - uses_of_name.bases.keys() - {"object"})
        if unknown:
            yield f"{cls} inherits from {unknown[0]}, which may call it"


def _of_methods(
    uses_of_name: _UsesOfName, use: NameUse, named: str, methods: set[str], new: str, at: str
) -> Iterator[str]:
    if use.kind == "unknown":
        yield f"{at} uses .{uses_of_name.name} of an object whose class is not certain"
    elif use.kind == "getattr":
        yield f"{at} looks up an attribute whose name is not written there"
    elif use.kind == "new attribute" and use.full == new:
        yield f"{at} has an attribute {new} already"
    elif use.kind in ("method", "other") and named not in methods and _inherits(uses_of_name, named, methods):
        yield f"{at} defines it in a class of the same family"
