"""What the classes of a model do that goes wrong with O2, which makes their weights float16 and casts what goes in.

A float32 tensor that a forward pass makes for itself meets float16 weights: the hidden state of an RNN, a mask.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.program.program import File, Program, Variable
from transplt.rules.torch_callables import TENSOR, full_names, names_of
from transplt.syntax.nodes import arguments_of, by_place, called_name, inner_nodes
from transplt.syntax.scan import FUNCTIONS, parent

_MADE = full_names("default_type")
_TYPES = frozenset(f"torch.{where}FloatTensor" for where in ("", "cuda.", "npu.")) | {"torch.Tensor"}
#: What makes another type of a tensor, or the values of one.
_RETYPES = names_of(TENSOR, "casts", "reads", "shape") - {"to", "type", "float"}


def float_of_its_own(program: Program, models: Iterable[Variable]) -> tuple[File, ast.Call] | None:
    """The first call in the forward pass of some models that makes a float32 tensor there."""
    for file, cls in _classes(program, models):
        methods = [item for item in cls.body if isinstance(item, FUNCTIONS) and item.name != "__init__"]
        calls = [at for method in methods for at in inner_nodes(method, ast.Call)]
        for call in by_place(calls):
            if _makes_float(file, call):
                return file, call
    return None


def _gives_a_type(name: str, call: ast.Call) -> bool:
    """True for `.to(x)`, `.to(x.dtype)`, `.to(device, dtype)` and `.type(x.dtype)`, not for `.to(device)`."""
    texts = [ast.unparse(item) for item in arguments_of(call)]
    to_type = len(texts) > 1 or any("device" not in text and "cuda" not in text for text in texts)
    return name == "type" or (name == "to" and to_type)


def _makes_float(file: File, call: ast.Call) -> bool:
    full = file.names.qualified(call.func) or ""
    if full not in _TYPES and (full not in _MADE or any(keyword.arg == "dtype" for keyword in call.keywords)):
        return False
    if full == "torch.normal" and call.args and not isinstance(call.args[0], ast.Constant):
        return False  # takes the type of what it is given
    at: ast.AST = call
    while True:
        above = parent(at)
        if isinstance(above, ast.Compare):
            return False
        if isinstance(above, ast.Attribute):
            used = parent(above)
            if above.attr in _RETYPES or (isinstance(used, ast.Call) and _gives_a_type(above.attr, used)):
                return False
            at = used
        elif called_name(above) == "Variable":
            at = above
        else:
            return True


def _classes(program: Program, models: Iterable[Variable]) -> list[tuple[File, ast.ClassDef]]:
    """The classes of the program that some models are made of, with those of their parts."""
    found: dict[ast.ClassDef, File] = {}
    values = [value for slot in models for value in program.values.get(slot, ()) if value.index is None]
    pending: list[tuple[File, ast.AST]] = [(value.file, value.node) for value in values]
    seen: set[ast.AST] = set()
    while pending:
        file, node = pending.pop()
        for call in ast.walk(node):
            made = program.callee(file, call) if isinstance(call, ast.Call) else None
            if isinstance(made, FUNCTIONS) and made not in seen:
                seen.add(made)
                pending += [(program.owner[made], value) for value in program.returns(made)]
            if not isinstance(made, ast.ClassDef) or made in found:
                continue
            found[made] = owner = program.owner[made]
            setup = [item for item in made.body if isinstance(item, FUNCTIONS) and item.name == "__init__"]
            pending += [(owner, item) for method in setup for item in method.body]
    return [(file, cls) for cls, file in found.items()]
