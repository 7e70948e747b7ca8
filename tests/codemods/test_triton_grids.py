"""Grids of Triton's launches: larger than an NPU takes (NPU560), not made for its cores (NPU568)."""

from __future__ import annotations

import pytest

from tests.harness import migrate

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\nBLOCK = 1024\n\n"
KERNEL = "@triton.jit\ndef kernel(x, n, B: tl.constexpr = 64):\n    {}\n"
TUNED = "@triton.autotune(configs=[triton.Config({'B': 64}), triton.Config({'B': 128})], key=['n'])\n"


def said(launch: str, *, body: str = "pass", tuned: bool = False, before: str = "") -> list[tuple[str, str]]:
    kernel = f"{HEAD}{TUNED if tuned else ''}{KERNEL.format(body)}"
    source = f"{kernel}\n\ndef run(x, n, T, H, grid=None):\n{before}    {launch}\n"
    found = migrate(source).findings
    return [(each.code, each.message) for each in found if each.code in ("NPU560", "NPU568")]


@pytest.mark.parametrize(
    ("launch", "when"),
    [
        ("kernel[(70000,)](x, n)", "has 70,000 programs: an NPU allows at most 65,535"),
        ("kernel[(1024, 128)](x, n)", "has 131,072 programs"),
        ("kernel[(triton.cdiv(n, 1024),)](x, n)", "from n > 67,107,840 on"),
        ("kernel[(triton.cdiv(n, BLOCK),)](x, n, BLOCK)", "from n > 67,107,840 on"),
        ("kernel[(n // 1024,)](x, n)", "from n > 67,108,863 on"),
        ("kernel[((n + 1023) // 1024,)](x, n)", "from n > 67,107,840 on"),
        ("kernel[lambda meta: (triton.cdiv(n, meta['B']),)](x, n, B=2048)", "from n > 134,215,680 on"),
        ("kernel[lambda m: (triton.cdiv(n, m['B']),)](x, n, B=min(512, triton.next_power_of_2(n)))", "n > 33,553,920"),
        ("kernel[lambda meta: (triton.cdiv(n, meta['B']),)](x, n)", "from n > 4,194,240 on"),
        ("kernel[(triton.cdiv(n, 64), 4)](x, n)", "from n > 1,048,512 on"),
        ("kernel[(x.shape[0],)](x, n)", "from x.shape[0] > 65,535 on"),
        ("kernel[(triton.cdiv(dim, 64), batch, H)](x, n)", "has cdiv(dim, 64) * batch * H programs"),
        ("kernel[(T * H, triton.cdiv(n, 64))](x, n)", "has T * H * cdiv(n, 64) programs: an NPU allows at most"),
    ],
)
def test_from_which_size_on_a_grid_is_too_large(launch: str, when: str) -> None:
    ((code, message),) = said(launch)
    assert code == "NPU560"
    assert when in message


def test_the_smallest_of_the_configurations_counts_and_is_named() -> None:
    ((code, message),) = said("kernel[lambda meta: (triton.cdiv(n, meta['B']),)](x, n)", tuned=True)
    assert code == "NPU560"
    assert message.endswith("from n > 4,194,240 on with the smallest configuration of the autotuner (B=64)")


def test_the_smallest_configuration_is_one_that_there_is() -> None:
    """Not the smallest value of each constexpr."""
    each = ", ".join(f"triton.Config({{'B': {b}, 'C': {c}}})" for b, c in ((128, 16), (32, 32), (16, 256)))
    kernel = KERNEL.format("pass").replace("B:", "C: tl.constexpr, B:").replace(" = 64", "")
    grid = "lambda m: (triton.cdiv(n, m['B']), triton.cdiv(T, m['C']))"
    tuned = f"{HEAD}@triton.autotune(configs=[{each}], key=['n'])\n"
    source = f"{tuned}{kernel}\n\ndef run(x, n, T):\n    kernel[{grid}](x, n)\n"
    (message,) = [each.message for each in migrate(source).findings if each.code == "NPU560"]
    assert "cdiv(n, 32) * cdiv(T, 32) programs with the smallest configuration of the autotuner (B=32, C=32)" in message


@pytest.mark.parametrize("configs", ["{'B': 64}, num_warps=4", "{'B': 64}"])
def test_configurations_with_the_same_block_are_not_named(configs: str) -> None:
    tuned = f"@triton.autotune(configs=[triton.Config({configs}), triton.Config({{'B': 64}})], key=['n'])\n"
    run = "def run(x, n):\n    kernel[lambda m: (triton.cdiv(n, m['B']),)](x, n)\n"
    source = f"{HEAD}{tuned}{KERNEL.format('pass')}\n\n{run}"
    (message,) = [each.message for each in migrate(source).findings if each.code == "NPU560"]
    assert message.endswith("from n > 4,194,240 on")


def test_a_name_for_the_grid_is_followed() -> None:
    assert said("kernel[g](x, n)", before="    def g(meta):\n        return (triton.cdiv(n, 32),)\n")
    assert said("kernel[g](x, n)", before="    blocks = triton.cdiv(n, 32)\n    g = (blocks,)\n")[0][0] == "NPU560"


@pytest.mark.parametrize(
    "launch",
    [
        "kernel[(H,)](x, n)",  # heads are few
        "kernel[(num_heads, batch)](x, n)",
        "kernel[(batch, triton.cdiv(hidden_dim, 64))](x, n)",
        "kernel[(n // 2 + 1, 3)](x, n)",
        "kernel[(triton.cdiv(n, block_of(n)),)](x, n)",
        "kernel[(triton.cdiv(n, 65536),)](x, n)",  # not with tensors that there are
    ],
)
def test_a_grid_that_is_not_made_for_the_cores_is_a_remark(launch: str) -> None:
    assert [code for code, _ in said(launch)] == ["NPU568"]


@pytest.mark.parametrize(
    "launch",
    [
        "kernel[(1,)](x, n)",
        "kernel[(4, 5)](x, n)",
        "kernel[grid](x, n)",  # a parameter
        "kernel[grid_of(x)](x, n)",
        "kernel[(NUM_SMS,)](x, n)",
        "kernel[(min(NUM_SMS, triton.cdiv(n, 64)),)](x, n)",
        "other[(70000,)](x, n)",
    ],
)
def test_nothing_is_said_of_other_grids(launch: str) -> None:
    assert said(launch) == []


def test_a_kernel_that_asks_how_many_programs_there_are_takes_any_grid() -> None:
    body = "for i in range(tl.program_id(0), n, tl.num_programs(0)):\n        pass"
    assert said("kernel[(n,)](x, n)", body=body) == []


def test_the_help_names_the_cores() -> None:
    def help_of(body: str) -> str:
        source = f"{HEAD}{KERNEL.format(body)}\n\ndef run(x, n):\n    kernel[(70000,)](x, n)\n"
        return next(each.help for each in migrate(source).findings if each.code == "NPU560")

    assert "num_vectorcore" in help_of("pass")
    assert "num_aicore" in help_of("tl.dot(x, x)")
