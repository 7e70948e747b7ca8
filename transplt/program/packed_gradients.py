"""What in a program takes gradients or parameters out of the tensors into which the fused optimizers pack them."""

from __future__ import annotations

import ast
import re

from transplt.program.cards import MOVES
from transplt.program.frameworks import OPTIMIZER, taken_over
from transplt.program.layers import left_out_at_times
from transplt.program.loops import loops_around
from transplt.program.parameters import gradients_asked, is_part, last_of, models_asked, over_parameters
from transplt.program.program import File, Program, Variable
from transplt.program.steps import goes_back
from transplt.syntax.nodes import arguments_of, by_place, is_false, string_of
from transplt.syntax.scan import parent

Hazard = tuple[str, str]
_PACKED = "the fused optimizers pack gradients and parameters at their first step"
#: Parts of apex that leave the optimizers and gradients of others alone.
_APEX_PARTS = ("apex.optimizers", "apex.normalization", "apex.multi_tensor_apply", "apex.contrib")
_APEX = "with amp of Ascend's apex use apex.optimizers.NpuFused... and amp.initialize(..., combine_grad=True)"
_SETTINGS = "choose the fused optimizer in its settings"
_SHARDED = ("torch.distributed.fsdp", "torch.distributed._composable", "torch.distributed.tensor")
_EMBEDDINGS = frozenset({"embedding", "embeddingbag", "embedding_bag", "from_pretrained"})
_WIDE = "creates a model that is neither float32 nor float16"
_WIDE_TYPES = re.compile(r"bfloat16|BFloat16|float64|double|Double")
_CARD = re.compile(r"(?:torch\.device\()?'(?:cuda|npu):(\d+)'\)?|(\d+)")


def hazards(program: Program, optimizers: set[Variable]) -> list[tuple[str, Hazard]]:
    """What keeps the optimizers of a program from being fused: the file that has it, why, and what to do."""
    models, every = models_asked(program), []
    if (left_out := left_out_at_times(program)) is not None:
        file, cls = left_out
        why = f"some steps skip a layer of {cls.name} ({file.path}:{cls.lineno})"
        every.append((file.path, (why, f"{_PACKED}, without those that have no gradient then")))
    for file in sorted(program.files, key=lambda item: item.path):
        for found in (
            _imports(file),
            _calls(program, file, optimizers, models),
            _stores(file),
            _freed(file, models),
            _deleted(file),
            _handed_on(program, file, optimizers),
            _on_several_cards(file),
        ):
            if found is not None:
                where = f" ({file.path}:{found[2]})" if found[2] else ""
                every.append((file.path, (found[0] + where, found[1])))
    return every


def modules_zeroed(program: Program, optimizers: set[Variable]) -> list[tuple[File, ast.Call]]:
    """Calls of `model.zero_grad()`, which sets gradients to None unless it is told not to."""
    models, found = models_asked(program) - {"self"}, []
    for file in program.files:
        for node in file.scan.attributes.get("zero_grad", ()):
            call = parent(node)
            bare = isinstance(call, ast.Call) and call.func is node and not call.args and not call.keywords
            if bare and last_of(node.value) in models and program.slot(file, node.value) not in optimizers:
                assert isinstance(call, ast.Call)
                found.append((file, call))
    return found


def _imports(file: File) -> tuple[str, str, int] | None:
    for node in file.scan.imports:
        named = node.names if isinstance(node, ast.Import) else []
        modules = [alias.name for alias in named] if named else [getattr(node, "module", "") or ""]
        if isinstance(node, ast.ImportFrom) and node.level:
            continue
        for module in modules:
            if module.startswith(_SHARDED):
                return "parameters are sharded", "keep the optimizer: FSDP creates its own flat parameters", node.lineno
            if module.split(".")[0] == "apex" and not module.startswith(_APEX_PARTS):
                return "the program uses apex, which has its own fused optimizers", _APEX, node.lineno
            if (framework := taken_over(OPTIMIZER, module)) is not None:
                return f"the program uses {framework.called}", _SETTINGS, node.lineno
    used: list[ast.expr] = [*(call.func for call in file.scan.calls), *(b for c in file.scan.classes for b in c.bases)]
    for name in by_place(used):
        if (framework := taken_over(OPTIMIZER, file.names.qualified(name) or "")) is not None:
            return f"the program uses {framework.called}", _SETTINGS, name.lineno
    return None


