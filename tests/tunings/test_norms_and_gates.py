"""RMSNorm, rotary embeddings and SwiGLU as operators of torch_npu."""

from __future__ import annotations

import pytest

from tests.tunings.tuned import check_tuned, check_untuned

NPU = "import torch\nimport torch_npu  # noqa: F401\n"

# --- RMSNorm ---------------------------------------------------------------------------------------------------------

NORM = """
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        {body}
"""
FUSED = "return torch_npu.npu_rms_norm(x, self.weight, epsilon=self.eps)[0]"


def norm(body: str) -> str:
    return NORM.format(body=body.replace("\n", "\n        "))


@pytest.mark.parametrize(
    "body",
    [
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "return self.weight * (x * torch.rsqrt(self.eps + torch.mean(x * x, -1, True)))",
        "return self.weight * (x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + self.eps))",
        "return x * (1 / ((x**2).mean(-1, keepdim=True) + self.eps).sqrt()) * self.weight",
        "wide = x.float()\nscale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)\n"
        "return (wide * scale).type_as(x) * self.weight",
        "dtype = x.dtype\nx = x.to(torch.float32)\nvariance = x.pow(2).mean(-1, keepdim=True)\n"
        "x = x * torch.rsqrt(variance + self.eps)\nreturn self.weight * x.to(dtype)",
        "# in float32\nvariance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)\n\n"
        "normed = x * torch.rsqrt(variance + self.eps)  # one\nreturn self.weight * normed",
        "variance = torch.square(x).mean(dim=-1, keepdim=True)\n"
        "return x * (1.0 / torch.sqrt(variance + self.eps)) * self.weight",
    ],
)
def test_the_formula_of_an_rms_norm(body: str) -> None:
    check_tuned("rms-norm", norm(body), norm(FUSED).replace("import torch\n", NPU, 1))


def test_a_docstring_and_a_number_stay_and_a_method_that_nobody_calls_goes() -> None:
    check_tuned(
        "rms-norm",
        '''
        import torch

        class Norm(torch.nn.Module):
            def __init__(self, dim):
                self.scale = torch.nn.Parameter(torch.ones((dim,)), requires_grad=True)

            # Over the last dimension.
            def _norm(self, t):
                """Norm."""
                return t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + 1e-5)

            def forward(self, hidden: torch.Tensor) -> torch.Tensor:
                """Scaled."""
                # wide
                normed = self._norm(hidden.float()).type_as(hidden)
                return normed * self.scale

            def other(self):
                pass
        ''',
        '''
        import torch
        import torch_npu  # noqa: F401

        class Norm(torch.nn.Module):
            def __init__(self, dim):
                self.scale = torch.nn.Parameter(torch.ones((dim,)), requires_grad=True)

            def forward(self, hidden: torch.Tensor) -> torch.Tensor:
                """Scaled."""
                return torch_npu.npu_rms_norm(hidden, self.scale, epsilon=1e-5)[0]

            def other(self):
                pass
        ''',
    )


@pytest.mark.parametrize("extra", ["def public(self, t):\n        return self._norm(t)", "x = 1"])
def test_a_method_that_others_call_stays(extra: str) -> None:
    source = norm("return self._norm(x) * self.weight").rstrip() + (
        "\n\n    def _norm(self, t):\n"
        "        return t * torch.rsqrt(t.pow(2).mean(-1, keepdim=True) + self.eps)\n\n    "
    )
    gone = source[: source.index("    def _norm")] if "public" not in extra else source
    check_tuned(
        "rms-norm",
        f"{source}{extra}\n",
        gone.replace("import torch\n", NPU, 1).replace("return self._norm(x) * self.weight", FUSED)
        + ("    " if "public" not in extra else "")
        + f"{extra}\n",
    )


