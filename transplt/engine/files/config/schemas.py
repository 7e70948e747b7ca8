"""Keys that a well-known library reads from a configuration, by the table rules/support/config_schemas.json."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from transplt.engine.files.config.values import Holder, Value, dotted
from transplt.engine.files.document import Document
from transplt.rules.tables import read_table


@dataclass(frozen=True, slots=True)
class Schema:
    """One key of one library. `keys` and one of `any_of` stand at the top of its files, `text` somewhere in them.

    `mark`: what the value is, device or backend; or `values`: old values with what stands in their place on an NPU.
    """

    library: str
    path: re.Pattern[str]
    keys: frozenset[str]
    any_of: frozenset[str]
    text: re.Pattern[bytes] | None
    mark: str
    values: dict[str, str]
    effect: str


def schema_of(document: Document, value: Value) -> Schema | None:
    """The first schema that knows a value."""
    for schema in _schemas():
        if any(schema.path.fullmatch(dotted(path)) for path in value.paths()) and _is_one(schema, document, value):
            return schema
    return None


@cache
def library_names() -> frozenset[str]:
    """Names of keys that speak of CUDA and that a library reads under these names on every device."""
    return frozenset(row["name"] for row in read_table("support/config_schemas.json")["names"])


def _is_one(schema: Schema, document: Document, value: Value) -> bool:
    top: Holder = value.holder
    while top.above is not None:
        top = top.above
    keys = top.texts.keys()
    if not schema.keys <= keys or (schema.any_of and schema.any_of.isdisjoint(keys)):
        return False
    return schema.text is None or schema.text.search(document.utf8) is not None


@cache
def _schemas() -> tuple[Schema, ...]:
    return tuple(
        Schema(
            row["library"],
            re.compile(row["path"]),
            frozenset(row.get("keys", ())),
            frozenset(row.get("any", ())),
            re.compile(row["text"].encode()) if "text" in row else None,
            row.get("as", ""),
            row.get("values", {}),
            row["effect"],
        )
        for row in read_table("support/config_schemas.json")["schemas"]
    )
