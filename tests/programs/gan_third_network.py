# distributed: converts
# same with W processes: yes
# amp: converts
import itertools
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

encoder = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)).cuda()
decoder = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 6)).cuda()
discriminator = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
optimizer_G = torch.optim.SGD(itertools.chain(encoder.parameters(), decoder.parameters()), lr=0.02)
optimizer_D = torch.optim.SGD(discriminator.parameters(), lr=0.02)
adversarial, pixelwise = nn.BCEWithLogitsLoss(), nn.L1Loss()
gen = torch.Generator().manual_seed(8)
data = torch.cat([torch.randn(64, 6, generator=gen), torch.randn(64, 3, generator=gen)], 1)
dataloader = DataLoader(TensorDataset(data), batch_size=8, shuffle=True)


def sample_image(n_row, batches_done):
    with torch.no_grad():
        z = torch.zeros(n_row, 3).cuda()
        torch.save(decoder(z).cpu(), "%d.pt" % batches_done)


for epoch in range(2):
    for i, (row,) in enumerate(dataloader):
        imgs, z = row[:, :6].cuda(), row[:, 6:].cuda()
        valid = torch.ones(imgs.size(0), 1).cuda()
        fake = torch.zeros(imgs.size(0), 1).cuda()
        optimizer_G.zero_grad()
        encoded = encoder(imgs)
        decoded = decoder(encoded)
        g_loss = 0.001 * adversarial(discriminator(encoded), valid) + 0.999 * pixelwise(decoded, imgs)
        g_loss.backward()
        optimizer_G.step()
        optimizer_D.zero_grad()
        d_loss = 0.5 * (adversarial(discriminator(z), valid) + adversarial(discriminator(encoded.detach()), fake))
        d_loss.backward()
        optimizer_D.step()
        batches_done = epoch * len(dataloader) + i
        if batches_done % 8 == 0:
            sample_image(4, batches_done)
    print(epoch, d_loss.item(), g_loss.item())
