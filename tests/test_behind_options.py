"""Findings in branches that are off by default say what turns them on, and stop nobody who does not ask for it."""

from __future__ import annotations

import pytest

from transplt import migrate_source
from transplt.base.settings import Settings
from transplt.engine import engine
from transplt.engine.actions.actions import actions_of
from transplt.engine.files.python_in import other_facts

HEAD = """\
import argparse
from dataclasses import dataclass, field
from absl import flags
p = argparse.ArgumentParser()
p.add_argument("--use-adam8", action="store_true")
p.add_argument("--no-fast", dest="fast", action="store_false")
p.add_argument("--opt", default="adam")
p.add_argument("--path")
p.add_argument("--must", required=True)
p.add_argument("--do-train", action="store_true")
p.add_argument("--cuda", action="store_true")
p.add_argument("--use_multi_gpu", action="store_true")
p.add_argument("--evaluate", action="store_true", default=True)
flags.DEFINE_boolean("parallel", False, "multi gpu training")
flags.DEFINE_boolean("usual", True, help="on")
flags.DEFINE_enum("kind", "a", ["a", "b"], "of two")
@dataclass
class Config:
    trt: bool = False
    ngpu: int = field(default=2)
    many: list = field(default_factory=list)
args = p.parse_args()
"""


def option(test: str, *, orelse: bool = False) -> str:
    """The option of an import of pycuda in a branch."""
    body = f"if {test}:\n    pass\nelse:\n    import pycuda\n" if orelse else f"if {test}:\n    import pycuda\n"
    (finding,) = [each for each in migrate_source(HEAD + body).findings if each.open]
    return finding.option


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("args.use_adam8", "--use-adam8"),
        ("args.use_adam8 and ready", "--use-adam8"),
        ("not args.fast", "--no-fast"),
        ("args.opt == 'apex'", "--opt apex"),
        ("args.use_multi_gpu and args.cuda", "--use_multi_gpu"),
        ("FLAGS.parallel", "--parallel"),
        ("FLAGS.kind == 'b'", "--kind b"),
        ("FLAGS.usual", ""),
        ("args.path is not None", "--path"),
        ("args.path", "--path"),
        ("cfg.trt", "trt"),
        ("cfg.train.trt", "trt"),
        ("self.config.engine.trt", "trt"),
        ("args.use_adam8 and cfg.trt", "--use-adam8 and trt"),
        ("args.opt in ('apex', 'lamb')", "--opt apex"),
        ("args.opt.startswith('bnb')", "--opt bnb"),
        ("getattr(args, 'fast8', False)", "fast8"),
        ("not (args.fast or ready)", "--no-fast"),
        ("os.environ.get('DEBUG')", "the environment variable DEBUG"),
        ("os.getenv('DEBUG', '0') == '1'", "the environment variable DEBUG 1"),
        ("env_flag('MACE_PROFILE', False)", "the environment variable MACE_PROFILE"),
        # what may hold
        ("os.environ.get('WORLD_SIZE')", ""),
        ("os.environ.get('LOCAL_RANK')", ""),
        ("os.environ.get('SLURM_PROCID')", ""),
        ("os.environ.get('FAST', True)", ""),
        ("os.environ.get(name)", ""),
        ("args.opt in ('apex', 'adam')", ""),
        ("args.opt.startswith('ad')", ""),
        ("getattr(args, 'fast8', True)", ""),
        ("not (args.fast and ready)", ""),
        # what a program is started for, and the card that it has
        ("args.do_train", ""),
        ("args.cuda", ""),
        ("args.fast", ""),
        ("args.opt == 'adam'", ""),
        ("args.opt != 'sgd'", ""),
        ("args.path is None", ""),
        ("args.must", ""),
        ("args.use_adam8 or ready", ""),
        ("cfg.ngpu", ""),
        ("cfg.many", ""),
        ("cfg.unknown", ""),
        ("ready", ""),
    ],
)
def test_the_option_of_a_branch(test: str, expected: str) -> None:
    assert option(test) == expected


def test_the_other_side_of_a_branch() -> None:
    assert option("args.fast", orelse=True) == "--no-fast"
    assert option("args.use_adam8", orelse=True) == ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(trt=False):\n    if trt:\n        import pycuda\n", "trt="),
        ("def f(*, trt=None):\n    if trt:\n        import pycuda\n", "trt="),
        ("def f(trt):\n    if trt:\n        import pycuda\n", ""),
        ("def f(trt=True):\n    if trt:\n        import pycuda\n", ""),
        ("def f(trt=False):\n    trt = trt or ask()\n    if trt:\n        import pycuda\n", ""),
        ("def f(trt=None):\n    if trt:\n        import pycuda\n        trt = False\n", "trt="),
        ("def f(trt=None):\n    x.f(trt=trt)\n    if trt:\n        import pycuda\n        trt = 1\nf()\n", "trt="),
        ("def f(trt=None):\n    if trt:\n        import pycuda\nf(1)\n", ""),
    ],
)
def test_the_parameter_of_a_function(source: str, expected: str) -> None:
    (finding,) = [each for each in migrate_source(source).findings if each.open]
    assert finding.option == expected


