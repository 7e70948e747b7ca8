"""Rule files compiled into dispatch tables: dicts by name, never a loop over rules.

How the engine uses a `RuleSet`:

- `literals`: lowercase bytes; `words`: lowercase identifiers, each with those of which one has to stand in the file too
  (itself where it is enough); a file with none of either needs no work from these rules (prefilter).
- `roots`: first segments of all qualified names; a reference whose qualified name starts elsewhere matches nothing.
- `rules.user`, then `rules.builtin` (user rules win over built-in ones); in each table
    - `resolve(qualified_name)`: the rule of the longest prefix that has a name, unsupported or module rule, and that
      prefix; what comes after it moves along (`torch.cuda.Event.x`). A MODULE rule with `listed` that answers for a
      longer name means: nobody knows this member, do not rewrite.
    - `last_names[name]`: rename of a call by its last name (undotted `old_name`);
    - `args[qualified_name]`, `last_args[name]`: argument rules, all to be applied in order.
- `importable(module)`: the module path to write in an import statement for a target module, None when there is no
  such module (`torch.npu.mstx` is a class: write `from torch.npu import mstx`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from transplt.base.finding import Effort, Level
from transplt.base.settings import Settings
from transplt.rules.rule import ArgSpec, Kind, Rule, SkipIf
from transplt.rules.rule_file import RuleFileError, load_user_rules
from transplt.rules.tables import read_table, rules_dir
from transplt.rules.versions import versions_of

__all__ = ["RuleFileError", "RuleSet", "Table", "compile_rules", "load_user_rules", "parse_rules"]

#: What marks a file as CUDA-bound whatever the rules say.
BASE_LITERALS = ("cuda", "nccl", "cudnn", "cublas", "nvtx", "nvidia", "nvcc", "cupti", "cpp_extension")

_USER_CODES = {
    Kind.ARGS: "NPU001", Kind.FUNC: "NPU002", Kind.MODULE: "NPU003", Kind.UNSUPPORTED: "NPU004",
    Kind.STRING: "NPU007", Kind.ATTRIBUTE: "NPU008", Kind.INSERT: "NPU009",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """The rules of one priority (the user's, or the built-in ones) by name; see the module's docstring."""

    names: dict[str, Rule] = field(default_factory=dict)
    last_names: dict[str, Rule] = field(default_factory=dict)
    modules: dict[str, Rule] = field(default_factory=dict)
    args: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    last_args: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    strings: dict[str, Rule] = field(default_factory=dict)
    attributes: dict[str, Rule] = field(default_factory=dict)
    inserts: dict[str, Rule] = field(default_factory=dict)
    definitions: dict[str, Rule] = field(default_factory=dict)
    _resolved: dict[str, tuple[Rule, str] | None] = field(init=False, default_factory=dict, compare=False, repr=False)

    def resolve(self, name: str) -> tuple[Rule, str] | None:
        """The rule for the longest prefix of a qualified name, and that prefix; None when no rule knows it."""
        if name not in self._resolved:
            self._resolved[name] = self._longest_prefix(name)
        return self._resolved[name]

    def _longest_prefix(self, name: str) -> tuple[Rule, str] | None:
        prefix = name
        while prefix:
            rule = self.names.get(prefix) or self.modules.get(prefix)
            if rule is not None:
                return rule, prefix
            prefix = prefix.rpartition(".")[0]
        return None

    def add(self, rule: Rule) -> None:
        """Put a rule in; a later rename of the same name replaces an earlier one, argument rules add up."""
        self._resolved.clear()
        dotted = "." in rule.old
        if rule.kind in (Kind.STRING, Kind.ATTRIBUTE, Kind.INSERT):
            tables = {Kind.STRING: self.strings, Kind.ATTRIBUTE: self.attributes, Kind.INSERT: self.inserts}
            tables[rule.kind][rule.old] = rule
        elif rule.definitions:
            self.definitions[rule.old] = rule
        elif rule.kind is Kind.MODULE:
            self.modules[rule.old] = rule
        elif rule.kind is Kind.ARGS:
            table = self.args if dotted else self.last_args
            argument = rule.arg_idx, rule.arg_keyword
            same = [old for old in table.get(rule.old, ()) if (old.arg_idx, old.arg_keyword) != argument]
            table[rule.old] = (*same, rule)
        elif dotted or rule.kind is Kind.UNSUPPORTED:
            self.names[rule.old] = rule
        else:
            self.last_names[rule.old] = rule

    def __iter__(self) -> Iterator[Rule]:
        tables = (self.names, self.last_names, self.modules, self.strings, self.attributes, self.inserts)
        for table in (*tables, self.definitions):
            yield from table.values()
        for rules in (*self.args.values(), *self.last_args.values()):
            yield from rules


@dataclass(frozen=True, slots=True)
class RuleSet:
    """All rules in force for one run (torch version, user files, `-sim`).

    `left` are rules of the user for modules that the project itself has: they are not in force.
    """

    user: Table
    builtin: Table
    literals: tuple[bytes, ...]
    words: dict[bytes, frozenset[bytes]]
    roots: frozenset[str]
    modules: frozenset[str]
    left: dict[str, Rule] = field(default_factory=dict)

    def beside(self, packages: frozenset[str]) -> RuleSet:
        """The rules for a file of a project that is imported under the names `packages`."""
        left = {name: rule for name, rule in self.user.modules.items() if name in packages}
        if not left:
            return self
        modules = {name: rule for name, rule in self.user.modules.items() if name not in left}
        return replace(self, user=replace(self.user, modules=modules), left=left)

    def without(self, names: frozenset[str]) -> RuleSet:
        """The rules without the built-in ones for some names, and for the arguments of their calls."""
        builtin = replace(
            self.builtin,
            names={name: rule for name, rule in self.builtin.names.items() if name not in names},
            args={name: rules for name, rules in self.builtin.args.items() if name not in names},
        )
        return replace(self, builtin=builtin)

    def resolve(self, name: str) -> tuple[Rule, str] | None:
        """The rule for a qualified name, the user's first, and the prefix that it matched."""
        return self.user.resolve(name) or self.builtin.resolve(name)

    def importable(self, module: str) -> str | None:
        """The path to write in an import statement for a module under torch.npu; None when it is not a module.

        `torch.npu` itself is registered in `sys.modules` by torch_npu; its submodules are found under that name too
        but would be loaded twice, so they are imported as `torch_npu.npu.*`, which is where they lie.
        Modules outside torch.npu are returned as they are.
        """
        if module == "torch.npu" or not module.startswith("torch.npu."):
            return module
        return "torch_npu.npu" + module[len("torch.npu") :] if module in self.modules else None


def compile_rules(settings: Settings) -> RuleSet:
    """The rules for these settings, cached. `settings.user_rules` must have passed `load_user_rules`."""
    return _compile(settings.torch_version, settings.similar, settings.user_rules)


@lru_cache(maxsize=32)
def _compile(torch_version: str, similar: bool, user_rules: tuple[tuple[str, str], ...]) -> RuleSet:
    builtin, user = builtin_rules(torch_version, similar), Table()
    for name, text in user_rules:
        for rule in parse_rules(json.loads(text), name, torch_version, user=True):
            if similar or not rule.similar:
                user.add(rule)
    known = read_table("support/modules.json")
    # Of a function that is renamed the last part alone stands in every file: a test may patch it where it is imported.
    named = (rule for rule in user if rule.kind is not Kind.STRING)
    own = {rule.old.rpartition(".")[2] if rule.kind is Kind.FUNC else rule.old for rule in named}
    few = len(own) <= _FEW
    words = _words(rule.old for rule in builtin if rule.kind is not Kind.STRING)
    if not few:
        words.update((word, frozenset((word,))) for word in (_longest_part(name.lower()).encode() for name in own))
    literals = _literals((*builtin.strings, *user.strings, *(own if few else ())))
    every = (names for table in (user, builtin) for names in (table.names, table.modules, table.args, table.inserts))
    roots = frozenset(name.partition(".")[0] for names in every for name in names)
    return RuleSet(user, builtin, literals, words, roots, frozenset(known["modules"]))


@lru_cache(maxsize=32)
def builtin_rules(torch_version: str, similar: bool = False) -> Table:
    """The rules of `rules/` that hold for a torch version; those for similar APIs in force, or named in the help."""
    builtin = Table()
    hints: dict[str, Rule] = {}
    for path in sorted(rules_dir().glob("*.json")):
        if path.name == "schema.json":
            continue
        for rule in parse_rules(read_table(path.name), path.name, torch_version, user=False):
            if rule.similar:
                hints[rule.old] = rule
            else:
                builtin.add(rule)
    for old, rule in hints.items():
        _similar(builtin, old, rule, similar)
    return builtin


def _similar(table: Table, old: str, rule: Rule, wanted: bool) -> None:
    """Put a `similar` rule in force, or tell of it in the help of the finding that stands without it."""
    stands = table.names.get(old)
    if stands is None:
        stands = Rule(
            Kind.UNSUPPORTED, old, "", "NPU510", Level.MANUAL, f"{old} needs CUDA", effort=Effort.LOW,
            imports_only=not old.startswith("torch."),
        )
    if wanted:
        hint = f"{rule.new} is similar ({rule.differs}), write it by hand"
        stands = replace(stands, help=f"{stands.help}; {hint}" if stands.help else hint)
        table.add(replace(rule, otherwise=stands))
    else:
        hint = f"use {rule.new}, as --similar does ({rule.differs})"
        table.add(replace(stands, help=f"{stands.help}; {hint}" if stands.help else hint))


def parse_rules(document: Any, origin: str, torch_version: str, *, user: bool) -> Iterator[Rule]:
    """The rules of a parsed, valid rule file that hold for a torch version, in file order."""
    defaults = document.get("defaults", {})
    for kind in Kind:
        for entry in document["rules"].get(kind.value, ()):
            if "versions" in entry and torch_version not in versions_of(entry["versions"]):
                continue
            yield _rule(kind, {**defaults.get(kind.value, {}), **entry}, origin, user)


def _rule(kind: Kind, entry: dict[str, Any], origin: str, user: bool) -> Rule:
    old, new = _names(kind, entry)
    similar = bool(entry.get("similar", False))
    fallback = "manual" if kind is Kind.UNSUPPORTED else "unsafe" if similar else "safe"
    level = Level(entry.get("level", fallback))
    effort = entry.get("effort", "medium" if level is Level.MANUAL else None)
    return Rule(
        kind=kind,
        old=old,
        new=new,
        code=entry.get("code") or _USER_CODES[kind],
        level=level,
        message=entry.get("message") or _message(kind, old, new, entry),
        help=entry.get("help", ""),
        effort=Effort(effort) if effort else None,
        user=user,
        similar=similar,
        differs=entry.get("differs", ""),
        args=_arg_spec(entry["args"]) if "args" in entry else None,
        arg_idx=entry.get("arg_idx", -1),
        arg_keyword=entry.get("arg_keyword") or entry.get("delete_keyword", ""),
        skip_if=_skip_if(entry["skip_if"]) if "skip_if" in entry else None,
        listed=entry.get("members") == "listed",
        imports_only=entry.get("where") == "import",
        below=entry.get("where") == "after",
        definitions=bool(entry.get("definitions", False)),
        blocks=entry.get("blocks", ""),
        origin=origin,
    )


def _names(kind: Kind, entry: dict[str, Any]) -> tuple[str, str]:
    if kind is Kind.UNSUPPORTED:
        return entry["name"], ""
    if kind is Kind.ARGS:
        return entry["func_name"], entry.get("arg_new", "").strip()
    if kind is Kind.STRING:
        return entry["old_string"], entry["new_string"]
    if kind is Kind.INSERT:
        return entry["func_name"], entry["insert"].strip("\n")
    old, new = entry["old_name"], entry["new_name"]
    if kind is Kind.MODULE:
        parent = entry.get("parent_module", "")
        old = f"{parent}.{old}" if parent else old
        if "." in old and "." not in new:
            new = f"{old.rpartition('.')[0]}.{new}"
    return old, new


def _message(kind: Kind, old: str, new: str, entry: dict[str, Any]) -> str:
    if kind is Kind.UNSUPPORTED:
        return f"{old} has no counterpart on NPU"
    if kind is Kind.ARGS:
        by_name = entry.get("arg_keyword") or entry.get("delete_keyword")
        place = f"argument {entry.get('arg_idx', by_name)} of {old}"
        return f"{place} becomes {new}" if new else f"{place} is deleted"
    if kind is Kind.MODULE:
        return f"module {old} becomes {new}"
    if kind is Kind.STRING:
        return f"{old!r} becomes {new!r}"
    if kind is Kind.INSERT:
        return f"lines {'behind' if entry.get('where') == 'after' else 'above'} the call of {old}"
    return f".{old} becomes .{new}" if kind is Kind.ATTRIBUTE else f"{old} becomes {new}"


def _arg_spec(entry: dict[str, Any]) -> ArgSpec:
    return ArgSpec(
        rename=tuple(entry.get("rename_keyword", {}).items()),
        name_positional=tuple((int(index), name) for index, name in entry.get("name_positional", {}).items()),
        positional_max=entry.get("positional_max"),
        reject=frozenset(entry.get("reject_keyword", ())),
        message=entry.get("message", ""),
    )


def _skip_if(entry: dict[str, Any]) -> SkipIf:
    return SkipIf(
        keywords=frozenset(entry.get("has_keyword", ())),
        lacks=frozenset(entry.get("lacks_keyword", ())),
        positional_at_least=entry.get("positional_at_least"),
        positional_at_most=entry.get("positional_at_most"),
    )


#: So many names of a user's rules are looked for one by one; of more, the words of a file are looked up.
_FEW = 500


def _longest_part(name: str) -> str:
    return max((part for part in name.split(".") if part != "torch"), key=len, default=name)


def _words(olds: Iterable[str]) -> dict[bytes, frozenset[bytes]]:
    """Identifiers one of which, with one that belongs to it, is in every file that a rule of ours can touch.

    Whole ones: `eig` is in every `weight`. A file has a name of torch from its own imports or from another file of the
    project, so the longest part has to stand there; of other packages it has to import, the package. In either case
    the last part has to.
    """
    found: dict[bytes, set[bytes]] = {}
    for old in olds:
        package, _, _ = (name := old.lower()).partition(".")
        if not any(known in name for known in BASE_LITERALS):
            word = _longest_part(name) if package == "torch" else package
            found.setdefault(word.encode(), set()).add(name.rpartition(".")[2].encode())
    return {word: frozenset(others) for word, others in found.items()}


def _literals(olds: Iterable[str]) -> tuple[bytes, ...]:
    """A small set of literals one of which is in every file that a rule can touch.

    A file can only refer to a qualified name when each part of it stands somewhere in the file, in an import at least.
    `torch` is in too many files to be of use.
    """
    found = set(BASE_LITERALS)
    names = {old.lower() for old in olds}
    for name in sorted(names, key=lambda text: (len(text), text)):
        if not any(known in name for known in found):
            found.add(_longest_part(name))
    return tuple(sorted(literal.encode() for literal in found))
