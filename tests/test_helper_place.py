"""Where npu_port.py goes, and how a file imports it."""

from __future__ import annotations

import pytest

from tests.harness import clean
from transplt.base.settings import Settings
from transplt.edits.helper_file import helper_text
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.flow.helper_place import place_of

WRAPS = "import torch\n\n\ndef wrap(net):\n    return torch.nn.DataParallel(net)\n"
STARTS = "import torch\nnet = torch.nn.DataParallel(net)\n"
GUARD = '\nif __name__ == "__main__":\n    main()\n'
OURS = helper_text(["OneCardDataParallel"])
NOT_THERE = "(inline)"


def project_of(files: dict[str, str]) -> ProjectFacts:
    settings = Settings(helper_file=True)
    return ProjectFacts.join(index_source(clean(text).encode(), path, settings) for path, text in files.items())


def imported(files: dict[str, str], path: str) -> str:
    """The import that a file gets."""
    result = migrate_source(clean(files[path]).encode(), path, Settings(helper_file=True), project_of(files))
    lines = [line for line in result.data.decode().splitlines() if "import npu_port" in line]
    return lines[0] if lines else NOT_THERE


#: Files, and for some of them where the module lies and how it is imported.
LAYOUTS: dict[str, tuple[dict[str, str], dict[str, tuple[str, str]]]] = {
    "a script alone": (
        {"train.py": STARTS},
        {"train.py": ("npu_port.py", "import npu_port")},
    ),
    "a script alone in a folder": (
        {"examples/gan/train.py": WRAPS + GUARD},
        {"examples/gan/train.py": ("examples/gan/npu_port.py", "import npu_port")},
    ),
    "scripts of one folder, and what they import": (
        {
            "train.py": f"from models.net import wrap\n{STARTS}",
            "test.py": f"import models.net\n{STARTS}",
            "models/__init__.py": "",
            "models/net.py": WRAPS,
        },
        {
            "train.py": ("npu_port.py", "import npu_port"),
            "test.py": ("npu_port.py", "import npu_port"),
            "models/net.py": ("npu_port.py", "import npu_port"),
        },
    ),
    "a folder without __init__.py": (
        {"train.py": "from models.net import wrap\nwrap(1)\n", "models/net.py": WRAPS},
        {"models/net.py": ("npu_port.py", "import npu_port")},
    ),
    "files of a package beside a file that nobody imports": (
        {
            "pkg/__init__.py": "",
            "pkg/ops/__init__.py": "from .pool import wrap\n",
            "pkg/ops/pool.py": f"from . import pool_cuda\n{WRAPS}",
            "pkg/ops/alone.py": "import pkg.ops\n",
        },
        {"pkg/ops/pool.py": ("pkg/npu_port.py", "from .. import npu_port")},
    ),
    "a package with a folder that is called as a library of its scripts": (
        {
            "pkg/__init__.py": "from . import gym, nets\n",
            "pkg/gym/__init__.py": "",
            "pkg/nets/__init__.py": "from .net import wrap\n",
            "pkg/nets/net.py": f"import pkg\n{WRAPS}",
            "pkg/gym/env.py": f"import gym\nimport pkg{GUARD}",
            "examples/rl/train.py": "import gym\nimport pkg\nfrom policies import net\npkg.nets.wrap(net)\n",
            "examples/rl/policies.py": "import pkg\nnet = 1\n",
            "examples/text/train.py": "import pkg\npkg.nets.wrap(1)\n",
        },
        {"pkg/nets/net.py": ("pkg/npu_port.py", "from pkg import npu_port")},
    ),
    "a package whose folder the scripts have on their path": (
        {
            "pkg/__init__.py": "",
            "pkg/nets/__init__.py": "from .net import wrap\n",
            "pkg/nets/net.py": WRAPS,
            "examples/train.py": "import sys\nsys.path.append('pkg')\nimport nets\nnets.wrap(1)\n",
        },
        {"pkg/nets/net.py": ("pkg/nets/npu_port.py", "from . import npu_port")},
    ),
    "a file of a package that imports what is compiled": (
        {"pkg/__init__.py": "", "pkg/ops/__init__.py": "", "pkg/ops/pool.py": f"from .._C import pool\n{WRAPS}"},
        {"pkg/ops/pool.py": ("pkg/npu_port.py", "from .. import npu_port")},
    ),
    "a script of a folder that imports its neighbours": (
        {"src/train.py": "import net\nnet.wrap(1)\n", "src/net.py": WRAPS, "README.py": ""},
        {"src/net.py": ("src/npu_port.py", "import npu_port")},
    ),
    "two examples with modules of one name": (
        {
            "a/train.py": "import utils\nutils.wrap(1)\n",
            "a/utils.py": WRAPS,
            "b/train.py": "import utils\nutils.wrap(1)\n",
            "b/utils.py": WRAPS,
        },
        {"a/utils.py": ("a/npu_port.py", "import npu_port"), "b/utils.py": ("b/npu_port.py", "import npu_port")},
    ),
    "tools beside a package": (
        {
            "tools/train.py": f"from pkg.core.net import wrap\n{STARTS}",
            "tools/test.py": f"import pkg\n{STARTS}",
            "pkg/__init__.py": "",
            "pkg/core/__init__.py": "",
            "pkg/core/net.py": WRAPS,
            "pkg/core/full.py": f"from pkg.core.net import wrap\n{WRAPS}",
        },
        {
            "tools/train.py": ("pkg/npu_port.py", "from pkg import npu_port"),
            "tools/test.py": ("pkg/npu_port.py", "from pkg import npu_port"),
            "pkg/core/net.py": ("pkg/npu_port.py", "from pkg import npu_port"),  # as the others name it
            "pkg/core/full.py": ("pkg/npu_port.py", "from pkg import npu_port"),
        },
    ),
    "a package below src": (
        {
            "src/pkg/__init__.py": "from .net import wrap\n",
            "src/pkg/net.py": WRAPS,
            "scripts/train.py": "from pkg import wrap\nwrap(1)\n",
            "setup.py": "from setuptools import setup\nsetup()\n",
        },
        {"src/pkg/net.py": ("src/pkg/npu_port.py", "from . import npu_port")},
    ),
    "a package started as a module": (
        {
            "pkg/__init__.py": "",
            "pkg/train.py": f"from .net import wrap\n{STARTS}{GUARD}",
            "pkg/net.py": WRAPS,
        },
        {
            "pkg/train.py": ("pkg/npu_port.py", "from . import npu_port"),
            "pkg/net.py": ("pkg/npu_port.py", "from . import npu_port"),
        },
    ),
    "a package that all name in full, whatever else its scripts import": (
        {
            "pkg/__init__.py": "",
            "pkg/inference/__init__.py": "",
            "pkg/inference/interfaces.py": f"import numba\n{WRAPS}",
            "pkg/numba/__init__.py": "",
            "recipes/a/train.py": "from pkg.inference.interfaces import wrap\nfrom prepare import prepare\nwrap(1)\n",
            "recipes/a/prepare.py": WRAPS,
            "recipes/a/only_prepare.py": "from prepare import prepare\nprepare()\n",
        },
        {
            "pkg/inference/interfaces.py": ("pkg/npu_port.py", "from .. import npu_port"),
            "recipes/a/prepare.py": ("recipes/a/npu_port.py", "import npu_port"),
        },
    ),
    "a package that a script finds from inside of it": (
        {
            "pkg/__init__.py": "",
            "pkg/net.py": WRAPS,
            "pkg/run.py": f"import net\n{STARTS}",
            "recipes/a/train.py": "from pkg.net import wrap\nfrom prepare import prepare\nwrap(1)\n",
            "recipes/a/prepare.py": "",
        },
        {"pkg/net.py": ("pkg/npu_port.py, npu_port.py", "import npu_port")},
    ),
    "tests are no scripts": (
        {
            "train.py": f"from net import wrap\n{STARTS}",
            "net.py": WRAPS,
            "tests/test_net.py": "from net import wrap\n",
        },
        {"net.py": ("npu_port.py", "import npu_port"), "train.py": ("npu_port.py", "import npu_port")},
    ),
    "modules of a folder that is on the path of scripts elsewhere": (
        {
            "tools/train.py": "import sys\nsys.path.append('.')\nimport torch\nfrom net import wrap\nimport more\n"
            "wrap(1)\nnet = torch.nn.DataParallel(net)\n",
            "net.py": WRAPS,
            "more.py": "",
        },
        {"tools/train.py": ("npu_port.py", "import npu_port"), "net.py": ("npu_port.py", "import npu_port")},
    ),
    "a module at the top is found by whoever has that folder on the path": (
        {"net.py": WRAPS},
        {"net.py": ("npu_port.py", "import npu_port")},
    ),
    "but not where the folder is a package itself": (
        {"__init__.py": "", "net.py": WRAPS},
        {"net.py": ("", NOT_THERE)},
    ),
    "a package that somebody outside imports, and a script in it imports flat": (
        {
            "pkg/__init__.py": "",
            "pkg/net.py": WRAPS,
            "pkg/more.py": WRAPS,
            "pkg/train.py": f"import net\n{STARTS}",
            "tools/train.py": "from pkg.net import wrap\nimport pkg.more\nwrap(1)\n",
        },
        {
            "pkg/train.py": ("pkg/npu_port.py", "import npu_port"),
            "pkg/net.py": ("pkg/npu_port.py, npu_port.py", "import npu_port"),
            "pkg/more.py": ("pkg/npu_port.py", "from . import npu_port"),
        },
    ),
    "a package whose tests import it, and a script in it imports flat": (
        {
            "pkg/__init__.py": "",
            "pkg/net.py": WRAPS,
            "pkg/train.py": f"import net\n{STARTS}",
            "tests/test_net.py": "from pkg.net import wrap\n",
        },
        {
            "pkg/train.py": ("pkg/npu_port.py", "import npu_port"),
            "pkg/net.py": ("pkg/npu_port.py, npu_port.py", "import npu_port"),
        },
    ),
    "a module that is imported with its package or without, as well as it goes": (
        {
            "pkg/__init__.py": "",
            "pkg/net.py": WRAPS,
            "pkg/train.py": f"try:\n    from .net import wrap\nexcept ImportError:\n    from net import wrap\n{STARTS}",
            "demo/show.py": "import pkg.train\n",
        },
        {"pkg/net.py": ("pkg/npu_port.py, npu_port.py", "import npu_port")},
    ),
    "a package with scripts that name it in full": (
        {
            "pkg/__init__.py": "",
            "pkg/net.py": WRAPS,
            "pkg/train.py": f"from pkg.net import wrap\n{STARTS}{GUARD}",
        },
        {
            "pkg/train.py": ("pkg/npu_port.py", "from pkg import npu_port"),
            "pkg/net.py": ("pkg/npu_port.py", "from pkg import npu_port"),
        },
    ),
    "a script of a folder with __init__.py that imports flat, and its test": (
        {
            "scripts/__init__.py": "",
            "scripts/average.py": f"import inputs\n{STARTS}{GUARD}",
            "scripts/inputs.py": "",
            "tests/test_average.py": "from scripts.average import main\n",
        },
        {"scripts/average.py": ("scripts/npu_port.py, npu_port.py", "import npu_port")},
    ),
    "a module of a package that is found by its name alone": (
        {
            "run.py": "import importlib\nimport models.base\nimportlib.import_module(name)\n",
            "models/__init__.py": "",
            "models/base.py": "",
            "models/plugin.py": f"from layers.attention import full\n{WRAPS}",
            "models/other.py": f"import models.base\n{WRAPS}",
            "layers/__init__.py": "",
            "layers/attention.py": "import models.base\n",
            "tools/draw.py": "import layers.attention\nimport neighbour\n",
            "tools/show.py": "import neighbour\n",
            "tools/neighbour.py": "",
        },
        {
            "models/plugin.py": ("models/npu_port.py", "from models import npu_port"),
            "models/other.py": ("models/npu_port.py", "from models import npu_port"),
        },
    ),
    "a package where a folder is on the path of scripts elsewhere": (
        {
            "src/pkg/__init__.py": "from .core import net\n",
            "src/pkg/core/__init__.py": "",
            "src/pkg/core/net.py": WRAPS,
            "src/pkg/tools.py": f"import pkg.core.net\n{WRAPS}{GUARD}",
            "run/one.py": "import sys\nsys.path.append('src/pkg')\nfrom core import net\nnet.wrap(1)\n",
            "run/two.py": "from pkg import net\nnet.wrap(1)\n",
        },
        {
            "src/pkg/core/net.py": ("src/pkg/core/npu_port.py", "from . import npu_port"),
            "src/pkg/tools.py": ("src/pkg/npu_port.py", "from pkg import npu_port"),
        },
    ),
    "files that import one another and nobody starts": (
        {"pkg/__init__.py": "", "pkg/a.py": f"import b\n{WRAPS}", "pkg/b.py": "import a\n"},
        {"pkg/a.py": ("", NOT_THERE)},
    ),
    "nobody says how a module is found": (
        {"models/net.py": WRAPS},
        {"models/net.py": ("", NOT_THERE)},
    ),
    "nobody says how a module of a package is found": (
        {"models/__init__.py": "", "models/net.py": WRAPS, "train.py": "import os\nload(x)\n"},
        {"models/net.py": ("", NOT_THERE)},
    ),
    "modules in some folder that are called as libraries": (
        {
            "pkg/__init__.py": "",
            "pkg/net.py": WRAPS,
            "pkg/ops/__init__.py": "",
            "pkg/ops/triton/__init__.py": "",
            "pkg/ops/kernels.py": "import triton\n",
            "pkg/tools/torch.py": "import torch\n",
            "pkg/tools/more.py": "import torch\nimport pkg.net\n",
            "runs/train.py": "import torch, triton, pkg.ops.kernels\nimport pkg.net\nimport pkg.tools.more\n",
        },
        {"pkg/net.py": ("pkg/npu_port.py", "from pkg import npu_port")},
    ),
    "a package that is installed, beside packages of examples and tests": (
        {
            "lib/__init__.py": "",
            "lib/net.py": WRAPS,
            "examples/__init__.py": "",
            "examples/common.py": "import lib.net\n",
            "examples/a/train.py": f"import lib.net, examples.common\n{STARTS}",
            "test/__init__.py": "",
            "test/tools.py": "import lib.net\n",
            "test/test_net.py": "import lib.net\nimport examples.common, test.tools\n",
        },
        {
            "lib/net.py": ("lib/npu_port.py", "from . import npu_port"),
            "examples/a/train.py": ("lib/npu_port.py", "from lib import npu_port"),
        },
    ),
    "two packages that scripts in several folders import": (
        {
            "models/__init__.py": "",
            "models/net.py": WRAPS,
            "tools/__init__.py": "",
            "tools/net.py": WRAPS,
            "runs/train.py": "import models.net, tools.net\n",
            "more/train.py": "import models.net\n",
        },
        {
            "models/net.py": ("npu_port.py", "import npu_port"),
            "tools/net.py": ("npu_port.py", "import npu_port"),
        },
    ),
    "one that is there": (
        {"train.py": STARTS, "npu_port.py": OURS},
        {"train.py": ("npu_port.py", "import npu_port")},
    ),
    "one that is there, and used": (
        {
            "pkg/__init__.py": "",
            "pkg/npu_port.py": OURS,
            "pkg/a.py": "from . import npu_port\n",
            "pkg/b.py": WRAPS,
            "train.py": "import pkg.a\nimport pkg.b\n",
        },
        {"pkg/b.py": ("pkg/npu_port.py", "from . import npu_port")},
    ),
    "a module of the project's own has the name": (
        {"train.py": STARTS, "npu_port.py": "x = 1\n"},
        {"train.py": ("npu_port_1.py", "import npu_port_1")},
    ),
    "a package of the project's own has the name, and a module the next": (
        {"train.py": STARTS, "lib/npu_port/__init__.py": "", "npu_port_1.py": ""},
        {"train.py": ("npu_port_2.py", "import npu_port_2")},
    ),
}
CASES = [(name, path) for name, (_, wanted) in LAYOUTS.items() for path in wanted]


