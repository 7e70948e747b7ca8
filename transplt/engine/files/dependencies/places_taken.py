"""Requirements in whose place another distribution is installed on an NPU: `triton-ascend` for `triton`.

Both have the same import and lie in one folder, so the one must not be installed beside the other. Which release goes
with a CANN is no matter of the file (rules/support/third_party.json): the new requirement has no version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from transplt.base.text.requirement import Requirement, normalised
from transplt.edits.edit import Edit
from transplt.engine.files.dependencies.codes import REPLACED
from transplt.engine.files.dependencies.places import is_element, is_row
from transplt.rules.packages import in_its_place, naming, package_installed_as

#: A text that may ask for such a package.
MAY_BE = re.compile(r"(?<![\w.-])(?:pytorch-)?triton(?![\w-])", re.I)


def named_otherwise(requirements: Iterable[Requirement]) -> set[str]:
    """The names of requirements that get another one, normalised."""
    return {normalised(each.name) for each in requirements if in_its_place(each.name)}


def renamed(each: Requirement, requirements: Sequence[Requirement], text: str) -> list[Edit]:
    """The edits of a requirement that gets another name, without its version; none for all others.

    An address, extras and a table of its own stay, and what a file asks for that asks for the other one already.
    """
    other = in_its_place(each.name)
    if not other or each.address or any(normalised(one.name) == other for one in requirements):
        return []
    row = package_installed_as(each.name)
    help_ = str(row["note"]) if row is not None else ""
    message = naming(each.name, each.specifier)
    if is_row(each) and not is_element(text, each):
        return [] if "{" in text[each.end : each.clauses[0]] else _of_a_row(each, other, message, help_)
    return [Edit((each.start, each.clauses[1]), REPLACED, message, other, api=each.name, help=help_)]


def _of_a_row(each: Requirement, other: str, message: str, help_: str) -> list[Edit]:
    """`triton = "^3.0"`: the name, and any version; nothing where the row has no version of its own."""
    start, end = each.clauses
    if start == end or start < each.end:
        return []
    group = f"{other} {each.start}"
    return [
        Edit((each.start, each.end), REPLACED, message, other, api=each.name, help=help_, group=group),
        Edit((start, end), REPLACED, message, "*", api=each.name, help=help_, group=group),
    ]
