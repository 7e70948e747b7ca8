"""The files of a project after each decision, from the edits that a migration has recorded."""

from __future__ import annotations

import builtins
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from transplt.base.finding import Finding
from transplt.base.text.source import Source, UnreadableSource, read_source, splice
from transplt.edits.helper import CODE
from transplt.engine.files.document import text_of
from transplt.project.port.decisions import Decision, by_decision
from transplt.syntax.files import File

#: An import of names of the accelerator's module: each goes in with the first edit that uses it.
_IMPORT = re.compile(r"(\s*from [\w.]+ import )(\w+(?: as \w+)?(?:, \w+(?: as \w+)?)*)(\s*)")
#: What stands before a device onto which a checkpoint is loaded.
_LOADED_ONTO = re.compile(rb"\b(map_location)\s*=\s*[\w.(]*\Z")


@dataclass(frozen=True, slots=True)
class Changed:
    """A file that a migration changes: its content before and after, and the recorded edits in their order there."""

    path: str
    before: bytes
    after: bytes
    edits: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class PortStep:
    """A decision, its edits, and the new content of the files that it changes."""

    decision: Decision
    edits: tuple[Finding, ...]
    files: Mapping[str, bytes]


def steps_of(files: Sequence[Changed], left_out: Iterable[str] = (), style: str = "npu") -> Iterator[PortStep]:
    """The decisions one after another, without those of the names `left_out`. The last files are the migration's.

    An edit after which a file would not compile, or would lack a name, waits for the next decision of that file.
    """
    out = frozenset(left_out)
    every = {file.path: file for file in files}
    texts = {file.path: _read(file) for file in files}
    lacks = {file.path: _lacks(file.path, file.before) for file in files}
    now = {file.path: file.before for file in files}
    done: set[int] = set()  # ids of the edits that are made
    each_of = ((edit, _what_it_is_of(edit, texts[file.path])) for file in files for edit in file.edits)
    groups = by_decision(each_of, style)
    wanted = {decision: edits for decision, edits in groups.items() if decision.name not in out}
    for number, (decision, edits) in enumerate(wanted.items(), 1):
        changed: dict[str, bytes] = {}
        done |= {id(edit) for edit in edits}
        last = number == len(wanted)
        for path in {edit.path for edit in edits} | ({*now} if last else set()):
            its = [edit for edit in every[path].edits if id(edit) in done]
            states = (_with(texts[path], each) for each in (_states(its, style) if not last else (its,)))
            new = next((each for each in states if last or _is_sound(path, each, lacks[path])), now[path])
            if new != now[path]:
                changed[path] = now[path] = new
        if changed:
            yield PortStep(decision, tuple(edits), dict(sorted(changed.items())))


def replays(file: Changed) -> bool:
    """Whether the recorded edits are the whole difference."""
    return _with(_read(file), file.edits) == file.after


def _read(file: Changed) -> Source:
    if file.path.endswith(".py"):
        try:
            return read_source(file.before)
        except UnreadableSource:
            pass
    source = text_of(file.before)
    assert source is not None, "edited files were read as text"
    return source


def _with(source: Source, edits: Iterable[Finding]) -> bytes:
    pieces = [(edit.span.start, edit.span.end, edit.edit.after.encode()) for edit in edits if edit.edit is not None]
    return source.encode(splice(source.utf8, pieces))


def _what_it_is_of(edit: Finding, source: Source) -> str:
    """The API of an edit, or the argument that it stands in where that decides."""
    found = _LOADED_ONTO.search(source.utf8, max(0, edit.span.start - 80), edit.span.start)
    return found[1].decode() if found is not None else edit.api


def _states(edits: Sequence[Finding], style: str) -> Iterator[Sequence[Finding]]:
    """What may be made of a file by some edits: all of them, or all but imports that go, which may wait alone."""
    for made in (edits, [edit for edit in edits if not _of_import(edit)]):
        yield made if style == "npu" else [*_without_unused(made)]


def _without_unused(edits: Sequence[Finding]) -> Iterator[Finding]:
    """The edits; an import of the accelerator's names brings those that the others use."""
    imports = {id(each): match for each in edits if each.code == CODE and each.edit is not None
               and (match := _IMPORT.fullmatch(each.edit.after)) is not None}  # fmt: skip
    texts = (each.edit.after for each in edits if each.edit is not None and id(each) not in imports)
    used = {word for text in texts for word in re.findall(r"\w+", text)}
    for each in edits:
        if (match := imports.get(id(each))) is None or each.edit is None:
            yield each
        elif names := [name for name in match[2].split(", ") if name.rpartition(" ")[2] in used]:
            yield replace(each, edit=replace(each.edit, after=match[1] + ", ".join(names) + match[3]))


def _of_import(edit: Finding) -> bool:
    """True for an edit of an import of the file's own."""
    return edit.edit is not None and edit.edit.before.lstrip().startswith(("import ", "from "))


def _is_sound(path: str, data: bytes, lacked: frozenset[str] | None) -> bool:
    """Whether a file compiles and lacks no name that it did not lack before (None: it did not compile)."""
    lacks = _lacks(path, data)
    return lacked is None or (lacks is not None and lacks <= lacked)


def _lacks(path: str, data: bytes) -> frozenset[str] | None:
    """The names that a file reads and nowhere binds; None where it does not compile."""
    if not path.endswith(".py"):
        return frozenset()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, path, "exec", dont_inherit=True)
            scan = File.of(path, data).scan
    except (SyntaxError, ValueError, RecursionError, MemoryError, UnreadableSource):
        return None
    return frozenset(name for name in scan.names if not scan.binds(name) and not hasattr(builtins, name))
