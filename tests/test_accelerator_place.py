"""Where the accelerator's module goes, how it is called, and how files take names from it."""

from __future__ import annotations

import pytest

from tests.harness import clean
from transplt.base.settings import Settings
from transplt.edits.edit import Edit
from transplt.edits.helper import helper
from transplt.edits.helper_file import helper_text
from transplt.edits.helper_used import used_of_helper
from transplt.engine.edit_outcome import apply_edits
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.python_in import other_facts
from transplt.engine.plan import plan
from transplt.flow.facts import ProjectFacts
from transplt.rules.rule_set import compile_rules
from transplt.syntax.files import File

OURS = helper_text(["DEVICE_TYPE", "device", "device_module"], portable=True)


def taken(files: dict[str, str], path: str, names: str = "DEVICE_TYPE", **more: object) -> tuple[str, str]:
    """The file with its last statement replaced by names of the module, and the paths where that is written."""
    settings = Settings(style="portable", **{"helper_file": True, **more})  # type: ignore[arg-type]
    data = clean(files[path]).encode()
    read = ((each, clean(text).encode()) for each, text in files.items())
    asked = (other_facts if each.endswith((".toml", ".cfg")) else index_source for each in files)
    every = [index(data, each, settings) for index, (each, data) in zip(asked, read, strict=True)]
    facts = [each for each in every if each is not None]
    project = ProjectFacts.join(facts)
    file = File.of(path, data)
    work = plan(file.source, file.scan, compile_rules(settings), settings, project)
    last = file.scan.tree.body[-1]
    called = [helper(work, name, group="g", code="NPU156", message="m", at=last) for name in names.split()]
    found = [each for one in called for each in one.found if isinstance(each, Edit)]
    new = f"use({', '.join(each.text for each in called)})"
    found.append(Edit(last.value, "NPU261", "m", new, group="g"))  # type: ignore[attr-defined]
    after = apply_edits(work, found).data
    used = used_of_helper(after, path, settings, project, before=data)
    return after.decode(), " ".join(used.paths) if used is not None else ""


_LAB = {"main.py": "import net\n", "net.py": "", "pkg/__init__.py": "",
        "pkg/a.py": "from pkg.b import c\n", "pkg/b.py": ""}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "cells", "line", "place"),
    [
        ("lab.ipynb", "import net\nx()\n", "from device import DEVICE_TYPE", "device.py"),
        # A cell has gone there, or made it be found.
        ("demo/lab.ipynb", "from net import Net\nx()\n", "from device import DEVICE_TYPE", "device.py"),
        ("a/b/lab.ipynb", "import os\nimport pkg.a\nx()\n", "from device import DEVICE_TYPE", "device.py"),
        # It is no module of a package, wherever it lies.
        ("pkg/lab.ipynb", "from pkg import a\nx()\n", "from device import DEVICE_TYPE", "device.py"),
        # Nothing of the project is found by it.
        ("lab.ipynb", "import torch\nx()\n", "", ""),
        ("demo/lab.ipynb", "import inner\nx()\n", "", ""),
    ],
)
def test_a_notebook_takes_the_names_from_where_it_imports_the_project(
    path: str, cells: str, line: str, place: str
) -> None:
    after, where = taken({**_LAB, path: cells, "other/inner.py": ""}, path)
    assert where == place
    assert line in after if line else "_has_npu" in after
    assert not (line and "_has_npu" in after)


#: A package that users install, and what is shown to them; all but a notebook has the checkout around it.
_SHOWN = {"setup.py": "", "pkg/__init__.py": "", "pkg/net.py": "import torch\n"}


@pytest.mark.parametrize(
    ("path", "inside"),
    [("lab.ipynb", False), ("docs/lab.ipynb", False), ("examples/train.py", True), ("a/demo/train.py", True),
     ("train.py", True), ("scripts/train.py", True), ("tests/test_net.py", True), ("pkg/examples/train.py", True)],
)  # fmt: skip
def test_a_notebook_takes_nothing_that_older_releases_lack(path: str, inside: bool) -> None:
    after, where = taken({**_SHOWN, path: "import torch\nfrom pkg.net import f\nx()\n"}, path)
    assert ("_has_npu" not in after, where) == (inside, "pkg/device.py" if inside else "")


@pytest.mark.parametrize(
    ("text", "more", "where"),
    [
        ("x('cuda')\n", {}, ""),  # a line or two of one file need no module
        ("x('cuda')\n", {"net/b.py": "y = 'cuda'\n"}, "net/device.py"),
        ("x('cuda')\n", {"run.py": "from net.a import y\ny('cuda')\n"}, "net/device.py"),
        ("y = 'cuda'\nz = 'cuda'\nx('cuda')\n", {}, "net/device.py"),
    ],
)
def test_a_line_or_two_of_one_file_of_a_package_need_no_module(text: str, more: dict[str, str], where: str) -> None:
    files = {"setup.py": "", "net/__init__.py": "from .a import y\n", "net/a.py": f"import torch\n{text}", **more}
    after, place = taken(files, "net/a.py")
    assert place == where and ("_has_npu = " in after) is (not where)


#: A file of a folder without packages, by what it imports; the project has `net.py` and `utils/log.py`.
_OVERLAID = {"train.py": "import net\nx('cuda')\n", "net.py": "", "utils/log.py": "", "more/own.py": "",
             "more/run.py": "import own\nx('cuda')\n", "lib/log/say.py": "", "lib/models/__init__.py": "",
             "lib/config/models.py": ""}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "imports", "elsewhere"),
    [
        ("more/track.py", "from .basetrack import Track", True),
        ("more/track.py", "import own\nfrom models.decode import f", True),
        ("more/track.py", "import own\nfrom util import misc", True),
        ("more/track.py", "import own\nimport cv2", False),
        ("more/track.py", "import own\nfrom utils.log import say", False),
        ("more/track.py", "from .own import f", False),
        # Of two folders `models`, neither of which has the plain name, the one beside what else it finds.
        ("more/track.py", "from log.say import f\nimport models", False),
        ("more/track.py", "from own import f\nimport models", True),
        ("more/track.py", "import own, sys\nsys.path.append('../RAFT')\nfrom models import f", False),
        ("track.py", "from models import f", False),
    ],
)
def test_what_imports_what_only_another_project_has_is_copied_there(path: str, imports: str, elsewhere: bool) -> None:
    after, where = taken({**_OVERLAID, path: f"import torch\n{imports}\nx('cuda')\n"}, path)
    assert ("_has_npu = " in after, where == "") == (elsewhere, elsewhere)


