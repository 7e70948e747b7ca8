# distributed: left
# start: no (it needs a card of NVIDIA's apex)
import argparse
import os
import torch
from apex import amp
from apex.parallel import DistributedDataParallel as DDP
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=0, type=int)
args = parser.parse_args()
args.distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
if args.distributed:
    torch.cuda.set_device(args.local_rank)
    torch.distributed.init_process_group(backend="nccl", init_method="env://")
x, y = torch.randn(16, 4, device="cuda"), torch.randn(16, 1, device="cuda")
model = nn.Linear(4, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
if args.distributed:
    model = DDP(model)
loss_fn = nn.MSELoss()
for t in range(10):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    with amp.scale_loss(loss, optimizer) as scaled_loss:
        scaled_loss.backward()
    optimizer.step()
if args.local_rank == 0:
    print("final loss = ", loss)
