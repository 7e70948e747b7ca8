"""Fixers that only report are left out of the second look at a file: they make no edit."""

from __future__ import annotations

import ast
import importlib
import inspect

import pytest

from transplt.edits.fixer import Fixer, fixers_of
from transplt.engine.plan import OF_KERNELS

ALWAYS = fixers_of("transplt.fixers.codemods", "transplt.fixers.triton.codemods")
REPORT_ONLY = [fixer for fixer in ALWAYS if not fixer.edits]


def test_there_are_some() -> None:
    assert len(REPORT_ONLY) > 3


@pytest.mark.parametrize("fixer", REPORT_ONLY, ids=lambda fixer: fixer.name)
def test_it_makes_no_edit(fixer: Fixer) -> None:
    tree = ast.parse(inspect.getsource(importlib.import_module(fixer.module)))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "Edit" not in names and attributes.isdisjoint({"rewrite", "insert", "keep", "wrap"})


def test_those_for_kernels_look_only_where_they_are_imported() -> None:
    needs = {need for fixer in fixers_of("transplt.fixers.triton.codemods") for need in fixer.needs}
    assert needs
    assert all(OF_KERNELS.in_(need) for need in needs)
    assert all(fixer.needs for fixer in fixers_of("transplt.fixers.triton.codemods"))
