"""Which packages an exception names, and what Ascend offers for each: rules/support/third_party.json."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from transplt.precision.diagnose.stacks import Frame
from transplt.rules.packages import package_holding, package_imported_as, package_installed_as, what_to_do

#: So many are told of one failure.
_MOST = 2
_NAME = r"(?P<name>[A-Za-z][\w.-]{1,60}?)"
#: Sentences in which Python, pip or a library says that it lacks a package, or a name of one.
_SENTENCES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"No module named '?{_NAME}'?(?:[\s;,'\"]|\.?$)",
        rf"cannot import name '\w+' from (?:partially initialized module )?'{_NAME}'",
        rf"module '{_NAME}' has no attribute",
        rf"No package metadata was found for (?:The ')?{_NAME}(?:[\s'\"<>=!]|$)",
        rf"(?:requirement|distribution found for|install|requires?|needs?|import) (?:the )?[`'\"]?{_NAME}[`'\"]?"
        r"(?:[\s=<>!~;,:)]|\.?$)",
        rf"[`'\"]?{_NAME}[`'\"]? (?:package )?(?:is not|isn't|not|seems to be not|was not) "
        r"(?:installed|available|found)",
        rf"'{_NAME}' distribution was not found",
        rf"not found in your environment:? {_NAME}(?:[\s,'\"]|\.?$)",
    )
)
#: A frame in an installed package, by the name of its folder.
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\](?P<name>\w+)[/\\]")
#: What every program has: a row on them says nothing about an error.
_COMMON = frozenset({"torch", "torch_npu", "torch-npu", "numpy", "transformers", "the", "python", "it", "pip"})


def packages_told(said: Iterable[str], frames: Iterable[Frame]) -> list[str]:
    """What is known of the packages that the sentences name, else of the one in which the traceback ends, a line each;
    nothing for packages that run unchanged."""
    found: dict[str, str] = {}
    for name in _names(said, frames):
        row = package_imported_as(name) or package_installed_as(name.replace("_", "-"))
        if row is None and (held := package_holding(name)) is not None:
            row = held[0]
        if row is not None and row["status"] not in ("works", "native") and row["name"] not in found:
            status = row["status"].replace("_", " ")
            found[row["name"]] = "; ".join(part for part in (f"{row['name']}: {status}", what_to_do(row)) if part)
    return [*found.values()][:_MOST]


def _names(said: Iterable[str], frames: Iterable[Frame]) -> Iterator[str]:
    for text in said:
        for sentence in _SENTENCES:
            for match in sentence.finditer(text[:600]):
                if match["name"].lower() not in _COMMON:
                    yield match["name"]
    for frame in list(frames)[-1:]:
        folder = _INSTALLED.search(frame.path)
        if folder is not None and folder["name"] not in _COMMON:
            yield folder["name"]
