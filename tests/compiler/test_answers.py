"""What is made of the compiler's words: one answer, at the line of the project."""

from __future__ import annotations

from typing import Any

import pytest

from transplt.proof.compiler.answers import YES, Answer, read
from transplt.proof.compiler.launches import Compiled, CompiledKernel, gather

SOURCE = """def kernel(x_ptr, o_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o_ptr + at, tl.fine(at.to(tl.uint32)))
"""
KERNEL = {
    "functions": [
        {"name": "kernel", "path": "ops.py", "line": 20, "source": SOURCE},
        {"name": "helper", "path": "more.py", "line": 7, "source": "def helper(x):\n    return x\n"},
    ]
}  # fmt: skip
CAST = "'hivm.hir.vcast' op currently don't support cast uint32_t_to_uint64_t_rintmode"
MEANT = f"a vector core does not cast uint32 to uint64 (the compiler: {CAST})"
FRONT = "triton-ascend 3.2.0"
OVERFLOW = """
[ConvertLinalgRToBinary] encounters error:
[ERROR] Cannot find hivmc under $PATH
loc("/a/transplt_0.py":20:0): error: ub overflow, requires 3146112 bits while 1572864 bits available!
[ERROR] Failed to run BiShengIR pipeline
"""
MANY: dict[str, Any] = {"kind": "MLIRCompilationError", "text": OVERFLOW}
TYPE = """
loc("/tmp/a/transplt_0.py":20:0): error: Failed to run BiShengHIR pipeline

loc("/tmp/a/transplt_1.py":8:16): error: 'hivm.hir.vcast' op currently don't support cast uint32_t_to_uint64_t_rintmode
[ERROR] Failed to run BiShengIR pipeline
"""
DUMP = "PLEASE submit a bug report\nStack dump:\n #0 0x0\nAborted\n"
ABORT = f"LLVM ERROR: unsupported datatype for arith::ExtFOp to hfusion\n{DUMP}"
PASS = """
///------------------[ERROR][Triton][BEG]------------------
[ConvertTritonIRToLinalgIR] encounters error:
"""
LEGAL = f"""{PASS}
/tmp/a/transplt_0.py:21:9: error: failed to legalize unresolved materialization
    at = tl.arange(0, BLOCK)
         ^
/tmp/a/transplt_0.py:21:9: note: see current operation: %5 = "arith.muli"(%3, %4)
  %5 = "arith.muli"(%3, %4) <{{overflowFlags = #arith.overflow<none>}}> loc("/tmp/a/transplt_0.py":22:4)
"""
INNER = """at 3:4:
    helper(x)
    ^
CompilationError('def helper(x):\\n    return x\\n', <ast.Name object at 0x7f>, 'NameError("Cannot access y")')"""
CRASH = f"bishengir-compile: x.cpp:12: void f(): Assertion `a && b' failed.\n{DUMP}"
OLDER = f"{FRONT} does not know {{}}; the program needs a newer Triton"


