"""What the parts of a project ask for of torch, where its own files ask for nothing: `backend/requirements.txt`.

Only where all parts that install torch bound it, and agree, or none does to a version with a torch_npu: otherwise each
is its own (`Releases.of_part`), and says nothing of the project. Examples, tests and what is somebody else's are none.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from transplt.base.disk.walk import SKIPPED_FOLDERS
from transplt.base.text.markers import holds_on_linux
from transplt.engine.files.dependency_files import LOCK_FILES
from transplt.engine.files.kind import FileKind, kind_of
from transplt.project.pins import IMAGE, Pin, asked_versions, pins
from transplt.project.torch_requirements import NEWER, TORCH, Ask, Voice, ask_of, together

#: Folders that are no parts of a program, by their names in small letters.
_ASIDE = frozenset(
    "example examples demo demos test tests testing doc docs benchmark benchmarks tutorial tutorials notebook "
    "notebooks third_party thirdparty 3rdparty external extern vendor submodules research research_projects contrib "
    "community scripts tools ci .ci".split()
)
#: So deep are folders that speak of the project, and of themselves; so many are looked at.
_DEPTH, _DEEPEST, _MOST = 2, 3, 200


def voices_of_parts(root: Path) -> tuple[list[Voice], bool, list[Ask]]:
    """What the parts of the project at `root` ask for, empty where they do not agree, or one asks for any torch; where
    none bounds torch to a version with a torch_npu, what bounds it to others; whether one does; and the asks of others
    beside it that bound torch to older ones, of files that a migration edits.
    """
    if root == root.parent or (root.is_dir() and _installs(pins(root, TORCH, [], every=True))):
        return [], False, []
    found: list[Voice] = []
    without: list[Voice] = []
    others = False
    for folder in _parts(root):
        path = folder.relative_to(root).as_posix()
        try:
            found_here = [*pins(folder, TORCH, [], every=True)]
        except OSError:
            continue  # whoever works on its files reports why
        asks = [ask for pin in found_here if (ask := ask_of(replace(pin, path=f"{path}/{pin.path}")))]
        voice = Voice(tuple(asks), together(asks)) if asks else None
        if voice is not None and voice.pinned:
            (found if voice.with_npu else without).append(voice)
        else:
            others = others or voice is not None or _installs(found_here)
    if not found:
        return without, False, []
    common = frozenset[str].intersection(*(voice.allowed for voice in found))
    agree = not (others or without) and any(version in common for version in found[0].with_npu)
    older: list[Ask] = []
    for voice in (each for each in without if NEWER not in each.allowed):
        # None of a setup.py, of a lock file, of a base image gets another release.
        named = ((ask, ask.pin.path.rpartition("/")[2].lower()) for ask in voice.asks if ask.pin.section != IMAGE)
        older += [ask for ask, name in named if name != "setup.py" and not LOCK_FILES.fullmatch(name)][:1]
    return (found if agree else []), True, older


def _parts(root: Path, depth_of_all: int = _DEPTH) -> Iterator[Path]:
    waiting = [(root, 0)] if root.is_dir() else []
    for number, (folder, depth) in enumerate(waiting):  # grows
        if number == _MOST:
            return
        if depth:
            yield folder
        if depth < depth_of_all:
            waiting += [(each, depth + 1) for each in _folders(folder)]


def _folders(folder: Path) -> list[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return []
    return [
        Path(entry.path)
        for entry in entries
        if entry.is_dir(follow_symlinks=False)
        and entry.name not in SKIPPED_FOLDERS
        and not entry.name.startswith(".")
        and entry.name.lower() not in _ASIDE
    ]


def _installs(found: Iterable[Pin]) -> bool:
    """True where a list of packages right in a folder, or its setup.py, asks for what was found, in any version."""
    right_in_it = (each.path for each in found if "/" not in each.path and holds_on_linux(each.marker) is not False)
    return any(path == "setup.py" or kind_of(path, b"") is FileKind.REQUIREMENTS for path in right_in_it)


def asked_in_parts(root: Path, packages: Collection[str]) -> Iterator[tuple[str, str]]:
    """`part/package` with the versions that the part asks for, those of outer folders first."""
    for folder in _parts(root, _DEEPEST):
        path = folder.relative_to(root).as_posix()
        yield from ((f"{path}/{package}", asked) for package, asked in asked_versions(folder, packages))
