"""What the tunings write with: the writer of one for the file on the bench, and what it asks before it writes."""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Edit
from transplt.edits.fixer import Fixer
from transplt.edits.groups import TUNINGS
from transplt.edits.ignores import Ignores
from transplt.edits.trees.transform import New
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.fixers.around import program_around
from transplt.program.cards import on_card, serves_another, tries_torch_npu


def writer_for(work: Work, fixer: Fixer) -> Writer | None:
    """The writer of a tuning; None in a file that does not speak of torch, where the settings switch it off, and where
    nothing runs on a card, on another one, or on an NPU only if there is torch_npu.
    """
    if b"torch" not in work.source.utf8 and b"flash_attn" not in work.source.utf8:
        return None
    if fixer.code.startswith(work.settings.ignored_codes(work.scan.path) or ("-",)):
        return None
    if not work.once(_for_a_card):
        return None
    message = f"an import for the tuning {fixer.theme.removeprefix('tune:')}"
    return Writer(work, TUNINGS.name, fixer.code, message, Level.UNSAFE, asked=True)


def _for_a_card(work: Work) -> bool:
    """True for a file of a program that an NPU is to run faster: not for a script no file of which puts anything on a
    card, nor for one of a project that tries torch_npu.
    """
    if serves_another(work.scan):
        return False
    if any(b"torch_npu" in text for text in work.project.sources.values()):
        texts = ((path, text) for path, text in work.project.sources.items() if b"torch_npu" in text)
        files = (work.project.files.read(path, text) for path, text in texts)
        if any(file is not None and tries_torch_npu(file.scan) for file in files):
            return False
    program = program_around(work)
    around = [file.source.utf8 for file in program.files] if program is not None else []
    script = any(b"__main__" in text or b".backward(" in text for text in around)
    return program is None or not script or on_card(program)


def value_of(work: Work, fixer: Fixer) -> str:
    """What follows the name of a tuning after `=`."""
    return dict(work.settings.tune)[fixer.theme.removeprefix("tune:")]


def torch_name(writer: Writer) -> str:
    """The name of torch: an alias too, where it means nothing else in any scope; imported when it was not."""
    scan = writer.work.scan
    for name, bindings in sorted(scan.root.bindings.items()):
        if name != "torch" and all(each.kind == "import" and each.target == "torch" for each in bindings):
            inside = any(name in scope.bindings for scope in scan.scopes.values() if scope is not scan.root)
            if not inside and "torch" not in scan.root.bindings:
                return name
    return writer.torch


def switched_off(work: Work, node: ast.expr, code: str) -> bool:
    """True where a comment keeps a code from a place: nothing that goes with the edit may be written either."""
    return bool(Ignores(work).reason(code, node.lineno, node.end_lineno or node.lineno))


def rewrites(writer: Writer) -> list[Edit]:
    """The edits of existing code so far, those of the tuning included."""
    return [edit for edit in writer.edits if edit.rewrites]


def touched(writer: Writer, node: ast.expr | ast.stmt, but: ast.expr | None = None) -> bool:
    """True when something in a node is edited, other than `but`, or the statement around it."""
    source = writer.work.source
    start, end = source.extent(node)
    for edit in rewrites(writer):
        at, to = source.extent(edit.node)
        inside = start <= at and to <= end and edit.node is not but
        if inside or (at <= start and end <= to and isinstance(edit.node, ast.stmt)):
            return True
    return False


def rewrite_unless_gone(writer: Writer, node: ast.expr, code: str, message: str, new: New, *, api: str = "") -> bool:
    """An edit of an expression that others may have edited too; nothing, and False, where its statement goes."""
    start = writer.work.source.extent(node)[0]
    gone = [edit.where for edit in writer.edits if isinstance(edit.where, tuple)]
    if any(begin <= start < end for begin, end in gone):
        return False
    writer.rewrite(node, code, message, new, api=api)
    return True
