"""Static checks of what `distributed` wrote, and what they say of code that is distributed already."""

from __future__ import annotations

import textwrap

import pytest

from tests.harness import codes, migrate
from transplt.base.settings import Settings
from transplt.engine.engine import index_source
from transplt.fixers.distributed.checks import problems
from transplt.flow.facts import ProjectFacts

HEAD = """\
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler
"""
NOT_ALL = "some ranks do not reach this a collective: "
EARLY = " before the process group exists"
START = 'dist.init_process_group(backend="hccl")\n'


def said(body: str, files: dict[str, str] | None = None) -> list[str]:
    """The sentences about a main file that begins with the imports above."""
    texts = {"main.py": HEAD + textwrap.dedent(body)}
    texts.update({path: textwrap.dedent(text) for path, text in (files or {}).items()})
    outputs = {path: text.encode() for path, text in texts.items()}
    settings = Settings(entry="main.py")
    project = ProjectFacts.join([index_source(data, path, settings) for path, data in sorted(outputs.items())])
    return [each.sentence for each in problems(outputs, "main.py", project)]


@pytest.mark.parametrize(
    "body",
    [
        "dist.all_reduce(x)",
        "if dist.get_rank() == 0:\n    print(x)",
        "if dist.get_rank() != 0:\n    dist.barrier()\nload()\nif dist.get_rank() == 0:\n    dist.barrier()",
        "if dist.get_rank() == 0:\n    dist.broadcast(x, 0)\nelse:\n    dist.broadcast(y, 0)",
        "if dist.get_world_size() > 1:\n    dist.all_reduce(x)",
        "if local_rank != -1:\n    dist.barrier()",
        "if rank >= 0:\n    dist.barrier()",
        "if rank is not None:\n    dist.barrier()",
        "if epoch % 2 == 0:\n    dist.barrier()\n    loss.backward()",
        "if dist.get_rank() == 0:\n    dist.all_reduce(x, group=some)",
        "if dist.get_rank() == 0:\n    raise ValueError\ndist.barrier()",
        "if rank == 0:\n    scheduler.step()",
        "def f():\n    if rank == 0:\n        return\n    print(x)\n\nf()\ndist.barrier()",
        "x = dist.get_rank() if dist.is_initialized() else 0",
        "for x in y:\n    if not sharded and rank != 0:\n        continue\n    if sharded:\n        dist.barrier()",
        "w = SummaryWriter() if dist.get_rank() == 0 else None",
        'if os.environ.get("RANK", "0") == "0":\n    print(x)',
        'if os.environ.get("RANK", "-1") != "-1":\n    dist.barrier()',
        'if int(os.environ.get("RANK", -1)) != -1:\n    dist.barrier()',
        'if os.environ.get("LOCAL_RANK"):\n    dist.barrier()',
        'if os.environ["WORLD_SIZE"] != "1":\n    dist.barrier()',
    ],
)
def test_what_every_rank_reaches(body: str) -> None:
    assert said(START + body) == []


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("if dist.get_rank() == 0:\n    dist.all_reduce(x)", NOT_ALL + "all_reduce()"),
        ("if not rank:\n    dist.barrier()", NOT_ALL + "barrier()"),
        ("if a and is_main_process():\n    dist.barrier()", NOT_ALL + "barrier()"),
        ("if rank == 0:\n    pass\nelse:\n    dist.barrier()", NOT_ALL + "barrier()"),
        ("for x in y:\n    if rank:\n        continue\n    dist.barrier()", NOT_ALL + "barrier()"),
        ('if os.environ.get("RANK", "0") == "0":\n    dist.barrier()', NOT_ALL + "barrier()"),
        ('if os.environ["LOCAL_RANK"] == "0":\n    dist.barrier()', NOT_ALL + "barrier()"),
        ('if int(os.getenv("RANK", 0)) == 0:\n    dist.barrier()', NOT_ALL + "barrier()"),
        ("y = dist.all_reduce(x) if rank == 0 else 0", NOT_ALL + "all_reduce()"),
        ("rank == 0 and dist.barrier()", NOT_ALL + "barrier()"),
        ("if rank == 0:\n    loss.backward()", "some ranks do not reach this a training step: backward()"),
        (
            "net = DistributedDataParallel(net)\nif rank == 0:\n    print(optimizer.step(f))",
            "some ranks do not reach this a training step: step()",
        ),
        ("def mean(x):\n    dist.all_reduce(x)\n\nif rank == 0:\n    mean(x)", NOT_ALL + "all_reduce()"),
        ("with no_grad():\n    if rank:\n        dist.barrier()\n        dist.barrier()", NOT_ALL + "barrier()"),
    ],
)  # fmt: skip
def test_what_not_every_rank_reaches(body: str, what: str) -> None:
    assert set(said(START + body)) == {what}


