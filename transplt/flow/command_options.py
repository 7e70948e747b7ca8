"""Options of a command with their values, and what the program that it starts takes them as."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from transplt.base.text.cuda_words import mentions_cuda
from transplt.flow import read_as
from transplt.flow.command_words import Started, Word
from transplt.flow.facts import ProjectFacts
from transplt.flow.marks import BACKEND, DEVICE

_DEVICE = re.compile(r"cuda(?=$|:(?:$|\d+$|\$\w+$|\$\{\w+\}$))")
_BACKEND = re.compile(r"nccl|NCCL")
_PAIRS = re.compile(r"(?:\w+:\w+,)*\w+:\w+")
NEW = {"cuda": "npu", "nccl": "hccl", "NCCL": "HCCL"}
_OPTION = re.compile(r"(--?[A-Za-z][\w.-]*)(?:=(.*))?", re.S)
#: Hydra and OmegaConf: `a.b=c`, `+a.b=c`, `++a=c`; yacs: `MODEL.DEVICE cuda`.
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_][\w./@-]*)=(.*)", re.S)
_YACS = re.compile(r"([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)+)")
#: transformers/training_args.py, TrainingArguments.ddp_backend: nccl, gloo, mpi, ccl, hccl, ...
_OF_LIBRARIES = {"ddp_backend": BACKEND}


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


def path_of(project: ProjectFacts, document: str, program: Started) -> str:
    """The path in the project of the file that is started; empty where there is none, or more than one.

    `document`: the path of the file in which the command stands.
    """
    name = re.sub(r"^(?:\.?/|\$\{?\w+\}?/)+", "", program.script)
    if not name:
        return ""
    paths = project.modules.values()
    folder = document.rpartition("/")[0]
    if f"{folder}/{name}".lstrip("/") in paths:
        return f"{folder}/{name}".lstrip("/")
    found = [path for path in paths if path == name or path.endswith("/" + name)]
    return name if name in found else found[0] if len(found) == 1 else ""


def reading_of(project: ProjectFacts, option: str, path: str = "") -> read_as.Reading:
    """What the project's code takes an option as."""
    name = option.lstrip("-+")
    found = read_as.option(project, name, path)
    if not found.read and (mark := _OF_LIBRARIES.get(name.replace("-", "_"))):
        return read_as.Reading(frozenset([mark]), read=True)
    if not found.read and (not option.startswith("-") or "." in name):
        found = read_as.key(project, re.split(r"[./]", name))
        if not found.read and name != name.lower():
            found = read_as.key(project, re.split(r"[./]", name.lower()))
    return found


def named_after_cuda(words: Sequence[Word]) -> Iterator[tuple[int, int]]:
    """Where the options that are called cuda have their names."""
    for word in words:
        source, start = _unquoted(word)
        match = _OPTION.fullmatch(source) or _OVERRIDE.fullmatch(source) or _YACS.fullmatch(source)
        if match is not None and mentions_cuda(match[1].lower().encode()):
            at = start + len(source[: match.start(1)].encode())
            yield at, at + len(match[1].encode())
