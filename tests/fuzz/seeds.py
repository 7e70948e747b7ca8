"""What the mutations start from: files of the samples, and small ones that hold what each reader looks for."""

from __future__ import annotations

import encodings.aliases
import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parent.parent.parent
#: Larger samples are slow, and mutations of them say no more.
_MAX_BYTES = 3000


@cache
def python_files() -> tuple[bytes, ...]:
    """The Python files of the samples and of the tests, short ones, in one order."""
    paths = [*ROOT.glob("samples/*/**/*.py"), *ROOT.glob("tests/data/tuned/*.py"), *ROOT.glob("tests/fixtures/*/*.in.py")]
    found = sorted({path.read_bytes() for path in paths if path.stat().st_size <= _MAX_BYTES})
    return tuple(data for data in found if data.strip())


PIECES = tuple(
    text.encode()
    for text in (
        "import torch\nx = torch.zeros(2, device='cuda').cuda()\ntorch.cuda.synchronize()\n",
        "import torch, os\nmatch torch.cuda.is_available():\n    case True if (d := 'cuda'): pass\n    case {'cuda': x, **r}: pass\n",
        "from torch.cuda import *\nfrom torch.cuda.amp import (autocast as ac, GradScaler,)\nwith ac(), (ac() as y): pass\n",
        "import torch\nasync def f(*, d: torch.cuda.FloatTensor = torch.device('cuda'), **k) -> 'cuda':\n    async with torch.cuda.stream(s): await x\n",
        "import torch\n@torch.cuda.amp.custom_fwd(cast_inputs=torch.float16)\n@staticmethod\ndef f(ctx, /, a, *b): return a.cuda(b[0])\n",
        "import torch\nf'{torch.cuda.device_count()!r:>{10}} cuda:{i} {\"cuda\"}' 'cuda' rb'cuda'.decode()\nprint(f\"{x.cuda()=}\")\n",
        "import torch\nd = {'cuda:0': 0, \"cuda\": [torch.cuda], **{'nccl': None}}\nx[d['cuda'], ...].to('cuda:1', non_blocking=True)\ndel d['cuda']\n",
        "import torch.distributed as dist\ndist.init_process_group(backend='nccl', init_method='env://', rank=int(os.environ['LOCAL_RANK']))\n",
        "import torch\nif torch.cuda.is_available(): device = 'cuda'; n = 1\nelse: device = 'cpu'\nassert device == 'cuda', 'no CUDA'\n",
        "import torch\nclass M(torch.nn.Module):\n\tdef cuda(self, device=None):\n\t\treturn super().cuda(device)\n\tcuda.x: int = lambda cuda: cuda.y\n",
        "try:\n    import torch.cuda as c, apex\nexcept (ImportError, torch.cuda.OutOfMemoryError) as e:\n    raise SystemExit('cuda') from e\nfinally:\n    c.empty_cache()\n",
        "import torch\nglobal cuda\nx = [i.cuda() for i in range(torch.cuda.device_count()) if i for j in 'cuda']\ny = x if x.is_cuda else not x.get_device() \\\n    .cuda()\n",
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--device', default='cuda', choices=['cuda', 'cpu'], help='cuda or cpu')\na = p.parse_args()\nx.to(a.device)\n",
        "import torch\nm = torch.nn.parallel.DistributedDataParallel(m.cuda(), device_ids=[0])\nfor x, y in l:\n    o.zero_grad(); loss = f(m(x.cuda()), y); loss.backward(); o.step()\n",
        "import torch\ntype X[T: torch.cuda.Stream] = list[T]\ndef g[T](a: T = torch.cuda.Event()) -> T: return torch.cuda.current_stream().record_event(a)\n",
        "import os\ncmd = 'CUDA_VISIBLE_DEVICES=0 python a.py --device cuda'\ncmd = f'nohup {cmd}' + cmd\nos.system(cmd)\nfor k in (k, 'CUDA_HOME'): os.environ[k]\n",
        "import torch\na = torch.cuda.is_available() and a\nb, c = c, b\ndef f(x): return g(x)\ndef g(x): return f(x.to(b))\nclass A(B): d = 'cuda'\nclass B(A): d = A.d\n",
        "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n'''cuda'''\nfrom __future__ import annotations\nimport torch as t; t.backends.cudnn.benchmark = t.backends.cudnn.enabled = True\n",
    )
)

