import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset

FOLDS, EPOCHS, BATCH = 3, 2, 12
torch.manual_seed(5)

X = torch.randn(72, 10)
w = torch.randn(10)
Y = ((X @ w + 0.3 * torch.randn(72)) > 0.8).long()
data = TensorDataset(X, Y)
class_weight = torch.tensor([1.0, 2.5]).cuda()


def reset_weights(m):
    if hasattr(m, "reset_parameters"):
        m.reset_parameters()


net = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2)).cuda()
loss_fn = nn.CrossEntropyLoss(weight=class_weight)
order = torch.randperm(len(data), generator=torch.Generator().manual_seed(3))
scores = []
for fold in range(FOLDS):
    val_idx = order[fold::FOLDS].tolist()
    train_idx = [i for i in order.tolist() if i not in set(val_idx)]
    train_loader = DataLoader(Subset(data, train_idx), batch_size=BATCH, shuffle=True)
    val_loader = DataLoader(Subset(data, val_idx), batch_size=BATCH)
    torch.manual_seed(100 + fold)
    net.apply(reset_weights)
    optimizer = torch.optim.Adagrad(net.parameters(), lr=0.05)
    for epoch in range(EPOCHS):
        net.train()
        for x, y in train_loader:
            x, y = x.cuda(), y.cuda()
            optimizer.zero_grad()
            loss = loss_fn(net(x), y)
            loss.backward()
            optimizer.step()
    net.eval()
    tp = fp = fn = 0
    with torch.no_grad():
        for x, y in val_loader:
            x, y = x.cuda(), y.cuda()
            pred = net(x).argmax(1)
            tp += ((pred == 1) & (y == 1)).sum().item()
            fp += ((pred == 1) & (y == 0)).sum().item()
            fn += ((pred == 0) & (y == 1)).sum().item()
    f1 = 2 * tp / max(2 * tp + fp + fn, 1)
    scores.append(f1)
    print(f"fold {fold} loss {loss.item():.5f} f1 score {f1:.4f}")
print(f"mean f1 score {sum(scores) / FOLDS:.4f}")
