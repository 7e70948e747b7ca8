"""Requirements that get another name (NPU847): triton-ascend takes the place of triton."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import TARGET
from tests.harness import check_noop, check_rewrite
from transplt.base.settings import Settings
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.flow.facts import ProjectFacts


def migrated(path: str, text: str, **settings: str) -> tuple[str, set[str]]:
    """The text, and the codes of what is said of triton."""
    chosen = Settings(**settings)  # type: ignore[arg-type]
    result, _ = migrate_other(text.encode(), path, kind_of(path, text.encode()), chosen, TARGET, ProjectFacts())
    return result.data.decode(), {each.code for each in result.findings if "triton" in each.message}


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("requirements.txt", "numpy\ntriton\n", "numpy\ntriton-ascend\n"),
        ("requirements.txt", "triton>=2.1,<4  # kernels\n", "triton-ascend  # kernels\n"),
        ("requirements.txt", "Triton == 3.1 ; sys_platform == 'linux'\n", "triton-ascend ; sys_platform == 'linux'\n"),
        (
            "pyproject.toml",
            '[project]\ndependencies = ["numpy", "triton>=3"]\n',
            '[project]\ndependencies = ["numpy", "triton-ascend"]\n',
        ),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntriton = "^3.0"\n',
            '[tool.poetry.dependencies]\ntriton-ascend = "*"\n',
        ),
    ],
)
def test_triton_is_asked_for_by_the_name_it_has_on_npus(path: str, before: str, after: str) -> None:
    assert migrated(path, before) == (after, {"NPU847"})


@pytest.mark.parametrize(("versions", "said"), [("", False), (">=2.1", False), ("<4", False), (">=3.4", True)])
def test_a_newer_interface_is_told_of(versions: str, said: bool) -> None:
    text = f"triton{versions}\n"
    result, _ = migrate_other(
        text.encode(), "requirements.txt", kind_of("requirements.txt", text.encode()), Settings(), TARGET
    )
    (finding,) = [each for each in result.findings if each.code == "NPU847"]
    assert ("triton-ascend has the interface of 3.2.0" in finding.message) is said


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("requirements.txt", "triton-windows\n"),
        ("requirements.txt", "tritonclient[http]\n"),
        ("requirements.txt", "# triton\nnumpy\n"),
        ("requirements.txt", "triton-ascend==3.2.0\n"),
    ],
)
def test_other_packages_stay(path: str, text: str) -> None:
    assert migrated(path, text)[0] == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("requirements.txt", "triton\ntriton-ascend\n"),
        ("requirements.txt", "triton==3.1.0 --hash=sha256:00\n"),
        ("requirements.txt", "git+https://github.com/triton-lang/triton.git\n"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntriton = {version = "^3.0", optional = true}\n'),
        ("install.sh", "pip install triton\n"),
    ],
)
def test_a_person_changes_these(path: str, text: str) -> None:
    after, codes = migrated(path, text)
    assert after == text
    assert "NPU847" not in codes


def test_in_portable_style_it_stays() -> None:
    assert migrated("requirements.txt", "triton\n", style="portable")[0] == "triton\n"


SETUP = "from setuptools import setup\n\nsetup(name='x', install_requires=[{}])\n"


def test_in_a_setup_py() -> None:
    before, after = SETUP.format("'numpy', 'triton>=3'"), SETUP.format("'numpy', 'triton-ascend'")
    check_rewrite(before, after, path="setup.py", codes_applied=["NPU847"])
    condition = SETUP.format("\"triton; platform_system == 'Linux'\"")
    check_rewrite(condition, condition.replace("triton;", "triton-ascend;"), path="setup.py")


@pytest.mark.parametrize("asked", ["'triton', 'triton-ascend'", "'triton[tests]'", "'triton ' '>=3'"])
def test_in_a_setup_py_a_person_changes_these(asked: str) -> None:
    check_noop(SETUP.format(asked), path="setup.py", open_codes=["NPU290"])


def test_in_a_setup_py_in_portable_style() -> None:
    check_noop(SETUP.format("'triton'"), path="setup.py", style="portable", open_codes=["NPU290"])