@pytest.mark.parametrize(
    ("source", "blocks"),
    [
        ("import pycuda\n", "import"),
        ("def f():\n    import pycuda\n", "first step"),
        ("def f():\n    import pycuda\nimport pycuda.driver\n", "import"),
        ("def f(trt=False):\n    if trt:\n        import pycuda\n", "later"),
        ("def f(kind):\n    if kind == 'trt':\n        import pycuda\n", "later"),
        ("def f(kind):\n    if kind == 'trt':\n        import pycuda\n    import pycuda.driver\n", "first step"),
        ("if KIND == 'trt':\n    import pycuda\n", "import"),
        ("try:\n    import pycuda\nexcept ImportError:\n    if not BUILDING:\n        raise\n", "import"),
    ],
)
def test_what_an_import_stops(source: str, blocks: str) -> None:
    assert [action.blocks for action in actions_of(migrate_source(source).findings)] == [blocks]


@pytest.mark.parametrize(
    ("body", "option"),
    [
        ("if resume:\n        resume = False\n        import pycuda\n", "resume="),
        ("if resume:\n        import pycuda\n", "resume="),
        ("resume = find()\n    if resume:\n        import pycuda\n", ""),
        ("for x in xs:\n        if resume:\n            import pycuda\n        resume = x\n", ""),
    ],
)
def test_a_parameter_that_is_bound_again_further_down(body: str, option: str) -> None:
    source = f"import torch\ndef train(xs, resume=None):\n    {body}"
    (finding,) = [each for each in migrate_source(source).findings if each.open and each.api == "pycuda"]
    assert finding.option == option


@pytest.mark.parametrize(
    ("test", "option"),
    [
        ("config.num_gpus > 1", "num_gpus > 1"),
        ("args.ngpus_per_node > 1", ""),
        ("cfg.train.n_gpu > 1", "n_gpu > 1"),
        ("torch.cuda.device_count() > 1", ""),  # all that there are
        ("config.num_gpus > 0", ""),
        ("self.num_gpus > 1", ""),
        ("config.num_layers > 1", ""),
    ],
)
def test_a_second_card_is_asked_for(test: str, option: str) -> None:
    source = f"import torch\ndef wrap(self, config, args, cfg):\n    if {test}:\n        import pycuda\n"
    (finding,) = [each for each in migrate_source(source).findings if each.open and each.api == "pycuda"]
    assert finding.option == option


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('True if dtype == "float8" else False', 'dtype == "float8"'),
        ("True if a else True", ""),
        ("False if a else True", ""),
        ("True", ""),
    ],
)
def test_an_argument_that_a_condition_sets(value: str, expected: str) -> None:
    (finding,) = migrate_source(f"import transformers\nm = load(x, load_in_8bit={value})\n").findings
    assert (finding.code, finding.option) == ("NPU142", expected)


def test_the_message_names_the_option() -> None:
    found = migrate_source(HEAD + "if args.use_adam8:\n    import pycuda\n").findings
    (finding,) = [each for each in found if each.open]
    assert finding.text == "the package pycuda does not support NPUs (only with --use-adam8)"


