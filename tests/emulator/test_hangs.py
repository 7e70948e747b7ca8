"""When the ranks of a traced run are said to hang."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from transplt.proof.launch import hangs, runner


class Machine:
    """A clock, and processes that take processor time; a trace each."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.now, self.spent = folder, 100.0, dict.fromkeys((1, 2), 0.0)
        self.watch = hangs.Watch(folder)
        monkeypatch.setattr("transplt.proof.launch.hangs.time.monotonic", lambda: self.now)
        monkeypatch.setattr(hangs, "_processor_seconds", self.processor_seconds)

    def processor_seconds(self, pids: list[int]) -> dict[int, float]:
        return {pid: self.spent[pid] for pid in pids if pid in self.spent}

    def tell(self, pid: int, event: str, **fields: Any) -> None:
        with (self.folder / f"{pid}.trace").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"e": event, "at": None, **fields}) + "\n")

    def coll(self, pid: int, number: int, *, ends: bool = False, **fields: Any) -> None:
        self.tell(pid, "coll", n=number, group=[0, 1], **{"async": False, **fields})
        if ends:
            self.tell(pid, "coll_end", n=number)

    def hangs_within(self, seconds: float, busy: tuple[int, ...] = ()) -> bool:
        for _ in range(int(seconds * 2)):
            if self.watch.hung():
                return True
            self.now += 0.5
            for pid in busy:
                self.spent[pid] += 0.4
        return self.watch.hung()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, monkeypatch)
    for pid in (1, 2):
        made.coll(pid, 0, ends=True)
    return made


def test_all_wait(machine: Machine) -> None:
    machine.coll(1, 1)
    machine.coll(2, 1)
    assert not machine.hangs_within(5.5)
    assert machine.hangs_within(2)


def test_one_has_ended(machine: Machine) -> None:
    machine.coll(1, 1)
    del machine.spent[2]
    assert machine.hangs_within(7)


def test_one_has_left_the_group(machine: Machine) -> None:
    machine.coll(1, 1)
    machine.tell(2, "group_end", name="default")
    assert machine.hangs_within(7)


def test_one_computes_or_sleeps(machine: Machine) -> None:
    machine.coll(1, 1)
    assert not machine.hangs_within(60)


def test_all_have_ended(machine: Machine) -> None:
    machine.coll(1, 1)
    machine.spent.clear()
    assert not machine.hangs_within(60)


def test_what_is_sent_takes_its_time(machine: Machine) -> None:
    machine.coll(1, 1)
    machine.coll(2, 1)
    assert not machine.hangs_within(60, busy=(2,))


def test_one_goes_on_in_the_background(machine: Machine) -> None:
    machine.coll(1, 1)
    machine.coll(2, 1, **{"async": True})
    assert not machine.hangs_within(60)
    machine.tell(2, "coll_wait", n=1)
    assert machine.hangs_within(7)


def test_something_is_told_now_and_then(machine: Machine) -> None:
    for number in range(1, 20):
        for pid in (1, 2):
            machine.coll(pid, number, ends=True)
        assert not machine.hangs_within(4)


def test_one_is_slow_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, monkeypatch)
    machine.coll(1, 0)
    machine.tell(2, "begin")
    assert not machine.hangs_within(25)
    assert machine.hangs_within(10)
    machine = Machine(tmp_path, monkeypatch)
    assert not machine.hangs_within(60, busy=(2,))


@pytest.mark.parametrize(
    ("text", "seconds"), [("0:01.50", 1.5), ("1:02:03", 3723.0), ("2-00:00:01", 172801.0)]
)
def test_what_ps_says(text: str, seconds: float) -> None:
    assert hangs._seconds(text) == seconds


def test_how_far_it_is_is_told_again_and_again(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    look = runner._counting(machine.watch)
    machine.tell(1, "step", o=0, k=0)
    machine.now += 29
    assert not look() and capsys.readouterr().err == ""
    machine.now += 1
    assert not look() and capsys.readouterr().err == "  30 s, 1 step of an optimizer so far\n"
    machine.tell(2, "step", o=0, k=0)
    machine.now += 20
    assert not look() and capsys.readouterr().err == ""
    machine.now += 10
    assert not look() and capsys.readouterr().err == "  60 s, 2 steps of an optimizer so far\n"
