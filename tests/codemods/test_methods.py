"""`.cuda()` and `.is_cuda` on tensors and modules, called, passed on, and named in a string."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern, reasons
from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.engine.files.python_in import other_facts
from transplt.flow.facts import ProjectFacts


@pattern("P19")
def test_call_without_arguments() -> None:
    check_rewrite(
        """
        import torch
        model = torch.nn.Linear(2, 2).cuda()
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        model = torch.nn.Linear(2, 2).npu()
        """,
        codes_applied=["NPU210", "NPU403"],
    )


@pattern("P20", "P21", "P22")
@pytest.mark.parametrize(
    "arguments",
    ["non_blocking=True", "0", "rank", "gpus[0]", "device=device", "device, True", "*args, **kwargs", "cuda"],
)
def test_arguments_stay(arguments: str) -> None:
    check_rewrite(
        f"""
        import torch
        def put(x, rank, gpus, device, cuda, *args, **kwargs):
            return x.cuda({arguments})
        """,
        f"""
        import torch
        import torch_npu  # noqa: F401
        def put(x, rank, gpus, device, cuda, *args, **kwargs):
            return x.npu({arguments})
        """,
    )


@pattern("P22")
def test_device_from_torch() -> None:
    check_rewrite(
        """
        import torch
        x = x.cuda(torch.cuda.current_device())
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        x = x.npu(torch.npu.current_device())
        """,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x.cuda().cuda(1).sum()", "x.npu().npu(1).sum()"),
        ("[t.cuda() for t in xs]", "[t.npu() for t in xs]"),
        ("{k: v.cuda() for k, v in d.items()}", "{k: v.npu() for k, v in d.items()}"),
        ("f(x)[0].cuda()", "f(x)[0].npu()"),
        ("(x if y else z).cuda()", "(x if y else z).npu()"),
        ("self.model.cuda()", "self.model.npu()"),
        ("x . cuda ( )", "x . npu ( )"),
        ("x.cuda(  # move it\n    0,\n)", "x.npu(  # move it\n    0,\n)"),
        ("apply(lambda t: t.cuda())", "apply(lambda t: t.npu())"),
        ("(y := x.cuda())", "(y := x.npu())"),
    ],
)
def test_wherever_the_call_stands(before: str, after: str) -> None:
    check_rewrite(
        f"import torch\n{before}\n",
        f"import torch\nimport torch_npu  # noqa: F401\n{after}\n",
        codes_applied=["NPU210", "NPU403"],
    )


@pattern("P48")
def test_is_cuda() -> None:
    check_rewrite(
        """
        import torch
        def same(a, b):
            return a.is_cuda and not b[0].is_cuda
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        def same(a, b):
            return a.is_npu and not b[0].is_npu
        """,
        codes_applied=["NPU211", "NPU403"],
    )


# --- passed on, and named in a string --------------------------------------------------------------------------------


def test_unbound_methods_are_names() -> None:
    check_rewrite(
        """
        import torch
        from functools import partial
        from torch import Tensor, nn
        xs = list(map(torch.Tensor.cuda, xs))
        move = partial(Tensor.cuda, non_blocking=True)
        put = nn.Module.cuda
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        from functools import partial
        from torch import Tensor, nn
        xs = list(map(torch.Tensor.npu, xs))
        move = partial(Tensor.npu, non_blocking=True)
        put = nn.Module.npu
        """,
    )


def test_bound_method_passed_on_is_reported() -> None:
    check_noop(
        """
        def later(pool, model):
            return pool.submit(model.cuda)
        """,
        open_codes=["NPU212"],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("getattr(x, 'cuda')()", "getattr(x, 'npu')()"),
        ("getattr(x, 'cuda')(non_blocking=True)", "getattr(x, 'npu')(non_blocking=True)"),
        ("y = getattr(x, 'is_cuda', False)", "y = getattr(x, 'is_npu', False)"),
        ("f = operator.methodcaller('cuda')", "f = operator.methodcaller('npu')"),
        ("if hasattr(x, 'cuda'):\n    x = x.cuda()", "if hasattr(x, 'npu'):\n    x = x.npu()"),
        ('y = hasattr(x, "is_cuda") and x.is_cuda', 'y = hasattr(x, "is_npu") and x.is_npu'),
        ("getattr(torch, 'cuda').synchronize()", "getattr(torch, 'npu').synchronize()"),
    ],
)
def test_methods_named_in_strings(before: str, after: str) -> None:
    check_rewrite(
        f"import torch\nimport operator\n{before}\n",
        f"import torch\nimport torch_npu  # noqa: F401\nimport operator\n{after}\n",
    )


@pytest.mark.parametrize(
    "statement",
    ["y = getattr(args, 'cuda', False)", "y = hasattr(cfg, 'cuda')", "y = getattr(self.args, 'is_cuda')"],
)
def test_settings_named_in_strings_stay(statement: str) -> None:
    check_noop(f"import os\n{statement}\n")


@pytest.mark.parametrize("statement", ["y = hasattr(x, 'cuda')", "y = getattr(x, 'cuda')"])
def test_strings_that_may_name_anything_are_reported(statement: str) -> None:
    result = check_noop(f"import os\n{statement}\n", open_codes=["NPU233"])
    assert result.tokens.manual == 1


# --- torch.cuda as a value -------------------------------------------------------------------------------------------


@pattern("T20")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("device_module = torch.cuda", "device_module = torch.npu"),
        ("y = getattr(torch.cuda, name)()", "y = getattr(torch.npu, name)()"),
        ("y = getattr(torch, device_type, torch.cuda)", "y = getattr(torch, device_type, torch.npu)"),
        (
            "backend = torch.cuda if torch.cuda.is_available() else torch.cpu",
            "backend = torch.npu if torch.npu.is_available() else torch.cpu",
        ),
        ("run(torch.cuda)", "run(torch.npu)"),
        ("c = torch.cuda\nc.synchronize()\nc.empty_cache()", "c = torch.npu\nc.synchronize()\nc.empty_cache()"),
    ],
)
def test_the_module_as_a_value(before: str, after: str) -> None:
    check_rewrite(f"import torch\n{before}\n", f"import torch\nimport torch_npu  # noqa: F401\n{after}\n")


@pattern("T20")
@pytest.mark.parametrize("statement", ["m = getattr(torch, device.type)", "m = torch.get_device_module(d)"])
def test_code_that_asks_for_the_module_stays(statement: str) -> None:
    check_noop(f"import torch\nlimit = use_cuda\n{statement}\n")


def test_what_lacks_behind_an_alias_is_reported() -> None:
    check_rewrite(
        """
        import torch
        c = torch.cuda
        print(c.nccl.version())
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        c = torch.npu
        print(c.nccl.version())
        """,
        open_codes=["NPU501"],
    )


def test_torch_imported_by_a_call() -> None:
    check_rewrite(
        """
        import pytest
        torch = pytest.importorskip("torch")
        assert torch.cuda.device_count() > 1
        """,
        """
        import pytest
        import torch_npu  # noqa: F401
        torch = pytest.importorskip("torch")
        assert torch.npu.device_count() > 1
        """,
    )


# --- data ------------------------------------------------------------------------------------------------------------


@pattern("T7", "T6")
@pytest.mark.parametrize(
    "source",
    [
        "def build(args):\n    if args.cuda:\n        print(args.cuda)\n",
        "def build(opt):\n    return opt.model.cuda_name if not opt.cuda else None\n",
        "class A:\n    def __init__(self, cuda):\n        self.cuda = cuda\n        print(self.cuda)\n",
        "class A:\n    def __init__(self, fn):\n        self.cuda = fn\n        self.cuda(1)\n",
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    cuda: bool = True\nprint(a.cuda)\n",
        "from typing import NamedTuple\nclass A(NamedTuple):\n    cuda: int\ndef f(a):\n    return a.cuda\n",
        "from enum import Enum\nclass K(Enum):\n    CUDA = 1\n    cuda = 2\ndef f():\n    return K.CUDA, K.cuda\n",
        "def run(cuda=True, **kw):\n    return train(cuda=cuda, **kw)\n",
        "cuda = True\nif cuda:\n    print(cuda)\n",
        "x.cuda = 1\ndel x.cuda\n",
        "class A:\n    @property\n    def cuda(self):\n        return 1\ndef f(a):\n    return a.cuda\n",
        "assert cfg.cuda is not None\n",
        "def f(flag):\n    return 1 if flag.cuda else 0\n",
    ],
)
def test_data_called_cuda(source: str) -> None:
    result = check_noop(source)
    assert result.tokens.ignored == result.tokens.found


def test_data_of_another_file() -> None:
    check_noop(
        """
        from state import State
        def f(s):
            return pick(s.cuda)
        """,
        files={"state.py": "class State:\n    def __init__(self):\n        self.cuda = True\n"},
    )


def test_is_cuda_that_the_project_stores() -> None:
    check_noop(
        """
        class Config:
            def __init__(self):
                self.is_cuda = True
            def show(self):
                return self.is_cuda
        def check(x):
            return x.is_cuda
        """,
        open_codes=["NPU217"],
    )


# --- other people's cuda ---------------------------------------------------------------------------------------------


@pattern("T9")
@pytest.mark.parametrize("statement", ["x.is_cuda = flag", "x.is_cuda: bool = flag", "del x.is_cuda", "x.cuda = flag"])
def test_what_is_stored_is_data_and_nothing_is_said_of_it(statement: str) -> None:
    check_noop(f"import torch\n{statement}\n")


def test_cuda_of_another_library() -> None:
    result = check_noop(
        """
        from numba import cuda
        import cupy

        @cuda.jit
        def kernel(x):
            i = cuda.grid(1)

        stream = cupy.cuda.Stream()
        """,
        open_codes=["NPU510"],
    )
    assert reasons(result) == {"the package is reported where this file imports it": 3}
    assert (result.tokens.found, result.tokens.manual) == (4, 1)


@pytest.mark.parametrize(("more", "blocks"), [("", "tidy"), ("import torch\n", "")])
def test_another_framework_stops_nothing_in_a_file_without_torch(more: str, blocks: str) -> None:
    result = migrate(f"import tensorflow as tf\n{more}ok = tf.test.is_built_with_cuda()\n")
    assert [each.blocks for each in result.findings if each.code == "NPU602"] == [blocks]


@pattern("T9")
@pytest.mark.parametrize(
    ("source", "open_codes"),
    [
        ("import cupy as cp\nx = cp.cuda.Device(0)\n", ["NPU510"]),
        ("import cupy as cp\nx = cp.asarray(y)\nz = x.cuda()\n", ["NPU510"]),
        ("from cumm import tensorview as tv\nx = tv.from_numpy(y).cuda()\n", ["NPU510"]),
        ("from cumm import tensorview as tv\nx = tv.from_numpy(y)\nz = x.cuda()\n", ["NPU510"]),
        ("import pycuda.driver as cuda\ncuda.init()\n", ["NPU510"]),
        ("from cuda import cudart\ncudart.cudaMalloc(1)\n", ["NPU510"]),
        ("import jax\nx = jax.cuda.thing()\n", ["NPU602"]),
        ("import paddle\nx = paddle.ones([1]).cuda()\ndef f(y):\n    return y.cuda()\n", ["NPU602"]),
        ("import paddle\nn = paddle.device.cuda.device_count()\n", ["NPU602"]),
        ("import tensorflow as tf\nok = tf.test.is_built_with_cuda()\n", ["NPU602"]),
        ("import chainer\nchainer.cuda.get_device(0).use()\n", ["NPU602"]),
        ("import triton.language as tl\nx = tl.extra.cuda.num_warps()\n", ["NPU512", "NPU564"]),
        ("from polygraphy import cuda\nwith cuda.Stream() as s:\n    pass\n", ["NPU602"]),
        ("import lib\nlib.cuda(x)\n", ["NPU602"]),
        ("from lib import cuda\ncuda(x)\ncuda.x.y()\n", ["NPU602"]),
        ("import pccm\n@pccm.cuda.member_function\ndef f(self): pass\n", ["NPU602"]),
    ],
)
def test_other_libraries_stay(source: str, open_codes: list[str]) -> None:
    result = check_noop(source, open_codes=open_codes)
    assert bool(result.tokens.unknown) is ("NPU602" in open_codes)


def test_a_variable_called_like_a_library() -> None:
    check_rewrite(
        """
        import torch
        def f(tf, cuda):
            return tf.cuda()
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        def f(tf, cuda):
            return tf.npu()
        """,
    )


def test_objects_and_functions_of_the_project() -> None:
    files = {"pkg/models.py": "net = build()\n", "pkg/tools.py": "def cuda(x):\n    return x.cuda()\n"}
    check_rewrite(
        """
        from pkg import tools, models
        from pkg.tools import cuda
        models.net.cuda()
        tools.cuda(1)
        cuda(2)
        """,
        """
        from pkg import tools, models
        from pkg.tools import cuda
        import torch_npu  # noqa: F401
        models.net.npu()
        tools.cuda(1)
        cuda(2)
        """,
        files=files,
    )


def test_torch_through_another_module() -> None:
    check_rewrite(
        "import helpers\nhelpers.torch.cuda.synchronize()\n",
        "import helpers\nimport torch_npu  # noqa: F401\nhelpers.torch.npu.synchronize()\n",
        files={"helpers.py": "import torch\n"},
    )


def test_a_lone_file_is_edited_no_more_than_in_its_project() -> None:
    source = "from state import net\nnet.cuda()\nx.cuda()\n"
    alone = migrate(source).data
    together = migrate(source, files={"state.py": "net = 1\n"}).data
    assert b"net.cuda()" in alone and b"x.npu()" in alone
    assert b"net.npu()" in together and b"x.npu()" in together


def test_a_function_of_a_module_and_a_method_of_an_object_in_it() -> None:
    source = "import torch\n{}import net.layers\n\nnet.layers.cuda()\nnet.layers.thing.{}()\n"
    files = {"net/__init__.py": "", "net/layers.py": "thing = make()\n\n\ndef cuda():\n    pass\n"}
    check_rewrite(source.format("", "cuda"), source.format("import torch_npu  # noqa: F401\n", "npu"), files=files)


FAKE = "class Fake:\n    def __init__(self):\n        self.is_cuda = True\n"


def test_is_cuda_that_a_class_of_another_file_stores() -> None:
    check_rewrite(
        """
        import torch

        def f(x):
            return x.is_cuda
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        def f(x):
            return x.is_npu
        """,
        files={"tests/fake.py": FAKE},
    )


@pytest.mark.parametrize(
    ("source", "left"),
    [
        ("import torch\nfrom fake import Fake\n\ndef f(x):\n    return x.is_cuda\n", ["NPU217"]),
        ("import torch\nfrom fake import Fake\n\nprint(Fake().is_cuda)\n", []),
        ("import torch\nfrom fake import Fake\n\nmade = Fake()\nprint(made.is_cuda)\n", []),
        (
            "import torch\nfrom fake import Fake\n\nclass Other(Fake):\n    def f(self):\n"
            "        return self.is_cuda\n",
            [],
        ),
    ],
)
def test_is_cuda_where_the_class_that_stores_it_is_known(source: str, left: list[str]) -> None:
    check_noop(source, open_codes=left, files={"fake.py": FAKE})


@pattern("P2")
def test_one_of_two_methods_that_is_called() -> None:
    check_rewrite(
        """
        import torch

        def place(a, b, gpu):
            return (a.cuda if gpu else b.cuda)()
        """,
        """
        import torch
        import torch_npu  # noqa: F401

        def place(a, b, gpu):
            return (a.npu if gpu else b.npu)()
        """,
    )


def test_one_of_two_methods_that_is_kept() -> None:
    check_noop("import torch\n\ndef f(a, b, c):\n    return (a.cuda if c else b.cpu)\n", open_codes=["NPU212"])


@pytest.mark.parametrize(
    "lines",
    [
        "linear.weight = bnb.nn.Params4bit(data, requires_grad=False)\n    linear.weight.cuda(device)",
        "bnb.nn.Linear4bit(2, 2).cuda()",
        "layer = bnb.nn.Linear8bitLt(2, 2)\n    return layer.cuda()",
    ],
)
def test_an_object_of_a_package_bound_to_cuda_moves_by_its_own_method(lines: str) -> None:
    result = check_noop(
        f"import bitsandbytes as bnb\n\ndef merge(linear, data, device):\n    {lines}\n", open_codes=["NPU510"]
    )
    assert "reported-package" in {row.cause.reason for row in result.ledger}


@pytest.mark.parametrize(
    "lines",
    [
        "linear.weight = bnb.nn.Params4bit(data)\n    linear.bias.cuda(device)",
        "linear = bnb.nn.Params4bit(data)\n    linear = torch.nn.Linear(2, 2)\n    linear.cuda(device)",
        "data.cuda()",
        "bnb.functional.dequantize_4bit(data).cuda()",
    ],
)
def test_what_else_is_in_such_a_file_moves(lines: str) -> None:
    source = f"import bitsandbytes as bnb\nimport torch\n\ndef merge(linear, data, device):\n    {lines}\n"
    assert migrate(source).data.decode().count(".npu(") == 1


@pytest.mark.parametrize("readme", ["", "python train.py\n"])
def test_a_module_of_another_package_beside_a_page_of_commands(readme: str) -> None:
    """What a README starts says nothing of modules."""
    source = "import pccm\n\ncall = pccm.cuda.member_function\n"
    facts = [index_source(source.encode(), "core.py", Settings())]
    facts += filter(None, [other_facts(readme.encode(), "README.md", Settings())])
    project = ProjectFacts.join(facts)
    found = migrate_source(source.encode(), "core.py", Settings(), project).findings
    assert [each.code for each in found if each.open] == ["NPU602"]
