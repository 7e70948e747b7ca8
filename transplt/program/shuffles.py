"""The channel shuffle of ShuffleNet: channels are taken apart into groups, the two are exchanged, and put together.

`x.view(b, g, k, h, w).transpose(1, 2).contiguous().view(b, c, h, w)`, in one expression or in up to three statements.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.program.program import enclosing_function
from transplt.syntax.names import Names
from transplt.syntax.nodes import block_of, inner_nodes, is_dotted, last_name, plain_name
from transplt.syntax.scan import Scan, statement

_SHAPES = frozenset({"view", "reshape"})
#: Operators in a size, one within the other.
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A shuffle of the channels of `x` (N, C, ...): `channels` names C, `groups` and `each` are what it is taken into.

    `gone` are the statements above that compute nothing but its first steps, the last one first.
    """

    whole: ast.Call
    x: ast.Name
    channels: str
    groups: ast.expr
    each: ast.expr
    gone: tuple[ast.Assign, ...]


def shuffle_ending_at(scan: Scan, names: Names, last: ast.Call) -> Shuffle | None:
    """The shuffle whose last step is a call of `view` or `reshape`; None where its shapes do not show that it is one.

    The sizes have to be taken from x itself (`b, c, h, w = x.size()`), with x and the sizes as they were.
    """
    if last_name(last.func) not in _SHAPES:
        return None
    gone: list[ast.Assign] = []
    joined = _step(names, last)
    if joined is None:
        return None
    turned = _below(scan, names, joined[1], gone)
    if turned is not None and turned[0] == "contiguous":
        turned = _below(scan, names, turned[1], gone)
    parted = _below(scan, names, turned[1], gone) if turned is not None and _exchanges(turned) else None
    if parted is None or parted[0] not in _SHAPES or not isinstance(parted[1], ast.Name):
        return None
    if gone and not _nothing_else_reads(scan, last, gone):
        return None
    apart, together, x = parted[2], joined[2], parted[1]
    sizes = _sizes_of(x, gone[-1] if gone else statement(last))
    if len(sizes) < 3 or len(apart) != len(sizes) + 1 or len(together) != len(sizes):
        return None
    first, channels, *rest = sizes
    if [plain_name(node) for node in (apart[0], *apart[3:])] != [first, *rest]:
        return None
    if [plain_name(node) for node in (together[0], *together[2:])] != [first, *rest]:
        return None
    if not all(_is_plain(node) for node in (apart[1], apart[2], together[1])):
        return None
    return Shuffle(last, x, channels, apart[1], apart[2], tuple(gone))


_TensorStep = tuple[str, ast.expr, list[ast.expr]]


def _step(names: Names, node: ast.expr) -> _TensorStep | None:
    """Name, tensor and arguments of `x.view(a, b)`, `x.view((a, b))` and `torch.reshape(x, (a, b))`."""
    if not isinstance(node, ast.Call) or node.keywords or not isinstance(node.func, ast.Attribute):
        return None
    x, given = node.func.value, node.args
    if names.qualified(node.func) == f"torch.{node.func.attr}":
        if not given:
            return None
        x, given = given[0], given[1:]
    if len(given) == 1 and isinstance(given[0], (ast.Tuple, ast.List)):
        given = given[0].elts
    return None if any(isinstance(each, ast.Starred) for each in given) else (node.func.attr, x, given)


def _below(scan: Scan, names: Names, node: ast.expr, gone: list[ast.Assign]) -> _TensorStep | None:
    """The step that made a tensor: in the same expression, or in the statement right above, which goes then."""
    if not isinstance(node, ast.Name):
        return _step(names, node)
    here = gone[-1] if gone else statement(node)
    block = block_of(here)
    at = next((index for index, each in enumerate(block) if each is here), 0)
    above = block[at - 1] if at else None
    if not isinstance(above, ast.Assign) or [plain_name(target) for target in above.targets] != [node.id]:
        return None
    gone.append(above)
    return _step(names, above.value)


def _exchanges(step: _TensorStep) -> bool:
    """True for `transpose(1, 2)` and `permute(0, 2, 1, 3, 4)`."""
    name, _, given = step
    axes = [each.value if isinstance(each, ast.Constant) else None for each in given]
    if name in ("transpose", "swapaxes"):
        return axes in ([1, 2], [2, 1])
    return name == "permute" and len(axes) > 3 and axes == [0, 2, 1, *range(3, len(axes))]


def _nothing_else_reads(scan: Scan, last: ast.Call, gone: list[ast.Assign]) -> bool:
    """True when what the statements above name is read by the next step alone."""
    end = statement(last)
    if not isinstance(end, (ast.Assign, ast.Return)) or end.value is not last:
        return False
    if enclosing_function(end) is None:
        return False
    if isinstance(end, ast.Return):
        return True
    written = {plain_name(target) for target in end.targets}
    for name in {plain_name(target) for each in gone for target in each.targets} - written:
        reads = (use for use in scan.names.get(name, ()) if isinstance(use.ctx, ast.Load))
        if any(statement(use) not in (end, *gone) for use in reads if scan.scope_of(use) is scan.scope_of(last)):
            return False
    return True


def _sizes_of(x: ast.Name, first: ast.stmt) -> list[str]:
    """The names that the sizes of x were given above a statement of the same block; empty where something is new."""
    block = block_of(first)
    at = next((index for index, each in enumerate(block) if each is first), 0)
    since: set[str] = set()
    for above in reversed(block[:at]):
        if names := _names_of_sizes(above, x.id):
            return [] if since & {x.id, *names} or len({*names}) < len(names) else names
        since |= {each.id for each in inner_nodes(above, ast.Name) if isinstance(each.ctx, ast.Store)}
    return []


def _names_of_sizes(line: ast.stmt, x: str) -> list[str]:
    """b, c, h and w of `b, c, h, w = x.size()`, of `x.shape`, and of the same of `x.data`; empty for anything else."""
    match line:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            if ast.unparse(value) in {f"{of}.{how}" for of in (x, f"{x}.data") for how in ("size()", "shape")}:
                names = [plain_name(each) for each in targets]
                return names if all(names) else []
    return []


def _is_plain(node: ast.expr, depth: int = 0) -> bool:
    """True for a size that can be read at another place: names, numbers, arithmetic on them, and `int` of that."""
    if depth > _DEEPEST:
        return False
    match node:
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]) | ast.UnaryOp(operand=inner):
            return _is_plain(inner, depth + 1)
        case ast.BinOp():
            return _is_plain(node.left, depth + 1) and _is_plain(node.right, depth + 1)
    return isinstance(node, ast.Constant) or is_dotted(node)
