"""A project with more actions than a list has entries."""

from __future__ import annotations

from pathlib import Path

#: Its files: what they leave stands under most of what an action may block.
MANY = {
    "train.py": """\
import argparse

import flash_attn
import tutel
import yaml
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fast", action="store_true")
options = parser.parse_args()
config = yaml.load(open("c.yaml"))
model = nn.Linear(4, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.ones(2, 4).cuda()).sum()
    b, _ = torch.gesv(loss, torch.poisson(loss))
    loss.backward()
    optimizer.step()
    if options.fast:
        print(torch.cuda.nccl.version(), torch.cuda.get_device_capability()[0] >= 8)
torch.save(options, "o.pt")
""",
    "tests/test_it.py": "import torch\nimport tutel\n\nassert torch.poisson(torch.ones(2).cuda())\n",
    "tests/old.py": 'print "cuda"\n',
    "k8s/job.yaml": """\
apiVersion: batch/v1
kind: Job
spec:
  template:
    spec:
      containers:
      - name: train
        image: nvidia/cuda:11.3
        resources:
          limits:
            nvidia.com/gpu: 1
""",
    "requirements.txt": "torch==1.8.0\ntensorboard==1.14.0\nnumpy==1.16.0\n",
    "ops/k.cu": "#include <cuda_runtime.h>\n__global__ void add(float *x) { x[0] += 1; }\n",
    "setup.py": """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

setup(name="m", ext_modules=[CUDAExtension("m_ops", ["ops/k.cu"])], cmdclass={"build_ext": BuildExtension})
""",
}


def write_many(folder: Path) -> None:
    for path, text in MANY.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
