"""Grouped products and the routing of a mixture of experts, forward and backward, beside plain PyTorch."""

from __future__ import annotations

from typing import Any

import torch
import torch_npu
from beside import TOLERANCE, compare, raises, run_checks, same

GROUPS = ([2, 3, 6], [2, 1, 3])


def check_grouped_products() -> None:
    x, weight, bias = torch.randn(6, 4), torch.randn(3, 4, 5), torch.randn(3, 5)
    parts = [x[:2], x[2:3], x[3:]]
    wanted = torch.cat([part @ one for part, one in zip(parts, weight, strict=True)])
    for kind, tolerance in TOLERANCE.items():
        on = [each.to(kind).npu() for each in (x, weight)]
        rounded = [each.to(kind).float() for each in (x, weight)]
        there = torch.cat([rounded[0][a:b] @ one for a, b, one in zip((0, 2, 3), (2, 3, 6), rounded[1], strict=True)])
        for way, groups in enumerate(GROUPS):
            found = torch_npu.npu_grouped_matmul(
                [on[0]], [on[1]], group_list=torch.tensor(groups).npu(), split_item=3, group_type=0, group_list_type=way
            )
            assert len(found) == 1 and found[0].dtype == kind
            same(found[0], there, 2 * tolerance)
    found = torch_npu.npu_grouped_matmul(
        [x.npu()], [each.npu() for each in weight], bias=[each.npu() for each in bias],
        group_list=torch.tensor([2, 3, 6]).npu(), split_item=2, group_type=0,
    )  # fmt: skip
    same(found[0], wanted + torch.cat([bias[0].expand(2, 5), bias[1:2], bias[2].expand(3, 5)]))
    pairs = torch_npu.npu_grouped_matmul([x[:2].npu(), x[2:].npu()], [weight[0].npu(), weight[1].npu()], group_type=-1)
    same(pairs[1], x[2:] @ weight[1])
    found = torch_npu.npu_grouped_matmul(
        [x.npu()], [each.npu() for each in weight], group_list=[2, 3, 6], split_item=0
    )
    same(torch.cat([each.cpu() for each in found]), wanted)
    summed = torch_npu.npu_grouped_matmul(
        [x.t().contiguous().npu()], [torch.ones(6, 5).npu()], group_list=torch.tensor([2, 3, 6]).npu(), split_item=3,
        group_type=2,
    )  # fmt: skip
    same(summed[0][2], x[3:].t() @ torch.ones(3, 5))
    raises("group_type", lambda: torch_npu.npu_grouped_matmul([x.npu()], [weight[0].npu()]))
    target = torch.randn(3, 4, 5)
    on = target.clone().npu()
    torch_npu.npu_grouped_matmul_add_(on, x.npu(), wanted.npu(), torch.tensor([2, 3, 6]).npu())
    products = [x[a:b].t() @ wanted[a:b] for a, b in ((0, 2), (2, 3), (3, 6))]
    same(on, target + torch.stack(products), 1e-4)


def check_feed_forward() -> None:
    x, one, two = torch.randn(6, 4), torch.randn(3, 4, 8), torch.randn(3, 8, 4)
    half = [each.half() for each in (x, one, two)]
    found = torch_npu.npu_ffn(*(each.npu() for each in half), "relu", expert_tokens=[2, 1, 3])
    wide = [each.float() for each in half]
    wanted = [torch.relu(wide[0][a:b] @ wide[1][i]) @ wide[2][i] for i, (a, b) in enumerate(((0, 2), (2, 3), (3, 6)))]
    same(found, torch.cat(wanted), 2e-2)


