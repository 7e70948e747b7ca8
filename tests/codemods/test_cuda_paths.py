"""Gates that lead to CUDA-only code stay."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern

KERNELS = """
    import triton

    def median_filter_cuda(x):
        return x
"""


@pattern("T2", "P48")
def test_a_branch_that_imports_a_kernel_module() -> None:
    check_noop(
        """
        import torch

        def median_filter(x):
            if x.is_cuda:
                from kernels import median_filter_cuda
                return median_filter_cuda(x)
            return x.median()
        """,
        open_codes=["NPU270"],
        files={"kernels.py": KERNELS},
    )


@pattern("T2", "T26")
@pytest.mark.parametrize(
    "test", ["x.is_cuda", "x.device.type == 'cuda'", "impl == 'cuda' and x.device.type == 'cuda' and init()"]
)
def test_a_branch_that_calls_a_compiled_extension(test: str) -> None:
    result = migrate(
        f"""
        import torch
        import align_cuda_binding

        def align(x, impl, init):
            if {test}:
                return align_cuda_binding.forward(x)
            return x
        """
    )
    assert f"if {test}:".encode() in result.data
    assert "NPU270" in {f.code for f in result.findings if f.open}


@pattern("T2")
def test_an_early_exit_before_the_kernel() -> None:
    result = migrate(
        """
        import torch
        import block_cuda

        def forward(x):
            if not torch.cuda.is_available():
                return x
            return block_cuda.forward(x)
        """
    )
    assert b"if not torch.cuda.is_available():" in result.data


@pattern("T2", "P58")
def test_set_up_code_that_builds_for_cuda() -> None:
    result = migrate(
        """
        import torch
        from torch.utils.cpp_extension import CppExtension, CUDAExtension

        def extension():
            if torch.cuda.is_available():
                return CUDAExtension("ops", ["ops.cpp"])
            return CppExtension("ops", ["ops.cpp"])
        """,
        path="setup.py",
    )
    assert b"if torch.cuda.is_available():" in result.data


@pattern("P1", "P48")
@pytest.mark.parametrize(
    "body",
    [
        "return x.sum()",
        "return print_cuda_stats(x)",
        "return x.half()",
        "torch.cuda.synchronize()",
    ],
)
def test_an_ordinary_branch_moves(body: str) -> None:
    result = migrate(
        f"""
        import torch

        def print_cuda_stats(x):
            print(x)

        def f(x):
            if x.is_cuda:
                {body}
            return x
        """
    )
    assert b"if x.is_npu:" in result.data


@pattern("P1")
def test_the_other_branch_may_need_cuda() -> None:
    check_rewrite(
        """
        import torch

        def f(x):
            if torch.cuda.is_available():
                return x.cuda()
            return x
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        def f(x):
            if torch.npu.is_available():
                return x.npu()
            return x
        """,
    )


@pattern("P1")
def test_a_long_branch_is_a_program() -> None:
    lines = "\n".join(f"    step{i}(x)" for i in range(40))
    result = migrate(
        f"import torch\nimport ops_cuda\nif torch.cuda.is_available():\n    x = 1\n{lines}\n    ops_cuda.run(x)\n"
    )
    assert b"if torch.npu.is_available():" in result.data


@pattern("T2", "T26")
def test_a_compiled_module_of_the_project() -> None:
    check_noop(
        """
        import torch
        from layers import _C

        def forward(x, offset):
            if not x.is_cuda:
                return torch.add(x, offset)
            return _C.deform_forward(x, offset)
        """,
        open_codes=["NPU270"],
        files={"layers/__init__.py": ""},
    )


@pattern("T2")
def test_a_module_of_the_project_in_python_is_no_extension() -> None:
    result = migrate(
        """
        import torch
        from layers import my_ext

        def forward(x):
            if x.is_cuda:
                return my_ext.forward(x)
            return x
        """,
        files={"layers/__init__.py": "", "layers/my_ext.py": "def forward(x): return x\n"},
    )
    assert b"if x.is_npu:" in result.data


@pattern("T2", "P53")
@pytest.mark.parametrize("called", ["FusedLayerNorm(4)", "Norm(4)"])
def test_names_of_packages_with_kernels(called: str) -> None:
    result = migrate(
        f"""
        import torch
        try:
            from apex.normalization import FusedLayerNorm

            class Norm(FusedLayerNorm):
                pass
        except ImportError:
            FusedLayerNorm = None

        def build():
            if torch.cuda.is_available() and FusedLayerNorm is not None:
                return {called}
            return torch.nn.LayerNorm(4)
        """
    )
    assert b"if torch.cuda.is_available()" in result.data


@pattern("T2", "P1")
def test_a_name_that_only_leads_to_other_peoples_cuda() -> None:
    check_noop(
        """
        import torch

        def export(check, device):
            cuda = torch.cuda.is_available() and device.type != "cpu"
            check("onnxruntime-gpu" if cuda else "onnxruntime")
            return ["CUDAExecutionProvider"] if cuda else ["CPUExecutionProvider"]
        """,
        open_codes=["NPU246", "NPU270"],
    )


@pattern("P1")
@pytest.mark.parametrize("use", ["return x.half() if gpu else x", "report(gpu)", "return gpu"])
def test_a_name_that_leads_to_code_of_the_npu_too(use: str) -> None:
    result = migrate(
        f"""
        import torch

        def export(check, x, report):
            gpu = torch.cuda.is_available()
            check("onnxruntime-gpu" if gpu else "onnxruntime")
            {use}
        """
    )
    assert b"gpu = torch.npu.is_available()" in result.data


@pattern("T2", "T9")
@pytest.mark.parametrize(
    "line", ["core.DeviceOption(caffe2_pb2.CUDA, 0)", "torch.ops._caffe2.CopyCPUToGPU(x)"]
)
def test_a_branch_for_caffe2(line: str) -> None:
    check_noop(
        f"""
        import torch
        from caffe2.proto import caffe2_pb2
        from caffe2.python import core

        def place(x):
            if x.device.type == "cuda":
                return {line}
        """,
        open_codes=["NPU270"],
    )
