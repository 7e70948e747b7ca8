"""What the tests of the kernels share: the rows of a table against the functions that they name."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
FIELDS = {"operator", "called", "modules", "arguments", "helper", "differs", "source"}


def check_rows(topic: str, *modules: str) -> None:
    """Each row is whole, its function is offered by one of `modules` and takes what the compiled one takes."""
    table = json.loads((ROOT / "rules/support/kernel_functions" / f"{topic}.json").read_text("utf-8"))
    operators = {row["name"] for row in json.loads((ROOT / "rules/support/kernels.json").read_text("utf-8"))["kernels"]}
    homes = [importlib.import_module(f"transplt.helper.kernels.{name}") for name in modules]
    offered = {name: getattr(home, name) for home in homes for name in home.__all__}
    rows = table["functions"]
    assert {*table["_meta"]} == {"about", "source"}
    for row in rows:
        assert {*row} <= {*FIELDS, "variants"} and FIELDS - {"helper"} <= {*row}, row["called"]
        assert row["operator"] in operators, row["operator"]
        assert row["modules"] and row["source"].startswith("github.com/") and "@" in row["source"], row["called"]
        for each in row.get("variants", ()):
            inspect.signature(offered[each["helper"]]).bind(*row["arguments"])
        if "helper" not in row:
            assert row["differs"], row["called"]
            continue
        signature = inspect.signature(offered[row["helper"]])
        signature.bind(*row["arguments"])
        named = [each.name for each in signature.parameters.values() if each.kind is each.POSITIONAL_OR_KEYWORD]
        # keywords stay as they are in the call: what stands beyond the names goes into `*`
        assert row["arguments"][: len(named)] == named[: len(row["arguments"])], (row["called"], named)
    chosen = [each for row in rows for each in row.get("variants", ())]
    assert all(each["sources_say"] for each in chosen)
    assert {*offered} == {each["helper"] for each in (*rows, *chosen) if "helper" in each}
    keys = [(row["called"], module, len(row["arguments"])) for row in rows for module in row["modules"]]
    assert len(keys) == len({*keys}), [key for key in keys if keys.count(key) > 1]


class Lazy:
    """A module that is imported when something of it is used: where torch is not installed, these tests are not run."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.name), name)


torch = Lazy("torch")
np = Lazy("numpy")


def kernels(module: str) -> Lazy:
    """A module of transplt/helper/kernels."""
    return Lazy(f"transplt.helper.kernels.{module}")


def numbers(*shape: int, seed: int = 0, dtype: str = "float64", low: float = -1.0, high: float = 1.0) -> Any:
    """A tensor of reproducible numbers between `low` and `high`."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.rand(*shape, generator=generator, dtype=torch.float64) * (high - low) + low).to(getattr(torch, dtype))


def close(found: Any, wanted: Any, tolerance: float = 1e-9) -> None:
    """Two tensors or arrays of one shape with the same values."""
    found, wanted = torch.as_tensor(found).double(), torch.as_tensor(wanted).double()
    assert found.shape == wanted.shape, (found.shape, wanted.shape)
    torch.testing.assert_close(found, wanted, rtol=tolerance, atol=tolerance)
