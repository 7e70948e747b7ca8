# distributed: converts
# same with W processes: yes
# amp: converts
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def net(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 3))


def train_kd(model, teacher_model, optimizer, loss_fn_kd, dataloader):
    model.train()
    teacher_model.eval()
    for i, (train_batch, labels_batch) in enumerate(dataloader):
        train_batch, labels_batch = train_batch.cuda(), labels_batch.cuda()
        output_batch = model(train_batch)
        with torch.no_grad():
            output_teacher_batch = teacher_model(train_batch)
        loss = loss_fn_kd(output_batch, labels_batch, output_teacher_batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def loss_fn_kd(outputs, labels, teacher_outputs, T=4.0, alpha=0.9):
    kd = nn.KLDivLoss(reduction="batchmean")(F.log_softmax(outputs / T, dim=1), F.softmax(teacher_outputs / T, dim=1))
    return kd * (alpha * T * T) + F.cross_entropy(outputs, labels) * (1. - alpha)


if __name__ == '__main__':
    torch.manual_seed(230)
    x = torch.randn(64, 6)
    loader = DataLoader(TensorDataset(x, x[:, :3].argmax(1)), batch_size=8, shuffle=True)
    teacher = net(32).cuda()
    student = net(4).cuda()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
    for epoch in range(2):
        print("epoch", epoch, train_kd(student, teacher, optimizer, loss_fn_kd, loader))
    torch.save(student.state_dict(), "student.pth")
