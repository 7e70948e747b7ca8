"""Annotations, with and without quotes."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern


@pattern("T30")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(s: torch.cuda.Stream): ...", "def f(s: torch.npu.Stream): ..."),
        ("def f(s: Optional[torch.cuda.Stream] = None): ...", "def f(s: Optional[torch.npu.Stream] = None): ..."),
        ("def f(s: 'torch.cuda.Stream'): ...", "def f(s: 'torch.npu.Stream'): ..."),
        ('def f(s: "Optional[torch.cuda.Stream]"): ...', 'def f(s: "Optional[torch.npu.Stream]"): ...'),
        ("def f() -> 'Dict[str, torch.cuda.Event]': ...", "def f() -> 'Dict[str, torch.npu.Event]': ..."),
        ("x: List['torch.cuda.FloatTensor'] = []", "x: List['torch.npu.FloatTensor'] = []"),
        ("x: 'torch.cuda.Stream | None' = None", "x: 'torch.npu.Stream | None' = None"),
        ("x = cast('torch.cuda.Stream', y)", "x = cast('torch.npu.Stream', y)"),
        ("T = TypeVar('T', bound='torch.cuda.Stream')", "T = TypeVar('T', bound='torch.npu.Stream')"),
        ("def f(*a: 'torch.cuda.Event', **k: 'int'): ...", "def f(*a: 'torch.npu.Event', **k: 'int'): ..."),
        ("x: '''torch.cuda.Stream'''", "x: '''torch.npu.Stream'''"),
    ],
)
def test_types_follow(before: str, after: str) -> None:
    head = "import torch\n"
    check_rewrite(f"{head}{before}\n", f"{head}import torch_npu  # noqa: F401\n{after}\n")


@pattern("T30")
def test_types_follow_the_import_that_the_file_has() -> None:
    check_rewrite(
        """
        import torch as th
        import torch.cuda as tc
        from torch.cuda import CUDAGraph, Stream
        def f(a: "tc.Event", b: "th.cuda.Stream", c: "Stream") -> "CUDAGraph": ...
        g = CUDAGraph()
        """,
        """
        import torch as th
        import torch_npu  # noqa: F401
        import torch.npu as tc
        from torch.npu import NPUGraph as CUDAGraph, Stream
        def f(a: "tc.Event", b: "th.npu.Stream", c: "Stream") -> "CUDAGraph": ...
        g = CUDAGraph()
        """,
    )


@pytest.mark.parametrize(
    "statement",
    [
        "x: 'helpers.cuda.Stream' = None",
        "def f(x: 'torch.Tensor', use_cuda: 'bool'): ...",
        "x: Annotated[int, 'see torch.cuda.Stream and torch.cuda.Event'] = 1",
        "print('Optional[torch.cuda.Stream] is a type')",
        "def f():\n    'Uses torch.cuda.Stream.'",
        "x = names['Optional[torch.cuda.Stream]']",
    ],
)
def test_other_strings_stay(statement: str) -> None:
    result = migrate(f"import torch\nimport helpers\n{statement}\n")
    assert not result.changed


def test_types_without_a_counterpart_are_reported() -> None:
    check_noop("import torch\ndef f(x: 'torch.cuda.nccl.Thing'): ...\n", open_codes=["NPU501"])
    check_noop("import torch\ndef f(x: 'torch.cuda.NoSuchType'): ...\n", open_codes=["NPU405"])


def test_a_literal_in_pieces_is_reported() -> None:
    check_noop("import torch\ndef f(x: 'Optional[torch.' 'cuda.Stream]'): ...\n", open_codes=["NPU202"])
