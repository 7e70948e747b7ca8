"""What is said of an error that no row knows (whose it is, what to collect, where to ask), and of a project's lines."""

from __future__ import annotations

import json

import pytest

from tests.diagnose.test_command import call
from tests.diagnose.test_readings import SITE, TRACE, collected_from, told
from transplt.precision.diagnose.components import component_of
from transplt.precision.diagnose.remedies import remedy_of
from transplt.rules.tables import read_table

__all__ = ["call"]
ODD = "RuntimeError: something odd\n"
STAMP = "[ERROR] 2026-01-02-03:04:05 (PID:1, Device:0, RankID:-1) "
FROB = "EZ9999: Inner Error!\n        the frob is odd.[FUNC:Frob][FILE:frob.cc][LINE:1]\n"


def part(text: str) -> str:
    collected = collected_from(text)
    failure = collected.failures()[0]
    found = component_of(failure, remedy_of(failure, collected.clues).read)
    return "" if found is None else f"{found.name} ({found.by}): {found.ask}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("EI0999: Inner Error!\n", "HCCL, the communication between cards (the code EI0999)"),
        (
            "EZ9999: Inner Error!\n        odd.[FUNC:Odd][FILE:odd.cc][LINE:1]\n",
            "an operator of CANN (aclnn) (the code EZ9999)",
        ),
        (f"{ODD}{STAMP}ERR02005 DIST internal error\n", "HCCL"),
        (f"{ODD}{STAMP}ERR00005 PTA internal error\n", "torch_npu"),
        ("NPU function error: aclrtFoo, error code is 507999\n", "acl"),
        (TRACE.format("/job/vllm_ascend/a.py", "odd()") + ODD, "vllm-ascend or vllm (vllm_ascend)"),
        (TRACE.format(f"{SITE}/triton/a.py", "odd()") + ODD, "triton-ascend (triton)"),
        (TRACE.format("/job/train.py", "odd()") + ODD, "the program or a package that it imports"),
        ("RuntimeError: Engine core initialization failed. See root cause above.\n", "the program or a package"),
        ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n", ""),
        ("AttributeError: module 'torch.foo' has no attribute 'bar'\n", ""),
    ],
)
def test_whose_an_error_is_by_its_code_or_its_place(text: str, names: str) -> None:
    assert part(text).startswith(names) and bool(part(text)) is bool(names)


def test_every_part_of_cann_has_a_row() -> None:
    rows = read_table("support/error_components.json")["components"]
    codes = {code for row in rows for code in row["codes"]}
    assert {family for family in read_table("errors/cann.json")["families"] if family != "ED"} <= codes
    assert all(row["collect"] and "https://" in row["ask"] for row in rows)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FROB, "CANN's own words for it: the frob is odd (frob.cc)."),
        (f"AssertionError: no file /x\n{STAMP}ERR00008 PTA resource not found\n",
         "torch_npu refuses the call: AssertionError: no file /x."),
        (f"{STAMP}ERR00008 PTA resource not found\n", "set_env.sh was not"),
    ],
)  # fmt: skip
def test_a_code_that_says_nothing_is_read_by_the_sentence_beside_it(text: str, says: str) -> None:
    assert says in told(text)


PROGRAM = "import torch\n\n\ndef step(x):\n    return x.cuda()\n\n\nstep(torch.ones(2))\n"
NO_CUDA = (
    'Traceback (most recent call last):\n  File "/cache/7/net/train.py", line 8, in <module>\n    step(torch.ones(2))\n'
    '  File "/cache/7/net/train.py", line 5, in step\n    {}\nAssertionError: Torch not compiled with CUDA enabled\n'
)


def test_the_line_of_the_project_the_finding_that_foretold_it_and_the_edit(call, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "train.py").write_text(PROGRAM)
    (tmp_path / "a.log").write_text(NO_CUDA.format("return x.cuda()"))
    out = call("diagnose", "a.log", "--project", "net")[1]
    assert (
        "   source    train.py:5 in step: return x.cuda()\n   check     train.py:5 NPU210: .cuda() -> .npu()\n" in out
    )
    assert "   edit      - return x.cuda()\n             + return x.npu()\n" in out and "foretold" not in out
    (checked,) = json.loads(call("diagnose", "a.log", "--project", "net", "--format", "json")[1])["errors"][0][
        "checked"
    ]
    assert (checked["mended"], checked["findings"][0]["code"]) == ("return x.npu()", "NPU210")
    assert (tmp_path / "net" / "train.py").read_text() == PROGRAM


@pytest.mark.parametrize("line", ["return y.cuda()", "pass"])
def test_a_line_that_is_another_one_by_now_is_not_judged(call, tmp_path, line: str) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "train.py").write_text(PROGRAM)
    (tmp_path / "a.log").write_text(NO_CUDA.format(line))
    out = call("diagnose", "a.log", "--project", "net")[1]
    assert "   check " not in out and "   edit " not in out and "foretold  NPU201" in out


def test_what_foretold_it_may_lie_elsewhere_in_the_file(call, tmp_path) -> None:  # type: ignore[no-untyped-def]
    program = PROGRAM.replace("    return x.cuda()", '    mask = torch.ones(2, device="cuda")\n    return x + mask')
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "train.py").write_text(program)
    log = NO_CUDA.format("return x + mask").replace("line 5", "line 6").replace("line 8", "line 9")
    (tmp_path / "a.log").write_text(log)
    out = call("diagnose", "a.log", "--project", "net")[1]
    assert "   foretold  train.py:5 NPU201: " in out and '+ mask = torch.ones(2, device="npu")' in out
    assert "   check " not in out


def test_a_file_that_cannot_be_checked_costs_its_judgement_alone(call, tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "train.py").write_text("def (:\n" * 4 + "    return x.cuda()\n")
    (tmp_path / "a.log").write_text(NO_CUDA.format("return x.cuda()"))
    assert "   source    train.py:5 in step: return x.cuda()\n" in call("diagnose", "a.log", "--project", "net")[1]
