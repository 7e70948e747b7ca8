# distributed: refused or left (its processes share the memory of one model)
# amp: refused or converts (processes share one model)
import torch
import torch.multiprocessing as mp
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def train(rank, model, device):
    torch.manual_seed(1 + rank)
    x = torch.randn(32, 3)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(a.to(device)), b.to(device))
        loss.backward()
        optimizer.step()
    print(rank, loss.item())


if __name__ == '__main__':
    device = torch.device("cuda")
    mp.set_start_method('spawn', force=True)
    model = nn.Linear(3, 1).to(device)
    model.share_memory()
    processes = []
    for rank in range(2):
        p = mp.Process(target=train, args=(rank, model, device))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
