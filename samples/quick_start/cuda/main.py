"""Train a small classifier on one card, on all cards of this machine, or on one that is named."""

import argparse
import os
import shutil

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('data', nargs='?', help='not read: the pictures are drawn')
parser.add_argument('--epochs', default=2, type=int)
parser.add_argument('--samples', default=64, type=int)
parser.add_argument('-j', '--workers', default=0, type=int)
parser.add_argument('-b', '--batch-size', default=16, type=int, help='of all GPUs together')
parser.add_argument('--lr', default=0.05, type=float)
parser.add_argument('--resume', default='', metavar='PATH')
parser.add_argument('--evaluate', action='store_true')
parser.add_argument('--seed', default=None, type=int)
parser.add_argument('--gpu', default=None, type=int, help='the one GPU to use')
parser.add_argument('--world-size', default=1, type=int, help='number of machines')
parser.add_argument('--rank', default=0, type=int, help='number of this machine')
parser.add_argument('--dist-url', default='tcp://127.0.0.1:23457')
parser.add_argument('--dist-backend', default='nccl')
parser.add_argument('--multiprocessing-distributed', action='store_true', help='a process for each GPU')

best = 0


class Shapes(Dataset):
    """Pictures with a bright half: which one is the class."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(2, (count,), generator=generator)
        self.images = torch.rand(count, 1, 8, 8, generator=generator)
        self.images[torch.arange(count), 0, self.labels * 4] += 2

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.head = nn.Linear(8 * 64, 2)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


def main():
    args = parser.parse_args()
    args.distributed = args.world_size > 1 or args.multiprocessing_distributed
    cards = torch.cuda.device_count()
    if args.multiprocessing_distributed:
        args.world_size = cards * args.world_size
        mp.spawn(work, nprocs=cards, args=(cards, args))
    else:
        work(args.gpu, cards, args)


def work(gpu, cards, args):
    global best
    args.gpu = gpu
    if args.seed is not None:
        torch.manual_seed(args.seed)
    if args.distributed:
        if args.multiprocessing_distributed:
            args.rank = args.rank * cards + gpu
        dist.init_process_group(
            backend=args.dist_backend, init_method=args.dist_url, world_size=args.world_size, rank=args.rank
        )
    model = Net()
    if not torch.cuda.is_available():
        print('this will be slow')
    elif args.distributed:
        if args.gpu is not None:
            torch.cuda.set_device(args.gpu)
            model.cuda(args.gpu)
            # One process for each GPU: the batch is that of all of them.
            args.batch_size = args.batch_size // cards
            model = nn.parallel.DistributedDataParallel(model, device_ids=[args.gpu])
        else:
            model.cuda()
            model = nn.parallel.DistributedDataParallel(model)
    elif args.gpu is not None:
        torch.cuda.set_device(args.gpu)
        model = model.cuda(args.gpu)
    else:
        model = nn.DataParallel(model).cuda()
    criterion = nn.CrossEntropyLoss().cuda(args.gpu)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    start = 0
    if args.resume:
        if os.path.isfile(args.resume):
            location = None if args.gpu is None else 'cuda:{}'.format(args.gpu)
            checkpoint = torch.load(args.resume, map_location=location)
            start = checkpoint['epoch']
            best = checkpoint['best']
            model.load_state_dict(checkpoint['state_dict'])
            optimizer.load_state_dict(checkpoint['optimizer'])
            print('goes on at epoch', start)
        else:
            print('no checkpoint at', args.resume)
    cudnn.benchmark = True

    train_set = Shapes(args.samples, 1)
    sampler = DistributedSampler(train_set) if args.distributed else None
    train_loader = DataLoader(
        train_set, batch_size=args.batch_size, shuffle=sampler is None, sampler=sampler,
        num_workers=args.workers, pin_memory=True,
    )
    test_loader = DataLoader(Shapes(32, 2), batch_size=args.batch_size, pin_memory=True)
    if args.evaluate:
        validate(test_loader, model, args)
        return
    for epoch in range(start, args.epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer, epoch, args)
        accuracy = validate(test_loader, model, args)
        is_best = accuracy > best
        best = max(accuracy, best)
        if not args.multiprocessing_distributed or args.rank % cards == 0:
            save({
                'epoch': epoch + 1,
                'state_dict': model.state_dict(),
                'best': best,
                'optimizer': optimizer.state_dict(),
            }, is_best)


def train(loader, model, criterion, optimizer, epoch, args):
    model.train()
    for images, target in loader:
        if args.gpu is not None:
            images = images.cuda(args.gpu, non_blocking=True)
        if torch.cuda.is_available():
            target = target.cuda(args.gpu, non_blocking=True)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print('epoch {}: loss {:.4f}'.format(epoch, loss.item()))


def validate(loader, model, args):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, target in loader:
            if args.gpu is not None:
                images = images.cuda(args.gpu, non_blocking=True)
            if torch.cuda.is_available():
                target = target.cuda(args.gpu, non_blocking=True)
            right += (model(images).argmax(1) == target).sum().item()
            total += len(target)
    print('accuracy {:.3f}'.format(right / total))
    return right / total


def save(state, is_best, name='checkpoint.pth'):
    torch.save(state, name)
    if is_best:
        shutil.copyfile(name, 'best.pth')


if __name__ == '__main__':
    main()
