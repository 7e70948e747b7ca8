"""What a diagnosis says, as text and as JSON. What comes from a log is shown with escapes, and cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from transplt.base.finding import Finding
from transplt.base.render.cell import labelled, many, shortened, visible
from transplt.precision.diagnose.components import component_of
from transplt.precision.diagnose.findings import Collected, Failure, Line
from transplt.precision.diagnose.packages import packages_told
from transplt.precision.diagnose.remedies import remedy_of, state_of
from transplt.precision.diagnose.stacks import Frame, Project, own_frame
from transplt.rules.card_limits import documented_as
from transplt.rules.card_types import lists_of
from transplt.rules.error_numbers import readings
from transplt.rules.errors import LATE
from transplt.rules.pages import load
from transplt.rules.silent_errors import CODE, SilentError, errors_named_in

FORMAT = 1
_MARGIN, _MOST_TEXT = 13, 300
_MOST_WHO, _MOST_SHORT, _MOST_TOLD = 8, 10, 4
_UNKNOWN, _BY_FORM = "An unknown error", "A known form of error"
#: So many are told of one failure.
_MOST = 3
#: Lines that hold the list of types themselves.
_SAID = ("support list", "expected scalar type", "not implemented for DT_")


@dataclass(frozen=True, slots=True)
class Source:
    """A log that was read; `cut_short` are literals that came up so often that they were no longer counted."""

    name: str
    lines: int
    cut_short: tuple[str, ...]


def diagnosis_json(collected: Collected, sources: Sequence[Source], project: Project | None) -> dict[str, Any]:
    """One document: failures in their order, remarks, and what was read."""
    return {
        "format": FORMAT,
        "errors": [_failure_table(failure, project, collected) for failure in collected.failures()],
        "remarks": [
            {"name": each.error.name, "kind": each.error.kind.name.lower(), "title": each.error.title,
             "times": each.times, "text": shortened(each.first.text, _MOST_TEXT), "means": each.error.means,
             "cause": each.error.cause, "do": [*each.error.do], **_place(each.first)}
            for each in sorted(collected.remarks.values(), key=lambda remark: remark.error.name)
        ],
        "unknown_left_out": collected.unknown_left_out,
        "order_uncertain": collected.untimed(),
        "versions": collected.versions.mismatch(),
        "release_notes": collected.versions.notes(),
        "sources": [
            {"name": visible(each.name), "lines": each.lines, "not_counted_to_the_end": [*map(visible, each.cut_short)]}
            for each in sources
        ],
    }  # fmt: skip


def diagnosis_text(collected: Collected, sources: Sequence[Source], project: Project | None) -> str:
    """For people: each failure with what it means and what to do; the first one is where to begin."""
    failures = collected.failures()
    read = f"{many(sum(each.lines for each in sources), 'line')} of {many(len(sources), 'log')}"
    versions = [each for each in (collected.versions.mismatch(), *collected.versions.notes()) if each]
    if not failures:
        return "\n".join([f"transplt diagnose: no error in {read}", *versions, *_told_remarks(collected)]) + "\n"
    lines = [f"transplt diagnose: {many(len(failures), 'error')} in {read}; begin with the first"]
    if collected.untimed():
        lines.append("Some lines have no time; they come last, and their order among the logs is unknown.")
    lines += versions
    for number, failure in enumerate(failures, 1):
        lines += ["", *_failure(number, failure, project, collected)]
    if collected.unknown_left_out:
        lines += ["", f"{many(collected.unknown_left_out, 'more unknown error')} omitted."]
    # Where a launcher alone says that a process failed, a remark may be the cause.
    lines += _told_remarks(collected) if all(each.consequence for each in failures) else _remarks(collected)
    if any(each.cut_short for each in sources):
        lines += ["", "Messages that occur thousands of times were not all counted: their numbers are lower bounds."]
    return "\n".join(lines) + "\n"


def _failure(number: int, failure: Failure, project: Project | None, collected: Collected) -> Iterator[str]:
    error, head = failure.head.error, failure.head
    remedy = remedy_of(failure, collected.clues, collected.torch)
    if error is None:
        yield f"{number}. {_BY_FORM if remedy.read else _UNKNOWN}"
    else:
        after = " - it follows from another error" if failure.consequence and number > 1 else ""
        yield f"{number}. {error.title}  [{error.code or error.name}]{after}"
    yield from labelled("where", _where(failure))
    yield from labelled("says", shortened(head.text, _MOST_TEXT))
    yield from labelled("detail", *(f"- {shortened(text, _MOST_TEXT)}" for text in failure.first.said()))
    if error is None:
        yield from (" " * _MARGIN + "| " + visible(text) for text in head.around)
    yield from labelled("numbers", *_numbers(failure))
    if error is not None:
        yield from labelled("means", error.means)
    yield from labelled("cause" if error or remedy.read else "by form", remedy.cause)
    for clue in remedy.clues:
        yield from labelled("by", f"{visible(clue.source)}:{clue.number}: {shortened(clue.text, _MOST_TEXT)}")
    yield from labelled("do", *(f"- {step}" for step in remedy.do))
    yield from labelled("package", *(shortened(text, _MOST_TEXT) for text in _packages(failure)))
    yield from _around(failure, project, collected, remedy.read or (failure.consequence and number > 1))


def _around(failure: Failure, project: Project | None, collected: Collected, read: bool) -> Iterator[str]:
    """What is known of a failure besides its cause: its operators, its lines, what foretold it, whose it is."""
    error = failure.head.error
    if failure.operators:
        yield from labelled("operator", ", ".join(map(visible, failure.operators)))
    yield from labelled("types", *types_told(failure))
    if (frame := own_frame(failure.first.frames, project)) is not None:
        yield from labelled("source", _shown_frame(frame))
    elif failure.first.frames:
        yield from labelled("inside", _shown_frame(failure.first.frames[-1]))
    if error is not None and error.asynchronous:
        yield from labelled("stack", LATE if collected.torch else LATE.split(" Run again")[0])
    yield from _foretold(failure, project)
    yield from labelled("silent", *(f"{row.text()}; {row.do} ({CODE}, {row.source})" for row in _silent(failure)))
    if failure.beside:
        beside = ", ".join(each.code or each.name for each in failure.beside.values())
        yield from labelled("with it", f"{beside} (see transplt explain)")
    if (part := component_of(failure, read)) is not None:
        yield from labelled("part", part.name + (f", by {part.by}" if part.by else ""))
        yield from labelled("collect", *(f"- {each}" for each in part.collect))
        yield from labelled("ask", part.ask)


def _foretold(failure: Failure, project: Project | None) -> Iterator[str]:
    """What a check says of the project's lines in the traceback; else which findings would have warned."""
    codes = failure.head.error.predicted_by if failure.head.error else ()
    found = [*project.foretold(failure.first.frames, codes)] if project else []
    for frame, findings, mended in found:
        for each in findings:
            text = "; ".join(part for part in (f"{each.code}: {each.message}", each.help) if part)
            label = "check" if frame.function else "foretold"
            yield from labelled(label, visible(f"{frame.path}:{frame.line} {text}"))
        if mended:
            yield from labelled("edit", visible(f"- {frame.source}"), visible(f"+ {mended}"))
    if not found:
        yield from labelled("foretold", *(f"{code}: {load(code).title}" for code in codes))


