# distributed: converts
# same with W processes: yes
# amp: converts
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

gen = torch.Generator().manual_seed(0)
anchor = torch.randn(64, 6, generator=gen)
triplets = TensorDataset(anchor, anchor + 0.1, torch.randn(64, 6, generator=gen))
loader = DataLoader(triplets, batch_size=8, shuffle=True, drop_last=True)
embedding_net = nn.Sequential(nn.Linear(6, 16), nn.PReLU(), nn.Linear(16, 4)).to("cuda")
criterion = nn.TripletMarginLoss(margin=1.0)
optimizer = torch.optim.SGD(embedding_net.parameters(), lr=0.02)
for epoch in range(2):
    losses = []
    for a, p, n in loader:
        a, p, n = a.to("cuda"), p.to("cuda"), n.to("cuda")
        optimizer.zero_grad()
        loss = criterion(embedding_net(a), embedding_net(p), embedding_net(n))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("epoch", epoch, "mean loss", sum(losses) / len(losses))
