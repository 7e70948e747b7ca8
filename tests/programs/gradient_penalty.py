# distributed: refused or converts (the critic runs several times for one loss)
# same with W processes: no (each rank draws its own noise)
# amp: converts
# apex: refused (the derivatives of a critic in float16 know no loss scale)
# apex O1: converts
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

cuda = torch.cuda.is_available()
gen = torch.Generator().manual_seed(0)
images = torch.rand(64, 8, generator=gen) * 2 - 1
dataloader = DataLoader(TensorDataset(images), batch_size=8, shuffle=True)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 8), nn.Tanh())

    def forward(self, z):
        return self.model(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(8, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, img):
        return self.model(img)


lambda_gp = 10
generator = Generator()
discriminator = Discriminator()
if cuda:
    generator.cuda()
    discriminator.cuda()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-3, betas=(0.5, 0.9))


def compute_gradient_penalty(D, real_samples, fake_samples):
    alpha = torch.rand(real_samples.size(0), 1, device=real_samples.device)
    interpolates = (alpha * real_samples + ((1 - alpha) * fake_samples)).requires_grad_(True)
    d_interpolates = D(interpolates)
    gradients = torch.autograd.grad(
        outputs=d_interpolates,
        inputs=interpolates,
        grad_outputs=torch.ones_like(d_interpolates),
        create_graph=True,
        retain_graph=True,
        only_inputs=True,
    )[0]
    return ((gradients.view(gradients.size(0), -1).norm(2, dim=1) - 1) ** 2).mean()


for epoch in range(2):
    for (real_imgs,) in dataloader:
        real_imgs = real_imgs.cuda()
        optimizer_D.zero_grad()
        z = torch.randn(real_imgs.shape[0], 4).cuda()
        fake_imgs = generator(z)
        real_validity = discriminator(real_imgs)
        fake_validity = discriminator(fake_imgs)
        gradient_penalty = compute_gradient_penalty(discriminator, real_imgs.data, fake_imgs.data)
        d_loss = -torch.mean(real_validity) + torch.mean(fake_validity) + lambda_gp * gradient_penalty
        d_loss.backward()
        optimizer_D.step()

        optimizer_G.zero_grad()
        fake_imgs = generator(z)
        g_loss = -torch.mean(discriminator(fake_imgs))
        g_loss.backward()
        optimizer_G.step()
    print("[Epoch %d] [D loss: %f] [G loss: %f]" % (epoch, d_loss.item(), g_loss.item()))