def test_a_script_of_a_package_takes_the_module_of_the_installed_one_that_it_imports() -> None:
    files = {"setup.py": "", "net/__init__.py": "", "net/run.py": "from .loss import f\nx('cuda')\n", "net/loss.py": "",
             "net/__main__.py": "from .run import f\nf()\n",
             "tools/__init__.py": "", "tools/bench.py": "import torch\nfrom net.run import f\nx('cuda')\n",
             "tools/alone.py": "import torch\nx('cuda')\n"}  # fmt: skip
    after, where = taken(files, "tools/bench.py")
    assert "from net.device import DEVICE_TYPE" in after and where == "net/device.py"
    assert taken(files, "tools/alone.py")[1] == "tools/device.py"


@pytest.mark.parametrize(
    ("cells", "above"),
    [
        ("import torch\n", "import torch"),
        ("import yaml\nc = yaml.f()\nimport torch\ntorch.manual_seed(0)\n", "import torch"),
        ("import torch\nx = 1\nimport torch\n", "x = 1\nimport torch"),
        ("import yaml\n", "import yaml"),
    ],
)
def test_a_notebook_imports_the_module_with_the_last_torch_above_the_first_use(cells: str, above: str) -> None:
    after, _ = taken({**_LAB, "lab.ipynb": f"{cells}import net\ny = net\nx()\n"}, "lab.ipynb")
    assert after.index(above) < after.index("from device import") < after.index("y = net")


PACKAGE = {"train.py": "from pkg.models import net\nx()\n", "pkg/__init__.py": "", "pkg/models/__init__.py": "",
           "pkg/utils/__init__.py": "", "pkg/utils/misc.py": "import os\nx()\n"}  # fmt: skip


SCORE = {"main.py": "from score.both import f\nx()\n", "score/both.py": "from .net import Net\nx()\n",
         "score/net.py": "", "score/other.py": "from .net import Net\nx()\n"}  # fmt: skip
BESIDE = {"models.py": "", "flow/__init__.py": "", "flow/net.py": "from .inner import f\nx()\n", "flow/inner.py": ""}
#: A module that nobody imports, and that imports nothing of its package.
ALONE = {"net/__init__.py": "", "net/use.py": "from net.loss import f\nx\n", "net/loss.py": "",
         "net/tools/__init__.py": "", "net/tools/card.py": "import torch\ndef f():\n    return 1\nx\n",
         "tests/test_use.py": "import net\nfrom net.use import f\nx()\n"}  # fmt: skip
#: A package with a module that is started to try it out, and scripts that import the package.
INSTALLED = {
    "net/__init__.py": "from net.loss import f\n", "net/loss.py": "if __name__ == '__main__':\n    print(1)\n",
    "scripts/train.py": "import net\nx()\n", "scripts/plain.py": "import torch\nx()\n",
}  # fmt: skip
#: Scripts of one folder that find the program above it, and one that finds nothing but what is beside it.
SAMPLES = {
    "main.py": "import models\nx()\n", "models.py": "import os\nx()\n",
    "scripts/one.py": "import torch\nfrom main import f\nx()\n",
    "scripts/two.py": "from scripts.one import f\nx()\n", "scripts/depth.py": "import torch\nw = 'cuda'\nx()\n",
}  # fmt: skip
#: A script that adds the folder above its own to where it looks, as its modules do by `src.`
LOGGED = {
    "src/train.py": "import os, sys\nsys.path.append(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))\n"
    "from log import say\nfrom trainer import Trainer\nx()\n",
    "src/trainer.py": "from log import say\nfrom src.utils import f\nx()\n", "src/utils.py": "import math\nx()\n",
}  # fmt: skip
_TWO = {f"{folder}{name}": text for folder in ("", "more/fed/") for name, text in {
            "run.py": "from exp.main import f\nx()\n", "exp/main.py": "from exp.basic import g\nx('cuda')\n",
            "exp/basic.py": "import torch\ndef g(x):\n    return x.cuda()\nx\n"}.items()}  # fmt: skip
_TRIED = {"sub/__init__.py": "", "sub/data.py": "",
          "sub/train.py": "import data\nfrom src.back.mask import *\nfrom src.basic import f\nx('cuda')\n",
          "sub/src/__init__.py": "", "sub/src/basic.py": "import torch\ndef f(x):\n    return x.cuda()\nx\n",
          "sub/src/back/__init__.py": "",
          "sub/src/back/mask.py": "from ..basic import f\nif __name__ == '__main__':\n    f()\n"}  # fmt: skip
_LOADED = {"run.py": "from exp.basic import f\nx('cuda')\n", "exp/basic.py": "from utils.tools import f\n",
           "utils/__init__.py": "", "utils/tools.py": "", "layers/embed.py": "", "layers/wave.py": "w = 'cuda'\nx\n",
           "models/times.py": "from layers.embed import f\n", "models/wp.py": "from layers.wave import f\n",
           "models/film.py": "import torch\nw = torch.ones(1, device='cuda')\ndef f():\n    return w\nx\n"}  # fmt: skip
_GUARD = "if __name__ == '__main__':\n    f('cuda')\n"
_OLD = {"old/loss.py": f"def f(x):\n    return x.cuda()\n{_GUARD}x\n", "old/model.py": "",
        "old/train.py": f"from loss import f\nimport model\n{_GUARD}x()\n", "old/a/__init__.py": "",
        "old/a/net.py": "", "old/a/train.py": "import sys\nsys.path.insert(0, '.')\nfrom loss import f\n"
        f"from a.net import g\n{_GUARD}x()\n"}  # fmt: skip
_TOOLS = {"lib/loss.py": f"def f(x):\n    return x.cuda()\n{_GUARD}x\n", "tools/evaluate.py": "",
          "tools/train.py": "import sys\nsys.path.insert(0, '.')\nfrom lib.loss import f\nfrom evaluate import g\n"
          f"{_GUARD}x()\n"}  # fmt: skip
