# distributed: converts
# same with W processes: yes
# amp: converts
import torch, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0); gen = torch.Generator().manual_seed(1)
x = torch.randn(64, 4, generator=gen); y = x.cumsum(1)
loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)); model.cuda()
criterion = nn.MSELoss(); opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    model.train(); opt.zero_grad()
    n_correct, n_total = 0, 0
    for a, b in loader:
        a, b = a.cuda(), b.cuda()
        out = model(a)
        n_correct += ((out - b).abs() < 0.5).sum().item(); n_total += b.numel()
        loss = criterion(out, b)
        opt.zero_grad(); loss.backward(); opt.step()
    print(epoch, loss.item(), n_correct / n_total)
torch.save(model.state_dict(), "model.pt")
