"""What fixers have named the functions of calls, for those that look later and write the same call again."""

from __future__ import annotations

import ast

from transplt.edits.work import Work


def new_names(work: Work) -> dict[int, str]:
    """The new names by the ids of the functions of calls; filled as they are edited."""
    return work.once(_none)


def name_now(work: Work, func: ast.expr) -> str:
    """What the function of a call is named now: by an edit that was recorded, else its text."""
    return new_names(work).get(id(func)) or work.text(func)


def _none(work: Work) -> dict[int, str]:
    return {}
