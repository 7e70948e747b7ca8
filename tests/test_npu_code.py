"""Code that supports NPUs already keeps working on CUDA, CPU and NPU; what is left for CUDA alone is said."""

from __future__ import annotations

import json

import pytest

from tests.harness import check_noop, check_rewrite, codes, migrate, pattern
from transplt.base.finding import Level


@pattern("T21")
@pytest.mark.parametrize(
    "body",
    [
        "if device.type == 'cuda':\n    torch.cuda.synchronize()\nelif device.type == 'npu':\n    pass",
        "if device.type == 'npu':\n    torch.npu.synchronize()\nelse:\n    torch.cuda.synchronize()",
        "if device.type == 'npu':\n    return 1\nreturn torch.cuda.device_count()",
        "d = 'npu' if is_npu_available() else 'cuda'",
        "d = is_npu_available() or torch.cuda.is_available()",
        "d = device.type in ('cuda', 'npu')",
        "v = os.environ[('ASCEND_RT' if is_npu_available() else 'CUDA') + '_VISIBLE_DEVICES']",
        "backend = {'cuda': 'nccl', 'npu': 'hccl'}[device.type]",
        "is_cuda = device.type == 'cuda'\nis_npu = device.type == 'npu'",
        "if device.startswith('cuda'):\n    torch.cuda.set_device(0)\nif device.startswith('npu'):\n    pass",
        "match device:\n    case 'cuda':\n        torch.cuda.synchronize()\n    case 'npu':\n        pass",
    ],
)
def test_a_choice_between_cuda_and_npu_stays(body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    check_noop(f"import torch\ndef f(device, is_npu_available):\n{lines}\n")


@pattern("T21")
def test_what_is_for_cuda_alone_is_said() -> None:
    check_noop(
        """
        import torch
        def sync(device):
            if device.type == 'cuda':
                torch.cuda.synchronize()
            elif device.type == 'npu':
                torch.npu.synchronize()
            torch.cuda.empty_cache()
        def other(device='cuda'):
            return torch.zeros(1, device=device)
        """,
        open_codes=["NPU200"],
    )


@pattern("T21")
def test_code_under_a_condition_that_is_reported_is_not_reported_again() -> None:
    result = check_noop(
        """
        import torch
        CHOICE = ('cuda', 'npu')
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        """,
        open_codes=["NPU200"],
    )
    assert len(result.findings) == 1


@pattern("T21")
def test_a_project_that_handles_the_npu() -> None:
    files = {"device.py": "import torch\ndef pick():\n    return 'npu' if has_npu() else 'cuda'\n"}
    result = migrate("import torch\ntorch.cuda.synchronize()\n", files=files)
    assert not result.changed
    assert codes(result, applied=False) == ["NPU200"]


@pattern("T21")
def test_one_portable_file_among_many_leaves_the_others_to_be_migrated() -> None:
    files = {f"m{i}.py": "import torch\ntorch.cuda.synchronize()\n" for i in range(12)}
    files["device.py"] = "import torch\ndef pick():\n    return 'npu' if has_npu() else 'cuda'\n"
    assert migrate("import torch\ntorch.cuda.synchronize()\n", files=files).changed


@pattern("T21")
@pytest.mark.parametrize(
    "line",
    ["torch.npu.set_device(0)", "device = 'npu'", "# runs on npu or cuda", "from a import npu", "x = model.input"],
)
def test_code_that_makes_no_choice_is_migrated(line: str) -> None:
    check_rewrite(
        f"import torch\nimport torch_npu\n{line}\ntorch.cuda.synchronize()\n",
        f"import torch\nimport torch_npu\n{line}\ntorch.npu.synchronize()\n",
    )


@pattern("T21")
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("diffusers.utils", "is_torch_npu_available"),
        ("accelerate.utils", "is_npu_available"),
        (".device", "is_npu_available"),
    ],
)
def test_a_file_that_asks_a_library_whether_there_is_an_npu(module: str, name: str) -> None:
    check_noop(
        f"""
        import torch
        from {module} import {name}

        if {name}():
            torch.npu.config.allow_internal_format = False

        def clean(model):
            model.cuda()
        """,
        open_codes=["NPU200"],
    )