GET = "def get_config():\n    return 1\nx\n"
OF_CUDA = "def get_config():\n    return 'cuda'\nx\n"
CONFIGURATIONS = {"main.py": "from configs.base import get\nx()\n", "configs/base.py": GET,
                  "configs/ve/one.py": f"from configs.base import get\n{GET}", "configs/ve/alone.py": GET}  # fmt: skip

TWO_PACKAGES = {"setup.py": "from setuptools import setup\nsetup(py_modules=['cm', 'metrics'])\n",
                "cm/__init__.py": "", "metrics/__init__.py": "", "cm/util.py": "", "metrics/fid.py": "",
                "cm/net.py": "from cm import util\nx()\n",
                "scripts/train.py": "from cm import net\nfrom metrics import fid\nx()\n"}  # fmt: skip


@pytest.mark.parametrize(
    ("files", "path", "line", "place"),
    [
        # scripts
        ({"train.py": "import torch\nx()\n"}, "train.py", "from device import DEVICE_TYPE", "device.py"),
        ({"train.py": "import torch\nx()\n", "device.py": ""}, "train.py", "from accelerator import DEVICE_TYPE",
         "accelerator.py"),
        ({"train.py": "from utils import misc\nx()\n", "utils/__init__.py": "", "utils/misc.py": ""}, "train.py",
         "from utils.device import DEVICE_TYPE", "utils/device.py"),
        # A package: beside its helpers, relative or absolute as the file imports.
        ({**PACKAGE, "pkg/models/net.py": "from ..utils import misc\nx()\n"}, "pkg/models/net.py",
         "from ..utils.device import DEVICE_TYPE", "pkg/utils/device.py"),
        ({**PACKAGE, "pkg/models/net.py": "from pkg.utils import misc\nx()\n"}, "pkg/models/net.py",
         "from pkg.utils.device import DEVICE_TYPE", "pkg/utils/device.py"),
        ({**PACKAGE, "pkg/models/net.py": ""}, "train.py",
         "from pkg.utils.device import DEVICE_TYPE", "pkg/utils/device.py"),
        # A file beside it that imports nothing of the package does as the others do.
        ({**PACKAGE, "pkg/models/net.py": "from ..utils import misc\nx()\n"}, "pkg/utils/misc.py",
         "from .device import DEVICE_TYPE", "pkg/utils/device.py"),
        ({**PACKAGE, "pkg/models/net.py": "from pkg.utils import misc\nx()\n"}, "pkg/utils/misc.py",
         "from pkg.utils.device import DEVICE_TYPE", "pkg/utils/device.py"),
        # What an __init__ above it imports must not lead back.
        ({**PACKAGE, "pkg/models/net.py": "from ..utils import misc\nx()\n",
          "pkg/utils/__init__.py": "from ..models.net import Net\n"}, "pkg/models/net.py",
         "from ..device import DEVICE_TYPE", "pkg/device.py"),
        ({**PACKAGE, "pkg/models/net.py": "from ..utils import misc\nx()\n",
          "pkg/utils/__init__.py": "import matplotlib\n"}, "pkg/models/net.py",
         "from ..device import DEVICE_TYPE", "pkg/device.py"),
        # `from pkg.utils import device` is a variable of the project.
        ({**PACKAGE, "pkg/models/net.py": "from ..utils import misc\nx()\n",
          "pkg/utils/__init__.py": "device = None\n"}, "pkg/models/net.py",
         "from ..utils.accelerator import DEVICE_TYPE", "pkg/utils/accelerator.py"),
        # One for a program: what lies in a folder without an __init__, or is named by nobody, finds it too.
        (SCORE, "score/both.py", "from device import DEVICE_TYPE", "device.py"),
        (SCORE, "score/other.py", "from device import DEVICE_TYPE", "device.py"),
        (SCORE, "main.py", "from device import DEVICE_TYPE", "device.py"),
        # A package that all scripts import, but for something else.
        ({"train.py": "from log import say\nx()\n", "log/__init__.py": "", "log/out.py": ""}, "train.py",
         "from device import DEVICE_TYPE", "device.py"),
        ({"train.py": "from net import say\nx()\n", "net/__init__.py": "", "net/out.py": ""}, "train.py",
         "from net.device import DEVICE_TYPE", "net/device.py"),
        ({**LOGGED, "log/__init__.py": "", "log/out.py": ""}, "src/trainer.py", "from device import DEVICE_TYPE",
         "device.py"),
        ({**LOGGED, "log/__init__.py": "", "log/out.py": ""}, "src/train.py", "from device import DEVICE_TYPE",
         "device.py"),
        ({**{name: text.replace("log", "net") for name, text in LOGGED.items()}, "net/__init__.py": ""},
         "src/trainer.py", "from net.device import DEVICE_TYPE", "net/device.py"),
        # Scripts of two folders that find nothing in common have one each.
        ({"a/main.py": "import one\nx()\n", "a/one.py": "", "b/main.py": "import two\nx()\n", "b/two.py": ""},
         "a/main.py", "from device import DEVICE_TYPE", "a/device.py"),
        # A package beside other modules of the program is one folder of it, unless it is installed by itself.
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n"}, "train.py",
         "from device import DEVICE_TYPE", "device.py"),
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n", "setup.py": ""}, "train.py",
         "from flow.device import DEVICE_TYPE", "flow/device.py"),
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n"}, "flow/net.py",
         "from device import DEVICE_TYPE", "device.py"),
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n", "pyproject.toml": "[project]\n"},
         "flow/net.py",
         "from .device import DEVICE_TYPE", "flow/device.py"),
        ({**BESIDE, "train.py": "from flow import net\nx()\n"}, "train.py",
         "from flow.device import DEVICE_TYPE", "flow/device.py"),
        # A test of a package finds what lies in it, whoever runs the test.
        ({"setup.py": "", "net/__init__.py": "", "net/loss.py": "from .size import n\nx()\n", "net/size.py": "",
          "net/run.py": "from .loss import f\nif __name__ == '__main__':\n    f()\n",
          "tests/one/test_loss.py": "import torch\nfrom net.loss import f\nx()\n"},
         "tests/one/test_loss.py", "from net.device import DEVICE_TYPE", "net/device.py"),
        # So does a script beside it, whatever else is started; what takes nothing of the package does not.
        ({**INSTALLED, "setup.py": ""}, "scripts/train.py", "from net.device import DEVICE_TYPE", "net/device.py"),
        ({**INSTALLED, "setup.py": ""}, "scripts/plain.py", "from device import DEVICE_TYPE", "scripts/device.py"),
        (INSTALLED, "scripts/train.py", "from net.device import DEVICE_TYPE", "net/device.py"),
        # They have one module: what lies beside a script is found before all else.
        (SAMPLES, "scripts/one.py", "from device import DEVICE_TYPE", "scripts/device.py"),
        (SAMPLES, "scripts/depth.py", "from device import DEVICE_TYPE", "scripts/device.py"),
        (SAMPLES, "models.py", "from device import DEVICE_TYPE", "device.py"),
        ({**SAMPLES, "scripts/depth.py": ""}, "scripts/one.py", "from device import DEVICE_TYPE", "device.py"),
        ({**SAMPLES, "run.py": "from scripts.one import f\nx()\n"}, "scripts/one.py",
         "from device import DEVICE_TYPE", "device.py"),
        # A module that nobody imports yet is of its package, if that is installed.
        ({**ALONE, "setup.py": ""}, "net/tools/card.py", "from net.device import DEVICE_TYPE", "net/device.py"),
        # So is a module of it that can be started, too: whoever has installed the package imports it.
        ({"pyproject.toml": "[project]\n", "net/__init__.py": "from net.size import n\n", "net/size.py": "n = 1\n",
          "net/guided.py": "import torch\nif __name__ == '__main__':\n    f()\nx()\n"},
         "net/guided.py", "from net.device import DEVICE_TYPE", "net/device.py"),
        # Configurations that a loader reads by their paths, as their neighbours say.
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n", "pyproject.toml": "[project]\n"},
         "train.py", "from flow.device import DEVICE_TYPE", "flow/device.py"),
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n", "setup.cfg": "[options]\n"},
         "train.py", "from flow.device import DEVICE_TYPE", "flow/device.py"),
        # One that lints alone installs nothing.
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n", "pyproject.toml": "[tool.ruff]\n"},
         "train.py", "from device import DEVICE_TYPE", "device.py"),
        ({**BESIDE, "train.py": "import models\nfrom flow import net\nx()\n", "setup.cfg": "[flake8]\n"},
         "train.py", "from device import DEVICE_TYPE", "device.py"),
        (CONFIGURATIONS, "configs/ve/one.py", "from device import DEVICE_TYPE", "device.py"),
        (CONFIGURATIONS, "configs/ve/alone.py", "from device import DEVICE_TYPE", "device.py"),
        # Also where these are the only ones of their folder that speak of CUDA.
        ({**CONFIGURATIONS, "main.py": "from configs.base import get\nx('cuda')\n", "configs/ve/alone.py": OF_CUDA},
         "configs/ve/alone.py", "from device import DEVICE_TYPE", "device.py"),
        # Of several packages that one setup.py installs, each has its own: what lies beside them is not installed.
        (TWO_PACKAGES, "cm/net.py", "from cm.device import DEVICE_TYPE", "cm/device.py"),
        (TWO_PACKAGES, "scripts/train.py", "from cm.device import DEVICE_TYPE", "cm/device.py"),
        # `utils.masking` is a folder of the program, not a part of the file `utils.py` beside the one that imports it.
        ({"run.py": "from layers.net import Net\nx()\n", "layers/net.py": "from utils.masking import Mask\nx()\n",
          "layers/utils.py": "", "utils/masking.py": "", "layers/old.py": "from utils.masking import Mask\n"}, "run.py",
         "from device import DEVICE_TYPE", "device.py"),
        # Of two programs with folders of the same names each has its own.
        (_TWO, "exp/basic.py", "from device import DEVICE_TYPE", "device.py"),
        (_TWO, "more/fed/exp/basic.py", "from device import DEVICE_TYPE", "more/fed/device.py"),
        # A part that is tried by -m is tried from where the program starts.
        (_TRIED, "sub/src/basic.py", "from device import DEVICE_TYPE", "sub/device.py"),
        # A part that a loader reads by its name, and one that only such parts import, find that of the program.
        (_LOADED, "models/film.py", "from utils.device import DEVICE_TYPE", "utils/device.py"),
        (_LOADED, "layers/wave.py", "from utils.device import DEVICE_TYPE", "utils/device.py"),
        # A package below, of which nobody tells from where it is imported, has its own: others start beside it.
        ({**_LOADED, "sub/own/__init__.py": "from .text import f\n", "sub/own/text.py": "w = 'cuda'\nx\n"},
         "sub/own/text.py", "from .device import DEVICE_TYPE", "sub/own/device.py"),
        # Scripts of several folders that all look in one have one there; what tries itself is no script.
        (_OLD, "old/a/train.py", "from device import DEVICE_TYPE", "old/device.py"),
        (_OLD, "old/loss.py", "from device import DEVICE_TYPE", "old/device.py"),
        (_OLD, "old/train.py", "from device import DEVICE_TYPE", "old/device.py"),
        (_TOOLS, "tools/train.py", "from device import DEVICE_TYPE", "device.py"),
        (_TOOLS, "lib/loss.py", '_has_npu = hasattr(torch, "npu") and torch.npu.device_count() > 0', ""),
        # What nobody finds from there keeps the one of its package.
        ({**_TRIED, "tests/run.py": "from sub.src.basic import f\nf()\n"}, "sub/src/basic.py",
         "from .device import DEVICE_TYPE", "sub/src/device.py"),
    ],
)  # fmt: skip
def test_where_it_goes(files: dict[str, str], path: str, line: str, place: str) -> None:
    after, where = taken(files, path)
    assert line in after.splitlines(), after
    assert where == place
    assert "use(DEVICE_TYPE)" in after


