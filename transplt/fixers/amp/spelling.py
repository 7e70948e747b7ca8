"""How autocast and GradScaler are spelled, with the flag that the code follows where one was asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from transplt.base.settings import Settings
from transplt.fixers.amp.flag import follow
from transplt.program.program import File, Program
from transplt.rules.versions import version_key


@dataclass(frozen=True, slots=True)
class Spelling:
    """`enabled(node)` is the text of the flag as it is seen at a node: `args.amp`; empty for code that follows no flag,
    None where the flag cannot be seen (then nothing is written there)."""

    torch: str
    settings: Settings
    enabled: Callable[[ast.AST], str | None]

    @property
    def scales(self) -> bool:
        """True when losses are scaled: float16 needs it, bfloat16 has the range of float32."""
        return self.settings.amp_dtype == "float16"

    def autocast(self, node: ast.AST, *, cached: bool = True) -> str:
        """The header of the block around a forward pass; not `cached`: a part of it runs without gradients."""
        flag = f", enabled={self.enabled(node)}" if self.enabled(node) else ""
        flag += "" if cached else ", cache_enabled=False"
        return f'with {self.torch}.autocast("npu", dtype={self.torch}.{self.settings.amp_dtype}{flag}):'

    @property
    def scaler_of_torch(self) -> bool:
        """True where torch has a scaler for an NPU; a scale that never changes is one of torch_npu's scaler alone."""
        return version_key(self.settings.torch_version) >= (2, 3) and self.settings.loss_scale == "dynamic"

    def scaler(self, node: ast.AST) -> str:
        """The call that makes a scaler; a static one keeps its scale and looks for no overflow."""
        given = ['"npu"'] if self.scaler_of_torch else []
        if self.settings.loss_scale != "dynamic":
            given += [f"init_scale={float(self.settings.loss_scale)}", "dynamic=False"]
        if self.enabled(node):
            given.append(f"enabled={self.enabled(node)}")
        return f"{self.torch}{'' if self.scaler_of_torch else '.npu'}.amp.GradScaler({', '.join(given)})"


def spelling_of(torch: str, settings: Settings, program: Program, file: File) -> Spelling:
    """The spelling for one file; with --amp-flag it follows the script's flag."""
    if not settings.amp_flag:
        return Spelling(torch, settings, lambda node: "")
    found = follow(program.project, file)
    return Spelling(torch, settings, lambda node: found(node)[0])
