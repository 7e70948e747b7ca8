"""Programs that insist on a version."""

from __future__ import annotations

import pytest

from tests.harness import check_noop


@pytest.mark.parametrize("version", ["0.3.2", "0.4.4", "0.4.12", "0.5"])
def test_an_old_timm(version: str) -> None:
    source = f'import timm\nuse_cuda = True\nassert timm.__version__ == "{version}"  # version check\n'
    check_noop(source, open_codes=["NPU515"])


def test_two_reasons() -> None:
    for version, why in (("0.3.2", "cannot be imported with torch 2"), ("0.4.9", "creates the targets of its Mixup")):
        result = check_noop(
            f'import timm\nuse_cuda = True\nassert timm.__version__ == "{version}"\n', open_codes=["NPU515"]
        )
        assert why in result.findings[0].message


@pytest.mark.parametrize(
    "line",
    [
        'assert timm.__version__ == "0.5.4"',
        'assert timm.__version__ == "1.0.3"',
        'assert timm.__version__ >= "0.3.2"',
        'assert "0.3.2" == timm.__version__ == x',
        "assert timm.__version__ == wanted",
        'assert timm.__version__ == "main"',
        'assert mytimm.__version__ == "0.3.2"',
        'assert other.timm.__version__ == "0.3.2"',
        'old = timm.__version__ == "0.3.2"',
    ],
)
def test_no_such_demand(line: str) -> None:
    check_noop(f"import timm\nuse_cuda = True\n{line}\n")


@pytest.mark.parametrize("line", ["from timm.data import Mixup", "from timm.data.mixup import Mixup as Mix"])
def test_a_remark_at_the_mixup(line: str) -> None:
    check_noop(f"{line}\nuse_cuda = True\n", open_codes=["NPU515"])
