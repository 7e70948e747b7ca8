# distributed: refused or converts (a wrapper of its own around DataParallel)
# same with W processes: no (batch statistics)
# amp: refused or converts (a wrapper of its own around DataParallel)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from sync_batchnorm import DataParallelWithCallback, SynchronizedBatchNorm1d


def main():
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    dataloader = DataLoader(TensorDataset(x, x.abs()), batch_size=8, shuffle=True, drop_last=True)
    generator = nn.Sequential(nn.Linear(4, 8), SynchronizedBatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
    if torch.cuda.is_available():
        generator.to("cuda:0")
        generator = DataParallelWithCallback(generator, device_ids=[0])
    optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3)
    for epoch in range(2):
        for a, b in dataloader:
            loss = nn.functional.l1_loss(generator(a.cuda()), b.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
    torch.save(generator.module.state_dict(), "generator.pth")


if __name__ == "__main__":
    main()
