"""What the compiler said of a kernel, in words: that it compiles and what it takes, or why not and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

YES, NO, UNJUDGED = "yes", "no", "not judged"
_OVERFLOW = re.compile(r"(\w+) overflow, requires (\d+) bits while (\d+) bits available")
_MEMORY = {"ub": "UB", "cbuf": "L1", "cc": "L0C"}
_PLACE = re.compile(r'transplt_(\d+)\.py"?:(\d+):\d+')
#: Lines of the tools that say only that something failed, or what stands for CANN here.
_EMPTY = re.compile(
    r"hivmc|Failed to run|encounters error|Stack dump|Program arguments|PLEASE submit|^ ?#\d|^\s*\^?\s*$|^///|\[INFO\]"
    r"|Run BiShengI?H?IR pipeline failed"
)
_SAID = re.compile(r"error:|LLVM ERROR|Assertion|not support", re.IGNORECASE)
#: What stands before a sentence: a place in the text that was compiled, or none.
_BEFORE = re.compile(r"^(?:\S*transplt_\d+\.py:\d+:\d+|<unknown>:0): ")
#: What a front end does not know that is older than the program: no word about the kernel.
_OLDER = re.compile(
    r"Keyword argument (\w+) was specified but unrecognised|module '(triton[\w.]*)' has no attribute '(\w+)'"
    r"|unexpected keyword argument '(\w+)'|cannot convert NotImplemented|'dtype' object is not callable"
    r"|No module named '(triton[\w.]*)'|cannot import name '(\w+)'|'NoneType' object has no attribute 'to'"
)
#: What no release for NPUs has: modules of GPUs, and arguments that early releases of Triton had.
_OF_GPUS = re.compile(r"triton\.language\.extra(?:\.|' has no attribute ')(cuda|hip)\b")
_DROPPED = ("trans_a", "trans_b")
#: What sentences of the compiler mean, in words; the groups of each are put into them.
_MEANINGS = (
    (r"don't support cast (\w+?)(?:_t)?_to_(\w+?)(?:_t)?_\w+mode", "a vector core does not cast {0} to {1}"),
    (r"vgather' op .* idx 1 should have element type 32-bit", "tl.gather only takes int32 positions"),
    (r"'hivm\.hir\.v?(\w+)' op failed to verify that operand", "a vector core does not support {0} for that type"),
    (r"'hfusion\.(\w+)' op operand .* must be", "a vector core does not support {0} for that type"),
    (r"unexpected type fp8", "triton-ascend does not support 8-bit floats"),
    (r"fp64\] is unsupported|unsupported datatype for arith::(?:Ext|Trunc)F", "NPU kernels have no float64"),
    (r"Unsupported (?:lhs|rhs) dtype (\w+)", "tl.dot does not multiply {0}"),
    (r"tt\.sort only supports .* got (\w+)", "tl.sort does not take {0}"),
    (r"tf32 .*is invalid|allow_tf32 is deprecated", "NPUs have no tf32: remove it to compute in float32"),
    (r"'hf32' must be used with", "hf32 only works for float32 products"),
    (r"(atomic_\w+) does not support (\w+)", "tl.{0} does not take {1}"),
    (r"Expected dtype .* but got (\w+)", "this function only takes floats, not {0}"),
    (r"must be signless-integer-like, but got '(\w+)'", "a bitwise operation does not take floats ({0})"),
    (r"AddPtrOp produced by unsupported", "it cannot follow a pointer that a loop or a condition changes"),
    (r"unsupported AST node type: (\w+)", "a kernel cannot hold this statement ({0})"),
    (r"failed to legalize", "it cannot translate this operation for an NPU"),
)
#: What an autotuner passes over (triton-ascend 3.2.0, runtime/autotuner.py): what fails behind the front end, and
#: assertions of the kernel's own. What the front end itself refuses stops the program.
_PASSED_OVER = ("MLIRCompilationError", "CompileTimeAssertionFailure", "OutOfResources")
#: On chips that are newer than the front end 3.2.0 some of its refusals are its own.
_NOT_OF_A5 = re.compile(r"unexpected type fp8|failed to legalize operation 'linalg\.reduce'")
_CAST = re.compile(r"\bcast (\w+?)_t_to_")
_CRASH = re.compile(r"Assertion .* failed|Segmentation fault|Aborted|core dumped")


@dataclass
class Answer:
    """Of one kernel as it was launched. `memory` holds bytes that are used and that there are, by UB, L1 and L0C;
    `sentence` is what the compiler says, or why it was not judged; `overflow` is (memory, needed, available); `fits`
    a value of a constexpr with which it would fit; `configurations` says of several which compile; `passed_over`: an
    autotuner goes on with the next one; `assumed`: of a text, what a run may have otherwise."""

    word: str
    sentence: str = ""
    path: str = ""
    line: int = 0
    memory: dict[str, list[int]] = field(default_factory=dict)
    overflow: tuple[str, int, int] | None = None
    fits: str = ""
    configurations: str = ""
    passed_over: bool = False
    assumed: str = ""

    def __str__(self) -> str:
        if self.word == YES:
            used = [f"{name} {used:,} of {most:,}" for name, (used, most) in self.memory.items() if used]
            return "; ".join(filter(None, ("yes", ", ".join(used), self.assumed, self.configurations)))
        return f"{self.word}: {self.said}" if self.said else self.word

    @property
    def said(self) -> str:
        """Why it is not a yes: what the compiler's sentence means, where that is known, before the sentence itself."""
        found = ((means, re.search(pattern, self.sentence)) for pattern, means in _MEANINGS)
        meant = next((means.format(*each.groups()) for means, each in found if each is not None), "")
        text = f"{meant} (the compiler: {self.sentence})" if meant and self.word == NO else self.sentence
        text = f"{text} ({self.fits})" if self.fits else text
        return f"{text}; {self.configurations}" if self.configurations else text


