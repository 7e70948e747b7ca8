"""Attention of an inference on the card beside plain PyTorch: layouts, lengths, masks, pages."""

from __future__ import annotations

from typing import Any

import torch
import torch_npu
from beside import TOLERANCE, run_checks, same

BATCH, HEADS, FEW, ROWS, COLUMNS, SIZE = 2, 4, 2, 5, 7, 16
SCALE = SIZE**-0.5
_TO = {
    "BNSD": lambda tensor: tensor,
    "BSND": lambda tensor: tensor.transpose(1, 2).contiguous(),
    "BSH": lambda tensor: tensor.transpose(1, 2).flatten(2).contiguous(),
}


def plain(q: Any, k: Any, v: Any, out: Any = None, bias: Any = None) -> Any:
    q, k, v = (each.float() for each in (q, k, v))
    k, v = (each.repeat_interleave(q.shape[1] // each.shape[1], 1) for each in (k, v))
    scores = q @ k.transpose(-1, -2) * SCALE
    scores = scores if bias is None else scores + bias.float()
    scores = scores if out is None else scores.masked_fill(out, -torch.inf)
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v, torch.logsumexp(scores, -1, keepdim=True)


def drawn(rows: int = ROWS, kind: torch.dtype = torch.float16) -> list[torch.Tensor]:
    shapes = ((BATCH, HEADS, rows, SIZE), (BATCH, FEW, COLUMNS, SIZE), (BATCH, FEW, COLUMNS, SIZE))
    return [torch.randn(shape).to(kind) for shape in shapes]


def check_layouts() -> None:
    mask = torch.rand(ROWS, COLUMNS) < 0.3
    mask[:, 0] = False
    for layout, to in _TO.items():
        for kind in (torch.float16, torch.bfloat16):
            inputs = drawn(kind=kind)
            on = [to(each).npu() for each in inputs]
            given = {"num_heads": HEADS, "num_key_value_heads": FEW, "input_layout": layout}
            wanted, sums = plain(*inputs, mask)
            found = torch_npu.npu_prompt_flash_attention(
                *on, atten_mask=mask.npu(), scale_value=SCALE, next_tokens=65535, **given
            )
            same(found, to(wanted), TOLERANCE[kind])
            found, total = torch_npu.npu_fused_infer_attention_score(
                *on, atten_mask=mask.npu(), scale=SCALE, softmax_lse_flag=True, **given
            )
            same(found, to(wanted), TOLERANCE[kind])
            same(total, sums, 1e-3)
    inputs = drawn()
    found = torch_npu.npu_prompt_flash_attention(
        *(each.npu() for each in inputs), num_heads=HEADS, num_key_value_heads=FEW, scale_value=SCALE,
        input_layout="BNSD_BSND",
    )  # fmt: skip
    same(found, plain(*inputs)[0].transpose(1, 2), 4e-3)


def check_lengths_and_modes() -> None:
    q, k, v = drawn()
    bias = torch.randn(1, HEADS, ROWS, COLUMNS).half()
    triangle = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    found = torch_npu.npu_fused_infer_attention_score(
        q.npu(), k.npu(), v.npu(), pse_shift=bias.npu(), actual_seq_lengths=[3, 5], actual_seq_lengths_kv=[4, 7],
        atten_mask=triangle.npu(), sparse_mode=3, num_heads=HEADS, num_key_value_heads=FEW, scale=SCALE,
        input_layout="BNSD",
    )[0]  # fmt: skip
    for at, (rows, columns) in enumerate(((3, 4), (5, 7))):
        cut = (q[at : at + 1, :, :rows], k[at : at + 1, :, :columns], v[at : at + 1, :, :columns])
        out = torch.ones(rows, columns, dtype=torch.bool).triu(1 + columns - rows)
        same(found[at : at + 1, :, :rows], plain(*cut, out, bias[:, :, :rows, :columns])[0], 4e-3)


def check_next_token() -> None:
    q, k, v = drawn(1)
    lengths = [4, 7]
    given = {"num_heads": HEADS, "num_key_value_heads": FEW, "input_layout": "BNSD"}
    wanted = torch.cat(
        [plain(q[i : i + 1], k[i : i + 1, :, :n], v[i : i + 1, :, :n])[0] for i, n in enumerate(lengths)]
    )
    on = [each.npu() for each in (q, k, v)]
    same(torch_npu.npu_incre_flash_attention(*on, actual_seq_lengths=lengths, scale_value=SCALE, **given), wanted, 4e-3)
    out = torch.arange(COLUMNS)[None] >= torch.tensor(lengths)[:, None]
    same(torch_npu.npu_incre_flash_attention(*on, atten_mask=out.npu(), scale_value=SCALE, **given), wanted, 4e-3)
    # The same rows in pages of 4 (heads and size of a head as one), in an order of their own.
    table = torch.tensor([[2, 0], [1, 3]], dtype=torch.int32)
    pages = [torch.zeros(4, 4, FEW * SIZE, dtype=torch.float16) for _ in range(2)]
    for cache, full in zip(pages, (k, v), strict=True):
        for at in range(BATCH):
            rows = torch.nn.functional.pad(full[at].transpose(0, 1).flatten(1), (0, 0, 0, 1))
            cache[table[at].long()] = rows.reshape(2, 4, -1)
    found = torch_npu.npu_fused_infer_attention_score(
        on[0].transpose(1, 2).flatten(2).contiguous(), *(each.npu() for each in pages), block_table=table.npu(),
        block_size=4, actual_seq_lengths_kv=lengths, scale=SCALE, num_heads=HEADS, num_key_value_heads=FEW,
        input_layout="BSH",
    )[0]  # fmt: skip
    same(found, wanted.transpose(1, 2).flatten(2), 4e-3)


if __name__ == "__main__":
    run_checks(globals())
