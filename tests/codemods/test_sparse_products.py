"""Products of matrices that are made sparse in the same file."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import migrate


def told(body: str, more: str = "") -> list[str]:
    """What NPU526 names in a function with this body."""
    source = f"import torch\n\nuse_cuda = True\n{more}\n\n\ndef f(i, v, shape, x):\n{textwrap.indent(body, '    ')}\n"
    return [finding.api for finding in migrate(source).findings if finding.code == "NPU526"]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("a = torch.sparse_coo_tensor(i, v, shape)\nreturn torch.matmul(a.cuda(), x)", "torch.matmul"),
        ("a = torch.sparse_coo_tensor(i, v, shape).coalesce()\nreturn a @ x", "torch.matmul"),
        ("a = torch.sparse.FloatTensor(i, v, shape)\nreturn a.t().mm(x)", "torch.mm"),
        ("a = torch.cuda.sparse.FloatTensor(i, v, shape)\nreturn torch.mm(a, x)", "torch.mm"),
        ("return torch.addmm(v, x.to_sparse(), x)", "torch.addmm"),
        ("return x @ torch.sparse_csr_tensor(i, v, shape, device='cuda')", "torch.matmul"),
        ("a = g(i, v)\nreturn torch.bmm(a, x)", "torch.bmm"),
        ("y = torch.FloatTensor(v)\ny = y.cuda()\na = torch.diag(y).to_sparse()\nreturn a @ y", "torch.matmul"),
    ],
)
def test_products(body: str, name: str) -> None:
    assert told(body, "\n\ndef g(i, v):\n    return torch.sparse_coo_tensor(i, v)") == [name]


def test_an_attribute() -> None:
    source = """
        import torch


        class Net(torch.nn.Module):
            def __init__(self, i, v):
                super().__init__()
                self.adj = torch.sparse_coo_tensor(i, v).to("cuda")

            def forward(self, x):
                return torch.mm(self.adj, x)
        """
    assert [each.code for each in migrate(source).findings if each.open] == ["NPU526"]


@pytest.mark.parametrize(
    "body",
    [
        "a = torch.sparse_coo_tensor(i, v, shape)\nreturn torch.matmul(a.to_dense(), x)",
        "a = torch.sparse_coo_tensor(i, v, shape)\na = a.to_dense()\nreturn a @ x",
        "a = torch.sparse_coo_tensor(i, v, shape)\nreturn (a + a) * a, torch.mm(x, x)",
        "a = torch.sparse_coo_tensor(i, v, shape, device='cpu')\nreturn a @ x",
        "a = torch.sparse_coo_tensor(i, v, shape)\nreturn a @ torch.ones(2, 2)",
        "a = torch.sparse_coo_tensor(i, v, shape)\nreturn a.to('cpu') @ x",
        "a = torch.sparse_coo_tensor(i, v, shape)\nreturn a._indices()[0] @ x",
        "a = scipy.sparse.coo_matrix(x)\nreturn a @ x",
        "y = torch.FloatTensor(v)\na = torch.diag(y).to_sparse()\ny = a @ y\nreturn y.cuda()",
    ],
)
def test_no_product_of_a_sparse_tensor_on_the_card(body: str) -> None:
    assert told(body) == []


@pytest.mark.parametrize(("kept", "found"), [("a, b", ["torch.matmul", "torch.matmul"]), ("b, a", ["torch.matmul"])])
def test_what_the_forward_pass_keeps_for_the_backward_one(kept: str, found: list[str]) -> None:
    source = f"""
        import torch

        use_cuda = True


        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx, i, v, shape, b):
                a = torch.sparse_coo_tensor(i, v, shape)
                ctx.save_for_backward({kept})
                return torch.matmul(a, b)

            @staticmethod
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                return None, grad.matmul(grad), None, a.t().matmul(grad)
        """
    assert [each.api for each in migrate(source).findings if each.code == "NPU526"] == found
