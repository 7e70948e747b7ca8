"""The forms of the portable style for tensors, modules and texts: devices, backends, environment variables."""

from __future__ import annotations

import ast
import builtins
import re
from functools import cached_property
from typing import TypeGuard

from transplt.edits.edit import Beside, Edit
from transplt.edits.helper import helper
from transplt.edits.shared_lines import joint_before
from transplt.edits.trees.calls import moved_to
from transplt.edits.trees.displays import with_twin
from transplt.edits.trees.expressions import followed_by, left_side
from transplt.edits.trees.transform import New, OfText
from transplt.edits.work import Work
from transplt.engine.files.notebook.program import MARK
from transplt.flow.last_value import last_value
from transplt.syntax.annotations import is_annotation
from transplt.syntax.files import File
from transplt.syntax.nodes import (
    begins,
    call_of,
    class_of_method,
    following,
    index_in,
    is_plain,
    keyword_of,
    last_name,
    string_of,
)  # fmt: skip
from transplt.syntax.scan import FUNCTIONS, ancestor, parent, statement

_BETWEEN = re.compile(rb"\r?\n%s\r?\n" % MARK.encode())
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
#: Variables whose names the module has.
_VARIABLES = {"CUDA_VISIBLE_DEVICES": "VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING": "LAUNCH_BLOCKING"}
#: Where a program sets its cards after they were counted.
_LATE = (
    "every process takes card 0 on an NPU: call device_module.set_device() there, or set {} before the program starts"
)
_NAMED = re.compile(r" -> (\w+)$")
#: Arguments of torch that are given whether the device is CUDA.
_ASKED_BY_TORCH = ("pin_memory", "non_blocking", "enabled", "persistent_workers")


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
        if any(edit.node.lineno in lines for lines in self.alone):
            raise Stays("this cell imports what it needs, and may be run alone", "choose the device in it, as above")
        called = helper(self.work, name, group=edit.group, code="NPU261", message=said, at=edit.node, freed=freed)
        if not called.text and not self.work.project.known:
            then = f"import {name} from the module, as other files do; a check of the whole project makes this edit"
            raise Stays(f"the project's module has {name} for this, and only this file was checked", then)
        if not called.text:
            raise Stays("the module lacks it" if called.found else "the project's module cannot be imported here")
        bound = self.work.names.lookup(called.text, self.work.scan.scope_of(edit.node))
        if not freed and bound is not None and bound[0] is not self.work.scan.root:
            raise Stays(f"{called.text} is something else in this function")
        for each in called.found:
            self.work.add(each)
        return called.text

    @cached_property
    def alone(self) -> list[range]:
        """The lines of cells of a notebook that import torch once more, read nothing of other cells, and define nothing
        that those read."""
        found, line, seen = [], 1, False
        texts = _BETWEEN.split(self.work.source.utf8) if self.work.scan.path.endswith(".ipynb") else ()
        scans = [File.of("cell.py", text).scan for text in texts]
        asked = {name for scan in scans for name in scan.names if not scan.binds(name)}
        handed = [name for name in asked if sum(scan.binds(name) for scan in scans) == 1]
        for text, scan in zip(texts, scans, strict=True):
            lines = text.count(b"\n")
            whole = all(scan.binds(name) or hasattr(builtins, name) for name in scan.names)
            if seen and whole and scan.binds("torch") and not any(scan.binds(name) for name in handed):
                found.append(range(line, line + lines + 1))
            seen = seen or scan.binds("torch")
            line += lines + 2  # of the mark
        return found

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
            raise Stays("a class of this file has its own `to`")
        if isinstance(above := parent(call), ast.Lambda) and len(above.args.args) != 1:
            return self._mapped(edit, above, call)
        if any(word.arg in (None, "async") for word in call.keywords):
            raise Stays("it has an argument that .to() does not have")
        if len(call.args) > 2 or any(isinstance(each, ast.Starred) for each in call.args):
            raise Stays("its arguments are not those of .to()")
        given = keyword_of(call, "device") or (call.args[0] if call.args else None)
        if given is not None and self._is_device(given):
            self.done.add(id(call))
            as_it_is = moved_to("", with_argument=True)
            return self.edit(edit, call, "NPU210", ".cuda()", f".to({self.work.text(given)})", as_it_is)
        name = self.name(edit, "DEVICE_TYPE" if given is None else "device")
        self.done.add(id(call))
        shown = f".to({name})" if given is None else f".to({name}(...))"
        made = self._is_made(given) and len(given.args) == 1 and not given.keywords
        change = moved_to(name, with_argument=given is not None, made=made)
        return self.edit(edit, call, "NPU210", ".cuda()", shown, change)

    def _is_device(self, node: ast.expr) -> bool:
        """True for a torch.device: a name that its function, or the file, sets once to one, a private attribute that
        the file sets to nothing else, and one that is made of a text.
        """
        match node:
            case ast.Name():
                bound = self.work.names.lookup(node.id, self.work.scan.scope_of(node))
                stores = [each.node for each in bound[1]] if bound is not None else []
                stores = stores if len(stores) == 1 else []
            case ast.Attribute(attr=attr) if attr[:1] == "_":
                stores = [each for each in self.work.scan.attributes.get(attr, ()) if isinstance(each.ctx, ast.Store)]
            case _:
                return self._is_made(node) and bool(node.args) and string_of(node.args[0]) is not None
        above = [parent(each) for each in stores]
        return bool(above) and all(isinstance(each, ast.Assign) and self._is_made(each.value) for each in above)

    def _is_made(self, node: ast.expr | None) -> TypeGuard[ast.Call]:
        """True for a call of torch.device."""
        return isinstance(node, ast.Call) and self.work.names.qualified(node.func) == "torch.device"

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
        raise Stays("its value may be a storage, whose .to() takes no device")

    def is_on_it(self, edit: Edit, node: ast.Attribute) -> Edit:
        above = parent(node)
        if not isinstance(above, _ASKING):
            raise Stays("its result is used in a way that transplt cannot trace")
        name = self.name(edit, "DEVICE_TYPE")
        new = OfText(lambda text: f"{text.removesuffix('is_cuda')}device.type == {name}")
        return self.edit(edit, node, "NPU211", ".is_cuda", f".device.type == {name}", new)

    # --- texts ------------------------------------------------------------------------------------------------------

    def _literal(self, node: ast.Constant) -> str:
        """The quote of a string that stands there as it is."""
        text = self.work.source.slice(*self.work.source.extent(node))
        if text[:1] not in ("'", '"') or text != f"{text[0]}{node.value!s}{text[0]}":
            raise Stays("the string is built from parts")
        return text[0]

    def device_string(self, edit: Edit, node: ast.Constant, value: str) -> Edit:
        quote, above = self._literal(node), parent(node)
        shown = f"device string {value!r}"
        match above:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as asks], comparators=[right]) if (
                right is node and value == "cuda"
            ):
                given_to = parent(above)
                if isinstance(given_to, ast.keyword) and given_to.arg not in _ASKED_BY_TORCH:
                    raise Stays("its result goes to a call, which may only be for CUDA kernels")
                word = "in" if isinstance(asks, ast.Eq) else "not in"
                tail = f" {word} ({quote}cuda{quote}, {quote}npu{quote})"
                text = self.work.source.slice(*self.work.source.extent(left))
                return self.beside(edit, above, f"{text} == 'cuda'", f"{text}{tail}", left_side(tail))
            case ast.Compare(ops=[ast.In() | ast.NotIn() as asks], comparators=[given]) if (
                above.left is node and value == "cuda" and is_plain(given) and not self._is_text_here(given)
            ):
                return self._held(edit, above, asks, self.work.text(given), quote)
            case ast.List() | ast.Tuple() | ast.Set() if value == "cuda" and _admits(above):
                self.done.update(map(id, above.elts))
                new = with_twin(f"{quote}{value}{quote}", f"{quote}npu{quote}")
                return self.beside(edit, above, f"{value!r} alone", "'npu' added", new)
            case ast.Dict() if any(key is node for key in above.keys):
                raise Stays("it is a key, which other code may read")
            case _ if value == "cuda" and _of_a_literal(node):
                twin = followed_by(f"{quote}npu{quote}")
                return self.beside(edit, node, f"{value!r} alone", "'npu' added", twin)
            case ast.JoinedStr() | ast.FormattedValue() | ast.MatchValue():
                raise Stays("the text contains more than a device")
        rest = _behind_cuda(node, value)
        name = self.name(edit, "DEVICE_TYPE")
        match above, parent(above):
            case ast.Attribute(attr="format"), (ast.Call(args=[given], keywords=[]) as call) if (
                rest in (":{}", ":{0}") and is_plain(given) and quote not in (said := self.work.text(given))
            ):
                text = f"f{quote}{{{name}}}:{{{said}}}{quote}"
                return self.edit(edit, call, "NPU261", shown, text, text)
        braced = rest.replace("{", "{{").replace("}", "}}")
        text = f"f{quote}{{{name}}}{braced}{quote}" if rest else name
        return self.edit(edit, node, "NPU261", shown, text, text)

    def _is_text_here(self, node: ast.expr) -> bool:
        """True for a variable that the file itself sets to a text: nobody gives it another device."""
        return isinstance(node, ast.Name) and string_of(last_value(self.work.scan, node)) is not None

    def _held(self, edit: Edit, test: ast.Compare, asks: ast.cmpop, held: str, quote: str) -> Edit:
        """A question for the word in a text that somebody gives: for either word."""
        if isinstance(asks, ast.NotIn):
            raise Stays(f'{held} comes from elsewhere: also test for "npu"')
        text = f"{quote}cuda{quote} in {held} or {quote}npu{quote} in {held}"
        text = text if isinstance(parent(test), (ast.If, ast.IfExp, ast.Return, ast.Assign)) else f"({text})"
        return self.beside(edit, test, f"'cuda' in {held}", text, text)

    def backend(self, edit: Edit, node: ast.Constant, value: str) -> Edit:
        quote, above = self._literal(node), parent(node)
        if value == "nccl" and _of_a_literal(node):
            return self.beside(edit, node, "'nccl' alone", "'hccl' added", followed_by(f"{quote}hccl{quote}"))
        if isinstance(above, (ast.List, ast.Tuple, ast.Set)) and value == "nccl" and _admits(above):
            twin = with_twin(f"{quote}nccl{quote}", f"{quote}hccl{quote}")
            return self.beside(edit, above, "'nccl' alone", "'hccl' added", twin)
        if _in_annotation(node) or (isinstance(above, ast.Dict) and any(key is node for key in above.keys)):
            raise Stays("a literal is needed here")
        name = self.name(edit, "DIST_BACKEND")
        if value == "nccl":
            return self.edit(edit, node, "NPU301", "backend 'nccl'", name, name)
        parts = value.replace("cuda:", f"{{{self.name(edit, 'DEVICE_TYPE')}}}:").replace("nccl", f"{{{name}}}")
        text = f"f{quote}{parts}{quote}"
        return self.edit(edit, node, "NPU301", f"backend {value!r}", text, text)

    def variable(self, edit: Edit, node: ast.Constant, value: str) -> list[Edit]:
        """What is read is the variable of the accelerator; where it is set, both are."""
        quote, above = self._literal(node), parent(node)
        found = _NAMED.search(edit.message)
        if found is None:
            raise Stays("its value means something else on an NPU")
        whole = statement(node)
        match above, whole:
            case ast.Subscript(ctx=ast.Store()), ast.Assign(targets=[target]) if target is above:
                if found[1].encode() in self.work.source.utf8:  # somebody has seen to it
                    self.work.add(self.work.keep(node, BOTH))
                    return []
                text, place = self.work.text(whole), self.work.text(target)
                if "\n" in text:
                    text = f"{place} = {place}"  # what the lines come to is not worked out twice
                line = text.replace(f"{quote}{value}{quote}", f"{quote}{found[1]}{quote}", 1)
                self._see_that_it_can_be_repeated(whole, line, value, found[1])
                said = f"{found[1]} is set as well as {value}"
                self.work.add(self.work.keep(whole, BOTH))
                return [Edit(Beside(whole, below=True), "NPU220", said, line, group=edit.group)]
            case ast.Subscript(ctx=ast.Load()), ast.Assign() if found[1] in self.work.text(whole):
                self.work.add(self.work.keep(node, BOTH))
                return []
            case ast.Subscript(ctx=ast.Load()) | ast.Call() | ast.Compare(), _ if value in _VARIABLES:
                if isinstance(above, ast.Call) and last_name(above.func) not in ("get", "getenv", "pop"):
                    raise Stays("a call sets it")
                late = next((line for line in self._stores(value) if self._asked_before(line)), None)
                if late is not None:
                    raise Stays(f"line {late.lineno} sets it, and stays as it is", _LATE.format(found[1]))
                name = self.name(edit, _VARIABLES[value])
                return [self.edit(edit, node, "NPU220", f"environment variable {value}", name, name)]
        raise Stays("the code that reads it was not found")

    def _see_that_it_can_be_repeated(self, whole: ast.stmt, line: str, value: str, new: str) -> None:
        """Stays, where a statement that sets a variable cannot stand again below itself for the other one."""
        shared = any(joint_before(self.work.source, each) for each in (whole, *following(whole)[:1]))
        if "\n" in line or self.work.text(whole).count(value) != 1 or shared:
            raise Stays("the statement cannot be repeated")
        named = [each for each in self.work.scan.strings if getattr(each, "value", None) == value]
        if value not in _VARIABLES and len(self._stores(value)) < len(named):
            raise Stays("the file also reads it")
        if value in _VARIABLES and (asked := self._asked_before(whole)):
            raise Stays(f"{asked} has asked for a card by then, and CANN reads it once", _LATE.format(new))

    def _stores(self, value: str) -> list[ast.stmt]:
        """The statements of the file that store under this name."""
        named = (each for each in self.work.scan.strings if getattr(each, "value", None) == value)
        return [statement(each) for each in named if isinstance(getattr(parent(each), "ctx", None), ast.Store)]

    def _asked_before(self, node: ast.stmt) -> str:
        """What asks for a card above a statement outside of all functions; counting them reads nothing. A function runs
        after the module has counted them, for which older torch_npu ask CANN (THNPModule_getDeviceCount_wrap).
        """
        at, scope = begins(node), self.work.scan.scope_of(node)
        if scope is not self.work.scan.root:
            return "the module"
        for call in self.work.scan.calls:
            full = self.work.names.qualified(call.func) or ""
            asks = full.startswith("torch.cuda.") or ".device_module." in full
            above = begins(call) < at and self.work.scan.scope_of(call) is scope
            if asks and above and not full.endswith((".device_count", ".manual_seed_all")):
                return f"line {call.lineno}"
        return ""


