# distributed: refused or converts (the text is cut into batches without a loader: every rank sees all of it)
# same with W processes: no (every rank sees all of the text)
# amp: converts
# apex: refused or converts (init_hidden takes its type from the weights)
# run: --epochs 1
import argparse
import math

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=40)
parser.add_argument('--batch_size', type=int, default=4)
parser.add_argument('--bptt', type=int, default=6)
parser.add_argument('--cuda', action='store_true', default=True)
args = parser.parse_args()
torch.manual_seed(1111)
device = torch.device("cuda" if args.cuda else "cpu")
corpus = torch.randint(0, 20, (200,))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous().to(device)


class RNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(20, 8)
        self.rnn = nn.LSTM(8, 8)
        self.decoder = nn.Linear(8, 20)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        return self.decoder(output).view(-1, 20), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(1, bsz, 8), weight.new_zeros(1, bsz, 8))


train_data = batchify(corpus, args.batch_size)
val_data = batchify(corpus[:60], 4)
model = RNNModel().to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


def evaluate(source):
    model.eval()
    total_loss = 0.
    hidden = model.init_hidden(4)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, args.bptt):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)
            total_loss += len(data) * criterion(output, targets).item()
    return total_loss / (len(source) - 1)


def train():
    model.train()
    total_loss = 0.
    hidden = model.init_hidden(args.batch_size)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, args.bptt)):
        data, targets = get_batch(train_data, i)
        optimizer.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        total_loss += loss.item()
    print('| loss {:5.2f} | ppl {:8.2f}'.format(total_loss / (batch + 1), math.exp(total_loss / (batch + 1))))


for epoch in range(1, args.epochs + 1):
    train()
    print('valid loss', evaluate(val_data))
    with open('model.pt', 'wb') as f:
        torch.save(model, f)
