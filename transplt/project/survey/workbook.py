"""survey.xlsx: a sheet each for repositories, actions, what would unblock most, packages, kernels and failures."""

from __future__ import annotations

from typing import Any

from transplt.base.efforts import EFFORT_TEXT
from transplt.base.finding import Effort
from transplt.base.render.cell import cell
from transplt.base.render.workbooks import Sheet, workbook
from transplt.engine.actions.action import BLOCKS_TEXT
from transplt.project.survey.table import COLUMNS, table


def survey_workbook(value: dict[str, Any]) -> bytes:
    """The bytes of the workbook: the same for the same survey."""
    names = [name for name, _ in COLUMNS]
    repositories = (
        [cell(each[name]) if isinstance(each[name], str) else each[name] for name in names]
        for each in table(value["repositories"], value["failed"])
    )
    actions = (
        (cell(row["name"]), cell(each["title"]), BLOCKS_TEXT[each["blocks"]], EFFORT_TEXT[Effort(each["effort"])],
         each["hours"], each["places"], cell(each["first"]), ", ".join(each["codes"]))
        for row in value["repositories"]
        for each in row["actions"]
    )  # fmt: skip
    unblocking = (
        (cell(each["title"]), each["kind"], len(each["last"]), len(each["only"]), len(each["blocks"]),
         cell(", ".join(each["last"])), cell(", ".join(each["blocks"])))
        for each in value["unblocking"]
    )  # fmt: skip
    packages = (
        (cell(each["package"]), len(each["open_in"]), len(each["used_in"]), cell(each["says"]), cell(each["instead"]),
         cell(", ".join(each["open_in"])))
        for each in value["packages"]
    )  # fmt: skip
    kernels = ((cell(each["kernel"]), len(each["in"]), cell(", ".join(each["in"]))) for each in value["kernels"])
    failed = [(cell(each["name"]), cell(each["source"]), cell(each["reason"])) for each in value["failed"]]
    sheets = [
        Sheet("repositories", [name.replace("_", " ") for name in names], repositories,
              [28, 40, *[14] * (len(names) - 2)]),
        Sheet("actions", ("Repository", "What to do", "Blocks", "Effort", "Hours", "Places", "First place", "Codes"),
              actions, (28, 90, 14, 10, 8, 8, 44, 30)),
        Sheet("unblocking", ("What", "Kind", "The last in", "Alone in", "Stops in", "Last in (names)", "In (names)"),
              unblocking, (80, 14, 12, 12, 10, 60, 60)),
        Sheet("packages", ("Package", "Blocks", "Used in", "What is known", "Instead", "Blocks (names)"),
              packages, (28, 14, 10, 60, 90, 60)),
        Sheet("kernels", ("Kernel", "In", "In (names)"), kernels, (40, 8, 80)),
        Sheet("failed", ("Repository", "Source", "Reason"), failed, (28, 50, 90)),
    ]  # fmt: skip
    return workbook(sheets if failed else sheets[:-1])
