# distributed: converts
# same with W processes: no (each rank draws its own noise; the loss is a sum)
# amp: converts
# apex: refused (model.decode runs a part of the model, which O2 does not cast for)
# apex O1: converts
import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
x = torch.rand(64, 12, generator=torch.Generator().manual_seed(5))
train_loader = DataLoader(TensorDataset(x), batch_size=8, shuffle=True)
test_loader = DataLoader(TensorDataset(x[:16]), batch_size=8, shuffle=False)


class VAE(nn.Module):
    def __init__(self):
        super(VAE, self).__init__()
        self.fc1 = nn.Linear(12, 8)
        self.fc21 = nn.Linear(8, 2)
        self.fc22 = nn.Linear(8, 2)
        self.fc3 = nn.Linear(2, 8)
        self.fc4 = nn.Linear(8, 12)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 12))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


model = VAE().to(device)
optimizer = optim.Adam(model.parameters(), lr=1e-3)


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 12), reduction='sum')
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def train(epoch):
    model.train()
    train_loss = 0
    for batch_idx, (data,) in enumerate(train_loader):
        data = data.to(device)
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        if batch_idx % 4 == 0:
            print('Train Epoch: {} Loss: {:.6f}'.format(epoch, loss.item() / len(data)))
    print('====> Epoch: {} Average loss: {:.4f}'.format(epoch, train_loss / len(train_loader.dataset)))


def test(epoch):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for i, (data,) in enumerate(test_loader):
            data = data.to(device)
            recon_batch, mu, logvar = model(data)
            test_loss += loss_function(recon_batch, data, mu, logvar).item()
            if i == 0:
                torch.save(torch.cat([data[:4], recon_batch[:4]]).cpu(), 'reconstruction_' + str(epoch) + '.pt')
    print('====> Test set loss: {:.4f}'.format(test_loss / len(test_loader.dataset)))


if __name__ == "__main__":
    for epoch in range(1, 3):
        train(epoch)
        test(epoch)
        with torch.no_grad():
            sample = torch.randn(4, 2).to(device)
            sample = model.decode(sample).cpu()
            torch.save(sample, 'sample_' + str(epoch) + '.pt')
