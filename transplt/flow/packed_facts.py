"""Facts of a large project, packed until they are summed up: they would take more memory than all else."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from transplt.flow.facts import ModuleFacts

#: What is packed takes nearly all of the memory, and whoever sums it up goes over it once or twice.
_OF_MODULE = ("imports", "used_from", "links", "reads")
_OF_CODE = ("pieces", "gates", "aliases")
_OF_ANALYSIS = ("imports", "bases")
_OF_EXTENSIONS = ("edges", "maybe", "defined")
#: The fastest level: the texts repeat themselves so much that others gain little.
_LEVEL = 1


class Packed:
    """Rows of facts in a tenth of their memory. It is iterated over like the tuple, which is made anew each time.

    It holds a pickle of ours, which goes between processes of ours; nothing of it is read from a file.
    """

    __slots__ = ("_data",)

    def __init__(self, rows: Sequence[object]) -> None:
        self._data = zlib.compress(pickle.dumps(rows, pickle.HIGHEST_PROTOCOL), _LEVEL)

    def __iter__(self) -> Iterator[Any]:
        return iter(pickle.loads(zlib.decompress(self._data)))


def packed(facts: ModuleFacts) -> ModuleFacts:
    """The same facts for `join_facts`, which only iterates over what is packed in them."""
    analysis = facts.analysis
    if analysis is not None:
        analysis = _with_packed(analysis, _OF_ANALYSIS)
        analysis = replace(analysis, extensions=_with_packed(analysis.extensions, _OF_EXTENSIONS))
    found: ModuleFacts = _with_packed(facts, _OF_MODULE)
    return replace(found, code=_with_packed(facts.code, _OF_CODE), analysis=analysis)


def _with_packed(facts: Any, names: Sequence[str]) -> Any:
    rows = {name: getattr(facts, name) for name in names}
    return replace(facts, **{name: cast("tuple[Any, ...]", Packed(each)) for name, each in rows.items() if each})


def sharing(facts: ModuleFacts, texts: dict[str, str]) -> ModuleFacts:
    """The facts with one text in memory for names that other files spell, too; `texts` are those up to now."""
    return replace(
        facts,
        entry=_sharing(facts.entry, texts, ("imports", "called", "branched", "guarded")),
        placing=_sharing(facts.placing, texts, ("imported",)),
    )


def _sharing(record: Any, texts: dict[str, str], names: Sequence[str]) -> Any:
    rows = {name: getattr(record, name) for name in names} if record is not None else {}
    shared = {name: tuple([texts.setdefault(text, text) for text in each]) for name, each in rows.items()}
    return record._replace(**shared) if shared else record
