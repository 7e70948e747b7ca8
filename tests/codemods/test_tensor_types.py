"""Tensor types, type strings, default types and 64-bit floats."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("P46", "T19")
@pytest.mark.parametrize(
    "line",
    [
        "x = torch.cuda.FloatTensor(3, 4)",
        "x = torch.cuda.LongTensor([1, 2])",
        "kind = torch.cuda.FloatTensor if on else torch.FloatTensor",
        "assert isinstance(x, torch.cuda.FloatTensor)",
        "assert isinstance(x, (torch.cuda.FloatTensor, torch.cuda.HalfTensor))",
        "x = x.type(torch.cuda.FloatTensor)",
        "kinds = {torch.cuda.HalfTensor: 1, torch.HalfTensor: 2}",
    ],
)
def test_types_by_name(line: str) -> None:
    check_rewrite(
        f"import torch\n{line}\n", f"import torch\nimport torch_npu  # noqa: F401\n{line.replace('.cuda.', '.npu.')}\n"
    )


@pattern("P47", "T19")
@pytest.mark.parametrize(
    "line",
    [
        "x = x.type('torch.cuda.FloatTensor')",
        "half = x.type() == 'torch.cuda.HalfTensor'",
        'half = x.type() in ("torch.cuda.HalfTensor", "torch.cuda.BFloat16Tensor")',
        "buckets = {'torch.cuda.FloatTensor': [], 'torch.cuda.HalfTensor': []}",
        'KINDS = ["torch.cuda.FloatTensor", "torch.cuda.DoubleTensor"]',
        "bucket = buckets['torch.cuda.HalfTensor']",
    ],
)
def test_types_by_string(line: str) -> None:
    check_rewrite(
        f"import torch\n{line}\n", f"import torch\nimport torch_npu  # noqa: F401\n{line.replace('.cuda.', '.npu.')}\n"
    )


@pattern("P46")
@pytest.mark.parametrize("line", ["x = torch.FloatTensor(3)", "x = x.type('torch.FloatTensor')", "x = x.float()"])
def test_types_of_the_cpu(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


@pattern("P46")
@pytest.mark.parametrize("line", ["x = torch.cuda.sparse.FloatTensor(i, v)"])
def test_sparse_types_have_no_counterpart(line: str) -> None:
    check_noop(f"import torch\n{line}\n", open_codes=["NPU501"])


@pattern("P47", "P68")
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("'torch.cuda.FloatTensor'", "float32"),
        ("torch.cuda.FloatTensor", "float32"),
        ("torch.cuda.HalfTensor", "float16"),
        ('"torch.cuda.DoubleTensor"', "float64"),
        ("torch.cuda.BFloat16Tensor", "bfloat16"),
        ("t=torch.cuda.FloatTensor", "float32"),
    ],
)
def test_default_types(kind: str, dtype: str) -> None:
    check_rewrite(
        f"""
        import torch
        torch.set_default_tensor_type({kind})  # on the card
        """,
        f"""
        import torch
        import torch_npu  # noqa: F401
        torch.set_default_dtype(torch.{dtype})
        torch.set_default_device("npu")  # on the card
        """,
        codes_applied=["NPU125", "NPU403"],
        open_codes=["NPU136"] if dtype == "float64" else [],
    )


@pattern("P47", "P68")
def test_default_types_of_one_file_move_together() -> None:
    check_rewrite(
        """
        import torch as t

        def setup(cuda):
            if cuda: t.set_default_tensor_type('torch.cuda.FloatTensor')
            else:
                t.set_default_tensor_type('torch.FloatTensor')

        def choose(cuda):
            t.set_default_tensor_type(t.cuda.FloatTensor if cuda else t.FloatTensor)
        """,
        """
        import torch as t
        import torch_npu  # noqa: F401

        def setup(cuda):
            if cuda: t.set_default_dtype(t.float32); t.set_default_device("npu")
            else:
                t.set_default_dtype(t.float32)
                t.set_default_device("cpu")

        def choose(cuda):
            t.set_default_dtype(t.float32)
            t.set_default_device("npu" if cuda else "cpu")
        """,
    )


@pattern("P68")
@pytest.mark.parametrize(
    "line",
    [
        "torch.set_default_tensor_type('torch.FloatTensor')",
        "torch.set_default_tensor_type(torch.DoubleTensor)",
        "torch.set_default_tensor_type(kind)",
        "torch.set_default_dtype(torch.float64)",
        "torch.set_default_device(device)",
    ],
)
def test_defaults_that_stay(line: str) -> None:
    check_noop(f"import torch\n{line}\n")


@pattern("P68")
@pytest.mark.parametrize(
    "line",
    [
        "torch.set_default_tensor_type(torch.cuda.FloatTensor if on() else torch.FloatTensor)",
        "torch.set_default_tensor_type(torch.cuda.FloatTensor if on else torch.DoubleTensor)",
        "torch.set_default_tensor_type(torch.cuda.IntTensor)",
        "later(lambda: torch.set_default_tensor_type(torch.cuda.FloatTensor))",
        "from torch import set_default_tensor_type as put\nput(torch.cuda.FloatTensor)",
        "torch.set_default_tensor_type('torch.cuda.FloatTensor')\ntorch.set_default_tensor_type(kind)",
    ],
)
def test_defaults_for_a_person(line: str) -> None:
    result = check_noop(f"import torch\n{line}\n", open_codes=["NPU126"])
    assert result.tokens.unknown == 0


@pattern("P68")
def test_the_default_device() -> None:
    check_rewrite(
        "import torch\ntorch.set_default_device('cuda')\n",
        "import torch\nimport torch_npu  # noqa: F401\ntorch.set_default_device('npu')\n",
    )


@pattern("P69", "T18")
@pytest.mark.parametrize(
    "line",
    [
        "x = x.double().cuda()",
        "x = x.cuda().double()",
        "x = torch.zeros(3, dtype=torch.float64, device='cuda')",
        "x = torch.zeros(3, device='cuda:0', dtype=torch.double)",
        "x = torch.tensor([1.0], dtype=torch.float64).cuda()",
        "x = torch.cuda.DoubleTensor(3)",
    ],
)
def test_64_bit_floats_on_the_device_are_worth_a_remark(line: str) -> None:
    result = migrate(f"import torch\n{line}\n")
    remarks = [finding for finding in result.findings if finding.code == "NPU127"]
    assert len(remarks) == 1
    assert not remarks[0].open
    assert result.tokens.converted == result.tokens.found == 1


@pattern("P69", "T18")
@pytest.mark.parametrize(
    "line",
    ["x = x.double()", "x = x.cpu().double()", "x = torch.zeros(3, dtype=torch.float64)", "x = x.float().cuda()"],
)
def test_other_floats_are_not(line: str) -> None:
    assert "NPU127" not in {finding.code for finding in migrate(f"import torch\n{line}\n").findings}


@pattern("P47", "P68")
def test_legacy_constructors_beside_a_default_device() -> None:
    check_rewrite(
        """
        import torch

        torch.set_default_tensor_type('torch.cuda.FloatTensor')
        far = torch.Tensor([1e10])
        near = torch.Tensor([0.0]).to(far.device)
        other = torch.tensor([1.0])
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        torch.set_default_dtype(torch.float32)
        torch.set_default_device("npu")
        far = torch.Tensor([1e10])
        near = torch.Tensor([0.0]).to(far.device)
        other = torch.tensor([1.0])
        """,
        open_codes=["NPU134"],
    )


@pattern("P47")
def test_legacy_constructors_without_a_default_device() -> None:
    check_noop("import torch\n\nfar = torch.Tensor([1e10])\ntorch.set_default_tensor_type('torch.DoubleTensor')\n")


@pytest.mark.parametrize(
    ("loader", "codes"),
    [
        ("data.DataLoader(d, 8, shuffle=True)", ["NPU134"]),
        ("data.DataLoader(d, 8, True)", ["NPU134"]),
        ("data.DataLoader(d, shuffle=args.shuffle)", ["NPU134"]),
        ("data.DataLoader(d, **options)", []),
        ("data.RandomSampler(d)", ["NPU134"]),
        ("data.DataLoader(d, 8, shuffle=True, generator=g)", []),
        ("data.DataLoader(d, 8)", []),
        ("data.DataLoader(d, 8, shuffle=False)", []),
        ("DataLoader(d, shuffle=True)", []),
    ],
)
def test_a_loader_that_shuffles_beside_a_default_device(loader: str, codes: list[str]) -> None:
    set_type = "torch.set_default_tensor_type('torch.cuda.FloatTensor')\n"
    set_both = 'torch.set_default_dtype(torch.float32)\ntorch.set_default_device("npu")\n'
    source = "import torch\n{}import torch.utils.data as data\n{}{}x = {}\n"
    check_rewrite(
        source.format("", set_type, set_type, loader),
        source.format("import torch_npu  # noqa: F401\n", set_both, set_both, loader),
        open_codes=codes,
    )
    check_noop(source.format("", "", "", loader))
