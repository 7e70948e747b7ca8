"""Strings that spell no device: kept for a true reason, or reported for what they bind the program to."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate, pattern, reasons

_USE = "import ctypes, os, subprocess, torch\ndef f(x, cfg):\n    {}\n    return x\n"


@pattern("T26")
@pytest.mark.parametrize(
    "line",
    [
        "ctypes.CDLL('libcudart.so')",
        "ctypes.cdll.LoadLibrary('/usr/lib/libnccl.so.2')",
        "x = '-lcublas'",
        "x = '/usr/local/cuda'",
        "x = '/usr/local/cuda-11.8/bin'",
        "x = '-DWITH_CUDA'",
        "x = ['kernels/cuda/roi_align.cu']",
        "subprocess.run('make cuda')",
        "x = 'python train.py --device cuda'",
        "library.impl('add', add, 'AutogradCUDA')",
        "torch.library.Library('mine', 'IMPL', 'SparseCUDA')",
    ],
)
def test_what_binds_a_program_to_cuda_is_reported(line: str) -> None:
    check_noop(_USE.format(line), open_codes=["NPU208"])


@pattern("T26")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ops/scan_cuda.cu", "is a CUDA source, which an NPU host cannot compile"),
        ("cuda/scan.cuh", "is a CUDA source, which an NPU host cannot compile"),
        ("/usr/local/cuda", "belongs to the CUDA toolkit"),
    ],
)
def test_a_source_of_the_project_is_none_of_the_toolkit(text: str, said: str) -> None:
    (found,) = migrate(_USE.format(f"x = '{text}'")).findings
    assert found.message == f"{text!r} {said}"


@pattern("T28")
@pytest.mark.parametrize(
    "line",
    [
        "'''Runs on CUDA.'''",
        "print('CUDA is not available')",
        "raise RuntimeError('needs a CUDA device')",
        "x = 'https://developer.nvidia.com/cuda-downloads'",
        "x = 'nvidia/cuda:11.8.0-devel'",
        "x = 'my_cuda_op'",
        "x = cfg['cuda_graph']",
        "x = 'train/cuda_memory'",
        "x = 'someone@nvidia.com'",
        "x = 'CUDA'",
        "x = f'{x}: CUDA memory'",
    ],
)
def test_text_and_names_stay_without_a_word(line: str) -> None:
    check_noop(_USE.format(line))


@pattern("T28")
def test_doctests_are_reported() -> None:
    check_noop(
        '''
        def f(x):
            """Put it there.

            >>> f(x).cuda()
            """
        ''',
        open_codes=["NPU206"],
    )


@pattern("T28")
@pytest.mark.parametrize(
    "lines",
    [
        ">>> f(x, 'cpu')\n\n    device: 'cuda' or 'cpu'",
        "device : str\n        \"cpu\" or \"cuda\".\n\n    >>> layer = f('cpu')\n    1",
        ">>> f(x)  # on cuda\n    >>> # or .cuda()\n    1",
        "f(x).cuda()",
    ],
)
def test_prose_beside_a_doctest(lines: str) -> None:
    check_noop(f"def f(x):\n    \"\"\"Put it there.\n\n    {lines}\n    \"\"\"\n")


@pattern("T28")
@pytest.mark.parametrize("lines", [">>> f(x).device\n    device('cuda:0')", ">>> for d in x:\n    ...     d.cuda()"])
def test_what_an_example_runs_and_prints(lines: str) -> None:
    check_noop(f"def f(x):\n    \"\"\"Put it there.\n\n    {lines}\n    \"\"\"\n", open_codes=["NPU206"])


@pattern("P73")
@pytest.mark.parametrize("text", ["device: cuda", "model:\\n  dist_backend: nccl", '{\\"device\\": \\"cuda\\"}'])
def test_a_configuration_in_a_string_is_reported(text: str) -> None:
    check_noop(_USE.format(f'x = "{text}"'), open_codes=["NPU208"])


@pattern("T26")
@pytest.mark.parametrize(
    "line",
    [
        "torch._C._jit_get_operation('aten::cudnn_convolution_backward_weight')",
        "out.write('at::Tensor forward(at::Tensor x) { auto s = at::cuda::getCurrentCUDAStream(); }')",
        "flags = ['-U__CUDA_NO_HALF_OPERATORS__']",
    ],
)
def test_operators_and_sources_of_cuda_are_reported(line: str) -> None:
    check_noop(_USE.format(line), open_codes=["NPU208"])


@pattern("P58", "T26")
def test_flags_of_an_extension_that_is_reported() -> None:
    result = check_noop(
        """
        from torch.utils.cpp_extension import CUDAExtension

        flags = ['-U__CUDA_NO_HALF_OPERATORS__', '-DWITH_CUDA=1']
        ext = CUDAExtension('ops', ['ops.cpp'], extra_compile_args=flags)
        """,
        open_codes=["NPU550", "NPU860"],
    )
    assert reasons(result)["a flag of the compiler: the extension is reported"] == 2


@pytest.mark.parametrize(
    "text",
    [
        'code.raw("auto e = tv::CUDAEvent();")',
        'code.raw("check(cublasLtMatmul(handle, a));")',
        'code.raw("#if CUDART_VERSION >= 11000\\nint x;")',
        'code.raw("return CUDA_R_16F;")',
        'code.raw("int x = f();\\n// clear the cuda table\\nfor (;;) { x->g(); }\\n")',
        'code.raw("\\nTHROW(\\"not compiled with cuda\\");\\n")',
        't = "import torch\\ndef f(x):\\n    return x.cuda()\\n"',
        'code.ret("decltype(CUDA_R_16F)")',
        'code.macro_if("CUDART_VERSION >= 11000")',
        'code.member("handle", "cublasLtHandle_t")',
        'code.include("cublasLt.h")',
        'code.include("tensorview/profile/cuda_profiler.h")',
        'meta.add_libraries("cublasLt")',
        'c = "tmux new -d \'CUDA_VISIBLE_DEVICES=" + str(d)',
        'e = {"UCX_TLS": "rc,ud,cuda"}',
        'p = f"/usr/local/cuda-{a}.{b}/"',
    ],
)
def test_what_strings_bind_the_program_to(text: str) -> None:
    check_noop(text + "\n", open_codes=["NPU208"])


@pytest.mark.parametrize("text", ['@patch("pkg.mod.torch.cuda")\ndef f(m): pass', 's = "pkg.torch.cuda"'])
def test_a_path_to_torch_cuda_through_a_module_is_said(text: str) -> None:
    check_noop(text + "\n", open_codes=["NPU204"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('print("set CUDA_VISIBLE_DEVICES=0; then run")', "text for people"),
        ('x = "tests/test_a.py::test_cuda"', "a name, not a device or backend"),
        ('x = "needs CUDA; and more"', "several words, not known to be read by a program"),
        ('x = {"strategy": "NVCC"}', "a word in capitals, not known to be used as a device or backend"),
        ('assert "Self CUDA time total" in out', "a pattern that is matched against texts"),
        ('words = [".cuda", "x"]', "a name, not a device or backend"),
        ('x = d["cublas"]', "a key: keys are kept"),
        ('x = "a_cuda,b"', "a name, not a device or backend"),
    ],
)
def test_what_strings_say_of_themselves(text: str, reason: str) -> None:
    assert reason in reasons(check_noop(text + "\n"))


@pytest.mark.parametrize(
    ("line", "blocks"),
    [
        ("os.system('export CUDA_DEVICE_MAX_CONNECTIONS=1')", "tidy"),
        ("os.system('export CUDA_MODULE_LOADING=LAZY NCCL_NVLS_ENABLE=0')", "tidy"),
        ("subprocess.run('echo cuda in use')", "tidy"),
        ("subprocess.run('echo cuda in use\\nCUDA_DEVICE_MAX_CONNECTIONS=1 torchrun a.py')", "tidy"),
        # a command behind it has it, or is started
        ("os.system('export CUDA_MODULE_LOADING=LAZY; make cuda')", ""),
        ("run = 'export CUDA_MODULE_LOADING=LAZY ' + cfg", ""),
        ("subprocess.run('make cuda')", ""),
        ("subprocess.run('echo a\\nmake cuda')", ""),
    ],
)
def test_a_command_that_changes_nothing_is_tidied(line: str, blocks: str) -> None:
    (finding,) = [each for each in check_noop(_USE.format(line), open_codes=["NPU208"]).findings if each.open]
    assert finding.blocks == blocks