@pytest.mark.parametrize(
    ("told", "answer", "place"),
    [
        pytest.param(
            {"kind": "", "memory": {"UB": [4096, 196608], "L1": [0, 524288]}}, "yes; UB 4,096 of 196,608", (":", 0),
            id="it compiles, with what it takes",
        ),
        pytest.param({"kind": "", "memory": {}}, "yes", (":", 0), id="it compiles, with nothing planned"),
        pytest.param(
            MANY, "no: UB needs 393,264 of 196,608 bytes", ("ops.py:", 20), id="an overflow is one of bytes",
        ),
        pytest.param(
            {**MANY, "text": OVERFLOW.replace("ub over", "cc over")}, "no: L0C needs 393,264 of 196,608 bytes",
            ("ops.py:", 20), id="another memory by its own name",
        ),
        pytest.param(
            {**MANY, "text": TYPE},
            f"no: {MEANT}", ("more.py:", 8),
            id="a type, at the line of the function that has it",
        ),
        pytest.param(
            {**MANY, "text": TYPE.replace('transplt_1.py":8', 'transplt_0.py":21')}, f"no: {MEANT}",
            ("ops.py:", 22), id="the line that names the type, behind the one that loads the value",
        ),
        pytest.param(
            {**MANY, "text": ABORT},
            "no: NPU kernels have no float64 (the compiler: LLVM ERROR: unsupported datatype for arith::ExtFOp to "
            "hfusion)", ("ops.py:", 20), id="what it says before it ends itself is its word",
        ),
        pytest.param(
            {"kind": "CompilationError", "text": "at 3:4:\n    x\n    ^\nAssertionError('Unsupported lhs dtype int16')",
             "function": 1, "offset": 1},
            "no: tl.dot does not multiply int16 (the compiler: Unsupported lhs dtype int16)",
            ("more.py:", 8), id="the front end, by the line in its function",
        ),
        pytest.param(
            {**MANY, "text": CRASH},
            "not judged: the compiler itself crashed (Assertion `a && b' failed)", ("ops.py:", 20),
            id="a failed assertion is no word about the kernel",
        ),
        pytest.param(
            {**MANY, "text": PASS + CRASH},
            "not judged: the compiler itself crashed (Assertion `a && b' failed)", ("ops.py:", 20),
            id="nor behind the name of the pass that failed",
        ),
        pytest.param(
            {**MANY, "text": LEGAL},
            "no: it cannot translate this operation for an NPU (the compiler: failed to legalize unresolved "
            "materialization)", ("ops.py:", 21),
            id="a pass of the front end, and no line of the module that it dumps",
        ),
        pytest.param(
            {**MANY, "text": f"{PASS}<unknown>:0: error: strides must not be zero\n{CRASH}"},
            "no: strides must not be zero", ("ops.py:", 20), id="an error without a place, before an assertion",
        ),
        pytest.param(
            {"kind": "CompilationError", "text": INNER, "inner": "NameError: Cannot access y", "function": 1,
             "offset": 1},
            "no: Cannot access y", ("more.py:", 8), id="a function that the kernel calls, in its own words",
        ),
        pytest.param(
            {"kind": "KeyError", "text": "'Keyword argument enable_ubuf_saving was specified but unrecognised'"},
            f"not judged: {OLDER.format('enable_ubuf_saving')}", ("ops.py:", 20), id="an option of a newer front end",
        ),
        pytest.param(
            {"kind": "AttributeError", "text": "module 'triton.language' has no attribute 'fine'"},
            f"not judged: {OLDER.format('fine')}", ("ops.py:", 22), id="a function of a newer one, at its line",
        ),
        pytest.param(
            {"kind": "TypeError", "text": "dot() got an unexpected keyword argument 'trans_b'"},
            "no: tl.dot has no trans_b (early releases of Triton had it): pass tl.trans(tile)",
            ("ops.py:", 20), id="what the front end is too new for",
        ),
        pytest.param(
            {"kind": "_Missing", "text": "No module named 'triton.language.extra.cuda'"},
            "no: triton.language.extra.cuda is only for GPUs", ("ops.py:", 20), id="a module of another card",
        ),
        pytest.param(
            {"kind": "_Missing", "text": "module 'triton.language.extra' has no attribute 'hip'"},
            "no: triton.language.extra.hip is only for GPUs", ("ops.py:", 20), id="and by its attribute",
        ),
    ],
)  # fmt: skip
def test_an_answer(told: dict[str, Any], answer: str, place: tuple[str, int]) -> None:
    found = read(told, KERNEL, FRONT, "Ascend910B2")
    assert (str(found), (f"{found.path}:", found.line)) == (answer, place)


def test_a_chip_that_is_newer_than_the_front_end() -> None:
    told = {**MANY, "text": "error: unexpected type fp8."}
    assert read(told, KERNEL, FRONT, "Ascend910B2").word == "no"
    assert str(read(told, KERNEL, FRONT, "Ascend950PR_9589")) == (
        "not judged: triton-ascend 3.2.0 is older than this chip: unexpected type fp8"
    )


def compiled(*told: dict[str, Any], of: int | None = None) -> Compiled:
    """Of launches, or of `of` configurations of one launch (0: there may be others)."""
    units = [{"name": "kernel", "path": "ops.py", "line": 20} for _ in told]
    if of is not None:
        units = [
            {**each, "configuration": {"BLOCK": 1 << at}, "launch": "0", "of": of} for at, each in enumerate(units)
        ]
    return gather(units, [read(each, KERNEL, FRONT, "Ascend910B2") for each in told], "a card")


def finding(
    code: str, line: int = 22, name: str = "kernel", path: str = "ops.py", level: str = "error"
) -> dict[str, Any]:
    return {"code": code, "path": path, "line": line, "message": f"kernel {name}: as estimated", "level": level}


FITS: dict[str, Any] = {"kind": "", "memory": {}}
ODD: dict[str, Any] = {**MANY, "text": TYPE.replace('transplt_1.py":8', 'transplt_0.py":22')}
OLD: dict[str, Any] = {"kind": "AttributeError", "text": "module 'triton.language' has no attribute 'fine'"}