def options(body: str) -> list[str]:
    """The options of what is open in a script that makes an argument parser."""
    return [each.option for each in migrate_source(HEAD + body).findings if each.open]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # a conditional expression, and what is asked before
        ("x = torch.load('a', map_location='cuda') if args.path else None\n", None),
        ("def f():\n    import pycuda\n\nx = f() if args.use_adam8 else None\n", "--use-adam8"),
        ("def f():\n    import pycuda\n\nx = args.use_adam8 and f()\n", "--use-adam8"),
        ("def f():\n    import pycuda\n\nx = args.fast or f()\n", "--no-fast"),
        # a function that is only called where an option asks for it, and one that such a function calls
        ("def f():\n    import pycuda\n\nif args.use_adam8:\n    f()\n", "--use-adam8"),
        ("def f():\n    import pycuda\n\ndef g():\n    f()\n\nif args.use_adam8:\n    g()\n", "--use-adam8"),
        ("class A:\n    def _f(self):\n        import pycuda\n\n    def g(self, args):\n"
         "        if args.use_adam8:\n            self._f()\n", "--use-adam8"),
        ("class A:\n    def g(self):\n        import pycuda\n\nif args.use_adam8:\n    A().g()\n", "--use-adam8"),
        # an early return, and a table
        ("def f(args):\n    if not args.use_adam8:\n        return None\n    import pycuda\n", "--use-adam8"),
        ("def f(args):\n    if args.evaluate:\n        validate()\n        return\n    import pycuda\n",
         "evaluate=False"),
        ("def f(args):\n    if args.fast:\n        prepare()\n    import pycuda\n", ""),
        ("def f(args):\n    if args.use_adam8:\n        g()\n        return\n    import pycuda\n", ""),
        ("def f():\n    import pycuda\n\ng = {'adam': h, 'adam8': f}[args.opt]\n", "--opt adam8"),
        ("def f():\n    import pycuda\n\ng = {'adam': h, 'adam8': f}.get(args.opt, h)\n", "--opt adam8"),
        # a variable, an attribute of an object and a parameter that hold one
        ("use = args.use_adam8\nif use:\n    import pycuda\n", "--use-adam8"),
        ("class A:\n    def __init__(self, fast8=False):\n        self.fast8 = fast8\n\n    def g(self):\n"
         "        if self.fast8:\n            import pycuda\n", "fast8="),
        ("def f(q=False):\n    if q:\n        import pycuda\n\nf(q=args.use_adam8)\n", "--use-adam8"),
        ("def f(q):\n    if q:\n        import pycuda\n\nf(args.use_adam8)\n", "--use-adam8"),
        ("def f(q=False, **k):\n    if q:\n        import pycuda\n\ndef g(q=False, **k):\n    f(q, **k)\n", "q="),
        # what torch says of CUDA's compiler
        ("from torch.utils.cpp_extension import CUDA_HOME\nif CUDA_HOME is not None:\n    import pycuda\n",
         "CUDA_HOME"),
        # a class that is only made where an option asks for it
        ("class P:\n    pass\n\nif args.use_adam8:\n    p = P()\nif isinstance(x, P):\n    import pycuda\n",
         "--use-adam8"),
        # what keeps an option, and a method that only its own class calls
        ("class A:\n    def __init__(self, args):\n        self.use_adam8 = args.use_adam8\n\n"
         "    def render(self):\n        if self.use_adam8:\n            self.run_adam8()\n\n"
         "    def run_adam8(self):\n        import pycuda\n", "--use-adam8"),
        ("class A:\n    def render(self, args):\n        if args.use_adam8:\n            self.train_step()\n\n"
         "    def train_step(self):\n        import pycuda\n", ""),  # which a framework calls
        # an option that the program sets to something else than what is asked for
        ("if args.path:\n    args.opt = 'sgd'\nif args.opt == 'adam8':\n    import pycuda\n", "--opt adam8"),
        ("if args.path:\n    args.opt = 'adam8'\nif args.opt == 'adam8':\n    import pycuda\n", ""),
        # two functions of autograd that call each other, and the name of one
        ("class F:\n    def backward(c, g):\n        return B.apply(g)\n\n"
         "class B:\n    def forward(c, g):\n        import pycuda\n\n    def backward(c, g):\n        F.apply(g)\n\n"
         "f = F.apply\nif args.use_adam8:\n    f(1)\n", "--use-adam8"),
        ("class F:\n    def forward(c, x):\n        import pycuda\n\nf = F.apply\nf(1)\n", ""),
        ("@autocast(enabled=False)\ndef f():\n    import pycuda\n\nif args.use_adam8:\n    f()\n", "--use-adam8"),
        # what every training gives
        ("def f(labels=None):\n    if labels is not None:\n        import pycuda\n", ""),
        # the import of a part of torch stops nothing
        ("import torch.cuda.profiler as prof\nif args.use_adam8:\n    prof.start()\n", "--use-adam8"),
        ("from torch.cuda import profiler\ndef f():\n    profiler.start()\nif args.use_adam8:\n    f()\n",
         "--use-adam8"),
        ("import torch.cuda.profiler as prof\nif args.use_adam8:\n    prof.start()\nprof.stop()\n", ""),
        # --- who comes to it without an option
        ("def f():\n    import pycuda\n\nif args.use_adam8:\n    f()\nf()\n", ""),
        ("def f():\n    import pycuda\n\nif args.use_adam8:\n    f()\nMAKE = [f]\n", ""),
        ("@register\ndef f():\n    import pycuda\n\nif args.use_adam8:\n    f()\n", ""),
        ("def f():\n    import pycuda\n    f()\n", ""),
        ("def f():\n    import pycuda\ng = {'adam': f, 'other': h}[args.opt]\n", ""),
        ("class A:\n    def g(self, args):\n        import pycuda\n\n    def h(self, args):\n"
         "        if args.use_adam8:\n            self.g(args)\n", ""),
        # what has to be given is no option
        ("def f(path=None):\n    if path is None:\n        raise ValueError(path)\n    import pycuda\n", ""),
        ("def f(path=None):\n    if path is None:\n        print('give one')\n        return\n    import pycuda\n", ""),
        # the program sets it itself, or calls with another value
        ("args.use_adam8 = True\nif args.use_adam8:\n    import pycuda\n", ""),
        ("use = args.use_adam8\nuse = use or ask()\nif use:\n    import pycuda\n", ""),
        ("def f(q=False):\n    if q:\n        import pycuda\n\nf(q=True)\n", ""),
        ("def f(q=False):\n    if q:\n        import pycuda\n\nf(**some)\n", ""),
        ("def f(p, q=False):\n    if q:\n        import pycuda\n\nf(*some, False)\n", ""),
        ("from torch.utils.cpp_extension import CUDA_HOME\nif CUDA_HOME is None:\n    import pycuda\n", ""),
        ("def f(q):\n    if q:\n        import pycuda\n\nf(args.use_adam8)\nf(args.fast)\n", ""),
        ("def f(q):\n    if q:\n        import pycuda\n\nf(args.use_adam8)\nrun(f)\n", ""),
        ("def f(q):\n    if q:\n        import pycuda\n\nf(args.cuda)\n", ""),
        ("def f(q=False):\n    if q:\n        import pycuda\n    f(q=q)\n", ""),
        ("class P:\n    pass\n\np = P()\nif isinstance(x, P):\n    import pycuda\n", ""),
        ("if isinstance(x, Q):\n    import pycuda\n", ""),
        # the default is the option
        ("def f():\n    import pycuda\n\nif args.fast:\n    f()\n", ""),
        ("def f(args):\n    if not args.fast:\n        return None\n    import pycuda\n", ""),
    ],
)  # fmt: skip
def test_what_only_an_option_leads_to(body: str, expected: str | None) -> None:
    found = options(f"{body}if __name__ == '__main__':\n    pass\n")
    assert found[:1] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("flag_of_env('PROFILE', False)", "the environment variable PROFILE"),
        ("flag_of_env('PROFILE', True)", ""),
        ("ask()", ""),
    ],
)
def test_an_attribute_that_an_environment_variable_sets(value: str, expected: str) -> None:
    own = f"class C:\n    def __init__(self):\n        self.profile = {value}\n"
    body = f"{own}def f(config):\n    if config.profile:\n        import pycuda\nf(C())\n"
    assert options(body)[:1] == [expected]
    assert options(f"{own}    def on(self):\n        self.profile = True\n{body}")[:1] == [""]


