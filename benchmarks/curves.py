"""How the cost of one file grows with it: for each shape of file, CPU time over its size, and the exponent.

    python -m benchmarks.curves [SHAPE ...] [--size 1] [--steps 4] [--with OPTION=VALUE ...] [--profile] [--check]

A shape is a text with n of something: rows of a table, items of one line, lines that change, calls in a chain. Each is
migrated at n, 2n, 4n, ...; the figures are ratios to the first within one run, so they do not depend on the machine.
The exponent is that of the last doublings: 1 is linear, 2 quadratic. --size multiplies every n; --with sets a field of
the settings (`--with tune=all`, `--with style=portable`, `--with amp=native`); --profile says where the time of the
largest goes instead.

--check exits 1 unless every exponent is below 1.5.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import math
import pstats
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from transplt.base.settings import Settings
from transplt.engine.engine import index_source, join_facts, migrate_source
from transplt.fixers.tunings.table import parse_tunings

#: An exponent from here on is no line.
MOST = 1.5
_HEAD = "import torch\n"


@dataclass(frozen=True, slots=True)
class Shape:
    """A text with n of something; the smallest n is large enough to take longer than what is measured beside it."""

    text: Callable[[int], str]
    least: int


def _lines(line: str, head: str = _HEAD, tail: str = "") -> Callable[[int], str]:
    return lambda n: head + "".join(line.format(i=i) for i in range(n)) + tail


def _list(item: str, between: str = ", ") -> Callable[[int], str]:
    return lambda n: f"{_HEAD}d = [{between.join(item.format(i=i) for i in range(n))}]\n"


#: Every shape by its name. What Python itself cannot read in depth (its parser stops at 200 brackets) has its limit.
SHAPES: dict[str, Shape] = {
    # displays
    "dict of device strings": Shape(
        _lines('{i}: "cuda:{i}",\n', f"{_HEAD}d = {{\n", "}\ntorch.zeros(1, device=d[0])\n"), 500
    ),
    "dict by device strings": Shape(
        _lines('"cuda:{i}": {i},\n', f"{_HEAD}d = {{\n", "}\ntorch.zeros(1, device=d[0])\n"), 500
    ),
    "dict by device strings, left": Shape(_lines('"cuda:{i}": {i},\n', f"{_HEAD}d = {{\n", "}\n"), 500),
    "map_location of devices": Shape(
        _lines('"cuda:{i}": "cpu",\n', f"{_HEAD}torch.load(p, map_location={{\n", "})\n"), 500
    ),
    "dict in one line": Shape(_lines('{i}: "cuda:{i}", ', f"{_HEAD}d = {{", "}\ntorch.zeros(1, device=d[0])\n"), 500),
    "list in one line": Shape(_list('"cuda:{i}"'), 500),
    "list of devices in one line": Shape(_list('torch.device("cuda:{i}")'), 250),
    "list of plain numbers in one line": Shape(_list("{i}"), 50_000),
    "list of calls in one line": Shape(_list("torch.zeros(1).cuda()"), 250),
    "list of unknown strings in one line": Shape(_list('"my cuda {i}"'), 500),
    "dict of devices by device strings": Shape(
        _lines('"cuda:{i}": torch.device("cuda:{i}"), ', f"{_HEAD}d = {{", "}\n"), 250
    ),
    "list in one line, not ASCII": Shape(_list('"é", "cuda:{i}"'), 500),
    "tuple of device strings": Shape(lambda n: _list('"cuda:{i}"')(n).replace("[", "(").replace("]", ")"), 500),
    "set of device strings": Shape(lambda n: _list('"cuda:{i}"')(n).replace("[", "{").replace("]", "}"), 500),
    # lines
    "lines that change": Shape(_lines("x{i} = torch.zeros(2).cuda()\n"), 250),
    "lines that stay": Shape(_lines("x{i} = {i} + y\n", "import torch\nz = torch.zeros(2).cuda()\n"), 5000),
    "statements in one line": Shape(_lines("x{i} = torch.cuda.device_count(); "), 250),
    "findings in one line": Shape(_lines("x{i} = 'see cuda {i}'; "), 500),
    "unknown words": Shape(_lines("x{i} = 'see nccl {i}'\n"), 500),
    "reports": Shape(_lines("torch.cuda.cudart()\n"), 500),
    "ignore comments": Shape(_lines("x{i} = torch.zeros(2).cuda()  # transplt: ignore\n"), 250),
    "comments": Shape(_lines("# cuda {i}\n", "import torch\nz = torch.zeros(2).cuda()\n"), 5000),
    "one long string": Shape(_lines("cuda {i} ", f'{_HEAD}x = """', '"""\n'), 500),
    "one long docstring": Shape(_lines("cuda {i}\n", '"""', '"""\nimport torch\nz = torch.zeros(2).cuda()\n'), 500),
    "implicit concatenation": Shape(_lines('"cuda {i}"\n', f"{_HEAD}x = (", ")\n"), 250),
    "fields of an f-string": Shape(_lines("{{torch.cuda.device_count()}} ", f'{_HEAD}x = f"', '"\n'), 50),
    # expressions
    "arguments of a call": Shape(_lines("torch.zeros(1).cuda(),\n", f"{_HEAD}f(", ")\n"), 250),
    "keywords of a call": Shape(_lines('a{i}="cuda:{i}",\n', f"{_HEAD}f(", ")\n"), 250),
    "device keywords of a call": Shape(_lines('device{i}="cuda:{i}",\n', f"{_HEAD}f(", ")\n"), 250),
    "chain of calls": Shape(_lines(".cuda()", f"{_HEAD}x = torch.zeros(1)", "\n"), 10),
    "chain of attributes": Shape(_lines(".a{i}", f"{_HEAD}x = torch.cuda", "\n"), 10),
    "sum of many": Shape(_lines("torch.zeros(1).cuda() +\\\n", f"{_HEAD}x = ", "1\n"), 10),
    "and of many": Shape(_lines("torch.cuda.is_available() and\\\n", f"{_HEAD}x = ", "1\n"), 250),
    "brackets in brackets": Shape(
        lambda n: f"{_HEAD}x = {'f(torch.zeros(1).cuda(), ' * n}1{')' * n}\n", 10
    ),
    "or of many": Shape(_lines("torch.cuda.is_available() or\\\n", f"{_HEAD}x = ", "1\n"), 250),
    "and of tests": Shape(
        _lines("torch.cuda.is_available() and\\\n", f"{_HEAD}if ", "x:\n    x.cuda()\n"), 250
    ),
    "comparisons": Shape(_lines('x.device.type == "cuda" or\\\n', f"{_HEAD}y = ", "1\n"), 250),
    "lambdas": Shape(_lines("f{i} = lambda x: x.cuda()\n"), 250),
    "comprehensions": Shape(_lines("[x.cuda() for x in torch.zeros({i})]\n"), 250),
    # statements
    "imports": Shape(_lines("import torch.cuda as c{i}\n", "", "torch.zeros(2, device='cuda')\n"), 250),
    "imports of torch": Shape(_lines("import torch\n", "", "torch.zeros(2, device='cuda')\n"), 500),
    "imports from": Shape(_lines("from torch.cuda import synchronize as s{i}\n"), 250),
    "names of one import": Shape(_lines("synchronize as s{i},\n", "from torch.cuda import (\n", ")\n"), 250),
    "renamed imports": Shape(_lines("from torch.cuda import nccl\nnccl.version()\n"), 100),
    "renamed imports of functions": Shape(
        _lines("def f{i}():\n    from torch.cuda import nccl\n    nccl.version()\n    x = 'a nccl'\n", ""), 100
    ),
    "imports of packages": Shape(_lines("import p{i}\n", "import torch\nz = torch.zeros(2).cuda()\n"), 500),
    "imports in functions": Shape(_lines("def f{i}():\n    import torch\n    return torch.zeros(1).cuda()\n", ""), 250),
    "functions": Shape(_lines("def f{i}(x):\n    return x.cuda()\n"), 250),
    "functions with a device": Shape(
        _lines('def f{i}(device="cuda:{i}"):\n    return torch.zeros(1, device=device)\n'), 250
    ),
    "defaults of one function": Shape(_lines('device{i}="cuda:{i}",\n', f"{_HEAD}def f(", "): pass\n"), 250),
    "functions that call one another": Shape(
        _lines('def f{i}(device):\n    return f{i}1(device)\nf{i}("cuda")\n'), 250
    ),
    "functions in functions": Shape(
        lambda n: _HEAD + "".join(f"{' ' * i}def f{i}(x):\n{' ' * i} x.cuda()\n" for i in range(n)), 10
    ),
    "classes": Shape(_lines("class A{i}(torch.nn.Module):\n    def f(self, x):\n        self.x = x.cuda()\n"), 250),
    "methods of one class": Shape(
        _lines("    def f{i}(self, x):\n        self.x{i} = x.cuda()\n", f"{_HEAD}class A(torch.nn.Module):\n"), 250
    ),
    "branches of one if": Shape(
        _lines("elif x == {i}:\n    y = torch.zeros(1).cuda()\n", f"{_HEAD}if x:\n    pass\n"), 25
    ),
    "blocks of if": Shape(_lines("if torch.cuda.is_available():\n    x = y.cuda()\n"), 250),
    "blocks of else": Shape(
        _lines('x{i} = "cuda" if torch.cuda.is_available() else "cpu"\ny.to(x{i})\n'), 250
    ),
    "blocks of try": Shape(_lines("try:\n    x = torch.zeros(1).cuda()\nexcept Exception:\n    pass\n"), 250),
    "with statements": Shape(_lines("with torch.cuda.amp.autocast():\n    y = f(x)\n"), 250),
    "assignments of one name": Shape(_lines("x = torch.zeros({i}).cuda()\n"), 250),
    "a variable passed on": Shape(_lines("x{i}1 = x{i}\n", f'{_HEAD}x = "cuda"\n', "torch.zeros(1, device=x)\n"), 500),
    "one device, many uses": Shape(_lines("x{i} = torch.zeros(1, device=d)\n", f'{_HEAD}d = "cuda"\n'), 500),
    "many devices, one use": Shape(_lines('d = "cuda:{i}"\n', _HEAD, "torch.zeros(1, device=d)\n"), 500),
    "attributes that hold devices": Shape(_lines('a.device{i} = "cuda:{i}"\nb.to(a.device{i})\n'), 250),
    "one name, bound and read often": Shape(
        _lines('try:\n    device = "cuda:{i}"\nexcept E: pass\ndef f{i}():\n    return x.to(device)\n'), 250
    ),
    "one import, doubled and used often": Shape(
        _lines("try:\n    from torch import cuda\nexcept E: pass\ndef f{i}():\n    cuda.synchronize()\n"), 250
    ),
    "tables by device": Shape(_lines('t{i} = {{"cuda": 1, "cpu": 2}}\nt{i}[x.device.type]\n'), 250),
    "guards": Shape(_lines("    if not torch.cuda.is_available(): raise E\n", f"{_HEAD}def f():\n"), 250),
    "gates that return": Shape(
        _lines("    if torch.cuda.is_available():\n        return x.cuda({i})\n", "import torch\ndef f(x):\n"), 250
    ),
    "gates of one chain": Shape(
        _lines("    elif torch.cuda.is_available() and k == {i}:\n        x = x.cuda()\n",
            "import torch\ndef f(k, x):\n    if k:\n        return x\n"), 100
    ),
    "asserts": Shape(
        _lines("    assert torch.cuda.is_available()\n    x = x.cuda()\n", "import torch\ndef f(x):\n"), 250
    ),
    "gates of one variable": Shape(
        _lines("if torch.cuda.is_available():\n    x = x.cuda()\nelse:\n    x = x.cpu()\n", f"{_HEAD}"), 250
    ),
    "gates before kernels": Shape(
        _lines("if x.is_cuda: k.f_cuda(x)\n",
            "import torch\nfrom torch.utils.cpp_extension import load\nk = load()\n"), 250
    ),
    "gates before packages": Shape(_lines("if torch.cuda.is_available():\n    import cupy as c{i}\n"), 250),
    "cases for the NPU": Shape(
        _lines('if x.is_cuda:\n    x.cuda()\nelif x.device.type == "npu":\n    x.npu()\n'), 250
    ),
    "cases of one match": Shape(_lines('    case "cuda:{i}":\n        pass\n', f"{_HEAD}match x.device.type:\n"), 250),
    "targets of one assignment": Shape(
        lambda n: _HEAD + ", ".join(f"d{i}" for i in range(n)) + " = " + "x.device, 'cuda', " * (n // 2) + "\n", 250
    ),
    "global names": Shape(_lines("def f{i}():\n    global d{i}\n    d{i} = 'cuda'\n"), 250),
    "stars": Shape(_lines("from m{i} import *\n", "", "torch.zeros(1).cuda()\n"), 250),
    "decorators": Shape(_lines("@torch.cuda.amp.autocast()\ndef f{i}(x): pass\n"), 250),
    "annotations": Shape(_lines('x{i}: "torch.cuda.Stream" = torch.cuda.Stream()\n'), 250),
    "entries of the environment": Shape(
        _lines('os.environ["CUDA_VISIBLE_DEVICES"] = "{i}"\n', "import os, torch\n"), 250
    ),
    "command line flags": Shape(_lines('p.add_argument("--cuda{i}", default="cuda:{i}", help="cuda")\n'), 250),
    "types of tensors": Shape(_lines("x{i} = y.type(torch.cuda.FloatTensor)\n"), 250),
    "errors": Shape(_lines('if "CUDA out of memory" in str(e): pass\n'), 250),
    "process groups": Shape(_lines('torch.distributed.init_process_group("nccl")\n'), 250),
}


def least_seconds(work: Callable[[], object], repeat: int) -> float:
    """CPU seconds of a call, the least of some."""
    times = []
    for _ in range(repeat):
        gc.collect()
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def migration(text: str, settings: Settings, project: bool = True) -> Callable[[], object]:
    """A migration of one file, with or without its project; nothing is kept from one to the next."""
    data = text.encode()

    def once() -> object:
        if not project:
            return migrate_source(data, "module.py", settings)
        return migrate_source(
            data, "module.py", settings, join_facts([index_source(data, "module.py", settings)], settings)
        )

    return once


def curve(shape: Shape, settings: Settings, *, size: float = 1, steps: int = 4, repeat: int = 2) -> list[float]:
    """CPU seconds of a shape at n, 2n, 4n, ..."""
    return [
        least_seconds(migration(shape.text(int(shape.least * size) << step), settings), repeat) for step in range(steps)
    ]


def exponent(seconds: list[float]) -> float:
    """How the last value has come from the one two doublings before (from the first, where there are only two)."""
    back = min(2, len(seconds) - 1)
    return math.log2(seconds[-1] / seconds[-1 - back]) / back


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help="a part of a shape's name")
    parser.add_argument("--size", type=float, default=1)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--with", dest="settings", action="append", default=[], metavar="OPTION=VALUE")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    settings = _settings(options.settings)
    migration("import torch\nx = torch.zeros(1).cuda()\n", settings)()  # imports, tables
    bent = []
    for name, shape in SHAPES.items():
        if options.shapes and not any(part in name for part in options.shapes):
            continue
        if options.profile:
            _profile(name, migration(shape.text(int(shape.least * options.size) << options.steps - 1), settings))
            continue
        seconds = curve(shape, settings, size=options.size, steps=options.steps, repeat=options.repeat)
        bend = exponent(seconds)
        if bend >= MOST:
            bent.append(name)
        ratios = " ".join(f"{each / seconds[0]:7.1f}" for each in seconds)
        last = int(shape.least * options.size) << options.steps - 1
        mark = "  <-" if bend >= MOST else ""
        print(f"{name:36} {ratios}   n^{bend:.2f}   {last:7} in {seconds[-1]:6.2f} s{mark}", flush=True)
    return int(options.check and bool(bent))


def _settings(given: list[str]) -> Settings:
    settings = Settings(torch_version="2.8")
    for each in given:
        name, _, value = each.partition("=")
        if name not in {field.name for field in fields(Settings)}:
            raise SystemExit(f"no setting of that name: {name}")
        old = getattr(settings, name)
        new: object = value in ("", "true", "1") if isinstance(old, bool) else value
        if name == "tune":
            new = parse_tunings(value, settings.torch_version)
        settings = replace(settings, **{name: new})  # type: ignore[arg-type]
    return settings


def _profile(name: str, work: Callable[[], object]) -> None:
    print(name)
    profile = cProfile.Profile()
    profile.runcall(work)
    pstats.Stats(profile).sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    sys.exit(main())
