"""safetensors files are written from npu tensors and read onto npu:0."""

import os
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file

f = os.path.join(tempfile.mkdtemp(), "a.safetensors")
save_file({"a": torch.arange(3.0).npu()}, f)
ok = 0
for want, kw in (("npu:0", {"device": "npu:0"}), ("cpu", {})):
    try:
        a = load_file(f, **kw)["a"]
        good = str(a.device) == want and a.tolist() == [0, 1, 2]
        print(want, a.device)
        ok += good
    except Exception as e:
        print(want, type(e).__name__, str(e)[:120])
print(f"safetensors: {ok}/2")
sys.exit(ok != 2)
