"""Which files stand aside: by the imports, the words of training and the names of a project's files."""

from __future__ import annotations

import pytest

from transplt import migrate_source
from transplt.base.settings import Settings
from transplt.engine import engine
from transplt.engine.engine import index_source, join_facts
from transplt.engine.files.python_in import other_facts
from transplt.flow.entry_points import Aside
from transplt.flow.entry_text import Entry, entry_of, scripts_started

TRAIN = "import models\nloss.backward()\n"
GUARD = "if __name__ == '__main__':\n    main()\n"


def aside(files: dict[str, str], *other: str) -> Aside:
    """What stands aside of a project of these files; `other` are the path and the text of one that is not Python."""
    settings = Settings()
    facts = [index_source(text.encode(), path, settings) for path, text in files.items()]
    more = other_facts(other[1].encode(), other[0], settings) if other else None
    return join_facts([*facts, more] if more is not None else facts, settings).aside


def of(files: dict[str, str]) -> set[str]:
    """The Python files that stand aside."""
    held = aside(files)
    return {path for path in files if held.holds(path)}


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        ("import os, sys\nimport torch.nn as nn\n", ()),
        ("import lib.a as a, b\n", ("b", "lib.a")),
        ("from lib import x as y, z\n", ("lib", "lib.x", "lib.z")),
        ("from lib import (  # why\n    x,\n    y as z,\n)\n", ("lib", "lib.x", "lib.y")),
        ("from . import x\n", ("pk.sub", "pk.sub.x")),
        ("from ..core import y\n", ("pk.core", "pk.core.y")),
        ("from lib import *\n", ("lib",)),
        ("import late; late.path.insert(0, '.')\nfrom lib import x; x(1, y)\n", ("late", "lib", "lib.x")),
        ("x = 'no import here'\n", ()),
    ],
)
def test_what_a_file_imports(text: str, imports: tuple[str, ...]) -> None:
    assert entry_of(text.encode(), "pk/sub/a.py").imports == imports


@pytest.mark.parametrize(
    ("text", "at_once"),
    [
        ("try:\n    from nets.a import A\nexcept:\n    from .nets.a import A\n", True),
        ("try:\n    from .nets import (A, B)\nexcept ImportError:\n    from pk.nets import (A, B)\n", True),
        ("try:\n    import nets\nexcept ImportError:\n    import pk.sub.nets as nets\n", True),
        ("try:\n    from nets import fast\nexcept ImportError:\n    from nets import slow\n", False),
        ("try:\n    import nets.fast as f\nexcept ImportError:\n    import nets.slow as f\n", False),
        ("try:\n    import nets\nexcept ImportError:\n    nets = None\n", False),
        ("try:\n    import _nets as nets\nexcept ImportError:\n    from .nets import nets\n", False),
    ],
)
def test_what_is_imported_one_way_or_the_other_is_imported(text: str, at_once: bool) -> None:
    entry = entry_of(text.encode(), "pk/sub/a.py")
    assert any("nets" in name for name in entry.imports) == at_once


@pytest.mark.parametrize(
    ("text", "called", "branched"),
    [
        ("def f():\n    from late import g\n", ("late", "late.g"), ()),
        ("class A:\n    async def f(self):\n        import late\n", ("late",), ()),
        ("def f(x):\n    if x:\n        import late\n", (), ("late",)),
        ("try:\n    import late\nexcept ImportError:\n    raise Missing\n", (), ("late",)),
        ("if x:\n    y = 1\n\n    # why\n    import late\n", (), ("late",)),
        ("class A:\n    import late\n", (), ()),
        ("def f(opt):\n    if not opt.no_flow:\n        import late\n", ("late",), ()),
        ("def f(opt):\n    if not opt.flow:\n        import late\n", (), ("late",)),
        ("with patch('x'):\n    import late\n", (), ()),
    ],
)
def test_when_a_file_imports(text: str, called: tuple[str, ...], branched: tuple[str, ...]) -> None:
    entry = entry_of(text.encode(), "a.py")
    assert (entry.called, entry.branched) == (called, branched)
    assert bool(entry.imports) == (not called and not branched)


@pytest.mark.parametrize(
    ("text", "guarded"),
    [
        ("try:\n    import late\nexcept ImportError:\n    late = None\n", True),
        ("try:\n    if x:\n        import late\nexcept (OSError, ImportError):\n    pass\nraise Other\n", True),
        ("try:\n    import late\nexcept OSError:\n    raise\nexcept Exception:\n    late = None\n", True),
        ("def f():\n    try:\n        import late\n    except:\n        return None\n", True),
        ("with suppress(ImportError):\n    import late\n", True),
        ("if is_late_available():\n    import late\n", True),
        ("if utils.is_late_available(min_version='2'):\n    import late\n", True),
        ("if importlib.util.find_spec('late') is not None:\n    import late\n", True),
        ("if HAS_LATE and x:\n    import late\n", True),
        ("if is_npu_available:\n    import early\nelse:\n    import late\n", True),
        # who does not go on without it
        ("try:\n    import late\nexcept ImportError:\n    log()\n    raise\n", False),
        ("try:\n    import late\nexcept ImportError:\n    sys.exit(1)\n", False),
        ("try:\n    import late\nexcept OSError:\n    late = None\n", False),
        ("try:\n    pass\nexcept ImportError:\n    import late\n", False),
        ("try:\n    import late\nfinally:\n    done()\n", False),
        ("if not is_late_available():\n    import late\n", False),
        ("if HAS_LATE or x:\n    import late\n", False),
        ("if torch.cuda.is_available():\n    import late\n", False),
        ("if is_cuda_available():\n    import late\n", False),
        ("if x:\n    import early\nelse:\n    import late\n", False),
        ("if is_npu_available:\n    import late\n", False),
    ],
)
def test_what_a_file_goes_on_without(text: str, guarded: bool) -> None:
    assert ("late" in entry_of(text.encode(), "a.py").guarded) == guarded


