"""Files of others that hold a whole module, which `torch.load` refuses since torch 2.6 (whole_objects.py says why).

`torch.load("yolov5s.pt")["model"].float().state_dict()`, `net = torch.load(path); net.eval()`: what is loaded is asked
for what modules alone have.
"""

from __future__ import annotations

import ast

from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.whole_objects import refused_load
from transplt.flow.last_value import last_value
from transplt.flow.program_switches import loads_objects
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.nodes import call_of
from transplt.syntax.scan import chain

fixer = Fixer(__name__, code="NPU154", rank=181, versions=">=2.6", needs=(b"torch",), words=("torch.load", "th.load("))

_ASKED = sorted({*names_of(MODULE, "module_only"), "state_dict"})
_HELP = "if you trust the file, load it with weights_only=False"


@fixer.on(ast.Module)
def modules_that_are_loaded(work: Work, tree: ast.Module) -> Finds:
    """One finding for each load whose value is used as a module, where nothing asks first whether it is one."""
    if loads_objects(work.scan.path, work.project.switches):
        return
    said: set[int] = set()
    for name in _ASKED:
        for node in work.scan.attributes.get(name, ()):
            tests = [work.text(each.test) for each in chain(node) if isinstance(each, (ast.If, ast.IfExp))]
            asked = any(word in test for test in tests for word in ("isinstance(", "hasattr(", "type("))
            load = _loaded(work, node.value) if call_of(node) is not None and not asked else None
            if load is not None and id(load) not in said:
                said.add(id(load))
                message = f"torch.load refuses this file since torch 2.6: the program calls .{name}() on its content"
                here = work.source.extent(load.func), fixer.code
                if here not in [(each.extent, each.code) for each in work.notes]:
                    yield refused_load(work, load, message, _HELP)


def _loaded(work: Work, value: ast.expr) -> ast.Call | None:
    """The call of torch.load that a value comes from, itself, as an item, or by methods that give a module back."""
    for _ in range(8):
        match value:
            case ast.Name():
                above = last_value(work.scan, value)
                if not isinstance(above, ast.Call):
                    return None
                value = above
            case ast.Subscript(value=of):
                value = of
            case ast.Call(func=ast.Attribute(value=of, attr=method)) if method in names_of(MODULE, "returns_self"):
                value = of
            case ast.Call() if work.names.qualified(value.func) == "torch.load":
                given = {each.arg for each in value.keywords}
                return None if given & {"weights_only", "pickle_module", None} else value
            case _:
                return None
    return None
