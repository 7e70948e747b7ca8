"""Operators that torch_npu has no kernel for, among some that it has."""

import torch
import torch_npu  # noqa: F401

x = torch.rand(3, 3).npu()
s = x @ x.T + torch.eye(3).npu()
torch.lgamma(x)
torch.digamma(x)
torch.linalg.eigh(s)
torch.linalg.cholesky(s)
torch.svd(x)
torch.fft.fft(x)
torch.nn.functional.fractional_max_pool2d(torch.rand(1, 1, 8, 8).npu(), 2, output_size=3)
torch.nn.functional.pixel_shuffle(torch.rand(1, 4, 2, 2).npu(), 2)
