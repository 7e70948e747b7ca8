"""Train a small classifier on one card, on all cards of this machine, or on several machines."""

import argparse
import functools
import os
import random
import shutil
import time
import warnings

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
import torch.nn.parallel
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.optim
from torch.optim.lr_scheduler import *
import torch.multiprocessing as mp
import torch.utils.data
import torch.utils.data.distributed
from apex import amp

import nets
import npu_port

families = sorted(each for each in nets.__dict__ if each.endswith('_small') and callable(nets.__dict__[each]))

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument('data', nargs='?', metavar='FOLDER', help='not read: the pictures are drawn')
parser.add_argument('-a', '--arch', default='resnet_small', choices=families,
                    help='one of ' + ', '.join(families))
parser.add_argument('-j', '--workers', default=0, type=int)
parser.add_argument('--epochs', default=2, type=int)
parser.add_argument('--start-epoch', default=0, type=int)
parser.add_argument('-b', '--batch-size', default=16, type=int, help='of all GPUs of this machine together')
parser.add_argument('--lr', '--learning-rate', default=0.05, type=float, dest='lr')
parser.add_argument('--momentum', default=0.9, type=float)
parser.add_argument('--wd', '--weight-decay', default=1e-4, type=float, dest='weight_decay')
parser.add_argument('-p', '--print-freq', default=2, type=int)
parser.add_argument('--samples', default=64, type=int)
parser.add_argument('--resume', default='', type=str, metavar='PATH')
parser.add_argument('-e', '--evaluate', dest='evaluate', action='store_true')
parser.add_argument('--pretrained', dest='pretrained', action='store_true')
parser.add_argument('--seed', default=None, type=int)
parser.add_argument('--gpu', default=None, type=int, help='the one GPU to use')
parser.add_argument('--world-size', default=-1, type=int, help='number of machines')
parser.add_argument('--rank', default=-1, type=int, help='number of this machine')
parser.add_argument('--dist-url', default='tcp://127.0.0.1:23457', type=str)
parser.add_argument('--dist-backend', default='hccl', type=str)
parser.add_argument('--multiprocessing-distributed', action='store_true', help='a process for each GPU')
parser.add_argument('--amp', action='store_true', help='mixed precision on the NPU')
parser.add_argument('--opt-level', default='O2', help='O1 or O2 of apex')
parser.add_argument('--loss-scale', default='dynamic', help='a number, or dynamic')

best = 0


class Shapes(torch.utils.data.Dataset):
    """Pictures with a bright row: which one is the class."""

    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(6, (count,), generator=generator)
        self.images = torch.rand(count, 1, 8, 8, generator=generator)
        self.images[torch.arange(count), 0, self.labels] += 2

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def main():
    args = parser.parse_args()

    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        cudnn.deterministic = True
        warnings.warn('a seed makes cuDNN deterministic, which is slower')

    if args.gpu is not None:
        warnings.warn('one GPU is named: the batch is not divided')

    if args.dist_url == 'env://' and args.world_size == -1:
        args.world_size = int(os.environ['WORLD_SIZE'])

    args.distributed = args.world_size > 1 or args.multiprocessing_distributed

    cards = torch.npu.device_count()
    if args.multiprocessing_distributed:
        # So many processes as there are cards on all machines.
        args.world_size = cards * args.world_size
        mp.spawn(work, nprocs=cards, args=(cards, args))
    else:
        work(args.gpu, cards, args)


def work(gpu, cards, args):
    global best
    args.gpu = gpu

    if args.gpu is not None:
        print('on GPU {}'.format(args.gpu))

    if args.distributed:
        if args.dist_url == 'env://' and args.rank == -1:
            args.rank = int(os.environ['RANK'])
        if args.multiprocessing_distributed:
            # The number of this process among those of all machines.
            args.rank = args.rank * cards + gpu
        dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url,
                                world_size=args.world_size, rank=args.rank)
    if args.pretrained:
        print("{} with weights".format(args.arch))
        model = nets.__dict__[args.arch](pretrained=True)
    else:
        print("{} from the start".format(args.arch))
        model = nets.__dict__[args.arch]()

    wrap = None
    if not torch.npu.is_available():
        print('no GPU: this takes a while')
    elif args.distributed:
        if args.gpu is not None:
            torch.npu.set_device(args.gpu)
            model.npu(args.gpu)
            # One process for each GPU: batch and workers are those of all of them.
            args.batch_size = int(args.batch_size / cards)
            args.workers = int((args.workers + cards - 1) / cards)
            wrap = functools.partial(torch.nn.parallel.DistributedDataParallel, device_ids=[args.gpu])
        else:
            model.npu()
            wrap = torch.nn.parallel.DistributedDataParallel
    elif args.gpu is not None:
        torch.npu.set_device(args.gpu)
        model = model.npu(args.gpu)
    else:
        # Where the classifier has most of the weights, only the features are worth dividing.
        if args.arch.startswith('alexnet') or args.arch.startswith('vgg'):
            model.features = npu_port.OneCardDataParallel(model.features)
            model.npu()
        else:
            model = model.npu()
            wrap = npu_port.OneCardDataParallel

    criterion = nn.CrossEntropyLoss().npu(args.gpu)

    optimizer = torch.optim.SGD(model.parameters(), args.lr,
                                momentum=args.momentum,
                                weight_decay=args.weight_decay)
    model, optimizer = amp.initialize(
        model, optimizer,
        enabled=args.amp, opt_level=args.opt_level, loss_scale=args.loss_scale, combine_grad=True,
    )
    if wrap is not None:
        model = wrap(model)
    
    """A tenth of the learning rate after each thirty epochs"""
    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    
    if args.resume:
        if os.path.isfile(args.resume):
            print("reads '{}'".format(args.resume))
            if args.gpu is None:
                checkpoint = torch.load(args.resume)
            else:
                # Tensors that another GPU has written come to this one.
                location = 'npu:{}'.format(args.gpu)
                checkpoint = torch.load(args.resume, map_location=location)
            args.start_epoch = checkpoint['epoch']
            best = checkpoint['best']
            if args.gpu is not None:
                best = best.to(args.gpu)
            model.load_state_dict(checkpoint['state_dict'])
            optimizer.load_state_dict(checkpoint['optimizer'])
            if args.amp and checkpoint.get('amp'):
                amp.load_state_dict(checkpoint['amp'])
            scheduler.load_state_dict(checkpoint['scheduler'])
            print("goes on behind epoch {} of '{}'"
                  .format(checkpoint['epoch'], args.resume))
        else:
            print("no checkpoint at '{}'".format(args.resume))

    cudnn.benchmark = True

    train_set = Shapes(args.samples, 1)

    if args.distributed:
        train_sampler = torch.utils.data.distributed.DistributedSampler(train_set)
    else:
        train_sampler = None

    train_loader = torch.utils.data.DataLoader(
        train_set, batch_size=args.batch_size, shuffle=(train_sampler is None),
        num_workers=args.workers, pin_memory=True, sampler=train_sampler)

    test_loader = torch.utils.data.DataLoader(
        Shapes(32, 2),
        batch_size=args.batch_size, shuffle=False,
        num_workers=args.workers, pin_memory=True)

    if args.evaluate:
        validate(test_loader, model, criterion, args)
        return

    for epoch in range(args.start_epoch, args.epochs):
        if args.distributed:
            train_sampler.set_epoch(epoch)

        train(train_loader, model, criterion, optimizer, epoch, args)
        right = validate(test_loader, model, criterion, args)
        
        scheduler.step()

        is_best = right > best
        best = max(right, best)

        if not args.multiprocessing_distributed or (args.multiprocessing_distributed
                and args.rank % cards == 0):
            save({
                'epoch': epoch + 1,
                'arch': args.arch,
                'state_dict': model.state_dict(),
                'best': best,
                'optimizer' : optimizer.state_dict(),
                'amp': amp.state_dict() if args.amp else None,
                'scheduler' : scheduler.state_dict()
            }, is_best)


