"""Names that a file reads as it is imported, and that nothing gives a value."""

from __future__ import annotations

import pytest

from tests.harness import migrate
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts

_LOOKED_AT = "import torch\ntorch.cuda.synchronize()\n"
_PROGRAM = 'if __name__ == "__main__":\n    torch.cuda.synchronize()\n'


def _named(source: str) -> list[str]:
    return [each.api for each in migrate(f"{_LOOKED_AT}{source}\n{_PROGRAM}").findings if each.code == "NPU298"]


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("class Head(Module):\n    pass", "Module"),
        ("class Head(nn.Module):\n    pass", "nn"),
        ("HEADS = {'a': torch.nn.Linear, 'b': AdaCos}", "AdaCos"),
        ("class Head(torch.nn.Module):\n    size = SIZE", "SIZE"),
        ("def f(x=SIZE):\n    pass", "SIZE"),
        ("@register\ndef f(): pass", "register"),
        ("prepare(3)", "prepare"),
        ("class Head(Module): pass\nclass Other(Module): pass", "Module"),
    ],
)
def test_reported_once_as_what_stops_the_import(source: str, name: str) -> None:
    assert _named(source) == [name]


@pytest.mark.parametrize(
    "source",
    [
        "from torch.nn import Module\nclass Head(Module): pass",
        "from mine import *\nclass Head(Module): pass",
        "from torch.nn import *\nclass Head(Module): pass",
        "try:\n    from torch.nn import Module\nexcept ImportError:\n    pass\nclass Head(Module): pass",
        "def f():\n    return Module",
        "f = lambda: Module",
        "x = [Module for _ in y] if False else 3",
        "y = ()\nx = [Module for _ in y]",
        "if DEBUG:\n    print(torch)",
        "try:\n    unicode\nexcept NameError:\n    unicode = str",
        "x = torch and Module",
        "def f():\n    global SIZE\n    SIZE = 3\nx = SIZE",
        "exec(open('settings.py').read())\nx = SIZE",
        "globals()['SIZE'] = 3\nx = SIZE",
        "get_ipython().run_line_magic('matplotlib', 'inline')\nx = SIZE",
        "c = get_config()\nc.size = 3",
        "def f(x: Tensor) -> Module:\n    pass\ny: Size = 3",
        "class Head:\n    size = 3\n    def f(self):\n        return SIZE",
        "class Head:\n    size = 3\n    more = size + 1\n    name = __qualname__",
        "print(__file__, __name__, __doc__)",
        "import torch.nn\nx = len(range(3)), ValueError",
        "for i in range(N):\n    print(i)",
        "if __name__ == '__main__':\n    image = RandomShear(0.3)(image)",
        "with torch.no_grad():\n    x = SIZE",
        "class Head(torch.nn.Module): pass\ndel Head",
    ],
)
def test_stays(source: str) -> None:
    assert _named(source) == []


@pytest.mark.parametrize(
    ("other", "named"), [("from head import Head\nnet = Head().cuda()\n", ["Module"]), ("import torch\n", [])]
)
def test_a_file_that_no_other_takes_anything_from_is_left_alone(other: str, named: list[str]) -> None:
    files = {"head.py": f"{_LOOKED_AT}class Head(Module):\n    pass\n", "train.py": other}
    project = ProjectFacts.join(index_source(text.encode(), path, Settings()) for path, text in files.items())
    result = migrate_source(files["head.py"].encode(), "head.py", Settings(), project)
    assert [each.api for each in result.findings if each.code == "NPU298"] == named