#: A program, and scripts in a folder which find nothing of it.
PROGRAM = {"train.py": "import net\nx('cuda')\n", "net.py": "", "tools/one.py": "import torch\nx('cuda')\n",
           "tools/two.py": "import torch\nx('cuda')\n"}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "path", "place"),
    [
        ({}, "tools/one.py", ""),
        ({}, "train.py", "device.py"),
        # Three of them have one, and so has a script that is a program with what lies beside it.
        ({"tools/three.py": "import torch\nx('cuda')\n"}, "tools/one.py", "tools/device.py"),
        ({"tools/two.py": "import one\nx('cuda')\n"}, "tools/one.py", "tools/device.py"),
        # There is no program.
        ({"train.py": "x('cuda')\n"}, "tools/one.py", "tools/device.py"),
    ],
)
def test_a_script_that_finds_nothing_of_a_program_has_the_choice_in_itself(
    more: dict[str, str], path: str, place: str
) -> None:
    after, where = taken({**PROGRAM, **more}, path)
    assert where == place and ("_has_npu = " in after) == (not place)


def test_a_file_that_nobody_imports_takes_the_module_of_the_scripts_beside_it() -> None:
    files = {"src/train.py": "import torch\nx('cuda')\n", "src/more.py": "import train\nx('cuda')\n",
             "src/tried.py": "import torch\n\ndef f(x):\n    return x('cuda')\nx\n"}  # fmt: skip
    assert taken(files, "src/train.py")[1] == taken(files, "src/tried.py")[1] == "src/device.py"
    assert taken({"src/tried.py": files["src/tried.py"]}, "src/tried.py")[1] == ""


