"""Triton kernels on the CPU: Triton's own interpreter over the memory of the emulated device, and a card's limits.

TRITON_INTERPRET is set before anything imports Triton (`npu_emulator.start`), `install` runs right after that import,
on the NPU and on the stand-in for CUDA. A launch goes through `grid`, operations through `semantic` and `builder`;
`limits` holds what a card refuses and is silent on the stand-in. Who wants to see launches, or another order of
programs, asks `launch`.

What is modelled, and what is not, is told in docs/triton.md.
"""

from __future__ import annotations

from types import ModuleType

_installed = False


def install(triton: ModuleType) -> None:
    """Triton was imported: nothing of it has run yet."""
    global _installed
    if _installed:
        return
    _installed = True
    from . import builder, cann, driver, floats, grid, language, libdevice, semantic

    floats.install()
    builder.install()
    semantic.install()
    language.install()
    libdevice.install()
    cann.install()
    grid.install()
    driver.install()
