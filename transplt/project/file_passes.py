"""Both passes over the files of a project: first the facts that they give each other, then the work on each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from transplt.base.disk.manifest import read_manifest
from transplt.base.disk.walk import Entry
from transplt.base.errors import CannotFinish, shown
from transplt.base.finding import Finding
from transplt.base.settings import Settings
from transplt.project.pool import Pool, share_out
from transplt.project.report.migration_record import FileRecord
from transplt.project.unread_files import Died, Unread, unread_finding
from transplt.project.worker import FileWorker

if TYPE_CHECKING:
    from transplt.flow.facts import ModuleFacts, ProjectFacts  # a file that is given alone says nothing to others
    from transplt.project.executor_shares import Shares
    from transplt.project.executors import Where

_Record = TypeVar("_Record")
#: From so much Python on what is kept from the first pass for the second costs more memory than it is worth.
LARGE_TREE_BYTES = 12_000_000


def open_pool(
    worker: FileWorker[Any], jobs: int | Where, meanwhile: Callable[[], None] = lambda: None
) -> tuple[Pool | Shares, int]:
    """What carries out the passes, and how many shares it takes: so many processes of ours, or an executor."""
    if isinstance(jobs, int):
        return Pool(worker, jobs, meanwhile), jobs
    from transplt.project.executor_shares import Shares, count

    return Shares(worker, jobs), count(jobs)


def work_through(
    worker: FileWorker[_Record],
    indexed: Sequence[Entry],
    wanted: Sequence[Entry],
    jobs: int | Where,
    step: Callable[[], None],
    meanwhile: Callable[[], None] = lambda: None,
) -> tuple[list[_Record], list[Finding]]:
    """What `worker` keeps of the `wanted` files, in no order, and findings for those that cannot be opened.

    The Python among `indexed` gives its facts first; with none the project is not known. `step` is called once
    for each of these and for each wanted file, `meanwhile` while other processes are at work, if any are.
    """
    lost: dict[str, Died] = {}
    if not wanted:
        return [], []
    paths = {entry.path for entry in wanted}
    worker.large = sum(entry.size for entry in indexed if entry.is_python) > LARGE_TREE_BYTES
    opened, number = open_pool(worker, jobs, meanwhile)
    shares = share_out(indexed or wanted, number)
    with opened as pool:
        if indexed:
            pool.set_project(_project_told(worker, pool, shares, lost, step))
        going = [[entry for entry in share if entry.path in paths and entry.path not in lost] for share in shares]
        return finish(worker, pool, wanted, going, lost, step)


def _project_told(
    worker: FileWorker[Any],
    pool: Pool | Shares,
    shares: Sequence[Sequence[Entry]],
    lost: dict[str, Died],
    step: Callable[[], None],
) -> ProjectFacts:
    """What the files say to each other. What each said is gone when this returns."""
    facts = facts_of_files(pool, shares, lost, step).values()
    known = [fact for fact in facts if fact is not None]
    return project_of(known, worker.settings, chose_before(worker.root))


def chose_before(root: str) -> bool | None:
    """Whether the input of an output of ours chose between CUDA and the NPU; None for a tree that is no such output."""
    before = read_manifest(Path(root))
    portable = before.get("portable") if before is not None else None
    return portable if isinstance(portable, bool) else None


def project_of(facts: Iterable[ModuleFacts], settings: Settings, chose: bool | None) -> ProjectFacts:
    """The sum of what all files of a tree say; `chose` is what `chose_before` says of it.

    An output of ours chooses between CUDA and the NPU where its input did: half of what was migrated looks as if it
    chose.
    """
    from transplt.engine.engine import join_facts

    project = join_facts(facts, settings)
    if chose is not None:
        project.portable = chose
    return project


def facts_of_files(
    pool: Pool | Shares, shares: Sequence[Sequence[Entry]], lost: dict[str, Died], step: Callable[[], None]
) -> dict[str, ModuleFacts | None]:
    """The first pass over the files that may have facts; a file on which it failed goes to `lost`."""
    from transplt.flow.packed_facts import sharing

    facts: dict[str, ModuleFacts | None] = {}
    texts = dict[str, str]()
    for entry, fact in pool.run("index", [[entry for entry in share if entry.has_facts] for share in shares]):
        step()
        if isinstance(fact, Died):
            lost[entry.path] = fact
        else:
            facts[entry.path] = sharing(fact, texts) if fact is not None else fact
    return facts


def work_again(
    worker: FileWorker[_Record], wanted: Sequence[Entry], jobs: int | Where
) -> tuple[list[_Record], list[Finding]]:
    """The second pass alone, over files that `worker` has been through: it knows the project."""
    opened, number = open_pool(worker, jobs)
    with opened as pool:
        pool.set_project(worker.project)
        return finish(worker, pool, wanted, share_out(wanted, number), {}, lambda: None)


def migrated_again(
    worker: FileWorker[FileRecord], wanted: Sequence[Entry], jobs: int | Where, out: str, *, keep_data: bool = False
) -> list[FileRecord]:
    """The records of files that were migrated before, written over into the folder `out` unless it is empty. WriteError
    when one cannot be written.
    """
    assert isinstance(worker.keep, partial)
    more = {"out": out, "again": True, "keep_data": keep_data or worker.keep.keywords["keep_data"]}
    keep = partial(worker.keep.func, **{**worker.keep.keywords, **more})
    done, unread = work_again(replace(worker, keep=keep, known={}), wanted, jobs)
    if unread:
        raise CannotFinish(f"{shown(unread[0].path)} could be read once and not again: {unread[0].detail('why')}")
    return done


def finish(
    worker: FileWorker[_Record],
    pool: Pool | Shares,
    wanted: Sequence[Entry],
    shares: Sequence[Sequence[Entry]],
    lost: dict[str, Died],
    step: Callable[[], None],
) -> tuple[list[_Record], list[Finding]]:
    """The second pass; `lost` are files on which the first failed, with the reason."""
    records: list[_Record] = []
    unread: list[Finding] = []

    def keep(record: _Record | Unread) -> None:
        if isinstance(record, Unread):
            unread.append(unread_finding(record.path, record.why))
        else:
            records.append(record)

    for entry, record in pool.run("finish", shares):
        step()
        if isinstance(record, Died):
            lost[entry.path] = record
        else:
            keep(record)
    for entry in wanted:
        if entry.path in lost:
            keep(worker.copy(entry, lost[entry.path].why, lost[entry.path].over))
    return records, unread
