"""Configurations in Python: files of data, which need no `import torch_npu` for a string in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import check_rewrite, clean, migrate
from tests.test_given_values import outputs

IMPORT = "import torch_npu  # noqa: F401\n"
RUNTIME = """
    from mmengine.hooks import CheckpointHook

    default_hooks = dict(checkpoint=dict(type=CheckpointHook, interval=1))
    env_cfg = dict(cudnn_benchmark=False, dist_cfg=dict(backend='nccl'))
"""
LEAF = """
    import torch
    from mmengine.config import read_base
    from mmengine.optim import AmpOptimWrapper
    from torch.optim import AdamW

    with read_base():
        from .._base_.default_runtime import *

    optim_wrapper = dict(type=AmpOptimWrapper, optimizer=dict(type=AdamW, lr=1e-4), dtype=torch.float16)
    if optim_wrapper['dtype']:
        model.update(dict(device='cuda:0', init_cfg=dict(map_location=f'cuda:{0}')))
"""


@pytest.mark.parametrize("version", ["2.4", "2.8"])
@pytest.mark.parametrize(
    "source",
    [
        RUNTIME,
        LEAF,
        "from lib import Net\n_base_ = ['../base.py']\ndevice = 'cuda'\n",
        "from lib import Net\nmodel = {'type': Net, 'device': 'cuda'}\ndel Net\n",
        "import os.path as osp\nfrom lib import Net\nmodel = dict(type=Net, device='cuda', data=osp.join('a', 'b'))\n",
    ],
)
def test_strings_of_a_configuration_need_no_import(source: str, version: str) -> None:
    npu = source.replace("cuda", "npu").replace("nccl", "hccl")
    check_rewrite(source, npu, path="configs/a.py", torch_version=version, open_codes=[])


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nCONFIG = dict(device='cuda')\n",  # of a program: nothing says that a loader reads it
        "import torch\nDEVICE = 'cuda'\n",
        "from lib import Net, run\ncfg = dict(type=Net, device='cuda')\nrun(cfg)\n",
        "from lib import Net\nnet = Net(dict(type='a', device='cuda'))\n",
        "from lib import Net\ncfg = dict(type=Net, device='cuda')\n\n\ndef make():\n    return Net(**cfg)\n",
        "import torch\ncfg = dict(type='a', device=torch.device('cuda'))\n",
        "import torch\ncfg = dict(type='a', count=torch.cuda.device_count, device='cuda')\n",
        "from lib import open_it\nwith open_it():\n    cfg = dict(type='a', device='cuda')\n",
    ],
)
def test_what_may_run_gets_the_import(source: str) -> None:
    assert IMPORT in migrate(clean(source), path="configs/a.py", torch_version="2.4").data.decode()


READS = "import torch\nfrom mmengine.config import Config\n\ncfg = Config.fromfile('conf.py')\nnet.to({})\n"


@pytest.mark.parametrize(
    ("version", "read", "there"),
    [
        ("2.4", "cfg.device", True),  # nothing else loads torch_npu there
        ("2.4", "cfg['device']", True),
        ("2.4", "cfg.dtype", False),
        ("2.8", "cfg.device", False),
    ],
)
def test_who_reads_a_configuration_imports_torch_npu(tmp_path: Path, version: str, read: str, there: bool) -> None:
    files = {"conf.py": "from lib import Net\nmodel = dict(type=Net)\ndevice = 'cuda'\n", "main.py": READS.format(read)}
    done = outputs(tmp_path, files, version)
    assert done["conf.py"].endswith("device = 'npu'\n") and IMPORT not in done["conf.py"]
    assert (IMPORT in done["main.py"]) is there
