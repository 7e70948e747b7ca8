"""Records the programs of `planted.py` on the emulated NPU and on hosts beside it, and compares what they left."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from tests.forked import torch_npu
from tests.precision.planted import Planted, Swaps
from transplt.precision.compare import Comparison, compare
from transplt.precision.dumps import open_dump
from transplt.precision.first_line import place, sentence
from transplt.proof.launch.dumping import read_fault
from transplt.proof.launch.options import Dump, RunOptions
from transplt.proof.launch.runner import start
from transplt.proof.launch.warm import Warm

PROGRAMS = Path(__file__).parent / "programs"
BACKENDS = {"npu": "hccl", "cuda": "nccl", "cpu": "gloo"}


def program(kind: str, device: str, swaps: Swaps = ()) -> str:
    """The text of a program for a device."""
    text = (PROGRAMS / f"{kind}.py").read_text(encoding="utf-8")
    for old, new in swaps:
        assert text.count(old) == 1, (kind, old)
        text = text.replace(old, new)
    if device == "cuda":
        return text
    text = text.replace('"nccl"', f'"{BACKENDS[device]}"')
    if device == "cpu":
        for old in ('device_ids=[rank]', "    torch.cuda.set_device(device)\n", '("cuda", rank)'):
            text = text.replace(old, '("cpu")' if "rank)" in old else "")
        return text.replace('"cuda"', '"cpu"').replace("model, )", "model)")
    text = text.replace('"cuda"', '"npu"').replace("torch.cuda", "torch.npu")
    return text.replace("import torch\n", "import torch\nimport torch_npu  # noqa: F401\n", 1)


def record(
    folder: Path, kind: str, device: str, warm: Warm | None, swaps: Swaps = (), fault: str = "", nproc: int = 0,
    task: str = "tensor", threads: int = 1,
) -> None:  # fmt: skip
    """Run a program, and let it leave a dump (with elements) in `folder/dump`."""
    folder.mkdir(parents=True)
    script = folder / f"{Path(kind).name}.py"
    script.write_text(program(kind, device, swaps), encoding="utf-8")
    dump = Dump(folder / "dump", task, faults=(read_fault(fault),) if fault else ())
    options = RunOptions(
        str(script), (), sys.executable, nproc=nproc, random="cpu", threads=threads, folder=str(folder), dump=dump,
        torch_npu=torch_npu(),
    )  # fmt: skip
    # What computes on the CPU is recorded where an NPU is at hand, too.
    run = start(options, capture=True, echo=False, host="cuda" if device == "cuda" else "npu", warm=warm)
    errors = [process.get("exception") for process in run.processes]
    assert run.code == 0 and any(folder.glob("dump/step*/rank*/dump.json")), (kind, fault or swaps, errors, run.output)


def without_elements(dump: Path, target: Path) -> None:
    """What the same run had left with `--dump-task statistics`."""
    for path in dump.rglob("*.json"):
        place = target / path.relative_to(dump)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "dump.json":
            text = re.sub(r',\s*"data_name": "[^"]*"', "", path.read_text(encoding="utf-8"))
            place.write_text(text.replace('"task": "tensor"', '"task": "statistics"'), encoding="utf-8")
        else:
            shutil.copy(path, place)


def compared(npu: Path, bench: Path) -> Comparison:
    return compare(open_dump(str(npu)), open_dump(str(bench)), jobs=1)


def missed(planted: Planted, found: Comparison, elsewhere: bool = False) -> str:
    """Why the fault is not named; empty where it is. `elsewhere`: in dumps of msprobe."""
    first = found.first
    said = sentence(found)
    if first is None or first.verdict is None:
        return f"no divergence: {said}"
    if elsewhere and (first.verdict.name in planted.elsewhere or planted.how == first.verdict.kind[: len(planted.how)]):
        return ""
    if first.verdict.name not in planted.names.split("|"):
        return f"names {first.verdict.name}: {said}"
    if planted.how not in said:
        return f"does not say `{planted.how}`: {said}"
    if planted.line:
        match = re.match(r"(.+):(\d+)", place(first.source))
        line = Path(match[1]).read_text(encoding="utf-8").splitlines()[int(match[2]) - 1] if match else ""
        if not any(piece in line for piece in planted.line.split("|")):
            return f"does not name the line of `{planted.line}`: {said}"
    return ""
