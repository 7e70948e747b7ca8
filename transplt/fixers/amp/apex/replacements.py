"""What replaces CUDA kernels of apex under `--amp apex`: NpuFused optimizers of Ascend apex, LayerNorm of torch.

Sources: the README of Ascend apex (the optimizers and their arguments) and its porting guide, which replaces
apex.normalization.FusedLayerNorm by torch.nn.LayerNorm. NpuFused optimizers step only after amp.initialize.
"""

from __future__ import annotations

import ast

from transplt.edits.trees.calls import calling, one_after_the_other, with_keyword
from transplt.edits.trees.removals import without_arguments
from transplt.edits.trees.transform import New
from transplt.edits.unused_imports import drop_unused
from transplt.edits.writer import Writer
from transplt.syntax.nodes import by_place
from transplt.syntax.scan import parent

CODE = "NPU749"
_LAYER_NORMS = ("apex.normalization.FusedLayerNorm", "apex.normalization.fused_layer_norm.FusedLayerNorm")
_NORM_MESSAGE = "apex's FusedLayerNorm becomes torch.nn.LayerNorm"
#: Arguments of apex's optimizers that NpuFused ones take under the same name.
_SHARED = {
    "FusedAdam": frozenset({"params", "lr", "betas", "eps", "weight_decay"}),
    "FusedSGD": frozenset({"params", "lr", "momentum", "dampening", "weight_decay", "nesterov"}),
}
#: Arguments with the only value that means the same without them.
_NEUTRAL = {"bias_correction": True, "amsgrad": False, "wd_after_momentum": False, "materialize_master_grads": True}
_DIFFERENT = {
    "FusedLAMB": "NpuFusedLamb corrects no bias, and has other defaults",
    "FusedNovoGrad": "Ascend apex has no NovoGrad",
    "FusedAdagrad": "Ascend apex has no Adagrad",
}


def replace_kernels(writer: Writer, *, fuse: bool = True) -> None:
    """Replace the optimizers and layers of apex in this file, and those of torch.optim where --tune asks for it.

    The program calls amp.initialize, or is about to. `fuse`: its gradients stay where they are.
    """
    work = writer.work
    done: list[ast.expr] = []
    for call in by_place(work.scan.calls):
        full = work.names.qualified(call.func) or ""
        if full.startswith("apex.optimizers."):
            _optimizer(writer, call, full.rpartition(".")[2], done)
        elif full in _LAYER_NORMS:
            _layer_norm(writer, call, done)
    _layer_norm_classes(writer, done)
    drop_unused(writer, done, CODE)
    _withdraw_replaced(writer, done)
    if fuse and any(name == "fused-optimizer" for name, _ in work.settings.tune):
        _fuse(writer)


def _withdraw_replaced(writer: Writer, done: list[ast.expr]) -> None:
    """Withdraw the notes of what needs CUDA and was replaced wherever the file names it."""
    work = writer.work
    names = {work.names.qualified(func) or "" for func in done}
    named: list[ast.Name | ast.Attribute] = [node for every in work.scan.names.values() for node in every]
    named += [node for every in work.scan.attributes.values() for node in every]
    kept = {work.names.qualified(node) for node in named if isinstance(node.ctx, ast.Load) and node not in done}
    work.withdraw_notes(lambda note: note.code == "NPU510" and note.api in names - kept)


def _optimizer(writer: Writer, call: ast.Call, name: str, done: list[ast.expr]) -> None:
    if name in _DIFFERENT:
        do = "use NpuFusedAdamW or NpuFusedLamb of apex.optimizers, and compare the learning curve"
        writer.left(call, f"apex.optimizers.{name} needs CUDA kernels: {_DIFFERENT[name]}", do, CODE)
        return
    if name not in _SHARED:
        return
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    starred = None in given or any(isinstance(item, ast.Starred) for item in call.args)
    constants = {keyword: value.value for keyword, value in given.items() if isinstance(value, ast.Constant)}
    plain = constants.get("adam_w_mode") is False
    # options that change nothing, with the value that they are given
    idle = [keyword for keyword, value in _NEUTRAL.items() if constants.get(keyword) is value]
    dropped = [keyword for keyword in given if keyword == "set_grad_none" or keyword in idle]
    dropped += ["adam_w_mode"] if "adam_w_mode" in constants else []
    others = sorted(str(keyword) for keyword in set(given) - _SHARED[name] - set(dropped))
    if starred or others or len(call.args) > (2 if name == "FusedAdam" else 6):
        why = f"has no {', '.join(others)}" if others and not starred else "may not take the same arguments"
        fused = "NpuFusedAdamW" if name == "FusedAdam" else "NpuFusedSGD"
        message = f"apex.optimizers.{name} needs CUDA kernels, and {fused} {why}"
        writer.left(call, message, f"write {fused} by hand", CODE)
        return
    fused = {"FusedSGD": "NpuFusedSGD", "FusedAdam": "NpuFusedAdam" if plain else "NpuFusedAdamW"}[name]
    decay = fused == "NpuFusedAdamW" and "weight_decay" not in given
    if not writer.work.take(call):
        return
    transform = _renamed(writer.object("apex.optimizers", fused), tuple(str(item) for item in dropped), decay)
    writer.rewrite(call, CODE, f"apex.optimizers.{name} becomes {fused} of Ascend apex", transform)
    done.append(call.func)