PROFILES = tuple(
    text.encode()
    for text in (
        'Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes\n1,aclnnMul_X_Mul,Mul,AI_CPU,"10\t",5,"""8"""\n2,hcom_allReduce__1_0,hcom_allReduce_,HCCL,12,5,N/A\n',
        'Name,Input Shapes,Call Stack,Host Self Duration(us),Device Self Duration(us)\naten::mul,"8","/a/net.py(3): f;\r\n/b/t.py(9): main",1,5\n',
        "Device_id,Step,Computing,Communication(Not Overlapped),Communication,Free,Preparing\n0,1,1000,300,400,700,50\n",
        "Device_id,Level,API Name,Time(us),Count,Max(us)\nh,acl,aclopCompileAndExecute,600,3,400\nh,acl,aclrtSynchronizeStream,6,3,4\n",
        '[{"ph":"X","name":"aten::mul","pid":1,"tid":2,"ts":"17.5","dur":13.08,"cat":"cpu_op","args":{"Call stack":"/a/net.py(3): f"}},{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"Ascend Hardware"}}]',
        '{"traceEvents":[{"ph":"X","name":"Computing","pid":4,"tid":0,"ts":1,"dur":5},{"ph":"M","name":"process_name","pid":4,"args":{"name":"Overlap Analysis"}}]}',
        "[INFO] ASCENDCL(1,python):2021 [op.cpp:1]2 aclopCompile::aclOp = OpType: TransData, InputDesc[0]: [TensorDesc] DataType = 1, Format = 0, StorageFormat = 0, Shape = [8, 4], OutputDesc[0]: [TensorDesc] DataType = 1, Format = 0, StorageFormat = 3, Shape = [8, 4], \nMatch op inputs failed\n",
        "-----------  --------  --------  ----------\nName  Self CPU  Self NPU  # of Calls\n-----------  --------  --------  ----------\naten::mul  1.5us  2.0ms  3\n-----------  --------  --------  ----------\n",
    )
)

COMMENTED = tuple(
    text.encode()
    for text in (
        "import torch\ntorch.cuda.synchronize()  # transplt: ignore\n",
        "import torch\ntorch.cuda.synchronize()  # transplt: ignore[NPU101]\nx.cuda()  # transplt:ignore[NPU1, NPU201]\n",
        "import torch\nx = [\n    torch.cuda.y,  # transplt: ignore[]\n    'cuda',  # transplt: ignore[npu201,]\n]\n",
        "# transplt: ignore[NPU999 NPU8]\nexport CUDA_VISIBLE_DEVICES=0  # transplt: ignore[NPU801]\nnvidia-smi // transplt: ignore\n",
        "# transplt: ignore-file\nx.cuda()  # noqa  # transplt: ignore[NPU130]  # type: ignore\n'# transplt: ignore'\n",
    )
)

_CODECS = sorted({*encodings.aliases.aliases, *encodings.aliases.aliases.values(), "idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-8-sig", "no-such"})  # fmt: skip


@st.composite
def cookies(draw: st.DrawFn) -> bytes:
    """Files with a coding cookie of any kind, in its encoding or not."""
    name = draw(st.sampled_from(_CODECS))
    head = draw(st.sampled_from(["# coding: {}", "# -*- coding: {} -*-", "#!x\n# vim: set fileencoding={} :", "\n#coding={}", "'''x'''\n# coding: {}"]))
    body = draw(st.sampled_from(["", "caf\u00e9 \u4e2d", "\U0001d4ec", "\\u0063", "."]))
    text = head.format(name) + f"\nimport torch\ntorch.cuda.synchronize()  # {body}\nx = '{body} cuda'\n"
    how = draw(st.sampled_from(["own", "utf-8", "latin-1", "utf-16", "utf-8-sig"]))
    try:
        data = text.encode(name if how == "own" else how, "replace")
    except (LookupError, UnicodeError, TypeError, AssertionError):
        data = text.encode()
    return data if isinstance(data, bytes) else text.encode()


def texts() -> st.SearchStrategy[bytes]:
    """Texts for the call with a `str`, lone surrogates and all, as bytes of UTF-8 that pass them."""
    heads = st.sampled_from(["", "torch.cuda\n", "import torch\nx.cuda()  # ", "def f(:\n  torch.cuda\n", "'''"])
    tails = st.text(st.characters(codec=None, exclude_categories=[]), max_size=60)
    return st.builds(lambda head, text: (head + text).encode("utf-8", "surrogatepass"), heads, tails)


