"""The transforms of trees that `distributed` asks for: what they make of layout, brackets and comments."""

from __future__ import annotations

import ast

import pytest

from transplt.edits.trees.calls import one_after_the_other, with_keyword, with_last_name
from transplt.edits.trees.expressions import and_also, between, only_if, wrapped_anew
from transplt.edits.trees.removals import without_first
from transplt.edits.trees.transform import CannotRewrite, New, rewritten

FOLDERS = one_after_the_other(with_last_name("makedirs"), with_keyword("exist_ok", "True"))
WRAPPED = wrapped_anew("p.wrap", "", "", behind=False)
MOVED = wrapped_anew("p.wrap", "", "", behind=True)
UNUSED = wrapped_anew("p.wrap", "", "find_unused_parameters=True", behind=False)
SHARED, LATER = between("p.shard(", ")"), between("p.one_by_one(lambda: ", ")")


def made(new: New, before: str) -> str:
    return rewritten(before, [new], ast.Call)


@pytest.mark.parametrize(
    ("new", "before", "after"),
    [
        (FOLDERS, "os . mkdir(\n    x,  # here\n)", "os . makedirs(\n    x, exist_ok=True,  # here\n)"),
        (WRAPPED, "nn.DataParallel(net(), [0, 1])", "p.wrap(net())"),
        (WRAPPED, "nn.DataParallel(a or b)", "p.wrap(a or b)"),
        (WRAPPED, "nn.DataParallel(\n    net(3),  # small\n    [0, 1],\n)", "p.wrap(net(3))"),
        (UNUSED, "nn.DataParallel(net())", "p.wrap(net(), find_unused_parameters=True)"),
        (MOVED, "nn.DataParallel(m.net).cuda()", "p.wrap(m.net)"),
        (without_first(), "x.cuda(0)", "x.cuda()"),
        (and_also("r == 0"), "a", "a and r == 0"),
        (and_also("r == 0"), "a or b", "(a or b) and r == 0"),
        (and_also("r == 0"), "(a or b)", "(a or b) and r == 0"),
        (and_also("r == 0"), "a and b", "a and b and r == 0"),
        (only_if("r == 0"), "Writer(\n    path,\n)", "Writer(\n    path,\n) if r == 0 else None"),
        (SHARED, "DataLoader(d, shuffle = True)", "p.shard(DataLoader(d, shuffle = True))"),
        (SHARED, "loader", "p.shard(loader)"),
        (SHARED, "self . loaders['train']", "p.shard(self . loaders['train'])"),
        (
            SHARED,
            "DataLoader(\n    set_of(x),\n    8,  # each\n)",
            "p.shard(DataLoader(\n    set_of(x),\n    8,  # each\n))",
        ),
        (LATER, "MNIST(x, download=True)", "p.one_by_one(lambda: MNIST(x, download=True))"),
    ],
)
def test_forms(new: New, before: str, after: str) -> None:
    assert made(new, before) == after


@pytest.mark.parametrize(
    ("new", "text"),
    [(WRAPPED, "x"), (UNUSED, "x.y"), (MOVED, "DataParallel(x)"), (MOVED, "x.cuda"), (FOLDERS, "mkdir(x)")],
)
def test_what_has_another_form_is_refused(new: New, text: str) -> None:
    """Any exception costs the site alone (transplt.edits.rewrite)."""
    with pytest.raises((CannotRewrite, ValueError, AssertionError)):
        made(new, text)
