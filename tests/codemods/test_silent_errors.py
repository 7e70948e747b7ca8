"""Operators that are known to give wrong numbers without an error, as the check tells of them."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from transplt.base.finding import Level

HEAD = "import torch\nimport torch_npu\nimport triton\nimport triton.language as tl\n"


def told(code: str) -> list[tuple[int, str]]:
    """Lines and ids of what NPU736 says of a file."""
    from transplt.rules.silent_errors import silent_errors

    found = []
    for finding in migrate(HEAD + code).findings:
        if finding.code == "NPU736":
            assert finding.level is Level.INFO
            (row,) = [row for row in silent_errors() if row.wrong in finding.message]
            found.append((finding.span.line, row.id))
    return found


def kernel(*lines: str) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"@triton.jit\ndef kernel(x, y, z, n, o, MASK: tl.constexpr):\n{body}"


def ids(code: str) -> list[str]:
    return [row for _, row in told(code)]


@pytest.mark.parametrize(
    "lines",
    [
        ("a = tl.load(x)", "u = tl.dot(a, tl.load(y))", "w = tl.dot(a, tl.load(z))"),
        ("a = tl.load(x)", "u = tl.dot(a, tl.load(y))", "tl.store(z, u + a)"),
        ("a = tl.load(x)", "for i in range(n):", "    u = tl.dot(a, tl.load(y + i))", "    tl.store(z + i, u)"),
    ],
)
def test_the_left_operand_of_a_product_is_used_again(lines: tuple[str, ...]) -> None:
    assert ids(kernel(*lines)) == ["left-operand-of-dot"]


@pytest.mark.parametrize(
    "lines",
    [
        ("a = tl.load(x)", "u = tl.dot(a, tl.load(y))", "tl.store(z, u)"),
        ("a = tl.load(x)", "u = tl.dot(a, tl.load(y))", "a = tl.load(x)", "w = tl.dot(a, tl.load(z))"),
        ("for i in range(n):", "    a = tl.load(x + i)", "    u = tl.dot(a, tl.load(y))", "    tl.store(z + i, u)"),
        ("b = tl.load(x)", "u = tl.dot(tl.load(y), b)", "tl.store(z, u + b)"),
        ("a = tl.load(x)", "a = tl.dot(a, tl.load(y))", "tl.store(z, a)"),
        ("u = tl.dot(tl.load(x), tl.load(y))", "tl.store(z, u)"),
    ],
)
def test_it_is_not_used_again(lines: tuple[str, ...]) -> None:
    assert ids(kernel(*lines)) == []


@pytest.mark.parametrize(
    ("lines", "row"),
    [
        (("tl.store(x + o, 1.0)", "v = tl.load(x + o)", "tl.store(y, v)"), "load-after-a-store"),
        (("old = tl.atomic_add(x + o, 1)", "tl.store(y + old, 1)"), "value-of-an-atomic-add"),
        (("v = tl.load(x + o, mask=o < n)", "tl.store(y, tl.sum(v, axis=0))"), "load-without-other"),
        (("v = tl.load(x + o, o < n)", "tl.store(y, tl.max(v, 0))"), "load-without-other"),
        (("tl.store(y, tl.flip(tl.cumsum(tl.load(x), 0), 0))",), "flip-of-a-cumsum"),
        (("c = tl.cumsum(tl.load(x), 0)", "tl.store(y, tl.flip(c, 0))"), "flip-of-a-cumsum"),
        (("p = tl.make_block_ptr(x, (n, 60), (60, 1), (0, 0), (64, 64), (1, 0))",), "block-pointers-of-odd-widths"),
        (("tl.store(y, tl.extra.cann.libdevice.acos(tl.load(x)))",), "libdevice-acos"),
    ],
)
def test_forms_of_kernels(lines: tuple[str, ...], row: str) -> None:
    assert ids(kernel(*lines)) == [row]


@pytest.mark.parametrize(
    "lines",
    [
        ("tl.store(x + o, 1.0)", "v = tl.load(x + n)", "tl.store(y, v)"),
        ("v = tl.load(x + o)", "tl.store(x + o, v + 1)"),
        ("tl.store(x + o, 1.0)", "o += n", "v = tl.load(x + o)", "tl.store(y, v)"),
        ("tl.atomic_add(x + o, 1)",),
        ("v = tl.load(x + o, mask=o < n)", "tl.store(y + o, v, mask=o < n)"),
        ("v = tl.load(x + o, mask=o < n, other=0.0)", "tl.store(y, tl.sum(v, axis=0))"),
        ("v = tl.load(x + o)", "tl.store(y, tl.sum(v, axis=0))"),
        ("v = tl.load(x + o, mask=o < n, other=0.0)", "v = tl.where(o < n, v, 0.0) * 2", "tl.store(y, v)"),
        ("tl.store(y, tl.flip(tl.load(x), 0))",),
        ("tl.store(y, tl.cumsum(tl.load(x), 0))",),
        ("tl.store(y, tl.sum(tl.load(x), 0))", "tl.store(z, tl.cos(tl.load(x)))"),
    ],
)
def test_other_kernels(lines: tuple[str, ...]) -> None:
    assert ids(kernel(*lines)) == []


FIA = "out = torch_npu.npu_fused_infer_attention_score(q, k, v, num_heads=8"


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("pool = torch.nn.MaxPool2d(2, 2, return_indices=True)", ["indices-of-max-pool"]),
        ("y, i = torch.nn.functional.max_pool1d(x, 2, return_indices=True)", ["indices-of-max-pool"]),
        ("y, i = torch.nn.functional.adaptive_max_pool2d(x, 2, return_indices=True)", []),
        ("y, i = torch.nn.functional.max_pool3d(x, 2, return_indices=True)", []),
        ("def pool(x, return_indices):\n    return torch.nn.MaxPool2d(2, return_indices=return_indices)", []),
        ("y = torch.nn.functional.max_pool2d(x, 2, return_indices=False)", []),
        (f"{FIA}, atten_mask=m)", ["attention-mask-past-512"]),
        (f"{FIA}, atten_mask=m, sparse_mode=0)", ["attention-mask-past-512"]),
        (f"{FIA}, atten_mask=m, sparse_mode=2)", []),
        (f"{FIA}, atten_mask=m, sparse_mode=mode)", ["attention-mask-past-512"]),
        (f"{FIA})", []),
        (f"{FIA}, atten_mask=None)", []),
        (f"{FIA}, pse_shift=bias)", ["attention-bias-of-one-head"]),
        (f"{FIA}, input_layout='TND')", ["attention-without-mask-is-an-average"]),
        (f"{FIA}, input_layout='TND', sparse_mode=3)", []),
        (f"{FIA}, input_layout='TND', atten_mask=m, sparse_mode=3)", []),
        (f"{FIA}, input_layout='BSND')", []),
        (f"{FIA}, sparse_mode=3, pre_tokens=window, atten_mask=m)", ["sliding-window-with-sparse-mode-3"]),
        (f"{FIA}, sparse_mode=4, pre_tokens=window, atten_mask=m)", []),
        ("import flag_gems\nflag_gems.enable()", ["exponential-of-large-tensors", "linear-of-flag-gems"]),
        ("import flag_gems\nprint(flag_gems.__version__)", []),
        ("with torch.cuda.graph(g):\n    total += step(x)", ["augmented-assignment-in-a-graph"]),
        ("with torch.npu.graph(g):\n    total.add_(step(x))", []),
        ("total += 1\nwith torch.cuda.graph(g):\n    step(x)", []),
        ("y = torch.nn.functional.gelu(x)", []),
        ("y = torch_npu.npu_fusion_attention(q, k, v, 8, 'BSND', atten_mask=m)", []),
        ("s = triton.compiler.ASTSource(fn=f, signature={'o': '*fp32', 'v': 'fp16'})", ["half-precision-scalars"]),
        ("s = triton.compiler.ASTSource(fn=f, signature={'o': '*fp16', 'v': 'fp32'})", []),
    ],
)
def test_calls(code: str, rows: list[str]) -> None:
    assert ids(code + "\n") == rows


def test_a_row_is_told_once_for_a_file_with_the_other_lines() -> None:
    code = kernel("a = tl.atomic_add(x, 1)", "b = tl.atomic_add(y, a)", "tl.store(z, tl.atomic_add(y, b))")
    (finding,) = [each for each in migrate(HEAD + code).findings if each.code == "NPU736"]
    assert finding.span.line == 7
    assert finding.message.endswith("(also in lines 8, 9)")


def test_where_it_stands_and_what_to_do_are_in_the_help() -> None:
    (finding,) = [each for each in migrate(HEAD + f"{FIA}, pse_shift=bias)\n").findings if each.code == "NPU736"]
    assert finding.help == (
        "expand pse_shift over the heads: [1, N, 1, S] is right; "
        "https://github.com/vllm-project/vllm-ascend/issues/15503 (seen with torch_npu 2.10.0)"
    )
