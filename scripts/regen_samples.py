"""Migrate the samples and write the results to samples/NAME/expected, for a human to read as a diff.

    python scripts/regen_samples.py [NAME ...]

tests/test_samples.py compares the same way: all files of the migrated tree byte for byte, but the workbook (its
compression depends on the zlib of the machine), the manifest, which holds its hash, and the HTML report, which nobody
would read as a diff.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
NAMES = ("image_classifier", "text_model")
#: Samples of `distributed`, each with its main file; tests/distributed/test_samples.py compares and runs them.
DISTRIBUTED = {
    "distributed/flat": "train.py",
    "distributed/function": "train.py",
    "distributed/trainer": "main.py",
    "distributed/gan": "gan.py",
    "distributed/launched": "train.py",
}
#: Samples of `--amp native`; tests/mixed_precision/test_samples.py compares and runs them.
AMP = ("amp/flat", "amp/function", "amp/trainer", "amp/accumulation", "amp/gan")
#: Samples of `--amp apex` and of `--amp-flag` with their options; tests/mixed_precision/test_apex_samples.py.
APEX = {
    "amp_apex/flat": ("--amp", "apex"),
    "amp_apex/project": ("--amp", "apex", "--opt-level", "O1", "--tune", "fused-optimizer"),
    "amp_apex/gan": ("--amp", "apex", "--opt-level", "O1", "--loss-scale", "128"),
    "amp_flag/native": ("--amp", "native", "--amp-flag"),
    "quick_start": ("--amp", "apex", "--amp-flag"),
    "amp_flag/apex": ("--amp", "apex", "--amp-flag", "--loss-scale", "1024"),
}
#: Samples of `--tune` with what is asked for; tests/tunings/test_samples.py.
TUNED = {
    "tunings/words": "ddp-arguments,data-loader,drop-last,non-blocking,float32,int32,jit-script",
    "tunings/steps": "fused-optimizer,fused-clip,compile-mode,internal-format,hf32,max-steps=24,step-time,profiler=3-5",
}
#: Samples of `--adapt` with what is asked for; tests/adaptors/test_samples.py.
ADAPTED = {"adaptors/rotary": "rope", "adaptors/points": "kernels"}
#: Samples of the portable style; tests/test_samples.py.
PORTABLE = ("portable",)
#: What lies at the top of an output folder and is left out of the golden trees.
LEFT_OUT = frozenset({"unsupported_op.xlsx", "report.html", "report_files", ".transplt"})


def migrate(source: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command line on `source` into `output`; raises CalledProcessError when it could not finish.

    Exit code 1 is fine: it says that something is left for a person.
    """
    command = [sys.executable, "-m", "transplt", "-i", str(source), "-o", str(output), *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(command, cwd=output.parent, env=env, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    return done


def options_for(name: str) -> list[str]:
    """The options with which a sample is migrated."""
    if name in APEX:
        return ["--no-analysis", *APEX[name]]
    if name in TUNED:
        return ["--no-analysis", "--tune", TUNED[name]]
    if name in ADAPTED:
        return ["--no-analysis", "--adapt", ADAPTED[name]]
    if name in PORTABLE:
        return ["--no-analysis", "--style", "portable"]
    if name in AMP:
        return ["--no-analysis", "--amp", "native"]
    return ["--no-analysis", "distributed", "-m", DISTRIBUTED[name]] if name in DISTRIBUTED else []


def golden_files(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Relative path -> (content, executable?) of each file that a golden tree compares."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.relative_to(folder).parts[0] not in LEFT_OUT
    }


def regenerate(name: str) -> None:
    expected = SAMPLES / name / "expected"
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "out"
        migrate(SAMPLES / name / "cuda", output, *options_for(name))
        if "NPU99" in (output / "cuda_msft" / "msFmkTranspltlog.txt").read_text(encoding="utf-8"):
            raise SystemExit(f"a defect of transplt: {name} is not written")
        if expected.exists():
            shutil.rmtree(expected)
        for relative, (data, executable) in golden_files(output / "cuda_msft").items():
            target = expected / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o755 if executable else 0o644)


def main() -> None:
    for name in sys.argv[1:] or (*NAMES, *DISTRIBUTED, *AMP, *APEX, *TUNED, *ADAPTED, *PORTABLE):
        regenerate(name)
        print(f"samples/{name}/expected written")
    print("what changed: git diff samples")


if __name__ == "__main__":
    main()