@pytest.mark.parametrize(
    "body",
    [
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)",  # without weight
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * (1 + self.weight)",
        "return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + self.eps) * self.weight",
        "return x * torch.rsqrt(x.pow(2).mean(-1) + self.eps) * self.weight",
        "return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + self.eps) * self.weight",
        "return x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True) + self.eps) * self.weight",
        "return x / (torch.sqrt(x.pow(2).mean(-1, keepdim=True)) + self.eps) * self.weight",
        "return x / torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + x) * self.weight",
        "return x * torch.rsqrt(x.abs().pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight + 1",
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight * self.weight",
        "return x.half() * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "x = x - x.mean(-1, keepdim=True)\n"
        "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "if self.eps:\n    x = x * 2\nreturn x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
        "print(x)\nreturn x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
    ],
)
def test_other_formulas_stay_with_a_remark(body: str) -> None:
    check_untuned("rms-norm", norm(body), open_codes=["NPU766"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.ones(dim)", "torch.zeros(dim)"),
        ("torch.ones(dim)", "torch.ones(dim, dim)"),
        ("self.weight = nn.Parameter", "self.weight = nn.Buffer"),
        ("        self.weight =", "        if dim:\n            self.weight ="),
        ("self.eps = eps", "self.eps = eps\n        self.weight = None"),
        ("self.eps = eps", "self.eps = nn.Parameter(torch.tensor(eps))"),  # the operator takes a number
        ("self.eps = eps", "self.register_buffer('eps', torch.tensor(eps))"),
        ("forward(self, x)", "forward(self, x, residual=None)"),
        ("forward(self, x)", "forward(self, *x)"),
        ("    def forward", "    @torch.jit.script_method\n    def forward"),
        ("class RMSNorm", "@torch.jit.script\nclass RMSNorm"),
    ],
)
def test_other_classes_stay_with_a_remark(old: str, new: str) -> None:
    body = "return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight"
    check_untuned("rms-norm", norm(body).replace(old, new), open_codes=["NPU766"])


def test_classes_of_another_kind_get_no_remark() -> None:
    body = "return x.sqrt() * self.weight"
    check_untuned("rms-norm", norm(body).replace("RMSNorm", "Distance"))
    check_untuned("rms-norm", norm("return x * self.weight"))


# --- rotary ----------------------------------------------------------------------------------------------------------

ROTARY = """
import torch


def rotate_half(x):
    \"\"\"Turns the halves.\"\"\"
    {half}


def apply(q, k, cos, sin, ids):
    {raised}
    return {value}
"""
HALF = "x1 = x[..., : x.shape[-1] // 2]\n    x2 = x[..., x.shape[-1] // 2 :]\n    return torch.cat((-x2, x1), dim=-1)"
RAISED = "cos = cos.unsqueeze(1)\n    sin = sin.unsqueeze(1)"


def rotary(value: str, half: str = HALF, raised: str = RAISED) -> str:
    return ROTARY.format(value=value, half=half, raised=raised)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("(q * cos) + (rotate_half(q) * sin)", "torch_npu.npu_rotary_mul(q, cos, sin)"),
        ("q * cos + rotate_half(q) * sin", "torch_npu.npu_rotary_mul(q, cos, sin)"),
        ("sin * rotate_half(q) + cos * q", "torch_npu.npu_rotary_mul(q, cos, sin)"),
        (
            "q * cos + rotate_half(q) * sin, (k * cos) + (rotate_half(k) * sin)",
            "torch_npu.npu_rotary_mul(q, cos, sin), torch_npu.npu_rotary_mul(k, cos, sin)",
        ),
    ],
)
@pytest.mark.parametrize(
    "half",
    [
        HALF,
        "x1, x2 = x.chunk(2, dim=-1)\n    return torch.cat([-x2, x1], -1)",
        "x1, x2 = x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:]\n    return torch.cat((-x2, x1), -1)",
    ],
)
def test_the_rotation_of_halves(value: str, written: str, half: str) -> None:
    check_tuned("rotary", rotary(value, half), rotary(written, half).replace("import torch\n", NPU, 1))


