"""Kernels in Triton whose programs go through their blocks in a loop."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.harness import migrate
from transplt.base.finding import FileResult

HEAD = """\
import torch
import triton
import triton.language as tl
"""
HEADED = """\
import torch
import triton
import triton.language as tl

import npu_port
"""


def tuned(source: str, **more: Any) -> FileResult:
    return migrate(source, tune=(("triton", ""),), **more)


def pair(before: str, after: str) -> None:
    """A file with imports above, which gets that of the port's functions; a second run leaves it."""
    expected = HEADED + textwrap.dedent(after)
    assert tuned(HEAD + textwrap.dedent(before), helper_file=True).data.decode() == expected
    assert tuned(expected, helper_file=True).data.decode() == expected


def stays(source: str, why: str) -> None:
    """A file that stays, with the reason of its kernel; none where nothing is to be gained."""
    result = tuned(HEAD + textwrap.dedent(source), helper_file=True)
    assert result.data.decode() == HEAD + textwrap.dedent(source)
    messages = [each.message for each in result.findings if each.code == "NPU774"]
    assert [why in each for each in messages] == ([True] if why else [])


def test_the_blocks_are_counted_in_the_kernel() -> None:
    pair(
        '''

        @triton.jit
        def add_kernel(
            x_ptr,
            y_ptr,
            out_ptr,
            n,
            BLOCK: tl.constexpr,
        ):
            """Adds."""
            pid = tl.program_id(axis=0)  # one dimension
            offsets = pid * BLOCK + tl.arange(0, BLOCK)

            # the last block is not full
            mask = offsets < n
            x = tl.load(x_ptr + offsets, mask=mask)
            tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


        def add(x, y):
            out = torch.empty_like(x)
            n = out.numel()
            grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
            add_kernel[grid](x, y, out, n, BLOCK=1024)
            return out
        ''',
        '''

        @triton.jit
        def add_kernel(
            x_ptr,
            y_ptr,
            out_ptr,
            n,
            BLOCK: tl.constexpr,
        ):
            """Adds."""
            for block in range(tl.program_id(0), (n + BLOCK - 1) // BLOCK, tl.num_programs(0)):
                pid = block  # one dimension
                offsets = pid * BLOCK + tl.arange(0, BLOCK)

                # the last block is not full
                mask = offsets < n
                x = tl.load(x_ptr + offsets, mask=mask)
                tl.store(out_ptr + offsets, x + tl.load(y_ptr + offsets, mask=mask), mask=mask)


        def add(x, y):
            out = torch.empty_like(x)
            n = out.numel()
            grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
            add_kernel[npu_port.vector_grid(grid)](x, y, out, n, BLOCK=1024)
            return out
        ''',
    )


def test_rows_get_their_number_as_an_argument_and_pointers_begin_anew() -> None:
    pair(
        """

        @triton.jit
        def double(x, y, stride, n, BLOCK: tl.constexpr):
            row = tl.program_id(0).to(tl.int64)
            x += row * stride
            y = y + row * stride
            cols = tl.arange(0, BLOCK)
            tl.store(y + cols, tl.load(x + cols, mask=cols < n) * 2, mask=cols < n)


        def doubled(x):
            y = torch.empty_like(x)
            grid = (x.shape[0],)
            double[grid](x, y, x.stride(0), x.shape[1], BLOCK=512)
            return y
        """,
        """

        @triton.jit
        def double(x, y, stride, n, BLOCK: tl.constexpr, blocks):
            for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
                row = tl.cast(block, tl.int64)
                x_block = x + row * stride
                y_block = y + row * stride
                cols = tl.arange(0, BLOCK)
                tl.store(y_block + cols, tl.load(x_block + cols, mask=cols < n) * 2, mask=cols < n)


        def doubled(x):
            y = torch.empty_like(x)
            grid = (x.shape[0],)
            double[npu_port.vector_grid(grid)](x, y, x.stride(0), x.shape[1], BLOCK=512, blocks=grid[0])
            return y
        """,
    )


