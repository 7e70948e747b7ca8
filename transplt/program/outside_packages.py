"""What a script of a project needs while it is loaded, and the options that it takes."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.flow.entry_text import Entry, entry_of
from transplt.flow.option_defaults import Option, joined

#: So many files of a project are read for it.
_MOST_FILES = 2000
#: A module of torch that another package has to be there for.
_TENSORBOARD = re.compile(rb"^(?:from|import)[ \t]+torch\.utils\.tensorboard\b", re.M)


def outside_packages(script: Path, root: Path) -> set[str]:
    """First names of the modules that `script`, and the modules of its project in `root` that it imports, import as
    they are loaded, and that are not the project's own: no module or folder anywhere in it is called so. Imports that
    may fail, and those of functions, do not count, nor do torch, numpy and Python's own modules; tensorboard does,
    which torch.utils.tensorboard needs.
    """
    found: set[str] = set()
    for data, entry, places in _loaded(script, root):
        found.update({"tensorboard"} if _TENSORBOARD.search(data) else ())
        found.update(name.partition(".")[0] for name in entry.imports if not [*_files_of(name.split("."), places)])
    return found - _names_in(root) if found else found


def _names_in(root: Path) -> set[str]:
    """What the modules of a project and the folders that hold them are called: a package of such a name is somebody
    else's."""
    found: set[str] = set()
    for folder, below, files in islice(os.walk(root), _MOST_FILES):
        below[:] = [each for each in below if not each.startswith(".")]
        modules = [name[:-3] for name in files if name.endswith(".py")]
        found.update(modules, [os.path.basename(folder)] if modules else [])
    return found


def options_of(script: Path, root: Path) -> dict[str, Option]:
    """The options of the command line of `script`, by name, as it and the modules that it loads define them."""
    return joined(each for _, entry, _ in _loaded(script, root) for each in entry.options if each.words.startswith("-"))


def _loaded(script: Path, root: Path) -> Iterator[tuple[bytes, Entry, list[Path]]]:
    """The files of a project that are loaded with a script, what each says, and where its imports are looked for."""
    script, root = script.resolve(), root.resolve()
    places = [*dict.fromkeys((script.parent, root))]
    waiting, seen = deque([script]), {script}
    while waiting and len(seen) <= _MOST_FILES:
        path = waiting.popleft()
        try:
            data = read_regular(path, SOURCE)
        except OSError:
            continue
        inside = path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name
        entry = entry_of(data, inside)
        yield data, entry, places
        new = [each for name in entry.imports for each in _files_of(name.split("."), places) if each not in seen]
        seen.update(new)
        waiting.extend(dict.fromkeys(new))


def _files_of(parts: list[str], places: list[Path]) -> Iterator[Path]:
    """The files that an import of a full name loads, in the first of the folders that has its first part."""
    for folder in places:
        if (folder / f"{parts[0]}.py").is_file():
            yield folder / f"{parts[0]}.py"
            return
        if (folder / parts[0]).is_dir():
            for part in parts:
                if (folder / f"{part}.py").is_file():
                    yield folder / f"{part}.py"
                    return
                folder = folder / part
                if not folder.is_dir():
                    return
                yield folder / "__init__.py"
            return
