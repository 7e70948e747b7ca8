"""Kernels in Triton before and after the tuning, in its interpreter: the same to the bit, on any number of blocks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import migrate

pytest.importorskip("triton")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

CASES = """
import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x, y, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x += row * stride
    y += row * stride
    cols = tl.arange(0, BLOCK)
    v = tl.load(x + cols, mask=cols < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v))
    tl.store(y + cols, e / tl.sum(e), mask=cols < n)


def rows(x):
    y = torch.empty_like(x)
    grid = (x.shape[0],)
    scaled[grid](x, y, x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def turned(a, o, M, N, sa, so, BM: tl.constexpr, BN: tl.constexpr):
    m, n = tl.program_id(0), tl.program_id(1)
    b = tl.program_id(2).to(tl.int64)
    rm = m * BM + tl.arange(0, BM)
    rn = n * BN + tl.arange(0, BN)
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    x = tl.load(a + b * sa + rm[:, None] * N + rn[None, :], mask=mask)
    tl.store(o + b * so + rn[None, :] * M + rm[:, None], x * (b + 1), mask=mask)


def turn(a):
    B, M, N = a.shape
    o = torch.empty(B, N, M)
    turned[(triton.cdiv(M, 8), triton.cdiv(N, 4), B)](a, o, M, N, a.stride(0), o.stride(0), BM=8, BN=4)
    return o


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    wide = tl.cdiv(N, BN)
    rm = (pid // wide) * BM + tl.arange(0, BM)
    rn = (pid % wide) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a += rm[:, None] * K + rk[None, :]
    b += rk[:, None] * N + rn[None, :]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        inside = k + rk < K
        x = tl.load(a, mask=(rm[:, None] < M) & inside[None, :], other=0.0)
        y = tl.load(b, mask=inside[:, None] & (rn[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
        a += BK
        b += BK * N
    tl.store(c + rm[:, None] * N + rn[None, :], total, mask=(rm[:, None] < M) & (rn[None, :] < N))


def matmul(a, b):
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]) * triton.cdiv(N, meta["BN"]),)
    product[grid](a, b, c, M, N, K, BM=16, BN=16, BK=16)
    return c


@triton.jit
def counted(x, out, skip, mask, n, BLOCK: tl.constexpr):
    r, c = tl.program_id(0), tl.program_id(1)
    if tl.load(skip + r) == 1:
        return
    if mask is not None:
        mask += r
        if tl.load(mask) == 0:
            return
    offs = c * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + offs, tl.load(x + r * n + offs, mask=offs < n), mask=offs < n)


def count(x, skip, mask):
    out = torch.zeros(x.shape[1], dtype=torch.int32)
    rows, n = x.shape
    counted[(rows, triton.cdiv(n, 8))](x, out, skip, mask, n, BLOCK=8)
    return out


@triton.jit
def gated(x, y, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + offs, mask=offs < n).to(tl.float32)
    tl.store(y + offs, v * tl.sigmoid(v) + tl.exp(v), mask=offs < n)


def gate(x):
    x = x.float()
    y = torch.empty_like(x)
    n = x.numel()
    gated[(triton.cdiv(n, 131072),)](x, y, n, BLOCK=131072)
    return y


def results():
    torch.manual_seed(0)
    for shape in ((1, 5), (90, 33)):
        x = torch.randn(shape)
        yield rows(x)
        skip, mask = torch.randint(0, 2, (2, shape[0]), dtype=torch.int32)
        numbers = torch.randint(0, 9, shape, dtype=torch.int32)
        yield count(numbers, skip, mask)
        yield count(numbers, skip, None)
    for m, n, k in ((16, 16, 16), (70, 200, 37)):
        yield matmul(torch.randn(m, k), torch.randn(k, n))
    for shape in ((1, 3, 5), (5, 20, 30)):
        yield turn(torch.randn(shape))
    for n in (1, 8191, 140000):
        yield gate(torch.randn(n))
"""
KERNELS = ("scaled", "turned", "product", "counted", "gated")


def test_the_same_to_the_bit(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    text = migrate(CASES, path="kernels.py", tune=(("triton", ""),)).data.decode()
    assert text.count("for block in range(tl.program_id(0), ") == len(KERNELS)
    assert text.count("for sub in range(0, BLOCK, BLOCK_SUB):") == 1
    found = []
    for name, source in (("before", CASES), ("after", text.replace("import torch_npu  # noqa: F401\n", ""))):
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        line = f"import torch, {name}; torch.save([*{name}.results()], '{name}.pt')"
        command = [sys.executable, "-c", line]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=600)
        found.append(torch.load(tmp_path / f"{name}.pt"))
    before, after = found
    assert len(before) == len(after) == 13
    for one, other in zip(before, after, strict=True):
        assert torch.equal(one, other)
