"""Types of tensors that operators of the card refuse, read off the text."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from tests.harness import migrate

HEAD = """import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

"""


def said(source: str, **settings: Any) -> list[str]:
    """The pieces of the source that are reported, each with the operator and the types."""
    result = migrate(HEAD + textwrap.dedent(source), **settings)
    lines = (HEAD + textwrap.dedent(source)).splitlines()
    found = []
    for each in result.findings:
        if each.code == "NPU137":
            line = lines[each.span.line - 1]
            found.append(f"{each.message.partition(' on ')[0]}: {line[each.span.column - 1:].strip()}")
    return found


PRECOMPUTED = """
def precompute(dim, end, theta=10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)

"""


# --- indices of complex tables ---------------------------------------------------------------------------------------


def test_a_table_that_is_moved_and_passed_on() -> None:
    source = PRECOMPUTED + """
def apply(q, table, idx):
    return torch.view_as_complex(q) * table[idx]

device = torch.device("cuda")
table = precompute(64, 128).to(device)
apply(torch.randn(2, 128, 64, device=device), table, torch.arange(128, device=device))
"""
    assert said(source) == ["aten::index takes no complex64: table[idx]"]


def test_a_buffer_of_a_module() -> None:
    source = PRECOMPUTED + """
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freqs", precompute(64, 128), persistent=False)

    def forward(self, x, position_ids: torch.LongTensor):
        return x * self.freqs[position_ids]

Attention().cuda()
"""
    assert said(source) == ["aten::index takes no complex64: self.freqs[position_ids]"]


def test_an_attribute_that_is_moved_before_it_is_indexed() -> None:
    source = PRECOMPUTED + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.freqs = precompute(64, 128)

    def forward(self, tokens):
        h = self.embed(tokens)
        self.freqs = self.freqs.to(h.device)
        ids = torch.arange(3, device=h.device)
        return self.freqs[ids]
"""
    assert said(source) == ["aten::index takes no complex64: self.freqs[ids]"]


def test_a_spectrum_of_what_a_module_is_given() -> None:
    source = """
class Layer(nn.Module):
    def forward(self, x):
        x_freq = torch.fft.rfft(x, dim=1)
        _, indices = torch.topk(x_freq.abs(), 3, dim=1)
        a, b = torch.meshgrid(torch.arange(x.size(0)), torch.arange(x.size(2)))
        where = (a.unsqueeze(1), indices, b.unsqueeze(1))
        x_freq[where]
        return x_freq[:, [0, 2]]
"""
    every = "aten::index takes no complex128 or complex64"
    assert said(source) == [f"{every}: x_freq[where]", f"{every}: x_freq[:, [0, 2]]"]


@pytest.mark.parametrize(
    "index", ["mask > 0", "[0, 2, 3]", "torch.nonzero(mask)", "mask.argsort()", "..., torch.randperm(4)"]
)
def test_what_is_an_index_of_tensors(index: str) -> None:
    source = f"""
mask = torch.rand(4, device="cuda")
z = torch.fft.fft(mask)
z[{index}]
"""
    assert said(source) == [f"aten::index takes no complex64: z[{index}]"]


# --- other operators -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("torch.gather(z, 0, ids)", "aten::gather takes no complex64"),
        ("z.gather(0, ids)", "aten::gather takes no complex64"),
        ("z @ z", "aten::mm takes no complex64"),
        ("torch.matmul(z, z)", "aten::mm takes no complex64"),
        ("z.mm(z)", "aten::mm takes no complex64"),
        ('torch.einsum("bi,io->bo", z, z)', "aten::bmm takes no complex64"),
        ("torch.tril(z)", "aten::tril takes no complex64"),
        ("torch.polar(d, d)", "aten::polar takes no float64"),
        ("d.mm(d)", "aten::mm takes no float64"),
        ("d.sort(0)", "aten::sort takes no float64"),
        ("torch.max(d, dim=1)", "aten::max takes no float64"),
        ("d.max(1)", "aten::max takes no float64"),
        ("torch.erfinv(input=d)", "aten::erfinv takes no float64"),
        ("F.conv2d(d, d)", "aten::convolution takes no float64"),
        ("u + u", "aten::add takes no uint16"),
    ],
)
def test_operators(line: str, message: str) -> None:
    source = f"""
x = torch.randn(4, 4, device="cuda")
z = torch.complex(x, x)
d = torch.zeros(4, 4, dtype=torch.float64, device="cuda")
u = torch.zeros(4, dtype=torch.uint16).cuda()
ids = torch.zeros(4, 4, dtype=torch.int64, device="cuda")
{line}
"""
    assert said(source) == [f"{message}: {line}"]


