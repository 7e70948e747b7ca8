"""float64 that is summed over the ranks."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import check_noop, migrate, pattern

HEAD = "import torch\nimport torch.distributed as dist\nfrom torch.distributed import all_reduce\n\nuse_cuda = True\n"


def codes(body: str) -> list[str]:
    """The codes about float64 in a function with this body."""
    result = migrate(f"{HEAD}\ndef f(n, device, other):\n{textwrap.indent(body, '    ')}\n")
    return [finding.code for finding in result.findings if finding.code in ("NPU127", "NPU314")]


@pattern("P69", "T18")
@pytest.mark.parametrize(
    "body",
    [
        't = torch.tensor([1, n], dtype=torch.float64, device="cuda")\ndist.all_reduce(t)\nt = t.tolist()',
        "t = torch.tensor([1, n], dtype=torch.double).cuda()\ndist.all_reduce(t, op=dist.ReduceOp.SUM)",
        "t = torch.zeros(3, device=device, dtype=torch.float64)\nif n:\n    dist.reduce(t, 0)",
        "t = torch.as_tensor(n).double().to(device)\nall_reduce(tensor=t)",
        "t = torch.as_tensor(n).to(device, torch.float64)\nall_reduce(t)",
        "t = torch.as_tensor(n).cuda().to(torch.float64)\nall_reduce(t)",
        "from torch import float64 as device_dtype\nt = torch.as_tensor(n).to(device_dtype).cuda()\nall_reduce(t)",
        "dist.all_reduce(torch.ones(2).double().cuda())",
        "dist.all_reduce(torch.ones(2).double().cuda().flatten())",
        "dist.all_reduce(torch.ones(2).double().cpu().cuda())",
        "t = torch.cuda.DoubleTensor([n])\ndist.all_reduce(t)",
        't = n\nt = torch.zeros(2, dtype=torch.float64, device="cuda:0").clone()\ndist.all_reduce(t)',
        'from accelerate import Accelerator\na = Accelerator()\nt = torch.zeros(2).double().cuda()\nt = a.reduce(t)',
        'import accelerate\nt = torch.zeros(2).double().cuda()\nother.accelerator.reduce(t, reduction="mean")',
        "t = torch.zeros(3, device=device, dtype=torch.float64)\nfor x in other:\n    t += x\ndist.all_reduce(t)",
        "ts = []\nfor x in other:\n    t = torch.zeros(3, device=device, dtype=torch.float64)\n    ts.append(t)\n"
        "ts = torch.stack(ts)\ndist.all_reduce(ts)",
    ],
)
def test_hccl_refuses_it(body: str) -> None:
    assert codes(body) == ["NPU314"]


@pattern("P69", "T18")
@pytest.mark.parametrize(
    "body",
    [
        't = torch.tensor([1, n], dtype=torch.float32, device="cuda")\ndist.all_reduce(t)',
        't = torch.tensor([1, n], device="cuda")\ndist.all_reduce(t)',
        "t = torch.tensor([1, n], dtype=torch.float64)\ndist.all_reduce(t)",
        "t = n\nt += torch.zeros(3, device=device, dtype=torch.float64)\ndist.all_reduce(t)",
        "ts = []\nts.append(torch.zeros(3, device=device))\nts.append(n.double())\ndist.all_reduce(torch.stack(ts))",
        "ts = []\nfor x in other:\n    t = torch.cat(ts)\n    ts.append(t)\ndist.all_reduce(t)",
        't = torch.tensor([1, n], dtype=torch.float64, device="cpu")\ndist.all_reduce(t)',
        't = torch.tensor([1, n], dtype=torch.float64, device="cuda").float()\ndist.all_reduce(t)',
        "t = torch.tensor([1, n], dtype=torch.float64).cuda().sum()\ndist.all_reduce(t)",
        "t = torch.ones(2).double().to(other.dtype)\ndist.all_reduce(t)",
        "dist.all_reduce(torch.ones(2).double().cuda().cpu())",
        "dist.all_reduce(n)",
        "dist.all_reduce(n.total)",
        "for t in n:\n    dist.all_reduce(t)",
        "t = torch.zeros(2, dtype=torch.float64).cuda()\nfor t in n:\n    dist.all_reduce(t)",
        "t, u = n\ndist.all_reduce(t)",
        "dist.all_reduce(n)\nt = torch.zeros(2, dtype=torch.float64).cuda()",
        "t = torch.zeros(2, dtype=torch.float64).cuda()\nother.all_reduce(t)",
        "t = torch.zeros(2).double().cuda()\nother.reduce(t)\nother.accelerator.reduce(t)",
        "import accelerate\nt = torch.zeros(2).double().cuda()\nt = other.reduce(t)\nreduce(t)",
        "import accelerate\nt = torch.zeros(2).cuda()\nother.accelerator.reduce(t)",
        "t = torch.zeros(2, dtype=torch.float64).cuda()\ndist.all_gather(n, t)",
    ],
)
def test_nothing_that_hccl_refuses_is_seen(body: str) -> None:
    assert "NPU314" not in codes(body)


_HELPER = """
def total(tensor, group=None):
    with torch.no_grad():
        summed = tensor
        if group:
            dist.all_reduce(summed)
        dist.reduce(summed, dst=0)
    return summed