@pytest.mark.parametrize(
    "body",
    [
        f"{START}print(dist.get_rank())",
        f"def main():\n    print(dist.get_rank())\n\n{START}main()",
        f"def main():\n    {START}    DistributedSampler(x)\n\nif __name__ == '__main__':\n    main()",
        f"import fire\n\ndef main():\n    {START}    DistributedSampler(x)\n\nfire.Fire(main)",
        f"if __name__ == '__main__':\n    {START}\nmodel = DistributedDataParallel(net)",
        f"if dist.is_initialized() and dist.get_rank() == 0:\n    print(x)\n{START}",
        f"def r():\n    if not dist.is_initialized():\n        return 0\n    return dist.get_rank()\n\nr()\n{START}",
        f"if args.test:\n    raise SystemExit\n{START}dist.barrier()",
        f"if not dist.is_initialized():\n    {START}dist.barrier()",
        f"s = DistributedSampler(x, num_replicas=2, rank=0)\n{START}",
        f"{START}dist.destroy_process_group()\n{START}",
        f"class A:\n    def __init__(self):\n        self.r = dist.get_rank()\n\n{START}A()",
    ],
)
def test_a_rank_behind_the_start(body: str) -> None:
    assert said(body) == []


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (f"print(dist.get_rank())\n{START}", "get_rank()" + EARLY),
        (f"s = DistributedSampler(x)\n{START}", "DistributedSampler" + EARLY),
        (f"def f():\n    return DistributedDataParallel(x)\n\nf()\n{START}", "DistributedDataParallel" + EARLY),
        (f"class A:\n    def __init__(self):\n        self.r = dist.get_rank()\n\nA()\n{START}", "get_rank()" + EARLY),
        (f"if args.many:\n    {START}dist.barrier()", "barrier()" + EARLY),
        (f"{START}{START}", "a second process group on one path"),
        (f"def f():\n    {START}\nf()\nf()", "a second process group on one path"),
        ("print(1)", "no process group is created"),
    ],
)  # fmt: skip
def test_a_rank_before_the_start(body: str, what: str) -> None:
    assert said(body) == [what]


def test_a_module_that_is_imported_first() -> None:
    options = {"options.py": "import torch.distributed as dist\n\nrank = dist.get_rank()\n"}
    assert said(f"import options\n{START}", options) == ["get_rank()" + EARLY]
    assert said(f"{START}import options\n", options) == []


def test_another_script_that_shares_the_code() -> None:
    files = {
        "data.py": """\
            from torch.utils.data.distributed import DistributedSampler

            def loader(x):
                return DistributedSampler(x)
            """,
        "test.py": "from data import loader\n\nif __name__ == '__main__':\n    loader(1)\n",
    }
    assert said(f"from data import loader\n{START}loader(1)", files) == [
        "DistributedSampler without a process group when test.py runs this"
    ]
    files["test.py"] = "from data import loader\n\ndef test():\n    loader(1)\n"
    assert said(f"from data import loader\n{START}loader(1)", files) == []
    files["test.py"] = "import data\n\nprint(data)\n"
    assert said(f"from data import loader\n{START}loader(1)", files) == []


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("model = DistributedDataParallel(net())\nmodel.module.save()", []),
        ("model = net()\nmodel = DistributedDataParallel(model)\nmodel.module.save()", []),
        ("model = net()\nx = model.module if hasattr(model, 'module') else model", []),
        ("def f(m):\n    m.module.save()\n\nf(DistributedDataParallel(x))", []),
        ("def f(m):\n    m.module.save()", []),
        ("class A:\n    def __init__(self):\n        self.module = net()\n\na = A()\na.module.save()", []),
        ("model, other = accelerator.prepare(a, b)\nmodel.module.save()", []),
        ("model = net()\nmodel.module.save()", ["model.module, and nothing wraps model"]),
        ("def f(m):\n    m.module.save()\n\nf(net())", ["m.module, and nothing wraps m"]),
    ],
)
def test_the_model_in_the_wrapper(body: str, what: list[str]) -> None:
    assert said(START + body) == what


def test_a_main_file_that_cannot_be_read() -> None:
    assert [each.sentence for each in problems({"a.py": b"("}, "a.py", ProjectFacts())]


# --- code that is distributed already --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("if dist.get_rank() == 0:\n    dist.all_reduce(x)\n", ["NPU330", "NPU350"]),
        ("if args.local_rank == 0:\n    dist.barrier()\n", ["NPU330", "NPU350"]),
        ("if dist.get_rank() == 0:\n    loss.backward()\n", ["NPU330"]),
        ("if rank not in (-1, 0):\n    dist.barrier()\nf()\nif rank == 0:\n    dist.barrier()\n", ["NPU330"]),
        ("if args.local_rank != -1:\n    dist.barrier()\n", ["NPU330"]),
        ("dist.all_reduce(x)\n", ["NPU330"]),
    ],
)  # fmt: skip
def test_collectives_of_the_user(body: str, found: list[str]) -> None:
    result = migrate('import torch.distributed as dist\n\ndist.init_process_group("gloo")\n' + body, entry="train.py")
    assert codes(result, applied=False) == found
    assert b"DistributedDataParallel" not in result.data


def test_collectives_of_a_program_that_is_not_asked_about() -> None:
    source = 'import torch.distributed as dist\n\ndist.init_process_group("gloo")\nif rank == 0:\n    dist.barrier()\n'
    assert codes(migrate(source), applied=False) == []


NETS = """
net, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
{wrap}
first = torch.optim.SGD(net.parameters(), lr=0.1)
second = torch.optim.SGD({second}.parameters(), lr=0.1)
net(x).sum().backward()
{mean}
first.step()
second.step()
"""
WRAP, MEAN = "net = DistributedDataParallel(net)", "for p in net.parameters():\n    dist.all_reduce(p.grad)"


@pytest.mark.parametrize(
    ("wrap", "mean", "second", "what"),
    [
        (WRAP, "", "net", []),
        (WRAP, "", "net.module", []),
        (f"{WRAP}\nother = DistributedDataParallel(other)", "", "other", []),
        ("", MEAN, "other", []),
        (WRAP, "", "unknown()", []),
        (WRAP, "", "other", ["an optimizer of other, whose gradients no rank exchanges"]),
        ("", "", "other", ["an optimizer step that uses the gradients of one rank"]),
        ("", "dist.all_reduce(x)", "net", ["an optimizer step that uses the gradients of one rank"]),
    ],
)
def test_gradients_that_no_rank_exchanges(wrap: str, mean: str, second: str, what: list[str]) -> None:
    body = NETS.replace("{wrap}", wrap).replace("{mean}", mean).replace("{second}", second)
    assert said(START + body) == what
