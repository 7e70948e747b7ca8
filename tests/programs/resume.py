# distributed: converts
# same with W processes: yes
# amp: converts
# run: --batch-size {batch} --epochs 2
# then: resume.py --resume checkpoint.pth.tar --epochs 3
import argparse
import os
import shutil
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description='Training')
parser.add_argument('--resume', default='', type=str, metavar='PATH')
parser.add_argument('--start-epoch', default=0, type=int)
parser.add_argument('--epochs', default=90, type=int)
parser.add_argument('-b', '--batch-size', default=8, type=int)
parser.add_argument('-e', '--evaluate', action='store_true')
best_prec1 = 0


def main():
    global args, best_prec1
    args = parser.parse_args()
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3)).cuda()
    criterion = nn.CrossEntropyLoss().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    if args.resume:
        if os.path.isfile(args.resume):
            print("=> loading checkpoint '{}'".format(args.resume))
            checkpoint = torch.load(args.resume, weights_only=False)
            args.start_epoch = checkpoint['epoch']
            best_prec1 = checkpoint['best_prec1']
            model.load_state_dict(checkpoint['state_dict'])
            optimizer.load_state_dict(checkpoint['optimizer'])
        else:
            print("=> no checkpoint found at '{}'".format(args.resume))
    gen = torch.Generator().manual_seed(0)
    images, labels = torch.randn(80, 1, 4, 4, generator=gen), torch.randint(0, 3, (80,), generator=gen)
    train_loader = DataLoader(TensorDataset(images[:64], labels[:64]), batch_size=args.batch_size, shuffle=True)
    val_loader = DataLoader(TensorDataset(images[64:], labels[64:]), batch_size=8)
    if args.evaluate:
        validate(val_loader, model, criterion)
        return
    for epoch in range(args.start_epoch, args.epochs):
        adjust_learning_rate(optimizer, epoch)
        train(train_loader, model, criterion, optimizer, epoch)
        prec1 = validate(val_loader, model, criterion)
        is_best = prec1 > best_prec1
        best_prec1 = max(prec1, best_prec1)
        save_checkpoint({'epoch': epoch + 1, 'state_dict': model.state_dict(), 'best_prec1': best_prec1,
                         'optimizer': optimizer.state_dict()}, is_best)


def train(train_loader, model, criterion, optimizer, epoch):
    model.train()
    for i, (input, target) in enumerate(train_loader):
        target = target.cuda(non_blocking=True)
        output = model(input.cuda())
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 4 == 0:
            print('Epoch: [{0}][{1}/{2}]\tLoss {loss:.4f}'.format(epoch, i, len(train_loader), loss=loss.item()))


def validate(val_loader, model, criterion):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for input, target in val_loader:
            pred = model(input.cuda()).argmax(1).cpu()
            correct += (pred == target).sum().item()
            total += target.size(0)
    print(' * Prec@1 {:.3f}'.format(correct / total))
    return correct / total


def save_checkpoint(state, is_best, filename='checkpoint.pth.tar'):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, 'model_best.pth.tar')


def adjust_learning_rate(optimizer, epoch):
    for param_group in optimizer.param_groups:
        param_group['lr'] = 0.1 * (0.1 ** (epoch // 30))


if __name__ == '__main__':
    main()