GUARDED = "try:\n    from .fast import kernel\nexcept ImportError:\n    kernel = None\n"
FAST = "import cupy\nfrom .more import x\n"


@pytest.mark.parametrize(
    ("changed", "never"),
    [
        ({}, {"pk/fast.py", "pk/more.py"}),
        # what lies behind such a file may be loaded by others too
        ({"pk/net.py": "from .more import x\n", "train.py": "import pk.net\nloss.backward()\n"}, {"pk/fast.py"}),
        # two files between the guard and the package
        ({"pk/fast.py": "from .more import x\n", "pk/more.py": "import cupy\n"}, {"pk/fast.py", "pk/more.py"}),
        # a file that trains, or loads modules by name, is no other where it is imported behind a guard
        ({"pk/fast.py": "import cupy\nRegistry()\n"}, {"pk/fast.py"}),
        # a test is no importer that counts
        ({"pk/tests/test_fast.py": "import pk.fast\n"}, {"pk/fast.py", "pk/more.py"}),
        # a guard that raises again, and one that asks for a GPU
        ({"pk/__init__.py": GUARDED.replace("kernel = None", "raise")}, set()),
        ({"pk/__init__.py": "if torch.cuda.is_available():\n    from .fast import kernel\n"}, set()),
        # an importer without a guard besides
        ({"train.py": "import pk\nimport pk.fast\nloss.backward()\n"}, set()),
        ({"train.py": "import pk\nloss.backward()\ndef f():\n    import pk.fast\n"}, set()),
        # what is started itself
        ({"pk/fast.py": FAST + GUARD}, set()),
        # what can be imported without CUDA, and what the project builds under the name of a package
        ({"pk/fast.py": "import lightning\n"}, set()),
        ({"pk/fast.py": "import cupy\n", "cupy.py": ""}, set()),
        ({"pk/fast.py": "def f():\n    import cupy\n"}, set()),
    ],
)
def test_what_an_npu_never_loads(changed: dict[str, str], never: set[str]) -> None:
    files = {"train.py": "import pk\nloss.backward()\n", "pk/__init__.py": GUARDED, "pk/fast.py": FAST}
    files |= {"pk/more.py": "", **changed}
    held = aside(files)
    assert {path for path in files if held.late(path) == "guard"} == never
    assert all(held.holds(path) for path in never)


@pytest.mark.parametrize(
    ("line", "late"),
    [
        ("import pk.fast", ""),
        ("try:\n    import pk.fast\nexcept ImportError:\n    pass", "guard"),
        ("def f():\n    import pk.fast", "called"),
        ("def f():\n    import pk.fast\nimport pk", ""),
        ("def f(x):\n    if x:\n        import pk.fast", "branch"),
    ],
)
def test_when_a_file_is_loaded(line: str, late: str) -> None:
    files = {"train.py": f"loss.backward()\n{line}\n", "pk/__init__.py": "", "pk/fast.py": "import cupy\n"}
    if line.endswith("import pk"):
        files["pk/__init__.py"] = "from . import fast\n"
    assert aside(files).late("pk/fast.py") == late


@pytest.mark.parametrize(
    ("line", "late"), [("from pk import data", ""), ("def f():\n    from pk import data", "called")]
)
def test_a_package_that_its_own_files_alone_import_begins_where_a_user_imports_it(line: str, late: str) -> None:
    files = {"setup.py": "", "pk/__init__.py": f"{line}\n", "pk/data.py": "import pk.model\n", "pk/model.py": ""}
    assert (aside(files).late("pk/data.py"), aside(files).late("pk/__init__.py")) == (late, "")


def test_what_nobody_imports_may_be_loaded_by_name() -> None:
    held = aside({"train.py": "import pk\nloss.backward()\n", "pk/__init__.py": "", "pk/a.py": ""})
    assert held.late("pk/a.py") == ""


@pytest.mark.parametrize(
    ("text", "trains"),
    [
        ("loss.backward()\n", True),
        ("def step():\n    scaler.scale(loss['a']).backward()\n", True),
        ("torch.autograd.backward(losses)\n", True),
        ("class Model:\n    def backward(self):\n        self.loss.backward()\n        self.optimizer.step()\n", True),
        ("class Model:\n    def backward_net(self):\n        if x:\n            self.loss.backward()\n", True),
        ("def backward(loss):\n    loss.backward()\n", True),
        # a function that torch differentiates by, and what binds compiled code
        ("class F(Function):\n    def backward(ctx, g):\n        return _backend.backward(g)\n", False),
        ("class F(Function):\n    def backward(ctx, g):\n        with x:\n            y.backward(g)\n", False),
        ("def pull(g):\n    return grid_cuda.backward(g) + _C.backward(g)\n", False),
        ("class Net(Base):\n    def run(self, g):\n        super().backward(g)\n", False),
        ("raise ValueError('call it after loss.backward()')\n", False),
        ("def f():\n    # loss.backward()\n    return x  # after y.backward()\n", False),
        ('"""\n>>> loss.backward()\n"""\n', False),
        ("losses['a'][\"b\"].sum().backward()  # it's so\n", True),
        ("log('#', x); loss.backward()\n", True),
    ],
)
def test_what_trains(text: str, trains: bool) -> None:
    assert entry_of(text.encode(), "a.py").trains == trains


