"""Compiled CUDA code is reported and never renamed."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate, pattern
from transplt.base.finding import Level
from transplt.engine.actions.actions import actions_of


@pattern("T26", "P58")
@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("import fused_layer_norm_cuda\n", "NPU553"),
        ("import a, x_cuda as x\n", "NPU553"),
        ("from deform_conv_cuda import forward\n", "NPU553"),
        ("from . import alignment_cuda\n", "NPU553"),
        ("import importlib\nm = importlib.import_module('fused_adam_cuda')\n", "NPU553"),
        ("m = __import__('spatial_cuda')\n", "NPU553"),
        ("def f():\n    import lightconv_cuda\n    return lightconv_cuda.forward(1)\n", "NPU553"),
        ("import torch\ny = torch.ops.demo.scale_cuda(x)\n", "NPU553"),
        ("import torch\ntorch.ops.load_library('lib_cuda.so')\n", "NPU553"),
        ("from torch.utils.cpp_extension import load\ne = load('n', ['n.cpp', 'n.cu'])\n", "NPU554"),
        ("from torch.utils import cpp_extension as c\ne = c.load(name='n', extra_cuda_cflags=[])\n", "NPU554"),
        ("from torch.utils.cpp_extension import load_inline\ne = load_inline('n', cuda_sources=[s])\n", "NPU554"),
        ("source = '__global__ void f() { cudaFree(0); }'\n", "NPU554"),
        ("from torch.utils.cpp_extension import CUDAExtension\ne = CUDAExtension('a_cuda', ['a_cuda.cu'])\n", "NPU550"),
        ("import torch\nlib = torch.library.Library('d', 'IMPL')\nlib.impl('f', f, 'CUDA')\n", "NPU555"),
        ("import torch\n@torch.library.impl('d::f', 'cuda')\ndef f(x):\n    return x\n", "NPU555"),
        (
            "import torch\n@torch.library.custom_op('d::f', device_types='cuda')\ndef f(x):\n    return x\n",
            "NPU555",
        ),
    ],
)
def test_reported_with_an_effort(source: str, code: str) -> None:
    remark = ["NPU860"] if "cpp_extension" in source and "e = " in source else []
    result = check_noop(source, path="pkg/ops.py", open_codes=[code, *remark])
    assert all(finding.effort for finding in result.findings if finding.code == code)
    assert result.tokens.unknown == 0


@pytest.mark.parametrize(
    "source",
    [
        "from . import helper_cuda\n",
        "from .helper_cuda import f\n",
        "import pkg.helper_cuda as h\n",
        "from .moves import move_to_cuda\n",
        "from pkg.moves import move_to_cuda as m\n",
        "from torch.utils.cpp_extension import load\ne = load('n', ['n.cpp'])\n",
        "from torch.utils.cpp_extension import load\nload(sources=['n.cc'])\n",
        "from joblib import load\nx = load('model_cuda.pkl')\n",
        "m = importlib.import_module('pkg.helper_cuda')\n",
        "m = importlib.import_module(f'{name}_cuda')\n",
        "m = importlib.import_module('.local_cuda', package)\n",
        "x = 'my_cuda'\n",
        "def f(barracuda):\n    return barracuda\nimport barracuda\n",
    ],
)
def test_names_of_the_project_stay_silent(source: str) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/helper_cuda.py": "def f():\n    return 'helper_cuda'\n",
        "pkg/moves.py": "def move_to_cuda(x):\n    return x\n",
    }
    check_noop(source, path="pkg/ops.py", files=files)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("e = CUDAExtension('MultiScaleDeformableAttention', [s])", "mx_driving.multi_scale_deformable_attn"),
        ("e = CUDAExtension(name='x', sources=['ball_query_gpu.cu', 'group_points.cpp'])", "mx_driving.group_points"),
    ],
)
def test_an_extension_with_known_operators_names_what_replaces_them(source: str, says: str) -> None:
    text = f"from torch.utils.cpp_extension import CUDAExtension\n{source}\n"
    result = check_noop(text, open_codes=["NPU292", "NPU550", "NPU860"])
    (found,) = [finding for finding in result.findings if finding.code == "NPU292"]
    assert says in found.help


def test_an_extension_that_nobody_knows() -> None:
    source = "from torch.utils.cpp_extension import CUDAExtension\ne = CUDAExtension('ops', ['a/ops.cu', 'main.cpp'])\n"
    result = check_noop(source, open_codes=["NPU550", "NPU860"])
    assert not [finding for finding in result.findings if finding.code == "NPU292"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("CUDAExtension('a.b', ['src/x.cpp', 'src/x.cu'])", "a.b is built from src/x.cpp, src/x.cu"),
        ("CUDAExtension('a._C', found)", "a._C is built from files that the build looks for"),
        ("make('b', sources=['x.cu'], module='pk.ops')", "pk.ops.b is built from x.cu"),
        ("make('b', sources=['x.pyx'])", ""),
        ("make('b', ['x.cu'])", ""),
        ("CUDAExtension(name, ['x.cu'])", ""),
        ("chosen = CUDAExtension\nchosen('c', ['x.cu'])", "c is built from x.cu"),
    ],
)
def test_what_a_build_names_is_remarked(source: str, said: str) -> None:
    text = f"from torch.utils.cpp_extension import CUDAExtension\n{source}\n"
    found = [each for each in migrate(text, path="setup.py").findings if each.code == "NPU860"]
    assert [each.message for each in found] == ([f"the extension {said}"] if said else [])
    assert all(each.level is Level.INFO for each in found)


def test_an_extension_that_is_imported_names_what_replaces_it() -> None:
    (found,) = check_noop("import deform_conv_cuda\n", open_codes=["NPU553"]).findings
    assert "mx_driving.deform_conv2d" in found.help
    (found,) = check_noop("import iou3d_nms_cuda\n", open_codes=["NPU553"]).findings
    assert "mx_driving.nms3d" in found.help
    (found,) = check_noop("import mine_cuda\n", open_codes=["NPU553"]).findings
    assert "triton-ascend" in found.help


@pytest.mark.parametrize(
    ("source", "fails"),
    [
        ("ext = load('n', ['n.cpp', 'n.cu'])\n", True),
        ("class A:\n    ext = load('n', ['n.cu'])\n", True),
        ("def ext():\n    return load('n', ['n.cu'])\n", False),
        ("ext = lambda: load('n', ['n.cu'])\n", False),
        ("try:\n    ext = load('n', ['n.cu'])\nexcept Exception:\n    ext = None\n", False),
        ("if wanted:\n    ext = load('n', ['n.cu'])\n", False),
    ],
)
def test_sources_that_are_compiled_when_the_file_is_imported(source: str, fails: bool) -> None:
    result = check_noop(f"from torch.utils.cpp_extension import load\n{source}", open_codes=["NPU554", "NPU860"])
    assert any("compiled on import, which fails" in finding.message for finding in result.findings) is fails


_CUDA = "CUDAExtension('core_cuda', ['a.cpp', 'b.cu'])"


@pytest.mark.parametrize(
    ("other", "blocks"),
    [
        ("CppExtension('core_cuda', ['a.cpp', 'stub.cpp'])", "first step"),
        ("CppExtension('other', ['a.cpp'])", "import"),
        ("None", "import"),
    ],
)
def test_a_module_that_is_built_without_cuda_too(other: str, blocks: str) -> None:
    setup = (
        "from torch.utils.cpp_extension import CppExtension, CUDAExtension\n\n"
        f"modules = [{_CUDA}] if HAS_CUDA else [{other}]\nsetup(ext_modules=modules)\n"
    )
    result = migrate("import torch\nimport core_cuda\n\ncore_cuda.forward(x.cuda())\n", files={"setup.py": setup})
    found = [each for each in result.findings if each.code == "NPU553"]
    assert len(found) == 1 and [action.blocks for action in actions_of(found)] == [blocks]


FOUND = """
    import glob
    from torch.utils.cpp_extension import load

    class Op:
        def sources(self):
            return glob.glob("csrc/{pattern}")

        def make(self):
            return load(name="n", sources=self.sources(), {flags})
