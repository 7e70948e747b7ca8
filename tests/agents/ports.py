"""Small training programs whose migration leaves something to do, each with the edits that a person would make."""

from __future__ import annotations

from dataclasses import dataclass

_TRAINING = """
model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
"""
_X = "x = torch.randn(8, 4).cuda()\n"


def program(before: str = "", imports: str = "") -> str:
    """A training of three steps, with something before it that gives it `x`."""
    return f"import torch\n{imports}\ntorch.manual_seed(0)\n{before or _X}{_TRAINING}"


@dataclass(frozen=True, slots=True)
class Port:
    """The files of a program; by code of an action what is edited for it: file, before (empty: the whole file; the new
    text None: it is deleted), after."""

    files: dict[str, str]
    edits: dict[str, tuple[tuple[str, str, str | None], ...]]


_SETUP = """from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(
    name="scale",
    ext_modules=[CUDAExtension("scale_cuda", ["csrc/scale_kernel.cu"])],
    cmdclass={"build_ext": BuildExtension},
)
"""
_KERNEL = (
    "#include <torch/extension.h>\n__global__ void scale_kernel(float* x, int n) { x[threadIdx.x] *= 2; }\n"
)
_NEW_CUDA = "if torch.version.cuda is not None and float(torch.version.cuda[:2]) > 11:\n"
_READ_YAML = "settings = yaml.safe_load(Path(__file__).with_name('settings.yaml').read_text())\n"
_READ_JSON = "settings = json.loads(Path(__file__).with_name('settings.json').read_text())\nwhere = settings['hw']\n"

PORTS = {
    "capability of the card": Port(
        {"main.py": program(_X + "major, minor = torch.cuda.get_device_capability()\nprint(major >= 7)\n")},
        {"NPU503": (
            ("main.py", "major, minor = torch.cuda.get_device_capability()\nprint(major >= 7)\n", "print(True)\n"),
        )},
    ),
    "nccl in a YAML file": Port(
        {
            "main.py": program(_READ_YAML + "x = torch.randn(8, 4).to(settings['accel'])\n",
                               "import yaml\nfrom pathlib import Path\n"),
            "settings.yaml": "accel: cuda:0\ncomm: nccl\n",
        },
        {"NPU821": (("settings.yaml", "nccl", "hccl"),)},
    ),
    "a device in JSON": Port(
        {
            "main.py": program(_READ_JSON + "x = torch.randn(8, 4).to(where)\n",
                               "import json\nfrom pathlib import Path\n"),
            "settings.json": '{"hw": "cuda", "comm": "nccl"}\n',
        },
        {"NPU821": (("settings.json", "nccl", "hccl"),)},
    ),
    "a word from the environment": Port(
        {"main.py": program("backend = os.environ.get('MY_ACCEL', 'cuda')\nx = torch.randn(8, 4)\n"
                            "x = x.cuda() if backend == 'cuda' else x\n", "import os\n")},
        {"NPU203": (("main.py", "'MY_ACCEL', 'cuda'", "'MY_ACCEL', 'npu'"),
                    ("main.py", "backend == 'cuda'", "backend == 'npu'"))},
    ),
    "a method by its name": Port(
        {"main.py": program("def place(t, kind):\n    return getattr(t, kind)()\n\n"
                            "x = place(torch.randn(8, 4), 'cuda')\n")},
        {"NPU203": (("main.py", "4), 'cuda')", "4), 'npu')"),)},
    ),
    "a kernel of its own": Port(
        {
            "main.py": program(_X + "x = scale_cuda.scale(x) if scale_cuda else x * 2\n",
                               "try:\n    import scale_cuda\nexcept ImportError:\n    scale_cuda = None\n"),
            "csrc/scale_kernel.cu": _KERNEL,
            "setup.py": _SETUP,
        },
        {
            "NPU550": (("setup.py", "", "from setuptools import setup\n\nsetup(name=\"scale\")\n"),
                       ("csrc/scale_kernel.cu", "", None)),
            "NPU553": (
                ("main.py", "try:\n    import scale_cuda\nexcept ImportError:\n    scale_cuda = None\n", ""),
                ("main.py", "scale_cuda.scale(x) if scale_cuda else x * 2", "x * 2"),
            ),
        },
    ),
    "pins of CUDA packages": Port(
        {"main.py": program(), "requirements.txt": "torch==2.8.0\nbitsandbytes==0.43\nflash-attn\nnvidia-ml-py\n"},
        {
            "NPU804": (("requirements.txt", "nvidia-ml-py\n", ""),),
            "NPU290": (("requirements.txt", "bitsandbytes==0.43\n", ""), ("requirements.txt", "flash-attn\n", "")),
        },
    ),
    "nvidia-smi in a script": Port(
        {"main.py": program(), "run.sh": "#!/bin/bash\nnvidia-smi -pm 1\nCUDA_VISIBLE_DEVICES=$1 python main.py\n"},
        {"NPU816": (("run.sh", "nvidia-smi -pm 1\n", ""),)},
    ),
    "an image of CUDA": Port(
        {
            "main.py": program(),
            "Dockerfile": "FROM nvidia/cuda:12.1.0-devel-ubuntu22.04\nRUN pip install torch\nCMD python main.py\n",
        },
        {"NPU850": (
            ("Dockerfile", "nvidia/cuda:12.1.0-devel-ubuntu22.04", "ascendai/cann:8.3.rc1-910b-ubuntu22.04-py3.11"),
        )},
    ),
    "nvidia-smi in the code": Port(
        {"main.py": program(_X + "try:\n    subprocess.run(['nvidia-smi'], check=False)\nexcept OSError:\n    pass\n",
                            "import subprocess\n")},
        {"NPU245": (("main.py", "['nvidia-smi']", "['npu-smi', 'info']"),)},
    ),
    "the version of CUDA": Port(
        {"main.py": program(_X + _NEW_CUDA + "    x = x + 0\n")},
        {"NPU506": (
            ("main.py", _NEW_CUDA + "    x = x + 0\n", ""),
        )},
    ),
    "architectures of the card": Port(
        {"main.py": program(_X + "print(len(torch.cuda.get_arch_list()) >= 0)\n")},
        {"NPU501": (("main.py", "print(len(torch.cuda.get_arch_list()) >= 0)", "print(True)"),)},
    ),
}  # fmt: skip
