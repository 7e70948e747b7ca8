"""Attention of an inference (prompt, next token, both in one), without eight-bit types.

Layouts, masks and lengths: op-plugin's pages on npu_prompt_flash_attention and npu_fused_infer_attention_score; the
arguments of each version: FlashAttentionKernelNpuOpApi.cpp and FusedInferAttentionScore*KernelNpuOpApi.cpp.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import operator
from .attention_part import FROM_BNSD, TO_BNSD, Part, banned, grouped, joined

#: Names of arguments that this emulation has no meaning for: they have to be left out.
_REFUSED = frozenset("quantised padding shared sink".split())


@dataclass
class Call:
    """What one version of the operator is called with; what a version lacks has its default."""

    query: Any
    key: Any
    value: Any
    heads: int
    scale: float
    layout: str
    few: int = 0
    pse: Any = None
    mask: Any = None
    query_lengths: Sequence[int] | None = None
    key_lengths: Sequence[int] | None = None
    blocks: Any = None
    block_size: int = 0
    query_rope: Any = None
    key_rope: Any = None
    before: int = 2147483647
    after: int = 2147483647
    sparse: int = 0
    precise: int = 0
    wants_sums: bool = False
    mode: int = 0


def _lengths(given: Sequence[int] | None, count: int, size: int) -> list[int]:
    """A length for each sequence: one for all, or the first of many; all of `size` where none is given."""
    if not given:
        return [size] * count
    return list(given) * count if len(given) == 1 else list(given[:count])


def _left_out(call: Call, at: int, rows: int, columns: int) -> Any:
    """What sequence `at` leaves out; without a mask nothing."""
    if call.mask is None:
        return None
    if call.sparse in (2, 3, 4):
        return banned(rows, columns, call.sparse, call.before, call.after)
    mask = call.mask.bool()
    if rows == 1 and mask.dim() == 2 and call.query.shape[0] == len(mask):  # a row for each sequence
        mask = mask[:, None]
    if mask.dim() > 2:
        mask = mask.reshape(-1, *mask.shape[-2:])
        mask = mask[at if len(mask) > 1 else 0]
    mask = mask[:rows, :columns]
    far = call.sparse == 0 and rows > 1 and (call.before < rows or call.after < columns)
    return mask | banned(rows, columns, 0, call.before, call.after) if far else mask


def _paged(cache: Any, table: Any, length: int, size: int, few: int) -> Any:
    """The first `length` rows of a sequence (heads, rows, size of a head) out of the blocks that its table names."""
    blocks = cache[table[: -(-length // size)].long()]
    rows = blocks.unflatten(-1, (few, -1)).flatten(0, 1).transpose(0, 1) if blocks.dim() == 3 else (
        blocks.transpose(0, 1).flatten(1, 2)
    )  # fmt: skip
    return rows[:, :length]


def _attend(call: Call, at: int, query: Any, key: Any, value: Any) -> tuple[Any, Any]:
    """The result of one sequence, and the logarithm of the sum of its exponentials: all (heads, rows, size)."""
    query, key, value = (each[None].float() for each in (query, key, value))
    rows, columns = query.shape[2], key.shape[2]
    pse = call.pse
    if pse is not None:
        pse = pse.float()[at if len(pse) > 1 else 0][None, :, :rows, :columns]
    key, value = grouped(query, key, value)
    clean = bool(call.precise & 2) or call.sparse > 1
    part = Part(query, key, value, call.scale, pse, 0, _left_out(call, at, rows, columns), clean)
    top, total = part.statistics()
    return part.attend(top, total)[0], (top + total.log())[0]


def _compute(call: Call) -> tuple[Any, Any]:
    taken, _, given = call.layout.partition("_")
    given = given or taken
    few = call.few or call.heads
    if taken in ("TND", "NTD"):
        return _flat(call, taken, given)
    to_bnsd = TO_BNSD[taken]
    rope = [None if each is None else to_bnsd(each, heads) for each, heads in (
        (call.query_rope, call.heads), (call.key_rope, few),
    )]  # fmt: skip
    query = joined(to_bnsd(call.query, call.heads), rope[0])
    batch, heads, rows, _ = query.shape
    if call.blocks is None:
        # A list holds one tensor of all sequences, or one for each.
        turned = rope[1] if len(call.key) == 1 else None
        keys = [joined(to_bnsd(each, few), turned) for each in call.key]
        values = [to_bnsd(each, few) for each in call.value]
        keys, values = ([one for each in many for one in each] for many in (keys, values))
        key_lengths = _lengths(call.key_lengths, batch, 0)
    else:
        key_lengths = _lengths(call.key_lengths, batch, 0)
        pages = [(call.blocks[at], length, call.block_size, few) for at, length in enumerate(key_lengths)]
        keys, values = ([_paged(each[0], *page) for page in pages] for each in (call.key, call.value))
    size = values[0].shape[-1]
    output = torch.zeros(batch, heads, rows, size, device="cpu")
    sums = torch.full((batch, heads, rows, 1), torch.inf, device="cpu")
    for at, length in enumerate(_lengths(call.query_lengths, batch, rows)):
        end = key_lengths[at] or keys[at].shape[1]
        found, total = _attend(call, at, query[at, :, :length], keys[at][:, :end], values[at][:, :end])
        output[at, :, :length], sums[at, :, :length] = found, total
    if given == "NBSD":
        return output.transpose(0, 1), sums
    return FROM_BNSD[given](output), sums


def _flat(call: Call, taken: str, given: str) -> tuple[Any, Any]:
    """Sequences laid end to end; lengths are running totals."""
    by_rows = [
        joined(each, rope) if taken == "TND" else joined(each, rope).transpose(0, 1)
        for each, rope in ((call.query, call.query_rope), (call.key[0], call.key_rope), (call.value[0], None))
    ]
    if call.blocks is not None:
        raise NotImplementedError("attention of sequences end to end with pages is not emulated")
    outputs, sums, start = [], [], (0, 0)
    ends = zip(call.query_lengths or (), call.key_lengths or (), strict=True)
    for at, end in enumerate(ends):
        query, key, value = (
            each[a:b].transpose(0, 1)
            for each, a, b in zip(by_rows, (start[0], start[1], start[1]), (end[0], end[1], end[1]), strict=True)
        )
        found, total = _attend(call, at, query, key, value)
        outputs.append(found.transpose(0, 1))
        sums.append(total.transpose(0, 1))
        start = end
    output = torch.cat(outputs)
    return output if given == "TND" else output.transpose(0, 1), torch.cat(sums)


_LENGTHS = "query_lengths:a key_lengths:a"
_EIGHT_BIT = "quantised:t quantised:t quantised:t quantised:t quantised:t"
_SIZES = "heads:i scale:d before:i after:i layout:z few:i sparse:i precise:i"
_FUSED = f"query:t key:T value:T pse:t mask:t {_LENGTHS} {_EIGHT_BIT} quantised:t quantised:t blocks:t"
_SHARED = "padding:t padding:t quantised:t quantised:t quantised:t quantised:t shared:t shared:t"
_ENDING = f"{_SIZES} block_size:i mode:i wants_sums:b mode:i mode:i"
_VERSIONS = {
    "PromptFlashAttentionV3": f"query:t key:t value:t pse:t mask:t {_LENGTHS} {_EIGHT_BIT} {_SIZES}",
    "IncreFlashAttentionV4": f"query:t key:T value:T pse:t mask:t key_lengths:a {_EIGHT_BIT} quantised:t quantised:t "
    "blocks:t padding:t heads:i scale:d layout:z few:i block_size:i precise:i",
    "FusedInferAttentionScoreV2": f"{_FUSED} {_SHARED} shared:a {_ENDING}",
    "FusedInferAttentionScoreV3": f"{_FUSED} {_SHARED} shared:a query_rope:t key_rope:t quantised:t {_ENDING}",
    "FusedInferAttentionScoreV4": f"{_FUSED} {_SHARED} shared:t query_rope:t key_rope:t quantised:t quantised:t sink:t "
    f"{_ENDING} mode:i",
    "FusedInferAttentionScoreV5": f"{_FUSED} {_SHARED} shared:a query_rope:t key_rope:t quantised:t quantised:t sink:t "
    f"mode:t mode:t {_ENDING} mode:i mode:i",
}


def _register(name: str, words: str) -> None:
    fields = [word.partition(":")[0] for word in words.split()]
    single = "Fused" not in name

    def run(*given: Any) -> Any:
        named: dict[str, Any] = {}
        for field, value in zip(fields, given, strict=True):
            if field in _REFUSED and value is not None and value != []:
                raise NotImplementedError(f"attention of an inference with {field} arguments is not emulated")
            if field not in _REFUSED and value is not None:
                named[field] = value
        if isinstance(named["key"], torch.Tensor):
            named |= {"key": [named["key"]], "value": [named["value"]]}
        output, sums = _compute(Call(**named))
        return output if single else (output, sums if named.get("wants_sums") else None)

    operator(name, arguments=f"{words} output:t>" + ("" if single else " sums:t>"))(run)


for _name, _words in _VERSIONS.items():
    _register(_name, _words)
