# distributed: left
# start: no (sharded parameters are not alike on the ranks)
import functools
import os
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl")
    torch.cuda.set_device(local_rank)
    x = torch.randn(64, 4)
    dataset = TensorDataset(x, x)
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset, shuffle=True))
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 4)).to(local_rank)
    policy = functools.partial(size_based_auto_wrap_policy, min_num_params=100)
    model = FSDP(model, auto_wrap_policy=policy)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=0.1)
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a.to(local_rank)), b.to(local_rank))
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