@pytest.mark.parametrize(
    "head",
    [
        "from diffusers.utils import is_torch_npu_available",  # never asked
        "from diffusers.utils import is_torch_xpu_available\nif is_torch_xpu_available():\n    print('xpu')",
        "def is_npu_available():\n    return False\nis_npu_available()",
    ],
)
def test_a_file_that_does_not_ask_is_migrated(head: str) -> None:
    result = migrate(f"import torch\n{head}\n\ndef clean(model):\n    model.cuda()\n")
    assert b"model.npu()" in result.data


@pattern("T21")
def test_the_users_own_rules_act_all_the_same() -> None:
    rules = {"rules": {"FuncNameModifyRule": [{"old_name": "old_name", "new_name": "new_name"}]}}
    source = "import torch\nA = ('cuda', 'npu')\nout = old_name(A)\n"
    result = migrate(source, user_rules=(("r.json", json.dumps(rules)),))
    assert "out = new_name(A)" in result.data.decode()


@pytest.mark.parametrize(
    "line",
    [
        "use = not args.no_cuda and torch.cuda.is_available()",
        "use = torch.device('cuda', args.gpu) if args.gpu is not None else None",
        "assert args.device in ('cuda', 'gpu')",
        "table = {'cuda': 1, 'cpu': 2}[args.device]",
        "if args.device == 'cuda' and args.gpus:\n    print('cuda')",
    ],
)
def test_what_a_migration_writes_is_no_choice(line: str) -> None:
    """New code in a migrated file is migrated like any other."""
    once = migrate(f"import torch\n{line}\n").data.decode()
    assert "npu" in once
    again = migrate(f"{once}torch.cuda.synchronize()\n").data.decode()
    assert again == f"{once}torch.npu.synchronize()\n"


def test_the_finding_of_an_import_skips_names_that_stay() -> None:
    result = migrate(
        """
        import torch
        from mmengine.device import get_device, is_cuda_available

        ready = is_cuda_available()

        def sync(device):
            if device.type == 'cuda':
                torch.cuda.synchronize()
            elif device.type == 'npu':
                torch.npu.synchronize()
        """
    )
    said = [f.message.partition(" is for CUDA")[0] for f in result.findings if f.code == "NPU200"]
    assert said == ["mmengine.device.is_cuda_available", "is_cuda_available"]


def test_the_help_of_a_flag_is_text_for_people() -> None:
    """In code that supports NPUs no word of it is left for CUDA alone."""
    check_noop(
        """
        import argparse
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--workers", help="one for each cuda device")
        CHOICE = "npu" if is_npu_available() else "cuda"
        """
    )


CHOICE = "import torch\nCHOICE = d if d in ('cuda', 'npu') else f()\n"


@pattern("T21")
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("def f(device='cuda'):\n    return torch.zeros(1, device=device)", "default"),
        ("parser.add_argument('--device', default='cuda', choices=['cpu', 'cuda', 'npu'])", "default"),
        ("module = getattr(torch, kind, torch.cuda)", "default"),
        ("device = torch.device(getattr(args, 'device', 'cuda'))", "default"),
        ("if args.device == 'cuda' and not torch.cuda.is_available():\n    args.device = 'cpu'", "missing-cuda"),
        ("if torch.cuda.is_available():\n    torch.backends.cuda.matmul.allow_tf32 = True", "cuda-settings"),
        (
            "try:\n    s = torch.amp.GradScaler(device=d)\nexcept (AttributeError, TypeError):\n"
            "    s = torch.cuda.amp.GradScaler()",
            "older-torch",
        ),
        (
            "d = torch.device(torch.accelerator.current_accelerator() if hasattr(torch, 'accelerator') else 'cuda')",
            "older-torch",
        ),
        (
            "import pytest\n@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs a GPU')\n"
            "def test_it():\n    assert torch.zeros(1, device='cuda').sum() == 0",
            "cuda-test",
        ),
        (
            "import unittest\n@unittest.skipUnless(torch.cuda.is_available(), 'needs a GPU')\n"
            "class TestIt:\n    def test_it(self):\n        self.x.cuda()",
            "cuda-test",
        ),
        ("torch.cuda.empty_cache()\nif device == 'npu':\n    torch.npu.empty_cache()", "cuda-side"),
        (
            "if torch.cuda.is_available():\n    torch.cuda.empty_cache()\n"
            "if is_torch_npu_available():\n    torch.npu.empty_cache()",
            "cuda-side",
        ),
    ],
)
def test_what_needs_nothing_beside_it_is_quiet(body: str, reason: str) -> None:
    result = migrate(f"{CHOICE}{body}\n")
    assert not result.changed and not any(finding.open for finding in result.findings)
    assert reason in {cause.reason for cause in result.ledger.causes}


