"""DataParallel where it is only asked for, and options of NCCL's process groups that HCCL's have not.

ProcessGroupHCCL.Options has is_high_priority_stream, global_ranks_in_group, op_timeout and hccl_config, and takes no
arguments when it is made (torch_npu/csrc/distributed/Init.cpp). FSDP wants `device_id=torch.device("npu", i)`
(Ascend/pytorch, native API list, torch-distributed-fsdp.md). The renames are rules/distributed.json and
rules/process_groups.json, backends in strings are `strings`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from transplt.edits.edit import Edit, Finds
from transplt.edits.fixer import Fixer
from transplt.edits.trees.expressions import between
from transplt.edits.work import Work
from transplt.flow.callees import DATA_PARALLEL
from transplt.rules.torch_callables import full_names
from transplt.syntax.nodes import keyword_of, plain_name
from transplt.syntax.scan import parent

fixer = Fixer(__name__, code="NPU312", rank=320)

_OPTIONS = frozenset(
    f"{module}.ProcessGroupNCCL.Options"
    for module in ("torch.distributed", "torch.distributed.distributed_c10d", "torch._C._distributed_c10d")
)
#: Attributes of NCCL's options that HCCL's have not, and what to use.
_FIELDS = {
    "config": "HCCL's communicators are set up with options.hccl_config, a dict",
    "split_from": "HCCL cannot split communicators",
    "split_color": "HCCL cannot split communicators",
}


@fixer.on(ast.Module)
def parallel_programs(work: Work, tree: ast.Module) -> Finds:
    """Claim uses of DataParallel that run as they are, and report what options of process groups lose."""
    # `isinstance(model, nn.DataParallel)` and annotations run without a GPU: they are no work.
    nodes: list[ast.expr] = [*work.scan.attributes.get("DataParallel", ())]
    for name, bindings in work.scan.root.bindings.items():
        if any(binding.target in DATA_PARALLEL for binding in bindings):
            nodes += work.scan.names.get(name, ())
    for node in nodes:
        if _only_asks(work, node) and work.names.qualified(node) in DATA_PARALLEL:
            work.take(node)
    if b"device_id" in work.source.utf8:
        yield from _sharded(work)
    if "Options" in work.scan.attributes:
        yield from _options(work)


def _sharded(work: Work) -> Finds:
    """`FSDP(..., device_id=torch.cuda.current_device())`: nothing shows that a number there is one of an NPU."""
    for call in work.scan.calls:
        match keyword_of(call, "device_id") if call.keywords else None:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=torch)) as func) as value:
                if work.names.qualified(call.func) not in full_names("shards"):
                    continue
                if work.names.qualified(func) != "torch.cuda.current_device" or work.names.qualified(torch) != "torch":
                    continue
                if work.take(value):
                    yield Edit(
                        value,
                        "NPU312",
                        "device_id of FSDP is a number -> a device",
                        between(f'{work.text(torch)}.device("npu", ', ")"),
                        api="torch.distributed.fsdp.FullyShardedDataParallel",
                        writes_npu=True,
                    )


def _only_asks(work: Work, node: ast.expr) -> bool:
    """True for a class that is compared with or named as a type, and not called, derived from or passed on."""
    child: ast.AST = node
    above = parent(child)
    while isinstance(above, (ast.Tuple, ast.List, ast.Subscript, ast.BinOp)):
        child, above = above, parent(above)
    match above:
        case ast.Call():
            return _is_type_argument(above, child)
        case ast.Assign(targets=[ast.Name(id=name), *_]) if isinstance(child, ast.Tuple):
            return _are_types(_reads(work, name))
        case ast.comprehension(target=ast.Name() as one, iter=many) | ast.For(target=ast.Name() as one, iter=many) if (
            child is many
        ):
            scope = work.scan.scope_of(one)
            return _are_types(use for use in _reads(work, one.id) if work.scan.scope_of(use) is scope)
        case ast.Compare() | ast.arg():
            return True
        case ast.AnnAssign(annotation=type_):
            return child is type_
        case ast.FunctionDef(returns=type_) | ast.AsyncFunctionDef(returns=type_):
            return child is type_
    return False


def _reads(work: Work, name: str) -> list[ast.Name]:
    return [use for use in work.scan.names.get(name, ()) if isinstance(use.ctx, ast.Load)]


def _are_types(uses: Iterable[ast.Name]) -> bool:
    """True for names that are the second argument of isinstance, each of them."""
    calls = [(parent(use), use) for use in uses]
    return bool(calls) and all(isinstance(call, ast.Call) and _is_type_argument(call, use) for call, use in calls)


def _is_type_argument(call: ast.Call, node: ast.AST) -> bool:
    func = call.func
    return plain_name(func) in ("isinstance", "issubclass") and node in call.args[1:]


def _options(work: Work) -> Finds:
    for call in work.scan.calls:
        if not isinstance(call.func, ast.Attribute) or work.names.qualified(call.func) not in _OPTIONS:
            continue
        if call.args or call.keywords:
            yield work.note(
                call,
                "NPU310",
                "ProcessGroupHCCL.Options takes no arguments when it is made",
                api="torch.distributed.ProcessGroupNCCL.Options",
                help="make it without arguments and set the attribute: options.is_high_priority_stream = True",
            )
        match parent(call):
            case ast.Assign(targets=[ast.Name(id=name), *_]):
                yield from _fields(work, name)


def _fields(work: Work, name: str) -> Finds:
    for field, help_ in _FIELDS.items():
        for node in work.scan.attributes.get(field, ()):
            if plain_name(node.value) == name:
                yield work.note(
                    node,
                    "NPU311",
                    f"ProcessGroupHCCL.Options has no {field}",
                    api=f"torch.distributed.ProcessGroupNCCL.Options.{field}",
                    help=help_,
                )
