# distributed: refused or converts (batches are drawn from a memory that each rank would fill from an environment of its own)
# amp: refused or converts (what the environment gets must be worked out in the precision of the loss)
import random
from collections import deque

import torch
import torch.nn as nn
import torch.optim as optim

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BATCH_SIZE, GAMMA, TAU = 8, 0.9, 0.05


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        return self.net(x)


class Env:
    def reset(self):
        self.state, self.t = torch.zeros(3), 0
        return self.state

    def step(self, action):
        self.state = self.state + (0.1 if action else -0.1) * torch.tensor([1.0, 0.5, -1.0])
        self.t += 1
        return self.state, -float(self.state.abs().sum()), self.t >= 12


memory = deque([], maxlen=1000)
policy_net = DQN().to(device)
target_net = DQN().to(device)
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)


def select_action(state):
    if random.random() < 0.2:
        return random.randrange(2)
    with torch.no_grad():
        return policy_net(state.unsqueeze(0).to(device)).max(1).indices.item()


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    s, a, r, n = zip(*random.sample(memory, BATCH_SIZE))
    s, n = torch.stack(s).to(device), torch.stack(n).to(device)
    a, r = torch.tensor(a, device=device).unsqueeze(1), torch.tensor(r, device=device)
    q = policy_net(s).gather(1, a)
    with torch.no_grad():
        target = r + GAMMA * target_net(n).max(1).values
    loss = nn.SmoothL1Loss()(q, target.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


env = Env()
for i_episode in range(2):
    state, done = env.reset(), False
    while not done:
        action = select_action(state)
        next_state, reward, done = env.step(action)
        memory.append((state, action, reward, next_state))
        state = next_state
        optimize_model()
        target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
        for key in policy_state:
            target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
        target_net.load_state_dict(target_state)
    print("episode", i_episode)
