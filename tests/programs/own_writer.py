# distributed: converts
# same with W processes: yes
# amp: converts
import html
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Writer:
    """Writes scalars to a file, and a page."""

    def __init__(self, log_dir):
        os.makedirs(log_dir)
        self.file = open(os.path.join(log_dir, "events.txt"), "w")
        self.page = os.path.join(log_dir, "index.html")
        self.rows = []

    def add_scalar(self, tag, value, step):
        self.file.write(f"{tag} {step} {value}\n")
        self.rows.append((tag, step, value))

    def close(self):
        self.file.close()
        with open(self.page, "w") as page:
            for tag, step, value in self.rows:
                page.write(f"<p>{html.escape(tag)} {step}: {value:.4f}</p>\n")


def main():
    writer = Writer("runs")
    x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    loader = DataLoader(TensorDataset(x, x.prod(1, keepdim=True)), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=2, steps_per_epoch=len(loader))
    step, begun = 0, time.time()
    for epoch in range(2):
        for a, b in loader:
            loss = nn.functional.mse_loss(model(a.cuda()), b.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            writer.add_scalar("train/loss", loss.item(), step)
            writer.add_scalar("train/lr", scheduler.get_last_lr()[0], step)
            step += 1
        print(f"epoch {epoch}: {time.time() - begun:.1f} s")
    writer.close()


if __name__ == "__main__":
    main()
