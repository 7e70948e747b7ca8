"""Train a small network in mixed precision, by one process or by several."""

import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

from model import Net, batches, peak, to_card

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--checkpoint", default="net.pt")
args = parser.parse_args()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if args.device != "cpu" and torch.cuda.is_available() else "cpu")
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))

    model = Net().to(device)
    if ranks > 1:
        torch.cuda.set_device(local_rank)
        dist.init_process_group(backend="nccl")
        device = torch.device(f"cuda:{local_rank}")
        model = DistributedDataParallel(model.to(device), device_ids=[local_rank])

    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.cuda.amp.GradScaler(enabled=device.type == "cuda")
    for step, pair in enumerate(batches(args.steps, 8, seed=rank)):
        inputs, targets = to_card(pair)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(enabled=device.type == "cuda"):
            loss = F.mse_loss(model(inputs), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if rank == 0:
            print(f"step {step}: loss {loss.item():.4f}")

    if rank == 0:
        net = model.module if ranks > 1 else model
        torch.save(net.state_dict(), args.checkpoint)
        again = Net()
        where = "cuda:0" if device.type == "cuda" else "cpu"
        again.load_state_dict(torch.load(args.checkpoint, map_location=where))
        again.to(device).eval()
        with torch.no_grad():
            inputs, _ = next(batches(1, 8, seed=99))
            print(f"mean of the answers {again(inputs.to(device)).mean().item():.4f}")
        print(f"peak memory known: {peak() >= 0}")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
