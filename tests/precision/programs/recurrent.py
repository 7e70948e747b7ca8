"""Sequences: an LSTM reads, a GRU cell writes on, RMSprop."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
device = torch.device("cuda")


class Reader(nn.Module):
    def __init__(self, width: int = 12) -> None:
        super().__init__()
        self.into = nn.Linear(4, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.gate = nn.Linear(width, width)
        self.out = nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        seen, (hidden, _) = self.lstm(torch.tanh(self.into(x)))
        state = hidden[-1]
        written = []
        for step in range(2):
            state = self.cell(seen[:, -1 - step], state)
            written.append(self.out(state * torch.sigmoid(self.gate(state))))
        return torch.stack(written, dim=1)


waves = torch.sin(torch.linspace(0, 20, 3 * 6 * 8 * 4)).view(3, 6, 8, 4)
model = Reader().to(device)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2, alpha=0.95)
for step in range(3):
    wave = waves[step].to(device)
    guess = model(wave[:, :-2])
    loss = F.mse_loss(guess, wave[:, -2:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
