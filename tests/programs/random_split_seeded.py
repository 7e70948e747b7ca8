# distributed: converts
# same with W processes: yes
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(13)
X = torch.randn(80, 4)
Y = (X[:, 0] > 0).long()
train_ds, val_ds = random_split(TensorDataset(X, Y), [64, 16])
train_dl = DataLoader(train_ds, batch_size=8, shuffle=True)
val_dl = DataLoader(val_ds, batch_size=16)
model = nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 2)).cuda()
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def loop(dataloader, training):
    size, num_batches, loss, correct = len(dataloader.dataset), len(dataloader), 0, 0
    model.train(training)
    with torch.set_grad_enabled(training):
        for X, y in dataloader:
            X, y = X.cuda(), y.cuda()
            pred = model(X)
            batch_loss = loss_fn(pred, y)
            if training:
                batch_loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            loss += batch_loss.item()
            correct += (pred.argmax(1) == y).type(torch.float).sum().item()
    print(f"Accuracy: {(100 * correct / size):>0.1f}%, Avg loss: {loss / num_batches:>8f}")


for t in range(2):
    print(f"Epoch {t + 1}\n-------------------------------")
    loop(train_dl, True)
    loop(val_dl, False)
print("Done!")
