# fine-tune a ViT head first, then everything with layer decay
import timm
import torch
import torch_npu  # noqa: F401
from timm.loss import SoftTargetCrossEntropy
from timm.optim import param_groups_layer_decay
from timm.scheduler import create_scheduler_v2
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2024)
device = torch.device("npu:0")


def images(n):
    y = torch.randint(0, 3, (n,))
    x = torch.randn(n, 3, 16, 16) * 0.5
    x = x + y.view(-1, 1, 1, 1).float() * torch.linspace(-1, 1, 16)
    return TensorDataset(x, y)


model = timm.create_model("vit_tiny_patch16_224", img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=3, num_classes=3).to(device)
train_loader = DataLoader(images(48), batch_size=8, shuffle=True)
val_loader = DataLoader(images(24), batch_size=8)
soft_ce = SoftTargetCrossEntropy()


def soften(y, eps=0.2):
    onehot = torch.zeros(len(y), 3, device=device).scatter_(1, y.view(-1, 1), 1.0)
    return onehot * (1 - eps) + eps / 3


def evaluate():
    model.eval()
    hit = total = 0
    with torch.no_grad():
        for x, y in val_loader:
            hit += (model(x.to(device)).argmax(-1).cpu() == y).sum().item()
            total += len(y)
    return hit / total


def fit(name, optimizer, epochs, scheduler):
    for epoch in range(epochs):
        model.train()
        for x, y in train_loader:
            x, y = x.to(device), y.to(device)
            loss = soft_ce(model(x), soften(y))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step(epoch + 1)
        print(name, "epoch", epoch, "loss %.5f" % loss.item(), "accuracy %.4f" % evaluate())


# stage 1: only the head
for n, p in model.named_parameters():
    p.requires_grad = n.startswith("head")
opt1 = torch.optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9)
sched1, _ = create_scheduler_v2(opt1, sched="cosine", num_epochs=2)
fit("head", opt1, 2, sched1)

# stage 2: all layers
for p in model.parameters():
    p.requires_grad = True
groups = param_groups_layer_decay(model, weight_decay=0.05, layer_decay=0.6)
for g in groups:
    g["lr"] = 2e-3 * g.pop("lr_scale")
opt2 = torch.optim.AdamW(groups, lr=2e-3)
sched2, _ = create_scheduler_v2(opt2, sched="step", num_epochs=3, decay_epochs=1, decay_rate=0.5, warmup_epochs=0)
fit("full", opt2, 3, sched2)
torch.save(model.state_dict(), "vit.pth")