@pytest.mark.parametrize(
    "raised",
    [
        "cos, sin = cos[ids].unsqueeze(1), sin[ids].unsqueeze(1)",
        "cos = cos[None, :, None, :]\n    sin = sin[None, :, None, :]",
    ],
)
def test_ways_to_raise_the_angles(raised: str) -> None:
    value = "q * cos + rotate_half(q) * sin"
    written = "torch_npu.npu_rotary_mul(q, cos, sin)"
    check_tuned(
        "rotary", rotary(value, raised=raised), rotary(written, raised=raised).replace("import torch\n", NPU, 1)
    )


def test_the_function_of_transformers_is_imported_no_more() -> None:
    check_tuned(
        "rotary",
        """
        import torch
        from transformers.models.llama.modeling_llama import LlamaModel, rotate_half

        def turn(x: torch.Tensor, cos, sin):
            cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
            return LlamaModel(x * cos + rotate_half(x) * sin)
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from transformers.models.llama.modeling_llama import LlamaModel

        def turn(x: torch.Tensor, cos, sin):
            cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
            return LlamaModel(torch_npu.npu_rotary_mul(x, cos, sin))
        """,
    )


@pytest.mark.parametrize(
    ("value", "raised"),
    [
        ("q * cos + rotate_half(q) * sin", "pass"),
        ("q * cos + rotate_half(q) * sin", "cos = cos.unsqueeze(1)"),
        ("q * cos + rotate_half(q) * sin", "cos = cos[ids]\n    sin = sin[ids]"),
        ("q * cos[0] + rotate_half(q) * sin[0]", RAISED),
        ("q * cos + rotate_half(q) * sin", "if ids:\n        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)"),
    ],
)
def test_angles_of_unknown_rank_stay_with_a_remark(value: str, raised: str) -> None:
    check_untuned("rotary", rotary(value, raised=raised), open_codes=["NPU766"])


@pytest.mark.parametrize(
    ("value", "half"),
    [
        ("q * cos - rotate_half(q) * sin", HALF),
        ("q * cos + rotate_half(k) * sin", HALF),
        ("q * cos + rotate_half(q + 1) * sin", HALF),
        ("q + rotate_half(q) * sin", HALF),
        ("q * cos + rotate_half(q)", HALF),
        ("q / cos + rotate_half(q) * sin", HALF),
        ("rotate_half(q)", HALF),
        ("q * cos + rotate_half(q) * sin", HALF.replace("(-x2, x1)", "(x2, -x1)")),
        ("q * cos + rotate_half(q) * sin", HALF.replace("(-x2, x1)", "(-x1, x2)")),
        ("q * cos + rotate_half(q) * sin", HALF.replace("dim=-1", "dim=0")),
        ("q * cos + rotate_half(q) * sin", HALF.replace("// 2", "// 4")),
        (
            "q * cos + rotate_half(q) * sin",
            "x1, x2 = x[..., ::2], x[..., 1::2]\n    return torch.cat((-x2, x1), dim=-1)",
        ),
        ("q * cos + rotate_half(q) * sin", "x = x * 2\n    " + HALF),
        ("q * cos + torch.roll(q) * sin", HALF),
        ("q * cos + rotate_half(q) * sin", HALF.replace("-x2", "+x2")),
        (
            "q * cos + rotate_half(q) * sin",
            "x1 = x.chunk(2, dim=-1)\n    return torch.cat((-x1[1], x1[0]), dim=-1)",
        ),
    ],
)
def test_other_rotations_stay(value: str, half: str) -> None:
    check_untuned("rotary", rotary(value, half))


# --- SwiGLU ----------------------------------------------------------------------------------------------------------

GATED = """
import torch
import torch.nn.functional as F
from torch import nn


class Gated(nn.Module):
    def __init__(self, dim):
        self.w1 = nn.Linear(dim, 2 * dim)
        self.w2 = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, y):
        h = self.w1(x)
        {body}
        return F.relu(out)
"""
GATED_NPU = "import torch\nimport torch_npu  # noqa: F401\nimport torch.nn.functional as F\n"


