# distributed: left
# start: no (the package is missing)
import ignite.distributed as idist
import torch
from torch import nn
from torch.utils.data import TensorDataset


def training(local_rank, config):
    device = idist.device()
    x = torch.randn(64, 4)
    loader = idist.auto_dataloader(TensorDataset(x, x.abs()), batch_size=config["batch_size"], shuffle=True)
    model = idist.auto_model(nn.Linear(4, 4).cuda())
    optimizer = idist.auto_optim(torch.optim.SGD(model.parameters(), lr=0.1))
    for epoch in range(2):
        for a, b in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(a.to(device)), b.to(device))
            loss.backward()
            optimizer.step()
        if idist.get_rank() == 0:
            print(epoch, loss.item())


if __name__ == "__main__":
    with idist.Parallel(backend="nccl", nproc_per_node=2) as parallel:
        parallel.run(training, {"batch_size": 8})
