"""The tables of a profiler: what is read of them, and what is made of it."""

from __future__ import annotations

import io

import pytest

from tests.profiles.profiles import APIS, KERNELS, OPERATORS, STEPS, kernel, named, of_tables
from transplt.precision.diagnose.profiles.findings import findings_of
from transplt.precision.diagnose.profiles.profile import Profile
from transplt.precision.diagnose.profiles.readers import Stacks, read_communication, read_table
from transplt.precision.diagnose.profiles.tables import UnreadableProfile

MATMUL = kernel("aclnnMatmul_X_MatMulV2", "MatMulV2", "AI_CORE", 1000, 900)


def test_kernels_by_type_kind_and_core() -> None:
    profile = of_tables(
        KERNELS + MATMUL + kernel("Cast1", "Cast", "AI_CPU", 1900, 50, types="INT64")
        + kernel("Cast2", "Cast", "AI_VECTOR_CORE", 1950, 50)
    )  # fmt: skip
    assert [(each.type, each.kind, each.total.us) for each in profile.dearest()] == [
        ("MatMulV2", "matrix unit", 900.0), ("Cast", "AI CPU", 50.0), ("Cast", "cast", 50.0),
    ]  # fmt: skip
    assert [*profile.by_kind()] == ["matrix unit", "AI CPU", "cast"]
    assert named(profile)["ai-cpu"].seen == ["1 kernel: Cast of INT64 50 us"]


def test_a_table_of_msprof_has_other_columns() -> None:
    header = "Device_id,Op Name,OP Type,Task Type,Task Start Time(us),Task Duration(us),Task Wait Time(us)\n"
    profile = of_tables(header + "0,trans_TransData_1,N/A,AI_VECTOR_CORE,10,5,0\n0,Conv2D17,Conv2D,AI_CORE,15,15,0\n")
    assert {each.type: each.kind for each in profile.dearest()} == {
        "Conv2D": "matrix unit", "TransData": "format conversion",
    }  # fmt: skip
    assert named(profile)["format-conversion"].share == 0.25


def test_statistics_say_the_same_without_a_clock() -> None:
    profile = of_tables(
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "0,TensorMove,AI_VECTOR_CORE,4,40,1,10,20,40\n0,MatMulV2,AI_CORE,1,60,60,60,60,60\n"
    )
    assert named(profile)["copies"].seen == ["4 kernels: TensorMove 40 us"] and profile.whole == 0.0


@pytest.mark.parametrize("header", ["Start Time (\u00b5s)", "start time(us)"])
def test_headers_of_other_versions(header: str) -> None:
    table = (KERNELS + MATMUL).replace("Start Time(us)", header)
    assert of_tables("\ufeff" + table).card == 900.0


def test_the_clock_of_the_kernels_says_idle_and_hidden_time() -> None:
    profile = of_tables(
        KERNELS + MATMUL
        + kernel("hcom_allReduce__1_0", "hcom_allReduce_", "HCCL", 1800, 300)  # 100 us of it beside the MatMul
        + kernel("Add1", "Add", "AI_VECTOR_CORE", 2600, 100)
    )  # fmt: skip
    [step] = profile.steps
    assert (step.computing, step.not_hidden, step.free, step.communication) == (1000.0, 200.0, 500.0, 300.0)
    assert named(profile)["host-gaps"].seen == ["500 us before Add1, after hcom_allReduce__1_0"]
    assert named(profile)["communication"].us == 200.0


def test_a_gap_that_comes_in_each_step_is_one() -> None:
    """Five steps with the same gap and one other: two lines, the one that costs most first."""
    rows = "".join(
        kernel(f"Add{n}", "Add", "AI_VECTOR_CORE", 1000 + n * 1000, 400)
        + kernel(f"MatMul{n}", "MatMulV2", "AI_CORE", 1400 + n * 1000 + (50 if n == 2 else 0), 100)
        for n in range(5)
    )
    profile = of_tables(KERNELS + rows)
    assert named(profile)["host-gaps"].seen == [
        "500 us before Add1, after MatMul0, 4 times, 1.9 ms in all", "50 us before MatMul2, after Add2",
    ]  # fmt: skip
    assert [(gap.times, gap.total, gap.us) for gap in profile.longest_gaps()] == [(4, 1950.0, 500.0), (1, 50.0, 50.0)]


