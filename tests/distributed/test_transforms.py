"""The transforms of trees that `distributed` asks for: what they make of layout, brackets and comments."""

from __future__ import annotations

import ast

import pytest

from transplt.trees.calls import one_after_the_other, with_keyword, with_last_name, without_first
from transplt.trees.expressions import and_also, only_if, wrapped_anew
from transplt.trees.loaders import with_sampler
from transplt.trees.transform import CannotRewrite, New, rewritten

FOLDERS = one_after_the_other(with_last_name("makedirs"), with_keyword("exist_ok", "True"))
WRAPPED = wrapped_anew("DDP", "npu", "device_ids=[0]", behind=False)
MOVED = wrapped_anew("DDP", "npu", "device_ids=[0]", behind=True)
SAMPLER, NAMED = with_sampler("S(d)", ""), with_sampler("S(d)", "d")


def made(new: New, before: str) -> str:
    return rewritten(before, [new], ast.Call)


@pytest.mark.parametrize(
    ("new", "before", "after"),
    [
        (FOLDERS, "os . mkdir(\n    x,  # here\n)", "os . makedirs(\n    x, exist_ok=True,  # here\n)"),
        (WRAPPED, "nn.DataParallel(net(), [0, 1])", "DDP(net().npu(), device_ids=[0])"),
        (WRAPPED, "nn.DataParallel(a or b)", "DDP((a or b).npu(), device_ids=[0])"),
        (MOVED, "nn.DataParallel(m.net).cuda()", "DDP(m.net.npu(), device_ids=[0])"),
        (without_first, "x.cuda(0)", "x.cuda()"),
        (and_also("r == 0"), "a", "a and r == 0"),
        (and_also("r == 0"), "a or b", "(a or b) and r == 0"),
        (and_also("r == 0"), "(a or b)", "(a or b) and r == 0"),
        (and_also("r == 0"), "a and b", "a and b and r == 0"),
        (only_if("r == 0"), "Writer(\n    path,\n)", "Writer(\n    path,\n) if r == 0 else None"),
        (SAMPLER, "DataLoader(d, shuffle = True)", "DataLoader(d, sampler = S(d))"),
        (SAMPLER, "DataLoader(d, 8, True)", "DataLoader(d, 8, sampler=S(d))"),
        (SAMPLER, "DataLoader(d, **rest)", "DataLoader(d, sampler=S(d), **rest)"),
        (SAMPLER, "DataLoader(d, sampler=None, pin_memory=a)", "DataLoader(d, pin_memory=a, sampler=S(d))"),
        (
            NAMED,
            "DataLoader(\n    set_of(x),\n    8,  # each\n)",
            "DataLoader(\n    d,\n    8,\n    sampler=S(d),  # each\n)",
        ),
        (NAMED, "DataLoader(dataset=set_of(x), shuffle=a)", "DataLoader(dataset=d, sampler=S(d))"),
    ],
)
def test_forms(new: New, before: str, after: str) -> None:
    assert made(new, before) == after


@pytest.mark.parametrize(
    ("new", "text"),
    [(SAMPLER, "DataLoader()"), (SAMPLER, "x"), (WRAPPED, "x"), (MOVED, "DataParallel(x)"), (FOLDERS, "mkdir(x)")],
)
def test_what_has_another_form_is_refused(new: New, text: str) -> None:
    """Any exception costs the site alone (transplt.edits.rewrite)."""
    with pytest.raises((CannotRewrite, ValueError, AssertionError)):
        made(new, text)
