"""Which line of the user's own source a traceback leads to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from transplt.base.text.frames import decoded
from transplt.base.text.regular_file import SOURCE, read_regular

FRAME = re.compile(r'^\s*File "(?P<path>[^"]{1,1000})", line (?P<line>\d{1,9})(?:,? in (?P<function>.{1,200}))?')
#: Folders in which the source of others lies.
_OTHERS = re.compile(
    r"(?:^|[/\\])(?:site-packages|dist-packages|Ascend|ascend-toolkit)[/\\]|[/\\]lib(?:64)?[/\\]python\d[\d.]*[/\\]|^<|"
    r"[/\\](?:torch|torch_npu)[/\\](?:nn|utils|autograd|optim|distributed|_dynamo|_inductor)[/\\]"
)
_MOST_FILES = 50_000


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback. `own`: it lies in the project, or where none is given, not in an installed package."""

    path: str
    line: int
    function: str
    source: str = ""


class Project:
    """The Python files of a folder, to which the paths of a log are held: a training often ran in another place."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
        """A line of a file, without the space around it; empty where there is none."""
        try:
            source = decoded(read_regular(self.folder / relative, SOURCE))
        except OSError:
            return ""
        return source.line_text(number).strip() if 0 < number <= len(source.line_starts) else ""


def own_frame(frames: Iterable[Frame], project: Project | None) -> Frame | None:
    """The innermost frame of the user's own source; None where the traceback has none.

    With a project its path is relative to it, and its text that of the file where the log has none.
    """
    for frame in reversed(list(frames)):
        if project is None:
            if not _OTHERS.search(frame.path):
                return frame
        elif not re.search(r"site-packages|dist-packages|^<", frame.path):
            relative = project.file_of(frame.path)
            if relative is not None:
                return Frame(relative, frame.line, frame.function, project.line(relative, frame.line) or frame.source)
    return None