def test_a_table_of_operators_alone_has_the_time_on_the_card() -> None:
    rows = "aten::matmul,,,10,20,700,700\naten::matmul,,,10,20,100,100\n"
    rows += "aten::contiguous,,,5,5,200,200\naten::size,,,90,90,0,0\n"
    profile = of_tables(OPERATORS + rows)
    assert profile.card == 1000.0 and profile.counted == "call"
    assert [(each.type, each.total.us, each.total.count) for each in profile.dearest()] == [
        ("aten::matmul", 800.0, 2), ("aten::contiguous", 200.0, 1),
    ]  # fmt: skip
    assert profile.host["aten::size"].us == 90.0 and profile.steps == []


def test_kernels_are_told_and_not_the_calls_where_both_are_there() -> None:
    profile = of_tables(OPERATORS + "aten::matmul,,,10,20,700,700\n", KERNELS + MATMUL)
    assert [each.type for each in profile.dearest()] == ["MatMulV2"] and profile.counted == "kernel"
    assert of_tables(OPERATORS + "aten::matmul,,,10,20,0,0\n").card == 0.0


def test_kernels_in_no_order_say_nothing_of_time() -> None:
    profile = of_tables(KERNELS + kernel("a", "Add", "AI_CORE", 2000, 1) + kernel("b", "Add", "AI_CORE", 10, 1))
    assert profile.steps == [] and "host-gaps" not in named(profile) and profile.longest_gaps() == []


def test_steps_are_those_of_the_profiler_where_it_says_them() -> None:
    profile = of_tables(KERNELS + MATMUL, STEPS + "0,1,1000,300,100,400,700,2000,0,50\n")
    assert profile.whole == 2000.0 and named(profile)["host-gaps"].share == 0.35
    assert named(profile)["communication"].share == 0.15 and "preparing" not in named(profile)


def test_a_step_that_begins_late() -> None:
    assert named(of_tables(STEPS + "0,1,1000,0,0,0,900,1900,0,800\n"))["preparing"].us == 800.0


def test_compiling_and_waiting_functions() -> None:
    steps = STEPS + "0,1,1000,0,0,0,1000,2000,0,0\n"
    table = APIS + "h,acl,aclopCompileAndExecute,600,3,200,1,400,2\nh,acl,aclrtMalloc,9,1,1,1,1,0\n"
    found = named(of_tables(steps, table))
    assert found["compiles"].seen == ["aclopCompileAndExecute: 3 calls, 400 us the longest"]
    assert "synchronizations" not in found
    found = named(of_tables(steps, APIS + "h,acl,aclrtSynchronizeStream,600,3,200,1,400,2\n"))
    assert found["synchronizations"].share == 0.3


def test_a_host_that_waits_while_the_card_is_busy_loses_nothing() -> None:
    steps = STEPS + "0,1,1990,0,0,0,10,2000,0,0\n"
    assert "synchronizations" not in named(of_tables(steps, APIS + "h,acl,aclrtSynchronizeStream,900,3,200,1,400,2\n"))


def test_shapes_that_the_first_step_had_not() -> None:
    rows = [kernel("m", "MatMulV2", "AI_CORE", 10 * step, 5, step=step, shapes=f"{step},4") for step in (1, 2, 3)]
    assert named(of_tables(KERNELS + "".join(rows)))["dynamic-shapes"].seen == ["MatMulV2: 2 new shapes"]


def test_shapes_of_the_first_step_come_again() -> None:
    rows = [
        kernel("m", "MatMulV2", "AI_CORE", 100 * step + shape, 1, step=step, shapes=f"{shape},4")
        for step in (1, 2) for shape in (1, 2, 3)
    ]  # fmt: skip
    assert "dynamic-shapes" not in named(of_tables(KERNELS + "".join(rows)))


