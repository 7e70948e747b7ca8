"""Workbooks that are the same bytes for the same rows: a table a sheet, with a frozen header and a filter.

Written as ECMA-376 part 1, 18.2 and 18.3 have it: importing a library for it would cost more than the reports of a
small project.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

#: A sheet opens with at most 65,530 links.
_MAX_LINKS = 65_000
#: A cell holds at most so many characters.
_MAX_CHARACTERS = 32_767
_EPOCH = datetime(1980, 1, 1)
#: Characters that XML 1.0 has no way to write.
_REFUSED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
#: The corners of a table, and how they are written where they do not move: `$A$1:$F$20`.
_CORNER, _FIXED = re.compile("([A-Z]+)([0-9]+)"), r"$\1$\2"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
#: The style 0 of every cell, and 1 of a header.
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><fonts count="2"><font><sz val="11" /><name val="Calibri" /><family val="2" /></font>'
    '<font><b val="1" /><sz val="11" /><name val="Calibri" /><family val="2" /></font></fonts>'
    '<fills count="2"><fill><patternFill /></fill><fill><patternFill patternType="gray125" /></fill></fills>'
    '<borders count="1"><border><left /><right /><top /><bottom /><diagonal /></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" /></cellStyleXfs>'
    '<cellXfs count="2"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0" />'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1" /></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0" /></cellStyles></styleSheet>'
)
_TOP = (
    f'<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2"'
    ' activePane="bottomLeft" state="frozen" /><selection pane="bottomLeft" activeCell="A1" sqref="A1" /></sheetView>'
    '</sheetViews><sheetFormatPr baseColWidth="8" defaultRowHeight="15" />'
)
_CORE = (
    f'<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    ' xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
    "<dc:creator>transplt</dc:creator>"
    + "".join(
        f'<dcterms:{name} xsi:type="dcterms:W3CDTF">{_EPOCH.isoformat()}Z</dcterms:{name}>'
        for name in ("created", "modified")
    )
    + "</cp:coreProperties>"
)

Value = str | int | float


@dataclass(slots=True)
class _Sheet:
    name: str
    area: str  # the cells of the table: `A1:F20`
    content: str
    targets: list[str]  # of its links, in their order


@dataclass(slots=True)
class Book:
    """A workbook in the making."""

    sheets: list[_Sheet] = field(default_factory=list)


def add_sheet(
    book: Book,
    name: str,
    columns: Sequence[str],
    widths: Sequence[int],
    rows: Iterable[tuple[Value, ...]],
    links: str | None = None,
) -> None:
    """Adds a sheet. `links` is the way from the workbook to the files of the first column, None for no links."""
    letters = [_letters(position) for position in range(len(columns))]
    cols = "".join(
        f'<col width="{width}" customWidth="1" min="{position}" max="{position}" />'
        for position, width in enumerate(widths, 1)
    )
    parts = [_TOP, f"<cols>{cols}</cols><sheetData>", _row(1, letters, columns, ' s="1"')]
    linked: list[tuple[int, str]] = []
    count = 1
    for row in rows:
        count += 1
        if links is not None and count <= _MAX_LINKS and row[0]:
            linked.append((count, links + quote(str(row[0]).removeprefix("'"))))
        parts.append(_row(count, letters, row))
    area = f"A1:{letters[-1]}{count}"
    parts.append(f'</sheetData><autoFilter ref="{area}" />')
    if linked:
        each = (
            f'<hyperlink xmlns:r="{_OFFICE}" ref="A{at}" r:id="rId{position}" />'
            for position, (at, _) in enumerate(linked, 1)
        )
        parts.append(f"<hyperlinks>{''.join(each)}</hyperlinks>")
    parts.append("</worksheet>")
    book.sheets.append(_Sheet(name, area, "".join(parts), [target for _, target in linked]))


def _letters(position: int) -> str:
    """`A`, ..., `Z`, `AA`: a column, from 0 on."""
    before, last = divmod(position, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _attribute(text: str) -> str:
    return _escaped(text).replace('"', "&quot;")


def _row(at: int, letters: Sequence[str], values: Sequence[Value], style: str = "") -> str:
    cells = "".join([_cell(f"{letter}{at}", value, style) for letter, value in zip(letters, values, strict=False)])
    return f'<row r="{at}">{cells}</row>'


def _cell(place: str, value: Value, style: str) -> str:
    if not isinstance(value, str):
        figure = f"{value:.16g}" if isinstance(value, float) else str(value)
        return f'<c r="{place}"{style} t="n"><v>{figure}</v></c>'
    if not value:
        return f'<c r="{place}"{style} t="inlineStr" />'
    space = "" if value == value.strip() else ' xml:space="preserve"'
    text = _escaped(_REFUSED.sub("", value[:_MAX_CHARACTERS]))
    return f'<c r="{place}"{style} t="inlineStr"><is><t{space}>{text}</t></is></c>'


def book_bytes(book: Book) -> bytes:
    """The bytes of a workbook."""
    parts = {
        "[Content_Types].xml": _content_types(len(book.sheets)),
        "_rels/.rels": _relations(
            [(f"{_OFFICE}/officeDocument", "xl/workbook.xml"),
             (f"{_PACKAGE}/relationships/metadata/core-properties", "docProps/core.xml")]
        ),
        "docProps/core.xml": _CORE,
        "xl/workbook.xml": _workbook(book),
        "xl/_rels/workbook.xml.rels": _relations(
            [*((f"{_OFFICE}/worksheet", f"worksheets/sheet{number}.xml") for number, _ in enumerate(book.sheets, 1)),
             (f"{_OFFICE}/styles", "styles.xml")]
        ),
        "xl/styles.xml": _STYLES,
    }  # fmt: skip
    for number, sheet in enumerate(book.sheets, 1):
        parts[f"xl/worksheets/sheet{number}.xml"] = sheet.content
        if sheet.targets:
            linked = [(f"{_OFFICE}/hyperlink", target) for target in sheet.targets]
            parts[f"xl/worksheets/_rels/sheet{number}.xml.rels"] = _relations(linked, ' TargetMode="External"')
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, _EPOCH.timetuple()[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, (_HEAD + content).encode("utf-8"))
    return out.getvalue()


def _workbook(book: Book) -> str:
    sheets = "".join(
        f'<sheet name="{_attribute(sheet.name)}" sheetId="{number}" state="visible" r:id="rId{number}" />'
        for number, sheet in enumerate(book.sheets, 1)
    )
    # A filter is a name of its sheet, too: without it Excel mends the file.
    filters = "".join(
        f'<definedName name="_xlnm._FilterDatabase" localSheetId="{position}" hidden="1">'
        f"'{_escaped(sheet.name)}'!{_CORNER.sub(_FIXED, sheet.area)}</definedName>"
        for position, sheet in enumerate(book.sheets)
    )
    return (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><bookViews><workbookView firstSheet="0" activeTab="0" />'
        f"</bookViews><sheets>{sheets}</sheets><definedNames>{filters}</definedNames></workbook>"
    )


def _content_types(sheets: int) -> str:
    kinds = {
        "/xl/workbook.xml": f"{_TYPE}.sheet.main+xml",
        "/xl/styles.xml": f"{_TYPE}.styles+xml",
        "/docProps/core.xml": "application/vnd.openxmlformats-package.core-properties+xml",
        **{f"/xl/worksheets/sheet{number}.xml": f"{_TYPE}.worksheet+xml" for number in range(1, sheets + 1)},
    }
    overrides = "".join(f'<Override PartName="{name}" ContentType="{kind}" />' for name, kind in kinds.items())
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels"'
        ' ContentType="application/vnd.openxmlformats-package.relationships+xml" />'
        f'<Default Extension="xml" ContentType="application/xml" />{overrides}</Types>'
    )


def _relations(kinds_and_targets: Iterable[tuple[str, str]], more: str = "") -> str:
    each = (
        f'<Relationship Type="{kind}" Target="{_attribute(target)}"{more} Id="rId{position}" />'
        for position, (kind, target) in enumerate(kinds_and_targets, 1)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(each)}</Relationships>'
