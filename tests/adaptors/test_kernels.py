"""The adaptor `kernels`: functions of compiled modules come from npu_port where all that a file calls is said."""

from __future__ import annotations

import ast

import pytest

from tests.adaptors.adapted import check_adapted, check_not_adapted, offered
from tests.harness import clean, migrate
from transplt.base.finding import FileResult
from transplt.base.settings import Settings
from transplt.base.text.kernel_sources import is_kernel_source
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.python_in import other_facts
from transplt.flow.facts import ProjectFacts
from transplt.rules.kernel_functions import compiled_modules, kernel_functions


def test_calls_of_a_module_and_its_import() -> None:
    check_adapted(
        "kernels",
        """
        import torch
        from torch.autograd import Function

        import iou3d_cuda


        def overlaps(a, b):
            found = torch.zeros(len(a), len(b))
            iou3d_cuda.boxes_overlap_bev_gpu(a.contiguous(), b.contiguous(), found)
            return found
        """,
        """
        import torch
        from torch.autograd import Function

        import npu_port


        def overlaps(a, b):
            found = torch.zeros(len(a), len(b))
            npu_port.boxes_overlap_bev_gpu(a.contiguous(), b.contiguous(), found)
            return found
        """,
    )


def test_a_try_that_only_says_that_the_import_failed_goes_with_it() -> None:
    check_adapted(
        "kernels",
        """
        import torch

        try:
            import pointnet2._ext as _ext
        except ImportError:
            raise ImportError("build pointnet2 first")


        class Gather(torch.autograd.Function):
            @staticmethod
            def forward(ctx, features, idx):
                ctx.save_for_backward(idx)
                ctx.size = features.size(2)
                return _ext.gather_points(features, idx)

            @staticmethod
            def backward(ctx, grad):
                (idx,) = ctx.saved_tensors
                return _ext.gather_points_grad(grad.contiguous(), idx, ctx.size), None
        """,
        """
        import torch

        import npu_port


        class Gather(torch.autograd.Function):
            @staticmethod
            def forward(ctx, features, idx):
                ctx.save_for_backward(idx)
                ctx.size = features.size(2)
                return npu_port.gather_points(features, idx)

            @staticmethod
            def backward(ctx, grad):
                (idx,) = ctx.saved_tensors
                return npu_port.gather_points_grad(grad.contiguous(), idx, ctx.size), None
        """,
    )


def test_flags_that_say_that_there_is_one_stay() -> None:
    for flagged in (
        "try:\n    import iou3d_cuda\n    HAS_CUDA = True\nexcept ImportError:\n    HAS_CUDA = False\n",
        "try:\n    import iou3d_cuda\nexcept ImportError:\n    HAS_CUDA = False\nelse:\n    HAS_CUDA = True\n",
    ):
        source = "import torch\n\n{}\n\ndef f(a, b, c):\n    if HAS_CUDA:\n        {}.boxes_overlap_bev_gpu(a, b, c)\n"
        after = source.format("import npu_port\nHAS_CUDA = True\n", "npu_port")
        check_adapted("kernels", source.format(flagged, "iou3d_cuda"), after)


def test_an_import_below_the_functions_leaves_and_comes_in_above() -> None:
    check_adapted(
        "kernels",
        """
        import torch


        def overlaps(a, b, found):
            _C.box_iou_rotated(a, b)


        try:
            from boxes import _C
        except ImportError:
            overlaps = torch.zeros
        """,
        """
        import torch

        import npu_port


        def overlaps(a, b, found):
            npu_port.box_iou_rotated(a, b)
        """,
    )


def test_what_else_a_try_does_stays() -> None:
    called = "iou3d_cuda.boxes_overlap_bev_gpu(a, b, c)\n"
    source = f"try:\n    import iou3d_cuda\n    start()\nexcept ImportError:\n    pass\n\n{called}"
    result = migrate(source, helper_file=True, adapt=(("kernels", ""),))
    assert b"try:\n    start()\nexcept ImportError:\n    pass\n" in result.data
    caught = "try:\n    import iou3d_cuda\nexcept ImportError:\n    iou3d_cuda = None\n"
    source = f"{caught}\nif iou3d_cuda is not None:\n    {called}"
    check_not_adapted("kernels", source, open_codes=["NPU553", "NPU880"])


def test_a_module_that_is_built_when_the_program_runs() -> None:
    check_adapted(
        "kernels",
        """
        from torch.utils.cpp_extension import load

        upfirdn2d_op = load("upfirdn2d", sources=["upfirdn2d.cpp", "upfirdn2d_kernel.cu"])


        def up(x, kernel):
            return upfirdn2d_op.upfirdn2d(x, kernel, 2, 2, 1, 1, 0, 0, 0, 0)
        """,
        """
        import npu_port


        def up(x, kernel):
            return npu_port.upfirdn2d(x, kernel, 2, 2, 1, 1, 0, 0, 0, 0)
        """,
    )


