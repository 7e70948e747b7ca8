"""How many programs a launch starts: what is known of each dimension of its grid, and from which size on they are many.

The block that a size is divided by is known where it is a number, a constexpr that the launch or each configuration
gives a number, or `min(number, ...)`, which is that number for all large sizes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from transplt.fixers.triton.reader.kernels import Config, behind
from transplt.fixers.triton.reader.launches import Launch
from transplt.syntax.nodes import last_name, string_of

#: The largest product of a grid (triton-ascend, docs/en/migration_guide/migrate_from_gpu.md: UINT16_MAX).
MOST = 65535
_CDIV = frozenset({"triton.cdiv", "triton.language.cdiv", "triton.runtime.cdiv", "triton.language.math.cdiv"})
#: Numbers of cores and of processors, by which loops in kernels are cut.
_CORES = re.compile(
    r"(?i)(?:^|_)(?:num_?)?(?:sms?|cores?|aicore|vectorcore|multiprocessors?|programs|ctas)(?:_|$|s$)|processor_count"
)
#: Sizes that are small in any model, and those of features: of two such sizes no grid is too large.
_SMALL = re.compile(
    r"(?i)^(?:b|z|n?h|h[qkv]|hkv|g|bs|bsz|\w*batch(?:_?size)?|heads?|groups?|split_k|\w*nheads\w*|"
    r"(?:n|num|active)_?(?:q_?|kv_?|qk_?)?(?:heads?|groups?|experts?|chunks?|splits?|requests?|sequences?|seqs?|slots?|"
    r"layers?|blocks?|programs?|tiles?)(?:_\w+)?)$"
)
_FEATURES = re.compile(r"(?i)^(?:\w*dim\w*|hidden\w*|\w*channels?|state_\w+|d|d_\w+|headdim|chunk_size)$")


@dataclass(slots=True, frozen=True)
class GridDimension:
    """One dimension: `count` programs, or one for each `block` of a `size`; `cores` where the cores limit it.

    `size` is its text, empty where nothing is known; `block` is None where it is not known. `by` names the constexpr
    of the block where configurations give it several values. `whole`: a block that is not full has no program.
    """

    text: str
    count: int | None = None
    size: str = ""
    block: int | None = None
    by: str = ""
    cores: bool = False
    whole: bool = False

    @property
    def known(self) -> bool:
        return self.count is not None or (bool(self.size) and self.block is not None)

    @property
    def small(self) -> bool:
        """True for a number, and for a size that is small in any model, such as the heads of attention."""
        if self.count is not None:
            return True
        return self.block == 1 and all(map(_SMALL.match, self.factors))

    @property
    def factors(self) -> list[str]:
        """What its size is a product of, by the last names."""
        return [part.strip(" ()").rpartition(".")[2] for part in self.size.split("*")]

    def first_size(self, others: int) -> int:
        """The size from which on (beyond it) the grid is too large, with `others` programs in the other dimensions."""
        block = self.block or 1
        return MOST // max(others, 1) * block + (block - 1 if self.whole else 0)


def dimensions_of(launch: Launch) -> list[GridDimension]:
    """The dimensions of a launch's grid, by the configuration that makes most programs; empty where it is not known."""
    grid = launch.grid
    if grid is None or grid.dimensions is None:
        return []
    nodes = grid.dimensions
    configs: list[Config | None] = [*launch.kernel.configs]
    first, *others = configs or [None]
    found = [_dimension(launch, each, first) for each in nodes]
    if others and any(each.by for each in found):
        every = [found, *([_dimension(launch, each, config) for each in nodes] for config in others)]
        found = min(every, key=lambda each: prod(dimension.block or 1 for dimension in each))
    return found


def _dimension(launch: Launch, node: ast.expr, config: Config | None) -> GridDimension:
    file = launch.file
    text = ast.unparse(node)
    value = behind(file, node)
    number = _number(launch, node)
    if number is not None:
        return GridDimension(text, count=number)
    if any(_CORES.search(word) for word in re.findall(r"\w+", f"{text} {ast.unparse(value)}")):
        return GridDimension(text, cores=True)
    divided = _divided(launch, value)
    if divided is not None:
        size, block, whole = divided
        known, by = _block(launch, block, config)
        return GridDimension(text, size=ast.unparse(size), block=known, by=by, whole=whole)
    if _is_size(value) or _is_size(node):
        return GridDimension(text, size=text if isinstance(node, ast.Name) else ast.unparse(value), block=1)
    return GridDimension(text)


