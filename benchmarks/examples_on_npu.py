"""Runs a migrated checkout of pytorch/examples (commit 47d0c2e) on the emulated NPU; prints what became of each script.

usage: python benchmarks/examples_on_npu.py MIGRATED [--original FOLDER] [--json FILE] [--only WORD]

MIGRATED is the output folder of `transplt -i examples -o ...` (torch >= 2.10, torchvision and Pillow installed). Each
script runs in a copy of its folder with small settings. With --original the unmigrated scripts run too, as references.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@dataclass(frozen=True)
class Run:
    """One script with its arguments. `after` names an earlier run whose folder it goes on in; `expect` is the gravest
    of the reasons that are right for the script (a CPU-only script uses no npu), "" where there is to be none."""

    name: str
    script: str
    arguments: str = ""
    options: tuple[str, ...] = ()
    after: str = ""
    expect: str = ""
    prepare: str = ""
    env: dict[str, str] = field(default_factory=dict)


WLM = "--cuda --epochs 1 --emsize 16 --nhid 16 --log-interval 5 --save model.pt"
ONE_CARD, TWO_CARDS = ("--npus", "1"), ("--npus", "2")
RUNS = (
    Run("mnist", "mnist/main.py", "--epochs 1 --save-model"),
    Run("mnist_rnn", "mnist_rnn/main.py", "--epochs 1 --cuda --save-model"),
    Run("mnist_forward_forward", "mnist_forward_forward/main.py", "--epochs 2 --train_size 100 --test_size 50"),
    Run("vae", "vae/main.py", "--epochs 1"),
    Run("dcgan", "dcgan/main.py", "--dataset cifar10 --dataroot x --cuda --dry-run --ngf 8 --ndf 8"),
    Run(
        "dcgan, 2 cards",
        "dcgan/main.py",
        "--dataset cifar10 --dataroot x --cuda --dry-run --ngf 8 --ndf 8 --ngpu 2",
        expect="findings",
    ),
    *(
        Run(f"word_language_model {m}", "word_language_model/main.py", f"{WLM} --model {m}")
        for m in ("LSTM", "GRU", "RNN_TANH", "Transformer")
    ),
    Run(
        "word_language_model generate",
        "word_language_model/generate.py",
        "--cuda --checkpoint model.pt --words 20",
        after="word_language_model LSTM",
    ),
    Run(
        "super_resolution",
        "super_resolution/main.py",
        "--cuda --upscale_factor 4 --batchSize 2 --testBatchSize 2 --nEpochs 1 --threads 0",
        prepare="images",
    ),
    Run(
        "super_resolve",
        "super_resolution/super_resolve.py",
        "--cuda --input_image dataset/BSDS300/images/test/0.jpg --model model_epoch_1.pth --output_filename out.png",
        after="super_resolution",
    ),
    Run("siamese_network", "siamese_network/main.py", "--epochs 1 --dry-run"),
    Run(
        "fast_neural_style",
        "fast_neural_style/neural_style/neural_style.py",
        "train --dataset x --epochs 1 --batch-size 2 --save-model-dir out --cuda 1 --image-size 64 "
        "--style-image ../images/style-images/mosaic.jpg --style-size 64",
        prepare="out",
    ),
    Run("imagenet, one card", "imagenet/main.py", "--dummy --epochs 1 -b 4 -j 0 --gpu 0"),
    Run("imagenet, DataParallel", "imagenet/main.py", "--dummy --epochs 1 -b 4 -j 0", TWO_CARDS, expect="findings"),
    Run(
        "imagenet, 2 processes",
        "imagenet/main.py",
        "--dummy --epochs 1 -b 4 -j 0 --multiprocessing-distributed --world-size 1 --rank 0 --dist-url tcp://127.0.0.1:29517",
        TWO_CARDS,
    ),
    Run("ddp tutorial single_gpu", "distributed/ddp-tutorial-series/single_gpu.py", "2 1"),
    Run("ddp tutorial multigpu", "distributed/ddp-tutorial-series/multigpu.py", "2 1", TWO_CARDS),
    Run("ddp tutorial torchrun", "distributed/ddp-tutorial-series/multigpu_torchrun.py", "2 1", ("--nproc", "2")),
    Run(
        "ddp tutorial torchrun, resumed",
        "distributed/ddp-tutorial-series/multigpu_torchrun.py",
        "4 1",
        ("--nproc", "2"),
        after="ddp tutorial torchrun",
    ),
    Run("ddp tutorial multinode", "distributed/ddp-tutorial-series/multinode.py", "2 1", ("--nproc", "2")),
    Run("ddp example", "distributed/ddp/example.py", "--local_world_size 2", ("--nproc", "2", *TWO_CARDS)),
    Run("tensor_parallel", "distributed/tensor_parallelism/tensor_parallel_example.py", "", ("--nproc", "2")),
    Run("sequence_parallel", "distributed/tensor_parallelism/sequence_parallel_example.py", "", ("--nproc", "2")),
    Run("fsdp_tp", "distributed/tensor_parallelism/fsdp_tp_example.py", "", ("--nproc", "4")),
    Run("mnist_hogwild", "mnist_hogwild/main.py", "--cuda --epochs 1 --dry-run"),
    Run("regression (CPU only)", "regression/main.py", expect="no-npu-operator"),
    Run("time_sequence data (CPU only)", "time_sequence_prediction/generate_sine_wave.py", expect="no-npu-operator"),
    Run(
        "time_sequence (CPU only)",
        "time_sequence_prediction/train.py",
        "--steps 1",
        after="time_sequence data (CPU only)",
        expect="no-npu-operator",
    ),
)


def prepare(kind: str, folder: Path) -> None:
    """Random pictures where a script would download some; folders it expects."""
    if kind == "out":
        (folder / "out").mkdir(exist_ok=True)
    if kind == "images":
        import numpy as np
        from PIL import Image

        random = np.random.default_rng(0)
        for part in ("train", "test"):
            target = folder / "dataset" / "BSDS300" / "images" / part
            target.mkdir(parents=True)
            for i in range(4):
                Image.fromarray(random.integers(0, 255, (300, 300, 3), dtype=np.uint8)).save(target / f"{i}.jpg")


def execute(
    run: Run, migrated: Path, original: Path | None, folders: dict[str, Path], scratch: Path
) -> dict[str, object]:
    """Run one script; its record for the table."""
    script = Path(run.script)
    top = Path(run.script.split("/")[0]) if not run.script.startswith("distributed") else script.parent
    folder = folders.get(run.after)
    if folder is None:
        folder = scratch / run.name.replace(" ", "_").replace(",", "")
        shutil.copytree(migrated / top, folder, symlinks=True)
        # the record of the edits, with paths as they are in the copy
        manifest = json.loads((migrated / ".transplt" / "manifest.json").read_text(encoding="utf-8"))
        prefix = top.as_posix() + "/"
        manifest["files"] = {k[len(prefix) :]: v for k, v in manifest["files"].items() if k.startswith(prefix)}
        (folder / ".transplt").mkdir()
        (folder / ".transplt" / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    folders[run.name] = folder
    cwd = folder / script.parent.relative_to(top)
    prepare(run.prepare, cwd)
    report = scratch / "report.json"
    report.unlink(missing_ok=True)
    options = [
        "--stubs",
        "torchvision",
        "--stubs",
        str(HERE / "examples_stubs.py"),
        "--report",
        str(report),
        *run.options,
    ]
    if "--timeout" not in run.options:
        options += ["--timeout", "400"]
    if original is not None:
        options += ["--reference", str(original / run.script)]
    command = [sys.executable, "-m", "transplt.proof", *options, script.name, *run.arguments.split()]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1", **run.env}
    begun = time.monotonic()
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    result = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {"verdict": "no report"}
    lines = result.get("migrated_lines", {})
    good = "reasons" in result and (result["reasons"] or [""])[0] == run.expect
    return {
        "name": run.name,
        "verdict": result["verdict"],
        "sentence": result.get("sentence", ""),
        "reasons": result.get("reasons", []),
        "as_expected": good,
        "seconds": round(time.monotonic() - begun, 1),
        "operator_calls": result.get("operators", {}).get("calls", 0),
        "lines_run": [f"{e['path']}:{e['line']}" for e in lines.get("executed", []) if e["path"].endswith(script.name)],
        "findings": [f"{f['path']}:{f['line']} {f['code']} {f['message']}" for f in result.get("findings", [])],
        "reference": (result.get("reference") or {}).get("summary"),
        "tail": "" if good else done.stderr[-1500:],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("migrated", type=Path)
    parser.add_argument("--original", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    records, folders = [], {}
    with tempfile.TemporaryDirectory(prefix="examples-") as name:
        for run in RUNS:
            if arguments.only and arguments.only not in run.name:
                continue
            original = arguments.original.resolve() if arguments.original else None
            record = execute(run, arguments.migrated.resolve(), original, folders, Path(name))
            records.append(record)
            mark = "ok " if record["as_expected"] else "BAD"
            print(
                f"{mark} {run.name:34s} {record['verdict']:18s} {record['operator_calls']:8d} npu calls "
                f"{record['seconds']:6.1f} s  {len(record['lines_run'])} migrated lines ran",
                flush=True,
            )
            for line in record["findings"][:4] if not record["as_expected"] else []:
                print("      ", line)
            if not record["as_expected"]:
                print("      ", str(record["tail"]).strip().replace("\n", "\n       ")[-900:])
            elif record["reference"]:
                print("      ", record["reference"][0])
    good = sum(bool(r["as_expected"]) for r in records)
    words = Counter(str(record["verdict"]) for record in records)
    print(f"{good} of {len(records)} as expected: {', '.join(f'{count} {word}' for word, count in words.items())}")
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 0 if good == len(records) else 1


if __name__ == "__main__":
    sys.exit(main())
