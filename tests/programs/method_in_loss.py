# distributed: refused or converts (the loss goes through methods beside forward, which DistributedDataParallel does not see)
# same with W processes: yes
# amp: converts
# apex: refused or converts (get_value runs a part of the model, which O2 does not cast for)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 16)
        self.critic = nn.Linear(16, 1)
        self.actor = nn.Linear(16, 3)

    def get_value(self, x):
        return self.critic(torch.tanh(self.body(x)))

    def get_logits(self, x):
        return self.actor(torch.tanh(self.body(x)))


def main():
    gen = torch.Generator().manual_seed(0)
    states, actions = torch.randn(64, 6, generator=gen), torch.randint(0, 3, (64,), generator=gen)
    returns = states.sum(1, keepdim=True)
    loader = DataLoader(TensorDataset(states, actions, returns), batch_size=8, shuffle=True)
    agent = Agent().cuda()
    optimizer = torch.optim.SGD(agent.parameters(), lr=0.01)
    for epoch in range(2):
        for s, a, r in loader:
            s, a, r = s.cuda(), a.cuda(), r.cuda()
            policy_loss = nn.functional.cross_entropy(agent.get_logits(s), a)
            value_loss = nn.functional.mse_loss(agent.get_value(s), r)
            loss = policy_loss + 0.5 * value_loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item())


if __name__ == "__main__":
    main()