def train(loader, model, criterion, optimizer, epoch, args):
    seconds = Mean('seconds', ':6.3f')
    losses = Mean('loss', ':.4e')
    top1 = Mean('right', ':6.2f')
    top3 = Mean('among three', ':6.2f')
    lines = Lines(len(loader), [seconds, losses, top1, top3], prefix='epoch {} '.format(epoch))

    model.train()

    end = time.time()
    for i, (images, target) in enumerate(loader):
        if args.gpu is not None:
            images = images.npu(args.gpu, non_blocking=True)
        if torch.npu.is_available():
            target = target.npu(args.gpu, non_blocking=True)

        output = model(images)
        loss = criterion(output, target)

        right1, right3 = accuracy(output, target, topk=(1, 3))
        losses.add(loss.item(), images.size(0))
        top1.add(right1[0], images.size(0))
        top3.add(right3[0], images.size(0))

        optimizer.zero_grad()
        with amp.scale_loss(loss, optimizer) as scaled_loss:
            scaled_loss.backward()
        optimizer.step()

        seconds.add(time.time() - end, 1)
        end = time.time()

        if i % args.print_freq == 0:
            lines.display(i)


def validate(loader, model, criterion, args):
    losses = Mean('loss', ':.4e')
    top1 = Mean('right', ':6.2f')
    top3 = Mean('among three', ':6.2f')
    lines = Lines(len(loader), [losses, top1, top3], prefix='test ')

    model.eval()

    with torch.no_grad():
        for i, (images, target) in enumerate(loader):
            if args.gpu is not None:
                images = images.npu(args.gpu, non_blocking=True)
            if torch.npu.is_available():
                target = target.npu(args.gpu, non_blocking=True)

            output = model(images)
            loss = criterion(output, target)

            right1, right3 = accuracy(output, target, topk=(1, 3))
            losses.add(loss.item(), images.size(0))
            top1.add(right1[0], images.size(0))
            top3.add(right3[0], images.size(0))

            if i % args.print_freq == 0:
                lines.display(i)

        print('right: {top1.mean:.2f}, among three: {top3.mean:.2f}'
              .format(top1=top1, top3=top3))

    return top1.mean


def save(state, is_best, filename='checkpoint.pth'):
    torch.save(state, filename)
    if is_best:
        shutil.copyfile(filename, 'best.pth')


class Mean(object):
    """The last of some numbers, and the mean of all so far."""

    def __init__(self, name, form):
        self.name = name
        self.line = '{0.name} {0.last' + form + '} (mean {0.mean' + form + '})'
        self.last, self.total, self.count = 0, 0, 0

    def add(self, value, count):
        self.last = value
        self.total += count * value
        self.count += count

    @property
    def mean(self):
        return self.total / self.count

    def __str__(self):
        return self.line.format(self)


class Lines(object):
    def __init__(self, batches, means, prefix=''):
        self.batches, self.means, self.prefix = batches, means, prefix

    def display(self, batch):
        done = '{}batch {} of {}'.format(self.prefix, batch, self.batches)
        print(', '.join([done] + [str(each) for each in self.means]))


def accuracy(output, target, topk=(1,)):
    """In how many of a hundred pictures the class is among the first k answers, for each k."""
    with torch.no_grad():
        _, answers = output.topk(max(topk), 1)
        hits = answers.eq(target.unsqueeze(1)).float()
        return [hits[:, :k].reshape(-1).sum(0, keepdim=True).mul_(100.0 / len(target)) for k in topk]


if __name__ == '__main__':
    main()