@pytest.mark.parametrize(
    ("told", "before", "after"),
    [
        pytest.param([FITS], [finding("NPU574"), finding("NPU570")], [], id="what compiles has no such findings"),
        pytest.param([FITS], [finding("NPU560"), finding("NPU576")], ["NPU560", "NPU576"], id="others stay"),
        pytest.param(
            [FITS],
            [finding("NPU571", level="info"), finding("NPU573", level="warning"), finding("NPU574", level="info")],
            ["NPU571", "NPU573"],
            id="what it costs and computes stays",
        ),
        pytest.param([FITS], [finding("NPU574", name="other")], ["NPU574"], id="and those of other kernels"),
        pytest.param([FITS], [finding("NPU574", path="b.py")], ["NPU574"], id="and of other files"),
        pytest.param([OLD], [finding("NPU574")], ["NPU574"], id="what was not judged stays as it was"),
        pytest.param([MANY], [finding("NPU574")], ["NPU574 does not compile"], id="an overflow is told once"),
        pytest.param([MANY, FITS], [], ["NPU574 does not compile"], id="of several launches the worst counts"),
        pytest.param([ODD], [finding("NPU573")], ["NPU573 the compiler refuses it too"], id="a type is confirmed"),
        pytest.param(
            [ODD],
            [finding("NPU573", 21)],
            ["NPU573", "NPU580 does not compile"],
            id="behind a refusal the compiler has seen nothing",
        ),
        pytest.param([MANY], [finding("NPU573")], ["NPU574 does not compile"], id="before an overflow it saw all"),
    ],
)
def test_findings_of_a_run(told: list[dict[str, Any]], before: list[dict[str, Any]], after: list[str]) -> None:
    found = compiled(*told).weigh(before)
    words = ("does not compile", "the compiler refuses it too")
    said = [" ".join([each["code"], *(word for word in words if word in each["message"])]) for each in found]
    assert said == after


def test_a_yes_says_what_was_assumed() -> None:
    answer = Answer(YES, memory={"UB": [5, 9]}, assumed="with the last stride taken as 1")
    assert str(answer) == "yes; UB 5 of 9; with the last stride taken as 1"


NEEDS = "UB needs 393,264 of 196,608 bytes"
FRONT_END: dict[str, Any] = {"kind": "CompilationError", "text": "at 3:4:\n    x\n    ^\nAssertionError('no such')"}


@pytest.mark.parametrize(
    ("of", "told", "line"),
    [
        pytest.param(1, [FITS], "yes", id="one that compiles"),
        pytest.param(1, [MANY], f"no: {NEEDS}", id="one that does not: nothing is tried"),
        pytest.param(2, [FITS, FITS], "yes; 2 of 2 configurations compile", id="all do"),
        pytest.param(
            2, [MANY, FITS], f"yes; 1 of 2 configurations compile, not BLOCK = 1 ({NEEDS})",
            id="an autotuner passes over what does not fit",
        ),
        pytest.param(
            0, [FITS, ODD], f"yes; 1 of 2 configurations compile, not BLOCK = 2 ({CAST})",
            id="and over what fails behind the front end",
        ),
        pytest.param(
            2, [FITS, FRONT_END], "no: no such; with BLOCK = 2, which stops the autotuner",
            id="but not over the front end",
        ),
        pytest.param(
            0, [FITS, FRONT_END], "yes; 1 of 2 configurations compile, not BLOCK = 2 (no such)",
            id="unless it may be left out before",
        ),
        pytest.param(2, [MANY, MANY], f"no: {NEEDS}; none of its 2 configurations compiles", id="none is left"),
        pytest.param(
            0, [MANY, MANY], f"not judged: {NEEDS}; the compiler refuses 2 configurations; others are possible",
            id="others may be",
        ),
        pytest.param(
            9, [MANY, MANY],
            f"not judged: {NEEDS}; the compiler refuses 2 configurations, the first 2 of 9; others are possible",
            id="not all were compiled",
        ),
        pytest.param(
            9, [MANY, FITS],
            f"yes; 1 of 2 configurations compile, the first 2 of 9, not BLOCK = 1 ({NEEDS})", id="some of many",
        ),
        pytest.param(2, [MANY, OLD], f"not judged: ops.py:22: {OLDER.format('fine')}", id="one is not judged"),
    ],
)  # fmt: skip
def test_configurations_of_an_autotuner(of: int, told: list[dict[str, Any]], line: str) -> None:
    assert compiled(*told, of=of).lines()[1] == f"  kernel (ops.py:20): {line}"


def test_findings_on_autotuned_kernels() -> None:
    assert compiled(MANY, FITS, of=2).weigh([finding("NPU574")]) == []
    assert compiled(MANY, of=0).weigh([finding("NPU574")]) == [finding("NPU574")]
    (found,) = compiled(MANY, MANY, of=2).weigh([])
    assert (found["code"], found["line"]) == ("NPU574", 20)


def test_the_lines_of_a_report() -> None:
    units = [{"name": name, "path": "ops.py", "line": 20} for name in ("b", "a", "c")]
    answers = [read(each, KERNEL, FRONT, "Ascend910B2") for each in (FITS, ODD, OLD)]
    assert gather(units, answers, "a card").lines() == [
        "kernels compiled for a card: 1 yes, 1 no, 1 not judged",
        f"  a (ops.py:20): no: ops.py:22: {MEANT}",
        f"  c (ops.py:20): not judged: ops.py:22: {OLDER.format('fine')}",
        "  b (ops.py:20): yes",
    ]
    assert Compiled("a card", []).lines() == ["kernels compiled for a card: no kernel was launched"]
    assert CompiledKernel("k", "ops.py", 1).word == "yes"
