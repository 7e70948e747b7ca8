"""Trees that are a package of which our tables rename names: there a name becomes another one that the tree has too.

`DistributedType.MULTI_GPU` is MULTI_NPU in an accelerate that is installed; in the sources of one from before 0.21 the
class has no such member, and what it does for MULTI_GPU is migrated with them.
"""

from __future__ import annotations

import re
import sys
from functools import cache, lru_cache

from transplt.flow.facts import ProjectFacts
from transplt.rules.gpu_words import ComparePlace, places_of
from transplt.rules.rule_set import RuleSet, builtin_rules
from transplt.rules.tables import read_table
from transplt.syntax.modules import module_name


def tabled_names(data: bytes, path: str, torch_version: str, similar: bool) -> tuple[str, ...]:
    """The names that a file defines (by their last part) and that tables rename, or write, where its package has them.

    They are read in the text: most such files say nothing of CUDA.
    """
    renamed = _renamed(torch_version, similar)
    names = {name for root in renamed.keys() & set(module_name(path).split(".")) for name in renamed[root]}
    names.update(name for pair in _words().items() if pair[0].encode() in data for name in pair)
    if not names:
        return ()
    found = (match.group(1) or match.group(2) for match in _definitions(frozenset(names)).finditer(data))
    return tuple(sorted({name.decode() for name in found}))


def has_its_own(project: ProjectFacts, word: str, new: str) -> bool:
    """True where the tree itself defines what a word stands for, and nothing that its new word could stand for."""
    own = project.tabled.get("", frozenset())
    return word in own and new not in own


def beside_own_packages(rules: RuleSet, project: ProjectFacts, path: str, torch_version: str, similar: bool) -> RuleSet:
    """The rules for a file, without those that rename what its own tree defines to what that does not define."""
    if not project.known:
        root = module_name(path).partition(".")[0]
        gone = _of(root, torch_version, similar) if root in _renamed(torch_version, similar) else ()
    else:
        gone = project.once(_gone, torch_version, similar) if project.tabled else ()
    return rules.without(frozenset(gone)) if gone else rules


def _gone(project: ProjectFacts, torch_version: str, similar: bool) -> tuple[str, ...]:
    found = []
    for root in _renamed(torch_version, similar).keys() & project.tabled.keys():
        own, names = project.tabled[root], builtin_rules(torch_version, similar).names
        for old in _of(root, torch_version, similar):
            to, _, last = names[old].new.rpartition(".")
            lacks = to.partition(".")[0] != root or last not in own
            if lacks and old.rpartition(".")[2] in own and (project.path_of(root) or project.path_of(old)):
                found.append(old)
    return tuple(sorted(found))


@lru_cache(maxsize=32)
def _of(root: str, torch_version: str, similar: bool) -> tuple[str, ...]:
    """The names of a package that rules rename."""
    rules = builtin_rules(torch_version, similar).names.values()
    return tuple(rule.old for rule in rules if rule.renames and rule.old.partition(".")[0] == root)


@lru_cache(maxsize=32)
def _renamed(torch_version: str, similar: bool) -> dict[str, frozenset[str]]:
    """The packages of which rules rename names, each with the last parts of these and of the new names."""
    found: dict[str, set[str]] = {}
    for rule in builtin_rules(torch_version, similar).names.values():
        root = rule.old.partition(".")[0]
        if rule.renames and root != "torch" and root not in sys.stdlib_module_names:
            found.setdefault(root, set()).update(name.rpartition(".")[2] for name in (rule.old, rule.new))
    return {root: frozenset(names) for root, names in found.items()}


@cache
def _words() -> dict[str, str]:
    """Words of packages that are strings: what is compared, and values of configurations, with what each becomes."""
    found = {place.value: place.becomes for place, _ in places_of(ComparePlace) if place.becomes}
    for row in read_table("support/config_schemas.json")["schemas"]:
        found.update(row.get("values", {}))
    return found


@lru_cache(maxsize=32)
def _definitions(names: frozenset[str]) -> re.Pattern[bytes]:
    """A function, a class, or a name that is given a value at the beginning of a line, as members of classes are."""
    either = "|".join(sorted(names))
    return re.compile(rf"^[ \t]*(?:(?:class|def)[ \t]+({either})\b|({either})[ \t]*(?::[^=\n]*)?=(?!=))".encode(), re.M)
