"""Fused softmax, light convolutions, lists of tensors and Mamba's scan in torch, against loops and torch's own."""

from __future__ import annotations

import importlib
import itertools
import math
from typing import Any

import pytest

from tests.helper.kernels.rows import check_rows, close, kernels, np, numbers, torch

pytestmark = pytest.mark.torch
soft, light, lists, scan = (kernels(n) for n in ("masked_softmax", "light_conv", "multi_tensor", "selective_scan"))
layer = kernels("layer_norm")


def test_each_row_names_a_function_that_takes_its_arguments() -> None:
    check_rows("fused", "masked_softmax", "light_conv", "multi_tensor", "selective_scan", "layer_norm")


# --- softmax ---------------------------------------------------------------------------------------------------------


def softened(scores: Any, hidden: Any) -> Any:
    out = np.zeros(scores.shape)
    for place in np.ndindex(*scores.shape[:-1]):
        row = [-10000.0 if hide else float(score) for score, hide in zip(scores[place], hidden[place], strict=True)]
        shares = [math.exp(each - max(row)) for each in row]
        if max(row) != -10000.0:
            out[place] = [each / sum(shares) for each in shares]
    return out


@pytest.mark.parametrize("kind", ["uint8", "bool"])
def test_softmax_of_masked_scores(kind: str) -> None:
    scores, mask = numbers(2, 3, 4, 5, low=-4, high=4), numbers(2, 1, 4, 5, seed=1) > 0.2
    mask[1, 0, 2] = True
    wanted = softened(scores * 0.7, mask.expand(2, 3, 4, 5))
    found = soft.scaled_masked_softmax_forward(scores, mask.to(getattr(torch, kind)), torch.tensor([0.7])[0])
    close(found, wanted, 1e-7)
    assert not found[1, :, 2].any()
    one = soft.scaled_masked_softmax_forward(scores, mask[:1], 0.7)
    close(one, softened(scores * 0.7, mask[:1].expand(2, 3, 4, 5)))
    close(soft.scaled_softmax_forward(scores, 0.7), (scores * 0.7).softmax(-1))


def test_softmax_of_what_came_before() -> None:
    scores = numbers(3, 4, 4, low=-4, high=4)
    hidden = torch.ones(4, 4, dtype=torch.bool).triu(1).expand(3, 4, 4)
    found = soft.scaled_triangular_softmax_forward(scores, 0.5)
    close(found, softened(scores * 0.5, hidden))
    given = scores.clone().requires_grad_()
    wanted = (given * 0.5).masked_fill(hidden, -math.inf).softmax(-1)
    grad = numbers(3, 4, 4, seed=1)
    (slope,) = torch.autograd.grad(wanted, given, grad)
    close(soft.scaled_triangular_softmax_backward(grad, found, 0.5), slope)
    close(soft.scaled_softmax_backward(grad, found, 0.5), slope)
    half = soft.scaled_triangular_softmax_forward(scores.bfloat16(), 0.5)
    assert half.dtype == soft.scaled_softmax_backward(half, half, 0.5).dtype == torch.bfloat16
    close(half, found, 2e-2)


def test_rows_in_a_block_of_the_compiled_kernel() -> None:
    assert [soft.scaled_softmax_batch_per_block(64, keys, 2, 8) for keys in (1, 16, 32, 100, 128, 129, 4096)] == [
        256, 16, 8, 8, 8, 4, 4,
    ]  # fmt: skip


@pytest.mark.parametrize("conj", [False, True])
def test_turned_pairs(conj: bool) -> None:
    x1, x2 = numbers(2, 3, 4, 5), numbers(2, 3, 4, 5, seed=1)
    angle = numbers(3, 1, 5, seed=2)
    turned = (x1 + 1j * x2) * torch.exp((-1j if conj else 1j) * angle)
    out1, out2 = torch.empty_like(x1), torch.empty_like(x2)
    soft.apply_rotary(x1, x2, angle.cos(), angle.sin(), out1, out2, conj)
    close(out1, turned.real)
    close(out2, turned.imag)
    soft.apply_rotary(x1, x2, angle.cos(), angle.sin(), x1, x2, conj)  # in place
    close(x1, turned.real)
    close(x2, turned.imag)