def test_weights_of_a_module_and_a_method_of_it() -> None:
    source = """
class Spectral(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.scale = 1 / (width * width)
        self.weight = nn.Parameter(self.scale * torch.rand(width, width, modes, dtype=torch.cfloat))

    def product(self, x, weight):
        return torch.einsum("bix,iox->box", x, weight)

    def forward(self, x):
        x_ft = torch.fft.rfft(x)
        out = torch.zeros(4, 4, 9, dtype=torch.cfloat, device=x.device)
        out[:, :, :5] = self.product(x_ft[:, :, :5], self.weight)
        return torch.fft.irfft(out)
"""
    assert said(source) == ['aten::bmm takes no complex128 or complex64: torch.einsum("bix,iox->box", x, weight)']


def test_a_table_of_the_host_in_64_bits() -> None:
    source = """
table = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.double)
table = table.to("cuda:0")
product = table @ table
"""
    assert said(source) == ["aten::mm takes no float64: table @ table"]


# --- nothing is said -------------------------------------------------------------------------------------------------


LLAMA = PRECOMPUTED + """
def reshape_for_broadcast(freqs_cis: torch.Tensor, x: torch.Tensor):
    shape = [d if i == 1 or i == x.ndim - 1 else 1 for i, d in enumerate(x.shape)]
    return freqs_cis.view(*shape)


def apply_rotary_emb(xq: torch.Tensor, xk: torch.Tensor, freqs_cis: torch.Tensor):
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = reshape_for_broadcast(freqs_cis, xq_)
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)


class Transformer(nn.Module):
    def __init__(self, params):
        super().__init__()
        self.freqs_cis = precompute(params.dim // params.n_heads, params.max_seq_len * 2)

    def forward(self, tokens: torch.Tensor, start_pos: int):
        seqlen = tokens.shape[1]
        h = self.tok_embeddings(tokens)
        self.freqs_cis = self.freqs_cis.to(h.device)
        freqs_cis = self.freqs_cis[start_pos : start_pos + seqlen]
        for layer in self.layers:
            h, _ = apply_rotary_emb(h, h, freqs_cis)
        return h.float()


torch.set_default_tensor_type(torch.cuda.HalfTensor)
"""

FLUX = """
def rope(pos, dim: int, theta: int):
    scale = torch.arange(0, dim, 2, dtype=torch.float64, device=pos.device) / dim
    omega = 1.0 / (theta**scale)
    out = torch.einsum("...n,d->...nd", pos, omega)
    out = torch.stack([torch.cos(out), -torch.sin(out), torch.sin(out), torch.cos(out)], dim=-1)
    return out.float()

class Embed(nn.Module):
    def forward(self, ids):
        return torch.cat([rope(ids[..., i], 16, 10000) for i in range(ids.shape[-1])], dim=-3)

Embed().to("cuda")
"""

SCHEDULE = """
class Diffusion:
    def __init__(self, device):
        self.device = device
        self.betas = torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64)
        self.alphas = torch.cumprod(1.0 - self.betas, dim=0)

    def sample(self, x, t):
        a = self.alphas[t].float().to(x.device)
        lowest = self.betas.max(0)
        return a * x

Diffusion(torch.device("cuda"))
"""

GUIDED = """
def extract(arr, timesteps, shape):
    res = torch.from_numpy(arr).to(device=timesteps.device)[timesteps].float()
    return res.expand(shape)

betas = np.linspace(1e-4, 0.02, 1000, dtype=np.float64)
extract(betas, torch.zeros(4, dtype=torch.int64, device="cuda"), (4, 3))
"""

SPECTRUM_OF_THE_HOST = """
def features(wave):
    wave = torch.from_numpy(wave).cpu()
    spectrum = torch.fft.rfft(wave)
    kept = spectrum[torch.arange(4)]
    return kept.abs().cuda()

def mel(path):
    noise = torch.randn(16000)
    z = torch.stft(noise, 512, return_complex=True)
    z = z[[0, 2]]
    return torch.view_as_real(z).to("cuda")
"""

