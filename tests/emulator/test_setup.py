"""`transplt run --setup`: what a project asks for, and the environment that is made of it; the index is a folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.emulator.test_driver_build import compiler
from tests.emulator.test_torch_npu_wheel import put_wheel
from tests.privileges import as_any_owner
from transplt.project.environment.setup import TESTED, _fits, _torch_for
from transplt.project.environment.stand_in import TEXT
from transplt.project.environment.wanted import needs_of, scripts_of
from transplt.proof.launch.environments import place_of

ROOT = Path(__file__).resolve().parents[2]
Command = Callable[..., subprocess.CompletedProcess[str]]


def write(folder: Path, **files: str) -> Path:
    """A project; `__` in a name is a dot, as in requirements__txt."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def asked(folder: Path) -> tuple[dict[str, str], str, dict[str, str]]:
    """What is installed (what pip is told, by the file), the clauses of torch, what is left out."""
    found = needs_of(folder, scripts_of(folder))
    return {each.words: each.source for each in found.wanted}, found.torch, found.left_out


TRAIN = "import torch, einops\nfrom sklearn import svm\nif __name__ == '__main__':\n    pass\n"


def test_a_list_for_pip(tmp_path: Path) -> None:
    more = "einops==0.7\ntorch>=1.7\ntorchvision\nflash-attn==2.5\nnvidia-cublas-cu12\ntorch-npu==2.1\napex\nxformers\n"
    more += 'tomli>=1; python_version < "3.0"\nrich[jupyter]>=10 # note\n-r more/base.txt\n-e .\nopencv-python>=4.5\n'
    project = write(tmp_path, requirements__txt=more, train__py=TRAIN, setup__py="import setuptools\n")
    write(tmp_path / "more", base__txt="faiss-gpu\ngit+https://example.org/a/thing.git\n")
    wanted, torch, left_out = asked(project)
    assert wanted == {
        "einops==0.7": "requirements.txt", "rich[jupyter]>=10": "requirements.txt",
        "opencv-python-headless>=4.5": "requirements.txt", "faiss-cpu": "more/base.txt",
        "git+https://example.org/a/thing.git": "more/base.txt", "scikit-learn": "imports",
    }  # fmt: skip
    assert torch == ">=1.7"
    assert left_out == {
        "flash-attn": "built for CUDA", "nvidia-cublas-cu12": "a part of CUDA", "torch-npu": "it is for the card",
        "apex": "built for CUDA", "xformers": "built for CUDA",
    }  # fmt: skip
    assert needs_of(project, scripts_of(project)).of_torch == ["torchvision"]


POETRY = """\
[tool.poetry.dependencies]
python = "^3.9"
torch = "^2.1"
einops = "^0.7"
[tool.poetry.group.dev.dependencies]
pytest = "*"
"""
PROJECT = '[project]\ndependencies = ["einops>=0.6", "torch"]\noptional-dependencies.x = ["wandb"]\n'
CONDA = "name: n\ndependencies:\n  - python=3.8\n  - pytorch=1.8\n  - cudatoolkit=11\n  - einops=0.6=py_0\n  - mkl\n"
CONDA += "  - pip:\n    - timm==0.4.9\n"
EXPORT = "# platform: linux-64\n_libgcc_mutex=0.1=main\neinops=0.3.0=pypi_0\nxz=5.2=h1\npytorch=1.4.0=py37_cuda10_0\n"
IMPORTED = {"scikit-learn": "imports"}


@pytest.mark.parametrize(
    ("name", "text", "wanted", "torch"),
    [
        ("pyproject.toml", POETRY, {"einops>=0.7,<0.8": "pyproject.toml"}, ">=2.1,<3"),
        ("pyproject.toml", PROJECT, {"einops>=0.6": "pyproject.toml"}, ""),
        ("environment.yml", CONDA, {"einops==0.6.*": "environment.yml", "timm==0.4.9": "environment.yml"}, "==1.8.*"),
        ("requirements.txt", EXPORT, {"einops==0.3.0.*": "requirements.txt"}, "==1.4.0.*"),
        ("setup.py", "setup(name='t', install_requires=['einops>=0.5', 'wheels'])", {"einops>=0.5": "setup.py"}, ""),
        ("setup.cfg", "[options]\ninstall_requires =\n  einops>0.1\n", {"einops>0.1": "setup.cfg"}, ""),
        ("Pipfile", '[packages]\neinops = "==0.6"\n[dev-packages]\npytest = "*"\n', {"einops==0.6": "Pipfile"}, ""),
        ("requirements-dev.txt", "pytest\n", {"einops": "imports"}, ""),
        ("README.md", "pip install wandb", {"einops": "imports"}, ""),
    ],
)  # fmt: skip
def test_each_file_has_its_reader(tmp_path: Path, name: str, text: str, wanted: dict[str, str], torch: str) -> None:
    project = write(tmp_path, train__py=TRAIN)
    (project / name).write_text(text)
    found, clauses, _ = asked(project)
    assert ({key.replace(" ", ""): value for key, value in found.items()}, clauses) == ({**wanted, **IMPORTED}, torch)


