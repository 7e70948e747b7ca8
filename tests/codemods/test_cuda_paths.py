"""Gates that lead to CUDA-only code stay, wherever in the project it is; gates of plain torch move."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, clean, migrate, pattern
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.python_in import other_facts
from transplt.flow.facts import ProjectFacts

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


@pytest.mark.parametrize("module", ["pack", "pack.__init__"])
def test_a_package_that_is_there_is_no_compiled_module(module: str) -> None:
    files = {"pack/__init__.py": "FOUND = 1\n", "pack/model.py": f"from {module} import FOUND\n\ndef f(x): return x\n"}
    source = "import torch\nfrom pack.model import f\nif torch.cuda.is_available():\n    f(1)\n"
    assert b"if torch.npu.is_available():" in migrate(source, files=files).data


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


@pattern("T2")
def test_a_kernel_at_the_end_of_a_long_branch() -> None:
    lines = "\n".join(f"    step{i}(x)" for i in range(40))
    result = migrate(
        f"import torch\nimport ops_cuda\nif torch.cuda.is_available():\n    x = 1\n{lines}\n    ops_cuda.run(x)\n"
    )
    assert b"if torch.cuda.is_available():" in result.data


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


@pattern("P1", "T2")
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
    assert b"gpu = torch.cuda.is_available()" in result.data
    assert "NPU270" in {f.code for f in result.findings if f.open}


@pattern("T2", "T9")
@pytest.mark.parametrize(
    ("line", "more"),
    [("core.DeviceOption(caffe2_pb2.CUDA, 0)", ["NPU602"]), ("torch.ops._caffe2.CopyCPUToGPU(x)", [])],
)
def test_a_branch_for_caffe2(line: str, more: list[str]) -> None:
    check_noop(
        f"""
        import torch
        from caffe2.proto import caffe2_pb2
        from caffe2.python import core

        def place(x):
            if x.device.type == "cuda":
                return {line}
        """,
        open_codes=["NPU270", *more],
    )


# --- what the CUDA side reaches, over the whole project ---------------------------------------------------------------


@pattern("T2")
def test_a_generated_wrapper_package() -> None:
    check_noop(
        """
        import torch
        from ops import nms

        def suppress(features, boxes):
            if features.is_cuda:
                return nms.nms_cuda(boxes)
            return nms.nms_cpu(boxes)
        """,
        open_codes=["NPU270"],
        files={
            "ops/__init__.py": "",
            "ops/nms/__init__.py": """
                from torch.utils.ffi import _wrap_function
                from ._nms import lib as _lib, ffi as _ffi

                __all__ = []

                def _import_symbols(locals):
                    for symbol in dir(_lib):
                        locals[symbol] = _wrap_function(getattr(_lib, symbol), _ffi)
                        __all__.append(symbol)

                _import_symbols(locals())
                """,
        },
    )


@pattern("T2")
def test_an_import_at_the_top_of_a_module() -> None:
    check_noop(
        """
        import torch

        if torch.cuda.is_available():
            from pk.nms_gpu import nms_gpu
        """,
        open_codes=["NPU270"],
        files={
            "pk/__init__.py": "",
            "pk/nms_gpu.py": "from pk._ext import nms\n\ndef nms_gpu(x):\n    return nms(x)\n",
        },
    )


@pattern("T2", "P58")
def test_a_builder_that_adds_cuda_sources() -> None:
    result = migrate(
        """
        import torch
        from torch.utils.ffi import create_extension

        sources = ["src/nms.c"]
        with_cuda = False

        if torch.cuda.is_available():
            sources += ["src/nms_cuda.c"]
            with_cuda = True

        ffi = create_extension("_ext.nms", sources=sources, with_cuda=with_cuda)
        """,
        path="build.py",
    )
    assert b"if torch.cuda.is_available():" in result.data
    assert "NPU270" in {f.code for f in result.findings if f.open}


APEX_NORM = """
    from apex.normalization.fused_layer_norm import FusedLayerNormAffineFunction
    from base import Base

    class Norm(Base):
        def __init__(self):
            super().__init__()
            self.norm_fn = FusedLayerNormAffineFunction
    """


@pattern("T2", "P53")
def test_an_attribute_that_holds_a_class_of_apex() -> None:
    check_noop(
        """
        import torch
        import torch.nn.functional as F
        from norms import Norm

        class LayerNorm(Norm):
            def forward(self, x):
                if not x.is_cuda:
                    return F.layer_norm(x, self.shape)
                return self.norm_fn.apply(x, self.weight, self.bias)
        """,
        open_codes=["NPU270"],
        files={"norms.py": APEX_NORM, "base.py": "import torch\n\nclass Base(torch.nn.Module):\n    pass\n"},
    )


@pattern("T2", "T12")
def test_a_guard_before_a_comparison_of_the_capability() -> None:
    result = migrate(
        """
        import torch

        def is_ampere():
            if not torch.cuda.is_available():
                return False
            major, minor = torch.cuda.get_device_capability()
            return (major, minor) >= (8, 0)
        """
    )
    assert b"if not torch.cuda.is_available():" in result.data
    assert "NPU270" in {f.code for f in result.findings if f.open}


@pattern("T2", "T12")
def test_a_flag_that_is_switched_on_for_a_kernel_of_cuda() -> None:
    result = migrate(
        """
        import torch

        class Linear(torch.nn.Module):
            def __init__(self, cfg):
                super().__init__()
                self.fp8 = False
                if torch.cuda.is_available():
                    self.fp8 = True

            def forward(self, x):
                if self.fp8:
                    return torch._scaled_mm(x, self.weight)
                return x @ self.weight
        """
    )
    assert b"if torch.cuda.is_available():" in result.data
    assert "NPU270" in {f.code for f in result.findings if f.open}


PREDICATE = """
    import torch

    enabled = True

    def should_use_custom_op(x):
        if not enabled:
            return False
        if x.device.type != "cuda":
            return False
        return True
    """


def test_a_named_predicate_of_another_file() -> None:
    user = """
        import torch
        from gate import should_use_custom_op
        from ops import conv_cuda

        def conv(x):
            if should_use_custom_op(x):
                return conv_cuda.forward(x)
            return torch.conv2d(x)
        """
    check_noop(PREDICATE, path="gate.py", open_codes=["NPU270"], files={"use.py": user, "ops/__init__.py": ""})


def test_a_named_predicate_of_plain_code() -> None:
    result = migrate(
        PREDICATE,
        path="gate.py",
        files={"use.py": "import torch\nfrom gate import should_use_custom_op\n\ndef f(x):\n"
               "    return x.half() if should_use_custom_op(x) else x\n"},
    )  # fmt: skip
    assert b'!= "npu"' in result.data


@pytest.mark.parametrize(
    "gate",
    [
        "torch.cuda.is_available()",
        "bool(torch.cuda.is_available()) and cfg.FUSED",
        "not (not torch.cuda.is_available())",
    ],
)
def test_a_gate_that_is_stored_in_a_class(gate: str) -> None:
    result = migrate(
        f"""
        import torch
        import correlation_cuda

        class Correlation(torch.nn.Module):
            def __init__(self, cfg):
                super().__init__()
                self.fused = {gate}

            def forward(self, x, y):
                if not self.fused:
                    return (x * y).sum(1)
                return correlation_cuda.forward(x, y)
        """
    )
    assert gate.encode() in result.data
    assert "NPU270" in {f.code for f in result.findings if f.open}


def test_a_flag_that_is_passed_on_to_another_file() -> None:
    check_noop(
        """
        import torch
        from layers import attend

        def forward(x):
            use_kernel = torch.cuda.is_available()
            return attend(x, use_kernel)
        """,
        open_codes=["NPU270"],
        files={
            "layers.py": """
                import torch
                from attention_cuda import attention

                def attend(x, use_kernel=False):
                    if use_kernel:
                        return attention(x)
                    return torch.softmax(x, -1)
                """
        },
    )


def test_a_flag_that_also_says_where_the_program_computes() -> None:
    result = migrate(
        """
        import torch
        import lamb_cuda

        class Trainer:
            def __init__(self, model):
                self.gpu = torch.cuda.is_available()
                if self.gpu:
                    model.cuda()
                if self.gpu:
                    self.optimizer = lamb_cuda.Lamb(model)
        """
    )
    assert b"self.gpu = torch.npu.is_available()" in result.data
    assert "NPU272" in {f.code for f in result.findings if f.open}


@pytest.mark.parametrize("wrapper", ["from wrap import nms", "import wrap\nnms = wrap.nms", "from pk import nms"])
def test_through_wrappers_and_imports(wrapper: str) -> None:
    lines = "\n".join(f"    x = x + {number}" for number in range(60))
    result = migrate(
        f"import torch\n{wrapper}\n\ndef f(x):\n    if not x.is_cuda:\n        return x\n{lines}\n    return nms(x)\n",
        files={
            "pk/__init__.py": "from wrap import *\n",
            "wrap.py": "from deeper import suppress\n\ndef nms(x):\n    return suppress(x)\n",
            "deeper.py": "import nms_ext_cuda\n\ndef suppress(x):\n    return nms_ext_cuda.run(x)\n",
        },
    )
    assert b"if not x.is_cuda:" in result.data
    assert any(", through " in f.message for f in result.findings if f.code == "NPU270")


@pytest.mark.parametrize(
    "body",
    [
        "model.cuda()",
        "torch.cuda.manual_seed(1)",
        "torch.cuda.synchronize()",
        "model = torch.nn.DataParallel(model)",
        "with torch.cuda.amp.autocast():\n        model(1)",
        "helper.place(model)",
        "train(model)",
        "print(torch.cuda.get_device_capability())",
        "torch.backends.cudnn.benchmark = True; model.cuda()",
        "print(torch.version.cuda)",
        "print(f'CUDA {torch.version.cuda}', 'ROCm ' + torch.version.hip if torch.version.hip else '')",
        "if torch.version.cuda is not None and int(torch.version.cuda.split('.')[0]) > 10:\n        model.cuda()",
    ],
)
def test_plain_torch_moves(body: str) -> None:
    result = migrate(
        f"""
