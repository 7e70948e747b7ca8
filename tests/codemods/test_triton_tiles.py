"""Types, buffers and scalar code of Triton kernels: planted limits, and kernels of which nothing is said."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.harness import check_noop, check_rewrite, migrate
from transplt.base.finding import Level

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
OWN = ("NPU570", "NPU571", "NPU572", "NPU573", "NPU574", "NPU575", "NPU576", "NPU577", "NPU578", "NPU579")


def kernel(body: str, parameters: str = "x_ptr, o_ptr, n, BLOCK: tl.constexpr", rest: str = "") -> str:
    inside = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"{HEAD}@triton.jit\ndef k({parameters}):\n{inside}\n\n\n{rest}\n"


def said(source: str, **settings: Any) -> list[tuple[str, int, str]]:
    """(code, line, message) of the findings on kernels, by place."""
    found = migrate(source, **settings).findings
    return [(each.code, each.span.line, each.message) for each in found if each.code in OWN]


LOAD = "at = tl.arange(0, BLOCK)\nx = tl.load(x_ptr + at, mask=at < n)\n"
MATRIX = "at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]\na = tl.load(x_ptr + at)\n"
LAUNCH = "def run(x, o, n):\n    {}\n    k[(1,)](x, o, n, BLOCK=1024)"


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        ("x = torch.zeros(n, dtype=torch.float64)", "float64"),
        ("x = x.double()", "float64"),
        ("x = torch.empty(n, dtype=torch.float64, device='cuda')", "float64"),
    ],
)
def test_a_tensor_that_a_kernel_cannot_read(made: str, dtype: str) -> None:
    source = kernel(LOAD + "tl.store(o_ptr + at, x)", rest=LAUNCH.format(made))
    message = f"tl.load takes no {dtype} on Ascend 910B (Atlas A2): kernel k, {dtype} of x_ptr in line 9"
    assert ("NPU570", 9, message) in said(source)


@pytest.mark.parametrize(
    ("made", "dtype"),
    [
        ("x = torch.empty(n, dtype=torch.uint8, device='cuda')", "uint8"),
        ("x = x.to(torch.uint8)", "uint8"),
        ("x = torch.zeros(n, dtype=torch.uint16)", "uint16"),
    ],
)
def test_a_tensor_that_is_not_documented_and_compiles(made: str, dtype: str) -> None:
    source = kernel(LOAD + "tl.store(o_ptr + at, x)", rest=LAUNCH.format(made))
    found = [each for each in migrate(source).findings if each.code == "NPU570"]
    message = f"tl.load of {dtype} is not documented for Ascend 910B (Atlas A2), and compiles: kernel k, line 9"
    assert [(each.span.line, each.level, each.message) for each in found] == [(9, Level.INFO, message)]


def test_a_tensor_that_a_kernel_cannot_write() -> None:
    source = kernel(LOAD + "tl.store(o_ptr + at, x)", rest=LAUNCH.format("o = torch.empty(n, dtype=torch.float64)"))
    assert [(code, line) for code, line, _ in said(source)] == [("NPU570", 10)]


def test_a_block_pointer_to_a_type_that_is_refused() -> None:
    body = """
    p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    x = tl.load(p, boundary_check=(0,))
    tl.store(o_ptr + tl.arange(0, BLOCK), x)
    """
    found = said(kernel(body, rest=LAUNCH.format("x = torch.ones(n, dtype=torch.float64)")))
    message = "tl.make_block_ptr and tl.load take no float64 on Ascend 910B (Atlas A2)"
    assert found == [("NPU570", 8, f"{message}: kernel k, float64 of x_ptr in lines 8 and 9")]


def test_launches_that_differ_are_named_themselves() -> None:
    rest = "def run(o, n):\n    k[(1,)](torch.ones(n, dtype=torch.float64), o, n, BLOCK=64)\n"
    rest += "    k[(1,)](torch.ones(n, dtype=torch.float32), o, n, BLOCK=64)"
    found = said(kernel(LOAD + "tl.store(o_ptr + at, x)", rest=rest))
    assert found == [("NPU570", 14, "tl.load takes no float64 on Ascend 910B (Atlas A2): kernel k gets it as x_ptr")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = x.to(tl.float64)", "tl.cast takes no float64"),
        ("y = tl.cast(x.to(tl.float32), tl.uint32)", "tl.cast takes no float32 to uint32"),
        ("y = tl.zeros((BLOCK,), dtype=tl.uint64)", "tl.zeros of uint64 is not documented"),
        ("y = tl.exp(x.to(tl.float64))", "tl.exp and tl.cast take no float64"),
        ("y = at.to(tl.uint32) < 3", "lt takes no uint32"),
        ("y = tl.sum(x.to(tl.float64), 0)", "tl.sum and tl.cast take no float64"),
        ("y = tl.associative_scan(x.to(tl.bfloat16), 0, f)", "tl.associative_scan takes no bfloat16"),
        ("y = tl.load(x_ptr + at).to(tl.int32) // 3", "`//` and tl.cdiv of int32 tiles go through float32 on an NPU"),
        ("y = tl.sort(at)", "tl.sort takes no int32"),
        ("y = tl.umulhi(at.to(tl.int64), at.to(tl.int64))", "tl.umulhi takes no int64"),
        ("y = tl.full((BLOCK,), 1, tl.uint16)", "tl.full of uint16 is not documented for Ascend 910B"),
        ("y = tl.load(x_ptr + at).to(tl.float8e5)", "tl.cast takes no float8e5"),
        ("y = -(at < n)", "neg takes no bool"),
    ],
)
def test_operations_on_types_that_are_refused(line: str, message: str) -> None:
    source = kernel(LOAD + line + "\ntl.store(o_ptr + at, y)")
    assert [(code, number) for code, number, text in said(source) if text.startswith(message)] == [("NPU573", 10)]


def test_one_finding_for_a_kernel_and_a_type() -> None:
    body = "y = x.to(tl.float64)\nz = y * y + 1\nz = z - y\ntl.store(o_ptr + at, z.to(tl.float32))"
    message = "tl.cast, mul, add and sub take no float64 on Ascend 910B (Atlas A2): kernel k, lines 10, 11, 12 and 13"
    assert [each for each in said(kernel(LOAD + body)) if each[0] == "NPU573"] == [("NPU573", 10, message)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tl.atomic_add(o_ptr + at, at.to(tl.int64))", "tl.atomic_add of int64 runs as a locked loop"),
        ("tl.atomic_max(o_ptr + at, at.to(tl.int64))", "tl.atomic_max of int64 runs as a locked loop"),
        ("tl.atomic_add(o_ptr + at, x.to(tl.float64))", "tl.atomic_add takes no float64"),
        ("tl.atomic_cas(o_ptr, 0, 1, sem='relaxed')", 'sem="relaxed" of tl.atomic_cas becomes acq_rel on an NPU'),
        ("tl.atomic_add(o_ptr + at, x, sem='release')", 'sem="release" of tl.atomic_add'),
        ("tl.atomic_xchg(o_ptr, 0, scope='sys')", 'scope="sys" of tl.atomic_xchg becomes gpu on an NPU'),
    ],
)
def test_atomics(line: str, message: str) -> None:
    found = [(code, number) for code, number, text in said(kernel(LOAD + line)) if text.startswith(message)]
    assert found == [("NPU571", 10)]


def test_an_atomic_on_a_tensor_of_a_launch() -> None:
    source = kernel(LOAD + "tl.atomic_add(o_ptr + at, x)", rest=LAUNCH.format("o = torch.zeros(n, dtype=torch.int64)"))
    assert [(code, line) for code, line, _ in said(source)] == [("NPU571", 10)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("c = tl.dot(a.to(tl.float64), a.to(tl.float64))", "tl.dot takes no float64"),
        ("c = tl.dot(a.to(tl.float8e5), a.to(tl.float8e5))", "tl.dot takes no float8e5"),
        ("b = a.to(tl.bfloat16); c = tl.dot(b, b, tl.zeros((64, 64), dtype=tl.float16))", "tl.dot adds up in float32"),
        (
            "b = a.to(tl.float32); c = tl.dot(b, b, out_dtype=tl.float16)",
            "tl.dot returns float32 or int32 on an NPU, not",
        ),
        (
            "b = a.to(tl.float16); c = tl.dot(b, b, out_dtype=tl.float16)",
            "tl.dot with a float16 sum is not documented",
        ),
        ("c = tl.dot(a.to(tl.int16), a.to(tl.int16))", "tl.dot takes no int16"),
        ("c = tl.dot_scaled(a, a, 'e2m1', a, a, 'e2m1')", "tl.dot_scaled supports bf16 and fp16 on Ascend 910B"),
    ],
)
def test_products(line: str, message: str) -> None:
    source = kernel(MATRIX + line + "\ntl.store(o_ptr + at, c)", "x_ptr, o_ptr")
    assert [(code, number) for code, number, text in said(source) if text.startswith(message)] == [("NPU572", 10)]


def test_precisions_that_a_gpu_alone_has_are_left_out() -> None:
    check_rewrite(
        kernel(MATRIX + "c = tl.dot(a, a, allow_tf32=True)\ntl.store(o_ptr + at, c)", "x_ptr, o_ptr"),
        kernel(MATRIX + "c = tl.dot(a, a)\ntl.store(o_ptr + at, c)", "x_ptr, o_ptr"),
        codes_applied=["NPU572"],
        open_codes=["NPU512"],
    )
    check_rewrite(
        kernel(MATRIX + "c = tl.dot(a, a, max_num_imprecise_acc=0, input_precision='tf32x3')", "x_ptr, o_ptr"),
        kernel(MATRIX + 'c = tl.dot(a, a, input_precision="ieee")', "x_ptr, o_ptr"),
        open_codes=["NPU512"],
    )


@pytest.mark.parametrize("name", ["tf32", "tf32x3"])
def test_a_precision_that_a_card_has_not(name: str) -> None:
    before = kernel(MATRIX + f"c = tl.dot(a, a, input_precision='{name}')", "x_ptr, o_ptr")
    check_rewrite(before, before.replace(f"'{name}'", '"ieee"'), open_codes=["NPU512"])
    for taken in ("'hf32'", "'ieee'", "other"):
        check_noop(before.replace(f"'{name}'", taken), open_codes=["NPU512"])


def test_a_precision_that_a_launch_gives() -> None:
    body = MATRIX + "c = tl.dot(a, a, allow_tf32=TF32)\ntl.store(o_ptr + at, c)"
    parameters = "x_ptr, o_ptr, TF32: tl.constexpr"
    yes = kernel(body, parameters, "def run(x, o):\n    k[(1,)](x, o, TF32=True)")
    assert [(code, line) for code, line, _ in said(yes)] == [("NPU572", 10)]
    no = kernel(body, parameters, "def run(x, o):\n    k[(1,)](x, o, TF32=False)")
    assert said(no) == []


def test_precisions_are_joined() -> None:
    body = MATRIX + "c = tl.dot(a, a, input_precision=P)\nc += tl.dot(a, a, input_precision=P)\ntl.store(o_ptr + at, c)"
    source = kernel(body, "x_ptr, o_ptr").replace("@triton.jit", "P = tl.constexpr('tf32')\n\n\n@triton.jit")
    found = [each for each in migrate(source).findings if each.code == "NPU572"]
    takes = "tl.dot accepts ieee and hf32 on an NPU; P may be tf32 or tf32x3, and triton-ascend 3.2.0 raises then"
    assert [(each.message, each.level) for each in found] == [(f"{takes}: kernel k, lines 13 and 14", Level.MANUAL)]


def test_a_block_that_grows_with_the_data() -> None:
    rest = "def run(x, o, n):\n    k[(1,)](x, o, n, BLOCK=triton.next_power_of_2(n))"
    found = said(kernel(LOAD + "y = x.to(tl.float32)\ntl.store(o_ptr + at, y * tl.exp(y) + y)", rest=rest))
    assert found == [
        (
            "NPU574",
            11,
            "the tiles of kernel k that live here take about 8 bytes for each of BLOCK elements, too many from "
            "BLOCK = 32768 on: a core has 196608 bytes",
        )
    ]


def test_features_beside_another_axis_are_seldom_so_many() -> None:
    body = """
    at = tl.arange(0, 16)[:, None] * n + tl.arange(0, BLOCK)[None, :]
    x = tl.load(x_ptr + at).to(tl.float32)
    tl.store(o_ptr + at, x * tl.exp(x))
    """
    rest = "def run(x, o, n):\n    k[(1,)](x, o, n, BLOCK=triton.next_power_of_2(n))"
    found = [each for each in migrate(kernel(body, rest=rest)).findings if each.code == "NPU574"]
    assert [each.level for each in found] == [Level.INFO]
    assert "128 bytes for each of BLOCK elements, too many from BLOCK = 2048 on" in found[0].message


def test_a_block_that_is_too_large() -> None:
    rest = "def run(x, o, n):\n    k[(1,)](x, o, n, BLOCK=65536)"
    found = said(kernel(LOAD + "y = x.to(tl.float32)\ntl.store(o_ptr + at, y)", rest=rest))
    assert [(code, line) for code, line, _ in found] == [("NPU574", 10)]
    assert "393216 bytes with BLOCK = 65536" in found[0][2]


ROWS = "a = tl.arange(0, 64)\nb = tl.arange(0, BLOCK)\n"


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        pytest.param("x = tl.load(x_ptr + a[:, None] * n + b[None, :])", 1024, id="rows that lie one behind another"),
        pytest.param("x = tl.load(x_ptr + a[:, None] + b[None, :] * n)", 128, id="columns: 32 bytes for each element"),
        pytest.param("x = tl.load(x_ptr + b[None, :] * n + a[:, None])", 128, id="in the other order"),
        pytest.param("x = tl.load(x_ptr + a[:, None] * 1 + b[None, :] * n)", 128, id="a step of 1 is none"),
        pytest.param("p = x_ptr + a[:, None]\nx = tl.load(p + b[None, :] * n)", 128, id="by a variable"),
        pytest.param("x = tl.load(x_ptr + a[:, None] * n + b[None, :] * m)", 1024, id="steps that are not known"),
        pytest.param("x = tl.load(x_ptr + a[None, :] + b[:, None] * n)", 1024, id="another axis is the last"),
    ],
)
def test_a_tile_that_is_transposed_in_memory(body: str, limit: int) -> None:
    source = f"{ROWS}{body}\ntl.store(o_ptr + tl.arange(0, 64)[:, None] * BLOCK + b[None, :], x.to(tl.float32) + 1.0)"
    rest = "def run(x, o, n, m):\n    x = x.float()\n    k[(1,)](x, o, n, m, BLOCK={})"
    parameters = "x_ptr, o_ptr, n, m, BLOCK: tl.constexpr"
    for size in (64, 128, 512, 1024):
        found = [each for each in said(kernel(source, parameters, rest.format(size))) if each[0] == "NPU574"]
        assert bool(found) == (size >= limit), (size, found)


@pytest.mark.parametrize(("axis", "fits"), [(1, True), (0, False)])
def test_two_cores_do_not_share_rows_that_are_added_up(axis: int, fits: bool) -> None:
    body = f"""
    a = tl.arange(0, 128)
    b = tl.arange(0, BLOCK)
    at = a[:, None] * BLOCK + b[None, :]
    c = tl.dot(tl.load(x_ptr + a[:, None] * 128 + a[None, :]), tl.load(x_ptr + at))
    y = tl.exp(c)
    tl.store(o_ptr + {"ab"[1 - axis]}, tl.sum(y, {axis}))
    tl.store(o_ptr + at, y * c)
    """
    source = kernel(body, rest="def run(x, o, n):\n    k[(1,)](x.float(), o, n, BLOCK=256)")
    assert ("NPU574" not in [code for code, _, _ in said(source)]) is fits


def test_the_buffer_of_another_card() -> None:
    rest = "def run(x, o, n):\n    k[(1,)](x, o, n, BLOCK=40960)"
    source = kernel(LOAD + "y = x.to(tl.float32)\ntl.store(o_ptr + at, y)", rest=rest)
    assert [code for code, _, _ in said(source)] == ["NPU574"]
    assert said(source, hardware="950DT") == []


@pytest.mark.parametrize(
    ("name", "rows", "level"),
    [
        ("HEADDIM_QK", 1, Level.INFO),  # no head has 16,384
        ("BLOCK_SIZE_DSTATE", 32, Level.INFO),
        ("HEAD_DIM", 128, Level.MANUAL),  # a head of 256 is one that occurs
        ("BLOCK_N", 1, Level.MANUAL),
    ],
)
def test_a_head_or_a_state_is_small(name: str, rows: int, level: Level) -> None:
    at = f"tl.arange(0, {rows})[:, None] * n + tl.arange(0, BLOCK)[None, :]" if rows > 1 else "tl.arange(0, BLOCK)"
    body = f"at = {at}\nx = tl.load(x_ptr + at).to(tl.float32)\ny = tl.exp(x)\n"
    body += "tl.store(o_ptr + at, (x * y + x * x) / (1.0 / x + y))"
    rest = "def run(x, o, n):\n    k[(1,)](x, o, n, BLOCK=triton.next_power_of_2(n))"
    found = migrate(kernel(body, rest=rest).replace("BLOCK", name)).findings
    assert [each.level for each in found if each.code == "NPU574"] == [level]


def test_a_configuration_that_the_autotuner_passes_over() -> None:
    head = "@triton.autotune([triton.Config({'BLOCK': 1024}), triton.Config({'BLOCK': 65536})], key=['n'])\n@triton.jit"
    body = kernel(LOAD + "y = x.to(tl.float32)\ntl.store(o_ptr + at, y)").replace("@triton.jit", head)
    found = [each for each in migrate(body).findings if each.code in OWN]
    assert [(each.code, each.span.line, each.level) for each in found] == [("NPU574", 6, Level.INFO)]


def test_configurations_of_which_none_fits() -> None:
    head = "@triton.autotune([triton.Config({'BLOCK': B}) for B in (65536, 131072)], key=['n'])\n@triton.jit"
    body = kernel(LOAD + "y = x.to(tl.float32)\ntl.store(o_ptr + at, y)").replace("@triton.jit", head)
    found = [each for each in migrate(body).findings if each.code in OWN]
    assert [(each.code, each.level) for each in found] == [("NPU574", Level.MANUAL)]
    assert "BLOCK = 65536" in found[0].message


def test_a_tile_with_short_rows() -> None:
    body = """
    rows = tl.arange(0, 512)
    x = tl.load(x_ptr + rows[:, None] * 4 + tl.arange(0, 4)[None, :])
    tl.store(o_ptr + rows, tl.sum(x, axis=1))
    """
    rest = "def run(o):\n    k[(1,)](torch.ones(512, 4, dtype=torch.float32), o)"
    assert [(code, line) for code, line, _ in said(kernel(body, "x_ptr, o_ptr", rest))] == [("NPU575", 9)]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("at = tl.program_id(0).to(tl.int64) * 8 + tl.arange(0, 8)\ntl.store(o_ptr + at, tl.load(x_ptr + at))", 8),
        (LOAD + "x = tl.where(at < n, x, 0.0)\ntl.store(o_ptr + at, x)", 10),
    ],
)
def test_scalar_code(body: str, line: int) -> None:
    assert [(code, number) for code, number, _ in said(kernel(body))] == [("NPU576", line)]


def test_positions_that_are_read() -> None:
    body = "at = tl.arange(0, BLOCK)\nindex = tl.load(x_ptr + at)\ntl.store(o_ptr + at, tl.load(x_ptr + index))"
    assert [(code, line) for code, line, _ in said(kernel(body))] == [("NPU577", 10)]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("b = tl.exp(a)\nc = tl.dot(b, a)\ntl.store(o_ptr + at, c + b)", [("NPU578", 11)]),
        ("b = tl.exp(a)\nc = tl.dot(a, b)\ntl.store(o_ptr + at, c + a)", [("NPU578", 11)]),  # computed with before
        ("b = a.to(tl.float32)\nc = tl.dot(a, a)\ntl.store(o_ptr + at, c + b)", []),
    ],
)
def test_a_left_operand_that_is_read_again(lines: str, found: list[tuple[str, int]]) -> None:
    assert [(code, line) for code, line, _ in said(kernel(MATRIX + lines, "x_ptr, o_ptr"))] == found


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("y = at >> (at % 8)", "`>>` by a tile runs one element at a time on an NPU"),
        ("y = at.to(tl.uint8) << 2", "`<<` of uint8 is not documented for Ascend 910B (Atlas A2), and compiles"),
        ("y = tl.maximum(at, 3, propagate_nan=tl.PropagateNan.NONE)", "propagate_nan=NONE takes more"),
    ],
)
def test_shifts(line: str, message: str) -> None:
    source = kernel(LOAD + line + "\ntl.store(o_ptr + at, y)")
    assert [(code, number) for code, number, text in said(source) if text.startswith(message)] == [("NPU579", 10)]


HEALTHY = {
    "vector addition": LOAD + "y = tl.load(o_ptr + at, mask=at < n)\ntl.store(o_ptr + at, x + y, mask=at < n)",
    "float32 of a type that is not known": LOAD + "tl.store(o_ptr + at, x.to(tl.float32) * 2)",
    "int64 in a scalar alone": """
        row = tl.program_id(0).to(tl.int64)
        at = tl.arange(0, BLOCK)
        tl.store(o_ptr + row * n + at, tl.load(x_ptr + row * n + at, mask=at < n), mask=at < n)
    """,
    "a mask alone": LOAD + "inside = (at < n) & (at > 3)\ntl.store(o_ptr + at, x, mask=inside)",
    "atomic of float32": LOAD + "tl.atomic_add(o_ptr + at, x.to(tl.float32), sem='acq_rel', scope='gpu')",
    "atomic of int32": LOAD + "tl.atomic_add(o_ptr + at, at)",
    "sort of what is not known": LOAD + "tl.store(o_ptr + at, tl.sort(x))",
    "sort of float32": LOAD + "tl.store(o_ptr + at, tl.sort(x.to(tl.float32)))",
    "shift by a number": LOAD + "tl.store(o_ptr + at, (at >> 2) << 1)",
    "shift by a scalar": LOAD + "tl.store(o_ptr + at, at >> n)",
    "a scalar that is read for a position": """
        start = tl.load(x_ptr)
        at = start + tl.arange(0, BLOCK)
        tl.store(o_ptr + at, tl.load(x_ptr + at))
    """,
    "rows that are picked": """
        rows = tl.load(x_ptr + tl.arange(0, 16))
        at = rows[:, None] * n + tl.arange(0, 64)[None, :]
        tl.store(o_ptr + at, tl.load(x_ptr + at))
    """,
    "a sum over rows in a loop": """
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        for start in range(0, n, BLOCK):
            at = start + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(o_ptr, tl.sum(total, axis=0))
    """,
    "a product": """
        at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
        total = tl.zeros((64, 64), dtype=tl.float32)
        for i in range(n):
            total = tl.dot(tl.load(x_ptr + at), tl.load(x_ptr + at), total, input_precision="ieee")
        tl.store(o_ptr + at, total)
    """,
    "a product without tf32": MATRIX + "tl.store(o_ptr + at, tl.dot(a, tl.trans(a), allow_tf32=False))",
    "a left operand that is read once": MATRIX + "b = tl.exp(a)\nc = tl.dot(b, a)\ntl.store(o_ptr + at, c)",
    "a left operand that is loaded again": """
        at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
        for i in range(n):
            a = tl.load(x_ptr + at + i)
            tl.store(o_ptr + at, tl.dot(a, tl.load(x_ptr + at)))
    """,
    "a scalar of float64 that nobody reads": "scale = 1.0\ntl.store(o_ptr, scale)",
}


@pytest.mark.parametrize("name", HEALTHY)
def test_kernels_of_which_nothing_is_said(name: str) -> None:
    assert said(kernel(HEALTHY[name])) == []


@pytest.mark.parametrize(
    "rest",
    [
        "def run(x, o, n):\n    k[(1,)](x, o, n, BLOCK=1024)",
        "def run(x, o, n):\n    k[(1,)](x, o, n, BLOCK=min(8192, triton.next_power_of_2(n)))",
        "def run(x, o, n):\n    x = torch.ones(n, dtype=torch.float32)\n    k[(1,)](x, o, n, BLOCK=1024)",
        "def run(x, o, n):\n    x = torch.ones(n, dtype=torch.int64)\n    k[(1,)](x, o, n, BLOCK=1024)",
        "def run(x, o, n):\n    x = torch.ones(n, dtype=torch.bool)\n    k[(1,)](x, o, n, BLOCK=1024)",
        "def run(x, o, n, double):\n    if double:\n        x = x.double()\n    k[(1,)](x, o, n, BLOCK=1024)",
        "def run(x, o, n, double):\n    x = x.double() if double else x\n    k[(1,)](x, o, n, BLOCK=1024)",
    ],
)
def test_launches_of_which_nothing_is_said(rest: str) -> None:
    assert said(kernel(LOAD + "tl.store(o_ptr + at, x)", rest=rest)) == []


def test_types_of_another_card() -> None:
    found = said(kernel(LOAD + "tl.store(o_ptr + at, x.to(tl.float64))"), hardware="950DT")
    assert found == [("NPU573", 10, "tl.cast takes no float64 on Ascend 950: kernel k, line 10")]
    old = LOAD + "tl.store(o_ptr + at, tl.sort(at) + tl.argmax(x.to(tl.float8e5), 0))"
    assert said(kernel(old), hardware="950DT") == []


def test_a_function_that_kernels_call_gives_its_type() -> None:
    wide = "@triton.jit\ndef wide(x):\n    return x.to(tl.float32)\n\n\n"
    body = LOAD + "tl.store(o_ptr + at, tl.sort(wide(at)))"
    assert said(kernel(body).replace("@triton.jit\ndef k", wide + "@triton.jit\ndef k")) == []


def test_a_kernel_that_is_read_stays() -> None:
    check_noop(kernel(LOAD + "tl.store(o_ptr + at, x)"), open_codes=["NPU512"])


def test_a_portable_program_keeps_what_a_gpu_needs() -> None:
    source = kernel(MATRIX + "c = tl.dot(a, a, allow_tf32=True)\ntl.store(o_ptr + at, c)", "x_ptr, o_ptr")
    result = migrate(source, style="portable")
    assert result.data.decode() == source
    assert [(each.code, each.level) for each in result.findings if each.code in OWN] == [("NPU572", Level.MANUAL)]


def test_files_without_kernels_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no kernel costs nothing: no values are worked out."""
    monkeypatch.setattr("transplt.fixers.triton.reader.tiles._Reading", None)
    source = "import torch\nimport triton\n\nx = torch.ones(triton.cdiv(3, 2))\n"
    assert said(source) == []
