"""Programs that autocast does not serve: models of float64, and functions of their own that are differentiated by hand.

Autocast leaves float64 as it is (https://docs.pytorch.org/docs/stable/amp.html). It is off in a backward pass, where
`backward` of a torch.autograd.Function multiplies what `forward` got with gradients of half precision; torch raises for
two types (https://docs.pytorch.org/docs/stable/notes/amp_examples.html, custom_fwd and custom_bwd).
"""

from __future__ import annotations

import ast

from transplt.fixers.amp.reading import networks
from transplt.program.program import File, Program
from transplt.syntax.nodes import arguments_of, call_of, called_name, last_name, variable
from transplt.syntax.scan import FUNCTIONS, parent

_WIDE = frozenset({"double", "float64", "DoubleTensor"})
_DEFAULTS = frozenset({"torch.set_default_dtype", "torch.set_default_tensor_type"})
_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})
_PRODUCTS = frozenset(
    "mm bmm matmul addmm baddbmm mv einsum linear bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d "
    "conv_transpose3d conv2d_input conv2d_weight tensordot".split()
)
_DECORATED = frozenset({"custom_fwd", "custom_bwd"})


def unserved(program: Program) -> tuple[str, str] | None:
    """Why autocast does not serve a program, and what to do; None where nothing of the kind is seen."""
    for file in program.files:
        if (b"double" in file.source.utf8 or b"float64" in file.source.utf8) and (line := _float64(file)):
            why = f"the model is float64, which autocast does not change ({file.path}, line {line})"
            return why, "convert model and data to float32 first"
    for file in program.files:
        if b"Function" in file.source.utf8 and (cls := _multiplies(program, file)) is not None:
            why = f"the backward pass of {cls.name} multiplies tensors of two types under autocast ({file.path})"
            do = 'put @torch.amp.custom_fwd(device_type="npu", cast_inputs=torch.float32) above its forward and '
            return why, do + '@torch.amp.custom_bwd(device_type="npu") above its backward, and run transplt again'
    return None


def _float64(file: File) -> int:
    """The line that makes a model of float64, or all tensors; 0 for none."""
    models = networks(file)
    for call in file.scan.calls:
        if file.names.qualified(call.func) in _DEFAULTS:
            if any(_is_wide(each) for each in call.args):
                return call.lineno
        elif isinstance(call.func, ast.Attribute) and call.func.attr in ("double", "to"):
            wide = not call.args if call.func.attr == "double" else any(map(_is_wide, arguments_of(call)))
            if wide and _is_one_of(call, models):
                return call.lineno
    return 0


def _is_wide(node: ast.expr) -> bool:
    text = node.value.rpartition(".")[2] if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
    return last_name(node) in _WIDE or text in _WIDE


def _is_one_of(call: ast.Call, models: set[str]) -> bool:
    """True for `model.double()`, and for `model = Net().to(device).double()`."""
    assert isinstance(call.func, ast.Attribute)
    if isinstance(call.func.value, (ast.Name, ast.Attribute)):
        return ast.unparse(call.func.value) in models
    node: ast.AST = call
    while isinstance(above := parent(node), (ast.Attribute, ast.Call)) and node in (
        getattr(above, "value", None), getattr(above, "func", None)
    ):  # fmt: skip
        node = above
    return isinstance(above, ast.Assign) and any(variable(target) in models for target in above.targets)


def _multiplies(program: Program, file: File) -> ast.ClassDef | None:
    """A class of the file whose backward pass multiplies matrices of what it is given, and that the program applies."""
    for cls in file.scan.classes:
        if not any(file.names.qualified(base) in _FUNCTIONS for base in cls.bases):
            continue
        methods = {each.name: each for each in cls.body if isinstance(each, FUNCTIONS)}
        decorated = {last_name(each.func if isinstance(each, ast.Call) else each)
                     for method in methods.values() for each in method.decorator_list}  # fmt: skip
        both = [methods[name] for name in ("forward", "backward") if name in methods]
        if len(both) == 2 and not decorated & _DECORATED and all(map(_has_product, both)) and _applied(program, cls):
            return cls
    return None


def _has_product(method: ast.AST) -> bool:
    return any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)) or called_name(node) in _PRODUCTS
        for node in ast.walk(method)
    )


def _applied(program: Program, cls: ast.ClassDef) -> bool:
    for file in program.files:
        for node in file.scan.attributes.get("apply", ()):
            stored = call_of(node) is not None or isinstance(parent(node), (ast.Assign, ast.keyword))
            if stored and program.definition(file, node.value) is cls:
                return True
    return False
