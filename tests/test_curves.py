"""Shapes of files whose cost grew with the square of their size: four times the size costs no eight times the time."""

from __future__ import annotations

import pytest

from benchmarks.curves import SHAPES, curve, exponent, migration
from benchmarks.growth import ALL, LEFT_OUT, MOST, doubling
from transplt.base.settings import Settings
from transplt.engine.engine import migrate_source

#: How many times its smallest size a shape needs to show it.
BENT = {
    "dict of device strings": 4,
    "dict in one line": 4,
    "dict by device strings, left": 4,
    "dict of devices by device strings": 8,
    "or of many": 4,
    "and of tests": 2,
    "gates that return": 2,
    "gates of one chain": 2,
    "asserts": 2,
    "gates of one variable": 2,
    "list in one line, not ASCII": 16,
    "renamed imports": 4,
    "tables by device": 2,
    "gates before kernels": 4,
    "gates before packages": 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BENT)
def test_cost_grows_with_the_size(name: str) -> None:
    settings = Settings(torch_version="2.8")
    migration(SHAPES[name].text(10), settings)()
    bends = []
    for _ in range(3):  # the machine does other things too
        bends.append(exponent(curve(SHAPES[name], settings, size=BENT[name], steps=3, repeat=1)))
        if bends[-1] < 1.5:
            return
    raise AssertionError(f"n^{min(bends):.2f}")


#: What was quadratic once, and is quick to count; `python -m benchmarks.growth` counts all shapes.
COUNTED = (
    "and of many", "and of tests", "asserts", "blocks of else", "ignore comments", "renamed imports of functions",
    "elif on device string", "elif on device string, ret", "comparison chain", "ternaries nested", "sum of strings",
    "sum of names", "type == and", "functions call next2", "classes inherit next", "gates before packages",
    "kernels of Triton", "one long kernel of Triton", "yield", "overloads", "functions with a device",
    "defaults of one function", "gates that return", "cases for the NPU", "lambda map_location", "chain of calls",
    "if return gates",
    "sh pipes", "sh and", "sh semicolons", "sh substitutions", "sh options", "docker RUN and", "docker ENV one",
)  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_work_doubles_with_the_size(name: str) -> None:
    """Counted are calls, not seconds."""
    assert doubling(name, 50) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*ALL} - {*LEFT_OUT} - {*COUNTED}))
def test_all_work_doubles_with_the_size(name: str) -> None:
    assert doubling(name, 100) <= MOST


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_python_that_is_migrated(name: str) -> None:
    source = SHAPES[name].text(3)
    result = migrate_source(source.encode(), "m.py", Settings(torch_version="2.8"))
    assert not [finding.code for finding in result.findings if finding.code[:4] == "NPU9"]
