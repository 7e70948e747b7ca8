"""What the parts of a project ask for of torch, where its own files ask for nothing: `backend/requirements.txt`.

Only where all parts that install torch bound it, and agree, or none does to a version with a torch_npu: otherwise each
is its own (`Releases.of_part`), and says nothing of the project. Examples, tests and what is somebody else's are none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from transplt.base.disk.walk import SKIPPED_FOLDERS
from transplt.base.text.regular_file import REQUIREMENTS, read_regular
from transplt.base.text.requirement import normalised
from transplt.engine.files.dependency_files import LOCK_FILES, requirements_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.project.pins import IMAGE, pins
from transplt.project.torch_requirements import NEWER, TORCH, Ask, Voice, ask_of, together

#: Folders that are no parts of a program, by their names in small letters.
_ASIDE = frozenset(
    "example examples demo demos test tests testing doc docs benchmark benchmarks tutorial tutorials notebook "
    "notebooks third_party thirdparty 3rdparty external extern vendor submodules research research_projects contrib "
    "community scripts tools ci .ci".split()
)
#: So deep, and so many folders, are looked at.
_DEPTH, _MOST = 2, 200


def voices_of_parts(root: Path) -> tuple[list[Voice], bool, list[Ask]]:
    """What the parts of the project at `root` ask for, empty where they do not agree, or one asks for any torch; where
    none bounds torch to a version with a torch_npu, what bounds it to others; whether one does; and the asks of others
    beside it that bound torch to older ones, of files that a migration edits.
    """
    if root == root.parent or (root.is_dir() and _installs_torch(root)):
        return [], False, []
    found: list[Voice] = []
    without: list[Voice] = []
    others = False
    for folder in _parts(root):
        path = folder.relative_to(root).as_posix()
        try:
            found_here = pins(folder, TORCH, [])
        except OSError:
            continue  # whoever works on its files reports why
        asks = [ask for pin in found_here if (ask := ask_of(replace(pin, path=f"{path}/{pin.path}")))]
        voice = Voice(tuple(asks), together(asks)) if asks else None
        if voice is not None and voice.pinned:
            (found if voice.with_npu else without).append(voice)
        else:
            others = others or voice is not None or _installs_torch(folder)
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


def _parts(root: Path) -> Iterator[Path]:
    waiting = [(root, 0)] if root.is_dir() else []
    for number, (folder, depth) in enumerate(waiting):  # grows
        if number == _MOST:
            return
        if depth:
            yield folder
        if depth < _DEPTH:
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


def _installs_torch(folder: Path) -> bool:
    """True where a file right in a folder asks for torch of any version."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return False
    for name in names:
        kind = kind_of(name, b"")
        if kind is not FileKind.REQUIREMENTS and name != "setup.py":
            continue
        try:
            text = read_regular(folder / name, REQUIREMENTS).decode("utf-8", "replace")
        except OSError:
            continue
        asked = requirements_of(text, name, kind)
        if any(normalised(each.name) in TORCH and not each.is_elsewhere for each in asked):
            return True
    return False
