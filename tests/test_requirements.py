"""Packages that dependency files ask for: every format that projects use, and the lines that say nothing."""

from __future__ import annotations

import pytest

from tests.files.shell_pairs import TARGET
from transplt.base.finding import Level
from transplt.base.settings import Settings
from transplt.base.text.markers import holds_on_linux
from transplt.base.text.requirement import Requirement
from transplt.engine.actions.actions import actions_of
from transplt.engine.engine import index_source, join_facts, migrate_source
from transplt.engine.files.dependency_files import requirements_of
from transplt.engine.files.kind import FileKind, kind_of
from transplt.engine.files.other_file import migrate_other
from transplt.engine.files.requirements import requirement_findings
from transplt.rules.packages import advice_on_requirement, package_installed_as

READ = [
    ("requirements.txt", "flash-attn==2.5.8\n", [("flash-attn", "==2.5.8")]),
    ("requirements.txt", "xformers >= 0.0.20 ; python_version < '3.9'\n", [("xformers", ">= 0.0.20")]),
    ("requirements.txt", "ray[default]>=2,<3  # for tuning\n", [("ray", ">=2,<3")]),
    ("requirements.txt", "# flash-attn\n-r base.txt\n--index-url https://x/flash-attn\n\n", []),
    ("requirements.txt", "git+https://github.com/NVIDIA/apex.git@22.04\n", [("apex", "")]),
    ("requirements.txt", "-e git+https://github.com/o/r.git#egg=spconv\n", [("spconv", "")]),
    ("requirements.txt", "git+https://github.com/NVlabs/nvdiffrast/\n", [("nvdiffrast", "")]),
    ("requirements.txt", "git+https://x.y/o/tiny-cuda-nn/#subdirectory=bindings/torch\n", [("tiny-cuda-nn", "")]),
    ("requirements.txt", "git+https://x.y/o/r@v1#subdirectory=a/torch&egg=spconv\n", [("spconv", "")]),
    ("requirements.txt", "git+ssh://git@github.com/NVIDIA/apex.git\n", [("apex", "")]),
    ("requirements.txt", "https://torch:x@x.y/o/r@more/torch\n", [("r", "")]),
    ("requirements.txt", "cupy_cuda12x @ https://x/y.whl\n", [("cupy_cuda12x", "")]),
    ("requirements/gpu.in", "bitsandbytes\n", [("bitsandbytes", "")]),
    ("requirements2.txt", "cupy\n", [("cupy", "")]),
    ("requirements.txt", "cupy==1.0 --hash=sha256:00\n", [("cupy", "==1.0")]),
    ("requirements.txt", "cupy \\\n  ==1.0 \\\n  --hash=sha256:00\r\ndgl\n", [("cupy", "==1.0"), ("dgl", "")]),
    ("requirements.txt", "https://x/torch-1.8.1%2Bcpu-cp37-cp37m-linux_x86_64.whl\n", [("torch", "==1.8.1")]),
    ("requirements.txt", "./wheels/xformers-0.0.1-py3-none-any.whl\n", [("xformers", "==0.0.1")]),
    ("requirements.txt", "torch @ https://x/torch-1.8.1-cp37-cp37m-linux.whl\n", [("torch", "==1.8.1")]),
    ("requirements.txt", "torch @ https://x/torch-1.8.1.tar.gz\n", [("torch", "")]),
    (
        "pyproject.toml",
        '[project]\ndependencies = ["torch>=2", "xformers==0.0.22"]\n[project.optional-dependencies]\ngpu = ["cupy"]\n',
        [("torch", ">=2"), ("xformers", "==0.0.22"), ("cupy", "")],
    ),
    ("pyproject.toml", '[dependency-groups]\ndev = ["triton"]\n', [("triton", "")]),
    ("pyproject.toml", '[build-system]\nrequires = ["cumm-cu118"]\n', [("cumm-cu118", "")]),
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\npython = "^3.8"\nspconv = { version = "^2.1" }\n'
        '[tool.poetry.group.dev.dependencies]\ngsplat = "*"\n',
        [("spconv", "^2.1"), ("gsplat", "*")],
    ),
    (
        "pyproject.toml",
        '[tool.poetry.dependencies]\nspconv = [{ version = "^2.1", platform = "linux" }]\n',
        [("spconv", "^2.1")],
    ),
    ("pyproject.toml", """[project]\ndependencies = ["dgl ; os_name == \\"nt\\""]\n""", [("dgl", "")]),
    ("pyproject.toml", "a" + ".a" * 90 + " = 1\n[project]\ndependencies = ['cupy']\n", []),
    ("pyproject.toml", '[tool.pdm.dev-dependencies]\ngpu = ["dgl"]\n', [("dgl", "")]),
    ("pyproject.toml", '[tool.uv]\ndev-dependencies = ["apex"]\n', [("apex", "")]),
    ("pyproject.toml", "[project\n", []),
    ("Pipfile", '[packages]\nfaiss-gpu = "==1.7.2"\n', [("faiss-gpu", "==1.7.2")]),
    ("Pipfile.lock", '{"default": {"faiss-gpu": {"version": "==1.7.2"}}}', [("faiss-gpu", "==1.7.2")]),
    (
        "setup.cfg",
        "[metadata]\nname = x\n[options]\ninstall_requires =\n    torch\n    flash-attn>=2\nzip_safe = no\n",
        [("torch", ""), ("flash-attn", ">=2")],
    ),
    ("setup.cfg", "[options.extras_require]\ngpu = cupy\n    dgl\n", [("cupy", ""), ("dgl", "")]),
    ("setup.cfg", "[flake8]\nignore =\n    cupy\n", []),
    (
        "environment.yml",
        "name: cupy\ndependencies:\n  - pytorch::pytorch=1.4.0=py3.7_cuda10\n  - pip:\n    - xformers==0.0.1\n"
        "prefix: /x\n",
        [("pytorch", "=1.4.0"), ("pip", ""), ("xformers", "==0.0.1")],
    ),
    ("poetry.lock", '[[package]]\nname = "xformers"\nversion = "0.0.22"\n', [("xformers", "==0.0.22")]),
    ("uv.lock", 'version = 1\n[[package]]\nname = "gsplat"\nversion = "1"\n', [("gsplat", "==1")]),
    ("conda-lock.yml", "package:\n- name: cupy\n  version: 1\n", [("cupy", "==1")]),
    (
        "Dockerfile",
        "FROM python\nRUN pip install -U --index-url https://x/y xformers==0.0.22 \\\n    flash-attn && echo cupy\n",
        [("xformers", "==0.0.22"), ("flash-attn", "")],
    ),
    ("setup.sh", "conda install -c dglteam dgl -y; pip3 install 'spconv-cu118'\n", [("dgl", ""), ("spconv-cu118", "")]),
    ("setup.sh", "conda create -n x -y pytorch::pytorch=1.4=py3\n", [("pytorch", "=1.4")]),
    ("setup.sh", "pip -q install cupy\n", [("cupy", "")]),
    ("setup.sh", "# pip install cupy\npip install -r requirements.txt\n", []),
    ("ci.yml", "steps:\n  - run: uv pip install --no-deps bitsandbytes\n", [("bitsandbytes", "")]),
    ("nb.ipynb", '{"source": ["!pip install -q xformers\\n", "import cupy"]}', [("xformers", "")]),
    ("README.md", "pip install xformers\n", []),
]


