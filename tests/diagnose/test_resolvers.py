"""What pip, uv and conda say where versions exclude each other, and packages that hide one another."""

from __future__ import annotations

import pytest

from tests.diagnose.diagnoses import diagnosed
from tests.diagnose.test_readings import collected_from, told

UV = "  x No solution found when resolving dependencies:\n  `-> Because {}, we can conclude that it does not go.\n"
PIP = "The conflict is caused by:\n    {}\n    {}\n\nERROR: ResolutionImpossible: for help visit https://pip.pypa.io\n"
SITE = "/opt/py/lib/python3.10/site-packages"


@pytest.mark.parametrize(
    ("text", "name", "names"),
    [
        (PIP.format("vllm 0.9.1 depends on torch==2.7.0", "vllm-ascend 0.9.1 depends on torch==2.5.1"), "pip-conflict",
         "vllm 0.9.1 requires torch==2.7.0 (that of GPUs), vllm-ascend 0.9.1 requires torch==2.5.1"),
        (PIP.format("tool 1.0 depends on torch==2.1.0; extra == 'npu'", "torch-npu 2.1.0 depends on torch==2.1.0+cpu"),
         "pip-conflict", "https://download.pytorch.org/whl/cpu"),
        (PIP.format("foo 1.2 depends on numpy==1.26.4", "bar[x] 3.4 depends on numpy==2.0.1"), "pip-conflict",
         "foo 1.2 requires numpy==1.26.4, bar 3.4 requires numpy==2.0.1"),
        (PIP.format("The user requested torch==2.3.1", "torch-npu 2.4.0 depends on torch==2.4.0"), "pip-conflict",
         "torch==2.3.1 is required, and torch-npu 2.4.0 needs torch==2.4.0"),
        # What may well go together is not said to be the conflict.
        (PIP.format("foo 1.2 depends on numpy>=1.20", "bar 3.4 depends on numpy<2"), "pip-conflict", "name what"),
        (UV.format("torch-npu==2.6.0 depends on torch==2.6.0 and you require torch==2.7.0"), "pip-conflict",
         "torch==2.7.0 is required"),
        (UV.format("there is no version of triton-ascend==9.9.9 and you require it"), "pip-no-version",
         "https://mirrors.huaweicloud.com/ascend/repos/pypi"),
        (UV.format("torch-npu==9.9 has no wheels with a matching Python version tag"), "pip-no-version",
         "another Python version than"),
        (UV.format("only torch-npu<=2.1.0 is available and you require more"), "pip-no-version",
         "torch-npu<=2.1.0 only"),
        (UV.format("the requested Python version (>=3.8) does not satisfy Python>=3.9 and x does"), "pip-no-version",
         "is for Python >=3.9 only"),
        (UV.format("something else holds"), "resolver-failed", "Read the lines behind it"),
        ("ERROR: Cannot install torch-npu==2.5.1 and torch==2.5.1 because these package versions have conflicting "
         "dependencies.", "pip-conflict", "torch==2.5.1+cpu"),
        ("PackagesNotFoundError: The following packages are not available from current channels:\n\n  - torch_npu\n",
         "pip-no-version", "are installed with pip"),
        ("PackagesNotFoundError: The following packages are not available from current channels:\n\n  - foo\n",
         "pip-no-version", "conda search"),
        ("te 0.4.0 requires cloudpickle, which is not installed.", "pip-incompatible", "compiler of operators"),
        ("foo 1.0 requires bar>=2, which is not installed.", "pip-incompatible", "pip install bar"),
        ("torch-npu 2.5.1 requires torch==2.5.1, but you have torch 2.6.0 which is incompatible.", "torch-pair",
         "torch 2.6.0 was installed over"),
        ("foo 4.1 requires numpy>=2, but you have numpy 1.26.4 which is incompatible.", "pip-incompatible",
         "foo 4.1 requires numpy>=2, and numpy 1.26.4 is installed"),
        ("vllm 0.9.1 requires torch==2.7.0, but you have torch 2.5.1 which is incompatible.", "pip-incompatible",
         "that notice can be left"),
    ],
)  # fmt: skip
def test_what_a_resolver_says_is_told_with_both_sides(text: str, name: str, names: str) -> None:
    assert diagnosed(text).first == name and names in told(text)


@pytest.mark.parametrize(
    "text", ["torch_npu depends on CANN, and vllm depends on torch.\n", "torchvision 0.18.1 depends on torch==2.3.1\n"]
)
def test_prose_on_what_depends_on_what_is_no_conflict(text: str) -> None:
    assert not diagnosed(text).heads


