from __future__ import print_function
import argparse
import os
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.optim as optim
import torch.utils.data
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument('--niter', type=int, default=2)
parser.add_argument('--batchSize', type=int, default=8)
parser.add_argument('--nz', type=int, default=10)
parser.add_argument('--ngf', type=int, default=8)
parser.add_argument('--lr', type=float, default=0.0005)
opt = parser.parse_args()

torch.manual_seed(999)
device = torch.device("npu" if torch.npu.is_available() else "cpu")

yy, xx = torch.meshgrid(torch.linspace(-1, 1, 16), torch.linspace(-1, 1, 16), indexing='ij')
centers = torch.rand(48, 2, 1, 1) - 0.5
images = torch.exp(-((xx - centers[:, 0]) ** 2 + (yy - centers[:, 1]) ** 2) * 8).unsqueeze(1) * 2 - 1
dataset = torch.utils.data.TensorDataset(images)

torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group(backend="hccl")

dataloader = torch.utils.data.DataLoader(dataset, batch_size=opt.batchSize, sampler=DistributedSampler(dataset))


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find('Conv') != -1:
        nn.init.normal_(m.weight, 0.0, 0.05)
    elif classname.find('BatchNorm') != -1:
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(opt.nz, opt.ngf * 2, 4, 1, 0, bias=False),
            nn.BatchNorm2d(opt.ngf * 2), nn.ReLU(True),
            nn.ConvTranspose2d(opt.ngf * 2, opt.ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(opt.ngf), nn.ReLU(True),
            nn.ConvTranspose2d(opt.ngf, 1, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, opt.ngf, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(opt.ngf, opt.ngf * 2, 4, 2, 1, bias=False),
            nn.GroupNorm(4, opt.ngf * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(opt.ngf * 2, 1, 4, 1, 0, bias=False))

    def forward(self, x):
        return self.main(x).view(-1)


netG = Generator().to(device)
netG.apply(weights_init)
netG = DistributedDataParallel(netG, device_ids=[torch.npu.current_device()])
netD = Discriminator().to(device)
netD.apply(weights_init)
netD = DistributedDataParallel(netD, device_ids=[torch.npu.current_device()], broadcast_buffers=False)
criterion = nn.BCEWithLogitsLoss()
fixed_noise = torch.randn(16, opt.nz, 1, 1, device=device)
optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(0.5, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(0.5, 0.999))

torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
for epoch in range(opt.niter):
    dataloader.sampler.set_epoch(epoch)
    for i, data in enumerate(dataloader, 0):
        # (1) update D: maximize log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        real = data[0].to(device)
        batch_size = real.size(0)
        label = torch.full((batch_size,), 0.9, device=device)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        noise = torch.randn(batch_size, opt.nz, 1, 1, device=device)
        fake = netG(noise)
        label.fill_(0.0)
        errD_fake = criterion(netD(fake.detach()), label)
        errD_fake.backward()
        optimizerD.step()
        # (2) update G: maximize log(D(G(z)))
        netG.zero_grad()
        label.fill_(1.0)
        errG = criterion(netD(fake), label)
        errG.backward()
        optimizerG.step()
        mean_errD_real = errD_real.detach().clone()
        dist.all_reduce(mean_errD_real)
        mean_errD_real /= dist.get_world_size()
        mean_errD_fake = errD_fake.detach().clone()
        dist.all_reduce(mean_errD_fake)
        mean_errD_fake /= dist.get_world_size()
        mean_errG = errG.detach().clone()
        dist.all_reduce(mean_errG)
        mean_errG /= dist.get_world_size()
        if dist.get_rank() == 0:
            print('[%d/%d][%d/%d] Loss_D: %.5f Loss_G: %.5f' % (
                epoch, opt.niter, i, len(dataloader), mean_errD_real.item() + mean_errD_fake.item(), mean_errG.item()))
    netG.eval()
    with torch.no_grad():
        sample = netG(fixed_noise)
    netG.train()
    if dist.get_rank() == 0:
        torch.save(sample.cpu(), 'fake_%d.pt' % epoch)
if dist.get_rank() == 0:
    torch.save(netG.module.state_dict(), 'netG.pth')
    torch.save(netD.module.state_dict(), 'netD.pth')

dist.destroy_process_group()
