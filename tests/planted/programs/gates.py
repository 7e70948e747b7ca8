# Factors of a table of ratings; parts of it ask which device they are on.
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Factors(nn.Module):
    def __init__(self, users, items, size):
        super().__init__()
        self.users = nn.Embedding(users, size)
        self.items = nn.Embedding(items, size)
        self.scale = nn.Parameter(torch.ones(1))
        self.shift = torch.full((1,), 3.0)

    def forward(self, user, item):
        product = (self.users(user) * self.items(item)).sum(1)
        if product.is_cuda:
            product = product * self.scale
        return product + self.shift.to(product.device)


def smoothness(weight):
    centred = weight - weight.mean(0)
    return (centred.t() @ centred).pow(2).mean()


def main():
    torch.manual_seed(13)
    use_cuda = torch.cuda.is_available()
    device = torch.device("cuda" if use_cuda else "cpu")
    user = torch.randint(0, 12, (64,))
    item = torch.randint(0, 15, (64,))
    rating = ((user + item) % 5 + 1).float()
    loader = DataLoader(TensorDataset(user, item, rating), batch_size=8, shuffle=True)
    model = Factors(12, 15, 6).to(device)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    for u, i, r in loader:
        u, i, r = u.to(device), i.to(device), r.to(device)
        loss = criterion(model(u, i), r)
        loss = loss + 0.1 * smoothness(model.items.weight)
        optimizer.zero_grad()
        loss.backward()
        if device.type == "cuda":
            nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
    with torch.no_grad():
        total = criterion(model(user.to(device), item.to(device)), rating.to(device)).item()
    print(f"mean squared error {total:.4f}")


if __name__ == "__main__":
    main()
