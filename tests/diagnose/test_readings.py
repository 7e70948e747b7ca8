"""What an exception means by its form, its place and the package that it names; what a log without one waits for."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from tests.diagnose.diagnoses import diagnosed
from transplt.precision.diagnose.findings import Collected
from transplt.precision.diagnose.remedies import remedy_of, state_of
from transplt.precision.diagnose.report import diagnosis_json, diagnosis_text
from transplt.precision.diagnose.scan import LogScan
from transplt.precision.diagnose.versions_named import VersionsNamed
from transplt.rules.errors import forms, readings

TRACE = 'Traceback (most recent call last):\n  File "{}", line 7, in step\n    {}\n'
SITE = "/opt/py/lib/python3.10/site-packages"


def collected_from(text: str) -> Collected:
    collected = Collected()
    LogScan("a.log", collected).scan(io.BytesIO(text.encode()))
    return collected


def told(text: str) -> str:
    """Cause and steps of the first failure of a text."""
    collected = collected_from(text)
    remedy = remedy_of(collected.failures()[0], collected.clues)
    return " ".join((remedy.cause, *remedy.do))


@pytest.mark.parametrize(
    ("path", "source", "said", "names"),
    [
        ("/job/args.py", "if arch_version() < 9 and get_device_capability()[0] > 8:",
         "TypeError: '<' not supported between instances of 'NoneType' and 'int'", "compute capability"),
        ("/job/build.py", "torch.version.cuda.split('.')",
         "AttributeError: 'NoneType' object has no attribute 'split'", "version or folder of CUDA"),
        ("/job/linear.py", "w.main_grad.add_(g)",
         "AttributeError: 'NoneType' object has no attribute 'add_'", "fusion of gradient accumulation"),
        (f"{SITE}/accelerate/x.py", "f()", "AttributeError: 'Foo' object has no attribute 'bar'", "Foo has no bar"),
        (f"{SITE}/vllm/engine/x.py", "f(a=1)",
         "TypeError: build() got an unexpected keyword argument 'a'", "vllm and vllm-ascend"),
        (f"{SITE}/mindspeed/core/x.py", "assert mask is None", "AssertionError", "`mask is None` holds, in mindspeed"),
        ("/job/x.py", "assert a == b", "AssertionError", "`a == b` holds"),
        ("/job/x.py", "f(x)", "TypeError: norm(): argument 'input' (position 1) must be Tensor, not tuple",
         "norm got a tuple for input"),
        ("/job/x.py", "f(x)", "ImportError: cannot import name 'foo' from 'peft.utils' (/x/peft/utils.py)",
         "peft of the installed version does not have foo"),
        ("/job/x.py", "f(x)", "KeyError: 'LOCAL_RANK'", "torchrun"),
        ("/job/x.py", "f(x)", "NotImplementedError: Operator npu.foo does not have a sharding strategy registered.",
         "DTensor"),
    ],
)  # fmt: skip
def test_an_exception_is_read_by_its_form_and_place(path: str, source: str, said: str, names: str) -> None:
    assert names in told(TRACE.format(path, source) + said + "\n")


def test_without_the_place_a_general_form_stays() -> None:
    """None alone says nothing of cards, and an attribute of one's own class nothing of packages."""
    assert "compute capability" not in told(TRACE.format("/job/a.py", "x < 1") + "TypeError: bad NoneType\n")
    said = told(TRACE.format("/job/a.py", "x.y") + "AttributeError: 'Net' object has no attribute 'y'\n")
    assert "transformers" not in said and "vllm" not in said


def test_the_package_that_raised_is_named_where_nothing_else_is_known() -> None:
    assert "comes from foo, not from your code" in told(TRACE.format(f"{SITE}/foo/a.py", "f()") + "ValueError: odd\n")
    assert "not from your code" not in told(TRACE.format("/job/a.py", "f()") + "ValueError: odd\n")


def test_each_reading_is_well_formed() -> None:
    for row in (*readings(), *forms()):
        assert row.cause.endswith(".") and row.do


