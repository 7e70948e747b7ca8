"""`ray`: what a task asks ray for is an NPU, and its collectives are those of ray-ascend.

Source: ray 2.47, ray/_private/accelerators/npu.py (the resource NPU, from 2.9 on) and runtime_context.py; ray-ascend
0.1.1, ray_ascend/__init__.py (every process registers HCCL; ray from 2.56 on).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.edits.fixer import Fixer
from transplt.edits.trees.calls import keyword_replaced, one_after_the_other, with_keyword
from transplt.edits.trees.removals import without_keyword
from transplt.edits.work import Work
from transplt.edits.writer import on_file
from transplt.fixers.adaptors.writer import AdaptorWriter, writer_for
from transplt.rules.communication_backends import own_names_of
from transplt.rules.since import only_older
from transplt.syntax.modules import modules_of
from transplt.syntax.names import assigned_value
from transplt.syntax.nodes import (
    argument_at,
    attribute_of,
    has_effects,
    hides_arguments,
    inner_nodes,
    keyword_of,
    last_name,
    place_in_block,
    string_of,
)
from transplt.syntax.scan import parent, statement

fixer = Fixer(__name__, code="NPU878", rank=-100, theme="adapt:ray", needs=(b"ray",))

_ANSWERS, _ANSWERS_BACKEND = ("NPU147",), ("NPU302",)
_FIRST = "2.9"
#: Who takes `num_gpus` and `resources`, by full name and by the last one of a method.
_TASKS = {"ray.remote", "ray.init"}
_METHODS = ("options", "map_batches")
#: Who takes dicts of resources, each with their keys for a GPU.
_BUNDLES = (
    "ray.util.placement_group", "ray.util.placement_group.placement_group", "ray.tune.PlacementGroupFactory",
    "ray.tune.with_resources",
)  # fmt: skip
_COLLECTIVE = ("ray.util.collective", "ray.util.collective.collective")
#: The calls that name the backend of a group, and where.
_GROUPS = {
    f"{module}.{name}": at
    for module in _COLLECTIVE for name, at in (("init_collective_group", 2), ("create_collective_group", 3))
}  # fmt: skip
#: What is called in an actor that the driver has put into a group: it joins the group only then.
_JOINING = frozenset(
    f"{module}.{name}" for module in _COLLECTIVE
    for name in ("allgather", "allreduce", "barrier", "broadcast", "recv", "reduce", "reducescatter", "send")
)  # fmt: skip
#: What answers with numbers by the names of resources; ids of cards come from a method.
_BY_RESOURCE = ("ray.cluster_resources", "ray.available_resources")
_GPU_IDS = ("ray.get_gpu_ids", "ray.worker.get_gpu_ids")


@on_file(fixer, writer_for)
def resources_of_ray(work: Work, writer: AdaptorWriter) -> None:
    """Ask for the resource NPU, with the same number, and read the ids of the cards."""
    names = (name for node in work.scan.imports for name in modules_of(node))
    older = only_older(dict(work.settings.pins).get("ray", ""), _FIRST)
    if older or not any(name.partition(".")[0] == "ray" for name in names):
        return
    for call in [*work.calls_by_name(_TASKS), *work.scan.calls_by_last_name(_METHODS)]:
        _task(writer, call)
    for call in work.calls_by_name(_BUNDLES):
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            _bundles(writer, value)
    for call in work.scan.calls if b"resources_per_trial" in work.source.utf8 else ():
        if (trial := keyword_of(call, "resources_per_trial")) is not None:
            _bundles(writer, trial)
    for call in work.calls_by_name(_GPU_IDS):
        _ids(writer, call)
    for call in [*work.calls_by_name(_BY_RESOURCE), *work.scan.calls_by_last_name(("get_accelerator_ids",))]:
        match parent(call), parent(parent(call)):
            case (ast.Subscript(slice=key), _) | (ast.Attribute(attr="get"), ast.Call(args=[key, *_])):
                _as_npu(writer, key)
    if not only_older(dict(work.settings.pins).get("ray", ""), own_names_of("Ray").since):
        _groups(writer)


def _task(writer: AdaptorWriter, call: ast.Call) -> None:
    """`num_gpus=1` of a task or an actor as `resources={"NPU": 1}`; what is computed, or stands beside such a dict,
    by the helper.
    """
    work = writer.work
    number, resources = keyword_of(call, "num_gpus"), keyword_of(call, "resources")
    if number is None or hides_arguments(call):
        return
    text, options = work.text(number), attribute_of(call.func) == "options"
    # 0 takes a card from an actor whose class asks for one: it is asked for as a resource then.
    none = isinstance(number, ast.Constant) and number.value == 0 and not isinstance(number.value, bool)
    if resources is None and (_is_a_number(number) or (none and options)):
        new = f'{{"NPU": {text}}}'
        message = f"num_gpus={text} -> resources={new}"
    else:
        given = "" if resources is None else f", {work.text(resources)}"
        message = f"num_gpus={text} -> resources from npu_port.npus_of_ray"
        full = work.names.qualified(call.func) or ""
        # What `ray.init` and `map_batches` make of None is a matter of their own.
        computed = has_effects(number) or (resources is not None and has_effects(resources))
        may = (options or full == "ray.remote") and not computed and "\n" not in text + given
        helper = writer.helper("npus_of_ray", fixer.code, message, call) if may else ""
        if not helper:
            return
        new = f"{helper}({text}{given})"
    written = keyword_replaced("num_gpus", "resources", new)
    if resources is not None:
        written = one_after_the_other(without_keyword("resources"), written)
    writer.change(call, fixer.code, message, written, api="ray.num_gpus", beside=True)
    _answered(writer, call)


def _is_a_number(node: ast.expr) -> bool:
    """True for a number that is not 0, and for what can only be one; a variable may hold None."""
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float() as number):
            return number > 0
        case ast.BinOp():
            return not any(isinstance(each, (ast.Call, ast.Subscript, ast.Lambda)) for each in ast.walk(node))
    return False


def _bundles(writer: AdaptorWriter, value: ast.expr) -> None:
    """The keys "GPU" and "gpu" of the dicts in a list of bundles, or of one, as "NPU"."""
    for display in _displays(writer.work, value):
        keys = {string_of(key): key for key in display.keys if key is not None}
        if "custom_resources" in keys or "NPU" in keys:
            continue
        for key in filter(None, map(keys.get, ("GPU", "gpu"))):
            _as_npu(writer, key)


def _as_npu(writer: AdaptorWriter, key: ast.expr) -> None:
    """The name of the resource, where it is that of GPUs."""
    word = string_of(key)
    if word in ("GPU", "gpu") and writer.work.take(key):
        quote = writer.work.text(key)[-1]
        writer.rewrite(key, fixer.code, f"the resource {word} -> NPU", f"{quote}NPU{quote}", api="ray.resources")
        _answered(writer, key)


def _displays(work: Work, value: ast.expr) -> Iterator[ast.Dict]:
    """The dicts that are written in an expression, or in all that the variable that it is was given."""
    bindings = work.names.bindings_of(value)
    given = [assigned_value(binding.node) if binding.kind == "assign" else None for binding in bindings]
    if None not in given:
        for each in filter(None, given or [value]):
            yield from inner_nodes(each, ast.Dict)


def _ids(writer: AdaptorWriter, call: ast.Call) -> None:
    work = writer.work
    dotted = work.text(call.func)
    if not dotted.endswith(".get_gpu_ids") or dotted.count(".") != 1 or not work.take(call):
        return
    ray = dotted.partition(".")[0]
    new = f'[int(card) for card in {ray}.get_runtime_context().get_accelerator_ids()["NPU"]]'
    writer.rewrite(call, fixer.code, f"{dotted}() -> the ids of the NPUs", new, api="ray.get_gpu_ids")
    _answered(writer, call)


def _groups(writer: AdaptorWriter) -> None:
    """The backend of each group by the helper, which registers HCCL; that alone where an actor joins the driver's."""
    work = writer.work
    calls = work.calls_by_name(_GROUPS)
    for call in calls:
        value = argument_at(call, _GROUPS[work.names.qualified(call.func) or ""], "backend")
        if not hides_arguments(call) and not (isinstance(value, ast.Call) and last_name(value.func) == "ray_backend"):
            _backend(writer, call, value)
    if any((work.names.qualified(call.func) or "").endswith(".init_collective_group") for call in calls):
        return  # the actors of this file make their groups
    joined = set[int]()
    for call in work.calls_by_name(_JOINING):
        first, scope = statement(call), work.scan.scope_of(call)
        if id(scope) in joined or not writer.fits(first) or _registers(work, first):
            continue
        joined.add(id(scope))
        message = "HCCL is registered with ray in this process"
        if helper := writer.helper("ray_backend", fixer.code, message, call):
            writer.before(first, [f"{helper}()"], fixer.code, message)


