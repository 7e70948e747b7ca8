"""What a program asks about the GPU before it decides."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite, migrate, pattern
from transplt.base.settings import TORCH_VERSIONS
from transplt.engine.actions.actions import actions_of
from transplt.fixers.codemods.gates import RAISES


def torch_file(line: str, *, npu: bool = False) -> str:
    return "import torch\n" + ("import torch_npu  # noqa: F401\n" if npu else "") + line + "\n"


@pattern("P1", "P2", "P67", "T11", "T17", "T29")
@pytest.mark.parametrize(
    "line",
    [
        "assert torch.cuda.is_available()",
        'assert torch.cuda.is_available(), "a GPU is needed"',
        "device_id = rank % torch.cuda.device_count()",
        "workers = 4 * torch.cuda.device_count() // world_size",
        "if torch.cuda.device_count() > 1: pass",
        "if torch.cuda.is_available() and torch.cuda.is_bf16_supported(): pass",
        "dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16",
        'skip = unittest.skipIf(not torch.cuda.is_available(), "needs a GPU")',
        '@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs 2 GPUs")\ndef test(): pass',
        'if not torch.cuda.is_available(): raise RuntimeError("no GPU")',
        "total = torch.cuda.get_device_properties(0).total_memory",
        "p = torch.cuda.get_device_properties(0)\nprint(p.name, p.total_memory)",
        "print(torch.cuda.get_device_name(0))",
    ],
)
def test_gates_that_carry_over(line: str) -> None:
    check_rewrite(torch_file(line), torch_file(line.replace("torch.cuda", "torch.npu"), npu=True))


@pattern("P48", "T29")
def test_assertion_on_a_tensor() -> None:
    check_rewrite(
        """
        import torch
        def check(x):
            assert x.is_cuda
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        def check(x):
            assert x.is_npu
        """,
    )


@pattern("P66", "T12")
@pytest.mark.parametrize(
    "line",
    [
        "hopper = torch.cuda.get_device_capability() >= (9, 0)",
        "old = torch.cuda.get_device_capability()[1] >= 8",
        "major, minor = torch.cuda.get_device_capability(0)",
        "assert torch.cuda.get_device_capability(device)[0] >= 7",
        'log(torch.cuda.get_device_capability() == (7, 5), "turing")',
    ],
)
def test_capability(line: str) -> None:
    check_noop(torch_file(line), open_codes=["NPU503"])


@pytest.mark.parametrize(
    ("line", "raises"),
    [
        ("major, minor = torch.cuda.get_device_capability(0)", True),
        ("hopper = torch.cuda.get_device_capability() >= (9, 0)", True),
        ("old = torch.cuda.get_device_capability()[1] >= 8", True),
        ("c = torch.cuda.get_device_capability()\nif c[0] >= 7: pass", True),
        ("turing = torch.cuda.get_device_capability() == (7, 5)", False),
        ("c = torch.cuda.get_device_capability()\nstore(c)", False),
        ("old = kind == 'cuda' and torch.cuda.get_device_capability()[1] >= 8", False),
    ],
)
def test_an_answer_of_none_that_is_taken_apart(line: str, raises: bool) -> None:
    found = [each for each in migrate(torch_file(line)).findings if each.code == "NPU503"]
    assert [RAISES in each.message for each in found] == [raises]
    blocks = [action.blocks for action in actions_of(found)]
    assert blocks == (["first step"] if raises else ["numbers"])


AMPERE = [
    ("ampere = torch.cuda.get_device_capability() >= (8, 0)", "ampere = torch.npu.is_bf16_supported()"),
    ("ampere = torch.cuda.get_device_capability(0)[0] >= 8", "ampere = torch.npu.is_bf16_supported()"),
    ("if torch.cuda.get_device_capability()[0] < 8: pass", "if not torch.npu.is_bf16_supported(): pass"),
    ("assert torch.cuda.get_device_capability()[0] > 7", "assert torch.npu.is_bf16_supported()"),
]


@pattern("P66", "T12")
@pytest.mark.parametrize(("before", "after"), AMPERE)
def test_capability_that_stands_for_bf16(before: str, after: str) -> None:
    check_noop(torch_file(before), open_codes=["NPU249"])
    check_rewrite(torch_file(before), torch_file(after, npu=True), unsafe_fixes=True)


@pattern("P66", "T12")
@pytest.mark.parametrize(
    "line",
    [
        "print(torch.cuda.get_device_capability())",
        'print(f"capability {torch.cuda.get_device_capability(0)}")',
        'logger.info("capability %s", torch.cuda.get_device_capability(0))',
        'print("capability " + str(torch.cuda.get_device_capability(0)))',
        'raise RuntimeError(f"{torch.cuda.get_device_capability()} is too low")',
    ],
)
def test_capability_that_is_only_shown(line: str) -> None:
    after = torch_file(line.replace("torch.cuda", "torch.npu"), npu=True)
    check_rewrite(torch_file(line), after, codes_applied=["NPU240", "NPU403"])


@pattern("P65", "T13")
@pytest.mark.parametrize(
    "line",
    [
        "major = int(torch.version.cuda.split('.')[0])",
        "if torch.version.cuda is not None and torch.version.cuda >= '11': pass",
        "has_cuda = bool(torch.version.cuda)",
        "requires = [f'cupy-cuda{torch.version.cuda.replace(\".\", \"\")}']",
    ],
)
def test_version_of_cuda(line: str) -> None:
    check_noop(torch_file(line), open_codes=["NPU506"])


@pattern("P65", "T13")
@pytest.mark.parametrize(
    "line",
    [
        'print(f"CUDA {torch.version.cuda}")',
        'print("CUDA", torch.version.cuda)',
        'logger.info("CUDA %s", torch.version.cuda)',
        'print("cuDNN", torch.backends.cudnn.version())',
        'info = {"cudnn": torch.backends.cudnn.version()}',
        'info = {"toolkit": torch.version.cuda}',
        'info["cudnn"] = torch.backends.cudnn.version()',
        'rows.append(("cuDNN", torch.backends.cudnn.version()))',
        'info = dict(cudnn=str(torch.backends.cudnn.version()))',
        'text = f"cuDNN {torch.backends.cudnn.version()}"',
        'version = torch.backends.cudnn.version()\nprint(version)\ninfo = {"cudnn": version}',
        'version = torch.backends.cudnn.version() if more else None\nprint(version)',
    ],
)
def test_version_of_cuda_that_is_only_shown(line: str) -> None:
    check_noop(torch_file(line), open_codes=["NPU240"])


@pattern("P65", "T13")
def test_version_under_another_name_is_reported_once() -> None:
    result = check_noop(
        """
        import torch
        version = torch.version.cuda
        if version and version.startswith("12"):
            major = version.split(".")[0]
        """,
        open_codes=["NPU506"],
    )
    assert len(result.findings) == 1


@pattern("P65", "T13")
@pytest.mark.parametrize("line", ["rocm = torch.version.hip is not None", "if torch.version.hip: pass"])
def test_version_of_hip(line: str) -> None:
    check_noop(torch_file(line))


@pattern("P65", "T13")
def test_nvidia_alone() -> None:
    check_rewrite(
        """
        import torch
        nvidia = torch.cuda.is_available() and torch.version.hip is None
        """,
        """
        import torch
        import torch_npu  # noqa: F401
        nvidia = torch.npu.is_available() and torch.version.hip is None
        """,
        open_codes=["NPU243"],
    )


@pattern("P66", "T12")
@pytest.mark.parametrize("version", ["2.1", "2.4", "2.6", TORCH_VERSIONS[-1]])
@pytest.mark.parametrize(
    "lines",
    [
        "hopper = torch.cuda.get_device_properties(0).major >= 9",
        "sms = torch.cuda.get_device_properties(x.device).multi_processor_count",
        "props = torch.cuda.get_device_properties(0)\nsms = props.multi_processor_count",
        "props = torch.cuda.get_device_properties(0)\nassert props.major >= 8, props.name",
        "def card():\n    props = torch.cuda.get_device_properties(0)\n    return str(props.uuid)",
        "handles = {torch.cuda.get_device_properties(0).uuid: handle}",
    ],
)
def test_properties_without_a_value(lines: str, version: str) -> None:
    after = torch_file(lines.replace("torch.cuda", "torch.npu"), npu=True)
    check_rewrite(torch_file(lines), after, open_codes=["NPU241"], torch_version=version)


@pattern("P66")
def test_attributes_of_other_things() -> None:
    check_noop(
        """
        import sys
        import torch
        def read(version, props):
            return version.major, sys.version_info.minor, props.multi_processor_count
        """
    )


@pattern("P66", "T12")
@pytest.mark.parametrize(
    "lines",
    [
        "a100 = 'A100' in torch.cuda.get_device_name(0)",
        "a100 = 'a100' in torch.cuda.get_device_name(0).lower()",
        "if torch.cuda.get_device_name() == 'Tesla V100-SXM2-16GB': pass",
        "name = torch.cuda.get_device_name(0)\nif 'H100' in name: pass",
        "nvidia = torch.cuda.get_device_name().startswith('NVIDIA')",
    ],
)
def test_name_of_a_card(lines: str) -> None:
    after = torch_file(lines.replace("torch.cuda", "torch.npu"), npu=True)
    check_rewrite(torch_file(lines), after, open_codes=["NPU242"])


@pattern("P66")
def test_name_compared_with_a_variable() -> None:
    line = "same = torch.cuda.get_device_name(0) == torch.cuda.get_device_name(1)"
    check_rewrite(torch_file(line), torch_file(line.replace("cuda", "npu"), npu=True))


@pattern("T11")
@pytest.mark.parametrize(
    "line",
    [
        "from torch.testing._internal.common_cuda import TEST_CUDA",
        "from torch.testing._internal.common_device_type import onlyCUDA",
        "from transformers.testing_utils import require_torch_gpu  # cuda",
        "from accelerate.test_utils import require_cuda",
        "from transformers.testing_utils import require_torch_multi_gpu  # cuda",
        "from torch.testing._internal.common_distributed import skip_if_lt_x_gpu  # cuda",
        "import transformers.testing_utils as tu  # cuda\n\n@tu.require_torch_gpu\ndef test(self): pass",
    ],
)
def test_helpers_of_test_packages(line: str) -> None:
    check_noop(line + "\n", open_codes=["NPU244"])


@pytest.mark.parametrize(
    "line",
    [
        "from transformers.testing_utils import require_torch_accelerator, torch_device  # cuda",
        "from torch.testing._internal.inductor_utils import GPU_TYPE, HAS_GPU  # cuda",
        "from helpers.testing_utils import require_torch_gpu  # cuda",
        "from lightning.fabric.utilities.testing import _runif_reasons\n\n_runif_reasons(min_torch='2.6')  # cuda",
    ],
)
def test_helpers_that_ask_for_no_card_of_nvidia(line: str) -> None:
    assert "NPU244" not in {finding.code for finding in migrate(line + "\n").findings}


@pytest.mark.parametrize("given", ["**asked", "min_cuda_gpus=2", "bf16_cuda=True"])
def test_a_marker_of_lightning_is_reported_once_where_it_comes_from(given: str) -> None:
    marker = f"""
        import pytest
        from lightning.fabric.utilities.testing import _runif_reasons

        def run_if(**asked):
            reasons, marks = _runif_reasons({given})
            return pytest.mark.skipif(len(reasons) > 0, reason=str(reasons), **marks)
    """
    test = """
        import torch
        from helpers import run_if

        @run_if(min_cuda_gpus=2)
        def test_step(model):
            model.cuda()
    """
    result = migrate(marker, path="helpers.py", files={"test_step.py": test})
    assert [finding.code for finding in result.findings].count("NPU244") == 1 and not result.changed
    there = migrate(test, path="test_step.py", files={"helpers.py": marker})
    assert b"model.npu()" in there.data and not [finding for finding in there.findings if finding.open]


def test_a_marker_of_the_project_asks_for_the_npu() -> None:
    check_rewrite(
        """
        import pytest
        import torch

        def run_if(min_cuda_gpus=0):
            return pytest.mark.skipif(torch.cuda.device_count() < min_cuda_gpus, reason="cards")

        @run_if(min_cuda_gpus=2)
        def test_step(model):
            model.cuda()
        """,
        """
        import pytest
        import torch
        import torch_npu  # noqa: F401

        def run_if(min_cuda_gpus=0):
            return pytest.mark.skipif(torch.npu.device_count() < min_cuda_gpus, reason="cards")

        @run_if(min_cuda_gpus=2)
        def test_step(model):
            model.npu()
        """,
    )


@pattern("T11")
@pytest.mark.parametrize(
    "line",
    [
        "from torch.testing._internal.common_utils import run_tests",
        "from transformers.testing_utils import require_torch_accelerator",
        "from tests.helpers import requires_cuda",
        "import pytest\n\n@pytest.mark.cuda\ndef test_it(): pass",
    ],
)
def test_other_helpers(line: str) -> None:
    check_noop(line + "\n", files={"tests/helpers.py": "def requires_cuda(f):\n    return f\n"})


@pattern("P43", "P44", "P45")
@pytest.mark.parametrize(
    "line",
    [
        "torch.backends.cudnn.benchmark = True",
        "torch.backends.cudnn.deterministic = True",
        "torch.backends.cudnn.enabled = False",
        "torch.backends.cudnn.allow_tf32 = True",
        "torch.backends.cuda.matmul.allow_tf32 = True",
        "torch.backends.cuda.enable_flash_sdp(False)",
        "torch.set_float32_matmul_precision('high')",
    ],
)
def test_switches_without_effect(line: str) -> None:
    check_noop(torch_file(line), open_codes=["NPU504"])


@pattern("P43")
def test_switches_through_an_alias() -> None:
    check_noop("import torch.backends.cudnn as cudnn\ncudnn.benchmark = True\n", open_codes=["NPU504"])


@pattern("P43", "T13")
@pytest.mark.parametrize(
    "line",
    [
        "if torch.backends.cuda.is_built(): pass",
        "new = torch.backends.cudnn.version() >= 8000",
        "version = torch.backends.cudnn.version()\nprint(version)\nnew = version >= 8000",
        "major = int(torch.backends.cudnn.version())",
        'wheel = f"cu{torch.version.cuda}"',
    ],
)
def test_questions_to_backends(line: str) -> None:
    check_noop(torch_file(line), open_codes=["NPU506"])


@pattern("P67")
def test_bf16_with_emulation() -> None:
    line = "bf16 = torch.cuda.is_bf16_supported(including_emulation=False)"
    check_rewrite(torch_file(line), torch_file(line.replace("torch.cuda", "torch.npu"), npu=True), torch_version="2.9")
    result = check_noop(torch_file(line), open_codes=["NPU505"], torch_version="2.5")
    assert "including_emulation" in result.findings[0].message


@pytest.mark.parametrize(
    "test",
    [
        "torch.version.cuda is None",
        "home is None or torch.version.cuda == None",
        "torch.version.cuda",
        "not torch.version.cuda and home",
    ],
)
def test_a_question_whether_there_is_a_version_of_cuda_is_no_work(test: str) -> None:
    result = check_noop(torch_file(f"if {test}:\n    print('built for the CPU')"), open_codes=["NPU240"])
    assert not [each for each in result.findings if each.open]


@pytest.mark.parametrize(
    "line",
    [
        "kind = 'hip' if torch.version.cuda is None else 'cuda'",
        "if torch.version.cuda is None:\n    use_rocm()",
        "if torch.version.cuda == '11.8':\n    pass",
        "major = parts(torch.version.cuda)",
    ],
)
def test_other_questions_to_it_are(line: str) -> None:
    assert "NPU506" in {each.code for each in migrate(torch_file(line)).findings if each.open}


def test_a_library_of_cuda_that_the_program_does_without() -> None:
    result = check_noop(
        """
        import ctypes

        def capability():
            for name in ("libcuda.so", "libcuda.dylib"):
                try:
                    lib = ctypes.CDLL(name)
                except OSError:
                    continue
                return lib
            return None
        """
    )
    assert {row.cause.reason for row in result.ledger} == {"library-tried"}


@pytest.mark.parametrize(
    "body",
    [
        "return ctypes.CDLL('libcuda.so')",
        "try:\n        return ctypes.CDLL('libcuda.so')\n    except OSError:\n        raise RuntimeError",
        "try:\n        return ctypes.CDLL('libcuda.so')\n    except KeyError:\n        return None",
        "print('found')\n    return find('libcuda.so')",
    ],
)
def test_one_that_it_needs(body: str) -> None:
    check_noop(f"import ctypes\n\ndef load(find):\n    {body}\n", open_codes=["NPU208"])


HIP = [
    "if torch.version.hip:\n    arch = torch.cuda.get_device_properties(0).gcnArchName",
    "if torch.version.hip is not None and x:\n    os.environ['TORCH_CUDA_ARCH_LIST'] = '8.0'\n    model.cuda()",
    "if is_rocm():\n    major, minor = torch.cuda.get_device_capability()",
    "if torch.version.hip is None:\n    pass\nelse:\n    name = torch.cuda.get_device_name(0)",
    "arch = torch.cuda.get_device_properties('cuda').gcnArchName if IS_HIP else ''",
]


@pytest.mark.parametrize("line", HIP)
def test_what_runs_on_cards_of_amd_alone_stays(line: str) -> None:
    result = check_noop(torch_file(line), open_codes={each.code for each in migrate(torch_file(line)).findings})
    assert not [each for each in result.findings if each.open]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if torch.version.hip:\n    pass\nelse:\n    model.cuda()", "    model.npu()"),
        ("if torch.version.hip or x:\n    model.cuda()", "    model.npu()"),
        ("if torch.version.hip is None:\n    model.cuda()", "    model.npu()"),
        ("if hip:\n    model.cuda()", "    model.npu()"),  # of a robot
        ("if leg.hip:\n    model.cuda()", "    model.npu()"),
    ],
)
def test_what_others_run_too_is_edited(before: str, after: str) -> None:
    assert migrate(torch_file(before)).data.decode().rstrip().endswith(after)


@pytest.mark.parametrize(("files", "codes"), [({}, ["NPU240"]), ({"b.py": "from train import version\n"}, ["NPU506"])])
def test_a_version_that_nobody_reads(files: dict[str, str], codes: list[str]) -> None:
    source = torch_file("version = torch.backends.cudnn.version()")
    found = migrate(source, files={"a.py": "import train\n", **files}).findings
    assert [each.code for each in found] == codes
