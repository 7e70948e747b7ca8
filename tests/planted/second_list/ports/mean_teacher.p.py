import argparse
import copy
import itertools

import torch
import torch_npu  # noqa: F401
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ap = argparse.ArgumentParser()
ap.add_argument("--epochs", type=int, default=3)
ap.add_argument("--ema", type=float, default=0.95)
ap.add_argument("--consistency", type=float, default=4.0)
ap.add_argument("--rampup", type=int, default=8)
ap.add_argument("--seed", type=int, default=None)
args = ap.parse_args()


def blobs(n, g):
    y = torch.randint(0, 3, (n,), generator=g)
    angle = y.float() * 2.1
    x = torch.stack([angle.cos(), angle.sin()], 1) * 1.5 + 0.5 * torch.randn(n, 2, generator=g)
    return TensorDataset(torch.cat([x, x ** 2], 1), y)


g = torch.Generator().manual_seed(0)
if args.seed is not None:
    torch.manual_seed(args.seed)
labeled, unlabeled, test = blobs(24, g), blobs(64, g), blobs(60, g)
labeled_loader = DataLoader(labeled, batch_size=8, shuffle=True)
unlabeled_loader = DataLoader(unlabeled, batch_size=8, shuffle=True)
test_loader = DataLoader(test, batch_size=30)

student = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3)).npu()
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3)
step = 0


def update_teacher():
    alpha = args.ema
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.mul_(alpha).add_(s, alpha=1 - alpha)


def accuracy(model):
    model.eval()
    good = 0
    with torch.no_grad():
        for x, y in test_loader:
            good += (model(x.npu()).argmax(1) == y.npu()).sum().item()
    model.train()
    return good / len(test)


for epoch in range(args.epochs):
    for (x, y), (u, _) in zip(itertools.cycle(labeled_loader), unlabeled_loader):
        x, y, u = x.npu(), y.npu(), u.npu()
        with torch.no_grad():
            target = teacher(u + 0.1 * torch.randn_like(u)).softmax(1)
        sup = F.cross_entropy(student(x), y)
        cons = F.mse_loss(student(u + 0.1 * torch.randn_like(u)).softmax(1), target)
        weight = args.consistency * min(1.0, step / args.rampup)
        loss = sup + weight * cons
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_teacher()
        step += 1
    print(f"epoch {epoch} loss {loss.item():.5f} student accuracy {accuracy(student):.4f} teacher accuracy {accuracy(teacher):.4f}")
torch.save(teacher.state_dict(), "teacher.pt")
