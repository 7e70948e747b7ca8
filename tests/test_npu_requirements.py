"""The portable style: what a list of packages is on NPUs lies beside it, in a file of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from transplt.faces.cli.main import main
from transplt.rules.companions import asked_by_cann
from transplt.rules.releases import release_of

_CONDA = "name: net\nchannels:\n  - pytorch\n  - nvidia\ndependencies:\n  - pytorch\n  - pytorch-cuda=11.8\n  - numpy\n"
#: What CANN imports, of a list that asks for numpy.
_NEEDS = "attrs cython decorator sympy cffi pyyaml pathlib2 psutil protobuf scipy requests absl-py cloudpickle".split()
_NEEDS += ["ml-dtypes", "tornado"]
_LINES = f"# CANN's own Python packages import these, too: {' '.join(_NEEDS)}\n"
_ITEM = f"    {_LINES}"
_TRAIN = 'import torch\ntorch.zeros(1, device="cuda")\n'


def migrated(tmp_path: Path, style: str = "portable", version: str = "2.12", **files: str) -> Path:
    source = tmp_path / "net"
    source.mkdir(exist_ok=True)
    for name, text in {"train.py": _TRAIN, **files}.items():
        (source / name).write_text(text)
    return _migrated(source, tmp_path / style, style, version)


def _migrated(source: Path, out: Path, style: str, version: str = "2.12") -> Path:
    command = ["-i", str(source), "-o", str(out), "--style", style, "--torch-version", version]
    assert CliRunner().invoke(main, command).exit_code in (0, 1)
    return out / f"{source.name}_msft"


@pytest.mark.parametrize(
    ("name", "text", "twin", "new"),
    [
        # What everybody installs stays what it is, and torch-npu comes on top of it.
        (
            "requirements.txt",
            "numpy\ntorch>=2.1\n",
            "requirements-npu.txt",
            f"-r requirements.txt\ntorch==2.12.0\ntorch-npu==2.12.0\n{_LINES}",
        ),
        # What goes with torch is pinned with it, under its condition; what the list has of CANN's needs stays there.
        (
            "requirements.txt",
            "numpy\ntorch>=2.1 ; python_version > '3.8'\ntorchvision\nPyYAML>=5\n",
            "requirements-npu.txt",
            "-r requirements.txt\ntorch==2.12.0 ; python_version > '3.8'\ntorch-npu==2.12.0 ; python_version > '3.8'\n"
            f"torchvision==0.27.0 ; python_version > '3.8'\n{_LINES.replace(' pyyaml', '')}",
        ),
        # pip has no Python, and stops at what only conda has.
        (
            "requirements.txt",
            "python==3.9.12\ntorch>=2.1\nlibgcc-ng==9.1.0\nmkl-service\nnumpy\n",
            "requirements-npu.txt",
            f"torch==2.12.0\ntorch-npu==2.12.0\nnumpy\n# Left out, not for pip: libgcc-ng mkl-service python\n{_LINES}",
        ),
        # pip stops at what is built with CUDA's compiler.
        (
            "requirements.txt",
            "torch>=2.1\nflash-attn==2.5.0  # fast\nnumpy\nbitsandbytes\n",
            "requirements-npu.txt",
            "torch==2.12.0\ntorch-npu==2.12.0\nnumpy\nbitsandbytes\n"
            f"# Left out, without NPU support: flash-attn\n{_LINES}",
        ),
        # A page of wheels for another torch, and what stands there twice, go too; a page of others stays.
        (
            "requirements.txt",
            "--find-links https://data.pyg.org/whl/torch-1.13.1+cu117.html\n-f https://host/wheels\n"
            "torch==1.13.1+cu117\nnumpy\ntqdm==4.1\ntorch==1.13.1+cu117\nnumpy\ntqdm\n",
            "requirements-npu.txt",
            "-f https://host/wheels\n"
            f"torch==2.12.0\ntorch-npu==2.12.0\nnumpy\ntqdm==4.1\ntqdm\n{_LINES}",
        ),
        # A list for pip of which nothing is left goes, another one stays.
        (
            "environment.yml",
            "dependencies:\n  - numpy\n  - pip:\n    - torch>=2.1\n  - pip:\n    - flash-attn\n  - pip:\n\n    - six\n",
            "environment-npu.yml",
            "dependencies:\n  - numpy\n  - pip:\n    - torch==2.12.0\n    - torch-npu==2.12.0\n"
            f"    # Left out, without NPU support: flash-attn\n{_ITEM}  - pip:\n\n    - six\n",
        ),
        # Packages of CUDA, or another torch, are no part of it.
        (
            "requirements.txt",
            "torch==2.1.0\nnvidia-nccl-cu12\nnumpy\n",
            "requirements-npu.txt",
            f"torch==2.12.0\ntorch-npu==2.12.0\nnumpy\n{_LINES}",
        ),
        (
            "environment.yml",
            _CONDA,
            "environment-npu.yml",
            "name: net-npu\nchannels:\n  - defaults\ndependencies:\n  - numpy\n  - pip\n  - pip:\n    - torch==2.12.0\n"
            f"    - torch-npu==2.12.0\n{_ITEM}",
        ),
    ],
)
def test_a_list_of_packages_gets_one_for_npus(tmp_path: Path, name: str, text: str, twin: str, new: str) -> None:
    out = migrated(tmp_path, **{name: text})
    assert (out / name).read_text() == text
    assert (out / twin).read_text() == new
    assert ",left," not in (out / "tokens.csv").read_text()
    assert f"the packages of {name} for NPUs" in (out / "msFmkTranspltlog.txt").read_text()
    again = _migrated(out, tmp_path / "again", "portable")
    assert [path.name for path in again.iterdir() if "npu" in path.name] == [twin]


_OLDER = ", too old for torch-npu or what goes with it\n"
_FLOORS = "# Exact versions are floors here: some of them are too old for torch-npu or what goes with it\n"


@pytest.mark.parametrize(
    ("name", "text", "new"),
    [
        (
            "requirements.txt",
            "numpy==1.19.4\nscipy == 1.5.2  # old\ntorch==1.8.0\ntqdm==4.1.0\ndataclasses==0.8\n",
            f"# was numpy==1.19.4{_OLDER}numpy>=1.21.2,<2\n# was scipy== 1.5.2{_OLDER}scipy >=1.7.2,<2\n"
            f"torch==2.12.0\ntorch-npu==2.12.0\ntqdm==4.1.0\n# was dataclasses==0.8{_OLDER}dataclasses\n"
            f"{_LINES.replace(' scipy', '')}",
        ),
        # No bound of protobuf beside a newer tensorflow.
        (
            "requirements.txt",
            "numpy\n# for CUDA 11\ntorch==1.8.0\ntensorflow==2.4.0\ntensorboardX==2.1\n",
            "numpy\ntorch==2.12.0\ntorch-npu==2.12.0\n"
            f"# was tensorflow==2.4.0{_OLDER}tensorflow>=2.8.0,<3\n"
            f"# was tensorboardX==2.1{_OLDER}tensorboardX>=2.5.1,<3\n"
            f"{_LINES}",
        ),
        (
            "requirements.txt",
            "numpy==1.19.4\ntorch==1.8.0",  # without the end of the last line
            f"# was numpy==1.19.4{_OLDER}numpy>=1.21.2,<2\ntorch==2.12.0\ntorch-npu==2.12.0\n{_LINES}",
        ),
        (
            "environment.yml",
            "name: net\ndependencies:\n  - python=3.8.5\n  - pip=20.3\n  - pytorch=1.7.0\n  - numpy=1.19.2\n  - pip:\n"
            "    - transformers==4.3.1\n",
            f"name: net-npu\ndependencies:\n  # was python=3.8.5{_OLDER}  - python=3.10\n"
            "  - pip\n"
            f"  # was numpy=1.19.2{_OLDER}  - numpy>=1.21.2,<2\n"
            "  - pip:\n    - torch==2.12.0\n    - torch-npu==2.12.0\n"
            f"{_ITEM}"
            f"    # was transformers==4.3.1{_OLDER}    - transformers>=4.16.0,<4.17\n",
        ),
        (
            "environment.yml",  # what conda has of an old Python goes with it
            "dependencies:\n  - python=3.6.7\n  # - gym\n  - pytorch=1.0.0\n  - numpy=1.15.4\n  - numpy-base=1.15.4\n"
            "  - zlib=1.2.11=h7b6447c_3\n  - tqdm<5\n"
            "  - pip:\n    - plyfile==0.7\n",
            f"{_FLOORS}dependencies:\n  - python=3.10\n"
            "  - numpy>=1.21.2,<2\n  - numpy-base>=1.15.4\n  - zlib>=1.2.11\n"
            "  - tqdm<5\n  - pip:\n"
            f"    - torch==2.12.0\n    - torch-npu==2.12.0\n{_ITEM}"
            "    - plyfile==0.7\n",
        ),
    ],
)
def test_a_pin_older_than_the_pythons_of_torch_npu_is_a_floor(tmp_path: Path, name: str, text: str, new: str) -> None:
    """No release that such a pin allows has a wheel for one of them."""
    out = migrated(tmp_path, **{name: text})
    assert (out / name).read_text() == text
    assert (out / name.replace(".", "-npu.")).read_text() == new
    assert ",left," not in (out / "tokens.csv").read_text()


def test_a_pin_older_than_what_works_on_npus_is_a_floor(tmp_path: Path) -> None:
    uses = {"net.py": "from timm.data import Mixup\nmix = Mixup()\n", "requirements.txt": "torch>=2\ntimm==0.3.2\n"}
    text = (migrated(tmp_path, **uses) / "requirements-npu.txt").read_text()
    assert f"# was timm==0.3.2{_OLDER}timm>=0.5.4,<0.6\n" in text


@pytest.mark.parametrize(
    ("asked", "uses", "pins"),
    [
        # A README installs it with torch, by conda.
        ("torch>=2.1\n", "import torchaudio.transforms\n", "torchaudio=={}\n"),
        ("torch>=2.1\ntorchaudio\n", "import torchaudio\n", "torchaudio=={}\n"),
        ("torch>=2.1\n", "import torchmetrics\n", ""),
    ],
)
def test_what_goes_with_torch_and_is_imported_is_listed(tmp_path: Path, asked: str, uses: str, pins: str) -> None:
    text = (migrated(tmp_path, **{"requirements.txt": asked, "net.py": uses}) / "requirements-npu.txt").read_text()
    pinned = pins.format(release_of("2.12").torchaudio)
    assert text.startswith(f"-r requirements.txt\ntorch==2.12.0\ntorch-npu==2.12.0\n{pinned}# CANN")


_TRAINER = "from transformers import Trainer, TrainingArguments\nTrainer(args=TrainingArguments('out')).train()\n"


@pytest.mark.parametrize(
    ("pin", "uses", "floor"),
    [
        # 4.16.0 is the first with a wheel, 4.32.0 the first whose Trainer knows NPUs: by accelerate
        ("transformers==3.4.0", _TRAINER, "transformers>=4.32.0,<4.33\n{}accelerate>=0.21.0,<1\n"),
        ("transformers==4.20.0", _TRAINER, "transformers>=4.32.0,<4.33\n{}accelerate>=0.21.0,<1\n"),
        ("accelerate>=0.30\ntransformers==3.4.0", _TRAINER, "transformers>=4.32.0,<4.33\n{}"),
        ("transformers==3.4.0", "import transformers\n", "transformers>=4.16.0,<4.17\n{}"),
    ],
)
def test_a_floor_is_the_newest_of_all_that_are_known(tmp_path: Path, pin: str, uses: str, floor: str) -> None:
    out = migrated(tmp_path, **{"net.py": uses, "requirements.txt": f"{pin}\ntorch>=2\n"})
    text = (out / "requirements-npu.txt").read_text()
    assert floor.format("torch==2.12.0\ntorch-npu==2.12.0\n") + "# CANN" in text


@pytest.mark.parametrize(
    ("asked", "new"),
    [
        # what torch itself asks for
        ("sympy==1.11.1", f"# was sympy==1.11.1{_OLDER}sympy>=1.13.3,<2\n"),
        # what another asks for that gets a newer release
        (
            "tensorboard==2.4.0\ntensorflow==2.4.0",
            f"# was tensorboard==2.4.0{_OLDER}tensorboard>=2.8.0,<3\n"
            f"# was tensorflow==2.4.0{_OLDER}tensorflow>=2.8.0,<3\n",
        ),
        ("tensorflow-addons==0.12.0", f"# was tensorflow-addons==0.12.0{_OLDER}tensorflow-addons>=0.16.1,<0.17\n"),
        # a newer major release may refuse what the project calls (av 14: `add_stream(rate="30")`)
        ("av==8.0.3", f"# was av==8.0.3{_OLDER}av>=12.0.0,<13\n"),
        # of 0.x the next minor one, and one later where Pythons after the oldest have none before
        ("gym==0.21.0\nnumba==0.48.0", f"# was gym==0.21.0{_OLDER}gym>=0.22.0,<0.23\n"
         f"# was numba==0.48.0{_OLDER}numba>=0.55.0,<0.58\n"),
        # which could not be imported beside what pip would choose
        (
            "tensorflow-addons\ntensorflow==2.4.0\nabsl-py==0.10.0",
            f"tensorflow-addons\n# was tensorflow==2.4.0{_OLDER}tensorflow>=2.8.0,<2.16\n"
            f"# was absl-py==0.10.0{_OLDER}absl-py>=1.0.0,<2\n",
        ),
        # what pip freeze printed: the pins of what is dragged in are those of one day
        (
            "certifi==2020.12.5\nidna==2.10\nnumpy==1.19.4\nregex==2020.11.13\ntqdm>=4",
            f"{_FLOORS}certifi>=2020.12.5\nidna>=2.10\nnumpy>=1.21.2,<2\nregex>=2020.11.13\n"
            "tqdm>=4\n",
        ),
    ],
)
def test_a_pin_that_cannot_stand_beside_its_torch_is_a_floor(tmp_path: Path, asked: str, new: str) -> None:
    text = (migrated(tmp_path, **{"requirements.txt": f"{asked}\ntorch>=1.7\n"}) / "requirements-npu.txt").read_text()
    assert text.startswith(f"{new}torch==2.12.0\ntorch-npu==2.12.0\n") and "cannot be imported" not in text


@pytest.mark.parametrize(
    ("asked", "version", "bounds"),
    [
        ("pytorch-lightning==0.7.5", "2.14", "setuptools<82\nnumpy<2\n"),
        ("pytorch-lightning==1.9.5", "2.14", "setuptools<82\nnumpy<2\n"),
        ("pytorch-lightning==2.1.4", "2.14", "setuptools<82\n"),
        ("pytorch-lightning==2.4.0", "2.14", ""),
        ("tensorboard==2.5.0", "2.12", "protobuf<=3.20.3\nnumpy<1.24\n"),
        ("wandb==0.17.1", "2.12", "numpy<2\n"),
        ("wandb==0.17.2", "2.12", ""),
    ],
)
def test_what_could_not_be_imported_is_bounded(tmp_path: Path, asked: str, version: str, bounds: str) -> None:
    out = migrated(tmp_path, version=version, **{"requirements.txt": f"{asked}\ntorch>=2.1\n"})
    text = (out / "requirements-npu.txt").read_text()
    assert text.partition("# Without these, what is listed above cannot be imported\n")[2] == bounds
    assert (" protobuf " in text) == ("protobuf" not in bounds)
    assert "NPU845 [left]" not in (out / "msFmkTranspltlog.txt").read_text()


@pytest.mark.parametrize(
    ("asked", "uses", "bound"),
    [
        ("transformers", "from transformers import AdamW", "transformers<4.50"),
        ("transformers>=4.40", "from transformers import AdamW", "transformers<4.50"),
        ("transformers<4.49", "from transformers import AdamW", ""),
        ("transformers>=4.52", "from transformers import AdamW", ""),  # which it cannot have been written for
        ("transformers", "from transformers import Trainer", ""),
        ("tokenizers", "from transformers import AdamW", ""),
        ("transformers", "try:\n    from transformers import AdamW\nexcept ImportError:\n    AdamW = None", ""),
    ],
)
def test_what_newer_releases_do_not_have_is_held_back(tmp_path: Path, asked: str, uses: str, bound: str) -> None:
    program = f"import torch\n{uses}\n\nnet = torch.nn.Linear(2, 2).cuda()\nnet(torch.ones(2, 2)).sum().backward()\n"
    out = migrated(tmp_path, **{"requirements.txt": f"{asked}\ntorch>=2.1\n", "train.py": program})
    _, _, bounds = (out / "requirements-npu.txt").read_text().partition("# The code uses what newer releases of")
    assert bounds == (f" these do not have\n{bound}\n" if bound else "")


def test_bounds_of_an_environment_are_items(tmp_path: Path) -> None:
    text = "dependencies:\n  - pytorch\n  - pip:\n    - tensorboard==2.5.0\n"
    new = (migrated(tmp_path, **{"environment.yml": text}) / "environment-npu.yml").read_text()
    bound = "    # Without these, what is listed above cannot be imported\n    - protobuf<=3.20.3\n"
    assert f"ml-dtypes tornado\n{bound}" in new


@pytest.mark.parametrize(
    "asked",
    [
        "numpy>=1.19", "numpy==1.26.4", "numpy==1.19.4 ; python_version < '3.8'",
        "certifi==2020.12.5\nidna==2.10\nregex==2020.11.13",
    ],
)  # fmt: skip
def test_a_pin_with_a_wheel_stays_in_the_list_itself(tmp_path: Path, asked: str) -> None:
    out = migrated(tmp_path, **{"requirements.txt": f"{asked}\ntorch>=2.1\n"})
    assert (out / "requirements-npu.txt").read_text().startswith("-r requirements.txt\ntorch==2.12.0\n")


@pytest.mark.parametrize(
    "files",
    [
        {"requirements.txt": "numpy\n"},
        {"requirements.txt": "torch>=2.1\ntorch-npu==2.12.0\n"},
        {"requirements.txt": "torch>=2.1\n", "requirements_npu.txt": "torch-npu\n"},
        {"requirements.txt": "torch==2.1.0 --hash=sha256:00\n"},
        {"setup.cfg": "[options]\ninstall_requires =\n    torch\n"},
        {"cog.yaml": 'build:\n  python_packages:\n    - "torch==2.1.0"\n'},
        {"poetry.lock": '[[package]]\nname = "torch"\nversion = "2.1.0"\n'},
    ],
)
def test_lists_that_get_none(tmp_path: Path, files: dict[str, str]) -> None:
    made = {path.name for path in migrated(tmp_path, **files).iterdir()}
    assert not {name for name in made if "-npu" in name}


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("-e /home/me/codec", False), ("tables @ file:///croot/tables_1664/work", False), ("codec @ /opt/codec", False),
        ("-e .", True), ("-e ./codec", True), ("codec @ https://host/codec.zip", True), ("# -e /home/me/codec", True),
    ],
)  # fmt: skip
def test_a_list_of_one_machine_gets_none(tmp_path: Path, line: str, written: bool) -> None:
    out = migrated(tmp_path, **{"requirements.txt": f"torch>=2.1\n{line}\n"})
    assert (out / "requirements-npu.txt").exists() is written
    said = "no requirements-npu.txt is written: line 2 names a folder of one machine"
    log = (out / "msFmkTranspltlog.txt").read_text()
    assert (said in log) is not written and "a migration writes it" not in log


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"requirements.in": "torch\n", "requirements.txt": "torch==2.2.0\n"},
         "no requirements-npu.txt is written: requirements.in is what this list is compiled from"),
        ({f"{each}/requirements.txt": "torch>=2.1\n" for each in "abc"},
         "no a/requirements-npu.txt is written: lists in 3 folders would get a copy"),
        ({"demo/requirements.txt": "torch>=2.1\n", "demo/app.py": "import torch\nimport spaces\n"},
         "no demo/requirements-npu.txt is written: the programs in demo run on cards of Hugging Face Spaces"),
        ({"demo/requirements.txt": "torch>=2.1\n", "demo/app.py": "import torch\nimport spaces_of_mine\n"}, ""),
        ({"requirements.txt": "torch>=2.1\nsix=1.15=py36h\n"},
         'no requirements-npu.txt is written: pip does not read "six=1.15=py36h"'),
        ({"requirements.txt": "torch>=2.1\ngit+https://host/a.git  # b\n./c\nd[e]>=1; os_name == 'x'\n"}, ""),
        ({"requirements.txt": "torch>=2.1\n", "app.py": "import torch\nimport spaces\n"}, ""),  # the project has more
        ({"other.in": "torch\n", "requirements.txt": "torch==2.2.0\n"}, ""),
        ({f"{each}/requirements.txt": "torch>=2.1\n" for each in "ab"}, ""),
    ],
)  # fmt: skip
def test_lists_that_are_compiled_or_many_get_none(tmp_path: Path, files: dict[str, str], said: str) -> None:
    for name in files:
        (tmp_path / "net" / name).parent.mkdir(parents=True, exist_ok=True)
    out = migrated(tmp_path, **files)
    assert bool([*out.rglob("*-npu.txt")]) is not bool(said)
    assert said in (out / "msFmkTranspltlog.txt").read_text()


_LOCKED = '[tool.poetry.dependencies]\npython = "^3.11"\ntorch = ">=2.1"\ntorchvision = "*"\n'


@pytest.mark.parametrize("lock", ["poetry.lock", "uv.lock", "pdm.lock"])
def test_a_project_with_a_lock_file_stays_and_gets_a_list(tmp_path: Path, lock: str) -> None:
    """The lock file holds a hash of it: an extra would stop everybody's install."""
    out = migrated(tmp_path, **{"pyproject.toml": _LOCKED, lock: "\n"})
    assert (out / "pyproject.toml").read_text() == _LOCKED
    needs = _LINES.replace("attrs cython", "attrs cython numpy")
    made = f"# For NPUs, over what {lock} has\ntorch==2.12.0\ntorch-npu==2.12.0\ntorchvision==0.27.0\n{needs}"
    assert (out / "requirements-npu.txt").read_text() == made
    again = _migrated(out, tmp_path / "again", "portable")
    for folder in (out, again):
        assert "NPU844" not in (folder / "msFmkTranspltlog.txt").read_text()


