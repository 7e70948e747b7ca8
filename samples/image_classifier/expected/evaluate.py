"""Evaluate a checkpoint: python evaluate.py --checkpoint runs/x/best.pt"""
import argparse

import torch
import torch_npu  # noqa: F401
import torch.nn as nn

from config import Config
from data import Normalizer, build_fetcher, build_loaders
from engine import validate
from misc import set_seed
from models import build_model


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument('--checkpoint', required=True)
    parser.add_argument('--device', default='npu' if torch.npu.is_available() else 'cpu',
                        choices=['npu', 'cpu'])
    parser.add_argument('--weights', default='ema', choices=['ema', 'model'])
    parser.add_argument('--half', action='store_true', help='evaluate in fp16 (CUDA only)')
    return parser.parse_args()


def main():
    args = parse_args()
    device = torch.device(args.device)
    state = torch.load(args.checkpoint, map_location=lambda storage, loc: storage, weights_only=False)
    cfg = Config(**{k: v for k, v in state['config'].items() if k in Config.__dataclass_fields__})
    cfg.amp = args.half
    set_seed(cfg.seed)

    model = build_model(cfg.model, cfg.num_classes, cfg.image_size)
    model.load_state_dict(state[args.weights] or state['model'])
    model = model.to(device)

    _, val_loader = build_loaders(cfg, device)
    batches = build_fetcher(cfg, val_loader, device, Normalizer(device))
    loss, top1, top5 = validate(model, batches, nn.CrossEntropyLoss().to(device), device, cfg)
    print(f'{args.checkpoint}: loss {loss:.4f} top1 {top1:.2f} top5 {top5:.2f}')


if __name__ == '__main__':
    main()