import torch
import helper
from engine import train

model = torch.nn.Linear(2, 2)
if torch.cuda.is_available():
    {body}
""",
        files={
            "helper.py": "import torch\n\ndef place(model):\n    return model.cuda()\n",
            "engine.py": "import torch\nimport kernel_cuda\n\ndef train(model):\n    x = torch.ones(2)\n"
            "    if x.is_cuda:\n        kernel_cuda.run(x)\n    return model(x)\n",
        },
    )
    assert b"if torch.npu.is_available():" in result.data
    assert not {"NPU270", "NPU271"} & {f.code for f in result.findings}


@pytest.mark.parametrize(
    "body",
    [
        "if args.apex:\n            from apex.normalization import FusedLayerNorm",
        "if HAVE_APEX:\n            fused_cuda()",
    ],
)
def test_what_the_user_asks_for_in_a_program(body: str) -> None:
    lines = "\n".join(f"        step{number}(model)" for number in range(40))
    result = migrate(
        f"""
import torch
try:
    from fused import fused_cuda
    HAVE_APEX = True
except ImportError:
    HAVE_APEX = False

def main(args, model):
    if torch.cuda.is_available():
        {body}
{lines}
"""
    )
    assert b"if torch.npu.is_available():" in result.data


def test_what_both_sides_reach() -> None:
    result = migrate(
        """
        import torch
        import roi_cuda

        def align(x):
            if x.is_cuda:
                return roi_cuda.align(x)
            return roi_cuda.align(x.cpu())
        """
    )
    assert b"if x.is_npu:" in result.data


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sort_gpu", "nms_cuda", "cuda_rasterize", "self.render_gpu", "ops.warp_cuda"])
def test_called_names_that_speak_of_cuda(name: str) -> None:
    result = migrate(
        f"import torch\nfrom things import ops\n\ndef f(self, x, **ways):\n    if x.is_cuda:\n"
        f"        return {name}(x)\n    return x\n"
    )
    assert b"if x.is_cuda:" in result.data


@pytest.mark.parametrize("name", ["to_gpu", "move_to_cuda", "use_cuda", "has_gpu", "num_gpu", "is_gpu", "x.to_cuda"])
def test_called_names_of_movers_and_flags(name: str) -> None:
    result = migrate(
        f"import torch\nfrom lib import *\n\ndef f(x):\n    if x.is_cuda:\n        return {name}(x)\n    return x\n"
    )
    assert b"if x.is_npu:" in result.data


def test_a_name_that_the_project_defines() -> None:
    result = migrate(
        "import torch\nfrom mine import *\n\ndef f(x):\n    if x.is_cuda:\n        return sort_gpu(x)\n    return x\n",
        files={"mine.py": "import torch\n\ndef sort_gpu(x):\n    return x.sort()\n"},
    )
    assert b"if x.is_npu:" in result.data


SETUP = """
    from setuptools import setup
    from torch.utils.cpp_extension import CUDAExtension

    setup(ext_modules=[CUDAExtension("MultiScaleDeformableAttention", ["src/vision.cpp"])])
    """


def test_a_kernel_of_the_projects_own_setup() -> None:
    check_noop(
        """
        import torch
        import MultiScaleDeformableAttention as MSDA

        def attend(x):
            if x.is_cuda:
                return MSDA.ms_deform_attn_forward(x)
            return x
        """,
        open_codes=["NPU270", "NPU553"],
        files={"setup.py": SETUP},
    )


def test_the_import_of_such_a_kernel_is_found_where_nothing_else_speaks_of_cuda() -> None:
    check_noop(
        "import torch\nimport MultiScaleDeformableAttention as MSDA\n\nMSDA.ms_deform_attn_forward(1)\n",
        open_codes=["NPU553"],
        files={"setup.py": SETUP},
    )


def test_a_file_alone_is_edited_less() -> None:
    source = clean(
        """
        import torch
        from .ops import attend

        def forward(x):
            if x.is_cuda:
                return attend(x)
            return x
        """
    ).encode()
    result = migrate_source(source, "pk/a.py", Settings())
    assert b"if x.is_cuda:" in result.data
    assert "NPU271" in {f.code for f in result.findings if f.open}


@pytest.mark.parametrize(
    ("body", "moves"),
    [
        ("net = net.half()", True),
        ("net = net.to(memory_format=torch.channels_last)", True),
        # What is computed with the module may be CUDA's, and so is where it is placed.
        ("net.cuda()", False),
        ("net(x)", False),
        ("net.half(x)", False),
        ("net.attend(x)", False),
    ],
)
def test_casts_of_a_module_that_cannot_be_followed(body: str, moves: bool) -> None:
    """One decision over files: the input is cast behind the same question elsewhere."""
    source = f"""
