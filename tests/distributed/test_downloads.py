"""Downloads: the ranks of a host go one by one, and what asks for the files does so under the lock, too."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.distributed.running import launched, migrated
from tests.distributed.test_pairs import distributed, left, output, script

LOCK = 'with npu_port.first_on_host("downloads"):'
GET = 'images = net.MNIST("data", download=True)'


def locked(lines: str) -> str:
    """Lines under the lock, at their column."""
    column = " " * (len(lines) - len(lines.lstrip(" ")))
    return f"{column}{LOCK}\n{textwrap.indent(lines, '    ')}\n"


def under_lock(head: str, wanted: str) -> None:
    """The one place of a script that stands under the lock; nobody waits for anybody."""
    result = distributed(script(head=head))
    found = result.data.decode()
    assert f"\n{locked(wanted)}" in found
    assert found.count("first_on_host") == 1 and "npu_port.wait()" not in found and left(result) == []
    assert found.index("npu_port.start()") < found.index(LOCK) or "def " in head


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
        f'while not os.path.exists("data"):\n    {GET}',
        f'if os.environ["LOCAL_RANK"] == "0":\n    {GET}',
        'images = os.path.exists("data") or net.MNIST("data", download=True)',
        'images = [net.MNIST(year, download=True) for year in os.listdir("years")]',
    ],
)  # fmt: skip
def test_what_asks_for_files_stands_under_the_lock(whole: str) -> None:
    head = "import contextlib\nimport os\nfrom filelock import FileLock\nfrom pathlib import Path\n"
    inner = whole
    if whole.startswith("if net.again:\n    if len"):  # the first condition is alike on all ranks
        inner = f'    if len(os.listdir("data")) == 0:\n        if net.other:\n            {GET}'
    under_lock(head + whole, inner)


@pytest.mark.parametrize(
    ("whole", "inner"),
    [
        (f"with contextlib.suppress(OSError):\n    {GET}", f"    {GET}"),
        (f'with FileLock("data.lock"):\n    {GET}', f"    {GET}"),
        (f'for name in os.listdir("lists"):\n    {GET}', f"    {GET}"),
        (
            f"for name in net.names:\n    if not os.path.exists(name):\n        {GET}\n        break",
            f"    if not os.path.exists(name):\n        {GET}\n        break",
        ),
    ],
)
def test_what_else_sends_ranks_past_a_download_may_stand_around_the_lock(whole: str, inner: str) -> None:
    under_lock("import contextlib\nimport os\nfrom filelock import FileLock\n" + whole, inner)


def test_a_variable_and_a_function_that_ask_for_files() -> None:
    asks = 'import os\ndef there():\n    return os.path.isdir("data")\n'
    under_lock(f"{asks}if not there():\n    {GET}", f"if not there():\n    {GET}")
    lines = f'missing = not os.path.exists("data")\n    if missing:\n        {GET}'
    under_lock(f"import os\ndef get():\n    {lines}\n    return images\nimages = get()", f"    {lines}")


@pytest.mark.parametrize("head", ["if args.download:", "for year in range(3):", "with torch.no_grad():"])
def test_a_condition_that_is_alike_on_all_ranks_stays_around_the_lock(head: str) -> None:
    under_lock(f"from project import args\n{head}\n    {GET}", f"    {GET}")
    under_lock(f"from project import args\nimport os\nos.path.exists('x')\n{head}\n    {GET}", f"    {GET}")


FETCH = """\
import os

def prepare(path):
    {}

