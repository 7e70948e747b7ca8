"""Where `import torch_npu` goes, and where it does not."""

from __future__ import annotations

import ast

import pytest

from tests.harness import check_noop, check_rewrite, migrate
from transplt.base.text.source import read_source, splice
from transplt.edits.edit import AtTop, Edit
from transplt.edits.imports import at_top
from transplt.syntax.parse import parse
from transplt.syntax.scan import scan

LINE = "import torch_npu  # noqa: F401\n"


def lines_of(source: str) -> list[str]:
    return migrate(source).data.decode().splitlines()


@pytest.mark.parametrize(
    ("source", "above"),
    [
        ("import os\nimport torch\nimport sys\nx.cuda()\n", "import torch"),
        ("import torch.nn as nn\nimport torch\nx.cuda()\n", "import torch.nn as nn"),
        ("from torch import (\n    nn,\n    optim,  # two\n)\nx.cuda()\n", ")"),
        ("import torch \\\n    as th\nth.cuda.synchronize()\n", "    as th"),
        ("import torch\\\n\nx.cuda()\n", ""),  # the empty line belongs to it
        ("import torch  # not here: \\\n\nx.cuda()\n", "import torch  # not here: \\"),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\ndef f(x): x.cuda()\n", "    torch = None"),
        ("with quiet():\n    import torch\nx.cuda()\n", "    import torch"),
        ("import os\nif available():\n    import torch\n    y = 1\nx.cuda()\n", "    import torch"),
        ("if available():\n    import torch\n    y = torch.cuda.device_count()\n", "    import torch"),
        ("if available(): import torch\nx.cuda()\n", "if available(): import torch"),
        ("if a:\n    import torch\nelse:\n    from torch import nn\nx.cuda()\n", "    from torch import nn"),
        ('"""Doc."""\nfrom __future__ import annotations\n\nimport torch\nx.cuda()\n', "import torch"),
        ('"""Doc."""\nx.cuda()\n', '"""Doc."""'),
        ("from __future__ import annotations\nx.cuda()\n", "from __future__ import annotations"),
        ("import os\nimport sys\n\nx.cuda()\n", "import sys"),
        ("import typing\nif typing.TYPE_CHECKING:\n    import torch\nx.cuda()\n", "import typing"),
        ("from t import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\nx.cuda()\n", "from t import TYPE_CHECKING"),
        ("import os\ndef f():\n    import torch\n    torch.cuda.synchronize()\n", "import os"),
        ("import os\nclass A:\n    import torch\n    y = torch.cuda.device_count()\n", "import os"),
        ("import torch; import os\nx.cuda()\n", "import torch; import os"),
        ("import os\ny = x.cuda()\nimport torch\n", "import os"),
        ("import torch\nif available():\n    import torch.distributed\nx.cuda()\n", "import torch"),
    ],
)
def test_below_the_first_import_of_torch(source: str, above: str) -> None:
    lines = lines_of(source)
    at = [line.strip() for line in lines].index(LINE.strip())
    assert lines[at - 1] == above
    assert lines.count(lines[at]) == 1
    assert lines[:at] == source.splitlines()[:at]


