"""The facts in scripts/facts/, the tables built of them, and the reading of wheels."""

from __future__ import annotations

import gzip
import re
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from transplt.base.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import add_torch  # noqa: E402
import build_all  # noqa: E402
import fact_store  # noqa: E402
import fact_update  # noqa: E402
from wheel_names import Names  # noqa: E402
from wheel_reader import Wheel, module_names  # noqa: E402

FILES = sorted(fact_store.FACTS.glob("*.json"))
#: Versions whose wheels are read again, the newest and the one that the emulator's tests run with.
READ_AGAIN = ("2.13", TORCH_VERSIONS[-1])


# --- the facts -------------------------------------------------------------------------------------------------------


def test_they_are_small_and_say_where_they_come_from() -> None:
    assert sum(path.stat().st_size for path in FILES) < 3_000_000
    assert all(fact_store.read(path.stem)["about"] for path in FILES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_sources_name_packages_and_documents(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"pypi\.org|pythonhosted|https?://", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_written_as_it_is_read(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fact_store.read(path.stem)
    monkeypatch.setattr(fact_store, "FACTS", tmp_path)
    fact_store.write(path.stem, table)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


def test_the_versions_are_those_of_the_settings() -> None:
    assert tuple(fact_store.versions()) == TORCH_VERSIONS
    assert TORCH_VERSIONS[-1] == DEFAULT_TORCH_VERSION


def test_the_tables_are_built_of_the_facts(tmp_path: Path) -> None:
    """Whoever changes a fact builds the tables again: `python scripts/build_all.py`."""
    shutil.copytree(ROOT / "rules", tmp_path / "rules", ignore=shutil.ignore_patterns("diagnostics"))
    build_all.main(tmp_path)
    built = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert [path.name for path in built if content(path) != content(ROOT / path.relative_to(tmp_path))] == []


def content(path: Path) -> bytes:
    """The bytes of a file; of a compressed one those inside, which do not depend on the zlib of the machine."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


AMONG = ("2.1", "2.3", "2.9", "2.10", "2.11")


@pytest.mark.parametrize(
    ("held", "text"),
    [
        ((), ""),
        (AMONG, ">=2.1"),
        (("2.11",), ">=2.11"),
        (("2.3",), "==2.3"),
        (("2.1", "2.3"), ">=2.1,<=2.3"),
        (("2.3", "2.10", "2.11"), ">=2.3,!=2.9"),
        (("2.1", "2.9"), ">=2.1,<=2.9,!=2.3"),
    ],
)
def test_ranges(held: tuple[str, ...], text: str) -> None:
    assert fact_store.ranged(held, AMONG) == text
    assert fact_store.members(text, AMONG) == list(held)


def test_a_version_without_news_changes_no_range() -> None:
    for text in (">=2.1", ">=2.3,!=2.9", "==2.3", ">=2.1,<=2.9"):
        held = fact_store.members(text, AMONG)
        more = [*held, "2.12"] if "2.11" in held else held
        assert fact_store.ranged(more, (*AMONG, "2.12")) == text


def test_a_text_that_is_no_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'2\.1 to 2\.3' is no range of versions"):
        fact_store.members("2.1 to 2.3", AMONG)


# --- wheels ----------------------------------------------------------------------------------------------------------


def wheel(folder: Path, package: str, members: dict[str, str], version: str = "2.99.0") -> Wheel:
    """A wheel of a few modules, given by their paths below the package."""
    path = folder / f"{package}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        about = f"Name: {package}\nRequires-Dist: torch=={version}.*\n"
        archive.writestr(f"{package}-{version}.dist-info/METADATA", about)
        for name, text in members.items():
            archive.writestr(f"{package}/{name}", text)
    return Wheel(path)


NPU = {
    "__init__.py": "import torch\nfrom . import npu\nraise SystemExit('never run')\n",
    "npu/__init__.py": "from .streams import *\nfrom .streams import _hidden as shown\nfrom torch import device\n"
    "import torch_npu._C\n__all__ = ['Stream', 'made_at_run_time']\ntry:\n    import x\nexcept E:\n    late = 1\n",
    "npu/streams.py": "class Base:\n    def query(self): ...\n    event: int = 0\n\nclass Stream(Base):\n"
    "    def __init__(self, device=None, *, priority=0, **kwargs): self.handle = 1\n\n"
    "class Foreign(torch.Stream): ...\n\ndef _hidden(a, b=1): ...\n\nround = again\nfrom .again import round\n",
    "npu/again.py": "from .streams import round\n",
}


@pytest.mark.parametrize(
    ("name", "has"),
    [
        ("torch.npu", True),
        ("torch.npu.streams", True),
        ("torch.npu.Stream", True),
        ("torch_npu.npu.Stream", True),
        ("torch.npu.Stream.query", True),
        ("torch.npu.Stream.handle", True),
        ("torch.npu.Stream.event", True),
        ("torch.npu.shown", True),
        ("torch.npu.late", True),
        ("torch.npu.absent", False),
        ("torch.npu.Stream.absent", False),
        ("torch.npu.streams.round", False),  # it comes from itself
        ("torch.npu.device", None),  # of another package
        ("torch.npu.Foreign.absent", None),  # a base of another package
        ("torch.npu.made_at_run_time", None),
        ("torch_npu._C.Anything", None),
        ("torch.Tensor.npu", None),
    ],
)
def test_what_a_wheel_says_of_a_name(name: str, has: bool | None, tmp_path: Path) -> None:
    assert Names(wheel(tmp_path, "torch_npu", NPU)).has(name) is has


def test_parameters(tmp_path: Path) -> None:
    names = Names(wheel(tmp_path, "torch_npu", NPU))
    assert names.parameters("torch.npu.Stream") == "device, priority, **kwargs"
    assert names.parameters("torch.npu.shown") == "a, b"
    assert names.parameters("torch.npu.late") is None


def test_the_names_of_a_module(tmp_path: Path) -> None:
    tree = wheel(tmp_path, "torch_npu", NPU).tree("torch_npu.npu.streams")
    found = module_names(tree)
    assert found.public is None
    assert found.bound == ("Base", "Foreign", "Stream", "round")
    assert found.signatures == {"Stream": "self, device=None, *, priority=0, **kwargs"}


def test_operators_and_variables(tmp_path: Path) -> None:
    strings = "\0npu_one(Tensor self) -> Tensor\0npu_one.out(Tensor self) -> (Tensor, Tensor)\0"
    strings += "bad(x) -> y\x01\0HCCL_X\0"
    yaml = "supported:\n- abs\n- func: add.Tensor\n  op_api: true\n- op_api: true\n  func: mul\n"
    yaml += "custom:\n- func: npu_one(Tensor self) -> Tensor\n"
    found = wheel(
        tmp_path,
        "torch_npu",
        {
            "lib/libtorch_npu.so": strings,
            "csrc/aten/npu_native_functions_by_codegen.yaml": yaml,
            "a.py": "os.environ.get('NPU_A'), os.getenv(\"NPU_B\"), os.environ['NPU_C'], get('NPU_D')\n",
        },
    )
    assert found.schemas() == {
        "npu_one": ["npu_one(Tensor self) -> Tensor", "npu_one.out(Tensor self) -> (Tensor, Tensor)"]
    }
    assert found.operators() == {"supported": {"abs", "add.Tensor", "mul"}, "custom": {"npu_one"}}
    assert found.variables() == {"NPU_A", "NPU_B", "NPU_C"}
    assert found.names_variable("HCCL_X")
    assert not found.names_variable("HCCL_Y")
    assert found.requires("torch") == "==2.99.0.*"


@pytest.mark.parametrize(
    ("text", "seen", "now"),
    [
        (">=2.1", True, ">=2.1"),
        (">=2.1", None, ">=2.1"),
        (">=2.1", False, ">=2.1,<=2.11"),
        ("==2.3", True, ">=2.3,!=2.9,!=2.10,!=2.11"),
        ("==2.3", None, "==2.3"),
        ("", True, ">=2.12"),
        ("", False, ""),
    ],
)
def test_a_new_version_in_a_range(text: str, seen: bool | None, now: str, tmp_path: Path) -> None:
    nothing = wheel(tmp_path, "torch", {})
    assert fact_update.Step("2.12", "2.11", nothing, nothing).spread(text, AMONG, seen) == now


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "fails", "says"),
    [
        ("2.99", add_torch.NoWheelError(), "there is no torch_npu wheel for torch 2.99: nothing was changed"),
        ("2.99", OSError("no route"), "the wheels for torch 2.99 are not there: no route; nothing was changed"),
        ("two", None, "'two' is not a version such as 2.14"),
        ("2.14.0", None, "'2.14.0' is not a version such as 2.14"),
    ],
)
def test_what_cannot_be_added_is_one_sentence(
    version: str, fails: Exception | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(*_: object) -> Wheel:
        assert fails is not None
        raise fails

    monkeypatch.setattr(add_torch, "fetch", fetch)
    before = {path: path.read_bytes() for path in FILES}
    assert add_torch.main(version) == says
    assert {path: path.read_bytes() for path in FILES} == before


def test_the_settings_are_written_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "settings.py"
    shutil.copy(add_torch.SETTINGS, path)
    add_torch.write_settings(path)
    assert path.read_bytes() == add_torch.SETTINGS.read_bytes()


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.parametrize("version", READ_AGAIN)
def test_reading_the_wheels_again_gives_the_same_bytes(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`add_torch.py` of a version that is there; its lists of names are taken out before."""
    before = {path.name: path.read_bytes() for path in FILES}
    step = add_torch.step_to(version)
    shutil.copytree(fact_store.FACTS, tmp_path / "facts")
    monkeypatch.setattr(fact_store, "FACTS", tmp_path / "facts")
    for name in ("wheel_lists", "torch_names"):
        forget(version, name)
    fact_update.update(step, "")
    assert [name for name, data in before.items() if (tmp_path / "facts" / name).read_bytes() != data] == []


def forget(version: str, name: str) -> None:
    """Take a version out of a file of lists."""
    table = fact_store.read(name)
    rest = [each for each in table["read"] if each != version]
    for key, groups in table["lists"].items():
        held = {each: fact_store.in_version(groups, each, table["read"]) for each in rest}
        by_name: dict[str, set[str]] = {}
        for each, words in held.items():
            for word in words:
                by_name.setdefault(word, set()).add(each)
        table["lists"][key] = fact_store.grouped(by_name, rest)
    table["read"] = rest
    fact_store.write(name, table)