@pytest.mark.parametrize(("installed", "place"), [({"setup.py": ""}, "net/device.py"), ({}, "net/a-b/device.py")])
def test_a_folder_in_an_installed_package_takes_its_module(installed: dict[str, str], place: str) -> None:
    files = {"net/__init__.py": "", "net/loss.py": "from net.size import n\nx('cuda')\n", "net/size.py": "",
             "net/a-b/main.py": "import size\nx('cuda')\n", "net/a-b/size.py": "", **installed}  # fmt: skip
    assert taken(files, "net/a-b/main.py")[1] == place


NETWORK = {
    "main.py": "import data\nfrom network.nets import net\nx()\n", "data.py": "",
    "network/__init__.py": "", "network/nets/__init__.py": "",
    "network/nets/net.py": 'import torch\nif __name__ == "__main__":\n    torch.zeros(1, device="cuda")\n',
}  # fmt: skip


def test_a_module_that_is_started_from_its_own_folder_to_try_it_out_stays() -> None:
    """The module of the program lies elsewhere: what ran before would not find it, and gets no copy for that."""
    settings = Settings(style="portable", helper_file=True)
    project = ProjectFacts.join([index_source(text.encode(), each, settings) for each, text in NETWORK.items()])
    data = NETWORK["network/nets/net.py"].encode()
    result = migrate_source(data, "network/nets/net.py", settings, project)
    assert not result.changed and "the project's module cannot be imported here" in result.findings[0].message
    assert taken(NETWORK, "main.py")[1] == "device.py"


@pytest.mark.parametrize("more", ["def f(x):\n    return x.cuda()\n", "where = 'cuda'\n"])
def test_what_others_import_and_is_started_from_its_own_folder_too_chooses_in_itself(more: str) -> None:
    """`python network/nets/net.py` finds no module of the program; one that imports more of that did not start so."""
    files = {**NETWORK, "network/nets/net.py": f"{more}x()\n{NETWORK['network/nets/net.py']}x()\n"}
    after, where = taken(files, "network/nets/net.py")
    assert "from device" not in after and "_has_npu = " in after and not where
    files["network/nets/net.py"] = f"from data import d\n{files['network/nets/net.py']}"
    after, where = taken(files, "network/nets/net.py")
    assert "from device import DEVICE_TYPE" in after and where == "device.py"


def test_an_absolute_import_stands_above_relative_ones() -> None:
    source = "import torch\n\nfrom .net import Net\nfrom .inner import f\nx()\n"
    after, _ = taken({**SCORE, "score/both.py": source, "score/inner.py": ""}, "score/both.py")
    assert after.startswith("import torch\n\nfrom device import DEVICE_TYPE\nfrom .net import Net\nfrom .inner"), after


@pytest.mark.parametrize(
    ("head", "above"),
    [
        # What the next line is about keeps its import.
        ("import torch\n\nimport warnings\nwarnings.filter('x')\n", "import torch\n\n{}\n\nimport warnings\nw"),
        ("import torch\n\nimport warnings\n\nwarnings.filter('x')\n", "import warnings\n\n{}\n\nwarnings.f"),
        ("import warnings\nwarnings.filter('x')\n", "import warnings\n\n{}\n\nwarnings.f"),  # the only one
        # A comment stays with its import.
        ("import torch\nimport os   \n     # the net\n", "     # the net\n\n{}\n"),
        ("import torch\n\n# the net\nfrom net import f\n", "# the net\nfrom net import f\n{}\n"),
        ("import torch\n# settings\na = 1\n", "import torch\n\n{}\n\n# settings\n"),
    ],
)
def test_an_import_parts_nothing_that_belongs_together(head: str, above: str) -> None:
    after, _ = taken({"train.py": f"{head}x()\n", "net.py": ""}, "train.py")
    assert above.format("from device import DEVICE_TYPE") in after, after


@pytest.mark.parametrize(
    ("head", "above"),
    [
        ("import torch\nfrom pkg.net import f\nimport os\n", "import torch\n{}\nfrom pkg.net import f\nimport os\n"),
        ("from pkg.net import f\nimport torch\n\nimport os\n", "{}\nfrom pkg.net import f\nimport torch\n"),
        ("import torch\nimport pkg.net\nimport os\n", "import os\n\n{}\n"),
        # What is done between may be what the module reads.
        ("from pkg.net import f\nimport os\nos.environ['A'] = '0'\nimport torch\n", "import torch\n\n{}\n"),
    ],
)
def test_an_import_stands_with_others_of_its_package(head: str, above: str) -> None:
    files = {"pkg/__init__.py": "", "pkg/net.py": "x()\n", "log.py": "", "train.py": f"{head}x()\n",
             "run.py": "from pkg.net import f\nx()\n", "setup.py": ""}  # fmt: skip
    after, _ = taken(files, "train.py")
    assert above.format("from pkg.device import DEVICE_TYPE") in after, after


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("from .net import f\n", "from ..device import DEVICE_TYPE"),
        ("from ..log import f\nfrom pkg.log import g\n", "from ..device import DEVICE_TYPE"),
        # It goes by dots to what lies beside it alone.
        ("from pkg.log import g\nfrom .net import f\n", "from pkg.device import DEVICE_TYPE"),
        ("import pkg.log\nfrom .net import f\n", "from pkg.device import DEVICE_TYPE"),
    ],
)
def test_the_module_is_named_as_far_as_the_file_goes_by_dots(imports: str, line: str) -> None:
    files = {"setup.py": "", "pkg/__init__.py": "", "pkg/log.py": "y('cuda')\n", "pkg/nets/__init__.py": "",
             "pkg/nets/net.py": "", "pkg/nets/a.py": f"import torch\n{imports}x('cuda')\n"}  # fmt: skip
    assert line in taken(files, "pkg/nets/a.py")[0]


