"""Commands that Python starts, and lists of arguments: values follow the options of the script that gets them."""

from __future__ import annotations

import pytest

from tests.harness import check_noop, check_rewrite

TRAIN = """
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device")
parser.add_argument("--dist-backend")
parser.add_argument("--method", default="cuda_graph")
args = parser.parse_args()
torch.ones(3, device=args.device)
torch.distributed.init_process_group(args.dist_backend)
"""
FILES = {"tools/train.py": TRAIN}
HEAD = "import os, shlex, subprocess, sys\n"
EDITED = [
    'os.system("python tools/train.py --device cuda")',
    'os.system(f"python tools/train.py --device cuda --n {n}")',
    'os.system(f"python tools/train.py --device cuda:{n}")',
    'os.system("cd x && python train.py --device=cuda:0 --dist-backend nccl > log")',
    'os.system("CUDA_VISIBLE_DEVICES=0 python tools/train.py --device cuda")',
    'subprocess.run("torchrun --nproc_per_node 2 tools/train.py --device cuda", shell=True)',
    'subprocess.check_output("python tools/train.py " "--device cuda", shell=True)',
    'subprocess.Popen(["python", "tools/train.py", "--device", "cuda"])',
    'subprocess.check_call([sys.executable, "tools/train.py", "--device=cuda"])',
    'subprocess.call([sys.executable, "-m", "tools.train", "--dist-backend", "nccl", "--n", str(n)])',
    'subprocess.run(["python", "tools/train.py", f"--device=cuda:{n}"])',
    'cmd = ["python", "tools/train.py", "--device", "cuda"]\nstart(cmd)',
    'cmd = "python tools/train.py --device cuda"\nos.system(cmd)',
    'cmd = "python tools/train.py"\ncmd += " --device cuda"\nos.system(cmd)',
    'cmd = "python tools/train.py --device cuda"\ncmd = "nohup " + cmd\nos.system(cmd)',
    'cmd = "python tools/train.py --device cuda"\ncmd = cmd + " --n 3"\nos.system(cmd)',
    'cmd = "python tools/train.py --device cuda"\ncmd = "nice %s" % cmd\nos.system(cmd)',
    'cmd = "python tools/train.py --device cuda"\ncmd = f"{cmd} &"\nos.system(cmd)',
    'cmd = "python tools/train.py --device cuda"\nfor n in "ab":\n    cmd = cmd + f" -{n}"\nos.system(cmd)',
    'cmd = "CUDA_VISIBLE_DEVICES=0 python tools/train.py"\ncmd = "nohup " + cmd\nos.system(cmd)',
    'one = "python tools/train.py --device cuda"\ntwo = "nohup " + one\none = two + " &"\nos.system(one)',
    'subprocess.run(shlex.split("python tools/train.py --device cuda"))',
    'subprocess.run("python tools/train.py --device cuda".split())',
]


@pytest.mark.parametrize("line", EDITED)
def test_commands(line: str) -> None:
    after = line.replace("cuda", "npu").replace("nccl", "hccl").replace("CUDA_VISIBLE", "ASCEND_RT_VISIBLE")
    check_rewrite(f"{HEAD}{line}\n", f"{HEAD}{after}\n", path="start.py", files=FILES)


ARGUMENTS = [
    'import sys\nsys.argv = ["tools/train.py", "--device", "cuda"]',
    'import sys\nsys.argv += ["--device", "cuda"]',
    'import sys\nsys.argv.extend(["--device=cuda"])',
    'monkeypatch.setattr(sys, "argv", ["x", "--device", "cuda"])',
    'args = make_parser().parse_args(["--device", "cuda", "--dist-backend", "nccl"])',
    'args = make_parser().parse_args("--device cuda --n 3".split())',
    'result = runner.invoke(main, ["--device", "cuda"])',
    'main(["--device", "cuda"])',
]


@pytest.mark.parametrize("line", ARGUMENTS)
def test_arguments(line: str) -> None:
    after = line.replace("cuda", "npu").replace("nccl", "hccl")
    imported = "import torch\nimport torch_npu  # noqa: F401\n"
    check_rewrite(f"import torch\n{line}\n", f"{imported}{after}\n", path="start.py", files=FILES)


STAYS = [
    'print("python tools/train.py --device cuda")',
    'parser.error("use --device cuda or --device cpu")',
    '"""python tools/train.py --device cuda"""',
    'shown = "run with --device cuda"',
    'shown = "run with --device cuda"\nshown = "please " + shown\nprint(shown)',
]
ASKED = [
    ('subprocess.run(["python", "tools/train.py", "--method", "cuda"])', "NPU814"),
    ('os.system("python tools/train.py --method cuda")', "NPU814"),
    ('os.system("python tools/train.py --device cuda && python other.py --kind cuda")', "NPU814"),
    ('os.system("nvprof tools/train --device cuda")', "NPU208"),
    ('start("python tools/train.py --device cuda")', "NPU208"),
    ('subprocess.run(["server", "--device", "cuda"])', "NPU814"),  # a program of somebody else's
    ('subprocess.run(["bash", "run.sh", "--device", "cuda"])', "NPU814"),
    ('names = ["--kind", "cuda"]', "NPU203"),
    ('cmd = "python tools/train.py --device cuda"\ncmd = "nohup " + cmd', "NPU208"),  # nobody runs it
    ('cmd = "python tools/train.py --device cuda"\ncmd = "nice {}".format(cmd)\nos.system(cmd)', "NPU208"),
    ('cmd = "python tools/train.py --device cuda"\ncmd = "nohup " + cmd\nos.system(cmd)\nsend(cmd)', "NPU208"),
    ('names = ["--color", "red", "cuda"]', "NPU203"),
    ('os.system("python tools/train.py --device cu\\x64a")', ""),
]


@pytest.mark.parametrize("line", STAYS)
def test_text_of_commands_stays(line: str) -> None:
    check_noop(f"{HEAD}{line}\n", path="start.py", files=FILES)


@pytest.mark.parametrize(("line", "code"), ASKED)
def test_what_is_not_certain_is_asked(line: str, code: str) -> None:
    check_noop(f"{HEAD}{line}\n", path="start.py", files=FILES, open_codes=[code] if code else [])


def test_a_portable_project_keeps_them() -> None:
    line = 'subprocess.Popen(["python", "tools/train.py", "--device", "cuda"])'
    check_noop(f"{HEAD}{line}\n", path="start.py", files=FILES, style="portable", open_codes=["NPU203"])


def test_options_of_a_script_that_names_no_cuda() -> None:
    files = {"eval.py": 'import argparse\np = argparse.ArgumentParser()\np.add_argument("-d", "--device")\n'}
    line = 'os.system("python eval.py --device cuda")\n'
    check_rewrite(HEAD + line, HEAD + line.replace("cuda", "npu"), path="start.py", files=files)
    check_noop(HEAD + line.replace("device", "kind"), path="start.py", files=files, open_codes=["NPU814"])
