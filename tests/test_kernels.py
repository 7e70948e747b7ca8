"""The catalogue of CUDA operators: what it holds, and by which names an operator is known."""

from __future__ import annotations

import re

import pytest

from transplt.base.settings import TORCH_VERSIONS
from transplt.engine.analysis.known import facts_of, resolved
from transplt.engine.analysis.native import findings_of
from transplt.rules.kernels import kernel_called, kernel_in_module, kernels
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of


def test_every_row_is_whole() -> None:
    rows = kernels()
    names = [row["name"] for row in rows]
    assert len(names) == len(set(names)) >= 70
    for row in rows:
        assert set(row) == {"name", "operators", "modules", "cuda", "npu", "differs", "source"}, row["name"]
        assert row["operators"] and row["differs"] and row["source"] and "(" in row["cuda"], row["name"]
        assert kernel_called(row["name"]) is row, row["name"]


def test_operators_of_torch_npu_exist() -> None:
    """Each name below torch_npu that the catalogue gives is in the wheel of the newest torch."""
    table = read_table("support/npu_names.json")
    newest = [names for span, names in table["names"].items() if TORCH_VERSIONS[-1] in versions_of(span)]
    there = {name for names in newest for name in names}
    said = {name for row in kernels() for call in row["npu"] for name in re.findall(r"torch_npu\.npu_\w+(?=\()", call)}
    assert len(said) > 20
    assert said - there == set()


CALLED = [
    ("ms_deform_attn_forward", "multi_scale_deformable_attn"),
    ("MSDeformAttnFunction", "multi_scale_deformable_attn"),
    ("ms_deformable_im2col_gpu_kernel", "multi_scale_deformable_attn"),
    ("boxes_iou_bev_gpu", "iou3d"),
    ("nms_normal_gpu", "nms3d_normal"),
    ("points_in_boxes_gpu", "points_in_boxes"),
    ("farthest_point_sampling_wrapper", "furthest_point_sample"),
    ("ball_query_wrapper_fast", "ball_query"),
    ("three_nn_wrapper_fast", "three_nn"),
    ("three_interpolate_grad_wrapper", "three_interpolate"),
    ("group_points_grad_wrapper_fast", "group_points"),
    ("hard_voxelize_forward", "voxelization"),
    ("upfirdn2d_op", "upfirdn2d"),
    ("fused_bias_act", "fused_bias_leaky_relu"),
    ("selective_scan_fwd", "selective_scan"),
    ("dcn_v2_forward", "modulated_deform_conv2d"),
    ("ROIAlignRotated_forward_cuda", "roi_align_rotated"),
    ("nms_rotated_cuda", "nms_rotated"),
    ("corr_index_cuda_forward", "correlation"),
    ("multi_tensor_l2norm", "multi_tensor_apply"),
    ("scaled_masked_softmax_warp_forward", None),
    ("forward", None),
    ("forward_cuda", None),
    ("fwd", None),
    ("adam", None),
    ("lookup_kernel", None),
    ("main", None),
    ("", None),
    ("my_nms_tool", None),
]


@pytest.mark.parametrize(("name", "kernel"), CALLED)
def test_names_of_operators(name: str, kernel: str | None) -> None:
    row = kernel_called(name)
    assert (row and row["name"]) == kernel


@pytest.mark.parametrize(
    ("module", "kernel"),
    [
        ("MultiScaleDeformableAttention", "multi_scale_deformable_attn"),
        ("pkg.ops.roiaware_pool3d_ext", "roiaware_pool3d"),
        ("iou3d_nms_cuda", None),  # several operators
        ("numpy", None),
    ],
)
def test_names_of_modules(module: str, kernel: str | None) -> None:
    row = kernel_in_module(module)
    assert (row and row["name"]) == kernel


def test_explained() -> None:
    assert resolved("ms_deform_attn_forward") == "ms_deform_attn_forward"
    texts = [fact.text for fact in facts_of("three_nn") if fact.topic == "Kernel"]
    assert any("mx_driving.three_nn" in text for text in texts)
    texts = [fact.text for fact in facts_of("selective_scan_fn") if fact.topic == "Kernel"]
    assert any("no such operator" in text for text in texts)


@pytest.mark.parametrize(
    ("source", "path", "says"),
    [
        (b'PYBIND11_MODULE(x, m) { m.def("three_nn_wrapper", &f, ""); }', "a.cpp", "mx_driving.three_nn"),
        (b"__global__ void three_nn_kernel_fast(int b) {}", "x.cu", "mx_driving.three_nn"),
        (b"__global__ void run(int b) {}", "ops/src/upfirdn2d.cu", "upfirdn2d_native"),
        (b"__global__ void run(int b) {}", "ops/mine.cu", "rewrite it for the NPU"),
        (b'PYBIND11_MODULE(x, m) { m.def("forward", &f); }', "a.cpp", "it contains no CUDA code"),
    ],
)
def test_sources_that_hold_a_known_operator(source: bytes, path: str, says: str) -> None:
    (found,) = findings_of(source, path)
    assert says in found.help
