"""Train a classifier. See README.md."""
import json
import logging
import os

import torch
import torch_npu  # noqa: F401
import torch.nn as nn

import npu_port
from checkpoint import load_checkpoint, restore, save_checkpoint
from config import load_config
from data import Normalizer, build_fetcher, build_loaders
from ema import ModelEma
from engine import measure_latency, train_one_epoch, validate
from misc import describe, select_device, set_seed
from models import build_model

log = logging.getLogger('train')


def build_optimizer(cfg, model):
    decay, no_decay = [], []
    for name, param in model.named_parameters():
        (no_decay if param.ndim <= 1 or name.endswith('.bias') else decay).append(param)
    groups = [{'params': decay, 'weight_decay': cfg.weight_decay}, {'params': no_decay, 'weight_decay': 0.0}]
    if cfg.optimizer == 'adamw':
        return torch.optim.AdamW(groups, lr=cfg.lr)
    return torch.optim.SGD(groups, lr=cfg.lr, momentum=cfg.momentum, nesterov=True)


def main(argv=None):
    cfg = load_config(argv)
    os.makedirs(cfg.output, exist_ok=True)
    logging.basicConfig(level=logging.INFO, format='%(message)s')

    device = select_device(cfg.device, cfg.no_cuda)
    cfg.cuda = device.type == 'npu'
    set_seed(cfg.seed, cfg.deterministic)
    log.info('device: %s', describe(device))

    train_loader, val_loader = build_loaders(cfg, device)
    normalize = Normalizer(device)
    train_batches = build_fetcher(cfg, train_loader, device, normalize)
    val_batches = build_fetcher(cfg, val_loader, device, normalize)

    model = build_model(cfg.model, cfg.num_classes, cfg.image_size)
    if cfg.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if cfg.cuda:
        model.npu()
    log.info('%s: %.2f M parameters', cfg.model, sum(p.numel() for p in model.parameters()) / 1e6)

    ema = ModelEma(model, cfg.ema_decay) if cfg.ema_decay > 0 else None
    optimizer = build_optimizer(cfg, model)
    criterion = nn.CrossEntropyLoss(label_smoothing=cfg.label_smoothing)
    if cfg.cuda:
        criterion = criterion.npu()
    scaler = torch.amp.GradScaler("npu", enabled=cfg.amp and device.type == 'npu')

    if cfg.data_parallel and torch.npu.device_count() > 1:
        log.info('using %d GPUs', torch.npu.device_count())
        model = npu_port.OneCardDataParallel(model, device_ids=list(range(torch.npu.device_count())))

    start_epoch, best = 0, 0.0
    if cfg.resume:
        state = load_checkpoint(cfg.resume, device)
        start_epoch, best = restore(state, model, ema, optimizer, scaler)
        log.info('resumed from %s at epoch %d', cfg.resume, start_epoch)

    for epoch in range(start_epoch, cfg.epochs):
        train_loss, train_top1, seconds = train_one_epoch(
            model, ema, train_batches, criterion, optimizer, scaler, device, epoch, cfg)
        val_loss, val_top1, val_top5 = validate(model, val_batches, criterion, device, cfg)
        print(f'epoch {epoch}: train loss {train_loss:.4f} top1 {train_top1:.2f}'
              f' | val loss {val_loss:.4f} top1 {val_top1:.2f} top5 {val_top5:.2f}')
        log.info('%.1f images/s', len(train_loader.dataset) / max(seconds, 1e-9))

        is_best = val_top1 >= best
        best = max(best, val_top1)
        save_checkpoint(os.path.join(cfg.output, 'last.pt'), model, ema, optimizer, scaler, epoch, best, cfg)
        if is_best:
            save_checkpoint(os.path.join(cfg.output, 'best.pt'), model, ema, optimizer, scaler, epoch, best, cfg)

    log.info('forward pass: %.2f ms', measure_latency(model, device, cfg.image_size))
    with open(os.path.join(cfg.output, 'result.json'), 'w') as f:
        json.dump({'best_top1': best, 'epochs': cfg.epochs, 'device': device.type}, f)
    print(f'best top1 {best:.2f}')
    torch.npu.empty_cache()


if __name__ == '__main__':
    main()
