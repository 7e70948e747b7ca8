"""Pairs of tests/fixtures/mixed_precision: NAME.in.py becomes NAME.out.py.

The first line of an input may be a comment with options. Lines `# left CODE LINE: message` at the end of an output
are the findings without an edit, by their line in the input. To write the outputs anew and read them as a diff:

    TRANSPLT_REWRITE=1 python -m pytest tests/mixed_precision/test_pairs.py
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest
from pyflakes.api import check as pyflakes_check
from pyflakes.reporter import Reporter

from tests.harness import migrate
from transplt.base.finding import FileResult

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "mixed_precision"
NAMES = sorted(path.name[: -len(".in.py")] for path in FOLDER.glob("*.in.py"))


def run(source: str) -> FileResult:
    dtype = re.search(r"^# .*--amp-dtype (\w+)", source)
    scale = re.search(r"^# .*--loss-scale (\S+)", source)
    return migrate(
        source,
        amp="native",
        amp_dtype=dtype[1] if dtype else "float16",
        loss_scale=scale[1] if scale else "dynamic",
    )


def shown(result: FileResult) -> str:
    """The output, and what was left."""
    kept = [item for item in result.findings if not item.applied and item.code.startswith(("NPU74", "NPU99"))]
    lines = [f"# left {item.code} {item.span.line}: {item.message}\n" for item in kept]
    return result.data.decode() + "".join(lines)


@pytest.mark.parametrize("name", NAMES)
def test_pair(name: str) -> None:
    source = (FOLDER / f"{name}.in.py").read_text(encoding="utf-8")
    result = run(source)
    path = FOLDER / f"{name}.out.py"
    if os.environ.get("TRANSPLT_REWRITE"):
        path.write_text(shown(result), encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert shown(result) == expected
    assert name.startswith("left_") == (b"autocast" not in result.data)
    assert complaints(result.data.decode()) <= complaints(source)


def complaints(source: str) -> set[str]:
    """What pyflakes says, without places; `import torch_npu  # noqa: F401` is meant."""
    found = io.StringIO()
    pyflakes_check(source, "file", Reporter(found, found))
    return {line.split(" ", 1)[1] for line in found.getvalue().splitlines() if "torch_npu" not in line}


@pytest.mark.parametrize("name", NAMES)
def test_a_second_run_changes_nothing(name: str) -> None:
    first = run((FOLDER / f"{name}.in.py").read_text(encoding="utf-8")).data.decode()
    assert run(first).data.decode() == first


@pytest.mark.parametrize("body", ["pass", "..."])
def test_a_method_with_no_statement_is_abstract_too(body: str) -> None:
    """As abstract_loss, whose method raises NotImplementedError."""
    source, expected = ((FOLDER / f"abstract_loss.{way}.py").read_text(encoding="utf-8") for way in ("in", "out"))
    result = run(source.replace("raise NotImplementedError", body))
    assert shown(result) == expected.replace("raise NotImplementedError", body)
