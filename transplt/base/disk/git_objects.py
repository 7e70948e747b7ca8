"""Commits made beside the working tree: git's objects are read and written, and one branch of ours is moved.

Neither the index nor a checked out file nor another branch is touched. OSError when git is not there or fails.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transplt.base.disk.git_command import run_git

#: So many objects are asked for at a time.
_AT_ONCE = 200
#: Who commits may stand in the environment.
_PERSON = tuple(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL", "DATE"))


@dataclass(frozen=True, slots=True)
class Held:
    """An entry of a commit's tree: mode (100644, 100755, 120000, 160000), object and path, of size bytes."""

    mode: str
    name: str
    path: str
    size: int


def commit_of(top: Path, ref: str) -> str:
    """The commit that a name stands for, empty where there is none."""
    try:
        output = run_git(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
    except FileNotFoundError:
        raise
    except OSError:
        return ""
    return output.decode("ascii").strip()


def common_commit(top: Path, one: str, other: str) -> str:
    """The last commit that two have in common, empty where they have none."""
    try:
        return run_git(top, "merge-base", one, other).decode("ascii").strip()
    except FileNotFoundError:
        raise
    except OSError:
        return ""


def checked_out(top: Path) -> list[str]:
    """The branches that are checked out, in this working tree or another one of the repository: full names."""
    listed = run_git(top, "worktree", "list", "--porcelain").decode("utf-8", "surrogateescape")
    return [line.removeprefix("branch ") for line in listed.splitlines() if line.startswith("branch ")]


def is_branch_name(top: Path, name: str) -> bool:
    """Whether git takes a text for the name of a branch."""
    try:
        run_git(top, "check-ref-format", f"refs/heads/{name}")
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return not name.startswith("-")


def tree_of(top: Path, commit: str) -> list[Held]:
    """All files of a commit."""
    found = []
    for row in run_git(top, "ls-tree", "-r", "-z", "-l", "--full-tree", commit).split(b"\0"):
        if row:
            head, _, path = row.partition(b"\t")
            mode, _, name, size = head.decode("ascii").split()
            found.append(Held(mode, name, os.fsdecode(path), int(size) if size.isdecimal() else 0))
    return found


def contents(top: Path, held: Sequence[Held]) -> Iterator[tuple[Held, bytes | None]]:
    """The files with their bytes, as git keeps them: no filter is applied. None for what a partial clone lacks."""
    for begin in range(0, len(held), _AT_ONCE):
        some = held[begin : begin + _AT_ONCE]
        output = run_git(top, "cat-file", "--batch", stdin="".join(f"{each.name}\n" for each in some).encode())
        at = 0
        for each in some:
            end = output.index(b"\n", at)
            head = output[at:end].split()
            if len(head) != 3:
                yield each, None
                at = end + 1
                continue
            size = int(head[2])
            yield each, output[end + 1 : end + 1 + size]
            at = end + size + 2


def new_commit(top: Path, parent: str, files: Mapping[str, tuple[str, Path]], message: str, scratch: Path) -> str:
    """A commit on top of `parent` in which `files` (path -> mode and where the content lies) are as given."""
    listed = "".join(f"{where}\n" for _, where in files.values())
    names = run_git(top, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=os.fsencode(listed)).split()
    rows = b"".join(
        f"{mode} {name.decode()}\t".encode() + os.fsencode(path) + b"\0"
        for (path, (mode, _)), name in zip(files.items(), names, strict=True)
    )
    index = {"GIT_INDEX_FILE": str(scratch / "index")}
    run_git(top, "read-tree", parent, environment=index)
    run_git(top, "update-index", "-z", "--index-info", stdin=rows, environment=index)
    tree = run_git(top, "write-tree", "--missing-ok", environment=index).decode("ascii").strip()
    person = {name: os.environ[name] for name in _PERSON if name in os.environ}
    output = run_git(top, "commit-tree", tree, "-p", parent, "-F", "-", stdin=message.encode(), environment=person)
    return output.decode("ascii").strip()


def subjects(top: Path, since: str, until: str) -> list[str]:
    """The subjects of the commits behind one, the oldest first; none of a merge."""
    asked = ("log", "--reverse", "--no-merges", "--no-show-signature", "--format=%s", f"{since}..{until}")
    return run_git(top, *asked).decode("utf-8", "replace").splitlines()


def who_commits(top: Path) -> str:
    """The name that git would put under a commit, empty where it knows none."""
    person = {name: os.environ[name] for name in _PERSON if name in os.environ}
    try:
        return run_git(top, "var", "GIT_COMMITTER_IDENT", environment=person).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        raise
    except OSError:
        return ""


def move_branch(top: Path, name: str, commit: str, before: str) -> None:
    """Lets a branch stand at a commit, if it still stands where it stood `before` (empty: nowhere)."""
    nowhere = "0" * len(commit)
    run_git(top, "update-ref", "-m", "transplt port", f"refs/heads/{name}", commit, before or nowhere)