def _numbers(failure: Failure) -> list[str]:
    """What the return codes of HCCL and of the driver mean that the failure names."""
    said = [line.text for line in failure.first.lines] + [*failure.first.details]
    return list(dict.fromkeys(reading for text in said for reading in readings(text)))


def _packages(failure: Failure) -> list[str]:
    """What is known of packages that the failure names, where Python and not CANN says it."""
    if failure.head.error is not None and failure.head.error.area in ("acl", "cann", "hccl", "torch_npu"):
        return []
    said = [failure.head.text, *(line.text for line in failure.first.lines if line.error is None)]
    return packages_told(said, failure.first.frames)


def _silent(failure: Failure) -> tuple[SilentError, ...]:
    """What is known of operators that the failure names: numbers that they give wrong without an error."""
    sources = (frame.source for frame in failure.first.frames)
    said = [failure.head.text, *failure.head.around, *failure.operators, *sources]
    return errors_named_in("\n".join(said))


def _where(failure: Failure) -> str:
    head = failure.head
    parts = [f"{visible(head.source)}:{head.number}"]
    parts += [head.who] if head.who else []
    parts += [str(head.moment)] if head.moment else []
    others = sorted(failure.who - {head.who}, key=lambda who: (len(who), who))
    more = ""
    if failure.times > 1:
        more = f"; {many(failure.times - 1, 'more time')}"
        shown = ", ".join(visible(who) for who in others[:_MOST_WHO]) + (" ..." if others[_MOST_WHO:] else "")
        more += f" ({shown})" if others else ""
    return visible(", ".join(parts)) + more


def _shown_frame(frame: Frame) -> str:
    function = f" in {frame.function}" if frame.function else ""
    return visible(f"{frame.path}:{frame.line}{function}" + (f": {frame.source}" if frame.source else ""))