"""


def test_flags_for_nvcc_beside_sources_of_cpp_are_no_cuda() -> None:
    for flags in ("['-O3']", "['-U__CUDA_NO_HALF_OPERATORS__']"):
        check_noop(FOUND.format(pattern="*.cpp", flags=f"extra_cuda_cflags={flags}"), open_codes=["NPU860"])


@pytest.mark.parametrize(("flag", "codes"), [("-U__CUDA_NO_HALF_OPERATORS__", []), ("-DWITH_CUDA", ["NPU208"])])
def test_flags_apart_from_an_extension_that_is_not_reported(flag: str, codes: list[str]) -> None:
    source = f"from torch.utils.cpp_extension import load\nflags = ['{flag}']\nload(name, ['a.cpp'], flags)\n"
    check_noop(source, open_codes=codes)


@pytest.mark.parametrize(
    ("pattern", "flags"),
    [
        ("*.cu", "extra_cuda_cflags=['-O3']"),
        ("*.c*", "extra_cuda_cflags=['-O3']"),
        ("*", "extra_cuda_cflags=['-O3']"),
        ("*.cpp", "with_cuda=True"),
    ],
)
def test_flags_for_nvcc_beside_sources_that_may_be_of_cuda_are(pattern: str, flags: str) -> None:
    found = {each.code for each in migrate(FOUND.format(pattern=pattern, flags=flags)).findings}
    assert "NPU554" in found


_TRIED = """\
import os
from torch.utils.cpp_extension import load
{before}
    try:
        ext = load(name="fbd", sources=[f"{{here}}/fbd/fbd.cu"])
    except {kind}:
        ext = None
    {after}