@pytest.mark.parametrize(
    "text",
    [
        '  Traceback (most recent call last):\n    File "/job/a.py", line 1, in f\n      g()\n  ValueError: odd\n',
        '> Traceback (most recent call last):\n>   File "/job/a.py", line 1, in f\n>     g()\n> ValueError: odd\n',
        'Traceback (most recent call last):\r\n  File "/job/a.py", line 1, in f\r\n    g()\r\nValueError: odd\r\n',
        '07:01:02.345 Traceback (most recent call last):\n07:01:02.345   File "/job/a.py", line 1, in f\n'
        "07:01:02.345     g()\n07:01:02.346 ValueError: odd\n",
        'Traceback (most recent call last):\n  File "/job/a.py", line 1, in f\n    g()\nfoo.bar.OddThing: odd\n',
        'Traceback (most recent call last):\n  File "/job/a.py", line 1, in f\n    g()\nException: odd\n',
    ],
    ids=["indented", "quoted", "line ends of Windows", "with times", "any name", "plain Exception"],
)  # fmt: skip
def test_the_exception_that_ends_a_traceback_is_seen(text: str) -> None:
    said = diagnosed(text)
    assert said.heads == ["?"] and said.failures[0].head.text.endswith("odd")
    assert said.failures[0].first.frames[-1].path == "/job/a.py"


def test_a_fatal_error_has_the_frames_behind_it() -> None:
    text = (
        "Fatal Python error: take_gil: odd\n\nCurrent thread 0x01 (most recent call first):\n"
        f'  File "{SITE}/triton/backends/ascend/driver.py", line 9 in __call__\n  File "/job/k.py", line 3 in run\n'
    )
    said = diagnosed(text)
    assert said.first == "fatal-python" and said.failures[0].first.frames[-1].path.endswith("driver.py")
    assert "grid of 0" in told(text)


def test_packages_that_an_exception_names() -> None:
    def packages(said: str) -> list[str]:
        collected = collected_from(TRACE.format("/job/a.py", "import x") + said + "\n")
        found: list[str] = diagnosis_json(collected, (), None)["errors"][0]["packages"]
        return found

    assert packages("ImportError: xformers is not installed")[0].startswith("xformers")
    assert packages("ModuleNotFoundError: No module named 'cupy'")[0].startswith("cupy")
    assert packages("ModuleNotFoundError: No module named 'my_own_module'") == []
    assert packages("ValueError: the value is not available") == []


def test_versions_that_a_log_names() -> None:
    def mismatch(text: str) -> str:
        named = VersionsNamed()
        named.look(text.encode())
        return named.mismatch()

    assert "torch 2.3.1 and torch_npu 2.2.0" in mismatch("torch 2.3.1\ntorch-npu 2.2.0\n")
    assert mismatch("torch==2.1.0+cpu torch_npu==2.1.0.post3\n") == ""
    assert mismatch("torch 2.3.1\ntorch 2.2.0\ntorch_npu 2.2.0\n") == "", "two of one: nobody knows which is in force"
    assert mismatch("pytorch version: 2.5.1 (NPU)\n") == ""


def test_a_log_without_an_error_is_told_by_its_remarks_and_its_last_line() -> None:
    text = diagnosis_text(collected_from("{'loss': 1.0}\n{'loss': nan, 'lr': 1e-5}\n"), (), None)
    assert "No errors:" in text and "not a number" in text and "cause" in text
    text = diagnosis_text(collected_from("start\nInitializing process group with backend: hccl\n"), (), None)
    assert "ends with" in text and "MASTER_ADDR" in text


@pytest.mark.parametrize(
    ("last", "names"),
    [
        ("Using /root/.cache/torch_extensions as PyTorch extensions root...", "lock"),
        (" 12%|#  | 34/300 [00:10<01:00, 1.2it/s]", "middle of a training"),
        ("goodbye", "py-spy"),
    ],
)
def test_what_a_last_line_waits_for(last: str, names: str) -> None:
    state = state_of(last)
    assert names in state.cause + " ".join(state.do)


def test_an_older_cann_is_a_clue_for_what_fails_on_the_card() -> None:
    row: dict[str, Any] = json.loads(json.dumps(diagnosis_json(collected_from(
        "Warning: Failed to find function aclrtFooWithFlag\n"
        "The extend info: errcode:(0, 0x800, 0) errorStr: The UB address accessed by the VEC "
        "instruction is not aligned.\n"
    ), (), None)["errors"][0]))  # fmt: skip
    assert "CANN is older than torch_npu" in row["cause"] and row["decided_by"]


def test_an_own_class_that_a_library_calls_is_not_a_matter_of_its_version() -> None:
    """The exception was raised in the last frame: those before it only lead there."""
    text = (
        f'Traceback (most recent call last):\n  File "{SITE}/transformers/trainer.py", line 9, in train\n    f()\n'
        '  File "/job/net.py", line 3, in forward\n    self.tail(x)\n'
        "AttributeError: 'Net' object has no attribute 'tail'\n"
    )
    assert "transformers" not in told(text)


def test_a_last_line_without_a_line_feed_has_the_lines_before_it() -> None:
    text = "    if w.main_grad.dtype == t:\nAttributeError: 'NoneType' object has no attribute 'dtype'"
    assert "fusion of gradient accumulation" in told(text)
