"""Packages bound to CUDA: one finding a file, a remark where the program can do without."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, migrate, pattern
from transplt.base.finding import Effort, Level


def levels(source: str) -> list[Level]:
    result = migrate(source)
    assert not result.changed
    return [finding.level for finding in result.findings if finding.code in ("NPU510", "NPU511", "NPU512")]


@pattern("P54", "P55", "P57")
def test_one_finding_for_a_package() -> None:
    result = check_noop(
        """
        import flash_attn
        from flash_attn import flash_attn_func, flash_attn_varlen_func
        from flash_attn.bert_padding import pad_input, unpad_input

        def attend(q, k, v):
            return flash_attn.flash_attn_func(q, k, v)
        """,
        open_codes=["NPU510"],
    )
    assert [finding.span.line for finding in result.findings] == [1]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("def f():\n    import xformers\ndef g():\n    from xformers.ops import unbind\n    import xformers\n", [2, 4]),
        ("import xformers\n\ndef g():\n    from xformers.ops import unbind\n", [1]),
        ("def g():\n    from xformers.ops import unbind\n\nimport xformers\n", [4]),
    ],
)
def test_each_function_that_imports_a_package_is_named(lines: str, found: list[int]) -> None:
    result = migrate(lines)
    assert [each.span.line for each in result.findings if each.code == "NPU510"] == found


@pattern("P51", "P54")
def test_packages_are_told_apart() -> None:
    assert levels("import xformers\nimport triton\nimport bitsandbytes\n") == [Level.MANUAL] * 3


@pattern("P54", "P55")
@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import xformers\nexcept ImportError:\n    xformers = None\n",
        "try:\n    import flash_attn\nexcept (ImportError, RuntimeError):\n    flash_attn = None\n",
        "try:\n    import amp_C\nexcept Exception as error:\n    print(error)\n",
        "try:\n    import xformers\nexcept:\n    pass\n",
        "if is_xformers_available():\n    import xformers\n",
        "if importlib.util.find_spec('xformers'):\n    import xformers\n",
        "if HAVE_FLASH:\n    from flash_attn import flash_attn_func\n",
        "with contextlib.suppress(ImportError):\n    import xformers\n",
        # CUDA's side of a choice
        "if is_npu_available:\n    from own import attend\nelse:\n    from flash_attn import attend\n",
        "def f():\n    if is_torch_npu_available(check=False):\n        from own import g\n"
        "    else:\n        from flash_attn import g\n",
        "if not is_npu_available():\n    import xformers\n",
        "def f(x):\n    if x.device.type == 'npu':\n        return own(x)\n    import xformers\n",
    ],
)
def test_imports_that_may_fail_are_remarks(source: str) -> None:
    assert levels(source) == [Level.INFO]


@pattern("P54", "P55")
@pytest.mark.parametrize(
    "source",
    [
        "import xformers\n",
        "try:\n    import xformers\nexcept ImportError:\n    raise SystemExit\n",
        "try:\n    import xformers\nexcept ImportError:\n    print('install it')\n    sys.exit(1)\n",
        "try:\n    import xformers\nexcept ValueError:\n    pass\n",
        "try:\n    pass\nexcept ImportError:\n    import xformers\n",
        "if not is_xformers_available():\n    import xformers\n",
        "if use_flash:\n    import flash_attn\n",
        "with contextlib.suppress(ValueError):\n    import xformers\n",
        "with open(path):\n    import xformers\n",
        # a question that an NPU answers with yes, as the migrated program asks it
        "if torch.cuda.is_available():\n    import xformers\n",
        "if HAS_CUDA:\n    import xformers\n",
        "if is_npu_available:\n    import xformers\n",
        "def f(x):\n    if x.device.type == 'npu':\n        x = own(x)\n    import xformers\n",
        "def f(x):\n    import xformers\n    if is_npu_available:\n        return own(x)\n",
        "try:\n    import xformers\nexcept ImportError:\n    pass\n\ndef run():\n    import xformers\n",
    ],
)
def test_imports_that_have_to_work(source: str) -> None:
    assert levels(source) == [Level.MANUAL]


@pattern("P54", "P57")
@pytest.mark.parametrize("path", ["triton/__init__.py", "src/triton/__init__.py", "triton.py"])
def test_a_package_of_the_project_itself(path: str) -> None:
    files = {path: "", path.replace("__init__", "ops") if "__init__" in path else "ops.py": ""}
    assert not migrate("import triton\n", files=files).findings


@pattern("P54", "P57")
@pytest.mark.parametrize("path", ["triton/bench.py", "examples/triton.py", "mine/triton/ops.py"])
def test_a_folder_or_script_of_the_same_name_is_not_the_package(path: str) -> None:
    files = {path: "", "mine/__init__.py": ""}
    assert [finding.code for finding in migrate("import triton\n", files=files).findings] == ["NPU512"]


@pytest.mark.parametrize(
    "line",
    [
        "from basicsr.utils.log import a",
        "import basicsr.utils.log",
        "from basicsr import ops",
        "from basicsr.version import __version__",
    ],
)
def test_a_package_of_the_project_without_an_init_file(line: str) -> None:
    files = {"basicsr/utils/log.py": "", "basicsr/ops.py": ""}
    assert not migrate(f"{line}\n", path="basicsr/train.py", files=files).findings
    other = migrate(f"{line}\n", path="train.py", files={"lib/utils/other.py": ""})
    of_cards = ["NPU510"] * (".utils" not in line)  # what logs asks for no card
    assert [finding.code for finding in other.findings] == ["NPU293", *of_cards]


@pytest.mark.parametrize("line", ["import deepspeed.ops.adam", "from apex.optimizers import FusedAdam"])
def test_a_folder_that_only_has_the_name_of_a_package(line: str) -> None:
    assert migrate(f"{line}\n", path="apex/train.py", files={"deepspeed/train.py": ""}).findings == migrate(
        f"{line}\n", path="apex/train.py"
    ).findings


@pytest.mark.parametrize("line", ["from nvidia.model import Bert", "import nvidia.model"])
def test_a_module_of_the_project_below_the_name_of_a_package(line: str) -> None:
    assert not migrate(f"{line}\n", path="bert/train.py", files={"bert/nvidia/model.py": ""}).findings
    assert migrate(f"{line}\n", path="bert/train.py", files={"bert/nvidia/other.py": ""}).findings


@pattern("P56")
def test_bitsandbytes_through_transformers() -> None:
    check_noop(
        """
        from transformers import BitsAndBytesConfig
        quantized = BitsAndBytesConfig(load_in_4bit=True)
        """,
        open_codes=["NPU510"],
    )
    check_noop("import transformers\nq = transformers.BitsAndBytesConfig(load_in_4bit=True)\n", open_codes=["NPU142"])


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("def f(q):\n    return BitsAndBytesConfig(load_in_4bit=q)\n", [(Level.MANUAL, 3)]),
        ("MADE = BitsAndBytesConfig()\nOTHER = BitsAndBytesConfig()\n", [(Level.MANUAL, 2), (Level.MANUAL, 3)]),
        ("MAKE = {'bnb': BitsAndBytesConfig}\n", [(Level.MANUAL, 2)]),
        # nothing makes one
        ("def f(q: BitsAndBytesConfig | None = None):\n    pass\n", [(Level.INFO, 1)]),
        ("def f(q: 'BitsAndBytesConfig | None' = None):\n    pass\n", [(Level.INFO, 1)]),
        ("def f(q):\n    return isinstance(q, (dict, BitsAndBytesConfig))\n", [(Level.INFO, 1)]),
        ("", [(Level.INFO, 1)]),
        # others may take it from here
        ("__all__ = ['BitsAndBytesConfig']\n", [(Level.MANUAL, 1)]),
        ("if x:\n    BitsAndBytesConfig = None\n", [(Level.MANUAL, 1)]),
    ],
)
def test_a_class_of_a_library_counts_where_it_is_used(lines: str, found: list[tuple[Level, int]]) -> None:
    findings = migrate(f"from transformers import BitsAndBytesConfig\n{lines}").findings
    assert [(each.level, each.span.line) for each in findings if each.code == "NPU510"] == found


@pytest.mark.parametrize(
    ("other", "level"),
    [
        ("from quant import BitsAndBytesConfig\n", Level.MANUAL), ("from quant import *\n", Level.MANUAL),
        ("from quant import load\n", Level.INFO),
    ],
)  # fmt: skip
def test_a_class_of_a_library_that_another_file_may_take(other: str, level: Level) -> None:
    files = {"train.py": other}
    findings = migrate("from transformers import BitsAndBytesConfig\n", path="quant.py", files=files).findings
    assert [each.level for each in findings if each.code == "NPU510"] == [level]


@pytest.mark.parametrize("line", ["from bitsandbytes.optim import Adam8bit", "import bitsandbytes as bnb"])
def test_a_package_that_is_missing_counts_where_it_is_imported(line: str) -> None:
    findings = migrate(f"{line}\ndef f(net):\n    return bnb or Adam8bit(net)\n").findings
    assert [each.span.line for each in findings if each.code == "NPU510"] == [1]


def test_a_part_for_cuda_of_a_package_that_has_a_plugin_for_npus() -> None:
    line = "from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator as C\n"
    (finding,) = migrate(f"if is_vllm_available():\n    {line}").findings
    assert finding.level is Level.MANUAL
    assert finding.message.partition("; ")[2] == "imported where its package is installed"
    twin = "from vllm_ascend.pyhccl import PyHcclCommunicator as C\n"
    (finding,) = migrate(f"if is_npu_available:\n    {twin}else:\n    {line}").findings
    assert finding.level is Level.INFO


KERNEL = "@triton.jit\ndef scale(x):\n    pass\n"


@pytest.mark.parametrize(
    "source",
    [
        f"from own import _TRITON_AVAILABLE\nif _TRITON_AVAILABLE:\n    import triton\n\n{KERNEL}",
        "try:\n    import triton\n    HAS_TRITON = True\nexcept ImportError:\n    HAS_TRITON = False\n\n"
        "if HAS_TRITON:\n    @triton.autotune([])\n    @triton.jit\n    def scale(x):\n        pass\n",
    ],
)
def test_kernels_of_the_file_itself_are_no_remark(source: str) -> None:
    assert levels(source) == [Level.MANUAL]


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    import triton\nexcept ImportError:\n    triton = None\n\nprint(triton)\n",
        "if HAS_TRITON:\n    import triton\n\n@torch.jit.script\ndef scale(x):\n    pass\n",
        f"try:\n    import xformers\nexcept ImportError:\n    xformers = None\n\n{KERNEL}",
    ],
)
def test_a_package_that_makes_no_kernel_of_the_file_is_a_remark(source: str) -> None:
    assert levels(source) == [Level.INFO]


@pytest.mark.parametrize(
    ("path", "package", "lines"),
    [
        ("src/python/deep/run.py", "src/python/triton", ""),
        ("tools/run.py", "tools/triton", ""),
        ("ext/unsloth/run.py", "ext/unsloth/triton", "import sys\nsys.path.append('.')\n"),
    ],
)
def test_a_package_of_the_project_in_any_folder(path: str, package: str, lines: str) -> None:
    files = {f"{package}/__init__.py": "", f"{package}/ops.py": ""}
    if lines:
        files |= {"ext/unsloth/__init__.py": ""}
    assert not migrate(f"{lines}import triton\n", path=path, files=files).findings


def test_a_folder_beside_a_module_of_a_package_is_not_the_package() -> None:
    files = {"mine/__init__.py": "", "mine/triton/__init__.py": "", "mine/triton/ops.py": ""}
    findings = migrate("import triton\n", path="mine/run.py", files=files).findings
    assert [finding.code for finding in findings] == ["NPU512"]


_PYNCCL = "from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator"


@pytest.mark.parametrize(
    ("below", "level"),
    [
        ("    if ascend():\n        from vllm_ascend.y.pyhccl import PyHccl as PyNcclCommunicator", Level.INFO),
        ("    if ascend():\n        from vllm_ascend.y.pyhccl import PyHccl", Level.MANUAL),
        ("    if other():\n        from vllm_other import PyNcclCommunicator", Level.MANUAL),
        ("    return PyNcclCommunicator()", Level.MANUAL),
    ],
)
def test_a_name_that_a_package_for_ascend_gives_below(below: str, level: Level) -> None:
    assert levels(f"def f():\n    {_PYNCCL}\n{below}\n") == [level]


def test_what_can_be_imported_and_loads_nccl() -> None:
    """vllm-ascend does not keep the module from being imported: a question for vllm is no way out."""
    line = "from vllm.distributed.weight_transfer.nccl_engine import NCCLWeightTransferEngine"
    assert levels(f"if is_vllm_available():\n    {line}\n") == [Level.MANUAL]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("from torchao.float8 import convert_to_float8_training", [Level.MANUAL]),
        ("from torchao.quantization import quantize_", []),
        ("import thunder", [Level.MANUAL]),
        ("import litserve", [Level.MANUAL]),
        ("import cherry", []),
    ],
)
def test_parts_and_packages(line: str, found: list[Level]) -> None:
    assert levels(f"{line}\n") == found


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import apex\nm = apex.parallel.DistributedDataParallel(m)\n", ["NPU510", "NPU511"]),
        ("import apex\nm = apex.parallel.Reducer(m)\nn = apex.parallel.Reducer(n)\n", ["NPU510", "NPU511"]),
        ("import apex\nm, o = apex.amp.initialize(m, o)\n", ["NPU511"]),
        ("import apex\nprint(apex.__version__)\n", ["NPU511"]),
        ("import apex.parallel\nm = apex.parallel.DistributedDataParallel(m)\n", ["NPU510"]),
        ("from apex.parallel import DistributedDataParallel as DDP\nm = DDP(m)\n", ["NPU510"]),
    ],
)
def test_a_part_of_a_package_by_attribute(source: str, said: list[str]) -> None:
    found = migrate(f"import torch\nuse_cuda = True\n{source}").findings
    assert sorted(each.code for each in found if each.code in ("NPU510", "NPU511")) == said


def test_a_module_beside_the_file_is_the_projects_own() -> None:
    source = "import torch\nfrom lightning import Trainer\nTrainer(gpus=1)\n"
    assert {each.code for each in migrate(source, path="lab/train.py").findings} == {"NPU145"}
    assert not migrate(source, path="lab/train.py", files={"lab/lightning.py": "class Trainer: pass\n"}).findings


TRIED = "try:\n    from xformers.ops import fmha as attend\nexcept ImportError:\n    attend = None\n"


@pytest.mark.parametrize(
    "body",
    [
        "    if attend is None:\n        raise NameError('xformers')\n",
        "    if attend is not None:\n        return attend(x)\n    else:\n        log(x)\n        raise NameError\n",
    ],
)
def test_what_raises_because_an_import_failed_is_said_there(body: str) -> None:
    result = check_noop(f"{TRIED}\n\ndef f(x):\n{body}", open_codes=["NPU510"])
    (found,) = [each for each in result.findings if each.open]
    assert found.blocks == "later" and "this raises without it" in found.message
    assert result.data.splitlines()[found.span.line - 1].strip().startswith(b"raise")


@pytest.mark.parametrize(
    "body",
    [
        "    if attend is not None:\n        return attend(x)\n    return x\n",
        "    if attend is None:\n        return x\n    raise NameError\n",
        "    if attend is not None:\n        raise NameError\n",
        "    if x is None:\n        raise NameError\n",
        "    if attend is None and x:\n        raise NameError\n",
    ],
)
def test_what_a_program_does_without_an_import_is_a_remark(body: str) -> None:
    (found,) = migrate(f"{TRIED}\n\ndef f(x):\n{body}").findings
    assert not found.open and found.code == "NPU510"


def test_what_a_project_is_built_on_takes_days() -> None:
    names = "Trainer, Config, Monitor, Padder, Evaluator, Callback, Metric, Loss"
    efforts = [
        each.effort
        for taken in (names, "Trainer, Config")
        for each in migrate(f"import torch\nfrom collie import {taken}\n").findings
        if each.code == "NPU510"
    ]
    assert efforts == [Effort.HIGH, Effort.MEDIUM]


def test_no_package_is_advised_in_its_own_repository() -> None:
    source = "import torch\nfrom collie import Trainer\n"
    helps = [
        each.help
        for files in ({}, {"lomo_optim/__init__.py": "x = 1\n"})
        for each in migrate(source, files=files).findings
        if each.code == "NPU510"
    ]
    assert ["lomo-optim" in each for each in helps] == [True, False]
    assert helps[1].startswith("instead: transformers with deepspeed")
