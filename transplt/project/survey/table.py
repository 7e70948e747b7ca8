"""A survey as a flat table: the rows of the sheet and of survey.parquet."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from transplt.base.errors import UsageError
from transplt.base.extras import install_command
from transplt.engine.actions.action import BLOCKS_TEXT
from transplt.project.survey.portfolio import STOPS

#: Name and kind of each column.
COLUMNS: tuple[tuple[str, type], ...] = (
    ("repository", str), ("source", str), ("commit", str), ("failed", str), ("python_files", int), ("automatic", int),
    ("left", int), ("done", int), ("counted", int), ("share_automatic", float), ("hours", float),
    ("hours_low", float), ("hours_high", float), *((f"blocks_{kind.replace(' ', '_')}", int) for kind in BLOCKS_TEXT),
    ("stopped_by", str), ("packages", str), ("kernels", str), ("torch", str), ("torch_why", str), ("torch_lowest", str),
)  # fmt: skip


def table(rows: Sequence[dict[str, Any]], failed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A flat row for each repository; those that failed have only names and the reason."""
    found = []
    for row in rows:
        things = row["things"]
        found.append(
            {
                "repository": row["name"], "source": row["source"], "commit": row["commit"], "failed": "",
                **{name: row[name] for name in ("python_files", "automatic", "left", "done", "counted",
                                                "share_automatic", "hours", "hours_low", "hours_high")},
                **{f"blocks_{kind.replace(' ', '_')}": row["blocks"][kind] for kind in BLOCKS_TEXT},
                "stopped_by": "; ".join(each["title"] for each in things if each["blocks"] in STOPS),
                "packages": ", ".join(each["name"] for each in things if each["kind"] == "package"),
                "kernels": ", ".join(each["name"] for each in things if each["kind"] == "kernel"),
                "torch": row["torch"]["version"], "torch_why": row["torch"]["why"],
                "torch_lowest": row["torch"]["lowest"] or "",
            }
        )  # fmt: skip
    for row in failed:
        names = {"repository": row["name"], "source": row["source"], "failed": row["reason"]}
        found.append({name: names.get(name) for name, _ in COLUMNS})
    return found


def parquet_bytes(rows: Sequence[dict[str, Any]], failed: Sequence[dict[str, Any]]) -> bytes:
    """The table as Parquet. UsageError where pyarrow is not installed."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(f"--parquet needs pyarrow, which is not installed: {install_command('parquet')}") from error
    kinds = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64()}
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in COLUMNS])
    out = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(table(rows, failed), schema=schema), out)
    return out.getvalue()
