"""`transplt card-read`: what it says of a file of a card pack, what it keeps of it, and what it refuses."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from transplt.base.errors import UsageError
from transplt.engine.analysis.known import facts_of
from transplt.faces.cli.main import main as transplt
from transplt.rules.own_card import FILE, Outcome, Ran, as_bytes, joined, on_own_card, outcomes, ran_on_own_card

#: A file as a pack writes it, of a card on which everything holds.
GOOD: dict[str, Any] = {
    "format": 1, "kind": "transplt card result", "date": "2026-08-30",
    "pack": {"torch_version": "2.8", "main": "train.py"},
    "host": {
        "versions": {"python": "3.11.7", "cann": "8.3.RC1", "driver": "25.2.0"}, "cards": [0],
        "checks": [{"what": "torch", "state": "fine", "text": "2.8.0", "do": ""}],
    },
    "about": {"torch": "2.8.0+cpu", "torch_npu": "2.8.0", "card": "Ascend910B3", "emulated": False},
    "operators": [
        {"op": "aten::addmm", "types": ["float32"] * 3, "shapes": [[4], [2, 3], [3, 4]], "state": "equal",
         "message": "within 0.1 of the tolerance", "ms": [1.5, 0.25], "bytes": 2097152},
    ],
    "training": {
        "state": "equal", "message": "", "wanted": 1, "bytes": 0,
        "tolerances": {"loss": 0.005, "gradient": 0.03, "parameter": 0.005},
        "steps": [{"optimizer": 0, "step": 1, "recorded": [2.5], "losses": [2.5001], "seconds": 0.5, "figures": 9,
                   "off": [], "more": 0}],
    },
}  # fmt: skip
Read = Callable[..., tuple[int, str]]


def changed(*path: Any, to: Any) -> dict[str, Any]:
    """GOOD with another value at a path; without it where that is None."""
    document = copy.deepcopy(GOOD)
    inside: Any = document
    for step in path[:-1]:
        inside = inside[step]
    if to is None:
        del inside[path[-1]]
    else:
        inside[path[-1]] = to
    return document


def tried(state: str, message: str = "", op: str = "aten::index.Tensor", kind: str = "complex64") -> dict[str, Any]:
    return {"op": op, "types": [kind], "shapes": [[2, 3]], "state": state, "message": message}


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """read(document or bytes, *options): exit code and output of the command; settings lie in tmp_path / "own"."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))

    def run(document: Any, *options: str, name: str = "result.json") -> tuple[int, str]:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        (tmp_path / name).write_bytes(data)
        done = CliRunner().invoke(transplt, ["card-read", str(tmp_path / name), *options], standalone_mode=False)
        if done.exception is not None:
            assert isinstance(done.exception, UsageError), done.exception
            return done.exception.exit_code, str(done.exception)
        return int(done.return_value), done.output

    return run


def test_all_holds(read: Read) -> None:
    code, told = read(GOOD)
    assert code == 0
    versions = "torch 2.8.0+cpu, torch_npu 2.8.0, CANN 8.3.RC1, driver 25.2.0"
    assert f"result.json: Ascend910B3, {versions} (2026-08-30)" in told
    assert "host: nothing to fix" in told
    assert "operators: of 1 call 1 agree with the CPU\n" in told
    assert "1.50 / 0.25 ms, 2.0 MB  aten::addmm(float32[4], float32[2, 3], float32[3, 4])" in told
    assert "training: 1 step as recorded" in told and "loss 2.5001 (recorded 2.5), 9 figures agree" in told


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (changed("operators", to=[tried("raised", "EZ1001 of aclnnIndex")]),
         "raised    aten::index.Tensor(complex64[2, 3]): EZ1001 of aclnnIndex"),
        (changed("operators", to=[tried("differs", "off by 3 times the tolerance")]),
         "differs   aten::index.Tensor(complex64[2, 3]): off by 3 times the tolerance"),
        (changed("training", "steps", 0, "off", to=[{"what": "loss", "recorded": 2.5, "here": "nan"}]),
         "loss: recorded 2.5, on the card nan"),
        (changed("training", "state", to="stopped"), "training: stopped after 1 of 1 step"),
        (changed("host", "checks", 0, "state", to="missing"), "missing  torch: 2.8.0"),
        (changed("host", to={"failed": "signal 9"}), "host: not checked: signal 9"),
        (changed("about", to={"failed": "no module named torch_npu"}), "cannot be used: no module named torch_npu"),
    ],
)  # fmt: skip
def test_what_does_not_hold_is_named(document: dict[str, Any], told: str, read: Read) -> None:
    code, text = read(document)
    assert (code, told in text) == (1, True), text
    assert read(document, "--exit-zero")[0] == 0