def test_a_module_that_a_loader_gives() -> None:
    check_adapted(
        "kernels",
        """
        from ..utils import ext_loader

        ext_module = ext_loader.load_ext("_ext", ["carafe_forward"])


        def forward(features, masks, rfeatures, routput, rmasks, output):
            ext_module.carafe_forward(features, masks, rfeatures, routput, rmasks, output, 5, 1, 2)
            return output
        """,
        """
        import npu_port


        def forward(features, masks, rfeatures, routput, rmasks, output):
            npu_port.carafe_forward(features, masks, rfeatures, routput, rmasks, output, 5, 1, 2)
            return output
        """,
        path="pkg/ops/carafe.py",
        files={"pkg/__init__.py": "", "pkg/ops/__init__.py": "", "main.py": "import pkg.ops.carafe\n"},
    )


def test_one_function_that_nothing_says_keeps_the_module() -> None:
    source = """
    import iou3d_cuda


    def f(a, b, c):
        iou3d_cuda.boxes_overlap_bev_gpu(a, b, c)
        return iou3d_cuda.of_our_own(a)
    """
    result = check_not_adapted("kernels", source, open_codes=["NPU553", "NPU880"])
    (remark,) = [finding for finding in result.findings if finding.code == "NPU880"]
    assert remark.message == "iou3d_cuda stays for of_our_own" and not remark.open


def test_another_number_of_arguments_is_another_function() -> None:
    source = "import iou3d_cuda\n\niou3d_cuda.boxes_overlap_bev_gpu(a, b, c, 3, 4)\n"
    check_not_adapted("kernels", source, open_codes=["NPU553"])
    check_not_adapted("kernels", "import iou3d_cuda\n\niou3d_cuda.boxes_overlap_bev_gpu(*all)\n", open_codes=["NPU553"])


def test_a_module_of_the_project_in_python_stays() -> None:
    check_not_adapted(
        "kernels",
        "import iou3d_cuda\n\niou3d_cuda.boxes_overlap_bev_gpu(a, b, c)\n",
        files={"iou3d_cuda.py": "def boxes_overlap_bev_gpu(a, b, c):\n    pass\n"},
    )


def test_a_module_that_goes_on_to_others_stays() -> None:
    for source in (
        "import iou3d_cuda\n\niou3d_cuda.boxes_overlap_bev_gpu(a, b, c)\nrun(iou3d_cuda)\n",
        "import iou3d_cuda\n\n__all__ = ['iou3d_cuda']\niou3d_cuda.boxes_overlap_bev_gpu(a, b, c)\n",
    ):
        check_not_adapted("kernels", source, open_codes=["NPU553", "NPU880"])


GUARDED = """
import torch
from torch.nn.functional import conv2d
from boxes import _C


def overlaps(a, b):
    if not a.is_cuda:
        return conv2d(a, b)
    return _C.{called}(a, b)
"""


def test_a_test_for_cuda_before_a_call_that_goes_is_one_for_the_npu() -> None:
    check_adapted(
        "kernels",
        GUARDED.format(called="box_iou_rotated"),
        """
        import torch
        import torch_npu  # noqa: F401
        from torch.nn.functional import conv2d
        import npu_port


        def overlaps(a, b):
            if not a.is_npu:
                return conv2d(a, b)
            return npu_port.box_iou_rotated(a, b)
        """,
    )


def test_a_test_for_cuda_before_a_call_that_stays_stays() -> None:
    check_not_adapted("kernels", GUARDED.format(called="of_our_own"), open_codes=["NPU270"])


def test_functions_that_are_imported_by_name() -> None:
    check_adapted(
        "kernels",
        """
        import torch

        from ._ext import gather_points, group_points as group


        def both(features, idx):
            return gather_points(features, idx), group(features, idx[..., None])
        """,
        """
        import torch

        import npu_port


        def both(features, idx):
            return npu_port.gather_points(features, idx), npu_port.group_points(features, idx[..., None])
        """,
        path="pkg/ops/points.py",
        files={"pkg/__init__.py": "", "pkg/ops/__init__.py": "", "main.py": "import pkg.ops.points\n"},
    )


def test_one_function_by_name_that_nothing_says_keeps_all() -> None:
    source = "import torch\n\nfrom ext._ext import gather_points, of_our_own\n\nx = gather_points(a, b)\n{}"
    check_not_adapted("kernels", source.format("of_our_own(x)\n"), open_codes=["NPU880"])
    check_not_adapted("kernels", source.format("run(gather_points)\ny = of_our_own\n"), open_codes=["NPU880"])


