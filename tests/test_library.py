"""The library: what the document shows is what happens."""

from __future__ import annotations

import encodings
import pkgutil
import re
import subprocess
import sys
import warnings
from encodings.aliases import aliases
from pathlib import Path
from typing import Any

import pytest

import transplt
from transplt import UsageError

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
    functions, errors = {"check", "migrate_source", "migrate_tree"}, {"CannotFinish", "TranspltError", "UsageError"}
    assert set(transplt.__all__) == functions | errors
    assert dir(transplt) == sorted({*transplt.__all__, "__version__"})
    assert all(callable(getattr(transplt, name)) for name in transplt.__all__)
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
    assert portable.data.endswith(b"\ndevice_module.synchronize()\n")


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
    lambda: transplt.migrate_tree(".", amp="apex", style="portable"),
    lambda: transplt.migrate_tree(".", tune="fused-optimiser"),
    lambda: transplt.migrate_source("", torch_version="1.0"),
    lambda: transplt.migrate_source("", style="cuda"),
    lambda: transplt.migrate_tree("/does/not/exist"),
    lambda: transplt.check("/does/not/exist"),
    lambda: transplt.check(".", select=["X"]),
    lambda: transplt.check("a\0b"),
    lambda: transplt.migrate_tree("a\0b"),
    lambda: transplt.migrate_tree(".", "o\0"),
    lambda: transplt.migrate_tree(".", "o/" * 1000),
])  # fmt: skip
def test_wrong_use_is_one_error(call: object) -> None:
    with pytest.raises(UsageError):
        call()  # type: ignore[operator]


@pytest.mark.parametrize("call", [
    lambda: transplt.migrate_source(bytearray(b"x = 1\n")),  # type: ignore[arg-type]
    lambda: transplt.migrate_source("", torch_version=2.10),  # type: ignore[arg-type]
    lambda: transplt.check(".", torch_version=2.10),  # type: ignore[arg-type]
    lambda: transplt.check(["a.py"]),  # type: ignore[arg-type]
    lambda: transplt.check(".", select=b"NPU2"),  # type: ignore[arg-type]
])  # fmt: skip
def test_a_wrong_type_is_a_type_error(call: object) -> None:
    with pytest.raises(TypeError):
        call()  # type: ignore[operator]


# --- what Python does not read ---------------------------------------------------------------------------------------


def codes(source: str | bytes) -> list[tuple[int, str]]:
    """Lines and codes of the findings of a file that is given alone; its bytes stay as they are."""
    result = transplt.migrate_source(source)
    assert result.data == (source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source)
    return [(finding.span.line, finding.code) for finding in result.findings]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = 1\n", []),
        ("def f(:", [(1, "NPU901")]),
        ("x = 1\nprint 'text'\n", [(2, "NPU901")]),
        ("import torch\ntorch.cuda.synchronize(\n", [(2, "NPU901")]),
        ("(" * 500, [(1, "NPU901")]),
        ("x = 1\0", [(1, "NPU902")]),
        ("x = 1\ny = '\ud800'\n", [(2, "NPU902")]),
        ("import torch\ntorch.cuda.synchronize()  # \udcff\n", [(2, "NPU902")]),
        (b"# coding: idna\nx = 1\n", [(1, "NPU902")]),
        (b"# coding: idna\nimport torch\ntorch.cuda.synchronize('\xe9')\n", [(1, "NPU902")]),
        (b"# coding: undefined\nx = 1\n", [(1, "NPU902")]),
        (b"# coding: no-such\nx = 1\n", [(1, "NPU902")]),
        (b"# coding: utf-16-le\nimport torch\ntorch.cuda.synchronize()\n", [(1, "NPU902")]),
        (b"# coding: utf-7\nx = '+2AA-'\n", [(1, "NPU902")]),
        (b"# coding: raw_unicode_escape\nx = '\\ud800'\n", [(1, "NPU902")]),
    ],
)
def test_what_python_does_not_read_is_a_finding(source: str | bytes, expected: list[tuple[int, str]]) -> None:
    assert codes(source) == expected


CODECS = sorted({*aliases.values(), *(each.name for each in pkgutil.iter_modules(encodings.__path__))})
BODIES = (
    b"import torch\nx = torch.zeros(1).cuda()\n",
    b"x = 1\n",
    b"import torch\nx = '\xc3\xa9 \\\\d \\ud800 +2AA- ~{'.cuda()\n",
    b"+2AA-\nimport torch; torch.cuda\n",
)


