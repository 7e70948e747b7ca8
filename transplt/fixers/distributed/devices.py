"""A card that the script chose by number becomes the card of the rank."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from transplt.edits.trees.calls import moved_to, one_after_the_other, with_keyword
from transplt.edits.trees.literals import words_in_literal
from transplt.edits.trees.removals import without_first, without_last
from transplt.edits.trees.transform import New, refusing
from transplt.fixers.distributed.current_program import Bench
from transplt.program.cards import chosen_card, text_with_number
from transplt.syntax.nodes import attribute_of, block_of, by_place, shape
from transplt.syntax.scan import parent, statement

_CODE = "NPU334"
_NUMBERED = re.compile(r"cuda:(\d+)")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")


def claim(bench: Bench) -> None:
    """Claim what other codemods would move to a card by its number."""
    for node in by_place(bench.file.scan.strings):
        match parent(node):
            case ast.JoinedStr() | ast.Expr() | ast.Compare() | ast.keyword(arg="choices" | "help"):
                continue  # of these the user may give another card
        if _NUMBERED.fullmatch(str(node.value)):
            new = bench.card if bench.portable else words_in_literal({"cuda:0": "npu"})
            plain = "cuda:0" in bench.work.text(node)
            _write(bench, node, "'cuda:0'", new if plain else refusing("not a plain string"))
    for each in ast.walk(bench.file.scan.tree):
        if not isinstance(each, (ast.JoinedStr, ast.BinOp, ast.Call)) or isinstance(parent(each), ast.Compare):
            continue
        if (part := text_with_number(each)) is not None:
            bench.work.taken.add(id(part))
            _write(bench, each, "a card by its number", bench.card)
    for call in bench.file.scan.calls:
        full = bench.file.names.qualified(call.func) or ""
        if attribute_of(call.func) == "cuda":
            if not full.startswith("torch.") and shape(call)[0] == len(call.args) == 1:  # `.cuda(0)`, `.cuda(args.gpu)`
                _move(bench, call)
        elif full == "torch.device" and len(call.args) == 2:
            bench.rewrite(call, _CODE, "a fixed card number -> the card of the rank", without_last())
            continue
        if (chosen := chosen_card(bench.file, call)) is not None:
            _choose(bench, call, chosen)


def _choose(bench: Bench, call: ast.Call, chosen: ast.expr) -> None:
    """A card that is chosen by an argument: `with torch.cuda.device(args.gpu):`, `.cuda(device=0)`, `.to(0)`."""
    why, name = "a fixed card number -> the card of the rank", bench.file.names.qualified(call.func)
    on_npu = not bench.portable
    if name == "torch.cuda.device":
        namespace = f"{bench.torch}.npu" if on_npu else bench.call("device_module")
        bench.change(chosen, _CODE, why, f"{namespace}.current_device()", writes_npu=on_npu)
    elif name == "torch.device" and len(call.args) + len(call.keywords) == 2:
        bench.change(call, _CODE, why, f"{bench.torch}.device({bench.card})", writes_npu=on_npu)
    elif name != "torch.device" or len(call.args) == 1:
        bench.change(chosen, _CODE, why, bench.card, writes_npu=on_npu)


def _move(bench: Bench, call: ast.Call) -> None:
    """Leave the number out of a move to a card; in the portable style this is all of the edit."""
    new, shown = without_first(), ".npu()"
    if bench.portable and bench.work.take(call.func):
        new, shown = one_after_the_other(new, moved_to(bench.card)), f".to({bench.card})"
    bench.change(call, _CODE, f".cuda(n) -> {shown}, the card of the rank", new)


def _write(bench: Bench, node: ast.expr, what: str, new: New) -> None:
    """Write the card of the rank where a number was."""
    shown = bench.card.replace('"', "'")
    bench.change(node, _CODE, f"{what} -> {shown}, the card of the rank", new, writes_npu=not bench.portable)


def write_devices(bench: Bench) -> None:
    """Take out what chooses the card of the whole process."""
    for call in bench.file.scan.calls:
        if bench.file.names.qualified(call.func) == "torch.cuda.set_device":
            _remove(bench, statement(call), "the start of the program sets the card of the rank")
    for subscript in bench.file.scan.subscripts:
        match subscript, statement(subscript):
            case ast.Subscript(slice=ast.Constant(value=name), ctx=ast.Store()), ast.Assign() as stored:
                if name in _VISIBLE:
                    _remove(bench, stored, "the launch script chooses the cards")


def write_loads(bench: Bench, after_start: Callable[[ast.AST], bool]) -> None:
    """What is loaded without a word of where goes to the card of the rank, if it was saved on one."""
    done = set()
    for call in bench.file.scan.calls:
        if bench.file.names.qualified(call.func) != "torch.load" or len(call.args) != 1 or not after_start(call):
            continue
        if {"map_location", None}.isdisjoint(keyword.arg for keyword in call.keywords):
            new = with_keyword("map_location", bench.call("to_own_card"))
            bench.change(call, _CODE, "loaded to the card of the rank", new, beside=True)
            done.add(bench.file.source.extent(call.func))
    bench.work.withdraw_notes(lambda note: note.code == "NPU152" and note.extent in done)


def _remove(bench: Bench, node: ast.stmt, why: str) -> None:
    """Take a statement out; a block that held nothing else gets `pass`."""
    if not bench.fits(node):
        bench.left(node, f"remove this: {why}", "and keep the rest of the line", code="NPU335")
        return
    bench.remove(node, _CODE, why, only=len(block_of(node)) == 1)