@pytest.mark.parametrize("kind", ["float64", "float16"])
def test_a_layer_norm_with_what_its_backward_pass_is_given(kind: str) -> None:
    given, gamma, beta = numbers(2, 5, 3, 4, dtype=kind), numbers(3, 4, seed=1), numbers(3, 4, seed=2)
    gamma, beta = (each if kind == "float64" else each.float() for each in (gamma, beta))
    out, mean, invvar = layer.layer_norm_forward_affine(given, torch.Size((3, 4)), gamma, beta, 1e-5)
    tolerance = 1e-9 if kind == "float64" else 2e-3
    rows = given.double().reshape(10, 12)
    close(mean, rows.mean(1), tolerance)
    close(invvar, (rows.var(1, unbiased=False) + 1e-5).rsqrt(), tolerance)
    assert out.dtype == gamma.dtype and mean.shape == invvar.shape == (10,)
    leaves = [each.double().requires_grad_() for each in (given, gamma, beta)]
    wanted = torch.nn.functional.layer_norm(leaves[0], (3, 4), *leaves[1:], 1e-5)
    close(out, wanted.detach(), tolerance)
    grad = numbers(2, 5, 3, 4, seed=3).to(out.dtype)
    found = layer.layer_norm_backward_affine(grad, mean, invvar, given, (3, 4), gamma, beta, 1e-5)
    assert [each.dtype for each in found] == [given.dtype, gamma.dtype, beta.dtype]
    for one, two in zip(found, torch.autograd.grad(wanted, leaves, grad.double()), strict=True):
        close(one, two, tolerance)


