import argparse

import timm
import torch
import torch_npu  # noqa: F401
from timm.loss import LabelSmoothingCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import AverageMeter, ModelEmaV2, NativeScaler, accuracy
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("-b", "--batch-size", type=int, default=8)
parser.add_argument("--lr", type=float, default=2e-3)
parser.add_argument("--weight-decay", type=float, default=0.05)
parser.add_argument("--clip-grad", type=float, default=1.0)
parser.add_argument("--model-ema-decay", type=float, default=0.8)


def synth(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.arange(n) % 4
    x = 0.7 * torch.randn(n, 3, 32, 32, generator=g)
    for c in range(4):
        x[y == c, c % 3, (c * 8):(c * 8 + 8)] += 1.0
    return TensorDataset(x, y)


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, scaler, scheduler, ema, args):
    model.train()
    losses = AverageMeter()
    updates = epoch * len(loader)
    for x, y in loader:
        x, y = x.npu(), y.npu()
        with torch.autocast("npu", dtype=torch.bfloat16, enabled=False):
            loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters())
        ema.update(model)
        updates += 1
        scheduler.step_update(num_updates=updates)
        losses.update(loss.item(), x.size(0))
    return losses.avg


@torch.no_grad()
def validate(model, loader, loss_fn):
    model.eval()
    losses, top1 = AverageMeter(), AverageMeter()
    for x, y in loader:
        x, y = x.npu(), y.npu()
        out = model(x)
        losses.update(loss_fn(out, y).item(), x.size(0))
        top1.update(accuracy(out, y, topk=(1,))[0].item(), x.size(0))
    return losses.avg, top1.avg


def main():
    args = parser.parse_args()
    timm.utils.random_seed(42, 0)
    model = timm.create_model("resnet10t", pretrained=False, num_classes=4).npu()
    ema = ModelEmaV2(model, decay=args.model_ema_decay)
    optimizer = create_optimizer_v2(model, opt="adamw", lr=args.lr, weight_decay=args.weight_decay)
    scaler = NativeScaler(device="npu")
    train_loader = DataLoader(synth(32, 0), batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(synth(16, 1), batch_size=args.batch_size)
    total = args.epochs * len(train_loader)
    scheduler = CosineLRScheduler(optimizer, t_initial=total, lr_min=1e-5, warmup_t=3, warmup_lr_init=1e-4, t_in_epochs=False)
    loss_fn = LabelSmoothingCrossEntropy(0.1).npu()
    for epoch in range(args.epochs):
        train_loss = train_one_epoch(epoch, model, train_loader, optimizer, loss_fn, scaler, scheduler, ema, args)
        val_loss, acc = validate(model, val_loader, torch.nn.CrossEntropyLoss())
        ema_loss, ema_acc = validate(ema.module, val_loader, torch.nn.CrossEntropyLoss())
        print(f"epoch {epoch} train loss {train_loss:.5f} val loss {val_loss:.5f} accuracy {acc:.3f} ema loss {ema_loss:.5f}")
    torch.save({"state_dict": model.state_dict(), "state_dict_ema": ema.module.state_dict()}, "last.pth.tar")


if __name__ == "__main__":
    main()
