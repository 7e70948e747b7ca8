# distributed: converts
# same with W processes: yes
# amp: refused (the step is given a closure)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

gen = torch.Generator().manual_seed(11)
x = torch.randn(64, 3, generator=gen)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
net = nn.Linear(3, 1).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.05)

for epoch in range(2):
    for i, (xs, ys) in enumerate(loader):
        xs, ys = xs.cuda(), ys.cuda()

        def closure():
            opt.zero_grad()
            loss = nn.functional.mse_loss(net(xs), ys)
            loss.backward()
            return loss

        print(i, opt.step(closure).item())