import torch
from pk.nets import Net

def load(device, x, fast):
    if fast:
        net = Net()
    else:
        net = Net(2)
    if device == torch.device("cuda"):
        {body}
    return net
"""
    nets = "from pk.made import attend\n\nclass Net:\n    def __init__(self, n=1):\n        self.f = attend(n)\n"
    made = {"pk/__init__.py": "", "pk/nets.py": nets}
    result = migrate(source, files=made)
    assert (b'torch.device("npu")' in result.data) is moves
    assert ("NPU271" in {each.code for each in result.findings}) is not moves


def test_a_module_of_the_project_that_is_none_of_its_files() -> None:
    check_noop(
        """
        import torch
        from pk.made import attend

        def forward(x):
            if x.is_cuda:
                return attend(x)
            return x
        """,
        open_codes=["NPU271"],
        files={"pk/__init__.py": "", "pk/other.py": "import torch\n"},
    )


BUILD = """
    from setuptools import setup
    from torch.utils.cpp_extension import CppExtension, CUDAExtension

    setup(ext_modules=[CppExtension("encoding.cpu", ["a.cpp"]), CUDAExtension("encoding.gpu", ["a.cu"])])
"""


@pytest.mark.parametrize("gate", ["torch.cuda.device_count() > 0", "torch.cuda.is_available()"])
def test_an_import_from_the_package_of_what_its_setup_builds(gate: str) -> None:
    result = migrate(
        f"""
        import torch

        if {gate}:
            from encoding import gpu
        """,
        path="encoding/functions.py",
        files={"setup.py": BUILD, "encoding/__init__.py": ""},
    )
    assert f"if {gate}:".encode() in result.data
    assert "NPU270" in {f.code for f in result.findings if f.open}


@pytest.mark.parametrize("gate", ["torch.cuda.device_count() > 0", "torch.cuda.is_available()"])
def test_an_import_from_the_package_of_plain_code(gate: str) -> None:
    result = migrate(
        f"""
        import torch

        if {gate}:
            from encoding import layers
        """,
        path="encoding/functions.py",
        files={"setup.py": BUILD, "encoding/__init__.py": "", "encoding/layers.py": "import torch\n"},
    )
    assert b"if torch.npu." in result.data


def test_the_extension_of_a_project_that_is_itself_a_package_of_the_table() -> None:
    """pytorch3d is bound to CUDA for those who import it; inside of it, its own code is followed."""
    check_noop(
        """
        import torch
        from pytorch3d import _C

        def interpolate(x, y):
            if not x.is_cuda:
                return x + y
            return Interpolate.apply(x, y)

        class Interpolate(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return _C.interpolate_forward(x, y)
        """,
        path="pytorch3d/ops/interpolate.py",
        open_codes=["NPU270", "NPU553"],
        files={"setup.py": BUILD.replace("encoding.gpu", "pytorch3d._C"), "pytorch3d/__init__.py": "",
               "pytorch3d/ops/__init__.py": ""},
    )  # fmt: skip


def test_plain_code_of_a_project_that_is_itself_a_package_of_the_table() -> None:
    result = migrate(
        """
        import torch
        from pytorch3d.ops import knn

        def near(x):
            if x.is_cuda:
                return knn.near(x)
            return x
        """,
        path="pytorch3d/near.py",
        files={"pytorch3d/__init__.py": "", "pytorch3d/ops/__init__.py": "",
               "pytorch3d/ops/knn.py": "import torch\n\ndef near(x):\n    return torch.cdist(x, x)\n"},
    )  # fmt: skip
    assert b"if x.is_npu:" in result.data


@pytest.mark.parametrize(
    "each",
    [
        "all(t.is_cuda for t in ts)",
        "all([t.is_cuda for t in ts])",
        "any(t.is_cuda for t in ts)",
        "all(t.device.type == 'cuda' for t in ts)",
    ],
)
def test_a_question_asked_of_each_of_several_tensors(each: str) -> None:
    source = """
        import torch
        import scan_cuda

        def scan(ts):
            assert {each}
            return scan_cuda.forward(*ts)
        """
    assert each.encode() in migrate(source.format(each=each)).data
    plain = source.format(each=each).replace("scan_cuda.forward", "torch.add").replace("import scan_cuda", "")
    assert each.replace("is_cuda", "is_npu").replace("'cuda'", "'npu'").encode() in migrate(plain).data


@pytest.mark.parametrize(
    "call",
    ["faiss.Kmeans(2, 3, gpu=torch.cuda.is_available())", 'FaissKMeans(niter=20, gpu=self.device.type == "cuda")'],
)
def test_an_option_of_faiss(call: str) -> None:
    check_noop(f"import torch\nmeans = {call}\n", open_codes=["NPU270"])


def test_an_option_of_the_same_name() -> None:
    check_rewrite(
        "import torch\ntrainer = Trainer(gpu=torch.cuda.is_available())\n",
        "import torch\nimport torch_npu  # noqa: F401\ntrainer = Trainer(gpu=torch.npu.is_available())\n",
    )


ATTEND = """
    import torch

    class Attend(torch.nn.Module):
        def __init__(self, flash):
            self.cpu_config = (True, True)
            self.cuda_config = None
            if not torch.cuda.is_available() or not flash:
                return
            properties = torch.cuda.get_device_properties(torch.device('cuda'))
            {chosen}

        def attend(self, q, k, v):
            {asked}
            config = {config}
            return attention(q, k, v, config)
"""


@pattern("T2")
@pytest.mark.parametrize(
    ("chosen", "asked", "config", "stays"),
    [
        (
            "self.cuda_config = properties.major > 8",
            "_, n, m, is_cuda, device = *q.shape, q.is_cuda, q.device",
            "self.cuda_config if is_cuda else self.cpu_config",
            True,
        ),
        ("self.cuda_config = properties.major > 8", "", "self.cuda_config if q.is_cuda else self.cpu_config", True),
        # It is asked for, never set there, or has a value of its own.
        ("self.cuda_config = properties.major > 8", "", "q.is_cuda and self.cuda_config or self.cpu_config", False),
        ("self.name = properties.major", "", "self.cuda_config if q.is_cuda else self.cpu_config", False),
        ("self.cpu_config = properties.major", "", "self.cpu_config if q.is_cuda else None", False),
        ("self.cuda_config = properties.name", "", "self.cuda_config if q.is_cuda else self.cpu_config", False),
    ],
)
def test_what_is_set_behind_a_test_that_stays(chosen: str, asked: str, config: str, stays: bool) -> None:
    result = migrate(ATTEND.format(chosen=chosen, asked=asked or "pass", config=config))
    assert (b"q.is_cuda" in result.data) == stays
    assert b"torch.npu.get_device_properties(torch.device('npu'))" in result.data
    assert not [each for each in result.findings if each.code == "NPU992"]


EXECUTOR = {
    "ext/unsloth/kernels/__init__.py": "from .swiglu import swiglu_kernel\n",
    "ext/unsloth/kernels/swiglu.py": """
        import triton

        @triton.jit
        def _kernel(e, g):
            pass

        def swiglu_kernel(e, g):
            _kernel[(1,)](e, g)
            return e
    """,
}
REGISTERS = """
    import sys
    import torch
    from thunder import OperatorExecutor

    sys.path.append("ext/unsloth")
    import kernels

    ex = OperatorExecutor("unsloth")

    def fits(e, g):
        return e.shape == g.shape and e.device.type == "cuda"

    def plain(e, g):
        return e * g

    forward = ex.register_operator("forward", fn=lambda *args: kernels.swiglu_kernel(*args))
    {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "ex.register(torch.nn.functional.silu, checker=fits, execution_transform=forward)",
        "ex.register(torch.nn.functional.silu, fits, lambda *args: forward(*args))",
        "ex.register(torch.nn.functional.silu, checker=fits, fn=kernels.swiglu_kernel)",
        'TABLE = {"check": fits, "run": kernels.swiglu_kernel}',
        "@ex.implements(torch.nn.functional.silu, checker=fits)\n    def silu(e, g):\n        return forward(e, g)",
    ],
)
def test_a_checker_is_a_gate_of_what_it_is_registered_with(line: str) -> None:
    source = REGISTERS.format(line)
    result = check_noop(source, path="ext/unsloth/executor.py", open_codes=["NPU270", "NPU510"], files=EXECUTOR)
    assert any("_kernel" in finding.message for finding in result.findings)


