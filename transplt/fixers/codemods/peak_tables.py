"""Tables of NVIDIA product names that give what a card can do: an NPU is in none of them.

`{"A100": 312e12}[torch.cuda.get_device_name()]` raises on an NPU; else the utilisation is printed wrong, or not at all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.flow.callees import PROSE_CALLS
from transplt.syntax.nodes import by_place, inner_nodes, last_name, plain_name, string_of
from transplt.syntax.scan import chain, parent

_PRODUCTS = tuple(
    name.encode() for name in ("A100 H100 H200 V100 B200 P100 A6000 L40 RTX Tesla a100 h100 v100 \"T4\" 'T4'").split()
)
_PRODUCT = re.compile(
    r"(?<![A-Za-z0-9])(?:A100|A800|H100|H200|H800|H20|B100|B200|GB200|V100S?|P100|P40|K80|T4|L4|L40S?|A10G?|A30|A40|"
    r"A[456]000|(?:RTX|GTX)[ _-]?\w+|TITAN\w*|Tesla\b.*|GeForce\b.*)(?![A-Za-z0-9])",
    re.I,
)
#: How the cards of Ascend are called.
_ASCEND = re.compile(r"ascend|(?<!\d)(?:910|950)(?!\d)|npu", re.I)
_ABOUT = re.compile(r"flop|tflop|mfu|peak|throughput|bandwidth|tops\b", re.I)
#: From here on a number counts operations or bytes of a second.
_MANY = 1e9

fixer = Fixer(__name__, code="NPU275", rank=320, needs=_PRODUCTS, words=("flops", "mfu", "a100", "h100", "v100"))


@fixer.on(ast.Module)
def tables_of_products(work: Work, tree: ast.Module) -> Finds:
    """Report tables and comparisons with names of products that lead to large numbers."""
    for node in by_place([*work.scan.dicts, *work.scan.ifs]):
        found = None
        if isinstance(node, ast.Dict):
            found = _in_table(node)
        elif isinstance(node, ast.If) and not _is_elif(node):  # if "A100" in name: return 312e12
            texts = filter(None, map(string_of, ast.walk(node.test)))
            found = node.test if any(map(_PRODUCT.search, texts)) and _has_figures(node, node.body) else None
        if found is not None and work.take(found):
            for each in ast.walk(found):  # one finding speaks for all names in it
                if string_of(each) is not None:
                    work.take(each)
            yield work.note(
                found,
                fixer.code,
                "the speed of a card is looked up by the name of an NVIDIA product",
                help="add the NPU under the name that torch.npu.get_device_name() returns, with its published figures",
                effort=Effort.LOW,
                blocks="later" if _raises(work, found) else "",
            )


def _in_table(node: ast.Dict) -> ast.expr | None:
    names = [key for key in node.keys if (name := string_of(key)) is not None and _PRODUCT.search(name)]
    if not names or 2 * len(names) < len(node.keys):
        return None
    if any(_ASCEND.search(string_of(key) or "") for key in node.keys):
        return None  # it has the NPU
    return node if _has_figures(node, [node]) else None


def _raises(work: Work, table: ast.expr) -> bool:
    """True for a table that is asked for a name whether it has that or not."""
    name = plain_name(above.targets[0]) if isinstance(above := parent(table), ast.Assign) else ""
    asked = (each for each in work.scan.names.get(name, (table,)) if isinstance(parent(each), ast.Subscript))
    return any(not any(isinstance(each, (ast.If, ast.IfExp, ast.Try)) for each in chain(use)) for use in asked)


def _is_elif(node: ast.If) -> bool:
    above = parent(node)
    return (
        isinstance(above, ast.If)
        and above.orelse == [node]
        and any(_PRODUCT.search(str(each.value)) for each in inner_nodes(above.test, ast.Constant))
    )


def _has_figures(node: ast.AST, inside: Sequence[ast.AST]) -> bool:
    """True for large numbers, or any where the name of what is assigned, or of the function around, speaks of them."""
    values = [each.value for one in inside for each in inner_nodes(one, ast.Constant)]
    numbers = [each for each in values if isinstance(each, (int, float)) and not isinstance(each, bool)]
    here: ast.AST = node
    if not numbers or any(number >= _MANY for number in numbers):
        return bool(numbers)
    while not isinstance(here, ast.Module):
        match here:
            case ast.Assign(targets=targets) if any(_ABOUT.search(ast.unparse(target)) for target in targets):
                return True
            case ast.AnnAssign(target=target) if _ABOUT.search(ast.unparse(target)):
                return True
            case ast.Call(func=func) if last_name(func) in PROSE_CALLS:
                return False
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                return bool(_ABOUT.search(name))
        here = parent(here)
    return False