def test_json_has_all_of_it(read: Read) -> None:
    code, text = read(changed("operators", to=[tried("raised", "EZ1001")]), "--format=json")
    document = json.loads(text[: text.rindex("}") + 1])
    assert code == 1 and document["left"] is True and document["taken_over"] == 1
    assert document["table"].endswith(FILE) and document["tried"][0]["message"] == "EZ1001"


BROKEN = {
    "it is no text in UTF-8": b"\xff\xfe",
    "line 1: not valid JSON": b"{",
    "the file is no object": b"[]",
    "line 1: not valid JSON: nested too deeply": b"[" * 200_000,
    "the file has no 'kind'": b"{}",
    "it is not what a card pack writes": changed("kind", to="something"),
    "it has format 2, and this transplt reads 1": changed("format", to=2),
    "the file has no 'training'": changed("training", to=None),
    "'date' is '30.8.2026', which no pack writes": changed("date", to="30.8.2026"),
    "operators[0]: 'op' is": changed("operators", 0, "op", to="aten::../../x"),
    "operators[0]: 'state' is 'fine', and none of": changed("operators", 0, "state", to="fine"),
    "operators[0]: its types are none": changed("operators", 0, "types", to=["<b>", "float32", "float32"]),
    "not as many as its shapes": changed("operators", 0, "types", to=["float32"]),
    "operators[0]: 'bytes' is no whole number": changed("operators", 0, "bytes", to=-1),
    "operators[0] is not a number that a pack writes": changed("operators", 0, "ms", to=["1"]),
    "operators[0]: 'message' is no text": changed("operators", 0, "message", to={"a": 1}),
    "about: neither a card": changed("about", to={}),
    "'emulated' is neither true nor false": changed("about", "emulated", to="no"),
    "is no figure": changed("training", "steps", 0, "losses", to=[10**400]),
    "is no list of at most 20000 entries": changed("operators", to=[tried("equal")] * 20_001),
    "'state' is 'good', and none of equal, differs": changed("training", "state", to="good"),
}


@pytest.mark.parametrize("why", BROKEN)
def test_a_broken_file_gets_one_sentence_and_nothing_is_written(why: str, read: Read, tmp_path: Path) -> None:
    code, told = read(BROKEN[why])
    assert (code, why in told, "\n" in told) == (2, True, False), told
    assert {path.name for path in tmp_path.iterdir()} == {"result.json"}


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(transplt, ["card-read", str(tmp_path)], standalone_mode=False)
    assert isinstance(done.exception, UsageError) and "it is a folder" in str(done.exception)


def test_control_characters_of_a_message_are_shown_as_escapes(read: Read) -> None:
    _, told = read(changed("operators", to=[tried("raised", "\x1b[2Jgone\nall equal")]))
    assert "\\x1b[2Jgone\\nall equal" in told


def test_operators_are_kept_with_their_origin(read: Read) -> None:
    read(changed("operators", to=[tried("raised", "EZ1001 of aclnnIndex"), tried("equal", kind="float32")]))
    refused = on_own_card("aten::index.Tensor", ["complex64"], "910B", "2.8")
    assert refused is not None
    assert (refused.ran, refused.message, refused.taken) == (Ran.RAISED, "EZ1001 of aclnnIndex", False)
    origin = refused.origin
    assert (origin.card, origin.torch, origin.cann, origin.file, origin.date) == (
        "Ascend910B3", "2.8.0+cpu", "8.3.RC1", "result.json", "2026-08-30",
    )  # fmt: skip
    taken = on_own_card("aten::index.Tensor", ("float32",), "Ascend910B3", "2.8.0")
    assert taken is not None and (taken.ran, taken.taken) == (Ran.EQUAL, True)
    facts = [(fact.topic, fact.source) for fact in facts_of("aten::index")]
    assert facts[:2] == [("On your own card", "card-read result.json")] * 2


