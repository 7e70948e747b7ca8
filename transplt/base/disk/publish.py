"""The output folder: made as a hidden sibling, put in place by one rename, never half there."""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from transplt.base.disk.leftovers import finished, held, hidden, remove_tree
from transplt.base.disk.manifest import added_since, edited_since, read_manifest
from transplt.base.errors import CannotFinish, UsageError, reason, shown
from transplt.base.render.cell import first_of

_SHOWN_FILES = 5
#: Bytes, on all usual file systems.
_LONGEST_NAME = 255


def output_folder(source: Path, out: Path | None) -> Path:
    """Where the migrated form of `source` (an absolute path) goes: `out/<name>_msft`, beside the source by default."""
    name = source.stem if source.is_file() else source.name
    if not name:
        raise UsageError(f"{shown(source)} cannot be migrated as a whole: it has no name to give to the output")
    folder = source.parent if out is None else Path(os.path.realpath(out))
    return folder / f"{name}_msft"


def check_output(source: Path, target: Path, *, force: bool, discard_edits: bool) -> None:
    """UsageError when `target` may not be written: it overlaps with the input, or holds something already."""
    if target == source or source in target.parents:
        raise UsageError(f"the output {shown(target)} lies inside the input {shown(source)}; choose another with -o")
    if target in source.parents:
        raise UsageError(f"the input {shown(source)} lies inside the output {shown(target)}; choose another with -o")
    if len(os.fsencode(target.name)) > _LONGEST_NAME:
        raise UsageError(f"the output {shown(target.name)} would have too long a name; give the input a shorter one")
    if not os.path.lexists(target):
        return
    if not force:
        raise UsageError(f"the output {shown(target)} exists; --force replaces it if transplt wrote it")
    manifest = None if target.is_symlink() else read_manifest(target)
    if manifest is None:
        raise UsageError(
            f"{shown(target)} was not written by transplt, so --force does not replace it; move it away first"
        )
    # Functions of the port that were changed are kept beside the new ones.
    kept = manifest.get("helpers", [])
    edited = [] if discard_edits else [path for path in edited_since(target, manifest) if path not in kept]
    if edited:
        names = first_of([*map(shown, edited)], _SHOWN_FILES)
        raise UsageError(
            f"{shown(target)} was edited after transplt wrote it ({names}): write elsewhere with -o, or discard "
            "these edits with --discard-edits"
        )


def keep_added(source: Path, target: Path, folder: Path, taken: Collection[str]) -> list[str]:
    """What was added to the output `target` that is going to be replaced by `folder`, put there too, as it is: the
    paths. `taken` are those of the new output, made of `source`. UsageError where both have one, and not the same.
    OSError when the system refuses.

    The old output keeps its own: a run that is killed here loses nothing.
    """
    manifest = read_manifest(target) if target.is_dir() and not target.is_symlink() else None
    found = added_since(target, manifest) if manifest is not None else []
    added = [path for path in found if path not in taken or not _is_the_same(source, target, folder, path)]
    for path in added:
        above = (str(each) for each in PurePosixPath(path).parents)
        if path in taken or any(each in taken and not (folder / each).is_dir() for each in above):
            raise UsageError(
                f"{shown(path)} was added to {shown(target)} since transplt wrote it, and the new output has one of "
                "that name: move yours away, or throw it away with --discard-edits"
            )
    for path in added:
        for parent in reversed(PurePosixPath(path).parents):
            if not (folder / parent).is_dir():
                (folder / parent).mkdir()
                shutil.copymode(target / parent, folder / parent)
        try:
            os.link(target / path, folder / path, follow_symlinks=False)
        except OSError:  # a file system without hard links
            shutil.copy2(target / path, folder / path, follow_symlinks=False)
    return added


def _is_the_same(source: Path, target: Path, folder: Path, path: str) -> bool:
    """Whether the new output has what was added: the same bytes, or what a link leads to in the input."""
    old, new = target / path, folder / path
    if old.is_symlink():
        return os.path.realpath(old) == os.path.realpath(source / path)
    return old.is_file() and new.is_file() and not new.is_symlink() and filecmp.cmp(old, new, shallow=False)


