"""`torch.nn.DataParallel` takes its first card: torch_npu does not divide a batch among the cards of one process.

torch_npu has no `torch._C._scatter` (it belongs to CUDA builds of torch), with which DataParallel divides a batch even
for one card. A subclass that moves the batch instead keeps all else: the names in checkpoints, `.module`, `isinstance`,
and inputs that come from the host. DataParallel knows other devices than CUDA since torch 2.1 (torch/_utils.py,
`_get_available_device_type`).
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Beside, Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.lines import blank_lines_above
from transplt.edits.parting import can_part
from transplt.edits.work import Work
from transplt.finding import Level
from transplt.syntax.asks import begins, first_code, keyword_of, root_name
from transplt.syntax.scan import parent, statement
from transplt.trees.names import dotted

fixer = Fixer(__name__, code="NPU135", rank=405, versions=">=2.1", words=("DataParallel",))

_NAME = "OneCardDataParallel"
_KEY = "one card"
_FULL = ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel")
_CLASS = '''\
class {name}({base}):
    """DataParallel on its first card: torch_npu does not divide a batch among the cards of one process."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__(module, [device_ids[0] if device_ids else 0], dim=dim)

    def scatter(self, inputs, kwargs, device_ids):
        def move(value):
            if isinstance(value, torch.Tensor):
                return value.to(self.src_device_obj)
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*map(move, value))
            if isinstance(value, (list, tuple)):
                return type(value)(map(move, value))
            if isinstance(value, dict):
                return type(value)((key, move(each)) for key, each in value.items())
            return value

        return [move(inputs)], [move(kwargs)]

'''
_SEVERAL = "several cards take one process each"


@fixer.on(ast.Call, name=_FULL)
def on_its_first_card(work: Work, call: ast.Call) -> Finds:
    """Call the subclass; the class itself goes in once."""
    if work.settings.style == "portable" or _is_saved_whole(work, call):
        return
    place = _place(work, call)
    if place is None or not can_part(work.source, place) or not work.take(call.func):
        return
    name, api = _new_name(work), str(work.names.qualified(call.func))
    message = f"{api} -> {name}: the whole batch goes to one card"
    if name not in work.new_names:
        work.new_names.add(name)
        text = blank_lines_above(work.source, place) + _CLASS.format(name=name, base=work.text(call.func))
        where = Beside(place, above_comments=True)
        yield Edit(where, fixer.code, message, text, group=fixer.code)
    work.between_visits.setdefault(_KEY, {})[id(call.func)] = name
    yield Edit(call.func, fixer.code, message, dotted(name), api=api, group=fixer.code, imports=("torch",))
    yield work.note(call, "NPU507", f"{api} uses one card on an NPU", level=Level.INFO, api=api, help=_advice(work))


def one_card_name(work: Work, func: ast.expr) -> str:
    """What a call of DataParallel is named now: the class that went in; the text as it was for every other call."""
    name: str = work.between_visits.get(_KEY, {}).get(id(func), "")
    return name or work.text(func)


@fixer.on(ast.ClassDef)
def divides_by_itself(work: Work, node: ast.ClassDef) -> Finds:
    """A subclass with a `scatter` of its own, such as the one that goes in, needs none of CUDA's."""
    if "scatter" in work.scan.scopes[node].bindings:
        for base in node.bases:
            if work.names.qualified(base) in _FULL:
                work.take(base)
    yield from ()


def _place(work: Work, call: ast.Call) -> ast.stmt | None:
    """The statement above which the class goes: below the import of its base, above its use."""
    root = root_name(call.func)
    binding = work.names.import_of(root) if root is not None else None
    if binding is None:
        return None
    above = binding.node if isinstance(binding.node, ast.stmt) else parent(binding.node)
    if not isinstance(parent(above), ast.Module):
        return None
    place = first_code(work.scan.tree, above)
    return place if begins(above) < begins(place) <= begins(call) else None


def _advice(work: Work) -> str:
    if b"DistributedDataParallel" in work.source.utf8:
        return f"{_SEVERAL}: this file has DistributedDataParallel of its own for that, and is to be started that way"
    return f"{_SEVERAL}: `transplt ... distributed -m SCRIPT` writes that for a training script, or says why it cannot"


def _new_name(work: Work) -> str:
    """The name of the class, other than all names of the file."""
    name = _NAME
    while name in work.scan.names or name in work.scan.root.bindings:
        if name in work.new_names:
            break
        name += "_"
    return name


def _is_saved_whole(work: Work, call: ast.Call) -> bool:
    """True when the wrapper may be pickled as an object: the class would be looked for where it is loaded."""
    stored_by = statement(call)
    targets = stored_by.targets if isinstance(stored_by, ast.Assign) else []
    stored = {ast.unparse(target) for target in targets}
    for save in work.calls_by_name(("torch.save",)):
        saved = save.args[0] if save.args else keyword_of(save, "obj")
        held = saved.values if isinstance(saved, ast.Dict) else [saved]
        if any(isinstance(each, (ast.Name, ast.Attribute)) and ast.unparse(each) in stored for each in held if each):
            return True
    return False
