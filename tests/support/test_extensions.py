"""What falls with a compiled extension: the call graph, within a project and through a library."""

from __future__ import annotations

import pytest

from tests.support.harness import findings
from transplt.engine.analysis.native import findings_of

SETUP = (
    "from torch.utils.cpp_extension import CUDAExtension\nsetup(ext_modules=[CUDAExtension('fast_ops', ['a.cu'])])\n"
)
LIBRARY = {
    "setup.py": SETUP,
    "lib/__init__.py": "from .blur import blur, Blur\n",
    "lib/blur.py": "import torch\nimport fast_ops\n\ndef blur(x):\n    return fast_ops.blur(x)\n\n\n"
    "class Blur(torch.nn.Module):\n"
    "    def forward(self, x):\n        return blur(x)\n\n    def extra_repr(self):\n        return ''\n",
}


def falls(source: str, files: dict[str, str], **more: object) -> list[tuple[str, str]]:
    """(name, the part of the message behind the name) of the functions and classes of train.py that fall."""
    found = [each for each in findings(source, files=files, **more) if each.code == "NPU556"]
    assert not any(each.open for each in found)
    return [(each.api, each.message.split(" needs ", 1)[1]) for each in found]


def test_the_graph_over_files() -> None:
    source = """
    import torch
    from lib import Blur

    class Net(torch.nn.Module):
        def __init__(self):
            self.blur = Blur()

        def other(self):
            return 1

    def build():
        return Net()

    def free():
        return torch.ones(1)
    """
    way = "the compiled extension fast_ops, through "
    assert falls(source, LIBRARY) == [
        ("train.Net", way + "train.Net.__init__ -> lib.blur.Blur -> lib.blur.Blur.forward -> lib.blur.blur"),
        ("train.Net.__init__", way + "lib.blur.Blur -> lib.blur.Blur.forward -> lib.blur.blur"),
        ("train.build", way + "train.Net -> train.Net.__init__ -> lib.blur.Blur -> lib.blur.Blur.forward"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        "    if fast:\n        return blur(x)\n    return torch.ones(1)\n",
        "    try:\n        return blur(x)\n    except ImportError:\n        return torch.ones(1)\n",
        "    return blur(x) if fast else x\n",
    ],
)
def test_a_branch_is_not_certain_and_goes_no_further(body: str) -> None:
    source = f"import torch\nfrom lib.blur import blur\ndef smooth(x, fast=True):\n{body}\n"
    "def use(x):\n    return smooth(x)\n"
    assert falls(source, LIBRARY) == [
        ("train.smooth", "in one of its branches the compiled extension fast_ops, through lib.blur.blur")
    ]


@pytest.mark.parametrize(
    ("package", "imported"),
    [
        ("from .blur import *\n", "from lib import Blur as Layer"),
        ("from .all import *\n", "from lib import Blur as Layer"),  # by a star of a star
        ("from .blur import Blur as blur\n", "from lib import blur as Layer"),  # the name of its own module
        ("from .other import *\nfrom .blur import *\n", "from lib import Blur as Layer"),  # the last line has it
    ],
)
def test_names_that_a_package_passes_on(package: str, imported: str) -> None:
    files = {
        **LIBRARY,
        "lib/__init__.py": package,
        "lib/all.py": "import torch\nfrom .blur import *\n",
        "lib/other.py": "import torch\nclass Blur(torch.nn.Module): ...\n",
    }
    assert falls(f"import torch\n{imported}\ndef f(x):\n    return Layer()(x)\n", files) == [
        ("train.f", "the compiled extension fast_ops, through lib.blur.Blur -> lib.blur.Blur.forward -> lib.blur.blur")
    ]


def test_a_module_whose_name_its_package_gives_to_a_function() -> None:
    """As `op` of StyleGAN2: what the module has is its own, whatever the package calls so."""
    module = "import torch\nimport fast_ops\nclass Op:\n    def forward(self, x):\n        return fast_ops.f(x)\n"
    module += "def blur(x):\n    if x.is_cuda:\n        return Op()(x)\n    return x\n"
    files = {"setup.py": SETUP, "op/__init__.py": "from .blur import blur\n"}
    found = {each.api: each.message for each in findings(module, path="op/blur.py", files=files)}
    way = "needs in one of its branches the compiled extension fast_ops, through op.blur.Op -> op.blur.Op.forward"
    assert found["op.blur.blur"] == f"the function blur {way}"


@pytest.mark.parametrize(
    ("source", "extension"),
    [
        ("import torch\ndef f(x):\n    return torch.ops.mine.f(x)\n", "torch.ops.mine"),
        ("import torch\nimport fused_dense_cuda\ndef f(x):\n    return fused_dense_cuda.f(x)\n", "fused_dense_cuda"),
        ("import torch\nfrom lib import _C\ndef f(x):\n    return _C.f(x)\n", "lib._C"),
        (
            "import torch\nfrom torch.utils.cpp_extension import load\nmod = load(name='m', sources=['m.cu'])\n"
            "def f(x):\n    return mod.f(x)\n",
            "m",
        ),
    ],
)
def test_what_counts_as_compiled(source: str, extension: str) -> None:
    assert falls(source, {"lib/__init__.py": "import torch\n"}) == [("train.f", f"the compiled extension {extension}")]


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef f(x):\n    return torch.ops.aten.add(x, x)\n",
        "import torch\n@torch.library.custom_op('mine::f', mutates_args=())\ndef g(x): ...\n"
        "def f(x):\n    return torch.ops.mine.f(x)\n",
        "import torch\nfrom lib import to_cuda\ndef f(x):\n    return to_cuda(x)\n",
        "import torch\nfrom helpers import move_cuda\ndef f(x):\n    return move_cuda(x)\n",
        "import torch\nfrom numba import cuda\ndef f(x):\n    return cuda.jit(x)\n",
        "import torch\nblur = 1\ndef f(x):\n    return blur\n",
    ],
)
def test_what_does_not_fall(source: str) -> None:
    files = {
        "lib/__init__.py": "import torch\ndef to_cuda(x): ...\n",
        "helpers.py": "import torch\nmove_cuda = print\n",
    }
    assert falls(source, files) == []


def test_a_library_that_was_analysed_before() -> None:
    source = "import torch\nfrom imagelib import Blur\ndef f(x):\n    return Blur()(x)\n"
    assert falls(source, {}) == []
    assert falls(source, {}, library=(("imagelib.Blur", "fast_ops"),)) == [
        ("train.f", "the compiled extension fast_ops")
    ]


def test_sources_in_c() -> None:
    data = b"""
    __global__ void blur_kernel(const float* x) {}
    PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("blur", &blur); m.def("sharpen", &sharpen); }
    TORCH_LIBRARY(mine, m) { m.def("nms(Tensor boxes) -> Tensor"); }
    """
    found = [(each.span.line, each.api, each.message) for each in findings_of(data, "a.cu")]
    assert found == [
        (3, "TORCH_EXTENSION_NAME", "this source has functions for Python: blur, nms, sharpen"),
        (4, "mine", "this source binds operators of torch.ops.mine to Python: blur, nms, sharpen"),
        (2, "blur_kernel", "1 CUDA kernel: blur_kernel"),
    ]
    assert list(findings_of(b"int main() { return 0; }", "a.cpp")) == []
    (program,) = findings_of(b"#include <a.h>\nint main() { return 0; }", "a.cu")
    assert program.detail("program") and not program.detail("kernels")
