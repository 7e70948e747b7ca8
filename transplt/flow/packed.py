"""Facts of a large project, packed until they are summed up: they would take more memory than all else."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

from transplt.flow.entry import Entry
from transplt.flow.facts import ModuleFacts
from transplt.flow.placing import Placing

_Named = TypeVar("_Named", Entry, Placing)
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
    return replace(_with_packed(facts, _OF_MODULE), code=_with_packed(facts.code, _OF_CODE), analysis=analysis)


def _with_packed(facts: Any, names: Sequence[str]) -> Any:
    rows = {name: getattr(facts, name) for name in names}
    return replace(facts, **{name: cast("tuple[Any, ...]", Packed(each)) for name, each in rows.items() if each})


def sharing(facts: ModuleFacts, texts: dict[str, str]) -> ModuleFacts:
    """The facts with one text in memory for names that other files spell, too; `texts` are those up to now."""
    return replace(
        facts,
        entry=_shared(facts.entry, texts, ("imports", "called", "branched", "guarded")),
        placing=_shared(facts.placing, texts, ("imported",)),
    )


def _shared(record: _Named | None, texts: dict[str, str], names: Sequence[str]) -> _Named | None:
    if record is None:
        return None
    return record._replace(
        **{name: tuple([texts.setdefault(text, text) for text in getattr(record, name)]) for name in names}
    )