CALLED = "def f():\n    import pycuda\ndef g(args):\n    if args.four:\n        f()\n"
MODEL_ARGS = "@dataclass\nclass ModelArgs:\n    four: bool = False\n    eight: bool = False\n    on: bool = True\n"
CONFIG = "def config(model_args):\n    if model_args.{}:\n        import pycuda\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"a.py": MODEL_ARGS, "b.py": CONFIG.format("four")}, "four"),
        ({"a.py": MODEL_ARGS, "b.py": CONFIG.format("on")}, ""),
        # two defaults, and none
        ({"a.py": MODEL_ARGS, "c.py": MODEL_ARGS.replace("False", "True"), "b.py": CONFIG.format("four")}, ""),
        ({"a.py": MODEL_ARGS, "b.py": CONFIG.format("six")}, ""),
        # an object that holds no settings
        ({"a.py": MODEL_ARGS, "b.py": CONFIG.format("four").replace("model_args", "model")}, ""),
        # others call the function
        ({"a.py": MODEL_ARGS, "b.py": CALLED}, "four"),
        ({"a.py": MODEL_ARGS + "from b import f\nf()\n", "b.py": CALLED}, ""),
        ({"a.py": MODEL_ARGS + "import b\nb.f()\n", "b.py": CALLED}, ""),
        ({"a.py": MODEL_ARGS + "from b import g\ng()\n", "b.py": CALLED}, "four"),
    ],
)  # fmt: skip
def test_an_option_of_another_file(files: dict[str, str], expected: str) -> None:
    settings = Settings()
    facts = [engine.index_source(text.encode(), path, settings) for path, text in files.items()]
    project = engine.join_facts(facts, settings)
    found = engine.migrate_source(files["b.py"].encode(), "b.py", settings, project).findings
    assert [each.option for each in found if each.open] == [expected]


@pytest.mark.parametrize(
    ("package", "use", "expected"),
    [
        ("bitsandbytes", "if args.use_adam8:\n    bitsandbytes.optim.Adam8bit()\n", "--use-adam8"),
        ("bitsandbytes", "def f():\n    bitsandbytes.run()\nif args.use_adam8:\n    f()\n", ""),  # others may call it
        ("bitsandbytes", "if args.use_adam8:\n    bitsandbytes.a()\nbitsandbytes.b()\n", ""),
        ("cupy", "if args.use_adam8:\n    cupy.a()\n", ""),  # its import fails
    ],
)
def test_a_package_that_loads_stands_behind_what_its_uses_do(package: str, use: str, expected: str) -> None:
    (finding,) = [each for each in migrate_source(f"{HEAD}import {package}\n{use}").findings if each.open]
    assert finding.option == expected


