"""Attributes named in strings: hasattr and getattr, patches of tests."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern


def torch_file(line: str, *, npu: bool = False) -> str:
    return "import torch\n" + ("import torch_npu  # noqa: F401\n" if npu else "") + line + "\n"


@pattern("T23")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'if hasattr(torch, "cuda") and torch.cuda.is_available(): pass',
            'if hasattr(torch, "npu") and torch.npu.is_available(): pass',
        ),
        ("module = getattr(torch, 'cuda', None)", "module = getattr(torch, 'npu', None)"),
        (
            'if hasattr(torch.cuda, "empty_cache"): torch.cuda.empty_cache()',
            'if hasattr(torch.npu, "empty_cache"): torch.npu.empty_cache()',
        ),
        ('graphs = hasattr(torch.cuda, "CUDAGraph")', 'graphs = hasattr(torch.npu, "NPUGraph")'),
        (
            'oom = getattr(torch.cuda, "OutOfMemoryError", RuntimeError)',
            'oom = getattr(torch, "OutOfMemoryError", RuntimeError)',
        ),
        ('half = getattr(torch.cuda, "HalfTensor")', 'half = getattr(torch.npu, "HalfTensor")'),
        ("fn = getattr(torch.cuda, name)", "fn = getattr(torch.npu, name)"),
    ],
)
def test_probes_of_torch(before: str, after: str) -> None:
    result = check_rewrite(torch_file(before), torch_file(after, npu="npu" in after))
    assert result.tokens.unknown == result.tokens.manual == 0


@pattern("T23")
def test_probe_of_what_an_npu_has_not() -> None:
    """The probe fails on NPU, and the call behind it is not reached; it is reported all the same."""
    check_rewrite(
        torch_file('if hasattr(torch.cuda, "cudart"): torch.cuda.cudart()'),
        torch_file('if hasattr(torch.npu, "cudart"): torch.cuda.cudart()', npu=True),
        open_codes=["NPU501"],
    )


@pattern("T20", "T23")
@pytest.mark.parametrize(
    "line",
    [
        "module = getattr(torch, device_type)",
        "module = getattr(torch, device.type)",
        "compile = getattr(torch, 'compile', None)",
        "fast = hasattr(torch.nn.functional, 'scaled_dot_product_attention')",
        "private = hasattr(torch._C, '_cuda_isCurrentStreamCapturing')",
    ],
)
def test_other_probes(line: str) -> None:
    check_noop(torch_file(line))


@pattern("T20")
def test_fallback_of_a_probe() -> None:
    before = "module = getattr(torch, device_type, torch.cuda)"
    check_rewrite(torch_file(before), torch_file(before.replace("cuda", "npu"), npu=True))


@pattern("T13", "T23")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('version = getattr(torch.version, "cuda", None)', "NPU506"),
        ('if hasattr(torch.backends, "cudnn"): pass', "NPU504"),
        ('monkeypatch.setattr(torch.version, "cuda", "12.1")', "NPU506"),
        ('monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))', "NPU503"),
    ],
)
def test_names_without_a_counterpart(line: str, code: str) -> None:
    check_noop(torch_file(line), open_codes=[code])


@pattern("T10")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'monkeypatch.setattr(torch.cuda, "is_available", lambda: True)',
            'monkeypatch.setattr(torch.npu, "is_available", lambda: True)',
        ),
        (
            'monkeypatch.setattr("torch.cuda.is_available", lambda: True)',
            'monkeypatch.setattr("torch.npu.is_available", lambda: True)',
        ),
        (
            'with mock.patch.object(torch.cuda, "device_count", return_value=2): pass',
            'with mock.patch.object(torch.npu, "device_count", return_value=2): pass',
        ),
        (
            '@mock.patch("torch.cuda.device_count", return_value=2)\ndef test(count): pass',
            '@mock.patch("torch.npu.device_count", return_value=2)\ndef test(count): pass',
        ),
        (
            '@mock.patch("package.module.torch.cuda.is_available", return_value=True)\ndef test(there): pass',
            '@mock.patch("package.module.torch.npu.is_available", return_value=True)\ndef test(there): pass',
        ),
        (
            'with mock.patch.object(torch.Tensor, "cuda"): pass',
            'with mock.patch.object(torch.Tensor, "npu"): pass',
        ),
        (
            'mocker.patch("torch.cuda.CUDAGraph")',
            'mocker.patch("torch.npu.NPUGraph")',
        ),
    ],
)
def test_patches(before: str, after: str) -> None:
    check_rewrite(torch_file(before), torch_file(after, npu=True))


@pattern("T11")
@pytest.mark.parametrize(
    "line",
    [
        '@pytest.mark.skipif("not torch.cuda.is_available()")\ndef test(): pass',
        'timer = timeit.Timer("torch.cuda.synchronize()", setup="import torch")',
        'pytest.mark.xfail(condition="torch.cuda.device_count() < 2")',
    ],
)
def test_text_that_is_run(line: str) -> None:
    check_rewrite(torch_file(line), torch_file(line.replace("torch.cuda", "torch.npu"), npu=True))


@pattern("T11")
def test_text_that_is_run_and_has_no_counterpart() -> None:
    line = '@pytest.mark.skipif("torch.cuda.get_device_capability() < (8, 0)")\ndef test(): pass'
    check_noop(torch_file(line), open_codes=["NPU204"])


@pattern("T11", "T28")
@pytest.mark.parametrize(
    "line", ['print("torch.cuda.is_available() is False")', 'reason = "needs torch.cuda.device_count() > 1"']
)
def test_text_that_is_read(line: str) -> None:
    check_noop(torch_file(line))


@pattern("T10")
def test_patches_through_a_module_of_the_project() -> None:
    check_rewrite(
        """
        import utils
        def test_one(monkeypatch):
            monkeypatch.setattr(utils.torch.cuda, "is_available", lambda: True)
            monkeypatch.setattr(utils.torch.cuda, "CUDAGraph", None)
            assert utils.torch.cuda.device_count() == 1
        """,
        """
        import utils
        import torch_npu  # noqa: F401
        def test_one(monkeypatch):
            monkeypatch.setattr(utils.torch.npu, "is_available", lambda: True)
            monkeypatch.setattr(utils.torch.npu, "NPUGraph", None)
            assert utils.torch.npu.device_count() == 1
        """,
        files={"utils.py": "import torch\nprint(torch.cuda.is_available())\n"},
    )


@pattern("T10")
@pytest.mark.parametrize("target", ["package.module.is_cuda_available", "package.cuda_utils.sync"])
def test_patches_of_the_projects_own_names(target: str) -> None:
    check_noop(f'from unittest import mock\n\n@mock.patch("{target}")\ndef test(there): pass\n')


@pattern("T23")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('if hasattr(x, "cuda"): x = x.cuda()', 'if hasattr(x, "npu"): x = x.npu()'),
        ('return getattr(x, "cuda")()', 'return getattr(x, "npu")()'),
        ('if callable(getattr(x, "cuda", None)): x.cuda()', 'if callable(getattr(x, "npu", None)): x.npu()'),
        ('return operator.methodcaller("cuda")(x)', 'return operator.methodcaller("npu")(x)'),
    ],
)
def test_probes_of_objects(before: str, after: str) -> None:
    check_rewrite(
        f"import operator\nimport torch\ndef move(x):\n    {before}\n",
        f"import operator\nimport torch\nimport torch_npu  # noqa: F401\ndef move(x):\n    {after}\n",
    )


@pattern("T7", "T23")
@pytest.mark.parametrize("line", ['flag = hasattr(args, "cuda")', 'flag = getattr(cfg, "cuda", False)'])
def test_probes_of_settings(line: str) -> None:
    check_noop(torch_file(line))


@pattern("T23")
def test_probe_of_an_unknown_object() -> None:
    check_noop(torch_file('can_move = hasattr(batch, "cuda")'), open_codes=["NPU233"])
    check_noop(torch_file('can_move = callable(getattr(batch, "cuda", None))'), open_codes=["NPU233"])


def test_a_probe_of_a_method_moves_with_its_class() -> None:
    check_rewrite(
        'from torch.cuda import Event\nwrapped = hasattr(Event.record, "__wrapped__")\n',
        'import torch_npu  # noqa: F401\nfrom torch.npu import Event\nwrapped = hasattr(Event.record, "__wrapped__")\n',
    )
