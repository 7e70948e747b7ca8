"""What is summed over repositories, and what differs between two surveys."""

from __future__ import annotations

from typing import Any

from transplt.engine.actions.action import BLOCKS_TEXT
from transplt.engine.actions.groups import Group
from transplt.project.survey.measure import thing
from transplt.project.survey.page import in_turn
from transplt.project.survey.portfolio import document
from transplt.project.survey.survey_text import survey_text
from transplt.project.survey.trend import trend

NO_BLOCKS = dict.fromkeys(BLOCKS_TEXT, 0)


def row(name: str, *titles: str, later: tuple[str, ...] = (), **figures: Any) -> dict[str, Any]:
    """A repository that some kernels stop, and others do not stop."""
    things = [
        {"kind": "kernel", "name": each, "title": each, "blocks": blocks, "places": 1}
        for blocks, some in (("first step", titles), ("later", later))
        for each in some
    ]
    plain = {
        "name": name, "source": f"/{name}", "commit": "", "counted": 4, "share_automatic": 0.5, "python_files": 1,
        "automatic": 2, "done": 2, "left": len(things), "hours": 1.0, "hours_low": 0.5, "hours_high": 2.0,
        "blocks": NO_BLOCKS, "things": things, "packages": [],
    }  # fmt: skip
    return {**plain, **figures}


def test_what_alone_stops_most_comes_first() -> None:
    rows = [row("a", "x"), row("b", "x", "y"), row("c", "y", "z"), row("d", "y", later=("x",)), row("e"), row("f", "x")]
    value = document(rows, [], "1")
    assert [(each["title"], each["only"], each["blocks"]) for each in value["unblocking"]] == [
        ("x", ["a", "f"], ["a", "b", "f"]),
        ("y", ["d"], ["b", "c", "d"]),
        ("z", [], ["c"]),
    ]
    assert [(each["title"], each["finishes"], each["done"]) for each in value["order"]] == [
        ("x", ["a", "f"], 3),
        ("y", ["b", "d"], 5),
        ("z", ["c"], 6),
    ]
    assert value["total"]["nothing_stops"] == 1
    assert value["kernels"][0] == {"kernel": "x", "in": ["a", "b", "d", "f"]}


def test_the_share_of_all_weighs_places() -> None:
    value = document([row("a", counted=9, done=9, automatic=20), row("b", counted=1, done=0)], [], "1")
    assert value["total"]["share_automatic"] == 0.9
    assert document([], [], "1")["total"]["share_automatic"] == 1.0


def test_nothing_in_python_is_no_share() -> None:
    free = row("free", counted=0, done=0, share_automatic=1.0, hours=0.0, actions=[])
    text = survey_text(document([free], [], "1"))
    assert "  no place in Python is bound to CUDA; left in all files: nothing\n" in text
    assert "          -  none               free: nothing is left\n" in text and "100%" not in text


def test_what_owners_change_themselves_is_no_reason_to_wait() -> None:
    own = {"kind": "other", "name": "", "title": "Build images", "blocks": "import", "places": 1}
    with_own = row("a", "x")
    with_own["things"].append(own)
    first, second = document([with_own], [], "1")["unblocking"]
    assert (first["title"], first["last"], first["only"]) == ("x", ["a"], [])
    assert (second["title"], second["last"], second["blocks"]) == ("Build images", [], ["a"])
    assert document([with_own], [], "1")["order"][-1]["done"] == 1


def test_a_kernel_is_the_same_wherever_its_sources_lie() -> None:
    here, there = Group("...", "kernel", "nms (a/ops)"), Group("...", "kernel", "nms (lib/nms/src)")
    assert thing(here) == thing(there) == ("kernel", "nms", "Replace the CUDA code of nms")


def test_a_file_is_no_part_of_what_several_repositories_have() -> None:
    group = Group("Make the lock file a/uv.lock again for torch and torch_npu", "lock", "a/uv.lock")
    assert thing(group)[2] == "Make the lock file ... again for torch and torch_npu"


def test_what_changed_since() -> None:
    old = document([row("a", "x"), row("b", "y"), row("gone"), row("c")], [], "1")
    failed = [{"name": "c", "source": "/c", "reason": "?"}]
    new = document([row("a", "z", left=7), row("b", "y"), row("new")], failed, "1")
    found = trend(old, new)
    assert found["repositories"] == [{"name": "a", "changed": {"left": [1, 7]}, "solved": ["x"], "appeared": ["z"]}]
    assert (found["added"], found["removed"], found["failing"]) == (["new"], ["gone"], ["c"])
    assert found["total"]["failed"] == [0, 1] and found["same_program"]


def test_what_the_terminal_says() -> None:
    action = {"title": "Replace x: no NPU support", "first": "a.py:1"}
    value = document([row("a", "x", actions=[action]), row("b", hours=3.2, left=2, actions=[action])], [], "1")
    assert survey_text(value).splitlines() == [
        "2 repositories analyzed",
        "  CUDA places in Python: 4 of 8 converted automatically (50%); "
        "left in all files: 3 findings, about 4 hours of work",
        "  known blockers at import or at the first step: 1 of 2 repositories",
        "  packages, kernels and APIs that stop programs at import or at the first step",
        "  (repositories that each stops: in all, and those that no other line of this list stops)",
        "     in all  only it  what to do",
        "          1        1  x",
        "  converted  work left          repository (least work first): first action",
        "        50%  about 1 hour       a: Replace x: no NPU support (a.py:1)",
        "        50%  about 3 hours      b: Replace x: no NPU support (a.py:1)",
    ]


def test_nothing_is_said_of_repositories_that_were_not_analysed() -> None:
    value = document([], [{"name": "one", "source": "one", "reason": "not enough memory"}], "1.0")
    lines = survey_text(value).splitlines()
    assert lines[0] == "0 repositories analyzed, 1 failed"
    assert [line.split() for line in lines[1:]] == [["failed", "one:", "not", "enough", "memory"]]


def test_what_finishes_no_repository_stands_with_what_does() -> None:
    value = document([row("a", "x"), row("b", "y", "z")], [], "1")
    assert [*in_turn(value["order"])] == [{"title": "x", "done": 1}, {"title": "y; z", "done": 2}]
