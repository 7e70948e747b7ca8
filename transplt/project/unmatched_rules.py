"""Rules of the user that match nothing in a project: which, and the nearest name that occurs."""

from __future__ import annotations

import ast
import difflib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from transplt.base.settings import Settings
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import UnreadableSource, read_source
from transplt.flow.facts import ProjectFacts
from transplt.flow.own_names import OwnNames
from transplt.rules.rule import Kind, Rule
from transplt.rules.rule_set import parse_rules
from transplt.syntax.modules import module_name
from transplt.syntax.names import Names
from transplt.syntax.nodes import dotted, last_name
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan

#: So many rules are named one by one, and so many names are compared with each.
_NAMED, _COMPARED = 5, 20_000


@dataclass(slots=True)
class Occurring:
    """The names of Python files: full names with all that they begin with, last names of calls, attributes, strings,
    and what is defined."""

    full: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    strings: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)

    def add(self, data: bytes, path: str) -> None:
        """Take up the names of a file; one that Python does not read has none."""
        try:
            source = read_source(data)
            found = scan(source, parse(source))
        except UnreadableSource:
            return
        names, own = Names(found), OwnNames(found, Names(found), ProjectFacts(), module_name(path))
        for definition in (*found.functions, *found.classes):
            full = own.full_name(found.scopes[definition])
            self.defined |= {definition.name, full}
        self.calls |= {last_name(call.func) for call in found.calls}
        self.attributes |= found.attributes.keys()
        for name, nodes in found.names.items():
            for use in nodes:
                base = names.resolve(name, found.scope_of(use))
                if base is not None:
                    attributes = (link.attr for link in dotted(use) if isinstance(link, ast.Attribute))
                    self._full(".".join([base, *attributes]))
        for statement in found.imports:
            module = getattr(statement, "module", "") or ""
            for alias in statement.names:
                self._full(f"{module}.{alias.name}" if module else alias.name)
        for node in ast.walk(found.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                self.strings.add(node.value)

    def _full(self, name: str) -> None:
        while name and name not in self.full:
            self.full.add(name)
            name = name.rpartition(".")[0]

    def pool(self, rule: Rule) -> set[str]:
        """The names of the kind that a rule is for."""
        if rule.definitions:
            return self.defined
        if rule.kind is Kind.STRING:
            return self.strings
        if rule.kind is Kind.ATTRIBUTE:
            return self.attributes
        by_call = rule.kind in (Kind.FUNC, Kind.ARGS, Kind.INSERT) and "." not in rule.old
        return self.calls if by_call else self.full


def unmatched(settings: Settings, folder: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """One sentence for each rule in force whose name occurs in none of the Python files `paths` below `folder`."""
    if not settings.user_rules:
        return ()
    occurring = Occurring()
    for path in paths:
        try:
            occurring.add(read_regular(os.path.join(folder, path), SOURCE), path)
        except OSError:
            continue
    return tuple(_sentences(settings, occurring))


def rules_of(settings: Settings) -> Iterator[Rule]:
    """The user's rules in force, in the order of their files."""
    for name, text in settings.user_rules:
        for rule in parse_rules(json.loads(text), name, settings.torch_version, user=True):
            if settings.similar or not rule.similar:
                yield rule


def _sentences(settings: Settings, occurring: Occurring) -> Iterator[str]:
    idle = [rule for rule in rules_of(settings) if rule.old not in occurring.pool(rule)]
    for rule in idle[:_NAMED]:
        near = nearest(rule, occurring)
        hint = f"; the nearest name there is {near}" if near else ""
        yield f"{rule.origin}: the {rule.kind.value} for {rule.old} matches nothing here{hint}"
    if len(idle) > _NAMED:
        yield f"{len(idle) - _NAMED} more rules match nothing here"


def nearest(rule: Rule, occurring: Occurring) -> str:
    """The name that occurs and is most like that of a rule; empty where none is like it."""
    pool = sorted(occurring.pool(rule))[:_COMPARED]
    found = difflib.get_close_matches(rule.old, pool, 1, 0.75)
    return found[0] if found else ""