def test_what_is_fast_gives_no_finding() -> None:
    rows = [kernel(f"k{number}", f"Op{number}", "AI_CORE", 1000 + 50 * number, 50) for number in range(20)]
    profile = of_tables(KERNELS + "".join(rows), STEPS + "0,1,990,5,95,100,5,1000,0,1\n")
    assert named(profile) == {}


def test_the_dearest_operator_is_worth_knowing_and_stands_last() -> None:
    profile = of_tables(KERNELS + MATMUL + kernel("Cast1", "Cast", "AI_CPU", 1900, 50))
    assert [(each.remedy.name, each.remedy.info) for each in findings_of(profile)][-1] == ("top-operator", True)


def test_stacks_lead_to_the_line_of_the_user() -> None:
    stack = "/job/net.py(3): forward;\r\n/x/site-packages/torch/nn/modules/module.py(9): call;\r\n/job/t.py(9): main"
    profile = of_tables(
        KERNELS + kernel("aclnnMul_MulAiCpu_Mul", "Mul", "AI_CPU", 10, 50) + MATMUL,
        OPERATORS + f'aten::mul,"8","{stack}",1,1,5,5\naten::add,"8","{stack}",1,1,5,5\naten::sub,"8","",1,1,5,5\n',
    )
    [line] = named(profile)["ai-cpu"].lines
    assert (line.frame.path, line.frame.line, line.operator) == ("/job/net.py", 3, "aten::mul")
    assert {(each.frame.line, each.operator) for each in profile.lines.values()} == {(3, "aten::mul"), (3, "aten::add")}


def test_collectives_that_wait() -> None:
    profile = Profile("p")
    read_communication(
        b'{"step1": {"collective": {"hcom_allReduce__1_0@9": {"Communication Time Info": {"Elapse Time(ms)": 4, '
        b'"Wait Time(ms)": 3}}, "Total Op Info": {"Communication Time Info": {"Elapse Time(ms)": 4}}}, "p2p": {}}}',
        profile,
    )
    assert named(profile)["waiting-ranks"].seen == ["hcom_allReduce: 3.0 ms of 4.0 ms in 1 call"]


@pytest.mark.parametrize("data", [b"", b"\x89PNG\x0d\x0a\x1a\x0a", b"one column\n1\n", b"x" * 2_000_000])
def test_what_is_no_table_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableProfile):
        read_table(io.BytesIO(data), Profile("p"), Stacks(None))


def test_a_table_of_something_else_is_passed_over() -> None:
    assert read_table(io.BytesIO(b"Component,Timestamp(us)\nPTA,1\n"), Profile("p"), Stacks(None)) == ""


@pytest.mark.parametrize(
    "row",
    ["\n", ",,,,\n", "1,0,x,Add,AI_CORE,nan,inf,a,b\n", "1,0,x,Add,AI_CORE,-5,-1,a,b\n", '1,0,"x,Add\n', "\0\0\0\n",
     "1,0,x,Add,AI_CORE,1e999,1e999,a,b\n", "1,0,\x1b[2J,Add,AI_CORE,1,zwei,a,b\n", '1,0,"' + "x" * 200_000 + "\n"],
)  # fmt: skip
def test_rows_that_are_none_do_no_harm(row: str) -> None:
    profile = of_tables(KERNELS + MATMUL + row)
    assert profile.card == 900.0


def test_a_table_that_breaks_is_read_to_there() -> None:
    profile = of_tables(KERNELS + MATMUL + '1,0,"' + "x" * 200_000)
    assert profile.card == 900.0 and profile.remarks[0].startswith("kernel_details is read to line 3: ")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transplt.precision.diagnose.profiles.profile.MOST_NAMES", 10)
    rows = (kernel(f"k{number}", f"Type{number}", "AI_CORE", number, 1, shapes=str(number)) for number in range(500))
    profile = of_tables(KERNELS + "".join(rows))
    assert len(profile.operators) == 11 and profile.dearest()[0].type == "(all others)"
    assert profile.card == 500.0 and max(len(each.shapes) for each in profile.operators.values()) <= 256
