import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Wide(nn.Module):
    def __init__(self, width, classes=4):
        super().__init__()
        self.features = nn.Sequential(nn.Conv1d(2, width, 5, padding=2), nn.BatchNorm1d(width), nn.ReLU(),
                                      nn.Conv1d(width, width, 5, stride=2, padding=2), nn.ReLU())
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(width, classes)

    def forward(self, x):
        return self.fc(self.drop(self.features(x).mean(-1)))


class Distiller:
    def __init__(self, T=3.0, alpha=0.7):
        self.T, self.alpha = T, alpha
        torch.manual_seed(77)
        y = torch.arange(96) % 4
        t = torch.linspace(0, 12.56, 24)
        x = torch.stack([torch.sin((y.view(-1, 1) + 1) * t), torch.cos((y.view(-1, 1) + 1) * t * 0.5)], 1)
        x = x + 0.8 * torch.randn(x.shape)
        self.train_set = TensorDataset(x[:72], y[:72])
        self.val_set = TensorDataset(x[72:], y[72:])
        self.loader = DataLoader(self.train_set, batch_size=12, shuffle=True)
        self.val_loader = DataLoader(self.val_set, batch_size=12)
        self.teacher = Wide(24).npu()
        self.student = Wide(6).npu()

    def train_teacher(self, epochs=2):
        opt = torch.optim.Adam(self.teacher.parameters(), lr=5e-3)
        self.teacher.train()
        for _ in range(epochs):
            for x, y in self.loader:
                loss = F.cross_entropy(self.teacher(x.npu()), y.npu())
                opt.zero_grad()
                loss.backward()
                opt.step()
        print("teacher accuracy %.4f" % self.accuracy(self.teacher))

    def train_student(self, epochs=4, freeze=1):
        self.teacher.eval()
        for p in self.student.features[0].parameters():
            p.requires_grad = False
        opt = torch.optim.SGD(self.student.parameters(), lr=0.1, momentum=0.9)
        sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=epochs * len(self.loader), power=1.0)
        for epoch in range(epochs):
            if epoch == freeze:
                for p in self.student.features[0].parameters():
                    p.requires_grad = True
            self.student.train()
            for x, y in self.loader:
                x, y = x.npu(), y.npu()
                with torch.no_grad():
                    soft = F.softmax(self.teacher(x) / self.T, dim=1)
                out = self.student(x)
                kd = F.kl_div(F.log_softmax(out / self.T, dim=1), soft, reduction="batchmean") * self.T ** 2
                loss = self.alpha * kd + (1 - self.alpha) * F.cross_entropy(out, y)
                opt.zero_grad()
                loss.backward()
                opt.step()
                sched.step()
            print("epoch %d loss %.5f student accuracy %.4f" % (epoch, loss.item(), self.accuracy(self.student)))

    @torch.no_grad()
    def accuracy(self, model):
        was = model.training
        model.eval()
        n = sum((model(x.npu()).argmax(1) == y.npu()).sum().item() for x, y in self.val_loader)
        model.train(was)
        return n / len(self.val_set)


if __name__ == "__main__":
    d = Distiller()
    d.train_teacher()
    d.train_student()
    torch.save(d.student.state_dict(), "student.pt")
