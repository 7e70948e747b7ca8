"""What kernels in Triton ask of a GPU alone (NPU564, NPU565, NPU567, NPU569), and loops that are written out (NPU566)."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate

HEAD = "import triton\nimport triton.language as tl\n"


def kernel(body: str, parameters: str = "", above: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}\n\n{above}@triton.jit\ndef kernel(x, out, n, {parameters}B: tl.constexpr):\n{lines}"


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("NPU564", "y = tl.inline_asm_elementwise('add', '=r,r', [x], dtype=tl.int32, is_pure=True, pack=1)"),
        ("NPU564", "t = tl.extra.cuda.globaltimer()"),
        ("NPU565", "d = tl.make_tensor_descriptor(x, [n], [1], [B])\nd = tl.make_tensor_descriptor(x, [n], [1], [B])"),
        ("NPU569", "if out is not None and tl.program_id(0) < n:\n    tl.store(out, 1)"),
        ("NPU569", "i = tl.program_id(0)\nif i < n and (not out is None):\n    tl.store(out, 1)"),
    ],
)
def test_reported(code: str, body: str) -> None:
    check_noop(kernel(body), open_codes=["NPU512", code])


@pytest.mark.parametrize(
    "body",
    [
        "if out is not None:\n    if tl.program_id(0) < n:\n        tl.store(out, 1)",
        "if out is not None and B > 4:\n    tl.store(out, 1)",  # both are known when it is compiled
        "if out is not None and tl.program_id(0) < n:\n    tl.store(x, 1)",
        "if tl.program_id(0) < n and n > 4:\n    tl.store(out, 1)",
    ],
)
def test_other_conditions_are_not(body: str) -> None:
    check_noop(kernel(body), open_codes=["NPU512"])


def test_a_constexpr_that_says_whether_a_pointer_is_there() -> None:
    above = "@triton.heuristics({'HAS': lambda args: args['out'] is not None})\n"
    body = "if HAS and tl.program_id(0) < n:\n    tl.store(out, 1)"
    check_noop(kernel(body, "HAS: tl.constexpr, ", above), open_codes=["NPU512", "NPU569"])
    check_noop(kernel(body, "HAS: tl.constexpr, "), open_codes=["NPU512"])


def test_descriptors_that_a_host_makes() -> None:
    source = "from triton.tools.tensor_descriptor import TensorDescriptor\n\nd = TensorDescriptor.from_tensor(x, [4])\n"
    check_noop(source, open_codes=["NPU512", "NPU565"])
    check_noop("import triton\nfrom mine import TensorDescriptor\n\nd = TensorDescriptor(x)\n", open_codes=["NPU512"])


@pytest.mark.parametrize(
    ("strides", "order", "reported"),
    [
        ("(1, B)", "(1, 0)", True),
        ("(B, 1)", "(0, 1)", True),
        ("(1, B)", "(0, 1)", False),
        ("(B, 1)", "(1, 0)", False),
        ("(n, B)", "(0, 1)", False),
        ("(1,)", "(0,)", False),
        ("(B, 1)", "(B, 0)", False),
    ],
)
def test_the_order_of_a_block_pointer(strides: str, order: str, reported: bool) -> None:
    call = f"p = tl.make_block_ptr(x, (n, n), {strides}, (0, 0), (B, B), {order})"
    codes = {each.code for each in migrate(kernel(call)).findings}
    assert ("NPU565" in codes) is reported


def tuned(more: str, values: str = "'B': 64") -> str:
    return kernel("pass", above=f"@triton.autotune(configs=[triton.Config({{{values}}})], key=['n']{more})\n")


@pytest.mark.parametrize(
    "more", [", use_cuda_graph=True", ", cache_results=True", ", use_cuda_graph=True, cache_results=x"]
)
def test_how_an_autotuner_measures_goes(more: str) -> None:
    check_rewrite(tuned(more), tuned(""), codes_applied=["NPU567"], open_codes=["NPU512"])


@pytest.mark.parametrize("more", ["", ", warmup=10", ", reset_to_zero=['out']", ", **more"])
def test_what_else_it_is_told_stays(more: str) -> None:
    check_noop(tuned(more), open_codes=["NPU512"])


def test_options_of_other_cards() -> None:
    check_noop(tuned("", "'B': 64, 'waves_per_eu': 2"), open_codes=["NPU512", "NPU567"])
    check_noop(tuned("", "'B': 64, 'multibuffer': True"), open_codes=["NPU512"])


def test_very_many_configurations_are_a_remark() -> None:
    many = ", ".join(f"triton.Config({{'B': {16 * (index + 1)}}})" for index in range(17))
    source = kernel("pass", above=f"@triton.autotune(configs=[{many}], key=['n'])\n")
    check_noop(source, open_codes=["NPU512", "NPU567"])


LOOP = "row = tl.program_id(0) * n\nfor k in tl.static_range(0, N, B):\n"


@pytest.mark.parametrize(
    "inside",
    [
        "    i = k + tl.arange(0, B)\n    tl.store(out + row + i, 2 * tl.load(x + row + i, mask=i < n), mask=i < n)",
        "    tl.store(out + k * n, tl.load(x + k * n))",
        "    v = tl.load(x + k).to(tl.float32)\n    tl.store(out + k, v)",
    ],
)
def test_a_loop_whose_turns_stand_alone_is_no_longer_written_out(inside: str) -> None:
    before = kernel(LOOP + inside, "N: tl.constexpr, ")
    check_rewrite(before, before.replace("static_range", "range"), codes_applied=["NPU566"], open_codes=["NPU512"])


@pytest.mark.parametrize(
    "inside",
    [
        "    row += k",  # carried into the next turn
        "    row = tl.load(x + row)",
        "    v = tl.load(x + k)\n    tl.store(out, helper(v, k))",  # another function may take it as a constexpr
        "    tl.store(out + k * N, 1)",  # a product of constexprs may be larger than int32
        "    tl.store(out + tl.arange(0, k), 1)",
        "    if k > 4:\n        tl.store(out, 1)",
        "    v = tl.load(x + k)\ntl.store(out, v)",  # read behind the loop
        "    tl.store(out + k // 2, 1)",
        "    v = sizes[k]\n    tl.store(out, v)",
        "    tl.static_assert(k < N)",
        "    for j in tl.range(0, k):\n        tl.store(out + j, 1)",
    ],
)
def test_other_loops_stay(inside: str) -> None:
    check_noop(kernel(LOOP + inside, "N: tl.constexpr, "), open_codes=["NPU512"])


def test_a_range_of_somebody_else_stays() -> None:
    source = "import triton\nfrom mine import tl\n\nfor k in tl.static_range(4):\n    print(k)\n"
    check_noop(source, open_codes=["NPU512"])
