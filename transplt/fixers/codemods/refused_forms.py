"""Calls with a counterpart on an NPU that torch_npu refuses in the form, or together with the others, in which a file
has them.

Each was run on torch_npu 2.13 over the emulated card, where it stops; beside it stands what documents it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.base.finding import Level
from transplt.edits.edit import Finds
from transplt.edits.fixer import Fixer
from transplt.edits.work import Work
from transplt.fixers.codemods.environment import given_value, names_environment
from transplt.flow.last_value import last_value
from transplt.rules.card_limits import card_named
from transplt.rules.environment import refused
from transplt.rules.versions import versions_of
from transplt.syntax.names import SELF, assigned_value
from transplt.syntax.nodes import (
    argument_at,
    by_place,
    is_none,
    keyword_of,
    last_name,
    of_kind,
    plain_name,
    root_name,
    string_of,
)
from transplt.syntax.scan import chain, parent

_WORDS = (
    "pack_padded_sequence", "pack_sequence", "proj_size", "return_indices", "device_id=", "include_traces",
    "enable_sleep_mode", "allow_internal_format", "grouped_mm", "ASCEND_RT_VISIBLE_DEVICES",
)  # fmt: skip
fixer = Fixer(__name__, code="NPU297", edits=False, needs=tuple(word.encode() for word in _WORDS), words=_WORDS)
_RNN = "torch.nn.utils.rnn."
_GROUPS = ("torch.distributed.", "torch.distributed.distributed_c10d.")
_MESHES = ("torch.distributed.", "torch.distributed.device_mesh.")
_CARDS = "ASCEND_RT_VISIBLE_DEVICES"
#: The first card whose max_pool2d gives places (rules/support/silent_errors.json).
_GIVES_PLACES = "950"


@fixer.on(ast.Call, name=("torch.nn.GRU", "torch.nn.RNN"))
def packed_sequences(work: Work, made: ast.Call) -> Finds:
    """Report a GRU or an RNN that gets a packed sequence. torch_npu packs for its LSTM, with the padding left in, and
    the others read the rows as if it were gone. Ascend/pytorch, native API list, torch.nn.GRU: no such sequences.
    """
    holder = parent(made)
    if not isinstance(holder, ast.Assign):
        return
    named = {(ast.unparse(each), _owner(each)) for each in holder.targets}
    if any((ast.unparse(each.func), _owner(each.func)) in named for each in work.once(_given_a_packed_sequence)):
        kind, unpacks = last_name(made.func), work.calls_by_name((f"{_RNN}pad_packed_sequence",))
        also = ", and pad_packed_sequence refuses its output" if unpacks else ""
        yield work.note(
            made.func,
            fixer.code,
            f"nn.{kind} gives wrong results for a packed sequence on an NPU{also}",
            api=f"torch.nn.{kind}",
            help="pass the padded tensor and select each sequence's last output by its length (gather), or use "
                 "nn.LSTM, which takes packed sequences",
            blocks="first step" if unpacks else "numbers",
        )


def _owner(node: ast.expr) -> ast.AST | None:
    """The class whose `self` holds a layer: another one may call its own by the same name."""
    return next(of_kind(ast.ClassDef, chain(node)), None) if plain_name(root_name(node)) in SELF else None


def _given_a_packed_sequence(work: Work) -> list[ast.Call]:
    """The calls of a file whose first argument is a packed sequence, written there or in a variable."""
    packs = work.calls_by_name((f"{_RNN}pack_padded_sequence", f"{_RNN}pack_sequence"))
    names = {name.id for pack in of_kind(ast.Assign, map(parent, packs)) for name in of_kind(ast.Name, pack.targets)}
    return [
        call
        for call in (work.scan.calls if packs else ())
        if call.args and (call.args[0] in packs or (isinstance(held := call.args[0], ast.Name) and held.id in names
                                                    and last_value(work.scan, held) in packs))
    ]  # fmt: skip


@fixer.on(ast.Call, name="torch.nn.LSTM")
def projections(work: Work, call: ast.Call) -> Finds:
    """Report an LSTM with projections: the native API list of Ascend/pytorch says that proj_size is not supported."""
    size = keyword_of(call, "proj_size")
    if isinstance(size, ast.Constant) and size.value:
        yield work.note(
            call.func,
            fixer.code,
            "torch_npu refuses an nn.LSTM with proj_size",
            api="torch.nn.LSTM",
            help="remove proj_size and add an nn.Linear after the LSTM (old weights do not load into that model)",
        )


@fixer.on(ast.Module)
def places_that_are_undone(work: Work, tree: ast.Module) -> Finds:
    """Report pooling whose places go to max_unpool: they are a mask of int8, or int32, where int64 is asked for.
    op-plugin, MaxPool2dWithIndicesKernelNpuOpApi.cpp; hicann/ops-nn, aclnn_max_unpool2d.cpp.
    """
    if b"npool" not in work.source.utf8 or card_named(work.settings.hardware) == _GIVES_PLACES:
        return
    for size in "123":
        pools = (f"torch.nn.MaxPool{size}d", f"torch.nn.functional.max_pool{size}d")
        if work.calls_by_name((f"torch.nn.MaxUnpool{size}d", f"torch.nn.functional.max_unpool{size}d")):
            for call in work.calls_by_name(pools):
                given = keyword_of(call, "return_indices")
                if isinstance(given, ast.Constant) and given.value is True:
                    yield work.note(
                        call.func,
                        fixer.code,
                        f"max_unpool{size}d cannot use the indices of this pooling on an NPU: there they are not int64",
                        api=f"torch.nn.MaxUnpool{size}d",
                        help="pool and unpool on the CPU" + (_ADAPTIVE if size == "2" else ""),
                    )


_ADAPTIVE = "; for equal windows that do not overlap, adaptive_max_pool2d gives right indices"


@fixer.on(ast.Call, name=[f"{place}init_process_group" for place in _GROUPS])
def groups_that_are_split(work: Work, call: ast.Call) -> Finds:
    """Report groups that are split off a process group bound to a device, as torch 2.13 does on each accelerator (until
    then on CUDA alone, torch/distributed/device_mesh.py): HCCL's does not support splitting. And a group that is bound
    to one with torch 2.3 or 2.4 (distributed_c10d.py, _new_process_group_helper), which know this of CUDA alone.
    """
    device, version = keyword_of(call, "device_id"), work.settings.torch_version
    if device is None or is_none(device):
        return
    if version in versions_of(">=2.3,<2.5"):
        said = f"torch {version} takes a device_id of CUDA alone: ValueError"
        yield work.note(device, fixer.code, said, api="torch.distributed.init_process_group", help=_UNBOUND)
    if version not in versions_of(">=2.13"):
        return
    for at, what in _split(work):
        yield work.note(
            at,
            fixer.code,
            f"torch_npu refuses {what} where init_process_group has a device_id (line {call.lineno})",
            api="torch.distributed.init_process_group",
            help=_UNBOUND,
        )


_UNBOUND = "remove device_id there, and call torch.npu.set_device before it"


def _split(work: Work) -> Iterator[tuple[ast.expr, str]]:
    for call in work.calls_by_name([f"{place}init_device_mesh" for place in _MESHES]):
        shape = argument_at(call, 1, "mesh_shape")
        if isinstance(shape, (ast.Tuple, ast.List)) and len(shape.elts) > 1:
            yield call.func, f"a mesh of {len(shape.elts)} dimensions"
    for call in work.calls_by_name([f"{place}new_group" for place in _GROUPS]):
        if string_of(keyword_of(call, "backend")) == "gloo":
            yield call.func, "a group of gloo"


@fixer.on(ast.Call, last="snapshot")
def snapshots_of_a_pool(work: Work, call: ast.Call) -> Finds:
    """Report `pool.snapshot(include_traces=...)`: torch_npu's MemPool takes no such argument."""
    given = next((each for each in call.keywords if each.arg == "include_traces"), None)
    if given is None or not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return
    made = last_value(work.scan, call.func.value)
    if isinstance(made, ast.Call) and work.names.qualified(made.func) in ("torch.cuda.MemPool", "torch.npu.MemPool"):
        yield work.note(
            given,
            fixer.code,
            "torch_npu's MemPool.snapshot has no argument include_traces",
            api="torch.cuda.MemPool.snapshot",
            help="remove the argument",
        )


