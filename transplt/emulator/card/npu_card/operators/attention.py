"""Attention of a training: softmax(mask(scale * (q k^T + pse))) v with dropout, and its backward, in all versions that
torch_npu calls.

Layouts, masks, sparse modes, the order of the row statistics: op-plugin's page on npu_fusion_attention; arguments of
each version: FlashAttentionKernelNpuOpApi.cpp and FlashAttentionV2KernelNpuOpApi.cpp of op-plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import operator
from .attention_part import FROM_BNSD, TO_BNSD, Part, banned, grouped, joined

#: Side of the triangular mask that sparse modes 2, 3, 4, 7 and 8 take; 6 takes 1024 rows more.
_TRIANGLE = 2048
#: Rows of a compressed position bias: the last ones of the whole.
_COMPRESSED = 1024


@dataclass
class Call:
    """What one version of the operator is called with; what a version lacks has its default."""

    query: Any
    key: Any
    value: Any
    scale: float
    heads: int
    layout: str
    keep: float = 1.0
    before: int = 2147483647
    after: int = 2147483647
    precise: int = 0
    sparse: int = 0
    pse: Any = None
    pse_type: int = 1
    dropped: Any = None
    padding: Any = None
    mask: Any = None
    sink: Any = None
    query_rope: Any = None
    key_rope: Any = None
    prefix: Sequence[int] | None = None
    query_ends: Sequence[int] | None = None
    key_ends: Sequence[int] | None = None
    softmax_layout: str = ""
    #: What only the backward gets.
    gradient: Any = None
    maximum: Any = None
    total: Any = None
    output: Any = None
    #: What changes nothing here: an empty result, sparse offsets, scales of eight-bit types, the seed of a mask.
    softmax: Any = None
    query_start: Any = None
    key_start: Any = None
    scales: Any = None
    kind: int = 0
    seed: int = 0
    offset: int = 0


def left_out(call: Call, shape: Sequence[int], at: int | None) -> Any:
    """What the scores of `shape` leave out, those of sequence `at` or of the whole batch (None); None for nothing.
    Without a mask every mode computes all."""
    mask, sparse = call.mask, call.sparse
    batch, heads, rows, columns = shape
    if mask is None:
        return None
    if sparse in (0, 1, 5):
        shapes = [[batch, heads, rows, columns], [batch, 1, rows, columns], [1, 1, rows, columns], [rows, columns]]
        if at is not None:
            mask = mask[..., :rows, :columns]
        elif list(mask.shape) not in shapes:
            raise ValueError(f"attenMask is BNSS, B1SS, 11SS or SS, not {tuple(mask.shape)} for scores of {shapes[0]}")
        far = sparse == 0 and (call.before < rows or call.after < columns)
        return mask.bool() | banned(rows, columns, 0, call.before, call.after) if far else mask.bool()
    rows_of_mask = _TRIANGLE + (1024 if sparse == 6 else 0)
    if tuple(mask.shape[-2:]) != (rows_of_mask, _TRIANGLE):
        raise ValueError(f"sparseMode {sparse} takes an attenMask of {rows_of_mask}x2048, not of {tuple(mask.shape)}")
    out = banned(rows, columns, sparse, call.before, call.after)
    if sparse == 6:
        seen = torch.arange(columns, device="cpu")
        prefixes = (call.prefix or [])[slice(None) if at is None else slice(at, at + 1)]
        return torch.stack([out & (seen >= prefix) for prefix in prefixes])[:, None]
    return out


def position_bias(call: Call, batch: int, rows: int, columns: int) -> Any:
    """What is added to the scores; of a compressed bias (its last 1024 rows) the last row says all, as it depends on
    the distance alone."""
    pse = call.pse
    if pse is None or not pse.numel():
        return None
    if call.pse_type not in (0, 1):
        raise NotImplementedError(f"attention with pse_type {call.pse_type} is not emulated")
    pse = pse.float()
    if call.layout == "TND":
        pse = pse[batch if len(pse) > 1 else 0][None]
    if pse.shape[-2] in (1, rows) and pse.shape[-1] == columns and call.layout != "TND":
        return pse
    if pse.shape[-2] != _COMPRESSED:
        return pse[..., :rows, :columns]
    width = pse.shape[-1]
    distance = torch.arange(rows, device="cpu")[:, None] - torch.arange(columns, device="cpu")[None, :]
    return pse[..., -1, :][..., (width - 1 - distance).clamp(0, width - 1)]


def kept(call: Call, start: int, shape: Sequence[int]) -> Any:
    """The bits of a dropout mask from `start` on, as zeros and ones: eight a byte, the lowest first."""
    if call.dropped is None or call.keep >= 1:
        return None
    places = torch.arange(8, dtype=torch.uint8, device="cpu")
    bits = (call.dropped.view(torch.uint8).reshape(-1, 1) >> places) & 1
    count = torch.Size(shape).numel()
    return bits.reshape(-1)[start : start + count].reshape(shape).float()


def check(call: Call) -> None:
    """Raise for what CANN refuses and torch_npu lets through."""
    kinds = {call.query.dtype, call.key.dtype, call.value.dtype}
    if len(kinds) > 1:
        raise ValueError(f"query, key and value have one type, not {', '.join(sorted(map(str, kinds)))}")
    if call.mask is not None and call.mask.dtype not in (torch.bool, torch.uint8):
        raise ValueError(f"attenMask is bool or uint8, not {call.mask.dtype}")
    if call.padding is not None:
        raise ValueError("paddingMask is not supported")
    heads = {"BSND": 2, "BNSD": 1, "TND": 1}.get(call.layout)
    if (call.query.shape[-1] % call.heads) if heads is None else (call.query.shape[heads] != call.heads):
        raise ValueError(f"headNum {call.heads} does not fit a query of {tuple(call.query.shape)} in {call.layout}")


def parts(call: Call) -> Iterator[tuple[Part, slice, slice]]:
    """The sequences of a call, with their rows in the query and in the key (for TND; else one part of all)."""
    check(call)
    clean = call.precise == 2 or call.sparse > 1
    if call.layout != "TND":
        to_bnsd = TO_BNSD[call.layout]
        query = to_bnsd(call.query, call.heads)
        few = call.key.shape[-1] // query.shape[-1]
        key, value = (to_bnsd(each, few) for each in (call.key, call.value))
        query, key, value = (joined(query, None), *grouped(query, key.float(), value.float()))
        shape = [*query.shape[:3], key.shape[2]]
        yield (
            Part(
                query, key, value, call.scale, position_bias(call, 0, shape[2], shape[3]), call.pse_type,
                left_out(call, shape, None), clean, kept(call, 0, shape), call.keep, call.sink,
            ),
            slice(None), slice(None),
        )  # fmt: skip
        return
    ends = list(zip(call.query_ends or (), call.key_ends or (), strict=True))
    full = [at for at, (one, other) in enumerate(zip([(0, 0), *ends], ends, strict=False)) if one[0] < other[0]]
    query, key = joined(call.query, call.query_rope), joined(call.key, call.key_rope)
    start, bit = (0, 0), 0
    for at, end in enumerate(ends):
        rows, columns = end[0] - start[0], end[1] - start[1]
        here, there = slice(start[0], end[0]), slice(start[1], end[1])
        one = query[here].transpose(0, 1)[None]
        two, three = grouped(one, *(each[there].transpose(0, 1)[None].float() for each in (key, call.value)))
        shape = [1, call.heads, rows, columns]
        cut = Call(**{**vars(call), "sparse": _mode_of(call.sparse, at, full)})
        yield (
            Part(
                one, two, three, call.scale, position_bias(call, at, rows, columns), call.pse_type,
                left_out(cut, shape, at), clean, kept(call, bit, shape), call.keep, call.sink,
            ),
            here, there,
        )  # fmt: skip
        start, bit = end, bit + call.heads * rows * columns


def _mode_of(sparse: int, at: int, full: list[int]) -> int:
    """The mode of one sequence: of 7 the last that is not empty is a band, of 8 the first; the others are causal."""
    if sparse == 7:
        return 4 if at == full[-1] else 3
    if sparse == 8:
        return 4 if at == full[0] else 2
    return sparse


def _forward(call: Call) -> tuple[Any, ...]:
    outputs, tops, totals = [], [], []
    for part, _, _ in parts(call):
        top, total = part.statistics()
        outputs.append(part.attend(top, total))
        tops.append(top.expand(*top.shape[:-1], 8))
        totals.append(total.expand(*total.shape[:-1], 8))
    if call.layout != "TND":
        return tops[0], totals[0], None, FROM_BNSD[call.layout](outputs[0])
    rows = torch.cat([each[0].transpose(0, 1) for each in outputs])
    return _laid(call, tops), _laid(call, totals), None, rows


def _laid(call: Call, statistics: list[Any]) -> Any:
    """Statistics of TND: sequence after sequence, in each head after head unless the layout of the input is wished."""
    same = call.softmax_layout == "same_as_input"
    return torch.cat([(each[0].transpose(0, 1) if same else each[0]).reshape(-1, 8) for each in statistics])


def _of_part(call: Call, statistics: Any, rows: slice) -> Any:
    """The statistics of one part, in the shape of its rows: (batch, heads, rows, 1)."""
    if call.layout != "TND":
        return statistics[..., :1]
    count = rows.stop - rows.start
    flat = statistics.reshape(-1, 8)[rows.start * call.heads : rows.stop * call.heads, :1]
    if call.softmax_layout == "same_as_input":
        return flat.reshape(1, count, call.heads, 1).transpose(1, 2)
    return flat.reshape(1, call.heads, count, 1)


def _backward(call: Call) -> dict[str, Any]:
    """Gradients by the names of the outputs."""
    thin = call.layout == "TND"
    given = {"dq": joined(call.query, call.query_rope), "dk": joined(call.key, call.key_rope), "dv": call.value}
    found = {name: torch.zeros(tensor.shape, device="cpu") for name, tensor in given.items()} if thin else {}
    few = _few(call)
    of_pse, of_sink = [], []
    for part, rows, columns in parts(call):
        if thin:
            output, gradient = (each[rows].transpose(0, 1)[None].float() for each in (call.output, call.gradient))
        else:
            output, gradient = (TO_BNSD[call.layout](each, call.heads).float() for each in (call.output, call.gradient))
        top, total = (_of_part(call, each, rows) for each in (call.maximum, call.total))
        of_query, of_key, of_value, of_scores, each_sink = part.backward(top, total, output, gradient)
        if few != call.heads:
            of_key, of_value = (each.unflatten(1, (few, -1)).sum(2) for each in (of_key, of_value))
        of_pse.append(of_scores)
        of_sink.append(each_sink)
        if thin:
            for name, place, each in (("dq", rows, of_query), ("dk", columns, of_key), ("dv", columns, of_value)):
                found[name][place] += each[0].transpose(0, 1)
        else:
            back = FROM_BNSD[call.layout]
            found |= {"dq": back(of_query), "dk": back(of_key), "dv": back(of_value)}
    size = call.query.shape[-1]
    if call.query_rope is not None and call.query_rope.numel():
        found |= {"dq_rope": found["dq"][..., size:], "dk_rope": found["dk"][..., size:]}
        found |= {"dq": found["dq"][..., :size], "dk": found["dk"][..., :size]}
    if call.sink is not None:
        found["dsink"] = torch.stack(of_sink).sum(0)
    if call.pse is not None and call.pse.numel():
        fits = not thin and call.pse.shape[-2] in (1, of_pse[0].shape[-2])
        # The gradient of a compressed bias is documented nowhere: no number stands for it.
        unknown = torch.full(call.pse.shape, torch.nan, device="cpu")
        found["dpse"] = of_pse[0].sum_to_size(call.pse.shape) if fits else unknown
    return found


def _few(call: Call) -> int:
    """Heads of the key."""
    match call.layout:
        case "BNSD" | "TND":
            return int(call.key.shape[1])
        case "BSND":
            return int(call.key.shape[2])
    return int(call.key.shape[-1] // (call.query.shape[-1] // call.heads))


_PLAIN, _TURNED = "query:t key:t value:t", "query:t query_rope:t key:t key_rope:t value:t"
_MASKS = "pse:t dropped:t padding:t mask:t"
_ENDS, _STARTS = "query_ends:a key_ends:a", "query_start:a key_start:a"
_SIZES = "scale:d keep:d before:i after:i heads:i"
_NUMBERS = f"{_SIZES} layout:z precise:i sparse:i"
_EIGHT_BIT = "scales:t scales:t scales:t"
#: Arguments of each version up to its outputs.
_FORWARDS = {
    "Score": f"{_PLAIN} {_MASKS} prefix:a {_NUMBERS}",
    "ScoreV2": f"{_PLAIN} {_MASKS} prefix:a {_STARTS} {_NUMBERS} pse_type:i",
    "ScoreV3": f"{_PLAIN} {_MASKS} sink:t prefix:a {_STARTS} {_NUMBERS} pse_type:i",
    "ScoreV4": f"{_PLAIN} {_MASKS} query_rope:t key_rope:t {_EIGHT_BIT} sink:t prefix:a {_ENDS} {_STARTS} {_NUMBERS} "
    "kind:i pse_type:i softmax_layout:z seed:i offset:i",
    "VarLenScore": f"{_PLAIN} {_MASKS} prefix:a {_ENDS} {_NUMBERS}",
    "VarLenScoreV2": f"{_PLAIN} {_MASKS} prefix:a {_ENDS} {_STARTS} {_NUMBERS} pse_type:i",
    "VarLenScoreV3": f"{_TURNED} {_MASKS} prefix:a {_ENDS} {_STARTS} {_NUMBERS} pse_type:i",
    "VarLenScoreV4": f"{_PLAIN} {_MASKS} prefix:a {_ENDS} {_NUMBERS} softmax_layout:z",
    "VarLenScoreV5": f"{_TURNED} {_MASKS} sink:t prefix:a {_ENDS} {_STARTS} {_NUMBERS} pse_type:i softmax_layout:z",
}
_SAVED = f"gradient:t {_MASKS} maximum:t total:t softmax:t output:t"
_OF_PLAIN, _OF_TURNED = "dq:t> dk:t> dv:t> dpse:t>", "dq:t> dq_rope:t> dk:t> dk_rope:t> dv:t> dpse:t>"
_BACKWARDS = {
    "ScoreGrad": f"{_PLAIN} {_SAVED} prefix:a {_NUMBERS} {_OF_PLAIN}",
    "ScoreGradV2": f"{_PLAIN} {_SAVED} prefix:a {_STARTS} {_NUMBERS} pse_type:i {_OF_PLAIN}",
    "ScoreGradV3": f"{_PLAIN} {_SAVED} sink:t prefix:a {_STARTS} {_NUMBERS} pse_type:i {_OF_PLAIN} dsink:t>",
    "ScoreGradV4": f"{_PLAIN} {_SAVED} sink:t query_rope:t key_rope:t {_EIGHT_BIT} scales:t scales:t prefix:a {_ENDS} "
    f"{_STARTS} {_SIZES} layout:z softmax_layout:z precise:i sparse:i pse_type:i seed:i offset:i kind:i dq:t> dk:t> "
    "dv:t> dq_rope:t> dk_rope:t> dpse:t> dsink:t>",
    "UnpaddingScoreGrad": f"{_PLAIN} {_SAVED} prefix:a {_ENDS} {_NUMBERS} {_OF_PLAIN}",
    "UnpaddingScoreGradV2": f"{_PLAIN} {_SAVED} prefix:a {_ENDS} {_STARTS} {_NUMBERS} pse_type:i {_OF_PLAIN}",
    "UnpaddingScoreGradV3": f"{_TURNED} {_SAVED} prefix:a {_ENDS} {_STARTS} {_NUMBERS} pse_type:i {_OF_TURNED}",
    "UnpaddingScoreGradV4": f"{_PLAIN} {_SAVED} prefix:a {_ENDS} {_NUMBERS} {_OF_PLAIN} softmax_layout:z",
    "UnpaddingScoreGradV5": f"{_TURNED} {_SAVED} sink:t prefix:a {_ENDS} {_STARTS} {_NUMBERS} pse_type:i "
    f"softmax_layout:z {_OF_TURNED} dsink:t>",
}


def _register(name: str, words: str, compute: Callable[..., Any]) -> None:
    fields = [word.partition(":")[0] for word in words.split() if ">" not in word]
    results = [word.partition(":")[0] for word in words.split() if ">" in word]

    def run(*given: Any) -> Any:
        named = {field: value for field, value in zip(fields, given, strict=True) if value is not None}
        if "scales" in named or (named.get("keep", 1) < 1 and "dropped" not in named):
            raise NotImplementedError("attention in eight bits, or with dropout drawn inside, is not emulated")
        found = compute(Call(**named))
        return tuple(found.get(each) for each in results) if isinstance(found, dict) else found

    operator(f"FlashAttention{name}", arguments=words)(run)


for _name, _words in _FORWARDS.items():
    _register(_name, f"{_words} maximum_out:t> total_out:t> softmax_out:t> output_out:t>", _forward)
for _name, _words in _BACKWARDS.items():
    _register(_name, _words, _backward)


@operator("RingAttentionUpdateV2")
def _of_two_parts(
    one: Any, one_top: Any, one_total: Any, other: Any, other_top: Any, other_total: Any, ends: Any, layout: str | None,
    statistics_layout: str | None,
) -> tuple[Any, ...]:  # fmt: skip
    """Attention over keys that came in two parts, from what it gave for each: by their shares in the sum of a row.

    The formula is that of torch_npu's documentation of npu_ring_attention_update; `ends` begin with 0.
    """
    top = torch.maximum(one_top, other_top)
    totals = [one_total * torch.exp(one_top - top), other_total * torch.exp(other_top - top)]
    total = totals[0] + totals[1]
    found: Any = 0
    for output, share in zip((one, other), (each / total for each in totals), strict=True):
        if layout != "TND":
            found = found + TO_BNSD["SBH"](output.float(), share.shape[1]) * share[..., :1]
        elif statistics_layout == "TND":
            found = found + output.float() * share[..., :1]
        else:  # sequence after sequence, in each head after head
            heads, flat = output.shape[1], share.reshape(-1, 8)[:, :1]
            cuts = flat.split([int(count) * heads for count in ends.diff()])
            rows = torch.cat([cut.reshape(heads, -1, 1).transpose(0, 1) for cut in cuts])
            found = found + output.float() * rows
    return (found if layout == "TND" else FROM_BNSD["SBH"](found)), top, total