def test_a_checker_that_is_written_where_it_is_registered() -> None:
    source = REGISTERS.replace('e.device.type == "cuda"', "e.ndim")
    line = "ex.register(checker=lambda x: x.is_cuda, fn=kernels.swiglu_kernel)"
    check_noop(source.format(line), path="ext/unsloth/executor.py", open_codes=["NPU270", "NPU510"], files=EXECUTOR)


@pytest.mark.parametrize(
    "line",
    [
        "ex.register(torch.nn.functional.silu, checker=fits, execution_transform=plain)",
        "ex.register(torch.nn.functional.silu, checker=fits)",
        "found = list(filter(fits, pairs))",
        "ex.register(forward)\n    print(fits)",
    ],
)
def test_a_checker_of_plain_torch_moves(line: str) -> None:
    result = migrate(REGISTERS.format(line), path="ext/unsloth/executor.py", files=EXECUTOR)
    assert b'e.device.type == "npu"' in result.data and "NPU270" not in {f.code for f in result.findings}


CYTHON = "cimport cython\nfrom cython.parallel import prange\n\ncpdef int align(int x):\n    return x\n"
TRAINS = """
    import torch
    from align import aligned

    def main(x):
        assert torch.cuda.is_available(), "a card, please"
        return aligned(x)
"""


