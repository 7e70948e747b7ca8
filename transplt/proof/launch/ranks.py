"""The ranks of a run: where each is, as npu_emulator.places keeps it; which wait for one that does not come; how one
ended, where only the process that started it saw that."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from transplt.proof.launch.stacks import stood

#: For how long a rank waits before that is told, in seconds.
PATIENCE = 5.0


def place(path: Path) -> dict[str, Any] | None:
    """What `PID.place` has: `rank` of `world`, `what` it does ("": it computes) or `waits` for, since `time`, and the
    `path` and `line` of the program where they are known. None where there is nothing."""
    with contextlib.suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads(path.read_bytes())
        return found
    return None


def lives(path: Path) -> bool:
    """Whether the process of `PID.stack` runs: it locks the file as long as it does."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def with_endings(records: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The records of processes, each with the `exception` that it ended with, or how it `ended`, where its launcher has
    told that: the errors that torchrun and torch.multiprocessing raise are about a process of theirs."""
    processes = {each["pid"]: {**each, "ended": ""} for each in records}
    for launcher in processes.values():
        error = launcher["exception"] or {}
        other = processes.get(error.get("of", 0))
        if other is None:
            continue
        launcher["launcher"] = True
        if "ended" in error:
            other["ended"] = error["ended"]
            who = f"rank {other['rank']}" if other["rank"] is not None else "a process"
            launcher["exception"] = {**error, "reason": f"{who} ended {error['ended']}"}
        elif not other["exception"]:
            other["exception"] = {name: value for name, value in error.items() if name != "of"}
    return tuple(processes.values())


class Waits:
    """Looks at the ranks of a run that goes on, again and again. `told` are the sentences about those that have waited
    for long; `ask` lets processes write where they stand, and `heard` is how much each had written by then."""

    def __init__(self, records: Path, ask: Callable[[list[Path]], None]) -> None:
        self.records, self._ask = records, ask
        self.told: list[str] = []
        self.heard: dict[str, int] = {}
        self._known: set[tuple[str, ...]] = set()

    def look(self) -> str:
        """The sentence about ranks that wait, once for each place where they do; "" where there is nothing new."""
        files = [path for path in self.records.glob("*.place") if lives(path.with_suffix(".stack"))]
        found = {path: each for path in files if (each := place(path))}
        waiting = [each for each in found.values() if each["waits"]]
        if not waiting or time.time() - min(each["time"] for each in waiting) < PATIENCE:
            return ""
        late = {each["rank"]: path.with_suffix(".stack") for path, each in found.items() if not each["waits"]}
        late |= self._unseen(max(each["world"] for each in waiting), {each["rank"] for each in found.values()})
        key = tuple(sorted(f"{each['rank']} {each.get('path')} {each.get('line')} {each['what']}" for each in waiting))
        if not late or key in self._known:
            return ""
        self._known.add(key)
        self.told.append("; ".join([*in_words(waiting), *self._whereabouts(late)]))
        return self.told[-1]

    def _unseen(self, world: int, seen: set[str]) -> dict[str, Path]:
        """The files of stacks of the ranks that run and have not been `seen`, of those whose launcher gave them a
        number."""
        unseen = {}
        for path in self.records.glob("*.json") if len(seen) < world else ():
            with contextlib.suppress(OSError, ValueError):
                rank = json.loads(path.read_bytes())["rank"]
                if rank is not None and rank not in seen and lives(path.with_suffix(".stack")):
                    unseen[rank] = path.with_suffix(".stack")
        return unseen

    def _whereabouts(self, late: dict[str, Path]) -> list[str]:
        before = {path: path.stat().st_size for path in late.values()}
        self._ask([*before])
        sentences = []
        for rank, path in sorted(late.items()):
            text = path.read_text("utf-8", "replace")
            self.heard[path.stem] = len(text)
            where, at = stood(text.partition("\n")[0] + "\n" + text[before[path] :]), "outside of the program's lines"
            if where is not None:
                inside = "" if where["function"].startswith("<") else f", in {where['function']}"
                at = f"at {os.path.relpath(where['path'])}:{where['line']}{inside}"
            sentences.append(f"rank {rank} does not arrive: it is {at}")
        return sentences


def in_words(places: Iterable[dict[str, Any]], shorten: Callable[[str], str] = os.path.relpath) -> list[str]:
    """What ranks wait for: a sentence for each place and exchange, with all that wait there."""
    together: dict[str, list[str]] = {}
    for each in sorted(places, key=lambda each: (len(each["rank"]), each["rank"])):
        at = f" at {shorten(each['path'])}:{each['line']}" if each.get("path") else ""
        together.setdefault(f"in {each['what']}{at}", []).append(each["rank"])
    return [
        f"rank {ranks[0]} waits {where}" if len(ranks) == 1 else f"ranks {', '.join(ranks)} wait {where}"
        for where, ranks in together.items()
    ]
