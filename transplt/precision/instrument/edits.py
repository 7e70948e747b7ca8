"""The edits of a probe copy in one file, and what is left to a person."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from transplt.base.settings import Settings
from transplt.base.text.source import read_source
from transplt.edits.edit import Beside, Edit
from transplt.edits.shared_lines import can_part
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.engine.edit_outcome import apply_edits
from transplt.engine.verify import refused
from transplt.flow.facts import ProjectFacts
from transplt.rules.rule_set import compile_rules
from transplt.syntax.files import File

#: What holds the lines of a copy together; its edits are no migration's, and have no code.
_GROUP = "probe"


@dataclass(frozen=True, slots=True, order=True)
class Left:
    """What a probe copy cannot fix, or (`informs`) what is worth knowing of it."""

    path: str
    line: int
    message: str
    informs: bool = False

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(slots=True)
class Edits:
    """What changes in one file; `probes` where `transplt_probe` is called in it."""

    file: File
    made: list[Edit] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    probes: bool = False

    def rewrite(self, node: ast.expr, *news: New) -> None:
        """Another text for an expression, or what transforms make of it, one after the other."""
        self.made += [Edit(node, "", "", new) for new in news]

    def above(self, node: ast.stmt, lines: str) -> bool:
        """Lines above a statement; False where none fit in there."""
        fits = can_part(self.file.source, node)
        if fits:
            self.made.append(Edit(Beside(node), "", "", lines, group=_GROUP))
        return fits

    def at_end(self, lines: str) -> None:
        """Lines behind all others."""
        source = self.file.source
        newline, end = source.newline(), len(source.utf8)
        lead = "" if source.utf8.endswith((b"\n", b"\r")) or not end else newline
        self.made.append(Edit((end, end), "", "", lead + lines.replace("\n", newline) + newline))

    def report(self, node: ast.AST, message: str, *, informs: bool = False) -> None:
        """A finding at a node."""
        self.left.append(Left(self.file.path, getattr(node, "lineno", 1), message, informs))

    def result(self) -> bytes:
        """The file with its edits; as it was where Python would not compile it any more, which is a finding."""
        file, settings = self.file, Settings()
        work = Work(file.source, file.scan, file.names, compile_rules(settings), settings, ProjectFacts())
        outcome = apply_edits(work, self.made)
        for failure in outcome.failures:
            self.report(failure.site.node, f"could not be instrumented: {failure.reason}")
        before = file.source.encode(file.source.utf8)
        why = refused(read_source(outcome.data), None)
        if why and not refused(file.source, file.scan.tree):
            self.left = [Left(file.path, 1, f"this file could not be instrumented: {why}")]
            return before
        return outcome.data