def check_permute() -> None:
    tokens, probs = torch.randn(4, 6), torch.rand(4, 2)
    experts = torch.tensor([[1, 0], [2, 1], [0, 2], [1, 2]])
    order = torch.argsort(experts.reshape(-1), stable=True)
    for kind in TOLERANCE:
        compare(
            lambda x: torch_npu.npu_moe_token_permute(x, experts.int().npu())[0],
            lambda x: x[order // 2], [tokens], kind,
        )  # fmt: skip
        compare(
            lambda x: torch_npu.npu_moe_token_permute(x, experts.int().npu(), 5)[0],
            lambda x: x[order[:5] // 2], [tokens], kind,
        )  # fmt: skip

        def round_trip(x: Any, p: Any) -> Any:
            rows, places = torch_npu.npu_moe_token_permute(x, experts.int().npu())
            return torch_npu.npu_moe_token_unpermute(rows * 2, places, p)

        compare(round_trip, lambda x, p: x * 2 * p.sum(1, keepdim=True), [tokens, probs], kind)
    rows, places = torch_npu.npu_moe_token_permute(tokens.npu(), experts.int().npu())
    for place, number in enumerate(order.tolist()):
        assert int(places[number]) == place
    single = torch.tensor([2, 0, 1, 0])
    rows, places = torch_npu.npu_moe_token_permute(tokens.npu(), single.int().npu())
    same(torch_npu.npu_moe_token_unpermute(rows, places), tokens)


def check_routing_map() -> None:
    tokens, probs = torch.randn(5, 6), torch.rand(5, 4)
    chosen = torch.zeros(5, 4, dtype=torch.bool).scatter(1, torch.rand(5, 4).topk(2)[1], True)
    expert, number = chosen.t().nonzero(as_tuple=True)
    permute = torch_npu.npu_moe_token_permute_with_routing_map
    for kind in TOLERANCE:
        compare(
            lambda x, p: (lambda found: found[0] * found[1].unsqueeze(-1))(
                permute(x, chosen.npu(), probs=p, num_out_tokens=10)
            ),
            lambda x, p: x[number] * p[number, expert].unsqueeze(-1), [tokens, probs], kind,
        )  # fmt: skip

        def back(x: Any, p: Any) -> Any:
            rows, _, places = permute(x, chosen.npu(), num_out_tokens=10)
            return torch_npu.npu_moe_token_unpermute_with_routing_map(
                rows * 3, places, [5, 6], probs=p, routing_map=chosen.npu()
            )

        compare(back, lambda x, p: 3 * x * (p * chosen).sum(1, keepdim=True), [tokens, probs], kind)
        order = torch.sort(chosen.t().to(torch.int8), descending=True, stable=True)[1][:, :2]

        def padded(x: Any, p: Any, order: Any = order) -> Any:
            rows, _, places = permute(x, chosen.npu(), num_out_tokens=8, drop_and_pad=True)
            same(places, order.reshape(-1))
            return torch_npu.npu_moe_token_unpermute_with_routing_map(
                rows * 3, places, [5, 6], probs=p, routing_map=chosen.npu(), drop_and_pad=True
            )

        def by_hand(x: Any, p: Any, order: Any = order) -> Any:
            found = torch.zeros(5, 6)
            for one in range(4):
                found = found.index_add(0, order[one], 3 * x[order[one]] * p[order[one], one].unsqueeze(-1))
            return found

        compare(padded, by_hand, [tokens, probs], kind)


def check_gates() -> None:
    x = torch.randn(6, 8)
    for kind, tolerance in TOLERANCE.items():
        rounded = x.to(kind)
        values, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(rounded.npu(), None, 2)
        softmax = torch.softmax(rounded.float(), -1)
        same(values, softmax.topk(2)[0], tolerance)
        same(softmax.gather(1, experts.cpu().long()), softmax.topk(2)[0], tolerance)
        assert experts.dtype == rows.dtype == torch.int32 and values.dtype == kind
        same(rows, torch.arange(12).reshape(2, 6).t())
    done = torch.tensor([True, False, False, True, False, False])
    assert (torch_npu.npu_moe_gating_top_k_softmax(x.npu(), done.npu(), 2)[1].cpu()[done] == 8).all()
    values, experts, _ = torch_npu.npu_moe_gating_top_k_softmax_v2(x.npu(), k=3, renorm=1)
    same(values, torch.softmax(x.topk(3)[0], -1))
    bias = torch.randn(8)
    for norm, select in ((1, 1), (1, 0), (0, 0)):
        scores = torch.sigmoid(x) if norm else torch.softmax(x, -1)
        groups = (scores + bias).reshape(6, 4, 2)
        best = (groups.sum(-1) if select else groups.amax(-1)).topk(2)[1]
        allowed = torch.zeros(6, 4).scatter(1, best, 1.0).repeat_interleave(2, 1).bool()
        wanted = (scores + bias).masked_fill(~allowed, -torch.inf).topk(3)[1]
        kept = scores.gather(1, wanted)
        kept = kept / (kept.sum(1, keepdim=True) + 1e-20) if norm else kept
        values, experts, out = torch_npu.npu_moe_gating_top_k(
            x.npu(), 3, bias=bias.npu(), k_group=2, group_count=4, group_select_mode=select, norm_type=norm,
            routed_scaling_factor=1.5, out_flag=True,
        )  # fmt: skip
        same(experts, wanted)
        same(values, kept * 1.5)
        same(out, scores)

        def gate(x: Any, wanted: Any = wanted, norm: int = norm) -> Any:
            scores = torch.sigmoid(x) if norm else torch.softmax(x, -1)
            kept = scores.gather(1, wanted)
            return 1.5 * (kept / (kept.sum(1, keepdim=True) + 1e-20) if norm else kept)

        compare(
            lambda x, norm=norm, select=select: torch_npu.npu_moe_gating_top_k(
                x, 3, bias=bias.npu(), k_group=2, group_count=4, group_select_mode=select, norm_type=norm,
                routed_scaling_factor=1.5, out_flag=True,
            )[0],
            gate, [x], torch.float32,
        )  # fmt: skip


def check_inference_routing() -> None:
    x, experts = torch.randn(5, 6), torch.randint(0, 4, (5, 2), dtype=torch.int32)
    rows = torch.arange(10, dtype=torch.int32).reshape(2, 5).t().contiguous()
    expanded, places, ordered = torch_npu.npu_moe_init_routing(x.npu(), rows.npu(), experts.npu(), 5)
    same(ordered, experts.reshape(-1).sort()[0])
    for token in range(5):
        for choice in range(2):
            same(expanded[int(places[choice * 5 + token])], x[token])
    scales, skip = torch.rand(5, 2), torch.randn(5, 6)
    found = torch_npu.npu_moe_finalize_routing(
        expanded, skip.npu(), None, None, scales.npu(), places, experts.npu()
    )
    same(found, skip + x * scales.sum(1, keepdim=True))
    expanded, places, counts, _ = torch_npu.npu_moe_init_routing_v2(
        x.npu(), experts.npu(), active_num=10, expert_num=4, expert_tokens_num_type=1, expert_tokens_num_flag=True,
        active_expert_range=[0, 4], row_idx_type=0,
    )  # fmt: skip
    same(counts, torch.bincount(experts.reshape(-1), minlength=4))
    for number in range(10):
        same(expanded[int(places[number])], x[number // 2])
    counts = torch.tensor([[2, 1], [0, 3]])
    tokens = torch.randn(6, 4)
    found = torch_npu.npu_moe_re_routing(tokens.npu(), counts.npu())
    same(found[0], tokens[[0, 1, 2, 3, 4, 5]][[0, 1, 2, 3, 4, 5]])
    counts = torch.tensor([[1, 2], [2, 1]])
    found = torch_npu.npu_moe_re_routing(tokens.npu(), counts.npu(), per_token_scales=torch.arange(6.0).npu())
    same(found[0], tokens[[0, 3, 4, 1, 2, 5]])
    same(found[1], torch.tensor([0.0, 3, 4, 1, 2, 5]))
    same(found[3], torch.tensor([3, 3]))


if __name__ == "__main__":
    run_checks(globals())
