"""What `.cuda(x)` becomes: `.npu(x)`, or `.to(x)` where a module gets a device.

`npu` of a module takes the number of a card (torch_npu/utils/_module.py): a text or a torch.device raises TypeError in
torch_npu 2.7.1, 2.13 and 2.14, and is passed over in 2.1, 2.5.1 and 2.9.1, where the module lands on the current card.
`to` takes both, but leaves the module where it is for None, and takes a number for one of CUDA before torch 2.3: those
stay with `npu`. Tensors have an `npu` that takes all of them.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Decides
from transplt.edits.work import Work
from transplt.flow.own_cuda import own_moves
from transplt.program.device_forms import DEVICE, DeviceForms
from transplt.program.nn_modules import NnModules
from transplt.program.program import SAME_MODULE, program_of
from transplt.program.tensor_types import TensorTypes
from transplt.syntax.names import SELF
from transplt.syntax.nodes import call_of, last_name, plain_name
from transplt.syntax.scan import ancestor

_CODE = "NPU234"


class _Moves:
    """What is known of the receivers of `.cuda(x)` in a file, and of what they are given."""

    def __init__(self, work: Work) -> None:
        self.work = work
        program = program_of([work.file], work.project)
        self.types, self.modules = TensorTypes(program), NnModules(program)
        self.forms = DeviceForms(self.types)
        self.own, own = own_moves(work.slots), work.slots.own
        self.no_modules = {own.full_name(work.scan.scopes[each]) for each in work.scan.classes if not each.bases}

    def overrides(self, value: ast.expr, *, module: bool) -> bool | None:
        """True for an object of a class of the project with a `cuda` of its own, which gains an `npu` that does the
        same; None where it may be one of them.
        """
        if self.own <= (self.no_modules if module else set()):
            return False
        classes = self._classes(value)
        if classes is None:
            return None
        graph, known = self.work.project.reach.graph, [self.work.project.canonical(each) for each in classes]
        family = {*classes, *known, *(above for each in known for above in graph.above(each))}
        method = self.types.program.method
        if not self.own.isdisjoint(family) or any(method(each, "cuda") is not None for each in classes):
            return True
        below = plain_name(value) in SELF
        return None if below and any(not {*graph.above(each)}.isdisjoint(known) for each in self.own) else False

    def _classes(self, value: ast.expr) -> list[str] | None:
        """The full names of the classes of the project one of which an object is of; none for one of torch, and None
        where that is not known.
        """
        file, program, definition = self.work.file, self.types.program, self.work.slots.own.definition
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super":
            above = ancestor(value, ast.ClassDef, "_class")
            bases = above.bases if isinstance(above, ast.ClassDef) else []
            return [full for each in bases if (full := definition(each)) is not None]
        slot = program.slot(file, value)
        for each in (value, *(held.node for held in (program.values.get(slot, ()) if slot is not None else ()))):
            while isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in SAME_MODULE:
                each = each.func.value
            if isinstance(each, ast.Call):
                if (self.work.names.qualified(each.func) or "").startswith("torch."):
                    return []
                found = definition(each.func)
                if found is not None and found.rpartition(".")[2].lstrip("_")[:1].isupper():
                    return [found]
        cls = program.class_of(file, value)
        return [cls] if cls else None


def _rewritten(work: Work) -> frozenset[int]:
    """The nodes that fixers of lower rank change."""
    return frozenset(id(edit.node) for edit in work.rewrites)


def method_of_move(work: Work, node: ast.Attribute) -> Decides[str]:
    """The method that takes the place of `.cuda`; empty where the file alone does not tell which."""
    call = call_of(node)
    if call is None or not (call.args or call.keywords) or work.settings.style == "portable":
        return "npu"
    if id(call) in work.once(_rewritten):
        return "npu"  # of several cards, the one of the rank: the argument goes
    moves = work.once(_Moves)
    given = [*call.args, *(each.value for each in call.keywords if each.arg in ("device", None))]
    if len(given) != 1 or len(call.args) + len(call.keywords) != 1:
        return "npu"  # with non_blocking: a tensor
    module = moves.modules.is_one(work.file, node.value)
    if not module and (moves.types.tensor(work.file, node.value) is not None or _is_storage(node)):
        return "npu"
    hidden = isinstance(given[0], ast.Starred) or (call.keywords and call.keywords[0].arg is None)
    forms = frozenset({"unknown"}) if hidden else moves.forms.of(work.file, given[0])
    overrides = moves.overrides(node.value, module=module)
    if overrides or (overrides is None and not module):
        return "npu"
    if forms == DEVICE and overrides is False:
        return "to"
    if not module or forms.isdisjoint(("device", "unknown")):
        return "npu"
    text = work.text(given[0])
    yield work.note(
        call,
        _CODE,
        f"`.npu({text})` of a module takes a card number, and {text} may be a string or a torch.device here",
        api="torch.nn.Module.cuda",
        help=f"write .to({text}) where it is a string or a torch.device; for a number or None .npu({text}) is right, "
        "and .to(None) would leave the module on the CPU",
    )
    alone = not work.project.known and forms <= {"device", "unknown"}
    return "" if alone else "npu"


def _is_storage(node: ast.Attribute) -> bool:
    """True for what may be a storage, whose `to` takes no device by position: `x.untyped_storage()`, and what a
    `map_location` gets, by its name or as the first of two that a lambda takes.
    """
    made = node.value
    if isinstance(made, ast.Call):
        return last_name(made.func) in ("storage", "untyped_storage", "typed_storage")
    above = ancestor(node, ast.Lambda, "_lambda")
    names = [each.arg for each in above.args.args] if isinstance(above, ast.Lambda) else []
    return "storage" in last_name(made) or (len(names) == 2 and last_name(made) == names[0])
