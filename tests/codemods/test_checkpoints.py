"""Files saved on a GPU."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate, pattern
from transplt.base.finding import Level
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.python_in import other_facts
from transplt.flow.facts import ProjectFacts
from transplt.flow.saved_files import saved_files


@pattern("P49", "T16")
@pytest.mark.parametrize(
    "line",
    ["torch.load(path)", "torch.load(path, weights_only=False)", "model.load_state_dict(torch.load(path)['model'])"],
)
def test_a_file_that_may_come_from_a_gpu(line: str) -> None:
    check_noop(f"import torch\nuse_cuda = True\n{line}\n", open_codes=["NPU152"])


@pytest.mark.parametrize(
    ("call", "level"),
    [("torch.jit.load(args.pretrained)", Level.MANUAL), ("torch.jit.load('net.pt')", Level.INFO)],
)
def test_a_script_that_may_come_from_a_gpu(call: str, level: Level) -> None:
    found = check_noop(f"import torch\n{call}\n", files={"b.py": "x = 1\n"}, open_codes=["NPU152"]).findings
    assert [(each.level, each.api) for each in found] == [(level, "torch.jit.load")]


@pytest.mark.parametrize("source", ["import torch\ntorch.load(path)\n", "import torch as th\nth.load(path)\n"])
def test_a_file_with_no_other_word_of_a_rule(source: str) -> None:
    """The load itself makes a file worth a look, not a word that happens to stand beside it."""
    assert [finding.code for finding in migrate(source).findings] == ["NPU152"]


@pattern("P49")
@pytest.mark.parametrize(
    "line",
    [
        "torch.load(path, 'cpu')",
        "torch.load(path, map_location='cpu')",
        "torch.load(path, map_location=where)",
        "torch.load(path, **options)",
        "torch.load(*arguments)",
        "np.load(path)",
        "loader.load(path)",
        "load = torch.load",
        "torch.jit.load(path, 'cpu')",
        "torch.jit.load(path, map_location=where)",
        "joblib.load(path)",
        "scheduler.load_state_dict(torch.load(os.path.join(model_path, 'scheduler.pt')))",
        "self.lr_sched.load_state_dict(torch.load(path))",
    ],
)
def test_the_device_is_said_or_it_is_another_load(line: str) -> None:
    check_noop(f"import numpy as np\nimport torch\nuse_cuda = True\n{line}\n")


def _levels(line: str, files: dict[str, str] | None = None) -> list[Level]:
    source = f"import torch\nuse_cuda = True\n{line}\n"
    result = check_noop(source, files={"other.py": "x = 1\n"} if files is None else files, open_codes=["NPU152"])
    return [finding.level for finding in result.findings if finding.code == "NPU152"]


@pytest.mark.parametrize(
    "line",
    [
        "torch.load('weights/resnet50.pth')",
        "torch.load(os.path.join(root, 'vgg_conv.pth'))",
        "torch.load(root + '/model.pt')",
        "torch.load(Path(root) / 'model.pt')",
        "torch.load(args.pretrained)",
        "torch.load(cfg.MODEL.PRETRAINED_WEIGHTS)",
        "torch.load(load_file_from_url(url))",
        "path = hf_hub_download(repo, name)\ntorch.load(path)",
        "torch.load(open('model.pt', 'rb'))",
    ],
)
def test_a_file_from_elsewhere_is_work(line: str) -> None:
    assert _levels(line) == [Level.MANUAL]


@pytest.mark.parametrize(
    "line",
    [
        "torch.load(args.resume)",
        "torch.load(path)",
        "torch.load(f'{name}.pth')",
        "torch.load(sys.argv[1])",
        "torch.load('model')",
        "torch.save(net.state_dict(), 'last.pt')\ntorch.load('last.pt')",
        "torch.save(net.state_dict(), f'out/epoch_{n}.pt')\ntorch.load('out/epoch_10.pt')",
        "torch.save(net, name + '.pt')\ntorch.load('a.pt')",
        "p = d / 'enc.pt'\ntorch.save(net, p)\ntorch.load(p)",
    ],
)
def test_a_file_of_its_own_is_a_remark(line: str) -> None:
    assert _levels(line) == [Level.INFO]


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("python a.py --eval --ckpt-path=pretrained/net.ckpt", Level.MANUAL),
        ("python a.py --ckpt-path pretrained/net.ckpt --size 2", Level.MANUAL),
        ("python a.py --ckpt-path out/net.ckpt", Level.INFO),
        ("python a.py --other pretrained/net.ckpt", Level.INFO),
        ("python b.py --ckpt-path pretrained/net.ckpt", Level.INFO),
    ],
)
def test_a_file_of_an_option_that_a_readme_gives_weights_of_others(command: str, level: Level) -> None:
    settings = Settings()
    source = b"import torch\nuse_cuda = True\ntorch.load(args.ckpt_path)\n"
    facts = [index_source(source, path, settings) for path in ("a.py", "b.py")]
    readme = other_facts(f"```\n{command}\n```\n".encode(), "README.md", settings)
    project = ProjectFacts.join([*facts, readme] if readme is not None else facts)
    assert [each.level for each in migrate_source(source, "a.py", settings, project).findings] == [level]


@pytest.mark.parametrize(
    ("readme", "lines", "level"),
    [
        ("The checkpoint can be downloaded from [drive](https://a.b/c).", "net.load_state_dict(state)", Level.MANUAL),
        ("| net | [weights](https://a.b/net_80.pth) |", "net.load_state_dict(state)", Level.MANUAL),
        ("| net | [weights](https://a.b/net_80.pth) |", "net.fill(state)", Level.INFO),
        ("You can download the pretrained model(Car) from [here](https://a.b/c)", "net.load_state_dict(state)",
         Level.MANUAL),
        ("# Pretrained Checkpoints\n\n[Link](https://a.b/c)", "net.load_state_dict(state)", Level.MANUAL),
        ("# Pretrained Checkpoints\n\n# Data\n[Link](https://a.b/c)", "net.load_state_dict(state)", Level.INFO),
        ("| net | [weights](https://a.b/net_80.pth) |", "net.load_state_dict(state)\noptimizer.load_state_dict(state)",
         Level.INFO),
        ("Download the ImageNet weights: https://a.b/resnet.pth", "net.load_state_dict(state)", Level.INFO),
        ("Download the data from https://a.b/data.zip. Checkpoints are saved to out/.", "net.load_state_dict(state)",
         Level.INFO),
        ("All models can be downloaded from [our page](https://a.b/c).", "net.load_state_dict(state)", Level.MANUAL),
        ("Download the data from https://a.b/data.zip.\nCheckpoints are saved to out/.", "net.load_state_dict(state)",
         Level.INFO),
    ],
)  # fmt: skip
def test_a_file_of_a_project_whose_readme_offers_some(readme: str, lines: str, level: Level) -> None:
    head = "import torch\nnet.cuda()\nstate = torch.load('last.pt')\ntorch.save(net.state_dict(), 'last.pt')\n"
    source = f"{head}{lines}\n".encode()
    settings = Settings()
    facts = [index_source(source, "a.py", settings), other_facts(readme.encode(), "README.md", settings)]
    project = ProjectFacts.join([each for each in facts if each is not None])
    found = migrate_source(source, "a.py", settings, project).findings
    assert [each.level for each in found if each.code == "NPU152"] == [level]


@pytest.mark.parametrize(("default", "level"), [("=None", Level.MANUAL), ("", Level.INFO)])
def test_a_load_that_serves_training_and_evaluation(default: str, level: Level) -> None:
    source = (
        f"import torch\nuse_cuda = True\ndef load(path, net, optimizer{default}):\n    state = torch.load(path)\n"
        "    net.load_state_dict(state)\n    if optimizer:\n        optimizer.load_state_dict(state)\n"
    ).encode()
    facts = [index_source(source, "a.py", Settings())]
    readme = other_facts(b"Download the checkpoint: https://a.b/net.pth", "README.md", Settings())
    found = migrate_source(source, "a.py", Settings(), ProjectFacts.join([*facts, *([readme] if readme else [])]))
    assert [each.level for each in found.findings if each.code == "NPU152"] == [level]


@pytest.mark.parametrize(
    ("other", "level"),
    [
        ("torch.load(path, map_location='cpu')", Level.MANUAL),
        ("torch.load(path, torch.device('cpu'))", Level.MANUAL),
        ("torch.load(last, map_location='cpu')", Level.INFO),
        ("torch.load(path, map_location=place)", Level.INFO),
        ("torch.load(path)", Level.INFO),
        ("np.load(path)", Level.INFO),
    ],
)
def test_a_file_that_is_loaded_to_the_cpu_without_a_card(other: str, level: Level) -> None:
    lines = f"if torch.cuda.is_available():\n    a = torch.load(path)\nelse:\n    a = {other}\n"
    found = [each for each in migrate(f"import torch\n{lines}").findings if each.code == "NPU152"]
    assert (found[0].level, found[0].blocks) == (level, "later" if level is Level.MANUAL else "")


def test_a_file_that_another_file_of_the_project_saves() -> None:
    files = {"save.py": "import torch\ntorch.save(net.cuda().state_dict(), os.path.join(d, 'last.pt'))\n"}
    assert _levels("torch.load('last.pt')", files) == [Level.INFO]


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("torch.save(net.cpu().state_dict(), 'last.pt')\ntorch.load('last.pt')", {}),
        ("torch.load('data/train.pt')", {"prepare.py": "import torch\ntorch.save(rows, f'{root}/train.pt')\n"}),
        ("torch.load(root + '/train.pt')", {"prepare.py": "import torch\ntorch.save(rows, 'train.pt')\n"}),
    ],
)
def test_a_file_that_was_saved_from_the_cpu_is_silent(line: str, files: dict[str, str]) -> None:
    check_noop(f"import torch\nuse_cuda = True\n{line}\n", files=files)


@pytest.mark.parametrize(
    ("source", "saved"),
    [
        (b"torch.save(a.cpu(), 'x/a.pt')", (("a.pt", True),)),
        (b"torch.save(a, 'x/a.pt')", (("a.pt", True),)),
        (b"a = a.cuda()\ntorch.save(a, 'x/a.pt')", (("a.pt", False),)),
        (b"a = a.to(device)\ntorch.save({'k': a}, f'{d}/e_{n:03d}.pt')", (("e_*.pt", False),)),
        (b"torch.save(a, 'm_%d.pt' % n)\ntorch.save(cuda, '.pth')", (("*.pth", False), ("m_*.pt", False))),
        (b"torch.save(a, path)", ()),
        (b"p = d / 'enc.pt'\ntorch.save({'x': a}, p)\nq = 'a.txt'", (("enc.pt", True),)),
        (b"np.save('a.npy', a)", ()),
    ],
)
def test_what_a_file_saves(source: bytes, saved: tuple[tuple[str, bool], ...]) -> None:
    assert saved_files(source) == saved


_ASKED = "torch.cuda.is_available()"


@pytest.mark.parametrize(
    "lines",
    [
        f"torch.load(path, map_location=None if {_ASKED} else 'cuda:0')",
        f"torch.load(path, 'cpu' if not {_ASKED} else None)",
        f"where = None if {_ASKED} else 'cpu'\ntorch.load(path, map_location=where)",
        f"if {_ASKED}:\n    where = None\nelse:\n    where = 'cpu'\ntorch.load(path, where)",
        "torch.load(path, map_location=None)",
    ],
)
def test_no_place_where_a_device_is_there(lines: str) -> None:
    """On an NPU the condition holds, and what was saved on a GPU does not load."""
    result = migrate(f"import torch\n{lines}\n")
    assert "NPU152" in [finding.code for finding in result.findings]


@pytest.mark.parametrize(
    "lines",
    [
        f"torch.load(path, map_location='cuda' if {_ASKED} else None)",
        f"torch.load(path, map_location=None if not {_ASKED} else 'cuda')",
        f"torch.load(path, map_location='cpu' if {_ASKED} else None)",
        f"where = None\nif {_ASKED}:\n    where = 'cuda'\ntorch.load(path, map_location=where)",
        "def load(path, where=None):\n    return torch.load(path, map_location=where)",
    ],
)
def test_a_place_where_a_device_is_there(lines: str) -> None:
    result = migrate(f"import torch\nuse_cuda = True\n{lines}\n")
    assert "NPU152" not in [finding.code for finding in result.findings]


_LOAD = "def load(path):\n    return torch.load(path)\n"


@pytest.mark.parametrize(
    ("lines", "is_work"),
    [
        ("def load_pretrained(path):\n    return torch.load(path)", True),
        (f"{_LOAD}def load_pretrained_weights(model, path):\n    model.load_state_dict(load(path))", True),
        (f"{_LOAD}def resume(model, path):\n    model.load_state_dict(load(path))", False),
        ("if pretrained:\n    path = find(name)\n    torch.load(path)", True),
        ("if args.pretrain:\n    pass\nelse:\n    torch.load(path)", False),
        ("if not pretrained:\n    torch.load(path)", False),
        ("def load_pretrained(path):\n    return torch.load(path, map_location='cpu')", False),
        ("def load_pretrained(path):\n    return torch.load(LAST)", False),
    ],
)
def test_what_loads_what_somebody_else_trained(lines: str, is_work: bool) -> None:
    found = [each for each in migrate(f"import torch\n{lines}\n").findings if each.code == "NPU152"]
    assert any(each.open for each in found) == is_work
    assert not is_work or [each.blocks for each in found] == ["later"]


@pytest.mark.parametrize(
    "lines",
    [
        f"torch.load(path, map_location=None if {_ASKED} else 'cpu')",
        f"map_location = None if {_ASKED} else 'cpu'\ntorch.load(path, map_location=map_location)",
    ],
)
@pytest.mark.parametrize("style", ["npu", "portable"])
def test_the_cpu_of_a_chooser_is_right_for_every_file(lines: str, style: str) -> None:
    result = migrate(f"import torch\n{lines}\n", style=style)
    assert not result.changed and not [each for each in result.findings if each.open]


_LOADED = """\
import torch
from net import Net
net = torch.nn.DataParallel(Net()).cuda()
LINES
"""


@pytest.mark.parametrize(
    ("lines", "after"),
    [
        # What modules alone take over, they copy: it is the same for them on every device.
        ("net.load_state_dict(torch.load(pretrained_path))",
         "net.load_state_dict(torch.load(pretrained_path, map_location='cpu'))"),
        ("state = torch.load(pretrained_path)\nnet.load_state_dict(state, strict=False)",
         "state = torch.load(pretrained_path, map_location='cpu')\nnet.load_state_dict(state, strict=False)"),
        # The project has saved it, as a rule.
        ("net.load_state_dict(torch.load(last))", ""),
        # Others may keep the tensors as they come.
        ("optimizer.load_state_dict(torch.load(pretrained_path))\noptimizer.to(0)", ""),
        ("ema.load_state_dict(torch.load(pretrained_path))\nema.to(0)", ""),
        ("other.load_state_dict(torch.load(pretrained_path))", ""),
        ("net.load_state_dict(torch.load(pretrained_path), assign=True)", ""),
        ("state = torch.load(pretrained_path)\nnet.load_state_dict(state)\nbest = state['best']", ""),
        ("net.load_state_dict(torch.load(pretrained_path)['model'])", ""),
        ("net.load_state_dict(torch.load(pretrained_path, map_location='cuda'))", ""),
    ],
)  # fmt: skip
def test_in_the_portable_style_what_modules_copy_is_loaded_to_the_cpu(lines: str, after: str) -> None:
    data = _LOADED.replace("LINES", lines).encode()
    text = migrate_source(data, "a.py", Settings(style="portable")).data.decode()
    assert after in text and ("map_location='cpu'" in text) is bool(after)
    assert "map_location='cpu'" not in migrate_source(data, "a.py", Settings()).data.decode()