def _told_remarks(collected: Collected) -> Iterator[str]:
    """The remarks of logs without an error: there each may be what the reader asks for, so that it is told in full;
    then the line with which each log ends, for a program that stands still."""
    found = sorted(collected.remarks.values(), key=lambda remark: (remark.error.kind, -remark.times))
    yield from ("", "No errors:") if found else ()
    for each in found[:_MOST_TOLD]:
        yield from ("", f"- {each.error.title}  [{each.error.name}; {each.error.kind.name.lower()}]")
        times = f", {many(each.times, 'time')}" if each.times > 1 else ""
        yield from labelled("where", f"{visible(each.first.source)}:{each.first.number}{times}")
        yield from labelled("says", shortened(each.first.text, _MOST_TEXT))
        yield from labelled("means", each.error.means)
        yield from labelled("cause", each.error.cause)
        yield from labelled("do", *(f"- {step}" for step in each.error.do))
    if len(found) > _MOST_TOLD:
        yield from ("", f"{many(len(found) - _MOST_TOLD, 'more remark')}: --format json has all.")
    for line in collected.last_lines[:_MOST_TOLD]:
        state = state_of(line.text, line.around)
        yield from ("", f"The log {visible(line.source)} ends with")
        yield from labelled("", shortened(line.text, _MOST_TEXT))
        yield from labelled("what it tells of" if state.read else "by form", state.cause)
        for step in state.do:
            yield from labelled("", f"- {step}")


def _remarks(collected: Collected) -> list[str]:
    found = sorted(collected.remarks.values(), key=lambda remark: (remark.error.kind, remark.error.name))
    if not found:
        return []
    lines = ["", "No errors:"]
    for each in found[:_MOST_SHORT]:
        times = f", {each.times} times" if each.times > 1 else ""
        lines += labelled("", f"- {each.error.title} ({visible(each.first.source)}:{each.first.number}{times}; "
                          f"{each.error.kind.name.lower()})")  # fmt: skip
    return lines


def _failure_table(failure: Failure, project: Project | None, collected: Collected) -> dict[str, Any]:
    error, head = failure.head.error, failure.head
    frame = own_frame(failure.first.frames, project)
    remedy = remedy_of(failure, collected.clues, collected.torch)
    part, codes = component_of(failure, remedy.read), error.predicted_by if error else ()
    return {
        "name": error.name if error else None,
        "code": error.code if error else "",
        "kind": error.kind.name.lower() if error else "unknown",
        "title": error.title if error else _BY_FORM if remedy.read else _UNKNOWN,
        **_place(head),
        "text": shortened(head.text, _MOST_TEXT),
        "around": [visible(text) for text in head.around],
        "times": failure.times,
        "by": sorted(visible(who) for who in failure.who),
        "means": error.means if error else "",
        "cause": remedy.cause,
        "decided_by": [{"text": shortened(clue.text, _MOST_TEXT), **_place(clue)} for clue in remedy.clues],
        "do": [*remedy.do],
        "asynchronous": bool(error and error.asynchronous),
        "operators": [*map(visible, failure.operators)],
        "types": types_told(failure),
        "details": [shortened(text, _MOST_TEXT) for text in failure.first.said()],
        "numbers": _numbers(failure),
        "packages": _packages(failure),
        "foretold_by": [*codes],
        "checked": [_checked(*told) for told in project.foretold(failure.first.frames, codes)] if project else [],
        "own_source": None if frame is None else {
            "path": visible(frame.path), "line": frame.line, "function": visible(frame.function),
            "text": visible(frame.source),
        },
        "silent_errors": [
            {"operators": [*row.operators], "what": row.text(), "do": row.do, "source": row.source}
            for row in _silent(failure)
        ],
        "with_it": [
            {"name": each.name, "code": each.code, "title": each.title} for each in failure.beside.values()
        ],
        "part": part and asdict(part),
        "source": error.source if error else "",
    }  # fmt: skip


def _checked(frame: Frame, findings: Sequence[Finding], mended: str) -> dict[str, Any]:
    rows = [{"code": each.code, "message": visible(each.message), "help": visible(each.help)} for each in findings]
    place = {"path": visible(frame.path), "line": frame.line, "text": visible(frame.source)}
    return {**place, "mended": visible(mended), "findings": rows}


def _place(line: Line) -> dict[str, Any]:
    return {
        "log": visible(line.source), "line": line.number, "who": visible(line.who),
        "time": str(line.moment) if line.moment else "",
    }  # fmt: skip


def types_told(failure: Failure) -> list[str]:
    """What the operators of a failure take by argument and card, a line each; nothing where no check of an operator
    spoke, or where it named the types itself."""
    errors = [failure.head.error, *failure.beside.values()]
    said = "\n".join((failure.head.text, *failure.first.said()))
    if not any(error is not None and error.checks for error in errors) or any(word in said for word in _SAID):
        return []
    return list(dict.fromkeys(line for name in failure.operators for line in _of(name)))[:_MOST]


def _of(function: str) -> Iterator[str]:
    for types, cards in lists_of(function).items():
        where = f"{function} on {', '.join(map(documented_as, cards))}"
        if types.takes:
            yield f"{where}: {types.argument or 'all tensors'} may be {', '.join(types.takes)}"
        elif types.refuses:
            yield f"{where}: {types.argument or 'all tensors'} may not be {', '.join(sorted(types.refuses))}"
