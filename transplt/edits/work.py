"""One file on the bench: what codemods read, and where they put what they decide."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from transplt.edits.rewrite import Change
from transplt.finding import Effort, Finding, Level
from transplt.project.facts import ProjectFacts
from transplt.rules.rule import Rule
from transplt.rules.rule_set import RuleSet
from transplt.settings import Settings
from transplt.syntax.names import Names
from transplt.syntax.scan import Binding, Scan, parent
from transplt.text.source import Source
from transplt.values.links import Flow, build_flow

if TYPE_CHECKING:
    from transplt.edits.insertions import Deletion, Insertion
    from transplt.edits.layout import Layout


@dataclass(slots=True)
class Note:
    """A finding without an edit. `extent` is the byte range it speaks of."""

    extent: tuple[int, int]
    code: str
    level: Level
    message: str
    api: str = ""
    help: str = ""
    effort: Effort | None = None
    ignored: str = ""


@dataclass(slots=True)
class Addition:
    """A line of code that goes in beside a statement, at its indentation: after it, or before it."""

    beside: ast.stmt
    text: str
    code: str
    message: str
    before: bool = False


@dataclass(frozen=True, slots=True)
class NewImport:
    """What an import statement that goes in is for."""

    code: str
    message: str
    level: Level


@dataclass(slots=True)
class Work:
    """A scanned file with the rules in force; codemods append to `changes` and `notes`.

    `kept` are byte ranges whose CUDA words stay for a reason (a name of the project's own, prose, other libraries).
    `renamed` maps import bindings to the local name they get. `packages` are imports that rules report; `packages`
    of the codemods makes findings of them.
    """

    source: Source
    scan: Scan
    names: Names
    rules: RuleSet
    settings: Settings
    project: ProjectFacts
    changes: list[Change] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    kept: list[tuple[int, int, str]] = field(default_factory=list)
    renamed: dict[Binding, str] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    additions: list[Addition] = field(default_factory=list)
    packages: list[tuple[ast.alias | ast.stmt, Rule, str]] = field(default_factory=list)
    insertions: list[Insertion] = field(default_factory=list)  # lines and indentation, in order
    deletions: list[Deletion] = field(default_factory=list)
    layout: Layout | None = None  # new lines of several themes; see transplt.edits.writing
    new_imports: dict[str, NewImport] = field(default_factory=dict)
    new_names: set[str] = field(default_factory=set)
    bench: Any = None  # what transplt.themes.distributed keeps between its two visits
    kept_flow: Flow | None = None  # worked out before the project was known
    _flow: Flow | None = None

    @property
    def flow(self) -> Flow:
        """Where the values of this file go; built when a codemod first asks."""
        if self._flow is None:
            kept = self.kept_flow
            if kept is not None and self.project.known:
                self._flow = kept.join(self.names, self.project)
            else:
                self._flow = build_flow(self.scan, self.names, self.project)
        return self._flow

    def note(
        self,
        node: ast.expr | ast.stmt | ast.keyword | ast.alias | ast.arg,
        code: str,
        message: str,
        *,
        level: Level = Level.MANUAL,
        api: str = "",
        help: str = "",
        effort: Effort | None = Effort.LOW,
    ) -> None:
        """Say something about a node without changing it."""
        if level in (Level.INFO, Level.UNKNOWN):
            effort = None if level is Level.INFO else effort
        self.notes.append(Note(self.source.extent(node), code, level, message, api, help, effort))

    def note_rule(self, node: ast.expr | ast.stmt | ast.alias, rule: Rule, api: str, extra: str = "") -> None:
        """Report what a rule says about a node; nothing for a package that the project itself defines."""
        if rule.imports_only and not rule.user and self.defines_package(rule.old):
            return
        if rule.imports_only and isinstance(node, (ast.alias, ast.Import, ast.ImportFrom)):
            self.packages.append((node, rule, api))
            return
        message = f"{rule.message}; {extra}" if extra else rule.message
        level = rule.level if rule.level is not Level.SAFE else Level.MANUAL
        effort = rule.effort or (Effort.MEDIUM if level is Level.MANUAL else None)
        self.notes.append(Note(self.source.extent(node), rule.code, level, message, api, rule.help, effort))

    def defines_package(self, name: str) -> bool:
        """True when the project has a package or a top-level module of that name, also below a folder such as src."""
        return name.partition(".")[0] in self.project.packages

    def keep(self, node: ast.expr | ast.stmt | ast.keyword | ast.alias | ast.arg, reason: str) -> None:
        """Leave the CUDA words of a node as they are, for a reason."""
        start, end = self.source.extent(node)
        self.kept.append((start, end, reason))

    def take(self, node: ast.AST) -> bool:
        """Claim a node: True the first time, False when a rule of higher rank has claimed it."""
        if id(node) in self.taken:
            return False
        self.taken.add(id(node))
        return True


def call_of(node: ast.AST) -> ast.Call | None:
    """The call whose callee is `node`, else None."""
    above = parent(node)
    return above if isinstance(above, ast.Call) and above.func is node else None


def is_dotted(node: ast.AST) -> bool:
    """True for `a` and `a.b.c`: read twice, they give the same without doing anything."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def finding_of(work: Work, note: Note) -> Finding:
    """The record of a note."""
    return Finding(
        path=work.scan.path,
        span=work.source.span(*note.extent),
        code=note.code,
        level=note.level,
        message=note.message,
        api=note.api,
        effort=note.effort,
        help=note.help,
        ignored=note.ignored,
    )
