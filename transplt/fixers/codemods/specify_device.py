"""`-s`: the card a process runs on comes from its environment, not from an index in the source.

A fixed index (`"cuda:0"`, `.cuda(0)`, `torch.device("cuda", 0)`, `torch.cuda.set_device(0)`) becomes `NPU_DEVICE_ID`,
which a line below the imports reads from LOCAL_RANK, else ASCEND_DEVICE_ID, else DEVICE_ID, else 0. A script selects
that card before anything else touches the NPU, so that what names no index (`.cuda()`) runs there too.
`torch.device("cpu")`, indices that are computed, and `non_blocking` stay what they are.
"""

from __future__ import annotations

import ast
import re

from transplt.base.text.lexer import literals
from transplt.edits.edit import Beside, Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.rewrite import Piece
from transplt.edits.trees.transform import New, refusing
from transplt.edits.work import Work
from transplt.flow.destinations import places
from transplt.flow.device_or_backend import verdict
from transplt.flow.marks import DEVICE
from transplt.syntax.nodes import argument_at, is_main_guard, of_kind
from transplt.syntax.scan import FUNCTIONS, parent

fixer = Fixer(__name__, code="NPU250", rank=200)

NAME = "NPU_DEVICE_ID"
_INDEXED = re.compile(r"cuda:\d+")
_LINE = (
    f'{NAME} = int(os.environ.get("LOCAL_RANK") or os.environ.get("ASCEND_DEVICE_ID") '
    'or os.environ.get("DEVICE_ID") or 0)'
)
_SELECT = f"npu.set_device({NAME})"


@fixer.on(ast.Module)
def fixed_indices(work: Work, tree: ast.Module) -> Finds:
    """Replace fixed indices; before strings, methods and references."""
    if not work.settings.specify_device:
        return
    if len(indices := _indices(work)) > 1:
        for node in indices.values():
            yield work.note(
                node,
                "NPU251",
                "the file uses several cards with fixed indices; -s does not change it",
                help="decide which card each part runs on; with one process per card, all of them are NPU_DEVICE_ID",
            )
        return
    for node in work.scan.strings:
        if _INDEXED.fullmatch(str(node.value)) and not isinstance(parent(node), ast.JoinedStr):
            yield from _string(work, node)
    for call in work.scan.calls:
        yield from _index(work, call)


def _indices(work: Work) -> dict[int, ast.expr]:
    """The device indices that stand in the file as constants, each with the last place that names it."""
    found: dict[int, ast.expr] = {}
    for node in work.scan.strings:
        if isinstance(node.value, str) and _INDEXED.fullmatch(node.value):
            found[int(node.value.partition(":")[2])] = node
    found |= {int(str(index.value)): index for call in work.scan.calls for index in _fixed(work, call)}
    return found


def _string(work: Work, node: ast.Constant) -> Finds:
    above = parent(node)
    if isinstance(above, ast.Dict) or verdict(work.slots, places(work.slots, node), DEVICE) != DEVICE:
        return
    if any(place.kind == "compare" for place in places(work.slots, node)) or not work.take(node):
        return
    yield Edit(
        node,
        fixer.code,
        f"device string {node.value!r} -> the card that the environment names",
        _formatted(work, node),
        api=f"device string {node.value!r}",
        writes_npu=True,
        constants=(_LINE,),
        imports=("os",),
    )


def _formatted(work: Work, node: ast.Constant) -> New:
    """`f"npu:{NPU_DEVICE_ID}"` in the quotes of a string; what is no single literal stays as it is."""
    found = literals(work.text(node))
    if len(found) != 1 or found[0].formatted:
        return refusing("not a plain string")
    quote = found[0].quote
    return f"f{quote}npu:{{{NAME}}}{quote}"


def _index(work: Work, call: ast.Call) -> Finds:
    for node in _fixed(work, call):
        if work.take(node):
            yield Edit(
                node,
                fixer.code,
                "fixed device index -> the card that the environment names",
                NAME,
                api=work.names.qualified(call.func) or "torch.Tensor.cuda",
                constants=(_LINE,),
                imports=("os",),
            )


def _fixed(work: Work, call: ast.Call) -> list[ast.Constant]:
    """Constant indices in `.cuda(0)`, `torch.cuda.set_device(0)`, `torch.device("cuda", 0)`."""
    func = call.func
    last = func.attr if isinstance(func, ast.Attribute) else ""
    if last not in ("cuda", "set_device", "device"):
        return []
    full = work.names.qualified(func)
    if last != "cuda" and full not in ("torch.cuda.set_device", "torch.cuda.device", "torch.device"):
        return []
    position = 0
    if full == "torch.device":
        kind = argument_at(call, 0, "type")
        if not isinstance(kind, ast.Constant) or kind.value != "cuda":
            return []
        position = 1
    every = [*call.args[position : position + 1], *(k.value for k in call.keywords if k.arg in ("device", "index"))]
    return [node for node in of_kind(ast.Constant, every) if type(node.value) is int]


def select_card(work: Work, pieces: list[Piece], below: list[str]) -> tuple[list[str], list[Edit]]:
    """Where a script selects its card: first in its main guard, or below the imports of a script without one.

    The statements that go in below the imports (`below` and what is needed), and lines beside others.
    """
    # A script that never names torch, as one that only calls its own modules, has torch_npu from our import.
    select = f"{'torch' if 'torch' in work.scan.root.bindings else 'torch_npu'}.{_SELECT}"
    for node in work.scan.tree.body:
        if isinstance(node, ast.If) and is_main_guard(node):
            message = "the process selects the card that the environment names"
            return [_LINE], [Edit(Beside(node.body[0]), fixer.code, message, select)]
    if any(_runs_on_import(piece) for piece in pieces):
        return [_LINE, select], []
    return below, []


def _runs_on_import(piece: Piece) -> bool:
    """True for a piece of a module-level statement that uses the device, as a script without a main guard does."""
    top: ast.AST = piece.site.node
    while not isinstance(parent(top), ast.Module):
        top = parent(top)
    if isinstance(top, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
        return False
    return any(edit.api == "torch.Tensor.cuda" or edit.api.startswith("torch.cuda.set_") for edit in piece.edits)