@pytest.mark.parametrize(("path", "text", "asked"), READ)
def test_what_a_file_asks_for(path: str, text: str, asked: list[tuple[str, str]]) -> None:
    found = requirements_of(text, path, kind_of(path, text.encode()))
    assert [(each.name, each.versions) for each in found] == asked
    for each in found:
        assert text[each.start : each.end] == each.name


@pytest.mark.parametrize(
    ("versions", "specifier"),
    [
        ("", ""),
        ("*", ""),
        ("2.4.1", "==2.4.1"),
        ("2.4.*", "==2.4.*"),
        (">= 2.1 , < 2.5", ">=2.1,<2.5"),
        ("=2.4", "==2.4.*"),
        ("=2.4.*", "==2.4.*"),
        ("^2.1", ">=2.1,<3"),
        ("^0.9.1", ">=0.9.1,<0.10"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("~2.4.1", ">=2.4.1,<2.5"),
        ("~2.4", ">=2.4,<2.5"),
        ("~2", ">=2,<3"),
        ("~=2.4.1", "~=2.4.1"),
        ("==2.4.0+cu121", "==2.4.0+cu121"),
        ("^2.0 || ^3.0", ""),
        ("^2.0a1", ""),
        (">2 is needed", ""),
        ("=", ""),
    ],
)
def test_versions_in_the_form_of_pep_440(versions: str, specifier: str) -> None:
    assert Requirement("x", versions, 0, 1).specifier == specifier


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("", True),
        ("sys_platform != 'win32'", True),
        ("platform_system == 'Linux' and python_version >= '3.6'", True),
        ("platform_system == 'Darwin'", False),
        ("sys_platform == \\\"win32\\\"", False),
        ("platform_machine == 'arm64'", False),
        ("python_version < '3.7'", False),
        ("extra == 'gpu' and os_name == 'nt'", False),
        ("platform_machine == 'x86_64'", None),
        ("python_version < '3.10'", None),
        ("python_full_version >= '3.9.7' and python_full_version < '3.10'", None),
        ("os_name == 'nt' or python_version < '3.9'", None),
        ("platform_release >= '5'", None),
        ("extra == 'gpu'", None),
        ("is it?", None),
    ],
)
def test_whether_a_condition_holds_on_a_host_with_npus(marker: str, holds: bool | None) -> None:
    assert holds_on_linux(marker) is holds