@pytest.mark.parametrize(
    ("text", "name", "names"),
    [
        ("ModuleNotFoundError: No module named 'transfer_to_npu'", "contrib-import", "from torch_npu.contrib import"),
        ("ModuleNotFoundError: No module named 'torch.npu'", "contrib-import", "import torch_npu before"),
        ("ModuleNotFoundError: No module named 'my_transfer'", "module-missing", "pip install my_transfer"),
        ("ModuleNotFoundError: No module named 'triton._C.libtriton.ascend'", "triton-two", "uninstall -y triton"),
        ("ModuleNotFoundError: No module named 'triton'", "cuda-package-missing", "Triton is not installed"),
        ("AttributeError: module 'peft' has no attribute '__version__'", "package-hidden", "cd ~"),
        ("AttributeError: module 'vllm' has no attribute 'SamplingParams'", "package-hidden", "cd ~"),
        ("AttributeError: module 'vllm' has no attribute 'envs_of_another'", "vllm-pair", "vllm was updated"),
        ("AttributeError: module 'mine' has no attribute '__version__'", "import-name", "mine"),
        ("ModuleNotFoundError: No module named 'transformers.models'; 'transformers' is not a package",
         "module-missing", "A file transformers.py stands before"),
        ("ImportError: cannot import name 'Moe' from 'vllm_ascend.ops' (/x/vllm_ascend/ops.py)", "vllm-pair",
         "vllm-omni"),
        ("ImportError: ascend_transport.so: cannot open shared object file: No such file or directory",
         "library-missing", "LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/lib"),
        ("ImportError: libglog.so.1: cannot open shared object file", "library-missing", "libgoogle-glog-dev"),
        ("ImportError: undefined symbol: _ZNK6AsdOps3Ops5NamedERKSs", "cann-symbol", "--cxx_abi=0"),
        ("libra.so: undefined symbol: ra_get_thing", "driver-symbol", "Driver and firmware"),
        ("[ERROR]Dkms install failed, details in : ascend_install.log.", "driver-module", "/var/lib/dkms"),
        ("dcmi module initialize failed. ret is -8001", "dcmi-busy", "--upgrade"),
        ("dcmi module initialize failed. ret is -8005", "dcmi-busy", "held by another container"),
        ("RuntimeError: Unsupported soc version: Ascend310", "soc-not-supported", "atc --soc_version=Ascend310"),
        ("RuntimeError: Unsupported soc version: Ascend310B4", "soc-not-supported", "card of another family"),
        ("/w/npu_ops/op_kernel/a.cpp:3:9: error: use of undeclared identifier 'Foo'", "sources-other-cann",
         "another CANN"),
    ],
)  # fmt: skip
def test_a_package_or_library_in_the_place_of_another(text: str, name: str, names: str) -> None:
    assert diagnosed(text).first == name and names in told(text)


def test_a_source_for_gpus_is_not_said_to_be_for_another_cann() -> None:
    assert not diagnosed("/w/npu/a.cpp:3:9: error: use of undeclared identifier 'cudaStream_t'\n").heads


LOADS = "RuntimeError: Failed to load the backend extension: torch_npu. You can disable extension auto-loading.\n"


def test_triton_before_torch_is_seen_by_the_frames() -> None:
    frames = "".join(
        f'  File "{path}", line 3, in <module>\n    x\n'
        for path in ("/job/a.py", f"{SITE}/triton/backends/__init__.py", f"{SITE}/torch/__init__.py")
    )
    assert "import torch and torch_npu before triton" in told(f"Traceback (most recent call last):\n{frames}{LOADS}")
    other = frames.replace("triton/backends", "peft/tuners")
    assert "before triton" not in told(f"Traceback (most recent call last):\n{other}{LOADS}")


def test_files_of_two_releases_of_cann_are_named() -> None:
    log = "CMake Error at /a/cann-8.5.1/x.cmake:2 (include): torch_npu\n  /b/cann-9.0.0/y.cmake\n"
    assert "files of CANN 8.5.1 and of CANN 9.0.0" in collected_from(log).versions.mismatch()
    assert not collected_from(log.replace("9.0.0", "8.5.1")).versions.mismatch()
    broken = log.replace("torch_npu", "\n  include could not find requested file:\n")
    assert "files of 8.5.1 look for a file of 9.0.0" in told(broken)
    assert "are mixed in this build" not in told(broken.replace("9.0.0", "8.5.1"))
