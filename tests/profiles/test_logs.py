"""Operators in host logs, and tables of the autograd profiler wherever they stand."""

from __future__ import annotations

import pytest

from tests.profiles.profiles import asked, of_log
from transplt.precision.diagnose.profiles.autograd_table import AutogradTable
from transplt.precision.diagnose.profiles.findings import findings_of_logs
from transplt.precision.diagnose.profiles.profile import Profile

COMPILED = "[INFO] ASCENDCL(1,python):2021 [op_model_cache.h:2]3 Match op inputs failed. opType = MatMul, inputDesc = x"


def steps(number: int, *, varying: bool = False) -> list[str]:
    """A log: `number` steps of 20 operators, one with another shape in each where `varying`."""
    lines = [asked("Fill", "1000"), COMPILED]
    for step in range(number):
        lines += [asked(f"Op{each}", "8, 64") for each in range(19)]
        lines.append(asked("MatMul", f"{8 + step * varying}, 64"))
        lines += [COMPILED] * varying
    return lines


def test_operators_and_their_forms() -> None:
    logs = of_log([asked("MatMul", "8, 64"), asked("MatMul", "8, 64"), "noise", asked("Add", "1", stored=(2, 29))])
    assert logs.operators["MatMul"].forms == {"float16 NC1HWC0 [8, 64] -> float16 NC1HWC0 [8, 64]": 2}
    assert [*logs.operators["Add"].forms] == ["float16 ND [1] -> float16 FRACTAL_NZ [1]"]
    assert logs.conversions == {} and findings_of_logs(logs) == []


def test_conversions_of_formats() -> None:
    logs = of_log([asked("TransData", "8, 64", stored=(0, 3))] * 3 + [asked("Identity", "8", stored=(0, 4))])
    assert logs.conversions == {"NCHW -> NC1HWC0": 3, "NCHW -> FRACTAL_Z": 1}
    assert [found.remedy.name for found in findings_of_logs(logs)] == ["op-conversions"]
    assert of_log([asked("Identity", "8")]).conversions == {}


def test_shapes_that_change_are_compiled_again() -> None:
    [found] = findings_of_logs(of_log(steps(8, varying=True)))
    assert found.remedy.name == "op-compiled-again"
    assert found.seen == ["MatMul: 5 new forms in the second half of a log, 8 in all, compiled there 4 times"]


@pytest.mark.parametrize("number", [1, 2, 4, 20])
def test_a_log_of_fixed_shapes_has_no_finding(number: int) -> None:
    assert findings_of_logs(of_log(steps(number))) == []


def test_one_step_alone_says_nothing_of_the_next() -> None:
    logs = of_log([asked(f"Op{number}", str(number)) for number in range(200)])
    assert not logs.repeats and findings_of_logs(logs) == []


@pytest.mark.parametrize(
    "line",
    ["aclopCompile::aclOp = OpType: ", "Match op inputs failed", "aclopCompile::aclOp = OpType: Add, InputDesc[0]: [Te",
     asked("A" * 5000, "1"), asked("Add", "1" * 5000), "aclopCompileAndExecute, opType = Identity"],
)  # fmt: skip
def test_lines_that_are_cut_do_no_harm(line: str) -> None:
    assert of_log([line]).conversions == {}


TABLE = """epoch 1
---------------  ------------  ------------  ------------  ------------  ------------
           Name    Self CPU %      Self CPU      Self NPU     NPU total    # of Calls
---------------  ------------  ------------  ------------  ------------  ------------
   aten::conv2d         1.00%      10.000us       2.000ms       2.000ms             2
format_contiguous       1.00%      10.000us       1.500ms       1.500ms             3
     aten::item        90.00%       1.500s       0.000us       0.000us             1
---------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 1.5s
   aten::later          1.00%      10.000us       2.000ms       2.000ms             2
"""


def test_the_table_of_the_autograd_profiler() -> None:
    profile = Profile("p")
    table = AutogradTable(profile)
    for line in TABLE.split("\n"):
        table.line(line)
    assert table.found == 3 and not table.awaits
    assert {each.type: (each.kind, each.total.us) for each in profile.dearest()} == {
        "aten::conv2d": ("other", 2000.0), "format_contiguous": ("copy", 1500.0),
    }  # fmt: skip
    assert profile.host["aten::item"].us == 1_500_000.0


def test_tables_of_others_are_none() -> None:
    profile = Profile("p")
    table = AutogradTable(profile)
    for line in ("-----  -----", "model  loss", "-----  -----", "a  1", "-----", "---- ---- ----"):
        table.line(line)
    assert table.found == 0 and not profile.host
