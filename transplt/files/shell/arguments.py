"""Devices and backends that a command gives to a Python program: edited where its code takes the option as one.

`--dist-backend nccl`, `--device=cuda:0`, `trainer.device=cuda`, `MODEL.DEVICE cuda`. What variables of the script hold
is for `held_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transplt.base.finding import Effort, Level
from transplt.base.text.cuda_words import mentions_cuda
from transplt.edits.edit import Edit, Finds, Kept, Note
from transplt.files import read_as
from transplt.files.shell.script import Script
from transplt.files.shell.words import Started, Word, started, words_of
from transplt.flow.marks import BACKEND, DEVICE

MOVED, PERHAPS = "NPU813", "NPU814"
_DEVICE = re.compile(r"cuda(?=$|:(?:$|\d+$|\$\w+$|\$\{\w+\}$))")
_BACKEND = re.compile(r"nccl|NCCL")
_PAIRS = re.compile(r"(?:\w+:\w+,)*\w+:\w+")
_NEW = {"cuda": "npu", "nccl": "hccl", "NCCL": "HCCL"}
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.S)
#: Hydra and OmegaConf: `a.b=c`, `+a.b=c`, `++a=c`; yacs: `MODEL.DEVICE cuda`.
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.S)
_YACS = re.compile(r"[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)+")
_HOLDS = re.compile(r"[\"']?\$(?:(\w+)|\{(\w+)(?:\[[@*]\])?\})[\"']?")
DEFAULT = re.compile(r"[\"']?\$\{\w+:?[-=]([^{}$]*)\}[\"']?")
#: transformers/training_args.py, TrainingArguments.ddp_backend: nccl, gloo, mpi, ccl, hccl, ...
_OF_LIBRARIES = {"ddp_backend": BACKEND}


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
        program = started(words_of(script, command))
        if program is None:
            continue
        path = path_of(script, program)
        sound = script.sound(command)
        for option, word, value, start in options(program.arguments):
            if (match := _HOLDS.fullmatch(value)) is not None and word.node is not None:
                reads.by_name.setdefault(match[1] or match[2], []).append((option, path))
                reads.nodes |= {node.id for node in script.walk("variable_name", below=word.node)}
                continue
            if (default := DEFAULT.fullmatch(value)) is not None:
                start, value = start + len(value[: default.start(1)].encode()), default[1]
            if option is not None and spells_cuda(value):
                yield from changed(Place(option, value, start, reading_of(script, option, path), sound))
        yield from option_names(program.arguments)


def spells_cuda(value: str) -> bool:
    """True for a text that is a device or a backend of CUDA's."""
    return mark_of(value) != ""


def mark_of(value: str) -> str:
    """Which of the two a text is; empty where it is none."""
    if _DEVICE.match(value):
        return DEVICE
    if _BACKEND.fullmatch(value) or (_PAIRS.fullmatch(value) and "nccl" in value):
        return BACKEND
    return ""


def options(words: Sequence[Word]) -> Iterator[tuple[str | None, Word, str, int]]:
    """Each word of arguments with the option it belongs to: (option, word, its value as written, where that begins).

    The option is None for a word that belongs to none.
    """
    for at, word in enumerate(words):
        source, start = _unquoted(word)
        if (match := _OPTION.fullmatch(source)) is not None:
            if match[2] is not None:
                yield match[1], word, *_inner(match[2], start + len(match[1].encode()) + 1)
            continue
        before = words[at - 1].source if at else ""
        if (match := _OVERRIDE.fullmatch(source)) is not None and "://" not in source:
            yield match[1], word, *_inner(match[2], start + len(source[: match.start(2)].encode()))
        elif re.fullmatch(r"--?[A-Za-z][\w.-]*", before) or _YACS.fullmatch(before):
            yield before, word, *_inner(word.source, word.extent[0])
        else:
            yield None, word, word.source, word.extent[0]


def _unquoted(word: Word) -> tuple[str, int]:
    """The source of a word without quotes around the whole of it, and where that begins."""
    source, start = word.source, word.extent[0]
    return _inner(source, start) if source[:1] == source[-1:] and source[:1] in ("'", '"') else (source, start)


def _inner(value: str, start: int) -> tuple[str, int]:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1], start + 1
    return value, start


def path_of(script: Script, program: Started) -> str:
    """The path in the project of the file that is started; empty where there is none, or more than one."""
    name = re.sub(r"^(?:\.?/|\$\{?\w+\}?/)+", "", program.script)
    if not name:
        return ""
    paths = script.document.project.modules.values()
    folder = script.document.path.rpartition("/")[0]
    if f"{folder}/{name}".lstrip("/") in paths:
        return f"{folder}/{name}".lstrip("/")
    found = [path for path in paths if path == name or path.endswith("/" + name)]
    return name if name in found else found[0] if len(found) == 1 else ""


def reading_of(script: Script, option: str, path: str = "") -> read_as.Reading:
    """What the project's code takes an option as."""
    project = script.document.project
    name = option.lstrip("-+")
    found = read_as.option(project, name, path)
    if not found.read and (mark := _OF_LIBRARIES.get(name.replace("-", "_"))):
        return read_as.Reading(frozenset([mark]), read=True)
    if not found.read and (not option.startswith("-") or "." in name):
        found = read_as.key(project, re.split(r"[./]", name))
        if not found.read and name != name.lower():
            found = read_as.key(project, re.split(r"[./]", name.lower()))
    return found


def changed(place: Place, group: str = "") -> Finds:
    """The edit of a value, or why there is none."""
    extent = (place.start, place.start + len(place.value.encode()))
    if place.takes and place.sound:
        for match in re.finditer("cuda|nccl|NCCL", place.value):
            at = place.start + match.start()
            what = "device" if match.group() == "cuda" else "backend"
            message = f"{place.option} takes a {what}: {match.group()} -> {_NEW[match.group()]}"
            yield Edit((at, at + 4), MOVED, message, _NEW[match.group()], api=place.option, group=group)
        return
    new = re.sub("cuda|nccl|NCCL", lambda match: _NEW[match.group()], place.value)
    why = place.reading.why or "no code of the project was found that takes it as a device or a backend"
    if place.takes:
        why = "the shell's grammar does not read the lines around it"
    yield Note(
        extent,
        PERHAPS,
        Level.MANUAL,
        f"{place.option} is given {place.value}",
        place.option,
        f"write {new} if the program takes it as a device or a backend; {why}",
        Effort.LOW,
    )


def option_names(words: Sequence[Word]) -> Iterator[Kept]:
    """Options that are called cuda keep their names, as the program's do."""
    for word in words:
        source, start = _unquoted(word)
        match = _OPTION.fullmatch(source) or _OVERRIDE.fullmatch(source)
        if match is not None and mentions_cuda(match[1].lower().encode()):
            at = start + len(source[: match.start(1)].encode())
            yield Kept((at, at + len(match[1].encode())), "flag")