@pytest.mark.parametrize(
    ("source", "below"),
    [
        ("x.cuda()\n", "x.npu()"),
        ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# About.\nx.cuda()\n", "x.npu()"),
        ("@deco(x.cuda())\ndef f(): pass\n", "@deco(x.npu())"),
        ("from torch.cuda import amp\nimport torch\n", "from torch.npu import amp"),
        ("import torch.cuda as c\nc.synchronize()\n", "import torch.npu as c"),
        ("try:\n    import torch\n    ok = torch.cuda.is_available()\nexcept ImportError:\n    ok = False\n", "try:"),
        ("import torch; x = torch.cuda.device_count()\n", "import torch; x = torch.npu.device_count()"),
        ("def f():\n    import torch\n    return torch.cuda.device_count()\n", "def f():"),
    ],
)
def test_above_what_needs_it(source: str, below: str) -> None:
    lines = lines_of(source)
    at = lines.index(LINE.strip())
    assert lines[at + 1] == below


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nimport torch_npu\nx.cuda()\n",
        "import torch_npu\nimport torch\nx.cuda()\n",
        "import torch\nimport torch_npu as tn\nx.cuda()\n",
        "import torch\nfrom torch_npu.contrib import transfer_to_npu\ndef f(x):\n    x.cuda()\n",
        "import torch\ntry:\n    import torch_npu\nexcept ImportError:\n    pass\ndef f(x):\n    x.cuda()\n",
        "import torch\nif npu_there():\n    import torch_npu\ndef f(x):\n    x.cuda()\n",
    ],
)
def test_never_twice(source: str) -> None:
    result = migrate(source)
    assert result.data.decode() == source.replace("cuda", "npu")


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nimport t\nif t.TYPE_CHECKING:\n    import torch_npu\ndef f(x):\n    x.cuda()\n",
        "import torch\ndef g():\n    import torch_npu\ndef f(x):\n    x.cuda()\n",
    ],
)
def test_an_import_without_effect_does_not_count(source: str) -> None:
    assert migrate(source).data.decode() == source.replace("torch\n", f"torch\n{LINE}", 1).replace("cuda", "npu")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dist_params = dict(backend='nccl')\n", "dist_params = dict(backend='hccl')\n"),
        ("device = 'cuda'\n", "device = 'npu'\n"),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--device', default='cuda')\n",
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--device', default='npu')\n",
        ),
        ("def f(device):\n    return device == 'cuda'\n", "def f(device):\n    return device == 'npu'\n"),
    ],
)
def test_files_that_only_hold_settings_import_nothing(before: str, after: str) -> None:
    assert migrate(before).data.decode() == after


def test_a_library_may_need_it() -> None:
    source = "from transformers import pipeline\np = pipeline(device='cuda')\n"
    result = migrate(source).data.decode()
    assert result == f"from transformers import pipeline\n{LINE}p = pipeline(device='npu')\n"


@pytest.mark.parametrize("source", ["import torch\nprint('cuda')\n", "# cuda\nimport torch\n", "use_cuda = 1\n"])
def test_not_where_nothing_was_written(source: str) -> None:
    check_noop(source)


@pytest.mark.parametrize(
    ("file", "modules"),
    [(True, {"torch_npu", "npu_port"}), (False, {"os", "torch", "torch_npu", "torch.distributed"})],
)
def test_the_docstring_stays_above_what_a_theme_imports(file: bool, modules: set[str]) -> None:
    source = '''
        """Train a model."""

        def main():
            import torch
            model = torch.nn.Linear(1, 1).cuda()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            for x in torch.utils.data.DataLoader(data, shuffle=True):
                model(x).mean().backward()
                optimizer.step()

        if __name__ == "__main__":
            main()
        '''
    tree = ast.parse(migrate(source, entry="train.py", helper_file=file).data)
    assert ast.get_docstring(tree) == "Train a model."
    imported = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    froms = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert modules <= imported | {f"{node.module}.{alias.name}" for node in froms for alias in node.names}


def test_imports_of_a_theme_below_a_last_line_without_an_end() -> None:
    source = read_source(b"import torch")
    lines = ["from torch.nn.parallel import DistributedDataParallel", "import torch.distributed as dist"]
    edits = [Edit(AtTop(), "NPU333", "imports", line) for line in lines]
    placed = at_top(source, scan(source, parse(source)), edits)
    after = splice(source.utf8, [(item.start, item.end, item.text.encode()) for item in placed]).decode()
    assert after == f"import torch\n{lines[1]}\n{lines[0]}\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_newline_and_missing_end(newline: str) -> None:
    source = newline.join(["import torch", "x.cuda()"])
    assert migrate(source).data.decode() == newline.join(["import torch", LINE.strip(), "x.npu()"])
    source = newline.join(["x.cuda()", "import torch"])
    assert LINE.strip() in migrate(source).data.decode().split(newline)


def test_one_record_for_the_line() -> None:
    after = f"import torch\n{LINE}x.npu()\ny.npu()\n"
    result = check_rewrite("import torch\nx.cuda()\ny.cuda()\n", after, codes_applied=["NPU210", "NPU403"])
    (record,) = [finding for finding in result.findings if finding.code == "NPU403"]
    assert record.edit is not None and record.edit.operation.value == "INSERT"
    assert (record.span.line, record.span.start, record.edit.after) == (2, record.span.end, LINE)
