"""Every form of import, and the names that go with it."""

from __future__ import annotations

import ast

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.base.settings import Settings
from transplt.base.text.source import read_source
from transplt.edits.edit import AtTop, Edit
from transplt.edits.imports import at_top
from transplt.engine.engine import migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.syntax.scan import scan

LINE = "import torch_npu  # noqa: F401\n"


@pattern("P17", "P18")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch.cuda\ntorch.cuda.synchronize()\n", "import torch.npu\ntorch.npu.synchronize()\n"),
        ("import torch.cuda as tc\ntc.synchronize()\n", "import torch.npu as tc\ntc.synchronize()\n"),
        ("import torch.cuda as tc, os\ntc.Event()\n", "import torch.npu as tc, os\ntc.Event()\n"),
        ("from torch import cuda\ncuda.synchronize()\n", "from torch import npu\nnpu.synchronize()\n"),
        ("from torch import nn, cuda\ncuda.Stream()\n", "from torch import nn, npu\nnpu.Stream()\n"),
        ("from torch import cuda as c\nc.synchronize()\n", "from torch import npu as c\nc.synchronize()\n"),
        ("from torch.cuda import Stream, Event as E\nE()\n", "from torch.npu import Stream, Event as E\nE()\n"),
        ("from torch.cuda import CUDAGraph\nCUDAGraph()\n", "from torch.npu import NPUGraph\nNPUGraph()\n"),
        ("from torch.cuda import CUDAGraph as G\nG()\n", "from torch.npu import NPUGraph as G\nG()\n"),
        (
            "from torch.cuda import memory\nmemory.empty_cache()\n",
            "from torch.npu import memory\nmemory.empty_cache()\n",
        ),
        (
            "from torch.cuda import (\n    Stream,  # one\n    # two\n    Event,\n)\n",
            "from torch.npu import (\n    Stream,  # one\n    # two\n    Event,\n)\n",
        ),
        ("from torch.cuda import Stream, \\\n    Event\n", "from torch.npu import Stream, \\\n    Event\n"),
        ("from torch . cuda import Stream\n", "from torch.npu import Stream\n"),
    ],
)
def test_first_imports_of_a_file(before: str, after: str) -> None:
    check_rewrite(before, LINE + after)


@pattern("P18")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import os; import torch.cuda as tc; tc.x = 1\n", "import os; import torch.npu as tc; tc.x = 1\n"),
        (
            "def f():\n    from torch import cuda\n    cuda.synchronize()\n",
            "def f():\n    from torch import npu\n    npu.synchronize()\n",
        ),
        ("def f():\n    import torch.cuda as c; c.Event()\n", "def f():\n    import torch.npu as c; c.Event()\n"),
        (
            "try:\n    from torch.cuda import Event\nexcept ImportError:\n    Event = None\n",
            "try:\n    from torch.npu import Event\nexcept ImportError:\n    Event = None\n",
        ),
        (
            "if new():\n    from torch.cuda import Event\nelse:\n    from old import Event\n",
            "if new():\n    from torch.npu import Event\nelse:\n    from old import Event\n",
        ),
        (
            "import t\nif t.TYPE_CHECKING:\n    from torch.cuda import Event\ndef f(e: 'Event'): ...\n",
            "import t\nif t.TYPE_CHECKING:\n    from torch.npu import Event\ndef f(e: 'Event'): ...\n",
        ),
        ("class A:\n    from torch.cuda import Event\n", "class A:\n    from torch.npu import Event\n"),
        (
            "async def f():\n\tfrom torch import cuda\n\tcuda.Event()\n",
            "async def f():\n\tfrom torch import npu\n\tnpu.Event()\n",
        ),
    ],
)
def test_imports_elsewhere(before: str, after: str) -> None:
    result = migrate(before)
    written = result.data.decode()
    assert written.count(LINE) == 1
    assert written.replace(LINE, "") == after


@pattern("P17")
@pytest.mark.parametrize(
    "use",
    [
        "with autocast(): pass",
        "scaler = GradScaler()",
        "@custom_fwd\ndef f(x): pass",
        "autocast = wrap(autocast)",
    ],
)
def test_amp(use: str) -> None:
    source = f"import torch\nfrom torch.cuda.amp import autocast, GradScaler, custom_fwd\n{use}\n"
    result = migrate(source)
    assert b"torch.cuda" not in result.data
    assert result.tokens.unknown == result.tokens.manual == 0


def test_the_local_name_follows_where_nobody_can_tell() -> None:
    check_rewrite(
        """
        import torch
        from torch import cuda
        def f(x):
            if cuda.is_available():
                return cuda.current_device(), [cuda.Event() for _ in x], lambda: cuda
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from torch import npu
        def f(x):
            if npu.is_available():
                return npu.current_device(), [npu.Event() for _ in x], lambda: npu
        """,
    )


