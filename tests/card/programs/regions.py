"""Aligned regions of images (npu_roi_align), whose gradient is the transposed map."""

from __future__ import annotations

import torch
import torch_npu

torch.manual_seed(0)
images = torch.randn(2, 3, 7, 9).npu()
regions = torch.tensor([[0.0, 1.0, 2.0, 9.0, 7.5], [1.0, -3.0, 0.0, 30.0, 4.0], [1.0, 4.0, 4.0, 4.5, 4.25]]).npu()

for end_mode in range(4):
    for samples in (0, 2):
        found = torch_npu.npu_roi_align(images, regions, 0.5, 3, 2, samples, end_mode)
        assert found.shape == (3, 3, 3, 2)
        level = torch_npu.npu_roi_align(torch.ones_like(images), regions[:1], 0.5, 3, 2, samples, end_mode)
        assert torch.allclose(level.cpu(), torch.ones(1, 3, 3, 2)), "the first region lies inside"
        grad = torch.randn(found.shape).npu()
        back = torch_npu.npu_roi_alignbk(grad, regions, images.shape, 2, 3, 0.5, samples, roi_end_mode=end_mode)
        assert torch.allclose((found * grad).sum().cpu(), (images * back).sum().cpu(), rtol=1e-4), (end_mode, samples)

# A ramp is what its coordinates say: the mean of a cell is its middle.
ramp = torch.arange(9.0).expand(1, 1, 7, 9).contiguous().npu()
inner = torch.tensor([[0.0, 1.0, 1.0, 5.0, 5.0]]).npu()
for end_mode, middles in ((0, [2.0, 4.0]), (1, [2.25, 4.75]), (2, [1.5, 3.5])):
    cells = torch_npu.npu_roi_align(ramp, inner, 1.0, 1, 2, 2, end_mode)
    assert torch.allclose(cells.cpu().reshape(2), torch.tensor(middles)), (end_mode, cells)
