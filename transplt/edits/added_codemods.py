"""LibCST codemods of the user, by their full names: `package.module.Class` of an installed package.

They are found as fixers of other packages are (`added.py`): what lies in the current folder or in the input is not.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from transplt.base.errors import UsageError, shown
from transplt.edits.added_fixers import Added, digest_of, files_of, path_is, trusted, trusted_path
from transplt.edits.trees.users_codemods import why_no_codemod

_LOADED: dict[Added, Any] = {}
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def find_codemods(names: Sequence[str], source: Path) -> tuple[Added, ...]:
    """The codemods of these names for an input at `source`, loaded. UsageError for what is missing or is none."""
    return tuple(_load(name, source) for name in dict.fromkeys(names))


def codemod_of(each: Added) -> Any:
    """The class; in a process that has not loaded it, it is."""
    if each not in _LOADED and _load(each.name, None) != each:
        raise UsageError(f"the codemod {each} has changed while transplt worked")
    return _LOADED[each]


def _load(name: str, source: Path | None) -> Added:
    subject = f"the codemod {shown(name)}"
    if not _NAME.fullmatch(name):
        raise UsageError(f"--codemod takes package.module.Class, not {shown(name)}")
    module, _, attribute = name.rpartition(".")
    top, path = module.partition(".")[0], trusted_path(source)
    found = _distribution(top, path)
    if found is None:
        raise UsageError(
            f"{subject} is of no installed package (what lies in the current folder or in the input does not count)"
        )
    title, version = found
    try:
        with path_is(path):
            spec = importlib.util.find_spec(top)
            places = [*(spec.submodule_search_locations or ()), *([spec.origin] if spec.origin else ())] if spec else []
            if any(not trusted(os.path.dirname(place), source) for place in places):
                raise UsageError(f"{subject} lies in the current folder or in the input")
            loaded = importlib.import_module(module)
            files = [*files_of(module.rpartition(".")[0] or module)]
            codemod = getattr(loaded, attribute, None)
            wrong = f"is not in {shown(module)}" if codemod is None else why_no_codemod(codemod)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"{subject} cannot be loaded: {type(error).__name__}: {shown(str(error))}") from error
    if any(not trusted(os.path.dirname(file), source) for file in files):
        raise UsageError(f"{subject} lies in the current folder or in the input")
    if wrong:
        raise UsageError(f"{subject} {wrong}")
    added = Added(name, title, version, digest_of(files))
    _LOADED[added] = codemod
    return added


def _distribution(top: str, path: Sequence[str]) -> tuple[str, str] | None:
    """Name and version of what has installed a package; one in development may tell no more than its name."""
    for each in metadata.distributions(path=[*path]):
        title = (each.metadata.get_all("Name") or [""])[0]
        told = (each.read_text("top_level.txt") or "").split()
        named = re.sub(r"[-_.]+", "_", title).lower() == top.lower()
        if named or top in told or (not told and any(file.parts[0] in (top, f"{top}.py") for file in each.files or ())):
            return title, each.version
    return None
