# distributed: refused or converts (the data comes from an environment: each rank would play its own, and steps count episodes)
# amp: refused or converts (the forward pass is in another function than the loss)
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical


class Corridor:
    def reset(self):
        self.at, self.steps = 2, 0
        return self.state()

    def state(self):
        return F.one_hot(torch.tensor(self.at), 5).float()

    def step(self, action):
        self.at = min(max(self.at + (1 if action else -1), 0), 4)
        self.steps += 1
        return self.state(), float(self.at == 4), self.at in (0, 4) or self.steps > 10


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(5, 8)
        self.affine2 = nn.Linear(8, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=1)


env = Corridor()
policy = Policy().cuda()
optimizer = optim.Adam(policy.parameters(), lr=1e-2)


def select_action(state):
    probs = policy(state.unsqueeze(0).cuda())
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R, returns = 0, []
    for r in policy.rewards[::-1]:
        R = r + 0.9 * R
        returns.insert(0, R)
    policy_loss = torch.cat([-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


def main():
    for i_episode in range(5):
        state, done = env.reset(), False
        while not done:
            state, reward, done = env.step(select_action(state))
            policy.rewards.append(reward)
        finish_episode()
        print('Episode {}'.format(i_episode))


if __name__ == '__main__':
    main()
