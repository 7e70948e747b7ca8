"""What all forms of the portable style stand on: the names of the project's module, as a file has them."""

from __future__ import annotations

import ast

from transplt.edits.edit import Edit
from transplt.edits.helper import helper
from transplt.edits.trees.transform import New
from transplt.edits.work import Work

#: Why words of CUDA stay where the NPU's stand beside them.
BOTH = "both"


class Stays(Exception):
    """Why an edit has no form for both."""


class Form:
    """The edits of a file in the words of the module. `done` are nodes whose form an earlier edit has written."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done: set[int] = set()

    def name(self, edit: Edit, name: str, *, freed: bool = False) -> str:
        """A name of the module, as this file has it."""
        said = f"{name}: the accelerator, chosen once"
        called = helper(self.work, name, group=edit.group, code="NPU261", message=said, at=edit.node, freed=freed)
        if not called.text:
            raise Stays("the project's module lacks it" if called.found else "the file would not find the module")
        bound = self.work.names.lookup(called.text, self.work.scan.scope_of(edit.node))
        if not freed and bound is not None and bound[0] is not self.work.scan.root:
            raise Stays(f"{called.text} is something else in this function")
        for each in called.found:
            self.work.add(each)
        return called.text

    def edit(self, edit: Edit, node: ast.expr | ast.stmt, code: str, old: str, new: str, change: New) -> Edit:
        return Edit(node, code, f"{old} -> {new}", change, edit.level, edit.api, edit.help, group=edit.group)

    def beside(self, edit: Edit, node: ast.expr, old: str, new: str, change: New) -> Edit:
        """A form that leaves the word of CUDA, and puts that of the NPU beside it."""
        self.work.add(self.work.keep(node, BOTH))
        return self.edit(edit, node, "NPU262", old, new, change)