def test_tensors_that_a_function_saved() -> None:
    source = """
    import torch
    import lightconv_cuda


    class Convolved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weights, padding_l):
            ctx.padding_l = padding_l
            variables = [x, weights]
            ctx.save_for_backward(*variables)
            return lightconv_cuda.forward(x, weights, padding_l)[0]

        @staticmethod
        def backward(ctx, grad):
            first, second = lightconv_cuda.backward(grad.contiguous(), ctx.padding_l, *ctx.saved_tensors)
            return first, second, None
    """
    after = source.replace("import lightconv_cuda", "import npu_port")
    for way in ("forward", "backward"):
        after = after.replace(f"lightconv_cuda.{way}", f"npu_port.lightconv_{way}")
    check_adapted("kernels", source, after)
    for old, new in (("[x, weights]", "[x, weights, x]"), ("(*variables)", "(*variables, *both())")):
        check_not_adapted("kernels", source.replace(old, new), open_codes=["NPU553", "NPU880"])


def test_arguments_that_are_put_together_beside_the_call() -> None:
    source = """
    import iou3d_cuda


    def overlaps(a, b, found):
        given = [a, b]
        named = {"ans_overlap": found}
        iou3d_cuda.boxes_overlap_bev_gpu(*given, **named)
    """
    check_adapted("kernels", source, source.replace("iou3d_cuda.", "npu_port.").replace("iou3d_cuda", "npu_port"))
    for other in (
        source.replace("given = [a, b]", "given = [a, b]\n        given.append(1)"),
        source.replace("given = [a, b]", "given = [a]"),
        source.replace("[a, b]", "list(a)"),
        source.replace('"ans_overlap"', '"of_another"'),
    ):
        check_not_adapted("kernels", other, open_codes=["NPU553"])


OPERATOR = "import torch\n\n\ndef keep(boxes, scores):\n    return torch.ops.detectron2.{}(boxes, scores, 0.5)\n"
REGISTERS = "import torch\nfrom detectron2 import _C\n\n\ndef overlaps(a, b):\n    return _C.box_iou_rotated(a, b)\n"


def test_operators_that_a_module_registers() -> None:
    check_adapted(
        "kernels", OPERATOR.format("nms_rotated"),
        """
        import torch

        import npu_port


        def keep(boxes, scores):
            return npu_port.nms_rotated(boxes, scores, 0.5)
        """,
    )  # fmt: skip
    for source in (OPERATOR.format("of_our_own"), OPERATOR.format("nms_rotated").replace("detectron2", "torchvision")):
        check_not_adapted("kernels", source)


def test_the_import_that_registers_them_stays_where_one_is_called() -> None:
    given = {"path": "boxes.py", "helper_file": True, "adapt": (("kernels", ""),)}
    for called, goes in (("nms_rotated", True), ("of_our_own", False)):
        files = {"keep.py": OPERATOR.format(called), "train.py": "import boxes\nimport keep\n"}
        result = migrate(REGISTERS, files=files, **given)
        assert (b"_C" not in result.data) is goes


def test_a_file_that_handles_the_npu_stays_and_says_what_is_for_cuda() -> None:
    check_not_adapted(
        "kernels",
        """
        import torch
        import torch_npu
        import iou3d_cuda


        def overlaps(a, b, found):
            if a.device.type == "npu":
                return torch_npu.npu_rotated_iou(a, b)
            iou3d_cuda.boxes_overlap_bev_gpu(a, b, found)
            return found


        device = "npu" if torch.npu.is_available() else "cuda"
        """,
        open_codes=["NPU200"],
    )


SETUP = """
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="ops",
    ext_modules=[
        CUDAExtension("iou3d_cuda", ["src/iou3d.cpp", "src/iou3d_kernel.cu"]),
        CUDAExtension("own_cuda", ["src/own.cpp", "src/own_kernel.cu"]),
    ],
    cmdclass={"build_ext": BuildExtension},
)
"""
USER = "import iou3d_cuda\n\niou3d_cuda.boxes_overlap_bev_gpu(a, b, c)\n"


def test_the_build_of_what_nothing_needs_goes() -> None:
    files = {"ops.py": USER, "own.py": "import own_cuda\n\nown_cuda.run()\n"}
    result = migrate(SETUP, path="setup.py", files=files, helper_file=True, adapt=(("kernels", ""),))
    assert b"iou3d" not in result.data and b"own_cuda" in result.data and b"CUDAExtension" in result.data
    result = migrate(
        SETUP.replace('        CUDAExtension("own_cuda", ["src/own.cpp", "src/own_kernel.cu"]),\n', ""),
        path="setup.py", files={"ops.py": USER}, helper_file=True, adapt=(("kernels", ""),),
    )  # fmt: skip
    assert b"ext_modules=[]," in result.data and b"CUDAExtension" not in result.data
    assert [finding for finding in result.findings if finding.open] == []


