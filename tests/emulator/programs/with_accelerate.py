"""accelerate with MULTI_NPU in bf16.  usage: torchrun --standalone --nproc-per-node 2 hf_ddp.py"""

import math
import sys
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

acc = Accelerator(mixed_precision="bf16")
assert acc.device.type == "npu" and acc.num_processes == 2 and acc.distributed_type.name == "MULTI_NPU", (
    acc.device,
    acc.distributed_type,
)
m = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 2))
o = torch.optim.AdamW(m.parameters(), 1e-2)
ds = torch.utils.data.TensorDataset(torch.randn(32, 8), torch.randint(0, 2, (32,)))
dl = torch.utils.data.DataLoader(ds, batch_size=4, shuffle=True)
m, o, dl = acc.prepare(m, o, dl)
for x, y in dl:
    with acc.accumulate(m):
        loss = torch.nn.functional.cross_entropy(m(x), y)
        acc.backward(loss)
        acc.clip_grad_norm_(m.parameters(), 1.0)
        o.step()
        o.zero_grad()
losses = acc.gather(loss.detach()[None]).tolist()
assert len(losses) == 2 and all(map(math.isfinite, losses))
w = acc.unwrap_model(m)[0].weight.detach().clone()
both = acc.gather(w[None])
assert torch.equal(both[0], both[1]), "the ranks differ"
d = broadcast_object_list([tempfile.mkdtemp()])[0]
acc.save_state(d)
acc.wait_for_everyone()  # rank 1 reads what rank 0 writes
with torch.no_grad():
    acc.unwrap_model(m)[0].weight.zero_()
acc.load_state(d)
assert torch.equal(acc.unwrap_model(m)[0].weight, w)
sys.stdout.write(f"accelerate rank {acc.process_index}: ok, {acc.distributed_type.name}, {acc.device}\n")
sys.stdout.flush()
acc.wait_for_everyone()
acc.end_training()