@pattern("T21")
@pytest.mark.parametrize(
    "body",
    [
        "if torch.cuda.is_available():\n    torch.cuda.synchronize()",
        "if torch.cuda.is_available():\n    torch.backends.cudnn.benchmark = True\n    model.cuda()",
        "if not torch.cuda.is_available():\n    raise RuntimeError('no device')",
        "device = torch.device('cuda')",
        "try:\n    f()\nexcept AttributeError:\n    torch.cuda.empty_cache()",
        "if hasattr(x, 'y'):\n    x.y()\nelse:\n    torch.cuda.empty_cache()",
        "@pytest.mark.skipif(torch.cuda.is_available(), reason='for CPUs')\ndef test_it():\n    x.cuda()",
        "if d.startswith('npu'):\n    pass\nif d.startswith('cuda:') and ready:\n    torch.cuda.set_device(0)",
        "if kind == 'npu':\n    f()\nif device.startswith('cuda:'):\n    torch.cuda.set_device(0)",
        "torch.cuda.synchronize()\nif device == 'npu':\n    torch.npu.empty_cache()",
    ],
)
def test_real_faults_beside_them_are_said(body: str) -> None:
    result = migrate(f"{CHOICE}{body}\n")
    assert not result.changed and "NPU200" in codes(result, applied=False)


def test_the_uses_follow_an_import_that_a_rule_of_the_user_renames() -> None:
    rules = '{"rules": {"FuncNameModifyRule": [{"old_name": "other.place", "new_name": "other.put"}]}}'
    head = 'import torch\n\nif torch.npu.is_available():\n    d = "npu"\nelse:\n    d = "cuda"\n'
    check_rewrite(
        f"from other import place\n{head}place(d)\n",
        f"from other import put\n{head}put(d)\n",
        user_rules=(("mine.json", rules),),
    )


LAYER = """
import torch

is_cuda_available = torch.cuda.is_available()
is_npu_available = has_npu()
"""


@pytest.mark.parametrize(
    "code",
    [
        "def expandable(on):\n    if is_cuda_available:\n        torch.cuda.memory._set_allocator_settings(on)",
        "capability = torch.cuda.get_device_capability(0) if is_cuda_available else None",
        "def name():\n    return 'CUDA_VISIBLE_DEVICES' if not is_npu_available else 'ASCEND_RT_VISIBLE_DEVICES'",
    ],
)
def test_what_a_layer_of_the_project_says_of_cuda_is_its_side(code: str) -> None:
    result = check_noop(f"{LAYER}\n{code}\n")
    assert not [each for each in result.findings if each.open]


@pytest.mark.parametrize(
    "code",
    [
        "def expandable(on):\n    if not is_cuda_available:\n        torch.cuda.memory._set_allocator_settings(on)",
        "def expandable(on):\n    if on:\n        torch.cuda.memory._set_allocator_settings(on)",
        "if is_cuda_available:\n    pass\nelse:\n    torch.cuda.memory._set_allocator_settings(1)",
    ],
)
def test_what_it_does_not_say_is_a_finding(code: str) -> None:
    check_noop(f"{LAYER}\n{code}\n", open_codes=["NPU601"])


def test_a_layer_for_cuda_alone_is_none() -> None:
    result = migrate(LAYER.replace("is_npu_available = has_npu()", "") + "if is_cuda_available:\n    model.cuda()\n")
    assert b"model.npu()" in result.data


_CHOICE = """
import torch
from accelerate import DistributedType

device = "npu" if torch.npu.is_available() else "cuda"
"""


