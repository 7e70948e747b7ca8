"""What one rank does alone, and what the ranks of one machine do one after the other."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helper.in_ranks import each_rank, npu_port, run_ranks, torch

pytestmark = pytest.mark.torch


def downloads(folder: str, way: str) -> list[str]:
    """Write a file if there is none, and say so; the others have to find it whole."""
    path = Path(folder, "data")

    def fetch() -> str:
        if path.exists():
            return path.read_text()
        path.write_text("half")
        time.sleep(0.2)
        path.write_text("whole")
        return "fetched"

    def guarded() -> None:
        if way == "call":
            found.append(npu_port.one_by_one(fetch))
        else:
            with npu_port.first_on_host("data"), npu_port.first_on_host("data"), npu_port.first_on_host("other"):
                found.append(fetch())

    found: list[str] = []
    if way == "threads":
        threads = [threading.Thread(target=guarded) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif way == "worker":
        npu_port.start()
        if not (worker := os.fork()):
            guarded()
            path.with_name(f"worker {npu_port.rank()}").write_text(found[0])
            os._exit(0)
        os.waitpid(worker, 0)
        found = [path.with_name(f"worker {npu_port.rank()}").read_text()]
    else:
        if way != "unstarted":
            npu_port.start()
        guarded()
    return found


@pytest.mark.parametrize("way", ["call", "block", "threads", "worker", "unstarted"])
def test_one_fetches_and_the_others_find(tmp_path: Path, way: str) -> None:
    found = sorted(text for rank in each_rank(downloads, 3, str(tmp_path), way) for text in rank)
    assert found == ["fetched"] + ["whole"] * (5 if way == "threads" else 2)


def one_of_them_only() -> int:
    npu_port.start()
    if npu_port.rank() == 1:
        with npu_port.first_on_host("rare"):
            pass
    return int(npu_port.one_by_one(lambda: 3))


def test_not_every_rank_has_to_come() -> None:
    assert each_rank(one_of_them_only, 3) == [3, 3, 3]


def alone_inside(folder: str) -> bool:
    npu_port.start()
    path = Path(folder, "inside")
    alone = True
    for _ in range(3):
        npu_port.wait()
        with npu_port.first_on_host("again"):
            alone = alone and not path.exists()
            path.write_text("")
            time.sleep(0.1)
            path.unlink()
    return alone


def test_who_has_been_inside_waits_the_next_time(tmp_path: Path) -> None:
    assert each_rank(alone_inside, 2, str(tmp_path)) == [True, True]


def leaves_a_child(folder: str) -> bool:
    """A child that rank 0 forked inside, and that goes on, sees that rank 1 comes in."""
    npu_port.start()
    path = Path(folder, "entered")
    child = 0
    if npu_port.is_first():
        with npu_port.first_on_host("forked"):
            if not (child := os.fork()):
                end = time.monotonic() + 10
                while not path.exists() and time.monotonic() < end:
                    time.sleep(0.02)
                os._exit(not path.exists())
    npu_port.wait()
    if not npu_port.is_first():
        with npu_port.first_on_host("forked"):
            path.write_text("")
    return not child or os.waitpid(child, 0)[1] == 0


def test_a_child_does_not_keep_others_out(tmp_path: Path) -> None:
    assert each_rank(leaves_a_child, 2, str(tmp_path)) == [True, True]


def fails_inside(folder: str) -> str:
    npu_port.start()
    try:
        with npu_port.first_on_host("data"):
            raise ValueError("no net")
    except ValueError as error:
        return str(error)


def test_an_exception_lets_the_next_one_in(tmp_path: Path) -> None:
    assert each_rank(fails_inside, 3, str(tmp_path)) == ["no net"] * 3


def locks(folder: str) -> list[str]:
    tempfile.tempdir = folder
    npu_port.start()
    with npu_port.first_on_host("data"):
        return os.listdir(folder)


def test_one_process_locks_nothing(tmp_path: Path) -> None:
    assert each_rank(locks, 1, str(tmp_path), launched=False) == [[]]
    first, second = each_rank(locks, 2, str(tmp_path))
    assert first == second
    assert len(first) == 1


def aside(folder: str) -> dict[str, Any]:
    target = Path(folder, "model.pt")
    target.write_text("old")
    found: dict[str, Any] = {}
    with npu_port.written_aside(target) as path:
        Path(path).write_text("new")
        found["during"] = target.read_text()
        found["name"] = Path(path).name
    found["after"] = target.read_text()
    try:
        with npu_port.written_aside(str(target)) as path:
            Path(path).write_text("half")
            raise ValueError
    except ValueError:
        found["failed"] = target.read_text()
    with npu_port.written_aside(target):
        pass
    found["nothing"] = target.read_text()
    with npu_port.written_aside(Path(folder, "unpacked")) as path:
        os.mkdir(path)
        Path(path, "file").write_text("x")
    link = Path(folder, "link")
    link.symlink_to(target)
    with npu_port.written_aside(link) as path:
        Path(path).write_text("through")
    found["link"] = [link.is_symlink(), target.read_text(), oct(target.stat().st_mode & 0o777)]
    pipe = Path(folder, "pipe")
    os.mkfifo(pipe)
    with npu_port.written_aside(pipe) as path:
        found["pipe"] = path == str(pipe)
    found["files"] = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))
    return found


def test_a_file_comes_to_its_place_whole_or_not_at_all(tmp_path: Path) -> None:
    (found,) = each_rank(aside, 1, str(tmp_path))
    assert found == {
        "during": "old", "name": "model.pt", "after": "new", "failed": "new", "nothing": "new",
        "link": [True, "through", oct(0o666 & ~_umask())], "pipe": True,
        "files": ["link", "model.pt", "pipe", "unpacked", "unpacked/file"],
    }  # fmt: skip


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def saved(folder: str) -> bytes:
    import io

    npu_port.start()
    npu_port.save({"rank": npu_port.rank()}, Path(folder, "model.pt"))
    npu_port.save([1], os.path.join(folder, "old.pt"), _use_new_zipfile_serialization=False)
    npu_port.wait()
    buffer = io.BytesIO()
    npu_port.save(1, buffer)
    npu_port.show("rank", npu_port.rank(), sep="=")
    return buffer.getvalue()


def test_rank_0_alone_saves_and_prints(tmp_path: Path) -> None:
    ended = run_ranks(saved, 3, str(tmp_path))
    assert ended.codes == [0, 0, 0], ended.outputs
    assert ended.outputs == ["rank=0\n", "", ""]
    assert [bool(data) for data in ended.results] == [True, False, False]
    assert sorted(os.listdir(tmp_path)) == ["model.pt", "old.pt"]
    assert each_rank(loaded, 1, str(tmp_path)) == [[{"rank": 0}, [1], True, False]]


def loaded(folder: str) -> list[Any]:
    here = os.path.join(folder, "model.pt")
    there = os.path.join(folder, "there", "model.pt")
    os.mkdir(os.path.dirname(there))
    torch.save({"rank": 0}, there)
    same = Path(here).read_bytes() == Path(there).read_bytes()
    old = os.path.join(folder, "old.pt")
    return [torch.load(here), torch.load(old), same, Path(old).read_bytes()[:2] == b"PK"]