def test_nothing_of_the_current_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    monkeypatch.setattr("transplt.project.pins.read_regular", lambda path, limit: read.append(path) or b"")
    (tmp_path / "requirements.txt").write_text("torch==2.1\n")
    monkeypatch.chdir(tmp_path)
    transplt.migrate_source(b"import torch\ntorch.cuda.synchronize()\n")
    assert read == []


@pytest.mark.parametrize("codec", [*CODECS, "utf-8-unix", "latin-1-dos", "utf-8-sig", "x" * 900])
def test_a_cookie_may_name_any_codec(codec: str) -> None:
    for body in BODIES:
        source = f"# -*- coding: {codec} -*-\n".encode() + body
        result = transplt.migrate_source(source)
        refused = [finding.code for finding in result.findings if finding.code[:5] == "NPU90"]
        if refused:
            assert result.data == source
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "m.py", "exec")  # what we read, Python reads
            compile(result.data, "m.py", "exec")
        assert (b".npu()" in result.data) == (b".cuda()" in body)


def test_a_cookie_may_name_any_alias_of_a_codec() -> None:
    for alias in sorted(aliases):
        source = f"# coding: {alias}\nimport torch\ntorch.cuda.synchronize()\n".encode()
        result = transplt.migrate_source(source)
        assert (b"torch.npu." in result.data) != ("NPU902" in [finding.code for finding in result.findings])


def test_cookies_of_emacs_are_read() -> None:
    for codec in ("utf-8-unix", "UTF_8_dos", "latin-1-unix", "iso-8859-1-mac", "iso-latin-1-unix"):
        source = f"# -*- coding: {codec} -*-\nimport torch\ntorch.cuda.synchronize()  # é\n".encode()
        assert b"torch.npu.synchronize()  # \xc3\xa9" in transplt.migrate_source(source).data


def test_files_of_a_project_may_name_any_codec(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for number, codec in enumerate(CODECS):
        (project / f"m{number}.py").write_bytes(f"# coding: {codec}\n".encode() + BODIES[number % 2])
    result = transplt.migrate_tree(project, tmp_path / "out", jobs=0)
    failed = {finding.path for file in result.files for finding in file.findings if finding.code == "NPU902"}
    assert f"m{CODECS.index('idna')}.py" in failed and f"m{CODECS.index('cp1252')}.py" not in failed
    assert result.output is not None
    for path in failed:
        assert (result.output / path).read_bytes() == (project / path).read_bytes()


def test_nothing_is_said_of_what_the_compiler_warns_of() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        transplt.migrate_source('import torch\nx = "\\d" is 1\ntorch.cuda.synchronize()\n')
    assert said == []


# --- one for a list of one -------------------------------------------------------------------------------------------


def test_one_value_is_a_list_of_one(tmp_path: Path) -> None:
    rules = tmp_path / "r.json"
    rules.write_text('{"rules": {"FuncNameModifyRule": [{"old_name": "lib.f", "new_name": "lib.g"}]}}')
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text("import torch\nimport lib\nlib.f(torch.zeros(1, device='cuda'))\n")
    (project / "b.py").write_text("import torch\ntorch.cuda.synchronize()\n")

    def found(**options: Any) -> list[tuple[str, str]]:
        return [(finding.path[-4:], finding.code) for finding in transplt.check(project, jobs=0, **options).findings]

    assert found(select="NPU2") == found(select=["NPU2"]) != []
    assert found(ignore="NPU4,NPU1") == found(ignore=["NPU4", "NPU1"]) != found()
    assert found(exclude="b.py") == found(exclude=["b.py"]) != found()
    assert found(rules=str(rules)) == found(rules=rules) == found(rules=[rules]) != found()
    for given in (str(rules), rules, [rules]):
        assert transplt.migrate_source("import lib\nlib.f()\n", rules=given).data == b"import lib\nlib.g()\n"
        result = transplt.migrate_tree(project, tmp_path / "out", rules=given, exclude="b.py", force=True, jobs=0)
        assert result.output is not None and "lib.g(" in (result.output / "a.py").read_text()
        assert not (result.output / "b.py").exists()