def test_kernels_that_no_script_reaches_stand_aside() -> None:
    bound = "try:\n    import _grid as _backend\nexcept ImportError:\n    from .backend import _backend\n"
    bound += "class F(Function):\n    def backward(ctx, g):\n        return _backend.backward(g)\n"
    files = {"train.py": TRAIN, "models.py": "", "grid/__init__.py": "from .f import F\n", "grid/f.py": bound}
    assert of({**files, "grid/backend.py": ""}) == {"grid/__init__.py", "grid/f.py", "grid/backend.py"}


def test_what_a_file_is() -> None:
    assert entry_of(b"loss.backward()\n", "a.py") == Entry(trains=True, acts=True)
    assert entry_of(b"trainer = pl.Trainer()\ntrainer.fit(model)\n", "a.py").trains
    assert entry_of(b"m = importlib.import_module(name)\n", "a.py").loads
    assert entry_of(b"args = parser.parse_args()\n", "a.py").starts


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # a tool that nothing imports and that does not train
        ({"tools/train.py": TRAIN, "models.py": "", "tensorrt/segment.py": "import pycuda\n" + GUARD},
         {"tensorrt/segment.py"}),
        # a tool in the folder of the training script, and in a package
        ({"tools/__init__.py": "", "tools/train.py": TRAIN + GUARD, "models.py": "", "tools/to_trt.py": GUARD},
         {"tools/__init__.py", "tools/to_trt.py"}),
        # what is only imported by what stands aside
        ({"src/train.py": TRAIN, "src/models.py": "", "deploy/run.py": "import deploy.net\n" + GUARD,
          "deploy/net.py": ""}, {"deploy/run.py", "deploy/net.py"}),
        # old code and tests by their names, even where they train
        ({"train.py": TRAIN, "models.py": "", "old/train.py": TRAIN, "tests/test_a.py": TRAIN},
         {"old/train.py", "tests/test_a.py"}),
        # a script that starts the one that trains; scripts at the top
        ({"run/main.py": "from engine import fit\n" + GUARD, "engine.py": "loss.backward()\n", "eval.py": GUARD},
         set()),
        # a package is reached as a whole: registries import by name
        ({"train.py": "import lib.build\nloss.backward()\n", "lib/__init__.py": "",
          "lib/build.py": "import importlib\n", "lib/heads/__init__.py": "", "lib/heads/a.py": ""}, set()),
        # what loads modules by name leads anywhere in its package, and is not put aside itself
        ({"cmd/go.py": "import importlib\n" + GUARD, "pk/t.py": "loss.backward()\n"}, set()),
        # what a reached file loads by name lies beside it, or below
        ({"lib/net/rpn.py": "import importlib\n", "lib/net/msg.py": "", "lib/net/sub/a.py": "", "t/train.py":
          "import lib.net.rpn\nloss.backward()\n"}, set()),
        # a file at the top that only defines, and that nothing imports
        ({"train.py": "# import ops\nloss.backward()\n", "ops.py": "import cupy\ndef f():\n    pass\nx = 1\n",
          "hubconf.py": "def net():\n    pass\n"}, {"ops.py"}),
        ({"train.py": TRAIN, "models.py": "import ops\n", "ops.py": "import cupy\n", "run.py": "for x in y: f(x)\n",
          "demo.py": "from a import main\nmain()\n", "app.py": "x = App()\n"}, set()),
        # nothing trains: only names tell
        ({"a/infer.py": GUARD, "b/export.py": GUARD, "docs/conf.py": ""}, {"docs/conf.py"}),
        # a module of the same name beside each script
        ({"a/train.py": "import net\nloss.backward()\n", "a/net.py": "", "b/show.py": "import net\n" + GUARD,
          "b/net.py": ""}, {"b/show.py", "b/net.py"}),
    ],
)  # fmt: skip
def test_what_stands_aside(files: dict[str, str], expected: set[str]) -> None:
    assert of(files) == expected


IDLE = {
    "train.py": "import pk.net\nloss.backward()\n", "pk/__init__.py": "", "pk/net.py": "class Net(Registry): pass\n",
    "pk/data/__init__.py": "from .loader import Loader\n", "pk/data/loader.py": "import apex\n",
    "pk/data/far.py": "from .loader import Loader\n",
}  # fmt: skip
OF_DATA = {"pk/data/__init__.py", "pk/data/loader.py", "pk/data/far.py"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, OF_DATA),
        # who imports it, or a part of it
        ({"train.py": "import pk.net\nimport pk.data\nloss.backward()\n"}, set()),
        ({"pk/net.py": "from .data.far import Loader\n"}, set()),
        # a part that is started, or that another may load: by a name that is worked out, or for what it registers
        ({"pk/data/far.py": f"from .loader import Loader\n{GUARD}"}, set()),
        ({"pk/net.py": "import importlib\nimportlib.import_module(name)\n"}, set()),
        ({"train.py": "import pk.net\nLightningCLI(Net)\nloss.backward()\n"}, set()),
        ({"pk/data/far.py": "from .loader import Loader\n@REGISTRY.register()\nclass A: pass\n"}, set()),
        # a module beside others that are loaded
        ({"pk/other.py": "import apex\n"}, OF_DATA),
    ],
)
def test_a_package_that_nothing_imports_stands_aside(changed: dict[str, str], expected: set[str]) -> None:
    assert of(IDLE | changed) == expected


