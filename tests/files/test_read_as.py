"""What code reads from configurations, command lines and the environment, and as what."""

from __future__ import annotations

import textwrap

import pytest

from transplt.base.settings import Settings
from transplt.engine.engine import index_source
from transplt.flow import read_as
from transplt.flow.facts import ProjectFacts
from transplt.flow.read_as import Reading


def project(**files: str) -> ProjectFacts:
    """A project of Python files, `train` is train.py."""
    texts = {f"{name}.py": textwrap.dedent(text) for name, text in files.items()}
    return ProjectFacts.join(index_source(text.encode(), path, Settings()) for path, text in texts.items())


def as_words(reading: Reading) -> str:
    return " ".join(sorted(reading.marks)) or ("other" if reading.read else "nothing")


@pytest.mark.parametrize(
    ("code", "key", "expected"),
    [
        # a device or a backend, by where it goes
        ("import torch\nx.to(torch.device(cfg.card))\n", "card", "device"),
        ("import torch\nx.to(cfg['train']['card'])\n", "train.card", "device"),
        ("import torch.distributed as dist\ndist.init_process_group(conf.engine)\n", "engine", "backend"),
        ("import torch\nnet = make(opt.get('card'))\ndef make(card):\n    return torch.zeros(1, device=card)\n",
         "card", "device"),
        # by its name, where a configuration is read
        ("import torch\nd = cfg.device\n", "device", "device"),
        ("import torch\nd = self.cfg.model.device\n", "model.device", "device"),
        ("import torch  # cuda\nargs = parser.parse_args()\nd = args.device\n", "device", "device"),
        ("import torch  # cuda\nmine = parser.parse_args()\nd = mine.device\n", "device", "device"),
        ("import torch  # cuda\ndef f(c: DictConfig):\n    return c.device\n", "device", "device"),
        ("import torch\nd = getattr(cfg, 'device')\n", "device", "device"),
        ("import torch\nb = config['dist']['backend']\n", "dist.backend", "backend"),
        # a file of its own for a part, and a part that the code calls otherwise
        ("import torch\nd = cfg.model.device\n", "device", "device"),
        ("import torch\nd = cfg.train_args.device\n", "train.device", "device"),
        # keys of lists do not count
        ("import torch\nd = cfg['stages'][0]['device']\n", "stages.0.device", "device"),
        # the parameters of what gets all keys
        ("import torch\nclass Net:\n    def __init__(self, card):\n        self.w = torch.ones(1, device=card)\n"
         "Net(**cfg['model'])\n", "model.card", "device"),
        ("from mmcv.runner import init_dist\ninit_dist('x', **cfg.dist_params)  # cuda\n",
         "dist_params.backend", "backend"),
        ("dist_config = config['dist_config']\ninit(1, **dist_config)\n"
         "def init(rank, dist_backend):\n    torch.distributed.init_process_group(dist_backend)  # cuda\n",
         "dist_config.dist_backend", "backend"),
        # a key with dashes is an attribute with underscores, unless somebody reads it as it is written
        ("import torch.distributed as dist\ndist.init_process_group(args.dist_engine)\n", "dist-engine", "backend"),
        ("import torch\nd = cfg.train_part.card\nx.to(torch.device(d))\n", "train-part.card", "device"),
        ("import torch\nx.to(torch.device(cfg.the_card))\nprint(cfg['the-card'])\n", "the-card", "device"),
        ("import torch\nx.to(torch.device(cfg['the-card']))\n", "the_card", "nothing"),
        ("import torch\nx.to(torch.device(cfg.the_card))\n", "thecard", "nothing"),
        # fields and options
        ("import torch\n@dataclass\nclass Train:\n    device: str = 'cuda'\n", "device", "device"),
        ("import torch\nclass TrainConfig(Base):\n    device: str = 'cuda'\n", "device", "device"),
        ("parser.add_argument('--device', default='cuda')\n", "device", "device"),
        # a file silently of CUDA, which is not parsed
        ("import os\nd = cfg.train.device\n", "train.device", "device"),
        ("import os\nd = cfg['train']['device']\n", "train.device", "device"),
        # nobody reads it, whatever it is called
        ("import torch\nx.to('cuda')\n", "device", "nothing"),
        ("import torch\ny.to(x.device)\n", "device", "nothing"),
        ("import torch\nclass Net(Module):\n    device: str\n    def f(self):\n        return self.device  # cuda\n",
         "device", "nothing"),
        ("import torch\nd = predictions.device\n", "device", "nothing"),
        ("import torch\nd = cfg.model.device  # cuda\n", "data.device", "nothing"),
        ("import torch\nd = cfg.other  # cuda\n", "device", "nothing"),
        ("import torch\nx.cuda(cfg.other)\n", "name", "nothing"),
        # somebody else's device
        ("import torch\nd = cfg.sim_device  # cuda\n", "sim_device", "other"),
        ("import jax, torch\njax.run(**cfg.jax)  # cuda\n", "jax.device", "other"),
        # read as different things under the same name: the fuller path decides, else nobody knows
        ("import torch\nx.to(cfg['train']['card'])\nprint(cfg['report']['card'])\n", "train.card", "device"),
        ("import torch\nx.to(cfg['train']['card'])\nreport['card']\n", "report.card", "nothing"),
    ],
)  # fmt: skip
def test_key(code: str, key: str, expected: str) -> None:
    assert as_words(read_as.key(project(train=code), key.split("."))) == expected


