"""A loader over the stand-in MNIST feeds a convolution net on npu."""

import torch
import torch.nn as nn
from torchvision import datasets, transforms

data = datasets.MNIST("nowhere", train=True, download=True, transform=transforms.ToTensor())
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, 10)).npu()
opt = torch.optim.SGD(net.parameters(), 0.1)
seen = 0
for x, y in torch.utils.data.DataLoader(data, batch_size=64):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x.npu()), y.npu())
    loss.backward()
    opt.step()
    seen += len(x)
assert loss.device.type == "npu" and loss.isfinite()
print(f"stubs: {seen} synthetic images seen")