def test_other_files_go_with_the_python_of_their_folder() -> None:
    held = aside({"tools/train.py": TRAIN, "models.py": "", "tensorrt/segment.py": GUARD})
    assert [held.holds(path) for path in ("tensorrt/src/a.cu", "tensorrt/CMakeLists.txt")] == [True, True]
    assert [held.holds(path) for path in ("Dockerfile", "csrc/a.cu", "tools/run.sh")] == [False, False, False]
    assert [held.holds(path) for path in ("docs/a.md", "tensorrt/README.md", "docs/conf.py")] == [False, False, True]


def test_settings_beside_a_script_that_fetches_data() -> None:
    held = aside({"train.py": TRAIN, "models.py": "", "configs/fetch.py": GUARD, "tools/old/fetch.py": GUARD})
    assert [held.holds(path) for path in ("configs/a.yaml", "conf/b.yaml", "tools/old/c.yaml")] == [False, False, True]


@pytest.mark.parametrize(
    ("default", "branches", "late", "asked"),
    [
        ("'grid'", "elif opt.kind == 'tcnn':\n    import fused as net\n", "other", "--kind tcnn"),
        ("'grid'", "elif opt.kind == 'tcnn':\n    import tinycudann, fused\n", "other", "--kind tcnn"),
        # the default, one that nobody knows, and one of several
        ("'tcnn'", "elif opt.kind == 'tcnn':\n    import fused as net\n", "branch", None),
        ("ask()", "elif opt.kind == 'tcnn':\n    import fused as net\n", "branch", None),
        ("'grid'", "elif opt.kind == 'tcnn':\n    import fused as net\nelif opt.kind == 'b':\n    import fused\n",
         "branch", None),
        ("'grid'", "elif opt.kind == 'tcnn':\n    import fused as net\nimport fused\n", "", None),
        ("'grid'", "elif kind == 'tcnn':\n    import fused as net\n", "branch", None),
    ],
)  # fmt: skip
def test_what_an_option_with_a_text_asks_for(default: str, branches: str, late: str, asked: str | None) -> None:
    option = f"p.add_argument('--kind', default={default})\nopt = p.parse_args()\n"
    text = f"{option}if opt.kind == 'grid':\n    import models as net\n{branches}loss.backward()\n"
    held = aside({"train.py": text, "models.py": "", "fused.py": "import tinycudann\n"})
    assert (held.late("fused.py"), held.chosen.get("fused.py")) == (late, asked)
    assert not held.holds("fused.py")


@pytest.mark.parametrize(
    ("test", "late", "switch"),
    [
        ('h.get("use_cuda_kernel", False)', "other", "use_cuda_kernel"),
        ("self.h.get('fused', False)", "other", "fused"),
        ('h.get("use_cuda_kernel", True)', "branch", None),
        ('h.get("fused", False) or fast', "branch", None),
        ("fused", "branch", None),
    ],
)
def test_what_settings_have_to_ask_for(test: str, late: str, switch: str | None) -> None:
    model = f"def make(h):\n    if {test}:\n        from fused import act\n"
    files = {"train.py": f"import model\n{TRAIN}", "model.py": model, "fused.py": "", "infer.py": GUARD}
    assert (held := aside(files)).late("fused.py") == late
    assert held.chosen.get("fused.py") == switch
    # of the project's own option the words that are typed
    files["infer.py"] = f'parser.add_argument("--{switch}", action="store_true")\n{GUARD}'
    assert aside(files).chosen.get("fused.py") == (switch and f"--{switch}")


def test_a_file_without_its_project_goes_by_its_name() -> None:
    assert not any(each.aside for each in migrate_source("x.cuda()\nimport apex\n").findings)
    assert Aside().holds("old/train.py") and not Aside().holds("tools/a.py")


_FLOW = {
    "train.py": "from models import make\nloss.backward()\n" + GUARD,
    "models/make.py": "from .flow import net\n",
    "models/flow/net.py": "from .ops import corr\n",
    "models/flow/ops/corr.py": "import corr_cuda\n",
    "models/flow/main.py": "import net, losses\nloss.backward()\n" + GUARD,
    "models/flow/losses.py": "",
}


def test_the_program_of_somebody_else_of_which_parts_are_taken() -> None:
    held = aside(_FLOW)
    assert [held.holds(path) for path in ("models/flow/main.py", "models/flow/Dockerfile")] == [True, True]
    kept = ("models/flow/net.py", "models/flow/ops/corr.py", "models/flow/ops/corr.cu", "models/run.sh", "Dockerfile")
    assert not any(map(held.holds, kept))


@pytest.mark.parametrize(
    "main",
    [
        "from models.flow import net\nloss.backward()\n" + GUARD,  # by the names of the project
        "import net, train\nloss.backward()\n" + GUARD,  # it takes something of the project
        "import net\nloss.backward()\n",  # nothing says that it is started
        "import net\n" + GUARD,  # it does not train
    ],
)
def test_a_script_of_the_project_in_a_folder_of_its_own(main: str) -> None:
    assert aside({**_FLOW, "models/flow/main.py": main}).foreign == frozenset()


@pytest.mark.parametrize(
    ("files", "others"),
    [
        ({"tools/eval_net.py": "import metrics\n" + GUARD}, {"tools/eval_net.py", "tools/metrics.py"}),
        ({"demo.py": "import tools.metrics\n"}, {"demo.py", "tools/metrics.py"}),
        ({"gradio_depth.py": "import tools.metrics\nui.launch()\n"}, {"gradio_depth.py", "tools/metrics.py"}),
        ({"main_depth.py": "import tools.metrics\nlearn()\n"}, set()),  # it may train by means of a library
        ({"gradio_depth.py": "import tools.metrics\nimport models\nloss.backward()\n"}, set()),
        ({"tools/eval_net.py": "import metrics\nloss.backward()\n" + GUARD}, set()),  # it trains
        ({"tools/check.py": "import metrics\nimport models\n" + GUARD, "go.py": "import tools.metrics\n"}, set()),
    ],
)
def test_what_scripts_load_that_do_not_train(files: dict[str, str], others: set[str]) -> None:
    held = aside({"tools/train.py": TRAIN, "models.py": "", "tools/metrics.py": "import numba.cuda\n", **files})
    assert held.others == others - held.python