def _renamed(name: str, dropped: tuple[str, ...], decay: bool) -> New:
    """Another name, without some keywords; AdamW of Ascend decays weights by default, FusedAdam does not."""
    decays = [with_keyword("weight_decay", "0.0")] if decay else []
    return one_after_the_other(without_arguments(*dropped), *decays, calling(name))


def _layer_norm(writer: Writer, call: ast.Call, done: list[ast.expr]) -> None:
    work = writer.work
    if id(call.func) in work.taken or id(call) in work.taken:
        return  # -sim has replaced it
    keywords = {keyword.arg for keyword in call.keywords}
    if len(call.args) > 3 or keywords - {"normalized_shape", "eps", "elementwise_affine"}:
        do = "write torch.nn.LayerNorm(normalized_shape, eps, elementwise_affine)"
        writer.left(call, "FusedLayerNorm needs CUDA kernels, and LayerNorm takes other arguments", do, CODE)
        return
    if writer.change_alone(call.func, CODE, _NORM_MESSAGE, _torch_layer_norm(writer)):
        done.append(call.func)


def _layer_norm_classes(writer: Writer, done: list[ast.expr]) -> None:
    """The class where nothing calls it: handed on (`norm_layer=FusedLayerNorm`), a base, in `isinstance`.

    It stays where a call of it stays: that one is a finding, and the program needs both.
    """
    work = writer.work
    calls = [call.func for call in work.scan.calls if work.names.qualified(call.func) in _LAYER_NORMS]
    if any(func not in done for func in calls):
        return
    called = {id(call.func) for call in work.scan.calls}
    names: list[ast.Name | ast.Attribute] = [*work.scan.names.get("FusedLayerNorm", ())]
    for local, found in work.scan.root.bindings.items():
        if local != "FusedLayerNorm" and any(each.target in _LAYER_NORMS for each in found):
            names += work.scan.names.get(local, ())
    names += work.scan.attributes.get("FusedLayerNorm", ())
    for node in by_place(names):
        loaded = isinstance(node.ctx, ast.Load) and id(node) not in called and id(node) not in work.taken
        if not loaded or isinstance(parent(node), ast.Attribute) or work.names.qualified(node) not in _LAYER_NORMS:
            continue
        if writer.change_alone(node, CODE, _NORM_MESSAGE, _torch_layer_norm(writer)):
            done.append(node)


def _torch_layer_norm(writer: Writer) -> str:
    """How this file spells torch.nn.LayerNorm."""
    roots = writer.work.scan.root.bindings.items()
    bound = sorted(local for local, found in roots if {each.target for each in found} == {"torch.nn"})
    return f"{bound[0]}.LayerNorm" if bound else f"{writer.torch}.nn.LayerNorm"


def _fuse(writer: Writer) -> None:
    """torch.optim.X becomes apex.optimizers.NpuFusedX where transplt.fixers.tunings finds nothing against it."""
    from transplt.fixers.fused_optimizers import CLASSES, optimizers_around

    work = writer.work
    found = optimizers_around(work)
    done: list[ast.expr] = []
    for call in by_place(work.scan.calls):
        made = found.by_call.get(call) if found is not None else None
        if made is None or made.fused or made.silent:
            continue
        if made.why:
            writer.left(call, f"torch.optim.{made.name} is not changed: {made.why}", made.help, CODE)
        elif work.take(call):
            fused = CLASSES[made.name].rpartition(".")[2]
            transform = _renamed(writer.object("apex.optimizers", fused), made.dropped, False)
            writer.rewrite(call, CODE, f"torch.optim.{made.name} becomes {fused} of Ascend apex", transform)
            done.append(call.func)
    drop_unused(writer, done, CODE)
