import torch
import torch_npu  # noqa: F401
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader

torch.manual_seed(1)
use_cuda = torch.npu.is_available()
device = torch.device("npu" if use_cuda else "cpu")
BATCH, EPOCHS, KL_WARM = 16, 3, 10


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 40)
        self.fc21 = nn.Linear(40, 6)
        self.fc22 = nn.Linear(40, 6)
        self.fc3 = nn.Linear(6, 40)
        self.fc4 = nn.Linear(40, 64)

    def encode(self, x):
        h = F.relu(self.fc1(x))
        return self.fc21(h), self.fc22(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = self.reparameterize(mu, logvar)
        return self.fc4(F.relu(self.fc3(z))), mu, logvar


def loss_function(recon, x, mu, logvar, beta):
    bce = F.binary_cross_entropy_with_logits(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (bce + beta * kld) / x.size(0)


def data(n):
    centers = torch.rand(n, 1) * 64
    return (torch.exp(-((torch.arange(64.0) - centers) / 6) ** 2) > 0.5).float()


train_loader = DataLoader(data(100), batch_size=BATCH, shuffle=True)
test_loader = DataLoader(data(32), batch_size=BATCH)
model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=3e-3)
step = 0


def train(epoch):
    global step
    model.train()
    train_loss = 0
    for x in train_loader:
        x = x.to(device)
        beta = min(1.0, step / KL_WARM)
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss = loss_function(recon, x, mu, logvar, beta)
        loss.backward()
        train_loss += loss.item() * x.size(0)
        optimizer.step()
        step += 1
    print("====> Epoch: {} Average loss: {:.4f}".format(epoch, train_loss / len(train_loader.dataset)))


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for x in test_loader:
            x = x.to(device)
            mu, logvar = model.encode(x)
            recon = model.fc4(F.relu(model.fc3(mu)))
            test_loss += loss_function(recon, x, mu, logvar, 1.0).item() * x.size(0)
    print("====> Test set loss: {:.4f}".format(test_loss / len(test_loader.dataset)))


if __name__ == "__main__":
    for epoch in range(1, EPOCHS + 1):
        train(epoch)
        test(epoch)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "vae.pt")
