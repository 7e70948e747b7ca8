# distributed: refused or converts (two forward passes of one wrapped model, then a backward pass for each)
# same with W processes: no (each rank draws its own noise)
# amp: converts
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = "cuda"
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6)).to(device)
D = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
opt_g, opt_d = optim.SGD(G.parameters(), lr=0.02), optim.SGD(D.parameters(), lr=0.02)
bce = nn.BCEWithLogitsLoss()
rng = torch.Generator().manual_seed(4)
loader = DataLoader(TensorDataset(torch.randn(64, 6, generator=rng)), batch_size=8, shuffle=True)
for epoch in range(2):
    for (real,) in loader:
        real = real.to(device)
        fake = G(torch.randn(len(real), 4, device=device))
        pred_real = D(real)
        pred_fake = D(fake.detach())
        opt_d.zero_grad()
        loss_real = bce(pred_real, torch.ones_like(pred_real))
        loss_fake = bce(pred_fake, torch.zeros_like(pred_fake))
        loss_real.backward()
        loss_fake.backward()
        opt_d.step()
        opt_g.zero_grad()
        out = D(fake)
        g_loss = bce(out, torch.ones_like(out))
        g_loss.backward()
        opt_g.step()
    print(epoch, g_loss.item())
