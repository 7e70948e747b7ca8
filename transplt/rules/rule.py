"""A rule as the engine sees it: one frozen record for built-in and user rules alike."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum

from transplt.base.finding import Effort, Level


class Kind(str, Enum):
    """The kinds of rules; the value is the key under which a rule file lists them."""

    ARGS = "ArgsModifyRule"
    FUNC = "FuncNameModifyRule"
    MODULE = "ModuleNameModifyRule"
    UNSUPPORTED = "UnsupportedRule"
    STRING = "StringModifyRule"
    ATTRIBUTE = "AttributeModifyRule"
    INSERT = "InsertRule"


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """How the arguments of a call change together with its name.

    Apply in this order: `rename` old keyword -> new keyword; `name_positional` gives the positional argument at an
    index a keyword (only where no star stands before it). The call must not be rewritten, and is a manual finding
    with the text `message`, when it has more than `positional_max` positional arguments left, or one of the
    keywords in `reject` (names as the source has them).
    """

    rename: tuple[tuple[str, str], ...] = ()
    name_positional: tuple[tuple[int, str], ...] = ()
    positional_max: int | None = None
    reject: frozenset[str] = frozenset()
    message: str = ""

    def rejects(self, positional: int, keywords: Collection[str], starred: bool) -> bool:
        """True when a call with so many positional arguments and these keywords cannot be carried over.

        `starred` says that the call holds `*args` or `**kwargs`: what they bring is not known, so a call whose
        arguments would have to change is rejected.
        """
        if not self.reject.isdisjoint(keywords):
            return True
        if starred:
            return bool(self.rename or self.name_positional or self.reject or self.positional_max is not None)
        named = {index for index, _ in self.name_positional if index < positional}
        return self.positional_max is not None and positional - len(named) > self.positional_max


@dataclass(frozen=True, slots=True)
class SkipIf:
    """When a call is left alone: it has one of `keywords`, lacks one of `lacks`, or that many positional arguments."""

    keywords: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    positional_at_least: int | None = None
    positional_at_most: int | None = None

    def holds(self, positional: int, keywords: Collection[str], starred: bool) -> bool:
        """True when the rule must not act on this call; with a star what cannot be known counts as true."""
        if not self.keywords.isdisjoint(keywords) or (starred and self.keywords):
            return True
        if not self.lacks <= set(keywords):
            return True
        if self.positional_at_least is not None and (starred or positional >= self.positional_at_least):
            return True
        return self.positional_at_most is not None and (starred or positional <= self.positional_at_most)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule, whatever its kind.

    `old` is the name it looks for: a qualified name when it has dots (any reference), else the last name of a call
    (FUNC, ARGS) or a top-level module (MODULE). For MODULE it is the full module name, parent included.
    `new`: FUNC the new name (dotted: the whole callee; undotted: its last name); MODULE the full new module name;
    ARGS the new expression ("" deletes the argument); UNSUPPORTED "". STRING: the value of a string and its new one;
    ATTRIBUTE: an attribute's name and its new one; INSERT: a called function and the lines that go in beside the call.
    `below` (INSERT): the lines stand behind the statement.
    `definitions` (FUNC): a function of the project is meant, which is renamed with its definition.
    `listed` (MODULE): only names with a rule of their own move with the module, any other is a finding.
    `imports_only` (UNSUPPORTED): one finding at the import, none at the uses.
    `otherwise` is the finding that stands where this rule (one of -sim) cannot act, e.g. for the arguments of a call.
    `blocks` (UNSUPPORTED): what a use keeps the program from, where that is not what its code says.
    `origin` is the rule file's name, for messages.
    """

    kind: Kind
    old: str
    new: str
    code: str
    level: Level
    message: str
    help: str = ""
    effort: Effort | None = None
    user: bool = False
    similar: bool = False
    differs: str = ""
    args: ArgSpec | None = None
    arg_idx: int = -1
    arg_keyword: str = ""
    skip_if: SkipIf | None = None
    listed: bool = False
    below: bool = False
    definitions: bool = False
    imports_only: bool = False
    otherwise: Rule | None = None
    blocks: str = ""
    origin: str = ""

    @property
    def renames(self) -> bool:
        """True when the rule rewrites a name."""
        return self.kind in (Kind.FUNC, Kind.MODULE)


def needs_torch_npu(name: str) -> bool:
    """True when a qualified name exists only after `import torch_npu`."""
    root, *parts = name.split(".")
    return root == "torch_npu" or (root == "torch" and any(part == "npu" or "hccl" in part.lower() for part in parts))
