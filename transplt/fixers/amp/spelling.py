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
    None where the flag cannot be seen (then nothing is written there). `card` names the device; in the portable style
    all of it is off elsewhere than on an NPU, unless the code follows a flag. `of_module` makes a scaler there where
    torch may have none.
    """

    torch: str
    settings: Settings
    enabled: Callable[[ast.AST], str | None]
    card: str = '"npu"'
    of_module: str = ""

    def _flag(self, node: ast.AST) -> str:
        on_npu = f'{self.card} == "npu"' if self.settings.style == "portable" else ""
        return self.enabled(node) or on_npu

    @property
    def scales(self) -> bool:
        """True when losses are scaled: float16 needs it, bfloat16 has the range of float32."""
        return self.settings.amp_dtype == "float16"

    def autocast(self, node: ast.AST, *, cached: bool = True) -> str:
        """The header of the block around a forward pass; not `cached`: a part of it runs without gradients."""
        flag = f", enabled={self._flag(node)}" if self._flag(node) else ""
        flag += "" if cached else ", cache_enabled=False"
        return f"with {self.torch}.autocast({self.card}, dtype={self.torch}.{self.settings.amp_dtype}{flag}):"

    @property
    def scaler_of_torch(self) -> bool:
        """True where torch has a scaler for an NPU; a scale that never changes is one of torch_npu's scaler alone."""
        return version_key(self.settings.torch_version) >= (2, 3) and self.settings.loss_scale == "dynamic"

    def scaler(self, node: ast.AST) -> str:
        """The call that makes a scaler; a static one keeps its scale and looks for no overflow."""
        given = [self.card] if self.scaler_of_torch and not self.of_module else []
        if self.settings.loss_scale != "dynamic":
            given += [f"init_scale={float(self.settings.loss_scale)}", "dynamic=False"]
        if self._flag(node):
            given.append(f"enabled={self._flag(node)}")
        if self.of_module:
            return f"{self.of_module}({', '.join(given)})"
        return f"{self.torch}{'' if self.scaler_of_torch else '.npu'}.amp.GradScaler({', '.join(given)})"


def spelling_of(torch: str, settings: Settings, program: Program, file: File) -> Spelling:
    """The spelling for one file; with --amp-flag it follows the script's flag."""
    if not settings.amp_flag:
        return Spelling(torch, settings, lambda node: "")
    found = follow(program.project, file)
    return Spelling(torch, settings, lambda node: found(node)[0])
