"""How autocast and GradScaler are spelled, with the flag that the code follows where one was asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from transplt.settings import Settings
from transplt.writing import Writer


@dataclass(frozen=True, slots=True)
class Spelling:
    """`enabled(node)` is the text of the flag as it is seen at a node: `args.amp`; empty for code that follows no flag,
    None where the flag cannot be seen (then nothing is written there)."""

    torch: str
    settings: Settings
    enabled: Callable[[ast.AST], str | None]

    def autocast(self, node: ast.AST) -> str:
        """The header of the block around a forward pass."""
        flag = f", enabled={self.enabled(node)}" if self.enabled(node) else ""
        return f'with {self.torch}.autocast("npu", dtype={self.torch}.{self.settings.amp_dtype}{flag}):'

    def scaler(self, node: ast.AST) -> str:
        """The call that makes a scaler; a static one keeps its scale and looks for no overflow."""
        given = []
        if self.settings.loss_scale != "dynamic":
            given += [f"init_scale={float(self.settings.loss_scale)}", "dynamic=False"]
        if self.enabled(node):
            given.append(f"enabled={self.enabled(node)}")
        return f"{self.torch}.npu.amp.GradScaler({', '.join(given)})"

    def reaches(self, *nodes: ast.AST) -> bool:
        """True when the flag can be seen at all of some nodes."""
        return all(self.enabled(node) is not None for node in nodes)


def spelling_of(writer: Writer) -> Spelling:
    """The spelling for one file; with --amp-flag it follows the script's flag."""
    settings = writer.work.settings
    enabled: Callable[[ast.AST], str | None] = _always
    if settings.amp_flag:
        from transplt.mixed_precision import flag

        enabled = flag.flag_at(writer)
    return Spelling(writer.torch, settings, enabled)


def _always(node: ast.AST) -> str | None:
    return ""
