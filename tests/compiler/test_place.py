"""Where the compiler is looked for, how it is fetched, and what is said where there is none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_cli import call
from transplt.project.environment import ascend_compiler
from transplt.proof.compiler import place
from transplt.proof.launch.interpreter import Versions
from transplt.proof.launch.options import UsageError
from transplt.proof.launch.pip import Failed

Transplt = Callable[..., tuple[int, str]]
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def k(o, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(o + at, at, mask=at < n)


def run(o, n):
    k[(1,)](o, n, BLOCK=64)
"""


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(place.VARIABLE, raising=False)
    (tmp_path / "ops.py").write_text(KERNEL, encoding="utf-8")
    return tmp_path


@pytest.fixture
def transplt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """A command: its exit code, and all that it prints."""

    def run(*words: object) -> tuple[int, str]:
        code, out, err = call(monkeypatch, capsys, *words)
        return code, out + err

    return run


@pytest.mark.parametrize("command", [("check", "--compile"), ("run", "--compile")])
def test_without_it_one_sentence_says_how_to_get_it(
    nothing_installed: Path, command: tuple[str, ...], transplt: Transplt
) -> None:
    if command[0] == "run":
        pytest.importorskip("torch")
    code, said = transplt(*command, nothing_installed / "ops.py")
    assert code == 2
    assert said.splitlines()[-1] == (
        "Error: --compile needs the compiler for Ascend cards, which is not installed: transplt compiler install."
    )


ASKS = "compiles them for the card, and reports what does not fit or is refused"
GETS = "; transplt compiler install downloads it (220 MB)"


@pytest.mark.parametrize(
    ("there", "kernel", "words", "last"),
    [
        (False, KERNEL, ("check",), f"Triton kernels: --compile {ASKS}{GETS}"),
        (True, KERNEL, ("check",), f"Triton kernels: --compile {ASKS}"),
        (False, KERNEL, ("check", "-q"), ""),
        (False, "x = 1\n", ("check",), "nothing left to do in 1 file"),
        (False, KERNEL, ("-o", "out", "-i"), f"  Triton kernels: transplt check --compile {ASKS}{GETS}"),
    ],
)
def test_a_command_that_did_not_compile_says_once_how_to(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch, transplt: Transplt, there: bool, kernel: str,
    words: tuple[str, ...], last: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(nothing_installed)
    Path("ops.py").write_text(kernel.replace("BLOCK=64", "BLOCK=64, num_ctas=2"), encoding="utf-8")
    if there:
        monkeypatch.setenv(place.VARIABLE, sys.executable)
    _, said = transplt(*words, "ops.py", *(("--no-cache",) if words[0] == "check" else ()))
    assert said.count("Triton kernels: ") == last.count("Triton kernels: ")
    assert said.splitlines()[-1:] == ([last] if last else said.splitlines()[-1:])


def test_what_is_shown_before_it_is_installed(transplt: Transplt) -> None:
    code, said = transplt("compiler")
    assert code == 1
    assert said.startswith("not installed: transplt compiler install fetches triton-ascend==3.2.0 (the front end")
    assert "Apache-2.0" in said and "220 MB" in said and "700 MB" in said


def test_a_python_that_is_named_and_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(place.VARIABLE, sys.executable)
    with pytest.raises(UsageError, match="named by TRANSPLT_ASCEND_COMPILER, has no triton-ascend"):
        place.needed()


def test_check_refuses_it_beside_edits(nothing_installed: Path, transplt: Transplt) -> None:
    code, said = transplt("check", "--compile", "--diff", nothing_installed / "ops.py")
    assert (code, said) == (2, "Error: --compile cannot be combined with `-`, --fix or --diff\n")


def test_a_card_that_it_is_not_for(nothing_installed: Path, transplt: Transplt) -> None:
    code, said = transplt("check", "--compile", "--card", "310P", nothing_installed / "ops.py")
    assert code == 2
    assert said.splitlines()[-1].startswith("Error: --compile: 310P is no card that the compiler is for: 910B, A3")


@pytest.mark.parametrize(
    ("pythons", "uv", "base"),
    [
        ({"ours": "cpython-311-x86_64-linux-gnu"}, False, "ours"),
        ({"ours": "cpython-312-x86_64-linux-gnu", "python3.10": "cpython-310-x86_64-linux-gnu"}, False, "python3.10"),
        ({"ours": "cpython-312-aarch64-linux-gnu", "python3.11": "cpython-311-aarch64-linux-gnu"}, True, "python3.11"),
        ({"ours": "cpython-313-x86_64-linux-gnu"}, True, "3.11"),
        ({"ours": "cpython-313-x86_64-linux-gnu"}, False, "Python 3.10 or 3.11"),
        ({"ours": "cpython-311-x86_64-linux-musl"}, False, "Python 3.10 or 3.11"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the compiler is only for Linux")
def test_the_python_that_it_is_made_with(
    pythons: dict[str, str], uv: bool, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "ours")
    monkeypatch.setattr(ascend_compiler.shutil, "which", lambda name: name if name in {*pythons, "uv" * uv} else None)
    found = {name: Versions("", "", "", abi=abi) for name, abi in pythons.items()}
    monkeypatch.setattr(ascend_compiler.interpreter, "whole_of", found.__getitem__)
    if base.startswith("Python"):
        with pytest.raises(UsageError, match=f"only has wheels for {base}, and none is on the path"):
            ascend_compiler._base()
    else:
        assert ascend_compiler._base() == base


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (Failed("no route to host", offline=True), "the index of packages cannot be reached: no route to host."),
        (Failed("No matching version found"), "the compiler cannot be downloaded: No matching version found."),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the compiler is only for Linux")
def test_what_cannot_be_fetched_leaves_nothing(
    failed: Failed, said: str, nothing_installed: Path, monkeypatch: pytest.MonkeyPatch, transplt: Transplt
) -> None:
    def install(*_: object) -> None:
        raise failed

    monkeypatch.setattr(ascend_compiler, "_base", lambda: "3.11")
    monkeypatch.setattr(ascend_compiler.Installer, "make", lambda self, base: self.folder.mkdir())
    monkeypatch.setattr(ascend_compiler.Installer, "install", install)
    code, output = transplt("compiler", "install")
    assert (code, output.splitlines()[-1]) == (2, f"Error: {said}")
    assert [*(nothing_installed / "cache" / "transplt").iterdir()] == []


def test_the_cache_knows_it(nothing_installed: Path, transplt: Transplt) -> None:
    folder = nothing_installed / "cache" / "transplt" / "ascend_compiler"
    folder.mkdir(parents=True)
    (folder / "file").write_bytes(b"0" * 1000)
    assert str(folder) in transplt("cache", "size")[1]
    assert f"removed {folder}" in transplt("cache", "clear", "--all")[1]
    assert not folder.exists()
