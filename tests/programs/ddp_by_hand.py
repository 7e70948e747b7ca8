# distributed: left
# run: --batch 8
import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
args = parser.parse_args()

dist.init_process_group(backend="nccl")
torch.cuda.set_device(args.local_rank)
device = torch.device("cuda", args.local_rank)
x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
train_set = TensorDataset(x, x.sum(1, keepdim=True))
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, batch_size=args.batch, sampler=sampler)
model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))).to(device)
model = DistributedDataParallel(model, device_ids=[args.local_rank], output_device=args.local_rank)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for a, b in loader:
        loss = nn.functional.mse_loss(model(a.to(device)), b.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        print(epoch, mean.item() / dist.get_world_size())
        torch.save(model.module.state_dict(), "model.pt")
dist.barrier()
dist.destroy_process_group()
