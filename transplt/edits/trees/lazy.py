"""LibCST, imported when something of it is first asked for: a run that makes no edit does not pay for it.

    from transplt.edits.trees.lazy import cst

To mypy `cst` is the module itself. Nothing of it may be used while a module is imported: no default values, constants
or base classes made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import libcst as cst
else:

    class _Later:
        def __getattr__(self, name: str) -> Any:
            import libcst

            value = getattr(libcst, name)
            setattr(self, name, value)  # the next time it is found without asking
            return value

    cst = _Later()

__all__ = ["cst", "load"]


def load() -> None:
    """Import LibCST now, for the processes that are forked off this one."""
    import libcst  # noqa: F401
