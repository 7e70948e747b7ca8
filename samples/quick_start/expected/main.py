"""Train a small classifier on one card, on all cards of this machine, or on one that is named."""

import argparse
import functools
import os
import shutil

import torch
import torch_npu  # noqa: F401
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler
from apex import amp


class OneCardDataParallel(nn.DataParallel):
    """DataParallel on its first card: torch_npu does not divide a batch among the cards of one process."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__(module, [device_ids[0] if device_ids else 0], dim=dim)

    def scatter(self, inputs, kwargs, device_ids):
        def move(value):
            if isinstance(value, torch.Tensor):
                return value.to(self.src_device_obj)
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*map(move, value))
            if isinstance(value, (list, tuple)):
                return type(value)(map(move, value))
            if isinstance(value, dict):
                return type(value)((key, move(each)) for key, each in value.items())
            return value

        return [move(inputs)], [move(kwargs)]


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
parser.add_argument('--dist-backend', default='hccl')
parser.add_argument('--multiprocessing-distributed', action='store_true', help='a process for each GPU')
parser.add_argument('--amp', action='store_true', help='mixed precision on the NPU')
parser.add_argument('--opt-level', default='O2', help='O1 or O2 of apex')
parser.add_argument('--loss-scale', default='dynamic', help='a number, or dynamic')

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
    cards = torch.npu.device_count()
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
    wrap = None
    if not torch.npu.is_available():
        print('this will be slow')
    elif args.distributed:
        if args.gpu is not None:
            torch.npu.set_device(args.gpu)
            model.npu(args.gpu)
            # One process for each GPU: the batch is that of all of them.
            args.batch_size = args.batch_size // cards
            wrap = functools.partial(nn.parallel.DistributedDataParallel, device_ids=[args.gpu])
        else:
            model.npu()
            wrap = nn.parallel.DistributedDataParallel
    elif args.gpu is not None:
        torch.npu.set_device(args.gpu)
        model = model.npu(args.gpu)
    else:
        model = model.npu()
        wrap = OneCardDataParallel
    criterion = nn.CrossEntropyLoss().npu(args.gpu)
    optimizer = torch.optim.SGD(model.parameters(), args.lr, momentum=0.9)
    model, optimizer = amp.initialize(
        model, optimizer,
        enabled=args.amp, opt_level=args.opt_level, loss_scale=args.loss_scale, combine_grad=True,
    )
    if wrap is not None:
        model = wrap(model)
    start = 0
    if args.resume:
        if os.path.isfile(args.resume):
            location = None if args.gpu is None else 'npu:{}'.format(args.gpu)
            checkpoint = torch.load(args.resume, map_location=location)
            start = checkpoint['epoch']
            best = checkpoint['best']
            model.load_state_dict(checkpoint['state_dict'])
            optimizer.load_state_dict(checkpoint['optimizer'])
            if args.amp and checkpoint.get('amp'):
                amp.load_state_dict(checkpoint['amp'])
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
                'amp': amp.state_dict() if args.amp else None,
            }, is_best)


def train(loader, model, criterion, optimizer, epoch, args):
    model.train()
    for images, target in loader:
        if args.gpu is not None:
            images = images.npu(args.gpu, non_blocking=True)
        if torch.npu.is_available():
            target = target.npu(args.gpu, non_blocking=True)
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()
    print('epoch {}: loss {:.4f}'.format(epoch, loss.item()))


def validate(loader, model, args):
    model.eval()
    right = total = 0
    with torch.no_grad():
        for images, target in loader:
            if args.gpu is not None:
                images = images.npu(args.gpu, non_blocking=True)
            if torch.npu.is_available():
                target = target.npu(args.gpu, non_blocking=True)
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
