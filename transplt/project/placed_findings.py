"""Whether a training script of the project reaches what findings are about."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from transplt.flow.entry_points import TO_TRAIN
from transplt.flow.facts import ProjectFacts
from transplt.flow.import_layout import TESTS, layout_of
from transplt.flow.import_text import GUARD

if TYPE_CHECKING:
    from transplt.project.worker import MigratedFile


def placed(file: MigratedFile, project: ProjectFacts) -> MigratedFile:
    """The file, whose findings say whether a training script of the project reaches it."""
    found = file.result.findings
    if not found:
        return file
    aside, late = project.aside.holds(file.entry.path), project.aside.late(file.entry.path)
    if project.portable and late != "guard" and not project.once(layout_of).ours:
        late = "handled"  # a port that has just been written is no proof that it trains
    chosen = project.aside.chosen.get(file.entry.path, "")
    late = "branch" if chosen and late == "other" else late
    aside = aside or _is_idle(file, project)
    tried = len(file.data) if aside or late else _tried_from(file, project)
    if not aside and not late and not chosen and tried >= len(file.data):
        return file
    findings = tuple(
        replace(
            each, aside=aside, late=late if each.span.start < tried else "other",
            option=each.option or (chosen if each.open else ""),
        )
        for each in found
    )  # fmt: skip
    return replace(file, result=replace(file.result, findings=findings))


def _tried_from(file: MigratedFile, project: ProjectFacts) -> int:
    """Where the part of a module begins that tries it out, behind a main guard: others import the module, and the part
    trains nothing. The end of the file where there is none.
    """
    path, guard = file.entry.path, GUARD.search(file.data)
    imported = any(not TESTS.search(each) for each in project.once(layout_of).importers.get(path, ()))
    if guard is None or not imported or TO_TRAIN.search(path) or b"backward(" in file.data[guard.start() :]:
        return len(file.data)
    return guard.start()


def _is_idle(file: MigratedFile, project: ProjectFacts) -> bool:
    """True for a module of a package that does not parse, is imported by nobody, and is no script."""
    path = file.entry.path
    if path in project.aside.taken or not any(each.code == "NPU901" for each in file.result.findings):
        return False
    return f"{path.rpartition('/')[0]}/__init__.py" in project.modules.values() and b"__main__" not in file.data
