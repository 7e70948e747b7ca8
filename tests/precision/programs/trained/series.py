"""Series: an LSTM cell written by hand and one of torch, Adagrad for one part and RMSprop for the other."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(37)
device = torch.device("cuda")


class Cell(nn.Module):
    def __init__(self, taken: int, width: int) -> None:
        super().__init__()
        self.into = nn.Linear(taken, 4 * width)
        self.on = nn.Linear(width, 4 * width, bias=False)

    def forward(self, x: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i, f, g, o = (self.into(x) + self.on(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        return h, c


class Model(nn.Module):
    def __init__(self, width: int = 10) -> None:
        super().__init__()
        self.width = width
        self.cell = Cell(3, width)
        self.reader = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.shape[0], self.width)
        c = x.new_zeros(x.shape[0], self.width)
        seen = []
        for at in range(x.shape[1]):
            h, c = self.cell(x[:, at], h, c)
            seen.append(h)
        read, (last, _) = self.reader(torch.stack(seen, dim=1))
        return self.out(read[:, -1] + last[0] * 0.5)


waves = torch.cos(torch.linspace(0, 30, 3 * 5 * 5 * 3)).view(3, 5, 5, 3)
model = Model().to(device)
slow = torch.optim.RMSprop([*model.reader.parameters(), *model.out.parameters()], lr=5e-3, alpha=0.9, momentum=0.5)
fast = torch.optim.Adagrad(model.cell.parameters(), lr=2e-2, initial_accumulator_value=0.1)
for step in range(3):
    wave = waves[step].to(device)
    guess = model(wave[:, :-1])
    loss = F.mse_loss(guess, wave[:, -1])
    slow.zero_grad()
    fast.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.cell.parameters(), 0.02)
    slow.step()
    fast.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
