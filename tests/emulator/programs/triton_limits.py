"""Kernels that a GPU runs and a card refuses: the line of each says by which code, and how grave it is.

Every case is launched by itself; what a card would stop at is caught here, so that the next one has its turn.
"""

import os

import torch
import torch_npu
import triton
import triton.language as tl
from npu_emulator.triton import launch
from npu_emulator.triton.limits import Refused
from triton.language.extra import libdevice


@triton.jit
def copy(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at, mask=at < n), mask=at < n)


@triton.jit
def load_only(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)  # planted: NPU570 error
    tl.store(o + at, values.to(tl.float32))


@triton.jit
def load_bytes(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < BLOCK, other=0)
    tl.store(o + at, values.to(tl.int32))


@triton.jit
def load_words(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    shift = tl.load(x)
    tl.store(o + at, at + shift.to(tl.int32))


@triton.jit
def store_double(o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, at.to(tl.float32))  # planted: NPU570 error


@triton.jit
def store_short(o, BLOCK: tl.constexpr):
    tl.store(o, 1)


@triton.jit
def block_of_doubles(x, o, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x, (BLOCK,), (1,), (0,), (BLOCK,), (0,))  # planted: NPU570 error
    tl.store(o + tl.arange(0, BLOCK), tl.load(block).to(tl.float32))


@triton.jit
def count(o, BLOCK: tl.constexpr):
    tl.atomic_add(o + tl.arange(0, BLOCK), 1)


@triton.jit
def add_up(o, x, BLOCK: tl.constexpr):
    total = tl.sum(tl.load(x + tl.arange(0, BLOCK)), 0)
    tl.atomic_add(o, total)  # planted: NPU571 error


@triton.jit
def largest(o, BLOCK: tl.constexpr):
    tl.atomic_max(o, 5)  # planted: NPU571 error


@triton.jit
def least(o, BLOCK: tl.constexpr):
    tl.atomic_min(o, -5)


@triton.jit
def swap(o, BLOCK: tl.constexpr):
    tl.atomic_xchg(o, 2.0)  # planted: NPU571 error


@triton.jit
def compare_and_swap(o, BLOCK: tl.constexpr):
    old = tl.load(o)
    tl.atomic_cas(o, old, old + old)


@triton.jit
def relaxed(o, ORDER: tl.constexpr):
    tl.atomic_add(o, 1.0, sem=ORDER)  # planted: NPU571 info


@triton.jit
def scoped(o, SCOPE: tl.constexpr):
    tl.atomic_add(o, 1.0, scope=SCOPE)  # planted: NPU571 info


@triton.jit
def dot_of_bytes(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + at).to(tl.uint8)
    tl.store(o + at, tl.dot(a, a, out_dtype=tl.int32))  # planted: NPU572 error


@triton.jit
def dot_in_half(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + at)
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float16)
    acc = tl.dot(a, a, acc, out_dtype=tl.float16)  # planted: NPU572 info
    tl.store(o + at, acc)


@triton.jit
def dot_to_half(x, o, OUT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + at)
    tl.store(o + at, tl.dot(a, a, out_dtype=OUT))  # planted: NPU572 info


@triton.jit
def dot_in_tf32(x, o, TF32: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + at)
    tl.store(o + at, tl.dot(a, a, allow_tf32=TF32))  # planted: NPU572 error


@triton.jit
def dot_by_name(x, o, PRECISION: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + at)
    tl.store(o + at, tl.dot(a, a, input_precision=PRECISION))  # planted: NPU572 error


@triton.jit
def sort_whole(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.sort(tl.load(x + at)))  # planted: NPU573 error