@pytest.mark.parametrize(
    ("package", "copy", "others"),
    [
        ("depth", "mmcv", {"show.py", "depth/mmcv/runner.py"}),
        # a folder of the project's own, and a library that is the project
        ("depth", "net", set()),
        ("src", "mmcv", set()),
    ],
)
def test_what_trains_in_a_copy_of_a_library(package: str, copy: str, others: set[str]) -> None:
    files = {"show.py": f"import {package}.{copy}.runner\nui.launch()\n", f"{package}/{copy}/runner.py": TRAIN}
    if package != "src":
        files[f"{package}/__init__.py"] = ""
    assert aside({"train.py": TRAIN, "models.py": "", **files}).others == others
    # where nothing else trains, it is the training of the project
    assert aside({**files, "models.py": ""}).others == frozenset()


def test_what_a_loader_by_name_may_load_counts_as_its_own_scripts_do() -> None:
    files = {
        "train.py": TRAIN, "models.py": "", "show.py": "import depth.loader\nui.launch()\n",
        "depth/loader.py": "importlib.import_module(x)\nimport depth.ops\n", "depth/ops.py": "",
        "depth/named.py": "import depth.ops\n",
    }  # fmt: skip
    assert aside(files).others == {"show.py", "depth/loader.py", "depth/ops.py"}
    assert aside({**files, "train.py": f"{TRAIN}import depth.loader\n"}).others == {"show.py"}


def test_an_evaluation_that_training_runs_too() -> None:
    files = {"train.py": "import evaluate\nloss.backward()\n", "evaluate.py": GUARD}
    assert aside(files).others == frozenset()


@pytest.mark.parametrize(
    ("path", "text", "started"),
    [
        ("README.md", "```\npython train.py --data x\n```\n", (("train.py", "--data x"),)),
        (
            "scripts/run.sh",
            "torchrun --nproc_per_node 8 \\\n    ../tools/train.py\npython -m pk.fit\n",
            (("../tools/train.py", ""), ("pk/fit.py", "")),
        ),
        ("run.slurm", "srun python ./main.py\n", (("main.py", ""),)),
        (".github/workflows/a.yml", "  - run: python bench.py\n", (("bench.py", ""),)),
        ("Dockerfile", 'CMD ["python", "serve.py"]\n', (("serve.py", '"]'),)),
        ("README.md", "`./run.sh 2 --a \\\n  --b c`, see\n", (("run.sh", "2 --a --b c"),)),
        ("PRETRAIN.md", "lightning run model \\\n  --node-rank=0 \\\n  pre/fit.py --a\n", (("pre/fit.py", "--a"),)),
        # what starts nothing of the project, and what is somebody else's
        ("README.md", "python -m pip install x\nsee train.py\n", ()),
        ("third_party/x/README.md", "python train.py\n", ()),
        ("a.yaml", "data:\n  - target: lib.data.Coco\n    _target_: 'b.C'\n", (("lib.data.Coco", ""), ("b.C", ""))),
        ("conf/a.yaml", "target: lib\ntargets: lib.data.Coco\n# target: lib.data.Coco\n", ()),
        ("docs/a.md", "python train.py\n", ()),
    ],
)
def test_what_commands_start(path: str, text: str, started: tuple[tuple[str, str], ...]) -> None:
    assert scripts_started(text.encode(), path) == started


@pytest.mark.parametrize(("readme", "foreign"), [("models/flow/README.md", {"models/flow"}), ("README.md", set())])
def test_what_the_document_of_a_copied_program_starts_is_not_the_projects_own(readme: str, foreign: set[str]) -> None:
    name = "main.py" if readme.startswith("models") else "models/flow/main.py"
    assert aside(_FLOW, readme, f"python {name}\n").foreign == foreign


def test_a_program_below_one_that_is_started() -> None:
    program = "loss.backward()\n" + GUARD
    files = {"lab/run.py": program, "lab/other/fit.py": f"from net import ops\n{program}", "lab/other/net/ops.py": "",
             "apart/fit.py": f"import part\n{program}", "apart/part.py": ""}  # fmt: skip
    held = aside(files, "README.md", "python lab/run.py\npython apart/fit.py\n")
    every = (*files, "lab/other/requirements.txt", "lab/requirements.txt")
    others = {"lab/other/fit.py", "lab/other/net/ops.py", "lab/other/requirements.txt"}
    assert {path: held.program(path) for path in others} == dict.fromkeys(others, "lab/other")
    assert not any(held.late(path) == "other" or held.program(path) for path in {*every} - others)


def test_what_nothing_starts_by_its_name_comes_behind() -> None:
    """A program that is started is the project's own, whatever imports parts of it."""
    files = {**_FLOW, "other.py": "import more\nloss.backward()\n" + GUARD, "more.py": ""}
    held = aside(files, "README.md", "python models/flow/main.py\n")
    assert held.foreign == frozenset() and not held.holds("models/flow/Dockerfile")
    unnamed = {path for path in files if held.late(path) == "unnamed"}
    assert unnamed == {"train.py", "models/make.py", "other.py", "more.py"}
    assert not aside(files).unnamed