def answered(source: str, pyx: bytes) -> tuple[str, list[str]]:
    """The migrated program of a project with a Cython module, and the codes of what is left."""
    files = {"train.py": clean(source), "align/__init__.py": "from .align.core import aligned\n"}
    facts = [index_source(text.encode(), name, Settings()) for name, text in files.items()]
    facts += [each for each in [other_facts(pyx, "align/core.pyx", Settings())] if each is not None]
    result = migrate_source(files["train.py"].encode(), "train.py", Settings(), ProjectFacts.join(facts))
    return result.data.decode(), [finding.code for finding in result.findings if finding.open]


def test_a_cython_module_without_cuda_is_no_end_of_the_way() -> None:
    gate = TRAINS.replace('assert torch.cuda.is_available(), "a card, please"', "if torch.cuda.is_available(): x.run()")
    for source in (TRAINS, gate):
        text, left = answered(source, CYTHON.encode())
        assert "torch.npu.is_available()" in text and not left


@pytest.mark.parametrize(
    "pyx",
    [
        CYTHON + "# calls cuda\n",
        CYTHON + 'cdef extern from "align_kernel.h":\n    int run(int)\n',
        CYTHON + "import cupy\n",
    ],
)
def test_a_cython_module_that_may_hold_cuda_is_not_followed(pyx: str) -> None:
    gate = """
        import torch
        from align import aligned

        def main(x):
            if torch.cuda.is_available():
                return aligned(x)
            return x
    """
    text, left = answered(gate, pyx.encode())
    assert "torch.cuda.is_available()" in text and left == ["NPU271"]


@pytest.mark.parametrize(
    "test",
    [
        "assert torch.cuda.is_available()",
        "if not torch.cuda.is_available():\n            raise RuntimeError('a card, please')",
    ],
)
def test_a_program_that_stops_without_a_card_asks_for_the_npu(test: str) -> None:
    source = TRAINS.replace('assert torch.cuda.is_available(), "a card, please"', test)
    text, left = answered(source, b"import cupy\n")
    assert "torch.npu.is_available()" in text and left == ["NPU271"]


@pytest.mark.parametrize(
    "use",
    [
        "return 'ROCm ' + torch.version.hip",
        "if torch.version.cuda is None:\n            return 'ROCm ' + torch.version.hip\n        return 'CUDA'",
        "return torch.version.cuda.split('.')[0]",
        "if torch.version.hip or torch.version.cuda >= '11':\n            return 'new'",
    ],
)
def test_a_gate_before_a_version_that_is_none_on_an_npu_stays(use: str) -> None:
    result = migrate(
        f"import torch\n\ndef describe():\n    if torch.cuda.is_available():\n        {use}\n    return 'no GPU'\n"
    )
    assert not result.changed
    assert "NPU270" in {f.code for f in result.findings if f.open}


@pytest.mark.parametrize(
    "test",
    [
        "torch.cuda.is_available() and torch.version.hip",
        "torch.version.hip is not None and torch.cuda.is_available()",
        "args.amd and (torch.cuda.is_available() and torch.version.hip)",
    ],
)
def test_a_gate_asked_together_with_a_version_that_is_none_on_an_npu_stays_without_a_word(test: str) -> None:
    result = migrate(f"import torch\n\ndef f(args, quirks):\n    if {test}:\n        quirks.add('x')\n")
    assert not result.changed
    assert {f.code for f in result.findings if f.open} <= {"NPU243"}
    assert "vendor-asked" in {row.cause.reason for row in result.ledger}


@pytest.mark.parametrize(
    "test",
    ["torch.cuda.is_available()", "args.tf32 and torch.cuda.is_available()", "torch.cuda.is_available() and fast"],
)
def test_a_gate_for_settings_of_cudas_libraries_alone_stays_without_a_word(test: str) -> None:
    result = migrate(
        f"import torch\n\ndef f(args, fast):\n    if {test}:\n        torch.backends.cuda.matmul.allow_tf32 = True\n"
        "        torch.backends.cudnn.allow_tf32 = fast\n"
    )
    assert not result.changed
    assert "cuda-settings" in {row.cause.reason for row in result.ledger}


@pytest.mark.parametrize(
    ("inner", "stays"),
    [
        ("if args.tf32:\n            torch.backends.cudnn.allow_tf32 = True", True),
        ("if fast:\n            torch.backends.cudnn.allow_tf32 = 1\n        else:\n"
         "            torch.backends.cudnn.benchmark = not fast", True),
        ("if fast:\n            pass", False),
        ("if f():\n            torch.backends.cudnn.allow_tf32 = True", False),
        ("if fast:\n            torch.backends.cudnn.allow_tf32 = True\n            args.slow = 1", False),
    ],
)  # fmt: skip
def test_conditions_on_such_settings_are_plain(inner: str, stays: bool) -> None:
    result = migrate(f"import torch\n\ndef f(args, fast):\n    if torch.cuda.is_available():\n        {inner}\n")
    assert result.changed is not stays


@pytest.mark.parametrize(
    ("head", "body", "rest"),
    [
        ("if torch.cuda.is_available():", "torch.backends.cudnn.benchmark = True", "else:\n    args.slow = True"),
        ("if torch.cuda.is_available():", "torch.backends.cudnn.benchmark = choose()", ""),
        ("if torch.cuda.is_available():", "torch.backends.cudnn.benchmark = True; torch.cuda.manual_seed(1)", ""),
        ("if torch.cuda.is_available() and choose():", "torch.backends.cudnn.benchmark = True", ""),
        ("while torch.cuda.is_available() and choose():", "pass", ""),
    ],
)
def test_a_gate_for_more_than_such_settings_moves(head: str, body: str, rest: str) -> None:
    result = migrate(f"import torch\n{head}\n    {body}\n{rest}\n")
    assert head.replace("cuda", "npu").encode() in result.data