def test_settings_of_another_file_read_through_an_object() -> None:
    """A default of False is "only with" what turns it on, in argparse and in a dataclass alike."""
    settings = Settings()
    config = "from dataclasses import dataclass\n@dataclass\nclass T:\n    compile: bool = False\n"
    source = b"from config import cfg\nif cfg.train.compile:\n    import cupy\n"
    files = [(source, "train.py"), (config.encode(), "config.py")]
    project = engine.join_facts([engine.index_source(*each, settings) for each in files], settings)
    (finding,) = [each for each in engine.migrate_source(source, "train.py", settings, project).findings if each.open]
    assert finding.option == "compile" and [each.blocks for each in actions_of([finding])] == ["later"]


@pytest.mark.parametrize(
    ("test", "configurations", "expected"),
    [
        ("cfg.train.fast", {"configs/a.yaml": "train:\n  fast: false  # slow\n"}, "train.fast"),
        ("self.cfg.train.fast", {"configs/a.yaml": "train:\n  fast: False\n"}, "train.fast"),
        ("cfg.train.opt == 'lion'", {"configs/a.yaml": "train:\n  opt: 'adam'\n  more: 1\n"}, ""),
        ("cfg.train.opt == 'lion'", {"configs/a.yaml": "train:\n  opt: adam\n"}, "train.opt=lion"),
        ("cfg.train.start is not None", {"configs/a.yml": "train:\n  lr: 1\n  start: null\n"}, "train.start="),
        ("cfg.train.fast", {"configs/train/a.yaml": "fast: false\n"}, "train.fast"),  # a group of Hydra
        ("cfg.fast", {"configs/a.yaml": "fast: false\n"}, "fast"),
        ('cfg["train"]["fast"]', {"configs/a.yaml": "train:\n  fast: false\n"}, "train.fast"),
        ('cfg["train"]["fast"]', {"configs/a.yaml": "train:\n  fast: true\n"}, ""),
        ('model["train"]["fast"]', {"configs/a.yaml": "train:\n  fast: false\n"}, ""),
        ('cfg["fast"] or cfg.update({"fast": True})', {"configs/a.yaml": "fast: false\n"}, ""),
        # on, in one file or by a command; a part of a list; another entry
        ("cfg.train.fast", {"configs/a.yaml": "train:\n  fast: true\n"}, ""),
        ("cfg.train.fast", {"a.yaml": "train:\n  fast: false\n", "b.yaml": "train:\n  fast: true\n"}, ""),
        ("cfg.train.fast", {"a.yaml": "train:\n  fast: false\n", "run.sh": "python t.py train.fast=true\n"}, ""),
        ("cfg.train.fast", {"configs/a.yaml": "train:\n  - fast: false\n    fast: false\n"}, ""),
        ("cfg.train.fast", {"configs/a.yaml": "test:\n  fast: false\n"}, ""),
        ("cfg.train.fast", {"configs/a.yaml": "train:\n  fast: ${other}\n"}, ""),
        ("model.train.fast", {"configs/a.yaml": "train:\n  fast: false\n"}, ""),
    ],
)
def test_an_entry_of_a_configuration_in_yaml(test: str, configurations: dict[str, str], expected: str) -> None:
    settings = Settings()
    source = f"import torch\ndef main(self, cfg, model):\n    if {test}:\n        import pycuda\n".encode()
    given = [other_facts(text.encode(), path, settings) for path, text in configurations.items()]
    facts = [engine.index_source(source, "t.py", settings), *(each for each in given if each is not None)]
    project = engine.join_facts(facts, settings)
    (finding,) = [each for each in engine.migrate_source(source, "t.py", settings, project).findings if each.open]
    assert finding.option == expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("self.last", "last="), ("self.last == True", "last=True"), ("not self.last", ""), ("self.other", ""),
    ],
)  # fmt: skip
def test_what_the_analysis_finds_in_a_file_that_speaks_of_no_card(test: str, expected: str) -> None:
    source = (
        "import torch\nclass Net(torch.nn.Module):\n    def __init__(self, other, last=False):\n"
        "        self.last = last\n        self.other = other\n    def forward(self, x):\n"
        f"        if {test}:\n            x = x.contiguous(memory_format=torch.channels_last)\n        return x\n"
    ).encode()
    settings = Settings(analysis=True)
    project = engine.join_facts([engine.index_source(source, "net.py", settings)], settings)
    (finding,) = [each for each in engine.migrate_source(source, "net.py", settings, project).findings if each.open]
    assert (finding.code, finding.option) == ("NPU723", expected)


@pytest.mark.parametrize(
    ("again", "expected"),
    [("None", "mode="), ("'fast'", ""), ("other()", ""), ("0", "")],
)
def test_a_parameter_that_is_set_to_its_default_again(again: str, expected: str) -> None:
    source = f"def f(x, mode=None):\n    if x:\n        mode = {again}\n    if mode is not None:\n"
    source += "        import pycuda\n"
    (finding,) = [each for each in migrate_source(source).findings if each.open]
    assert finding.option == expected


