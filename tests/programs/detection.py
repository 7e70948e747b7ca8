# distributed: converts
# same with W processes: yes
# amp: converts
import math
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        gen = torch.Generator().manual_seed(i)
        return torch.rand(1, 6, 6, generator=gen), {"boxes": torch.rand(2, 4, generator=gen),
                                                    "labels": torch.randint(0, 3, (2,), generator=gen)}


def collate_fn(batch):
    return tuple(zip(*batch))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU())
        self.boxes, self.scores = nn.Linear(16, 8), nn.Linear(16, 6)

    def forward(self, images, targets=None):
        features = self.body(torch.stack(images))
        boxes, scores = self.boxes(features).view(-1, 2, 4), self.scores(features).view(-1, 2, 3)
        if not self.training:
            return [{"boxes": b, "scores": s} for b, s in zip(boxes, scores)]
        wanted = torch.stack([t["boxes"] for t in targets])
        labels = torch.stack([t["labels"] for t in targets])
        return {"loss_box_reg": nn.functional.l1_loss(boxes, wanted),
                "loss_classifier": nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())}


def train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq):
    model.train()
    for step, (images, targets) in enumerate(data_loader):
        images = list(image.to(device) for image in images)
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        loss_value = losses.item()
        if not math.isfinite(loss_value):
            print("Loss is {}, stopping training".format(loss_value))
            sys.exit(1)
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        if step % print_freq == 0:
            print(epoch, step, loss_value, {k: round(v.item(), 4) for k, v in loss_dict.items()})


@torch.no_grad()
def evaluate(model, data_loader, device):
    model.eval()
    error, count = 0.0, 0
    for images, targets in data_loader:
        outputs = model(list(image.to(device) for image in images))
        for o, t in zip(outputs, targets):
            error += (o["boxes"].cpu() - t["boxes"]).abs().mean().item()
            count += 1
    print("mean error", error / count)


def main():
    device = torch.device('cuda') if torch.cuda.is_available() else torch.device('cpu')
    data_loader = DataLoader(Shapes(64), batch_size=8, shuffle=True, num_workers=0, collate_fn=collate_fn)
    data_loader_test = DataLoader(Shapes(10), batch_size=1, shuffle=False, collate_fn=collate_fn)
    model = Detector()
    model.to(device)
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.02, momentum=0.9, weight_decay=0.0005)
    lr_scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3, gamma=0.1)
    for epoch in range(2):
        train_one_epoch(model, optimizer, data_loader, device, epoch, print_freq=4)
        lr_scheduler.step()
        evaluate(model, data_loader_test, device=device)
    print("That's it!")


if __name__ == "__main__":
    main()