def test_a_project_of_torch_hub_takes_no_plain_name() -> None:
    files = {"train.py": "import torch\ntorch.cuda.synchronize()\nx()\n", "hubconf.py": "from train import x\n"}
    assert taken(files, "train.py")[1] == "accelerator_device.py"
    assert taken({**files, "hubconf.py": "import net\n", "net.py": ""}, "train.py")[1] == "device.py"
    source = "import torch\nfrom .b import c\nx()\n"
    inside = {"net/train.py": source, "net/__init__.py": "", "net/b.py": "", "hubconf.py": ""}
    assert taken(inside, "net/train.py")[1] == "net/device.py"


def in_the_file(source: str, names: str, version: str) -> str:
    """A file for which no second one is written, with its last statement replaced by names."""
    settings = Settings(style="portable", torch_version=version)
    file = File.of("train.py", clean(source).encode())
    work = plan(file.source, file.scan, compile_rules(settings), settings, ProjectFacts())
    last = file.scan.tree.body[-1]
    called = [helper(work, name, group="g", code="NPU156", message="m", at=last) for name in names.split()]
    found = [each for one in called for each in one.found if isinstance(each, Edit)]
    new = f"use({', '.join(each.text for each in called)})"
    found.append(Edit(last.value, "NPU261", "m", new, group="g"))  # type: ignore[attr-defined]
    return apply_edits(work, found).data.decode()


def test_in_the_file_itself_it_asks_before_it_imports() -> None:
    assert in_the_file("import torch\nimport yaml\n\n\nx()\n", "DIST_BACKEND DEVICE_TYPE", "2.4") == clean("""
        import importlib.util
        import os
        import torch
        import yaml

        if importlib.util.find_spec("torch_npu") is not None:
            # The cards that CUDA is shown; CANN reads this once.
            if "CUDA_VISIBLE_DEVICES" in os.environ:
                _shown = os.environ["CUDA_VISIBLE_DEVICES"]
                if _shown[:1].isdigit():
                    os.environ.setdefault("ASCEND_RT_VISIBLE_DEVICES", _shown)
            torch_npu = importlib.import_module("torch_npu")  # it has no stubs

        _has_npu = hasattr(torch, "npu") and torch.npu.device_count() > 0
        #: What torch.distributed uses between its cards.
        DIST_BACKEND = "hccl" if _has_npu else "nccl"
        #: "npu" where there is an NPU, else "cuda", also without any card.
        DEVICE_TYPE = "npu" if _has_npu else "cuda"


        use(DIST_BACKEND, DEVICE_TYPE)
        """)


def test_where_torch_loads_torch_npu_by_itself_the_text_in_a_file_is_short() -> None:
    assert in_the_file("import torch\n\n\nx()\n", "DIST_BACKEND", "2.14") == clean("""
        import torch

        _has_npu = hasattr(torch, "npu") and torch.npu.device_count() > 0
        #: What torch.distributed uses between its cards.
        DIST_BACKEND = "hccl" if _has_npu else "nccl"


        use(DIST_BACKEND)
        """)
    assert "torch_npu = " in in_the_file("import torch\n\n\nx()\n", "profiler", "2.14")


def test_the_name_that_the_owner_gives() -> None:
    after, where = taken({"train.py": "import torch\nx()\n"}, "train.py", helper="devices")
    assert after == "import torch\n\nfrom devices import DEVICE_TYPE\n\nuse(DEVICE_TYPE)\n" and where == "devices.py"


def test_several_names_are_one_statement_in_the_order_of_isort() -> None:
    files = {"train.py": "import os\n\nimport torch\n\nimport zoo\n\nx()\n", "zoo.py": ""}
    names = "device_module DIST_BACKEND device DEVICE_TYPE"
    after, _ = taken(files, "train.py", names, line_length=100)
    one = "from device import DEVICE_TYPE, DIST_BACKEND, device, device_module"
    assert f"import torch\n\nimport zoo\n{one}\n\nuse(" in after
    after, _ = taken(files, "train.py", names, line_length=40)
    taken_apart = "from device import (\n    DEVICE_TYPE,\n    DIST_BACKEND,\n    device,\n    device_module,\n)\n"
    assert taken_apart in after


def test_names_that_a_file_has_get_another() -> None:
    source = "import torch\n\ndef f(device, DEVICE_TYPE):\n    return device\n\nx()\n"
    after, _ = taken({"train.py": source}, "train.py", "device DEVICE_TYPE device_module")
    assert "use(accelerator_device, ACCELERATOR_DEVICE_TYPE, device_module)" in after
    assert "DEVICE_TYPE as ACCELERATOR_DEVICE_TYPE" in after and "device as accelerator_device" in after


@pytest.mark.parametrize(
    "reading",
    [
        "keys = [k for k, v in globals().items() if not k.startswith('_')]",
        "keys = sorted(globals())",
        "def f():\n    return dict(globals())",
        "for name in dir():\n    f(name)",
        "for name in list(vars()):\n    f(name)",
    ],
)
def test_a_file_that_reads_its_own_names_gets_private_ones(reading: str) -> None:
    after, _ = taken({"train.py": f"import torch\n{reading}\nx()\n"}, "train.py", "DEVICE_TYPE device_module")
    assert "from device import DEVICE_TYPE as _DEVICE_TYPE, device_module as _device_module\n" in after
    assert after.endswith("use(_DEVICE_TYPE, _device_module)\n")
    after, _ = taken({"train.py": f"import torch\n_device = 1\n{reading}\nx()\n"}, "train.py", "device")
    assert "from device import device as _accelerator_device\n" in after


