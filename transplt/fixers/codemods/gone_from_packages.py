"""What packages gave up before their first release for the Pythons of this torch_npu: an import fails, or a call.

Facts: rules/support/refused_calls.json, `packages`.
"""

from __future__ import annotations

import ast
from functools import cache
from typing import Any

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.old_names import guarded
from transplt.fixers.codemods.refused_calls import first_torch, since
from transplt.rules.since import only_older
from transplt.rules.tables import read_table
from transplt.syntax.nodes import lacks

fixer = Fixer(
    __name__,
    code="NPU293",
    rank=366,
    words=("scipy.misc", "scipy import misc", "skimage.measure", "sklearn.externals", "torchvision.models.utils",
           "functional_tensor", "librosa.output", "yaml.load", "torchaudio",
           "transformers.modeling_", "transformers.tokenization_", "transformers.configuration_",
           "transformers.deepspeed"),
)  # fmt: skip


@cache
def _rows(version: str) -> dict[str, dict[str, Any]]:
    rows = read_table("support/refused_calls.json")["packages"]
    return {name: row for row in rows if since(first_torch(row), version) for name in row["names"]}


def _about(row: dict[str, Any], name: str) -> str:
    """The module whose functions went together, or the one function."""
    return name.rpartition(".")[0] if len(row["names"]) > 1 else name


@fixer.on(ast.Import)
def imported(work: Work, node: ast.Import | ast.ImportFrom) -> Finds:
    """Report `from scipy.misc import imread`, and `from torchvision.models.utils import x`: a module that is gone."""
    if isinstance(node, ast.Import) or node.level:
        return
    rows, pins = _rows(work.settings.torch_version), dict(work.settings.pins)
    for alias in node.names:
        for name in (node.module or "", f"{node.module}.{alias.name}"):
            row = rows.get(name)
            if row is None or "lacks" in row or guarded(node):
                continue
            package, first = row.get("until", ("", "0"))
            if not only_older(pins.get(package, ""), first):
                api, help_ = _about(row, name), row["help"]
                yield work.note(node, fixer.code, row["message"], api=api, help=help_, blocks="import")


@fixer.on(ast.Call)
def called(work: Work, call: ast.Call) -> Finds:
    """Report `scipy.misc.imread(...)`, and `yaml.load(f)`."""
    if not isinstance(call.func, ast.Attribute):
        return
    name = work.names.qualified(call.func) or ""
    row = _rows(work.settings.torch_version).get(name)
    if row is None or ("lacks" in row and lacks(call, row["lacks"], row["index"]) is not True):
        return
    if not guarded(call):  # asked last: it reads all that stands above
        yield work.note(call.func, fixer.code, row["message"], api=_about(row, name), help=row["help"])
