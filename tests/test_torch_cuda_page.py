"""docs/reference/torch_cuda.md is what a run of each name says."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts import torch_cuda_page
from tests.test_documentation import anchors
from transplt.faces.cli.check import check
from transplt.faces.cli.explain import explain
from transplt.rules.pages import class_page


def test_the_page_is_that_of_the_tree() -> None:
    assert torch_cuda_page.main(["--check"]) == 0


def test_a_stale_page_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(torch_cuda_page, "names", lambda: ("torch.cuda.synchronize",))
    assert torch_cuda_page.main(["--check"]) == 1
    assert "is stale" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "npu", "portable"),
    [
        ("torch.cuda.synchronize", "**same** `torch.npu.synchronize`", "`device_module.synchronize`"),
        ("torch.cuda.Stream.query", "**same** `torch.npu.Stream.query`", "`device_module.Stream.query`"),
        ("torch.cuda.CUDAGraph", "**changed** `torch.npu.NPUGraph`", "-"),
        ("torch.cuda.nvtx.mark", "`msg=` is `message=`", "-"),
        ("torch.cuda.amp.GradScaler", 'called: `torch.amp.GradScaler("npu")`', "`grad_scaler()`"),
        ("torch.cuda.temperature", "**none**", "-"),
        ("torch.cuda.current_blas_handle", "**no effect**", "-"),
        ("torch.backends.cudnn.benchmark", "**no effect**", "-"),
        ("torch.backends.cusparselt.is_available", "**no effect**", "-"),
        ("torch.backends.cudnn.version", "**another meaning**", "-"),
    ],
)
def test_what_a_row_says(name: str, npu: str, portable: str) -> None:
    assert npu in torch_cuda_page.npu(name, "2.13")
    assert torch_cuda_page.portable(name, "2.13") == portable


def test_versions_stand_where_they_differ_the_newest_first() -> None:
    cell = torch_cuda_page.by_version(torch_cuda_page.npu, "torch.cuda.StreamContext")
    assert re.findall(r"torch ([\d., -]+): \*\*(\w+)", cell) == [("2.1, 2.5-2.14", "same"), ("2.2-2.4", "none")]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch.cuda.synchronize", "yes"),
        ("torch.cuda.utilization", "on torch_npu alone: the original asks NVIDIA's NVML, which needs a driver"),
        ("torch.cuda.get_stream_from_external", "with --similar: yes"),
        ("torch.cuda.Stream.query", ""),
        ("torch.cuda.temperature", ""),
    ],
)
def test_what_is_run(name: str, said: str) -> None:
    assert torch_cuda_page.run(name) == said


def test_explain_leads_to_a_row() -> None:
    (target,) = re.findall(r"(docs/\S+)#(\S+)", CliRunner().invoke(explain, ["torch.cuda.temperature"]).output)
    assert target[0] == torch_cuda_page.CLASS_PAGE and target[1] in anchors(torch_cuda_page.PAGE)
    assert "docs/reference" not in CliRunner().invoke(explain, ["torch.Tensor.cuda"]).output
    assert class_page("torch.cuda.get_device_properties().uuid").endswith("#torch.cuda.get_device_properties")
    assert class_page("torch.cudaxyz") == class_page("torch.Tensor.cuda") == ""


def test_a_finding_leads_to_its_row(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import torch\ntorch.cuda.temperature()\ntorch.cuda.no_such_name()\nx.cuda()\n")
    text = CliRunner().invoke(check, [str(script)]).output
    assert re.findall(r" = more: (.+)", text) == ["transplt explain torch.cuda.temperature"]


@pytest.mark.torch
def test_every_public_name_of_torch_has_a_row() -> None:
    """What a module lists, and what it defines itself under a name without an underscore."""
    there, lost = anchors(torch_cuda_page.PAGE), []
    for module, _ in torch_cuda_page.parts():
        try:
            found = importlib.import_module(module)
        except ImportError:
            continue  # of a newer torch
        listed = {*getattr(found, "__all__", ())}
        for name, value in vars(found).items():
            own = (getattr(value, "__module__", "") or "").startswith(module) and not inspect.ismodule(value)
            if name in listed or (own and not name.startswith("_")):
                lost += [f"{module}.{name}"] if f"{module}.{name}" not in there else []
    assert lost == []