@pytest.mark.parametrize(
    "reading",
    [
        "x = globals()['a']",
        "x = globals().get('a')",
        "x = 'a' in globals()",
        "globals().update(options)",
        "def f():\n    return dict(locals())",
        "x = vars(args)",
        "x = dir(torch)",
        "x = net.globals()",
    ],
)
def test_a_file_that_asks_for_one_of_its_names_or_for_others(reading: str) -> None:
    after, _ = taken({"train.py": f"import torch\n{reading}\nx()\n"}, "train.py")
    assert "from device import DEVICE_TYPE\n" in after and after.endswith("use(DEVICE_TYPE)\n")


def test_a_module_that_is_there_is_used_and_what_is_taken_already_keeps_its_name() -> None:
    source = "from pkg.device import DEVICE_TYPE as KIND\nx()\n"
    files = {"train.py": source, "pkg/device.py": OURS, "pkg/__init__.py": ""}
    after, where = taken(files, "train.py", "DEVICE_TYPE device_module")
    assert "use(KIND, device_module)" in after and where == ""
    assert after.startswith("from pkg.device import DEVICE_TYPE as KIND, device_module\n")


_AT, _FLASH = "import torch\nx = torch.zeros(1, device='cuda')\n", "from flash_attn import flash_attn_func\n"
_STARTED = f"{_AT}if __name__ == '__main__':\n    run()\n"


_OLD_TORCH = "import torch\nif torch.__version__.startswith('0'):\n"


@pytest.mark.parametrize(
    ("files", "left"),
    [
        # Who imports it stops, and so does who imports its package.
        ({"net.py": _FLASH + _AT, "train.py": f"import net\n{_AT}", "app.py": _AT}, "net.py train.py"),
        ({"lib/__init__.py": "from .a import f\n", "lib/a.py": _FLASH + _AT, "lib/b.py": _AT,
          "train.py": f"from lib.b import x\n{_AT}", "lib/try.py": _STARTED}, "lib/a.py lib/b.py train.py"),
        ({"net.py": f"try:\n    {_FLASH}except ImportError:\n    flash_attn_func = None\n{_AT}"}, ""),
        ({"net.py": f"def f():\n    {_FLASH}{_AT}"}, ""),
        ({"net.py": f"import flash_attn\n{_AT}", "flash_attn.py": ""}, ""),  # the project's own
        # What a script trains through takes no NPU: nothing else comes to what it alone imports.
        ({"train.py": f"import pytorch_lightning as pl\nimport mod, net\n{_STARTED}    pl.Trainer(gpus=1).fit(m)\n",
          "mod.py": _AT, "net.py": _AT, "sample.py": f"import net\n{_AT}"}, "mod.py train.py"),
        ({"train.py": f"from audiotools import ml\nimport net\n{_STARTED}    ml.Accelerator()\n", "net.py": _AT,
          "setup.py": ""}, "net.py train.py"),
        # What only a branch for another torch imports, and what asks NVIDIA's library as it is loaded.
        ({"net.py": f"{_OLD_TORCH}    from old import f\n", "old.py": _AT, "run.py": f"import net\n{_AT}"},
         "old.py"),
        ({"net.py": f"{_OLD_TORCH}    from old import f\n", "old.py": _AT, "run.py": f"import old\n{_AT}"},
         ""),
        ({"lib/__init__.py": "", "lib/net.py": f"{_OLD_TORCH}    from .old.bn import f\n",
          "lib/old/__init__.py": "from .bn import f\n", "lib/old/bn.py": _AT, "run.py": f"import lib.net\n{_AT}"},
         "lib/old/bn.py"),
        # Old code that nothing else imports, where there is other code for CUDA.
        ({"run.py": _AT, "old/net.py": _AT, "old/run.py": f"import net\n{_AT}"}, "old/net.py old/run.py"),
        ({"run.py": _AT, "exp/net_bak.py": _AT, "backup/net.py": _AT}, "backup/net.py exp/net_bak.py"),
        ({"run.py": f"from old.net import f\n{_AT}", "old/__init__.py": "", "old/net.py": f"from .more import f\n{_AT}",
          "old/more.py": _AT}, ""),
        ({"run.py": "x = 1\n", "old/net.py": _AT}, ""),
        ({"run.py": _AT, "threshold/net.py": _AT, "household.py": _AT, "older/net.py": _AT}, ""),
        ({"run.py": _AT, "lib/__init__.py": "", "lib/deprecated/__init__.py": "", "lib/deprecated/net.py": _AT,
          "setup.py": ""}, ""),  # users import it
        ({"a.py": f"import pynvml\npynvml.nvmlInit()\n{_AT}"}, "a.py"),
        ({"a.py": f"import pynvml\ndef f():\n    pynvml.nvmlInit()\n{_AT}"}, ""),
        ({"train.py": f"from collie.controller.trainer import Trainer\nimport net\n{_STARTED}    Trainer()\n",
          "net.py": _AT}, "net.py train.py"),
        ({"train.py": f"from audiotools import ml\nimport p.net\n{_STARTED}    ml.Accelerator()\n", "p/net.py": _AT,
          "p/__init__.py": "", "setup.py": ""}, "train.py"),  # users import it
        ({"train.py": f"import pytorch_lightning as pl\n{_STARTED}    pl.Trainer(accelerator=npu())\n"}, ""),
        # A package that would be ported by halves is ported whole, with its scripts; one file of many stays.
        ({"lib/__init__.py": "", "lib/a.py": _FLASH + _AT, "lib/b.py": _AT, "setup.py": "",
          "run.py": f"import lib.a\n{_AT}"}, ""),
        ({"lib/__init__.py": "", "lib/a.py": _FLASH + _AT, "lib/b.py": _AT, "lib/c.py": _AT, "setup.py": "",
          "run.py": f"import lib.a\n{_AT}"}, "lib/a.py run.py"),
        ({"train.py": f"import pytorch_lightning as pl\n{_STARTED}    pl.seed_everything(1)\n"}, ""),
    ],
)  # fmt: skip
def test_what_no_program_on_an_npu_comes_to_stays(files: dict[str, str], left: str) -> None:
    settings = Settings(style="portable", helper_file=True)
    project = ProjectFacts.join([index_source(text.encode(), path, settings) for path, text in files.items()])
    results = [migrate_source(text.encode(), path, settings, project) for path, text in files.items()]
    assert " ".join(sorted(each.path for each in results if not each.changed and b"cuda" in each.data)) == left
    told = {each.path for result in results for each in result.findings if "stays as it is" in each.message}
    assert " ".join(sorted(told)) == left


