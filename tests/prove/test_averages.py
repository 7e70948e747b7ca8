"""Printed means over the ranks: what is divided wrongly, and what a share of few samples gives by chance."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.prove.trainings import Told
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.prove.averages import other_average
from transplt.proof.prove.training import read_trainings


def _told(one: list[float], several: list[float], *, about: bool = False) -> str:
    runs = [ScriptRun(0, (), 0.0, "".join(f"acc {each} %\n" for each in values)) for values in (one, several)]
    found = other_average(*runs, Told().made().step().training(), 2, Path("/project"), about=about)
    return found.what if found is not None else ""


@pytest.mark.parametrize(
    ("one", "several"),
    [
        ([25.0], [12.5]),  # 4 of 16, and 1 of 8
        ([66.667], [33.333]),
        ([25.0, 50.0], [12.5, 37.5]),
        ([0.4713], [0.4719]),
        ([0.0], [0.5]),
        ([0.4713], []),
        ([0.47131, 0.33791], [5.1, 0.6]),  # a share that is harder at first
        ([0.47131], [5.1]),
    ],
)
def test_no_fault(one: list[float], several: list[float]) -> None:
    assert _told(one, several) == ""


@pytest.mark.parametrize(
    ("one", "several", "said"),
    [
        ([0.47131], [0.94262], "summed over the ranks and not divided"),
        ([0.47131], [0.235655], "divided twice"),
        ([25.0, 50.0], [12.5, 25.0], "divided twice"),
        ([1.71823, 1.5], [3.43646, 3.0], "summed over the ranks and not divided"),
        # What is summed up in a loop is summed over the ranks again and again.
        ([0.47131, 0.33791], [8.6, 6.1], "no share of the data is so far off"),
    ],
)
def test_a_fault(one: list[float], several: list[float], said: str) -> None:
    assert said in _told(one, several)


@pytest.mark.parametrize(
    ("one", "several", "said"),
    [
        ([47.131, 33.79], [22.1, 17.3], "divided twice"),
        ([0.47131, 0.33791], [0.9, 0.71], "summed over the ranks and not divided"),
        ([47.131, 33.79], [22.1, 31.3], ""),  # not all
        ([47.131], [23.5655], ""),  # once
        ([47.131, 33.79], [0.5, 1.0005], ""),
        ([2.0, 4.0], [1.0, 1.0004], ""),  # the loss of a step
    ],
)
def test_about_so_much_where_batches_are_others(one: list[float], several: list[float], said: str) -> None:
    assert (said in _told(one, several, about=True)) and bool(said) == bool(_told(one, several, about=True))


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("hits = count()\ndist.all_reduce(hits)\nacc = hits / 8\nprint(f'acc {acc:.2f} %')\n", 2),
        ("hits = count()\ndist.all_reduce(loss)\nacc = hits / 8\nprint(f'acc {acc:.2f} %')\n", None),  # its own share
        ("acc = count()\ndist.all_reduce(acc[:2])\nacc[2] = 8\nprint(f'acc {(acc[0] / acc[1]).item():.2f} %')\n", 2),
    ],
)
def test_a_figure_of_all_ranks_that_is_another(body: str, line: int | None, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(body, encoding="utf-8")
    told = Told()
    told.events.append({"e": "coll", "at": [str(tmp_path / "train.py"), 2], "kind": "all_reduce"})
    rank = read_trainings([told.events], tmp_path)[0]
    runs = [ScriptRun(0, (), 0.0, "".join(f"acc {each} %\n" for each in v)) for v in ([0.81, 0.64], [0.47, 0.35])]
    found = other_average(*runs, rank, 2, tmp_path)
    assert (found.place.line if found is not None and found.place else None) == line
