"""Backends of torch.compile."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("P61", "T3")
@pytest.mark.parametrize("call", ["torch.compile(m, backend='cudagraphs')", 'torch._dynamo.optimize("cudagraphs")(m)'])
def test_the_backend_that_captures_graphs(call: str) -> None:
    check_rewrite(
        f"import torch\nm = {call}\n",
        f"import torch\nimport torch_npu  # noqa: F401\nm = {call.replace('cudagraphs', 'npugraphs')}\n",
        codes_applied=["NPU150", "NPU403"],
    )


@pattern("P61")
def test_before_2_6_there_is_none() -> None:
    check_noop("import torch\nm = torch.compile(m, backend='cudagraphs')\n", torch_version="2.5", open_codes=["NPU151"])


@pattern("P61")
@pytest.mark.parametrize(
    "line",
    [
        "m = torch.compile(m, backend='inductor')",
        "m = torch.compile(m, mode='reduce-overhead')",
        "m = other.compile(m, backend='cudagraphs')",
        "m = torch.compile(m, options={'triton.cudagraphs': True})",
        "print('cudagraphs')",
    ],
)
def test_other_backends_stay(line: str) -> None:
    assert not migrate(f"import torch\n{line}\n").changed


@pattern("P61")
@pytest.mark.parametrize("call", ["torch.compile(m)", "torch.compile(m, backend='inductor', dynamic=True)"])
def test_inductor_needs_a_package(call: str) -> None:
    check_noop(f"import torch\nm = {call}\n", open_codes=["NPU512"])


@pattern("P61")
@pytest.mark.parametrize(
    "line",
    [
        "m = torch.compile(m, backend='eager')",
        "m = torch.compile(m, backend=args.backend)",
        "m = torch.compile(m, **options)",
        "m = torch.compile(m, disable=True)",
        "m = other.compile(m)",
        "m = re.compile('torch')",
        "m.compile(loss)",
    ],
)
def test_what_inductor_does_not_compile(line: str) -> None:
    check_noop(f"import torch\n{line}\n")
