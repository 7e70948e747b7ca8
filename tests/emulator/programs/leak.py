"""Memory of 6,000 training steps stays flat."""

import sys

import torch


def rss_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4 // 1024


x = torch.randn(64, 64).npu()
m = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).npu()
o = torch.optim.Adam(m.parameters())
seen = []
for i in range(6001):
    o.zero_grad()
    loss = (m(x) ** 2).mean()
    loss.backward()
    o.step()
    x.add_(0.0)
    if i % 2000 == 0:
        seen.append(rss_mb())
grown = seen[-1] - seen[0]
print(f"leak: {grown} MB grown in 6000 steps; RSS {seen}")
sys.exit(grown > 10)
