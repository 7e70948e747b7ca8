"""The portable style: one module of the project chooses the accelerator, and edits replace names by names of it.

The fixers plan as for NPUs alone; then each edit becomes one in the words of that module (transplt/helper/
accelerator.py), or a finding that says what a person decides. On CUDA and on a CPU the module's names are those of
torch.cuda, and "cuda": an edit there is the call that stood there, with the same arguments. So nothing has to be
refused for CUDA's sake, whatever torch the project admits; what torch.npu lacks in a version of it is.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property

from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.edit import Beside, Edit
from transplt.edits.helper import complete, helper
from transplt.edits.ignores import Ignores
from transplt.edits.shared_lines import joint_before
from transplt.edits.trees.calls import calling, moved_to, one_after_the_other, with_first, with_named
from transplt.edits.trees.displays import with_twin
from transplt.edits.trees.expressions import followed_by, left_side
from transplt.edits.trees.names import names_imported
from transplt.edits.trees.transform import New, OfText, Transform
from transplt.edits.work import Work
from transplt.engine.analysis.known_apis import existing
from transplt.engine.portable_imports import Taken, taken_by, without
from transplt.fixers.codemods.data_parallel import REPLICA_NAMES, REPLICAS, for_cuda_alone
from transplt.fixers.codemods.grad_scalers import is_type
from transplt.fixers.codemods.rename import needed_import
from transplt.flow.last_value import last_value
from transplt.rules.since import may_be_older
from transplt.rules.versions import oldest_held, version_key
from transplt.syntax.annotations import is_annotation
from transplt.syntax.nodes import (
    call_of,
    class_of_method,
    following,
    index_in,
    inner_nodes,
    keyword_of,
    last_name,
    string_of,
)  # fmt: skip
from transplt.syntax.scan import FUNCTIONS, ancestor, chain, parent, statement

#: Changes that hold everywhere: they keep what is there beside what they add, or need no card.
_EVERYWHERE = ("NPU153", "NPU159", "NPU230", "NPU293", "NPU313")
#: Names of torch.cuda that stand for a name of torch itself, and become it: the same class since torch 2.5.
_ALIASES = ("torch.cuda.OutOfMemoryError",)
_BOTH = "both"
_AUTOCAST = ("torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast")
_SCALER = ("torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler")
#: Decorators that are functions of the module: below torch 2.4 each device has its own.
_CUSTOM = ("torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd")
#: Questions that are asked before a batch is divided among the cards of a process, which NPUs do not do.
_OF_REPLICAS = ("torch.cuda.device_count", "torch.Tensor.is_cuda")
#: What is of CUDA's libraries: a choice that asks for it is for CUDA as a whole.
_OF_CUDA = ("torch.version.cuda", "torch.cuda.nccl.")
#: What an answer goes into as it is, whatever expression gives it.
_ASKING = (
    ast.If, ast.IfExp, ast.While, ast.Assert, ast.BoolOp, ast.UnaryOp, ast.Return, ast.Assign, ast.keyword,
)  # fmt: skip
#: The arguments of torch.cuda.amp.autocast, which torch.autocast has in another order.
_OF_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_SCALER_OF_TORCH = "2.3"
#: The first torch with torch.autocast.
_AUTOCAST_OF_TORCH = "1.10"
_CUDA_ACTIVITY = "torch.profiler.ProfilerActivity.CUDA"
_BACKEND = ("torch.distributed.Backend.NCCL", "torch.distributed.distributed_c10d.Backend.NCCL")
#: What a name of the module stands for.
_REPLACED = {
    **{each: each.rpartition(".")[2] for each in _CUSTOM}, **dict.fromkeys(_BACKEND, "DIST_BACKEND"),
}  # fmt: skip
_HAS_BACKEND = ("torch.distributed.is_nccl_available", "torch.distributed.distributed_c10d.is_nccl_available")
#: torch has a question for a backend of any name.
_IS_BACKEND_AVAILABLE = "2.1"
#: Variables whose names the module has.
_VARIABLES = {"CUDA_VISIBLE_DEVICES": "VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING": "LAUNCH_BLOCKING"}
#: What takes a `map_location` and hands it to torch.load.
_LOADS = (
    "torch.load", "torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url",
)  # fmt: skip
_NAMED = re.compile(r" -> (\w+)$")
#: What a person does with what stays, by the code of what it would have been for NPUs alone.
_HELP = {
    "NPU103": "call torch.autocast or the scaler with DEVICE_TYPE where it is used, not under another name",
    "NPU104": 'guard it with `if DEVICE_TYPE == "cuda":`: the allocator of an NPU has no such function',
    "NPU106": "seed by torch.manual_seed, which seeds every accelerator, or write the function for each device",
    "NPU107": 'capture a graph only where DEVICE_TYPE is "cuda", and run the function itself elsewhere',
    "NPU109": "give dtype= and device=DEVICE_TYPE in place of the tensor type",
    "NPU111": "choose by DIST_BACKEND of the module",
    "NPU125": "set torch.set_default_dtype and torch.set_default_device(DEVICE_TYPE) in place of the tensor type",
    "NPU130": "choose the profiler by DEVICE_TYPE: torch.profiler on CUDA, torch_npu.profiler on an NPU",
    "NPU201": "build the device from DEVICE_TYPE of the module where this text is made",
    "NPU202": 'let the choices admit "npu" beside "cuda"',
    "NPU203": "let the text name the device by DEVICE_TYPE",
    "NPU205": "give dtype= and device= in place of the name of a tensor type",
    "NPU210": "move it by .to(DEVICE_TYPE)",
    "NPU211": "ask for .device.type == DEVICE_TYPE",
    "NPU220": "set the variable of the NPU beside that of CUDA, or read VISIBLE_DEVICES of the module",
    "NPU301": "give DIST_BACKEND of the module",
}
_OTHER = "choose by DEVICE_TYPE of the module which of the two is called"


class _Stays(Exception):
    """Why an edit has no form for both."""


def adapt(work: Work) -> None:
    """Turn planned changes into portable ones or into findings; lines and edits apart of a theme stay."""
    planned = [edit for edit in work.rewrites if not edit.apart]
    planned.sort(key=lambda edit: not isinstance(edit.node, (ast.Import, ast.ImportFrom)))  # they take their uses along
    work.edits = [edit for edit in work.edits if edit.group and (edit.apart or not edit.rewrites)]
    complete(work)
    forms = _Forms(work, {id(edit.node) for edit in planned})
    for edit in planned:
        if not edit.group:  # an import of the module goes in with the edit that needs it
            edit.group = f"portable {edit.node.lineno}:{edit.node.col_offset}"
        try:
            new = forms.of(edit)
        except _Stays as why:
            message = f"not portable: {edit.message}: {why}"
            work.add(work.note(edit.node, edit.code, message, api=edit.api, help=_HELP.get(edit.code, _OTHER)))
        else:
            for each in new:
                work.add(each)


class _Forms:
    """The portable form of each edit of a file. `done` are nodes whose form an earlier edit has written, `planned`
    those that have an edit of their own.
    """

    def __init__(self, work: Work, planned: set[int]) -> None:
        self.work = work
        self.planned = planned
        self.oldest = oldest_held(work.settings.torch_version, work.settings.oldest_torch)
        self.own_autocast = may_be_older(dict(work.settings.pins).get("torch", ""), _AUTOCAST_OF_TORCH)
        self.done: set[int] = set()
        self.asked: dict[ast.BoolOp, ast.Attribute | None] = {}  # by a chain of `and`

    @cached_property
    def own_to(self) -> bool:
        """Whether a class of the file has a `to` of its own."""
        return any(
            isinstance(node, FUNCTIONS) and node.name == "to" and class_of_method(node) is not None
            for node in ast.walk(self.work.scan.tree)
        )

    def of(self, edit: Edit) -> list[Edit]:
        """The edits in its place; none where another one has done it. _Stays where there is none."""
        node = edit.node
        if edit.user or edit.code in _EVERYWHERE or edit.api in _ALIASES:
            return [edit]
        if self.work.once(Ignores).reason(edit.code, node.lineno, node.end_lineno or node.lineno):
            raise _Stays("a comment, or the settings, say so")
        if id(node) in self.done:
            return []
        if edit.api in _OF_REPLICAS and (calls := _guarded_replicas(node)):
            if not any(self.work.names.qualified(each.func) in REPLICAS for each in calls):
                self.work.add(self.work.keep(node, "cuda-side"))
            return []  # that of torch has its finding, at the question
        if id(node) in self.planned and any(map(for_cuda_alone, chain(node))):
            self.work.add(self.work.keep(node, "cuda-side"))
            return []
        if (asked := self._asked_of_cuda(node)) is not None:
            raise _Stays(f"it is one answer with {self.work.text(asked)}, which is of CUDA alone")
        return self._form(edit, node)

    def _asked_of_cuda(self, node: ast.AST) -> ast.Attribute | None:
        """What only CUDA answers, in a chain of `and` around a node."""
        for each in chain(node):
            if isinstance(each, ast.BoolOp) and isinstance(each.op, ast.And):
                if each not in self.asked:
                    names = (name for name in ast.walk(each) if isinstance(name, ast.Attribute))
                    of_cuda = (name for name in names if (self.work.names.qualified(name) or "").startswith(_OF_CUDA))
                    self.asked[each] = next(of_cuda, None)
                if (found := self.asked[each]) is not None:
                    return found
        return None

    def _form(self, edit: Edit, node: ast.expr | ast.stmt | ast.arg) -> list[Edit]:
        """What is written for both, by what the edit is."""
        match edit.code, node:
            case _, ast.Import() | ast.ImportFrom():
                return self._imported(edit, node)
            case "NPU103", ast.Attribute() | ast.Name() if edit.api in (*_AUTOCAST, *_SCALER):
                return [self._amp(edit, node)]
            case _, ast.Attribute() | ast.Name() if edit.api in _REPLACED:
                return [self._replaced(edit, node, _REPLACED[edit.api])]
            case "NPU111", ast.Attribute(value=value) if edit.api in _HAS_BACKEND:
                return [self._asks_for_backend(edit, node, value)]
            case "NPU130", ast.Attribute() | ast.Name():
                return [self._profiler(edit, node)]
            case "NPU201", ast.Constant(value=str(value)):
                return [self._device_string(edit, node, value)]
            case "NPU201", ast.JoinedStr():
                name = self._name(edit, "DEVICE_TYPE")
                of_text = OfText(lambda text: re.sub(r"^(\w*[\"']{1,3})cuda", rf"\1{{{name}}}", text))
                return [self._edit(edit, node, "NPU261", edit.api, f"f'{{{name}}}:...'", of_text)]
            case "NPU210", ast.Attribute(attr="cuda"):
                return [self._moved(edit, node)]
            case "NPU247", ast.Constant(value=int(number)):
                return [self._numbered(edit, node, f"{number}")]
            case "NPU211", ast.Attribute(attr="is_cuda"):
                return [self._is_on_it(edit, node)]
            case "NPU220", ast.Constant(value=str(value)):
                return self._variable(edit, node, value)
            case "NPU301", ast.Constant(value=str(value)):
                return [self._backend(edit, node, value)]
            case _, ast.Attribute() | ast.Name() if f"{edit.api}.".startswith("torch.cuda."):
                return [self._of_namespace(edit, node)]
        raise _Stays("there is no form of it for both")

    def _name(self, edit: Edit, name: str, *, freed: bool = False) -> str:
        """A name of the module, as this file has it."""
        said = f"{name}: the accelerator, chosen once"
        called = helper(self.work, name, group=edit.group, code="NPU261", message=said, at=edit.node, freed=freed)
        if not called.text:
            raise _Stays("the project's module lacks it" if called.found else "the file would not find the module")
        bound = self.work.names.lookup(called.text, self.work.scan.scope_of(edit.node))
        if not freed and bound is not None and bound[0] is not self.work.scan.root:
            raise _Stays(f"{called.text} is something else in this function")
        for each in called.found:
            self.work.add(each)
        return called.text

    def _edit(self, edit: Edit, node: ast.expr | ast.stmt, code: str, old: str, new: str, change: New) -> Edit:
        return Edit(node, code, f"{old} -> {new}", change, edit.level, edit.api, edit.help, group=edit.group)

    def _beside(self, edit: Edit, node: ast.expr, old: str, new: str, change: New) -> Edit:
        """A form that leaves the word of CUDA, and puts that of the NPU beside it."""
        self.work.add(self.work.keep(node, _BOTH))
        return self._edit(edit, node, "NPU262", old, new, change)

    def _of_namespace(self, edit: Edit, node: ast.expr) -> Edit:
        """`torch.cuda.f` -> `device_module.f`, where torch.npu has f in every version that is admitted."""
        if edit.api == "torch.cuda":
            return self._replaced(edit, node, "device_module")
        last = edit.api.removeprefix("torch.cuda.")
        if not edit.message.startswith(f"{edit.api} -> torch.npu.{last}"):
            raise _Stays("it has another name on an NPU")
        has = existing().get(f"torch.npu.{last}", ())
        if any(version_key(each) >= version_key(self.oldest) and each not in has for each in TORCH_VERSIONS):
            admitted = f"from torch {self.oldest} on, which the project admits"
            raise _Stays(f"not all versions {admitted}, have torch.npu.{last}")
        full = self.work.names.qualified(node) or ""
        behind = edit.api.removeprefix(full) if full and edit.api.startswith(f"{full}.") else ""
        new = f"{self._name(edit, 'device_module')}.{last}"
        return self._edit(edit, node, "NPU260", edit.api, new, new.removesuffix(behind))

    def _replaced(self, edit: Edit, node: ast.expr, name: str) -> Edit:
        """A name of the module in the place of a name of CUDA."""
        new = self._name(edit, name)
        return self._edit(edit, node, "NPU260", edit.api, new, new)

    def _profiler(self, edit: Edit, node: ast.expr) -> Edit:
        """`torch.profiler.f` -> `profiler.f`; the activity of CUDA is that of the accelerator."""
        full = self.work.names.qualified(node) or edit.api
        if full == _CUDA_ACTIVITY:
            return self._replaced(edit, node, "DEVICE_ACTIVITY")
        new = f"{self._name(edit, 'profiler')}.{full.removeprefix('torch.profiler.')}"
        return self._edit(edit, node, "NPU260", full, new, new)

    def _asks_for_backend(self, edit: Edit, node: ast.Attribute, distributed: ast.expr) -> Edit:
        """`dist.is_nccl_available()` -> `dist.is_backend_available(DIST_BACKEND)`, which asks the former for nccl."""
        call, admitted = call_of(node), self.work.settings.oldest_torch
        if call is None:
            raise _Stays("it is not called here")
        if admitted and version_key(admitted) < version_key(_IS_BACKEND_AVAILABLE):
            raise _Stays(f"torch {admitted}, which the project admits, cannot be asked for any backend")
        text = f"{self.work.text(distributed)}.is_backend_available({self._name(edit, 'DIST_BACKEND')})"
        return self._edit(edit, call, "NPU111", edit.api, text, text)

    # --- imports ---------------------------------------------------------------------------------------------------

    def _imported(self, edit: Edit, node: ast.Import | ast.ImportFrom) -> list[Edit]:
        """Each use becomes what the dotted name would; a name goes from the import when nothing here needs it."""
        if isinstance(node, ast.ImportFrom) and (found := self._amp_imported(edit, node)):
            return found
        new: list[Edit] = []
        gone: list[ast.alias] = []
        every = taken_by(self.work, node)
        if not every:
            raise _Stays("other files may take it from here, or it may come from elsewhere too")
        for taken in every:
            name = taken.full.rpartition(".")[2]
            kept = taken.full in _CUSTOM or (self.own_autocast and taken.full == _AUTOCAST[0] and _is_named(taken))
            if kept and not taken.alias.asname and self._name(edit, name, freed=True) == name:
                gone.append(taken.alias)  # what it decorates keeps its line
                continue
            used, whole = self._uses(edit, taken)
            new += used
            gone += [taken.alias] if whole else []
        if len(gone) < len(every):
            types = all(is_type(use) for taken in every if taken.alias not in gone for use, _ in taken.uses)
            self.work.add(self.work.keep(node, "local-type" if types else "reported-beside"))
        left = without(self.work, node, gone, "NPU260", edit.group) if gone else []
        if gone and not left:
            self.work.add(self.work.keep(node, "remark"))  # nothing uses it
        return [*new, *left]

    def _uses(self, edit: Edit, taken: Taken) -> tuple[list[Edit], bool]:
        """What becomes of the uses of a name, and whether that is all of them."""
        new: list[Edit] = []
        whole = True
        for node, full in taken.uses:
            if id(node) in self.done:
                continue
            matched = self.work.rules.resolve(full)
            rule, prefix = matched if matched is not None else (None, "")
            try:
                if rule is None or not rule.renames:
                    raise _Stays("an NPU has no such name")
                said = f"{full} -> {rule.new}{full[len(prefix) :]}"
                found = self.of(Edit(node, rule.code, said, "", edit.level, full, rule.help, group=edit.group))
                whole = whole and bool(found)  # a gate that stays needs the name
                new += found
                self.done.add(id(node))
            except _Stays as why:
                whole = False
                if is_type(node):
                    self.work.add(self.work.keep(node, "local-type"))
                elif id(node) not in self.planned and rule is not None and rule.renames:
                    message = f"not portable: {full}: {why}"
                    help_ = _HELP.get(rule.code, _OTHER)
                    self.work.add(self.work.note(node, rule.code, message, api=full, help=help_))
        return new, whole

    # --- strings ---------------------------------------------------------------------------------------------------

    def _literal(self, node: ast.Constant) -> str:
        """The quote of a string that stands there as it is."""
        text = self.work.source.slice(*self.work.source.extent(node))
        if text[:1] not in ("'", '"') or text != f"{text[0]}{node.value!s}{text[0]}":
            raise _Stays("the string is put together of parts")
        return text[0]

    def _device_string(self, edit: Edit, node: ast.Constant, value: str) -> Edit:
        quote, above = self._literal(node), parent(node)
        shown = f"device string {value!r}"
        match above:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as asks], comparators=[right]) if (
                right is node and value == "cuda"
            ):
                word = "in" if isinstance(asks, ast.Eq) else "not in"
                tail = f" {word} ({quote}cuda{quote}, {quote}npu{quote})"
                text = self.work.source.slice(*self.work.source.extent(left))
                return self._beside(edit, above, f"{text} == 'cuda'", f"{text}{tail}", left_side(tail))
            case ast.Compare(ops=[ast.In() | ast.NotIn() as asks], comparators=[given]) if (
                above.left is node and value == "cuda" and _is_plain(given) and not self._is_text_here(given)
            ):
                return self._held(edit, above, asks, self.work.text(given), quote)
            case ast.List() | ast.Tuple() | ast.Set() if value == "cuda" and _admits(above):
                self.done.update(map(id, above.elts))
                new = with_twin(f"{quote}{value}{quote}", f"{quote}npu{quote}")
                return self._beside(edit, above, f"{value!r} alone", "'npu' beside it", new)
            case ast.Dict() if any(key is node for key in above.keys):
                raise _Stays("it is a key, which others may ask for")
            case _ if value == "cuda" and _of_a_literal(node):
                twin = followed_by(f"{quote}npu{quote}")
                return self._beside(edit, node, f"{value!r} alone", "'npu' beside it", twin)
            case ast.JoinedStr() | ast.FormattedValue() | ast.MatchValue():
                raise _Stays("the text around it is not a device alone")
        rest = _behind_cuda(node, value)
        name = self._name(edit, "DEVICE_TYPE")
        match above, parent(above):
            case ast.Attribute(attr="format"), (ast.Call(args=[given], keywords=[]) as call) if (
                rest in (":{}", ":{0}") and _is_plain(given) and quote not in (said := self.work.text(given))
            ):
                text = f"f{quote}{{{name}}}:{{{said}}}{quote}"
                return self._edit(edit, call, "NPU261", shown, text, text)
        braced = rest.replace("{", "{{").replace("}", "}}")
        text = f"f{quote}{{{name}}}{braced}{quote}" if rest else name
        return self._edit(edit, node, "NPU261", shown, text, text)

    def _held(self, edit: Edit, test: ast.Compare, asks: ast.cmpop, held: str, quote: str) -> Edit:
        """A question for the word in a text that somebody gives: for either word."""
        if isinstance(asks, ast.NotIn):
            raise _Stays(f'{held} comes from elsewhere: ask for "npu" beside it')
        text = f"{quote}cuda{quote} in {held} or {quote}npu{quote} in {held}"
        text = text if isinstance(parent(test), (ast.If, ast.IfExp, ast.Return, ast.Assign)) else f"({text})"
        return self._beside(edit, test, f"'cuda' in {held}", text, text)

    def _is_text_here(self, node: ast.expr) -> bool:
        """True for a variable that the file itself sets to a text: nobody gives it another device."""
        return isinstance(node, ast.Name) and string_of(last_value(self.work.scan, node)) is not None

    def _backend(self, edit: Edit, node: ast.Constant, value: str) -> Edit:
        quote, above = self._literal(node), parent(node)
        if isinstance(above, (ast.List, ast.Tuple, ast.Set)) and value == "nccl" and _admits(above):
            twin = with_twin(f"{quote}nccl{quote}", f"{quote}hccl{quote}")
            return self._beside(edit, above, "'nccl' alone", "'hccl' beside it", twin)
        if _in_annotation(node) or (isinstance(above, ast.Dict) and any(key is node for key in above.keys)):
            raise _Stays("it has to be written out here")
        name = self._name(edit, "DIST_BACKEND")
        if value == "nccl":
            return self._edit(edit, node, "NPU301", "backend 'nccl'", name, name)
        parts = value.replace("cuda:", f"{{{self._name(edit, 'DEVICE_TYPE')}}}:").replace("nccl", f"{{{name}}}")
        text = f"f{quote}{parts}{quote}"
        return self._edit(edit, node, "NPU301", f"backend {value!r}", text, text)

    def _variable(self, edit: Edit, node: ast.Constant, value: str) -> list[Edit]:
        """What is read is the variable of the accelerator; where it is set, both are."""
        quote, above = self._literal(node), parent(node)
        found = _NAMED.search(edit.message)
        if found is None:
            raise _Stays("its value means something else on an NPU")
        whole = statement(node)
        match above, whole:
            case ast.Subscript(ctx=ast.Store()), ast.Assign(targets=[target]) if target is above:
                if found[1].encode() in self.work.source.utf8:  # somebody has seen to it
                    self.work.add(self.work.keep(node, _BOTH))
                    return []
                text, place = self.work.text(whole), self.work.text(target)
                if "\n" in text:
                    text = f"{place} = {place}"  # what the lines come to is not worked out twice
                line = text.replace(f"{quote}{value}{quote}", f"{quote}{found[1]}{quote}", 1)
                if "\n" in line or self.work.text(whole).count(value) != 1 or self._shares_line(whole):
                    raise _Stays("the statement cannot be repeated as it is")
                if value not in _VARIABLES and self._reads(value):
                    raise _Stays("the file reads it as well")
                said = f"{found[1]} is set beside {value}"
                self.work.add(self.work.keep(whole, _BOTH))
                return [Edit(Beside(whole, below=True), "NPU220", said, line, group=edit.group)]
            case ast.Subscript(ctx=ast.Load()), ast.Assign() if found[1] in self.work.text(whole):
                self.work.add(self.work.keep(node, _BOTH))
                return []
            case ast.Subscript(ctx=ast.Load()) | ast.Call() | ast.Compare(), _ if value in _VARIABLES:
                if isinstance(above, ast.Call) and last_name(above.func) not in ("get", "getenv", "pop"):
                    raise _Stays("it is set by a call")
                name = self._name(edit, _VARIABLES[value])
                return [self._edit(edit, node, "NPU220", f"environment variable {value}", name, name)]
        raise _Stays("what reads it is not known")

    def _reads(self, variable: str) -> bool:
        """Whether the file names a variable somewhere but where it is set."""
        strings = (each for each in self.work.scan.strings if isinstance(each, ast.Constant) and each.value == variable)
        return any(not isinstance(getattr(parent(each), "ctx", None), ast.Store) for each in strings)

    def _shares_line(self, node: ast.stmt) -> bool:
        return any(joint_before(self.work.source, each) for each in (node, *following(node)[:1]))

    # --- tensors and modules ---------------------------------------------------------------------------------------

    def _moved(self, edit: Edit, node: ast.Attribute) -> Edit:
        """`x.cuda()` -> `x.to(DEVICE_TYPE)`, `x.cuda(i)` -> `x.to(device(i))`: `.to(None)` would leave it there."""
        call = call_of(node)
        if call is None:
            raise _Stays("it is not called here")
        if self.own_to:
            raise _Stays("a class of this file has a `to` of its own")
        if isinstance(above := parent(call), ast.Lambda) and len(above.args.args) != 1:
            return self._mapped(edit, above, call)
        if any(word.arg in (None, "async") for word in call.keywords):
            raise _Stays("it has an argument that .to() does not take")
        if len(call.args) > 2 or any(isinstance(each, ast.Starred) for each in call.args):
            raise _Stays("its arguments are not those of .to()")
        given = keyword_of(call, "device") or (call.args[0] if call.args else None)
        name = self._name(edit, "DEVICE_TYPE" if given is None else "device")
        self.done.add(id(call))
        new = moved_to(name) if given is None else moved_to(name, with_argument=True)
        shown = f".to({name})" if given is None else f".to({name}(...))"
        return self._edit(edit, call, "NPU210", ".cuda()", shown, new)

    def _numbered(self, edit: Edit, node: ast.Constant, number: str) -> Edit:
        """`x.to(0)` -> `x.to(device(0))`: below torch 2.3 a number is one of CUDA."""
        text = f"{self._name(edit, 'device')}({number})"
        match parent(node):
            case ast.Call(func=func) as call if self.work.names.qualified(func) == "torch.device":
                return self._edit(edit, call, "NPU261", f"device {number}", text, text)
        return self._edit(edit, node, "NPU261", f"device {number}", text, text)

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
                    text = f"{self._name(edit, 'device')}({', '.join(map(self.work.text, given))})"
                    return self._edit(edit, node, "NPU210", ".cuda()", text, text)
        raise _Stays("what it is given may be a storage, whose .to() takes no device")

    def _is_on_it(self, edit: Edit, node: ast.Attribute) -> Edit:
        above = parent(node)
        if not isinstance(above, _ASKING):
            raise _Stays("its result is used in a way that transplt cannot trace")
        name = self._name(edit, "DEVICE_TYPE")
        new = OfText(lambda text: f"{text.removesuffix('is_cuda')}device.type == {name}")
        return self._edit(edit, node, "NPU211", ".is_cuda", f".device.type == {name}", new)

    # --- mixed precision -------------------------------------------------------------------------------------------

    def _amp(self, edit: Edit, node: ast.Attribute | ast.Name) -> Edit:
        call = call_of(node)
        if call is None:
            raise _Stays("it is not called here")
        if edit.api in _SCALER and version_key(self.oldest) < version_key(_SCALER_OF_TORCH):
            if call.args:
                raise _Stays(f"its arguments are given by position, and the project admits torch {self.oldest}")
            name = self._name(edit, "grad_scaler")
            return self._edit(edit, node, "NPU103", edit.api, name, name)
        self.done.add(id(call))
        if edit.api in _AUTOCAST and self.own_autocast:
            name = self._name(edit, "autocast")
            return self._edit(edit, call, "NPU103", edit.api, name, self._named(edit, call, calling(name)))
        target = "torch.autocast" if edit.api in _AUTOCAST else "torch.amp.GradScaler"
        new = self._told(edit, call, calling(target))
        imports = needed_import(self.work, target, node)
        found = self._edit(edit, call, "NPU103", edit.api, f"{target}(DEVICE_TYPE)", new)
        found.imports = imports
        return found

    def _told(self, edit: Edit, call: ast.Call, *first: Transform) -> Transform:
        """The call with the device in front of its arguments."""
        return self._named(edit, call, *first, with_first(self._name(edit, "DEVICE_TYPE")))

    def _named(self, edit: Edit, call: ast.Call, *more: Transform) -> Transform:
        """The call with names for the arguments of an autocast, and what else is done to it."""
        if any(isinstance(each, ast.Starred) for each in call.args):
            raise _Stays("its arguments are not written out")
        named = []
        if edit.api in _AUTOCAST:
            named = [with_named(at, name) for at, name in enumerate(_OF_AUTOCAST[: len(call.args)])]
        return one_after_the_other(*named, *more)

    def _amp_imported(self, edit: Edit, node: ast.ImportFrom) -> list[Edit]:
        """`from torch.cuda.amp import autocast`: from torch.amp, and each call is told the device; none where one of
        the names is no such class of torch.amp, or is not only called.
        """
        every = taken_by(self.work, node)
        scaler = version_key(self.oldest) >= version_key(_SCALER_OF_TORCH)
        there = {*(() if self.own_autocast else _AUTOCAST[:1]), *(_SCALER[:1] if scaler else ())}
        calls = [(call_of(name), full) for taken in every for name, full in taken.uses]
        if not calls or len(every) < len(node.names) or not {taken.full for taken in every} <= there:
            return []
        change = names_imported("torch.amp", [None] * len(node.names))
        found = [self._edit(edit, node, "NPU103", "from torch.cuda.amp import", "from torch.amp import", change)]
        for call, full in calls:
            if call is None or any(isinstance(each, ast.Starred) for each in call.args):
                return []
            told = Edit(call, "NPU103", f"{full}() is told the device", "", api=full, group=edit.group)
            told.new = self._told(told, call)
            found.append(told)
        self.done.update(id(name) for taken in every for name, _ in taken.uses)
        return found


def _is_named(taken: Taken) -> bool:
    """True where all uses of a name are calls without arguments by position."""
    calls = [call_of(use) for use, _ in taken.uses]
    return all(call is not None and not call.args for call in calls)


def _guarded_replicas(node: ast.expr | ast.stmt | ast.arg) -> list[ast.Call]:
    """The calls of DataParallel behind an `if` in whose test the node is."""
    whole = statement(node)
    if not isinstance(whole, ast.If) or not any(each is node for each in ast.walk(whole.test)):
        return []
    calls = [call for inner in whole.body for call in inner_nodes(inner, ast.Call)]
    return [each for each in calls if last_name(each.func) in REPLICA_NAMES]


def _admits(display: ast.List | ast.Tuple | ast.Set) -> bool:
    """True for what a value may be one of: `in ("cuda", "mps")`, `choices=["cpu", "cuda"]`."""
    above = parent(display)
    if isinstance(above, ast.Compare):
        return isinstance(above.ops[-1], (ast.In, ast.NotIn)) and above.comparators[-1] is display
    return isinstance(above, ast.keyword) and above.arg == "choices"


def _is_plain(node: ast.expr) -> bool:
    """True for a name, an attribute of one, and an element of one at a place that is written out."""
    match node:
        case ast.Attribute(value=value) | ast.Subscript(value=value, slice=ast.Constant()):
            return _is_plain(value)
    return isinstance(node, ast.Name)


def _of_a_literal(node: ast.expr) -> bool:
    """True for a value of `Literal["cpu", "cuda"]`."""
    match parent(node), parent(parent(node)):
        case (ast.Subscript(value=called), _) | (ast.Tuple(), ast.Subscript(value=called)):
            return last_name(called) == "Literal"
    return False


def _behind_cuda(node: ast.Constant, value: str) -> str:
    """What stands behind the word in the text of a device: `:0`."""
    if _in_annotation(node):
        raise _Stays("it is a type, which has to be written out")
    kind, _, rest = value.partition("cuda")
    if kind:
        raise _Stays("the text around it is not a device alone")
    if rest and isinstance(ancestor(node, (ast.JoinedStr, ast.stmt), "_text"), ast.JoinedStr):
        raise _Stays("a text inside of another one needs Python 3.12")
    return rest


def _in_annotation(node: ast.AST) -> bool:
    """True for a part of an annotation, such as `Literal["cuda"]`."""
    while isinstance(node, ast.expr):
        if is_annotation(node):
            return True
        node = parent(node)
    return False