def test_a_module_or_folder_of_the_project_is_no_package(tmp_path: Path) -> None:
    project = write(tmp_path, train__py="import res_stack, scripts, utils, einops, wandb\n")
    write(tmp_path / "model" / "blocks", res_stack__py="", scripts__py="")
    write(tmp_path / "lib" / "utils", tools__py="")
    write(tmp_path / "logs" / "wandb", notes__txt="")  # what a package of that name writes
    assert asked(project)[0] == {"einops": "imports", "wandb": "imports"}


def test_the_scripts_where_none_is_named(tmp_path: Path) -> None:
    project = write(tmp_path, train__py=TRAIN, model__py="import torch\n", setup__py="if __name__ == '__main__': 1\n")
    assert [each.name for each in scripts_of(project)] == ["train.py"]
    write(tmp_path / "b" / "implementations", gan__py="import torch\n")
    write(tmp_path / "b" / "tests", test_gan__py="import pytest\n")
    assert [each.name for each in scripts_of(tmp_path / "b")] == ["gan.py"]


@pytest.mark.parametrize(
    ("specifier", "torch"),
    [
        ("", TESTED), (">=1.7", TESTED), ("==1.13.1", TESTED), ("==2.10.0", "2.10.0"), ("==2.10.0+cu128", "2.10.0"),
        ("<2.12", "2.11.0"), ("~=2.12.0", "2.12.0"), (">=3", TESTED), ("==2.15", TESTED), ("nonsense", TESTED),
    ],
)  # fmt: skip
def test_the_torch_that_is_installed(specifier: str, torch: str) -> None:
    assert _torch_for(specifier) == torch
    assert _fits("2.13.0", "==1.4.*") is False


def test_a_stand_in_can_be_imported_and_not_called(tmp_path: Path) -> None:
    (tmp_path / "flash_attn").mkdir()
    (tmp_path / "flash_attn" / "__init__.py").write_text(TEXT.format(name="flash_attn"))
    script = (
        "import flash_attn, flash_attn.a.b as b\nfrom flash_attn import f, G\n"
        "from flash_attn.layers.rotary import H\nclass Mine(G): pass\nassert not hasattr(flash_attn, '__version__')\n"
        "for each in (f, H, Mine, b.c):\n"
        "    try:\n        each(1)\n    except RuntimeError as error:\n        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    end = "is called, and flash_attn is a stand-in that can only be imported"
    names = ("flash_attn.f", "flash_attn.layers.rotary.H", "__main__.Mine", "flash_attn.a.b.c")
    assert done.stdout.splitlines() == [f"{name} {end}" for name in names]


def put_package(index: Path, name: str, version: str = "1.0", needs: tuple[str, ...] = (), module: str = "") -> None:
    """A wheel with one empty module."""
    stem = f"{name.replace('-', '_')}-{version}"
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    head += "".join(f"Requires-Dist: {each}\n" for each in needs)
    about = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(index / f"{stem}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{module or name.replace('-', '_')}/__init__.py", f"__version__ = '{version}'\n")
        archive.writestr(f"{stem}.dist-info/METADATA", head)
        archive.writestr(f"{stem}.dist-info/WHEEL", about)
        archive.writestr(f"{stem}.dist-info/RECORD", "")


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="the builds of torch for CPUs are called otherwise")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """command(*arguments): `transplt run --setup` in the project `net`, with a cache, an index and a home."""
    index = tmp_path / "index"
    put_wheel(index)
    compiler(tmp_path, monkeypatch, os.uname().machine)
    put_package(index, "torch", f"{TESTED}+cpu")
    for name, version, needs in (
        ("numpy", "2.1", ()), ("einops", "0.8", ()), ("old", "2.0", ()), ("PyYAML", "6.0", ()),
        ("wants-vision", "1.0", ("torchvision", "einops")),
    ):  # fmt: skip
        put_package(index, name, version, needs)
    write(tmp_path / "net", train__py="import einops, old\nprint(einops.__version__)\n").joinpath(".git").mkdir()
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    settings = {
        "XDG_CACHE_HOME": str(tmp_path / "cache"), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index),
        "PIP_CONFIG_FILE": os.devnull, "HOME": str(tmp_path),
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, "-m", "transplt", "run", "--setup", *map(str, arguments)], cwd=tmp_path / "net",
            env=environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    return run


def versions(python: str) -> dict[str, str]:
    script = "from importlib.metadata import distributions as d; print({each.name: each.version for each in d()})"
    told = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    found: dict[str, str] = eval(told.stdout)
    return {name: version for name, version in found.items() if name not in ("pip", "setuptools")}


