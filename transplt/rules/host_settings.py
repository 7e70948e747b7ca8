"""Settings of the host that may make a training faster, with what each costs and who says so."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from transplt.rules.tables import read_table


@dataclass(frozen=True, slots=True)
class HostSetting:
    """One setting: the lines of a shell that make it, those that take it back, its group, and what is known of it."""

    name: str
    group: str
    lines: tuple[str, ...]
    undo: tuple[str, ...]
    what: str
    cost: str
    source: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that the lines export (`export A=1 B=2`)."""
        exports = (line for line in self.lines if line.startswith("export "))
        return tuple(dict.fromkeys(name for line in exports for name in re.findall(r" ([A-Z][A-Z0-9_]+)=", line)))


@cache
def host_settings() -> tuple[HostSetting, ...]:
    """All of them, those of a group together; facts: rules/support/host_settings.json."""
    table = read_table("support/host_settings.json")
    groups = table["_meta"]["groups"]
    return tuple(
        HostSetting(
            row["name"], groups[row["group"]], tuple(row["try"]), tuple(row["undo"]), row["what"], row["cost"],
            row["source"],
        )
        for row in sorted(table["settings"], key=lambda row: list(groups).index(row["group"]))
    )  # fmt: skip


@cache
def host_settings_by_group() -> tuple[tuple[str, tuple[HostSetting, ...]], ...]:
    """The groups in their order, each with its settings."""
    return tuple((group, tuple(each)) for group, each in groupby(host_settings(), key=lambda setting: setting.group))
