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
from transplt.files.python_in import other_facts
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