_LOADS = "kwargs.update(map_location='cpu')"


@pytest.mark.parametrize(
    ("body", "stays"),
    [
        (f"if torch.cuda.is_available():\n        pass\n    else:\n        {_LOADS}", 1),
        (f"if not torch.cuda.is_available():\n        {_LOADS}", 1),
        (f"if torch.cuda.is_available():\n        return kwargs\n    if kwargs:\n        {_LOADS}", 1),
        (f"if not torch.cuda.is_available():\n        if kwargs:\n            with f: {_LOADS}", 1),
        ("if not torch.cuda.is_available():\n        f(map_location='cpu')\n        f(map_location=None)", 1),
        (f"if not torch.cuda.is_available():\n        {_LOADS}\n    else:\n        kwargs = {{}}", 0),
        (f"if torch.cuda.is_available():\n        f()\n    else:\n        {_LOADS}", 0),
        (f"{_LOADS}\n    if not torch.cuda.is_available():\n        kwargs = {{}}", 0),
        (f"if torch.cuda.is_available():\n        return\n    elif kwargs:\n        return\n    {_LOADS}", 1),
        ("if not torch.cuda.is_available():\n        kwargs.update(map_location='meta')", 0),
    ],
)
def test_a_gate_is_for_both_where_cuda_alone_does_nothing_and_all_else_loads_to_the_cpu(body: str, stays: int) -> None:
    result = migrate(f"import torch\n\ndef f(kwargs):\n    {body}\n    return kwargs\n")
    assert result.changed is not bool(stays)


STOPS = [
    "if x.is_cuda:\n        return median_filter_cuda(x)\n    raise ValueError('needs CUDA')",
    "if not x.is_cuda:\n        raise ValueError('needs CUDA')\n    return median_filter_cuda(x)",
    "if x.is_cuda:\n        x = median_filter_cuda(x)\n    else:\n        raise SystemExit\n    return x",
    "if not torch.cuda.is_available():\n        exit(1)\n    return median_filter_cuda(x)",
    "assert x.is_cuda\n    return median_filter_cuda(x)",
]
GOES_ON = [
    "if x.is_cuda:\n        return median_filter_cuda(x)\n    return x.median()",
    "if x.is_cuda:\n        x = median_filter_cuda(x)\n    raise ValueError(x)",
    "if x.is_cuda:\n        return median_filter_cuda(x)\n    if x.dim():\n        raise\n    return x.median()",
    "return median_filter_cuda(x) if x.is_cuda else x.median()",
]


@pytest.mark.parametrize(
    ("body", "code"), [*((body, "NPU279") for body in STOPS), *((body, "NPU270") for body in GOES_ON)]
)
def test_what_an_npu_does_instead_is_said(body: str, code: str) -> None:
    check_noop(
        f"import torch\nfrom kernels import median_filter_cuda\n\ndef f(x):\n    {body}\n",
        open_codes=[code],
        files={"kernels.py": KERNELS},
    )


def test_an_assertion_in_front_of_a_test_that_stays_stops_the_program() -> None:
    """What it leads to is set behind the second test; there is no other path."""
    source = """
        import torch
        from kernels import median_filter_cuda

        def f(x):
            assert x.is_cuda
            if x.is_cuda:
                y = median_filter_cuda(x)
            else:
                raise ValueError
            return y
        """
    result = check_noop(source, open_codes=["NPU279"], files={"kernels.py": KERNELS})
    assert all("without CUDA the program stops" in each.message for each in result.findings)


@pytest.mark.parametrize(
    "body",
    [
        "if not x.is_cuda:\n        assert not y.is_cuda\n        return y\n    return median_filter_cuda(x)",
        "if x.is_cuda:\n        return median_filter_cuda(x)\n    if y.is_cuda:\n        raise\n    return y",
        "if x.is_cuda:\n        return median_filter_cuda(x)\n    assert y.device.type != 'cuda'\n    return y",
    ],
)
def test_what_refuses_cuda_on_the_side_of_the_cpu_stays_with_its_gate(body: str) -> None:
    check_noop(
        f"import torch\nfrom kernels import median_filter_cuda\n\ndef f(x, y):\n    {body}\n",
        open_codes=["NPU270"],
        files={"kernels.py": KERNELS},
    )


@pytest.mark.parametrize("then", ["y = y.cpu()", "assert y.dim()"])
def test_what_moves_on_the_side_of_the_cpu_does_so_for_an_npu(then: str) -> None:
    body = f"if x.is_cuda:\n        return median_filter_cuda(x)\n    if y.is_cuda:\n        {then}\n    return y"
    source = f"import torch\nfrom kernels import median_filter_cuda\n\ndef f(x, y):\n    {body}\n"
    assert b"if y.is_npu:" in migrate(source, files={"kernels.py": KERNELS}).data


POINTER = """
    import torch
    import cupy

    def wrap(x):
        address = {address}
        if x.device.type == "cpu":
            place = -1
        elif x.device.type == "cuda":
            place = 0
        else:
            raise NotImplementedError
        return {call}
"""


@pytest.mark.parametrize("call", ["cupy.wrap(address, place)", "cupy.wrap(x.data_ptr(), place)"])
def test_a_device_that_goes_with_an_address_to_a_library_of_cuda(call: str) -> None:
    check_noop(POINTER.format(address="x.data_ptr()", call=call), open_codes=["NPU279", "NPU510"])


@pytest.mark.parametrize(
    ("address", "call"),
    [("x.data_ptr()", "address, place"), ("x.data_ptr()", "print(address, cupy.ones(1))"), ("x", "cupy.f(address)")],
)
def test_an_address_that_only_this_code_sees(address: str, call: str) -> None:
    assert b'x.device.type == "npu"' in migrate(POINTER.format(address=address, call=call)).data