@pytest.mark.parametrize(
    ("dtypes", "card", "torch_version"),
    [(["float32"], "910B", "2.8"), (["complex64"], "950", "2.8"), (["complex64"], "910B", "2.7")],
)
def test_nothing_is_known_of_other_types_cards_and_versions(
    dtypes: list[str], card: str, torch_version: str, read: Read
) -> None:
    read(changed("operators", to=[tried("raised", "EZ1001")]))
    assert on_own_card("aten::index.Tensor", ["complex64"], "910B", "2.8") is not None
    assert on_own_card("aten::index.Tensor", dtypes, card, torch_version) is None


def test_a_newer_file_of_the_same_card_stands_and_others_stay(read: Read) -> None:
    read(changed("operators", to=[tried("raised", "old"), tried("equal", op="aten::mul.Tensor")]), name="a.json")
    read({**changed("operators", to=[tried("equal")]), "date": "2026-09-01"}, name="b.json")
    known = {(each.operator, each.ran, each.origin.file) for each in outcomes()}
    assert known == {("aten::index.Tensor", Ran.EQUAL, "b.json"), ("aten::mul.Tensor", Ran.EQUAL, "a.json")}
    other = changed("about", "card", to="Ascend910_9382")
    other["operators"] = [tried("raised", "there")]
    read(other, name="c.json")
    assert len(outcomes()) == 3


@pytest.mark.parametrize(
    "document",
    [
        changed("about", "emulated", to=True),
        changed("about", "torch_npu", to="2.8.0+emulated"),
        changed("about", to={"failed": "no card"}),
        changed("operators", to=[tried("not tried", "it draws")]),
        changed("operators", to=[tried("raised", "NPU out of memory. Tried to allocate 2 GiB")]),
    ],
)
def test_what_says_nothing_of_a_card_is_not_kept(document: dict[str, Any], read: Read, tmp_path: Path) -> None:
    _, told = read(document)
    assert "nothing new was kept" in told and not (tmp_path / "own").exists()


def outcome(ran: Ran, message: str = "") -> Outcome:
    from transplt.rules.own_card import Origin

    origin = Origin("Ascend910B3", "2.8.0", "2.8.0", "", "", "f", "2026-08-30")
    return Outcome("aten::add.Tensor", ("float16",), ran, message, ran is not Ran.RAISED, origin)


@pytest.mark.parametrize(
    ("tries", "ran", "taken"),
    [
        ([Ran.EQUAL, Ran.EQUAL], Ran.EQUAL, True),
        ([Ran.RAN, Ran.EQUAL], Ran.EQUAL, True),
        ([Ran.EQUAL, Ran.DIFFERS], Ran.DIFFERS, True),
        ([Ran.RAISED, Ran.EQUAL], Ran.RAISED, True),
        ([Ran.RAISED, Ran.RAISED], Ran.RAISED, False),
    ],
)
def test_of_several_calls_the_gravest_is_told(tries: list[Ran], ran: Ran, taken: bool) -> None:
    assert [(each.ran, each.taken) for each in joined(map(outcome, tries))] == [(ran, taken)]


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"format": 1, "files": [{}]}', '{"format": 9, "files": []}'])
def test_a_table_that_somebody_changed_is_refused_in_a_sentence(text: str, read: Read, tmp_path: Path) -> None:
    path = tmp_path / "own" / "transplt" / FILE
    path.parent.mkdir(parents=True)
    path.write_text(text)
    code, told = read(GOOD)
    assert code == 2 and told.endswith("is not what `transplt card-read` wrote: remove it, and read the files of your "
                                       "cards again")  # fmt: skip
    assert path.read_text() == text


def test_the_settings_of_a_run_hold_what_ran(tmp_path: Path) -> None:
    rows = [outcome(Ran.EQUAL), outcome(Ran.RAISED, "no")]
    folder = tmp_path / "transplt"
    folder.mkdir()
    (folder / FILE).write_bytes(as_bytes(rows[:1]))
    known = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert ran_on_own_card("910B", "2.8", known) == (("aten::add.Tensor", "float16"),)
    assert ran_on_own_card("950", "2.8", known) == ran_on_own_card("910B", "2.7", known) == ()
    (folder / FILE).write_bytes(as_bytes(rows[1:]))
    assert ran_on_own_card("910B", "2.8", known) == ()


def test_without_a_table_nothing_is_known(tmp_path: Path) -> None:
    assert outcomes({"XDG_CONFIG_HOME": str(tmp_path)}) == outcomes({}) == ()