def _is_size(node: ast.expr) -> bool:
    """True for names, entries of shapes and their products, and for `x.numel()`."""
    match node:
        case ast.BinOp(op=ast.Mult()):
            return _is_size(node.left) and _is_size(node.right)
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Name() | ast.Attribute():
            return True
        case ast.Call(func=ast.Attribute(attr="numel" | "size"), args=[] | [_]):
            return True
    return False


def _divided(launch: Launch, node: ast.expr) -> tuple[ast.expr, ast.expr, bool] | None:
    """What is divided by what in `triton.cdiv(n, block)`, `n // block` and `(n + block - 1) // block`.

    With True for `n // block`, which leaves the rest out.
    """
    match node:
        case ast.Call(func=func, args=[size, block]):
            called = launch.file.names.qualified(func) in _CDIV or last_name(func) == "cdiv"
            return (size, block, False) if called else None
        case ast.BinOp(left=size, op=ast.FloorDiv(), right=block):
            while isinstance(size, ast.BinOp) and isinstance(size.op, (ast.Add, ast.Sub)):
                size = size.left
            return size, block, size is node.left
    return None


def _block(launch: Launch, node: ast.expr, config: Config | None) -> tuple[int | None, str]:
    """The smallest number that a block may be for large sizes, and the constexpr that configurations give it."""
    number = _number(launch, node)
    if number is not None:
        return number, ""
    name = _meta_name(launch, node) or (node.id if isinstance(node, ast.Name) else "")
    if config is None or name in launch.arguments:
        return None, ""
    given = [each.values.get(name) for each in launch.kernel.configs]
    values = (value.value if isinstance(value, ast.Constant) else None for value in given)
    numbers = [each for each in values if isinstance(each, int)]
    if len(numbers) < len(given):
        return None, ""
    return numbers[launch.kernel.configs.index(config)], name if len(set(numbers)) > 1 else ""


def _meta_name(launch: Launch, node: ast.expr) -> str:
    """`BLOCK` of `meta["BLOCK"]`, and of `meta.get("BLOCK")`."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), slice=key) if launch.grid is not None and name == launch.grid.meta:
            return string_of(key) or ""
    return ""


def _number(launch: Launch, node: ast.expr, depth: int = 4) -> int | None:
    """The number that an expression is; of `min(number, ...)` the number, which it is for all large sizes."""
    if depth == 0:
        return None
    name = _meta_name(launch, node)
    if name:
        given = launch.arguments.get(name)
        if given is None:
            parameter = next((each for each in launch.kernel.parameters if each.name == name), None)
            given = parameter.default if parameter is not None and not launch.kernel.configs else None
        return None if given is None else _number(launch, given, depth - 1)
    match behind(launch.file, node):
        case ast.Constant(value=value):
            return value if type(value) is int else None
        case ast.BinOp(left=one, op=op, right=other):
            left, right = (_number(launch, each, depth - 1) for each in (one, other))
            match op, left, right:
                case ast.Mult(), int(), int():
                    return left * right
                case ast.FloorDiv(), int(), int() if right:
                    return left // right
                case ast.Pow(), 2, int() if 0 <= right < 64:
                    return 1 << right
        case ast.Call(func=ast.Name(id="min"), args=every):
            numbers = (_number(launch, each, depth - 1) for each in every)
            return min((each for each in numbers if each is not None), default=None)
    return None


def stays_small(dimensions: Sequence[GridDimension]) -> bool:
    """True for dimensions whose product no model makes large: all small, or two of small sizes and features."""
    if all(each.small for each in dimensions):
        return True
    factors = [factor for each in dimensions if each.count is None for factor in each.factors]
    return len(factors) <= 2 and all(_SMALL.match(each) or _FEATURES.match(each) for each in factors)


def loops_over_programs(launch: Launch) -> bool:
    """True for a kernel that asks how many programs there are: each takes its share, whatever the grid is."""
    return any(name == "num_programs" for _, name in launch.kernel.calls())


def with_products(launch: Launch) -> bool:
    """True for a kernel with matrix products, whose programs run on the cube cores."""
    return any(name in ("dot", "dot_scaled") for _, name in launch.kernel.calls())