_VERSION = """\
import torch
from packaging import version
from distutils.version import LooseVersion
from tools.env import TORCH_VERSION
from settings import MAJOR as OTHER
MAJOR, MINOR = 1, 2
major = int(torch.__version__.split(".")[0])
minor = int(torch.__version__.split(".")[1])
parts = tuple(int(x) for x in torch.__version__.split(".")[:2])
"""


@pytest.mark.parametrize(
    ("test", "runs"),
    [
        ("torch.__version__ < '1.8'", False),
        ("torch.__version__ >= '2.0'", True),
        ("not torch.__version__ >= '1.8'", False),
        ("major == 0", False),
        ("not (major >= 1 and minor >= 8)", False),
        ("parts < (1, 8)", False),
        ("TORCH_VERSION < (1, 11)", False),
        ("torch.__version__.startswith('1.')", False),
        ("float(torch.__version__[:3]) < 1.8", False),
        ("LooseVersion(torch.__version__) <= LooseVersion('1.7')", False),
        ("version.parse(torch.__version__[:6]) < version.parse('1.11')", False),
        ("list(map(int, torch.__version__.split('.')[:2])) < [1, 3]", False),
        ("major < 2 and ready", False),
        ("any(torch.__version__.startswith(x) for x in ['1.7.', '1.8.'])", False),
        ("not all([torch.__version__ >= each for each in ('1.8', '2.0')])", False),
        # what holds, or is about something else
        ("major < 2 or ready", True),
        ("version.parse(torch.__version__) > version.parse('1.7')", True),
        ("torch.__version__ < wanted", True),
        ("OTHER < 1", True),
        ("any(torch.__version__.startswith(x) for x in ['1.7.', '2.8.'])", True),
        ("any(x.startswith('1') for x in wanted if torch.__version__)", True),
        ("any(ready(x) for x in torch.__version__.split('.'))", True),
        ("MINOR > 3", True),
        ("torchvision.__version__ < '0.9'", True),
        ("int(torch.version.cuda.split('.')[0]) < 9", True),
    ],
)
def test_a_branch_for_another_torch(test: str, runs: bool) -> None:
    source = f"{_VERSION}if {test}:\n    from torch._six import int_classes\n"
    found = [each for each in migrate_source(source, torch_version="2.8").findings if each.code == "NPU514"]
    assert [each.open for each in found] == [runs]
    source = f"{_VERSION}if {test}:\n    import pycuda\n"
    (finding,) = [each for each in migrate_source(source, torch_version="2.8").findings if each.code == "NPU510"]
    assert (finding.option, finding.open) == (("", True) if runs else ("another torch", False))


_GATED = """\
import torch


def usable(x):
    if x.device.type != "cuda":
        return False
    if any(torch.__version__.startswith(v) for v in ["1.7.", "1.8."]):
        return True
    return {otherwise}


def conv(x):
    return _old(x) if usable(x) else x


def _old(x):
    class Gradient:
        def run(self):
            import pycuda
    return Gradient().run()
"""


@pytest.mark.parametrize(("otherwise", "open_"), [("False", False), ("None", False), ("enabled", True)])
def test_what_only_a_question_for_another_torch_lets_run(otherwise: str, open_: bool) -> None:
    """Nothing that newer torch does on CUDA stops or slows a program on an NPU."""
    source = _GATED.format(otherwise=otherwise)
    assert [each.code for each in migrate_source(source).findings if each.open] == ["NPU510"] * open_


YACS = "_C = CN()\n_C.BN = CN()\n_C.BN.KIND = 'plain'  # or apex\n_C.TRT = False\n_C.SIZE = f()\n"


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("cfg.BN.KIND == 'apex'", "BN.KIND=apex"), ("cfg.TRT", "TRT="), ("cfg.BN.KIND == 'plain'", ""),
        ("cfg.SIZE", ""), ("cfg.NN.KIND == 'apex'", ""), ("other.BN.KIND == 'apex'", ""),
    ],
)  # fmt: skip
def test_entries_of_yacs(test: str, expected: str) -> None:
    settings = Settings()
    files = {"config.py": YACS, "build.py": f"def f(cfg, other):\n    if {test}:\n        import pycuda\n"}
    project = engine.join_facts([engine.index_source(t.encode(), p, settings) for p, t in files.items()], settings)
    (found,) = engine.migrate_source(files["build.py"].encode(), "build.py", settings, project).findings
    assert found.option == expected


_CLICK = """\
import click


@click.command()
@click.option("--fused", help="kernels", is_flag=True)
@click.option("--resume", "path", metavar="PKL", type=str)
@click.option("--bench", type=bool, default=True)
@click.option("--amp/--no-amp", default=False)
@click.option("--fast/--slow", default=True)
@click.option("--outdir", required=True)
def main(fused, path, bench, amp, fast, outdir, **kwargs):
    opts = Options(kwargs)
    if {test}:
        import pycuda
"""


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("fused", "--fused"), ("path is not None", "--resume"), ("amp", "--amp"), ("not fast", "--slow"),
        ("opts.fused", "--fused"),
        # what is on, has to be given, or is none
        ("bench", ""), ("fast", ""), ("outdir", ""), ("not fused", ""), ("kwargs", ""),
    ],
)  # fmt: skip
def test_options_of_click(test: str, expected: str) -> None:
    (found,) = [each for each in migrate_source(_CLICK.format(test=test)).findings if each.open]
    assert found.option == expected


