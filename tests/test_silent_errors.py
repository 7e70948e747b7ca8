"""The table of operators that give wrong numbers without an error, and what is asked of it."""

from __future__ import annotations

import gzip
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.build_emulator_tables import ROOT, TABLES, silent_table
from transplt.fixers.codemods import silent_errors as fixer
from transplt.precision.record import Row, Tensor
from transplt.precision.silent_errors import known_lines, known_of, rows_called
from transplt.rules.silent_errors import (
    Given,
    SilentError,
    errors_named_in,
    errors_of,
    errors_of_recorded,
    holds,
    silent_errors,
)
from transplt.rules.tables import read_table

ROWS = {row.id: row for row in silent_errors()}
FUSED = "torch_npu.npu_fused_infer_attention_score"
_TESTS = {"given", "missing", "value", "value_not", "shape", "size", "row_all_true"}


def test_every_row_says_what_is_wrong_when_and_who_says_so() -> None:
    keys = {"id", "operators", "wrong", "condition", "check", "do", "source", "date"}
    rows = read_table("support/silent_errors.json")["errors"]
    assert len(rows) == len(ROWS) >= 30
    for row in rows:
        assert keys <= row.keys() and all(row[key] for key in keys), row
        assert re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])(-\d\d)?", row["date"]), row
        assert row["check"] in ("always", "certain", "maybe", "never"), row
        assert not row["wrong"].endswith(".") and not row["condition"].endswith("."), row


def test_sources_are_public_threads() -> None:
    thread = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")
    threads = [row for row in ROWS.values() if thread.fullmatch(row.source)]
    assert len(threads) >= 30
    others = [row.source for row in ROWS.values() if row not in threads]
    assert all(source.startswith("https://") for source in others) and len(others) <= 2


def test_every_condition_can_be_read() -> None:
    for row in ROWS.values():
        for test in row.when:
            (kind,) = test.keys() & _TESTS
            assert test.keys() <= {"argument", "default", kind}, row.id
            assert "default" in test or kind not in ("value", "value_not"), row.id


def test_the_check_knows_every_pattern() -> None:
    in_kernels = {row.pattern for row in ROWS.values() if row.pattern} - {"augmented-assignment-in-with"}
    assert in_kernels == set(fixer._PATTERNS)
    for row in ROWS.values():
        assert not row.pattern or row.check != "never", row.id
        assert row.check not in ("certain", "maybe") or row.pattern or row.when, row.id


def asked(**given: Given) -> Any:
    return given.get


@pytest.mark.parametrize(
    ("row", "given", "answer"),
    [
        ("attention-mask-past-512", {"atten_mask": Given(shape=(1, 1, 1, 600))}, True),
        ("attention-mask-past-512", {"atten_mask": Given(shape=(1, 1, 1, 512))}, False),
        ("attention-mask-past-512", {"atten_mask": Given(shape=(2, 8, 600, 600))}, False),
        ("attention-mask-past-512", {"atten_mask": Given()}, None),
        ("attention-mask-past-512", {"atten_mask": Given(shape=(1, 1, 1, 600)), "sparse_mode": Given(True, 3)}, False),
        ("attention-mask-past-512", {"atten_mask": Given(shape=(1, 1, 1, 600)), "sparse_mode": Given()}, None),
        ("attention-mask-past-512", {"atten_mask": Given(known=True)}, False),
        ("attention-mask-past-512", {}, False),
        ("attention-without-mask-is-an-average", {"input_layout": Given(True, "TND")}, True),
        ("attention-without-mask-is-an-average", {}, False),
        ("attention-without-mask-is-an-average", {"input_layout": Given(True, "TND"), "atten_mask": Given()}, None),
        ("sliding-window-with-sparse-mode-3", {"sparse_mode": Given(True, 3), "pre_tokens": Given(True, 9)}, True),
        ("sliding-window-with-sparse-mode-3", {"sparse_mode": Given(True, 3)}, False),
        ("attention-of-fully-masked-rows", {"atten_mask": Given(shape=(4, 4))}, None),
        ("attention-of-fully-masked-rows", {"inner_precise": Given(True, 2), "atten_mask": Given(shape=(4, 4))}, False),
        ("gating-of-more-than-1024-tokens", {"x": Given(shape=(1025, 8))}, True),
        ("gating-of-more-than-1024-tokens", {"x": Given(shape=(1024, 8))}, False),
        ("libdevice-acos", {}, None),
    ],
)
def test_whether_a_condition_holds(row: str, given: dict[str, Given], answer: bool | None) -> None:
    assert holds(ROWS[row], asked(**given)) is answer


