"""How a file calls a function of npu_port.py, or has it itself where no second file is written."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, clean, migrate
from transplt.edits.helper_file import helper_text
from transplt.edits.helper_inline import without_annotations
from transplt.edits.helper_source import folder

OURS = helper_text(["OneCardDataParallel"])


def test_a_call_and_an_import() -> None:
    check_rewrite(
        "import torch\n\nnet = torch.nn.DataParallel(net)\n",
        "import torch\n\nimport npu_port\n\nnet = npu_port.OneCardDataParallel(net)\n",
        codes_applied=["NPU135", "NPU156"],
        open_codes=["NPU507"],
        helper_file=True,
    )


def test_the_import_stands_below_all_others_and_once() -> None:
    check_rewrite(
        """
        import sys

        sys.path.append("..")
        import torch
        from utils import mend

        net = torch.nn.DataParallel(mend(net))
        other = torch.nn.DataParallel(net)
        """,
        """
        import sys

        sys.path.append("..")
        import torch
        import npu_port
        from utils import mend

        net = npu_port.OneCardDataParallel(mend(net))
        other = npu_port.OneCardDataParallel(net)
        """,
        open_codes=["NPU507"],
        files={"utils.py": ""},
        helper_file=True,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\n", "import torch\n\nimport npu_port\n"),
        ("import torch\n\nimport models\nimport utils\n",
         "import torch\n\nimport models\nimport npu_port\nimport utils\n"),
        ("import torch\n\nfrom utils import a\n", "import torch\n\nimport npu_port\nfrom utils import a\n"),
        ("import torch\n\nimport models\n", "import torch\n\nimport models\nimport npu_port\n"),
        ("import torch\nfrom utils import a\nimport models\n",
         "import torch\nfrom utils import a\nimport models\nimport npu_port\n"),
        ("import utils\nimport torch\n", "import utils\nimport torch\n\nimport npu_port\n"),
    ],
)  # fmt: skip
def test_it_stands_among_the_projects_own_imports(before: str, after: str) -> None:
    use, used = "\nnet = torch.nn.DataParallel(net)\n", "\nnet = npu_port.OneCardDataParallel(net)\n"
    result = migrate(before + use, files={"utils.py": "", "models.py": ""}, helper_file=True)
    assert result.data.decode() == after + used


def test_it_stands_among_relative_imports() -> None:
    head, rest = "import torch\n\nfrom .. import x\n", "from .net import y\n\n\ndef f(net):\n    return net\n"
    source = head + rest.replace("return net", "return torch.nn.DataParallel(net)")
    files = {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", "pkg/x.py": "", "pkg/sub/net.py": "",
             "pkg/cli.py": "from .sub import a\n"}  # fmt: skip
    after = migrate(source, path="pkg/sub/a.py", files=files, helper_file=True).data.decode()
    called = rest.replace("return net", "return npu_port.OneCardDataParallel(net)")
    assert after == f"{head}from .. import npu_port\n{called}"


def test_it_stands_above_the_first_use() -> None:
    after = migrate("import torch\nnet = torch.nn.DataParallel(net)\nimport os\n", helper_file=True).data.decode()
    assert after == "import torch\n\nimport npu_port\nnet = npu_port.OneCardDataParallel(net)\nimport os\n"


def test_an_import_in_a_function_needs_none_at_the_top() -> None:
    after = migrate(
        '"""Docs."""\nfrom __future__ import annotations\n\ndef wrap(net):\n    import torch\n\n'
        "    return torch.nn.DataParallel(net)\n\n\nwrap(1)\n",
        helper_file=True,
    ).data.decode()
    assert after.startswith('"""Docs."""\nfrom __future__ import annotations\n\nimport npu_port\n\ndef wrap(net):\n')
    assert "    return npu_port.OneCardDataParallel(net)\n" in after


@pytest.mark.parametrize(
    "taken", ["npu_port = 3\n", "def f(npu_port):\n    pass\n", "from x import y as npu_port\n", "print(npu_port)\n"]
)
def test_a_name_that_is_taken_gets_an_alias(taken: str) -> None:
    after = migrate(f"import torch\n{taken}net = torch.nn.DataParallel(net)\n", helper_file=True).data.decode()
    assert "import npu_port as npu_helper\n" in after
    assert "net = npu_helper.OneCardDataParallel(net)\n" in after


@pytest.mark.parametrize(
    ("line", "call"),
    [("import npu_port", "npu_port"), ("import npu_port as port", "port")],
)
def test_an_import_that_is_there_is_used(line: str, call: str) -> None:
    source = f"import torch\n{line}\nnet = torch.nn.DataParallel(net)\n"
    after = migrate(source, files={"npu_port.py": OURS}, helper_file=True).data.decode()
    assert after == f"import torch\n{line}\nnet = {call}.OneCardDataParallel(net)\n"


def test_what_a_module_lacks_is_said_and_nothing_calls_it() -> None:
    result = check_noop(
        "import torch\nnet = torch.nn.DataParallel(net)\nother = torch.nn.DataParallel(net)\n",
        files={"npu_port.py": OURS.partition("class OneCard")[0]},
        open_codes=["NPU157", "NPU507"],
        helper_file=True,
    )
    (finding,) = [each for each in result.findings if each.code == "NPU157"]
    assert finding.message.startswith("npu_port.py has no OneCardDataParallel, which this edit needs")
    assert "move npu_port.py away and migrate again" in finding.help


def test_the_module_itself_is_copied_and_its_tokens_have_a_reason() -> None:
    text = OURS + "\n\nBACKEND = 'nccl'\nx = torch.cuda.is_available()\n"
    result = migrate(text, path="npu_port.py", helper_file=True)
    assert result.data.decode() == clean(text) and not result.findings
    assert result.tokens.found == result.tokens.ignored == 2
    assert {cause.reason for cause in result.ledger.causes} == {"helper-file"}


def test_a_second_run_edits_nothing_and_keeps_the_action() -> None:
    files = {"npu_port.py": OURS}
    source = "import torch\n\nimport npu_port\n\nnet = npu_port.OneCardDataParallel(net)\n"
    result = check_noop(source, files=files, open_codes=["NPU507"], helper_file=True)
    assert not result.tokens.found


@pytest.mark.parametrize("path", ["train.ipynb", "train", "train.pyi"])
def test_no_second_file_for_what_is_no_module(path: str) -> None:
    after = migrate("import torch\nnet = torch.nn.DataParallel(net)\n", path=path, helper_file=True).data.decode()
    assert "class OneCardDataParallel(torch.nn.DataParallel):" in after and "npu_port" not in after


@pytest.mark.parametrize("helper_file", [False, True])
def test_what_nothing_calls_does_not_go_in(helper_file: bool) -> None:
    source = "import torch\nnet = torch.nn.DataParallel(net)  # transplt: ignore[NPU135] why\n"
    assert migrate(source, helper_file=helper_file).data.decode() == source


def test_a_file_without_its_project_has_it_itself() -> None:
    after = migrate("import torch\nnet = torch.nn.DataParallel(net)\n").data.decode()
    assert "class OneCardDataParallel(torch.nn.DataParallel):" in after and "npu_port" not in after


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch\n", "torch.nn.DataParallel"),
        ("import torch\nfrom torch import nn\n", "nn.DataParallel"),
        ("import torch\nimport torch.nn as n\n", "n.DataParallel"),
        ("import torch\nfrom torch.nn import DataParallel as DP\n", "DP"),
        ("import torch\nfrom torch.nn.parallel import DataParallel\n", "DataParallel"),
    ],
)
def test_names_as_the_file_has_them(imports: str, base: str) -> None:
    after = migrate(f"{imports}net = torch.nn.DataParallel(net)\n").data.decode()
    assert f"class OneCardDataParallel({base}):" in after


def test_what_stands_in_a_file_has_no_annotations_and_is_what_stands_in_ours() -> None:
    source = (folder() / "data_parallel.py").read_bytes()
    (text,) = [part for part in without_annotations(source).decode().split("\n\n\n") if part.startswith("class ")]
    after = migrate("import torch\nfrom torch.nn import DataParallel\nnet = DataParallel(net)\n").data.decode()
    assert text.rstrip("\n") in after
