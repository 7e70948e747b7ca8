"""transplt: PyTorch training projects for CUDA GPUs, rewritten for Ascend NPUs."""

# Nothing is imported here: with `python -m transplt` the current folder, which may be anybody's, is still searched.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from transplt.base.errors import CannotFinish, TranspltError, UsageError
    from transplt.faces.cli.library import check, migrate_source, migrate_tree

#: Where what the package offers lies.
_HOMES = {
    "transplt.base.errors": ("CannotFinish", "TranspltError", "UsageError"),
    "transplt.faces.cli.library": ("check", "migrate_source", "migrate_tree"),
}
__all__ = ["CannotFinish", "TranspltError", "UsageError", "check", "migrate_source", "migrate_tree"]
__version__ = "0.1.0"


def __dir__() -> "list[str]":
    return [*__all__, "__version__"]


def __getattr__(name: str) -> "Any":
    """What the package offers, imported when it is asked for."""
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