_GUIDE = "class Guide:\n    def __init__(self, d, low_memory):\n        if low_memory:\n            import pycuda\n"


@pytest.mark.parametrize(
    ("main", "more", "expected"),
    [
        ("p.add_argument('--low_memory', action='store_true')\n", "", "--low_memory"),
        ("p.add_argument('--low_memory', action='store_true')\n", "Guide(d, args.low_memory)\n", "--low_memory"),
        ("p.add_argument('--low_memory', action='store_true')\nGuide(d, low_memory=args.low_memory)\n",
         "def make(d, low_memory=True):\n    return Guide(d, low_memory)\n", "--low_memory"),
        # another parameter, or one that somebody sets
        ("p.add_argument('--low', action='store_true')\n", "", ""),
        ("p.add_argument('--low_memory', action='store_false')\n", "", ""),
        ("p.add_argument('--low_memory', default='a')\n", "", ""),
        ("p.add_argument('--low_memory', action='store_true')\n", "Guide(d, True)\n", ""),
        ("p.add_argument('--low_memory', action='store_true')\n", "Guide(d, ask())\n", ""),
    ],
)
def test_a_flag_that_is_handed_on_by_its_name(main: str, more: str, expected: str) -> None:
    settings, text = Settings(), (_GUIDE + more).encode()
    files = [((HEAD + "from guide import Guide\n" + main).encode(), "main.py"), (text, "guide.py")]
    project = engine.join_facts([engine.index_source(*each, settings) for each in files], settings)
    left = engine.migrate_source(text, "guide.py", settings, project).findings
    (found,) = [each for each in left if each.open and each.code != "NPU298"]  # nothing here defines args, d and ask
    assert found.option == expected


def _of_another_file(files: dict[str, str]) -> str:
    """The option of the import of pycuda in `tools.py`, a file of a project."""
    settings, text = Settings(), "def export(m):\n    pack(m)\ndef pack(m):\n    import pycuda\n"
    files = {"tools.py": text, "other.py": "", **{name: each + "\n" for name, each in files.items()}}
    project = engine.join_facts([engine.index_source(t.encode(), p, settings) for p, t in files.items()], settings)
    (found,) = engine.migrate_source(text.encode(), "tools.py", settings, project).findings
    return found.option


_ASKS = HEAD + "from tools import export\ndef main(args, model):\n    "


@pytest.mark.parametrize(
    ("main", "expected"),
    [
        ("if args.use_adam8:\n        export(model)", "--use-adam8"),
        ("if ready:\n        pass\n    elif args.use_adam8 and ready:\n        export(model)", "--use-adam8"),
        ("if not self.args.fast:\n        export(model)", "--no-fast"),
        ("if args.opt == 'apex':\n        export(model)", "--opt apex"),
        ("if args.do_train:\n        if cfg.trt:\n            for x in model:\n\n                export(x)", "trt"),
        ("if args.use_adam8:\n        export(model)\n    if cfg.trt:\n        export(model)", "--use-adam8"),
        ("if (args.use_adam8):\n        export(model)", "--use-adam8"),
        ("if (not args.fast) and ready:\n        export(model)", "--no-fast"),
        # what may be met
        ("if (args.use_adam8) or ready:\n        export(model)", ""),
        ("if (args.use_adam8 or ready):\n        export(model)", ""),
        ("export(model)", ""),
        ("if args.use_adam8:\n        pass\n    export(model)", ""),
        ("if args.use_adam8:\n        pass\n    else:\n        export(model)", ""),
        ("if args.use_adam8:\n        export(model)\n    after(export)", ""),
        ("if args.fast:\n        export(model)", ""),
        ("if args.opt == 'adam':\n        export(model)", ""),
        ("if args.do_train:\n        export(model)", ""),
        ("if args.use_adam8 or ready:\n        export(model)", ""),
        ("if args.use_adam8 and ready or model:\n        export(model)", ""),
        ("if args.unknown:\n        export(model)", ""),
        ("if state.use_adam8:\n        export(model)", ""),
        ("# if args.use_adam8:\n    export(model)", ""),
        # an option of the same name, and other ends of lines
        ("log(args.export, '--export', 'export: yes')\n    if args.use_adam8:\n        export(model)", "--use-adam8"),
        ("if args.use_adam8:\r\n        export(model)\r\n", "--use-adam8"),
        ("log(getattr(tools, 'export'))\n    if args.use_adam8:\n        export(model)", ""),
    ],
)
def test_a_function_that_another_file_calls_behind_an_option(main: str, expected: str) -> None:
    assert _of_another_file({"main.py": _ASKS + main}) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("other.py", "from tools import export\nif args.use_adam8:\n    export(1)", "--use-adam8"),
        ("tests/test_tools.py", "from tools import export\nexport(1)", "--use-adam8"),
        ("other.py", "from tools import export\nexport(1)", ""),
        ("other.py", "import tools\ntools.pack(1)", ""),
        ("other.py", "from tools import pack\npack(1)", ""),
        ("other.py", "from tools import export as run\nrun(1)", ""),
    ],
)
def test_a_second_file_that_calls_it(name: str, text: str, expected: str) -> None:
    files = {"main.py": f"{_ASKS}if args.use_adam8:\n        export(model)", name: text}
    assert _of_another_file(files) == expected


