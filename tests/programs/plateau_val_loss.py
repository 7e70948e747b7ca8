# distributed: converts
# same with W processes: yes
# amp: converts
# run: --bs {batch}
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--bs", type=int, default=8)
parser.add_argument("--cuda", type=int, default=0, help="which gpu")
args = parser.parse_args()
dev = torch.device("cuda:%d" % args.cuda)


def validate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for a, b in loader:
            total += nn.functional.l1_loss(model(a.to(dev)), b.to(dev), reduction="sum").item()
    model.train()
    return total / len(loader.dataset)


x = torch.randn(84, 4, generator=torch.Generator().manual_seed(0))
train_loader = DataLoader(TensorDataset(x[:64], x[:64].sin()), batch_size=args.bs, shuffle=True)
val_loader = DataLoader(TensorDataset(x[64:], x[64:].sin()), batch_size=10)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4)).to(dev)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
best_val = None
for epoch in range(3):
    for a, b in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(a.to(dev)), b.to(dev))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    val_loss = validate(model, val_loader)
    scheduler.step(val_loss)
    if best_val is None or val_loss < best_val:
        best_val = val_loss
        with open("best.pt", "wb") as f:
            torch.save({"model": model.state_dict(), "val_loss": val_loss}, f)
    print(f"| end of epoch {epoch} | valid loss {val_loss:.4f} | lr {optimizer.param_groups[0]['lr']}")
with open("best.pt", "rb") as f:
    model.load_state_dict(torch.load(f)["model"])
print("test", validate(model, val_loader))
