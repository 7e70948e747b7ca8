# A language model over a text cut into columns: the hidden state goes on from batch to batch, gradients are clipped.
import math

import torch
import torch.nn as nn

torch.manual_seed(6)
if torch.cuda.is_available():
    torch.cuda.manual_seed(6)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
LENGTH = 6


class Model(nn.Module):
    def __init__(self, words=20, size=12):
        super().__init__()
        self.encoder = nn.Embedding(words, size)
        self.rnn = nn.GRU(size, size, 1)
        self.decoder = nn.Linear(size, words)

    def forward(self, tokens, hidden):
        output, hidden = self.rnn(self.encoder(tokens), hidden)
        return self.decoder(output), hidden


def batches(columns):
    text = (torch.arange(8 * 50) * 7 + torch.arange(8 * 50) // 5) % 20
    data = text.view(columns, -1).t().contiguous().to(device)
    for begin in range(0, data.size(0) - 1 - LENGTH, LENGTH):
        yield data[begin : begin + LENGTH], data[begin + 1 : begin + 1 + LENGTH].reshape(-1)


def evaluate():
    model.eval()
    total, count = 0.0, 0
    hidden = torch.zeros(1, 4, 12, device=device)
    with torch.no_grad():
        for data, targets in batches(4):
            output, hidden = model(data, hidden)
            total += criterion(output.view(-1, 20), targets).item()
            count += 1
    return total / count


model = Model().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
for epoch in range(2):
    model.train()
    hidden = torch.zeros(1, 8, 12, device=device)
    for data, targets in batches(8):
        hidden = hidden.detach()
        model.zero_grad()
        output, hidden = model(data, hidden)
        loss = criterion(output.view(-1, 20), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
    value = evaluate()
    print(f"epoch {epoch}: perplexity {math.exp(value):.3f}")
    for group in optimizer.param_groups:
        group["lr"] /= 2
