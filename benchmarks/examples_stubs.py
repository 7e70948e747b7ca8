"""What pytorch/examples (of 2024) needs without a network and with today's packages; nothing of it concerns npu.

Used with `--stubs` beside the ready stub file for torchvision.
"""

import argparse
import functools

import torch
from npu_emulator.stubs import when_imported

# Whole modules are loaded: the default of torch.load was weights_only=False then.
_load = torch.load
torch.load = functools.wraps(_load)(lambda *a, **k: _load(*a, **{"weights_only": False, **k}))
# fast_neural_style asks for args.mps in a subcommand that does not define it.
argparse.Namespace.mps = False


def _old_name(image):
    image.ANTIALIAS = image.LANCZOS


when_imported("PIL.Image", _old_name)
