"""The compiler itself, where it is there: what it says of kernels, and that it takes what `--tune triton` writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness import clean, migrate
from tests.tunings.test_triton_runs import CASES, KERNELS
from transplt.project.checking.launches_written import launches_written
from transplt.proof.compiler.compiling import Compiler
from transplt.proof.compiler.launches import Compiled, gather
from transplt.syntax.files import File

pytestmark = [pytest.mark.compiler, pytest.mark.extra]

HEAD = """
import torch
import triton
import triton.language as tl


@triton.jit
def half(x):
    return x * 0.5


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(o_ptr + at, BODY, mask=at < n)


def run(n):
    x = torch.zeros(n, dtype=torch.TYPE, device="npu")
    kernel[(1,)](x, x, n, BLOCK=SIZE)
"""


def said(source: str, card: str = "910B") -> Compiled:
    """What the compiler says of each kernel of a file."""
    compiler = Compiler.of(card)
    units: list[dict[str, Any]] = [forms[0] for forms in launches_written(File.of("ops.py", clean(source).encode()))]
    return gather(units, compiler.answers(units, lambda text: None), compiler.title)


def kernel(body: str, dtype: str = "float32", size: int = 1024) -> str:
    return HEAD.replace("BODY", body).replace("TYPE", dtype).replace("SIZE", str(size))


@pytest.mark.parametrize(
    ("source", "line"),
    [
        pytest.param(kernel("half(x)"), "yes; UB 4,096 of 196,608", id="it fits"),
        pytest.param(
            kernel("tl.exp(x) + half(x)", size=65536),
            "no: UB needs 524,288 of 196,608 bytes (BLOCK = 16384 fits)", id="it does not, and how much would",
        ),
        pytest.param(
            kernel("tl.sort(x)", "int32"),
            "no: ops.py:15: a vector core does not support sort for that type (the compiler: 'hivm.hir.vsort' op "
            "failed to verify that operand at idx 0 and 1 should have element type 16-bit float or 32-bit float)",
            id="an operation of a type, at its line",
        ),
        pytest.param(
            kernel("x.to(tl.float64)"), "no: ops.py:15: NPU kernels have no float64 (the compiler: LLVM ERROR: "
            "unsupported datatype for arith::ExtFOp to hfusion)",
            id="a type that ends the compiler, at its line",
        ),
        pytest.param(
            kernel("x.to(tl.float32)", "float8_e4m3fn"),
            "no: triton-ascend does not support 8-bit floats (the compiler: unexpected type fp8)",
            id="a type that is written",
        ),
        pytest.param(
            kernel("half(x)", "float8_e8m0fnu"), "not judged: x_ptr is float8_e8m0fnu, which Triton does not have",
            id="one that Triton has not",
        ),
    ],
)  # fmt: skip
def test_its_word(source: str, line: str) -> None:
    assert said(source).lines()[1] == f"  kernel (ops.py:12): {line}"


def test_another_card_has_another_room() -> None:
    assert said(kernel("half(x)", size=32768), "950").lines()[1] == "  kernel (ops.py:12): yes; UB 131,072 of 253,952"


def test_it_takes_what_the_tuning_writes() -> None:
    source = CASES.replace("BLOCK=triton.next_power_of_2(x.shape[1])", "BLOCK=64")
    tuned = migrate(source, path="kernels.py", tune=(("triton", ""),)).data.decode()
    assert tuned.count("for block in range(tl.program_id(0), ") == len(KERNELS)
    before = {each.name: each.word for each in said(source).kernels}
    after = {each.name: each.word for each in said(tuned).kernels}
    # A block that does not fit goes in parts, and then it does.
    assert before == {**dict.fromkeys(KERNELS, "yes"), "gated": "no"}
    assert after == dict.fromkeys(KERNELS, "yes")


ELEMENTWISE = """
import torch
import triton
import triton.language as tl
from triton.language.math import tanh
from elsewhere import block_for


@triton.jit
def geglu(a_ptr, b_ptr, c_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    a_ptr += row * stride
    b_ptr += row * stride
    c_ptr += row * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    a = tl.load(a_ptr + at, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0)
    gate = 0.5 * a * (1 + tanh(0.7978845608 * (a + 0.044715 * a * a * a)))
    tl.store(c_ptr + at, gate.to(b.dtype) * b, mask=mask)


@triton.jit
def geglu_backward(d_ptr, a_ptr, b_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d_ptr += row * stride
    a_ptr += row * stride
    b_ptr += row * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    d = tl.load(d_ptr + at, mask=mask, other=0)
    a = tl.load(a_ptr + at, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0)
    t = tanh(0.7978845608 * (a + 0.044715 * a * a * a))
    gate = 0.5 * a * (1 + t)
    slope = 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * 0.7978845608 * (1 + 3 * 0.044715 * a * a)
    tl.store(b_ptr + at, d * gate, mask=mask)
    tl.store(a_ptr + at, d * b * slope, mask=mask)


@triton.jit
def swiglu_backward(d_ptr, a_ptr, b_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    d_ptr += row * stride
    a_ptr += row * stride
    b_ptr += row * stride
    at = tl.arange(0, BLOCK)
    mask = at < n
    d = tl.load(d_ptr + at, mask=mask, other=0)
    a = tl.load(a_ptr + at, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=mask, other=0)
    s = tl.sigmoid(a)
    tl.store(b_ptr + at, d * (a * s), mask=mask)
    tl.store(a_ptr + at, d * ((a * s) * (1 - s) + s) * b, mask=mask)


def run(d, a, b):
    rows, n = a.shape
    block, _ = block_for(n)
    geglu[(rows,)](a, b, d, a.stride(0), n, BLOCK=block)
    geglu_backward[(rows,)](d, a, b, a.stride(0), n, BLOCK=block)
    swiglu_backward[(rows,)](d, a, b, a.stride(0), n, BLOCK=block)
"""


@pytest.mark.parametrize("size", [256, 16384, 65536])
def test_a_block_that_a_function_of_n_gives_goes_in_parts(size: int) -> None:
    tuned = migrate(clean(ELEMENTWISE), path="kernels.py", tune=(("triton", ""),)).data.decode()
    assert tuned.count("BLOCK_SUB: tl.constexpr = ") == 3
    words = [
        {each.name: each.word for each in said(source.replace("BLOCK=block", f"BLOCK={size}")).kernels}
        for source in (ELEMENTWISE, tuned)
    ]
    names = ("geglu", "geglu_backward", "swiglu_backward")
    assert words == [dict.fromkeys(names, "yes" if size < 16384 else "no"), dict.fromkeys(names, "yes")]


def test_it_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = kernel("half(x)", size=512)
    first = said(source).lines()

    def never(*_: object) -> str:
        raise AssertionError("the answer is in the cache")

    monkeypatch.setattr("transplt.proof.compiler.compiling.ask", never)
    assert said(source).lines() == first
