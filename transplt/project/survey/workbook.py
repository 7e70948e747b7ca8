"""survey.xlsx: a sheet each for repositories, actions, what would unblock most, packages, kernels and failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transplt.project.survey.table import COLUMNS, table
from transplt.render.cell import cell
from transplt.report.workbook import Book, add_sheet, book_bytes

_Cells = tuple[str | int | float, ...]


def survey_workbook(value: dict[str, Any]) -> bytes:
    """The bytes of the workbook: the same for the same survey."""
    book = Book()
    names = [name for name, _ in COLUMNS]
    rows = [
        tuple(cell(each[name]) if isinstance(each[name], str) else _figure(each[name]) for name in names)
        for each in table(value["repositories"], value["failed"])
    ]
    titles, widths = [name.replace("_", " ") for name in names], [28, 40, *[14] * (len(names) - 2)]
    add_sheet(book, "repositories", titles, widths, rows)
    actions = ("Repository", "What to do", "Blocks", "Effort", "Hours", "Places", "First place", "Codes")
    add_sheet(book, "actions", actions, (28, 90, 14, 10, 8, 8, 44, 30), _actions(value))
    columns: tuple[str, ...] = ("What", "Kind", "The last in", "Alone in", "Stops in", "Last in (names)", "In (names)")
    add_sheet(book, "unblocking", columns, (80, 14, 12, 12, 10, 60, 60), _unblocking(value))
    columns = ("Package", "Blocks", "Used in", "What is known", "Instead", "Blocks (names)")
    add_sheet(book, "packages", columns, (28, 14, 10, 60, 90, 60), _packages(value))
    kernels = ((cell(each["kernel"]), len(each["in"]), cell(", ".join(each["in"]))) for each in value["kernels"])
    add_sheet(book, "kernels", ("Kernel", "In", "In (names)"), (40, 8, 80), kernels)
    if value["failed"]:
        failed = ((cell(each["name"]), cell(each["source"]), cell(each["reason"])) for each in value["failed"])
        add_sheet(book, "failed", ("Repository", "Source", "Reason"), (28, 50, 90), failed)
    return book_bytes(book)


def _figure(value: int | float | None) -> str | int | float:
    return "" if value is None else value


def _actions(value: dict[str, Any]) -> Iterator[_Cells]:
    for row in value["repositories"]:
        for each in row["actions"]:
            yield (
                cell(row["name"]), cell(each["title"]), each["blocks"], each["effort"], each["hours"], each["places"],
                cell(each["first"]), ", ".join(each["codes"]),
            )  # fmt: skip


def _unblocking(value: dict[str, Any]) -> Iterator[_Cells]:
    for each in value["unblocking"]:
        yield (
            cell(each["title"]), each["kind"], len(each["last"]), len(each["only"]), len(each["blocks"]),
            cell(", ".join(each["last"])), cell(", ".join(each["blocks"])),
        )  # fmt: skip


def _packages(value: dict[str, Any]) -> Iterator[_Cells]:
    for each in value["packages"]:
        yield (
            cell(each["package"]), len(each["open_in"]), len(each["used_in"]), cell(each["says"]),
            cell(each["instead"]), cell(", ".join(each["open_in"])),
        )  # fmt: skip