NOTEBOOK_VALUES: tuple[Any, ...] = (
    {
        "cells": [
            {"cell_type": "code", "source": ["import torch\n", "x = torch.zeros(2).cuda()\n"], "outputs": [{"text": ["cuda:0\n"]}], "metadata": {}},
            {"cell_type": "code", "source": "!nvidia-smi\n%env CUDA_VISIBLE_DEVICES=0\n%%bash\nnvcc --version", "execution_count": None},
            {"cell_type": "markdown", "source": ["# CUDA\n", "needs `cuda`"], "attachments": {"a.png": {"image/png": "iVBOcuda" * 9}}},
        ],
        "metadata": {"kernelspec": {"language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    },
    {"worksheets": [{"cells": [{"cell_type": "code", "input": ["x.cuda()"]}]}], "nbformat": 3},
)  # fmt: skip
NOTEBOOKS = tuple(json.dumps(value, indent=indent).encode() for value in NOTEBOOK_VALUES for indent in (None, 1))

YAML = (
    b"device: cuda\ntrainer: {gpus: 2, backend: nccl}\nenv:\n  - CUDA_VISIBLE_DEVICES=0,1  # cuda\n",
    b"name: x\ndependencies:\n  - pytorch::pytorch=2.1\n  - pytorch-cuda=12.1\n  - pip:\n    - torch==2.4.0+cu121\n",
    b"%YAML 1.2\n--- !!python/object/apply:os.system [cuda]\na: &a [*a, 'cuda', \"nccl\"]\nb: |\n  x.cuda()\n  nvcc\n...\n---\n? cuda\n: >-\n",
    b"services:\n  x:\n    image: nvidia/cuda:12.1\n    runtime: nvidia\n    deploy: {resources: {reservations: {devices: [{driver: nvidia}]}}}\n",
)

CONFIGURATIONS = (
    b'{"a": {"device": "cuda", // x\n "l": ["--device", "cuda:0", {"use_cuda": true}]}, "env": {"NCCL_DEBUG": "INFO"},}\n',
    b'device = "cuda"\n[a.b]\nl = ["--device", "cuda", {x = \'nccl\'}]\nt = """cuda\n"""\n[[u]]\nd = 2020-01-01 10:00:00\n',
    b"[a]\ndevice = cuda ; x\nb: 'cuda:1'\r\nexport CUDA_VISIBLE_DEVICES=0,1\n",
    b"a: &a !!str cuda\nb: {<<: {c: *a}, d: '${a}'}\nargs: [--device=cuda, x.y=nccl]\nm: !new:torch.device\n  type: cuda:0\n",
    b"compute_environment: X\ndistributed_type: MULTI_GPU\nddp_backend: nccl\n",
)

SHELL = (
    b"#!/bin/sh\nexport CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0}\nnvidia-smi | grep cuda  # cuda\npython train.py --backend nccl\n",
    b"FROM nvidia/cuda:12.1-devel\nRUN pip install torch==2.4.0+cu121 --index-url https://x/whl/cu121\nENV NCCL_DEBUG=INFO\n# cuda\n",
    b"for i in $(seq 0 $((N-1))); do NCCL_P2P_DISABLE=1 CUDA_VISIBLE_DEVICES=$i python - <<'EOF' &\nimport torch; torch.cuda\nEOF\ndone\n",
    b"all: x.cu\n\tnvcc -o $@ $< -lcublas -lcudnn # nvtx\nNVCC ?= /usr/local/cuda/bin/nvcc\n",
)

RECIPES = (
    b"# escape=`\nFROM nvidia/cuda:12.1 AS b\nENV CUDA_HOME=/usr/local/cuda `\n  CUDA_VISIBLE_DEVICES=0\nRUN <<EOF\nnvidia-smi\nEOF\n",
    b"services:\n  a:\n    runtime: nvidia\n    environment: [CUDA_VISIBLE_DEVICES=0]\n    devices: [{driver: nvidia}]\n",
    b"apiVersion: v1\nresources: &r {limits: {nvidia.com/gpu: 1}}\nenv:\n- {name: CUDA_VISIBLE_DEVICES, value: '0'}\n",
    b"env: {CUDA_VISIBLE_DEVICES: 0}\njobs:\n  a:\n    steps:\n    - run: |\n        nvidia-smi ${{ x }}\n\n        CUDA_VISIBLE_DEVICES=0 a\n",
    b"CUDA_VISIBLE_DEVICES ?= 0\nexport CUDA_VISIBLE_DEVICES\na:\n\t@nvidia-smi $(X) $$Y \\\n\t  cuda # nccl\n",
    b'{"runArgs": ["--gpus", "all"], // cuda\n "containerEnv": {"CUDA_VISIBLE_DEVICES": "0"},}\n',
)

OTHER = (
    b'#include <cuda_runtime.h>\n__global__ void k() {} // cuda\n/* nvcc */ cudaMalloc(&p, 1); "cublas"\n',
    b"# CUDA\nThis needs cuda 11 and nccl.\n",
    b'{"device": "cuda", "fp16": {"nccl": true}}\n',
    b"def f(x: torch.cuda.Stream) -> None: ...  # cuda\n",
    b"{% if cuda %}x.cuda(){% endif %}\n",
    b"[tool.x]\ncuda = 'cuda'  # transplt: ignore[NPU8]\n",
    b'[[package]]\nname = "nvidia-cuda-runtime-cu12"\nversion = "12.1"\n',
)

REQUIREMENTS = (
    b"torch>=2.1,<2.9 ; python_version >= '3.8'\ntorchvision==0.16\n-r other.txt\ntorch[opt]==2.4.0+cu121 --hash=sha256:0\n",
    b"[project]\ndependencies = ['torch~=2.3']\n[tool.poetry.dependencies]\ntorch = {version = '^2.1', optional = true}\n[dependency-groups]\nx = [{include-group = 'y'}]\n",
    b"from setuptools import setup\nsetup(install_requires=['torch (>=2.0)', 'torch==2.*'], extras_require={'a': ['torch!=2.5.1']})\n",
    b"[options]\ninstall_requires =\n    torch == 2.6\n    torch @ https://x/torch-2.4.0-cp310.whl\n",
    b"dependencies:\n  - pytorch::pytorch=2.1.*\n  - torch >=2.2,<3\n  - pytorch=2.4=py3.10_cuda12.1_0\n  - pip:\n    - torch==2.5\n",
    b"-e git+https://github.com/NVIDIA/apex.git@22.04#egg=apex\nhttps://x/torch-2.4.0%2Bcu121-cp310-linux_x86_64.whl \\\n  --hash=sha256:0\n./w/xformers-0.0.1-py3-none-any.whl\ncupy @ https://x/cupy-13-cp310.whl\n",
    b"[options]\ninstall_requires = torch==2.4\n    flash-attn>=2 ; os_name == 'nt'\n[options.extras_require]\ngpu = dgl[x]~=1.1\n# cupy\n[flake8]\nx = cupy\n",
    b"[tool.poetry.dependencies]\npython = '^3.8'\ntorch = [{version = '^0.4.1', platform = 'linux'}, {url = 'https://x/torch-2.4-cp310.whl'}]\n'spconv' = '~2.1'\n[tool.poetry.group.x.dependencies]\ngsplat = '*'\n",
    b"[packages]\ntorch = '==2.4.0'\nxformers = {version = '0.0.22', extras = ['x']}\n[dev-packages]\ncupy = '*'\n[dependencies]\npytorch = '2.4.*'\n[pypi-dependencies]\ndgl = {git = 'https://x'}\n",
    b'{"default": {"torch": {"hashes": ["sha256:0"], "version": "==2.4.0"}, "faiss-gpu": "==1"}, "develop": {"cupy": {}}}\n',
    b'version = 1\n[[package]]\nname = "torch"\nversion = "2.4.1+cu121"\n\n[[packages]]\nname = "gsplat"\nversion = "1!2.0rc1"\n[[package]]\nsource = "x"\nname = "cupy"\n',
    b"package:\n- name: pytorch\n  version: 2.4.1\n- name: cupy\n  manager: conda\n- conda: https://x/y.conda\n",
    b"FROM --platform=linux/amd64 pytorch/pytorch:2.4.0-cuda12.1\nRUN python -m pip -q install -U --index-url https://x 'torch[opt]==2.4' \\\n  flash-attn && conda create -n x pytorch::pytorch=2.4=py3_0 -y; uv add dgl # cupy\n",
)

RULES: tuple[Any, ...] = (
    {
        "rules": {
            "ArgsModifyRule": [{"func_name": "f", "arg_idx": 0, "arg_new": "args0"}],
            "FuncNameModifyRule": [{"old_name": "func", "new_name": "new_func"}],
            "ModuleNameModifyRule": [{"old_name": "module", "new_name": "new_module", "parent_module": "parent_module"}],
            "UnsupportedRule": [{"name": "package.function", "help": "what to do instead"}],
        }
    },
    {"rules": {"FuncNameModifyRule": [{"old_name": "torch.cuda.empty_cache", "new_name": "gc.collect", "versions": ">=2.1,!=2.8"}]}},
    {"rules": {"ArgsModifyRule": [{"func_name": "torch.load", "arg_idx": 1, "arg_keyword": "map_location", "arg_new": ""}]}},
    {"rules": {"ModuleNameModifyRule": [{"old_name": "cuda", "new_name": "npu", "parent_module": "torch"}]}},
    {"defaults": {"FuncNameModifyRule": {"level": "unsafe", "versions": ["2.8"]}}, "rules": {"FuncNameModifyRule": [{"old_name": "a.b", "new_name": "c", "similar": True, "differs": "slower", "source": "x"}]}},
    {"rules": {"StringModifyRule": [{"old_string": "grey", "new_string": "blue"}, {"old_string": "cuda", "new_string": "it's"}]}},
    {"rules": {"AttributeModifyRule": [{"old_name": "is_grey", "new_name": "is_blue"}, {"old_name": "b", "new_name": "data"}]}},
    {"rules": {"InsertRule": [
        {"func_name": "f", "where": "after", "insert": "check()\nimport torch_npu"},
        {"func_name": "func", "insert": "if x: pass"},
        {"func_name": "torch.cuda.empty_cache", "insert": "x = 1; y = 2", "skip_if": {"positional_at_least": 1}},
    ]}},
    {"rules": {"ArgsModifyRule": [{"func_name": "f", "delete_keyword": "k"}, {"func_name": "torch.load", "delete_keyword": "map_location"}]}},
    {"rules": {"FuncNameModifyRule": [{"old_name": "h", "new_name": "own", "definitions": True}, {"old_name": "Own.act", "new_name": "go", "definitions": True}]}},
)  # fmt: skip


#: What trainings log: lines of loggers, JSON lines, tables, an event file of TensorBoard with one scalar.
LOSSES = (
    b"Epoch: [0][ 10/391]\tTime  0.1 ( 0.2)\tLoss 6.9e+00 (7.0e+00)\nEpoch: [0][ 20/391]\tLoss nan (7.0e+00)\n",
    b"{'loss': 0.69, 'learning_rate': 5e-05, 'epoch': 0.5}\r{'loss': 0.5, 'epoch': 1.0}\n",
    b'{"step": 1, "loss": 0.5}\n{"step": 2, "train": {"loss": Infinity}}\n',
    b" iteration       10/  500 | lm loss: 1.094E+01 | loss scale: 1.0 |\n[rank1]: iteration 11/ 500 | lm loss: 1 |\n",
    b"epoch,step,train_loss\n0,1,0.5\n0,2,0.25\n| Step | Loss |\n| 3 | 1 |\n",
    b"  0%|  | 1/10 [00:00<?, 1.0it/s, loss=3]\r 10%|#  | 1/10 [00:01<00:09, 1.0it/s, loss=2]\r",
    bytes.fromhex("1a00000000000000129bd82d09000000000000000010012a0d0a0b0a046c6f7373150000003f00000000"),
)
#: What msprobe and ptdbg record, one file each.
_DUMPED = (
    '{"task": "statistics", "level": "mix", "data": {"Functional.relu.0.forward": {"input_args": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 8], "Max": 1.5, "Min": -1, "Mean": 0.1, "Norm": NaN, "requires_grad": true}], "input_kwargs": {"k": {"type": "int", "value": 3}}, "output": [{"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [], "Max": Infinity, "Min": 0, "Mean": 1, "Norm": 2, "data_name": "a.npy"}]}, "Tensor.add.1.backward": {"grad_input": [], "output": [null]}}}',
    '{"0": [["Functional.relu.0.forward"], ["File \\"/a/net.py\\", line 3, in forward, \\n x = F.relu(x)"]], "1": [[], []]}',
    '{"Functional.relu.0.forward": "Module.net.Net.forward.0", "Module.net.Net.forward.0": null}',
    '["Functional_relu_0_forward_input.0", 1, [], "torch.float32", [2, 8], [1.5, -1.0, 0.1]]\n["Functional_relu_0_stack_info", [["File /a.py line 3"]]]\n["Functional_relu_0_forward_output", 1, [], "torch.float32", [], [NaN, Infinity, 0]]\n',
)
DUMPS = (*(text.encode() for text in _DUMPED), b"\x93NUMPY\x01\x00\x36\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}\n" + bytes(range(12)))
#: Lines of the logs that are diagnosed.
LOGS = tuple(
    text.encode()
    for text in (
        "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/a/train.py\", line 3, in <module>\n[rank0]:     x.npu()\n[rank0]: RuntimeError: npuSynchronizeDevice:build/x.cpp:392 NPU function error: 507035\n",
        "[ERROR] RUNTIME(123,python):2024-01-02-03:04:05.678.901 [task.cc:55]77 EZ9999: Inner Error!\nEI0002: The wait execution of the Notify register times out.\n",
        "2024-01-02 03:04:05,678 - torch.distributed.elastic - ERROR - failed (exitcode: -9) local_rank: 1\r\n\x1b[31mERR02200 DIST\x1b[0m\rdone",
        "  File \"C:\\a\\b.py\", line 3\nOutOfMemoryError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 31 GiB)\n",
    )
)
#: A dump of a device: one int32 as input, four float32 as output.
DEVICE_DUMPS = (bytes.fromhex("30000000000000000a03322e3010b2bac482d5abe9021a14080110021a040a02020222060a04636f6e763010220a080710021a02080128040000000000000000000000000000000000000000"),)


@cache
def rule_files() -> tuple[Any, ...]:
    """Documents of rules: small ones, and those of our own that are short."""
    paths = sorted(path for path in (ROOT / "rules").glob("*.json") if path.name != "schema.json" and path.stat().st_size < 4000)
    return (*RULES, *(json.loads(path.read_bytes()) for path in paths))


#: Programs that use what the rules above speak of.
FOR_RULES = (
    b"import torch, parent_module, package\nfrom parent_module.module import func as g, x\nf(1, k=2)\na.func(*b)\nfunc()\npackage.function()\n"
    b"torch.cuda.empty_cache()\ny = torch.load(p, map_location='cuda')\n@func\ndef h(a=f(0)): return parent_module.module.func(f(f(1)))\n",
    b"import a\nfrom torch import cuda\ncuda.empty_cache(); a.b(a.b)\nwith f(x) as y, cuda.stream(s): del y\nprint(f'{func(1)} {f(2)!r}')\n",
    b"\"grey\"\nx = 'grey' 'grey'; y = {'grey': f'{x.is_grey}grey', b'grey': rb'cuda'}\nx.is_grey.is_grey = f(k=func(k=1), **z)\n"
    b"if f(k=2): return_ = [f(k=i) for i in x if func()]\ntry: f(1,k = 2 ,)\nfinally: func(\n)\nwhile func(): f(); func(); pass\n",
    b"__all__ = ['h']\nclass Own:\n    def act(self): return self.act\ndef h(h=1): return h\nh(h)\nasync def g(f): h; await Own().act()\n",
)

SETTINGS = tuple(
    text.encode()
    for text in (
        "[tool.transplt]\ntorch-version = '2.8'\nstyle = 'portable'\nsimilar = true\nrules = ['mine.json']\nexclude = ['src/*.sh', '!x']\n",
        "[tool.transplt]\nper-file-ignores = {'src/*' = ['NPU1', 'NPU201'], '*' = []}\nannotate = false\nunsafe-fixes = true\n",
        "[tool.transplt.per-file-ignores]\n'[a-' = ['NPU']\n'**' = ['']\n[[tool.x]]\na = 1979-05-27T07:32:00Z\nb = '''\ntransplt'''\n",
        "[project]\nname = 'x'\ndependencies = ['torch>=2.4']\n[tool.transplt]\ncopy-all = true\nspecify-device = true\nrules = ['./mine.json', '../x.json']\n",
        "tool = {transplt = {torch-version = '2.6.0', rules = [], exclude = [' ', '\\\\', '**/a/**']}}\n",
    )
)

BASELINES: tuple[Any, ...] = (
    {"tool": "transplt", "format": 1, "findings": [{"fingerprint": "0123", "code": "NPU101", "path": "a.py"}]},
    {"tool": "transplt", "format": 1, "findings": []},
)
MANIFESTS: tuple[Any, ...] = (
    {
        "tool": "transplt", "format": 1, "version": "0.1.0", "name": "x", "torch": "2.8", "torch_npu": "", "style": "npu",
        "options": {"similar": False}, "files": {"a.py": {"sha256": "0" * 64, "edited_lines": [1, 2]}, "b/c": {"sha256": "1"}},
        "links": ["l"], "reports": {"report.html": "0" * 64}, "left_out": ["big.bin"],
    },
)  # fmt: skip


def _entry(path: bytes, mode: int = 0o100644, extended: bool = False, strip: int | None = None) -> bytes:
    flags = len(path) | (0x4000 if extended else 0)
    head = struct.pack(">6I", 0, 0, 0, 0, 0, 0) + struct.pack(">I", mode) + struct.pack(">3I", 0, 0, 0) + b"\1" * 20
    head += struct.pack(">H", flags) + (b"\0\0" if extended else b"")
    if strip is not None:
        return head + bytes([strip]) + path + b"\0"
    return head + path + b"\0" * (8 - (len(head) + len(path)) % 8)


INDEXES = (
    b"DIRC" + struct.pack(">II", 2, 2) + _entry(b"a.py") + _entry(b"deep/b.txt") + b"\2" * 20,
    b"DIRC" + struct.pack(">II", 3, 2) + _entry(b"a.txt", extended=True) + _entry(b"mod", 0o160000) + b"\2" * 20,
    b"DIRC" + struct.pack(">II", 4, 2) + _entry(b"deep/b.txt", strip=0) + _entry(b"c", strip=5) + b"\2" * 20,
    b"DIRC" + struct.pack(">II", 2, 1) + _entry(b"deep", 0o040000) + b"TREE" + struct.pack(">I", 4) + b"abcd" + b"link" + b"\0" * 4 + b"\2" * 20,
    b"DIRC" + struct.pack(">II", 2, 2**32 - 1) + _entry(b"a.py"),
)

IGNORES = (
    b"*.txt\n!c.txt\n/deep/\n# comment\n\\#x\n**/er/*\n",
    b"*a*a*a*a*a*a*a*b\n**/**/**/x\n[!a-z]*\n[[:alpha:]]\n?" + b"?" * 30 + b"\n",
    b"deep/**/b.txt\n\\\n!\n/\n//\n[\n[]-a]\n[z-a]\n\xff\n\xef\xbb\xbfx\n",
    b"(a+)+$\n{a,b}\n\\(\n^.*$\n" + b"*" * 40 + b"b\n" + b"**/" * 30 + b"z\n",
)

GIT_FOLDERS = (
    b"gitdir: ../elsewhere\n",
    b"gitdir: .git\n",
    b"[core]\n\trepositoryformatversion = 1\n\tfsmonitor = /bin/false\n[extensions]\n\tobjectFormat = sha256\n[include]\n\tpath = ~/x\n",
    b".\n",
    b"../../..\n",
    b"gitdir: a\0b\n",
)

_NAMES = (
    "a.py", "b.py", "pkg/__init__.py", "pkg/sub/m.py", "run.sh", "conf.yaml", "nb.ipynb", "requirements.txt", "Dockerfile", "new\nline.py", "\u202eyp.a.py",
    "sp ace.py", "'q\".py", "=cmd.py", "-rf.py", "\u00fc.py", "\udcff.py", "report.html", "change_list.csv", ".transplt/manifest.json", "torch.py", "x.cu",
    "CON.py", "a.PY", "pyproject.toml", ".gitignore", ".git/config", "l" * 200 + ".py", "setup.py", "README", "tests/test_a.py",
)  # fmt: skip


@st.composite
def trees(draw: st.DrawFn) -> bytes:
    """JSON of one to five files: name -> content."""
    from tests.fuzz.mutations import mutated

    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=5, unique=True))
    texts = st.sampled_from([*PIECES, *SHELL, *YAML, *SETTINGS, *IGNORES, *REQUIREMENTS, *NOTEBOOKS])
    return json.dumps({name: draw(st.one_of(texts, mutated(texts, most=2))).decode("latin-1") for name in names}).encode()
