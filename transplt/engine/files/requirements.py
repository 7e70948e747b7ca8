"""Findings of the packages that dependency files ask for; what is known of a package stands in rules/support/."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import replace

from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.render.cell import first_of
from transplt.base.text.ignore_comments import ignore_comments
from transplt.base.text.requirement import Requirement
from transplt.engine.files.dependencies.codes import PYTHON
from transplt.engine.files.dependency_files import INSTALLING, LOCK_FILES, requirements_of
from transplt.engine.files.install_commands import cloned_packages
from transplt.engine.files.kind import COG, FileKind
from transplt.engine.files.tokens import Known
from transplt.rules.packages import BOUND, TOO_OLD, PackageAdvice, advice_on_clone, advice_on_requirement

#: Bytes of a file that is read for requirements.
LARGEST = 2_000_000
#: A list for the cards of somebody else: `requirements_xpu.txt`.
_OF_OTHERS = re.compile(r"(?<![a-z])(?:xpu|rocm|amd|hpu|gaudi|tpu|mps)(?![a-z])", re.I)
_EXTRA = re.compile(r"(?:optional-dependencies|extras_require|extras)[.:]([^.]+)$")
_MOST_SHOWN = 8


def with_requirements(
    others: tuple[Finding, ...],
    data: bytes,
    path: str,
    kind: FileKind,
    ignored_codes: tuple[str, ...],
    known: Known = lambda start, end: None,
    met: Collection[tuple[str, str]] | None = None,
) -> tuple[Finding, ...]:
    """The findings of a file and those of its requirements; where a line has one for its words, that one reports both.

    Nothing is reported of a place of which something is `known`. `met`: what the project uses that asks for a version.
    """
    found = []
    for each in requirement_findings(data, path, kind, met):
        cause = known(each.span.start, each.span.start + 1)
        # What no wheel of the Python fits may need a newer release for NPUs, too.
        told = cause is not None and not (cause.code == PYTHON and each.code == TOO_OLD and each.open)
        if not (told or each.code.startswith(ignored_codes)):
            found.append(each)
    if kind is FileKind.REQUIREMENTS and others:
        others = _only_with_extras(others, data.decode("utf-8", "surrogateescape"), path)
    if not found:
        return others
    lines = data.split(b"\n")
    found = [
        each
        for each in found
        if not any(comment.holds_for(each.code) for comment in ignore_comments(lines[each.span.line - 1]))
    ]
    bound = {each.span.line: each for each in found if each.code == BOUND}
    reported_lines = {each.span.line for each in others}
    both = tuple(_joined(each, bound.get(each.span.line)) for each in others)
    return (*both, *(each for each in found if each.code != BOUND or each.span.line not in reported_lines))


def _only_with_extras(findings: tuple[Finding, ...], text: str, path: str) -> tuple[Finding, ...]:
    extras = {
        text.count("\n", 0, each.start) + 1: f"the extra {extra[1]}"
        for each in requirements_of(text, path, FileKind.REQUIREMENTS)
        if (extra := _EXTRA.search(each.section)) is not None
    }
    return tuple(replace(each, option=each.option or extras.get(each.span.line, "")) for each in findings)


def _joined(finding: Finding, requirement: Finding | None) -> Finding:
    if requirement is None:
        return finding
    finding = replace(finding, option=finding.option or requirement.option)
    if not requirement.help or requirement.help in (finding.help or ""):
        return finding
    said = finding.help if not finding.help.startswith("remove the ") else ""  # of any line: files.json, otherwise
    return replace(finding, help="; ".join(part for part in (said, requirement.help) if part))


def requirement_findings(
    data: bytes, path: str, kind: FileKind, met: Collection[tuple[str, str]] | None = None
) -> list[Finding]:
    """One finding for each package of a file that needs something else on Ascend; one for a whole lock file."""
    if len(data) > LARGEST or (kind not in INSTALLING and kind is not FileKind.REQUIREMENTS):
        return []
    if _OF_OTHERS.search(path.rpartition("/")[2]):
        return []
    text = data.decode("utf-8", "surrogateescape")
    found: dict[str, tuple[Requirement, PackageAdvice]] = {}
    listed = requirements_of(text, path, kind)
    if path.rpartition("/")[2].lower() in COG:  # its commands install, too
        listed += requirements_of(text, path, FileKind.CONFIG)
    for each in sorted(listed, key=lambda each: each.start):
        advice = None if each.is_elsewhere else advice_on_requirement(each.name, each.versions, met)
        if advice is not None:
            found.setdefault(f"{each.name.lower()} {advice.code}", (each, advice))
    for each in cloned_packages(text) if kind in INSTALLING else ():
        advice = advice_on_clone(each.name)
        if advice is not None:
            found.setdefault(f"{each.name.lower()} {advice.code}", (each, advice))
    if LOCK_FILES.fullmatch(path.rpartition("/")[2].lower()):
        every = [each for each, _ in found.values()]
        lock = advice_on_lock(every)
        return [] if lock is None else [_finding(text, path, every[0], lock)]
    return [_finding(text, path, each, advice) for each, advice in found.values()]


def advice_on_lock(requirements: Iterable[Requirement]) -> PackageAdvice | None:
    """What to report of a lock file with these packages; None where none is bound to CUDA."""
    every = ((each.name, advice_on_requirement(each.name, each.versions)) for each in requirements)
    names = list(dict.fromkeys(name for name, advice in every if advice is not None and advice.code == BOUND))
    if not names:
        return None
    return PackageAdvice(
        BOUND,
        f"this lock file has packages without NPU support: {first_of(names, _MOST_SHOWN)}",
        "change the requirements and lock again; `transplt explain NAME` shows the replacement of each",
    )


def _finding(text: str, path: str, at: Requirement, advice: PackageAdvice) -> Finding:
    before = text[: at.start]
    line = before.count("\n") + 1
    column = at.start - (before.rfind("\n") + 1) + 1
    start = len(before.encode("utf-8", "surrogateescape"))
    end = start + len(text[at.start : at.end].encode("utf-8", "surrogateescape"))
    span = Span(line, column, line, column + at.end - at.start, start, end)
    api = advice.package or at.name
    extra = _EXTRA.search(at.section)  # which nobody gets who does not ask for it
    return Finding(
        path, span, advice.code, advice.level, advice.message, api,
        effort=Effort.LOW if advice.level is Level.MANUAL else None, help=advice.help,
        option=f"the extra {extra[1]}" if extra is not None else "", blocks=advice.blocks, details=advice.details,
    )  # fmt: skip
