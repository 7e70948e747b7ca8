"""LibCST codemods of the user: what a class has to be, and what one makes of a file.

`libcst.codemod` costs 0.3 s to import, which only those pay who name a codemod.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from dataclasses import dataclass
from typing import Any

#: Deeper nested files are not given to LibCST, whose parser then needs more stack than there is.
_DEEPEST = 150


@dataclass(frozen=True, slots=True)
class Transformed:
    """The text of a file after a codemod; its warnings; why it left the file alone, if it failed there."""

    text: str
    warnings: tuple[str, ...] = ()
    failed: str = ""


def why_no_codemod(found: Any) -> str:
    """Why something cannot take part in a migration, empty when it can."""
    from libcst.codemod import Codemod, CodemodContext

    if not isinstance(found, type) or not issubclass(found, Codemod):
        return "is no libcst.codemod.Codemod"
    whole = [each.__name__ for each in found.get_inherited_dependencies() if each.gen_cache is not None]
    if whole:
        return (
            f"asks for {', '.join(sorted(whole))}, which needs LibCST's FullRepoManager; run it with "
            "`python -m libcst.tool codemod` before the migration"
        )
    try:
        found(CodemodContext())
    except TypeError as error:
        return f"needs more than its context to be created: {error}; name a subclass without further arguments"
    except Exception as error:
        return f"cannot be made: {type(error).__name__}: {error}"
    return ""


def transformed(codemod: Any, text: str, path: str) -> Transformed:
    """What a codemod makes of a file at `path` (relative to the input). What it prints goes to standard error."""
    from libcst.codemod import (
        CodemodContext,
        TransformExit,
        TransformFailure,
        TransformSkip,
        TransformSuccess,
        transform_module,
    )

    if _too_deep(text):
        return Transformed(text, failed="the file is nested too deeply for LibCST")
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    package = module if path.endswith("/__init__.py") else module.rpartition(".")[0]
    context = CodemodContext(filename=path, full_module_name=module, full_package_name=package)
    with contextlib.redirect_stdout(sys.stderr):
        try:
            done = transform_module(codemod(context), text)
        except Exception as error:  # of its constructor
            return Transformed(text, failed=_told(error, codemod))
    if isinstance(done, TransformExit):
        raise KeyboardInterrupt
    assert isinstance(done, (TransformFailure, TransformSkip, TransformSuccess))
    warnings = tuple(dict.fromkeys(done.warning_messages))
    if isinstance(done, TransformFailure):
        return Transformed(text, warnings, _told(done.error, codemod))
    return Transformed(done.code if isinstance(done, TransformSuccess) else text, warnings)


def _told(error: Exception, codemod: Any) -> str:
    """An exception in a line, with the place in the codemod's own package where it came up."""
    package, place, at = codemod.__module__.partition(".")[0], "", error.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0] == package:
            place = f" ({at.tb_frame.f_code.co_name}, line {at.tb_lineno})"
        at = at.tb_next
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}{place}" if first else f"{type(error).__name__}{place}"


def _too_deep(text: str) -> bool:
    try:
        stack: list[tuple[ast.AST, int]] = [(ast.parse(text), 0)]
    except (SyntaxError, ValueError):
        return False  # LibCST says what is wrong
    except (RecursionError, MemoryError):
        return True
    while stack:
        node, depth = stack.pop()
        if depth > _DEEPEST:
            return True
        stack.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return False
