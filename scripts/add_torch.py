"""Adds a version of torch: reads its torch and torch_npu wheels, and makes every fact and table again.

    python scripts/add_torch.py 2.14        a version that is there already is read again

The wheels are downloaded into the cache of the tests (some 170 MB; TRANSPLT_TEST_CACHE), unless they lie there. Nothing
of them is imported or run. What they say goes into scripts/facts/ (fact_update.py); then the list of versions in
transplt/base/settings.py, the tables (build_all.py) and the samples (regen_samples.py) are written again. Printed is
what changed in meaning from the version before, and what no wheel tells. A version without a torch_npu wheel changes
nothing.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "scripts"))

import fact_store  # noqa: E402
from fact_update import Step, in_order, news, update  # noqa: E402
from fetch_wheels import cache_folder  # noqa: E402
from wheel_reader import Wheel  # noqa: E402

SETTINGS = ROOT / "transplt" / "base" / "settings.py"
#: The smallest wheels of torch: their Python sources are those of every platform.
_SMALL = [word for major in range(16, 10, -1) for word in ("--platform", f"macosx_{major}_0_arm64")]
#: One Python that all these wheels are there for, and those that the range is asked for.
_PYTHON, _PYTHONS = "3.10", tuple(f"3.{minor}" for minor in range(8, 18))
#: What pip says where an index has no such version, or none for this Python.
_NONE = "No matching distribution found"


class NoWheelError(Exception):
    """There is no such wheel."""


def pip(*arguments: str) -> None:
    """Run pip on wheels alone. NoWheelError where the index has none, OSError where pip fails otherwise."""
    command = [sys.executable, "-m", "pip", *arguments, "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if _NONE in done.stderr:
        raise NoWheelError
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise OSError(f"pip could not do it: {last[0]}")


def fetch(package: str, version: str, options: Sequence[str], folder: Path) -> Wheel:
    """The wheel of a version (`2.14.0`, `2.14.*`) from the cache, else from the index. NoWheelError, OSError."""
    pattern = f"{package}-{version}-*.whl" if "*" not in version else f"{package}-{version.removesuffix('*')}*.whl"
    if not any(folder.glob(pattern)):
        wanted = f"{package}=={version}"
        pip("download", wanted, "--dest", str(folder), "--python-version", _PYTHON, *options)
    return Wheel(max(folder.glob(pattern), key=lambda path: path.stat().st_mtime))


def pythons(requirement: str) -> str:
    """`3.10 to 3.14`: the Pythons that the index has a wheel for."""
    found = []
    for python in _PYTHONS:
        try:
            pip("install", "--dry-run", "--target", "unused", "--python-version", python, requirement)
        except NoWheelError:
            continue
        found.append(python)
    return f"{found[0]} to {found[-1]}" if found else ""


def step_to(version: str) -> Step:
    """The wheels of a version: for one that is known those that its facts were read from. NoWheelError, OSError."""
    folder = cache_folder() / "torch"
    row = fact_store.versions().get(version) or {}
    npu = fetch("torch_npu", row.get("wheel") or f"{version}.*", (), folder)
    wanted = re.sub(r"^==|\.\*$", "", npu.requires("torch")) or f"{version}.*"
    older = [each for each in fact_store.wheels() if fact_store.key(each) < fact_store.key(version)]
    return Step(version, older[-1] if older else "", fetch("torch", wanted, _SMALL, folder), npu)


def write_settings(path: Path = SETTINGS) -> None:
    """The versions of the facts as the list in settings.py, the newest as the default."""
    versions = in_order(fact_store.versions())
    listed = json.dumps(list(versions))[1:-1]
    text = path.read_text(encoding="utf-8")
    line = f"TORCH_VERSIONS = {wrapped(listed)}"
    text = re.sub(r"^TORCH_VERSIONS = \([^)]*\)(?:  # fmt: skip)?", line, text, flags=re.M)
    text = re.sub(r'^DEFAULT_TORCH_VERSION = ".*"', f'DEFAULT_TORCH_VERSION = "{versions[-1]}"', text, flags=re.M)
    path.write_text(text, encoding="utf-8", newline="\n")


def wrapped(listed: str) -> str:
    """The list in parentheses, in lines of at most 120 characters."""
    if len(listed) < 100:
        return f"({listed})"
    lines = [""]
    for word in listed.split(" "):
        if len(lines[-1]) + len(word) > 110:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else '    '}{word}"
    return "(\n" + "\n".join(lines) + ",\n)  # fmt: skip"


def main(version: str) -> str:
    """Add a version, or read it again; what is wrong in one sentence, else empty."""
    if not re.fullmatch(r"\d+\.\d+", version):
        return f"{version!r} is not a version such as 2.14"
    try:
        step = step_to(version)
    except NoWheelError:
        return f"there is no torch_npu wheel for torch {version}: nothing was changed"
    except OSError as error:
        return f"the wheels for torch {version} are not there: {error}; nothing was changed"
    new = version not in fact_store.versions()
    update(step, pythons(f"torch_npu=={step.npu.version}") if new else "")
    write_settings()
    for script in ("build_all.py", "regen_samples.py"):
        subprocess.run([sys.executable, str(ROOT / "scripts" / script)], check=True, cwd=ROOT)
    print(f"torch {version}: torch_npu {step.npu.version}, compared with torch {step.before}")
    for line in news(step):
        print(f"- {line}")
    row, says = fact_store.versions()[version], fact_store.read("verdicts")["versions"][version]
    print("what no wheel tells, for a person to look up (scripts/facts/):")
    print(f"- versions.json: CANN {row['cann'] or 'not known yet'}")
    print(f"- verdicts.json: support of operators {says['source'] or says['kind']}")
    read = ", ".join(f"{name} {commit}" for name, commit in fact_store.read("card_types")["sources"].items())
    print(f"- card_types.json: types that operators take, read at {read}; read_card_types.py reads newer checkouts")
    return ""


if __name__ == "__main__":
    sys.exit("usage: add_torch.py VERSION" if len(sys.argv) != 2 else main(sys.argv[1]) or None)
