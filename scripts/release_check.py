"""Builds what a release hands out, and tries it: `python scripts/release_check.py [-o DIR] [--release]`.

    sources twice, in folders of other names, times and modes  ->  the same bytes of sdist and wheel
    sdist: holds the sources, and gives the same wheel
    each of both: into a fresh environment with nothing else   ->  a sample migrates to what is expected

Needs git and hatchling here, and pip's index for what transplt itself needs. The archives bear SOURCE_DATE_EPOCH, else
the day of the commit. With -o they are put there. With --release the changelog has to name the day of this version,
HEAD its tag (`v1.2.3`), and neither may a package of rules/support/third_party.json have been read more than half a
year before that day, nor the releases of rules/support/package_releases.json more than three months; without it both
are told. Exits with 1 and says why when anything does not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts.regen_samples import SAMPLES, golden_files  # noqa: E402
from transplt import __version__  # noqa: E402

#: Months after which what a row says of a package has to be read again, and what an index says of releases.
_MONTHS, _MONTHS_OF_RELEASES = 6, 3


class Wrong(Exception):
    """What does not hold, in one sentence."""


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """A command's output; Wrong with the end of what it said."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SOURCE_DATE_EPOCH")}
    done = subprocess.run(command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise Wrong(f"{Path(command[0]).name} {' '.join(map(str, command[1:4]))} ... ended with {done.returncode}: "
                    + "\n".join((done.stdout + done.stderr).splitlines()[-8:]))  # fmt: skip
    return done.stdout


def sources() -> list[str]:
    """The files that git knows, and new ones that it does not ignore."""
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    return sorted(name for name in names if name and (ROOT / name).is_file())


def built(folder: Path, out: Path, day: str) -> list[Path]:
    """The sdist and the wheel of the sources."""
    run(sys.executable, "-m", "hatchling", "build", "-d", out, cwd=folder, SOURCE_DATE_EPOCH=day)
    return sorted(out.iterdir())


def copied(files: list[str], origin: Path, target: Path, mode: int, time: int) -> Path:
    """The files in a folder of their own, with this mode (and who may run them) and time."""
    for name in files:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin / name, path)
        path.chmod(mode | (0o111 & (origin / name).stat().st_mode))
        os.utime(path, (time, time))
    return target


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def reproducible(scratch: Path, files: list[str], day: str) -> list[Path]:
    """Both archives, after a second build gave the same bytes."""
    one = copied(files, ROOT, scratch / "one", 0o644, 1_000_000_000)
    first = built(one, scratch / "dist", day)
    another = copied(files[::-1], one, scratch / "another", 0o640, 1_600_000_000)
    second = built(another, scratch / "dist-again", day)
    for archive, again in zip(first, second, strict=True):
        if archive.read_bytes() != again.read_bytes():
            raise Wrong(f"{archive.name} is not reproducible: two builds gave other bytes")
        print(f"{digest(archive)}  {archive.name}  (the same twice)")
    return first


def check_sdist(sdist: Path, wheel: Path, files: list[str], scratch: Path, day: str) -> None:
    """It holds the sources, and they give the wheel."""
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "unpacked", filter="data")
    (folder,) = (scratch / "unpacked").iterdir()
    inside = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    if missing := set(files) - inside - {".gitignore"}:
        raise Wrong(f"{sdist.name} lacks {', '.join(sorted(missing)[:5])}")
    if more := inside - set(files) - {"PKG-INFO"}:
        raise Wrong(f"{sdist.name} holds {', '.join(sorted(more)[:5])}, which are no sources")
    again = scratch / "dist-of-sdist"
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", again, cwd=folder, SOURCE_DATE_EPOCH=day)
    if (again / wheel.name).read_bytes() != wheel.read_bytes():
        raise Wrong(f"the sources in {sdist.name} give another wheel")
    print(f"{sdist.name}: {len(files)} files, which give the same wheel")


