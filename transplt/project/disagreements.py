"""Files of a project that ask for versions of torch of which none is the other: findings with both places."""

from __future__ import annotations

from collections.abc import Sequence

from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.text.ignore_comments import ignore_comments
from transplt.engine.files.dependencies.exports import export_of
from transplt.project.pins import LIST_FOR_NPUS
from transplt.project.torch_requirements import TORCH, Ask, Voice

CODE = "NPU846"


def disagreements(found: Sequence[Voice], version: str) -> tuple[Finding, ...]:
    """A finding for each voice that leaves no version of torch to those before it, at its place; it names the other's.

    Two files have one between them, however many packages differ. `version` is the one that is chosen all the same. A
    comment in its line may switch it off.
    """
    findings = []
    agreed: list[Voice] = []
    told = set[tuple[str, str]]()
    for voice in found:
        if export_of(voice.asks[0].pin.text) or LIST_FOR_NPUS.search(voice.asks[0].pin.path):
            continue  # a list of what was installed stays as it is, and NPU844 reports that in the line of its torch
        common = voice.allowed.intersection(*(each.allowed for each in agreed))
        if common:
            agreed.append(voice)
            continue
        other = next((each for each in agreed if not each.allowed & voice.allowed), agreed[-1])
        files = (voice.asks[0].pin.path, other.asks[0].pin.path)
        here, there = voice.ask_without(other), other.ask_without(voice)
        if (files in told and files[0] != files[1]) or here.meets(there):
            continue
        told.add(files)
        pin = voice.asks[0].pin
        line = pin.text.split("\n")[pin.line - 1].encode("utf-8", "replace")
        if not any(comment.holds_for(CODE) for comment in ignore_comments(line)):
            findings.append(_finding(here, there, version))
    return tuple(findings)


def _finding(here: Ask, there: Ask, version: str) -> Finding:
    place = f"line {there.pin.line}" if there.pin.path == here.pin.path else f"{there.pin.path}, line {there.pin.line}"
    family = {here.pin.package, there.pin.package} <= {*TORCH, "torchvision", "torchaudio"}
    same = here.pin.path == there.pin.path and here.pin.path.endswith((".txt", ".yml", ".yaml"))
    return Finding(
        path=here.pin.path,
        span=_span(here),
        code=CODE,
        level=Level.INFO if same and family else Level.MANUAL,  # a migration writes both lines of one list
        message=f"no version of torch satisfies both {here.text} and {there.text} ({place})",
        api="torch",
        effort=Effort.LOW,
        help="keep the one that the project runs with, and make the other agree; this migration is for torch "
        f"{version}, --torch-version takes another",
    )


def _span(ask: Ask) -> Span:
    """The place of the name of a requirement, in bytes and in characters of its line."""
    text, (start, end) = ask.pin.text, ask.pin.at
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    first = len(text[:start].encode("utf-8", "replace"))
    last = first + len(text[start:end].encode("utf-8", "replace"))
    return Span(ask.pin.line, column, ask.pin.line, column + end - start, first, last)
