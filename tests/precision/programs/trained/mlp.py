"""Numbers: three linear layers, a loss that is scaled and gradients that are scaled back, Adam and a schedule."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(17)
device = torch.device("cuda")
SCALE = 128.0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 32)
        self.second = nn.Linear(32, 32)
        self.third = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.silu(self.first(x))
        x = x + F.softplus(self.second(x))
        x = x.clamp(-0.2, 1.5)
        return self.third(x).squeeze(-1)


samples = torch.randn(3, 10, 12)
goals = samples.sin().sum(-1)
model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.999), eps=1e-8)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.9)
for step in range(3):
    x, y = samples[step].to(device), goals[step].to(device)
    optimizer.zero_grad()
    guess = model(x)
    loss = F.smooth_l1_loss(guess, y)
    (loss * SCALE).backward()
    for parameter in model.parameters():
        parameter.grad.div_(SCALE)
    optimizer.step()
    schedule.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
