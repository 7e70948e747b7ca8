"""Devices, backends and options that a variable of a script holds: `DEVICE=cuda`, `ARGS="--backend nccl"`.

A value is edited where every place that reads the variable takes it as what it is: programs, by the option to which
they get it or by their environment, and comparisons, which are edited with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from transplt.base.grouped import grouped
from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Finds, Kept
from transplt.engine.files.shell.arguments import DEFAULT, Place, Reads, changed, option_names
from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.texts import is_printed
from transplt.flow import read_as
from transplt.flow.command_options import mark_of, options, reading_of, spells_cuda
from transplt.flow.command_words import split
from transplt.rules.communication_backends import own_names_below

#: What keeps a text in double quotes from being read as a list of options by its words.
_NO_LIST = re.compile(r"\$\(|`|\\(?!\n)")
#: The option (None: none) and the program to which a variable is given.
_Given = tuple[str | None, str]
#: A text, where it begins, and whether no error stands near.
_Literal = tuple[str, int, bool]


def held_changes(script: Script, elsewhere: frozenset[int], reads: Reads) -> Finds:
    """What becomes of the values of variables; `reads`: which of them are given to programs."""
    literals: dict[str, list[_Literal]] = {}
    for node in script.walk("variable_assignment", but=elsewhere):
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if target is None or value is None or not mentions_cuda(script.text(value).lower().encode()):
            continue
        for text, start in _literals(script, value):
            literals.setdefault(script.text(target), []).append((text, start, script.sound(node)))
    places = grouped((script.text(node), node) for node in (script.walk("variable_name") if literals else ()))
    for name, values in literals.items():
        yield from _of_variable(script, name, values, places.get(name, []), reads)


def _of_variable(script: Script, name: str, values: list[_Literal], places: list[Node], reads: Reads) -> Finds:
    uses = reads.by_name.get(name, [])
    if any(text.lstrip().startswith("-") for text, _, _ in values):
        uses = [(None, path) for _, path in uses]  # options, whatever flag stands before them
    uses = list(dict.fromkeys(uses))
    unread = _reads_elsewhere(script, name, places, reads.nodes)
    compared = _compared(script, name, unread)
    environment = read_as.variable(script.document.project, name)
    group = f"value of {name}"
    own = [own_names_below([option or ""]) for option, _ in uses]
    if own and (names := own[0]) is not None and all(own) and not unread:
        yield from (Kept((at, at + len(text.encode())), "own-registry", names.library) for text, at, _ in values)
        return
    moved = False
    whole = _whole(script, uses, environment) if any(spells_cuda(text) for text, _, _ in values) else environment
    for text, start, sound in values:
        for place, is_option in _places(script, (text, start), sound, uses, whole, name):
            if place.takes and (is_option or not unread):
                yield from changed(place, group)
                moved = moved or not is_option
            elif uses or environment.read:
                why = place.reading.why or ("the script also reads it elsewhere" if unread else "")
                yield from changed(Place(place.option, place.value, place.start, read_as.Reading(why=why), sound))
        if uses and all(option is None for option, _ in uses):
            yield from option_names(split(text, start))
    for text, start, sound in compared if moved else ():
        if spells_cuda(text):
            reading = read_as.Reading(frozenset([mark_of(text)]), read=True)
            yield from changed(Place(f"${name}", text, start, reading, sound), group)


def _literals(script: Script, value: Node) -> Iterator[tuple[str, int]]:
    """The texts that a value is written as: a word, the default of an expansion, the items of an array."""
    if value.type == "array":
        if value.named_children:
            start, end = value.named_children[0].start_byte, value.named_children[-1].end_byte
            yield script.document.utf8[start:end].decode(), start
        return
    text = script.plain(value)
    if text is None and value.type == "string" and not _NO_LIST.search(script.text(value)):
        text = script.text(value)[1:-1]
    if text is not None:
        quoted = script.text(value)[:1] in ("'", '"')
        yield text, value.start_byte + quoted
    elif (match := DEFAULT.fullmatch(source := script.text(value))) is not None:
        yield match[1], value.start_byte + len(source[: match.start(1)].encode())


def _whole(script: Script, uses: Sequence[_Given], environment: read_as.Reading) -> read_as.Reading:
    """What all that are given a variable take its whole value as."""
    readings = [reading_of(script.document.project, option, path) for option, path in uses if option is not None]
    if environment.read or not uses:
        readings.append(environment)
    if any(option is None for option, _ in uses):
        readings.append(read_as.NOBODY)
    marks = frozenset.intersection(*(reading.marks for reading in readings)) if readings else frozenset()
    return read_as.Reading(marks, bool(readings), next((reading.why for reading in readings if reading.why), ""))


def _places(
    script: Script, literal: tuple[str, int], sound: bool, uses: Sequence[_Given], whole: read_as.Reading, name: str
) -> Iterator[tuple[Place, bool]]:
    """The values of CUDA in a text that a variable holds, and whether it is a list of options."""
    text, start = literal
    if spells_cuda(text):
        shown = next((option for option, _ in uses if option is not None), name)
        yield Place(shown, text, start, whole, sound), False
        return
    if not uses or any(option is not None for option, _ in uses):
        return
    for option, _, value, at in options(split(text, start)):
        if option is not None and spells_cuda(value):
            readings = [reading_of(script.document.project, option, path) for _, path in uses]
            marks = frozenset.intersection(*(reading.marks for reading in readings))
            yield Place(option, value, at, read_as.Reading(marks, True, readings[0].why), sound), True


def _reads_elsewhere(script: Script, name: str, places: list[Node], accounted: set[int]) -> list[Node]:
    """Of the places that name a variable, those that read it and hand it to no Python program or to people."""
    found = []
    for node in places:
        above = script.above(node)
        if node.id in accounted or above is None:
            continue
        if above.type == "variable_assignment" and above.child_by_field_name("name") == node:
            continue
        outer = script.above(above)
        if outer is not None and outer.type == "variable_assignment":
            target = outer.child_by_field_name("name")
            if target is not None and script.text(target) == name:
                continue  # `DEVICE=${DEVICE:-cuda}`: what was set before stays
        if not is_printed(script, node):
            found.append(node)
    return found


def _compared(script: Script, name: str, unread: list[Node]) -> list[_Literal]:
    """The texts that a variable is compared with (`[ "$X" = cuda ]`); such places are taken out of `unread`."""
    found = []
    for node in list(unread):
        test = script.above(node)
        while test is not None and test.type in ("simple_expansion", "expansion", "string"):
            test = script.above(test)
        if test is None or test.type != "binary_expression" or len(test.named_children) != 2:
            continue
        sides = test.named_children
        operator = script.document.utf8[sides[0].end_byte : sides[1].start_byte].decode().strip()
        other = next((side for side in sides if (text := script.plain(side)) is not None), None)
        if operator not in ("=", "==", "!=") or other is None:
            continue
        text = script.plain(other) or ""
        start = other.start_byte + (script.text(other)[:1] in ("'", '"'))
        found.append((text, start, script.sound(test)))
        unread.remove(node)
    return found
