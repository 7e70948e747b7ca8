"""Mamba's recurrence along time, and its short convolution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn import functional

from transplt.helper.kernels.recompute import as_compiled, kernel_gradients, widened

__all__ = ["causal_conv1d_bwd", "causal_conv1d_fwd", "selective_scan_bwd", "selective_scan_fwd"]

#: So many numbers of states are held at once (float32: 64 MB, some twenty times that with gradients).
_SCAN_PIECE = 2**24


def _of_states(factor: torch.Tensor, dim: int) -> torch.Tensor:
    """B or C, [dim, states] or [batch, groups, states, time], for each state, as [batch, dim, time, states]."""
    if factor.dim() == 2:
        return factor[None, :, None]
    return factor.transpose(2, 3).repeat_interleave(dim // factor.shape[1], 1)


def _scanned(start: torch.Tensor, decay: torch.Tensor, added: torch.Tensor) -> torch.Tensor:
    """states[t] = decay[t] * states[t - 1] + added[t] along dimension 2, in as many passes as the length has digits.

    `start` [batch, dim, states] stands before the first.
    """
    added = torch.cat([added[:, :, :1] + decay[:, :, :1] * start.unsqueeze(2), added[:, :, 1:]], 2)
    step = 1
    while step < added.shape[2]:
        later = added[:, :, step:] + decay[:, :, step:] * added[:, :, :-step]
        decay = torch.cat([decay[:, :, :step], decay[:, :, step:] * decay[:, :, :-step]], 2)
        added = torch.cat([added[:, :, :step], later], 2)
        step *= 2
    return added


class _Scan:
    """The recurrence over one sequence in pieces; `softplus` tells how delta is read."""

    def __init__(self, A: torch.Tensor, length: int, batch: int, softplus: bool) -> None:
        if A.is_complex():
            raise NotImplementedError("selective scan: the complex form has no version without CUDA")
        self.dim, self.states = int(A.shape[0]), int(A.shape[1])
        self.softplus = softplus
        self.batch, self.length = batch, length

    def pieces(self) -> list[slice]:
        step = max(1, _SCAN_PIECE // max(self.batch * self.dim * self.states, 1))
        return [slice(start, min(start + step, self.length)) for start in range(0, self.length, step)]

    def run(
        self, start: torch.Tensor, given: Sequence[torch.Tensor], D: torch.Tensor | None, bias: torch.Tensor | None
    ) -> torch.Tensor:
        """The result of one piece, `given` as u, delta, A, B and C of it, and the states behind it as further columns:
        [batch, dim, time + states].
        """
        u, delta, A, B, C = given
        time = delta if bias is None else delta + bias[:, None]
        time = functional.softplus(time) if self.softplus else time
        decay = torch.exp(time.unsqueeze(3) * A[None, :, None])
        states = _scanned(start, decay, (time * u).unsqueeze(3) * _of_states(B, self.dim))
        found = (states * _of_states(C, self.dim)).sum(3)
        found = found if D is None else found + D[:, None] * u
        return torch.cat([found, states[:, :, -1]], 2)


def _given(
    piece: slice, u: torch.Tensor, delta: torch.Tensor, A: torch.Tensor, *factors: torch.Tensor
) -> list[torch.Tensor]:
    """What a piece of time is computed from."""
    cut = [each if each.dim() == 2 else widened(each)[..., piece] for each in factors]
    return [widened(u)[..., piece], widened(delta)[..., piece], A, *cut]


@as_compiled
def selective_scan_fwd(
    u: torch.Tensor, delta: torch.Tensor, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, D: torch.Tensor | None,
    z: torch.Tensor | None, delta_bias: torch.Tensor | None, delta_softplus: bool,
) -> list[torch.Tensor]:  # fmt: skip
    """Mamba's selective scan: the result [batch, dim, time], the states, and, with a gate, the result times silu(z).

    `u`, `delta`, `z` [batch, dim, time], `A` [dim, states], `B` and `C` [dim, states] or [batch, groups, states, time],
    `D`, `delta_bias` [dim]. The states [batch, dim, pieces of 2,048, 2 * states] are those behind the last number, at
    odd places; the others stay 0, and `selective_scan_bwd` does not read them. Real A only. Each piece of time
    takes log2(its length) passes over [batch, dim, time, states] in float32, at most 64 MB each.
    """
    scan = _Scan(A, u.shape[2], u.shape[0], delta_softplus)
    state = A.new_zeros(u.shape[0], scan.dim, scan.states)
    out, gated = torch.empty_like(delta), None if z is None else torch.empty_like(z)
    for piece in scan.pieces():
        found = scan.run(state, _given(piece, u, delta, A, B, C), D, delta_bias)
        value, state = found[..., : -scan.states], found[..., -scan.states :]
        out[..., piece] = value.to(out.dtype)
        if gated is not None and z is not None:
            gated[..., piece] = (value * functional.silu(widened(z)[..., piece])).to(gated.dtype)
    kept = A.new_zeros(u.shape[0], scan.dim, -(-scan.length // 2048), 2 * scan.states)
    kept[:, :, -1, 1::2] = state
    return [out, kept] if gated is None else [out, kept, gated]


def _starts(scan: _Scan, u: torch.Tensor, delta: torch.Tensor, given: tuple[Any, ...]) -> Iterator[torch.Tensor]:
    """The state before each piece."""
    A, B, C, D, bias = given
    state = A.new_zeros(u.shape[0], scan.dim, scan.states)
    for piece in scan.pieces():
        yield state
        found = scan.run(state, _given(piece, u, delta, A, B, C), D, bias)
        state = found[..., -scan.states :]


@as_compiled
def selective_scan_bwd(
    u: torch.Tensor, delta: torch.Tensor, A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, D: torch.Tensor | None,
    z: torch.Tensor | None, delta_bias: torch.Tensor | None, dout: torch.Tensor, x: torch.Tensor | None,
    out: torch.Tensor | None, dz: torch.Tensor | None, delta_softplus: bool, recompute_out_z: bool,
) -> list[torch.Tensor | None]:  # fmt: skip
    """The gradients of `selective_scan_fwd`: of u, delta, A, B, C, D and delta_bias (None for none), with a gate of z,
    into `dz` where that is given, and, where `recompute_out_z`, the gated result again. Each piece is computed twice.
    """
    scan = _Scan(A, u.shape[2], u.shape[0], delta_softplus)
    grad, tail = widened(dout), []
    if z is not None and out is not None:
        share = torch.sigmoid(widened(z))
        gate = widened(z) * share
        to_gate = grad * widened(out) * (share + gate * (1 - share))
        dz = to_gate.to(z.dtype) if dz is None else dz.copy_(to_gate)
        tail = [dz, (widened(out) * gate).to(out.dtype)] if recompute_out_z else [dz]
        grad = grad * gate
    sums: list[Any] = [None if each is None else torch.zeros_like(each, dtype=widened(each).dtype)
                       for each in (u, delta, A, B, C, D, delta_bias)]  # fmt: skip
    states = list(_starts(scan, u, delta, (A, B, C, D, delta_bias)))
    after = A.new_zeros(u.shape[0], scan.dim, scan.states)
    for piece, state in zip(reversed(scan.pieces()), reversed(states)):  # noqa: B905
        given = [state, *_given(piece, u, delta, A, B, C)]
        optional = [each for each in (D, delta_bias) if each is not None]

        def compute(*every: torch.Tensor, count: int = len(given)) -> torch.Tensor:
            more = iter(every[count:])
            skip = None if D is None else next(more)
            return scan.run(every[0], every[1:count], skip, None if delta_bias is None else next(more))

        after, *found = kernel_gradients(compute, [*given, *optional], torch.cat([grad[..., piece], after], 2))
        places = [place for place, each in enumerate(sums) if each is not None]
        for place, one in zip(places, found):  # noqa: B905
            along = place in (0, 1) or (place in (3, 4) and sums[place].dim() > 2)
            (sums[place][..., piece] if along else sums[place]).add_(one)
    sums = [None if each is None else each.to(one.dtype)
            for each, one in zip(sums, (u, delta, A, B, C, D, delta_bias))]  # fmt: skip  # noqa: B905
    return [*sums, *tail]


# --- the short convolution -------------------------------------------------------------------------------------------


def _convolution(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, initial: torch.Tensor | None,
    seq_idx: torch.Tensor | None, silu: bool,
) -> torch.Tensor:  # fmt: skip
    taps, length = weight.shape[1], x.shape[2]
    framed = functional.pad(x, [taps - 1, 0]) if initial is None else torch.cat([initial, x], 2)
    numbers = None if seq_idx is None else functional.pad(seq_idx, [taps - 1, 0], value=-1)
    found = torch.zeros_like(x)
    for tap in range(taps):
        read = framed[..., tap : tap + length]
        if numbers is not None and seq_idx is not None:
            read = read * (numbers[:, None, tap : tap + length] == seq_idx[:, None])
        found = found + read * weight[:, tap, None]
    found = found if bias is None else found + bias[:, None]
    return functional.silu(found) if silu else found


@as_compiled
def causal_conv1d_fwd(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *options: Any) -> torch.Tensor:
    """The convolution of `x` [batch, dim, time] with the last numbers, `weight` [dim, taps], and silu where asked for.

    `options`: silu alone, or seq_idx [batch, time] (no number of another sequence is read), initial_states and
    final_states_out [batch, dim, taps - 1] and silu; None for none.
    """
    seq_idx, initial, final, silu = options if len(options) == 4 else (None, None, None, *options)
    found = _convolution(widened(x), widened(weight), None if bias is None else widened(bias),
                         None if initial is None else widened(initial), seq_idx, silu).to(x.dtype)  # fmt: skip
    if final is not None:
        before = x.new_zeros(*x.shape[:2], weight.shape[1] - 1) if initial is None else initial
        final.copy_(torch.cat([before, x], 2)[..., x.shape[2] :])
    return found


@as_compiled
def causal_conv1d_bwd(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, dout: torch.Tensor, *options: Any
) -> list[torch.Tensor | None]:
    """The gradients of `causal_conv1d_fwd`: of x, the weight, the bias and, in the longer form, the initial states.

    `options`: dx (a buffer or None) and silu, or seq_idx, initial_states, dfinal_states, dx, whether the gradient of
    the initial states is wanted, and silu.
    """
    long = len(options) == 6
    seq_idx, initial, final, dx, wanted, silu = options if long else (None, None, None, options[0], False, options[1])
    given = [widened(each) for each in (x, weight, bias, initial) if each is not None]

    def compute(*every: torch.Tensor) -> torch.Tensor:
        more = iter(every[2:])
        own = None if bias is None else next(more)
        return _convolution(every[0], every[1], own, None if initial is None else next(more), seq_idx, silu)

    to_x, to_weight, *rest = kernel_gradients(compute, given, dout)
    to_bias = None if bias is None else rest.pop(0).to(bias.dtype)
    to_initial = rest.pop(0).to(initial.dtype) if wanted and initial is not None else None
    if final is not None:
        count = min(final.shape[2], x.shape[2])
        to_x[..., x.shape[2] - count :] += widened(final)[..., final.shape[2] - count :]
        if to_initial is not None:
            to_initial[..., x.shape[2] :] += final[..., : final.shape[2] - count]
    dx = to_x.to(x.dtype) if dx is None else dx.copy_(to_x)
    found = [dx, to_weight.to(weight.dtype), to_bias]
    return [*found, to_initial] if long else found
