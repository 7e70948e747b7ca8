"""Command line and config file, merged: flag > file > default."""
import argparse
import json
from dataclasses import asdict, dataclass, fields
from typing import Optional


@dataclass
class Config:
    model: str = 'resnet_small'
    num_classes: int = 10
    image_size: int = 32
    samples: int = 8192
    epochs: int = 20
    batch_size: int = 128
    workers: int = 4
    optimizer: str = 'sgd'
    lr: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 5e-4
    label_smoothing: float = 0.0
    warmup_epochs: int = 1
    clip_grad: float = 5.0
    accumulate: int = 1
    ema_decay: float = 0.999
    amp: bool = False
    channels_last: bool = False
    data_parallel: bool = False
    prefetch: bool = False
    device: str = 'npu'
    seed: int = 0
    output: str = 'runs/default'
    resume: Optional[str] = None
    print_freq: int = 20
    no_cuda: bool = False
    deterministic: bool = False

    def to_dict(self):
        return asdict(self)


def build_parser():
    parser = argparse.ArgumentParser(description='Train a small image classifier',
                                     argument_default=argparse.SUPPRESS)
    parser.add_argument('--config', help='JSON file with defaults')
    parser.add_argument('--model', choices=['resnet_small', 'resnet_wide', 'mixer'])
    parser.add_argument('--samples', type=int, help='size of the synthetic training set')
    parser.add_argument('--image-size', type=int)
    parser.add_argument('--epochs', type=int)
    parser.add_argument('-b', '--batch-size', type=int)
    parser.add_argument('-j', '--workers', type=int)
    parser.add_argument('--optimizer', choices=['sgd', 'adamw'])
    parser.add_argument('--lr', type=float)
    parser.add_argument('--weight-decay', type=float)
    parser.add_argument('--label-smoothing', type=float)
    parser.add_argument('--accumulate', type=int, help='batches per optimizer step')
    parser.add_argument('--clip-grad', type=float)
    parser.add_argument('--ema-decay', type=float)
    parser.add_argument('--amp', action='store_true', help='mixed precision (fp16) with loss scaling')
    parser.add_argument('--channels-last', action='store_true')
    parser.add_argument('--data-parallel', action='store_true', help='all visible GPUs in one process')
    parser.add_argument('--prefetch', action='store_true', help='copy the next batch on a side CUDA stream')
    parser.add_argument('--device', help="where to train, e.g. 'npu', 'npu:1' or 'cpu' (default: npu)")
    parser.add_argument('--no-cuda', action='store_true', help='do not use CUDA even if a GPU is there')
    parser.add_argument('--deterministic', action='store_true')
    parser.add_argument('--seed', type=int)
    parser.add_argument('--output')
    parser.add_argument('--resume', help='checkpoint to go on from')
    parser.add_argument('--print-freq', type=int)
    return parser


def load_config(argv=None):
    args = vars(build_parser().parse_args(argv))
    values = {}
    path = args.pop('config', None)
    if path:
        with open(path) as f:
            values.update(json.load(f))
    values.update(args)
    known = {f.name for f in fields(Config)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise SystemExit(f'unknown settings: {", ".join(unknown)}')
    return Config(**values)
