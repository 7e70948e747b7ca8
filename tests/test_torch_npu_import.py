"""Which files of a project import torch_npu: by the version of torch, or as the settings say."""

from __future__ import annotations

import pytest

from tests.harness import migrate

MAIN = "from net import Net\nif __name__ == '__main__':\n    Net().cuda()\n"
NET = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.cuda()\n"
IMPORT = "import torch_npu  # noqa: F401\n"


def imports(path: str, files: dict[str, str], **settings: str) -> bool:
    others = {name: text for name, text in files.items() if name != path}
    return IMPORT in migrate(files[path], path=path, files=others, **settings).data.decode()


@pytest.mark.parametrize(
    ("version", "where", "main", "net"),
    [
        ("2.4", "auto", True, True),  # nothing loads torch_npu by itself
        ("2.5", "auto", True, False),  # torch does
        ("2.13", "auto", True, False),
        ("2.13", "each-file", True, True),
        ("2.4", "entry", True, False),
    ],
)
def test_by_version_and_setting(version: str, where: str, main: bool, net: bool) -> None:
    files = {"main.py": MAIN, "net.py": NET}
    chosen = {"torch_version": version, "torch_npu_import": where}
    assert imports("main.py", files, **chosen) is main
    assert imports("net.py", files, **chosen) is net


def test_a_library_that_nobody_imports_begins_by_itself() -> None:
    assert imports("net.py", {"net.py": NET, "other.py": "import torch\n"})


def test_a_file_that_names_torch_npu_imports_it() -> None:
    used = "torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])"
    net = f"{NET}\ndef trace(f):\n    return {used}\n"
    text = migrate(net, path="net.py", files={"main.py": MAIN}).data.decode()
    assert ("torch_npu." in text) is (IMPORT in text) is True


def test_a_file_without_torch_that_others_import_has_none() -> None:
    move = "import numpy\ndef move(x):\n    return x.cuda()\n"
    files = {"main.py": "from move import move\nmove(1).cuda()\n", "move.py": move}
    assert not imports("move.py", files) and imports("main.py", files)


@pytest.mark.parametrize(
    ("main", "begins"),
    [
        ("from net import Net\nNet()\n", False),  # without a word of CUDA nobody looks into it
        ("def main():\n    from net import Net\n    Net()\n", False),
        ("import net as models\n", False),
        ("import networks\n", True),
    ],
)
def test_who_imports_needs_no_word_of_cuda(main: str, begins: bool) -> None:
    assert imports("net.py", {"net.py": NET, "main.py": main}) is begins


def test_a_file_that_shows_how_to_import_it_begins() -> None:
    shown = f'"""Networks.\n\n    from net import Net\n"""\n{NET}'
    assert imports("net.py", {"net.py": shown, "other.py": "import torch\n"})


def test_a_folder_of_the_project_that_is_called_torch_is_not_torch() -> None:
    main = "import numpy as np\nimport json\nimport torch\nfrom net import net\nx = torch.zeros(1).cuda()\n"
    text = migrate(main, path="main.py", files={"ops/torch/__init__.py": "", "ops/torch/act.py": ""}).data.decode()
    assert f"import torch\n{IMPORT}from net" in text
