"""Error text compared at run time: both needles."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, pattern
from transplt.base.settings import TORCH_VERSIONS


def handler(test: str) -> str:
    return f"""
        def run(step, log):
            try:
                step()
            except RuntimeError as e:
                {test}
                    raise
    """


@pattern("T1")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'if "CUDA out of memory" in str(e):',
            'if "CUDA out of memory" in str(e) or "NPU out of memory" in str(e):',
        ),
        (
            "if 'CUDA out of memory. ' not in str(e):",
            "if 'CUDA out of memory. ' not in str(e) and 'NPU out of memory. ' not in str(e):",
        ),
        (
            'if "cuda out of memory" in str(e).lower():',
            'if "cuda out of memory" in str(e).lower() or "npu out of memory" in str(e).lower():',
        ),
        (
            'if not "CUDA out of memory" in e.args[0]:',
            'if not ("CUDA out of memory" in e.args[0] or "NPU out of memory" in e.args[0]):',
        ),
        (
            'if isinstance(e, RuntimeError) and "CUDA out of memory" in str(e):',
            'if isinstance(e, RuntimeError) and ("CUDA out of memory" in str(e) or "NPU out of memory" in str(e)):',
        ),
        (
            'if "a" in str(e) or "CUDA out of memory" in str(e):',
            'if "a" in str(e) or "CUDA out of memory" in str(e) or "NPU out of memory" in str(e):',
        ),
        (
            'if "CUDA" in e.args[0] and "out of memory" in e.args[0]:',
            'if ("CUDA" in e.args[0] or "NPU" in e.args[0]) and "out of memory" in e.args[0]:',
        ),
        (
            'if "cuda" in str(e) and "out of memory" in str(e):',
            'if ("cuda" in str(e) or "npu" in str(e)) and "out of memory" in str(e):',
        ),
        (
            'if ("CUDA out of memory" in str(e)):',
            'if ("CUDA out of memory" in str(e) or "NPU out of memory" in str(e)):',
        ),
        (
            'if str(e).startswith("CUDA out of memory"):',
            'if str(e).startswith(("CUDA out of memory", "NPU out of memory")):',
        ),
        (
            'if any(m in str(e) for m in ["CUDA out of memory", "timeout"]):',
            'if any(m in str(e) for m in ["CUDA out of memory", "NPU out of memory", "timeout"]):',
        ),
        (
            'if any(m in str(e) for m in ["timeout", "CUDA out of memory."]):',
            'if any(m in str(e) for m in ["timeout", "CUDA out of memory.", "NPU out of memory."]):',
        ),
    ],
)
def test_both_needles(before: str, after: str) -> None:
    check_rewrite(handler(before), handler(after), codes_applied=["NPU230"])


@pattern("T1")
def test_list_with_a_name() -> None:
    check_rewrite(
        """
        def recoverable(error):
            texts = [
                "CUDA out of memory.",  # the allocator
                "broken pipe",
            ]
            return any(text in str(error) for text in texts)
        """,
        """
        def recoverable(error):
            texts = [
                "CUDA out of memory.",  # the allocator
                "NPU out of memory.",  # the allocator
                "broken pipe",
            ]
            return any(text in str(error) for text in texts)
        """,
    )


@pattern("T1")
@pytest.mark.parametrize(
    "test",
    [
        'if "out of memory" in str(e):',
        'if " out of memory." in e.args[0]:',
        'if "NPU out of memory" in str(e) or "CUDA out of memory" in str(e):',
        'if str(e).startswith(("CUDA out of memory", "NPU out of memory")):',
        'if any(m in str(e) for m in ["CUDA out of memory", "NPU out of memory"]):',
    ],
)
def test_texts_that_fit_already(test: str) -> None:
    check_noop(handler(test))


@pattern("T1")
@pytest.mark.parametrize(
    "test",
    [
        'if "CUDA out of memory" in next(log):',
        'if log("CUDA out of memory") if False else str(e).find("CUDA out of memory") >= 0:',
        'if e.args[0] == "CUDA out of memory":',
        'if str(e) in ("CUDA out of memory", "timeout"):',
    ],
)
def test_forms_that_are_reported(test: str) -> None:
    check_noop(handler(test), open_codes=["NPU230"])


@pattern("T1")
@pytest.mark.parametrize(
    "test",
    [
        'if "CUDA error: device-side assert triggered" in str(e):',
        'if "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED." in str(e):',
        'if "CUBLAS_STATUS_ALLOC_FAILED" in str(e):',
        'if "NCCL error" not in str(e):',
        'if any(m in str(e) for m in ["CUDA error", "timeout"]):',
        'if "For debugging consider passing CUDA_LAUNCH_BLOCKING=1" in str(e):',
        'if "CUDA" in str(e):',
        'if "cuda" in str(e).lower():',
        f'if "CUDA error: {"x" * 108}" in str(e):',
    ],
)
def test_other_messages_of_cuda(test: str) -> None:
    check_noop(handler(test), open_codes=["NPU231"])


@pattern("T1", "T28")
@pytest.mark.parametrize(
    "line",
    [
        'raise RuntimeError("CUDA out of memory")',
        'print("CUDA out of memory")',
        'logger.warning("CUDA error: retry")',
        'message = "CUDA out of memory"',
    ],
)
def test_messages_that_nobody_looks_for(line: str) -> None:
    check_noop(f"{line}\n")


@pattern("T1")
def test_regular_expression() -> None:
    check_noop(
        """
        import pytest
        def test_memory(run):
            with pytest.raises(RuntimeError, match="CUDA out of memory"):
                run()
        """,
        open_codes=["NPU230"],
    )


@pattern("T1")
@pytest.mark.parametrize("version", ["2.6", TORCH_VERSIONS[-1]])
def test_exception_type(version: str) -> None:
    check_rewrite(
        """
        import torch
        try:
            x = torch.ones(8)
        except torch.cuda.OutOfMemoryError:
            x = None
        """,
        """
        import torch
        try:
            x = torch.ones(8)
        except torch.OutOfMemoryError:
            x = None
        """,
        torch_version=version,
    )


@pattern("T1", "T2")
def test_both_needles_are_portable() -> None:
    check_rewrite(
        """
        import torch
        def fits(step):
            try:
                step()
            except torch.cuda.OutOfMemoryError:
                return False
            except RuntimeError as e:
                return "CUDA out of memory" not in str(e)
        """,
        """
        import torch
        def fits(step):
            try:
                step()
            except torch.OutOfMemoryError:
                return False
            except RuntimeError as e:
                return "CUDA out of memory" not in str(e) and "NPU out of memory" not in str(e)
        """,
        style="portable",
    )


@pattern("T1")
def test_exception_type_before_2_6() -> None:
    check_noop(
        """
        import torch
        try:
            x = torch.ones(8)
        except (RuntimeError, torch.cuda.OutOfMemoryError):
            x = None
        """,
        open_codes=["NPU502"],
        torch_version="2.5",
    )