def _calls(program: Program, file: File, optimizers: set[Variable], models: set[str]) -> tuple[str, str, int] | None:
    for call in by_place(file.scan.calls):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if _is_on(given.get("sparse")) and last_of(call.func).lower() in _EMBEDDINGS:
            return "an embedding has sparse gradients", "the fused optimizers refuse them", call.lineno
        for name in ("gradient_as_bucket_view", "find_unused_parameters"):
            if _is_on(given.get(name)):
                return f"{name}=True", f"{_PACKED}; remove the argument", call.lineno
        if last_of(call.func) == "backward" and _is_on(given.get("create_graph")):
            help_ = f"{_PACKED}: use torch.autograd.grad(..., create_graph=True) for gradients in a loss"
            return "backward(create_graph=True) replaces gradients", help_, call.lineno
        if last_of(call.func) == "vector_to_parameters" or _is_on(given.get("assign")):
            return f"{ast.unparse(call.func)} replaces parameters", f"{_PACKED}: use copy_", call.lineno
        if _is_model_of_wide_numbers(file, call, given, models):
            return f"{ast.unparse(call.func)}() {_WIDE}", f"{_PACKED}, which are float32 or float16", call.lineno
        own = isinstance(call.func, ast.Attribute) and program.slot(file, call.func.value) in optimizers
        if (hazard := _of_method(call, models, of_an_optimizer=own)) is not None:
            return *hazard, call.lineno
    return None


def _of_method(call: ast.Call, models: set[str], *, of_an_optimizer: bool) -> Hazard | None:
    """What a method takes out of the packed tensors."""
    match call.func:
        case ast.Attribute(value=receiver, attr=name):
            text, of_model = ast.unparse(call.func), last_of(receiver) in models
        case _:
            return None
    if name == "share_memory" or (name == "share_memory_" and (over_parameters(call) or of_model)):
        return f"{text}() shares parameters between processes", f"{_PACKED}, outside shared memory"
    if name == "zero_grad" and not of_an_optimizer:
        argument = next(iter(arguments_of(call)), None)
        # `modules_zeroed` has those of modules.
        if not is_false(argument) and not (argument is None and last_of(receiver) in models - {"self"}):
            why = f"{ast.unparse(receiver)}.zero_grad() sets gradients to None"
            return why, f"{_PACKED}: call the optimizer's zero_grad instead"
    if name == "add_param_group":
        return "parameters join the optimizer later", _PACKED
    if name in ("cpu", "bfloat16", "to_empty") and not call.args and of_model:
        return f"{text}() moves parameters", f"{_PACKED}; copy the state_dict instead"
    if name == "to" and of_model:
        aims = " ".join(ast.unparse(item) for item in arguments_of(call))
        if "'cpu'" in aims or "bfloat16" in aims:
            return f"{ast.unparse(call)} moves parameters", f"{_PACKED}; copy the state_dict instead"
    return None


def _is_model_of_wide_numbers(file: File, call: ast.Call, given: dict[str | None, ast.expr], models: set[str]) -> bool:
    """True where a model is made of bfloat16 or float64, which the fused optimizers refuse, or may be."""
    full = file.names.qualified(call.func) or ""
    if full in ("torch.set_default_dtype", "torch.set_default_tensor_type"):
        return any(_WIDE_TYPES.search(ast.unparse(item)) for item in call.args)
    if not _makes_one_of(call, models):
        return False
    if last_of(call.func) in ("bfloat16", "double"):
        return not call.args
    if last_of(call.func) == "to":
        return any(_WIDE_TYPES.search(ast.unparse(item)) for item in [*call.args, *given.values()])
    chosen = given.get("torch_dtype", given.get("dtype"))
    if chosen is None:
        return False
    if last_of(call.func) == "from_pretrained":
        return not re.fullmatch(r"None|(torch\.)?(float16|float32|half|float)", ast.unparse(chosen))
    return _WIDE_TYPES.search(ast.unparse(chosen)) is not None


