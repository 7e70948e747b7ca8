"""What packages gave up before their first release for the Pythons of a torch_npu (rules/support/refused_calls.json,
`packages`, and rules/support/gone_names.json)."""

from __future__ import annotations

from functools import cache
from typing import Any

from transplt.rules.tables import read_table


@cache
def every_row() -> tuple[dict[str, Any], ...]:
    """What wheels say, and behind it what people wrote, which counts where both speak of a name."""
    tables = ("support/gone_names.json", "support/refused_calls.json")
    return tuple(row for table in tables for row in read_table(table)["packages"])


def packages() -> frozenset[str]:
    """The packages whose versions, where a project asks for some, say whether it meets what is gone."""
    bounded = (row[key][0] for row in every_row() for key in ("until", "from") if key in row)
    return frozenset(bounded) | {name for row in every_row() for name in row.get("repository", ())}
