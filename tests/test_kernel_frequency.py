"""Which functions of compiled modules projects call: scripts/kernel_frequency.py."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import kernel_frequency

BUILT = frozenset({"pointnet2_cuda", "upfirdn"})


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("import pointnet2_cuda as p\np.fps(1)\np.fps(2)\n", [("pointnet2_cuda", "fps")]),
        ("from pkg import _C\n\n\ndef f(x):\n    return _C.nms(x)\n", [("_C", "nms")]),
        ("from pkg.upfirdn import up\ny = up(1)\n", [("upfirdn", "up")]),
        ("import pkg._ext as e\ne.knn(1)\n", [("_ext", "knn")]),
        ("m = ext_loader.load_ext('_ext', ['nms'])\nm.nms(1)\n", [("_ext", "nms")]),
        ("import cpp_extension\nm = cpp_extension.load(name='corr', sources=[])\nm.go(1)\n", [("corr", "go")]),
        ("from torch import _C\n_C.nms(1)\n", []),
        ("import torch._C as c\nc.f(1)\n", []),
        ("import json\nm = json.load(open('x'))\nm.forward(1)\n", []),
        ("import other as p\np.ball_query_wrapper(1)\n", []),
        ("print 'old'\n", []),
    ],
)  # fmt: skip
def test_calls_into_compiled_modules(text: str, called: list[tuple[str, str]]) -> None:
    assert sorted({*kernel_frequency.called_in(text, BUILT)}) == called


def test_a_function_counts_once_for_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "setup.py": "setup(ext_modules=[CUDAExtension('pkg.fast', ['a.cu'])])\n",
        "one/a.py": "from pkg import fast\nfast.go(1)\n", "one/b.py": "import pkg.fast as f\nf.go(2)\nf_cuda = 1\n",
        "two/c.py": "import iou3d_cuda\niou3d_cuda.nms_gpu(1)\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", "m"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    assert kernel_frequency.main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == ["   1 fast.go", "   1 iou3d_cuda.nms_gpu"]
    assert kernel_frequency.main(["--within", "1", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == ["   1 iou3d_cuda.nms_gpu"]
