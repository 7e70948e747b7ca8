"""Which torch versions support what a project uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from transplt.base.language import Sentence, marked
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.engine.analysis.verdicts import judged
from transplt.rules import support_tables as tables
from transplt.rules.rule_set import RuleSet, compile_rules
from transplt.rules.weighing import Status, weigh


@dataclass(frozen=True, slots=True)
class VersionAdvice:
    """`unsupported`: version -> APIs in use that stop there. `lowest` is the lowest version
    without any, empty when there is none; then `best` is the lowest of those with the fewest."""

    lowest: str
    best: str
    unsupported: Mapping[str, tuple[str, ...]]

    def text(self) -> str:
        """One line for a person."""
        if self.lowest:
            has_all = marked("torch {version} is the lowest version that supports everything the project uses")
            return Sentence(has_all, version=self.lowest)
        left = self.unsupported[self.best]
        names: str = ", ".join(left[:3])
        if len(left) > 3:
            names = Sentence("{names} and {count} more", names=names, count=len(left) - 3)
        return Sentence(
            "no torch version supports everything the project uses; torch {version} has the fewest gaps: {names}",
            version=self.best, names=names,
        )  # fmt: skip


def advise(apis: Collection[str]) -> VersionAdvice:
    """The advice for the APIs that a project uses, given by their canonical names."""
    table: dict[str, tuple[str, ...]] = {}
    for version in tables.published():
        rules: RuleSet = compile_rules(Settings(torch_version=version))
        table[version] = tuple(
            sorted(api for api in apis if weigh(api, version).status is Status.STOPS and judged(api, rules))
        )
    lowest = next((version for version in table if not table[version]), "")
    best = min(table, key=lambda version: (len(table[version]), TORCH_VERSIONS.index(version)))
    return VersionAdvice(lowest, best, table)