def test_the_build_stays_where_a_file_handles_the_npu_by_itself() -> None:
    chooses = "import torch\n\ndevice = 'npu' if torch.npu.is_available() else 'cuda'\n"
    files = {"ops.py": USER, "other.py": f"{chooses}{USER}"}
    result = migrate(SETUP, path="setup.py", files=files, helper_file=True, adapt=(("kernels", ""),))
    assert result.data == clean(SETUP).encode()


def test_the_build_of_what_one_file_needs_stays() -> None:
    files = {"ops.py": USER, "other.py": "import iou3d_cuda\n\niou3d_cuda.of_our_own()\n"}
    result = migrate(SETUP, path="setup.py", files=files, helper_file=True, adapt=(("kernels", ""),))
    assert result.data == clean(SETUP).encode()


def test_it_is_offered_where_the_whole_module_would_go() -> None:
    assert offered(USER) == [("NPU553", 1, "kernels")]
    assert offered(f"{USER}iou3d_cuda.of_our_own()\n") == []


def test_each_row_names_a_module_and_functions_once() -> None:
    for modules in compiled_modules().values():
        for rows in modules.values():
            counts = [len(row.arguments) for row in rows if row.helper]
            assert len(counts) == len({*counts}), rows
    assert all(row.source for row in kernel_functions())


_QUERY = """
from . import pointnet2_stack_cuda


def query(m, z, y, x, n, radius, xyz, new, at, points, idx):
    pointnet2_stack_cuda.voxel_query_wrapper(m, z, y, x, n, radius, 2, 2, 2, new, xyz, at, points, idx)
"""
_ON_THE_RADIUS = """
// with float radius2 = radius * radius
if (dist2  >  radius2) continue;
if (dist2 > radius2)
    continue;  // curand_uniform(&state)
"""


def _with_sources(sources: dict[str, str], *, asked: bool = True) -> FileResult:
    path = "pkg/ops/stack/voxel_query.py"
    settings = Settings(helper_file=True, adapt=(("kernels", ""),) if asked else ())
    text = clean(_QUERY).encode()
    others = {"main.py": b"import pkg.ops.stack.voxel_query\n", "pkg/__init__.py": b"", "pkg/ops/__init__.py": b"",
              "pkg/ops/stack/__init__.py": b""}  # fmt: skip
    facts = [index_source(each, name, settings) for name, each in {path: text, **others}.items()]
    facts += [found for name, each in sources.items() if (found := other_facts(each.encode(), name, settings))]
    return migrate_source(text, path, settings, ProjectFacts.join(facts))


def test_a_source_says_which_version_of_a_kernel_it_holds() -> None:
    result = _with_sources({"pkg/ops/stack/src/voxel_query_gpu.cu": _ON_THE_RADIUS})
    assert b"npu_port.voxel_query_wrapper(m, z, y, x, n, radius" in result.data
    assert b"pointnet2_stack_cuda" not in result.data


def test_without_a_source_that_says_it_the_module_stays() -> None:
    said = "pkg/ops/stack/src/voxel_query_gpu.cu"
    for sources in (
        {},
        {said: "if (dist2 >= radius2) continue;"},
        {said: "// if (dist2 > radius2) continue;"},
        {said: _ON_THE_RADIUS + "float rnd = curand_uniform(&state);"},
        {"pkg/ops/other/src/voxel_query_gpu.cu": _ON_THE_RADIUS},
        {said: _ON_THE_RADIUS, "pkg/ops/stack/old/voxel_query_gpu.cu": "if (dist2 >= radius2) continue;"},
    ):
        result = _with_sources(sources)
        assert result.data == clean(_QUERY).encode(), sources
    assert _with_sources({said: _ON_THE_RADIUS}, asked=False).data == clean(_QUERY).encode()


def test_the_sources_that_are_asked_are_those_of_the_tables() -> None:
    named = {each.named for row in kernel_functions() for each in row.variants}
    assert named and all(is_kernel_source(f"src/{name}") for name in named)


@pytest.mark.parametrize("head", ["", '"""Overlaps."""\n\nimport torch\n\n', "import torch\n"])
def test_functions_of_the_same_names_stand_in_a_file_without_a_project(head: str) -> None:
    source = f"{head}from . import iou3d_cuda\n\n\ndef over(a, b, c):\n    iou3d_cuda.boxes_overlap_bev_gpu(a, b, c)\n"
    text = migrate(source, adapt=(("kernels", ""),)).data.decode()
    tree = ast.parse(text)
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    assert names[-2:] == ["boxes_overlap_bev_gpu", "over"] and "pair_overlaps" in names
    assert text.count("import torch\n") == 1 and "iou3d_cuda" not in text.rpartition("def over")[2]