def gated(body: str) -> str:
    return GATED.format(body=body.replace("\n", "\n        "))


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("a, b = h.chunk(2, dim=-1)\nout = F.silu(a) * b", "out = torch_npu.npu_swiglu(h, dim=-1)"),
        ("(a, b) = torch.chunk(h, 2, -1)\nout = b * F.silu(a)", "out = torch_npu.npu_swiglu(h, dim=-1)"),
        (
            "a, b = h.chunk(chunks=2, dim=1)\nout = self.w2(F.silu(a) * b)",
            "out = self.w2(torch_npu.npu_swiglu(h, dim=1))",
        ),
        ("a, b = x.chunk(2, -1)\nout = F.silu(a) * b", "out = torch_npu.npu_swiglu(x.contiguous(), dim=-1)"),
        (
            "z = self.norm(x)\na, b = z.chunk(2, -1)\nout = F.silu(a) * b",
            "z = self.norm(x)\nout = torch_npu.npu_swiglu(z.contiguous(), dim=-1)",
        ),
        (
            "z = F.linear(x, y)\na, b = z.chunk(2, -1)\nout = F.silu(a) * b",
            "z = F.linear(x, y)\nout = torch_npu.npu_swiglu(z, dim=-1)",
        ),
        (
            "a, b = h.chunk(2, -1)  # halves\nz = x + 1\nout = F.silu(a) * b + z",
            "z = x + 1\nout = torch_npu.npu_swiglu(h, dim=-1) + z",
        ),
    ],
)
def test_two_halves_of_one_tensor(body: str, written: str) -> None:
    check_tuned("swiglu", gated(body), gated(written).replace(GATED_NPU.replace(NPU[13:], ""), GATED_NPU, 1))


@pytest.mark.parametrize(
    "body",
    [
        "a, b = h.chunk(2, -1)\nout = F.silu(b) * a",  # the second half is activated
        "a, b = h.chunk(2, -1)\nout = F.silu(a) + b",
        "a, b = h.chunk(2, -1)\nout = F.gelu(a) * b",
        "a, b = h.chunk(2, -1)\nout = F.silu(a) * a",
        "a, b = h.chunk(2, -1)\nout = F.silu(a) * b + a",
        "a, b = h.chunk(2)\nout = F.silu(a) * b",
        "a, b = h.chunk(2, y)\nout = F.silu(a) * b",
        "a, b, c = h.chunk(3, -1)\nout = F.silu(a) * b",
        "a, b = h.split(y, -1)\nout = F.silu(a) * b",
        "a, b = h.chunk(2, -1)\nh = x\nout = F.silu(a) * b",
        "a, b = h.chunk(2, -1)\nprint(h.zero_())\nout = F.silu(a) * b",
        "z = h.view(-1)\na, b = h.chunk(2, -1)\nz.zero_()\nout = F.silu(a) * b",
        "a, b = torch.chunk(input=h, chunks=2, dim=-1)\nout = F.silu(a) * b",
        "a, b = h.chunk(2, -1)\nif y:\n    out = F.silu(a) * b\nelse:\n    out = b",
        "a, b = x\nout = F.silu(a) * b",
        "a, b = self.w2(h).chunk(2, -1)\nout = F.silu(a) * b",
        "a, b = h.chunk(2, -1)\nout = F.silu(a, inplace=True) * b",
        "a = h.chunk(2, -1)\nout = F.silu(a[0]) * a[1]",
        "out = F.silu(h) * y",
        "out = F.silu(self.make(x)) * self.w2(x)",
        "out = F.silu(self.w1(x)) * self.norm(x)",
    ],
)
def test_other_products_stay(body: str) -> None:
    check_untuned("swiglu", gated(body))


def test_two_layers_are_a_remark() -> None:
    check_untuned("swiglu", gated("out = F.silu(self.w1(x)) * self.w2(x)"), open_codes=["NPU766"])
    scripted = gated("a, b = h.chunk(2, -1)\nout = F.silu(a) * b")
    scripted = scripted.replace("    def for", "    @torch.jit.export\n    def for")
    check_untuned("swiglu", scripted)
