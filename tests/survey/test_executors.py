"""Where items are carried out: the same results everywhere, and a worker that dies costs its item."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest

from scripts.regen_samples import SAMPLES
from transplt.base.errors import UsageError
from transplt.base.extras import install_command
from transplt.faces.cli.main import main
from transplt.project import executors
from transplt.project.executors import Where, carry_out, parse_executor
from transplt.project.pool import Died

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("inline", Where("inline", 1)),
        ("processes:3", Where("processes", 3)),
        ("dask://10.0.0.1:8786", Where("dask", 0, "10.0.0.1:8786")),
        ("dask://local:2", Where("dask", 2)),
        ("ray://head.example:10001", Where("ray", 0, "head.example:10001")),
        ("ray://[::1]:10001", Where("ray", 0, "[::1]:10001")),
    ],
)
def test_executors_as_they_are_written(text: str, where: Where) -> None:
    assert parse_executor(text) == where


@pytest.mark.parametrize("text", ["", "threads", "processes:0", "processes:", "dask://", "dask://host", "ray://a b:1"])
def test_no_executors(text: str) -> None:
    with pytest.raises(UsageError):
        parse_executor(text)


def work(item: int) -> int:
    """The square; some items end the process that has them."""
    if item == 3:
        os._exit(7)
    if item == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def held(where: Where, items: range) -> None:
    found = dict(carry_out(where, work, items))
    died = {item for item, result in found.items() if isinstance(result, Died)}
    assert died == {3, 5} & set(items)
    assert {item: result for item, result in found.items() if item not in died} == {
        item: item * item for item in items if item not in died
    }


def handlers(item: int) -> list[object]:
    return [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]


def test_a_worker_says_nothing_of_an_interrupt() -> None:
    assert [found for _, found in carry_out(Where("processes", 1), handlers, [0])] == [[signal.SIG_IGN, signal.SIG_DFL]]


class _Lost(Executor):
    """Takes items, and the thread that would hand them out is gone, as where the system starts no more threads."""

    def __init__(self) -> None:
        self._executor_manager_thread = threading.Thread(target=int)
        self._executor_manager_thread.start()
        self._executor_manager_thread.join()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


def test_nobody_waits_for_items_that_nobody_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_LOOK", 0.01)
    monkeypatch.setattr(executors, "opened", lambda where: contextlib.nullcontext(_Lost()))
    with pytest.raises(MemoryError):
        list(carry_out(Where("processes", 1), work, range(2)))


def test_items_here() -> None:
    assert list(carry_out(Where("inline", 1), work, range(3))) == [(0, 0), (1, 1), (2, 4)]


def test_processes_that_die_cost_their_items() -> None:
    held(Where("processes", 2), range(8))


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_clusters_that_are_not_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UsageError, match=re.escape(install_command(name))):
        list(carry_out(Where(name, 1), work, range(2)))


def migrated(out: Path, *where: str) -> dict[str, bytes]:
    """A sample, carried out there: all files of the output."""
    source = SAMPLES / "image_classifier" / "cuda"
    main.main(["-i", str(source), "-o", str(out), "--exit-zero", "-q", *where], standalone_mode=False)
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.mark.extra
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_cluster(kind: str, package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    held(Where(kind, 2), range(8))
    assert migrated(tmp_path / "there", "--executor", f"{kind}://local:2") == migrated(tmp_path / "here")