@pytest.mark.parametrize(
    "line",
    ['many = state.distributed_type in ["MULTI_GPU", "DEEPSPEED"]', "many = kind == DistributedType.MULTI_GPU"],
)
def test_a_name_of_a_library_that_is_false_on_npus(line: str) -> None:
    result = check_noop(f"{_CHOICE}{line}\n", open_codes=["NPU140"])
    (found,) = result.findings
    assert found.level is Level.MANUAL and "MULTI_NPU" in found.message


@pytest.mark.parametrize(
    "line",
    [
        'many = state.distributed_type in ["MULTI_GPU", "MULTI_NPU"]',
        "many = kind in (DistributedType.MULTI_GPU, DistributedType.MULTI_NPU)",
        "many = kind == DistributedType.MULTI_GPU or kind == DistributedType.MULTI_NPU",
    ],
)
def test_both_names_of_a_library(line: str) -> None:
    check_noop(f"{_CHOICE}{line}\n")


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("import torch_xla.core.xla_model as xm", Level.INFO),
        ("import intel_extension_for_pytorch as ipex", Level.INFO),
        # nobody needs it here
        ("try:\n    import torch_xla\nexcept ImportError:\n    pass", Level.MANUAL),
        ("def f():\n    import intel_extension_for_pytorch", Level.MANUAL),
        ("import numpy as torch_xla_like", Level.MANUAL),
    ],
)
def test_a_file_that_is_written_for_the_card_of_another_maker(line: str, level: Level) -> None:
    found = migrate(f"import lightning as L\n{line}\nfabric = L.Fabric(devices=2)\n").findings
    assert [each.level for each in found if each.code == "NPU145"] == [level]


_SEEDS = """
import torch

def seed_all(seed, is_npu_available):
    torch.cuda.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    {more}

def other(device):
    if device.type == "cuda":
        torch.cuda.synchronize()
    elif device.type == "npu":
        torch.npu.synchronize()
"""


@pytest.mark.parametrize(
    ("more", "left"),
    [
        ("if is_npu_available:\n        torch.npu.manual_seed(seed)", []),
        ("if is_npu_available:\n        torch.npu.manual_seed_all(seed)", ["NPU200"]),
        ("return seed", ["NPU200"]),
    ],
)
def test_a_seed_beside_that_of_the_npu(more: str, left: list[str]) -> None:
    check_noop(_SEEDS.format(more=more), open_codes=left)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        # the module of a device by its name, and what stands in where torch has none
        ("try:\n        return getattr(torch, name)\n    except AttributeError:\n        return torch.cuda", []),
        ("try:\n        return open(name)\n    except AttributeError:\n        return torch.cuda", ["NPU200"]),
        # CUDA's variable is set right with those of AMD
        ("val = os.environ.pop('HIP_VISIBLE_DEVICES')\n    os.environ['CUDA_VISIBLE_DEVICES'] = val", []),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = name", ["NPU200"]),
        (
            "os.environ['CUDA_VISIBLE_DEVICES'] = str(\n        name)\n"
            "    os.environ['ASCEND_RT_VISIBLE_DEVICES'] = os.environ['CUDA_VISIBLE_DEVICES']",
            [],
        ),
        # the processor's activity is the same on every device
        ("return torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])", []),
        ("return [torch.profiler.ProfilerActivity.CUDA]", ["NPU131"]),
    ],
)
def test_what_an_npu_needs_no_case_for(body: str, left: list[str]) -> None:
    other = _SEEDS.partition("def other")[2]
    check_noop(f"import os\nimport torch\n\ndef f(name):\n    {body}\n\ndef other{other}", open_codes=left)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("if torch.cuda.is_available():\n        return torch.version.cuda.split()", ["NPU270"]),
        ("if not torch.cuda.is_available():\n        return torch.version.cuda.split()", ["NPU200", "NPU506"]),
        ("return torch.version.cuda.split()", ["NPU506"]),
    ],
)
def test_what_is_not_asked_for_without_cuda(body: str, left: list[str]) -> None:
    """A condition that is reported holds what stands under it."""
    other = _SEEDS.partition("def other")[2]
    check_noop(f"import torch\n\ndef f():\n    {body}\n\ndef other{other}", open_codes=left)
