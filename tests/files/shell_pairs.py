"""What the tests of scripts and documents share: a project whose options are known, and one file's migration."""

from __future__ import annotations

from functools import cache

from transplt.base.finding import FileResult
from transplt.base.settings import Settings, TorchTarget
from transplt.engine.engine import index_source, join_facts
from transplt.engine.files.kind import FileKind
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts

TARGET = TorchTarget("2.8", "", "2.8.0", "8.5.0", "2.8.0")
#: Options that reach a backend and a device, one that is text, a flag, a variable, and a configuration's key.
TRAIN = b"""
import argparse, os
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--dist-backend", default="nccl")
parser.add_argument("--device", default="cuda")
parser.add_argument("--method", default="cuda_graph")
parser.add_argument("--no-cuda", action="store_true")
args = parser.parse_args()
dist.init_process_group(args.dist_backend)
model = torch.nn.Linear(1, 1).to(args.device)
model.to(os.environ.get("MY_DEVICE", "cuda"))


def main(cfg):
    model.to(cfg.trainer.device)
"""


@cache
def project() -> ProjectFacts:
    """A project with `tools/train.py`."""
    settings = Settings()
    return join_facts([index_source(TRAIN, "tools/train.py", settings)], settings)


def migrated(text: str | bytes, path: str, kind: FileKind, alone: bool = False, **settings: object) -> FileResult:
    """The migration of one file of that project; `alone`: without it."""
    data = text.encode() if isinstance(text, str) else text
    chosen = Settings(torch_version="2.8", **settings)  # type: ignore[arg-type]
    return migrate_other(data, path, kind, chosen, TARGET, None if alone else project())[0]
