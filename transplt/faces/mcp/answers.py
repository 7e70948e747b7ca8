"""Answers of bounded size: pages of a list, with a cursor that goes on where a page ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from transplt.base.errors import UsageError
from transplt.base.render.cell import shortened

#: Characters of the entries of a page (the first one is always given), and of one text in them.
PAGE_CHARACTERS = 6000
TEXT_CHARACTERS = 500


def cut(text: str) -> str:
    """A text as it stands in an answer."""
    return shortened(text, TEXT_CHARACTERS)


def page(name: str, entries: Sequence[dict[str, Any]], cursor: str | None, most: int) -> dict[str, Any]:
    """The entries under `name` from the cursor on, `most` at most; with `next_cursor` where there are more.

    UsageError for a cursor that is none, or that was given for another list: then something has changed in between.
    """
    texts = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    mark = blake2b("\n".join(texts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    first = _first(cursor, mark, len(entries))
    last = first
    size = 0
    while last < len(entries) and last - first < most:
        size += len(texts[last])
        if last > first and size > PAGE_CHARACTERS:
            break
        last += 1
    given = {name: list(entries[first:last]), f"{name}_in_all": len(entries)}
    return {**given, "next_cursor": f"{last}.{mark}"} if last < len(entries) else given


def _first(cursor: str | None, mark: str, count: int) -> int:
    if cursor is None:
        return 0
    number, _, of = cursor.partition(".")
    if not number.isascii() or not number.isdecimal() or len(number) > 9 or not of:
        raise UsageError("this is not a cursor of a result: pass `next_cursor` unchanged, or none")
    if of != mark or int(number) >= count:
        raise UsageError("the result has changed since: call again without a cursor")
    return int(number)
