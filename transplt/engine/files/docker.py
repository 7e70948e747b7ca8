"""Dockerfiles: base images, variables, packages of CUDA; commands go to the editors of shell scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Extent, Finds, Kept, Note, extent_of
from transplt.engine.files.dependencies.commands import of_image
from transplt.engine.files.dockerfile import Instruction, Word, instructions, without_flags, words
from transplt.engine.files.document import Document
from transplt.engine.files.embedded_pieces import in_lines
from transplt.engine.files.exec_form import Item, json_words, list_changes
from transplt.engine.files.kind import FileKind
from transplt.engine.files.shell import build_time
from transplt.engine.files.variables import together, variable_set
from transplt.rules.containers import image_text, is_cuda_image

IMAGE = "NPU850"
#: What is longer is no recipe that a person wrote.
_LONGEST = 1_000_000
_NAME = re.compile(rb"[A-Za-z_]\w*")
_EXPANDED = re.compile(r"\$\{?(\w+)")
_COMPOSE = re.compile(r"(docker-)?compose([-_.].*)?\.ya?ml")
_SHELLS = re.compile(rb"\b(?:ba|da|z|a|k)?sh\b")


def changes(document: Document) -> Finds:
    """What is changed in a Dockerfile, and what is noted of it."""
    yield from together(document, _changes(document))


def _changes(document: Document) -> Finds:
    if _COMPOSE.fullmatch(document.name) or len(document.utf8) > _LONGEST:
        return
    found = list(instructions(document.utf8))
    shell, stages = True, {alias for each in found for alias in _stage(document, each)}
    images = filter(None, (_image(document, each) for each in found if each.keyword == "FROM"))
    image_arguments = {name for each in images for name in _EXPANDED.findall(each.value.decode())}
    yield from _started(document, found)
    autoload = build_time.AUTOLOAD.encode()
    settled = any(each.keyword in ("ENV", "ARG") and autoload in _bytes(document, each.extent) for each in found)
    for each in found:
        match each.keyword:
            case "SHELL":
                shell = _SHELLS.search(_bytes(document, each.extent)) is not None
            case "FROM":
                yield from _base(document, each, stages)
                shell = True
            case "LABEL" | "MAINTAINER":
                yield Kept(each.extent, "text")
            case "ARG":
                yield from _argument(document, each, image_arguments)
            case "ENV":
                yield from _variables(document, each)
            case "COPY" | "ADD":
                yield from _copied(document, each, stages)
            case "RUN" | "CMD" | "ENTRYPOINT" if shell and each.escape == b"\\":
                yield from _commands(document, each, settled)


def _bytes(document: Document, extent: Extent) -> bytes:
    return document.utf8[extent[0] : extent[1]]


# --- images ----------------------------------------------------------------------------------------------------------


def _image(document: Document, instruction: Instruction) -> Word | None:
    return next((word for word in words(document.utf8, instruction) if not word.text.startswith(b"--")), None)


def _alias(document: Document, instruction: Instruction) -> Word | None:
    """The name that a stage gets (`FROM image AS name`)."""
    rest = [word for word in words(document.utf8, instruction) if not word.text.startswith(b"--")]
    return rest[2] if len(rest) > 2 and rest[1].text.upper() == b"AS" else None


def _stage(document: Document, instruction: Instruction) -> Iterator[bytes]:
    if instruction.keyword == "FROM" and (alias := _alias(document, instruction)) is not None:
        yield alias.text.lower()


def _base(document: Document, instruction: Instruction, stages: set[bytes]) -> Finds:
    image = _image(document, instruction)
    if image is None:
        return
    name = image.value.decode()
    if image.text.lower() in stages:
        yield Kept((image.start, image.end), "own-name")
    elif is_cuda_image(name):
        yield _image_note(document, (image.start, image.end), f"the base image {name} is built on CUDA", name)
    else:
        yield from of_image(document, name, (image.start, image.end))
    if (alias := _alias(document, instruction)) is not None:
        yield Kept((alias.start, alias.end), "own-name")


def _image_note(document: Document, extent: Extent, message: str, name: str) -> Note:
    help_ = image_text(document.settings, document.target, name=name, imported=document.project.imported)
    return Note(extent, IMAGE, Level.MANUAL, message, name, help_, Effort.MEDIUM)


def _argument(document: Document, instruction: Instruction, in_images: set[str]) -> Finds:
    for word in words(document.utf8, instruction):
        name, equals, value = word.text.partition(b"=")
        if name.decode() in in_images:
            text = Word(word.start, word.end, value).value.decode()
            if is_cuda_image(text) or is_cuda_image(name.decode()):
                message = f"the argument {name.decode()} is part of the name of a base image that is built on CUDA"
                yield _image_note(document, (word.start, word.end), message, text or name.decode())
        elif equals:
            yield from _variable(document, word, fixed=True)


def _copied(document: Document, instruction: Instruction, stages: set[bytes]) -> Finds:
    for word in words(document.utf8, instruction):
        flag, _, stage = word.text.partition(b"=")
        if flag == b"--from" and stage.lower() in stages:
            yield Kept((word.start, word.end), "own-name")
        elif flag == b"--from" and is_cuda_image(stage.decode()):
            message = f"files are copied from the image {stage.decode()}, which is built on CUDA"
            yield _image_note(document, (word.start, word.end), message, stage.decode())


# --- variables -------------------------------------------------------------------------------------------------------


def _variables(document: Document, instruction: Instruction) -> Finds:
    pairs = list(words(document.utf8, instruction))
    if pairs and b"=" not in pairs[0].text:  # ENV NAME the rest of the line
        if len(pairs) > 1:
            value = b" ".join(word.value for word in pairs[1:])
            yield from _set(document, pairs[0].text, pairs[0].start, value, pairs[-1].end)
        return
    for word in pairs:
        yield from _variable(document, word)


def _variable(document: Document, word: Word, fixed: bool = False) -> Finds:
    name, equals, value = word.text.partition(b"=")
    if equals:
        yield from _set(document, name, word.start, Word(0, 0, value).value, word.end, fixed)


def _set(document: Document, name: bytes, start: int, value: bytes, end: int, fixed: bool = False) -> Finds:
    at = (start, start + len(name))
    if _NAME.fullmatch(name) and document.utf8[at[0] : at[1]] == name:
        text = value.decode() if b"\\" not in value else None
        yield from variable_set(document, name.decode(), at, text, (start, end), fixed)


# --- commands --------------------------------------------------------------------------------------------------------


def _as_words(document: Document, instruction: Instruction) -> list[Item] | None:
    """The words of a command that is written as JSON: no shell reads them. None for one that a shell reads."""
    lines = without_flags(document.utf8, instruction.lines)
    return json_words(document.utf8, lines[0][0], lines[-1][1]) if lines else None


def _started(document: Document, found: Sequence[Instruction]) -> Finds:
    """Commands as lists of words: of RUN each for itself, of CMD behind what ENTRYPOINT starts.

    The last ENTRYPOINT and the last CMD of a stage count; a stage on another one of the file has that one's.
    """
    entries: dict[bytes, list[Item] | None] = {}
    starts = [at for at, each in enumerate(found) if not at or each.keyword == "FROM"]
    for start, end in pairwise([*starts, len(found)]):
        stage = found[start:end]
        first = stage[0]
        image = _image(document, first) if first.keyword == "FROM" else None
        entry: list[Item] | None = entries.get(image.text.lower(), []) if image is not None else []
        own: Instruction | None = None
        for each in stage:
            if each.keyword == "ENTRYPOINT":
                own, entry = each, _as_words(document, each)
            elif each.keyword == "RUN" and (words := _as_words(document, each)):
                yield from build_time.of_a_list(document, [item.word for item in words])
                yield from list_changes(replace(document, building=True), words)
        for name in _stage(document, first):
            entries[name] = entry
        last = next((each for each in reversed(stage) if each.keyword == "CMD"), None)
        command = _as_words(document, last) if last is not None else None
        if command is not None and entry is not None:
            begin = first.extent[0]  # what the other stage starts is said there
            for change in list_changes(document, [*entry, *command]):
                if extent_of(change)[0] >= begin:
                    yield change
        elif own is not None and entry:
            yield from list_changes(document, entry)


def _commands(document: Document, instruction: Instruction, settled: bool) -> Finds:
    """`settled`: the file says itself whether torch loads torch_npu while the image is built."""
    lines = without_flags(document.utf8, instruction.lines)
    if not lines or _as_words(document, instruction) is not None:
        return
    if instruction.documents:
        if _bytes(document, (lines[0][0], lines[-1][1])).strip() == instruction.documents[0][0]:
            lines = [instruction.documents[0][1]]
            if _bytes(document, lines[0]).startswith(b"#!"):
                return
        else:
            lines[-1] = (lines[-1][0], instruction.end)
    building = instruction.keyword == "RUN"
    for change in in_lines(replace(document, building=building), lines, FileKind.SHELL):
        if not (settled and isinstance(change, Edit) and build_time.AUTOLOAD in str(change.new)):
            yield change