def test_two_dimensions_become_one_and_products_count_cube_cores() -> None:
    pair(
        """

        @triton.autotune(configs=[triton.Config({"BM": 16, "BN": 16})], key=["M", "N"])
        @triton.jit
        def outer(a, b, c, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
            k = tl.arange(0, K)
            i, j = tl.program_id(0), tl.program_id(1)
            m = i * BM + tl.arange(0, BM)
            n = j * BN + tl.arange(0, BN)
            x = tl.load(a + m[:, None] * K + k[None, :], mask=m[:, None] < M)
            y = tl.load(b + k[:, None] * N + n[None, :], mask=n[None, :] < N)
            tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y), mask=(m[:, None] < M) & (n[None, :] < N))


        def product(a, b, c):
            M, N = c.shape

            def grid(meta):
                return triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"])

            outer[grid](a, b, c, M, N, K=16)
        """,
        """

        @triton.autotune(configs=[triton.Config({"BM": 16, "BN": 16})], key=["M", "N"])
        @triton.jit
        def outer(a, b, c, M, N, K: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
            k = tl.arange(0, K)
            blocks_0 = (M + BM - 1) // BM
            blocks_1 = (N + BN - 1) // BN
            for block in range(tl.program_id(0), blocks_0 * blocks_1, tl.num_programs(0)):
                i, j = block % blocks_0, block // blocks_0
                m = i * BM + tl.arange(0, BM)
                n = j * BN + tl.arange(0, BN)
                x = tl.load(a + m[:, None] * K + k[None, :], mask=m[:, None] < M)
                y = tl.load(b + k[:, None] * N + n[None, :], mask=n[None, :] < N)
                tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y), mask=(m[:, None] < M) & (n[None, :] < N))


        def product(a, b, c):
            M, N = c.shape

            def grid(meta):
                return triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"])

            outer[npu_port.cube_grid(grid)](a, b, c, M, N, K=16)
        """,
    )


def test_three_dimensions_and_a_parameter_with_a_default() -> None:
    pair(
        """

        @triton.jit
        def fill(
            x,
            M,
            N,
            SIZE: tl.constexpr = 16,
        ):
            base = tl.program_id(2) * M * N + tl.program_id(1) * N + tl.program_id(0)
            tl.store(x + base, 1.0)


        def filled(B, M, N):
            x = torch.empty(B, M, N)
            fill[(N, M, B)](x, M, N)
            return x
        """,
        """

        @triton.jit
        def fill(
            x,
            M,
            N,
            SIZE: tl.constexpr = 16,
            blocks_2=0,
        ):
            for block in range(tl.program_id(0), N * M * blocks_2, tl.num_programs(0)):
                base = (block // (N * M)) * M * N + (block // N % M) * N + (block % N)
                tl.store(x + base, 1.0)


        def filled(B, M, N):
            x = torch.empty(B, M, N)
            fill[npu_port.vector_grid((N, M, B))](x, M, N, blocks_2=B)
            return x
        """,
    )


def test_early_returns() -> None:
    pair(
        """

        @triton.jit
        def keep(x, skip, mask, n, BLOCK: tl.constexpr):
            row = tl.program_id(0)
            if tl.load(skip + row) == 1:
                return

            # this row counts
            if mask is not None:
                mask += row
                if tl.load(mask) == 0:
                    tl.store(x + row * n, 0.0)
                    return
            cols = tl.arange(0, BLOCK)
            tl.store(x + row * n + cols, 1.0, mask=cols < n)


        def kept(x, skip, mask):
            rows, n = x.shape
            keep[(rows,)](x, skip, mask, n, BLOCK=64)
        """,
        """

        @triton.jit
        def keep(x, skip, mask, n, BLOCK: tl.constexpr, blocks):
            for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
                goes_on = 1
                row = block
                if tl.load(skip + row) == 1:
                    pass

                # this row counts
                else:
                    if mask is not None:
                        mask_block = mask + row
                        if tl.load(mask_block) == 0:
                            tl.store(x + row * n, 0.0)
                            goes_on = 0
                    if goes_on == 1:
                        cols = tl.arange(0, BLOCK)
                        tl.store(x + row * n + cols, 1.0, mask=cols < n)


        def kept(x, skip, mask):
            rows, n = x.shape
            keep[npu_port.vector_grid((rows,))](x, skip, mask, n, BLOCK=64, blocks=rows)
        """,
    )


def test_a_pointer_that_a_loop_moves_on_begins_with_a_copy() -> None:
    pair(
        """

        @triton.jit
        def last(x, y, n, BLOCK: tl.constexpr):
            row = tl.program_id(0)
            for i in range(0, n, BLOCK):
                x += BLOCK
            tl.store(y + row, tl.load(x + row))


        def lasts(x, y, rows):
            last[(rows,)](x, y, x.numel(), 16)
            for _ in range(3):
                last[(2 * rows,)](x, y, x.numel(), 16)
        """,
        """

        @triton.jit
        def last(x, y, n, BLOCK: tl.constexpr, blocks):
            for block in range(tl.program_id(0), blocks, tl.num_programs(0)):
                x_block = x
                row = block
                for i in range(0, n, BLOCK):
                    x_block += BLOCK
                tl.store(y + row, tl.load(x_block + row))


        def lasts(x, y, rows):
            last[npu_port.vector_grid((rows,))](x, y, x.numel(), 16, blocks=rows)
            for _ in range(3):
                last[npu_port.vector_grid((2 * rows,))](x, y, x.numel(), 16, blocks=2 * rows)
        """,
    )


