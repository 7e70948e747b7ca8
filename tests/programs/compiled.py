# distributed: converts
# same with W processes: yes
# amp: converts
# apex: refused or converts (the model is compiled where it is made)
# apex O1: refused or converts (the model is compiled where it is made)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main():
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(1))
    loader = DataLoader(TensorDataset(x, x.roll(1, 1)), batch_size=8, shuffle=True, pin_memory=False)
    device = torch.device("cuda")
    raw_model = nn.Sequential(Block(), Block(), nn.Linear(8, 8)).to(device)
    model = torch.compile(raw_model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for xb, yb in loader:
            loss = nn.functional.mse_loss(model(xb.to(device)), yb.to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")
    torch.save(raw_model.state_dict(), "raw.pt")


if __name__ == "__main__":
    main()
