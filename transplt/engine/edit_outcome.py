"""From edits to new bytes: sites are rewritten, lines go in and out, everything is spliced back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from transplt.base.text.source import Source, splice
from transplt.edits.edit import Around, Beside, Edit
from transplt.edits.helper_import import helper_imports
from transplt.edits.imports import (
    CODE,
    at_top,
    constants,
    is_given_an_npu,
    names_npu,
    needed_imports,
    needs_torch_npu,
    stands_here,
)
from transplt.edits.lines import Placed, alone, around_statements, joined, placed
from transplt.edits.rewrite import Failure, Piece, build_sites, rewrite_site
from transplt.edits.work import Work
from transplt.fixers.codemods import specify_device
from transplt.syntax.scan import parent

#: The end and the beginning of a text that belong to a name, of names of functions of ours.
_NAME_ENDS, _NAME_BEGINS, _LONGEST_NAME = re.compile(rb"[A-Za-z0-9_]+\Z"), re.compile(rb"[A-Za-z0-9_]+"), 100


@dataclass(slots=True)
class Outcome:
    """The new bytes of a file, and what made them; `spliced` is all of it as (start, end, new bytes), sorted."""

    data: bytes
    pieces: list[Piece]
    lines: list[Placed]
    failures: list[Failure]
    spliced: list[tuple[int, int, bytes]]


def apply_edits(work: Work, edits: Sequence[Edit]) -> Outcome:
    """What a file becomes by some of its edits."""
    source = work.source
    pieces: list[Piece] = []
    failures: list[Failure] = []
    for site in build_sites(source, [edit for edit in edits if edit.rewrites]):
        _, found, failed = rewrite_site(source, site)
        pieces += found
        failures += failed
    out = ((edit, edit.where) for edit in edits if isinstance(edit.where, tuple))
    gone = [placed(edit, start, str(edit.new), end) for edit, (start, end) in out]
    grouped = _called(source, pieces, [edit for edit in edits if edit.group and not edit.rewrites])
    # An import goes in above the lines at the same place that need it.
    written = _written(source, pieces, grouped)
    imports = [*at_top(source, work.scan, grouped), *helper_imports(work, grouped, written)]
    asked_for = [*imports, *around_statements(source, work.scan.tree, grouped)]
    lines = _needed(
        work, pieces, [edit for edit in edits if isinstance(edit.where, Beside) and not edit.group], asked_for
    )
    gone = [_in_front_of(source.utf8, each, [*lines, *asked_for]) for each in gone]
    pieces = [piece for piece in pieces if not any(each.start <= piece.start < each.end for each in gone)]
    lines += [item for item in asked_for if not _goes_with(item, gone, pieces)]
    lines = [*gone, *joined(lines)]
    spliced = _spliced(source, pieces, lines)
    data = source.encode(splice(source.utf8, spliced)) if spliced else source.encode(source.utf8)
    return Outcome(data, pieces, lines, failures, spliced)


def _written(source: Source, pieces: Sequence[Piece], grouped: Sequence[Edit]) -> list[tuple[ast.AST, str]]:
    """The nodes that change or get lines beside them, and what is new there."""
    written: list[tuple[ast.AST, str]] = [
        (piece.site.node, _with_whole_names(source, piece)) for piece in pieces
    ]
    for edit in grouped:
        match edit.where:
            case Beside(node=node) | Around(first=node):
                written.append((node, str(edit.new)))
    return written


def _spliced(source: Source, pieces: Sequence[Piece], lines: Sequence[Placed]) -> list[tuple[int, int, bytes]]:
    """What changes. Lines come before what a statement begins with, but at the end of a file behind what ends there."""
    inside = [item for item in lines if item.start < len(source.utf8)]
    spliced = [(each.start, each.end, each.text.encode()) for each in inside]
    spliced += [(piece.start, piece.end, piece.after.encode()) for piece in pieces]
    spliced += [(each.start, each.end, each.text.encode()) for each in lines if each not in inside]
    return sorted(spliced, key=lambda item: (item[0], item[1]))


def _called(source: Source, pieces: Sequence[Piece], grouped: Sequence[Edit]) -> list[Edit]:
    """Edits of groups, without the definitions that nothing calls after all, and with each of the others once."""
    names = {str(edit.new): edit.where.called for edit in grouped if isinstance(edit.where, Beside)}
    if not any(names.values()):
        return [*grouped]
    texts = {*(str(edit.new) for edit in grouped), *(_with_whole_names(source, piece) for piece in pieces)}
    gone = {text for text, called in names.items()
            if called and not any(name in other for other in texts - {text} for name in called)}  # fmt: skip
    kept: list[Edit] = []
    for edit in grouped:
        text = str(edit.new)
        if text not in gone:
            kept.append(edit)
        if names.get(text):
            gone.add(text)
    return kept


def _with_whole_names(source: Source, piece: Piece) -> str:
    """What a piece writes, with what stays of names at its ends: `module.f` -> `f` is a piece that writes nothing."""
    start = _NAME_ENDS.search(source.utf8[max(piece.start - _LONGEST_NAME, 0) : piece.start])
    end = _NAME_BEGINS.match(source.utf8[piece.end : piece.end + _LONGEST_NAME])
    return f"{start.group().decode() if start else ''}{piece.after}{end.group().decode() if end else ''}"


def _in_front_of(utf8: bytes, gone: Placed, lines: Sequence[Placed]) -> Placed:
    """What goes out, without the empty lines behind it where a line goes in between: they stay below that one."""
    between = (each.start for each in lines if gone.start < each.start < gone.end)
    ends = [at for at in between if not gone.text and not utf8[at : gone.end].strip()]
    return replace(gone, end=min(ends)) if ends else gone


def _goes_with(item: Placed, gone: Sequence[Placed], pieces: Sequence[Piece]) -> bool:
    """True for a line that would go into a statement that goes out, and for the indentation of lines in a piece."""
    blank = not item.text.strip(" \t")
    return any(
        each.start < item.start < each.end or (blank and each.start == item.start and not each.text) for each in gone
    ) or any(
        piece.start < item.start < piece.end for piece in pieces
    )


def _needed(work: Work, pieces: list[Piece], beside: list[Edit], asked_for: list[Placed]) -> list[Placed]:
    """The imports and constants that what was written needs, and single lines beside statements."""
    source, scan = work.source, work.scan
    applied = [edit for piece in pieces for edit in piece.edits]
    modules = {"torch_npu": CODE} if _uses_npu(work, pieces, beside, asked_for) else {}
    for edit in applied:
        modules.update((module, edit.code) for module in edit.imports if module not in modules)
    moved = _top_statements(piece.site.node for piece in pieces if any(edit.writes_npu for edit in piece.edits))
    found = needed_imports(work, modules, moved) if modules else []
    below = list(dict.fromkeys(line for edit in applied for line in edit.constants))
    if work.settings.specify_device and "torch_npu" in modules:
        below, more = specify_device.select_card(work, pieces, below)
        beside = [*beside, *more]
        if below and not any("import os" in item.text for item in found):
            found += needed_imports(work, {"os": specify_device.fixer.code}, moved)
    if below:
        found.append(constants(source, scan, below, specify_device.fixer.code))
    return found + [alone(source, edit) for edit in beside]


def _uses_npu(work: Work, pieces: list[Piece], beside: list[Edit], asked_for: list[Placed]) -> bool:
    """True where what was written needs torch_npu, and an import of it may stand in this file."""
    applied = [edit for piece in pieces for edit in piece.edits]
    by_lines = names_npu(asked_for) or any(edit.writes_npu for edit in beside)
    wanted = needs_torch_npu(work, applied) or by_lines or is_given_an_npu(work)
    written = [*(piece.after for piece in pieces), *(item.text for item in asked_for)]
    return wanted and stands_here(work, "\n".join(written))


def _top_statements(nodes: Iterable[ast.AST]) -> set[int]:
    """The ids of the statements of the module in which some nodes stand."""
    known: dict[int, int] = {}
    for node in nodes:
        passed = [id(node)]
        while passed[-1] not in known and not isinstance(parent(node), ast.Module):
            node = parent(node)
            passed.append(id(node))
        known.update(dict.fromkeys(passed, known.get(passed[-1], passed[-1])))
    return {*known.values()}