@pytest.mark.parametrize(
    ("files", "changed", "listed"),
    [
        ({"pyproject.toml": _LOCKED}, True, ""),
        ({"pyproject.toml": _LOCKED, "package-lock.json": "{}"}, True, ""),
        ({"pyproject.toml": _LOCKED, "uv.lock": "\n", "requirements.txt": "torch\n"}, False, "-r requirements.txt\n"),
        ({"pyproject.toml": _LOCKED.replace(">=2.1", "~2.3"), "uv.lock": "\n"}, False, ""),
    ],
)
def test_an_extra_and_a_list_are_not_both(
    tmp_path: Path, files: dict[str, str], changed: bool, listed: str
) -> None:
    out = migrated(tmp_path, **files)
    assert ((out / "pyproject.toml").read_text() != files["pyproject.toml"]) is changed
    made = out / "requirements-npu.txt"
    assert made.read_text().startswith(listed) if listed else not made.exists()


def test_for_npus_alone_the_list_itself_is_theirs(tmp_path: Path) -> None:
    out = migrated(tmp_path, "npu", **{"requirements.txt": "numpy\ntorch>=2.1\n"})
    assert not (out / "requirements-npu.txt").exists() and "torch-npu" in (out / "requirements.txt").read_text()


def test_for_an_older_cann_numpy_is_bounded_and_the_index_named(tmp_path: Path) -> None:
    """On x86_64 the wheel of torch_npu 2.5 asks for torch 2.5.1+cpu, which the one index has."""
    out = migrated(tmp_path, **{"requirements.txt": "numpy>=1.20\ntorch>=2.1\n"}, version="2.5")
    lines = (out / "requirements-npu.txt").read_text().splitlines()
    assert lines[:2] == ["--extra-index-url https://download.pytorch.org/whl/cpu", "-r requirements.txt"]
    assert lines[2:4] == ["torch==2.5.1", "torch-npu==2.5.1.post1"] and "numpy<2" in lines