@pytest.mark.parametrize(
    ("changed", "others"),
    [
        ({}, {"deps/quant/setup.py", "deps/quant/quant/kernel.py", "deps/quant/examples/fit.py"}),
        ({"train.py": "import deps.quant.quant.kernel\nloss.backward()\n"}, set()),  # a script that trains takes of it
        ({"README.md": "python deps/quant/examples/fit.py\n"}, set()),  # nothing else is started
    ],
)
def test_a_project_inside_of_the_project_trains_nothing_of_it(changed: dict[str, str], others: set[str]) -> None:
    files = {
        "train.py": "loss.backward()\n", "deps/quant/setup.py": "setup(name=x)\n", "deps/quant/quant/kernel.py": "",
        "deps/quant/examples/fit.py": "from quant import kernel\nloss.backward()\n" + GUARD,
        "README.md": "python train.py\n", **changed,
    }  # fmt: skip
    readme = files.pop("README.md")
    held = aside(files, "README.md", readme)
    assert {path for path in files if path in held.others} == others - held.python


@pytest.mark.parametrize(
    ("changed", "others"),
    [
        ({}, {"sub/long.py", "sub/net/ops.py", "sub/requirements.txt", "sub/a.sh"}),
        ({"train.py": "from sub.net import ops\nloss.backward()\n" + GUARD}, set()),  # it takes parts of it
        ({"README.md": "cd sub\npython long.py\n"}, set()),  # nothing at the top is started
        ({"sub/long.py": "import math\nloss.backward()\n" + GUARD}, {"sub/requirements.txt", "sub/a.sh"}),  # a script
    ],
)
def test_a_program_of_its_own_beside_the_main_script(changed: dict[str, str], others: set[str]) -> None:
    files = {
        "train.py": "loss.backward()\n" + GUARD, "sub/long.py": "from net import ops\nloss.backward()\n" + GUARD,
        "sub/net/ops.py": "", "README.md": "python train.py\n", **changed,
    }  # fmt: skip
    readme = files.pop("README.md")
    held = aside(files, "README.md", readme)
    every = (*files, "sub/requirements.txt", "sub/a.sh", "requirements.txt")
    assert {path for path in every if held.late(path) == "other" or held.program(path)} == others
    assert bool(held.beside) is ("sub/long.py" in others)


@pytest.mark.parametrize(
    ("readme", "others"),
    [
        ("python lab/train.py\n", {"tools/requirements.txt", "tools/Dockerfile"}),
        ("python lab/train.py\npython tools/fit.py\n", set()),
        ("python lab/train.py\nsrun python clone/tools/fit.py\n", set()),  # from the folder that the clone lies in
        ("", set()),  # nobody says what is started
    ],
)
def test_a_folder_of_which_nothing_is_started(readme: str, others: set[str]) -> None:
    files = {"lab/train.py": "loss.backward()\n" + GUARD, "tools/fit.py": "loss.backward()\n" + GUARD}
    held = aside(files, "README.md", readme)
    every = ("tools/requirements.txt", "tools/Dockerfile", "lab/requirements.txt", "requirements.txt", "docker/a.txt")
    assert {path for path in every if held.late(path) == "other"} == others


@pytest.mark.parametrize(
    ("script", "started", "held"),
    [
        ("scripts/train.sh", "train.py", False),
        ("scripts/plot.sh", "scripts/plot.py", True),
        ("tests/train.sh", "train.py", True),
        ("scripts/train.txt", "train.py", True),
    ],
)
def test_a_script_that_starts_a_training_is_used_by_it(script: str, started: str, held: bool) -> None:
    files = {"train.py": TRAIN, "models.py": "", "scripts/plot.py": "import pandas\n" + GUARD}
    found = aside(files, script, f"python {started} --lr 1\n")
    assert found.holds(script) is held and not found.late(script)


def test_a_script_is_named_from_a_folder_above_its_launcher() -> None:
    files = {"lab/run.py": "loss.backward()\n", "run.py": "f()\n", "other/fit.py": "loss.backward()\n"}
    held = aside(files, "lab/scripts/a/etth1.sh", "for x in 1 2\ndo\n  python -u run.py \\\n    --x $x\ndone\n")
    assert {path for path in files if held.late(path) == "unnamed"} == {"run.py", "other/fit.py"}


def test_what_installs_a_project_is_loaded_by_no_script() -> None:
    files = {"pk/fit.py": "loss.backward()\n", "setup.py": "setup(name=x)\n", "demo.py": GUARD}
    assert [aside(files).late(path) for path in ("setup.py", "demo.py")] == ["", "other"]


def test_a_main_script_that_others_import_is_the_projects_own() -> None:
    files = {**_FLOW, "sweep.py": "from models.flow.main import fit\nloss.backward()\n" + GUARD}
    assert aside(files).foreign == frozenset()


_NETS = {f"nets/{name}.py": f"import torch\nfrom nets.parts import p_{name}\n" for name in "abc"}


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        ({}, {"nets/a.py": "a", "nets/b.py": "b", "nets/c.py": "c"}),
        ({"nets/a.py": "import torch\nimport lib.deep\n", "lib/deep.py": "x = 1\n"},
         {"nets/a.py": "a", "nets/b.py": "b", "nets/c.py": "c", "lib/deep.py": "a"}),
        ({"run.py": "import nets\np.add_argument('--net', default='B')\n" + TRAIN},
         {"nets/a.py": "a", "nets/c.py": "c"}),
        # what somebody imports is no choice; nothing loads by name; the folder loads all of its own
        ({"run.py": "import nets.a\nloss.backward()\n", "load.py": "importlib.import_module(name)\n"}, {}),
        ({"load.py": ""}, {}),
        ({"nets/__init__.py": "importlib.import_module(name)\n"}, {}),
    ],
)  # fmt: skip
def test_one_of_several_that_are_loaded_by_name(changed: dict[str, str], chosen: dict[str, str]) -> None:
    base = {"nets/__init__.py": "", "run.py": "import nets\n" + TRAIN, "load.py": "importlib.import_module(name)\n"}
    said = {path: f"the module {name}" for path, name in chosen.items()}
    assert aside({**base, **_NETS, **changed}).chosen == said