def check_installed(archive: Path, scratch: Path) -> None:
    """Installed alone it migrates a sample to what is expected."""
    home = scratch / f"env-{archive.suffix}"
    run(sys.executable, "-I", "-m", "venv", home, cwd=scratch)
    run(home / "bin/python", "-I", "-m", "pip", "install", "--quiet", "--retries", "10", archive, cwd=scratch)
    transplt = home / "bin" / "transplt"
    if run(transplt, "--version", cwd=scratch).split()[-1] != __version__:
        raise Wrong(f"{archive.name} installs another version")
    sample = SAMPLES / "image_classifier"
    out = scratch / f"out-{archive.suffix}"
    run(transplt, "-i", sample / "cuda", "-o", out, "--exit-zero", cwd=scratch)
    if golden_files(out / "cuda_msft") != golden_files(sample / "expected"):
        raise Wrong(f"{archive.name}, installed alone, migrates a sample to something else")
    names = run(home / "bin/python", "-I", "-m", "pip", "list", "--format=freeze", cwd=scratch)
    print(f"{archive.name}: installed with {len(names.splitlines()) - 1} packages beside it, and migrates a sample")


def months(earlier: str, later: str) -> int:
    """The months between two days, or months (`2026-07`, `2027-02-03`)."""
    (year, month), (of_year, of_month) = (map(int, each.split("-")[:2]) for each in (earlier, later))
    return 12 * (of_year - year) + of_month - month


def aged(packages: list[dict[str, str]], day: str) -> list[str]:
    """The names of packages last read (`checked`: 2026-07) more than half a year before a day (2027-02-03)."""
    return [row["name"] for row in packages if months(row["checked"], day) > _MONTHS]


def check_packages(day: str, release: bool) -> None:
    """Says how many packages have to be read again; for a release there may be none."""
    packages = json.loads((ROOT / "rules" / "support" / "third_party.json").read_bytes())["packages"]
    old = aged(packages, day)
    if old and release:
        raise Wrong(f"{len(old)} packages were read more than {_MONTHS} months before {day}: read them again and date "
                    f"them (`checked`): {', '.join(old)}")  # fmt: skip
    read = json.loads((ROOT / "rules" / "support" / "package_releases.json").read_bytes())["read"]
    if release and months(read, day) > _MONTHS_OF_RELEASES:
        raise Wrong(f"releases were read on {read}, more than {_MONTHS_OF_RELEASES} months before {day}: "
                    "scripts/releases.py reads them again")  # fmt: skip
    print(f"releases: read on {read}")
    print(f"packages: {len(old)} of {len(packages)} were read more than {_MONTHS} months before {day}")


def check_release() -> None:
    heading = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if heading is None or not re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", heading[1]):
        raise Wrong(f"CHANGELOG.md does not begin with {__version__} and a day")
    if f"v{__version__}" not in run("git", "tag", "--points-at", "HEAD", cwd=ROOT).split():
        raise Wrong(f"HEAD has no tag v{__version__}")
    if run("git", "status", "--porcelain", cwd=ROOT):
        raise Wrong("there are changes that are not committed")


def main() -> int:
    """Builds and tries; prints a line for each thing that holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="put sdist and wheel there")
    parser.add_argument("--release", action="store_true", help="this is to be released: changelog and tag have to be")
    options = parser.parse_args()
    try:
        files = sources()
        if options.release:
            check_release()
        day = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
        check_packages(time.strftime("%Y-%m-%d", time.gmtime(int(day))), options.release)
        with tempfile.TemporaryDirectory(prefix="transplt-release-") as name:
            scratch = Path(name)
            wheel, sdist = sorted(reproducible(scratch, files, day), key=lambda path: path.suffix != ".whl")
            check_sdist(sdist, wheel, files, scratch, day)
            for archive in (sdist, wheel):
                check_installed(archive, scratch)
            if options.output is not None:
                options.output.mkdir(parents=True, exist_ok=True)
                for archive in (sdist, wheel):
                    shutil.copyfile(archive, options.output / archive.name)
    except Wrong as wrong:
        print(f"Error: {wrong}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
