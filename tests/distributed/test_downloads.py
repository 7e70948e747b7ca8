"""Downloads: rank 0 goes first, and every rank comes by both barriers, whatever it finds on the way."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.distributed.running import launched, migrated
from tests.distributed.test_pairs import distributed, left, output, script

FIRST = "if dist.get_rank() != 0:\n    dist.barrier()  # rank 0 downloads first\n"
THEN = "if dist.get_rank() == 0:\n    dist.barrier()\n"
GET = 'images = net.MNIST("data", download=True)'


def between(head: str, wanted: str) -> None:
    """The one place of a script that stands between the two barriers."""
    result = distributed(script(head=head))
    found = result.data.decode()
    lines = wanted + "\n"
    column = " " * (len(lines) - len(lines.lstrip(" ")))
    assert textwrap.indent(FIRST, column) + lines + textwrap.indent(THEN, column) in found
    assert found.count("dist.barrier()") == 2 and left(result) == []


@pytest.mark.parametrize(
    "whole",
    [
        f'if not os.path.exists("data"):\n    {GET}',
        f'if net.again or not Path("data").is_dir():\n    os.makedirs("data", exist_ok=True)\n    {GET}',
        f'if net.again:\n    images = None\nelif not os.path.exists("data"):\n    {GET}\nelse:\n    images = 1',
        f'if net.again:\n    if len(os.listdir("data")) == 0:\n        if net.other:\n            {GET}',
        f"try:\n    images = net.MNIST('data')\nexcept RuntimeError:\n    {GET}",
        f"try:\n    images = open('data')\nexcept FileNotFoundError:\n    {GET}",
        f"try:\n    {GET}\nexcept Exception:\n    images = None",
        f"with contextlib.suppress(OSError):\n    {GET}",
        f'with FileLock("data.lock"):\n    {GET}',
        f'for name in os.listdir("lists"):\n    {GET}',
        f'for name in net.names:\n    if not os.path.exists(name):\n        {GET}\n        break',
        f'while not os.path.exists("data"):\n    {GET}',
        f'if os.environ["LOCAL_RANK"] == "0":\n    {GET}',
        'images = os.path.exists("data") or net.MNIST("data", download=True)',
        'images = [net.MNIST(year, download=True) for year in os.listdir("years")]',
        "images = list(net.MNIST(year, download=True) for year in net.years)",
    ],
)  # fmt: skip
def test_what_sends_ranks_past_a_download_stands_between_the_barriers(whole: str) -> None:
    head = "import contextlib\nimport os\nfrom filelock import FileLock\nfrom pathlib import Path\n"
    if whole.startswith("if net.again:\n    if len"):  # the first condition is alike on all ranks
        found = distributed(script(head=head + whole)).data.decode()
        inner = '    if len(os.listdir("data")) == 0:\n        if net.other:\n'
        assert textwrap.indent(FIRST, "    ") + inner in found and found.count("dist.barrier()") == 2
    else:
        between(head + whole, whole)


def test_a_variable_and_a_function_that_ask_for_files() -> None:
    between(f'import os\nmissing = not os.path.exists("data")\nif missing:\n    {GET}', f"if missing:\n    {GET}")
    asks = 'import os\ndef there():\n    return os.path.isdir("data")\n'
    between(f"{asks}if not there():\n    {GET}", f"if not there():\n    {GET}")


@pytest.mark.parametrize("head", ["if args.download:", "for year in range(3):", "with torch.no_grad():"])
def test_a_condition_that_is_alike_on_all_ranks_stays_around_the_barriers(head: str) -> None:
    between(f"from project import args\n{head}\n    {GET}", f"    {GET}")
    between(f"from project import args\nimport os\nos.path.exists('x')\n{head}\n    {GET}", f"    {GET}")


FETCH = """\
import os

def prepare(path):
    {}

