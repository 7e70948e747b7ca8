import os
import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
import torch.distributed as dist
from torch.utils.data.distributed import DistributedSampler


def average_gradients(optimizer):
    """Give each rank the mean of the gradients of all ranks."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad /= dist.get_world_size()


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
        self.loader = DataLoader(self.train_set, batch_size=12, sampler=DistributedSampler(self.train_set))
        self.val_loader = DataLoader(self.val_set, batch_size=12)
        self.teacher = Wide(24).npu()
        self.student = Wide(6).npu()

    def train_teacher(self, epochs=2):
        opt = torch.optim.Adam(self.teacher.parameters(), lr=5e-3)
        for group in opt.param_groups:
            for parameter in group["params"]:
                parameter_of_rank_0 = parameter.detach().to("npu")
                dist.broadcast(parameter_of_rank_0, 0)
                parameter.detach().copy_(parameter_of_rank_0)
        self.teacher.train()
        torch.manual_seed((torch.initial_seed() + dist.get_rank()) % 2**64)
        for epoch_index in range(epochs):
            self.loader.sampler.set_epoch(epoch_index)
            for x, y in self.loader:
                loss = F.cross_entropy(self.teacher(x.npu()), y.npu())
                opt.zero_grad()
                loss.backward()
                average_gradients(opt)
                opt.step()
        value = "teacher accuracy %.4f" % self.accuracy(self.teacher)
        if dist.get_rank() == 0:
            print(value)

    def train_student(self, epochs=4, freeze=1):
        for buffer in self.teacher.buffers():
            buffer_of_rank_0 = buffer.detach().to("npu")
            dist.broadcast(buffer_of_rank_0, 0)
            buffer.detach().copy_(buffer_of_rank_0)
        self.teacher.eval()
        for p in self.student.features[0].parameters():
            p.requires_grad = False
        opt = torch.optim.SGD(self.student.parameters(), lr=0.1, momentum=0.9)
        for group in opt.param_groups:
            for parameter in group["params"]:
                parameter_of_rank_0 = parameter.detach().to("npu")
                dist.broadcast(parameter_of_rank_0, 0)
                parameter.detach().copy_(parameter_of_rank_0)
        sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=epochs * len(self.loader), power=1.0)
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
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
                average_gradients(opt)
                opt.step()
                sched.step()
            mean_loss = loss.detach().clone()
            dist.all_reduce(mean_loss)
            mean_loss /= dist.get_world_size()
            shown_value = "epoch %d loss %.5f student accuracy %.4f" % (epoch, mean_loss.item(), self.accuracy(self.student))
            if dist.get_rank() == 0:
                print(shown_value)

    @torch.no_grad()
    def accuracy(self, model):
        was = model.training
        for buffer in model.buffers():
            buffer_of_rank_0 = buffer.detach().to("npu")
            dist.broadcast(buffer_of_rank_0, 0)
            buffer.detach().copy_(buffer_of_rank_0)
        model.eval()
        n = sum((model(x.npu()).argmax(1) == y.npu()).sum().item() for x, y in self.val_loader)
        model.train(was)
        return n / len(self.val_set)


if __name__ == "__main__":
    torch.npu.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend="hccl")
    d = Distiller()
    d.train_teacher()
    d.train_student()
    if dist.get_rank() == 0:
        torch.save(d.student.state_dict(), "student.pt")
    dist.destroy_process_group()
