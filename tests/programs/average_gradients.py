# distributed: left
# start: itself
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def average_gradients(model):
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= float(dist.get_world_size())


def run(rank, size):
    torch.manual_seed(1234)
    device = torch.device(f"cuda:{rank}")
    x = torch.randn(64, 3)[rank::size]
    model = nn.Linear(3, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for epoch in range(2):
        for data in x.split(8):
            optimizer.zero_grad()
            loss = (model(data.to(device)) - data.sum(1, keepdim=True).to(device)).pow(2).mean()
            loss.backward()
            average_gradients(model)
            optimizer.step()
        print('Rank ', rank, ', epoch ', epoch, ': ', loss.item())


def init_process(rank, size, fn, backend='nccl'):
    os.environ['MASTER_ADDR'] = '127.0.0.1'
    os.environ['MASTER_PORT'] = '29571'
    torch.cuda.set_device(rank)
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    size = 2
    processes = []
    mp.set_start_method("spawn")
    for rank in range(size):
        p = mp.Process(target=init_process, args=(rank, size, run))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
