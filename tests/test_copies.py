"""Copies of other packages in the tree: those of a version that handles NPUs stay as they are."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, codes, migrate
from transplt.base.finding import Level
from transplt.flow.vendored import copy_of

CODE = "import torch\n\n\ndef place(x):\n    return x.cuda()\n"
MOVED = "import torch\nimport torch_npu  # noqa: F401\n\n\ndef place(x):\n    return x.npu()\n"
FOLDER = "third_party/transformers"


def version(text: str, folder: str = FOLDER) -> dict[str, str]:
    return {f"{folder}/__init__.py": f'__version__ = "{text}"\n'}


@pytest.mark.parametrize("text", ["4.32.0", "4.46.3", "5.0.0.dev0"])
def test_a_copy_that_handles_npus_stays(text: str) -> None:
    result = check_noop(CODE, path=f"{FOLDER}/modeling.py", files=version(text))
    assert result.tokens.ignored == result.tokens.found > 0


def test_what_is_said_in_it_goes_too() -> None:
    check_noop("import torch\nx = torch.cuda.nvtx\n", path=f"{FOLDER}/a.py", files=version("4.46.0"))


@pytest.mark.parametrize("files", [version("4.20.1"), {f"{FOLDER}/__init__.py": ""}, {}])
def test_an_old_copy_or_one_of_no_version_is_migrated(files: dict[str, str]) -> None:
    check_rewrite(CODE, MOVED, path=f"{FOLDER}/modeling.py", files=files)


@pytest.mark.parametrize(
    "path", ["train.py", "third_party/other/a.py", "third_party/transformers2/a.py", "transformers/a.py"]
)
def test_code_beside_the_copy_is_migrated(path: str) -> None:
    check_rewrite(CODE, MOVED, path=path, files=version("4.46.0"))


@pytest.mark.parametrize("folder", ["transformers", "src/transformers", "models/transformers"])
def test_the_project_itself_is_no_copy(folder: str) -> None:
    check_rewrite(CODE, MOVED, path=f"{folder}/modeling.py", files=version("4.46.0", folder))


def test_the_rules_of_the_user_hold_in_a_copy() -> None:
    rules = '{"rules": {"FuncNameModifyRule": [{"old_name": "place", "new_name": "put"}]}}'
    check_rewrite(
        "from other import place\nplace(1)\n",
        "from other import put\nput(1)\n",
        path=f"{FOLDER}/a.py",
        files=version("4.46.0"),
        user_rules=(("mine.json", rules),),
    )


@pytest.mark.parametrize(
    ("text", "code", "level"), [("4.46.0", "NPU288", Level.INFO), ("4.20.1", "NPU289", Level.MANUAL)]
)
def test_it_is_said_once_at_the_version(text: str, code: str, level: Level) -> None:
    result = migrate(f'import os\n\n__version__ = "{text}"\n', path=f"{FOLDER}/__init__.py")
    assert codes(result, applied=False) == [code]
    (finding,) = result.findings
    assert (finding.level, finding.span.line, finding.api) == (level, 3, "transformers")
    assert text in finding.message


@pytest.mark.parametrize(
    ("path", "data", "found"),
    [
        ("third_party/accelerate/__init__.py", b'__version__ = "0.34.2"\n', True),
        ("a/vendor/b/src/accelerate/__init__.py", b"__version__: str = '0.34.2'\n", True),
        ("external/deepspeed/version.py", b'__version__ = "0.14.0"\n', True),
        ("third_party/accelerate/__init__.py", b"from ._version import __version__\n", False),
        ("third_party/accelerate/setup.py", b'__version__ = "0.34.2"\n', False),
        ("third_party/unknown/__init__.py", b'__version__ = "0.34.2"\n', False),
        ("third_party/apex/__init__.py", b'__version__ = "0.1"\n', False),
        ("accelerate/__init__.py", b'__version__ = "0.34.2"\n', False),
        ("my_third_party/accelerate/__init__.py", b'__version__ = "0.34.2"\n', False),
        ("third_party/accelerate/__init__.py", b"\xff\xfe__version__ = 1\n", False),
    ],
)
def test_what_is_a_copy(path: str, data: bytes, found: bool) -> None:
    assert (copy_of(path, data) is not None) is found