@pytest.mark.parametrize(
    "rest",
    [
        "cuda = wrap(cuda)\n",
        "__all__ = ['cuda']\n",
        "npu = 1\n",
        "def f(npu):\n    return npu\ny = cuda.Event()\n",
        "x = getattr(mod, 'cuda')\n",
        "from torch import cuda\n",
    ],
)
def test_the_local_name_stays_where_it_is_seen(rest: str) -> None:
    result = migrate(f"import torch\nfrom torch import cuda\n{rest}")
    assert b"from torch import npu as cuda\n" in result.data
    assert b"import npu\n" not in result.data


def test_the_local_name_stays_where_another_file_imports_it() -> None:
    source = "from torch import cuda\ncuda.synchronize()\n"
    result = migrate(source, path="pkg/base.py", files={"pkg/use.py": "from .base import cuda\ncuda.empty_cache()\n"})
    assert b"from torch import npu as cuda\ncuda.synchronize()\n" in result.data
    starred = migrate(source, path="pkg/base.py", files={"pkg/use.py": "from .base import *\ncuda.Event()\n"})
    assert b"from torch import npu as cuda\n" in starred.data
    starred = migrate(source, path="pkg/base.py", files={"pkg/use.py": "from pkg import base\nbase.cuda.Event()\n"})
    assert b"from torch import npu as cuda\n" in starred.data
    package = migrate(source, path="pkg/__init__.py")
    assert b"from torch import npu as cuda\n" in package.data
    alone = migrate(source, path="pkg/base.py", files={"pkg/use.py": "from .base import other\n"})
    assert b"from torch import npu\nnpu.synchronize()\n" in alone.data


@pattern("T33")
def test_names_that_the_project_passes_on() -> None:
    base = "import torch\nfrom torch import cuda\nfrom torch.cuda import amp\n"
    use = "from base import *\nif torch.cuda.is_available():\n    cuda.synchronize()\n"
    result = migrate(use, files={"base.py": base})
    assert result.data.decode() == f"from base import *\n{LINE}if torch.npu.is_available():\n    cuda.synchronize()\n"
    assert b"from torch import npu as cuda\n" in migrate(base, path="base.py", files={"train.py": use}).data


def test_names_with_and_without_a_counterpart_in_one_import() -> None:
    check_rewrite(
        """
        import torch
        def f():
            from torch.cuda import Stream, nccl, Event
            x = 1
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        def f():
            from torch.cuda import nccl
            from torch.npu import Stream, Event
            x = 1
        """,
        open_codes=["NPU501"],
    )


@pattern("T33")
def test_star_imports_are_reported() -> None:
    check_noop("from torch.cuda import *\n", open_codes=["NPU402"])
    check_noop("from torch.cuda.nccl import *\n", open_codes=["NPU501"])


@pytest.mark.parametrize(
    "source",
    [
        "from .cuda import f\n",
        "from . import cuda\n",
        "from ..torch.cuda import Stream\n",
        "from mytorch.cuda import Stream\n",
        "import mytorch.cuda as c\n",
        "import cuda_tools\n",
        "from pkg.torch import cuda\n",
    ],
)
def test_other_modules_stay(source: str) -> None:
    files = {"pkg/cuda_tools.py": "", "cuda_tools.py": "", "pkg/cuda.py": "", "pkg/torch.py": "cuda = 1\n"}
    unknown = ["NPU602"] if "mytorch" in source else []  # nobody knows what that is on an NPU
    check_noop(source, path="pkg/sub.py", files=files, open_codes=unknown)


def test_unknown_names_are_reported() -> None:
    check_noop("from torch.cuda import NoSuchThing\n", open_codes=["NPU601"])
    check_noop("import torch.cuda.nccl as n\n", open_codes=["NPU501"])


def test_versions_decide() -> None:
    source = "import torch\nfrom torch.cuda import ipc_collect\n"
    assert b"from torch.npu import ipc_collect" in migrate(source, torch_version="2.6").data
    assert not migrate(source, torch_version="2.4").changed


def test_a_comment_elsewhere_does_not_hold_a_local_name() -> None:
    check_rewrite(
        'from torch import cuda\nnames = {"gpu": 0}  # transplt: ignore[NPU0]\ncuda.synchronize()\n',
        LINE + 'from torch import npu\nnames = {"gpu": 0}  # transplt: ignore[NPU0]\nnpu.synchronize()\n',
    )


@pytest.mark.parametrize("use", [
    "cuda.synchronize()  # transplt: ignore[NPU101]\n",
    "print(\n    cuda.device_count(),\n    1,  # transplt: ignore[NPU101]\n)\n",
    "with (\n    cuda.stream(s)  # transplt: ignore\n):\n    pass\n",
    "def f(a=cuda.Event):  # transplt: ignore[NPU401]\n    pass\n",
])  # fmt: skip
def test_a_comment_at_a_use_holds_the_local_name(use: str) -> None:
    result = migrate(f"s = None\nfrom torch import cuda\n{use}cuda.Event()\n")
    assert result.data.decode().endswith(f"from torch import npu as cuda\n{use}cuda.Event()\n")
    assert result.tokens.unknown == result.tokens.manual == 0