NUMPY = """
z = np.fft.rfft(np.random.rand(16)).astype(np.complex64)
z = z[np.arange(4)] @ z[:4]
w = z.astype(np.float64)
x = torch.from_numpy(w).to("cuda")
"""

METRICS = """
def score(net, loader):
    preds = torch.cat([net(x.cuda()).cpu().double() for x in loader])
    gram = preds @ preds.T
    top = preds.double().sort(0)
    return np.asarray(gram, dtype=np.float64), gram.max(0)
"""

LOSSES = """
class Loss(nn.Module):
    def forward(self, x, target):
        wide = x.double()
        small = torch.finfo(torch.float64).eps
        return torch.matmul(wide, wide.t()), F.binary_cross_entropy(wide, target.double()), small

Loss().cuda()
"""

GUARDED = """
class Layer(nn.Module):
    def forward(self, x):
        x = torch.fft.rfft(x)
        if not torch.is_complex(x):
            x = torch.complex(x, torch.zeros_like(x).to(x.device))
        return torch.fft.irfft(x)

Layer().cuda()
"""


@pytest.mark.parametrize(
    "source", [LLAMA, FLUX, SCHEDULE, GUIDED, SPECTRUM_OF_THE_HOST, NUMPY, METRICS, LOSSES, GUARDED]
)  # fmt: skip
def test_programs_that_run(source: str) -> None:
    assert said(source) == []


@pytest.mark.parametrize(
    "line",
    [
        # views and what takes complex64
        "z[0]", "z[:, 1]", "z[..., None]", "z[1:3]", "z[:n]", "z[n]", "z * z + z", "z.conj() * 2", "z.abs().sum()",
        "torch.view_as_real(z)[ids]", "torch.cat([z, z])", "torch.index_select(z, 0, ids)", "z.real @ z.imag",
        "for i in range(4): z[i]", "for i in ids.tolist(): z[i]", "z[ids.item()]", "z[n, k]",
        # an einsum that sums nothing up
        'torch.einsum("bi,bi->bi", z, z)',
        # of the host
        "z.cpu()[ids.cpu()]", "z.cpu() @ z.cpu()", "torch.zeros(3, 3, dtype=torch.float64) @ torch.eye(3).double()",
        "torch.rand(3).double().sort(0)", 'torch.ones(3, dtype=torch.double, device="cpu").sort(0)',
        # a cast on the card gives float32
        "x.double() @ x.double()", "x.to(torch.float64).sort(0)", "x.type(torch.float64).max(1)",
        # what is not known
        "far(z)[ids]", "far(x).double() @ x", "z.to(far)[ids].far()[ids]", "(z if n else x)[ids]",
        # an overload that takes it
        "d.max()", "torch.max(d)", "torch.max(d, d)", "d[ids]", "d + d", "torch.gather(d, 0, ids)",
        # a method that is called as a function
        "torch.Tensor.sort(d, 0)",
        # what CUDA refuses itself
        "torch.polar(z, z)", "z.max(1)", "torch.complex(z, z)",
        # types that are made anew
        "z.to(torch.float32) @ x", "d.float() @ x", "torch.softmax(z, 0, dtype=torch.float32)",
    ],
)  # fmt: skip
def test_nothing_is_said(line: str) -> None:
    source = f"""
def f(n, k, far):
    x = torch.randn(4, 4, device="cuda")
    z = torch.complex(x, x)
    d = torch.zeros(4, 4, dtype=torch.float64, device="cuda")
    ids = torch.zeros(4, 4, dtype=torch.int64, device="cuda")
    {line}
"""
    assert said(source) == []


def test_branches_and_loops() -> None:
    source = """
def f(flag, n):
    ids = torch.arange(3, device="cuda")
    z = torch.fft.fft(torch.rand(4, device="cuda"))
    if flag:
        z = torch.view_as_real(z)
    z[ids]
    y = torch.fft.fft(torch.rand(4, device="cuda"))
    for i in range(n):
        y[ids]
        y = y.abs()
    w = torch.fft.fft(torch.rand(4, device="cuda"))
    if flag:
        w = w.abs()
        return w[ids]
    w[ids]
"""
    assert said(source) == ["aten::index takes no complex64: w[ids]"]


