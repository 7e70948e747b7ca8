"""A device that is written outside of Python: before torch 2.5 what reads it has to import torch_npu."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from transplt.project.options import Options, make_plan
from transplt.project.tree import migrate_tree

IMPORT = "import torch_npu  # noqa: F401\n"
MODEL = "import torch\n\nmodel = torch.nn.Linear(2, 2)\n"
READS = f'import json\n\n{MODEL}cfg = json.load(open("config.json"))\nmodel.to(cfg["device"])\n'
CONFIG = '{"device": "cuda:0", "lr": 0.1}\n'


def outputs(folder: Path, files: dict[str, str], version: str = "2.4", **options: str) -> dict[str, str]:
    """The files of the output, by their paths."""
    source = folder / "in"
    source.mkdir()
    for name, text in files.items():
        (source / name).write_text(text)
    given = Options(source=source, out=folder / "out", torch_version=version, jobs=0, page=False, **options)
    result = migrate_tree(make_plan(given))
    assert not migrate_tree(make_plan(replace(given, source=result.output, out=folder / "again"))).changed
    return {name: (result.output / name).read_text() for name in files}


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("config.json", CONFIG, 'model.to(cfg["device"])'),
        ("config.json", CONFIG, 'model.to(device=cfg.get("device", "cpu"))'),
        ("config.yaml", "train:\n  device: cuda\n", 'model.to(cfg["train"]["device"])'),
        ("config.yaml", "dist:\n  backend: nccl\n", 'torch.distributed.init_process_group(cfg["dist"]["backend"])'),
        ("c.toml", '[model]\ndevice = "cuda"\n', "model.to(cfg.model.device)"),
        ("c.ini", "[model]\ndevice = cuda\n", 'model.to(cfg["model"]["device"])'),
        (".env", "DEVICE=cuda:0\n", 'model.to(os.environ["DEVICE"])'),
        ("run.sh", "python train.py --device cuda\n", "model.to(args.device)"),
    ],
)
def test_who_reads_it_imports_torch_npu(tmp_path: Path, name: str, given: str, read: str) -> None:
    source = f"import os\n\n{MODEL}{read}\n"
    done = outputs(tmp_path, {name: given, "train.py": source, "other.py": MODEL})
    assert done["train.py"] == source.replace("import torch\n", "import torch\n" + IMPORT)
    assert done["other.py"] == MODEL


@pytest.mark.parametrize(
    ("files", "options"),
    [
        ({"train.py": READS, "config.json": CONFIG}, {"version": "2.5"}),  # torch loads it by itself
        ({"train.py": READS, "config.json": CONFIG}, {"style": "portable"}),
        ({"train.py": READS, "config.json": CONFIG.replace("cuda:0", "cpu")}, {}),
        ({"train.py": READS, "config.json": '{"note": "needs cuda", "lr": 0.1}\n'}, {}),
        ({"train.py": READS.replace('model.to(cfg["device"])', 'print(cfg["lr"])'), "config.json": CONFIG}, {}),
        ({"train.py": READS.replace('cfg["device"]', 'cfg["card"]'), "config.json": CONFIG}, {}),
        ({"train.py": READS, "README.md": 'Write "device": "cuda" into it.\n'}, {}),
        # It holds settings, and hands them to others.
        ({"train.py": 'import json\n\ncfg = json.load(open("c.json"))\nprint(cfg["device"])\n', "c.json": CONFIG}, {}),
    ],
)
def test_what_needs_none(tmp_path: Path, files: dict[str, str], options: dict[str, str]) -> None:
    assert outputs(tmp_path, files, **options)["train.py"] == files["train.py"]


def test_it_is_not_written_twice(tmp_path: Path) -> None:
    source = READS + 'model.to("cuda")\n'
    done = outputs(tmp_path, {"train.py": source, "config.json": CONFIG})["train.py"]
    assert done.count("import torch_npu") == 1