def test_an_import_that_is_switched_off_keeps_its_uses() -> None:
    source = b"from torch import cuda\nf = cuda\ncuda.synchronize()\n"
    result = migrate_source(source, "old.py", Settings(per_file_ignores=(("old.py", ("NPU1",)),)), ProjectFacts())
    assert result.data == source
    assert result.tokens.unknown == 2
    check_noop("from torch import cuda  # transplt: ignore\nf = cuda\n", open_codes=["NPU602"])


_USE = "\n\nnet.cuda()\n"
_USED = "\n\nnet.npu()\n"


@pattern("P17")
@pytest.mark.parametrize(
    "imports",
    [
        "import os\n\nimport numpy as np\nimport torch\n{}import torchvision\nfrom PIL import Image\n",
        '"""Doc."""\nfrom __future__ import annotations\n\nimport torch\n{}',
        "import torchvision\nimport torch\n{}import os\n",
        "from torch import (\n    nn,\n    optim,\n)\n{}import sys\n",
        "import os, torch, sys\n{}import torchvision\n",
        "# Copyright\n\nimport torch  # main\n{}\nfrom net import Net\n",
        "import os\n\nimport numpy as np\nimport lightning\n{}\nfrom net import Net\n",  # no torch: with the packages
        "import os\n\nimport lightning\n{}\nfrom .net import Net\nfrom .more import More\n",
        '"""Doc."""\nfrom __future__ import annotations\n\nfrom net import Net\n{}',
        "import os\n\nfrom net import Net\n{}",
    ],
)
def test_the_import_stands_behind_that_of_torch_in_its_block(imports: str) -> None:
    files = {"net.py": "class Net: ...\n"}
    result = migrate(imports.format("") + _USE, files=files, torch_npu_import="each-file")
    assert result.data.decode() == imports.format(LINE) + _USED


#: Imports with a place for `import functools`, and where the one of torch_npu goes.
_HEADS = [
    "import argparse\n{functools}import os\n\nimport torch\n{npu}",
    "import argparse\nimport copy\n{functools}\nimport torch\n{npu}",
    "import sys\nimport copy\n{functools}\nimport torch\n{npu}",  # not in order: behind the others
    "{functools}from typing import Any\n\nimport torch\n{npu}",
    '"""Doc."""\nfrom __future__ import annotations\n\n{functools}from typing import Any\n\nimport torch\n{npu}',
    "{functools}import torch\n{npu}",
    "import copy\nimport sys\nsys.path.append('..')\n\nimport torch\n{npu}",
]


@pytest.mark.parametrize("head", _HEADS)
def test_an_import_of_the_standard_library_goes_among_its_like(head: str) -> None:
    functools = "import functools\n"
    if "{functools}" not in head:
        head = head.replace("import sys\n", "{functools}import sys\n", 1)
    below = "\n\ndef f(): ...\n\n\nimport zlib\n"
    source = read_source((head.format(functools="", npu="") + below).encode())
    found = scan(source, ast.parse(source.utf8))
    (item,) = at_top(source, found, [Edit(AtTop(), "NPU403", "m", "import functools", group="g")])
    text = source.utf8.decode()
    wanted = head.format(functools=functools, npu="")
    written = text[: item.start] + item.text + text[item.end :]
    assert written == wanted + below


@pytest.mark.parametrize(
    ("source", "is_work"),
    [
        ("import torch.cuda.comm as comm", False),
        ("from torch.cuda import comm", False),
        ("import torch.cuda.comm as comm\ncomm.scatter(x, [0])", True),
        ("from torch.cuda import comm\n__all__ = ['comm']", True),
        ("import torch.cuda.comm\ntorch.cuda.comm.scatter(x, [0])", True),
    ],
)
def test_a_module_of_cuda_that_nothing_uses_stops_nothing(source: str, is_work: bool) -> None:
    """`import torch.cuda.comm` itself runs with a torch that has no CUDA."""
    result = check_noop(f"{source}\n", open_codes=["NPU501"])
    assert any(each.open for each in result.findings) == is_work


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("from torchvision.ops import ps_roi_align\n", False),
        ("from torchvision.ops import ps_roi_align as align\n", False),
        ("from torchvision.ops import nms\nnms(b, s, 0.5)\n", True),
        ("from torchvision.ops import nms\n__all__ = ['nms']\n", True),
    ],
)
def test_a_name_of_torchvision_that_a_file_never_reads(source: str, said: bool) -> None:
    found = [each for each in migrate(source, torch_version="2.7").findings if each.code == "NPU512"]
    assert found and any(each.open for each in found) == said
