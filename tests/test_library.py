"""The library: what the document shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import transplt
from transplt.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = re.findall(
    r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", (ROOT / "docs" / "library.md").read_text(), re.DOTALL
)


def test_the_examples_print_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(EXAMPLES) == 4
    monkeypatch.chdir(tmp_path)
    for code, printed in EXAMPLES:
        exec(compile(code, "docs/library.md", "exec"), {})
        assert capsys.readouterr().out == printed


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, transplt; transplt.__version__; print([m for m in sys.modules if m.startswith('transplt')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "['transplt']\n"
    assert set(transplt.__all__) == {"check", "migrate_source", "migrate_tree"}
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        transplt.nothing  # type: ignore[attr-defined] # noqa: B018


def test_bytes_keep_their_encoding_and_line_ends() -> None:
    data = "# coding: latin-1\r\nimport torch\r\nx = torch.ones(1).cuda()  # é".encode("latin-1")
    result = transplt.migrate_source(data)
    assert result.data.endswith(b"x = torch.ones(1).npu()  # \xe9")
    assert b"import torch_npu  # noqa: F401\r\n" in result.data


def test_options_reach_the_engine(tmp_path: Path) -> None:
    rules = tmp_path / "rules.json"
    rules.write_text('{"rules": {"FuncNameModifyRule": [{"old_name": "lib.f", "new_name": "lib.g"}]}}')
    assert transplt.migrate_source("import lib\nlib.f()\n", rules=[rules]).data == b"import lib\nlib.g()\n"
    portable = transplt.migrate_source("import torch\ntorch.cuda.synchronize()\n", style="portable")
    assert portable.data == b"import torch\ntorch.accelerator.synchronize()\n"


def test_themes_are_asked_for_by_keyword(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(
        "import torch\n\nmodel = torch.nn.Linear(2, 1).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for x in torch.ones(3, 2).cuda():\n    loss = model(x).mean()\n    optimizer.zero_grad()\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    out = tmp_path / "out"
    result = transplt.migrate_tree(project, out, amp="native", amp_dtype="bfloat16", tune="fused-optimizer")
    assert result.output is not None
    text = (result.output / "train.py").read_text()
    assert "torch.bfloat16" in text and "NpuFusedSGD" in text and "GradScaler" not in text


def test_apex_options_are_asked_for_by_keyword(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import argparse\nimport torch\nimport torch.distributed as dist\nfrom data import loader\n\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--lr', type=float)\nargs = parser.parse_args()\n"
        "dist.init_process_group('nccl')\nmodel = torch.nn.Linear(2, 1).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)\n"
        "for x in loader:\n    loss = model(x.cuda()).mean()\n    optimizer.zero_grad()\n"
        "    loss.backward()\n    optimizer.step()\n"
    )
    result = transplt.migrate_tree(script, tmp_path / "out", amp="apex", combine_ddp=True, amp_flag=True)
    assert result.output is not None
    text = (result.output / "train.py").read_text()
    assert "combine_ddp=True" in text and "enabled=args.amp" in text


@pytest.mark.parametrize("call", [
    lambda: transplt.migrate_tree(".", amp="fp8"),
    lambda: transplt.migrate_tree(".", amp="native", amp_dtype="float8"),
    lambda: transplt.migrate_tree(".", opt_level="O1"),
    lambda: transplt.migrate_tree(".", amp="native", opt_level="O1"),
    lambda: transplt.migrate_tree(".", amp="apex", opt_level="O3"),
    lambda: transplt.migrate_tree(".", loss_scale="128"),
    lambda: transplt.migrate_tree(".", amp="native", combine_ddp=True),
    lambda: transplt.migrate_tree(".", amp_flag=True),
    lambda: transplt.migrate_tree(".", amp="native", loss_scale="0"),
    lambda: transplt.migrate_tree(".", amp="native", loss_scale="inf"),
    lambda: transplt.migrate_tree(".", amp="native", amp_dtype="bfloat16", loss_scale="128"),
    lambda: transplt.migrate_tree(".", amp="native", style="portable"),
    lambda: transplt.migrate_tree(".", tune="fused-optimiser"),
    lambda: transplt.migrate_source("", torch_version="1.0"),
    lambda: transplt.migrate_source("", style="cuda"),
    lambda: transplt.migrate_tree("/does/not/exist"),
    lambda: transplt.check("/does/not/exist"),
    lambda: transplt.check(".", select=["X"]),
])  # fmt: skip
def test_wrong_use_is_one_error(call: object) -> None:
    with pytest.raises(UsageError):
        call()  # type: ignore[operator]
