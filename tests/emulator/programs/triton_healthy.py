"""Kernels as tutorials have them, of an older and of a newer style: they give what torch gives, on an NPU quietly.

With `cuda` as argument on the stand-in for a GPU, where kernels use what a GPU alone has.
"""

import sys

import torch
import triton
import triton.language as tl

DEVICE = sys.argv[1]
if DEVICE == "npu":
    import torch_npu  # noqa: F401
    from triton.language.extra.cann.libdevice import tanh
else:
    from triton.language.extra.cuda.libdevice import tanh
properties = triton.runtime.driver.active.utils.get_device_properties(0)
CORES = properties["num_vectorcore" if DEVICE == "npu" else "multiprocessor_count"]
device = triton.runtime.driver.active.get_active_torch_device()


@triton.jit
def add(x, y, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(o + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def softmax(x, o, stride, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(o + row * stride + at, powers / tl.sum(powers, axis=0), mask=at < n)


@triton.autotune(configs=[triton.Config({"BM": 16, "BN": 16, "BK": 16}), triton.Config({"BM": 32, "BN": 32, "BK": 16})],
                 key=["M", "N", "K"])
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    blocks = tl.cdiv(N, BN)
    rows = (tl.program_id(0) // blocks) * BM + tl.arange(0, BM)
    columns = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        inner = k * BK + tl.arange(0, BK)
        mask = (rows[:, None] < M) & (inner[None, :] < K)
        left = tl.load(a + rows[:, None] * K + inner[None, :], mask=mask, other=0.0)
        mask = (inner[:, None] < K) & (columns[None, :] < N)
        right = tl.load(b + inner[:, None] * N + columns[None, :], mask=mask, other=0.0)
        acc += tl.dot(left, right)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(c.dtype.element_ty),
             mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def norm_forward(x, w, b, y, mean, scale, n, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    values = tl.load(x + row * n + at, mask=mask, other=0.0).to(tl.float32)
    middle = tl.sum(values, 0) / n
    apart = tl.where(mask, values - middle, 0.0)
    rstd = tl.math.rsqrt(tl.sum(apart * apart, 0) / n + eps)
    tl.store(mean + row, middle)
    tl.store(scale + row, rstd)
    result = apart * rstd * tl.load(w + at, mask=mask) + tl.load(b + at, mask=mask)
    tl.store(y + row * n + at, result, mask=mask)


@triton.jit
def norm_backward(x, w, dy, dx, dw, db, mean, scale, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    rstd = tl.load(scale + row)
    hat = tl.where(mask, (tl.load(x + row * n + at, mask=mask, other=0.0) - tl.load(mean + row)) * rstd, 0.0)
    given = tl.load(dy + row * n + at, mask=mask, other=0.0)
    weighted = given * tl.load(w + at, mask=mask, other=0.0)
    inner, total = tl.sum(hat * weighted, 0) / n, tl.sum(weighted, 0) / n
    tl.store(dx + row * n + at, (weighted - hat * inner - total) * rstd, mask=mask)
    tl.atomic_add(dw + at, given * hat, mask=mask)
    tl.atomic_add(db + at, given, mask=mask)


@triton.jit
def total(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(o, tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))


@triton.jit
def scaled_by_block(x, o, M, N, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (16, BLOCK), (1, 0))
    target = tl.make_block_ptr(o, (M, N), (N, 1), (0, 0), (16, BLOCK), (1, 0))
    for _ in range(0, tl.cdiv(M, 16)):
        values = tl.load(source, boundary_check=(0, 1), padding_option="zero")
        tl.store(target, (values * 2).to(target.dtype.element_ty), boundary_check=(0, 1))
        source = tl.advance(source, (16, 0))
        target = tl.advance(target, (16, 0))


@triton.jit
def in_a_loop(x, o, n, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        values = tl.load(x + at, mask=at < n)
        tl.store(o + at, tanh(values) * tl.sigmoid(values) + tl.math.exp(-values), mask=at < n)


def near(first, second, within=1e-5):
    return bool(((first - second).abs() <= within * (1 + second.abs())).all())


def rand(*shape, dtype=torch.float32):
    return torch.rand(shape, dtype=dtype, device=DEVICE)


x, y = rand(5000), rand(5000)
o = torch.empty_like(x)
add[(triton.cdiv(5000, 1024),)](x, y, o, 5000, BLOCK=1024)
print("add", torch.equal(o, x + y), o.device == device)

x = rand(10, 300)
o = torch.empty_like(x)
softmax[(10,)](x, o, 300, 300, BLOCK=512)
print("softmax", near(o, x.softmax(-1)))

for dtype in (torch.float32, torch.float16, torch.bfloat16):
    a, b = rand(64, 40, dtype=dtype), rand(40, 48, dtype=dtype)
    c = torch.empty(64, 48, dtype=dtype, device=DEVICE)
    matmul[lambda meta: (triton.cdiv(64, meta["BM"]) * triton.cdiv(48, meta["BN"]),)](a, b, c, 64, 48, 40)
    right = (a.float() @ b.float()).to(dtype).float()
    print("matmul", dtype, near(c.float(), right, 1e-5 if dtype == torch.float32 else 8e-3))

rows, n = 12, 100
x, dy = rand(rows, n), rand(rows, n)
w, b = rand(n), rand(n)
y, dx, dw, db = torch.empty_like(x), torch.empty_like(x), torch.zeros_like(w), torch.zeros_like(b)
mean, scale = torch.empty(rows, device=DEVICE), torch.empty(rows, device=DEVICE)
norm_forward[(rows,)](x, w, b, y, mean, scale, n, 1e-5, BLOCK=128)
norm_backward[(rows,)](x, w, dy, dx, dw, db, mean, scale, n, BLOCK=128)
inputs = [each.clone().requires_grad_() for each in (x, w, b)]
right = torch.nn.functional.layer_norm(inputs[0], (n,), inputs[1], inputs[2])
right.backward(dy)
print("norm", near(y, right.detach()))
print("norm backward", *(near(mine, each.grad, 1e-4) for mine, each in zip((dx, dw, db), inputs, strict=True)))

o = torch.zeros(1, device=DEVICE)
total[(5,)](x, o, x.numel(), BLOCK=256)
print("atomics", near(o, x.sum(), 1e-5))

x = rand(40, 60, dtype=torch.bfloat16)
o = torch.empty_like(x)
scaled_by_block[(1,)](x, o, 40, 60, BLOCK=64)
print("blocks", torch.equal(o, x * 2))

x = rand(100000) - 0.5
o = torch.empty_like(x)
in_a_loop[(CORES,)](x, o, x.numel(), BLOCK=1024)
print("loop", near(o, x.tanh() * x.sigmoid() + (-x).exp()))
