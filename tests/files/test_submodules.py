"""Submodules that are not checked out."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import TARGET
from transplt.base.finding import Level
from transplt.base.settings import Settings
from transplt.engine.engine import index_source
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts

USE = "import torch\nfrom third_lib.ops import knn\n\nx = knn(torch.zeros(2, 3).cuda())\n"
MODULES = '[submodule "third_lib"]\n\tpath = third_lib\n\turl = https://example.org/third_lib.git\n'


def told(modules: str, files: dict[str, str], path: str = ".gitmodules") -> list[tuple[Level, str]]:
    """What is said of a .gitmodules in a project of these Python files."""
    project = ProjectFacts.join([index_source(text.encode(), name, Settings()) for name, text in files.items()])
    data = modules.encode()
    result, _ = migrate_other(data, path, kind_of(path, data), Settings(), TARGET, project)
    assert result.data == data
    return [(each.level, each.message) for each in result.findings if each.code == "NPU866"]


@pytest.mark.parametrize(
    ("modules", "use"),
    [
        (MODULES, USE),
        (MODULES.replace("path = third_lib", "path = vendor/third_lib"), USE),
        (MODULES.replace("path = third_lib", "path = vendor/third_lib"), USE.replace("third_lib", "vendor.third_lib")),
    ],
)
def test_a_submodule_that_is_imported(modules: str, use: str) -> None:
    ((level, message),) = told(modules, {"train.py": use})
    assert level is Level.MANUAL
    assert message.startswith(("the submodule third_lib", "the submodule vendor/third_lib"))
    assert "third_lib.ops.knn from it" in message


def test_a_file_without_a_word_of_cuda_imports_it_too() -> None:
    use = "from third_lib import knn\n\n\ndef f(x):\n    return knn(x)\n"
    ((level, message),) = told(MODULES, {"models/net.py": use})
    assert level is Level.MANUAL and "imports third_lib from it" in message


def test_one_that_nobody_imports_is_a_remark() -> None:
    found = told(MODULES, {"train.py": "import torch\n"})
    assert found == [(Level.INFO, "the submodule third_lib is not checked out")]


@pytest.mark.parametrize(
    ("modules", "files"),
    [
        (MODULES, {"train.py": USE, "third_lib/ops.py": "def knn(x):\n    return x\n"}),
        (MODULES, {"a/train.py": USE, "a/third_lib/ops.py": ""}),
        ("[core]\n\tpath = third_lib\n", {"train.py": USE}),
    ],
)
def test_one_that_is_there(modules: str, files: dict[str, str]) -> None:
    folder = "a/" if any(name.startswith("a/") for name in files) else ""
    assert told(modules, files, f"{folder}.gitmodules") == []


def test_a_package_that_is_known_may_be_installed() -> None:
    modules = MODULES.replace("third_lib", "third_party/transformers")
    use = "import torch\nfrom transformers import AutoModel\n\nx = AutoModel().cuda()\n"
    ((level, _),) = told(modules, {"train.py": use})
    assert level is Level.INFO