@needs_linux
@pytest.mark.slow  # eight calls of pip; that an environment is made and runs a script is shown with `uv` below
def test_it_is_made_once_goes_on_and_is_found(command: Command, tmp_path: Path) -> None:
    project, place = tmp_path / "net", place_of(tmp_path / "net")
    write(project, requirements__txt="torch==1.8\nold==1.0\nwants-vision\nflash-attn\nno-such-package\ntorchvision\n")
    done = command()
    assert done.returncode == 0, done.stderr
    record = json.loads((place / "setup.json").read_text())
    assert record["project"] == str(project) and record["torch_npu"] == "2.13.0"
    assert versions(record["python"]) == {
        "torch": f"{TESTED}+cpu", "numpy": "2.1", "einops": "0.8", "old": "2.0", "wants-vision": "1.0",
    }  # fmt: skip
    lines = [line.removeprefix("setup: ") for line in done.stderr.splitlines()]
    fetched = lines.index(f"downloads torch {TESTED} for CPUs, about 200 MB (the project requires torch==1.8)")
    assert lines[fetched + 1 : fetched + 4] == [
        "fetches, from requirements.txt: old==1.0, wants-vision, no-such-package",
        "fetches, as the scripts import them: einops",
        "downloads, if there is a build for CPUs: torchvision",
    ]
    assert lines.index("leaves out flash-attn: built for CUDA") < lines.index(f"installing torch {TESTED}")
    told = [line for line in lines if line.startswith("not installed: ")]
    assert [line.split(": ")[1] for line in told] == ["flash-attn", "torchvision", "old==1.0", "no-such-package"]
    assert "another release was installed instead" in told[2] and "--stubs torchvision" in told[1]

    again = command("train.py")  # and runs it there
    assert "setup: unchanged: " in again.stderr and again.stdout == "0.8\n"
    assert "installing" not in again.stderr

    # Requirements have changed, and the call is stopped while it installs a package.
    (project / "requirements.txt").write_text("old\nwants-vision\n")
    (place / "setup.json").unlink()
    (info,) = Path(record["environment"]).glob("lib/python*/site-packages/old-2.0.dist-info")
    (info / "RECORD").unlink()
    shutil.rmtree(info.parent / "old")
    on = command(".")
    assert on.returncode == 0 and "making" not in on.stderr and "installing torch" not in on.stderr, on.stderr
    assert (info.parent / "old" / "__init__.py").is_file() and (info / "RECORD").is_file()

    stubbed = command("--stub", "flash_attn")
    assert stubbed.returncode == 0 and "stand-ins that can only be imported: flash_attn" in stubbed.stderr
    (project / "train.py").write_text("import flash_attn\nprint(flash_attn.f.__name__)\n")
    assert command("--stub", "flash_attn", "train.py").stdout == "f\n"

    # A folder that is somebody else's is left alone.
    other = command("--python", tmp_path / "index")
    assert other.returncode == 2 and "exists, but was not created by --setup" in other.stderr


#: What uv is told, carried out by venv and pip.
UV = """#!/bin/sh
echo "$*" >> {log}
test "$1" = venv && exec "$3" -m venv "$4"
test "$1 $2 $3" = "pip install --python" || exit 9
python=$4; shift 4
exec "$python" -m pip install "$@"
"""


@needs_linux
def test_uv_does_it_where_it_is(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(UV.format(log=tmp_path / "log"))
    (tmp_path / "bin" / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    done = command("--python", ".venv", "train.py")
    assert done.returncode in (0, 1) and done.stdout == "0.8\n", done.stderr
    told = (tmp_path / "log").read_text().splitlines()
    assert told[0] == f"venv --python {sys.executable} {tmp_path / 'net' / '.venv'}"
    assert told[1] == f"pip install --python {tmp_path / 'net' / '.venv' / 'bin' / 'python'} torch=={TESTED}+cpu numpy"
    assert "-c" in told[2].split() and told[2].split()[-2:] == ["einops", "old"]


@needs_linux
def test_without_a_network_nothing_is_left(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    done = command("--python", "made")
    assert done.returncode == 2, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("Error")]
    assert line.startswith(f"Error: torch {TESTED} for CPUs cannot be downloaded: pip cannot reach its index (")
    assert not (tmp_path / "net" / "made").exists() and not place_of(tmp_path / "net").exists()


@needs_linux
def test_what_cannot_be_begun_is_one_sentence(command: Command, tmp_path: Path) -> None:
    for arguments, said in [
        (("no.py",), "no such script or folder: no.py"),
        (("--stub", "not-a-module"), "--stub not-a-module: give the name of a module, as in its import"),
    ]:
        done = command(*arguments)
        assert done.returncode == 2 and said in done.stderr and len(done.stderr.splitlines()) == 1
    place = place_of(tmp_path / "net")
    place.parent.mkdir(parents=True)
    script = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print(flush=True); input()"
    held = subprocess.Popen(
        [sys.executable, "-c", script, f"{place}.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert held.stdout is not None and held.stdout.readline() == "\n"
    done = command()
    held.communicate("\n")
    assert done.returncode == 2 and "another `transplt run --setup` is running for this project" in done.stderr


@needs_linux
def test_a_cache_that_cannot_be_written(command: Command, tmp_path: Path) -> None:
    place_of(tmp_path / "net").parent.mkdir(parents=True, mode=0o700)
    place_of(tmp_path / "net").parent.chmod(0o500)
    from transplt.project.environment.setup import set_up
    from transplt.proof.launch.options import UsageError

    with as_any_owner(), pytest.raises(UsageError, match=r"^the environment cannot be written to .*: Permission den"):
        set_up(tmp_path / "net", [], "", [], print)
