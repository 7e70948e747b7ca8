"""Options of Triton without a meaning on an NPU (NPU561): of launches, configurations, loads and stores."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, clean, migrate

HEAD = "import triton\nimport triton.language as tl\n"
KERNEL = f"""{HEAD}
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)
"""


def tuned(configs: str, parameters: str = "") -> str:
    header = f"def kernel(x, n, {parameters}BLOCK: tl.constexpr):\n    pass\n"
    return f"{HEAD}\n@triton.autotune(configs={configs}, key=['n'])\n@triton.jit\n{header}"


def launched(rest: str, before: str = "") -> str:
    return f"{KERNEL}\n\ndef run(x, n):\n{before}    kernel[(2,)](x, n, {rest})\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("BLOCK=8, num_warps=4", "BLOCK=8"),
        ("num_warps=4, BLOCK=8, num_stages=2", "BLOCK=8"),
        ("BLOCK=8, num_ctas=1, maxnreg=64", "BLOCK=8"),
        ("8, num_warps=32 if big else 16", "8"),
    ],
)
def test_options_of_a_launch_go(before: str, after: str) -> None:
    check_rewrite(launched(before), launched(after), codes_applied=["NPU561"], open_codes=["NPU512"])


def test_the_layout_stays() -> None:
    before = launched("\n        BLOCK=8,\n        num_warps=4,  # fast\n        num_stages=2,\n    ")
    after = launched("\n        BLOCK=8,\n    ")
    check_rewrite(before, after, open_codes=["NPU512"])


def test_a_comment_of_another_argument_stays() -> None:
    before = launched("\n        BLOCK=8,  # rows\n        num_warps=4,\n    ")
    check_rewrite(before, launched("\n        BLOCK=8,  # rows\n    "), open_codes=["NPU512"])


def test_a_local_variable_that_only_the_option_read_goes() -> None:
    set_ = "    num_warps = 4\n    if n > 1024:\n        num_warps = 8\n    elif n > 2048:\n        num_warps = 16\n"
    check_rewrite(launched("BLOCK=8, num_warps=num_warps", set_), launched("BLOCK=8"), open_codes=["NPU512"])


@pytest.mark.parametrize(
    "set_",
    [
        "    num_warps = 4\n    print(num_warps)\n",
        "    block, num_warps = settings(n)\n",
        "    num_warps = settings(n)\n",
        "    for num_warps in (4, 8):\n        pass\n",
        "    if n:\n        num_warps = 8\n        print(n)\n    else:\n        num_warps = 4\n",
    ],
)
def test_other_variables_stay(set_: str) -> None:
    check_rewrite(launched("BLOCK=8, num_warps=num_warps", set_), launched("BLOCK=8", set_), open_codes=["NPU512"])


def test_an_import_that_only_the_option_read_goes() -> None:
    before = launched("BLOCK=8, num_warps=WARPS").replace(HEAD, f"from mine import WARPS, other\n{HEAD}")
    after = launched("BLOCK=8").replace(HEAD, f"from mine import other\n{HEAD}")
    check_rewrite(before, after, open_codes=["NPU512"])


def test_a_parameter_of_that_name_is_none_of_the_options() -> None:
    source = launched("BLOCK=8, num_warps=4")
    source = source.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, num_warps: tl.constexpr")
    check_noop(source, open_codes=["NPU512"])


@pytest.mark.parametrize(
    "source",
    [
        f"{HEAD}\ndef run(kernels, x):\n    kernels[0][(2,)](x, num_warps=4)\n",  # not known to be a kernel
        "import jax\n\ndef run(x, kernel):\n    kernel[(2,)](x, num_warps=4)\n",
        f"{HEAD}\nclass Config:\n    pass\n\n\nc = Config({{}}, num_warps=4)\n",
        launched("BLOCK=8, **options"),
        launched("BLOCK=8, multibuffer=True"),
    ],
)
def test_other_calls_stay(source: str) -> None:
    check_noop(source, open_codes=["NPU512"] if "import triton" in source else [])


def test_launches_of_kernels_of_another_file() -> None:
    source = "from pkg.kernels import kernel\n\n\ndef run(x, n):\n    kernel[(2,)](x, n, BLOCK=8{})\n"
    files = {"pkg/__init__.py": "", "pkg/kernels.py": KERNEL}
    before, after = source.format(", num_warps=4"), source.format("")
    assert migrate(before + "# triton\n", files=files).data.decode() == clean(after) + "# triton\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[triton.Config({'BLOCK': 8}, num_warps=4)]", "[triton.Config({'BLOCK': 8})]"),
        (
            "[triton.Config({'BLOCK': 8}, num_warps=4), triton.Config({'BLOCK': 8}, num_warps=8)]",
            "[triton.Config({'BLOCK': 8})]",
        ),
        (
            "[triton.Config({'BLOCK': 8}, num_warps=4), triton.Config({'BLOCK': 16}, num_warps=4)]",
            "[triton.Config({'BLOCK': 8}), triton.Config({'BLOCK': 16})]",
        ),
        ("[triton.Config({}, num_warps=w) for w in [1, 2]]", "[triton.Config({})]"),
        ("[triton.Config({}, num_warps=w) for w in [1, 2] if w < LIMIT]", "[triton.Config({})]"),
        (
            "[triton.Config({'BLOCK': b}, num_warps=w, num_stages=s) for w in (1, 2) for b in (8, 16) for s in STAGES]",
            "[triton.Config({'BLOCK': b}) for b in (8, 16)]",
        ),
        (
            "[triton.Config({'BLOCK': b}, num_warps=w, num_stages=s) for b in (8, 16) for w, s in ((1, 2), (2, 3))]",
            "[triton.Config({'BLOCK': b}) for b in (8, 16)]",
        ),
    ],
)
def test_configurations_that_are_the_same_then_are_one(before: str, after: str) -> None:
    check_rewrite(tuned(before), tuned(after), open_codes=["NPU512"])


@pytest.mark.parametrize(
    "configs",
    [
        "[triton.Config({'BLOCK': b}, num_warps=b // 8) for b in (8, 16)]",  # the loop gives the block too
        "[triton.Config({'BLOCK': b}, num_warps=w) for b in (8, 16) for w in (1, 2) if b > w]",
        "[triton.Config({'BLOCK': b}, num_warps=w) for b, w in ((8, 1), (16, 2))]",
        "[triton.Config({}, num_warps=w) for w in warps()]",
    ],
)
def test_configurations_that_hang_on_the_option_are_reported(configs: str) -> None:
    check_noop(tuned(configs), open_codes=["NPU512", "NPU561"])


def test_configurations_that_a_function_chooses_by_the_option_are_reported() -> None:
    source = tuned("[triton.Config({}, num_warps=4)], prune_configs_by={'early_config_prune': prune}")
    source += "\n\ndef prune(configs, args):\n    return [c for c in configs if c.num_warps == 4]\n"
    check_noop(source, open_codes=["NPU512", "NPU561"])


def test_configurations_that_the_file_compares_itself_are_reported() -> None:
    source = f"{HEAD}\nCONFIGS = [triton.Config({{}}, num_warps=w) for w in (4, 8)]\n"
    source += "FEW = [c for c in CONFIGS if c.num_warps == 8]\n"
    check_noop(source, open_codes=["NPU512", "NPU561"])


@pytest.mark.parametrize(
    ("chooses", "code"),
    [
        ("[c for c in configs if c.num_warps == 8]", "NPU561"),
        ("[min(configs, key=lambda c: len(c.kwargs))]", ""),  # any will do
    ],
)
@pytest.mark.parametrize("handed", ["few({})", "few(configs={})"])
def test_configurations_that_another_file_chooses_from(chooses: str, code: str, handed: str) -> None:
    """A test of a pruner, which asserts what it leaves."""
    listed = "triton.Config({}, num_warps=4)]"
    source = f"{KERNEL}\n\ndef test():\n    from few import few\n"
    source += f"    made = [{listed}\n    print({handed.format('made')})\n"
    data = migrate(source, files={"few.py": f"{KERNEL}\n\ndef few(configs):\n    return {chooses}\n"}).data.decode()
    assert ("num_warps" in data) is bool(code)


def test_configurations_of_a_kernel_with_such_a_parameter_stay() -> None:
    check_noop(tuned("[triton.Config({}, num_stages=2)]", "num_stages: tl.constexpr, "), open_codes=["NPU512"])


def test_hints_for_a_cache_go() -> None:
    before = KERNEL.replace("mask=i < n)", "mask=i < n, eviction_policy='evict_last', cache_modifier='.cg')")
    check_rewrite(before, KERNEL, open_codes=["NPU512"])
    check_rewrite(KERNEL.replace("mask=i < n)", "mask=i < n, volatile=False)", 1), KERNEL, open_codes=["NPU512"])


def test_a_load_by_which_a_program_waits_is_reported() -> None:
    waits = "    while tl.load(x, volatile=True) == 0:\n        pass\n"
    check_noop(KERNEL + waits, open_codes=["NPU512", "NPU561"])
    check_rewrite(KERNEL.replace("mask=i < n)", "mask=i < n, volatile=True)", 1), KERNEL, open_codes=["NPU512"])


@pytest.mark.parametrize(
    "option", ["launch_pdl", "launch_cooperative_grid", "waves_per_eu", "enable_warp_specialization"]
)
def test_options_that_are_refused_are_reported(option: str) -> None:
    check_noop(launched(f"BLOCK=8, {option}=True"), open_codes=["NPU512", "NPU561"])


def test_arguments_of_range_that_came_later_are_reported() -> None:
    source = KERNEL + "    for j in tl.range(0, n, warp_specialize=True):\n        pass\n"
    check_noop(source, open_codes=["NPU512", "NPU561"])


def test_nothing_is_left_out_in_portable_style() -> None:
    check_noop(launched("BLOCK=8, num_warps=4"), style="portable", open_codes=["NPU512"])


def test_a_file_that_handles_the_npu_keeps_its_options() -> None:
    source = launched("BLOCK=8, num_warps=4") + (
        "\n\ndef device():\n    import torch\n    if torch.cuda.is_available():\n        return 'cuda'\n"
        "    if torch.npu.is_available():\n        return 'npu'\n    return 'cpu'\n"
    )
    result = migrate(source)
    assert not result.changed
    assert "NPU561" not in {finding.code for finding in result.findings}
