"""A single-card script that takes the model out of its wrapper in each way that programs have."""

import torch
from torch import nn
from torch.nn import DataParallel
from torch.utils.data import DataLoader, TensorDataset


def is_parallel(net):
    return type(net) in (nn.DataParallel,)


WRAPPERS = (nn.DataParallel,)


def unwrap(net):
    if isinstance(net, WRAPPERS):
        return net.module
    return net


def unwrap_all(net):
    while hasattr(net, "module"):
        net = net.module
    return net


class Saver:
    def __init__(self, net):
        self.net = net

    def state(self):
        net = self.net
        return (net.module if hasattr(net, "module") else net).state_dict()


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(8, 2), torch.randn(8, 1)), batch_size=2)
    model = nn.Linear(2, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = {}
    for _ in range(2):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        found["hasattr"] = model.module if hasattr(model, "module") else model
        found["getattr"] = getattr(model, "module", model)
        found["isinstance"] = model.module if isinstance(model, nn.DataParallel) else model
        found["tuple"] = model.module if isinstance(model, (DataParallel, nn.Sequential)) else model
        found["variable"] = model.module if isinstance(model, WRAPPERS) else model
        found["type"] = model.module if type(model) is nn.DataParallel else model
        found["name"] = model.module if type(model).__name__ == "DataParallel" else model
        found["function"] = model.module if is_parallel(model) else model
        found["helper"] = unwrap(model)
        found["all"] = unwrap_all(model)
        found["cards"] = model.module if torch.cuda.device_count() > 9 else model
        if not isinstance(model, nn.DataParallel):
            found["not"] = model
        else:
            found["not"] = model.module
        other = model
        if hasattr(other, "module"):
            other = other.module
        either = model
        if type(model) is DataParallel:
            either = model.module
        states = {name: net.state_dict() for name, net in found.items()}
        states = {"other": other.state_dict(), "either": either.state_dict(), **states}
        states["saver"] = Saver(model).state()
    if hasattr(model, "module"):
        model = model.module
    states["last"] = model.state_dict()
    torch.save(states, "model.pt")
    for name, state in torch.load("model.pt", map_location="cpu").items():
        print(name, *state)


if __name__ == "__main__":
    main()