def _backend(writer: AdaptorWriter, call: ast.Call, value: ast.expr | None) -> None:
    """nccl, what is computed, and nothing, which is nccl there, as the answer of the helper."""
    said = "nccl" if value is None else string_of(value)
    message = "backend of a group of ray -> npu_port.ray_backend"
    helper = writer.helper("ray_backend", fixer.code, message, call) if said in (None, "nccl", "NCCL") else ""
    if not helper:
        return
    if value is None:
        writer.change(call, fixer.code, message, with_keyword("backend", f"{helper}()"), beside=True)
    elif writer.work.take(value):
        new = f"{helper}({writer.work.text(value) if said is None else ''})"
        writer.rewrite(value, fixer.code, message, new, api="ray.util.collective")
    _answered(writer, call, _ANSWERS_BACKEND)


def _registers(work: Work, node: ast.stmt) -> bool:
    """Whether the statement above one calls the helper."""
    block, at = place_in_block(node)
    match block[at - 1] if at else None:
        case ast.Expr(value=ast.Call() as call):
            return last_name(call.func) == "ray_backend"
    return False


def _answered(writer: AdaptorWriter, node: ast.expr, codes: tuple[str, ...] = _ANSWERS) -> None:
    if not writer.keeps(node, fixer.code):
        writer.takes_care(node, codes)
