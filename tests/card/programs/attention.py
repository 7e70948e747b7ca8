"""npu_fusion_attention in its versions, layouts, masks and sparse modes, forward and backward, beside plain PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch_npu
from beside import TOLERANCE, compare, raises, run_checks, same
from torch.nn import functional as F

_TO = {
    "BNSD": lambda tensor: tensor,
    "BSND": lambda tensor: tensor.transpose(1, 2),
    "BSH": lambda tensor: tensor.transpose(1, 2).flatten(2),
    "SBH": lambda tensor: tensor.permute(2, 0, 1, 3).flatten(2),
}
BATCH, HEADS, FEW, ROWS, COLUMNS, SIZE, THIN = 2, 4, 2, 5, 7, 8, 6
SCALE = SIZE**-0.5
TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def plain(q: Any, k: Any, v: Any, out: Any = None, scale: float = SCALE, bias: Any = None, before: bool = True) -> Any:
    """softmax(mask(scores)) v in BNSD; `out` is True where a key is left out, rows with no key give zeros."""
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = q @ k.transpose(-1, -2)
    scores = scores * scale if bias is None else (scores + bias) * scale if before else scores * scale + bias
    if out is not None:
        scores = scores.masked_fill(out, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v


def drawn(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [torch.randn(shape) for shape in shapes]


def inputs(few: int = FEW, rows: int = ROWS, columns: int = COLUMNS) -> list[torch.Tensor]:
    return drawn((BATCH, HEADS, rows, SIZE), (BATCH, few, columns, SIZE), (BATCH, few, columns, THIN))


def allowed(rows: int, columns: int, rule: Any) -> torch.Tensor:
    """True where the rule of (query, key) leaves a key out."""
    return torch.tensor([[not rule(i, j) for j in range(columns)] for i in range(rows)]).reshape(rows, columns).bool()


def check_layouts() -> None:
    for (layout, to), kind, few in itertools.product(_TO.items(), TOLERANCE, (FEW, HEADS)):
        mask = torch.rand(*((BATCH, 1) if few == FEW else ()), ROWS, COLUMNS) < 0.3
        mask[..., 0] = False

        def on_card(q: Any, k: Any, v: Any, to: Any = to, layout: str = layout, mask: Any = mask) -> Any:
            q, k, v = (to(each).contiguous() for each in (q, k, v))
            found = torch_npu.npu_fusion_attention(q, k, v, HEADS, layout, scale=SCALE, atten_mask=mask.npu())
            assert found[1].shape == found[2].shape == (BATCH, HEADS, ROWS, 8)
            return found[0]

        compare(on_card, lambda q, k, v, to=to, mask=mask: to(plain(q, k, v, mask)), inputs(few), kind)


def check_masks() -> None:
    for shape in ((BATCH, HEADS), (BATCH, 1), (1, 1), ()):
        mask = torch.rand(*shape, ROWS, COLUMNS) < 0.3
        mask[..., 0] = False
        for made in (mask, mask.to(torch.uint8)):
            for sparse in (0, 1):
                compare(
                    lambda q, k, v, made=made, sparse=sparse: torch_npu.npu_fusion_attention(
                        q, k, v, HEADS, "BNSD", scale=SCALE, atten_mask=made.npu(), sparse_mode=sparse
                    )[0],
                    lambda q, k, v, mask=mask: plain(q, k, v, mask), inputs(), torch.float32,
                )  # fmt: skip


def check_sparse() -> None:
    """Modes 2 to 4 and 6 on the compressed mask, 0 with a band, 5 with a whole one; more and less keys than queries."""
    for rows, columns in ((5, 7), (7, 5), (6, 6)):
        shift = columns - rows
        rules = {
            2: lambda i, j: j <= i,
            3: lambda i, j, shift=shift: j <= i + shift,
            4: lambda i, j, shift=shift: -2 <= j - (i + shift) <= 1,
            0: lambda i, j: -2 <= j - i <= 1,
        }
        for sparse, rule in rules.items():
            out = allowed(rows, columns, rule)
            mask = TRIANGLE if sparse else out
            given = {"sparse_mode": sparse, "pre_tockens": 2, "next_tockens": 1, "inner_precise": 2}
            compare(
                lambda q, k, v, mask=mask, given=given: torch_npu.npu_fusion_attention(
                    q, k, v, HEADS, "BNSD", scale=SCALE, atten_mask=mask.npu(), **given
                )[0],
                lambda q, k, v, out=out: plain(q, k, v, out), inputs(FEW, rows, columns), torch.float32,
            )  # fmt: skip
        prefix = [1, 3]
        out = [allowed(rows, columns, lambda i, j, n=n, s=shift: j <= i + s or j < n) for n in prefix]
        out = torch.stack(out)[:, None]
        lower = torch.cat((torch.zeros(1024, 1024), torch.ones(1024, 1024)), 1).bool()
        for sparse, mask in ((5, out), (6, torch.cat((TRIANGLE, lower)))):
            compare(
                lambda q, k, v, mask=mask, sparse=sparse: torch_npu.npu_fusion_attention(
                    q, k, v, HEADS, "BNSD", scale=SCALE, atten_mask=mask.npu(), sparse_mode=sparse, prefix=[1, 3]
                )[0],
                lambda q, k, v, out=out: plain(q, k, v, out), inputs(FEW, rows, columns), torch.float32,
            )  # fmt: skip


def check_bias() -> None:
    for shape in ((BATCH, HEADS, ROWS, COLUMNS), (1, HEADS, ROWS, COLUMNS), (BATCH, HEADS, 1, COLUMNS)):
        for kind, way in itertools.product(TOLERANCE, (0, 1, None)):

            def on_card(q: Any, k: Any, v: Any, pse: Any, way: Any = way) -> Any:
                if way is None:
                    return torch_npu.npu_fusion_attention(q, k, v, HEADS, "BNSD", pse, scale=SCALE)[0]
                return torch_npu.npu_fusion_attention_v2(
                    q, k, v, HEADS, "BNSD", pse=pse, scale=SCALE, pse_type=way
                )[0]

            compare(
                on_card, lambda q, k, v, pse, way=way: plain(q, k, v, None, SCALE, pse, way != 0),
                [*inputs(), *drawn(shape)], kind,
            )  # fmt: skip
    slopes = torch.tensor([0.5, 0.25, 0.125, 0.0625]).reshape(1, HEADS, 1, 1)
    length = 1030
    whole = -slopes * (torch.arange(length)[:, None] - torch.arange(length)[None]).abs()
    q, k, v = drawn(*[(1, HEADS, length, SIZE)] * 3)
    out = TRIANGLE[:length, :length]
    given = {"scale": SCALE, "atten_mask": TRIANGLE.npu(), "sparse_mode": 2}
    pse = whole[:, :, -1024:].contiguous().npu()
    found = torch_npu.npu_fusion_attention(q.npu(), k.npu(), v.npu(), HEADS, "BNSD", pse, **given)[0]
    same(found, plain(q, k, v, out, SCALE, whole))


def _thin(ends: list[int], other: list[int], function: Any) -> Any:
    """A function of BNSD sequence by sequence, over TND."""

    def run(q: Any, k: Any, v: Any) -> Any:
        begin, found = (0, 0), []
        for at, (one, two) in enumerate(zip(ends, other, strict=True)):
            here, there = slice(begin[0], one), slice(begin[1], two)
            cut = [each.transpose(0, 1)[None] for each in (q[here], k[there], v[there])]
            found.append(function(at, *cut)[0].transpose(0, 1))
            begin = (one, two)
        return torch.cat(found)

    return run


def check_thin() -> None:
    ends, other = [2, 2, 5, 9], [3, 4, 9, 13]
    causal = {
        2: lambda at, rows, columns: lambda i, j: j <= i,
        3: lambda at, rows, columns: lambda i, j: j <= i + columns - rows,
        4: lambda at, rows, columns: lambda i, j: -3 <= j - i - columns + rows <= 0,
        7: lambda at, rows, columns: lambda i, j: (
            -3 <= j - i - columns + rows <= 0 if at == 3 else j <= i + columns - rows
        ),
        8: lambda at, rows, columns: lambda i, j: -3 <= j - i - columns + rows <= 0 if at == 0 else j <= i,
    }
    cut = drawn((9, HEADS, SIZE), (13, FEW, SIZE), (13, FEW, THIN))
    for sparse, rule in causal.items():
        for kind in TOLERANCE:

            def on_card(q: Any, k: Any, v: Any, sparse: int = sparse) -> Any:
                return torch_npu.npu_fusion_attention(
                    q, k, v, HEADS, "TND", scale=SCALE, atten_mask=TRIANGLE.npu(), sparse_mode=sparse, pre_tockens=3,
                    next_tockens=0, actual_seq_qlen=ends, actual_seq_kvlen=other,
                )[0]  # fmt: skip

            def on_cpu(at: int, q: Any, k: Any, v: Any, rule: Any = rule) -> Any:
                return plain(q, k, v, allowed(q.shape[2], k.shape[2], rule(at, q.shape[2], k.shape[2])))

            compare(on_card, _thin(ends, other, on_cpu), cut, kind)
    full = torch.rand(4, 5) < 0.3
    full[:, 0] = False
    lengths = {"actual_seq_qlen": ends, "actual_seq_kvlen": other}
    compare(
        lambda q, k, v: torch_npu.npu_fusion_attention(
            q, k, v, HEADS, "TND", scale=SCALE, atten_mask=full.npu(), **lengths
        )[0],
        _thin(ends, other, lambda at, q, k, v: plain(q, k, v, full[: q.shape[2], : k.shape[2]])), cut, torch.float32,
    )  # fmt: skip
    on = [each.npu() for each in cut]
    blocks = torch_npu.npu_fusion_attention(*on, HEADS, "TND", scale=SCALE, **lengths)
    rows = torch_npu.npu_fusion_attention(*on, HEADS, "TND", scale=SCALE, softmax_layout="TND", **lengths)
    assert blocks[1].shape == rows[1].shape == (9, HEADS, 8)
    for a, b in ((0, 2), (2, 5), (5, 9)):
        same(blocks[1].reshape(-1, 8)[a * HEADS : b * HEADS].reshape(HEADS, b - a, 8), rows[1][a:b].transpose(0, 1))
    compare(
        lambda q, k, v: torch_npu.npu_fusion_attention(
            q, k, v, HEADS, "TND", scale=SCALE, softmax_layout="TND", **lengths
        )[0],
        _thin(ends, other, lambda at, q, k, v: plain(q, k, v)), cut, torch.float32,
    )  # fmt: skip


def check_rope_and_sink() -> None:
    ends, other = [3, 5], [4, 9]
    turned = drawn((5, HEADS, SIZE), (9, HEADS, SIZE), (9, HEADS, THIN), (5, HEADS, 2), (9, HEADS, 2))

    def on_card(q: Any, k: Any, v: Any, q_rope: Any, k_rope: Any) -> Any:
        return torch_npu.npu_fusion_attention_v2(
            q, k, v, HEADS, "TND", query_rope=q_rope, key_rope=k_rope, scale=SCALE, actual_seq_qlen=ends,
            actual_seq_kvlen=other,
        )[0]  # fmt: skip

    joined = _thin(ends, other, lambda at, q, k, v: plain(q, k, v))
    compare(
        on_card, lambda q, k, v, a, b: joined(torch.cat((q, a), -1), torch.cat((k, b), -1), v), turned, torch.float32
    )
    sink = torch.randn(HEADS)

    def with_sink(q: Any, k: Any, v: Any, sink: Any) -> Any:
        scores = q @ k.repeat_interleave(2, 1).transpose(-1, -2) * SCALE
        wide = torch.cat((scores, sink.reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)), -1)
        return torch.softmax(wide, -1)[..., :-1] @ v.repeat_interleave(2, 1)

    compare(
        lambda q, k, v, sink: torch_npu.npu_fusion_attention(q, k, v, HEADS, "BNSD", scale=SCALE, sink=sink)[0],
        with_sink, [*inputs(), sink], torch.float32,
    )  # fmt: skip


def check_whole_rows_masked() -> None:
    """Zeros where a row has no key and torch_npu asks for the careful computation, as SDPA does; else the mean."""
    q, k, v = inputs(HEADS)
    mask = torch.rand(ROWS, COLUMNS) < 0.3
    mask[2] = True
    on = [each.npu() for each in (q, k, v)]
    careful = torch_npu.npu_fusion_attention(
        *on, HEADS, "BNSD", scale=SCALE, atten_mask=mask.npu(), inner_precise=2
    )[0]
    same(careful, plain(q, k, v, mask))
    assert not careful[:, :, 2].any()
    quick = torch_npu.npu_fusion_attention(*on, HEADS, "BNSD", scale=SCALE, atten_mask=mask.npu())[0]
    same(quick[:, :, 2], v.mean(2))


def check_sdpa() -> None:
    mask = torch.rand(ROWS, COLUMNS) < 0.7
    mask[:, 0] = True
    for kind in TOLERANCE:
        for given in ({}, {"attn_mask": mask}, {"is_causal": True}, {"scale": 0.3}):
            moved = {key: value.npu() if isinstance(value, torch.Tensor) else value for key, value in given.items()}
            compare(
                lambda q, k, v, moved=moved: F.scaled_dot_product_attention(q, k, v, **moved),
                lambda q, k, v, given=given: F.scaled_dot_product_attention(q, k, v, **given),
                inputs(HEADS), kind,
            )  # fmt: skip
        compare(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True), inputs(), kind,
        )  # fmt: skip


def check_parts_of_the_keys() -> None:
    """What attention gives for two parts of the keys, put together, is what it gives for all of them."""
    attend, update = torch_npu.npu_fusion_attention, torch_npu.npu_ring_attention_update
    q, k, v = (_TO["SBH"](each).npu() for each in inputs(HEADS))
    whole, one, other = (
        attend(q, k[cut], v[cut], HEADS, "SBH", scale=SCALE)[:3] for cut in (slice(None), slice(3), slice(3, None))
    )
    for found, expected in zip(update(*one, *other), whole, strict=True):
        same(found, expected, 1e-5)
    rows, columns = [2, 5, 9], [4, 8, 12]
    q, k, v = (each.npu() for each in drawn((9, HEADS, SIZE), (12, HEADS, SIZE), (12, HEADS, SIZE)))
    halves = [torch.tensor([2 * half + part + 4 * at for at in range(3) for part in (0, 1)]) for half in (0, 1)]
    for order in ("", "TND"):
        more = {"actual_seq_qlen": rows, "scale": SCALE, "softmax_layout": order}
        whole = attend(q, k, v, HEADS, "TND", actual_seq_kvlen=columns, **more)[:3]
        one, other = (
            attend(q, k[half.npu()], v[half.npu()], HEADS, "TND", actual_seq_kvlen=[2, 4, 6], **more)[:3]
            for half in halves
        )
        ends = torch.tensor([0, *rows]).npu()
        found = update(*one, *other, actual_seq_qlen=ends, input_layout="TND", input_softmax_layout=order)
        for each, expected in zip(found, whole, strict=True):
            same(each, expected, 1e-5)


def check_refusals() -> None:
    on = [each.npu() for each in inputs(HEADS)]
    attend = torch_npu.npu_fusion_attention
    mask = (torch.rand(ROWS, COLUMNS) < 0.3).npu()
    raises("2048x2048", lambda: attend(*on, HEADS, "BNSD", atten_mask=mask, sparse_mode=2))
    raises("BNSS", lambda: attend(*on, HEADS, "BNSD", atten_mask=mask[None]))
    raises("one type", lambda: attend(on[0], on[1], on[2].half(), HEADS, "BNSD"))
    raises("(0, 1]", lambda: attend(*on, HEADS, "BNSD", keep_prob=0.0))
    raises("no multiple", lambda: attend(on[0], on[1][:, :3], on[2][:, :3], HEADS, "BNSD"))
    raises("headNum", lambda: attend(*on, HEADS + 1, "BNSD"))
    raises("bool or uint8", lambda: attend(*on, HEADS, "BNSD", atten_mask=mask.float()))
    raises("BSH/SBH/BNSD/BSND/TND", lambda: attend(*on, HEADS, "NBSD"))


def check_dropout() -> None:
    """The mask that torch_npu draws is of the wished share, one for forward and backward, and scales by 1 / keep."""
    rows, columns, keep = 64, 96, 0.75
    q, k = drawn((1, 2, rows, 8), (1, 2, columns, 8))
    v = torch.eye(columns).expand(1, 2, -1, -1)  # the output shows the weights
    leaves = [each.npu().requires_grad_() for each in (q, k, v)]
    torch.npu.manual_seed(5)
    found = torch_npu.npu_fusion_attention(*leaves, 2, "BNSD", scale=0.1, keep_prob=keep)
    assert found[6] == 2 * rows * columns
    bits = (found[0].detach().cpu() != 0).float()
    assert abs(bits.mean().item() - keep) < 0.02, bits.mean()
    here = [each.clone().requires_grad_() for each in (q, k, v)]
    weights = torch.softmax(here[0] @ here[1].transpose(-1, -2) * 0.1, -1) * bits / keep
    same(found[0], weights @ here[2])
    gradient = torch.randn(1, 2, rows, columns)
    found[0].backward(gradient.npu())
    (weights @ here[2]).backward(gradient)
    for one, other in zip(leaves, here, strict=True):
        same(one.grad, other.grad, 1e-4)


if __name__ == "__main__":
    run_checks(globals())
