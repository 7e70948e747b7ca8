"""transplt: PyTorch training projects for CUDA GPUs, rewritten for Ascend NPUs."""

# Nothing is imported here: with `python -m transplt` the current folder, which may be anybody's, is still searched.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from transplt.faces.cli.library import check, migrate_source, migrate_tree

__all__ = ["check", "migrate_source", "migrate_tree"]
__version__ = "0.1.0"


def __getattr__(name: str) -> "Any":
    """The functions of transplt.faces.cli.library, imported when one of them is asked for."""
    if name in __all__:
        from transplt.faces.cli import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