def read(told: dict[str, Any], kernel: dict[str, Any], front_end: str, chip: str) -> Answer:
    """The answer of the child for a kernel; `told` is empty where the child itself did not end well."""
    if told.get("kind") == "":
        return Answer(YES, memory=told.get("memory", {}))
    text = str(told.get("text", ""))
    answer = Answer(NO, "", kernel["functions"][0]["path"], kernel["functions"][0]["line"])
    answer.passed_over = told.get("kind") in _PASSED_OVER
    if _is_older(answer, f"{text}\n{told.get('inner', '')}", kernel["functions"][0], front_end, chip):
        return answer
    if found := _OVERFLOW.search(text):
        memory, needed, most = _MEMORY.get(found[1], found[1]), int(found[2]) // 8, int(found[3]) // 8
        answer.overflow = (memory, needed, most)
        answer.sentence = f"{memory} needs {needed:,} of {most:,} bytes"
        return answer
    chosen = _refusal(told, text)
    _go_to(answer, told, chosen, text, kernel["functions"])
    said = _BEFORE.sub("", re.sub(r"^.*?loc\(.*?\): ", "", chosen))
    answer.sentence = said.removeprefix("error: ").removeprefix("[ERROR] ")[:300]
    answer.sentence = re.sub(r'loc\("[^"]*"(?::\d+:\d+)?\):? ?', "", answer.sentence)
    answer.sentence = re.sub(r"""^\w+(?:Error|Exception)\((['"])(.*)\1\)$""", r"\2", answer.sentence).rstrip(".")
    crash = _CRASH.search(text)
    if not answer.sentence or (crash and "LLVM ERROR" not in chosen and "error:" not in chosen):
        last = crash[0][:120] if crash else "no message"
        answer.word, answer.sentence = UNJUDGED, f"the compiler itself crashed ({last})"
    return answer


def _is_older(answer: Answer, said: str, function: dict[str, Any], front_end: str, chip: str) -> bool:
    """True where a front end refuses that is older than the program or the chip: no word about the kernel. Or what no
    other one would take, either."""
    if gpu := _OF_GPUS.search(said):
        answer.sentence = f"triton.language.extra.{gpu[1]} is only for GPUs"
        return True
    if older := _OLDER.search(said):
        name = next((each for each in reversed(older.groups()) if each), "")
        answer.line = next(iter(_lines_with(function, name)), answer.line)
        if name in _DROPPED:
            answer.sentence = f"tl.dot has no {name} (early releases of Triton had it): pass tl.trans(tile)"
            return True
        what = f"{front_end} does not know {name}" if name else f"{front_end}: {older[0]}"
        answer.sentence = f"{what}; the program needs a newer Triton"
    elif "95" in chip and (found := _NOT_OF_A5.search(said)):
        answer.sentence = f"{front_end} is older than this chip: {found[0]}"
    else:
        return False
    answer.word = UNJUDGED
    return True


def _refusal(told: dict[str, Any], text: str) -> str:
    """The line of an output that says why, one with a place before others."""
    lines = [line.strip() for line in text.splitlines() if not _EMPTY.search(line)]
    said = [line for line in lines if _SAID.search(line)]
    chosen = next((line for line in said if _PLACE.search(line)), said[0] if said else "")
    if chosen:
        return chosen
    inner = str(told.get("inner", ""))
    if inner and told.get("kind") == "CompilationError" and "^" in text[-4:]:
        return inner
    if inner and lines and lines[-1].startswith("CompilationError("):  # of a function that the kernel calls
        return inner.splitlines()[-1].partition("Error: ")[2] or inner
    return lines[-1] if lines and not re.match(r"at \d+:\d+:$", lines[-1]) else inner


def _go_to(answer: Answer, told: dict[str, Any], chosen: str, text: str, functions: Sequence[dict[str, Any]]) -> None:
    """Put an answer at the line that was refused, where that is said."""
    if "function" in told:
        function = functions[told["function"]]
        answer.path, answer.line = function["path"], function["line"] + told["offset"]
    if place := _PLACE.search(chosen) or _PLACE.search(text if told.get("place") else ""):
        function = functions[int(place[1])]
        answer.path, answer.line = function["path"], int(place[2])
        # It stands at the value that is cast where that was made, mostly loaded; the line that names the type is meant.
        if cast := _CAST.search(chosen):
            named = {*_lines_with(function, cast[1])} & {*range(answer.line, answer.line + 4)}
            answer.line = min(named, default=answer.line)


def _lines_with(function: dict[str, Any], word: str) -> list[int]:
    """The lines of a function that have a word."""
    lines = enumerate(function["source"].splitlines(), function["line"])
    return [at for at, text in lines if word and re.search(rf"\b{word}\b", text)]
