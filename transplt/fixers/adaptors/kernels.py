"""`kernels`: functions of compiled CUDA extensions are called from the project's own functions in torch.

A compiled module is given up in a file where all that the file calls of it has a row in
rules/support/kernel_functions/, with as many arguments as the row; else the file stays as it is.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.helper import imported_in_place, in_file, lacking_of
from transplt.edits.lines import own_lines
from transplt.edits.trees.displays import without_elements
from transplt.edits.trees.removals import without_names
from transplt.edits.unused_imports import drop_unused
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.writer import AdaptorWriter, writer_for
from transplt.flow.cuda_builds import built_modules
from transplt.program.compiled_modules import Compiled, compiled_in, given_up
from transplt.rules.kernel_functions import SAID, KernelFunction, compiled_modules
from transplt.syntax.nodes import block_of, call_of
from transplt.syntax.scan import FUNCTIONS, parent

fixer = Fixer(
    __name__, code=SAID, rank=-70, theme="adapt:kernels",
    needs=(b"_cuda", b"_ext", b"_C", *(name.encode() for name in compiled_modules())),
)  # fmt: skip

#: What is said of compiled modules where they are imported and built.
_ANSWERED = ("NPU501", "NPU510", "NPU550", "NPU553", "NPU554", "NPU292", "NPU520", "NPU860")


@on_file(fixer, writer_for)
def compiled_functions(work: Work, writer: AdaptorWriter) -> None:
    """Turn the calls of compiled modules that are known as a whole."""
    for held in compiled_in(work.file, work.project):
        rows = [row for row in held.rows() if row is not None]
        if held.can_go(work.project) and not lacking_of(work, [row.helper for row in rows]):
            _turn(writer, held, list(zip((use for use, _ in held.uses), rows, strict=True)))
        elif rows:
            _say_what_is_missing(writer, held)


def _say_what_is_missing(writer: AdaptorWriter, held: Compiled) -> None:
    """Where something of a module is not said, all of it stays; the finding at its import says that it does."""
    more = ["other uses of the module"] if held.others else []
    more += ["operators that it registers"] if held.registers(writer.work.project) else []
    names = ", ".join([*held.missing, *more]) or "names that other files import from here"
    said = sorted({row.called for row in held.rows() if row is not None})
    writer.remark(
        held.brought or held.uses[0][0], fixer.code, f"{held.name} stays for {names}",
        f"`--adapt kernels` has {', '.join(said)}: write the rest in torch, or call it elsewhere, and migrate again",
    )  # fmt: skip


@fixer.on(ast.Call)
def built_extensions(work: Work, call: ast.Call) -> Finds:
    """Take extensions that nothing needs out of the list that a setup.py builds."""
    display = parent(call)
    if not work.scan.path.endswith("setup.py") or not isinstance(display, ast.List):
        return
    writer = writer_for(work, fixer)
    gone = work.project.once(given_up)
    if writer is None or not gone or display.elts[0] is not call:
        return
    needless = _needless(display, gone)
    if not needless or not work.take(display):
        return
    names = ", ".join(dict.fromkeys(itertools.chain(*needless.values())))
    message = f"nothing uses the extension {names} any more"
    writer.rewrite(display, fixer.code, message, without_elements(set(needless)), api=names)
    elements = [display.elts[index] for index in needless]
    for element in elements:
        writer.takes_care(element, _ANSWERED)
        work.taken.update(id(node) for node in ast.walk(element))
    makers = [element.func for element in elements if isinstance(element, ast.Call)]
    for node in work.scan.imports:
        every = (work.scan.names.get(alias.asname or alias.name) for alias in node.names)
        if any(uses and all(use in makers for use in uses) for uses in every):  # it goes too
            writer.takes_care(node, _ANSWERED)
    drop_unused(writer, makers, fixer.code)
    yield from writer.found


def _needless(display: ast.List, gone: Collection[str]) -> dict[int, list[str]]:
    """The modules that a list of extensions builds and nothing needs, by the index of the extension."""
    built = (built_modules(each, set()) if isinstance(each, ast.Call) else () for each in display.elts)
    found = ([name for name in names if name.rpartition(".")[2] in gone] for names in built)
    return {index: names for index, names in enumerate(found) if names}


def _turn(writer: AdaptorWriter, held: Compiled, chosen: list[tuple[ast.expr, KernelFunction]]) -> None:
    work = writer.work
    if held.brought is None:
        _turn_calls(writer, held, chosen)
        return
    gone, flags = _whole(held.brought)
    alone = (
        not isinstance(held.brought, (ast.Import, ast.ImportFrom)) or held.alias is None or len(held.brought.names) == 1
    )
    # A statement of the module above its functions and classes.
    head = itertools.takewhile(lambda each: not isinstance(each, (*FUNCTIONS, ast.ClassDef)), work.scan.tree.body)
    instead = imported_in_place(work) if alone and gone in head else ""
    _turn_calls(writer, held, chosen)
    message = f"the compiled module {held.name} is no longer used"
    writer.takes_care(gone, _ANSWERED)
    work.taken.update(id(node) for node in ast.walk(held.brought))
    if instead or (flags and alone):
        text = work.source.newline().join([*([instead] if instead else ()), *map(work.text, flags)])
        writer.rewrite(gone, fixer.code, message, text, api=held.name)
    elif held.alias is not None and isinstance(held.brought, (ast.Import, ast.ImportFrom)) and not alone:
        local = held.alias.asname or held.alias.name
        writer.rewrite(held.brought, fixer.code, message, without_names(local), api=held.name)
        return
    elif block_of(gone) == [gone] and not isinstance(parent(gone), ast.Module):
        writer.remove(gone, fixer.code, message, only=True)
    else:
        (start, end), parted = own_lines(work.source, gone)
        if not in_file(work):  # else functions and their imports go in at the end of these lines
            start, end = _with_blank_lines(work.source.utf8, start, end)
        writer.take_out((start, end), fixer.code, message, parted=parted)
    if isinstance(held.brought, ast.Assign) and isinstance(held.brought.value, ast.Call):
        drop_unused(writer, [held.brought.value.func], fixer.code)


def _turn_calls(writer: AdaptorWriter, held: Compiled, chosen: list[tuple[ast.expr, KernelFunction]]) -> None:
    for use, row in chosen:
        message = f"{held.name}.{row.called} -> npu_port.{row.helper}"
        text = writer.helper(row.helper, fixer.code, message, use)
        if text:
            writer.change(use, fixer.code, message, text, api=f"{held.name}.{row.called}")
        writer.takes_care(call_of(use) or use, _ANSWERED)


def _with_blank_lines(utf8: bytes, start: int, end: int) -> tuple[int, int]:
    """What goes out with lines: the empty ones behind them where some are above, and all above at the end of a file."""
    rest = utf8[end:].lstrip(b"\r\n")
    if not rest:
        above = len(utf8[:start].rstrip(b"\r\n"))
        return (utf8.index(b"\n", above) + 1 if above < start else start), len(utf8)
    if start and not utf8[:start].endswith((b"\n\n", b"\r\n\r\n")):
        return start, end
    return start, (len(utf8) - len(rest) if not rest[:1].isspace() else end)


def _whole(node: ast.stmt) -> tuple[ast.stmt, list[ast.stmt]]:
    """What goes with an import, and what of it stays: the `try` around it alone, whose handlers nothing calls any more,
    without the flags that say that there is one.
    """
    above = parent(node)
    if isinstance(above, ast.Try) and node in above.body and not above.finalbody:
        rest = [each for each in (*above.body, *above.orelse) if each is not node]
        flags = (isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant) for each in rest)
        if not rest or (isinstance(parent(above), ast.Module) and all(flags)):
            return above, rest
    return node, []
