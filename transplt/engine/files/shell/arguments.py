"""Devices and backends that a command gives to a Python program: edited where its code takes the option as one.

`--dist-backend nccl`, `--device=cuda:0`, `trainer.device=cuda`, `MODEL.DEVICE cuda`. What variables of the script hold
is for `held_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Kept, Note
from transplt.engine.files.document import Document
from transplt.engine.files.shell.script import Script
from transplt.engine.files.shell.words import words_of
from transplt.flow import read_as
from transplt.flow.command_options import NEW, mark_of, named_after_cuda, options, path_of, reading_of, spells_cuda
from transplt.flow.command_words import Started, Word, base, started, unwrapped
from transplt.rules.communication_backends import own_names_below

MOVED, PERHAPS = "NPU813", "NPU814"
_HOLDS = re.compile(r"[\"']?\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?\})[\"']?")
DEFAULT = re.compile(r"[\"']?\$\{\w+:?[-=]([^{}$]*)\}[\"']?")


@dataclass(frozen=True, slots=True)
class Place:
    """A value that names CUDA's device or backend: the option it is given to, and where it stands."""

    option: str
    value: str
    start: int
    reading: read_as.Reading
    sound: bool

    @property
    def takes(self) -> bool:
        """True when the program takes the option as what the value is."""
        return mark_of(self.value) in self.reading.marks


@dataclass(slots=True)
class Reads:
    """Which variables of the script are given to programs: by name (option or None, path of the program)."""

    by_name: dict[str, list[tuple[str | None, str]]] = field(default_factory=dict)
    nodes: set[int] = field(default_factory=set)  # ids of the names there


def argument_changes(script: Script, elsewhere: frozenset[int], reads: Reads) -> Finds:
    """What becomes of devices and backends in commands; what variables are given to programs goes into `reads`.

    `elsewhere`: nodes (their ids) of which somebody else speaks.
    """
    for command in script.walk("command", but=elsewhere):
        words = words_of(script, command)
        program = started(words)
        if program is None and (own := unwrapped(words)):  # or installed by the project: `mace_run_train` of mace
            is_own = re.split("[-_]", base(own[0]))[0] in script.document.project.packages
            program = Started("", tuple(own[1:]), (own[0],)) if is_own else None
        path = path_of(script.document.project, script.document.path, program) if program is not None else ""
        for option, word, value, _ in options(words[1:] if program is None else program.arguments):
            names = own_names_below([option or ""]) if program is None else None
            if program is None and names is None:
                continue
            if (match := _HOLDS.fullmatch(value)) is not None and word.node is not None:
                reads.by_name.setdefault(match[1] or match[2], []).append((option, path))
                reads.nodes |= {node.id for node in script.walk("variable_name", below=word.node)}
            elif names is not None:
                yield Kept(word.extent, "own-registry", names.library)
        if program is not None:
            yield from program_changes(script.document, program, script.sound(command))


def program_changes(document: Document, program: Started, sound: bool = True) -> Finds:
    """What becomes of the words that a program is started with, whoever starts it."""
    path = path_of(document.project, document.path, program)
    for option, word, value, start in options(program.arguments):
        if (default := DEFAULT.fullmatch(value)) is not None:
            start, value = start + len(value[: default.start(1)].encode()), default[1]
        if (names := own_names_below([option or ""])) is not None:
            yield Kept(word.extent, "own-registry", names.library)
        elif option is not None and spells_cuda(value):
            yield from changed(Place(option, value, start, reading_of(document.project, option, path), sound))
    yield from option_names(program.arguments)


def changed(place: Place, group: str = "") -> Finds:
    """The edit of a value, or why there is none."""
    extent = (place.start, place.start + len(place.value.encode()))
    if place.takes and place.sound:
        for match in re.finditer("cuda|nccl|NCCL", place.value):
            at = place.start + match.start()
            what = "device" if match.group() == "cuda" else "backend"
            message = f"{place.option} takes a {what}: {match.group()} -> {NEW[match.group()]}"
            yield Edit((at, at + 4), MOVED, message, NEW[match.group()], api=place.option, group=group)
        return
    new = re.sub("cuda|nccl|NCCL", lambda match: NEW[match.group()], place.value)
    blocks = "" if place.reading.why or place.takes else "later"  # such a value is mostly compared
    why = place.reading.why or "no code of the project is known to use it as a device or backend"
    if place.takes:
        why = "the shell code around it cannot be parsed"
    yield Note(
        extent,
        PERHAPS,
        Level.MANUAL,
        f"{place.option} is given {place.value}",
        place.option,
        f"write {new} if the program uses it as a device or backend; {why}",
        Effort.LOW,
        blocks=blocks,
    )


def option_names(words: Sequence[Word]) -> Iterator[Kept]:
    """Options that are called cuda keep their names, as the program's do."""
    yield from (Kept(extent, "flag") for extent in named_after_cuda(words))