"""


@pytest.mark.parametrize(
    "body",
    [
        "if os.path.exists(path):\n        return net.Old(path)\n    x = net.MNIST(path, download=True)\n    return x",
        "return net.MNIST(path, download=True)",
    ],
)  # fmt: skip
def test_a_function_that_may_return_before_is_run_first_as_a_whole(body: str) -> None:
    between(FETCH.format(body) + 'images = prepare("data")', 'images = prepare("data")')
    between(FETCH.format(body) + "if net.two:\n    images = prepare('data')", "    images = prepare('data')")


def test_a_function_that_not_every_rank_calls() -> None:
    body = "images = net.MNIST(path, download=True)\n    return images"
    called = "if not os.path.isdir('data'):\n    prepare('data')"
    between(FETCH.format(body) + called, called)
    between(FETCH.format(body) + "prepare('data')", "    images = net.MNIST(path, download=True)")


def test_a_constructor_that_fetches() -> None:
    head = """
        import os, requests

        class Points(torch.utils.data.Dataset):
            def __init__(self):
                if not os.path.exists("data.txt"):
                    self.text = requests.get("http://data").text

        points = Points()
        """
    between(textwrap.dedent(head), "points = Points()")


@pytest.mark.parametrize(
    "head",
    [
        'SETS = {"a": lambda: net.MNIST("a", download=True)}\nimages = SETS["a"]()',
        "images = (net.MNIST(year, download=True) for year in range(3))",
        "def get(year):\n    images = net.MNIST(year, download=True)\n    return images\n\nnet.pool.map(get, [1, 2])",
        "import requests\ndef get(year):\n    return requests.get(year)\n\nnet.pool.map(get, [1, 2])",
        "def get(year):\n    images = net.MNIST(year, download=True)\n    return images\n\n"
        "class Years(torch.utils.data.Dataset):\n    def __getitem__(self, at):\n        return get(at)\n\nYears()",
    ],
)
def test_what_runs_at_an_unknown_time_is_left_to_the_user(head: str) -> None:
    result = distributed(script(head=head))
    assert set(left(result)) == {"NPU344"} and b"barrier" not in result.data


def test_no_training_stands_between_the_barriers() -> None:
    loop = "for epoch in range(3):\n    for x in loader:\n        model(x).backward()"
    inside = textwrap.indent(f"{GET}\n{loop}", "    ")
    result = distributed(script(loop=f"if not net.os.path.exists('data'):\n{inside}"))
    assert "NPU344" in left(result) and b"barrier" not in result.data


def test_what_rank_0_writes_in_between_is_waited_for_by_the_barriers() -> None:
    """No rank waits for another one where rank 0 runs alone."""
    whole = f'if not os.path.exists("d.pt"):\n    {GET}\n    images.save()\nelse:\n    images = torch.load("d.pt")'
    between(f"import os\n{whole}", whole)
    saves = whole.replace("images.save()", 'torch.save(images, "d.pt")')
    found = distributed(script(head=f"import os\n{saves}")).data.decode()
    assert found.count("dist.barrier()") == 2 and FIRST + "if not os.path.exists" in found


def test_a_dataset_that_gets_a_name_is_downloaded_within_the_condition() -> None:
    loader = "if not os.path.exists('data'):\n    loader = DataLoader(net.MNIST('data', download=True), shuffle=True)"
    found = distributed(script(head="import os", loader=loader)).data.decode()
    lines = "if not os.path.exists('data'):\n    train_set = net.MNIST('data', download=True)\n    loader = "
    assert FIRST + lines in found and found.count("dist.barrier()") == 2


@pytest.mark.torch
@pytest.mark.xdist_group("distributed_downloads")
def test_a_rank_that_finds_half_a_file_waits_for_the_rest(tmp_path: Path) -> None:
    source = Path(__file__).parent / "programs" / "fetched.py"
    lines = launched(migrated(source, tmp_path / "out", "distributed", "-m", str(source)), 2)
    assert lines.count("done") == 1


def test_files_that_were_there_before_send_no_rank_past_other_collectives() -> None:
    """A run that is resumed finds the same files on all ranks: losses and statistics stay those of all."""
    model = """
        model = torch.nn.Sequential(net(), torch.nn.BatchNorm1d(2)).cuda()
        start = 0
        if os.path.exists('last.pt'):
            model.eval()
            start = len(os.listdir('runs'))
    """
    loop = """
        for epoch in range(5):
            if epoch < start:
                continue
            for x in loader:
                loss = model(x).mean()
                loss.backward()
                optimizer.step()
                print(loss.item())
    """
    found = output(script(head="import os", model=model, loop=loop))
    assert "dist.all_reduce(mean_loss)" in found and "continue" in found, found
