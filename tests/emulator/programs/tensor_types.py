"""torch.npu.FloatTensor and the like: shapes, values, casts and questions, as on a card."""

import torch
import torch_npu  # noqa: F401

kinds = torch.npu
assert kinds.FloatTensor(2, 3).shape == (2, 3)
assert kinds.ByteTensor(torch.Size([2, 3])).shape == (2, 3)
assert kinds.LongTensor(range(3)).tolist() == [0, 1, 2]
assert kinds.FloatTensor([1.0, 2.0]).device.type == "npu"
assert kinds.FloatTensor().numel() == 0
assert kinds.HalfTensor(torch.ones(2)).dtype == torch.float16
moved = torch.ones(2, dtype=torch.int64).type(kinds.FloatTensor)
assert moved.dtype == torch.float32 and moved.device.type == "npu"
assert torch.ones(2).type("torch.npu.LongTensor").dtype == torch.int64
assert torch.ones(2).type(torch.int32).dtype == torch.int32
assert torch.ones(2).type() == "torch.FloatTensor"
assert isinstance(moved, kinds.FloatTensor) and not isinstance(moved, kinds.LongTensor)
assert not isinstance(torch.ones(1), kinds.FloatTensor)
print("tensor types: ok")
