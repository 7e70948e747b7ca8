"""Proves the migrations of public scripts (`transplt prove`), and writes docs/reference/proof.md.

usage: python benchmarks/proof.py FOLDER [--only WORD] [--ways plain,distributed,...] [--json FILE] [--resume]

FOLDER holds clones of the repositories in `proof_scripts.py`, at the commits that stand there; what is not there is
skipped. Each script runs with a few random samples, as the original on a stand-in for CUDA and migrated in these ways
on the emulated NPU. What came of each script and way is kept in FILE (docs/reference/proof.json) as soon as it is
known; with `--resume` what stands there is not proven again, and the runs of the originals, kept beside it, are not
made again.
`--page` only writes the page from it.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from many_cards_scripts import Script  # noqa: E402
from proof_page import page  # noqa: E402
from proof_scripts import PROVEN  # noqa: E402
from small_programs import arguments_of, source_of, with_stubs  # noqa: E402

from transplt import __version__  # noqa: E402
from transplt.base.disk.cache_folder import Cache  # noqa: E402
from transplt.project.options import Options, make_plan  # noqa: E402
from transplt.project.tree import migrate_tree  # noqa: E402
from transplt.proof.launch.interpreter import Versions  # noqa: E402
from transplt.proof.launch.options import RunOptions, Trace  # noqa: E402
from transplt.proof.launch.warm import Warm  # noqa: E402
from transplt.proof.prove.command import for_output  # noqa: E402
from transplt.proof.prove.known import Known  # noqa: E402
from transplt.proof.prove.projects import Project, find_project  # noqa: E402
from transplt.proof.prove.proof import between  # noqa: E402
from transplt.proof.prove.proof_text import part_as_json  # noqa: E402

PAGE = HERE.parent / "docs" / "reference" / "proof.md"
SECONDS = 900.0
STEPS = 8


@dataclass(frozen=True)
class Way:
    """What a migration is asked for beyond itself, and with how many processes it is proven."""

    worlds: tuple[int, ...] = (1,)
    entry: bool = False
    asked: dict[str, str] = field(default_factory=dict)
    #: Codes of the findings that say why a theme was not written.
    said: tuple[str, ...] = ()


WAYS = {
    "plain": Way(),
    "distributed": Way((1, 2), entry=True, said=("NPU330", "NPU331", "NPU332")),
    "four": Way((4,), entry=True, said=("NPU330", "NPU331", "NPU332")),
    # A fixed scale: so few steps are over before a dynamic one has settled.
    "amp": Way(asked={"amp": "native", "loss_scale": "128"}, said=("NPU742", "NPU743")),
    "tune": Way(asked={"tune": "all"}, said=("NPU75",)),
}


def migrate(source: Path, place: Path, script: Script, way: Way) -> tuple[Path, str]:
    """Migrate the project into `place`: its folder, and why what was asked for was not written."""
    entry = script.main if way.entry else None
    options = Options(source=source, out=place, jobs=0, page=False, analysis=False, entry=entry, **way.asked)  # type: ignore[arg-type]
    result = migrate_tree(make_plan(options))
    findings = [finding for file in result.files for finding in file.findings]
    said = [each.message for each in findings if not each.applied and way.said and each.code.startswith(way.said)]
    return next(place.glob("*_msft")), "; ".join(dict.fromkeys(said[:2]))


def sources_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.py"))}


def prove(
    script: Script, name: str, corpus: Path, place: Path, kept: Cache, keep: Path | None, warm: Warm
) -> dict[str, Any]:
    """Prove one script one way: the verdict, what it rests on, and how the original ended."""
    way = WAYS[name]
    source = source_of(script, corpus, place)
    plain, _ = migrate(source, place / "plain", script, Way())
    folder, said = (plain, "") if name == "plain" else migrate(source, place / "way", script, way)
    told: dict[str, Any] = {"script": script.name, "kind": script.kind, "way": name, "said": said}
    if name != "plain" and sources_of(folder) == sources_of(plain):
        return {**told, "verdict": "not written", "sentence": said or "nothing in it asks for it"}
    told["unchanged"] = sources_of(folder) == sources_of(source)
    before, after, options, versions_run = programs(script, source, folder)
    if keep is not None:
        for side, each in (("original", source), (name, folder)):
            shutil.copytree(each, keep / script.name.replace("/", "_") / side, dirs_exist_ok=True)
    prover = between(before, after, options, lambda text: None, warm, Known(kept, versions_run))
    begun = time.perf_counter()
    proof = prover.prove(way.worlds)
    reference = prover.original.run()
    first = reference.first
    told["original"] = {
        "stop": str(reference.stop) if reference.stop is not None else None,
        "steps": len(first.steps) if first is not None else 0,
        "operators": reference.operators,
    }
    verdict = proof.verdict
    return {
        **told,
        "verdict": verdict.word.value,
        "sentence": verdict.sentence,
        "comparisons": [_short(part_as_json(part)) for part in proof.parts],
        "seconds": round(time.perf_counter() - begun, 1),
        "torch": versions_run.torch,
    }


def _short(part: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in part.items() if value and name not in ("curves", "tolerance")}


def programs(script: Script, source: Path, folder: Path) -> tuple[Project, Project, RunOptions, Versions]:
    """Original and migrated program with their stubs and data, and how both are run."""
    for each in (source, folder):
        with_stubs((each / script.main).parent, script)
    options = RunOptions(
        Path(script.main).name, tuple(arguments_of(script)), sys.executable, random="cpu", timeout=SECONDS,
        trace=Trace(steps=STEPS), threads=1,
    )  # fmt: skip
    before, after = (find_project((each / script.main).parent, options.script, ()) for each in (source, folder))
    return before, after, *for_output(options, after.root, before.root)


def write_known(known: dict[str, Any], path: Path) -> None:
    """Write what is known, a line for each name, without the folders of this machine."""
    lines = (f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(known.items()))
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}/proof-\w+/", "", text.replace(sys.executable, "python"))
    path.write_text(text, encoding="utf-8")


def versions() -> dict[str, str]:
    """With what the proofs of this run are made."""
    asked = ["git", "-C", str(HERE.parent), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "date": time.strftime("%Y-%m-%d"), "transplt": __version__, "commit": commit,
        "python": platform.python_version(), "steps": str(STEPS),
    }  # fmt: skip


def counts(plain: dict[str, Any] | None) -> bool:
    """Whether the original runs and computes on a card, so that its themes say something."""
    return plain is None or (not plain["original"]["stop"] and bool(plain["original"]["operators"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scripts whose name this expression is found in")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--json", type=Path, default=PAGE.with_suffix(".json"))
    parser.add_argument("--resume", action="store_true", help="prove only what FILE does not hold")
    parser.add_argument("--page", action="store_true", help="prove nothing, write the page")
    parser.add_argument("--keep", type=Path, help="keep the programs here")
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(options.json.read_text(encoding="utf-8")) if options.json.is_file() else {}
    kept = Cache(options.json.with_suffix(".runs"))
    if not options.resume:
        kept.clear()
    kept.folder.mkdir(exist_ok=True)
    for way in [] if options.page else options.ways.split(","):
        for script in PROVEN:
            key = f"{script.name} {way}"
            if not re.search(options.only, script.name) or (options.resume and key in known):
                continue
            if way != "plain" and not counts(known.get(f"{script.name} plain")):
                continue
            if not (options.folder / script.project / script.main).is_file():
                print(f"skipped, not there: {script.name}", file=sys.stderr)
                continue
            scratch = tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True)
            with scratch as place, Warm() as warm:
                told = prove(script, way, options.folder, Path(place), kept, options.keep, warm)
            known[key] = {**told, **versions()}
            print(f"{told.get('seconds', 0):6} {key}: {told['verdict']}: {told['sentence'][:300]}", flush=True)
            write_known(known, options.json)
    if options.json == PAGE.with_suffix(".json"):  # a page of another file would forget what is proven here
        PAGE.write_text(page(list(known.values())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
