"""How much CPU the program costs before it does anything: against `python -c pass`.

    python -m benchmarks.startup [--repeat 10] [--check]

CPU seconds (user + system, children included, the smallest of the repeats) less those of `python -c pass`: `--help`,
`transplt check` on one small file with one finding, as it is cached, and on a clean one without the cache, and a whole
migration of the first file with its reports. Byte code is compiled before, as an installation has it. Beside them the
import of LibCST, which writes the edit of the migration.

--check exits 1 unless `--help` and each `check` cost less than 0.25 s, and the migration less than 0.65 s.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.speed import ROOT, child_seconds

MOST_SECONDS = 0.25
MOST_OF_A_MIGRATION = 0.65
SOURCE = "import torch\n\nprint(torch.cuda.is_available())\n"


def least(command: list[str], cwd: Path, repeat: int) -> float:
    """CPU seconds of a command."""
    return min(child_seconds(command, cwd) for _ in range(repeat))


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "cache")
        (folder / "train.py").write_text(SOURCE)
        (folder / "clean.py").write_text("import os\n\nprint(os.getcwd())\n")
        clean = ["check", "--no-cache", "clean.py"]
        transplt = [sys.executable, "-m", "transplt"]
        for first in (["check", "train.py"], clean, ["-i", "train.py", "-o", "out"]):  # compiles
            subprocess.run([*transplt, *first], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)},
                           capture_output=True, check=False)  # fmt: skip
        nothing = least([sys.executable, "-c", "pass"], folder, options.repeat)
        figures = {
            "transplt --help": least([*transplt, "--help"], folder, options.repeat) - nothing,
            "transplt check train.py": least([*transplt, "check", "train.py"], folder, options.repeat) - nothing,
            f"transplt {' '.join(clean)}": least([*transplt, *clean], folder, options.repeat) - nothing,
        }
        migration = [*transplt, "-q", "-i", "train.py", "-o", "out", "--force"]
        whole = least(migration, folder, options.repeat) - nothing
        libcst = least([sys.executable, "-c", "import libcst"], folder, options.repeat) - nothing
    print(f"python -c pass: {nothing:.3f} s")
    for name, seconds in figures.items():
        print(f"{name}: {seconds:.3f} s more")
    print(f"transplt -i train.py -o out: {whole:.3f} s more")
    print(f"import libcst: {libcst:.3f} s more, which the migration has in it")
    slow = max(figures.values()) >= MOST_SECONDS or whole >= MOST_OF_A_MIGRATION
    return int(options.check and slow)


if __name__ == "__main__":
    sys.exit(main())
