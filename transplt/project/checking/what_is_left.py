"""Both passes over the files of a project, for those of which the cache does not know the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from transplt.base.disk.walk import Entry
from transplt.base.finding import Finding
from transplt.project.checking.checked_file import CheckedFile
from transplt.project.checking.remembered import Remembered, Spoilt
from transplt.project.pool import Pool, share_out
from transplt.project.unread_files import Died

if TYPE_CHECKING:
    from transplt.flow.facts import ModuleFacts
    from transplt.project.worker import FileWorker  # what is remembered needs no engine

_Outcome = tuple[list[CheckedFile], list[Finding]]


def work_through_rest(
    remembered: Remembered,
    make_worker: Callable[[], FileWorker[CheckedFile]],
    indexed: Sequence[Entry],
    wanted: Sequence[Entry],
    jobs: Callable[[Sequence[Entry]], int],
    step: Callable[[], None],
) -> _Outcome:
    """What `passes.work_through` gives; work is done only for what is not remembered, and is remembered.

    `jobs` returns how many processes some files are worth.
    """
    if not wanted:
        return [], []
    sources = [entry for entry in indexed if entry.has_facts]

    def done(step: Callable[[], None]) -> _Outcome:
        asked = remembered.not_indexed(sources)
        with ExitStack() as stack:
            crew = _Crew(stack, make_worker, remembered, indexed or wanted, jobs)
            facts = crew.index(asked, step) if asked else []
            keys = remembered.keys(sources, wanted) if crew.sure else {}
            known = remembered.results(keys)
            for _ in range(len(sources) - len(asked) + len(known)):
                step()
            have = {record.path for record in known}
            left = [entry for entry in wanted if entry.path not in have]
            if not left:
                records, unread = list[CheckedFile](), list[Finding]()
            else:
                if indexed:
                    facts += remembered.facts([entry for entry in sources if entry not in asked])
                records, unread = crew.finish(left, facts if indexed else None, step)
        if crew.sure and (asked or left):
            remembered.keep(records, keys)
        return [*known, *records], unread

    remembered.read([*sources, *wanted])
    try:
        return done(step)
    except Spoilt:
        remembered.forget()
        return done(lambda: None)


class _Crew:
    """Worker processes, started when there is work: those of the first pass do the second, too, where they are enough.

    `sure`: every file was asked for its facts, so that what is found may be remembered.
    """

    def __init__(
        self,
        stack: ExitStack,
        make_worker: Callable[[], FileWorker[CheckedFile]],
        remembered: Remembered,
        every: Sequence[Entry],
        jobs: Callable[[Sequence[Entry]], int],
    ) -> None:
        self.sure = True
        self._stack, self._make, self._remembered = stack, make_worker, remembered
        self._every, self._jobs = every, jobs
        self._lost: dict[str, Died] = {}
        self._pool: Pool | None = None
        self._size = 0

    def index(self, entries: Sequence[Entry], step: Callable[[], None]) -> list[ModuleFacts]:
        """The facts of files; the cache gets them, too."""
        from transplt.project.file_passes import facts_of_files

        found = []
        pool, shares = self._at_work(entries)
        for path, fact in facts_of_files(pool, shares, self._lost, step).items():
            self._remembered.keep_facts(path, fact)
            if fact is not None:
                found.append(fact)
        self.sure = self.sure and not self._lost
        return found

    def finish(
        self, entries: Sequence[Entry], facts: list[ModuleFacts] | None, step: Callable[[], None]
    ) -> _Outcome:
        """The second pass; without facts the project is not known."""
        from transplt.project.file_passes import chose_before, finish, project_of

        pool, shares = self._at_work(entries)
        if facts is not None:
            pool.set_project(project_of(facts, self._worker.settings, chose_before(self._worker.root)))
        going = [[entry for entry in share if entry.path not in self._lost] for share in shares]
        outcome = finish(self._worker, pool, entries, going, self._lost, step)
        self.sure = self.sure and not self._lost
        return outcome

    def _at_work(self, entries: Sequence[Entry]) -> tuple[Pool, list[list[Entry]]]:
        """A pool that is large enough, and the share of each of its workers."""
        size, paths = self._jobs(entries), {entry.path for entry in entries}
        if self._pool is None or size > self._size:
            if self._pool is None:
                self._worker = self._make()
            self._worker.known = self._remembered.data
            self._pool, self._size = self._stack.enter_context(Pool(self._worker, size)), size
        shares = share_out(self._every, self._size)
        return self._pool, [[entry for entry in share if entry.path in paths] for share in shares]
