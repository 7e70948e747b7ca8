"""Pictures of snapshots: torch_npu's module is a copy of PyTorch's."""

from torch.cuda import _memory_viz as _original

globals().update({name: value for name, value in vars(_original).items() if not name.startswith("__")})
