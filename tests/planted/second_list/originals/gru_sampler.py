"""Imbalanced sequence classification: weighted sampler, padding in the collate, packed GRU, focal loss."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

SEED = 17
PAD = 0


class Reviews(Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(n):
            label = int(rng.random() < 0.2)
            length = rng.randint(3, 9)
            lo, hi = (1, 14) if label == 0 else (8, 20)
            self.items.append((torch.tensor([rng.randint(lo, hi) for _ in range(length)]), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    seqs, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in seqs])
    return pad_sequence(seqs, batch_first=True, padding_value=PAD), lengths, torch.tensor(labels)


class GRUClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(21, 12, padding_idx=PAD)
        self.gru = nn.GRU(12, 20, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(40, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.emb(x), lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, h = self.gru(packed)
        return self.fc(torch.cat([h[0], h[1]], dim=1))


def focal_loss(logits, target, gamma=2.0):
    ce = F.cross_entropy(logits, target, reduction="none")
    return ((1 - torch.exp(-ce)) ** gamma * ce).mean()


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    train_set, val_set = Reviews(80, 1), Reviews(30, 2)
    labels = torch.tensor([y for _, y in train_set.items])
    weights = (1.0 / torch.bincount(labels).float())[labels]
    sampler = WeightedRandomSampler(weights, num_samples=len(train_set), replacement=True)
    train_loader = DataLoader(train_set, batch_size=10, sampler=sampler, collate_fn=collate)
    val_loader = DataLoader(val_set, batch_size=10, collate_fn=collate)
    model = GRUClassifier().to("cuda")
    optimizer = torch.optim.Adam(
        [{"params": model.emb.parameters(), "lr": 1e-3}, {"params": list(model.gru.parameters()) + list(model.fc.parameters())}],
        lr=5e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    for epoch in range(3):
        model.train()
        total = 0.0
        for x, lengths, y in train_loader:
            x, y = x.to("cuda"), y.to("cuda")
            optimizer.zero_grad()
            loss = focal_loss(model(x, lengths), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.gru.parameters(), 0.05)
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        hits = [0, 0]
        counts = [0, 0]
        with torch.no_grad():
            for x, lengths, y in val_loader:
                pred = model(x.to("cuda"), lengths).argmax(1).cpu()
                for c in (0, 1):
                    hits[c] += ((pred == y) & (y == c)).sum().item()
                    counts[c] += (y == c).sum().item()
        recall = [h / max(c, 1) for h, c in zip(hits, counts)]
        print("epoch %d loss %.6f balanced accuracy %.4f" % (epoch, total / len(train_loader), sum(recall) / 2))


if __name__ == "__main__":
    main()
