"""Calls of APIs for which torch's own tests have no samples; used by `executed_apis.py`.

A recipe is what is prepared (before the recording) and what is called, as text: `torch`, `nn`, `F`, and these, made
anew for each: `x` (3, 4) and `y` (3, 4) with gradients, `p` of them in (0, 1), `m` (4, 4), `n` integers (3,) below 4,
`s` (5, 2, 4) a sequence, `img` (2, 3, 8, 8), `vol` (1, 2, 6, 6, 6), `net` a small model on the card with gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_DISTRIBUTION = "d = torch.distributions.{made}"
_PACK = "from torch.nn.utils import rnn; packed = rnn.pack_padded_sequence(s, [5, 3])"
_PRUNE = "from torch.nn.utils import prune"

#: API -> what is prepared, what is called.
RECIPES: dict[str, tuple[str, str]] = {
    "torch.poisson": ("", "torch.poisson(p)"),
    "torch.quantize_per_tensor": ("", "torch.quantize_per_tensor(x.detach(), 0.1, 0, torch.qint8)"),
    "torch.quantize_per_channel": (
        "a = torch.ones(3, device='npu'); b = torch.zeros(3, device='npu', dtype=torch.int64)",
        "torch.quantize_per_channel(x.detach(), a, b, 0, torch.qint8)",
    ),
    "torch.is_conj": ("", "torch.is_conj(x)"),
    "torch.normal": ("", "torch.normal(x.detach(), p.detach())"),
    "torch.bernoulli": ("", "torch.bernoulli(p.detach())"),
    "torch.multinomial": ("", "torch.multinomial(p.detach(), 2)"),
    "torch.Tensor.geometric_": ("", "x.detach().geometric_(0.5)"),
    "torch.Tensor.exponential_": ("", "x.detach().exponential_()"),
    "torch.Tensor.cauchy_": ("", "x.detach().cauchy_()"),
    "torch.Tensor.log_normal_": ("", "x.detach().log_normal_()"),
    "torch.Tensor.sparse_mask": (
        "mask = torch.eye(4).to('npu').to_sparse().coalesce()", "m.detach().sparse_mask(mask)",
    ),
    "torch.Tensor.smm": ("a = torch.eye(4).to('npu').to_sparse()", "a.smm(m.detach())"),
    "torch.Tensor.sspaddmm": ("a = torch.eye(4).to('npu').to_sparse()", "a.sspaddmm(a, m.detach())"),
    "torch.Tensor.to_dense": ("a = torch.eye(4).to('npu').to_sparse()", "a.to_dense()"),
    "torch.Tensor.to_sparse": ("", "m.detach().to_sparse()"),
    "torch.Tensor.to_mkldnn": ("", "m.detach().to_mkldnn()"),
    "torch.Tensor.to_sparse_csr": ("", "m.detach().to_sparse_csr()"),
    "torch.Tensor.to_sparse_csc": ("", "m.detach().to_sparse_csc()"),
    "torch.Tensor.to_sparse_bsr": ("", "m.detach().to_sparse_bsr((2, 2))"),
    "torch.Tensor.to_sparse_bsc": ("", "m.detach().to_sparse_bsc((2, 2))"),
    "torch.Tensor.crow_indices": ("", "m.detach().to_sparse_csr().crow_indices()"),
    "torch.Tensor.col_indices": ("", "m.detach().to_sparse_csr().col_indices()"),
    "torch.Tensor.ccol_indices": ("", "m.detach().to_sparse_csc().ccol_indices()"),
    "torch.Tensor.row_indices": ("", "m.detach().to_sparse_csc().row_indices()"),
    "torch.Tensor.coalesce": ("a = torch.eye(4).to('npu').to_sparse()", "a.coalesce()"),
    "torch.sparse_coo_tensor": (
        "i = torch.zeros(2, 3, dtype=torch.int64, device='npu')",
        "torch.sparse_coo_tensor(i, x.detach()[:, 0], (4, 4))",
    ),
    "torch.sparse.mm": ("a = torch.eye(4).to('npu').to_sparse()", "torch.sparse.mm(a, m.detach())"),
    "torch.sparse.addmm": ("a = torch.eye(4).to('npu').to_sparse()", "torch.sparse.addmm(m.detach(), a, m.detach())"),
    "torch.sparse.sum": ("a = torch.eye(4).to('npu').to_sparse()", "torch.sparse.sum(a)"),
    "torch.sparse.softmax": ("a = torch.eye(4).to('npu').to_sparse()", "torch.sparse.softmax(a, 1)"),
    "torch.sparse.log_softmax": ("a = torch.eye(4).to('npu').to_sparse()", "torch.sparse.log_softmax(a, 1)"),
    "torch.hspmm": ("a = torch.eye(4).to('npu').to_sparse()", "torch.hspmm(a, m.detach())"),
    "torch.smm": ("a = torch.eye(4).to('npu').to_sparse()", "torch.smm(a, m.detach())"),
    "torch.sspaddmm": ("a = torch.eye(4).to('npu').to_sparse()", "torch.sspaddmm(a, a, m.detach())"),
    "torch.fft.fftfreq": ("", "torch.fft.fftfreq(8, device='npu')"),
    "torch.fft.rfftfreq": ("", "torch.fft.rfftfreq(8, device='npu')"),
    "torch.utils.dlpack.to_dlpack": ("from torch.utils import dlpack", "dlpack.to_dlpack(x.detach())"),
    # --- layers
    "torch.nn.AdaptiveLogSoftmaxWithLoss": (
        "l = nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 4]).to('npu'); n = n + 3", "l(x, n)",
    ),
    "torch.nn.AdaptiveLogSoftmaxWithLoss.log_prob": (
        "l = nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 4]).to('npu')", "l.log_prob(x)",
    ),
    "torch.nn.AdaptiveLogSoftmaxWithLoss.predict": (
        "l = nn.AdaptiveLogSoftmaxWithLoss(4, 8, [2, 4]).to('npu')", "l.predict(x)",
    ),
    "torch.nn.MaxUnpool1d": ("a, i = F.max_pool1d(s, 2, return_indices=True)", "nn.MaxUnpool1d(2)(a, i)"),
    "torch.nn.MaxUnpool2d": ("a, i = F.max_pool2d(img, 2, return_indices=True)", "nn.MaxUnpool2d(2)(a, i)"),
    "torch.nn.MaxUnpool3d": ("a, i = F.max_pool3d(vol, 2, return_indices=True)", "nn.MaxUnpool3d(2)(a, i)"),
    "torch.nn.RReLU": ("l = nn.RReLU()", "l(x)"),
    "torch.nn.functional.gumbel_softmax": ("", "F.gumbel_softmax(x, hard=True)"),
    "torch.nn.functional.rrelu": ("", "F.rrelu(x, training=True)"),
    "torch.nn.FractionalMaxPool2d": ("", "nn.FractionalMaxPool2d(2, output_size=4)(img)"),
    "torch.nn.FractionalMaxPool3d": ("", "nn.FractionalMaxPool3d(2, output_size=4)(vol)"),
    "torch.nn.RNNBase.flatten_parameters": ("l = nn.GRU(4, 5).to('npu')", "l.flatten_parameters()"),
    "torch.nn.TransformerDecoder": (
        "l = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2).to('npu')", "l(s, s)",
    ),
    "torch.nn.TransformerDecoder.forward": (
        "l = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2).to('npu')", "l(s, s)",
    ),
    "torch.nn.Module.double": ("l = nn.Linear(4, 5).to('npu')", "l.double()"),
    "torch.nn.Module.half": ("l = nn.Linear(4, 5).to('npu')", "l.half()"),
    "torch.nn.TripletMarginWithDistanceLoss": ("", "nn.TripletMarginWithDistanceLoss()(x, y, x + y)"),
    "torch.nn.TripletMarginLoss": ("", "nn.TripletMarginLoss()(x, y, x + y)"),
    "torch.nn.Upsample": ("", "nn.Upsample(scale_factor=2)(img)"),
    "torch.nn.UpsamplingBilinear2d": ("", "nn.UpsamplingBilinear2d(scale_factor=2)(img)"),
    "torch.nn.Fold": ("a = torch.randn(1, 8, 9).to('npu').requires_grad_()", "nn.Fold((4, 4), 2)(a)"),
    "torch.nn.Unfold": ("", "nn.Unfold(2)(img)"),
    "torch.nn.EmbeddingBag": ("l = nn.EmbeddingBag(5, 4).to('npu')", "l(n.view(1, 3))"),
    "torch.nn.PairwiseDistance": ("", "nn.PairwiseDistance()(x, y)"),
    "torch.nn.CosineSimilarity": ("", "nn.CosineSimilarity()(x, y)"),
    "torch.nn.PixelShuffle": ("a = torch.randn(1, 4, 3, 3).to('npu').requires_grad_()", "nn.PixelShuffle(2)(a)"),
    "torch.nn.PixelUnshuffle": ("", "nn.PixelUnshuffle(2)(img)"),
    "torch.nn.ChannelShuffle": ("a = torch.randn(1, 4, 3, 3).to('npu').requires_grad_()", "nn.ChannelShuffle(2)(a)"),
    "torch.nn.SyncBatchNorm": ("l = nn.SyncBatchNorm(3).to('npu')", "l(img)"),
    # --- torch.nn.utils
    "torch.nn.utils.clip_grad_norm_": ("from torch.nn import utils", "utils.clip_grad_norm_(net.parameters(), 0.1)"),
    "torch.nn.utils.clip_grad_norm": ("from torch.nn import utils", "utils.clip_grad_norm(net.parameters(), 0.1)"),
    "torch.nn.utils.clip_grad_value_": ("from torch.nn import utils", "utils.clip_grad_value_(net.parameters(), 0.1)"),
    "torch.nn.utils.spectral_norm": ("l = nn.utils.spectral_norm(nn.Linear(4, 5)).to('npu')", "l(x)"),
    "torch.nn.utils.weight_norm": ("l = nn.utils.weight_norm(nn.Linear(4, 5)).to('npu')", "l(x)"),
    "torch.nn.utils.parametrizations.orthogonal": (
        "l = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)).to('npu')", "l(x)",
    ),
    "torch.nn.utils.rnn.pack_padded_sequence": (_PACK, "rnn.pack_padded_sequence(s, [5, 3]).data"),
    "torch.nn.utils.rnn.pad_packed_sequence": (_PACK, "rnn.pad_packed_sequence(packed)[0]"),
    "torch.nn.utils.rnn.pack_sequence": (_PACK, "rnn.pack_sequence([x, y[:2]]).data"),
    "torch.nn.utils.rnn.pad_sequence": (_PACK, "rnn.pad_sequence([x, y[:2]])"),
    "torch.nn.utils.rnn.unpack_sequence": (_PACK, "rnn.unpack_sequence(packed)"),
    "torch.nn.utils.rnn.unpad_sequence": (_PACK, "rnn.unpad_sequence(s * 1, torch.tensor([5, 3]))"),
    "torch.nn.utils.prune.RandomUnstructured.remove": (
        f"{_PRUNE}; l = nn.Linear(4, 5).to('npu'); r = prune.RandomUnstructured.apply(l, 'weight', 0.5)", "r.remove(l)",
    ),
    "torch.optim.Adagrad.step": ("o = torch.optim.Adagrad(net.parameters())", "o.step()"),
    "torch.optim.Adagrad": ("o = torch.optim.Adagrad(net.parameters())", "o.step()"),
    # --- torch.func
    "torch.func.vmap": ("", "torch.func.vmap(torch.sin)(x)"),
    "torch.func.vjp": ("", "torch.func.vjp(torch.sin, x)[1](y)"),
    "torch.func.jvp": ("", "torch.func.jvp(torch.sin, (x,), (y,))"),
    "torch.func.jacrev": ("", "torch.func.jacrev(torch.sin)(x)"),
    "torch.func.jacfwd": ("", "torch.func.jacfwd(torch.sin)(x)"),
    "torch.func.hessian": ("", "torch.func.hessian(lambda a: a.sin().sum())(x)"),
    "torch.func.functionalize": ("", "torch.func.functionalize(torch.sin)(x)"),
}

#: Distributions: what is made of one, and the documented members of it that are run.
DISTRIBUTIONS: dict[str, tuple[str, str]] = {
    "bernoulli.Bernoulli": (
        "Bernoulli(p)", "entropy expand log_prob logits mean mode param_shape probs sample variance",
    ),
    "binomial.Binomial": ("Binomial(5, p)", "sample log_prob"),
    "cauchy.Cauchy": ("Cauchy(x, p)", "cdf icdf"),
    "continuous_bernoulli.ContinuousBernoulli": (
        "ContinuousBernoulli(p)", "cdf icdf log_prob mean stddev variance",
    ),
    "exponential.Exponential": ("Exponential(p)", "variance"),
    "geometric.Geometric": ("Geometric(p)", "log_prob"),
    "gumbel.Gumbel": ("Gumbel(x, p)", "mean stddev variance"),
    "half_cauchy.HalfCauchy": ("HalfCauchy(p)", "icdf"),
    "half_normal.HalfNormal": ("HalfNormal(p)", "mean variance"),
    "normal.Normal": ("Normal(x, p)", "icdf sample"),
    "one_hot_categorical.OneHotCategorical": ("OneHotCategorical(p)", "log_prob sample"),
    "uniform.Uniform": ("Uniform(p - 2, p)", "stddev"),
    "von_mises.VonMises": ("VonMises(x, p)", "sample"),
    "weibull.Weibull": ("Weibull(p, p)", "variance"),
}
_CALLED = {
    "log_prob": "log_prob(d.sample())", "cdf": "cdf(p.detach())", "icdf": "icdf(p.detach())", "sample": "sample()",
    "entropy": "entropy()", "expand": "expand((2, 3, 4))",
}  # fmt: skip


def recipes() -> Iterator[tuple[list[str], Callable[[], Any]]]:
    """Every recipe: the API, and its call with the arguments made."""
    for api, (before, call) in RECIPES.items():
        yield [api], _run(before, call)
    for name, (made, members) in DISTRIBUTIONS.items():
        before = _DISTRIBUTION.format(made=made)
        yield [f"torch.distributions.{name}"], _run("", before.partition("= ")[2])
        for member in members.split():
            yield [f"torch.distributions.{name}.{member}"], _run(before, f"d.{_CALLED.get(member, member)}")
    yield ["torch.distributions.transforms.PowerTransform"], _run(
        "from torch.distributions import transforms", "transforms.PowerTransform(2.0)(p)"
    )
    yield ["torch.distributions.transforms.StickBreakingTransform"], _run(
        "from torch.distributions import transforms", "transforms.StickBreakingTransform()(x)"
    )


def _run(before: str, call: str) -> Callable[[], Any]:
    names = _names()
    try:
        exec(before, names)
    except Exception as error:
        failed = error

        def fail() -> None:
            raise failed

        return fail
    return lambda: eval(call, names)


def _names() -> dict[str, Any]:
    import torch
    from torch import nn
    from torch.nn import functional

    torch.manual_seed(0)

    def made(*shape: int) -> Any:
        return torch.randn(*shape).to("npu").requires_grad_()

    net = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)).to("npu")
    net(torch.randn(3, 4).to("npu")).sum().backward()
    return {
        "torch": torch, "nn": nn, "F": functional, "x": made(3, 4), "y": made(3, 4), "m": made(4, 4),
        "p": (torch.rand(3, 4) * 0.8 + 0.1).to("npu").requires_grad_(), "n": torch.tensor([0, 2, 3]).to("npu"),
        "s": made(5, 2, 4), "img": made(2, 3, 8, 8), "vol": made(1, 2, 6, 6, 6), "net": net,
    }  # fmt: skip