def _makes_one_of(call: ast.Call, models: set[str]) -> bool:
    """True for a call in the chain that makes a model: `Net().to(device)` in `model = Net().to(device).double()`."""
    node: ast.AST = call
    above = parent(node)
    while (isinstance(above, ast.Attribute) and above.value is node) or (
        isinstance(above, ast.Call) and above.func is node
    ):
        node, above = above, parent(above)
    if not isinstance(above, ast.Assign) or above.value is not node:
        return False
    return any(last_of(target) in models for target in above.targets)


def _stores(file: File) -> tuple[str, str, int] | None:
    for store in by_place(file.scan.stores):
        if isinstance(parent(store), ast.AugAssign) and store.attr in ("grad", "data"):
            continue  # in place
        if store.attr == "grad" or (store.attr == "data" and last_of(store.value) == "grad"):
            return "a gradient is replaced", f"{_PACKED}: change it in place", store.lineno
        if store.attr == "data":
            loop = next(iter(loops_around(store)), None)
            if over_parameters(store) or (loop is not None and goes_back(loop)):
                return "a parameter is replaced", f"{_PACKED}: use copy_", store.lineno
    return None


def _freed(file: File, models: set[str]) -> tuple[str, str, int] | None:
    for asked in gradients_asked(file):
        if not asked.freezes and (over_parameters(asked.node) or is_part(asked.of, models)):
            why = "parameters are frozen and unfrozen"
            return why, f"{_PACKED}, without those that have no gradient then", asked.node.lineno
    return None


def _deleted(file: File) -> tuple[str, str, int] | None:
    """`del p.grad`."""
    for node in file.scan.attributes.get("grad", ()):
        if isinstance(node.ctx, ast.Del):
            return "a gradient is replaced", f"{_PACKED}: zero it in place", node.lineno
    return None


def _handed_on(program: Program, file: File, optimizers: set[Variable]) -> tuple[str, str, int] | None:
    """`reset = model.zero_grad` and `getattr(model, "zero_grad")`: what is called then cannot be told to keep them.

    An optimizer's own are looked at where it is followed.
    """
    help_ = f"{_PACKED}: call the optimizer's zero_grad directly"
    for node in by_place(file.scan.attributes.get("zero_grad", ())):
        above = parent(node)
        used = isinstance(above, (ast.Compare, ast.BoolOp)) or (isinstance(above, ast.Call) and above.func is node)
        if isinstance(node.ctx, ast.Load) and not used and program.slot(file, node.value) not in optimizers:
            return f"{ast.unparse(node)} is passed on, and sets gradients to None", help_, node.lineno
    for call in by_place(file.scan.calls):
        by_name = last_of(call.func) in ("getattr", "methodcaller")
        if by_name and any(string_of(item) == "zero_grad" for item in call.args):
            return f"{ast.unparse(call)} sets gradients to None", help_, call.lineno
        if last_of(call.func) in ("setattr", "delattr") and len(call.args) > 1 and string_of(call.args[1]) == "grad":
            return "a gradient is replaced", f"{_PACKED}: change it in place", call.lineno
    return None


def _on_several_cards(file: File) -> tuple[str, str, int] | None:
    """Two calls with different numbers of a card."""
    seen = ""
    for call in by_place(file.scan.calls):
        if last_of(call.func) not in MOVES:
            continue
        for item in arguments_of(call):
            if (found := _CARD.fullmatch(ast.unparse(item))) is not None:
                number = found[1] or found[2]
                if seen and number != seen:
                    return "the program uses several cards", f"{_PACKED}, all on one card", call.lineno
                seen = number
    return None


def _is_on(node: ast.expr | None) -> bool:
    """True for an argument that may be true."""
    return node is not None and not is_false(node)
