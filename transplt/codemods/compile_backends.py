"""The backend of torch.compile that captures graphs: `cudagraphs` is `npugraphs` on the NPU.

torch_npu registers it from its 2.6 on (torch_npu/dynamo/__init__.py; facts: torch.compile in the native API list).
"""

from __future__ import annotations

import ast

from transplt.edits.rewrite import Change
from transplt.edits.work import Work
from transplt.rules.rule import versions_of
from transplt.syntax.scan import parent
from transplt.trees import swaps

_COMPILERS = frozenset({"torch.compile", "torch._dynamo.optimize"})


def plan(work: Work) -> None:
    """Rename the backend where it is an argument of torch.compile."""
    renamed = swaps.words_in_literal({"cudagraphs": "npugraphs"})
    for node in work.scan.strings:
        if node.value == "cudagraphs" and (full := _compiler(work, node)) is not None and work.take(node):
            if work.settings.torch_version in versions_of(">=2.6"):
                work.changes.append(
                    Change(node, "NPU150", "backend 'cudagraphs' -> 'npugraphs'", renamed, api=full, writes_npu=True)
                )
            else:
                work.note(
                    node,
                    "NPU151",
                    "torch_npu has no backend that captures graphs in this version",
                    api=full,
                    help="leave the backend out, or use torch_npu for torch 2.6 or newer, which has 'npugraphs'",
                )


def _compiler(work: Work, node: ast.Constant) -> str | None:
    above = parent(node)
    if isinstance(above, ast.keyword) and above.arg == "backend":
        above = parent(above)
    if not isinstance(above, ast.Call):
        return None
    full = work.names.qualified(above.func)
    return full if full in _COMPILERS else None
