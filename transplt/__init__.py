"""transplt: PyTorch training projects for CUDA GPUs, rewritten for Ascend NPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transplt.commands.library import check, migrate_source, migrate_tree

__all__ = ["check", "migrate_source", "migrate_tree"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The functions of transplt.commands.library, imported when one of them is asked for."""
    if name in __all__:
        from transplt.commands import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
