"""A project that means harm: nothing hangs, falls over, is executed, is written elsewhere, or goes unmentioned."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzz.held import compiles, photograph
from tests.hostile import (
    CONVERTED,
    ENTRIES,
    NAMED,
    PROJECTS,
    SAME,
    SKIPPED,
    Entry,
    Project,
    build,
    build_project,
    open_up,
)  # fmt: skip
from tests.processes import unmeasured
from transplt.base.disk.publish import publish, staging
from transplt.base.errors import CannotFinish, shown

ROOT = Path(__file__).resolve().parent.parent
#: Seconds for a run over the whole tree, and over a tree of one file; they take 5 and half a second.
LIMIT, SMALL_LIMIT = 300, 30
#: Bytes that one process may ask for.
MEMORY = 2 * 2**30

#: The tests that share the one tree run in one process.
on_the_tree = pytest.mark.xdist_group("hostile")


@dataclass(frozen=True)
class Ran:
    """How a command ended; `code` is None when it did not."""

    code: int | None
    out: str
    err: str


class Place:
    """A folder with the input `in`, what lies beside it, and what a run may look for in the environment."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.project, self.out, self.witness, self.outside = (
            top / name for name in ("in", "out", "witness", "outside")
        )
        self.home, self.temporary = top / "home", top / "tmp"
        for folder in (self.witness, self.outside, self.home, self.temporary):
            folder.mkdir()
        (self.outside / "victim.py").write_bytes(b"import torch\ntorch.cuda.synchronize()\n")
        (self.outside / "rules.json").write_text('{"rules": {}}')

    def run(self, *command: str, limit: float = LIMIT, cwd: Path | None = None, path: Sequence[Path] = (ROOT,)) -> Ran:
        """`python -m transplt` with the arguments, in which {project} and {out} are the folders."""
        arguments = [part.format(project=self.project, out=self.out) for part in command]
        environment = {
            **unmeasured(),
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        environment.pop("PYTHONPATH", None)
        if path:
            environment["PYTHONPATH"] = os.pathsep.join(map(str, path))
        with subprocess.Popen(
            [sys.executable, "-m", "transplt", *arguments], cwd=cwd or self.home, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                return Ran(None, "", "".join(part.decode("utf-8", "replace") for part in process.communicate()))
        return Ran(process.returncode, out.decode("utf-8", "backslashreplace"), err.decode("utf-8", "backslashreplace"))

    def photograph(self) -> dict[str, dict[str, tuple[int, int, bytes]]]:
        """All but the output."""
        return {f.name: photograph(f) for f in (self.project, self.witness, self.outside, self.home, self.temporary)}


def hold(ran: Ran, codes: Sequence[int]) -> None:
    """What holds of every command."""
    assert ran.code is not None, "it does not end"
    assert "Traceback" not in ran.err + ran.out, ran.err[-2000:]
    assert "internal error of transplt" not in ran.err + ran.out, ran.err[-2000:]
    assert "Warning:" not in ran.err, ran.err[-2000:]
    assert ran.code in codes, ran.err[-2000:]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("hostile"))
    build(place.project, place.witness)
    return place


@pytest.fixture(scope="module")
def migrated(tree: Place) -> Ran:
    before = tree.photograph()
    ran = tree.run("-i", "{project}", "-o", "{out}", "--jobs", "2", "-v")
    assert tree.photograph() == before
    return ran


@on_the_tree
def test_the_tree_is_migrated(tree: Place, migrated: Ran) -> None:
    hold(migrated, [1])
    assert {path.name for path in tree.top.iterdir()} == {"in", "out", "witness", "outside", "home", "tmp"}
    assert [path.name for path in tree.out.iterdir()] == ["in_msft"]


@on_the_tree
@pytest.mark.parametrize("command", [
    pytest.param(("-i", "{project}", "-o", "{out}", "--diff", "--jobs", "0"), marks=pytest.mark.slow),
    ("check", "{project}", "--format", "json", "--diff"),
    pytest.param(("check", "{project}"), marks=pytest.mark.slow),
    pytest.param(("analyze", "{project}"), marks=pytest.mark.slow),
], ids=" ".join)  # fmt: skip
def test_the_tree_is_looked_at(tree: Place, command: tuple[str, ...]) -> None:
    before = tree.photograph()
    hold(tree.run(*command), [1])
    assert tree.photograph() == before


def test_the_tree_is_migrated_in_place(tmp_path: Path) -> None:
    place = Place(tmp_path)
    build(place.project, place.witness)
    shutil.rmtree(place.project / ".git")
    before = place.photograph()
    hold(place.run("check", "--fix", "--allow-dirty", "--style", "npu", "{project}"), [1])
    after = place.photograph()
    assert after.pop("in").keys() == before.pop("in").keys()
    assert after == before
    for entry in ENTRIES:
        if entry.fate == CONVERTED and not entry.fails:
            assert b"torch.npu" in _path(place.project, entry).read_bytes(), entry
    open_up(place.project)


@on_the_tree
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(e, id=str(e), marks=[pytest.mark.xfail(strict=False, reason=e.fails)] if e.fails else [])
        for e in ENTRIES
    ],
)
def test_every_entry_is_accounted_for(tree: Place, migrated: Ran, entry: Entry) -> None:
    if entry.name in (b"unreadable.py", b"unreadable.txt", b"closed", b"no_listing") and os.geteuid() == 0:
        pytest.skip("root reads everything")
    source, output = _path(tree.project, entry), _path(tree.out / "in_msft", entry)
    if entry.fate in (NAMED, SKIPPED):
        assert not os.path.lexists(output)
        assert entry.fate == SKIPPED or shown(os.fsdecode(entry.name)) in _said(tree, migrated)
        return
    assert os.path.lexists(output)
    if entry.fate == SAME:
        if source.is_symlink() or source.is_dir():
            assert output.is_symlink() == source.is_symlink() and output.is_dir() == source.is_dir()
        else:
            data = source.read_bytes()
            same = output.read_bytes() == data  # a difference of megabytes is not shown in minutes
            assert same
            # What was to be migrated and was not is said.
            assert source.suffix != ".py" or b"cuda" not in data or shown(source.name) in _said(tree, migrated)
        return
    data = output.read_bytes()
    assert b"torch.npu.synchronize()" in data
    if compiles(source.read_bytes()):
        assert compiles(data)