def test_the_module_lies_in_no_package_that_an_npu_cannot_import() -> None:
    files = {"setup.py": "", "lib/__init__.py": _FLASH, "lib/a.py": "x()\n",
             "tools/run.py": "import torch\ndef f():\n    import lib.a\nx()\n"}  # fmt: skip
    text, path = taken(files, "tools/run.py")
    assert "import DEVICE_TYPE" not in text and path == ""


def test_a_notebook_moves_no_module() -> None:
    files = {"main.py": "x = 1\n", "net.py": "x('cuda')\n", "scripts/run.py": "import main, net\nx('cuda')\n",
             "scripts/show.ipynb": "import net\nx('cuda')\n"}  # fmt: skip
    assert taken(files, "scripts/run.py")[1] == "device.py"


def test_a_variable_of_what_is_started_and_stops_stays() -> None:
    env = "import os\nenv = dict(os.environ)\nenv['CUDA_VISIBLE_DEVICES'] = '0'\nrun(f'{here}/train.py', env)\n"
    files = {"train.py": _FLASH + _AT, "tests/test_it.py": env}
    settings = Settings(style="portable", helper_file=True)
    facts = [index_source(text.encode(), path, settings) for path, text in files.items()]
    for known, changed in ((facts, False), (facts[1:], True)):
        result = migrate_source(env.encode(), "tests/test_it.py", settings, ProjectFacts.join(known))
        assert result.changed is changed


PARSER = """\
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=["cpu", "cuda"])
torch.ones(1, device=parser.parse_args().device)
"""


@pytest.mark.parametrize(
    ("torch", "source", "loaded"),
    [
        ("2.4", PARSER, True),
        ("2.5", PARSER, False),  # torch loads torch_npu by itself
        ("2.4", PARSER.replace("--device", "--cuda"), False),
        ("2.4", f"def main():\n{''.join(f'    {line}' for line in PARSER.splitlines(True) if line.strip())}", False),
    ],
)
def test_a_program_that_gets_its_device_as_a_string_loads_the_module(torch: str, source: str, loaded: bool) -> None:
    settings = Settings(style="portable", helper_file=True, torch_version=torch)
    project = ProjectFacts.join([index_source(source.encode(), "train.py", settings)])
    after = migrate_source(source.encode(), "train.py", settings, project).data.decode()
    line = "import torch\n\nfrom device import DEVICE_TYPE  # noqa: F401\n"
    assert (line in after) == loaded, after
    used = used_of_helper(after.encode(), "train.py", settings, project, before=source.encode())
    assert (used is not None) == loaded


@pytest.mark.parametrize(
    ("beside", "loaded"),
    [
        ("import torch\nx = torch.ones(1)\n", True),
        ("import torch\nx = torch.cuda.is_available()\n", False),
        ("from device import DEVICE_TYPE\n", False),
    ],
)
def test_what_a_program_imports_may_load_the_module(beside: str, loaded: bool) -> None:
    files = {"train.py": f"import net\n{PARSER}", "net.py": beside, "device.py": OURS}
    files = files if "device" in beside else {each: text for each, text in files.items() if text != OURS}
    settings = Settings(style="portable", helper_file=True, torch_version="2.4")
    project = ProjectFacts.join([index_source(text.encode(), each, settings) for each, text in files.items()])
    after = migrate_source(files["train.py"].encode(), "train.py", settings, project).data.decode()
    assert ("from device import DEVICE_TYPE  # noqa: F401" in after) == loaded, after


def test_a_check_uses_the_module_that_is_there_and_writes_none() -> None:
    """`check --fix` writes no second file: without the module the choice stands in the file itself."""
    files = {"pkg/__init__.py": "", "pkg/utils/__init__.py": "", "pkg/utils/cards.py": OURS,
             "pkg/new.py": "import torch\nx()\n"}  # fmt: skip
    after, where = taken(files, "pkg/new.py", helper_file=False)
    assert after == "import torch\n\nfrom pkg.utils.cards import DEVICE_TYPE\n\nuse(DEVICE_TYPE)\n" and where == ""
    del files["pkg/utils/cards.py"]
    after, where = taken(files, "pkg/new.py", helper_file=False)
    assert '\nDEVICE_TYPE = "npu" if _has_npu else "cuda"\n' in after and where == ""


def test_a_script_beside_a_module_called_as_their_package_takes_the_module_as_its_neighbours_do() -> None:
    """`python train.py` in net/ finds net/net.py as `net`: `net.common.device` would be looked for in that file."""
    files = {
        "net/__init__.py": "",
        "net/net.py": "import torch\nfrom common.math import f\n\nclass Net:\n    at = torch.device('cuda')\n",
        "net/train.py": "import torch\nfrom common.math import f\nfrom net import Net\n\nf(Net().at, 1)\n",
        "net/common/__init__.py": "",
        "net/common/math.py": "import torch\n\ndef f(at, x):\n    return x.to('cuda')\n",
    }
    text, path = taken(files, "net/train.py")
    assert ("from common.device import DEVICE_TYPE\n" in text, path) == (True, "net/common/device.py")


def test_the_module_is_imported_below_what_sets_the_environment_of_torch() -> None:
    setting = "".join(f"os.environ['{name}'] = '1'\n" for name in ("A", "B", "TORCH_LOGS", "C"))
    files = {"net.py": "x = 1\n", "train.py": f"import os\n{setting}import torch\nimport net\n\ntorch.ones(1)\n"}
    text, _ = taken(files, "train.py")
    assert text.index("import torch\n") < text.index("from device import")
