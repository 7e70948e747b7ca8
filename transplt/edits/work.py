"""One file on the bench: what fixers read, and what they have found so far."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from transplt.base.finding import Effort, Level
from transplt.base.grouped import grouped
from transplt.base.settings import Settings
from transplt.base.text.memo import Memoized
from transplt.base.text.source import Source
from transplt.edits.edit import Edit, Extent, Found, Kept, Note
from transplt.flow.facts import ProjectFacts
from transplt.flow.slot_links import linked_slots
from transplt.flow.slots import Slots
from transplt.rules.rule import Rule
from transplt.rules.rule_set import RuleSet
from transplt.syntax.files import File
from transplt.syntax.names import Names
from transplt.syntax.nodes import by_place
from transplt.syntax.scan import Scan, parent
from transplt.syntax.scopes import Binding


@dataclass(slots=True, eq=False)
class Work(Memoized):
    """A scanned file with the rules in force.

    A fixer yields edits, notes and reasons; `edits`, `notes` and `kept` are those of the fixers before it, and its own
    so far. The rest is what fixers tell each other: nodes that are `taken`, those of them that are `shared`, import
    bindings that are `renamed` to another local name, `packages` whose imports rules report, names that are new to the
    file; and what one of them has worked out (see `once`). `grouped` are all edits of groups, those too that were lost
    since: a group is made whole or not at all. `claimed_first` are the nodes that a theme took before any rule could,
    and `overruled` says which rule of the user's wanted one of them. `answers` are the places whose findings of some
    codes an adaptor or a tuning takes care of, by its name; `answered` those findings with it.
    """

    source: Source
    scan: Scan
    names: Names
    rules: RuleSet
    settings: Settings
    project: ProjectFacts
    edits: list[Edit] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    shared: set[int] = field(default_factory=set)
    grouped: list[Edit] = field(default_factory=list)
    claimed_first: frozenset[int] = frozenset()
    overruled: str = ""
    answers: list[tuple[str, Extent, frozenset[str]]] = field(default_factory=list)
    answered: list[tuple[str, Note]] = field(default_factory=list)
    renamed: dict[Binding, str] = field(default_factory=dict)
    packages: list[tuple[ast.alias | ast.stmt, Rule, str]] = field(default_factory=list)
    new_names: set[str] = field(default_factory=set)
    known_slots: Slots | None = None  # worked out before the project was known
    edits_alone: bool = False  # nobody reads the findings
    _slots: Slots | None = None
    _own: dict[str, bool] = field(default_factory=dict)

    @property
    def slots(self) -> Slots:
        """The slots of this file, and which of them share a value; linked when a fixer first asks."""
        if self._slots is None:
            if self.known_slots is not None and self.project.known:
                self._slots = self.known_slots.join(self.names, self.project)
            else:
                self._slots = linked_slots(self.scan, self.names, self.project)
        return self._slots

    @property
    def file(self) -> File:
        """The file as others of its project see it."""
        return self.once(Work._as_file)

    def _as_file(self) -> File:
        return File(self.scan.path, self.source, self.scan, self.names)

    # --- what fixers say ---------------------------------------------------------------------------------------------

    def add(self, found: Found) -> None:
        """Take down what a fixer yields."""
        if isinstance(found, Edit):
            self.edits.append(found)
            if found.group:
                self.grouped.append(found)
        elif isinstance(found, Note):
            self.notes.append(found)
        else:
            self.kept.append(found)

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
        blocks: str = "",
        details: tuple[tuple[str, str], ...] = (),
    ) -> Note:
        """Something to say about a node without changing it."""
        if level in (Level.INFO, Level.UNKNOWN):
            effort = None if level is Level.INFO else effort
        return Note(
            self.source.extent(node), code, level, message, api, help, effort, blocks=blocks, details=details,
        )  # fmt: skip

    def note_rule(self, node: ast.expr | ast.stmt | ast.alias, rule: Rule, api: str, extra: str = "") -> list[Note]:
        """What a rule says about a node; nothing for a package that the project itself defines."""
        if rule.imports_only and not rule.user and rule.old.partition(".")[0] in self.project.packages:
            return []
        if rule.imports_only and isinstance(node, (ast.alias, ast.Import, ast.ImportFrom)):
            self.packages.append((node, rule, api))
            return []
        message = f"{rule.message}; {extra}" if extra else rule.message
        level = rule.level if rule.level is not Level.SAFE else Level.MANUAL
        effort = rule.effort or (Effort.MEDIUM if level is Level.MANUAL else None)
        extent = self.source.extent(node)
        return [Note(extent, rule.code, level, message, api, rule.help, effort, blocks=rule.blocks)]

    def keep(
        self, node: ast.expr | ast.stmt | ast.keyword | ast.alias | ast.arg, reason: str, detail: str = ""
    ) -> Kept:
        """Why the CUDA words of a node stay as they are: the name of a reason, and what goes into its words."""
        return Kept(self.source.extent(node), reason, detail)

    # --- what fixers tell each other ---------------------------------------------------------------------------------

    def take(self, node: ast.AST) -> bool:
        """Claim a node: True the first time, False when a fixer of lower rank has claimed it."""
        if id(node) in self.taken:
            return False
        self.taken.add(id(node))
        return True

    def take_for(self, rule: Rule, node: ast.expr) -> bool:
        """Claim a node for the edit of a rule; a user's own rule overrules the theme that has claimed it first."""
        if self.take(node):
            return True
        if rule.user and id(node) in self.claimed_first:
            self.overruled = self.overruled or f"in line {node.lineno} a rule of yours changes {rule.old} to {rule.new}"
        return False

    def share(self, call: ast.Call) -> bool:
        """Claim a call for an edit of some arguments of it, beside others that edit other arguments: False only where
        somebody has claimed all of it.
        """
        if self.take(call):
            self.shared.add(id(call))
        return id(call) in self.shared

    def withdraw_notes(self, unwanted: Callable[[Note], bool]) -> None:
        """Take back notes that are not true any more."""
        self.notes = [note for note in self.notes if not unwanted(note)]

    def withdraw_edits(self, unwanted: Callable[[Edit], bool], *, written_elsewhere: bool = False) -> None:
        """Take back edits that are not to be made after all, or that the caller writes in another place."""
        self.edits = [edit for edit in self.edits if not unwanted(edit)]
        if written_elsewhere:
            self.grouped = [edit for edit in self.grouped if not unwanted(edit)]

    # --- what fixers ask ---------------------------------------------------------------------------------------------

    def calls_by_name(self, names: Collection[str]) -> list[ast.Call]:
        """The calls of some full names, in the order of the scan."""
        if not names:
            return []
        by_name = self.once(Work._by_name)
        found = [item for name in names for item in by_name.get(name, ())]
        return [call for _, call in sorted(found, key=lambda item: item[0])]

    def _by_name(self) -> dict[str, list[tuple[int, ast.Call]]]:
        """The calls by full name, with their positions in the scan."""
        called = self._called()
        every = ((called.get(id(call)), index, call) for index, call in enumerate(self.scan.calls if called else ()))
        return grouped((full, (index, call)) for full, index, call in every if full is not None)

    def _called(self) -> dict[int, str]:
        """The full names of what is called, by the ids of the calls."""
        found: dict[int, str] = {}
        for name, full in self.names.references():
            node: ast.AST = name
            above = parent(node)
            while isinstance(above, ast.Attribute):
                full = f"{full}.{above.attr}"
                node, above = above, parent(above)
            if isinstance(above, ast.Call) and above.func is node:
                found[id(above)] = full
        return found

    def strings_left(self) -> Iterator[ast.expr]:
        """The strings with a CUDA word that nobody has claimed when their turn comes, by place; an f-string is one."""
        seen: set[int] = set()
        for node in by_place(self.scan.strings):
            above = parent(node)
            outer = above if isinstance(above, ast.JoinedStr) else node
            if id(outer) not in self.taken and id(outer) not in seen:
                seen.add(id(outer))
                yield outer

    def choice(self, code: str, node: ast.expr | ast.stmt | ast.arg) -> str:
        """What a plan says of a finding with `code` at a node; empty where it says nothing."""
        if self.settings.decided is None:
            return ""
        place = (code, *self.source.position(self.source.extent(node)[0]))
        return next((each.choice for each in self.settings.decided.at(self.scan.path) if each[:3] == place), "")

    @property
    def rewrites(self) -> list[Edit]:
        """The edits of existing code so far."""
        return [edit for edit in self.edits if edit.rewrites]

    def text(self, node: ast.expr | ast.stmt | ast.keyword | ast.alias | ast.arg) -> str:
        """The source text of a node."""
        return self.source.slice(*self.source.extent(node))

    def defines_package(self, name: str) -> bool:
        """True when the project has a package or a top-level module of that name, also below a folder such as src, or
        beside the file.
        """
        root = name.partition(".")[0]
        if root not in self._own:
            project = self.project
            beside = project.known and project.has_beside(root, self.scan.path, self.source.utf8)
            self._own[root] = root in project.packages or beside
        return self._own[root]