SAID = [
    ("flash-attn", "==2.5", "NPU290", "the requirement flash-attn does not support NPUs"),
    ("Flash_Attn", "", "NPU290", "the requirement Flash_Attn does not support NPUs"),
    ("nvidia-cublas-cu12", "", "NPU290", "the requirement nvidia-cublas-cu12 is part of CUDA"),
    ("spconv-cu126", "", "NPU290", "the requirement spconv-cu126 does not support NPUs"),
    ("vllm", ">=0.9", "NPU290", "the requirement vllm needs an extra package for Ascend"),
    ("gsplat", "", "NPU290", "no published NPU support for the requirement gsplat"),
    (
        "transformers",
        "==4.2.1",
        "NPU291",
        "the requirement transformers ==4.2.1 only allows releases older than 4.32.0, the first that works with "
        "torch_npu",
    ),
    ("torch", "<2", "NPU291", None),
    ("torch", "=1.4", "NPU291", None),
    ("torch", "~=1.13.0", "NPU291", None),
    ("torch", "^1.8", "NPU291", None),
    ("torch", "==1.*", "NPU291", None),
    ("pytorch", ">=1.7,<=1.13.1", "NPU291", None),
    ("torchvision", "==0.5.0", "NPU291", None),
    ("timm", "==0.3.2", "NPU291", None),
    ("torch-geometric", "==2.2.0", "NPU291", None),  # it imports torch_sparse
    ("torch-geometric", "==2.3.1", None, None),
    ("torch-spline-conv", "==1.2.1+pt113cu117", "NPU290", None),
    ("bminf", "", "NPU290", None),
    ("torch", "", None, None),
    ("torch", ">=1.7", None, None),
    ("torch", "==2.*", None, None),
    ("torch", "==2.1", None, None),
    ("torch", "<3", None, None),
    ("torch", "~=2.0", None, None),
    ("torch", "^2.0", None, None),
    ("torch", "!=1.9", None, None),
    ("torch", "*", None, None),
    ("torchvision", "", None, None),
    ("transformers", "==4.40.0", None, None),
    ("transformers", ">=4.2", None, None),
    ("kornia", "", None, None),
    ("xgboost", "==1.0", None, None),
    ("numpy", "==1.0", None, None),
    ("my-flash-attn", "", None, None),
]


@pytest.mark.parametrize(("name", "versions", "code", "message"), SAID)
def test_what_is_said_of_a_requirement(name: str, versions: str, code: str | None, message: str | None) -> None:
    advice = advice_on_requirement(name, versions)
    assert (advice and advice.code) == code
    assert message is None or (advice is not None and advice.message == message)