# --- convolutions along time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("taps", "padding"), [(3, 1), (3, 2), (4, 3), (1, 0)])
def test_convolutions_with_few_weights(taps: int, padding: int, own: bool) -> None:
    given = numbers(2, 6, 5)
    weight = numbers(2, 3, taps, 5, seed=1) if own else numbers(3, taps, seed=1)
    wanted = np.zeros(given.shape)
    for b, c, t, k in itertools.product(range(2), range(6), range(5), range(taps)):
        if 0 <= t + k - padding < 5:
            share = weight[b, c // 2, k, t] if own else weight[c // 2, k]
            wanted[b, c, t] += float(share * given[b, c, t + k - padding])
    forward = light.dynamicconv_forward if own else light.lightconv_forward
    backward = light.dynamicconv_backward if own else light.lightconv_backward
    (found,) = forward(given, weight, padding)
    close(found, wanted)
    grad = numbers(2, 6, 5, seed=2)
    to_given, to_weight = backward(grad, padding, given, weight)
    assert to_weight.shape == weight.shape
    for mine, place, run in (
        (to_given, given, lambda one: forward(one, weight, padding)[0]),
        (to_weight, weight, lambda two: forward(given, two, padding)[0]),
    ):
        close((mine * place).sum(), (grad * run(place)).sum())
        moved = torch.zeros_like(place)
        moved[(-1,) * place.dim()] = 1
        close(mine[(-1,) * place.dim()], (grad * run(moved)).sum())
    (half,) = forward(given.half(), weight.half(), padding)
    assert half.dtype == torch.float16
    close(half, wanted, 5e-3)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("step", [0, 1, 5, 7])
def test_words_that_would_repeat(size: int, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    tokens = torch.randint(0, 3, (4, 8), generator=generator)
    found = light.ngram_repeat_block(tokens, torch.zeros(4, 5), 2, step, 2, size)
    wanted = torch.zeros(4, 5)
    for row in range(4):
        for start in range(step - size + 2):
            end = step + 1 - (size - 1)
            if tokens[row, start : start + size - 1].tolist() == tokens[row, end : step + 1].tolist():
                wanted[row, tokens[row, start + size - 1]] = -math.inf
    assert found.tolist() == wanted.tolist()


# --- lists of tensors ------------------------------------------------------------------------------------------------


def test_norms_of_lists() -> None:
    tensors = [numbers(3, 4, dtype="float32"), numbers(5, seed=1, dtype="float16"), torch.zeros(0)]
    flag = torch.zeros(1, dtype=torch.int32)
    total, each = lists.multi_tensor_apply(lists.multi_tensor_l2norm, flag, [tensors], True)
    wanted = [float(one.double().norm()) for one in tensors]
    assert total.shape == (1,) and each.shape == (3,) and total.dtype == each.dtype == torch.float32
    close(each, wanted, 1e-3)
    close(total, [math.hypot(*wanted)], 1e-3)
    assert lists.multi_tensor_l2norm(65536, flag, [tensors])[1].shape == (0,)
    assert lists.multi_tensor_l2norm(65536, flag, [tensors], False)[1].shape == (0,)
    assert float(lists.multi_tensor_l2norm(65536, flag, [[]])[0]) == 0.0


def test_scaled_lists_and_sums() -> None:
    one, two = [numbers(3, dtype="float16"), numbers(2, seed=1, dtype="float16")], [torch.zeros(3), torch.zeros(2)]
    flag = torch.zeros(1, dtype=torch.int32)
    lists.multi_tensor_scale(65536, flag, [one, two], 0.5)
    assert all(torch.equal(b, a.float() * 0.5) for a, b in zip(one, two, strict=True)) and int(flag) == 0
    lists.multi_tensor_scale(65536, flag, [one, one], torch.tensor(2.0))  # in place
    close(one[0], two[0] * 4)
    out = [torch.zeros(3), torch.zeros(2)]
    lists.multi_tensor_axpby(65536, flag, [one, two, out], 2.0, -1.0, -1)
    close(out[1], one[1] * 2.0 - two[1])
    two[1][0] = math.inf
    lists.multi_tensor_axpby(65536, flag, [one, two, out], 1.0, 1.0, 0)
    assert int(flag) == 0
    lists.multi_tensor_axpby(65536, flag, [one, two, out], 1.0, 1.0, 1)
    assert int(flag) == 1
    flag.zero_()
    lists.multi_tensor_scale(65536, flag, [two, out], 1.0)
    assert int(flag) == 1 and math.isinf(out[1][0])
    lists.multi_tensor_scale(65536, flag, [one, out], 1.0)
    assert int(flag) == 1  # it stays


# --- Mamba -----------------------------------------------------------------------------------------------------------


def scanned(u: Any, delta: Any, A: Any, B: Any, C: Any, D: Any, z: Any, bias: Any, softplus: bool) -> tuple[Any, Any]:
    batch, dim, length = u.shape
    out, state = torch.zeros_like(u), torch.zeros(batch, *A.shape, dtype=A.dtype)
    for t in range(length):
        step = delta[:, :, t] + (0 if bias is None else bias)
        step = torch.log1p(step.exp()) if softplus else step

        def at(factor: Any, t: int = t) -> Any:
            if factor.dim() == 2:
                return factor
            return factor[:, :, :, t].repeat_interleave(dim // factor.shape[1], 1)

        state = torch.exp(step[:, :, None] * A) * state + step[:, :, None] * at(B) * u[:, :, t, None]
        out[:, :, t] = (state * at(C)).sum(2) + (0 if D is None else D * u[:, :, t])
    return (out if z is None else out * z * torch.sigmoid(z)), state


def a_scan(form: str) -> list[Any]:
    batch, dim, states, length = 2, 4, 3, 11
    u, delta = numbers(batch, dim, length), numbers(batch, dim, length, seed=1, low=0.1, high=1)
    A = -numbers(dim, states, seed=2, low=0.2, high=2)
    own = form != "shared"
    B, C = (numbers(batch, 2, states, length, seed=s) if own else numbers(dim, states, seed=s) for s in (3, 4))
    D, z, bias = numbers(dim, seed=5), numbers(batch, dim, length, seed=6), numbers(dim, seed=7)
    return [u, delta, A, B, C, D, z, bias] if form == "gated" else [u, delta, A, B, C, None, None, None]


@pytest.mark.parametrize("piece", [2**24, 50])
@pytest.mark.parametrize("form", ["gated", "plain", "shared"])
def test_the_selective_scan(form: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("transplt.helper.kernels.selective_scan"), "_SCAN_PIECE", piece)
    given, softplus = a_scan(form), form == "gated"
    wanted, state = scanned(*given, softplus)
    out, kept, *gated = scan.selective_scan_fwd(*given, softplus)
    close(gated[0] if gated else out, wanted)
    close(kept[:, :, -1, 1::2], state)
    leaves = [None if each is None else each.clone().requires_grad_() for each in given]
    grad = numbers(*wanted.shape, seed=9)
    asked = [each for each in leaves if each is not None]
    expected = iter(torch.autograd.grad(scanned(*leaves, softplus)[0], asked, grad))
    slopes = [None if each is None else next(expected) for each in leaves]
    found = scan.selective_scan_bwd(*given[:8], grad, kept, out, None, softplus, False)
    *found, last = found if gated else [*found, None]
    order = [slopes[0], slopes[1], slopes[2], slopes[3], slopes[4], slopes[5], slopes[7]]
    for one, two in zip([*found, last], [*order, slopes[6]], strict=True):
        assert (one is None) == (two is None)
        if one is not None:
            close(one, two, 1e-8)
    if gated:
        buffer = torch.zeros_like(given[6])
        *_, dz, again = scan.selective_scan_bwd(*given, grad, kept, out, buffer, softplus, True)
        assert dz is buffer
        close(again, gated[0])


def test_the_scan_in_halves_and_what_it_does_not_do() -> None:
    given = a_scan("gated")
    halves = [each.half() if place in (0, 1, 3, 4, 6) else each.float() for place, each in enumerate(given)]
    out, kept, gated = scan.selective_scan_fwd(*halves, True)
    assert out.dtype == gated.dtype == torch.float16 and kept.dtype == torch.float32
    close(gated, scanned(*given, True)[0], 5e-3)
    found = scan.selective_scan_bwd(*halves, torch.ones_like(gated), kept, out, None, True, False)
    assert [each.dtype for each in found] == [halves[place].dtype for place in (0, 1, 2, 3, 4, 5, 7, 6)]
    with pytest.raises(NotImplementedError, match="complex form"):
        scan.selective_scan_fwd(given[0], given[1], given[2].to(torch.complex64), *given[3:], True)


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("silu", [False, True])
def test_the_short_convolution(silu: bool, long: bool) -> None:
    x, weight, bias = (numbers(*shape, seed=s) for s, shape in enumerate([(2, 3, 6), (3, 4), (3,)]))
    initial, seq = (numbers(2, 3, 3, seed=4), None) if long else (None, None)

    def plain(x: Any, weight: Any, bias: Any, initial: Any) -> Any:
        before = torch.zeros(2, 3, 3, dtype=x.dtype) if initial is None else initial
        found = torch.nn.functional.conv1d(torch.cat([before, x], 2), weight[:, None], bias, groups=3)
        return torch.nn.functional.silu(found) if silu else found

    final = torch.zeros(2, 3, 3, dtype=x.dtype)
    options = (seq, initial, final, silu) if long else (silu,)
    close(scan.causal_conv1d_fwd(x, weight, bias, *options), plain(x, weight, bias, initial))
    close(scan.causal_conv1d_fwd(x, weight, None, *options), plain(x, weight, None, initial))
    leaves = [each.clone().requires_grad_() for each in (x, weight, bias)]
    start = None if initial is None else initial.clone().requires_grad_()
    grad = numbers(2, 3, 6, seed=8)
    wanted = torch.autograd.grad(plain(*leaves, start), [*leaves, *([] if start is None else [start])], grad)
    buffer = torch.zeros_like(x)
    back = (seq, initial, None, buffer, True, silu) if long else (buffer, silu)
    found = scan.causal_conv1d_bwd(x, weight, bias, grad, *back)
    assert found[0] is buffer
    for one, two in zip(found, wanted, strict=True):
        close(one, two)
    if long:
        close(final, x[..., 3:])
        more = scan.causal_conv1d_bwd(x[..., :2], weight, bias, grad[..., :2], None, initial, final, None, True, silu)
        less = scan.causal_conv1d_bwd(x[..., :2], weight, bias, grad[..., :2], None, initial, None, None, True, silu)
        close(more[0] - less[0], final[..., 1:])
        close((more[3] - less[3])[..., 2:], final[..., :1])


def test_the_short_convolution_of_packed_sequences() -> None:
    x, weight = numbers(1, 2, 7), numbers(2, 3, seed=1)
    seq = torch.tensor([[0, 0, 0, 1, 1, 2, 2]], dtype=torch.int32)
    found = scan.causal_conv1d_fwd(x, weight, None, seq, None, None, True)
    parts = [scan.causal_conv1d_fwd(x[..., a:b], weight, None, True) for a, b in ((0, 3), (3, 5), (5, 7))]
    close(found, torch.cat(parts, 2))