@triton.jit
def sort_long(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    long = tl.load(x + at).to(tl.int64)
    tl.store(o + at, tl.sort(long, descending=True).to(tl.int32))  # planted: NPU573 error


@triton.jit
def in_double(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    exact = tl.load(x + at).to(tl.float64)  # planted: NPU573 error
    tl.store(o + at, (exact * exact).to(tl.float32))


@triton.jit
def unsigned(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    bits = tl.cast(tl.load(x + at), tl.uint32)
    tl.store(o + at, (bits < 3).to(tl.int32))  # planted: NPU573 error


@triton.jit
def unsigned_zeros(o, BLOCK: tl.constexpr):
    zeros = tl.zeros((BLOCK,), tl.uint32)
    tl.store(o + tl.arange(0, BLOCK), zeros.to(tl.int32))


@triton.jit
def shifted_bytes(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    byte = tl.load(x + at).to(tl.uint8)
    tl.store(o + at, (byte << 1).to(tl.int32))


@triton.jit
def compared_bytes(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    byte = tl.load(x + at).to(tl.uint8)
    tl.store(o + at, tl.where(byte == 3, 1, 0))


@triton.jit
def sum_of_large(x, y, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    first = tl.load(x + at)
    second = tl.load(y + at)  # planted: NPU574 error
    tl.store(o + at, first + second)


@triton.jit
def many_at_once(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.exp(a)
    c = tl.sqrt(a)
    d = tl.sin(a)  # planted: NPU574 error
    tl.store(o + at, a * b + c * d)


@triton.jit
def row(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(o + at, values / tl.sum(values, 0), mask=at < n)


@triton.jit
def scores(x, o, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    a = tl.load(x + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    b = tl.load(x + tl.arange(0, K)[:, None] + tl.arange(0, N)[None, :] * K)
    scored = tl.dot(a, b)  # planted: NPU574 error
    tl.store(o + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], scored * 2.0)


@triton.jit
def read_beyond(x, o, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at)  # planted: NPU796 error
    tl.store(o + at, values)


@triton.jit
def write_beyond(x, o, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(o + at, values)  # planted: NPU796 error


@triton.jit
def wrong_bound(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at <= n, other=0.0)  # planted: NPU796 error
    tl.store(o + at, values, mask=at < n)


@triton.jit
def before_the_start(x, o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    left = tl.load(x + at - 1, mask=at < n)  # planted: NPU796 error
    tl.store(o + at, left, mask=at < n)


@triton.jit
def unchecked_block(x, o, M, N, BLOCK: tl.constexpr):
    block = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (BLOCK, BLOCK), (1, 0))
    values = tl.load(block, boundary_check=(1,))  # planted: NPU796 error
    tl.store(o + tl.arange(0, BLOCK), tl.sum(values, 1))


@triton.jit
def wrong_stride(x, o, stride, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at * stride)  # planted: NPU796 error
    tl.store(o + at, values)


@triton.jit
def counted_beyond(x, o, BLOCK: tl.constexpr):
    which = tl.load(x + tl.arange(0, BLOCK))
    tl.atomic_add(o + which, 1.0)  # planted: NPU796 error


@triton.jit
def of_no_library(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, libdevice.tanh(tl.load(x + at)))  # planted: NPU563 error


@triton.jit
def assembly(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at)
    values = tl.inline_asm_elementwise(  # planted: NPU564 error
        "ex2.approx.ftz.f32 $0, $1;", "=f, f", [values], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(o + at, values)


@triton.jit
def narrow_rows(x, o, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(o + at, tl.load(x + at))  # planted: NPU575 info


@triton.jit
def shifted_by_tile(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at) << (at % 8))  # planted: NPU579 info


@triton.jit
def blocks_of(o, n, BLOCK: tl.constexpr):
    tl.store(o, tl.cdiv(n, BLOCK))  # planted: NPU573 warning


@triton.jit
def thirds(x, o, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, tl.load(x + at) // 3)  # planted: NPU573 warning


@triton.jit
def nothing(o, BLOCK: tl.constexpr):
    tl.store(o + tl.program_id(0) * 0, 1.0)


def made(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype, device="npu")


def cases():
    floats, whole = made(64), made(64, dtype=torch.int32)
    square, halves = made(16, 16), made(16, 16, dtype=torch.float16)
    large = made(65536)
    yield lambda: nothing[(65536,)](floats, BLOCK=1)  # planted: NPU560 error
    yield lambda: nothing[(300, 4, 64)](floats, BLOCK=1)  # planted: NPU560 error
    yield lambda: load_only[(1,)](made(64, dtype=torch.float64), floats, BLOCK=64)
    yield lambda: load_bytes[(1,)](made(64, dtype=torch.uint8), whole, BLOCK=64)
    yield lambda: load_words[(1,)](made(1, dtype=torch.uint32), whole, BLOCK=64)
    yield lambda: store_double[(1,)](made(64, dtype=torch.float64), BLOCK=64)
    yield lambda: store_short[(1,)](made(1, dtype=torch.uint16), BLOCK=1)
    yield lambda: block_of_doubles[(1,)](made(64, dtype=torch.float64), floats, BLOCK=64)
    yield lambda: count[(2,)](made(64, dtype=torch.int64), BLOCK=64)
    yield lambda: add_up[(1,)](made(1, dtype=torch.float64), floats, BLOCK=64)
    yield lambda: largest[(1,)](made(1, dtype=torch.uint32), BLOCK=1)
    yield lambda: least[(1,)](made(1, dtype=torch.int64), BLOCK=1)
    yield lambda: swap[(1,)](made(1, dtype=torch.float64), BLOCK=1)
    yield lambda: compare_and_swap[(1,)](made(1, dtype=torch.bfloat16), BLOCK=1)
    yield lambda: relaxed[(1,)](floats, "relaxed")
    yield lambda: scoped[(1,)](floats, "sys")
    yield lambda: dot_of_bytes[(1,)](made(32, 32, dtype=torch.int8), made(32, 32, dtype=torch.int32), BLOCK=32)
    yield lambda: dot_in_half[(1,)](halves, halves, BLOCK=16)
    yield lambda: dot_to_half[(1,)](halves, halves, tl.float16, BLOCK=16)
    yield lambda: dot_in_tf32[(1,)](square, square, True, BLOCK=16)
    yield lambda: dot_by_name[(1,)](square, square, "tf32x3", BLOCK=16)
    yield lambda: sort_whole[(1,)](whole, whole, BLOCK=64)
    yield lambda: sort_long[(1,)](whole, whole, BLOCK=64)
    yield lambda: in_double[(1,)](floats, floats, BLOCK=64)
    yield lambda: unsigned[(1,)](whole, whole, BLOCK=64)
    yield lambda: unsigned_zeros[(1,)](whole, BLOCK=64)
    yield lambda: shifted_bytes[(1,)](whole, whole, BLOCK=64)
    yield lambda: compared_bytes[(1,)](whole, whole, BLOCK=64)
    yield lambda: sum_of_large[(1,)](large, large, large, BLOCK=32768)
    yield lambda: many_at_once[(1,)](large, large, BLOCK=16384)
    yield lambda: row[(1,)](large, large, 30000, BLOCK=32768)
    yield lambda: scores[(1,)](made(512, 32), made(512, 256), M=512, N=256, K=32)
    yield lambda: read_beyond[(4,)](made(1000), made(1024), BLOCK=256)
    yield lambda: write_beyond[(4,)](made(1000), made(1000), 1000, BLOCK=256)
    yield lambda: wrong_bound[(1,)](made(100), made(100), 100, BLOCK=128)
    yield lambda: before_the_start[(1,)](floats, floats, 64, BLOCK=64)
    yield lambda: unchecked_block[(1,)](made(10, 10), floats, 10, 10, BLOCK=16)
    yield lambda: wrong_stride[(1,)](floats[::2], floats, floats[::2].stride(0) + 1, BLOCK=32)
    yield lambda: counted_beyond[(1,)](made(64, dtype=torch.int32) * 70, floats, BLOCK=64)
    yield lambda: of_no_library[(1,)](floats, floats, BLOCK=64)
    yield lambda: assembly[(1,)](floats, floats, BLOCK=64)
    yield lambda: narrow_rows[(1,)](made(16, 2), made(16, 2), M=16, N=2)
    yield lambda: shifted_by_tile[(1,)](whole, whole, BLOCK=64)
    yield lambda: blocks_of[(1,)](whole, 20_000_000, BLOCK=64)
    yield lambda: thirds[(1,)](made(64, dtype=torch.int32) * 20_000_000, whole, BLOCK=64)
    yield lambda: copy[(62,)](made(980), made(980), 980, BLOCK=16)  # planted: NPU568 info
    yield lambda: nothing[(4, 4)](floats, BLOCK=1)  # planted: NPU568 info
    yield lambda: copy[(1,)](floats, floats, 64, BLOCK=64, num_warps=8)  # planted: NPU561 info
    yield lambda: nothing[(70000,)](torch.ones(1), BLOCK=1)  # planted: NPU560 error


print(torch_npu.__name__, sum(1 for _ in cases()))
for case in cases():
    try:
        case()
    except Refused as error:
        assert "[NPU" in str(error) and "triton_limits.py" in str(error), error
    except Exception as error:  # on a card that is not known to refuse a type, Triton may
        print(error)
row[(1,)](made(65536), made(65536), 30000, BLOCK=32768, multibuffer=False)
os.environ["TRITON_ALL_BLOCKS_PARALLEL"] = "1"
former = launch.run_in(lambda grid: [(0, 0, 0)])
nothing[(65536,)](made(1), BLOCK=1)  # planted: NPU568 info
launch.run_in(former)
try:
    copy[(1,)](torch.ones(4), made(4), 4, BLOCK=4)
except ValueError as error:
    print(error)
try:
    from triton.language.extra.cuda import libdevice as of_cuda
except ImportError as error:
    print(error)
else:
    print(of_cuda)
