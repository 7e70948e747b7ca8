# distributed: converts
# same with W processes: no (each rank draws its own noise)
# amp: converts
# apex: refused (two optimizers train the same weights)
import argparse
import itertools

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--n_epochs", type=int, default=2)
parser.add_argument("--batch_size", type=int, default=8)
opt = parser.parse_args()
cuda = True if torch.cuda.is_available() else False


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 2))

    def forward(self, img):
        return self.net(img)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 16), nn.LeakyReLU(0.2), nn.Linear(16, 6), nn.Tanh())

    def forward(self, noise, code):
        return self.net(torch.cat((noise, code), -1))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, img):
        return self.net(img)


adversarial_loss = torch.nn.MSELoss()
continuous_loss = torch.nn.MSELoss()
encoder, generator, discriminator = Encoder(), Generator(), Discriminator()
if cuda:
    encoder, generator, discriminator = encoder.cuda(), generator.cuda(), discriminator.cuda()

rng = torch.Generator().manual_seed(1)
dataloader = DataLoader(TensorDataset(torch.randn(64, 6, generator=rng).tanh()), batch_size=opt.batch_size, shuffle=True)
optimizer_G = torch.optim.Adam(generator.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.002, betas=(0.5, 0.999))
optimizer_info = torch.optim.Adam(itertools.chain(generator.parameters(), encoder.parameters()), lr=0.002)

for epoch in range(opt.n_epochs):
    for i, (imgs,) in enumerate(dataloader):
        batch_size = imgs.shape[0]
        real_imgs = imgs.cuda()
        valid = torch.ones(batch_size, 1).cuda()
        fake = torch.zeros(batch_size, 1).cuda()
        # Generator
        optimizer_G.zero_grad()
        z, code = torch.randn(batch_size, 3).cuda(), torch.rand(batch_size, 2).cuda()
        gen_imgs = generator(z, code)
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)
        g_loss.backward()
        optimizer_G.step()
        # Discriminator
        optimizer_D.zero_grad()
        d_loss = (adversarial_loss(discriminator(real_imgs), valid)
                  + adversarial_loss(discriminator(gen_imgs.detach()), fake)) / 2
        d_loss.backward()
        optimizer_D.step()
        # Information
        optimizer_info.zero_grad()
        code = torch.rand(batch_size, 2).cuda()
        info_loss = continuous_loss(encoder(generator(torch.zeros(batch_size, 3).cuda(), code)), code)
        info_loss.backward()
        optimizer_info.step()
    print("[Epoch %d] [D loss: %f] [G loss: %f] [info loss: %f]" % (epoch, d_loss.item(), g_loss.item(), info_loss.item()))
torch.save({"generator": generator.state_dict(), "encoder": encoder.state_dict()}, "nets.pt")
