"""A project of which an editor has files open: the facts of its files, and what is found in a text."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from transplt.base.disk.walk import Entry
from transplt.base.finding import Finding
from transplt.base.text.source import declared_encoding
from transplt.flow.facts import ModuleFacts
from transplt.project.checking.check_run import worker_for
from transplt.project.checking.checked_file import CheckedFile
from transplt.project.checking.inputs import CheckedProject, add_folders, is_marked, open_project
from transplt.project.file_passes import chose_before, project_of
from transplt.project.options import Options

#: In a project where more files have facts a text is looked at alone: an editor does not wait for that.
MOST_FILES = 5000


@dataclass(slots=True)
class OpenProject:
    """Nothing is written, and the files of the project are read again only when they change.

    A folder that does not look like a project (a home folder) is not read: a file in it is looked at alone.
    """

    options: Options
    project: CheckedProject
    _facts: dict[str, tuple[tuple[int, int], ModuleFacts | None]] = field(default_factory=dict)
    _chose: bool | None = None

    @staticmethod
    def around(file: Path, options: Options) -> OpenProject:
        """The project that a file lies in. UsageError when its settings are wrong."""
        return OpenProject(options, open_project(Path(os.path.realpath(file.parent)), options))

    def refresh(self) -> None:
        """Looks at the folder again: at its settings, its files, and the facts of those that changed."""
        root = self.project.root
        self.project = open_project(root, self.options)
        if self.project.config.folder is None and not is_marked(root):
            return
        add_folders(self.project, ("",), self.options)
        with_facts = [entry for entry in self.project.every or () if entry.has_facts]
        if len(with_facts) > MOST_FILES:
            self.project.every = None
            return
        self._chose = chose_before(str(root))
        worker, known = worker_for(self.project, (), False, False), self._facts
        self._facts = {}
        for entry in with_facts:
            try:
                info = os.stat(root / entry.path)
            except OSError:
                continue
            mark = (info.st_mtime_ns, info.st_size)
            if (before := known.get(entry.path)) is not None and before[0] == mark:
                self._facts[entry.path] = before
                continue
            facts = worker.index(entry)
            worker.known.clear()
            self._facts[entry.path] = (mark, facts if isinstance(facts, ModuleFacts) else None)

    def findings(self, file: Path, text: str) -> tuple[Finding, ...]:
        """What a check finds in the file if it holds this text, by place; edits among them are not made."""
        root = self.project.root
        full = Path(os.path.realpath(file.parent)) / file.name
        path = os.path.relpath(full, root).replace(os.sep, "/")
        if any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in self.project.excluded):
            return ()
        data = encoded(text)
        worker = worker_for(self.project, (), False, False)
        entry = Entry(path, len(data), 0o644)
        worker.known[path] = data
        if self.project.every is not None:
            facts = worker.index(entry) if entry.has_facts else None
            others = [each for other, (_, each) in self._facts.items() if other != path and each is not None]
            every = [*others, facts] if isinstance(facts, ModuleFacts) else others
            worker.project = project_of(every, worker.settings, self._chose)
            worker.known[path] = data
        record = worker.finish(entry)
        assert isinstance(record, CheckedFile)
        return tuple(finding for finding in record.findings if not finding.ignored)


def encoded(text: str) -> bytes:
    """The bytes of a text that an editor has: in the encoding that it declares, where that can hold it."""
    plain = text.encode("utf-8", "replace")
    cookie = declared_encoding(plain)
    if cookie is not None:
        try:
            return text.encode(cookie)
        except (LookupError, UnicodeError):
            pass
    return plain
