# A classifier of sentences that takes a step after every second batch, with layers that train at different rates.
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 2


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 12)
        self.body = nn.Linear(12, 12)
        self.head = nn.Linear(12, 3)

    def forward(self, tokens):
        hidden = self.embedding(tokens).mean(1)
        return self.head(torch.tanh(self.body(hidden)))


def get_loader():
    generator = torch.Generator().manual_seed(17)
    tokens = torch.randint(0, 30, (64, 7), generator=generator)
    labels = tokens[:, 0] % 3
    return DataLoader(TensorDataset(tokens, labels), batch_size=4, shuffle=True)


def run():
    torch.manual_seed(4)
    device = torch.device("cuda:0")
    loader = get_loader()
    model = Classifier()
    model.to(device)
    for parameter in model.embedding.parameters():
        parameter.requires_grad = False
    groups = [
        {"params": model.body.parameters(), "lr": 0.01},
        {"params": model.head.parameters(), "lr": 0.05},
    ]
    optimizer = torch.optim.Adam(groups)
    criterion = nn.CrossEntropyLoss()
    model.train()
    optimizer.zero_grad()
    running = 0.0
    for step, (tokens, labels) in enumerate(loader):
        tokens = tokens.to(device)
        labels = labels.to(device)
        loss = criterion(model(tokens), labels) / ACCUMULATE
        loss.backward()
        running += loss.item()
        if (step + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(f"mean loss {running / len(loader):.4f}")


if __name__ == "__main__":
    run()