@fixer.on(ast.Call)
def sleep_with_segments(work: Work, call: ast.Call) -> Finds:
    """Report vLLM's sleep mode beside expandable segments: vllm-ascend, device_allocator/camem.py, refuses both."""
    asleep = keyword_of(call, "enable_sleep_mode")
    if not isinstance(asleep, ast.Constant) or asleep.value is not True:
        return
    asked = by_place(each for each in work.scan.texts if "expandable_segments:True" in str(each.value))
    if asked:
        yield work.note(
            asleep,
            fixer.code,
            f"vLLM's sleep mode does not work with expandable segments, which line {asked[0].lineno} turns on",
            api="vllm.LLM",
            help="remove expandable_segments for the processes of vLLM, or remove enable_sleep_mode",
        )


@fixer.on(ast.Call, name=("torch.nn.utils.clip_grad_norm_", "torch._foreach_norm"))
def norms_of_private_formats(work: Work, call: ast.Call) -> Finds:
    """Report norms of all gradients at once beside weights in a format of the card: `_foreach_norm` refuses those."""
    each_alone = keyword_of(call, "foreach")
    if isinstance(each_alone, ast.Constant) and each_alone.value is False:
        return
    if not work.scan.calls_by_last_name(("npu_format_cast", "npu_format_cast_")):
        return
    for store in work.scan.stores:
        value = assigned_value(store)
        if store.attr == "allow_internal_format" and isinstance(value, ast.Constant) and value.value is True:
            yield work.note(
                call.func,
                fixer.code,
                f"{last_name(call.func)} refuses tensors in a format of the card, which line {store.lineno} allows",
                api="torch._foreach_norm",
                help="keep allow_internal_format=False, or pass foreach=False to clip_grad_norm_",
            )
            return


