"""Python in files that are no .py files: migrated where Python reads it, else reported."""

from __future__ import annotations

import pytest

from tests.harness import hold_ledger
from transplt.base.disk.walk import Entry
from transplt.base.finding import FileResult
from transplt.base.settings import Settings, TorchTarget
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.python_in import other_facts
from transplt.flow.facts import ProjectFacts
from transplt.syntax.modules import module_name

TARGET = TorchTarget("2.8", "", "2.8.0", "8.5.0", "2.8.0")
NPU = "import torch_npu  # noqa: F401"


def migrated(text: str, path: str, project: ProjectFacts | None = None) -> FileResult:
    data = text.encode()
    result = migrate_other(data, path, kind_of(path, data), Settings(), TARGET, project)[0]
    if result.changed:
        hold_ledger(text, result)
        assert (
            migrate_other(result.data, path, kind_of(path, result.data), Settings(), TARGET, project)[0].data
            == result.data
        )
    return result


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (
            "bin/train",
            "#!/usr/bin/env python3\nimport torch\ntorch.cuda.init()\n",
            f"#!/usr/bin/env python3\nimport torch\n{NPU}\ntorch.npu.init()\n",
        ),
        # a name says what it holds, as in a .py file: a guard moves with what it guards
        (
            "bin/train",
            "#!/usr/bin/env python3\nimport torch\nif torch.cuda.is_available():\n    device = 'cuda'\nrun(device)\n",
            f"#!/usr/bin/env python3\nimport torch\n{NPU}\nif torch.npu.is_available():\n    device = 'npu'\n"
            "run(device)\n",
        ),
        ("a.pyx", "import torch\ntorch.cuda.init()\n", f"import torch\n{NPU}\ntorch.npu.init()\n"),
        (
            "a.py.j2",
            "import torch\nx = torch.zeros({{ n }}).cuda()\n",
            f"import torch\n{NPU}\nx = torch.zeros({{{{ n }}}}).npu()\n",
        ),
        ("a.py.in", "import torch\nx.to('cuda')\n", f"import torch\n{NPU}\nx.to('npu')\n"),
        # a stub is read by no program: no import
        (
            "a.pyi",
            "import torch\ndef f(where: torch.device = torch.device('cuda')) -> None: ...\n",
            "import torch\ndef f(where: torch.device = torch.device('npu')) -> None: ...\n",
        ),
    ],
)
def test_edits(path: str, before: str, after: str) -> None:
    result = migrated(before, path)
    assert result.data.decode() == after and not any(each.open for each in result.findings)


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("bin/train", "#!/usr/bin/env python\nprint 'cuda'\n", "NPU807"),
        ("a.pyx", "cdef int x\ntorch.cuda.init()\n", "NPU806"),
        ("a.py.in", "x = @X@\ntorch.cuda.init()\n", "NPU807"),
        ("a.yaml.j2", "device: cuda\n", "NPU807"),  # Python reads it as a name with an annotation
        ("a.pyi", "def f(where='cuda'", "NPU807"),
    ],
)
def test_what_python_does_not_read_is_reported(path: str, text: str, code: str) -> None:
    result = migrated(text, path)
    assert not result.changed and [each.code for each in result.findings] == [code]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("bin/train", "#!/usr/bin/env python\nimport torch\n"),
        ("bin/run", "#!/bin/sh\nls\n"),
        ("a.pyi", "x: int\n"),
        ("a.pyx", "cdef int x\n"),
        ("README", "torch.cuda is fast\n"),
    ],
)
def test_what_stays(path: str, text: str) -> None:
    result = migrated(text, path)
    assert not result.changed and not result.findings


def test_a_script_says_what_it_passes_to_the_project() -> None:
    script = b"#!/usr/bin/env python\nimport torch\nfrom lib import NAME\nx.to(NAME)\n"
    told = other_facts(script, "bin/train", Settings())
    lib = b"NAME = 'cuda'\n"
    assert told is not None
    project = ProjectFacts.join([told, index_source(lib, "lib.py", Settings())])
    assert migrate_source(lib, "lib.py", Settings(), project).data == b"NAME = 'npu'\n"
    assert (
        migrate_source(lib, "lib.py", Settings(), ProjectFacts.join([index_source(lib, "lib.py", Settings())])).data
        == lib
    )


def test_what_no_python_is_says_nothing() -> None:
    assert other_facts(b"#!/bin/sh\ntorch.cuda\n", "bin/train", Settings()) is None
    assert other_facts(b"{", "a.ipynb", Settings()) is None


@pytest.mark.parametrize(
    ("path", "mode", "has_facts"),
    [
        ("a.py", 0o644, True),
        ("a.pyw", 0o644, True),
        ("a.ipynb", 0o644, True),
        ("bin/train", 0o755, True),
        ("bin/train", 0o644, False),
        ("a.pyi", 0o644, False),
        ("a.sh", 0o755, True),  # which device it gives the program
        ("conf/a.yaml", 0o644, True),
        ("Dockerfile", 0o644, True),
        ("a.txt", 0o644, False),
        ("a.cu", 0o644, False),
    ],
)
def test_what_may_have_facts_for_the_project(path: str, mode: int, has_facts: bool) -> None:
    assert Entry(path, 100, mode).has_facts is has_facts


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b.py", "a.b"),
        ("a/__init__.py", "a"),
        ("a/b.pyi", "a.b"),
        ("bin/train", "bin.<train>"),
        ("demo.ipynb", "<demo_ipynb>"),
        ("a.b/demo.ipynb", "a.b.<demo_ipynb>"),
    ],
)
def test_names_of_modules(path: str, name: str) -> None:
    assert module_name(path) == name


def test_kinds() -> None:
    assert kind_of("a.py.tmpl", b"") is FileKind.SCRIPT and kind_of("requirements.in", b"") is FileKind.REQUIREMENTS
