"""Packages that are no part of a project."""

from __future__ import annotations

import sys

#: Top-level packages that are never the project's own.
LIBRARIES = frozenset(
    "torch torchvision torchaudio numpy scipy pandas matplotlib os sys re math time json random logging argparse "
    "typing collections functools itertools pathlib subprocess copy warnings inspect contextlib dataclasses abc "
    "enum shutil glob pickle datetime io tempfile threading multiprocessing unittest pytest transformers "
    "accelerate datasets einops tqdm yaml cv2 PIL sklearn absl wandb omegaconf hydra pytorch_lightning lightning "
    "deepspeed apex triton jax flax".split()
)


def is_library(full: str) -> bool:
    """True for a full name in one of these packages, or in Python's own."""
    root = full.partition(".")[0]
    return root in LIBRARIES or root in sys.stdlib_module_names
