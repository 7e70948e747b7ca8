"""What to do for one failure: the general steps of its error, or those of the cause that the log itself points to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from transplt.precision.diagnose.findings import Failure, Line
from transplt.rules.distributions import distribution_of
from transplt.rules.errors import Kind, KnownError, When, checks, complaints, forms, lines, readings, sentences, states

_SWITCH = "ASCEND_LAUNCH_BLOCKING"
_MOST_NAME = 200
_WITHOUT_TORCH = (
    "Find the operator: wait for the stream after each call, or run the operators one by one (MindSpore: "
    "pynative_synchronize=True; only torch_npu reads ASCEND_LAUNCH_BLOCKING)."
)
#: What a logger puts before its text.
_LOGGER = re.compile(
    r"^(?:\[?\d{4}-\d\d-\d\d[ T][\d:.,+]+\]? ?)?(?:- [\w.]+ - )?(?:\[?(?:ERROR|CRITICAL|FATAL)\]?[ :-]*)?"
    r"(?:\w+Error: \w+ \w+ failed, ERROR is )?"
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """The cause, the steps, and the lines of the log that decided for them."""

    cause: str
    do: tuple[str, ...]
    clues: tuple[Line, ...] = ()
    #: The form of the sentence was known, and with it the cause.
    read: bool = False


def remedy_of(failure: Failure, clues: Mapping[str, Line], torch: bool = True) -> Remedy:
    """The remedy for a failure, chosen by its text and by the clues of all logs; by its form where nobody knows it."""
    error = failure.head.error
    if error is None:
        said = _LOGGER.sub("", failure.head.text)
        read = _read((*lines(), *readings(), *sentences()), said, failure)
        found = read or _raised_in(failure, _read(forms(), said, failure) or Remedy("", ()))
        found = replace(found, read=read is not None)
    else:
        found = _chosen(error, failure, clues)
    if torch:
        return found
    steps = (_WITHOUT_TORCH if re.search(rf"\b{_SWITCH}\b", step) else step for step in found.do)
    return replace(found, do=tuple(dict.fromkeys(steps)))


def state_of(last: str, before: Iterable[str] = ()) -> Remedy:
    """What a log without an error tells of: what its last lines say of the run, then `read`, else what a program waits
    for that stands still behind the last one; `before` are the lines before it, which rows with `beside` ask for."""
    around = "\n".join((*before, last))
    found = next((_filled(each, match) for each in complaints() if (match := _match(each, around)) is not None), None)
    if found is not None:
        return replace(found, read=True)
    return next(
        _filled(each, match)
        for each in states()
        if (match := _match(each, last)) is not None and (each.beside is None or each.beside.search(around))
    )


def _chosen(error: KnownError, failure: Failure, clues: Mapping[str, Line]) -> Remedy:
    text = _text_of(failure)
    framed = "\n".join((text, *_frames_of(failure))) if error.when else text
    for each in error.when:
        if each.beside is not None and each.beside.search(framed) is None:
            continue
        told = [clues.get(name) for name in each.clue.split("+")] if each.clue else []
        if told and None not in told:
            lines_told = tuple(filter(None, told))
            return replace(_filled(each, *_shown_by(lines_told)), clues=lines_told)
        if (match := _match(each, framed)) is not None:
            return _filled(each, match)
    for each in checks() if error.checks else ():
        if (match := _match(each, text)) is not None:
            return _filled(each, match)
    if error.alone or error.kind is Kind.WRAPPER or error.code.startswith("ERR"):
        return _by_sentence(error, failure)
    return Remedy(error.cause, error.do)


#: What is written where words should stand.
_NO_WORDS = re.compile(r"function error|error code is \d|NPU error|(?:setup|call) failed|as above")


def _by_sentence(error: KnownError, failure: Failure) -> Remedy:
    """What says only that something failed is read by the sentence that stands beside it, else that speaks itself."""
    said, head = failure.first.said(), failure.head.text
    told = [((*lines(), *readings()), each) for each in (head, *said, *(line.text for line in failure.first.lines))]
    if error.area in ("general", "torch_npu"):
        # What grammar says of a sentence counts where nothing else is known: of it the code alone is.
        told += [(sentences(), each) for each in said]
    for rows, each in told:
        if (read := _read(rows, _LOGGER.sub("", each), failure)) is not None:
            return read
    words = [each for each in said if len(each.split()) > 2 and not _NO_WORDS.search(each)]
    if words and error.area == "torch_npu":
        step = ("Compare the call in that source line with this sentence; it was checked before anything ran on the "
                "card.")
        return Remedy(f"torch_npu refuses the call: {words[0].rstrip('.')}.", (step, *error.do[1:]))
    words = [each for each in words if each in failure.first.details]
    if words and error.area in ("cann", "general"):
        return Remedy(f"CANN's own words for it: {words[0]}.", error.do)
    return Remedy(error.cause, error.do)


def _read(rows: Iterable[When], said: str, failure: Failure) -> Remedy | None:
    """What the first row says that fits a sentence and, where it asks for that, what stands around it."""
    around = ""
    for each in rows:
        if (match := _match(each, said)) is None:
            continue
        if each.beside is None:
            return _filled(each, match)
        around = around or "\n".join((*_frames_of(failure), _text_of(failure)))
        if (beside := each.beside.search(around)) is not None:
            return _filled(each, match, beside)
    return None


#: The last frames in installed packages, without those of torch and of Python.
_INSTALLED = re.compile(
    r"[/\\](?:(?:site|dist)-packages|(?:vllm|sgl)-workspace[/\\][\w-]+(?:[/\\]python)?)[/\\](?P<package>\w+)[/\\]"
)
#: Packages that raise what others have done: tensors, the network, other processes.
_CARRIERS = frozenset({"torch", "torch_npu", "requests", "urllib3", "httpx", "httpcore", "aiohttp", "zmq", "ray"})
#: Servers whose parts can be switched off one by one.
_SERVERS = frozenset({"vllm", "vllm_ascend", "vllm_omni", "sglang"})


def _raised_in(failure: Failure, general: Remedy) -> Remedy:
    """A general reading, with the package that raised the exception where that is not the user's own code."""
    last = failure.first.frames[-1].path if failure.first.frames else ""
    match = _INSTALLED.search(last)
    if match is None or match["package"] in _CARRIERS:
        return general
    package = match["package"]
    cause = (
        f"{general.cause} The error comes from {package}, not from your code: mostly the releases of the packages do "
        "not match, or this package does not support NPUs there."
    )
    do = [f"pip show {package}: compare its version with the one in the guide or requirements of the program."]
    if package in _SERVERS:
        do.append(
            "Find the part of the server, turning off one at a time: speculation (MTP, eagle), prefix cache, chunked "
            "prefill, async scheduling, graphs (--enforce-eager, --disable-cuda-graph). Continue without it, and "
            "install the next release: its notes list what was fixed."
        )
    return replace(general, cause=cause, do=(*general.do, *do))


