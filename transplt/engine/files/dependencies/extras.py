"""The portable style: what a project needs for an NPU becomes an extra, and what it asks for stays."""

from __future__ import annotations

import re

from transplt.base.finding import Effort, Level
from transplt.base.text.requirement import Requirement, normalised
from transplt.base.text.toml import parse_toml
from transplt.base.text.toml_places import TomlValue, toml_rows, toml_values
from transplt.edits.edit import Edit, Finds, Note
from transplt.engine.files.dependencies.codes import ADDED, NOT_ADDED, added_help
from transplt.engine.files.dependencies.places import Change, beside_row, is_row, newline_of
from transplt.engine.files.dependencies.versions import TORCH, TORCH_NPU, Releases
from transplt.engine.files.dependency_files import BUILD
from transplt.engine.files.document import Document
from transplt.engine.files.kind import COG
from transplt.rules.releases import AS_EXTRA, of_a_library

_OPTIONAL, _POETRYS = ("project", "optional-dependencies"), ("tool", "poetry", "extras")
_GROUP = "[tool.poetry.group.npu]{n}optional = true{n}{n}[tool.poetry.group.npu.dependencies]{n}{row}"


def changes(document: Document, text: str, requirements: list[Requirement], releases: Releases) -> Finds:
    """An extra `npu` of a pyproject.toml that asks for torch; of other files what to write beside them."""
    building = ".".join(BUILD)
    torch = next((each for each in requirements if normalised(each.name) in TORCH and each.section != building), None)
    if torch is None or any(normalised(each.name) == TORCH_NPU for each in requirements):
        return
    message = "no requirement names torch-npu for NPUs"
    help_ = f"{TORCH_NPU}=={releases.torch_npu}, for torch {releases.torch}"
    if document.name == "pyproject.toml":
        versions = of_a_library(document.settings)
        content = f"{TORCH_NPU}{versions}"  # what CANN imports beside it is no matter of a library
        if torch.allows(releases.torch) is False:
            # pip installs an extra together with what the project asks for.
            message = f"{message}, and no extra can: {torch.name}{torch.versions} rules out torch {releases.torch}"
        elif document.lock:
            message = f"{message}: with an extra {document.lock} would be stale, for everybody"
        elif found := _extra(text, torch, content, versions, releases):
            group = "npu" if len(found) > 1 else ""
            for start, end, new in found:
                said = f"an extra with {content}"
                yield Edit((start, end), ADDED, said, new, api=TORCH_NPU, help=added_help(releases), group=group)
            return
    stem, dot, ending = document.path.rpartition(".")
    api = AS_EXTRA if ending in ("toml", "cfg") and not document.lock else TORCH_NPU
    if ending in ("txt", "yml", "yaml") and document.name not in COG:
        help_ += f", in {stem.rpartition('/')[2]}-npu{dot}{ending}: a migration writes it"
    details = (("lock", document.lock),) if torch.allows(releases.torch) is not False else ()
    yield Note(
        (torch.start, torch.end), NOT_ADDED, Level.MANUAL, message, api=api, effort=Effort.LOW, help=help_,
        details=details,
    )  # fmt: skip


def _extra(text: str, torch: Requirement, content: str, versions: str, releases: Releases) -> list[Change]:
    """The changes by which a pyproject.toml has an extra; none where a person has to write it."""
    table, newline = parse_toml(text), newline_of(text)
    if torch.section.startswith("tool.poetry."):
        version, older = f'"{versions}"', _python_before(text, releases)
        if not any(each.path == _POETRYS and each.is_header for each in toml_rows(text) or ()):
            row = f"{TORCH_NPU} = {{ version = {version}{older} }}" if older else f"{TORCH_NPU} = {version}"
            return [_table(text, _POETRYS[:2], _GROUP.format(n=newline_of(text), row=row))]
        extra = _row(text, _POETRYS, TORCH_NPU)
        if not extra or not is_row(torch):
            return []
        return [*beside_row(text, torch, TORCH_NPU, f"{{ version = {version}, optional = true{older} }}"), *extra]
    project = table.get("project")
    if not isinstance(project, dict) or "optional-dependencies" in project.get("dynamic", ()):
        return []
    if not isinstance(project.get("optional-dependencies"), dict):
        return [_table(text, _OPTIONAL[:1], f'[project.optional-dependencies]{newline}npu = ["{content}"]')]
    return _row(text, _OPTIONAL, content)


def _python_before(text: str, releases: Releases) -> str:
    """The condition of a row where the project is for a Python that torch_npu is not for: Poetry refuses such a row
    without one. Source: python-poetry.org, dependency specification (python restricted dependencies).
    """
    asked = parse_toml(text).get("tool", {}).get("poetry", {}).get("dependencies", {}).get("python")
    oldest = releases.pythons[0] if releases.pythons else "3.0"
    before = Requirement("python", str(asked or ""), 0, 0).allows(f"3.{int(oldest[2:]) - 1}.0")
    return f', python = ">={oldest}"' if before else ""


def _row(text: str, path: tuple[str, ...], content: str) -> list[Change]:
    """A row `npu` below the last one of a table, laid out as that is; none where it has one, or no header."""
    rows = [each for each in toml_values(text) if each.path[:-1] == path]
    has_header = any(each.is_header and each.path == path for each in toml_rows(text) or ())
    if not has_header or not rows or {each.path[-1] for each in rows} & {"npu", "ascend"}:
        return []
    last, newline = max(rows, key=lambda each: each.end), newline_of(text)
    at = _line_end(text, last)
    gap = newline * (2 if len(rows) > 1 and re.search(r"\n[ \t]*\r?\n[ \t]*\Z", text[: last.key]) else 1)
    lines = re.match(r"\[[ \t]*(\r?\n[ \t]*)[^\s#](?:.|\s)*?(,?)(\r?\n[ \t]*)\]\Z", text[last.start : last.end])
    lead, comma, end = lines.groups() if lines is not None else ("", "", "")
    return [(at, at, f'{gap}npu = [{lead}"{content}"{comma}{end}]')]


def _table(text: str, path: tuple[str, ...], new: str) -> Change:
    """A table below those that a path begins."""
    rows = [each for each in toml_values(text) if each.path[: len(path)] == path]
    at = _line_end(text, max(rows, key=lambda each: each.end))
    return at, at, newline_of(text) * 2 + new


def _line_end(text: str, value: TomlValue) -> int:
    """The end of the line in which a value ends."""
    line = re.compile(r"[^\r\n]*").match(text, value.end)
    return value.end if line is None else line.end()
