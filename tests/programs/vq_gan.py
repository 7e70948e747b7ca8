# distributed: refused or converts (two backward passes go through both networks before either takes a step)
# same with W processes: no (weights that one step of a graph with its own gradients depends on)
# amp: refused or converts (the adaptive weight is taken from gradients of unscaled losses)
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class VQ(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4)
        self.codes = nn.Embedding(6, 4)
        self.decoder = nn.Linear(4, 8)

    def forward(self, x):
        z = self.encoder(x)
        index = torch.cdist(z, self.codes.weight).argmin(1)
        q = self.codes(index)
        q_loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        q = z + (q - z).detach()
        return self.decoder(q), index, q_loss

    def calculate_lambda(self, rec, gan):
        last = self.decoder.weight
        a = torch.autograd.grad(rec, last, retain_graph=True)[0]
        b = torch.autograd.grad(gan, last, retain_graph=True)[0]
        return torch.clamp(a.norm() / (b.norm() + 1e-4), 0, 1e4).detach()


class TrainVQGAN:
    def __init__(self):
        self.vqgan = VQ().to(device="cuda")
        self.discriminator = nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(), nn.Linear(8, 1)).to(device="cuda")
        self.opt_vq = torch.optim.SGD(self.vqgan.parameters(), lr=0.01)
        self.opt_disc = torch.optim.SGD(self.discriminator.parameters(), lr=0.01)
        self.train()

    def train(self):
        gen = torch.Generator().manual_seed(1)
        loader = DataLoader(TensorDataset(torch.randn(64, 8, generator=gen)), batch_size=8, shuffle=True)
        for epoch in range(2):
            for i, (imgs,) in enumerate(loader):
                imgs = imgs.to(device="cuda")
                decoded, _, q_loss = self.vqgan(imgs)
                disc_real = self.discriminator(imgs)
                disc_fake = self.discriminator(decoded)
                rec_loss = F.l1_loss(decoded, imgs)
                g_loss = -torch.mean(disc_fake)
                lam = self.vqgan.calculate_lambda(rec_loss, g_loss)
                vq_loss = rec_loss + q_loss + lam * g_loss
                gan_loss = 0.5 * (F.relu(1. - disc_real).mean() + F.relu(1. + disc_fake).mean())
                self.opt_vq.zero_grad()
                vq_loss.backward(retain_graph=True)
                self.opt_disc.zero_grad()
                gan_loss.backward()
                self.opt_vq.step()
                self.opt_disc.step()
            print(epoch, vq_loss.item(), gan_loss.item())
            torch.save(self.vqgan.state_dict(), f"vqgan_epoch_{epoch}.pt")


if __name__ == '__main__':
    TrainVQGAN()
