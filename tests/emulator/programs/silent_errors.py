"""Calls that meet the condition of a known silent error, and calls beside them that do not: each has its line."""

import torch
import torch.nn.functional as F
import torch_npu

x = torch.randn(2, 4).npu()
F.gelu(x)  # known
F.gelu(x, approximate="tanh")
torch.nn.GELU()(x)  # known
for _ in range(3):
    F.gelu(x, approximate="none")  # known
q = torch.randn(1, 1, 4, 16).npu()
causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1).npu()
closed = torch.ones(4, 4, dtype=torch.bool).npu()
torch_npu.npu_fusion_attention(q, q, q, 1, "BNSD", atten_mask=causal)
torch_npu.npu_fusion_attention(q, q, q, 1, "BNSD", atten_mask=closed)  # known
torch_npu.npu_fusion_attention(q, q, q, 1, "BNSD", atten_mask=closed, inner_precise=2)
torch_npu.npu_fusion_attention(q, q, q, 1, "BNSD")
