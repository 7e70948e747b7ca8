"""Shop: people and things by their numbers, neighbours that are gathered and added up, Adam."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(71)
device = torch.device("cuda")
PEOPLE, THINGS, WIDTH = 30, 40, 12


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.people = nn.Embedding(PEOPLE, WIDTH)
        self.things = nn.Embedding(THINGS, WIDTH)
        self.table = nn.Parameter(torch.randn(PEOPLE, WIDTH))
        self.mix = nn.Linear(3 * WIDTH, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, who: torch.Tensor, what: torch.Tensor, friends: torch.Tensor, edges: torch.Tensor):
        a = self.people(who)
        b = self.things(what)
        near = self.table.index_select(0, friends.flatten()).view(*friends.shape, -1)
        near = near.mean(dim=1)
        sums = torch.zeros_like(a)
        sums = sums.scatter_add(0, edges[0][:, None].expand(-1, WIDTH), b[edges[1]])
        best = a.topk(3, dim=-1).indices
        a = a + torch.gather(near, 1, best).sum(dim=1, keepdim=True)
        x = torch.cat((a, near, sums), dim=-1)
        return self.out(torch.tanh(self.mix(x))).squeeze(-1)


who, what = torch.randint(0, PEOPLE, (3, 16)), torch.randint(0, THINGS, (3, 16))
friends, edges = torch.randint(0, PEOPLE, (3, 16, 4)), torch.randint(0, 16, (3, 2, 20))
bought = torch.randint(0, 2, (3, 16)).float()
for numbers, most in ((who, PEOPLE), (what, THINGS), (friends, PEOPLE), (edges, 16)):
    numbers.view(3, -1)[:, 0], numbers.view(3, -1)[:, 1] = 0, most - 1
model = Model().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(3):
    given = [each[step].to(device) for each in (who, what, friends, edges)]
    guess = model(*given)
    goal = bought[step].to(device)
    loss = F.binary_cross_entropy_with_logits(guess, goal)
    loss = loss + 1e-3 * model.table.pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step + 1} loss {loss.item():.6f}", flush=True)
