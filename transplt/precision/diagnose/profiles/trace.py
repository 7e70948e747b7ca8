"""A chrome trace read into a `Profile`: that of torch_npu (trace_view.json), of msprof, of torch, of the old autograd.

Which process and thread is what stands in events that may come last, so events are first summed up by thread. What a
thread is: one of the process `Ascend Hardware` has kernels, one of `Overlap Analysis` says what the card did, one of
`CANN` calls acl, all others are the host.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO

from transplt.precision.diagnose.profiles.events import Events
from transplt.precision.diagnose.profiles.names import type_of
from transplt.precision.diagnose.profiles.profile import MOST_NAMES, THE_REST, Profile, ProfiledStep, Total
from transplt.precision.diagnose.profiles.readers import Stacks
from transplt.precision.diagnose.profiles.tables import finite

_MOST_THREADS = 2_000
#: What a trace says.
ALL = frozenset({"kernels", "steps", "host", "apis", "lines"})
_NOT_HOST = {"python_function", "user_annotation", "overhead", "enqueue", "dequeue", "Trace"}
_CARD_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}


@dataclass(slots=True)
class _Thread:
    named: dict[tuple[str, str], Total] = field(default_factory=dict)
    cards: set[str] = field(default_factory=set)

    def add(self, name: str, core: str, us: float) -> None:
        if (name, core) not in self.named and len(self.named) >= MOST_NAMES:
            name, core = THE_REST, ""
        self.named.setdefault((name, core), Total()).add(us)


def read_trace(file: BinaryIO, profile: Profile, stacks: Stacks, wanted: frozenset[str] = ALL) -> None:
    """Reads a trace: of `ALL` that it can say what is wanted, where tables do not say it better.

    UnreadableProfile for what is no trace.
    """
    threads: dict[tuple[str, str], _Thread] = {}
    processes: dict[str, str] = {}
    names: dict[tuple[str, str], str] = {}
    events = Events(file)
    found = 0
    for event in events:
        kind = event.get("ph")
        if kind == "M":
            _note(event, processes, names)
        elif kind == "X":
            found += 1
            _count(event, threads)
            arguments = event.get("args") if "lines" in wanted else None
            stack = arguments.get("Call stack") if isinstance(arguments, dict) else None
            if isinstance(stack, str) and stack and (frame := stacks.own(stack)) is not None:
                profile.line(frame, str(event.get("name", "")), 0.0, finite(event.get("dur")))
    if events.cut:
        profile.remarks.append("the trace is truncated: the events before the end are counted")
    for key, thread in threads.items():
        _take(thread, processes.get(key[0], key[0]), names.get(key, ""), profile, wanted)
    if "steps" in wanted:
        _parts(threads, processes, names, profile)


def _note(event: dict[str, Any], processes: dict[str, str], names: dict[tuple[str, str], str]) -> None:
    arguments = event.get("args")
    if not isinstance(arguments, dict) or len(processes) > _MOST_THREADS or len(names) > _MOST_THREADS:
        return
    pid, tid = str(event.get("pid")), str(event.get("tid"))
    if event.get("name") == "process_name":
        processes[pid] = str(arguments.get("name", ""))
    elif event.get("name") == "thread_name":
        names[pid, tid] = str(arguments.get("name", ""))


def _count(event: dict[str, Any], threads: dict[tuple[str, str], _Thread]) -> None:
    key = str(event.get("pid")), str(event.get("tid"))
    if (thread := threads.get(key)) is None:
        if len(threads) >= _MOST_THREADS:
            return
        thread = threads[key] = _Thread()
    name, us = str(event.get("name", ""))[:500], finite(event.get("dur"))
    arguments, category = event.get("args"), str(event.get("cat", ""))
    arguments = arguments if isinstance(arguments, dict) else {}
    core = str(arguments.get("Task Type", ""))[:50]
    if core or category in _CARD_CATEGORIES:
        thread.cards.add(core)
    if category not in _NOT_HOST:
        thread.add(name, core, us)


def _take(thread: _Thread, process: str, name: str, profile: Profile, wanted: frozenset[str]) -> None:
    if "Overlap Analysis" in process:
        return
    if process == "Python GC":
        for total in thread.named.values():
            profile.garbage.add(total.us, total.count, total.most)
        return
    collectives = process in ("HCCL", "Communication")
    if collectives and name.startswith("Plane "):
        return  # the parts of a collective, which stands in the thread of its group as a whole
    on_card = bool(thread.cards) or "Ascend Hardware" in process or process.startswith(("NPU func", "CUDA func"))
    for (each, core), total in thread.named.items():
        if on_card or collectives:
            if "kernels" in wanted:
                operator = profile.operator(type_of(each), "HCCL" if collectives else core.replace("Other", ""))
                operator.total.add(total.us, total.count, total.most)
        elif "@" in each or process == "CANN":
            if "apis" in wanted:
                profile.api(each, total.us, total.count, total.most)
        elif "host" in wanted:
            profile.host_operator(each, total.us, total.count)


def _parts(
    threads: dict[tuple[str, str], _Thread], processes: dict[str, str], names: dict[tuple[str, str], str],
    profile: Profile,
) -> None:  # fmt: skip
    """The sums of `Overlap Analysis`, as the one step that they are."""
    parts: dict[str, float] = {}
    for key, thread in threads.items():
        if "Overlap Analysis" in processes.get(key[0], ""):
            for (name, _), total in thread.named.items():
                parts[name] = parts.get(name, 0.0) + total.us
    if parts:
        hidden = "Communication(Not Overlapped)"
        profile.steps.append(
            ProfiledStep("", "", parts.get("Computing", 0.0), parts.get("Communication", 0.0), parts.get(hidden, 0.0),
                 parts.get("Free", 0.0), 0.0)
        )  # fmt: skip
