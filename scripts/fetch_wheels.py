"""Fetch the wheels that tests/wheels.txt pins by hash into a cache folder, and unpack them.

    python scripts/fetch_wheels.py        prints the folders of the unpacked wheels

Real code of other people, for tests and benchmarks; it is read, never imported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

PINS = Path(__file__).resolve().parent.parent / "tests" / "wheels.txt"


def cache_folder() -> Path:
    """TRANSPLT_TEST_CACHE, else `transplt-tests` in the user's cache folder."""
    if folder := os.environ.get("TRANSPLT_TEST_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transplt-tests"


def pinned_names(pins: Path) -> list[str]:
    """`name-version` of each pin, as it begins the wheel's file name."""
    lines = pins.read_text(encoding="utf-8").splitlines()
    return [line.split()[0].replace("-", "_").replace("==", "-") for line in lines if "==" in line]


def fetch_wheels(pins: Path = PINS, platform: tuple[str, ...] = ()) -> list[Path]:
    """The wheel files, downloaded unless the cache has them; raises CalledProcessError when pip fails.

    `platform`: options of `pip download` for a wheel of another platform, of which only Python files are read.
    """
    folder = cache_folder() / "wheels"
    found = [next(iter(folder.glob(f"{name}-*.whl")), None) for name in pinned_names(pins)]
    if all(found):
        return [path for path in found if path is not None]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--require-hashes", "--retries", "10", "--dest", str(folder), *platform, "-r", str(pins)]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return [next(iter(folder.glob(f"{name}-*.whl"))) for name in pinned_names(pins)]


def unpack(wheel: Path, into: Path) -> Path:
    """The content of `wheel` in a folder of its name below `into`."""
    target = into / wheel.name.split("-")[0]
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(target)
    return target


def main() -> None:
    for wheel in fetch_wheels():
        print(unpack(wheel, cache_folder() / "unpacked"))


if __name__ == "__main__":
    main()
