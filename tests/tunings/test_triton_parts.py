"""Blocks of Triton kernels that are too large for a core, gone through in parts."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate
from tests.tunings.test_triton import HEAD
from transplt.base.finding import FileResult

KERNEL = """

    @triton.jit
    def kernel(x, y, n, BLOCK: tl.constexpr):
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offs < n
        a = tl.load(x + offs, mask=mask).to(tl.float32)
        {body}


    def run(x, y, n):
        x = x.float()
        kernel[(2,)](x, y, n, BLOCK={block})
    """
STORE = "tl.store(y + offs, a * tl.sigmoid(a) + tl.exp(a), mask=mask)"


def tuned(body: str, block: str = "131072") -> tuple[str, FileResult]:
    source = HEAD + textwrap.dedent(KERNEL.format(body=body, block=block))
    return source, migrate(source, tune=(("triton", ""),), helper_file=True)


def test_each_element_is_computed_by_itself() -> None:
    source, result = tuned(STORE)
    after = source.replace(
        "    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n",
        "    BLOCK_SUB: tl.constexpr = BLOCK if BLOCK < 8192 else 8192\n"
        "    for sub in range(0, BLOCK, BLOCK_SUB):\n"
        "        offs = tl.program_id(0) * BLOCK + sub + tl.arange(0, BLOCK_SUB)\n",
    )
    for line in ("mask = offs", "a = tl.load", "tl.store"):
        after = after.replace(f"    {line}", f"        {line}")
    assert result.data.decode() == after
    again = migrate(after, tune=(("triton", ""),), helper_file=True)
    assert again.data.decode() == after


def test_both_loops_stand_in_each_other() -> None:
    source = HEAD + textwrap.dedent(KERNEL.format(body=STORE, block="131072").replace("(2,)", "(n,)"))
    text = migrate(source, tune=(("triton", ""),), helper_file=True).data.decode()
    assert "    for block in range(tl.program_id(0), n, tl.num_programs(0)):\n" in text
    assert "        for sub in range(0, BLOCK, BLOCK_SUB):\n            offs = block * BLOCK + sub + tl.arange" in text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("tl.store(y + tl.program_id(0), tl.sum(a * tl.exp(a)))", "tl.sum needs the whole block at once"),
        ("tl.store(y + offs, tl.cumsum(a * tl.exp(a), 0), mask=mask)", "tl.cumsum needs"),
        ("tl.store(y + offs, tl.sort(a * tl.exp(a)), mask=mask)", "tl.sort needs"),
        ("tl.store(y + offs, (a * tl.exp(a)).sum(), mask=mask)", "sum may need"),
        (f"{STORE}\n        tl.store(y, n)", "stores something other than its block"),
        ("for i in range(2):\n            " + STORE, "it has a loop"),
        (f"if n == 0:\n            return\n        {STORE}", "it returns early"),
        (f"b = tl.reshape(a, [BLOCK])\n        {STORE}", "tl.reshape needs"),
        (f"x = x + 1\n        {STORE}", "x is changed"),
        (f"b = a[None, :]\n        {STORE}", "changes the shape of its block"),
        ("tl.store(x + offs, tl.load(x + offs + 1) * tl.exp(a) * tl.sigmoid(a), mask=mask)", "what others write to x"),
        ("tl.atomic_add(y + offs, a * tl.sigmoid(a) + tl.exp(a))", "tl.atomic_add needs"),
    ],
)
def test_what_takes_a_block_together(body: str, why: str) -> None:
    source, result = tuned(body)
    assert result.data.decode() == source
    assert any(why in each.message for each in result.findings if each.code == "NPU775"), result.findings


@pytest.mark.parametrize("block", ["settings(n)", "min(65536, settings(n))"])
def test_a_block_of_which_nothing_is_known_goes_in_parts_that_rows_of_data_may_need(block: str) -> None:
    many = "tl.cos(a) * a + tl.exp(a)"
    _, result = tuned(f"tl.store(y + offs, {many}, mask=mask)", block)
    assert "    BLOCK_SUB: tl.constexpr = BLOCK if BLOCK < 4096 else 4096\n" in result.data.decode()
    _, result = tuned(STORE, block)  # 16,384 elements fit
    assert "BLOCK_SUB" not in result.data.decode()
    _, result = tuned(f"tl.store(y + tl.program_id(0), tl.sum({many}))", block)
    assert "BLOCK_SUB" not in result.data.decode()
    assert not [each for each in result.findings if each.code == "NPU775"]  # nobody says that it is so large


@pytest.mark.parametrize("block", ["1024", "n", "triton.next_power_of_2(n)"])
def test_blocks_that_fit_or_are_not_known_stay(block: str) -> None:
    source, result = tuned("tl.store(y + offs, a + 1, mask=mask)", block)
    assert result.data.decode() == source
    assert not [each for each in result.findings if each.code == "NPU775"]