@pytest.mark.parametrize(("name", "path"), CASES, ids=[f"{name}: {path}" for name, path in CASES])
def test_where_it_goes(name: str, path: str) -> None:
    files, wanted = LAYOUTS[name]
    where, line = wanted[path]
    found = place_of(project_of(files), path, starts=files[path] == STARTS or GUARD in files[path])
    assert (", ".join(found.paths) if found else "") == where
    assert imported(files, path) == line


def test_one_for_the_scripts_of_several_folders_that_find_a_folder_in_common() -> None:
    files = {
        "a/train.py": "import tools.x\nimport mine.y\n",
        "b/train.py": "import tools.x\n",
        "a/mine/y.py": "import mine.z\n",
        "a/mine/z.py": WRAPS,
        "tools/x.py": "import y\n",
        "y.py": WRAPS,
    }
    place = place_of(project_of(files), "y.py", starts=False)
    assert place is not None and place.paths == ("npu_port.py",)


def test_one_for_each_of_the_scripts_that_find_no_folder_in_common() -> None:
    files = {"a/train.py": "import lib.net\n", "b/train.py": "import net\n", "lib/net.py": WRAPS}
    place = place_of(project_of(files), "lib/net.py", starts=False)
    assert place is not None and place.paths == ("a/npu_port.py", "b/npu_port.py")


def test_the_script_that_was_named_has_its_own_beside_it() -> None:
    place = place_of(project_of({"models/net.py": WRAPS}), "models/net.py", starts=False, entry="models/net.py")
    assert place is not None and place.paths == ("models/npu_port.py",)


def test_what_it_has_is_known() -> None:
    place = place_of(project_of({"train.py": STARTS, "npu_port.py": OURS}), "train.py", starts=True)
    assert place is not None and place.there == ("OneCardDataParallel",)