def test_two_that_are_loaded_by_name_are_no_choice() -> None:
    loads = "import nets\nimportlib.import_module(name)\nloss.backward()\n"
    assert aside({"nets/__init__.py": "", "nets/a.py": "x = 1\n", "nets/b.py": "x = 1\n", "run.py": loads}).chosen == {}


def test_a_notebook_stops_no_script_that_trains() -> None:
    assert aside({"run.py": "loss.backward()\n" + GUARD}).late("demo.ipynb") == "other"
    assert aside({"lib.py": "x = 1\n"}).late("train.ipynb") == ""


@pytest.mark.parametrize(
    ("path", "body", "late"),
    [
        ("tools/deploy.py", "model.eval()\n", "other"),
        ("tools/paint.py", "with torch.no_grad():\n    f()\n", "other"),
        ("tools/deploy.py", "model.eval()\nfit_again(model)\n", ""),
        ("tools/deploy.py", "f()\n", ""),
        ("tools/finetune.py", "model.eval()\n", ""),
    ],
)
def test_a_script_that_takes_a_trained_model(path: str, body: str, late: str) -> None:
    files = {"run.py": "def make(): pass\nloss.backward()\n" + GUARD, path: "from run import make\n" + body + GUARD}
    assert aside(files).late(path) == late


@pytest.mark.parametrize(
    ("line", "idle"),
    [
        ("if torch.__version__.startswith('0'):\n    import pk.fast", True),
        ("if torch.__version__ >= '1.0':  # new\n    pass\nelse:\n    import pk.fast", True),
        ("if x:\n    pass\nelif torch.__version__ < '1.8':\n    from pk.fast import f", True),
        (
            "def f():\n    if not version.parse(torch.__version__) >= version.parse('1.8'):\n        import pk.fast",
            True,
        ),
        ("if torch.__version__.startswith('2'):\n    import pk.fast", False),
        ("if torch.__version__ < '1.0':\n    pass\nelse:\n    import pk.fast", False),
        ("if torch.__version__ < '1.0' or x:\n    import pk.fast", False),
        ("if torch.__version__ < '1.0':\n    import pk.fast\nimport pk.fast", False),
        ("if torchvision.__version__ < '0.9':\n    import pk.fast", False),
        ("if torch.__version__ < (\n    '1.0'):\n    import pk.fast", False),
    ],
)
def test_what_another_torch_loads_stands_aside(line: str, idle: bool) -> None:
    files = {
        "train.py": f"import torch\nloss.backward()\n{line}\n",
        "pk/__init__.py": "",
        "pk/fast.py": "import cupy\n",
    }
    assert aside(files).holds("pk/fast.py") == idle


_BUILDER = """\
def get_encoder(kind, dim=3):
    if kind == 'plain':
        return f
    elif kind == 'fast':
        from fast import Fast
        return Fast
    elif kind in ('a', 'b'):
        import other
"""


@pytest.mark.parametrize(
    ("use", "chosen"),
    [
        ("get_encoder('plain')", "kind=fast"),
        ("get_encoder('plain', dim=2), b.get_encoder( 'a' )", "kind=fast"),
        ("def make(kind='plain'):\n    return get_encoder(kind)", "kind=fast"),
        ("def make(kind: str = 'plain'):\n    return get_encoder(kind, 3)", "kind=fast"),
        # somebody asks for it, or may
        ("get_encoder('fast')", ""),
        ("def make(kind='fast'):\n    return get_encoder(kind)", ""),
        ("get_encoder(args.kind)", ""),
        ("get_encoder(kind)", ""),
        ("get_encoder(dim=3, kind='plain')", ""),
        ("get_encoder('plain'), partial(get_encoder, dim=2)", ""),
        ("from encoding import get_encoder as get\nget_encoder('plain')", ""),
        ("pass", ""),
        ("get_encoder('plain')\nimport fast", ""),
    ],
)
def test_what_a_function_loads_for_a_text(use: str, chosen: str) -> None:
    files = {"train.py": f"from encoding import get_encoder\nloss.backward()\n{use}\n", "encoding.py": _BUILDER}
    files |= {"fast/__init__.py": "from .net import Fast\n", "fast/net.py": "", "other.py": ""}
    held = aside({**files, "fast/setup.py": "setup()\n", "setup.py": "setup()\n"})
    assert held.chosen == ({"fast/__init__.py": chosen, "fast/net.py": chosen} if chosen else {})
    never = ("fast/net.py", "fast/setup.py", "fast/kernel.cu")
    assert [held.holds(path) for path in never] == [bool(chosen)] * 3
    assert not any(map(held.holds, ("encoding.py", "setup.py", "train.py")))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("nets = {'dla': get_dla, 'hrnet': get_hr}\nnets[arch]()", "--arch hrnet"),
        ("nets = {\n    'dla_34': get_dla,  # usual\n    'hrnet': get_hr,\n}\nnets[args.arch]()", "--arch hrnet"),
        # the default takes it, or is not in the table; another key, no table, another use
        ("nets = {'dla': get_hr, 'res': get_dla}\nnets[arch]()", None),
        ("nets = {'dlav0': get_dla, 'hrnet': get_hr}\nnets[arch]()", None),
        ("nets = {'dla': get_dla, 'hrnet': get_hr}\nnets[name]()", None),
        ("nets = {'dla': get_dla, 'hrnet': get_hr}\nfor net in nets.values(): net()", None),
        ("nets = {'dla': get_dla, 'hrnet': get_hr}\nnets[arch]()\nfrom hr import Net", "--arch hrnet"),
    ],
)
def test_what_a_table_holds_for_an_option(table: str, words: str | None) -> None:
    models = f"from dla import get_net as get_dla\nfrom hr import get_net as get_hr\n{table}\n"
    train = "import models\nparser.add_argument('--arch', default='dla_34')\nloss.backward()\n"
    files = {"train.py": train, "models.py": models, "dla.py": "", "hr.py": ""}
    held = aside(files)
    assert held.used("hr.py", "get_net") == words
    assert held.used("dla.py", "get_net") is None or "'res': get_dla" in table
    assert held.used("hr.py", "Net") is None or "Net" not in table
    assert aside({**files, "tools.py": "import hr\nloss.backward()\n"}).used("hr.py", "get_net") is None