VERIFIED = """
    import torch
    from kernels import median_filter_cuda

    class Backend:
        def {name}(self, x):
            if x.dtype != torch.bfloat16:
                return False, "another type"
            if not x.is_cuda:
                return False, "needs CUDA"
            return {answer}

        def attend(self, x):
            return {body}
"""


def test_a_verifier_is_the_gate_of_the_method_that_it_is_called_after() -> None:
    source = VERIFIED.format(name="attend_verifier", answer="True, None", body="median_filter_cuda(x)")
    check_noop(source, open_codes=["NPU270"], files={"kernels.py": KERNELS})


@pytest.mark.parametrize(
    ("name", "body"),
    [("attend_verifier", "x.softmax(-1)"), ("other_verifier", "median_filter_cuda(x)"), ("attend_twice", "x.half()")],
)
def test_a_verifier_of_plain_torch_moves(name: str, body: str) -> None:
    source = VERIFIED.format(name=name, answer="True, None", body=body)
    assert b"if not x.is_npu:" in migrate(source, files={"kernels.py": KERNELS}).data


KEPT = """
    import torch
    from kernels import median_filter_cuda

    class _Median(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return {body}

    median_by_kernel = _Median.apply

    def median_of_torch(x):
        return x.median()

    def median(x):
        {choice}
        return chosen(x)
"""
_STATEMENT = "if x.is_cuda:\n            chosen = median_by_kernel\n        else:\n            chosen = median_of_torch"


@pytest.mark.parametrize("choice", [_STATEMENT, "chosen = median_by_kernel if x.is_cuda else median_of_torch"])
def test_a_choice_of_a_function_that_a_variable_keeps(choice: str) -> None:
    """The function of the kernel is no definition: `apply` of its class under a name of the module."""
    source = KEPT.format(body="median_filter_cuda(x)", choice=choice)
    check_noop(source, open_codes=["NPU270"], files={"kernels.py": KERNELS})


@pytest.mark.parametrize(
    ("body", "choice"),
    [
        ("x.sort()", _STATEMENT),
        ("median_filter_cuda(x)", _STATEMENT.replace("median_by_kernel", "median_of_torch")),
    ],
)
def test_a_choice_among_functions_of_plain_torch_moves(body: str, choice: str) -> None:
    source = KEPT.format(body=body, choice=choice)
    assert b"if x.is_npu:" in migrate(source, files={"kernels.py": KERNELS}).data


POOL = """
    import torch
    {given}

    def pool(x):
        if not x.is_cuda:
            raise NotImplementedError
        return {called}(x)
"""


@pattern("T2")
@pytest.mark.parametrize("path", ["lib/roi/pool.py", "pool.py"])
@pytest.mark.parametrize(
    ("given", "called"),
    [
        ("from ._ext import roi_pool", "roi_pool.forward"),
        ("from . import _ext", "_ext.roi_pool"),
        ("from . import _ext", "_ext.roi_pool.forward"),
        ("from ._ext.roi_pool import forward", "forward"),
        ("from ._ext.roi_pool import *", "forward"),
        ("from _ext import roi_pool", "roi_pool.forward"),
        ("from roi._ext import roi_pool", "roi_pool.forward"),
        ("import lib.roi._ext", "lib.roi._ext.roi_pool.forward"),
    ],
)
def test_a_compiled_module_beside_a_file_in_a_folder_without_init(given: str, called: str, path: str) -> None:
    source = POOL.format(given=given, called=called)
    check_noop(source, path=path, open_codes=["NPU279"])
    if path != "pool.py":
        files = {"train.py": "import sys\nsys.path.append('lib')\nfrom roi.pool import pool\n"}
        check_noop(source, path=path, open_codes=["NPU279"], files=files)
        check_noop(source, path=path, open_codes=["NPU279"], files={**files, "lib/roi/__init__.py": ""})
    alone = migrate_source(clean(source).encode(), path, Settings())
    assert b"x.is_cuda" in alone.data  # with its project it is not edited less


@pattern("T2")
@pytest.mark.parametrize(
    ("given", "called", "file"),
    [
        ("from .ops import forward", "forward", "lib/roi/ops.py"),
        ("from . import ops", "ops.forward", "lib/roi/ops.py"),
        ("from ._ext import roi_pool", "roi_pool.forward", "lib/roi/_ext/roi_pool.py"),
        ("from . import _ext", "_ext.forward", "lib/roi/_ext.py"),
        ("from ..ops import forward", "forward", "lib/ops/__init__.py"),
        ("from lib.ops import forward", "forward", "lib/ops.py"),
        ("from roi.ops import forward", "forward", "lib/roi/ops.py"),
        ("from .version import forward", "forward", "lib/roi/other.py"),  # which a build writes
        ("from timm.data import forward", "forward", "timm/train.py"),  # a folder that is called as a library is
    ],
)
def test_python_beside_a_file_in_a_folder_without_init(given: str, called: str, file: str) -> None:
    source = POOL.format(given=given, called=called)
    files = {file: "def forward(x):\n    return x\n", "train.py": "from lib.roi.pool import pool\n"}
    result = migrate(source, path="lib/roi/pool.py", files=files)
    assert b"if not x.is_npu:" in result.data and not [f for f in result.findings if f.open]


def test_a_module_that_is_missing_in_a_folder_without_init() -> None:
    for given in ("from .ops import forward", "from lib.roi.ops import forward", "from roi.ops import forward"):
        lines = "from lib.roi.pool import pool\n" if "lib" in given else "from roi.pool import pool\n"
        files = {"train.py": f"import sys\nsys.path.append('lib')\n{lines}"}
        result = migrate(POOL.format(given=given, called="forward"), path="lib/roi/pool.py", files=files)
        assert [f.code for f in result.findings if f.open] == ["NPU271"], given


