"""The forms of the portable style: what all stand on, and those of tensors and modules."""

from __future__ import annotations

import ast
from functools import cached_property

from transplt.edits.edit import Edit
from transplt.edits.helper import helper
from transplt.edits.trees.calls import calling, moved_to
from transplt.edits.trees.expressions import between
from transplt.edits.trees.transform import New, OfText
from transplt.edits.work import Work
from transplt.syntax.nodes import call_of, class_of_method, index_in, keyword_of
from transplt.syntax.scan import FUNCTIONS, parent

#: Why words of CUDA stay where the NPU's stand beside them.
BOTH = "both"
#: What an answer goes into as it is, whatever expression gives it.
_ASKING = (
    ast.If, ast.IfExp, ast.While, ast.Assert, ast.BoolOp, ast.UnaryOp, ast.Return, ast.Assign, ast.keyword,
)  # fmt: skip
#: What takes a `map_location` and hands it to torch.load.
_LOADS = (
    "torch.load", "torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url",
)  # fmt: skip


class Stays(Exception):
    """Why an edit has no form for both, and what a person does then, where that is special."""

    def __init__(self, why: str, help_: str = "") -> None:
        super().__init__(why)
        self.help = help_


class Form:
    """The edits of a file in the words of the module. `done` are nodes whose form an earlier edit has written."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.done: set[int] = set()

    def name(self, edit: Edit, name: str, *, freed: bool = False) -> str:
        """A name of the module, as this file has it."""
        said = f"{name}: the accelerator, chosen once"
        called = helper(self.work, name, group=edit.group, code="NPU261", message=said, at=edit.node, freed=freed)
        if not called.text and not self.work.project.known:
            then = f"import {name} from there, as other files do; a check of the whole project makes the edit"
            raise Stays(f"{name} of the project's module takes its place, and this file was looked at alone", then)
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

    # --- tensors and modules ----------------------------------------------------------------------------------------

    @cached_property
    def own_to(self) -> bool:
        """Whether a class of the file has a `to` of its own."""
        return any(
            isinstance(node, FUNCTIONS) and node.name == "to" and class_of_method(node) is not None
            for node in ast.walk(self.work.scan.tree)
        )

    def moved(self, edit: Edit, node: ast.Attribute) -> Edit:
        """`x.cuda()` -> `x.to(DEVICE_TYPE)`, `x.cuda(i)` -> `x.to(device(i))`: `.to(None)` would leave it there."""
        call = call_of(node)
        if call is None:
            raise Stays("it is not called here")
        if self.own_to:
            raise Stays("a class of this file has a `to` of its own")
        if isinstance(above := parent(call), ast.Lambda) and len(above.args.args) != 1:
            return self._mapped(edit, above, call)
        if any(word.arg in (None, "async") for word in call.keywords):
            raise Stays("it has an argument that .to() does not take")
        if len(call.args) > 2 or any(isinstance(each, ast.Starred) for each in call.args):
            raise Stays("its arguments are not those of .to()")
        given = keyword_of(call, "device") or (call.args[0] if call.args else None)
        name = self.name(edit, "DEVICE_TYPE" if given is None else "device")
        self.done.add(id(call))
        new = moved_to(name) if given is None else moved_to(name, with_argument=True)
        shown = f".to({name})" if given is None else f".to({name}(...))"
        return self.edit(edit, call, "NPU210", ".cuda()", shown, new)

    def numbered(self, edit: Edit, node: ast.Constant | ast.BinOp) -> Edit:
        """`x.to(0)` -> `x.to(device(0))`: below torch 2.3 a number is one of CUDA."""
        name, shown, call = self.name(edit, "device"), f"device {self.work.text(node)}", parent(node)
        if isinstance(call, ast.Call) and self.work.names.qualified(call.func) == "torch.device":
            return self.edit(edit, call, "NPU261", shown, name, calling(name))
        return self.edit(edit, node, "NPU261", shown, f"{name}(...)", between(f"{name}(", ")"))

    def _mapped(self, edit: Edit, node: ast.Lambda, call: ast.Call) -> Edit:
        """`map_location=lambda storage, loc: storage.cuda(i)` -> `map_location=device(i)`: all that is loaded goes to
        that card, and the `.to` of a storage takes no name of a device.
        """
        match node, parent(node), call:
            case (
                ast.Lambda(args=ast.arguments(args=[ast.arg(arg=first), ast.arg(arg=second)], defaults=[])),
                ast.keyword(arg="map_location") | ast.Call() as above,
                ast.Call(func=ast.Attribute(value=ast.Name(id=moved)), args=given, keywords=[]),
            ) if moved == first and len(given) <= 1:
                loads = parent(above) if isinstance(above, ast.keyword) else above
                names = {each.id for value in given for each in ast.walk(value) if isinstance(each, ast.Name)}
                second_of = isinstance(above, ast.keyword) or index_in(loads, "args", node) == 1
                full = self.work.names.qualified(loads.func) if isinstance(loads, ast.Call) else None
                if full in _LOADS and second_of and names.isdisjoint((first, second)):
                    text = f"{self.name(edit, 'device')}({', '.join(map(self.work.text, given))})"
                    return self.edit(edit, node, "NPU210", ".cuda()", text, text)
        raise Stays("what it is given may be a storage, whose .to() takes no device")

    def is_on_it(self, edit: Edit, node: ast.Attribute) -> Edit:
        above = parent(node)
        if not isinstance(above, _ASKING):
            raise Stays("its result is used in a way that transplt cannot trace")
        name = self.name(edit, "DEVICE_TYPE")
        new = OfText(lambda text: f"{text.removesuffix('is_cuda')}device.type == {name}")
        return self.edit(edit, node, "NPU211", ".is_cuda", f".device.type == {name}", new)
