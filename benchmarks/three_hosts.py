"""What ran still runs: files and their portable form, on a CPU, an emulated NPU and the stand-in for a CUDA host.

    python -m benchmarks.three_hosts FILE_OR_FOLDER... [--limit 60] [--seconds 20]

Each file with a portable edit is run as a program, without arguments, before and after it was migrated with `--style
portable`, each time in a process of its own. Packages that are not installed are stood in for by mocks. If it came to
its end before, it has to come there after, printing the same; on the NPU, where the device becomes another one, with
the same numbers. Nothing is asked of a file that failed before.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from transplt.base.settings import Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.proof.launch.runner import SITES

#: What two runs of one program print differently: times, speeds, addresses.
_VARIES = re.compile(
    r"\b(?:[\d.]+ (?:steps|it)/s|[\d.]+ ?(?:m?s|sec(?:onds)?|m|h))+\b|\bid='\d+'|\b0x[0-9a-f]+\b"
    r"|(?i:time\w*[:=]?) ?[\d.]+"
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
#: Runs in the process of a host: each text in a fork of its own, so that torch is imported once.
_DRIVER = '''
import importlib.abc, importlib.machinery, io, json, os, random, runpy, shutil, signal, sys, tempfile, types
from unittest.mock import MagicMock
import torch

class Mocks(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        frame = sys._getframe(1)
        while "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        if os.path.relpath(frame.f_code.co_filename).startswith("..") or name.split(".")[0] == "torch_npu":
            return None  # what libraries do without is not mocked
        return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        module = MagicMock(name=spec.name)
        module.__path__, module.__spec__, module.__name__ = [], spec, spec.name
        return module
    def exec_module(self, module):
        pass

sys.meta_path.append(Mocks())

def program(given, side):
    """Runs a text, or a main file in a copy of its folder."""
    if "main" not in given:
        exec(compile(given[side], "program.py", "exec"), {"__name__": "__main__", "__file__": "program.py"})
        return
    shutil.copytree(given[side], "all", symlinks=True)
    here, name = os.path.split(os.path.join("all", given["main"]))
    os.chdir(here)
    sys.argv = [name, *given["args"]]
    sys.path.insert(0, os.getcwd())
    runpy.run_path(name, run_name="__main__")

def run(given, side):
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as file:
            said = file.read()
        os.waitpid(child, 0)
        return json.loads(said) if said else {"end": "killed", "out": ""}
    os.chdir(tempfile.mkdtemp())
    signal.alarm(given["seconds"] * (1 if side == "before" else 3))  # a busy machine is no fault
    out = sys.stdout = io.StringIO()
    sys.argv = ["program.py"]
    torch.manual_seed(0)
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    end = ""
    try:
        program(given, side)
    except SystemExit as error:
        end = f"exit {error.code}" if error.code else ""
    except BaseException as error:
        end = f"{type(error).__name__}: {error}"[:300]
    sys.stdout = sys.__stdout__
    with os.fdopen(writing, "w") as file:
        json.dump({"end": end, "out": out.getvalue()[:20000]}, file)
    os._exit(0)

for line in sys.stdin:
    pair = json.loads(line)
    before, after = (run(pair, side) for side in ("before", "after"))
    print(json.dumps({"name": pair["name"], "before": before, "after": after}), flush=True)
'''


def portable(data: bytes) -> bytes:
    """A file in the portable style, as the only one of its project."""
    settings = Settings(style="portable")
    project = ProjectFacts.join([index_source(data, "program.py", settings)])
    return migrate_source(data, "program.py", settings, project).data


def pairs_of(texts: dict[str, bytes], seconds: int) -> list[dict[str, Any]]:
    """The files that a portable migration changes."""
    found = []
    for name, data in texts.items():
        after = portable(data)
        if after != data:
            sides = {"before": data.decode(errors="replace"), "after": after.decode(errors="replace")}
            found.append({"name": name, "seconds": seconds, **sides})
    return found


def run_on(host: str, pairs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Both sides of each pair on a host ("cpu", "npu" or "cuda"): how each ended, and what it printed."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}
    if SITES[host] is not None:
        environment["PYTHONPATH"] = str(SITES[host])
    with tempfile.TemporaryDirectory() as folder:
        driver = Path(folder) / "driver.py"
        driver.write_text(_DRIVER, encoding="utf-8")
        config = Path(folder) / "config.json"
        config.write_text('{"cuda": "off"}', encoding="utf-8")  # as on hardware: nobody stops a use of CUDA
        environment |= {"TRANSPLT_EMULATOR": str(config), "TMPDIR": folder}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(driver)],
            input="".join(json.dumps(pair) + "\n" for pair in pairs),
            env=environment, cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"name"')]


def fault(host: str, result: dict[str, Any]) -> str:
    """What is wrong with the portable side; empty when what ran still runs."""
    before, after = result["before"], result["after"]
    if before["end"]:
        return ""
    if after["end"]:
        return f"{host}: {result['name']}: ran before, and now: {after['end']}"
    told = lambda text: _VARIES.sub("", text)  # noqa: E731
    same = (lambda text: _NUMBER.findall(re.sub(r"(npu|cuda|cpu)(:\d+)?", "", told(text)))) if host == "npu" else told
    return "" if same(before["out"]) == same(after["out"]) else f"{host}: {result['name']}: prints something else"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=20)
    asked = parser.parse_args()
    files = [file for path in asked.paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    texts = {str(file): file.read_bytes() for file in files if b"torch.cuda" in file.read_bytes()}
    pairs = pairs_of(texts, asked.seconds)[: asked.limit]
    faults = []
    for host in SITES:
        results = run_on(host, pairs)
        ran = sum(not each["before"]["end"] for each in results)
        faults += [why for each in results if (why := fault(host, each))]
        print(f"{host}: {len(results)} files, {ran} ran to their end before", flush=True)
    print("\n".join(faults) or "what ran still runs")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
