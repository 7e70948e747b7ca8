"""The portable style: what a project needs for an NPU becomes an extra, and what it asks for stays."""

from __future__ import annotations

import re

from transplt.base.finding import Effort, Level
from transplt.base.text.requirement import Requirement, normalised
from transplt.base.text.toml import parse_toml
from transplt.base.text.toml_places import toml_rows, toml_values
from transplt.edits.edit import Edit, Finds, Note
from transplt.engine.files.dependencies.codes import ADDED, NOT_ADDED, added_help
from transplt.engine.files.dependencies.places import newline_of
from transplt.engine.files.dependencies.versions import TORCH, TORCH_NPU, Releases
from transplt.engine.files.dependency_files import BUILD
from transplt.engine.files.document import Document

_OPTIONAL = ("project", "optional-dependencies")
_POETRY = "[tool.poetry.group.npu]{n}optional = true{n}{n}[tool.poetry.group.npu.dependencies]{n}{row}{n}"


def changes(document: Document, text: str, requirements: list[Requirement], releases: Releases) -> Finds:
    """An extra `npu` of a pyproject.toml that asks for torch; of other files what to write beside them."""
    building = ".".join(BUILD)
    torch = next((each for each in requirements if normalised(each.name) in TORCH and each.section != building), None)
    if torch is None or any(normalised(each.name) == TORCH_NPU for each in requirements):
        return
    pin = f"{TORCH_NPU}=={releases.torch_npu}"
    if document.name == "pyproject.toml":
        change = _extra(text, torch, pin, releases)
        if change is not None:
            start, end, new = change
            yield Edit((start, end), ADDED, f"an extra with {pin}", new, api=TORCH_NPU, help=added_help(releases))
            return
    paste, (stem, dot, ending) = f"{pin}, for torch {releases.torch}", document.path.rpartition(".")
    if ending in ("txt", "yml", "yaml"):
        paste += f", in {stem.rpartition('/')[2]}-npu{dot}{ending}: a migration writes it"
    yield Note(
        (torch.start, torch.end), NOT_ADDED, Level.MANUAL, "nothing asks for torch-npu where the program runs on NPUs",
        api=TORCH_NPU, effort=Effort.LOW, help=paste,
    )  # fmt: skip


def _extra(text: str, torch: Requirement, pin: str, releases: Releases) -> tuple[int, int, str] | None:
    table, newline = parse_toml(text), newline_of(text)
    if torch.section.startswith("tool.poetry."):
        row = f'{TORCH_NPU} = "=={releases.torch_npu}"'
        return _at_the_end(text, _POETRY.format(n=newline, row=row))
    project = table.get("project")
    if not isinstance(project, dict) or "optional-dependencies" in project.get("dynamic", ()):
        return None
    there = project.get("optional-dependencies")
    if not isinstance(there, dict):
        return _at_the_end(text, f'[project.optional-dependencies]{newline}npu = ["{pin}"]{newline}')
    has_header = any(each.is_header and each.path == _OPTIONAL for each in toml_rows(text) or ())
    rows = [each for each in toml_values(text) if each.path[:2] == _OPTIONAL and len(each.path) == 3]
    if not has_header or not rows or "npu" in there or "ascend" in there:
        return None
    last = max(rows, key=lambda each: each.end)
    eol = re.compile(r"[^\r\n]*").match(text, last.end)
    at = eol.end() if eol is not None else last.end
    return at, at, f'{newline}npu = ["{pin}"]'


def _at_the_end(text: str, new: str) -> tuple[int, int, str]:
    newline = newline_of(text)
    gap = newline if text.endswith("\n") else newline * 2
    return len(text), len(text), gap + new
