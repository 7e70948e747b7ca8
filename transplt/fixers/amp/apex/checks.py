"""What does not go with apex, anywhere in a program."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from transplt.edits.shared_lines import can_part
from transplt.fixers.amp.apex.place import Initialization, Refused
from transplt.fixers.amp.precision import GRAM, gram_matrix
from transplt.fixers.amp.reading import zeroes
from transplt.fixers.amp.steps import limiting_hook
from transplt.program.models import defines_optimizer
from transplt.program.program import File, Program, enclosing_function, text_of
from transplt.rules.torch_callables import MODULE, TENSOR, full_names, names_of
from transplt.syntax.nodes import (
    attribute_of,
    begins,
    by_place,
    ends,
    inner_nodes,
    keyword_of,
    of_kind,
    plain_name,
    string_of,
)
from transplt.syntax.scan import chain, parent, statement

_SHARDED = (
    "torch.distributed.fsdp.", "torch.distributed._composable.", "torch.distributed.tensor.", "torch.distributed.rpc.",
    "torch.distributed._tensor.", "torch.distributed.pipelining.", "torch.distributed.autograd.",
    "torch.distributed.optim.",
)  # fmt: skip
#: Methods of modules that run no network, and do not take the float32 that apex keeps.
_HOUSEKEEPING = names_of(MODULE, "runs_nothing") - names_of(MODULE, "casts_to_16_bits") | {"no_sync"}


@dataclass(frozen=True, slots=True)
class Pass:
    """A backward pass with the spellings of its optimizers; `loss_id` where each loss has a scale of its own."""

    file: File
    call: ast.Call
    optimizers: tuple[str, ...]
    loss_id: int | None = None

    @property
    def owner(self) -> str:
        """How the optimizers are given to amp.scale_loss."""
        return self.optimizers[0] if len(self.optimizers) == 1 else f"[{', '.join(self.optimizers)}]"


def check_lines(file: File, node: ast.stmt) -> None:
    """Lines can go in around a statement, whose line is parted when it shares it."""
    if not can_part(file.source, node):
        do = "put each statement on its own line and run transplt again"
        raise Refused(file, node, "the statements of this line cannot be split", do)


def check_file(program: Program, file: File, place: Initialization, level: str) -> None:
    """What apex does not go with, anywhere in the program."""
    for call in by_place(file.scan.calls):
        full = file.names.qualified(call.func) or ""
        last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if full.startswith(_SHARDED):
            raise Refused(
                file, call, f"{full} keeps parameters in shards or on other processes, which apex does not support",
                "use the mixed precision of the sharding library",
            )  # fmt: skip
        if full == "torch.spmm" or full.startswith("torch.sparse") or last == "to_sparse":
            raise Refused(
                file, call, "sparse tensors have no products in half precision", "keep this training in float32",
            )  # fmt: skip
        if level == "O2":
            _check_call(program, file, call, place)
            _check_whole(program, file, call, place)
    if level == "O1":
        for body in (file.scan.tree.body, *(function.body for function in file.scan.functions)):
            if (product := gram_matrix(file, body)) is not None:
                raise Refused(file, product, GRAM, "keep this training in float32")
    if (hook := limiting_hook(file)) is not None:
        raise Refused(
            file, hook, "a hook limits gradients while they are scaled",
            "clip after the backward pass, with torch.nn.utils.clip_grad_value_, and run transplt again",
        )  # fmt: skip
    for node in by_place(file.scan.attributes.get("grad", ())):
        if isinstance(node.ctx, ast.Load) and not zeroes(node):
            _check_gradient(program, file, node, level)


def _check_gradient(program: Program, file: File, node: ast.Attribute, level: str) -> None:
    """What reads a gradient reads it as the optimizer gets it."""
    if level == "O1" and _of_no_optimizer(file, node):
        raise Refused(
            file, node, f"gradients of {text_of(file, node.value)} stay scaled, because no optimizer has them",
            "divide them by the loss scale before they are used, or keep this training in float32",
        )  # fmt: skip
    in_optimizer = any(defines_optimizer(program, at) for at in of_kind(ast.ClassDef, chain(node)))
    if level == "O2" and not isinstance(parent(node), ast.Compare) and not in_optimizer:
        raise Refused(
            file, node, "this reads gradients of the model, which stay scaled and in float16 with O2",
            "use those of amp.master_params(optimizer)",
        )  # fmt: skip


def _of_no_optimizer(file: File, node: ast.Attribute) -> bool:
    """True for `x.grad` of a variable of which the function asks for gradients, but for its sign and for its being."""
    name, above = plain_name(node.value), parent(node)
    while isinstance(above, ast.Attribute):
        if above.attr in ("sign", "sign_"):
            return False
        above = parent(above)
    if not name or isinstance(above, ast.Compare):
        return False
    function = enclosing_function(node)
    asked = (
        at.value
        for word in ("requires_grad", "requires_grad_", "retain_grad")
        for at in (*file.scan.attributes.get(word, ()), *file.scan.stores)
        if attribute_of(at) == word and enclosing_function(at) is function
    )
    if any(plain_name(base) == name for base in asked):
        return True
    found = file.names.lookup(name, file.scan.scope_of(node))
    values = [getattr(parent(binding.node), "value", None) for binding in (found[1] if found is not None else ())]
    given = (keyword_of(at, "requires_grad") for value in of_kind(ast.Call, values)
             for at in inner_nodes(value, ast.Call))  # fmt: skip
    return any(value.value is True for value in of_kind(ast.Constant, given))


def loose(program: Program, file: File, place: Initialization) -> str:
    """What would tear gradients out of the one tensor that combine_grad makes of them; empty when nothing does."""
    for node in file.scan.stores:
        if node.attr == "grad":
            return f"{file.path}:{node.lineno} sets gradients one by one"
    for call in file.scan.calls:
        match call.func:
            case ast.Attribute(value=base, attr="cpu"):
                pass
            case ast.Attribute(value=base, attr="to") if "cpu" in map(string_of, call.args):
                pass
            case _:
                continue
        while isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute):
            base = base.func.value
        if program.slot(file, base) in place.held:
            return f"{file.path}:{call.lineno} moves the model to the CPU"
    return ""


def check_weights(program: Program, file: File, place: Initialization, passes: list[Pass]) -> None:
    """O2 copies float32 weights over those of the model behind every step: what changes these by hand is lost."""
    for node in by_place(file.scan.attributes.get("data", ())):
        above = parent(node)
        if not isinstance(above, ast.Attribute) or not above.attr.endswith("_") or above.attr == "zero_":
            continue
        function = enclosing_function(node)
        early = file is place.file and begins(node) < ends(place.after)
        if not any(one.file is file and enclosing_function(one.call) is function for one in passes) or early:
            continue
        names = {at.id for at in inner_nodes(node, ast.Name)}
        loops = of_kind(ast.For, chain(node))
        loop = next((at for at in loops if getattr(at.target, "id", "") in names), None)
        bases = [at for at in ast.walk(loop.iter) if isinstance(at, (ast.Name, ast.Attribute))] if loop else []
        if any(program.slot(file, at) in place.held for at in bases):
            raise Refused(
                file, node, "this changes weights by hand, and O2 overwrites them with its float32 copies",
                "change amp.master_params(optimizer) too",
            )  # fmt: skip


#: What takes the whole of an object apart and puts it together again.
_WHOLE = full_names("pickles") | {"copy.deepcopy", "torch.optim.swa_utils.AveragedModel"}


def _check_whole(program: Program, file: File, call: ast.Call, place: Initialization) -> None:
    """O2 gives the model another forward, a function of apex: pickle refuses it, and a copy runs the original."""
    full = file.names.qualified(call.func) or ""
    if full not in _WHOLE or not call.args or early(program, file, call, place):
        return
    given = call.args[0]
    base: ast.expr = given.value if isinstance(given, ast.Attribute) and given.attr == "module" else given
    if program.slot(file, base) in place.held:
        does = "saves" if full in full_names("pickles") else "copies"
        raise Refused(
            file, call, f"{full} {does} the whole model here, and O2 has replaced its forward by a function of apex",
            f"use its state: {text_of(file, given)}.state_dict()",
        )  # fmt: skip


def early(program: Program, file: File, node: ast.expr, place: Initialization, depth: int = 3) -> bool:
    """True for what has run before amp.initialize: it stands above it, or all calls of its function do."""
    function = enclosing_function(node)
    if file is place.file and function is enclosing_function(place.after):
        return begins(node) < begins(place.after)
    above = parent(function) if function is not None and function.name == "__init__" else function
    sites = program.call_sites.get(above, []) if above is not None and depth else []
    return bool(sites) and all(early(program, at, site, place, depth - 1) for at, site in sites)


def _check_call(program: Program, file: File, call: ast.Call, place: Initialization) -> None:
    """O2 casts what goes into the model itself: its methods and parts get float32 and hold float16."""
    func, inside = call.func, False
    if not isinstance(func, ast.Attribute) or func.attr in _HOUSEKEEPING:
        return
    base: ast.expr = func.value
    if any(attribute_of(node) in ("grad", "data") for node in ast.walk(func)):
        return
    while isinstance(base, ast.Attribute) and program.slot(file, base) not in place.held:
        inside, base = True, base.value
    if program.slot(file, base) not in place.held or file.names.qualified(func) is not None:
        return
    of_tensors = names_of(TENSOR, "writes", "asks", "reads", "reduces", "same_tensor") | {"view", "reshape", "t"}
    if inside and func.attr in of_tensors:  # a part that is called `flatten` or `expand` may be a layer
        return
    stored = statement(call)
    if isinstance(stored, ast.Assign) and any(program.slot(file, item) in place.held for item in stored.targets):
        return  # `model = model.Net()`: a module of this name makes it
    raise Refused(
        file, call,
        f"{text_of(file, func)}(...) runs a part of the model, and O2 only casts inputs of the model itself",
        "call it in forward()",
    )  # fmt: skip
