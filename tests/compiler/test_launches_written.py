"""What a file says of the launches of its kernels, for `check --compile`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness import clean
from transplt.project.checking.launches_written import launches_written
from transplt.syntax.files import File

HEAD = """
import math
import torch
import triton
import triton.language as tl
from triton.language.math import exp
from elsewhere import strange

SIZE = 64
HALF = tl.constexpr(0.5)


@triton.jit
def twice(x):
    return x * HALF + exp(x)


@triton.jit
def kernel(x_ptr, o_ptr, n, eps, BLOCK: tl.constexpr, UP: tl.constexpr = True):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(o_ptr + at, twice(x) + eps, mask=at < n)


"""
POINTER = {"kind": "tensor", "type": "float32", "aligned": True}
NUMBER = {"kind": "int", "type": "i32", "one": False, "divisible": False}


def written(code: str, head: str = HEAD) -> list[list[dict[str, Any]]]:
    return [*launches_written(File.of("ops.py", clean(head + code).encode()))]


def test_all_that_a_kernel_is_compiled_for() -> None:
    made = "def run(n):\n    x = torch.zeros(n, dtype=torch.int32)\n"
    (forms,) = written(f"{made}    kernel[(1,)](x, x, n, 0.5, BLOCK=SIZE)\n")
    (form,) = forms
    assert form["constexprs"] == {"BLOCK": {"value": 64}, "UP": {"value": True}}
    pointer = {**POINTER, "type": "int32"}
    assert form["arguments"] == {"x_ptr": pointer, "o_ptr": pointer, "n": NUMBER, "eps": {"kind": "float"}}
    assert [(each["name"], each["line"], [*each["globals"]]) for each in form["functions"]] == [
        ("kernel", 18, ["tl", "twice"]), ("twice", 13, ["HALF", "exp"]),
    ]  # fmt: skip
    assert form["functions"][1]["globals"] == {
        "HALF": {"constexpr": {"value": 0.5}}, "exp": {"from": [["triton.language.math", "exp"]]},
    }  # fmt: skip


def test_a_number_that_is_divided_by_is_whole() -> None:
    head = HEAD.replace("eps, BLOCK", "ratio, BLOCK").replace("+ eps", "+ at // ratio")
    ((form, _),) = written("def run(x, n, r):\n    kernel[(1,)](x, x, n, r, BLOCK=16)\n", head)
    assert form["arguments"]["ratio"] == NUMBER


@pytest.mark.parametrize(
    ("given", "ones"),
    [
        ("x.stride(0), x.stride(1)", [False, True]),
        ("x.stride(-2), x.stride(-1)", [False, True]),
        ("x.stride(-1), y.stride(0)", [True, False]),
        ("x.stride(0), y.stride(0)", [False, False]),
        ("x.stride(a), x.shape[1]", [False, False]),
    ],
)
def test_the_last_stride_is_one(given: str, ones: list[bool]) -> None:
    head = HEAD.replace("eps, BLOCK", "s, t, BLOCK").replace("+ eps", "+ s + t")
    ((form, _),) = written(f"def run(x, y, n, a):\n    kernel[(1,)](x, y, n, {given}, BLOCK=16)\n", head)
    assert [form["arguments"][name]["one"] for name in "st"] == ones
    assert form["assumed"] == ("with the last stride taken as 1" if any(ones) else "")


def test_types_that_the_file_does_not_say_are_assumed_twice() -> None:
    (forms,) = written("def run(x, n):\n    kernel[(1,)](x, x, n, 0.5, BLOCK=16)\n")
    assert [each["arguments"]["x_ptr"]["type"] for each in forms] == ["float32", "bfloat16"]


TUNED = HEAD.replace(
    "@triton.jit\ndef kernel",
    """@triton.autotune(CONFIGS, key=["n"])
@triton.jit
def kernel""",
)


@pytest.mark.parametrize(
    ("configs", "told"),
    [
        pytest.param(
            "[triton.Config({'BLOCK': 16, 'UP': False}), triton.Config({'BLOCK': 64})]",
            [({"BLOCK": 16, "UP": False}, 2), ({"BLOCK": 64, "UP": True}, 2)], id="each of a list",
        ),
        pytest.param(
            "[triton.Config({'BLOCK': b}) for b in (16, 32)]",
            [({"BLOCK": 16, "UP": True}, 2), ({"BLOCK": 32, "UP": True}, 2)], id="each of a comprehension",
        ),
        pytest.param(
            "[triton.Config({'BLOCK': 16}), *more]", [({"BLOCK": 16, "UP": True}, 0)], id="there are others",
        ),
        pytest.param(
            "[triton.Config({'BLOCK': 16})], prune_configs_by={'early_config_prune': prune}",
            [({"BLOCK": 16, "UP": True}, 0)], id="some may be left out",
        ),
    ],
)  # fmt: skip
def test_configurations_of_an_autotuner(configs: str, told: list[tuple[dict[str, Any], int]]) -> None:
    launch = "def run(x, n):\n    kernel[(1,)](x, x, n, 0.5)\n"
    found = [forms[0] for forms in written(launch, TUNED.replace("CONFIGS", configs))]
    sizes = [({name: each["value"] for name, each in form["constexprs"].items()}, form["of"]) for form in found]
    assert sizes == told
    assert {form["launch"] for form in found} == {"0"}


def test_of_many_configurations_some_are_compiled() -> None:
    head = TUNED.replace("CONFIGS", f"[triton.Config({{'BLOCK': b}}) for b in {[*range(1, 21)]}]")
    found = written("def run(x, n):\n    kernel[(1,)](x, x, n, 0.5)\n", head)
    assert [form["of"] for form, *_ in found] == [20] * 16


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("def run(x, n, b):\n    kernel[(1,)](x, x, n, 0.5, BLOCK=b)\n", "the code does not show the value of BLOCK"),
        (
            "def run(x, n):\n    kernel[(1,)](x, x, n, 0.5, BLOCK=triton.next_power_of_2(n))\n",
            "the code does not show the value of BLOCK",
        ),
        ("def run(x, a):\n    kernel[(1,)](*a, BLOCK=16)\n", "the code does not show the value passed as x_ptr"),
    ],
)
def test_a_run_is_needed(code: str, why: str) -> None:
    ((form,),) = written(code)
    assert form["why"] == f"{why}; a run shows it: transplt run --compile"


def test_triton_where_it_is_installed() -> None:
    head = HEAD.replace("import triton.language as tl\n", """
try:
    import triton.language as tl
except ImportError:
    tl = None
""")
    (forms,) = written("def run(x, n):\n    kernel[(1,)](x, x, n, 0.5, BLOCK=16)\n", head)
    assert forms[0]["functions"][0]["globals"]["tl"] == {"module": "triton.language"}


def test_a_function_of_another_file() -> None:
    head = HEAD.replace("* HALF", "* strange(x)")
    ((form,),) = written("def run(x, n):\n    kernel[(1,)](x, x, n, 0.5, BLOCK=16)\n", head)
    assert form["why"].startswith("the file does not show what strange is")


def test_nothing_is_launched() -> None:
    assert written("x = 1\n") == []
