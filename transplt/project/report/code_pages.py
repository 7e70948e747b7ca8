"""The pages of codes as the page of a report shows them: sections, paragraphs, blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from transplt.base.language import marked
from transplt.rules.pages import all_codes, load

#: The project's own message is at the finding.
_NAMES = {"Message": marked("An example of the message")}
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")
_BOLD = re.compile(r"(?<![\w)])\*\*(?=\S)(.+?)\*\*(?!\w)")
_CODE = re.compile(r"`([^`]+)`")


def code_pages(codes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """By code, sorted: title and sections of its page. Codes of users' rules have none."""
    pages = {code: load(code) for code in sorted({*codes} & {*all_codes()})}
    sections = {
        code: [{"name": _NAMES.get(name, name), "blocks": _blocks(text)} for name, text in page.sections.items()]
        for code, page in pages.items()
    }
    return {code: {"title": page.title, "sections": sections[code]} for code, page in pages.items()}


def _blocks(text: str) -> list[dict[str, Any]]:
    """Paragraphs and items of lists, with their pieces of code, and blocks of code; links are their words."""
    blocks: list[dict[str, Any]] = []
    for number, part in enumerate(_FENCE.split(text)):
        if number % 2:
            blocks.append({"code": True, "text": part})
            continue
        for paragraph in re.split(r"\n\s*\n|\n(?=- )", part.strip()):
            words = _BOLD.sub(r"\1", _LINK.sub(r"\1", paragraph))
            if found := pieces(re.sub(r"\A- ", "\u2022 ", words)):
                blocks.append({"code": False, "pieces": found})
    return blocks


def pieces(text: str) -> list[dict[str, Any]]:
    """A paragraph, with what stands in backticks told from the rest."""
    return [{"code": bool(at % 2), "text": piece} for at, piece in enumerate(_CODE.split(text)) if piece]
