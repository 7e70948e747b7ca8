"""How long `transplt profile-read` takes for a large profile, and how much memory.

    python -m benchmarks.profile_read [--megabytes 256] [--kind table|trace|log]

Makes a file in a temporary folder and reads it in a process of its own: `table` is kernel_details.csv with the columns
of aic_metrics, `trace` one of torch_npu, `log` a host log of level INFO in which each line is an operator. No test
decides by these figures.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.speed import ROOT
from tests.profiles.profiles import asked

_MB = 1024 * 1024
_HEADER = (
    "Step Id,Device_id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),"
    "Wait Time(us),Block Num,Input Shapes,Input Data Types,Input Formats,"
)
_ROW = (
    '1,0,4294967295,{n},16,aclnnMatmul_MatMulCommon_MatMulV2,MatMulV2,dynamic,AI_CORE,"{n}00.912\t",85.504,1.087,20,'
    '"""8192,{m};512,{m}""",DT_BF16;DT_BF16,ND;ND,'
)
_METRICS = 24


def _table(number: int) -> str:
    return _ROW.format(n=number, m=number % 50) + "0.5," * _METRICS + "\n"


def _trace(number: int) -> str:
    arguments = {"Task Type": "AI_CORE", "Task Id": number}
    event = {"ph": "X", "name": f"aclnnMatmul_X_Type{number % 90}", "pid": 800, "tid": number % 4, "dur": 13.08}
    return json.dumps({**event, "ts": f"17041615114{number}.491", "args": arguments}) + ","


def _log(number: int) -> str:
    return asked(f"Type{number % 90}", f"8, {number % 200}") + "\n"


KINDS = {
    "table": ("kernel_details.csv", _HEADER + ",".join(f"aic_{each}" for each in range(_METRICS)) + "\n", _table),
    "trace": ("trace_view.json", "[", _trace),
    "log": ("plog-1.log", "", _log),
}


def main() -> int:
    """Prints seconds and megabytes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=256)
    parser.add_argument("--kind", choices=[*KINDS], default="table")
    options = parser.parse_args()
    name, head, row = KINDS[options.kind]
    with tempfile.TemporaryDirectory() as scratch:
        path, number = Path(scratch) / name, 0
        with path.open("w") as file:
            written = file.write(head)
            while written < options.megabytes * _MB:
                written += file.write(row(number))
                number += 1
        command = [sys.executable, "-m", "transplt", "profile-read", "--exit-zero", "--format=json", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{options.kind}: {options.megabytes} MB, {number} rows in {used.ru_utime:.1f} s of CPU, "
              f"{used.ru_maxrss / 1024:.0f} MB")  # fmt: skip
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main())
