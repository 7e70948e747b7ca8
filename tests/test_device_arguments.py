"""The table of arguments that are devices or backends, read from the value up and from the call down."""

from __future__ import annotations

import ast

import pytest

from transplt.base.text.source import read_source
from transplt.flow.destinations import places
from transplt.flow.device_arguments import ROWS, Row
from transplt.flow.facts import ProjectFacts
from transplt.flow.marks import BACKEND, DEVICE, OWNED
from transplt.flow.slot_links import linked_slots
from transplt.syntax.names import Names
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan

_HEAD = """\
import contextlib
import torch
import torch.distributed as dist
from torch import autocast, device as kind, load as fetch
scope = autocast if amp else contextlib.nullcontext
v = f()
"""


def read(call: str, module: str = "") -> tuple[str, str]:
    """The mark of `v` in a call: read up, and read down; empty where it gets none. `module` is imported before."""
    source = read_source((f"import {module}\n" * bool(module) + f"{_HEAD}{call}\n").encode())
    found = scan(source, parse(source), "m.py")
    slots = linked_slots(found, Names(found), ProjectFacts())
    (value,) = found.names["v"]
    up = [place.kind for place in places(slots, value) if place.kind in (DEVICE, BACKEND)]
    slot = slots.of(value)
    assert slot is not None
    return "".join(up), "".join(sorted(slots.marks_of(slot)))


def call_of(row: Row) -> str:
    """A call that this row alone speaks of."""
    callee = {"any call": "f", "method": f"x.{row.callee}", "last name": f"x.{row.callee}", "full name": row.callee}
    if row.by == "full name" and row.read == "up":
        callee[row.by] = "kind"  # `device(type=...)` has a row for the other direction
    given = f"{row.argument}=v" if isinstance(row.argument, str) else "0, " * row.argument + "v"
    return f"{callee[row.by]}({given})"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.callee or 'any'}-{row.argument}")
def test_each_row(row: Row) -> None:
    up, down = read(call_of(row), row.callee.rpartition(".")[0] if row.by == "full name" else "")
    assert up == (row.mark if "up" in row.read else "")
    # A parameter called `backend` is one by its name, too: who owns the values is asked before (flow.marks.owner).
    named = BACKEND if row.mark.startswith(OWNED) and row.argument == BACKEND else ""
    assert down == (f"{named}{row.mark}" if "down" in row.read else "")


@pytest.mark.parametrize(
    ("call", "up", "down"),
    [
        ("x.f(device=v)", DEVICE, DEVICE),
        ("x.to(v)", DEVICE, DEVICE),
        ("x.set_device(v)", DEVICE, DEVICE),
        ("torch.load('x', v)", DEVICE, DEVICE),
        ("torch.load('x', map_location=v)", DEVICE, DEVICE),
        ("dist.init_process_group(v)", BACKEND, BACKEND),
        ("dist.new_group(backend=v)", BACKEND, BACKEND),
        # Rows of one direction.
        ("mmcv.init_dist(v)", BACKEND, ""),
        ("mmcv.init_dist('pytorch', backend=v)", BACKEND, ""),
        ("deepspeed.init_distributed(v)", BACKEND, ""),
        ("deepspeed.init_process_group(v)", BACKEND, ""),
        ("dist.new_subgroups(backend=v)", BACKEND, ""),
        ("x.device(type=v)", "", DEVICE),
        ("kind(type=v)", DEVICE, ""),
        # What the directions make of a call.
        ("fetch('x', v)", DEVICE, ""),
        ("scope(v)", DEVICE, ""),
        ("torch.load(*a, v)", DEVICE, ""),
        ("x.to(*v)", DEVICE, ""),
        ("torch.device(**{'type': v})", DEVICE, ""),
        ("x.to(y, device=v)", DEVICE, ""),
        ("x.to(device=v)", DEVICE, DEVICE),
    ],
)
def test_where_the_directions_agree_and_where_not(call: str, up: str, down: str) -> None:
    assert read(call) == (up, down)


@pytest.mark.parametrize(
    "call",
    [
        "f(v)",
        "f(backend=v)",
        "f(type=v)",
        "to(v)",
        "x.to(y, v)",
        "x.device(v)",
        "x.load('x', v)",
        "torch.load(v)",
        "torch.zeros(v)",
        "torch.Generator(0, v)",
        "dist.new_group(v)",
        "dist.init_process_group(init_method=v)",
        "x.Backend(v)",
        "f(**v)",
        "f()(v)",
    ],
)
def test_what_is_no_device(call: str) -> None:
    assert read(call) == ("", "")


def test_no_row_is_written_twice() -> None:
    assert len({(row.by, row.callee, row.argument, row.read) for row in ROWS}) == len(ROWS)
    assert all(isinstance(ast.parse(call_of(row), mode="eval").body, ast.Call) for row in ROWS)
