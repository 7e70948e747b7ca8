"""Every built-in rule that rewrites is run: the original on the stand-in for CUDA, its migration on the emulated NPU.

Type, dtype, shape, device and value of `result` agree; scripts/executed_table.py says which rules are not run, and why.
"""

from __future__ import annotations

import pytest

from scripts.executed_table import tables
from tests.executed.reasons import REASONS, missing_package, reason_of
from tests.executed.snippet import Snippet, difference, rewriting_rules, run_both
from tests.executed.table import BY_NAME, snippets


def test_every_rule_that_rewrites_has_a_snippet_or_a_reason() -> None:
    has_both, has_none = [], []
    for name, rule in rewriting_rules().items():
        run, reason = name in snippets(), reason_of(rule) or (name not in snippets() and missing_package(rule))
        if run and reason:
            has_both.append(name)
        if not run and not reason:
            has_none.append(name)
    assert has_both == []
    assert has_none == [], (
        f"{', '.join(has_none)}: an edit that nothing runs. End both blocks of the example in rules/diagnostics/ in "
        "`result = ...`, or write `not run: WHY` into the head of that page; for a name of torch a line in "
        "tests/executed/renames.py (CONTRIBUTING.md)"
    )


def test_snippets_and_reasons_are_for_rules() -> None:
    assert {*BY_NAME, *REASONS} <= {*rewriting_rules()}


def test_the_tables_of_the_document() -> None:
    text = tables()
    assert text.startswith(f"**{len(snippets())} of {len(rewriting_rules())} rules are run**")
    assert "| NPU101 | `torch.cuda.is_available` | yes |" in text
    assert "| no: Python 3 does not read the original: `async` is a keyword |" in text


@pytest.mark.torch
def test_the_migrated_call_does_what_the_original_did() -> None:
    faults = run_both(snippets())
    assert not faults, "\n\n".join(f"{name}: {fault}" for name, fault in faults.items())


def _tensor(*values: float, dtype: str = "torch.float32", device: str = "cuda") -> dict[str, object]:
    return {"tensor": dtype, "shape": [len(values)], "device": device, "grad": False, "values": list(map(repr, values))}


@pytest.mark.parametrize(
    ("cuda", "npu", "snippet", "where"),
    [
        (_tensor(1.0), _tensor(1.0), Snippet(""), ""),
        (_tensor(1.0), _tensor(1.1), Snippet(""), "result"),
        (_tensor(1.0, 0.0), _tensor(1.0, 0.005), Snippet("", tolerance=0.01), ""),
        (_tensor(1.0, 0.0), _tensor(1.0, 0.05), Snippet("", tolerance=0.01), "result"),
        (_tensor(1.0), _tensor(float("nan")), Snippet("", tolerance=0.01), "result"),
        (_tensor(1.0), _tensor(2.0), Snippet("", nature="drawn"), ""),
        (_tensor(1.0), _tensor(1.0, dtype="torch.float16"), Snippet("", nature="drawn"), "result: tensor"),
        (_tensor(1.0), _tensor(1.0, device="cpu"), Snippet(""), "result: device"),
        (_tensor(1.0), _tensor(1.0, 2.0), Snippet("", nature="drawn"), "result: shape"),
        ([1, [True]], [1, [False]], Snippet("", nature="drawn"), "result[1][0]"),
        ([1, "a"], [2, "b"], Snippet("", nature="drawn"), ""),
        ([1], [1, 2], Snippet(""), "result: 1 on CUDA"),
        ({"dict": {"a": 1}}, {"dict": {"a": None}}, Snippet(""), "result['dict']['a']"),
        (1, None, Snippet("", nature="drawn"), "result: 1 on CUDA"),
        ({"float": "1.5"}, {"float": "1.5"}, Snippet(""), ""),
        ({"float": "1.5"}, {"float": "2.5"}, Snippet(""), "result"),
    ],
)
def test_what_differs_is_seen(cuda: object, npu: object, snippet: Snippet, where: str) -> None:
    found = difference(cuda, npu, snippet)
    assert found.startswith(where) and bool(found) is bool(where)
