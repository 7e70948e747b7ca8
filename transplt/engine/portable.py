"""The portable style: one module of the project chooses the accelerator, and edits replace names by names of it.

The fixers plan as for NPUs alone; then each edit becomes one in the words of that module (transplt/helper/
accelerator.py), or a finding that says what a person decides. On CUDA and on a CPU the module's names are those of
torch.cuda, and "cuda": an edit there is the call that stood there, with the same arguments. So nothing has to be
refused for CUDA's sake, whatever torch the project admits; what torch.npu lacks in a version of it is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from transplt.base.finding import Level
from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.edit import Edit, Extent
from transplt.edits.groups import GROUPS
from transplt.edits.helper import complete
from transplt.edits.ignores import Ignores
from transplt.edits.trees.calls import calling, one_after_the_other, with_first, with_named
from transplt.edits.trees.names import names_imported
from transplt.edits.trees.transform import OfText, Transform
from transplt.edits.unused_imports import is_exported, is_listed
from transplt.edits.work import Work
from transplt.engine.actions.groups import portable_advice
from transplt.engine.analysis.known_apis import existing
from transplt.engine.portable_forms import Form, Stays
from transplt.engine.portable_imports import Taken, taken_by, without
from transplt.fixers.codemods.cuda_paths import only_on_cuda
from transplt.fixers.codemods.data_parallel import REPLICAS, cuda_alone, for_cuda_alone, gate_of, replicas_in
from transplt.fixers.codemods.grad_scalers import is_type
from transplt.fixers.codemods.rename import needed_import
from transplt.flow.chooser_place import NO_STOP, STOPS, npu_chooser, stop_of
from transplt.rules.packages import is_bound
from transplt.rules.since import may_be_older, only_newer
from transplt.rules.versions import oldest_held, version_key
from transplt.syntax.configurations import is_configuration
from transplt.syntax.nodes import call_of, inner_nodes, last_name, nodes_in, of_kind
from transplt.syntax.scan import FUNCTIONS, chain, parent, statement

#: Changes that hold everywhere: they keep what is there beside what they add, or need no card.
_EVERYWHERE = ("NPU152", "NPU153", "NPU159", "NPU230", "NPU293", "NPU313")
#: Themes write what holds on CUDA too, or nothing.
_THEMES = frozenset(each.name for each in GROUPS)
_GATE = "torch.cuda.is_available"
#: Findings on strings that may name the device.
_STRINGS = ("NPU201", "NPU203")
_NOT_PORTABLE = "not portable: "
#: Names of torch.cuda that stand for a name of torch itself, and become it: the same class since torch 2.5.
_ALIASES = ("torch.cuda.OutOfMemoryError",)
_AUTOCAST = ("torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast")
_SCALER = ("torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler")
#: Decorators that are functions of the module: below torch 2.4 each device has its own.
_CUSTOM = ("torch.cuda.amp.custom_fwd", "torch.cuda.amp.custom_bwd")
#: Questions that are asked before a batch is divided among the cards of a process, which NPUs do not do.
_OF_REPLICAS = ("torch.cuda.device_count", "torch.Tensor.is_cuda")
#: What divides a batch among cards that it calls CUDA's, also where there is one.
_ON_CUDA = "torch_geometric."
#: What is of CUDA's libraries: a choice that asks for it is for CUDA as a whole.
_OF_CUDA = ("torch.version.cuda", "torch.cuda.nccl.")
#: How a project calls what it asks of a part that only CUDA has.
_ONLY_CUDA = re.compile(r"^(?:supports_cuda|has_apex|has_cuda_(?:ext|kernels?)\w*)$", re.I)
#: The arguments of torch.cuda.amp.autocast, which torch.autocast has in another order.
_OF_AUTOCAST = ("enabled", "dtype", "cache_enabled")
_SCALER_OF_TORCH = "2.3"
#: What is asked of mixed precision: that of CUDA, unless the device is named, which torch takes from here on.
_OF_AMP = {f"torch.{each}": f"torch.{each.replace('_gpu', '')}" for each in (
    "is_autocast_enabled", "set_autocast_enabled", "get_autocast_gpu_dtype", "set_autocast_gpu_dtype",
)}  # fmt: skip
_STATE_OF_TORCH = "2.4"
#: The first torch with torch.autocast.
_AUTOCAST_OF_TORCH = "1.10"
_CUDA_ACTIVITY = "torch.profiler.ProfilerActivity.CUDA"
_BACKEND = ("torch.distributed.Backend.NCCL", "torch.distributed.distributed_c10d.Backend.NCCL")
#: What a name of the module stands for.
_REPLACED = {
    **{each: each.rpartition(".")[2] for each in _CUSTOM}, **dict.fromkeys(_BACKEND, "DIST_BACKEND"),
}  # fmt: skip
_HAS_BFLOAT16 = "torch.cuda.is_bf16_supported"
_HAS_BACKEND = ("torch.distributed.is_nccl_available", "torch.distributed.distributed_c10d.is_nccl_available")
#: torch has a question for a backend of any name.
_IS_BACKEND_AVAILABLE = "2.1"
#: What frees memory and gives nothing: where an older torch_npu lacks it, a function of the module asks for it.
_WHERE_THERE = ("ipc_collect",)
_OTHER = "call one or the other, depending on DEVICE_TYPE of the module"


def adapt(work: Work) -> None:
    """Turn planned changes into portable ones or into findings; lines and edits apart of a theme stay."""
    planned = [edit for edit in work.rewrites if not edit.apart]
    # Imports take their uses along, and a gate asks what came of what it guards.
    planned.sort(key=lambda edit: (edit.api == _GATE) - isinstance(edit.node, (ast.Import, ast.ImportFrom)))
    work.edits = [edit for edit in work.edits if edit.group and (edit.apart or not edit.rewrites)]
    complete(work)
    forms = _Forms(work, planned)
    for edit in planned:
        if not edit.group:  # an import of the module goes in with the edit that needs it
            edit.group = f"portable {edit.node.lineno}:{edit.node.col_offset}"
        try:
            new = forms.of(edit)
        except Stays as why:
            stays = edit.message.partition(" -> ")[0]
            message, help_ = f"{_NOT_PORTABLE}{stays}: {why}", why.help or portable_advice(edit.code, edit.api)
            blocks = "later" if forms.is_data else ""  # nobody sees which program loads it
            work.add(work.note(edit.node, edit.code, message, api=edit.api, help=help_ or _OTHER, blocks=blocks))
        else:
            for each in new:
                work.add(each)
    if forms.stops:
        work.notes = [replace(note, details=(*note.details, (STOPS, forms.stops))) for note in work.notes]


class _Forms(Form):
    """The portable form of each edit of a file. `planned` are the nodes that have an edit of their own, `themes` those
    of which a theme makes something else.
    """

    def __init__(self, work: Work, planned: Sequence[Edit]) -> None:
        super().__init__(work)
        self.planned = {id(edit.node) for edit in planned}
        self.themes = {id(edit.node) for edit in planned if edit.group in _THEMES}
        self.theirs = npu_chooser(work.project, work.scan.path)
        self.stops = stop_of(work.project, work.scan.path, work.settings)
        self.is_data = is_configuration(work.scan.tree)
        self.oldest = oldest_held(work.settings)
        asked = dict(work.settings.pins).get("torch") or f">={work.settings.oldest_torch}"
        older = may_be_older(asked, _AUTOCAST_OF_TORCH)
        # No pin is not the newest; of a file alone nobody knows what its project asks for.
        self.own_autocast = older or (work.project.known and not only_newer(asked, _AUTOCAST_OF_TORCH))
        # Whether the file asks for the mixed precision of CUDA, and no device can be given.
        self.asks_cuda = any(edit.api in _OF_AMP for edit in planned) and (
            version_key(self.oldest) < version_key(_STATE_OF_TORCH)
        )
        self.dividing: dict[ast.If | None, bool] = {}  # whether batches are divided there
        self.only: dict[ast.AST, str] = {}  # what no NPU has, by the question that names it
        self.asked: dict[ast.BoolOp, ast.Attribute | None] = {}  # by a chain of `and`

    def of(self, edit: Edit) -> list[Edit]:
        """The edits in its place; none where another one has done it. Stays where there is none."""
        node = edit.node
        everywhere = edit.group in _THEMES or edit.code in _EVERYWHERE or edit.api in _ALIASES
        if edit.user or (everywhere and self.stops not in NO_STOP):
            return [edit]
        if self._comes_to_nothing(edit) or id(node) in self.done:
            return []
        if self._asks_for_replicas(edit, node):
            return []
        gates = filter(for_cuda_alone, chain(node)) if id(node) in self.planned else ()
        if divided := next(filter(None, map(self._divided, gates)), None):
            self.work.add(cuda_alone(self.work, node, divided[0]))
            return []
        if self._is_cudas(edit, node):
            self.work.add(self.work.keep(node, "reported-beside"))
            return []
        self._leave_to_cuda(node)
        if (found := self._asked_of_cuda(node)) is not None:
            return self._either(edit, *found)
        return self._form(edit, node)

    def _comes_to_nothing(self, edit: Edit) -> bool:
        """True where no program on an NPU comes, or for a variable of what is started and stops there. Stays where
        somebody wants nothing written.
        """
        if self.work.once(Ignores).reason(edit.code, edit.node.lineno, edit.node.end_lineno or edit.node.lineno):
            raise Stays("a comment, or the settings, say so")
        stops, ends = self.stops, self.work.project.aside
        if edit.code == "NPU220" and not stops:
            starts = (each for each in (*ends.trainers, *ends.failing) if each.encode() in self.work.source.utf8)
            stops = stop_of(self.work.project, next(starts, ""), self.work.settings)
        if stops:
            message = f"stays as it is: {stops if stops in NO_STOP else f'on an NPU its programs {stops}'}"
            self.work.add(self.work.note(edit.node, edit.code, message, level=Level.INFO))
        elif self.theirs:
            raise Stays(f"{self.theirs} chooses the device of the project, for NPUs too", "take the device from there")
        elif self.is_data:
            raise Stays("a loader reads this file as data", "choose the value by DEVICE_TYPE where the file is read")
        return bool(stops)

    def _asks_for_replicas(self, edit: Edit, node: ast.AST) -> bool:
        """True in a question that stays CUDA's, before calls that divide a batch."""
        whole = statement(node)
        if not (isinstance(whole, ast.If) and node in ast.walk(whole.test) and (calls := replicas_in(whole.body))):
            return False
        names = [self.work.names.qualified(each.func) or "" for each in calls]
        inside = {last_name(each.func) for part in whole.body for each in inner_nodes(part, ast.Call)}
        if any(each.startswith(_ON_CUDA) for each in names) and {"cuda", "to"}.isdisjoint(inside):
            # The call has the finding; where the model is moved there, it would stay on the CPU.
            self.work.add(self.work.keep(edit.node, "reported-beside"))
            return True
        if edit.api in _OF_REPLICAS and not any(each in REPLICAS for each in names):
            self.work.add(cuda_alone(self.work, edit.node, calls[0]))
        return edit.api in _OF_REPLICAS  # that of torch has its finding, at the question

    def _divided(self, gate: ast.If) -> list[ast.Call]:
        """The calls behind a question that divide a batch, and go on to do so."""
        return [call for call in replicas_in(gate.body) if {id(call), id(call.func)}.isdisjoint(self.themes)]

    def _leave_to_cuda(self, node: ast.AST) -> None:
        """Refuse a question that is asked with what no NPU has, or a test skipped without it."""
        whole = statement(node)
        asked = next((each for each in of_kind(ast.BoolOp, chain(node)) if isinstance(each.op, ast.And)), whole)
        if asked not in self.only:
            found = [last_name(each) for each in ast.walk(asked)] if asked is not whole else []
            if isinstance(whole, (*FUNCTIONS, ast.ClassDef)):  # it decorates that
                found += [alias.name for each in of_kind(ast.Import, nodes_in(whole.body)) for alias in each.names]
            self.only[asked] = next((name for name in found if _ONLY_CUDA.search(name) or is_bound(name)), "")
        if only := self.only[asked]:
            raise Stays(f"{only} is only for CUDA", "test for the NPU here once that runs on it")

    def _is_cudas(self, edit: Edit, node: ast.AST) -> bool:
        """True for what stands behind a question that stays CUDA's, where no NPU comes, and for a question in front of
        what stays.
        """
        gate, only = gate_of(node), self.work.once(only_on_cuda)
        if gate is not None and gate not in self.dividing:
            self.dividing[gate] = bool(self._divided(gate))
        behind = self.dividing.get(gate) or any(id(each) in only for each in chain(node))
        return behind or (edit.api == _GATE and self._guards_what_stays(node))

    def _guards_what_stays(self, node: ast.AST) -> bool:
        """True for a question in front of what stays with a finding, where no more than that is written there: they
        belong together, as in `if torch.cuda.is_available(): names.append("cuda")`. What may be a device, or not,
        counts where nothing is written.
        """
        above = next((each for each in chain(node) if isinstance(each, (ast.If, ast.IfExp))), None)
        if above is None or not self.left or not any(each is node for each in ast.walk(above.test)):
            return False
        negated = isinstance(above.test, ast.UnaryOp) and isinstance(above.test.op, ast.Not)
        side = above.orelse if negated else above.body
        inside = [*nodes_in(side if isinstance(side, list) else [side])]
        extents = {self.work.source.extent(each) for each in inside if isinstance(each, ast.expr)} & self.left.keys()
        written = sum(id(each) in self.written for each in inside)
        return bool(extents) and written <= sum(map(self.left.__getitem__, extents))

    @cached_property
    def left(self) -> dict[Extent, bool]:
        """Where strings, and what has no form, stay with a finding, and whether that is sure; gates look last, when all
        others have said so.
        """
        return {note.extent: note.message.startswith(_NOT_PORTABLE) for note in self.work.notes
                if note.code in _STRINGS or note.message.startswith(_NOT_PORTABLE)}  # fmt: skip

    @cached_property
    def written(self) -> set[int]:
        """The nodes that were edited before the gates."""
        return {id(edit.node) for edit in self.work.edits if edit.rewrites}

    def _asked_of_cuda(self, node: ast.AST) -> tuple[ast.BoolOp, ast.Attribute] | None:
        """A chain of `and` around a node, and what in it only CUDA answers."""
        for each in chain(node):
            if isinstance(each, ast.BoolOp) and isinstance(each.op, ast.And):
                if each not in self.asked:
                    names = (name for name in ast.walk(each) if isinstance(name, ast.Attribute))
                    of_cuda = (name for name in names if (self.work.names.qualified(name) or "").startswith(_OF_CUDA))
                    self.asked[each] = next(of_cuda, None)
                if (found := self.asked[each]) is not None:
                    return each, found
        return None

    def _either(self, edit: Edit, asked: ast.BoolOp, of_cuda: ast.Attribute) -> list[Edit]:
        """`torch.version.cuda and torch.cuda.is_bf16_supported() and ...`: on an NPU its own answer on bfloat16."""
        if id(asked) in self.done:
            return []
        calls = (self.work.names.qualified(each.func) for each in of_kind(ast.Call, asked.values))
        if _HAS_BFLOAT16 not in calls or not isinstance(parent(asked), (ast.Return, ast.Assign)):
            raise Stays(f"it belongs to {self.work.text(of_cuda)}, which is only for CUDA")
        answer = f"{self._function(_HAS_BFLOAT16.removeprefix('torch.cuda.'), edit)}()"
        self.done.add(id(asked))
        start, end = self.work.source.extent(asked)
        self.work.withdraw_notes(lambda note: start <= note.extent[0] and note.extent[1] <= end)
        on_npu = f'{answer} if {self.name(edit, "DEVICE_TYPE")} == "npu" else'
        gap = "\n" + " " * asked.col_offset if asked.end_lineno != asked.lineno else " "
        new = OfText(lambda text: f"{on_npu}{gap}{text}")
        return [self.beside(edit, asked, f"{self.work.text(of_cuda)} and ...", f"{on_npu} ...", new)]

    def _form(self, edit: Edit, node: ast.expr | ast.stmt | ast.arg) -> list[Edit]:
        """What is written for both, by what the edit is."""
        match edit.code, node:
            case _, ast.Import() | ast.ImportFrom():
                return self._imported(edit, node)
            case "NPU103", ast.Attribute() | ast.Name() if edit.api in (*_AUTOCAST, *_SCALER):
                return [self._amp(edit, node)]
            case "NPU103" | "NPU123", _ if edit.api in _OF_AMP:
                return [self._state(edit, node)]
            case _, ast.Attribute() | ast.Name() if edit.api in _REPLACED:
                return [self._replaced(edit, node, _REPLACED[edit.api])]
            case "NPU111", ast.Attribute(value=value) if edit.api in _HAS_BACKEND:
                return [self._asks_for_backend(edit, node, value)]
            case "NPU130", ast.Attribute() | ast.Name():
                return [self._profiler(edit, node)]
            case "NPU201", ast.Constant(value=str(value)):
                return [self.device_string(edit, node, value)]
            case "NPU201", ast.JoinedStr():
                name = self.name(edit, "DEVICE_TYPE")
                of_text = OfText(lambda text: re.sub(r"^(\w*[\"']{1,3})cuda", rf"\1{{{name}}}", text))
                return [self.edit(edit, node, "NPU261", edit.api, f"f'{{{name}}}:...'", of_text)]
            case "NPU210", ast.Attribute(attr="cuda"):
                return [self.moved(edit, node)]
            case "NPU211", ast.Attribute(attr="is_cuda"):
                return [self.is_on_it(edit, node)]
            case "NPU220", ast.Constant(value=str(value)):
                return self.variable(edit, node, value)
            case "NPU314", ast.Attribute():
                name = self.name(edit, "SUM_DTYPE")
                return [self.edit(edit, node, "NPU314", self.work.text(node), name, name)]
            case "NPU301", ast.Constant(value=str(value)):
                return [self.backend(edit, node, value)]
            case _, ast.Attribute() | ast.Name() if f"{edit.api}.".startswith("torch.cuda."):
                return [self._of_namespace(edit, node)]
        raise Stays("no form works on both")

    def _of_namespace(self, edit: Edit, node: ast.expr) -> Edit:
        """`torch.cuda.f` -> `device_module.f`, where torch.npu has f in every version that is admitted."""
        if edit.api == "torch.cuda":
            return self._replaced(edit, node, "device_module")
        last = edit.api.removeprefix("torch.cuda.")
        if not edit.message.startswith(f"{edit.api} -> torch.npu.{last}"):
            raise Stays("it has another name on an NPU")
        full = self.work.names.qualified(node) or ""
        behind = edit.api.removeprefix(full) if full and edit.api.startswith(f"{full}.") else ""
        new = self._function(last, edit)
        return self.edit(edit, node, "NPU260", edit.api, new, new.removesuffix(behind))

    def _function(self, last: str, edit: Edit) -> str:
        """A name of the namespace of the accelerator, which torch.npu has in every version that is admitted."""
        has = existing().get(f"torch.npu.{last}", ())
        if any(version_key(each) >= version_key(self.oldest) and each not in has for each in TORCH_VERSIONS):
            if last in _WHERE_THERE:
                return self.name(edit, last)
            admitted = f"from torch {self.oldest} on, which the project allows"
            raise Stays(f"not all versions {admitted} have torch.npu.{last}")
        return f"{self.name(edit, 'device_module')}.{last}"

    def _replaced(self, edit: Edit, node: ast.expr, name: str) -> Edit:
        """A name of the module in the place of a name of CUDA."""
        new = self.name(edit, name)
        return self.edit(edit, node, "NPU260", edit.api, new, new)

    def _profiler(self, edit: Edit, node: ast.expr) -> Edit:
        """`torch.profiler.f` -> `profiler.f`; the activity of CUDA is that of the accelerator."""
        full = self.work.names.qualified(node) or edit.api
        if full == _CUDA_ACTIVITY:
            return self._replaced(edit, node, "DEVICE_ACTIVITY")
        new = f"{self.name(edit, 'profiler')}.{full.removeprefix('torch.profiler.')}"
        return self.edit(edit, node, "NPU260", full, new, new)

    def _asks_for_backend(self, edit: Edit, node: ast.Attribute, distributed: ast.expr) -> Edit:
        """`dist.is_nccl_available()` -> `dist.is_backend_available(DIST_BACKEND)`, which asks the former for nccl."""
        call, admitted = call_of(node), self.work.settings.oldest_torch
        if call is None:
            raise Stays("it is not called here")
        if admitted and version_key(admitted) < version_key(_IS_BACKEND_AVAILABLE):
            raise Stays(f"torch {admitted}, which the project allows, cannot test for every backend")
        text = f"{self.work.text(distributed)}.is_backend_available({self.name(edit, 'DIST_BACKEND')})"
        return self.edit(edit, call, "NPU111", edit.api, text, text)

    # --- imports ---------------------------------------------------------------------------------------------------

    def _imported(self, edit: Edit, node: ast.Import | ast.ImportFrom) -> list[Edit]:
        """Each use becomes what the dotted name would; a name goes from the import when nothing here needs it."""
        if isinstance(node, ast.ImportFrom) and (found := self._amp_imported(edit, node)):
            return found
        new: list[Edit] = []
        gone: list[ast.alias] = []
        every = taken_by(self.work, node)
        if not every:
            return self._untaken(edit, node)
        for taken in every:
            name = taken.full.rpartition(".")[2]
            kept = taken.full in _CUSTOM or (self.own_autocast and taken.full == _AUTOCAST[0] and _is_named(taken))
            if kept and not taken.alias.asname and self.name(edit, name, freed=True) == name:
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

    def _untaken(self, edit: Edit, node: ast.Import | ast.ImportFrom) -> list[Edit]:
        """An import of which no use can be told stays; nothing is to be done where there is none."""
        names = [alias.asname or alias.name for alias in node.names]
        if any(self.work.scan.names.get(name) or is_listed(self.work, name) for name in names):
            raise Stays("other files may import it from here, or it may also come from elsewhere")
        if any(is_exported(self.work, name) for name in names):
            message = f"nothing uses {', '.join(names)} here: the import can go where no other file takes it from here"
            self.work.add(self.work.note(node, edit.code, message, level=Level.INFO, api=edit.api))
        self.work.add(self.work.keep(node, "remark"))
        return []

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
                    raise Stays("an NPU has no such name")
                said = f"{full} -> {rule.new}{full[len(prefix) :]}"
                found = self.of(Edit(node, rule.code, said, "", edit.level, full, rule.help, group=edit.group))
                whole = whole and bool(found)  # a gate that stays needs the name
                new += found
                self.done.add(id(node))
            except Stays as why:
                whole = False
                if is_type(node):
                    self.work.add(self.work.keep(node, "local-type"))
                elif id(node) not in self.planned and rule is not None and rule.renames:
                    message = f"{_NOT_PORTABLE}{full}: {why}"
                    help_ = why.help or portable_advice(rule.code, full)
                    self.work.add(self.work.note(node, rule.code, message, api=full, help=help_ or _OTHER))
        return new, whole

    # --- mixed precision -------------------------------------------------------------------------------------------

    def _amp(self, edit: Edit, node: ast.Attribute | ast.Name) -> Edit:
        call = call_of(node)
        if call is None:
            raise Stays("it is not called here")
        if edit.api in _SCALER and version_key(self.oldest) < version_key(_SCALER_OF_TORCH):
            if call.args:
                raise Stays(f"its arguments are given by position, and the project allows torch {self.oldest}")
            name = self.name(edit, "grad_scaler")
            return self.edit(edit, node, "NPU103", edit.api, name, name)
        self.done.add(id(call))
        if edit.api in _AUTOCAST and self.own_autocast:
            name = self.name(edit, "autocast")
            return self.edit(edit, call, "NPU103", edit.api, name, self._named(edit, call, calling(name)))
        target = "torch.autocast" if edit.api in _AUTOCAST else "torch.amp.GradScaler"
        new = self._named(edit, call, calling(target), with_first(self.name(edit, "DEVICE_TYPE")))
        imports = needed_import(self.work, target, node)
        found = self.edit(edit, call, "NPU103", edit.api, f"{target}(DEVICE_TYPE)", new)
        found.imports = imports
        return found

    def _state(self, edit: Edit, node: ast.expr | ast.stmt | ast.arg) -> Edit:
        """`torch.is_autocast_enabled()` -> `torch.is_autocast_enabled(DEVICE_TYPE)`."""
        call = node if isinstance(node, ast.Call) else call_of(node)
        if call is None:
            raise Stays("it is not called here")
        if self.asks_cuda:
            raise Stays(f"it takes a device from torch {_STATE_OF_TORCH} on")
        target = _OF_AMP[edit.api]
        change = one_after_the_other(calling(target), with_first(self.name(edit, "DEVICE_TYPE")))
        found = self.edit(edit, call, edit.code, edit.api, f"{target}(DEVICE_TYPE)", change)
        found.imports = needed_import(self.work, target, call)
        return found

    def _named(self, edit: Edit, call: ast.Call, *more: Transform) -> Transform:
        """The call with names for the arguments of an autocast, and what else is done to it."""
        if any(isinstance(each, ast.Starred) for each in call.args):
            raise Stays("its arguments are not written out")
        if self.asks_cuda and any(word.arg is None for word in call.keywords):
            raise Stays("what it is given was asked of CUDA")
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
        found = [self.edit(edit, node, "NPU103", "from torch.cuda.amp import", "from torch.amp import", change)]
        for call, full in calls:
            if call is None or any(isinstance(each, ast.Starred) for each in call.args):
                return []
            told = Edit(call, "NPU103", f"{full}() gets the device", "", api=full, group=edit.group)
            told.new = self._named(told, call, with_first(self.name(told, "DEVICE_TYPE")))
            found.append(told)
        self.done.update(id(name) for taken in every for name, _ in taken.uses)
        return found


def _is_named(taken: Taken) -> bool:
    """True where all uses of a name are calls without arguments by position."""
    calls = [call_of(use) for use, _ in taken.uses]
    return all(call is not None and not call.args for call in calls)