def _admits(display: ast.List | ast.Tuple | ast.Set) -> bool:
    """True for what a value may be one of: `in ("cuda", "mps")`, `choices=["cpu", "cuda"]`."""
    above = parent(display)
    if isinstance(above, ast.Compare):
        return isinstance(above.ops[-1], (ast.In, ast.NotIn)) and above.comparators[-1] is display
    return isinstance(above, ast.keyword) and above.arg == "choices"


def _of_a_literal(node: ast.expr) -> bool:
    """True for a value of `Literal["cpu", "cuda"]`."""
    match parent(node), parent(parent(node)):
        case (ast.Subscript(value=called), _) | (ast.Tuple(), ast.Subscript(value=called)):
            return last_name(called) == "Literal"
    return False


def _behind_cuda(node: ast.Constant, value: str) -> str:
    """What stands behind the word in the text of a device: `:0`."""
    if _in_annotation(node):
        raise Stays("it is a type, which needs a literal")
    kind, _, rest = value.partition("cuda")
    if kind:
        raise Stays("the text contains more than a device")
    if rest and isinstance(ancestor(node, (ast.JoinedStr, ast.stmt), "_text"), ast.JoinedStr):
        raise Stays("a text inside another one needs Python 3.12")
    return rest


def _in_annotation(node: ast.AST) -> bool:
    """True for a part of an annotation, such as `Literal["cuda"]`."""
    while isinstance(node, ast.expr):
        if is_annotation(node):
            return True
        node = parent(node)
    return False
