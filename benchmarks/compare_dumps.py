"""How long `transplt compare` takes, and how much memory: large dumps of elements, and statistics of many ranks.

usage: compare_dumps.py elements [MEGABYTES] | ranks [RANKS [ROWS]]   (dumps are made in a folder that is removed)
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TENSORS = 1100


def elements(folder: Path, megabytes: int) -> None:
    """Two dumps of so many MB of float32 in .pt files, of which the NPU's side is off by the last bits."""
    import torch

    size = megabytes * 1024 * 1024 // 4 // TENSORS
    for side in ("npu", "bench"):
        where = folder / side / "step0" / "rank0"
        (where / "dump_tensor_data").mkdir(parents=True)
        data: dict[str, Any] = {}
        for number in range(TENSORS):
            values = torch.randn(size, generator=torch.Generator().manual_seed(number))
            if side == "npu":
                values = values * (1 + 1e-7)
            name = f"Functional.relu.{number}.forward"
            torch.save(values, where / "dump_tensor_data" / f"{name}.output.0.pt")
            figures = zip(("Max", "Min", "Mean", "Norm"), (values.max(), values.min(), values.mean(), values.norm()),
                          strict=True)  # fmt: skip
            entry = {
                "type": "torch.Tensor",
                "dtype": "torch.float32",
                "shape": [size],
                "data_name": f"{name}.output.0.pt",
            }
            data[name] = {"output": [entry | {key: float(value) for key, value in figures}]}
        (where / "dump.json").write_text(json.dumps({"task": "tensor", "data": data}))


def ranks(folder: Path, count: int, rows: int) -> None:
    """Two dumps of so many ranks of so many operators; each of these has two inputs and an output."""
    chance = random.Random(1)
    for side in ("npu", "bench"):
        for rank in range(count):
            data = {}
            for number in range(rows):
                tensors = []
                for place in range(3):
                    base = (
                        chance.random()
                        if rank < 2 and side == "npu" and number == rows // 2
                        else number + place + 0.123456
                    )
                    figures = {"Max": base, "Min": -base, "Mean": base / 1000, "Norm": base * 30.1234567}
                    tensors.append({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [32, 128]} | figures)
                data[f"Functional.linear.{number}.forward"] = {"input_args": tensors[:2], "output": tensors[2:]}
            where = folder / side / "step0" / f"rank{rank}"
            where.mkdir(parents=True)
            (where / "dump.json").write_text(json.dumps({"task": "statistics", "data": data}))


def main() -> None:
    kind, *numbers = sys.argv[1:]
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        if kind == "elements":
            elements(folder, int(numbers[0]) if numbers else 171)
        else:
            ranks(folder, *([int(number) for number in numbers] + [1000, 2000][len(numbers) :]))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
        command = [
            sys.executable,
            "-m",
            "transplt",
            "compare",
            str(folder / "npu"),
            str(folder / "bench"),
            "--no-advice",
        ]
        begin = time.perf_counter()
        result = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - begin
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(result.stdout.splitlines()[0] if result.stdout else result.stderr)
    print(f"{kind}: {size:.0f} MB in both dumps, {seconds:.1f} s, processor {used.ru_utime + used.ru_stime:.1f} s, "
          f"largest process {used.ru_maxrss / 1024:.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()