"""


@pytest.mark.parametrize(
    ("before", "kind", "after", "blocks"),
    [
        ("def get():", "Exception", "return ext", "slow"),
        ("def get():", "KeyError", "return ext", ""),
        ("if True:", "Exception", "ext.f()", ""),
    ],
)
def test_a_function_that_builds_and_goes_on_without(before: str, kind: str, after: str, blocks: str) -> None:
    found = migrate(_TRIED.format(before=before, kind=kind, after=after)).findings
    assert [each.blocks for each in found if each.code == "NPU554"] == [blocks]
    assert [each.detail("source") for each in found if each.code == "NPU860"] == ["fbd/fbd.cu"]


@pytest.mark.parametrize(
    ("test", "blocks"),
    [
        ("torch.cuda.is_available()", "first step"),
        ("torch.cuda.device_count() > 0", "first step"),
        ("ready", ""),
        ("not_cuda()", ""),
    ],
)
def test_an_import_behind_a_question_for_a_card(test: str, blocks: str) -> None:
    source = f"import torch\nif {test}:\n    import nms_cuda\n"
    assert [each.blocks for each in migrate(source).findings if each.code == "NPU553"] == [blocks]


@pytest.mark.parametrize(("key", "codes"), [("package_data", []), ("data_files", []), ("given", ["NPU208"])])
def test_a_file_that_a_package_brings_along(key: str, codes: list[str]) -> None:
    source = f"from setuptools import setup\nsetup(name='x', {key}=['ops/scan_cuda_kernel.cu'])\n"
    assert [each.code for each in migrate(source, path="setup.py").findings if each.open] == codes


_BUILT = "from torch.utils.cpp_extension import load\n_backend = load(name='_grid', sources=['grid.cu'])\n"


@pytest.mark.parametrize(
    ("instead", "body", "blocks"),
    [
        ("from .backend import _backend", _BUILT, ""),
        ("from pkg.backend import _backend", _BUILT, ""),
        # what is imported then runs without CUDA, or only compiles when it is asked to
        ("from .backend import _backend", "import torch\n_backend = torch\n", "slow"),
        ("from .backend import _backend", _BUILT.replace(".cu", ".cpp"), "slow"),
        ("from .backend import _backend", "def build():\n    import grid_cuda\n_backend = 1\n", "slow"),
        ("import numpy as _backend", _BUILT, "slow"),
        ("_backend = None", _BUILT, "later"),
    ],
)
def test_another_way_that_compiles_the_same_for_cuda_is_none(instead: str, body: str, blocks: str) -> None:
    source = f"try:\n    import _grid_cuda as _backend\nexcept ImportError:\n    {instead}\ny = _backend.forward(1)\n"
    found = migrate(source, path="pkg/grid.py", files={"pkg/__init__.py": "", "pkg/backend.py": body}).findings
    assert [each.blocks for each in found if each.code == "NPU553"] == [blocks]
    inside = "def get():\n" + "".join(f"    {line}\n" for line in source.splitlines())
    found = migrate(inside, path="pkg/grid.py", files={"pkg/__init__.py": "", "pkg/backend.py": body}).findings
    assert [each.blocks for each in found if each.code == "NPU553"] == [blocks or "first step"]


_FLAGGED = """\
try:
    import quant_cuda
    _found = True
except ImportError:
    {handler}
class Linear:
    def __init__(self):
        {init}
    def forward(self, x):
        {forward}
        return self.plain(x)
"""


@pytest.mark.parametrize(
    ("handler", "init", "forward", "blocks"),
    [
        ("_found = False", "pass", "if _found: return quant_cuda.mul(x)", "slow"),
        ("_found = False", "self.found = _found", "if self.found: return quant_cuda.mul(x)", "slow"),
        ("_found = False; quant_cuda = None", "self.kernel = quant_cuda; self.found = _found",
         "if self.found and x.ok: return self.kernel.mul(x)", "slow"),
        ("_found = False", "pass", "pass", "slow"),  # others ask for the flag
        # nothing asks, or for something else; what is registered is called without the module
        ("_found = False; quant_cuda = None", "self.kernel = quant_cuda", "return self.kernel.mul(x)", "later"),
        ("_found = False", "self.found = other", "if self.found: return quant_cuda.mul(x)", "later"),
        ("_found = False", "pass", "return torch.ops.quant.mul(x)", "later"),
        ("pass", "pass", "quant_cuda.mul(x)", "later"),
        ("raise", "pass", "if _found: return quant_cuda.mul(x)", ""),
    ],
)  # fmt: skip
def test_a_flag_of_an_import_that_may_fail(handler: str, init: str, forward: str, blocks: str) -> None:
    source = _FLAGGED.format(handler=handler, init=init, forward=forward)
    (found,) = [each for each in migrate(f"import torch\n{source}").findings if each.code == "NPU553"]
    assert found.blocks == blocks