def test_a_library_that_the_project_has_a_copy_of_elsewhere_is_not_missing() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/third_party/engines/engine.py": "",
        "pkg/run.py": "import engines.engine\nfrom pkg.pool import pool\n",
    }
    result = migrate(
        POOL.format(given="from engines.outputs import forward", called="forward"), path="pkg/pool.py", files=files
    )
    assert b"if not x.is_npu:" in result.data and not [f for f in result.findings if f.open]


@pattern("T2")
@pytest.mark.parametrize(
    ("condition", "codes"),
    [
        ("not torch.cuda.is_available() or not flash", ["NPU270"]),  # no NPU comes by the return
        ("not flash", ["NPU241"]),
    ],
)
def test_what_a_card_answers_behind_a_gate_that_stays(condition: str, codes: list[str]) -> None:
    result = migrate(
        f"""
        import torch
        import align_cuda_binding

        def align(x, flash):
            if {condition}:
                return x
            major = torch.cuda.get_device_properties(0).major
            return align_cuda_binding.forward(x, major)
        """
    )
    told = {f.code for f in result.findings if f.open}
    assert {*told} & {"NPU270", "NPU241"} == {*codes}


FUSED = """
    import dataclasses
    import torch
    import cuequivariance_torch as cuet

    @dataclasses.dataclass
    class Products:
        fused: bool = False
        pinned: bool = False

    def layer(products):
        if products.fused:
            return cuet.SegmentedPolynomial(3, method="uniform_1d")
        return torch.nn.Linear(3, 3, bias=products.pinned)
    """


@pytest.mark.parametrize(
    "call", ["cuet.Product(3, fused={})", "products.Products(fused={})", "products.Products(True, fused=({}))"]
)
@pytest.mark.parametrize("test", ["torch.cuda.is_available()", "device == 'cuda'"])
def test_an_option_of_a_package_for_cuda_alone(call: str, test: str) -> None:
    source = f"""
        import torch
        import products
        import cuequivariance_torch as cuet

        def make(device: str):
            return {call.format(test)}
        """
    check_noop(source, open_codes=["NPU270", "NPU510"], files={"products.py": FUSED})


@pytest.mark.parametrize("call", ["Net(fused={})", "products.Products(pinned={})", "products.layer(fused={})"])
def test_an_option_that_no_kernel_for_cuda_asks(call: str) -> None:
    source = f"""
        import torch
        import products
        from net import Net

        def make(device: str):
            return {call.format("device == 'cuda'")}
        """
    net = "class Net:\n    def __init__(self, fused):\n        self.fast = fused\n"
    assert b"device == 'npu'" in migrate(source, files={"products.py": FUSED, "net.py": net}).data


# --- guards of packages without a version for NPUs -----------------------------------------------------------------

TRIED = """
        import importlib.util
        import unittest
        import pytest
        import torch
        try:
            import cupy
            from openequivariance import TensorProduct
            HAS_OEQ = True
        except ImportError:
            cupy, HAS_OEQ = None, False
        HAS_CUPY = cupy is not None
        HAS_CUET = importlib.util.find_spec("cuequivariance_torch") is not None

"""


@pytest.mark.parametrize(
    "guard",
    [
        'FAST = torch.cuda.is_available() and importlib.util.find_spec("cupy") is not None',
        "FAST = HAS_OEQ and torch.cuda.is_available()",
        "FAST = torch.cuda.is_available() and cupy is not None",
        "FAST = HAS_CUET and torch.cuda.device_count() > 0",
        'mark = pytest.mark.skipif(cupy is None or not torch.cuda.is_available(), reason="cupy")',
        "try:\n    import spconv\n    FAST = torch.cuda.is_available()\nexcept ImportError:\n    FAST = False",
        "def fast():\n    try:\n        import spconv\n    except ImportError:\n        return False\n"
        "    return torch.cuda.is_available()",
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="card")\nclass TestFast:\n'
        "    def test(self):\n        cupy.zeros(1)",
        '@pytest.mark.parametrize("kernel", ["oeq"] if HAS_OEQ else [])\n'
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="card")\n'
        'def test_fast(kernel):\n    assert kernel == "oeq"',
        'card = pytest.mark.skipif(not torch.cuda.is_available(), reason="card")\n\n'
        "@card\ndef test_fast():\n    cupy.zeros(1)",
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="card")\n'
        "def test_fast():\n    assert torch.cuda.is_available()\n    cupy.zeros(1)",
        "class Fast(unittest.TestCase):\n    def test(self):\n        if not torch.cuda.is_available():\n"
        "            self.skipTest('card')\n        cupy.zeros(1)",
    ],
)
@pytest.mark.parametrize("style", ["npu", "portable"])
def test_a_guard_of_a_package_that_npus_lack(guard: str, style: str) -> None:
    source = clean(TRIED) + guard + "\n"
    result = migrate(source, style=style)
    said = [each.code for each in result.findings if not each.applied]
    assert result.data.decode() == source and "NPU270" in said and "NPU279" not in said


@pytest.mark.parametrize(
    "guard",
    [
        "SLOW = torch.cuda.is_available() and not HAS_OEQ",
        "EITHER = torch.cuda.is_available() or HAS_OEQ",
        "def card():\n    try:\n        import spconv\n    except ImportError:\n        spconv = None\n"
        "    return torch.cuda.is_available()",
        "def card():\n    import spconv\n    on = torch.cuda.is_available()\n    return on, spconv",
        'FAST = torch.cuda.is_available() and importlib.util.find_spec("einops") is not None',
        "again = HAS_OEQ\nagain = again and again is not None\nif torch.cuda.is_available():\n    print(again)",
        '@pytest.mark.skipif(not torch.cuda.is_available(), reason="card")\nclass TestCard:\n'
        '    def test(self):\n        torch.zeros(1, device="cuda")',
        'card = pytest.mark.skipif(not torch.cuda.is_available(), reason="card")\n\n'
        "@card\ndef test_fast():\n    cupy.zeros(1)\n\n@card\ndef test_card():\n    torch.zeros(1).cuda()",
    ],
)
def test_a_guard_that_lets_npus_in(guard: str) -> None:
    assert b"torch.npu.is_available()" in migrate(clean(TRIED) + guard + "\n").data
