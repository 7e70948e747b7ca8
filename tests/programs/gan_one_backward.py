# distributed: converts
# same with W processes: no (each rank draws its own noise)
# amp: converts
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

cuda = torch.cuda.is_available()
generator = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 6))
discriminator = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
adversarial_loss = torch.nn.MSELoss()
if cuda:
    generator.cuda()
    discriminator.cuda()
    adversarial_loss.cuda()
rng = torch.Generator().manual_seed(4)
dataloader = DataLoader(TensorDataset(torch.randn(64, 6, generator=rng)), batch_size=8, shuffle=True)
optimizer_G = torch.optim.SGD(generator.parameters(), lr=0.02)
optimizer_D = torch.optim.SGD(discriminator.parameters(), lr=0.02)

for epoch in range(2):
    for i, (imgs,) in enumerate(dataloader):
        valid = torch.ones(imgs.size(0), 1).cuda()
        fake = torch.zeros(imgs.size(0), 1).cuda()
        real_imgs = imgs.cuda()

        optimizer_G.zero_grad()
        z = torch.randn(imgs.shape[0], 4).cuda()
        gen_imgs = generator(z)
        g_loss = adversarial_loss(discriminator(gen_imgs), valid)
        g_loss.backward()
        optimizer_G.step()

        optimizer_D.zero_grad()
        real_loss = adversarial_loss(discriminator(real_imgs), valid)
        fake_loss = adversarial_loss(discriminator(gen_imgs.detach()), fake)
        d_loss = 0.5 * (real_loss + fake_loss)
        d_loss.backward()
        optimizer_D.step()
        print("[Epoch %d] [Batch %d] [D loss: %f] [G loss: %f]" % (epoch, i, d_loss.item(), g_loss.item()))
