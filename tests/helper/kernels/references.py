"""What the tests of kernels share: the helper's functions by name, tensors, and the rows of the tables."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

from transplt.edits import helper_source

ROOT = Path(__file__).resolve().parents[3]


class _Kernels:
    """The functions that modules of transplt/helper/kernels offer."""

    def __getattr__(self, name: str) -> Any:
        module = helper_source.owners()[name]
        return getattr(importlib.import_module(f"transplt.helper.kernels.{module}"), name)


kernels = _Kernels()


def rows_of(topic: str) -> list[dict[str, Any]]:
    """The rows of rules/support/kernel_functions/TOPIC.json."""
    path = ROOT / "rules" / "support" / "kernel_functions" / f"{topic}.json"
    return list(json.loads(path.read_text(encoding="utf-8"))["functions"])


def helpers_of(topic: str) -> set[str]:
    """The functions that the rows of a table name."""
    return {each["helper"] for row in rows_of(topic) for each in (row, *row.get("variants", ())) if "helper" in each}


def check_rows(topic: str) -> None:
    """Each row's helper exists and takes the row's arguments, by name and in order; others say why there is none, or
    what the sources of the module have to say for one.
    """
    for row in rows_of(topic):
        assert row["source"] and row["modules"] and row["operator"], row
        for variant in row.get("variants", ()):
            assert variant["in"] and variant["sources_say"], row
            assert len(inspect.signature(getattr(kernels, variant["helper"])).parameters) >= len(row["arguments"]), row
        if not row.get("helper"):
            assert row["differs"], row
            continue
        signature = inspect.signature(getattr(kernels, row["helper"]))
        signature.bind(*row["arguments"])
        named = [each.name for each in signature.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
        # keywords stay as they are in the call: what stands beyond the names goes into `*`
        assert row["arguments"][: len(named)] == named[: len(row["arguments"])], (row["called"], named)
        assert set(row["arguments"][len(named) :]) <= {*signature.parameters}, row["called"]
