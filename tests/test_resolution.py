"""What a name means where it stands."""

from __future__ import annotations

import ast

import pytest

from transplt.base.text.source import read_source
from transplt.syntax.names import Names, imported_by_call
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan


def meaning(text: str, reexports: dict[str, str] | None = None) -> str | None:
    """What the argument of `probe(...)` resolves to."""
    source = read_source(text.encode())
    found = scan(source, parse(source), "pkg/m.py")
    names = Names(found, reexports or {})
    (call,) = [c for c in found.calls if isinstance(c.func, ast.Name) and c.func.id == "probe"]
    return names.qualified(call.args[0])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\nprobe(torch.cuda.Event)", "torch.cuda.Event"),
        ("import torch.cuda\nprobe(torch.cuda)", "torch.cuda"),
        ("import torch.cuda as tc\nprobe(tc.amp)", "torch.cuda.amp"),
        ("from torch import cuda\nprobe(cuda.x)", "torch.cuda.x"),
        ("from torch.cuda.amp import autocast as ac\nprobe(ac)", "torch.cuda.amp.autocast"),
        ("from . import torch\nprobe(torch)", "pkg.torch"),
        ("from .lib import f\nprobe(f)", "pkg.lib.f"),
        ("def f():\n    import torch\n    probe(torch.cuda)", "torch.cuda"),
        ("def f():\n    import torch\nprobe(torch.cuda)", None),
        ("import torch\ndef f():\n    probe(torch)", "torch"),
        ("import torch\nclass A:\n    torch = 1\n    def f(self):\n        probe(torch)", "torch"),
        ("import torch\nclass A:\n    torch = 1\n    probe(torch)", None),
        ("import torch\nclass A:\n    torch = 1\n    x = [probe(torch) for y in z]", "torch"),
        ("class A:\n    import torch\n    x = [y for y in probe(torch)]", "torch"),
    ],
)
def test_imports(text: str, name: str | None) -> None:
    assert meaning(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ndef f(torch):\n    probe(torch.cuda)",
        "import torch\ndef f(*torch):\n    probe(torch)",
        "import torch\ng = lambda torch: probe(torch)",
        "import torch\ntorch = fake\nprobe(torch)",
        "import torch\nfor torch in x:\n    pass\nprobe(torch)",
        "import torch\nwith x as torch:\n    probe(torch)",
        "import torch\nx = [probe(torch) for torch in y]",
        "import torch\ndef f():\n    probe(torch)\n    torch = 1",
        "import torch\ndef f():\n    global torch\n    torch = 1\nprobe(torch)",
        "import torch\n(torch := 1)\nprobe(torch)",
        "import torch\nmatch x:\n    case torch: pass\nprobe(torch)",
        "import torch\ntry: pass\nexcept E as torch: pass\nprobe(torch)",
        "import torch\ndef torch(): pass\nprobe(torch)",
        "import torch\ndel torch\nprobe(torch)",
        "probe(torch)",
        "import torch\nprobe(f().torch)",
    ],
)
def test_shadowed_or_unknown(text: str) -> None:
    assert meaning(text) is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\nprobe(torch)", "torch"),
        ("try:\n    from a import f\nexcept ImportError:\n    from b import f\nprobe(f)", "a.f"),
        ("try:\n    from a import f\nexcept ImportError:\n    def f(): pass\nprobe(f)", "a.f"),
        ("f = None\nif x():\n    from a import f\nprobe(f)", "a.f"),
        ("if x():\n    from a import f\nelse:\n    from b import f\nprobe(f)", None),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nprobe(torch)", "torch"),
        ("import a\nimport a\nprobe(a)", "a"),
    ],
)
def test_doubles(text: str, name: str | None) -> None:
    assert meaning(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\nc = torch.cuda\nprobe(c.x)", "torch.cuda.x"),
        ("import torch\nc: object = torch.cuda\nprobe(c)", "torch.cuda"),
        ("import torch\nc = torch.cuda\nd = c.amp\nprobe(d)", "torch.cuda.amp"),
        ("import torch\nc = torch.cuda\nc = other\nprobe(c)", None),
        ("import torch\nc = torch.cuda if x else y\nprobe(c)", None),
        ("a = b\nb = a\nprobe(a)", None),
        ("a = a.b\nprobe(a)", None),
        ("class A:\n    c = d\n    probe(c)", None),
        ("import pytest\ntorch = pytest.importorskip('torch')\nprobe(torch.cuda)", "torch.cuda"),
        ("m = importlib.import_module('torch.cuda')\nprobe(m)", "torch.cuda"),
        ("m = __import__('torch.cuda')\nprobe(m)", "torch"),
        ("m = importlib.import_module('.x', p)\nprobe(m)", None),
        ("m = importlib.import_module(name)\nprobe(m)", None),
        ("m = load('torch')\nprobe(m)", None),
    ],
)
def test_aliases_by_assignment(text: str, name: str | None) -> None:
    assert meaning(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from .lib import th\nprobe(th.cuda)", "torch.cuda"),
        ("from .lib import *\nprobe(th.cuda)", "torch.cuda"),
        ("from x import *\nprobe(torch.cuda)", "torch.cuda"),
        ("from x import *\nprobe(th.cuda)", None),
    ],
)
def test_names_that_the_project_passes_on(text: str, name: str | None) -> None:
    assert meaning(text, {"pkg.lib.th": "torch"}) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("from torch.optim import *\nprobe(AdamW)", "torch.optim.AdamW"),
        ("from torch.optim import *\nfrom torch.optim.lr_scheduler import *\nprobe(AdamW)", "torch.optim.AdamW"),
        ("from x import *\nfrom torch.optim import *\nprobe(AdamW)", "torch.optim.AdamW"),
        ("from torch.optim import *\nprobe(lr_scheduler.StepLR)", "torch.optim.lr_scheduler.StepLR"),
        ("from torch.optim import *\nfrom x import *\nprobe(AdamW)", None),  # x may have one
        ("from torch.optim import *\nAdamW = 1\nprobe(AdamW)", None),
        ("from torch.optim import *\nfrom x import AdamW\nprobe(AdamW)", "x.AdamW"),
        ("from torch.optim import *\nprobe(Lion)", None),
        ("from torch.nn.functional import *\nprobe(AdamW)", None),
    ],
)
def test_names_that_a_star_brings_from_torch(text: str, name: str | None) -> None:
    given = {name: name for name in ("torch.optim.AdamW", "torch.optim.lr_scheduler")}
    assert meaning(text, given) == name


def test_calls_that_import() -> None:
    call = ast.parse("f(x)(1)").body[0]
    assert isinstance(call, ast.Expr) and isinstance(call.value, ast.Call)
    assert imported_by_call(call.value) is None


@pytest.mark.parametrize("number", [3, 5000])
def test_aliases_of_aliases_are_followed_by_the_thousand(number: int) -> None:
    links = "".join(f"c{at + 1} = c{at}\n" for at in range(number))
    assert meaning(f"import torch\nc0 = torch.cuda\n{links}probe(c{number}.synchronize)") == "torch.cuda.synchronize"
    assert meaning(f"c0 = c{number}\n{links}probe(c{number}.synchronize)") is None
    assert meaning(f"c0 = x()\n{links}probe(c{number}.synchronize)") is None
