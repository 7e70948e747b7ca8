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
#: On chips that are newer than the front end 3.2.0 some of its refusals are its own.
_NOT_OF_A5 = re.compile(r"unexpected type fp8|failed to legalize operation 'linalg\.reduce'")
_CAST = re.compile(r"\bcast (\w+?)_t_to_")
_CRASH = re.compile(r"Assertion .* failed|Segmentation fault|Aborted|core dumped")


@dataclass
class Answer:
    """Of one kernel as it was launched. `memory` holds bytes that are used and that there are, by UB, L1 and L0C;
    `sentence` is what the compiler says, or why it was not judged; `overflow` is (memory, needed, available); `fits`
    a value of a constexpr with which it would fit."""

    word: str
    sentence: str = ""
    path: str = ""
    line: int = 0
    memory: dict[str, list[int]] = field(default_factory=dict)
    overflow: tuple[str, int, int] | None = None
    fits: str = ""

    def __str__(self) -> str:
        if self.word == YES:
            used = [f"{name} {used:,} of {most:,}" for name, (used, most) in self.memory.items() if used]
            return f"yes; {', '.join(used)}" if used else "yes"
        said = f": {self.sentence}" if self.sentence else ""
        return f"{self.word}{said}" + (f" ({self.fits})" if self.fits else "")


def read(told: dict[str, Any], kernel: dict[str, Any], front_end: str, chip: str) -> Answer:
    """The answer of the child for a kernel; `told` is empty where the child itself did not end well."""
    if told.get("kind") == "":
        return Answer(YES, memory=told.get("memory", {}))
    text = str(told.get("text", ""))
    answer = Answer(NO, "", kernel["functions"][0]["path"], kernel["functions"][0]["line"])
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
    answer.sentence = re.sub(r"""^\w+(?:Error|Exception)\((['"])(.*)\1\)$""", r"\2", answer.sentence)
    crash = _CRASH.search(text)
    if not answer.sentence or (crash and "LLVM ERROR" not in chosen and "error:" not in chosen):
        last = crash[0][:120] if crash else "it says nothing"
        answer.word, answer.sentence = UNJUDGED, f"the compiler itself crashed ({last})"
    return answer


def _is_older(answer: Answer, said: str, function: dict[str, Any], front_end: str, chip: str) -> bool:
    """True where a front end refuses that is older than the program or the chip: no word about the kernel."""
    if older := _OLDER.search(said):
        name = next((each for each in reversed(older.groups()) if each), "")
        what = f"{name} is not known to the front end" if name else f"{older[0]}: the front end"
        answer.sentence = f"{what}, {front_end}, which is older than what the program is for"
        answer.line = next(iter(_lines_with(function, name)), answer.line)
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


def _go_to(
    answer: Answer, told: dict[str, Any], chosen: str, text: str, functions: Sequence[dict[str, Any]]
) -> None:
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