def test_the_type_of_everything_is_float64() -> None:
    """NPU136 says it of the program."""
    source = """
torch.set_default_dtype(torch.float64)
x = torch.rand(3, 3).cuda()
x @ x
"""
    assert said(source) == []


def test_a_cast_in_the_line_of_a_move_is_told_once() -> None:
    result = migrate(HEAD + "x = torch.rand(3).double().cuda()\nx.sort(0)\n")
    assert [(each.code, each.span.line) for each in result.findings if each.code in ("NPU127", "NPU136", "NPU137")] == [
        ("NPU127", 7), ("NPU137", 8),
    ]  # fmt: skip


# --- devices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "move", "reported"),
    [
        ("def f(device):", ".to(device)", True),  # a caller has to say one
        ("def f(args):", ".to(args.device)", True),
        ("def f(device):", ".to(device=device, non_blocking=True)", True),
        ("def f():", '.to("cuda" if torch.cuda.is_available() else "cpu")', True),
        ("def f():", ".to(torch.device('cuda', 0))", True),
        ("def f():", ".cuda(0)", True),
        ("def f(device=None):", ".to(device)", False),
        ("def f(device='cpu'):", ".to(device)", False),
        ("def f(far):", ".to(far)", False),
        ("def f(other):", ".to(other.device)", False),
        ("def f():", ".to('cpu')", False),
        ("def f():", "", False),
    ],
)
def test_where_a_tensor_lies(head: str, move: str, reported: bool) -> None:
    source = f"""
{head}
    table = torch.polar(torch.ones(4), torch.ones(4)){move}
    return table[[0, 2]]
"""
    assert bool(said(source)) is reported


def test_a_function_that_is_called_with_the_cpu() -> None:
    source = """
def f(device):
    table = torch.polar(torch.ones(4), torch.ones(4)).to(device)
    return table[[0, 2]]

f("cpu"), torch.rand(3).cuda()
"""
    assert said(source) == []


@pytest.mark.parametrize(("again", "known"), [("", True), ("    if again:\n        return tables(n, False)\n", False)])
def test_a_function_that_may_return_what_it_gives_itself(again: str, known: bool) -> None:
    """Several values at once; of what the call inside gives nothing is known."""
    made = f'def tables(n, again):\n{again}    return precompute(n, 128).to("cuda"), n\n\n'
    found = said(f'{PRECOMPUTED}{made}table, n = tables(64, True)\ntable[torch.arange(n, device="cuda")]\n')
    assert found == ['aten::index takes no complex64: table[torch.arange(n, device="cuda")]'] * known


def test_a_function_of_autograd() -> None:
    source = """
class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        return torch.fft.fft(torch.einsum("nb,mnb->mb", torch.fft.ifft(x), torch.fft.fft(w))).real
"""
    assert len(said(source)) == 1


# --- what the user's own card did ------------------------------------------------------------------------------------


def test_what_the_own_card_did_is_no_finding() -> None:
    source = """
        z = torch.complex(torch.ones(4, device="cuda"), torch.ones(4, device="cuda"))
        z[torch.tensor([0, 1], device="cuda")]
    """
    (found,) = said(source)
    assert found.startswith("aten::index takes no complex64")
    assert said(source, own_card=(("aten::index.Tensor", "complex64"),)) == []
    assert said(source, own_card=(("aten::index.Tensor", "complex128"), ("aten::gather", "complex64"))) == [found]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("tables = [precompute(8, 4).to(device) for _ in range(3)]", True),
        ("tables = [precompute(8, 4).to(device)]", True),
        ("tables = []\n    for size in sizes:\n        tables.append(precompute(8, size).to(device))", True),
        ("tables = []\n    tables.append(precompute(8, 4).to(device))\n    tables = [t.clone() for t in tables]", True),
        ("tables = [precompute(8, 4).to(device), torch.ones(3, device=device)]", False),
        ("tables = []\n    tables.append(precompute(8, 4).to(device))\n    tables += sizes", False),
        ("tables = []\n    tables.append(precompute(8, 4).to(device))\n    fill(tables)", False),
        ("tables = []", False),
        ("tables = [precompute(8, 4)]", False),
    ],
)
def test_items_of_lists(body: str, found: bool) -> None:
    source = f"{PRECOMPUTED}\ndef f(device, sizes, i: torch.Tensor, fill):\n    {body}\n    return tables[0][i]\n"
    assert bool(said(source)) is found