@pytest.mark.parametrize(
    ("text", "loads"),
    [("x = {'_target_': 'a.B'}", True), ("final_target_logit = target_logit", False), ("import importlib", True)],
)
def test_what_loads_by_a_name(text: str, loads: bool) -> None:
    assert entry_of(text.encode(), "a.py").loads_by_name == loads


@pytest.mark.parametrize(("library", "stands"), [("h5py", True), ("mystery", False)])
def test_a_program_of_another_framework_stands_aside(library: str, stands: bool) -> None:
    files = {"train.py": "import torch\nloss.backward()\n", "show.py": f"import tensorflow, {library}\n{GUARD}"}
    assert aside(files).holds("show.py") == stands


@pytest.mark.parametrize(
    ("settings", "late"),
    [
        ("data:\n  target: lib.coco.Coco\n", {"lib/crop.py": "", "lib/coco.py": ""}),
        ("class_path: lib.coco.Coco\n", {"lib/crop.py": "", "lib/coco.py": ""}),
        ("data: lib.coco.Coco\n", {"lib/crop.py": "other"}),  # no key of a class; coco.py stands aside
    ],
)
def test_what_settings_name_is_trained_with(settings: str, late: dict[str, str]) -> None:
    files = {"main.py": "import importlib\nimport lib.net\nloss.backward()\n", "lib/net.py": "", "lib/crop.py": ""}
    files["lib/coco.py"] = "import lib.crop\n"
    files["scripts/sample.py"] = f"import importlib, lib.crop\nwith no_grad(): f()\n{GUARD}"
    held = aside(files, "configs/coco.yaml", settings)
    assert {path: held.late(path) for path in late} == late
    assert held.holds("lib/coco.py") == ("lib/coco.py" not in late)


@pytest.mark.parametrize(
    ("head", "call", "first"),
    [
        ("for i, x in enumerate(loader):", "show.plot(x)", ("plot(",)),
        ("for i, x in enumerate(loader):", "if i % every == 0:\n            loss = evaluate(x)", ("evaluate(",)),
        ("for i in range(len(loader)):", "if i % (n // 10) == 0:\n            save_images(x)", ("save_images(",)),
        # another counter, one that begins at 1, a remainder that 0 does not have, and what is asked besides
        ("for i, x in enumerate(loader):", "if step % every == 0:\n            evaluate(x)", ()),
        ("for i, x in enumerate(loader, 1):", "if i % every == 0:\n            evaluate(x)", ()),
        ("for i, x in enumerate(loader, start=1):", "if i % every == 0:\n            evaluate(x)", ()),
        ("for i in range(1, n):", "if i % every == 0:\n            evaluate(x)", ()),
        ("for i, x in enumerate(loader):", "if i % every == every - 1:\n            evaluate(x)", ()),
        ("for i, x in enumerate(loader):", "if i % every == 0 and args.show:\n            evaluate(x)", ()),
        ("for i, x in enumerate(loader):", "if args.show:\n            evaluate(x)", ()),
        # behind the loop, and what has another name
        ("for i, x in enumerate(loader):", "pass\n    evaluate(x)", ()),
        ("for i, x in enumerate(loader):", "draw(x)", ()),
    ],
)
def test_what_the_first_step_calls_of_what_runs_between_steps(head: str, call: str, first: tuple[str, ...]) -> None:
    body = f"def work():\n    {head}\n        loss.backward()\n        {call}\n"
    assert entry_of(body.encode(), "train.py").first == first


def test_what_follows_the_steps_of_an_epoch_comes_later() -> None:
    body = "for epoch in range(9):\n    for x in loader:\n        loss.backward()\n    evaluate(x)\n"
    assert entry_of(body.encode(), "train.py").first == ()


@pytest.mark.parametrize(("every", "function"), [("i % 10 == 0", ""), ("i % 10 == 9", "plot()")])
def test_a_function_of_another_file_that_the_first_step_calls(every: str, function: str) -> None:
    files = {
        "train.py": "from show import plot\nfor i, x in enumerate(loader):\n    loss.backward()\n"
                    f"    if {every}:\n        plot(x)\n",
        "show.py": "from torchvision.utils import make_grid\n\ndef plot(x):\n    return make_grid(x, range=(0, 1))\n",
    }  # fmt: skip
    project = join_facts([index_source(text.encode(), path, Settings()) for path, text in files.items()], Settings())
    found = engine.migrate_source(files["show.py"].encode(), "show.py", Settings(), project).findings
    assert [each.detail("function") for each in found if each.open] == [function]