def _shown_by(clues: Iterable[Line]) -> Iterator[re.Match[str]]:
    """What the signs of clues find in their lines: the option and its value of a command line."""
    signs = ((sign, line) for line in clues if line.error is not None for sign in line.error.signs)
    for sign, line in signs:
        if sign.pattern is not None and (match := sign.pattern.search(line.text)) is not None:
            yield match


def _match(when: When, text: str) -> re.Match[str] | None:
    return None if when.pattern is None else when.pattern.search(text)


def _filled(when: When, *matches: re.Match[str]) -> Remedy:
    """Cause and steps of a row, with what its groups hold in place of their names in braces; where one is `module`,
    `distribution` is what pip calls it."""
    held = {name: value or "" for match in matches for name, value in match.groupdict().items()}
    if "module" in held:
        held["distribution"] = distribution_of(held["module"])

    def filled(text: str) -> str:
        for name, value in held.items():
            text = text.replace(f"{{{name}}}", value[:_MOST_NAME].strip(" ."))
        return text

    return Remedy(filled(when.cause), tuple(map(filled, when.do)))


def _frames_of(failure: Failure) -> Iterator[str]:
    """The frames, a line each; `@ ` stands before the last one, in which the exception was raised."""
    frames = failure.first.frames
    for number, frame in enumerate(frames, 1):
        yield f"{'@ ' if number == len(frames) else ''}{frame.path} in {frame.function}: {frame.source}"


def _text_of(failure: Failure) -> str:
    block = failure.first
    said = [failure.head.text, *(line.text for line in block.lines), *block.details, *failure.head.around]
    return "\n".join(dict.fromkeys(said))
