# distributed: converts
# same with W processes: yes
# amp: converts
import torch
from torch.utils.data import DataLoader

from losses import DetectionLoss, compute_loss
from shapes import Boxes, Net


def main():
    loader = DataLoader(Boxes(), batch_size=8, shuffle=True)
    model = Net().cuda()
    criterion = DetectionLoss().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, weight_decay=1e-4)
    for epoch in range(2):
        for batch in loader:
            loss, parts = compute_loss(model, criterion, [t.cuda() for t in batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            print(epoch, " ".join(f"{k}={v.item():.4f}" for k, v in parts.items()))


if __name__ == "__main__":
    main()
