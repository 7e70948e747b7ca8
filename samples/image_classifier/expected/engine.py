"""One epoch of training, one pass of validation."""
import logging

import torch
import torch_npu  # noqa: F401
import torch.nn as nn
from torch_npu.npu.amp import autocast

from misc import AverageMeter, accuracy, cosine_lr, memory_mb, time_sync

log = logging.getLogger('train')


def train_one_epoch(model, ema, batches, criterion, optimizer, scaler, device, epoch, cfg):
    model.train()
    losses = AverageMeter('loss')
    top1 = AverageMeter('top1')
    steps_per_epoch = len(batches)
    total = cfg.epochs * steps_per_epoch
    warmup = cfg.warmup_epochs * steps_per_epoch
    if device.type == 'npu':
        torch.npu.reset_peak_memory_stats(device)
    start = time_sync(device)

    optimizer.zero_grad(set_to_none=True)
    for step, (images, target) in enumerate(batches):
        lr = cosine_lr(epoch * steps_per_epoch + step, total, warmup, cfg.lr)
        for group in optimizer.param_groups:
            group['lr'] = lr
        if cfg.channels_last:
            images = images.to(memory_format=torch.channels_last)

        try:
            with autocast(enabled=cfg.amp and device.type == 'npu'):
                output = model(images)
                loss = criterion(output, target) / cfg.accumulate
            scaler.scale(loss).backward()
        except RuntimeError as e:
            if 'CUDA out of memory' not in str(e) and 'NPU out of memory' not in str(e):
                raise
            log.warning('out of memory at step %d, batch skipped', step)
            optimizer.zero_grad(set_to_none=True)
            torch.npu.empty_cache()
            continue

        if (step + 1) % cfg.accumulate == 0 or step + 1 == steps_per_epoch:
            if cfg.clip_grad > 0:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), cfg.clip_grad)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            if ema is not None:
                ema.update(model.module if isinstance(model, nn.DataParallel) else model)

        losses.update(loss.item() * cfg.accumulate, images.size(0))
        top1.update(accuracy(output.detach(), target)[0], images.size(0))
        if step % cfg.print_freq == 0:
            log.info('epoch %d step %d/%d %s %s lr %.5f mem %.0f MB',
                     epoch, step, steps_per_epoch, losses, top1, lr, memory_mb(device))

    seconds = time_sync(device) - start
    return losses.avg, top1.avg, seconds


@torch.no_grad()
def validate(model, batches, criterion, device, cfg):
    model.eval()
    losses = AverageMeter('loss')
    top1 = AverageMeter('top1')
    top5 = AverageMeter('top5')
    for images, target in batches:
        with torch.npu.amp.autocast(enabled=cfg.amp and device.type == 'npu', dtype=torch.float16):
            output = model(images)
            loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        top1.update(acc1, images.size(0))
        top5.update(acc5, images.size(0))
    return losses.avg, top1.avg, top5.avg


def measure_latency(model, device, image_size, batch_size=32, repeats=10):
    """Milliseconds for one forward pass; CUDA events where there is a GPU."""
    model.eval()
    images = torch.randn(batch_size, 3, image_size, image_size, device=device)
    with torch.no_grad():
        model(images)
        if device.type == 'npu':
            start = torch.npu.Event(enable_timing=True)
            end = torch.npu.Event(enable_timing=True)
            start.record()
            for _ in range(repeats):
                model(images)
            end.record()
            torch.npu.synchronize()
            return start.elapsed_time(end) / repeats
        begin = time_sync(device)
        for _ in range(repeats):
            model(images)
        return (time_sync(device) - begin) * 1000.0 / repeats