def ids(rows: tuple[SilentError, ...]) -> set[str]:
    return {row.id for row in rows}


def test_rows_of_names() -> None:
    assert "left-operand-of-dot" in ids(errors_of("triton.language.dot"))
    assert errors_of("torch.add") == ()
    assert ids(errors_of_recorded("Functional.gelu")) == {"gelu-without-tanh"}
    assert "attention-of-fully-masked-rows" in ids(errors_of_recorded("NPU.npu_fusion_attention"))
    assert errors_of_recorded("Functional.linear") == ()  # that one is of FlagGems, which a record does not tell
    assert errors_of_recorded("Module.Linear") == ()


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"    out = {FUSED}(q, k, v)", True),
        ("call aclnnFusedInferAttentionScore failed", True),
        ("call aclnnFusedInferAttentionScoreV3 failed", True),
        ("my_npu_fused_infer_attention_score_2", False),
        ("aclnnFusedInfer", False),
        ("", False),
    ],
)
def test_operators_that_a_line_names(text: str, named: bool) -> None:
    assert ids(errors_named_in(text)) == (ids(errors_of(FUSED)) if named else set())


# --- records ---------------------------------------------------------------------------------------------------------


def tensor(name: str, **told: Any) -> Tensor:
    values = {"dtype": "torch.float32", "shape": (2, 4), "is_tensor": True, "max": None, **told}
    return SimpleNamespace(name=name, **values)  # type: ignore[return-value]


def row(api: str, *inputs: Tensor, name: str = "") -> Row:
    return SimpleNamespace(api=api, name=name or f"{api}.0.forward", inputs=inputs)  # type: ignore[return-value]


def test_what_is_known_of_a_recorded_call() -> None:
    x, mask = tensor("args.0"), tensor("kwargs.atten_mask", shape=(1, 1, 1, 600))
    assert [each.id for each in known_of(row("Functional.gelu", x))] == ["gelu-without-tanh"]
    fused = "NPU.npu_fused_infer_attention_score"
    assert "attention-mask-past-512" in ids(tuple(known_of(row(fused, x, mask))))
    short = tensor("kwargs.atten_mask", shape=(1, 1, 1, 512))
    assert "attention-mask-past-512" not in ids(tuple(known_of(row(fused, x, short))))
    mode = tensor("kwargs.sparse_mode", is_tensor=False, dtype="int", max=3)
    assert "attention-mask-past-512" not in ids(tuple(known_of(row(fused, x, mask, mode))))


def test_each_is_told_once_and_for_the_call_of_a_gradient() -> None:
    calls = [row("Functional.gelu", tensor("args.0"), name=f"Functional.gelu.{number}.forward") for number in range(3)]
    calls.append(row("Functional.relu", tensor("args.0")))
    found = rows_called(calls, ["Functional.gelu.1.backward", "Functional.gelu.2.forward"])
    assert found == calls[1:3]
    (line,) = known_lines(found)
    assert line.startswith("known of gelu on NPUs: GELU is computed with tanh")


def test_the_table_of_the_emulated_card_is_made_of_this_one() -> None:
    rows = silent_table(ROOT / "rules")["rows"]
    assert {name for each in rows for name in each["names"]} >= {"npu::npu_fusion_attention", "aten::gelu"}
    assert json.loads(gzip.decompress((TABLES / "silent.json.gz").read_bytes())) == {"rows": rows}