@pytest.mark.parametrize(("asked", "bounded"), [("numpy>=2.1", False), ("numpy<1.24", False), ("numpy", True)])
def test_a_bound_that_the_list_rules_out_is_not_written(tmp_path: Path, asked: str, bounded: bool) -> None:
    out = migrated(tmp_path, **{"requirements.txt": f"{asked}\ntorch>=2.1\n"}, version="2.5")
    assert ("numpy<2" in (out / "requirements-npu.txt").read_text().splitlines()) == bounded


def test_what_cann_imports_is_what_the_diagnosis_installs() -> None:
    """One list: that of the table, and that of the advice where such a package is missing."""
    advice = (Path(__file__).parent.parent / "rules" / "errors" / "environment.json").read_text()
    assert "pip install attrs cython numpy " + " ".join(_NEEDS[2:]) + "." in advice
    assert [*asked_by_cann("9.0.0")] == ["attrs", "cython", "numpy", *_NEEDS[2:]]


def test_a_list_of_pip_of_which_nothing_is_left_goes(tmp_path: Path) -> None:
    lists = "".join(f"  - pip:\n    - {each}\n" for each in ("torch==2.1.0", "nvidia-nccl-cu11==2.0", "regex"))
    text = f"name: net\ndependencies:\n  - python=3.10\n{lists}"
    new = (migrated(tmp_path, **{"environment.yml": text}) / "environment-npu.yml").read_text()
    assert "nvidia" not in new and new.endswith("\n  - pip:\n    - regex\n") and new.count("pip:") == 2