def test_two_grids_of_one_name() -> None:
    source = """

        @triton.jit
        def one(x):
            tl.store(x + tl.program_id(0), 1.0)


        @triton.jit
        def two(x):
            tl.store(x + tl.program_id(0), 2.0)


        def both(x, n):
            grid = (n,)
            one[grid](x)
            grid = (n * n,)
            two[grid](x)
        """
    after = source.replace("one(x):", "one(x, blocks):").replace("two(x):", "two(x, blocks):")
    for name in ("one", "two"):
        after = after.replace(f"{name}[grid](x)", f"{name}[npu_port.vector_grid(grid)](x, blocks=grid[0])")
    for number in ("1.0", "2.0"):
        line = f"            tl.store(x + tl.program_id(0), {number})"
        loop = "            for block in range(tl.program_id(0), blocks, tl.num_programs(0)):\n"
        after = after.replace(line, f"{loop}                tl.store(x + block, {number})")
    pair(source, after)


KERNEL = """

    @triton.jit
    def kernel(x, y, n, BLOCK: tl.constexpr):
        pid = tl.program_id(0)
        offs = pid * BLOCK + tl.arange(0, BLOCK)
        {body}


    def run(x, y, n):
        {launch}
    """
STORE = "tl.store(y + offs, tl.load(x + offs, mask=offs < n), mask=offs < n)"
LAUNCH = "kernel[(triton.cdiv(n, 64),)](x, y, n, 64)"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("at = tl.atomic_add(y, 1)\n        tl.store(x + at, 1.0)", "depends on the result of tl.atomic_add"),
        ("while tl.atomic_cas(y, 0, 1) == 1:\n            pass\n        tl.store(x + offs, 1.0)", "(tl.atomic_cas)"),
        ("tl.atomic_xchg(y, 0)", "take turns"),
        ("while tl.load(y + pid) == 0:\n            pass\n        tl.store(x + offs, 1.0)", "wait for each other"),
        ("while n == 0:\n            n = tl.load(y)\n        tl.store(x + pid, 1.0)", "wait for each other in a loop"),
        ("tl.store(x + pid, tl.num_programs(0))", "already uses the number of its programs"),
        ("tl.store(x + offs, tl.load(x + offs + BLOCK))", "may read what others write to x"),
        ("tl.store(x, tl.load(x) + 1)", "may read what others write to x"),
        ("tl.atomic_add(x + offs, tl.load(x + pid))", "programs read x, to which others add"),
        ("p = tl.load(x + pid).to(tl.pointer_type(tl.float32))\n        tl.store(p, tl.load(y))", "cannot be traced"),
        ("BLOCK = 2\n        tl.store(x + pid, BLOCK)", "changes a constexpr"),
        ("if n == 0:\n            offs = pid\n            return\n        tl.store(x + offs, n)", "around a return"),
        ("for i in range(n):\n            return\n        tl.store(x + offs, n)", "inside a statement"),
        ("tl.store(x + offs, other(n))", "it calls other, which was not found"),
        ("tl.store(x + offs, tl.inline_asm_elementwise('bar', '=r', [n], tl.int32, False, 1))", "waits for"),
    ],
)  # fmt: skip
def test_programs_that_do_not_stand_for_themselves(body: str, why: str) -> None:
    stays(KERNEL.format(body=body, launch=LAUNCH), why)


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        ("return kernel", "uses it without launching it"),
        ("other(kernel)\n        " + LAUNCH, "uses it without launching it"),
        ("kernel[grid_of(n)](x, y, n, 64)", "grid of a launch was not found"),
        ("grid = (n,)\n        if n:\n            grid = (2, n)\n        kernel[grid](x, y, n, 64)", "grid of a"),
        ("kernel[(n,)](x, y, n, 64)\n        kernel[(n, 2)](x, y, n, 64)", "grid of a launch was not found"),
        ("kernel[(next(x),)](x, y, n, 64)", "neither the kernel nor its launch"),
        ("kernel[lambda meta: (n // meta['SIZE'],)](x, y, n, 64)", "neither the kernel nor its launch"),
        ("kernel[(n,)](y, y, n, 64)", ""),
        ("more = dict(x)\n        kernel[lambda meta: (n // meta['BLOCK'],)](x, y, n, 64)", ""),
        ("pass", "no launch of it was found"),
    ],
)  # fmt: skip
def test_launches_that_are_not_known(launch: str, why: str) -> None:
    source = KERNEL.format(body=STORE, launch=launch)
    if why:
        stays(source, why)
    else:  # the same tensor, but each program reads what it writes itself
        assert b"vector_grid" in tuned(HEAD + textwrap.dedent(source)).data


