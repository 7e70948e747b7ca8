"""A device that a test expects moves with the text that gives it, or not at all.

`opts = parse(["--device=cuda:0"])` hands a text to code that nobody follows, and stays; then
`assert opts["device"] == "cuda:0"` must not ask for an NPU. Runs after the fixers of strings.
"""

from __future__ import annotations

import ast

from transplt.base.finding import Effort
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.program.program import enclosing_function
from transplt.syntax.nodes import last_name, string_of
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU203", rank=605, needs=(b"assert",))


@fixer.on(ast.Module)
def expected_devices(work: Work, tree: ast.Module) -> Finds:
    """Take back the edits of devices that are expected where the same device stands in a text that stays."""
    expected = [edit for edit in work.rewrites if edit.code == "NPU201" and not edit.user and _is_expected(edit.node)]
    if not expected:
        return
    open_ = {note.extent for note in work.notes}
    left = [node for node in work.scan.strings if work.source.extent(node) in open_]
    back: set[int] = set()
    for edit in expected:
        value, function = string_of(edit.node), enclosing_function(edit.node)
        if value is None:
            continue
        here = [string_of(each) or "" for each in left if enclosing_function(each) is function]
        if not any(text == value or text.endswith(f"={value}") for text in here):  # `--device=cuda:0`
            continue
        back.add(id(edit))
        assert isinstance(edit.node, ast.expr)
        yield work.note(
            edit.node,
            fixer.code,
            f"{value!r} is expected here, and the string that sets it is not changed",
            api=edit.api,
            help="write npu in both, or change neither",
            effort=Effort.LOW,
        )
    if back:
        work.withdraw_edits(lambda edit: id(edit) in back)


def _is_expected(node: ast.AST) -> bool:
    """True for one side of a comparison that is asserted, and an argument of `assertEqual`."""
    above = parent(node)
    if isinstance(above, ast.Call):
        return node in above.args and last_name(above.func).startswith("assert")
    while isinstance(above, (ast.Compare, ast.BoolOp)):
        above = parent(above)
    return isinstance(above, ast.Assert)
