"""What references between files lead to: names by imports and stars, bases of classes, slots; and how they travel."""

from __future__ import annotations

import pickle

import pytest

from transplt.base.text.json_records import from_json, to_json
from transplt.flow.gates.code import (
    Callee,
    CodeFacts,
    CodePiece,
    CodeStep,
    Definition,
    Guard,
    ImportedModule,
    Leading,
    Needs,
    OfPackage,
    Placing,
    Slot,
    SlotValue,
)
from transplt.flow.gates.graph import Graph, ancestors

FACTS = (
    CodeFacts(
        module="p",
        aliases=(("f", "p.f.f"), ("g", "p.a.g"), ("round", "p.a.round"), ("Middle", "p.a.Middle")),
        stars=("p.b",),
    ),
    CodeFacts(module="p.f", defined=("f",), pieces=((Definition("p.f.f"), (CodeStep(Needs("a kernel")),)),)),
    CodeFacts(module="p.a", aliases=(("g", "p.b.g"), ("round", "p.round"), ("Middle", "p.b.Middle"))),
    CodeFacts(
        module="p.b",
        defined=("g", "Base", "FLAG"),
        classes=(("p.b.Middle", ("p.b.Base",)),),
        parameters=(("p.b.g", ("x", "fused")),),
        pieces=(
            (Definition("p.b.g"), (CodeStep(Needs("a kernel")),)),
            (Definition("p.b.Base.run"), (CodeStep(Needs("a kernel")),)),
            (SlotValue(Slot("attribute", "p.b.Base.op")), (CodeStep(Definition("p.b.g")),)),
            (SlotValue(Slot("global", "p.b.FLAG")), (CodeStep(Definition("p.b.g")),)),
        ),
    ),
    CodeFacts(module="p.c", classes=(("p.c.Net", ("p.Middle",)),)),
    CodeFacts(module="p.d", defined=("FLAG", "_own"), stars=("p.e",)),
    CodeFacts(module="p.e", stars=("p.b", "p", "p.d")),
)
GRAPH = Graph.join(FACTS, str, frozenset(facts.module for facts in FACTS))


@pytest.mark.parametrize(
    ("full", "settled"),
    [
        ("p.g", "p.b.g"),  # by two imports
        ("p.FLAG", "p.b.FLAG"),  # by a star
        ("p.g.attribute", "p.b.g.attribute"),
        ("p.f", "p.f.f"),  # the package binds the name of its module
        ("p.f.f", "p.f.f"),  # what the module has is its own
        ("p.b.g", "p.b.g"),
        ("elsewhere.g", "elsewhere.g"),
        ("p.e.FLAG", "p.d.FLAG"),  # the last star has it
        ("p.e.Base", "p.b.Base"),  # by the star of a module that a star brings
        ("p.e._own", "p.e._own"),  # a star brings no such name
        ("p.e.nowhere", "p.e.nowhere"),  # stars that go round in a circle
    ],
)
def test_a_name_goes_by_every_import_on_its_way(full: str, settled: str) -> None:
    assert GRAPH.settled(full) == settled


def test_names_that_import_each_other_come_to_an_end() -> None:
    assert GRAPH.settled("p.round") in ("p.round", "p.a.round")


@pytest.mark.parametrize(
    ("ref", "piece"),
    [
        (Definition("p.g"), Definition("p.b.g")),
        (Definition("p.f"), Definition("p.f.f")),
        (Definition("p.FLAG"), SlotValue(Slot("global", "p.b.FLAG"))),
        (Definition("p.b.Middle.run"), Definition("p.b.Base.run")),
        (Definition("p.b.Middle.other"), None),
        (SlotValue(Slot("attribute", "p.b.Middle.op")), SlotValue(Slot("attribute", "p.b.Base.op"))),
        (SlotValue(Slot("attribute", "p.b.Middle.run")), Definition("p.b.Base.run")),
        (SlotValue(Slot("global", "p.FLAG")), SlotValue(Slot("global", "p.b.FLAG"))),
        (ImportedModule("p.b"), None),  # its module-level code reaches nothing
    ],
)
def test_the_piece_that_a_reference_leads_to(ref: Leading, piece: CodePiece | None) -> None:
    assert GRAPH.piece(ref) == piece


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("p:p.g.#1", "p:p.b.g.fused"),  # by its position, under a name that the function is passed on by
        ("p:p.g.#7", "p:p.b.g.#7"),
        ("r:p.g", "r:p.b.g"),
        ("r:p.f.f", "r:p.f.f"),
        ("s:p.b.Base.op", "s:p.b.Base.op"),
        ("k:config[device]", "k:config[device]"),
        ("n:use_cuda", "n:use_cuda"),
    ],
)
def test_a_slot_has_one_name(text: str, known: str) -> None:
    assert str(GRAPH.slot(Slot.read(text))) == known


def test_bases_are_walked_once_each_and_the_nearest_first() -> None:
    bases = {"D": ["B", "C"], "B": ["A"], "C": ["A", "D"], "A": ["object"]}
    assert [*ancestors("D", lambda each: bases.get(each, ()))] == ["B", "C", "A", "object"]


def test_the_bases_of_a_class_are_followed_through_what_passes_them_on() -> None:
    assert [*GRAPH.above("p.c.Net")] == ["p.b.Middle", "p.b.Base"]


def test_references_travel_as_json_and_between_processes() -> None:
    guard = Guard(Slot("parameter", "m.f.x"), False)
    same = ("one",)  # records of one content, and of different kinds
    refs = [kind(*same) for kind in (Needs, OfPackage, Callee, Definition, ImportedModule)]
    steps = (*map(CodeStep, refs), CodeStep(SlotValue(guard.slot), True, (guard,)), CodeStep(Placing(), site="m.py:1"))
    facts = CodeFacts("m", pieces=((Definition("m.f"), steps), (guard, steps)), gates=((guard, "cuda"), (guard, guard)))
    assert from_json(CodeFacts, to_json(facts)) == facts
    assert pickle.loads(pickle.dumps(facts)) == facts
    assert len({*refs}) == len(refs)


@pytest.mark.parametrize("text", ['["Nothing","x"]', '["Needs"]', '["Needs",1]', '[["Needs"],"x"]', '"Needs"', "[]"])
def test_what_is_no_reference_is_refused(text: str) -> None:
    empty = to_json(CodeFacts(pieces=((Definition("f"), (CodeStep(Needs("x")),)),)))
    assert '["Needs","x"]' in empty
    with pytest.raises(ValueError, match=r"kind|instead|row|none"):
        from_json(CodeFacts, empty.replace('["Needs","x"]', text))