@pytest.mark.parametrize(
    ("source", "name", "versions", "level"),
    [
        # a model as torch has it, from whatever release
        ("from transformers import PreTrainedModel, BertConfig\n", "transformers", "==4.15.0", Level.INFO),
        ("import transformers\nx = transformers.BertModel()\n", "transformers", "<4.20", Level.INFO),
        ("class Trainer: pass\nfrom transformers import BertModel\nTrainer()\n", "transformers", "==4.15", Level.INFO),
        ("from timm.models.layers import DropPath\n", "timm", "==0.4.12", Level.INFO),
        ("from diffusers import UNet2DModel\n", "diffusers", "==0.11.0", Level.INFO),
        ("from peft import LoraConfig\n", "peft", "==0.3.0", Level.INFO),
        # what places a model, and asks for the card itself
        ("from transformers import (\n    BertModel,\n    Trainer,\n)\n", "transformers", "==4.15.0", Level.MANUAL),
        ("def f():\n    from transformers.trainer import Trainer\n", "transformers", "==4.15.0", Level.MANUAL),
        ("import transformers\nx = transformers.TrainingArguments()\n", "transformers", "<4.20", Level.MANUAL),
        ("from timm.data import Mixup\n", "timm", "==0.4.12", Level.MANUAL),
        ("from timm.models.layers import DropPath\n", "timm", "==0.3.2", Level.MANUAL),
        ("import diffusers\npipe.enable_model_cpu_offload()\n", "diffusers", "==0.11.0", Level.MANUAL),
        ("from accelerate import Accelerator\n", "accelerate", "==0.10.0", Level.MANUAL),
    ],
)
def test_a_floor_holds_for_what_is_used_of_a_package(source: str, name: str, versions: str, level: Level) -> None:
    project = join_facts([index_source(source.encode(), "a.py", Settings())], Settings())
    advice = advice_on_requirement(name, versions, project.floors)
    assert advice is not None and (advice.code, advice.level) == ("NPU291", level)
    assert ("does not use that support" in advice.message) == (level is Level.INFO)
    alone = advice_on_requirement(name, versions)
    assert alone is not None and alone.level is Level.MANUAL


def test_a_floor_that_is_named_is_that_of_what_is_used() -> None:
    advice = advice_on_requirement("timm", "==0.3.2", {("timm", "0.4.5")})
    assert advice is not None and "older than 0.4.5" in advice.message


@pytest.mark.parametrize(("versions", "blocks"), [("==0.3.2", "import"), ("<0.4.5", "import"), ("==0.4.12", "")])
def test_a_pin_that_cannot_be_imported_stops_the_import(versions: str, blocks: str) -> None:
    advice = advice_on_requirement("timm", versions)
    assert advice is not None and advice.blocks == blocks


def test_one_finding_a_package_and_file() -> None:
    data = b"cupy\ntorch==1.4\nCUPY\n"
    found = requirement_findings(data, "requirements.txt", kind_of("requirements.txt", data))
    assert [(each.code, each.span.line, each.api) for each in found] == [("NPU290", 1, "cupy"), ("NPU291", 2, "torch")]


@pytest.mark.parametrize(
    ("name", "count"),
    [("requirements_xpu.txt", 0), ("requirements-rocm.txt", 0), ("requirements.txt", 1), ("requirements_x.txt", 1)],
)
def test_lists_for_the_cards_of_others(name: str, count: int) -> None:
    data = b"bitsandbytes\n"
    assert len(requirement_findings(data, f"sft/{name}", kind_of(name, data))) == count


def test_one_finding_a_lock_file() -> None:
    data = b'[[package]]\nname = "cupy"\n\n[[package]]\nname = "numpy"\n\n[[package]]\nname = "xformers"\n'
    (found,) = requirement_findings(data, "a/uv.lock", kind_of("a/uv.lock", data))
    assert found.message == "this lock file has packages without NPU support: cupy, xformers"


def test_a_package_with_a_cuda_version_at_its_end() -> None:
    row = package_installed_as("cupy-cuda12x")
    assert row is not None and row["name"] == "cupy"
    assert package_installed_as("xcu12") is None


