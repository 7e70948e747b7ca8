"""`transplt run --compile`: each kernel, as the run launches it, given to the compiler for the card."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.compiler,
    pytest.mark.extra,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs pip install '.[triton]'"),
]
Run = Callable[..., tuple[int, dict[str, Any], str]]

PROGRAM = """
import torch
import torch_npu
import triton
import triton.language as tl
from triton.language.math import exp as power

HALF = tl.constexpr(0.5)


@triton.jit
def half(x):
    return x * HALF


@triton.autotune(configs=[triton.Config({"BLOCK": 65536}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def tried(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = half(power(tl.load(x + at, mask=at < n)))
    if y is not None:
        value += tl.load(y + at, mask=at < n)
    tl.store(o + at, value, mask=at < n)


@triton.jit
def bytes_of(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at))


@triton.jit
def large(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.jit
def ordered(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.sort(tl.load(x + at)))


x, o = torch.ones(64, device="npu"), torch.ones(64, device="npu")
tried[(1,)](x, None, o, 64)
small = torch.ones(64, dtype=torch.uint8, device="npu")
bytes_of[(1,)](small, small, BLOCK=64)
for block in (64, 65536):
    large[(1,)](x, o, 64, BLOCK=block)
whole = torch.ones(64, dtype=torch.int32, device="npu")
ordered[(1,)](whole, whole, BLOCK=64)
print("the end")
"""


def test_the_compiler_has_the_last_word(transplt_run: Run) -> None:
    code, report, errors = transplt_run(PROGRAM, options=["--compile"])
    assert (code, report["stdout"]) == (1, "the end\n"), errors  # no estimate ends the run
    assert {each["kernel"]: each["compiles"] for each in report["compiled"]["kernels"]} == {
        "tried": "yes", "bytes_of": "yes", "large": "no", "ordered": "no",
    }  # fmt: skip
    # The table has uint8 for refused and int32 too: the compiler moves the one, and sorts not the other.
    assert [(each["code"], each["line"]) for each in report["findings"] if each["level"] == "error"] == [
        ("NPU573", 41), ("NPU574", 33),
    ]  # fmt: skip
    assert report["sentence"].endswith("the program went on after it, which it may not do on a card")
    assert "    large (train.py:33): no: UB needs 262,144 of 196,608 bytes (BLOCK = 32768 fits)\n" in errors


def test_without_it_nothing_is_kept_of_launches(transplt_run: Run) -> None:
    code, report, _ = transplt_run(PROGRAM)
    assert (code, report["compiled"]) == (1, None)
    assert "the end" not in report["stdout"]
