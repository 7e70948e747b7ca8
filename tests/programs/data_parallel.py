# distributed: converts
# same with W processes: no (batch statistics)
# amp: converts
# apex: refused (the model is wrapped before the optimizer is created)
# apex O1: converts
# run: --batch {batch}
# then: data_parallel.py --resume
import argparse
import os

import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument('--batch', default=8, type=int)
parser.add_argument('--resume', '-r', action='store_true')
args = parser.parse_args()
device = 'cuda' if torch.cuda.is_available() else 'cpu'
best_acc = 0
start_epoch = 0
gen = torch.Generator().manual_seed(0)
images, labels = torch.randn(64, 1, 4, 4, generator=gen), torch.randint(0, 2, (64,), generator=gen)
trainloader = DataLoader(TensorDataset(images, labels), batch_size=args.batch, shuffle=True)
testloader = DataLoader(TensorDataset(images[:16], labels[:16]), batch_size=8, shuffle=False)
print('==> Building model..')
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 2))
net = net.to(device)
if device == 'cuda':
    net = torch.nn.DataParallel(net)
    cudnn.benchmark = True
if args.resume:
    print('==> Resuming from checkpoint..')
    assert os.path.isdir('checkpoint'), 'Error: no checkpoint directory found!'
    checkpoint = torch.load('./checkpoint/ckpt.pth')
    net.load_state_dict(checkpoint['net'])
    best_acc = checkpoint['acc']
    start_epoch = checkpoint['epoch']
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)


def train(epoch):
    print('\nEpoch: %d' % epoch)
    net.train()
    train_loss = correct = total = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        inputs, targets = inputs.to(device), targets.to(device)
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
        _, predicted = outputs.max(1)
        total += targets.size(0)
        correct += predicted.eq(targets).sum().item()
    print('Loss: %.3f | Acc: %.3f%% (%d/%d)' % (train_loss / (batch_idx + 1), 100. * correct / total, correct, total))


def test(epoch):
    global best_acc
    net.eval()
    correct = total = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            predicted = net(inputs.to(device)).max(1)[1]
            total += targets.size(0)
            correct += predicted.eq(targets.to(device)).sum().item()
    acc = 100. * correct / total
    if acc > best_acc or epoch == 0:
        print('Saving..')
        state = {'net': net.state_dict(), 'acc': acc, 'epoch': epoch}
        if not os.path.isdir('checkpoint'):
            os.mkdir('checkpoint')
        torch.save(state, './checkpoint/ckpt.pth')
        best_acc = acc


for epoch in range(start_epoch, start_epoch + 2):
    train(epoch)
    test(epoch)
