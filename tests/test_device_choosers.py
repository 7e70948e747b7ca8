"""A module of the project that chooses its device already: which one that is, what it gets, and who takes it there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.harness import clean
from transplt.base.settings import Settings
from transplt.edits.device_choosers import names_of_chooser
from transplt.engine import portable
from transplt.engine.engine import index_source
from transplt.faces.cli.main import main
from transplt.flow.chooser_place import own_place
from transplt.flow.facts import ProjectFacts

ASKED = '"cuda" if torch.cuda.is_available() else "cpu"'
CONSTANT = f"import torch\nDEVICE = torch.device({ASKED})\n"
FUNCTION = f"import torch\ndef get_device():\n    return torch.device({ASKED})\n"
COMPLETED = """\
import importlib.util
import torch

if importlib.util.find_spec("torch_npu") is not None:
    torch_npu = importlib.import_module("torch_npu")  # it has no stubs

_has_npu = hasattr(torch, "npu") and torch.npu.is_available()
DEVICE_TYPE = "npu" if _has_npu else "cuda"
device_module = getattr(torch, DEVICE_TYPE)

DEVICE = torch.device(DEVICE_TYPE if device_module.is_available() else "cpu")
"""
DATA = "import torch\nDATA = 'set'\n"
SEED = "def seed(x):\n    torch.manual_seed(x)\n"


@pytest.mark.parametrize(
    ("path", "text", "has"),
    [
        ("device.py", CONSTANT, ()),
        ("pkg/utils/common.py", FUNCTION, ()),
        ("gpu_utils.py", FUNCTION + SEED, ()),
        ("d.py", "import torch\nUSE = torch.cuda.is_available()\nDEVICE = 'cuda' if USE else 'cpu'\n", ()),
        ("d.py", "import torch\nif torch.cuda.is_available():\n    D = 'cuda:0'\nelse:\n    D = 'cpu'\n", ()),
        ("d.py", "import torch\ndef f():\n    if torch.cuda.is_available():\n        return 'cuda'\n", ()),
        ("device.py", COMPLETED, ("DEVICE_TYPE", "_has_npu", "device_module")),
        # It has another purpose.
        ("utils/misc.py", FUNCTION + SEED, None),
        ("config.py", CONSTANT + "LR = 0.1\n", None),
        ("pkg/__init__.py", CONSTANT, None),
        ("device.py", f"import torch\nclass Config:\n    device = {ASKED}\n", None),
        ("device.py", f"import torch\nclass Config:\n    pass\nDEVICE = {ASKED}\n", None),
        ("device.py", FUNCTION + "# " + "x" * 4000, None),
        # It does something when it is imported, or is started.
        ("device.py", CONSTANT + "torch.cuda.set_device(0)\n", None),
        ("device.py", CONSTANT + "for i in range(3):\n    print(i)\n", None),
        ("device.py", CONSTANT + 'if __name__ == "__main__":\n    print(DEVICE)\n', None),
        ("device.py", "import os\nos.environ['A'] = '1'\n" + CONSTANT, None),
        ("device.py", "import argparse\n" + CONSTANT, None),
        # It may lead back, or to a package that not all have.
        ("device.py", "from .config import x\n" + CONSTANT, None),
        ("device.py", "import config\n" + CONSTANT, None),
        # It chooses nothing, or nothing of CUDA.
        ("device.py", "import torch\nHAS_GPU = torch.cuda.is_available()\n", None),
        ("device.py", "import torch\nD = 'mps' if torch.backends.mps.is_available() else 'cpu'\n", None),
        ("devices.py", "import torch\ndef all():\n    found = ['cpu']\n    if torch.cuda.is_available():\n"
         "        found.append('cuda')\n    return found\n", None),
        ("device.py", f"import torch\ndef show():\n    print({ASKED})\n", None),
        # It has our names for something else, knows NPUs, or says what stays.
        ("device.py", f"import torch\ndevice = torch.device({ASKED})\n", None),
        ("device.py", "import torch\nif torch.cuda.is_available():\n    device = 'cuda'\n", None),
        ("device.py", CONSTANT + "def npu():\n    return torch.device('npu')\n", None),
        ("device.py", f"import torch\nDEVICE = {ASKED}  # transplt: ignore\n", None),
        # The choice of a file that was given alone.
        ("layers.py", COMPLETED + "def f(x):\n    return x + 1\n", None),
        ("device.py", "DEVICE = (", None),
    ],
)  # fmt: skip
def test_which_module_it_is(path: str, text: str, has: tuple[str, ...] | None) -> None:
    assert names_of_chooser(path, text.encode()) == has


USING = "from utils.device import DEVICE\nx.cuda()\n"
PROGRAM = {"train.py": USING, "utils/__init__.py": "", "utils/device.py": CONSTANT}


@pytest.mark.parametrize(
    ("files", "path", "package"),
    [
        (PROGRAM, "train.py", "utils"),
        (PROGRAM, "utils/device.py", "utils"),
        ({**PROGRAM, "train.py": f"import utils.a\n{USING}", "eval.py": "import utils.a\nx.cuda()\n", "utils/a.py": ""},
         "eval.py", "utils"),
        ({**PROGRAM, "utils/misc.py": "from . import device\nx.cuda()\n"}, "utils/misc.py", "utils"),
        ({"main.py": "from device import DEVICE\nimport net\n", "net.py": "x.cuda()\n", "device.py": CONSTANT},
         "net.py", ""),
        ({"pkg/__init__.py": "", "pkg/net.py": "from .device import DEVICE\nx.cuda()\n", "pkg/device.py": CONSTANT},
         "pkg/net.py", "pkg"),
        ({**PROGRAM, "alone/a.py": "x.cuda()\n"}, "train.py", "utils"),  # which has its own, as before
        # Files that speak of no card need not find it.
        ({**PROGRAM, "lib/a.py": "from b import c\n", "lib/b.py": "", "train.py": f"import lib.b\n{USING}"},
         "train.py", "utils"),
        # Two of them, one that nothing but a test imports.
        ({**PROGRAM, "train.py": f"import gpu\n{USING}", "gpu.py": FUNCTION}, "train.py", None),
        ({"test_a.py": USING, "utils/__init__.py": "", "utils/device.py": CONSTANT}, "test_a.py", None),
        ({**PROGRAM, "alone/a.py": "x.cuda()\n"}, "alone/a.py", None),
        # Some file would not find it.
        ({**PROGRAM, "train.py": f"import lib.b\n{USING}", "lib/a.py": "from b import c\nx.cuda()\n", "lib/b.py": ""},
         "train.py", None),
        ({**PROGRAM, "setup.py": "", "train.py": f"from pkg import net\n{USING}", "pkg/__init__.py": "",
          "pkg/net.py": "x.cuda()\n"}, "train.py", None),
        # Its package would lead back to a file, or needs more than that had.
        ({**PROGRAM, "train.py": f"import net\n{USING}", "net.py": "x.cuda()\n", "utils/__init__.py": "import net\n"},
         "train.py", None),
        ({**PROGRAM, "train.py": f"import net\n{USING}", "net.py": "x.cuda()\n",
          "utils/__init__.py": "import matplotlib\n"}, "train.py", None),
        # Everything is taken from it: names of ours would come along.
        ({**PROGRAM, "train.py": "from utils.device import *\nx.cuda()\n"}, "train.py", None),
        ({**PROGRAM, "utils/__init__.py": "from .device import *\n"}, "train.py", None),
    ],
)  # fmt: skip
def test_who_takes_names_from_it(files: dict[str, str], path: str, package: str | None) -> None:
    settings = Settings(style="portable", helper_file=True)
    project = ProjectFacts.join([index_source(text.encode(), each, settings) for each, text in files.items()])
    place = own_place(project, path, settings)
    assert (place.package if place is not None else None) == package


def test_the_name_that_the_owner_gives() -> None:
    settings = Settings(style="portable", helper_file=True)
    project = ProjectFacts.join([index_source(text.encode(), each, settings) for each, text in PROGRAM.items()])
    assert own_place(project, "train.py", replace(settings, helper="device")) is not None
    assert own_place(project, "train.py", replace(settings, helper="cards")) is None


def test_where_no_second_file_is_written_only_what_is_completed_is_used() -> None:
    settings = Settings(style="portable")
    for text, used in ((CONSTANT, False), (COMPLETED, True)):
        files = {**PROGRAM, "utils/device.py": text}
        project = ProjectFacts.join([index_source(data.encode(), each, settings) for each, data in files.items()])
        assert (own_place(project, "train.py", settings) is not None) == used


# --- whole projects --------------------------------------------------------------------------------------------------

TRAIN = """
    import torch

    from utils.device import get_device, use_cpu

    x = torch.ones(1).to(get_device())
    x.cuda(0)
    torch.cuda.synchronize()
    torch.distributed.init_process_group("nccl")
    """
DEVICE = '''
    """Where it runs."""

    import torch


    def get_device():
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return device
    '''
CHOSEN = '''
    """Where it runs."""

    import importlib.util
    import os
    import torch


    if importlib.util.find_spec("torch_npu") is not None:
        # The cards that CUDA is shown; CANN reads this once.
        if "CUDA_VISIBLE_DEVICES" in os.environ:
            _shown = os.environ["CUDA_VISIBLE_DEVICES"]
            if _shown[:1].isdigit():
                os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", _shown)
        torch_npu = importlib.import_module("torch_npu")  # it has no stubs

    _has_npu = hasattr(torch, "npu") and torch.npu.device_count() > 0
    #: "npu" where there is an NPU, else "cuda", also without any card.
    DEVICE_TYPE = "npu" if _has_npu else "cuda"
    #: The namespace of the accelerator: torch.npu or torch.cuda.
    device_module = getattr(torch, DEVICE_TYPE)
    #: What torch.distributed uses between its cards.
    DIST_BACKEND = "hccl" if _has_npu else "nccl"


    def device(index=None):
        """The card of this number; without one, the accelerator."""
        if index is None:
            return torch.device(DEVICE_TYPE)
        if isinstance(index, int):
            return torch.device(DEVICE_TYPE, index)
        return torch.device(index)  # a name, or a device


    def get_device():
        device = torch.device(DEVICE_TYPE if device_module.is_available() else "cpu")
        return device
    '''


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(main, [*arguments, "--exit-zero"])
    assert done.exit_code == 0, done.output
    return done


def migrated(folder: Path, out: Path, *options: str) -> tuple[dict[str, str], str]:
    """The Python of the output, and the summary."""
    done = run("-i", str(folder), "-o", str(out), "--jobs", "0", "--style", "portable", *options)
    made = out / f"{folder.stem}_msft"
    return {each.relative_to(made).as_posix(): each.read_text() for each in sorted(made.rglob("*.py"))}, done.output


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "proj"
    (folder / "utils").mkdir(parents=True)
    (folder / "train.py").write_text(clean(TRAIN))
    (folder / "utils" / "device.py").write_text(clean(DEVICE))
    (folder / "utils" / "__init__.py").write_text("")
    return folder


def test_it_is_completed_and_used(project: Path, tmp_path: Path) -> None:
    made, said = migrated(project, tmp_path / "out")
    assert [*made] == ["train.py", "utils/__init__.py", "utils/device.py"]
    assert made["utils/device.py"] == clean(CHOSEN)
    line = "from utils.device import DIST_BACKEND, device, device_module, get_device, use_cpu"
    assert line in made["train.py"].splitlines() and "x.to(device(0))" in made["train.py"]
    assert "utils/device.py already chooses the device; added to it: DEVICE_TYPE, DIST_BACKEND, device" in said


def test_a_second_migration_and_a_check_change_nothing(project: Path, tmp_path: Path) -> None:
    first, _ = migrated(project, tmp_path / "out")
    second, said = migrated(tmp_path / "out" / "proj_msft", tmp_path / "again")
    assert second == first and "no edits" in said
    made = tmp_path / "out" / "proj_msft"
    (made / "new.py").write_text("import torch\nfrom utils import device\n\ntorch.cuda.empty_cache()\n")
    run("check", str(made), "--fix", "--style", "portable")
    assert "\nfrom utils.device import device_module\n" in (made / "new.py").read_text()
    assert (made / "utils" / "device.py").read_text() == first["utils/device.py"]


def test_what_is_added_to_it_is_reported_as_in_every_file_that_chooses(project: Path, tmp_path: Path) -> None:
    first, _ = migrated(project, tmp_path / "out")
    made = tmp_path / "out" / "proj_msft"
    more = first["utils/device.py"] + "\n\ndef move(x):\n    return x.cuda()\n"
    (made / "utils" / "device.py").write_text(more)
    second, said = migrated(made, tmp_path / "again")
    assert second["utils/device.py"] == more
    assert "1 left, " in said and "when move() runs; less than an hour; utils/device.py:40)" in said


def test_a_function_in_which_a_name_means_something_else_keeps_its_call(project: Path, tmp_path: Path) -> None:
    more = "\n\ndef to_card(x):\n    device = x.cuda(1)\n    return device\n"
    (project / "utils" / "device.py").write_text(clean(DEVICE) + more)
    made, _ = migrated(project, tmp_path / "out")
    assert made["utils/device.py"] == clean(CHOSEN) + more


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (("utils/device.py", clean(DEVICE) + "\n\nfor _ in range(2):\n    get_device()\n"), ()),
        (("utils/more_devices.py", clean(DEVICE)), ()),
        (("train.py", "from utils.device import *\n" + clean(TRAIN)), ()),
        (("pyproject.toml", '[tool.transplt.per-file-ignores]\n"utils/device.py" = ["NPU156"]\n'), ()),
        (None, ("--helper", "cards")),
    ],
)  # fmt: skip
def test_what_is_no_such_module_stands_beside_ours(
    project: Path, tmp_path: Path, change: tuple[str, str] | None, options: tuple[str, ...]
) -> None:
    if change is not None:
        (project / change[0]).write_text(change[1])
    if change is not None and "more" in change[0]:
        (project / "train.py").write_text(f"import utils.more_devices\n{clean(TRAIN)}")
    made, said = migrated(project, tmp_path / "out", *options)
    name = options[1] if options else "accelerator"
    assert f"utils/{name}.py" in made and "already chooses the device" not in said
    assert f"from utils.{name} import DIST_BACKEND, device, device_module" in made["train.py"]
    assert "_has_npu" not in made["utils/device.py"]


def test_where_it_cannot_be_completed_all_is_as_without_it(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portable, "complete", lambda work: None)
    made, said = migrated(project, tmp_path / "out")
    assert "utils/accelerator.py" in made and "already chooses the device" not in said
    assert "from utils.accelerator import DIST_BACKEND, device, device_module\n" in made["train.py"]
    assert "from .accelerator import DEVICE_TYPE, device_module\n" in made["utils/device.py"]


def test_what_nobody_else_takes_names_from_has_the_choice_in_itself(project: Path, tmp_path: Path) -> None:
    (project / "train.py").write_text("from utils.device import get_device\n\nprint(get_device())\n")
    made, _ = migrated(project, tmp_path / "out")
    assert [*made] == ["train.py", "utils/__init__.py", "utils/device.py"]
    assert "\n_has_npu = " in made["utils/device.py"] and "DIST_BACKEND" not in made["utils/device.py"]


_INFER = """
    import torch

    def infer_device():
        if torch.cuda.is_available():
            return "cuda"
        if has_npu():
            return "npu"
        return "cpu"
