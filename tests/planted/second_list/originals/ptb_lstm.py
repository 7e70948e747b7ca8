import math

import torch
import torch.nn as nn


class Config:
    vocab = 30
    emb = 16
    hid = 24
    bptt = 10
    batch = 8
    eval_batch = 4
    lr = 2.0
    clip = 0.05
    epochs = 4


def batchify(data, bsz):
    n = data.size(0) // bsz
    return data[:n * bsz].view(bsz, n).t().contiguous().cuda()


class RNNModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.encoder = nn.Embedding(cfg.vocab, cfg.emb)
        self.rnn = nn.LSTM(cfg.emb, cfg.hid, 2)
        self.decoder = nn.Linear(cfg.hid, cfg.vocab)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(out).view(-1, self.cfg.vocab), hidden

    def init_hidden(self, bsz):
        w = next(self.parameters())
        return (w.new_zeros(2, bsz, self.cfg.hid), w.new_zeros(2, bsz, self.cfg.hid))


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        corpus = torch.cumsum(torch.randint(1, 4, (640,)), 0) % cfg.vocab
        self.train_data = batchify(corpus[:480], cfg.batch)
        self.val_data = batchify(corpus[480:], cfg.eval_batch)
        self.model = RNNModel(cfg).cuda()
        self.criterion = nn.CrossEntropyLoss()
        self.lr = cfg.lr
        self.best = None

    def get_batch(self, source, i):
        n = min(self.cfg.bptt, len(source) - 1 - i)
        return source[i:i + n], source[i + 1:i + 1 + n].reshape(-1)

    def repackage(self, hidden):
        return tuple(h.detach() for h in hidden)

    def evaluate(self):
        self.model.eval()
        total = 0.0
        hidden = self.model.init_hidden(self.cfg.eval_batch)
        with torch.no_grad():
            for i in range(0, self.val_data.size(0) - 1, self.cfg.bptt):
                x, y = self.get_batch(self.val_data, i)
                out, hidden = self.model(x, hidden)
                total += len(x) * self.criterion(out, y).item()
        return total / (len(self.val_data) - 1)

    def train_epoch(self, optimizer):
        self.model.train()
        hidden = self.model.init_hidden(self.cfg.batch)
        for i in range(0, self.train_data.size(0) - 1, self.cfg.bptt):
            x, y = self.get_batch(self.train_data, i)
            hidden = self.repackage(hidden)
            optimizer.zero_grad()
            out, hidden = self.model(x, hidden)
            loss = self.criterion(out, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
            optimizer.step()

    def fit(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=self.lr)
        for epoch in range(1, self.cfg.epochs + 1):
            self.train_epoch(optimizer)
            val = self.evaluate()
            print("epoch %d valid loss %.5f ppl %.4f lr %.4f" % (epoch, val, math.exp(val), self.lr))
            if self.best is None or val < self.best - 0.05:
                self.best = val
                torch.save(self.model.state_dict(), "lm.pt")
            else:
                self.lr /= 4.0
                for group in optimizer.param_groups:
                    group["lr"] = self.lr
        print("best loss %.5f" % self.best)


if __name__ == "__main__":
    torch.manual_seed(1111)
    Trainer(Config()).fit()
