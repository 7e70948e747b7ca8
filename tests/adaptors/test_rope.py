"""The adaptors `rope` and `float64`: operators that refuse complex numbers and 64-bit floats."""

from __future__ import annotations

import pytest

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered
from tests.harness import clean, migrate

HEAD = """
import torch

device = torch.device("cuda")
x = torch.polar(torch.ones(4, 6, 8), torch.rand(4, 6, 8)).to(device)
w = torch.view_as_complex(torch.rand(8, 5, 2, device=device))
d = torch.rand(4, 4, dtype=torch.float64, device=device)
i = torch.arange(3, device=device)
"""


def migrated() -> str:
    head = clean(HEAD).replace("cuda", "npu")
    return head.replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n")


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("y = x[i]", "y = torch.view_as_complex(torch.view_as_real(x)[i])"),
        ("y = x[:, i]", "y = torch.view_as_complex(torch.view_as_real(x)[:, i])"),
        ("y = x[..., i]", "y = torch.view_as_complex(torch.view_as_real(x)[..., i, :])"),
        ("y = x[[0, 1]]", "y = torch.view_as_complex(torch.view_as_real(x)[[0, 1]])"),
        ("y = x @ w", "y = npu_port.by_products(torch.matmul, x, w)"),
        ("y = torch.matmul(x, w)", "y = npu_port.by_products(torch.matmul, x, w)"),
        ("y = x.matmul(w)", "y = npu_port.by_products(torch.Tensor.matmul, x, w)"),
        ('y = torch.einsum("abc,cd->abd", x, w)', 'y = npu_port.by_products(torch.einsum, "abc,cd->abd", x, w)'),
        ("y = torch.roll(x, 1, dims=0)", "y = npu_port.by_parts(torch.roll, x, 1, dims=0)"),
        ("y = x.roll(1, 0)", "y = npu_port.by_parts(torch.Tensor.roll, x, 1, 0)"),
        ("y = torch.polar(d, d)", "y = npu_port.polar(d, d)"),
        ("y = d @ d", "y = npu_port.on_cpu(torch.matmul, d, d)"),
        ("y = torch.sort(d, dim=0).values", "y = npu_port.on_cpu(torch.sort, d, dim=0).values"),
        ("y = d.sort().values", "y = npu_port.on_cpu(torch.Tensor.sort, d).values"),
    ],
)
def test_what_refuses_them(line: str, after: str) -> None:
    head = migrated()
    if "npu_port" in after:
        head = head.replace("F401\n", "F401\n\nimport npu_port\n", 1)
    check_adapted("float64,rope", f"{clean(HEAD)}{line}\n", f"{head}{after}\n")


def test_they_are_offered_where_they_would_be_written() -> None:
    assert offered(f"{clean(HEAD)}y = x[i]\nz = d @ d\n") == [("NPU137", 8, "rope"), ("NPU137", 9, "float64")]
    assert offered(f"{clean(HEAD)}d.relu_()\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "y = x[0]",
        "y = x[:, 1:3]",
        "y = x[None]",
        "y = x * x",
        "y = torch.polar(torch.ones(3), torch.ones(3))",
        "y = torch.rand(3, device='cpu', dtype=torch.float64).sort()",
        "y = d + d",
    ],
)
def test_what_the_card_takes_stays(line: str) -> None:
    source = migrated()
    check_not_adapted("float64,rope", f"{source}{line}\n")


def test_a_comment_keeps_a_line() -> None:
    source = migrated()
    check_not_adapted("rope", f"{source}y = x[i]  # transplt: ignore[NPU874]\n", open_codes=["NPU137"])


def test_a_list_of_tables_that_an_object_holds() -> None:
    """Where the index may be a whole number as well, the real view gives the same."""
    check_adapted(
        "rope",
        """
        import torch


        class Rotary:
            def __init__(self):
                self.tables = None

            @staticmethod
            def precompute(dims):
                tables = []
                for dim in dims:
                    angle = torch.rand(16, dim).float()
                    tables.append(torch.polar(torch.ones_like(angle), angle).to(torch.complex64))
                return tables

            def __call__(self, ids: torch.Tensor):
                if self.tables is None:
                    self.tables = self.precompute([2, 4])
                    self.tables = [table.to(ids.device) for table in self.tables]
                result = []
                for i in range(2):
                    result.append(self.tables[i][ids[:, i]])
                return torch.cat(result, dim=-1)
        """,
        """
        import torch


        class Rotary:
            def __init__(self):
                self.tables = None

            @staticmethod
            def precompute(dims):
                tables = []
                for dim in dims:
                    angle = torch.rand(16, dim).float()
                    tables.append(torch.polar(torch.ones_like(angle), angle).to(torch.complex64))
                return tables

            def __call__(self, ids: torch.Tensor):
                if self.tables is None:
                    self.tables = self.precompute([2, 4])
                    self.tables = [table.to(ids.device) for table in self.tables]
                result = []
                for i in range(2):
                    result.append(torch.view_as_complex(torch.view_as_real(self.tables[i])[ids[:, i]]))
                return torch.cat(result, dim=-1)
        """,
    )


def test_what_may_be_no_complex_tensor_stays() -> None:
    check_not_adapted(
        "rope",
        """
        import torch


        def pick(table, i):
            return table[i]


        def several(flag, i):
            tables = []
            tables.append(torch.polar(torch.ones(4), torch.ones(4)))
            if flag:
                tables.extend(flag)
            return tables[0][i]


        def on_the_cpu(i):
            return torch.polar(torch.ones(4), torch.ones(4))[i]
        """,
    )


def test_where_a_rule_of_the_user_says_otherwise_the_finding_is_back() -> None:
    """What an adaptor wrote is taken back as a whole, and what it would have answered is open again."""
    rule = '{"rules": {"FuncNameModifyRule": [{"old_name": "torch.matmul", "new_name": "torch.inner"}]}}'
    source = f"{clean(HEAD)}y = torch.matmul(x, w)\nz = x[i]\n"
    asked = {"helper_file": True, "adapt": (("rope", ""),)}
    assert [each.code for each in migrate(source, **asked).findings if each.open] == []
    result = migrate(source, user_rules=(("mine.json", rule),), **asked)
    assert b"torch.inner(x, w)" in result.data and b"npu_port" not in result.data and b"z = x[i]" in result.data
    assert [each.code for each in result.findings if each.open] == ["NPU992", "NPU137", "NPU137"]
