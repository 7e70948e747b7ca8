"""Which attribute slots are one: of a class and its bases, and of objects whose class can only be one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from transplt.flow.gates.graph import ancestors
from transplt.flow.marks import GENERIC


def unify_attributes(slots: Iterable[str], classes: Iterable[tuple[str, Iterable[str]]]) -> Iterator[tuple[str, str]]:
    """Pairs of attribute slots that are one, of `classes` with the names of their bases.

    `n:attr` (an attribute of some object) is that of a class when a single family of classes has an attribute of that
    name; when several have, nobody can tell whose it is.
    """
    above: dict[str, list[str]] = {}
    for cls, bases in classes:
        above.setdefault(cls, []).extend(bases)
    owners: dict[str, set[str]] = {}
    free: set[str] = set()
    for slot in slots:
        if slot.startswith("s:") and "<" not in slot:
            owner, _, attr = slot[2:].rpartition(".")
            owners.setdefault(attr, set()).add(owner)
        elif slot.startswith("n:"):
            free.add(slot[2:])
    for attr in sorted(owners):
        every = owners[attr]
        roots = set()
        for owner in sorted(every):
            inherited = [base for base in ancestors(owner, lambda each: above.get(each, ())) if base in every]
            yield from ((f"s:{owner}.{attr}", f"s:{base}.{attr}") for base in inherited)
            if not inherited:
                roots.add(owner)
        if len(roots) == 1 and attr in free and attr not in GENERIC:
            yield f"n:{attr}", f"s:{roots.pop()}.{attr}"
