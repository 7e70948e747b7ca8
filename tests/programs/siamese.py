# distributed: converts
# same with W processes: yes
# amp: converts
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class PairDataset(Dataset):
    def __init__(self):
        gen = torch.Generator().manual_seed(1)
        self.a = torch.randn(64, 8, generator=gen)
        self.b = torch.randn(64, 8, generator=gen)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        same = i % 2
        return self.a[i], self.a[i] * 0.9 if same else self.b[i], torch.tensor(float(same))


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward_once(self, x):
        return self.fc(x)

    def forward(self, input1, input2):
        return self.forward_once(input1), self.forward_once(input2)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=2.0):
        super().__init__()
        self.margin = margin

    def forward(self, output1, output2, label):
        distance = F.pairwise_distance(output1, output2)
        return torch.mean(label * distance.pow(2) + (1 - label) * torch.clamp(self.margin - distance, min=0.0).pow(2))


if __name__ == '__main__':
    dataloader = DataLoader(PairDataset(), shuffle=True, num_workers=0, batch_size=8)
    net = SiameseNetwork().cuda()
    criterion = ContrastiveLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    counter, loss_history, iteration_number = [], [], 0
    for epoch in range(2):
        for i, (img0, img1, label) in enumerate(dataloader, 0):
            img0, img1, label = img0.cuda(), img1.cuda(), label.cuda()
            optimizer.zero_grad()
            output1, output2 = net(img0, img1)
            loss_contrastive = criterion(output1, output2, label)
            loss_contrastive.backward()
            optimizer.step()
            if i % 2 == 0:
                print("Epoch number {}\n Current loss {}\n".format(epoch, loss_contrastive.item()))
                iteration_number += 10
                counter.append(iteration_number)
                loss_history.append(loss_contrastive.item())
    torch.save(loss_history, "history.pt")
