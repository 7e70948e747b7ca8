"""What the adaptors write with: the writer of one for the file on the bench, and names that come from the helper."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from transplt.edits.fixer import Fixer
from transplt.edits.groups import ADAPTORS
from transplt.edits.helper import taken_from_helper
from transplt.edits.ignores import Ignores
from transplt.edits.shared_lines import indent_unit, statement_separator
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import Writer
from transplt.syntax.conditions import implied
from transplt.syntax.modules import import_base
from transplt.syntax.nodes import call_of
from transplt.syntax.scan import chain, parent

_ASKS_FOR_CUDA = re.compile(r"""[\w.]+\.(?:type\s*==\s*["']cuda["']|is_cuda)""")


@dataclass(slots=True)
class AdaptorWriter(Writer):
    """The writer of one adaptor, and which findings of the migration it takes care of."""

    name: str = ""

    def keeps(self, node: ast.expr | ast.stmt, code: str) -> bool:
        """True where a comment keeps a code from a place: what an edit there would answer is still open."""
        return bool(Ignores(self.work).reason(code, node.lineno, node.end_lineno or node.lineno))

    def can_branch(self, node: ast.stmt) -> bool:
        """False for an import that shares its line, or already has its branch."""
        return statement_separator(self.work.source, node) != "; " and not self.has_branch(node)

    def is_of_cuda(self, node: ast.AST) -> bool:
        """True for what stands behind `x.device.type == "cuda"`, which the portable style leaves as it is."""
        steps = [node, *chain(node)] if self.portable else []
        tests = [each.test for step, each in pairwise(steps) if isinstance(each, ast.If) and step in each.body]
        parts = (part for test in tests for part, truth in implied(test, True) if truth)
        return any(_ASKS_FOR_CUDA.fullmatch(self.work.text(part)) for part in parts)

    def has_branch(self, node: ast.AST) -> bool:
        """True for what stands behind a question for the NPU that was written in the portable style."""
        above = (each.test if isinstance(each, (ast.If, ast.IfExp)) else each for each in chain(node))
        asks = (each for each in above if isinstance(each, (ast.BoolOp, ast.Compare)))
        return self.portable and any('"npu"' in self.work.text(each) for each in asks)

    def in_place_of(self, node: ast.stmt, lines: Sequence[str]) -> str:
        """The statements in the place of an import; in the portable style its own branch for the NPU beside it."""
        work = self.work
        between = statement_separator(work.source, node)
        if not self.portable:
            return between.join(lines)
        unit = indent_unit(work.source, work.scan.tree)
        below = work.text(node).replace("\n", f"\n{unit}")
        return between.join([f'if {self.card} == "npu":', *(unit + line for line in lines), "else:", unit + below])

    def takes_care(self, node: ast.expr | ast.stmt | ast.alias | ast.keyword, codes: Collection[str]) -> None:
        """Findings of some codes inside of a node are answered by what is written; where that is taken back they stay.
        """
        self.work.answers.append((self.name, self.work.source.extent(node), frozenset(codes)))


def writer_for(work: Work, fixer: Fixer) -> AdaptorWriter | None:
    """The writer of an adaptor; None where the settings switch it off."""
    if fixer.code.startswith(work.settings.ignored_codes(work.scan.path) or ("-",)):
        return None
    name = fixer.theme.partition(":")[2]
    message = f"an import for the adaptor {name}"
    return AdaptorWriter(work, ADAPTORS.name, fixer.code, message, asked=True, name=name)


def value_of(work: Work, fixer: Fixer) -> str:
    """What follows the name of an adaptor after `=`."""
    return dict(work.settings.adapt)[fixer.theme.partition(":")[2]]


def turn_names(writer: AdaptorWriter, names: Mapping[str, str], code: str, codes: Collection[str]) -> None:
    """Let what a file imports by some full names come from the helper: full name -> name there.

    `from flash_attn import flash_attn_func as fa` takes it from the helper as `fa`; `flash_attn.flash_attn_func` is
    written as `npu_port.flash_attn_func`. Findings of `codes` at the import and the names are taken care of.
    """
    turned = False
    for node in writer.work.scan.imports:
        if isinstance(node, ast.ImportFrom):
            kept = writer.keeps(node, code)
            turned |= _turn_import(writer, node, names, code, () if kept else codes) and not kept
    if turned:
        for call in writer.work.calls_by_name(names):
            writer.takes_care(call, codes)
    dotted = [*_dotted(writer.work, names)]
    written: list[ast.expr] = []
    for attribute, full in dotted:
        message = f"{full} -> npu_port.{names[full]}"
        text = "" if writer.has_branch(attribute) else writer.helper(names[full], code, message, attribute)
        if writer.portable:
            text = text and f'({text} if {writer.card} == "npu" else {writer.work.text(attribute)})'
        if text and writer.work.take(attribute):
            writer.rewrite(attribute, code, message, text, api=full)
            if not writer.keeps(attribute, code):
                writer.takes_care(call_of(attribute) or attribute, codes)
            written.append(attribute)
    if written:
        for node in writer.work.scan.imports:
            if _brings_no_other(writer.work, node, written):
                writer.takes_care(node, codes)
        drop_unused(writer, written, code)


def _turn_import(
    writer: AdaptorWriter, node: ast.ImportFrom, names: Mapping[str, str], code: str, codes: Collection[str]
) -> bool:
    work = writer.work
    base = import_base(work.scan.path, node)
    full = [f"{base}.{alias.name}" for alias in node.names]
    taken = [(alias, names[each]) for alias, each in zip(node.names, full, strict=True) if each in names]
    if not taken or (writer.portable and not writer.can_branch(node)) or not work.take(node):
        return False
    message = f"{', '.join(f'{base}.{alias.name}' for alias, _ in taken)} from npu_port"
    called = taken_from_helper(
        work, [(name, alias.asname or alias.name) for alias, name in taken], group=writer.group, code=code,
        message=message, at=node, asked=writer.asked,
    )  # fmt: skip
    writer.found += called.found
    if not called.text:
        return False
    others = [alias for alias, each in zip(node.names, full, strict=True) if each not in names]
    lines = [called.text]
    if others:
        rest = ", ".join(alias.name + (f" as {alias.asname}" if alias.asname else "") for alias in others)
        lines.insert(0, f"from {'.' * node.level}{node.module or ''} import {rest}")
    else:
        writer.takes_care(node, codes)
    for alias, _ in taken:
        work.taken.add(id(alias))
        writer.takes_care(alias, codes)
    writer.rewrite(node, code, message, writer.in_place_of(node, lines), api=f"{base}.{taken[0][0].name}")
    return True


def _dotted(work: Work, names: Mapping[str, str]) -> Iterator[tuple[ast.Attribute, str]]:
    """The attributes of modules that are read under one of some full names."""
    for name, full in work.names.references():
        node: ast.AST = name
        above = parent(node)
        while isinstance(above, ast.Attribute):
            full = f"{full}.{above.attr}"
            node, above = above, parent(above)
            if full in names and isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                yield node, full
                break


def _brings_no_other(work: Work, node: ast.Import | ast.ImportFrom, written: list[ast.expr]) -> bool:
    """True for an import whose names are read by what was written alone."""
    inside = {id(each) for expr in written for each in ast.walk(expr)}
    local = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    uses = [use for name in local for use in work.scan.names.get(name, ()) if isinstance(use.ctx, ast.Load)]
    return bool(uses) and all(id(use) in inside for use in uses)
