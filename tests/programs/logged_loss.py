# distributed: converts
# same with W processes: yes
# amp: converts
# apex: refused or converts (gradients are read)
# run: --batch {batch}
import argparse
import logging

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--print-freq", type=int, default=3)
args = parser.parse_args()

logging.basicConfig(filename="train.log", level=logging.INFO)
log = logging.getLogger("train")


def run_epoch(epoch, loader, model, criterion, optimizer):
    total, seen = 0.0, 0
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        gnorm = sum(p.grad.norm().item() ** 2 for p in model.parameters()) ** 0.5
        optimizer.step()
        total += loss.item() * x.size(0)
        seen += x.size(0)
        if step % args.print_freq == 0:
            log.info("epoch %d step %d loss %.4f grad %.3f", epoch, step, loss.item(), gnorm)
            print(f"epoch {epoch} step {step} loss {loss.item():.4f} gnorm {gnorm:.3f}")
    return total / seen


if __name__ == "__main__":
    gen = torch.Generator().manual_seed(3)
    x = torch.randn(64, 5, generator=gen)
    data = TensorDataset(x, x @ torch.arange(5.0).unsqueeze(1))
    loader = DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        avg = run_epoch(epoch, loader, model, nn.MSELoss(), optimizer)
        log.info("epoch %d average %.5f", epoch, avg)