@pytest.mark.parametrize(
    ("net", "expected"),
    [
        ("class Sparse:\n    def run(self, m):\n        export(m)", "--use-adam8"),
        ("def Sparse(m):\n    export(m)\nclass Net:\n    pass", "--use-adam8"),
        ("class Sparse:\n    def run(self, m):\n        export(m)\nNETS = [Sparse]", ""),
        ("@register\nclass Sparse:\n    def run(self, m):\n        export(m)", ""),
        ("class Sparse:\n    def run(self, m):\n        export(m)\nclass Net:\n    f = export", ""),
        ("class Net:\n    def run(self, m):\n        export(m)", ""),
    ],
)
def test_what_a_class_uses_that_another_file_makes_behind_an_option(net: str, expected: str) -> None:
    main = f"{HEAD}from net import Sparse\nif args.use_adam8:\n    net = Sparse()\n"
    assert _of_another_file({"net.py": f"from tools import export\n{net}", "main.py": main}) == expected


def test_a_function_that_a_package_hands_on() -> None:
    text = "__all__ = ['export']\ndef export(m):\n    import pycuda\n"
    main = _ASKS.replace("tools", "pkg.utils") + "if args.use_adam8:\n        export(model)\n"
    files = {"pkg/utils/tools.py": text, "pkg/utils/__init__.py": "from .tools import *\n", "pkg/__init__.py": ""}
    settings = Settings()
    for use, expected in ((main, "--use-adam8"), (f"{main}    export(1)\n", "")):
        every = {**files, "main.py": use}
        project = engine.join_facts([engine.index_source(t.encode(), p, settings) for p, t in every.items()], settings)
        (found,) = engine.migrate_source(text.encode(), "pkg/utils/tools.py", settings, project).findings
        assert found.option == expected


GIVEN = HEAD + "p.add_argument('-o', '--occupy', action='store_true')\n"
HANDS = {"a.sh": 'python train.py $1 "$@"\n'}


@pytest.mark.parametrize(
    ("test", "texts", "expected"),
    [
        ("args.use_adam8", {"README.md": "python train.py --path a --use-adam8\n"}, ""),
        ("args.occupy", {"README.md": "python train.py -o\n\n    python train.py \\\n  --path c -o -b 4\n"}, ""),
        ("args.opt == 'apex'", {"run.sh": "torchrun train.py --opt apex\n"}, ""),
        ("args.opt == 'apex'", {"run.sh": "torchrun train.py --opt=apex\n"}, ""),
        ("args.opt == 'apex'", {"README.md": "`./a.sh 2 --opt apex`\n", **HANDS}, ""),
        ("args.opt == 'adam'", {"run.sh": "torchrun train.py --opt apex\n"}, "--opt adam"),
        ("not args.fast", {"run.sh": "python train.py --no-fast\n"}, ""),
        ("args.opt == 'apex'", {"run.sh": "torchrun train.py --opt $OPT\n"}, ""),
        # one of two does, another program, none
        ("args.use_adam8", {"README.md": "python train.py --use-adam8\npython train.py\n"}, "--use-adam8"),
        ("args.use_adam8", {"README.md": "python other.py --use-adam8\npython train.py\n"}, "--use-adam8"),
        ("args.occupy", {"README.md": "python train.py --old; cat -o\n"}, "--occupy"),
        ("args.opt == 'apex'", {"README.md": "`./a.sh 2 --opt apex` or `./a.sh 8`\n", **HANDS}, "--opt apex"),
        ("args.use_adam8", {"README.md": "It has --use-adam8.\n"}, "--use-adam8"),
    ],
)  # fmt: skip
def test_what_every_command_gives_is_met(test: str, texts: dict[str, str], expected: str) -> None:
    source = GIVEN + f"if {test}:\n    import pycuda\n"
    facts = [other_facts(text.encode(), path, Settings()) for path, text in texts.items()]
    facts += [engine.index_source(source.encode(), "train.py", Settings())]
    facts += [engine.index_source(GIVEN.encode(), "other.py", Settings())]
    project = engine.join_facts([each for each in facts if each is not None], Settings())
    result = engine.migrate_source(source.encode(), "train.py", Settings(), project)
    (found,) = [each for each in result.findings if each.open]
    assert found.option == expected
