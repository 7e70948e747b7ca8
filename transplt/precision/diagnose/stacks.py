"""Which line of the user's own source a traceback leads to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transplt.base.finding import Finding, Level
from transplt.base.text.frames import decoded
from transplt.base.text.regular_file import SOURCE, read_regular

FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,1000})", line (?P<line>\d{1,9})(?:,? in (?P<function>.{1,200}))?')
#: Folders in which the source of others lies.
_OTHERS = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|Ascend|ascend-toolkit)[/\\]|[/\\]lib(?:64)?[/\\]python\d[\d.]*[/\\]|^<|"
    r"[/\\](?:torch|torch_npu)[/\\](?:nn|utils|autograd|optim|distributed|_dynamo|_inductor)[/\\]"
)
_MOST_FILES = 50_000
#: So many lines of a traceback are held to what a check says of them, and so many others are named.
_MOST_CHECKED, _MOST_ELSEWHERE = 8, 3


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback. `own`: it lies in the project, or where none is given, not in an installed package."""

    path: str
    line: int
    function: str
    source: str = ""


class Project:
    """The Python files of a folder, to which the paths of a log are held: a training often ran in another place.

    `check` gives what a check says of a file.
    """

    def __init__(self, folder: Path, check: Callable[[Path], Iterable[Finding]] = lambda path: ()) -> None:
        self.folder = folder
        self._check = cache(lambda relative: tuple(check(folder / relative)))
        self._by_name: dict[str, list[str]] = {}
        count = 0
        for where, folders, files in os.walk(folder):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            for name in files:
                if name.endswith(".py") and (count := count + 1) <= _MOST_FILES:
                    relative = Path(os.path.relpath(os.path.join(where, name), folder)).as_posix()
                    self._by_name.setdefault(name, []).append(relative)

    def file_of(self, path: str) -> str | None:
        """The file of the project, relative, that has the longest end in common with a path; None for none or two."""
        parts = path.replace("\\", "/").split("/")
        found, longest, alike = None, 0, 0
        for relative in self._by_name.get(parts[-1], ()):
            mine = relative.split("/")
            same = 0
            while same < min(len(mine), len(parts)) and mine[-1 - same] == parts[-1 - same]:
                same += 1
            if same > longest or (same == longest and same == len(mine)):
                found, longest, alike = relative, same, 1
            elif same == longest:
                alike += 1
        return found if alike == 1 else None

    def line(self, relative: str, number: int) -> str:
        """A line of a file; empty where there is none."""
        try:
            source = decoded(read_regular(self.folder / relative, SOURCE))
        except OSError:
            return ""
        return source.line_text(number).rstrip() if 0 < number <= len(source.line_starts) else ""

    def foretold(self, frames: Iterable[Frame], codes: Iterable[str]) -> Iterator[tuple[Frame, list[Finding], str]]:
        """What a check says of the lines of a traceback, those nearest to the error first, and the line as the edits
        make it (empty for none): findings that are known to foretell it (`codes`), and all that are work left. Where
        there are none, those of `codes` in the same files, without a function: where a value was made that failed
        later. Nothing of a file in which a line is another one by now."""
        wanted = {*codes}
        pairs = [(frame.source.strip(), _owned(frame, self)) for frame in list(frames)[::-1][:_MOST_CHECKED]]
        changed = {own.path for source, own in pairs if own and source not in ("", own.source)}
        lines = [own for _, own in pairs if own and own.path not in changed]
        found = [(own, [each for each in self._check(own.path) if _told(each, own.line, wanted)]) for own in lines]
        if not any(here for _, here in found):
            every = ((path, each) for path in dict.fromkeys(own.path for own in lines) for each in self._check(path))
            found = [
                (Frame(path, each.span.line, "", self.line(path, each.span.line).strip()), [each])
                for path, each in every
                if each.code in wanted
            ][:_MOST_ELSEWHERE]
        for own, here in found:
            if here:
                yield own, here, _mended(self.line(own.path, own.line), own.line, here).strip()


def _told(finding: Finding, line: int, wanted: set[str]) -> bool:
    here = finding.span.line <= line <= finding.span.end_line
    return here and (finding.code in wanted or finding.level is not Level.INFO)


def _mended(text: str, number: int, findings: Iterable[Finding]) -> str:
    """A line as the edits of its findings make it; empty where they make nothing of it."""
    changed = text
    for each in sorted(findings, key=lambda finding: -finding.span.column):
        if each.edit is not None and each.span.line == each.span.end_line == number and "\n" not in each.edit.after:
            changed = changed[: each.span.column - 1] + each.edit.after + changed[each.span.end_column - 1 :]
    return changed if changed != text else ""


def own_frame(frames: Iterable[Frame], project: Project | None) -> Frame | None:
    """The innermost frame of the user's own source; None where the traceback has none.

    With a project its path is relative to it, and its text that of the file where the log has none.
    """
    return next((own for frame in reversed(list(frames)) if (own := _owned(frame, project)) is not None), None)


def _owned(frame: Frame, project: Project | None) -> Frame | None:
    if project is None:
        return None if _OTHERS.search(frame.path) else frame
    relative = None if re.search(r"site-packages|dist-packages|^<", frame.path) else project.file_of(frame.path)
    if relative is None:
        return None
    return Frame(relative, frame.line, frame.function, project.line(relative, frame.line).strip() or frame.source)