_PRINTED = "".join(f"  - lib{number}=1.{number}=h{number}_0\n" for number in range(12))


@pytest.mark.parametrize(("builds", "written"), [(_PRINTED, False), ("  - libjpeg=9=h0_0\n", True)])
def test_what_conda_has_printed_on_one_machine_gets_none(tmp_path: Path, builds: str, written: bool) -> None:
    text = f"name: net\ndependencies:\n  - python=3.11\n{builds}  - pip:\n    - torch==2.1.0\n    - nvidia-apex==0.1\n"
    out = migrated(tmp_path, **{"environment.yml": text, "requirements.txt": "torch>=2.1\n"})
    assert (out / "environment-npu.yml").exists() is written and (out / "requirements-npu.txt").exists()
    log = (out / "msFmkTranspltlog.txt").read_text()
    assert ("no environment-npu.yml is written: conda printed this list" in log) is not written
    if written:
        assert "apex" not in (out / "environment-npu.yml").read_text()


@pytest.mark.parametrize(
    ("listed", "help_"),
    [
        ("tensorflow==2.4.0\ntensorboard==2.4.0", " (tensorboard>=2.8.0), or drop the line: the newer"),
        ("tensorboard==2.4.0", ", or add protobuf<=3.20.3 and numpy<1.24"),
    ],
)
def test_what_a_raised_tensorflow_rules_out_is_not_kept_back(tmp_path: Path, listed: str, help_: str) -> None:
    source = tmp_path / "proj"
    source.mkdir()
    (source / "requirements.txt").write_text(f"torch==2.12.0\n{listed}\n")
    (source / "train.py").write_text(_TRAIN)
    log = (_migrated(source, tmp_path / "out", "npu") / "msFmkTranspltlog.txt").read_text()
    assert f"require a newer tensorboard{help_}" in log
    assert ("add protobuf" in log) == ("tensorflow" not in listed)
