# distributed: converts
# same with W processes: yes
# amp: converts
# run: --batch {batch}
import argparse
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--gradient_accumulation_steps", type=int, default=2)
args = parser.parse_args()
gen = torch.Generator().manual_seed(1)
tokens = torch.randint(0, 12, (64, 6), generator=gen)
train_dataloader = DataLoader(TensorDataset(tokens, tokens[:, 0] % 3), batch_size=args.batch, shuffle=True)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, input_ids, labels=None):
        logits = self.out(self.embed(input_ids).mean(1))
        return nn.functional.cross_entropy(logits, labels), logits


model = Classifier()
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.1, 1 - step / 10))
global_step, tr_loss = 0, 0.0
model.zero_grad()
for epoch in range(2):
    model.train()
    for step, batch in enumerate(train_dataloader):
        batch = tuple(t.cuda() for t in batch)
        loss = model(batch[0], labels=batch[1])[0]
        if args.gradient_accumulation_steps > 1:
            loss = loss / args.gradient_accumulation_steps
        loss.backward()
        tr_loss += loss.item()
        if (step + 1) % args.gradient_accumulation_steps == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            model.zero_grad()
            global_step += 1
print("global_step = %s, average loss = %s" % (global_step, tr_loss / global_step))