"""


EARLY = "if os.path.exists(path):\n        return net.Old(path)\n    x = net.MNIST(path, download=True)"


@pytest.mark.parametrize(
    ("body", "inner"),
    [
        (f"{EARLY}\n    return x", EARLY),
        ("return net.MNIST(path, download=True)", "return net.MNIST(path, download=True)"),
    ],
)
@pytest.mark.parametrize("called", ['images = prepare("data")', "if net.two:\n    images = prepare('data')"])
def test_a_function_that_may_return_before_does_so_under_the_lock(body: str, inner: str, called: str) -> None:
    under_lock(FETCH.format(body) + called, f"    {inner}")


def test_a_function_that_not_every_rank_calls() -> None:
    body = "images = net.MNIST(path, download=True)\n    return images"
    fetched = "    images = net.MNIST(path, download=True)"
    under_lock(FETCH.format(body) + "prepare('data')", fetched)
    called = "if not os.path.isdir('data'):\n    prepare('data')"
    found = output(script(head=FETCH.format(body) + called))
    assert locked(fetched) in found and f"\n{locked(called)}" in found and found.count("first_on_host") == 2


def test_a_constructor_that_fetches() -> None:
    head = """
        import os, requests

        class Points(torch.utils.data.Dataset):
            def __init__(self):
                if not os.path.exists("data.txt"):
                    self.text = requests.get("http://data").text

        points = Points()
        """
    inner = '        if not os.path.exists("data.txt"):\n            self.text = requests.get("http://data").text'
    under_lock(textwrap.dedent(head), inner)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'SETS = {"a": lambda: net.MNIST("a", download=True)}\nimages = SETS["a"]()',
            'SETS = {"a": lambda: npu_port.one_by_one(lambda: net.MNIST("a", download=True))}\nimages = SETS["a"]()',
        ),
        (
            "images = (net.MNIST(year, download=True) for year in range(3))",
            "images = (npu_port.one_by_one(lambda: net.MNIST(year, download=True)) for year in range(3))",
        ),
        (
            "images = list(net.MNIST(year, download=True) for year in net.years)",
            "images = list(npu_port.one_by_one(lambda: net.MNIST(year, download=True)) for year in net.years)",
        ),
        (
            "images = net.first(key=lambda year: len(net.MNIST(year, download=True)))",
            "images = net.first(key=lambda year: len(npu_port.one_by_one(lambda: net.MNIST(year, download=True))))",
        ),
    ],
)
def test_what_runs_when_its_statement_is_done_has_a_lock_of_its_own(before: str, after: str) -> None:
    result = distributed(script(head=before))
    assert f"\n{after}\n" in result.data.decode() and b"first_on_host" not in result.data and left(result) == []


@pytest.mark.parametrize(
    ("head", "inner"),
    [
        (
            "def get(year):\n    images = net.MNIST(year, download=True)\n    return images\n\n"
            "net.pool.map(get, [1, 2])",
            "    images = net.MNIST(year, download=True)",
        ),
        (
            "import requests\ndef get(year):\n    return requests.get(year)\n\nnet.pool.map(get, [1, 2])",
            "    return requests.get(year)",
        ),
        (
            "def get(year):\n    images = net.MNIST(year, download=True)\n    return images\n\n"
            "class Years(torch.utils.data.Dataset):\n    def __getitem__(self, at):\n        return get(at)\n\nYears()",
            "    images = net.MNIST(year, download=True)",
        ),
    ],
)
def test_what_runs_at_an_unknown_time_may_be_locked_too(head: str, inner: str) -> None:
    """A worker has no process group, and needs none."""
    under_lock(head, inner)


def test_no_training_stands_under_the_lock() -> None:
    loop = "for epoch in range(3):\n    for x in loader:\n        model(x).backward()"
    inside = textwrap.indent(f"{GET}\n{loop}", "    ")
    result = distributed(script(loop=f"if not net.os.path.exists('data'):\n{inside}"))
    assert "NPU344" in left(result) and b"first_on_host" not in result.data


@pytest.mark.parametrize("saves", ["images.save()", 'torch.save(images, "d.pt")', 'net.table.to_csv("d.pt")'])
def test_what_the_first_writes_under_the_lock_the_others_read(saves: str) -> None:
    """No rank waits for another one under it, and the first need not be rank 0."""
    whole = f'if not os.path.exists("d.pt"):\n    {GET}\n    {saves}\nelse:\n    images = torch.load("d.pt")'
    under_lock(f"import os\n{whole}", whole)


def test_a_share_is_taken_under_the_lock() -> None:
    loader = "if not os.path.exists('data'):\n    loader = DataLoader(net.MNIST('data', download=True), shuffle=True)"
    found = distributed(script(head="import os", loader=loader)).data.decode()
    assert locked(f"{loader}\n    loader = npu_port.shard(loader)") in found and found.count("first_on_host") == 1


FETCHES = """
    import os
    import requests


    def prepare(path):
        {0}


    rows = prepare("data")
    """


@pytest.mark.parametrize(
    "body",
    [
        "urllib.request.urlretrieve('http://data', path)",
        "if not os.path.exists(path):\n    urllib.request.urlretrieve('http://data', path)",
        "if os.path.exists(path):\n    return net.read(path)\nurllib.request.urlretrieve('http://data', path)",
        "try:\n    return open(path).read()\nexcept OSError:\n    urllib.request.urlretrieve('http://data', path)",
    ],
)
def test_a_function_that_fetches_a_file_itself(body: str) -> None:
    head = textwrap.dedent(FETCHES).replace(
        "{0}", textwrap.indent(body, " " * 4).strip() + "\n    return net.read(path)"
    )
    inner = textwrap.indent(body, " " * 4)
    under_lock(head.replace("import requests", "import urllib.request"), inner)


WRITES = "answer = requests.get('http://data')\nwith open(path, 'wb') as file:\n    file.write(answer.content)"


@pytest.mark.parametrize(
    "body",
    [
        WRITES,
        "with open(path, 'wb') as file:\n    file.write(requests.get('http://data').content)",
        textwrap.indent(WRITES, "    ").join(("if not os.path.exists(path):\n", "")),
        f"if os.path.exists(path):\n    return net.read(path)\n{WRITES}",
        "if not os.path.exists('a.zip'):\n    net.save(requests.get('http://data'), 'a.zip')\n"
        "if not os.path.exists(path):\n    net.unpack('a.zip', path)",
    ],
)
def test_what_comes_of_a_download_is_written_under_the_lock(body: str) -> None:
    """Else a rank finds a file that another one is about to write, or writes it once more while that one reads."""
    head = textwrap.dedent(FETCHES).replace(
        "{0}", textwrap.indent(body, " " * 4).strip() + "\n    return net.read(path)"
    )
    found = output(script(head=head))
    assert locked(textwrap.indent(body, " " * 4)) in found and found.count("first_on_host") == 1


ROWS = """\
import os
import urllib.request


