"""`x.data[0]` of a tensor without dimensions ("invalid index of a 0-dim tensor", torch 0.5): `x.item()`.

A value that is followed to `torch.mean(...)` and the like, through variables and lists that a comprehension makes of
them, has none. One whose `backward()` is called without a gradient has one element, with or without a dimension. A loss
that only its name tells is reported.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Level
from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.transform import OfText
from transplt.edits.work import Work
from transplt.flow.last_value import nearest_binding
from transplt.program.followed_values import Traced
from transplt.program.program import File, program_of
from transplt.syntax.nodes import keyword_of, last_name
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU293", rank=366, needs=(b".data[0]",), words=(".data[0]",))

#: Reductions that leave no dimension where they are given none.
_REDUCE = frozenset({"mean", "sum", "prod", "norm"})


class _Scalars(Traced):
    """The tensors without dimensions of a program."""

    def made(self, file: File, node: ast.expr) -> bool:
        """True for a reduction over all, and for an element of a list of such."""
        if not isinstance(node, ast.Call) or node.keywords:
            return False
        full = file.names.qualified(node.func)
        if full is None:
            method = isinstance(node.func, ast.Attribute) and not node.args
            return method and last_name(node.func) in _REDUCE
        return full.rpartition(".")[0] == "torch" and last_name(node.func) in _REDUCE and len(node.args) == 1

    def item(self, file: File, node: ast.Subscript) -> bool:
        """True for an element of a list in which all are such."""
        return isinstance(node.slice, ast.Constant) and self.are(file, node.value)

    def are(self, file: File, node: ast.expr) -> bool:
        """True for a list that a comprehension, or a display, makes of them."""
        match node:
            case ast.Name():
                nearest = nearest_binding(file.scan, node)
                above = parent(nearest) if isinstance(nearest, ast.Name) else None
                return isinstance(above, ast.Assign) and above.value is not node and self.are(file, above.value)
            case ast.ListComp(elt=each):
                return self.is_one(file, each)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return bool(elements) and all(self.is_one(file, each) for each in elements)
        return False


@fixer.on(ast.Subscript)
def first_of_a_scalar(work: Work, node: ast.Subscript) -> Finds:
    """Write `.item()` for `.data[0]` of a value that has one element; report a loss of which this is not known."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=value, attr="data"), slice=ast.Constant(value=0), ctx=ast.Load()):
            scalars = work.once(_scalars)
            message = "since torch 0.4 a loss or a reduction is a scalar tensor: [0] raises an error"
            bindings = work.names.bindings_of(value)
            walk = parent(bindings[0].node) if len(bindings) == 1 else None  # it may give each of a list of scalars
            certain = scalars.is_one(work.file, value) or (
                isinstance(walk, (ast.comprehension, ast.For)) and scalars.are(work.file, walk.iter)
            )
            if certain or (id(work.scan.scope_of(value)), work.text(value)) in work.once(_driven):
                level = Level.SAFE if certain else Level.UNSAFE
                item = OfText(lambda text: f"{text[: text.rindex('.data')].rstrip()}.item()")
                yield Edit(node, fixer.code, f".data[0] -> .item(): {message}", item, level, "torch.Tensor.data")
            elif last_name(value).lower().endswith("loss"):
                yield work.note(node, fixer.code, message, api="torch.Tensor.data", help="write .item()")


def _driven(work: Work) -> set[tuple[int, str]]:
    """The scope and text of each `x` in `x.backward()`: torch refuses more than one element there."""
    return {
        (id(work.scan.scope_of(call)), work.text(call.func.value))
        for call in work.scan.calls_by_last_name(("backward",))
        if isinstance(call.func, ast.Attribute) and not call.args and not keyword_of(call, "gradient")
    }


def _scalars(work: Work) -> _Scalars:
    return _Scalars(program_of([work.file], work.project))