def test_a_project_that_chooses_is_left() -> None:
    code = "import torch\nd = 'npu' if torch.npu.is_available() else 'cuda'\nargs.device\n"
    reading = read_as.key(project(train=code), ["device"])
    assert as_words(reading) == "other" and "by itself" in reading.why


@pytest.mark.parametrize(
    ("code", "option", "expected"),
    [
        ("p.add_argument('--device', default='cuda')\n", "--device", "device"),
        ("p.add_argument('--device', default='cuda')\n", "device", "device"),
        ("p.add_argument('-d', '--card', default='cuda')\nx.to(p.parse_args().card)\n", "-d", "device"),
        ("p.add_argument('--dist-backend', default='nccl')\n", "--dist-backend", "backend"),
        ("p.add_argument('--dist-backend', default='nccl')\n", "--dist_backend", "backend"),
        ("p.add_argument('--where', dest='device', default='cuda')\n", "--where", "device"),
        ("import torch\n@click.option('--card')\ndef f(card):\n    torch.device(card)  # cuda\n", "--card", "device"),
        ("import torch\ndef main(card: str = typer.Option('cuda')):\n    torch.device(card)\n", "--card", "device"),
        ("flags.DEFINE_string('device', 'cuda', 'help')\n", "--device", "device"),
        ("@dataclass\nclass Arguments:\n    device: str = 'cuda'\n", "--device", "device"),
        ("import torch\nd = cfg.trainer.device\n", "--trainer.device", "device"),
        ("import torch\nd = cfg.trainer.device\n", "--data.device", "nothing"),
        ("p.add_argument('--name', default='cuda')\n", "--name", "nothing"),
        ("p.add_argument('--model', default='cuda')\n", "--device", "nothing"),
    ],
)
def test_option(code: str, option: str, expected: str) -> None:
    assert as_words(read_as.option(project(train=code), option)) == expected


def test_the_options_of_the_script_come_first() -> None:
    files = project(
        train="p.add_argument('--where', default='cuda')\nx.to(p.parse_args().where)\n",
        other="p.add_argument('--where', dest='nowhere')\np.add_argument('--card', default='cuda')\n",
    )
    assert as_words(read_as.option(files, "--where", "train.py")) == "device"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os, torch\nd = os.environ['DEVICE']\n", "device"),
        ("import os, torch\nd = os.environ.get('DEVICE', 'cuda')\n", "device"),
        ("import os, torch\nd = os.getenv('DEVICE', 'cuda')\n", "device"),
        ("import os\nd = os.environ['DEVICE']\n", "device"),
        ("import os, torch\nd = table['DEVICE']  # cuda\n", "nothing"),
    ],
)
def test_variable(code: str, expected: str) -> None:
    assert as_words(read_as.variable(project(train=code), "DEVICE")) == expected


@pytest.mark.parametrize(
    ("callee", "keyword", "expected"),
    [
        ("train.Net", "card", "device"),
        ("train.Net", "name", "other"),
        ("torch.device", "type", "device"),
        ("torch.distributed.init_process_group", "backend", "backend"),
        ("jax.device_put", "device", "other"),
    ],
)
def test_argument(callee: str, keyword: str, expected: str) -> None:
    code = "import torch\nclass Net:\n    def __init__(self, card, name):\n        torch.zeros(1, device=card)\n"
    assert as_words(read_as.argument(project(train=code), callee, keyword)) == expected