class Rows(torch.utils.data.Dataset):
    def __init__(self, root, download=False):
        self.root = root
        if download:
            self.download()
        self.rows = open(root).read()

    def download(self):
        if self.there():
            return
        os.makedirs(self.root, exist_ok=True)
        urllib.request.urlretrieve("http://data", self.root)

    def there(self):
        return os.path.exists(self.root)


"""


def test_a_dataset_that_fetches_its_rows() -> None:
    inner = ROWS.partition("download(self):\n")[2].partition("\n\n")[0]
    made = "rows = Rows('data', download=True)"
    found = output(script(head=f"{ROWS}{made}"))
    assert locked(inner) in found and f"\n{locked(made)}" in found
    assert found.count("first_on_host") == 2 and "npu_port.wait()" not in found
    plain = output(script(head=f"{ROWS}rows = Rows('data')"))
    assert locked(inner) in plain and plain.count("first_on_host") == 1


FETCH_NEW = """\
import os
import urllib.request


def fetch(path):
    if os.path.exists(path):
        return False
    urllib.request.urlretrieve("http://data", path)
    return True


"""


EARLY_NEW = FETCH_NEW.partition("fetch(path):\n")[2].partition("    return True")[0].rstrip("\n")


def test_a_function_that_fetches_in_a_condition() -> None:
    """What hangs on who has fetched it is done by the one who has, before another one asks."""
    called = "if fetch('data'):\n    net.unpack('data', 'rows')"
    found = output(script(head=FETCH_NEW + called))
    assert locked(EARLY_NEW) in found and f"\n{locked(called)}" in found and found.count("first_on_host") == 2


@pytest.mark.parametrize(
    "called", ["fetch('data')", "fetched = fetch('data')", "rows = [fetch(name) for name in 'ab']"]
)
def test_a_function_that_fetches_elsewhere_has_the_lock_alone(called: str) -> None:
    under_lock(FETCH_NEW + called, EARLY_NEW)


@pytest.mark.parametrize(
    "head",
    [
        'images = net.MNIST("data", download=False)',
        'images = net.MNIST("data")',
        'import os\nif os.path.exists("data"):\n    images = net.MNIST("data")',
        'DOWNLOAD = lambda: net.MNIST("data", download=False)',
        "import urllib.request\nrequest = urllib.request.Request('http://data')",
        "import requests\nsession = requests.Session()",
    ],
)
def test_what_downloads_nothing_has_no_lock(head: str) -> None:
    result = distributed(script(head=head))
    assert b"first_on_host" not in result.data and b"one_by_one" not in result.data and left(result) == []


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
    assert "mean_loss = npu_port.mean_over_ranks(loss)\n" in found and "continue" in found, found


CACHED = """
import os
import numpy as np

class Points(torch.utils.data.Dataset):
    def __init__(self, path):
        self.path = path
        {made}

    def process(self):
        rows = {rows}
        np.save(self.path, rows)

    def __getitem__(self, index):
        {read}
        return index

points = Points("points.npy")
"""
MAKES = "if not os.path.exists(path):\n            self.process()"


def cached(made: str, rows: str = "np.arange(9)", read: str = "pass") -> str:
    return CACHED.format(made=made, rows=rows, read=read)


def test_what_a_dataset_makes_where_it_is_missing_is_made_by_one_rank() -> None:
    result = distributed(script(head=cached(MAKES)))
    found = result.data.decode()
    assert "\n" + locked(f"        {MAKES}") in found
    assert found.count("first_on_host") == 1 and "same_draws" not in found and left(result) == []
    either = "if os.path.isfile(path):\n            rows = np.load(path)\n        else:\n            np.save(path, [1])"
    assert output(script(head=cached(either))).count(LOCK) == 1


def test_the_rank_that_has_drawn_what_it_makes_goes_on_as_the_others() -> None:
    found = output(script(head=cached(MAKES, "np.random.rand(9)")))
    assert "                self.process()\n        npu_port.same_draws()\n" in found


def test_a_file_of_a_sample_that_several_ranks_may_write_is_left_to_the_reader() -> None:
    read = "if not os.path.exists(str(index)):\n            np.save(str(index), [1])"
    result = distributed(script(head=cached("pass", read=read)))
    assert left(result) == ["NPU344"] and "first_on_host" not in result.data.decode()


@pytest.mark.parametrize(
    ("made", "read"),
    [("pass", "pass"), ("rows = np.load(path)", "rows = np.load(str(index))"), ("assert os.path.exists(path)", "pass")],
)
def test_a_dataset_that_only_reads_has_no_lock(made: str, read: str) -> None:
    result = distributed(script(head=cached(made, read=read)))
    assert "first_on_host" not in result.data.decode() and left(result) == []
