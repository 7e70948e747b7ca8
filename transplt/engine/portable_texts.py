"""The portable form of texts: devices, backends, and names of environment variables."""

from __future__ import annotations

import ast
import re

from transplt.edits.edit import Beside, Edit
from transplt.edits.shared_lines import joint_before
from transplt.edits.trees.displays import with_twin
from transplt.edits.trees.expressions import followed_by, left_side
from transplt.engine.portable_form import BOTH, Form, Stays
from transplt.flow.last_value import last_value
from transplt.syntax.annotations import is_annotation
from transplt.syntax.nodes import following, is_plain, last_name, string_of
from transplt.syntax.scan import ancestor, parent, statement

#: Variables whose names the module has.
_VARIABLES = {"CUDA_VISIBLE_DEVICES": "VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING": "LAUNCH_BLOCKING"}
_NAMED = re.compile(r" -> (\w+)$")
#: Arguments of torch that are given whether the device is CUDA.
_ASKED_BY_TORCH = ("pin_memory", "non_blocking", "enabled", "persistent_workers")


class Texts(Form):
    """The forms of texts."""

    def _literal(self, node: ast.Constant) -> str:
        """The quote of a string that stands there as it is."""
        text = self.work.source.slice(*self.work.source.extent(node))
        if text[:1] not in ("'", '"') or text != f"{text[0]}{node.value!s}{text[0]}":
            raise Stays("the string is put together of parts")
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
                    raise Stays("its answer is given to a call, which may be for CUDA's kernels alone")
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
                return self.beside(edit, above, f"{value!r} alone", "'npu' beside it", new)
            case ast.Dict() if any(key is node for key in above.keys):
                raise Stays("it is a key, which others may ask for")
            case _ if value == "cuda" and _of_a_literal(node):
                twin = followed_by(f"{quote}npu{quote}")
                return self.beside(edit, node, f"{value!r} alone", "'npu' beside it", twin)
            case ast.JoinedStr() | ast.FormattedValue() | ast.MatchValue():
                raise Stays("the text around it is not a device alone")
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

    def _held(self, edit: Edit, test: ast.Compare, asks: ast.cmpop, held: str, quote: str) -> Edit:
        """A question for the word in a text that somebody gives: for either word."""
        if isinstance(asks, ast.NotIn):
            raise Stays(f'{held} comes from elsewhere: ask for "npu" beside it')
        text = f"{quote}cuda{quote} in {held} or {quote}npu{quote} in {held}"
        text = text if isinstance(parent(test), (ast.If, ast.IfExp, ast.Return, ast.Assign)) else f"({text})"
        return self.beside(edit, test, f"'cuda' in {held}", text, text)

    def _is_text_here(self, node: ast.expr) -> bool:
        """True for a variable that the file itself sets to a text: nobody gives it another device."""
        return isinstance(node, ast.Name) and string_of(last_value(self.work.scan, node)) is not None

    def backend(self, edit: Edit, node: ast.Constant, value: str) -> Edit:
        quote, above = self._literal(node), parent(node)
        if isinstance(above, (ast.List, ast.Tuple, ast.Set)) and value == "nccl" and _admits(above):
            twin = with_twin(f"{quote}nccl{quote}", f"{quote}hccl{quote}")
            return self.beside(edit, above, "'nccl' alone", "'hccl' beside it", twin)
        if _in_annotation(node) or (isinstance(above, ast.Dict) and any(key is node for key in above.keys)):
            raise Stays("it has to be written out here")
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
                if "\n" in line or self.work.text(whole).count(value) != 1 or self._shares_line(whole):
                    raise Stays("the statement cannot be repeated as it is")
                if value not in _VARIABLES and self._reads(value):
                    raise Stays("the file reads it as well")
                said = f"{found[1]} is set beside {value}"
                self.work.add(self.work.keep(whole, BOTH))
                return [Edit(Beside(whole, below=True), "NPU220", said, line, group=edit.group)]
            case ast.Subscript(ctx=ast.Load()), ast.Assign() if found[1] in self.work.text(whole):
                self.work.add(self.work.keep(node, BOTH))
                return []
            case ast.Subscript(ctx=ast.Load()) | ast.Call() | ast.Compare(), _ if value in _VARIABLES:
                if isinstance(above, ast.Call) and last_name(above.func) not in ("get", "getenv", "pop"):
                    raise Stays("it is set by a call")
                name = self.name(edit, _VARIABLES[value])
                return [self.edit(edit, node, "NPU220", f"environment variable {value}", name, name)]
        raise Stays("what reads it is not known")

    def _reads(self, variable: str) -> bool:
        """Whether the file names a variable somewhere but where it is set."""
        strings = (each for each in self.work.scan.strings if isinstance(each, ast.Constant) and each.value == variable)
        return any(not isinstance(getattr(parent(each), "ctx", None), ast.Store) for each in strings)

    def _shares_line(self, node: ast.stmt) -> bool:
        return any(joint_before(self.work.source, each) for each in (node, *following(node)[:1]))


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
        raise Stays("it is a type, which has to be written out")
    kind, _, rest = value.partition("cuda")
    if kind:
        raise Stays("the text around it is not a device alone")
    if rest and isinstance(ancestor(node, (ast.JoinedStr, ast.stmt), "_text"), ast.JoinedStr):
        raise Stays("a text inside of another one needs Python 3.12")
    return rest


def _in_annotation(node: ast.AST) -> bool:
    """True for a part of an annotation, such as `Literal["cuda"]`."""
    while isinstance(node, ast.expr):
        if is_annotation(node):
            return True
        node = parent(node)
    return False
