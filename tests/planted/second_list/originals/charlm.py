# character-level transformer, one flat script
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

device = "cuda"
torch.manual_seed(1337)

BLOCK, DIM, HEADS, LAYERS, VOCAB = 16, 32, 4, 2, 24
ACCUM = 2
EPOCHS = 2
BATCH = 8

text = torch.cumsum(torch.randint(0, 5, (40 * BLOCK + 1,)), 0) % VOCAB


class Chars(Dataset):
    def __init__(self, data):
        self.data = data

    def __len__(self):
        return (len(self.data) - 1) // BLOCK

    def __getitem__(self, i):
        s = i * BLOCK
        return self.data[s:s + BLOCK], self.data[s + 1:s + BLOCK + 1]


class CausalBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / (C // HEADS) ** 0.5
        mask = torch.tril(torch.ones(T, T, device=x.device)).bool()
        att = att.masked_fill(~mask, float("-inf")).softmax(-1)
        x = x + self.proj((att @ v).transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.ln2(x))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, DIM)
        self.pos = nn.Parameter(torch.zeros(1, BLOCK, DIM))
        self.blocks = nn.ModuleList([CausalBlock() for _ in range(LAYERS)])
        self.ln = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos[:, :idx.size(1)]
        for b in self.blocks:
            x = b(x)
        return self.head(self.ln(x))


cut = 32 * BLOCK
train_loader = DataLoader(Chars(text[:cut + 1]), batch_size=BATCH, shuffle=True)
val_loader = DataLoader(Chars(text[cut:]), batch_size=BATCH)
model = LM().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=5e-3, steps_per_epoch=len(train_loader) // ACCUM, epochs=EPOCHS * 3)

for epoch in range(EPOCHS * 3):
    model.train()
    optimizer.zero_grad(set_to_none=True)
    for i, (x, y) in enumerate(train_loader):
        x, y = x.to(device), y.to(device)
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, VOCAB), y.view(-1)) / ACCUM
        loss.backward()
        if (i + 1) % ACCUM == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        losses = []
        for x, y in val_loader:
            x, y = x.to(device), y.to(device)
            losses.append(F.cross_entropy(model(x).view(-1, VOCAB), y.view(-1)).item())
    print("epoch", epoch, "val loss", sum(losses) / len(losses))
torch.save(model.state_dict(), "charlm.pt")
