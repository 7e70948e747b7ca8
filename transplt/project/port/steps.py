"""The files of a project after each decision, from the edits that a migration has recorded."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from transplt.base.finding import Finding
from transplt.base.text.source import Source, UnreadableSource, read_source, splice
from transplt.edits.helper import CODE
from transplt.engine.files.document import text_of
from transplt.project.port.decisions import ON_REQUEST, Decision, by_decision
from transplt.syntax.files import File

#: An import of names of the accelerator's module, also as a line of a notebook: each goes in with the first edit that
#: uses it.
_IMPORT = re.compile(
    r"((?:\\n)?[\s\",]*from [\w.]+ import (?:\(\s+)?)(\w+(?: as \w+)?(?:(,\s+)\w+(?: as \w+)?)*)"
    r"((?:,\s+\))?(?:\\n)?[\s\",]*)"
)
#: The first of the names that an import takes.
_TAKEN = re.compile(r"\s*(?:from ([\w.]+) )?import \(?\s*([\w.]+)")
#: The code of an edit of a backend.
_BACKEND = "NPU301"
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
    grammars = {file.path: _grammar(file.path, file.before) for file in files}
    now = {file.path: file.before for file in files}
    done: set[int] = set()  # ids of the edits that are made
    each_of = ((edit, _what_it_is_of(edit, texts[file.path])) for file in files for edit in file.edits)
    groups = by_decision(each_of, style)
    if style == "portable":
        groups = _with_their_guards(groups, files, texts)
    wanted = {decision: edits for decision, edits in groups.items() if decision.name not in out}
    last_of = {edit.path: decision for decision, edits in wanted.items() for edit in edits}
    for decision, edits in wanted.items():
        changed: dict[str, bytes] = {}
        done |= {id(edit) for edit in edits}
        for path in {edit.path for edit in edits}:
            its = [edit for edit in every[path].edits if id(edit) in done]
            if last_of[path] is decision:  # nothing waits for a decision that is not of its file
                new = _with(texts[path], its)
            else:
                some = (its, [edit for edit in its if not _of_import(edit)])  # imports that go may wait alone
                used = some if style == "npu" else ([*_without_unused(each, texts[path])] for each in some)
                states = (_with(texts[path], each) for each in used)
                sound = (each for each in states if _is_sound(path, each, lacks[path], grammars[path]))
                new = next(sound, now[path])
            if new != now[path]:
                changed[path] = now[path] = new
        if changed:
            yield PortStep(decision, tuple(edits), dict(sorted(changed.items())))


def replays(file: Changed) -> bool:
    """Whether the recorded edits are the whole difference."""
    return _with(_read(file), file.edits) == file.after


def _read(file: Changed) -> Source:
    if file.path.endswith(".py"):
        with suppress(UnreadableSource):
            return read_source(file.before)
    source = text_of(file.before)
    assert source is not None, "edited files were read as text"
    return source


def _with(source: Source, edits: Iterable[Finding]) -> bytes:
    pieces = [(edit.span.start, edit.span.end, edit.edit.after.encode()) for edit in edits if edit.edit is not None]
    pieces.sort(key=lambda piece: (*piece[:2], not piece[2].endswith(b"\n")))  # lines above what begins a line anew
    return source.encode(splice(source.utf8, pieces))


def _what_it_is_of(edit: Finding, source: Source) -> str:
    """The API of an edit, or the argument that it stands in where that decides; of an import, what it is of."""
    if not edit.api and edit.edit is not None and (match := _TAKEN.match(edit.edit.before or edit.edit.after)):
        return ".".join(filter(None, match.groups()))
    found = _LOADED_ONTO.search(source.utf8, max(0, edit.span.start - 80), edit.span.start)
    return found[1].decode() if found is not None else edit.api


def _with_their_guards(
    groups: Mapping[Decision, list[Finding]], files: Iterable[Changed], texts: Mapping[str, Source]
) -> dict[Decision, list[Finding]]:
    """The decisions with their edits, where a question whether there is a card and what is done if so are one: the
    first decision of what is done.
    """
    of = {id(edit): decision for decision, edits in groups.items() for edit in edits}
    fixed = {each for each, decision in of.items() if decision.name in ON_REQUEST}
    order = {decision: number for number, decision in enumerate(groups)}
    for file in files:
        pairs = [*_guarded(file, texts[file.path])] if file.path.endswith(".py") else []
        guards = {each for asked, _ in pairs for each in asked}
        for ids in _joined(asked | guarded for asked, guarded in pairs):
            if done := ids - guards - fixed:
                of.update(dict.fromkeys(ids - fixed, min((of[each] for each in done), key=order.__getitem__)))
    found: dict[Decision, list[Finding]] = {decision: [] for decision in groups}
    for edit in chain.from_iterable(groups.values()):
        found[of[id(edit)]].append(edit)
    return found


def _joined(sets: Iterable[set[int]]) -> Iterable[set[int]]:
    """The sets, those with something in common as one."""
    whole: dict[int, set[int]] = {}
    for each in sets:
        together = each.union(*(whole.get(member, ()) for member in each))
        whole.update(dict.fromkeys(together, together))
    return {id(each): each for each in whole.values()}.values()


def _guarded(file: Changed, source: Source) -> Iterator[tuple[set[int], set[int]]]:
    """The ids of the edits in each question of a file, or in what gave its name a value, and of those in what is done
    if so; of the card that a function takes, and of its backend; of what a call is given, and of its name.
    """
    edits = sorted((edit for edit in file.edits if edit.code != CODE), key=lambda edit: edit.span.start)
    if not edits or _lacks(file.path, file.before) is None:
        return
    scan = File.of(file.path, file.before).scan
    nodes = [*ast.walk(scan.tree)]
    starts = [edit.span.start for edit in edits]

    def within(*body: ast.expr | ast.stmt) -> list[Finding]:
        begin, end = source.extent(body[0])[0], source.extent(body[-1])[1]
        return edits[bisect_left(starts, begin) : bisect_left(starts, end)]

    def name_of(node: ast.expr) -> tuple[object, str]:
        """A variable of a function is none of another; an attribute is one of the file."""
        return scan.scope_of(node) if isinstance(node, ast.Name) else None, ast.unparse(node)

    named: dict[tuple[object, str], list[Finding]] = {}
    for node in nodes:
        match node:
            case ast.Assign(targets=[target], value=value) if inside := within(value):
                if any(edit.api.endswith(".is_available") for edit in inside):
                    named.setdefault(name_of(target), []).extend(inside)
    for node in nodes:
        match node:
            case ast.FunctionDef():
                yield from _card_and_backend(within(node))
            case ast.Call(func=func, args=args, keywords=keywords) if called := within(func):  # with what it is given
                given = map(within, (*args, *(each.value for each in keywords)))
                yield {*map(id, chain.from_iterable(given))}, {*map(id, called)}
        if (found := _question(node)) is None:
            continue
        test, body = found
        parts = test.values if isinstance(test, ast.BoolOp) else [test]
        asked = [*within(test), *(edit for part in parts for edit in named.get(name_of(part), ()))]
        if asked and (guarded := within(*body)):
            yield {*map(id, asked)}, {*map(id, guarded)}


def _card_and_backend(inside: Sequence[Finding]) -> Iterator[tuple[set[int], set[int]]]:
    """The ids of the edits by which a function takes its card, and of those of its backend, where it has both."""
    cards = {id(edit) for edit in inside if edit.api.endswith(".set_device")}
    backends = {id(edit) for edit in inside if edit.code == _BACKEND}
    if cards and backends:
        yield cards, backends


def _question(node: ast.AST) -> tuple[ast.expr, Sequence[ast.expr | ast.stmt]] | None:
    """The test of a node that chooses by one, and what is done for the answer that there is a card."""
    match node:
        case ast.If(test=ast.UnaryOp(op=ast.Not()) as test, orelse=[_, *_] as body):
            return test, body
        case ast.If(test=test, body=body):
            return test, body
        case ast.IfExp(test=test, body=first, orelse=last):
            return test, [first, last]
        case ast.BoolOp(op=ast.And(), values=[test, *values]):
            return test, values
    return None


def _without_unused(edits: Sequence[Finding], source: Source) -> Iterator[Finding]:
    """The edits; an import of the accelerator's names brings those that the others use, which may end or stand behind
    what an edit writes, and those that an import which goes has brought.
    """
    imports = {id(each): match for each in edits if each.code == CODE and each.edit is not None
               and (match := _IMPORT.fullmatch(each.edit.after)) is not None}  # fmt: skip
    rest = [(each, each.edit) for each in edits if each.edit is not None and id(each) not in imports]
    tails = (source.utf8[each.span.end : each.span.end + 80].decode("utf-8", "ignore") for each, _ in rest)
    texts = [edit.after + re.split(r"\W", tail, maxsplit=1)[0] for (_, edit), tail in zip(rest, tails, strict=True)]
    texts += [edit.before for each, edit in rest if _of_import(each)]
    used = {word for text in texts for word in re.findall(r"\w+", text)}
    for each in edits:
        if (match := imports.get(id(each))) is None or each.edit is None:
            yield each
        elif names := [name for name in re.split(r",\s+", match[2]) if name.rpartition(" ")[2] in used]:
            after = f"{match[1]}{str(match[3]).join(names)}{match[4]}"
            yield replace(each, edit=replace(each.edit, after=after))


def _of_import(edit: Finding) -> bool:
    """True for an edit of an import of the file's own."""
    return edit.edit is not None and edit.edit.before.lstrip().startswith(("import ", "from "))


def _is_sound(path: str, data: bytes, lacked: frozenset[str] | None, grammar: int) -> bool:
    """Whether a file compiles and lacks no name that it did not lack before (None: it did not compile), and needs no
    newer Python than it did.
    """
    lacks = _lacks(path, data)
    return lacked is None or (lacks is not None and lacks <= lacked and _grammar(path, data) <= grammar)


def _grammar(path: str, data: bytes) -> int:
    """The minor version of the oldest Python from 3.6 on whose grammar reads a file; the newest for a new file."""
    newest = sys.version_info.minor
    for minor in range(6, newest) if data and path.endswith(".py") else ():
        with warnings.catch_warnings(), suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            warnings.simplefilter("ignore")
            ast.parse(data, feature_version=(3, minor))
            return minor
    return newest


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
