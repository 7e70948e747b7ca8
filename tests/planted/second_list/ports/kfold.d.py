import os
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

FOLDS, EPOCHS, BATCH = 3, 2, 12
torch.manual_seed(5)

X = torch.randn(72, 10)
w = torch.randn(10)
Y = ((X @ w + 0.3 * torch.randn(72)) > 0.8).long()
data = TensorDataset(X, Y)

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend="hccl")

class_weight = torch.tensor([1.0, 2.5]).npu()


def reset_weights(m):
    if hasattr(m, "reset_parameters"):
        m.reset_parameters()


net = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2)).npu()
net = DistributedDataParallel(net, device_ids=[torch.npu.current_device()])
loss_fn = nn.CrossEntropyLoss(weight=class_weight)
order = torch.randperm(len(data), generator=torch.Generator().manual_seed(3))
scores = []
torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
for fold in range(FOLDS):
    val_idx = order[fold::FOLDS].tolist()
    train_idx = [i for i in order.tolist() if i not in set(val_idx)]
    train_set = Subset(data, train_idx)
    train_loader = DataLoader(train_set, batch_size=BATCH, sampler=DistributedSampler(train_set))
    val_loader = DataLoader(Subset(data, val_idx), batch_size=BATCH)
    torch.manual_seed(100 + fold)
    net.apply(reset_weights)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
    for epoch in range(EPOCHS):
        train_loader.sampler.set_epoch(epoch)
        net.train()
        for x, y in train_loader:
            x, y = x.npu(), y.npu()
            optimizer.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()
    net.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for x, y in val_loader:
            x, y = x.npu(), y.npu()
            pred = net(x).argmax(1)
            tp += ((pred == 1) & (y == 1)).sum().item()
            fp += ((pred == 1) & (y == 0)).sum().item()
            fn += ((pred == 0) & (y == 1)).sum().item()
    f1 = 2 * tp / max(2 * tp + fp + fn, 1)
    scores.append(f1)
    mean_loss = loss.detach().clone()
    dist.all_reduce(mean_loss)
    mean_loss /= dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"fold {fold} loss {mean_loss.item():.5f} f1 score {f1:.4f}")
if dist.get_rank() == 0:
    print(f"mean f1 score {sum(scores) / FOLDS:.4f}")

dist.destroy_process_group()
