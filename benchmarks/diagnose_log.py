"""How long `transplt diagnose` takes for a large log, and how much memory.

    python -m benchmarks.diagnose_log [--megabytes 1024] [--kind ordinary|plog|errors]

Makes a log in a temporary folder and reads it in a process of its own. `ordinary` is the output of a training with
progress bars and one error at its end, `plog` one of CANN in which each line is an error that nobody knows, `errors`
one in which each line is a known error. No test decides by these figures.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.speed import ROOT

_MB = 1024 * 1024
LINES = {
    "ordinary": b"[rank0]: 2025-04-08 18:07:20,444 INFO train.py:120 step 1200/50000 | loss 2.3456 | lr 3.0e-4 | "
    b"grad_norm 1.23 | tokens/s 12345.6\n  45%|####5     | 4500/10000 [12:34<15:20,  5.98it/s, loss=1.234]\r",
    "plog": b"[ERROR] IDEDD(1385038,):2026-05-26-02:27:00.595.617 [dump_args.cpp:1053][tid:1385107] [Dump][Exception] "
    b"exception info dump args data, addr:0x12d37bd8c000; size:100663296 bytes\n",
    "errors": b"[rank1]: EI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting socket times out. Reason: Remote\n",
}
END = b"\nTraceback (most recent call last):\nRuntimeError: NPU out of memory. Tried to allocate 2.00 GiB\n"


def main() -> int:
    """Prints seconds and megabytes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--kind", choices=[*LINES], default="ordinary")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "train.log"
        block = LINES[options.kind] * (_MB // len(LINES[options.kind]) + 1)
        with log.open("wb") as file:
            for _ in range(options.megabytes):
                file.write(block[:_MB])
            file.write(END)
        begin = time.monotonic()
        command = [sys.executable, "-m", "transplt", "diagnose", "--format=json", str(log)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        seconds = time.monotonic() - begin
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        found = b"npu-out-of-memory" in done.stdout
        used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        print(f"{options.kind}: {options.megabytes} MB in {seconds:.1f} s ({used:.1f} s of CPU), {memory:.0f} MB")
    return 0 if found else 1


if __name__ == "__main__":
    raise SystemExit(main())
