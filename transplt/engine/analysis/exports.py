"""What is worth knowing where a model is saved, loaded and exported: ONNX, and the names in checkpoints.

Sources: the chapter on saving and exporting of the Ascend PyTorch porting guide; the lists of ONNX operators in CANN's
documentation (5.0.4 and 6.0.1: opset 9 to 13; 7.0: 9 to 18; since 8.0 by operator); torch/onnx in torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.engine.analysis.verdicts import argument
from transplt.flow.last_value import last_value
from transplt.rules.torch_callables import full_names
from transplt.syntax.nodes import call_of, hides_arguments, inner_nodes, last_name, plain_name, root_name, string_of
from transplt.syntax.scan import parent

_EXPORT, _TRACE = "torch.onnx.export", "torch.jit.trace"
_OPSETS = range(9, 19)
_CARDS = ("cuda", "npu")
#: What makes no module of the file's own: scripted, traced, exported or loaded models, and wrappers of functions.
_NO_MODULES = frozenset("script trace load load_model export from_pretrained compile partial".split())
#: Calls and names that are looked through.
_DEEPEST = 12
_TAR = (".pth.tar", ".pt.tar")

Place = tuple[ast.expr, str, str]


def exports(file: ScannedFile) -> Iterator[Place]:
    """(place, key of the advice, API) of what exports and saves in a file."""
    for node, full in file.chains:
        call = call_of(node)
        if call is None or hides_arguments(call):
            continue
        leaves = full == _EXPORT or (full == _TRACE and "save" in file.scan.attributes)
        if leaves and _trains(file, call):
            yield call, "export_training", full
        if full == _EXPORT:
            yield from _to_onnx(file, call)
    yield from _prefixes(file)
    for node in file.scan.attributes.get("load_state_dict", ()):
        call = call_of(node)
        if call is not None and call.args and _is_tar(file, call.args[0]):
            yield call, "checkpoint_of_parts", "torch.load"


def _to_onnx(file: ScannedFile, call: ast.Call) -> Iterator[Place]:
    opset = argument(call, "opset_version", None)
    if opset is None:
        yield call, "opset_default", _EXPORT
    elif isinstance(opset, ast.Constant) and type(opset.value) is int and opset.value not in _OPSETS:
        yield call, "opset", _EXPORT
    if any(_on_card(file, given) for given in (*call.args[:2], argument(call, "args", None)) if given is not None):
        yield call, "export_on_card", _EXPORT
    if all(argument(call, name, None) is None for name in ("dynamic_axes", "dynamic_shapes")):
        yield call, "fixed_sizes", _EXPORT


# --- the mode of a model ---------------------------------------------------------------------------------------------


def _trains(file: ScannedFile, call: ast.Call) -> bool:
    """True for a model that the file makes and never puts into the mode of inference."""
    model = argument(call, "model", 0) or argument(call, "func", 0)
    if not isinstance(model, ast.Name) or argument(call, "training", None) is not None:
        return False
    made = last_value(file.scan, model)
    if not isinstance(made, ast.Call) or last_name(made.func) in _NO_MODULES:
        return False
    return not any(name in file.scan.attributes for name in ("eval", "train"))


# --- where an export runs --------------------------------------------------------------------------------------------


def _on_card(file: ScannedFile, node: ast.expr, depth: int = 0) -> bool:
    """True for what says that it lies on a card: `.cuda()`, `.npu()`, `.to("cuda:0")`, `device="npu"`."""
    if depth > _DEEPEST:
        return False
    match node:
        case ast.Tuple(elts=elts) | ast.List(elts=elts):
            return any(_on_card(file, each, depth + 1) for each in elts)
        case ast.Name():
            given = last_value(file.scan, node)
            return given is not None and _on_card(file, given, depth + 1)
        case ast.Call(func=func, args=args, keywords=keywords):
            arguments = [*args, *(each.value for each in keywords if each.arg == "device")]
            if any((string_of(each) or "").partition(":")[0] in _CARDS for each in arguments):
                return True
            if isinstance(func, ast.Attribute):
                if func.attr in _CARDS and file.names.qualified(func) is None:
                    return True
                return func.attr not in ("cpu", "to") and _on_card(file, func.value, depth + 1)
    return False


# --- names in checkpoints --------------------------------------------------------------------------------------------


def _prefixes(file: ScannedFile) -> Iterator[Place]:
    """States of a wrapped model that are saved with the names of the wrapper, in a file that never takes it off."""
    saved = [call for node in file.scan.attributes.get("state_dict", ()) if (call := call_of(node)) is not None]
    for call in saved:
        model = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(model, ast.Name) or not _goes_to_a_file(file, call) or not _is_wrapped(file, model):
            continue
        texts = map(string_of, inner_nodes(file.scan.tree, ast.Constant))
        if "module" in file.scan.attributes or any((text or "").startswith("module.") for text in texts):
            return
        yield call, "module_prefix", "torch.save"


def _is_wrapped(file: ScannedFile, model: ast.Name) -> bool:
    """True when a name is given a wrapper, and wherever it is given something it stands for one model."""
    bindings = file.scan.scope_of(model).bindings.get(model.id, ())
    values = [getattr(parent(each.node), "value", None) for each in bindings if each.kind == "assign"]
    wrappers = full_names("distributes", "replicates")
    wrapped = [each for each in values if isinstance(each, ast.Call) and file.names.qualified(each.func) in wrappers]
    return any(plain_name(root_name(each.args[0])) == model.id for each in wrapped if each.args) or (
        bool(wrapped) and len(wrapped) == len(bindings)
    )


def _goes_to_a_file(file: ScannedFile, call: ast.Call) -> bool:
    """True for a state in a call of torch.save: alone, or in the dict that is saved."""
    above = parent(call)
    while isinstance(above, (ast.Dict, ast.keyword)) or last_name(getattr(above, "func", None)) == "dict":
        above = parent(above)
    return isinstance(above, ast.Call) and file.names.qualified(above.func) == "torch.save"


def _is_tar(file: ScannedFile, given: ast.expr) -> bool:
    """True for `torch.load("model.pth.tar")`, directly or by a name."""
    if isinstance(given, ast.Name):
        given = last_value(file.scan, given) or given
    if not isinstance(given, ast.Call) or file.names.qualified(given.func) != "torch.load" or not given.args:
        return False
    path = given.args[0]
    if isinstance(path, ast.Name):
        path = last_value(file.scan, path) or path
    return (string_of(path) or "").endswith(_TAR)