@pytest.mark.parametrize(
    "launch",
    [
        "kernel[(1,)](x, y, n, 64)",
        "kernel[(2, 4)](x, y, n, 64)",
        "cores = torch.npu.get_device_properties(0).vector_core_num\n        kernel[(cores,)](x, y, n, 64)",
        "NUM_SMS = 48\n        kernel[(NUM_SMS,)](x, y, n, 64)",
    ],
)
def test_nothing_is_gained(launch: str) -> None:
    stays(KERNEL.format(body=STORE, launch=launch), "")


def test_a_helper_that_asks_for_the_program_and_a_comment_that_keeps_it() -> None:
    helper = "\n\n@triton.jit\ndef first(x):\n    return x + tl.program_id(0)\n"
    source = textwrap.dedent(KERNEL.format(body="tl.store(first(y), tl.load(x + offs))", launch=LAUNCH))
    stays(helper + source, "first, which it calls, uses")
    kept = KERNEL.format(body=STORE, launch=f"{LAUNCH}  # transplt: ignore[NPU774]")
    assert b"for block" not in tuned(HEAD + textwrap.dedent(kept)).data


def test_a_kernel_that_another_file_takes() -> None:
    source = HEAD + textwrap.dedent(KERNEL.format(body=STORE, launch=LAUNCH))
    other = "from train import kernel\n\n\ndef run(x, y, n):\n    kernel[(n,)](x, y, n, 1)\n"
    same = "def kernel(x):\n    return x\n"
    result = tuned(source, files={"other.py": other})
    assert any("other.py uses it too" in each.message for each in result.findings)
    assert b"for block" not in result.data
    assert b"for block" in tuned(source, files={"other.py": same}).data


@pytest.mark.parametrize(
    ("launch", "size"),
    [
        ("kernel[lambda meta: (n // meta['BLOCK'],)](x, y, n, **more)", "n // BLOCK"),
        ("grid = (n,)\n        n = n + 1\n        kernel[grid](x, y, n, 64)", "blocks"),
        ("grid = (more.n,)\n        more.n = 3\n        kernel[grid](x, y, more.n, 64)", "blocks"),
        ("grid = (more.n,)\n        kernel[grid](x, y, more.n, 64)", "n"),
        ("kernel[(triton.cdiv(n, 64), )](x, y, n, 64)", "(n + BLOCK - 1) // BLOCK"),
        ("kernel[(triton.cdiv(n, 64), )](x, y, n, BLOCK=128)", "blocks"),
    ],
)
def test_what_the_kernel_knows_of_its_grid(launch: str, size: str) -> None:
    source = KERNEL.format(body=STORE, launch=launch).replace("run(x, y, n)", "run(x, y, n, more)")
    text = tuned(HEAD + textwrap.dedent(source)).data.decode()
    assert f"in range(tl.program_id(0), {size}, tl.num_programs(0)):" in text


def test_views_of_one_tensor() -> None:
    shifted = "tl.store(y + offs, tl.load(x + offs + 1, mask=offs < n), mask=offs < n)"
    stays(KERNEL.format(body=shifted, launch="kernel[(n,)](x, x[4:].view(-1), n, 64)"), "may read what others write")
    source = KERNEL.format(body=shifted, launch="kernel[(n,)](x, y[4:].view(-1), n, 64)")
    assert b"for block" in tuned(HEAD + textwrap.dedent(source)).data


LAUNCHED = """

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def run(x):
    n = x.numel()
    double[(triton.cdiv(n, 1024),)](x, n, BLOCK=1024)
"""


def grids(result: FileResult) -> list[str]:
    return [each.code for each in result.findings if each.code in ("NPU560", "NPU568")]


def test_a_grid_that_was_cut_to_the_cores_is_no_finding() -> None:
    assert grids(migrate(HEAD + LAUNCHED)) == ["NPU560"]
    assert grids(tuned(HEAD + LAUNCHED, helper_file=True)) == []


def test_a_grid_that_stays_is_one() -> None:
    """Not every launch is seen: nothing is written."""
    rest = "\n\ndef other(kernel=double):\n    return kernel\n"
    assert grids(tuned(HEAD + LAUNCHED + rest, helper_file=True)) == ["NPU560"]


def test_a_kernel_beside_it_stays_one() -> None:
    both = LAUNCHED + LAUNCHED.replace("double", "twice").replace("def run", "def again")
    handed = "\n\ndef other(kernel=twice):\n    return kernel\n"
    found = tuned(HEAD + both + handed, helper_file=True).findings
    assert ["twice" in each.message for each in found if each.code == "NPU560"] == [True]