def through(value):
    return total(value)
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("matrix = np.zeros((n, n))\nmatrix = torch.from_numpy(matrix).cuda()\ntotal(matrix)", 1),
        ("t = torch.zeros(3, dtype=torch.float64, device=device)\ntotal(tensor=t)", 1),
        ("through(torch.as_tensor(np.ones(n, dtype=np.float64)).to(device))", 1),
        ("total(torch.from_numpy(np.zeros(n, np.float32)).cuda())", 0),
        ("total(torch.from_numpy(np.zeros(n)).float().cuda())", 0),
        ("total(torch.from_numpy(np.zeros(n)))", 0),
        ("total(n, torch.zeros(3, dtype=torch.float64, device=device))", 0),
        ("total(torch.from_numpy(other).cuda())", 0),
    ],
)
def test_through_functions_of_the_file(body: str, count: int) -> None:
    source = f"{HEAD}import numpy as np\n{_HELPER}\n\ndef f(n, device, other):\n{textwrap.indent(body, '    ')}\n"
    assert [each.code for each in migrate(source).findings].count("NPU314") == count


@pattern("P69", "T18")
def test_a_reduction_of_the_project() -> None:
    check_noop(
        """
        import torch

        use_cuda = True


        def all_reduce(t):
            return t


        all_reduce(torch.zeros(2, dtype=torch.float64).to(device))
        """
    )


@pytest.mark.parametrize(
    "lines",
    [
        "DTYPE = torch.float64\ncount = torch.zeros(1, dtype=DTYPE).cuda()\ndist.all_reduce(count)",
        "def f(dtype=torch.double):\n    x = torch.zeros(1, dtype=dtype).cuda()\n    dist.all_reduce(x)",
        "class M:\n    def __init__(self):\n        self.dtype = torch.float64\n"
        "        self.sum = torch.zeros(1, dtype=self.dtype, device='cuda')\n"
        "    def sync(self):\n        dist.all_reduce(self.sum)",
        "torch.set_default_dtype(torch.float64)\ndist.all_reduce(torch.zeros(1).cuda())",
    ],
)
def test_a_type_that_is_set_elsewhere(lines: str) -> None:
    result = migrate(f"import torch\nimport torch.distributed as dist\n{lines}\n")
    assert "NPU314" in {f.code for f in result.findings}


def test_a_default_type_that_another_file_sets() -> None:
    source = "import torch\nimport torch.distributed as dist\n\ndef f():\n    dist.all_reduce(torch.zeros(1).cuda())\n"
    files = {"main.py": "import torch\ntorch.set_default_dtype(torch.float64)\n"}
    assert "NPU314" in {f.code for f in migrate(source, files=files).findings}
    assert "NPU314" not in {f.code for f in migrate(source, files={"main.py": "import torch\n"}).findings}


@pytest.mark.parametrize(
    "lines",
    [
        "DTYPE = torch.float32\ndist.all_reduce(torch.zeros(1, dtype=DTYPE).cuda())",
        "def f(dtype):\n    x = torch.zeros(1, dtype=dtype).cuda()\n    dist.all_reduce(x)\n\ny = torch.float64",
        "torch.set_default_dtype(torch.float64)\ndist.all_reduce(torch.tensor([1, 2]).cuda())",
        "torch.set_default_dtype(torch.float64)\ndist.all_reduce(torch.zeros(1).float().cuda())",
    ],
)
def test_types_that_are_no_float64(lines: str) -> None:
    result = migrate(f"import torch\nimport torch.distributed as dist\n{lines}\n")
    assert "NPU314" not in {f.code for f in result.findings}