@pytest.mark.parametrize(
    ("name", "module"), [("flash-attn", "flash_attn"), ("vllm", "vllm"), ("torch-scatter", "torch_scatter")]
)
def test_a_requirement_and_the_import_of_its_package_are_one_action(name: str, module: str) -> None:
    data = f"{name}\n".encode()
    asked = requirement_findings(data, "requirements.txt", kind_of("requirements.txt", data))
    imported = migrate_source(f"import {module}\nuse_cuda = True\n".encode(), "train.py", Settings()).findings
    (action,) = actions_of([*asked, *imported])
    assert {place.path for place in action.places} == {"requirements.txt", "train.py"}


_CLONE = "git clone -b v2.3.3 https://github.com/Dao-AILab/flash-attention"


@pytest.mark.parametrize(
    ("path", "text", "names"),
    [
        ("Dockerfile", f"RUN {_CLONE} && cd flash-attention && pip3 install .\n", ["flash_attn"]),
        ("Dockerfile", f"RUN <<EOF\n{_CLONE}.git\ncd x &&\n    pip3 install csrc/layer_norm\nEOF\n", ["flash_attn"]),
        ("build.sh", "git clone git@github.com:NVIDIA/apex.git\ncd apex\npython setup.py install\n", ["apex"]),
        ("build.sh", "git clone https://github.com/NVIDIA/TransformerEngine\npip install -v -e TransformerEngine/\n",
         ["transformer_engine"]),
        ("build.sh", f"{_CLONE}\nls flash-attention\n", []),
        ("build.sh", f"# {_CLONE}\npip install .\n", []),
        ("build.sh", "git clone https://gitee.com/ascend/apex\npip install ./apex\n", []),
        ("build.sh", "git clone https://github.com/vllm-project/vllm.git\npip install ./vllm\n", []),
        ("build.sh", "git clone https://github.com/some/project.git\npip install ./project\n", []),
    ],
)  # fmt: skip
def test_what_is_built_from_a_clone(path: str, text: str, names: list[str]) -> None:
    found = requirement_findings(text.encode(), path, kind_of(path, text.encode()))
    assert [each.api for each in found] == names


def test_a_compiled_file_has_an_action_with_a_name() -> None:
    text = b"# This file was autogenerated by uv via the following command:\n#    uv pip compile x.in\ntorch==2.4.0\n"
    result, _ = migrate_other(text, "requirements.txt", FileKind.REQUIREMENTS, Settings(), TARGET)
    assert [action.title for action in actions_of(result.findings)] == [
        "Use the release of torch that matches torch_npu"
    ]


@pytest.mark.parametrize(
    ("text", "api", "blocks"),
    [
        ("bitsandbytes\n", "bitsandbytes", "later"),  # pip installs it, and its import alone does not fail
        ("cpm_kernels\n", "cpm_kernels", "later"),
        ("flash-attn\n", "flash_attn", ""),
        ("polygraphy\n", "tensorrt", ""),  # one thing to do with what it is a tool of
    ],
)
def test_what_a_requirement_blocks(text: str, api: str, blocks: str) -> None:
    (found,) = requirement_findings(text.encode(), "requirements.txt", kind_of("requirements.txt", b""))
    assert (found.api, found.blocks) == (api, blocks)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("[options]\ninstall_requires =\n    cupy\n", [""]),
        ("[options.extras_require]\nfast = cupy\n", ["the extra fast"]),
        ("[options.extras_require]\nfast =\n    numpy\n    cupy\ndev = gsplat\n", ["the extra fast", "the extra dev"]),
        ("[options.extras_require]\nfast-cuda = numpy\n", ["the extra fast-cuda"]),
        ("[options.extras_require]\nfast = numpy\n[options]\ninstall_requires = cupy\n", [""]),
    ],
)
def test_what_only_an_extra_of_setup_cfg_asks_for(text: str, options: list[str]) -> None:
    data = text.encode()
    result, _ = migrate_other(data, "setup.cfg", kind_of("setup.cfg", data), Settings(), TARGET)
    assert [each.option for each in result.findings if each.open] == options
