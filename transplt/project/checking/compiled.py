"""`transplt check --compile`: what the compiler of the card says of kernels that are launched with known sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from transplt.base.finding import Effort, Finding, Level
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import UnreadableSource
from transplt.fixers.triton.reader.kernels import kernels_in
from transplt.project.checking.check_run import fingerprint
from transplt.project.checking.launches_written import launches_written
from transplt.project.report.check_results import CheckedFinding, CheckResult
from transplt.proof.compiler.answers import NO, UNJUDGED, YES, Answer
from transplt.proof.compiler.compiling import Compiler
from transplt.proof.compiler.launches import ESTIMATED, HELP_OVERFLOW, HELP_REFUSED, OVERFLOW, REFUSED, Compiled, gather
from transplt.syntax.files import File


def with_compiled(
    result: CheckResult, paths: Iterable[str], compiler: Compiler, say: Callable[[str], None]
) -> tuple[CheckResult, list[str]]:
    """A result in which the compiler has the last word on kernels, and lines on what it was asked."""
    files = {file.path: file for file in filter(None, map(_file, paths))}
    forms = [form for file in files.values() for form in launches_written(file)]
    answers = iter(compiler.answers([each for form in forms for each in form], say))
    compiled = gather(
        [form[0] for form in forms], [_of_all([next(answers) for _ in form]) for form in forms], compiler.title
    )
    bounds = {
        (path, kernel.name): (min([kernel.node.lineno, *(each.lineno for each in kernel.node.decorator_list)]),
                              kernel.node.end_lineno or 0)
        for path, file in files.items() for kernel in kernels_in(file)
    }  # fmt: skip
    items, confirmed = _left(result.items, compiled, bounds)
    new = [
        _checked(files, kernel.name, each) for kernel in compiled.refused for each in kernel.told
        if each.word == NO and (each.path, each.line) not in confirmed
    ]  # fmt: skip
    items = sorted((*items, *new), key=lambda each: each.finding.sort_key())
    info = tuple(each for each in result.info if _left([each], compiled, bounds) == ([each], set()))
    return replace(result, items=tuple(items), info=info), compiled.lines()


def _file(path: str) -> File | None:
    if not path.endswith(".py"):
        return None
    try:
        data = read_regular(Path(path), SOURCE)
        return File.of(path, data) if b"triton" in data else None
    except (OSError, UnreadableSource):
        return None


def _of_all(answers: list[Answer]) -> Answer:
    """One answer for all types that may be: a refusal where it is one for all."""
    first = answers[0]
    if len({each.word for each in answers}) == 1 and (first.word != NO or all(each.overflow for each in answers)):
        return answers[-1] if first.word == NO else first
    if len(answers) == 1:
        return first
    return next((each for each in answers if each.word == YES), None) or Answer(
        UNJUDGED, f"refused with types that the code does not show ({first.sentence})", first.path, first.line
    )


def _checked(files: dict[str, File], kernel: str, answer: Answer) -> CheckedFinding:
    source = files[answer.path].source
    text = source.line_text(answer.line)
    start = source.line_starts[answer.line - 1] + len(text) - len(text.lstrip())
    finding = Finding(
        answer.path, source.span(start, start + len(text.strip().encode())), OVERFLOW if answer.overflow else REFUSED,
        Level.MANUAL, f"kernel {kernel} does not compile: {answer.said}", "triton", Effort.MEDIUM,
        HELP_OVERFLOW if answer.overflow else HELP_REFUSED,
    )  # fmt: skip
    return CheckedFinding(finding, fingerprint(finding, text, 0), ((answer.line, text),))


def _left(
    items: Iterable[CheckedFinding], compiled: Compiled, bounds: dict[tuple[str, str], tuple[int, int]]
) -> tuple[list[CheckedFinding], set[tuple[str, int]]]:
    """Those that the compiler does not refute or say itself, and the lines where it says the same as they do."""
    found, confirmed = [], set()
    for each in items:
        finding = each.finding
        words = [
            kernel for kernel in compiled.kernels for first, last in (bounds[kernel.path, kernel.name],)
            if finding.code in ESTIMATED and finding.path == kernel.path and first <= finding.span.line <= last
        ]  # fmt: skip
        refuses = finding.level is not Level.INFO and finding.blocks != "numbers"
        # Remarks above the kernel are on configurations.
        if any(
            not kernel.leaves_open(finding.code, refuses=refuses)
            and not (finding.span.line < kernel.line and kernel.passed_over)
            for kernel in words
        ):
            continue
        if finding.code != OVERFLOW and any(finding.span.line in kernel.refused_lines for kernel in words):
            confirmed.add((finding.path, finding.span.line))
            each = replace(each, finding=replace(finding, message=f"{finding.message}; the compiler refuses it too"))
        found.append(each)
    return found, confirmed
