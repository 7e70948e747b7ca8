"""Writes dumps as msprobe writes them, of operators that a test names."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FIGURES = ("Max", "Min", "Mean", "Norm")


def tensor(values: Sequence[float], shape: Sequence[int] | None = None, dtype: str = "float32", **more: Any) -> Any:
    """The entry of a tensor with these elements."""
    finite = [*values]
    nan = any(math.isnan(value) for value in finite)
    return {
        "type": "torch.Tensor",
        "dtype": f"torch.{dtype}",
        "shape": [len(finite)] if shape is None else [*shape],
        "Max": math.nan if nan else max(finite, default=0.0),
        "Min": math.nan if nan else min(finite, default=0.0),
        "Mean": math.fsum(finite) / len(finite) if finite and not nan else math.nan,
        "Norm": math.nan if nan else math.sqrt(math.fsum(value * value for value in finite)),
        "requires_grad": False,
        **more,
    }


def write_rank(
    folder: Path,
    data: Mapping[str, Any],
    stacks: Mapping[str, Sequence[str]] | None = None,
    parents: Mapping[str, str | None] | None = None,
    task: str = "statistics",
) -> None:
    """The three files of one rank in one step."""
    folder.mkdir(parents=True)
    document = {"task": task, "level": "mix", "framework": "pytorch", "dump_data_dir": "", "data": data}
    (folder / "dump.json").write_text(json.dumps(document))
    stack = {str(number): [[name], [*frames]] for number, (name, frames) in enumerate((stacks or {}).items())}
    (folder / "stack.json").write_text(json.dumps(stack))
    (folder / "construct.json").write_text(json.dumps(parents or {}))