@pytest.mark.parametrize(
    "project",
    [
        pytest.param(p, id=str(p), marks=[pytest.mark.xfail(strict=False, reason=p.fails)] if p.fails else [])
        for p in PROJECTS
    ],
)
def test_a_hostile_project(tmp_path: Path, project: Project) -> None:
    place = Place(tmp_path)
    build_project(project, place.project, place.witness)
    before = place.photograph()
    ran = place.run(*project.command, limit=SMALL_LIMIT)
    after = place.photograph()
    assert after["witness"] == {}, "something of the input was executed"
    if "--fix" not in project.command:
        assert after == before
    hold(ran, project.codes)
    assert (place.out / "in_msft" / "good.py").exists() == (
        project.good and project.command[0] == "-i" and ran.code != 2
    )


@pytest.mark.parametrize("command", [("-i", "a.py", "--diff"), ("check", "a.py", "--diff")], ids=" ".join)
def test_a_terminal_obeys_nothing_of_a_patch(tmp_path: Path, command: tuple[str, ...]) -> None:
    text = b"import torch\ntorch.cuda.synchronize()  # \x1b]0;owned\x07\x1b[2J\n"
    (tmp_path / "a.py").write_bytes(text)
    piped = subprocess.run(
        [sys.executable, "-m", "transplt", *command, "-q"], cwd=tmp_path, env={**unmeasured(), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, timeout=SMALL_LIMIT, check=False,
    )  # fmt: skip
    assert b"\x1b]0;owned\x07\x1b[2J" in piped.stdout, "bytes in a pipe: a patch is to be applied"
    ours, its = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "transplt", *command, "-q"], cwd=tmp_path, env={**unmeasured(), "PYTHONPATH": str(ROOT)},
        stdout=its, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        process.wait(SMALL_LIMIT)
    os.close(its)
    shown = os.read(ours, 65536)
    os.close(ours)
    assert b"\\x1b]0;owned\\x07\\x1b[2J" in shown and b"\x1b" not in shown


@pytest.mark.parametrize("replaced", [False, True])
def test_a_hidden_folder_that_is_swapped_for_a_link(tmp_path: Path, replaced: bool) -> None:
    """Somebody who may write beside the output: nothing of what the link leads to is published, changed or removed."""
    outside, target = tmp_path / "outside", tmp_path / "out_msft"
    outside.mkdir()
    (outside / "precious.txt").write_text("mine")
    if replaced:
        target.mkdir()
        (target / "before.py").write_text("old")
    with pytest.raises(CannotFinish, match="another process replaced the folder"), staging(target) as stage:
        stage.folder.rename(tmp_path / "taken")
        stage.folder.symlink_to(outside)
        publish(stage, replace=replaced)
    assert (outside / "precious.txt").read_text() == "mine"
    assert not target.is_symlink() and target.exists() == replaced
    assert not replaced or (target / "before.py").read_text() == "old"


def _path(top: Path, entry: Entry) -> Path:
    return top / os.fsdecode(entry.name)


def _said(tree: Place, ran: Ran) -> str:
    return ran.err + (tree.out / "in_msft" / "msFmkTranspltlog.txt").read_text("utf-8", "replace")