@fixer.on(ast.Call, name=("torch._grouped_mm", "torch.nn.functional.grouped_mm"))
def products_of_groups(work: Work, call: ast.Call) -> Finds:
    """Report products of groups: in torch 2.8 they have a kernel for CUDA alone; later ones go group by group, with
    the offsets on the host. huggingface/transformers PR 46743; torch/_meta_registrations.py and GroupedMMUtils.h.
    """
    alone, full = work.settings.torch_version == "2.8", str(work.names.qualified(call.func))
    what = "only has CUDA kernels in torch 2.8" if alone else ("computes group by group on an NPU, and waits for each")
    yield work.note(
        call.func,
        fixer.code,
        f"{full} {what}",
        level=Level.MANUAL if alone else Level.INFO,
        api=full,
        help="torch_npu.npu_grouped_matmul([x], [weights], group_list=offsets, split_item=2, group_type=0) does it in "
             "one call; its page says which dtype and layout it needs",
    )


@fixer.on(ast.Module)
def order_of_the_cards(work: Work, tree: ast.Module) -> Finds:
    """Report cards that are not named in ascending order. hiascend CANN 9.0 reference, ASCEND_RT_VISIBLE_DEVICES."""
    for node in by_place(each for each in work.scan.texts if each.value == _CARDS):
        value = string_of(given_value(node))
        reason = refused("CUDA_VISIBLE_DEVICES", value) if value is not None and names_environment(work, node) else ""
        if "ascending" in reason:
            message = f"{_CARDS} is not in ascending order here, and the program finds no card"
            yield work.note(node, "NPU221", message, api=_CARDS, help=reason, blocks="first step")