"""
_KIND = "kind = backend()\nIS_NPU = kind == 'npu'\nIS_NVIDIA = kind == 'cuda'\n"


@pytest.mark.parametrize("chooser", [_INFER, _KIND])
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pkg/ops.py", "import torch\nx = torch.zeros(1, device='cuda')\n"),
        ("train.py", "import torch\nfrom pkg.ops import f\ntorch.cuda.synchronize()\n"),
        # What stands in front of kernels is the owner's to open.
        ("pkg/ops.py", "def f(x):\n    if x.device.type != 'cuda':\n        raise ValueError\n    return x\n"),
        ("pkg/ops.py", "import torch\ndef f(x):\n    if not x.is_cuda:\n        raise ValueError\n    return x\n"),
    ],
)
def test_a_project_that_chooses_npus_gets_no_second_choice(tmp_path: Path, chooser: str, path: str, text: str) -> None:
    (tmp_path / "proj" / "pkg").mkdir(parents=True)
    files = {"pkg/__init__.py": "", "pkg/kind.py": clean(chooser), path: text}
    for name, content in files.items():
        (tmp_path / "proj" / name).write_text(content)
    made, _ = migrated(tmp_path / "proj", tmp_path / "out")
    assert made == files
    log = (tmp_path / "out" / "proj_msft" / "msFmkTranspltlog.txt").read_text()
    assert "pkg/kind.py chooses the device of the project, for NPUs too" in log


@pytest.mark.parametrize(
    "kind",
    [
        "def shown():\n    print('cuda', 'npu')\n",
        "def f():\n    return 'cuda'\nNAME = 'npu'\n",
    ],
)
def test_a_project_that_only_knows_npus(tmp_path: Path, kind: str) -> None:
    (tmp_path / "proj" / "pkg").mkdir(parents=True)
    ops = "import torch\nfrom pkg.kind import f\nx = torch.zeros(1, device='cuda')\n"
    for name, content in {"pkg/__init__.py": "", "pkg/kind.py": kind, "pkg/ops.py": ops}.items():
        (tmp_path / "proj" / name).write_text(content)
    made, _ = migrated(tmp_path / "proj", tmp_path / "out")
    assert "device=DEVICE_TYPE" in made["pkg/ops.py"]
