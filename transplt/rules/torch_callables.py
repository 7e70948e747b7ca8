"""What calls of torch do to what they are called on or given: rules/support/torch_callables.json.

Names that differ on purpose in one place only are added or taken away there; what torch itself does stands in a row.
"""

from __future__ import annotations

from functools import cache

from transplt.rules.tables import read_table

TABLE = "support/torch_callables.json"
MODULE, TENSOR = "torch.nn.Module", "torch.Tensor"


@cache
def _rows() -> tuple[tuple[str, frozenset[str], frozenset[str]], ...]:
    """Owner, names, and what they do, row by row."""
    rows = read_table(TABLE)["rows"]
    return tuple((row["of"], frozenset(row["names"].split()), frozenset(row["is"].split())) for row in rows)


@cache
def names_of(owner: str, *doing: str) -> frozenset[str]:
    """The names of a class or module that do one of some things; all its names where nothing is asked for."""
    return frozenset(name for of, names, does in _rows_doing(doing) if of == owner for name in names)


@cache
def full_names(*doing: str) -> frozenset[str]:
    """The full names of what does one of some things."""
    return frozenset(f"{of}.{name}" for of, names, does in _rows_doing(doing) for name in names)


@cache
def last_names(*doing: str) -> frozenset[str]:
    """The last parts of those names, for callees that cannot be followed to their module."""
    return frozenset(full.rpartition(".")[2] for full in full_names(*doing))


def _rows_doing(doing: tuple[str, ...]) -> list[tuple[str, frozenset[str], frozenset[str]]]:
    """Raises KeyError for a word that no row has: a misspelt question would have the answer that nothing does it."""
    rows = _rows()
    for word in doing:
        if not any(word in does for _, _, does in rows):
            raise KeyError(word)
    return [row for row in rows if not doing or not row[2].isdisjoint(doing)]