@dataclass(frozen=True, slots=True)
class Staging:
    """A hidden folder beside `target` in which the output is made, and which one it is: its device and its inode."""

    folder: Path
    target: Path
    identity: tuple[int, int]


@contextlib.contextmanager
def staging(target: Path) -> Iterator[Staging]:
    """A staging folder for `target`, gone at the end unless it was published, also when interrupted."""
    made = _make_parents(target.parent)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{hidden(target)}.", dir=target.parent))
    except OSError as error:
        _remove_empty(made)
        raise CannotFinish(f"cannot write into {shown(target.parent)}: {reason(error)}") from error
    with contextlib.ExitStack() as hold:
        try:
            try:
                hold.enter_context(held(folder))
            except OSError as error:
                raise CannotFinish(f"cannot write into {shown(target.parent)}: {reason(error)}") from error
            yield Staging(folder, target, _identity(folder))
        except BaseException:
            remove_tree(folder)
            if not os.path.lexists(target):
                _remove_empty(made)
            raise
        finally:
            if folder.exists():
                remove_tree(folder)


def publish(stage: Staging, *, replace: bool) -> None:
    """Puts the staged folder at its place. With `replace` what is there is moved aside, and back when that fails."""
    aside: Path | None = None
    hold = contextlib.ExitStack()
    try:
        if os.path.lexists(stage.target):
            if not replace:
                raise UsageError(f"{shown(stage.target)} appeared during the migration, so nothing was written")
            aside = Path(tempfile.mkdtemp(prefix=f".{hidden(stage.target)}.old.", dir=stage.target.parent))
            hold.enter_context(held(aside))
            os.rename(stage.target, aside / stage.target.name)
        if _identity(stage.folder) == stage.identity:
            os.rename(stage.folder, stage.target)
        if not os.path.lexists(stage.target) or _identity(stage.target) != stage.identity:
            if os.path.lexists(stage.target):  # swapped just now: what was there before comes back
                os.rename(stage.target, stage.folder)
            raise CannotFinish(
                f"another process replaced the folder {shown(stage.folder)}, in which the output was made: check "
                f"{shown(stage.target.parent)}, and write to a folder that only you can write to (-o)"
            )
        finished(stage.target)
    except BaseException as error:
        if aside is not None:
            if os.path.lexists(aside / stage.target.name) and not os.path.lexists(stage.target):
                os.rename(aside / stage.target.name, stage.target)
            remove_tree(aside)
        if isinstance(error, OSError):
            raise CannotFinish(f"cannot put the output at {shown(stage.target)}: {reason(error)}") from error
        raise
    else:
        if aside is not None:
            remove_tree(aside)
    finally:
        hold.close()


def _identity(folder: Path) -> tuple[int, int]:
    """Which folder it is; links are not followed."""
    info = os.lstat(folder)
    return info.st_dev, info.st_ino


def make_folders(stage: Staging, folders: Iterable[str]) -> None:
    """Makes the folders of the tree, open to the owner until `set_folder_modes`. OSError when the system refuses."""
    for path in folders:
        os.mkdir(stage.folder / path, 0o700)


def set_folder_modes(stage: Staging, folders: Iterable[tuple[str, int]], top: int) -> None:
    """Gives the folders the permission bits that they have in the input; the top one stays open to its owner."""
    for path, mode in sorted(folders, reverse=True):
        os.chmod(stage.folder / path, mode & 0o1777)
    os.chmod(stage.folder, (top & 0o1777) | 0o700)


def _make_parents(folder: Path) -> list[Path]:
    """Makes `folder` and those above it; returns the ones that were not there, the deepest first."""
    missing: list[Path] = []
    at = folder
    while not os.path.lexists(at):
        missing.append(at)
        at = at.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise UsageError(f"the output cannot go to {shown(folder)}: {shown(at)} is not a folder") from error
    except NotADirectoryError as error:
        raise UsageError(f"the output cannot go to {shown(folder)}: {shown(at)} is not a folder") from error
    except OSError as error:
        _remove_empty(missing)
        raise CannotFinish(f"cannot make the folder {shown(folder)}: {reason(error)}") from error
    return missing


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
