# distributed: converts
# same with W processes: yes
# amp: converts
# apex: refused (one function makes both optimizers, and amp.initialize is called once)
# apex O1: refused (the same)
"""Two networks whose optimizers are made by name: one from a table, one from what a setting holds."""
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

MAKERS = {"sgd": optim.SGD, "adam": optim.Adam}
settings = dict(lr=0.05, name="adam", maker=optim.SGD, steps=8)


def forever(loader):
    while True:
        yield from loader


def network(name):
    net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1)).cuda()
    maker = MAKERS[name] if name else settings["maker"]
    return net, maker(net.parameters(), lr=settings["lr"])


torch.manual_seed(0)
first, first_opt = network(settings["name"])
second = nn.Linear(6, 1).cuda()
second_opt = settings["maker"](second.parameters(), lr=settings["lr"])
drawn = torch.Generator().manual_seed(1)
data = TensorDataset(torch.randn(64, 6, generator=drawn), torch.randn(64, 1, generator=drawn))
batches = forever(DataLoader(data, batch_size=8, shuffle=False))
count = 0
while count < settings["steps"]:
    x, y = (each.cuda() for each in next(batches))
    loss = nn.functional.mse_loss(first(x), y)
    first_opt.zero_grad()
    loss.backward()
    first_opt.step()
    other = nn.functional.l1_loss(second(x), y)
    second_opt.zero_grad()
    other.backward()
    second_opt.step()
    count += 1
print(float(loss), float(other))
