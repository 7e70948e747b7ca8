"""Twenty right ports: what the tool writes for programs in many styles. No proof may call one of them wrong."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.planted.planting import PROGRAMS, ROOT, write_port

SMALL = ROOT / "tests" / "programs"
SAMPLES = ROOT / "samples"
_CLASSIFIER = "--epochs 1 --samples 64 -b 16 -j 0 --image-size 16 --output run"
_TEXT = "--samples 48 --workers 0 --width 16 --layers 1 --block 16 --batch-size 8 --epochs 1 --output run"


@dataclass(frozen=True)
class Right:
    """A program and what it is ported to: one of PORTS, or `sample`, whose port lies beside it."""

    program: Path
    port: str
    nproc: str = "1"
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.program.stem}-{self.port}"


def _each(folder: Path, port: str, nproc: str, names: str) -> list[Right]:
    return [Right(folder / f"{name}.py", port, nproc) for name in names.split()]


RIGHT = [
    *_each(PROGRAMS, "plain", "1", "flat functions trainer amp_native rnn_lm gates"),
    *_each(PROGRAMS, "plain", "1,2", "ranks"),
    *_each(PROGRAMS, "distributed", "2", "flat functions trainer gan accumulation amp_native"),
    *_each(PROGRAMS, "amp", "1", "functions rnn_lm"),
    *_each(SMALL, "plain", "1", "dcgan"),
    *_each(SMALL, "distributed", "2", "ema_model"),
    *_each(SMALL, "amp", "1", "siamese"),
    Right(SAMPLES / "image_classifier", "sample", "1", tuple(_CLASSIFIER.split())),
    Right(SAMPLES / "text_model", "sample", "1,2", tuple(_TEXT.split())),
]


def place(right: Right, folder: Path) -> tuple[Path, Path, str]:
    """Write the original and the port: both folders, and the script in them."""
    if right.port != "sample":
        migrated = write_port(right.program, right.port, folder)
        return folder / "original", migrated, "main.py"
    for name, source in (("original", "cuda"), ("migrated", "expected")):
        shutil.copytree(right.program / source, folder / name)
    return folder / "original", folder / "migrated", "train.py"
