"""Holds torch_npu's own transfer_to_npu and our migration of public scripts against the originals, and each other.

usage: python benchmarks/against.py FOLDER [--only WORD] [--json FILE] [--resume]

FOLDER holds clones as `proof.py` takes them; what is not there is skipped. Of each script of `proof_scripts.py` three
proofs are made, of a few steps of one process: the original with `torch_npu.contrib.transfer_to_npu`
on the emulated NPU against the original on a stand-in for CUDA ("theirs"), the migrated program there against the same
("ours"), and the two on the NPU against each other ("both", which is `--against transfer-to-npu`). What came of each
is kept in FILE (docs/reference/against.json), of which `scripts/comparison_table.py` makes a table.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from many_cards_scripts import Script  # noqa: E402
from proof import Way, migrate, programs, versions, write_known  # noqa: E402
from proof_scripts import PROVEN  # noqa: E402
from small_programs import source_of  # noqa: E402

from transplt.base.disk.cache_folder import Cache  # noqa: E402
from transplt.proof.launch.warm import Warm  # noqa: E402
from transplt.proof.prove.known import Known  # noqa: E402
from transplt.proof.prove.proof import between  # noqa: E402
from transplt.proof.prove.witness import REDIRECTED  # noqa: E402

KEPT = HERE.parent / "docs" / "reference" / "against.json"


def hold(script: Script, corpus: Path, place: Path, warm: Warm) -> dict[str, Any]:
    """The three verdicts of a script, where the original and what transfer_to_npu makes of it stop, and how much of
    each came to a card."""
    source = source_of(script, corpus, place)
    folder, _ = migrate(source, place / "plain", script, Way())
    before, after, options, run_with = programs(script, source, folder)
    cache = Cache(place / "runs")
    cache.folder.mkdir()
    known = Known(cache, run_with)
    provers = {
        "theirs": between(before, before, options, lambda text: None, warm, known),
        "ours": between(before, after, options, lambda text: None, warm, known),
        "both": between(before, after, options, lambda text: None, warm, known, REDIRECTED),
    }
    provers["theirs"].migrated.options = replace(options, redirected=True)
    told: dict[str, Any] = {"script": script.name, "kind": script.kind}
    for name, prover in provers.items():
        verdict = prover.prove((1,)).verdict
        told[name] = {"verdict": verdict.word.value, "sentence": verdict.sentence}
    for name, prover in (("original", provers["ours"]), ("transferred", provers["both"])):
        run = prover.original.run()  # from the cache
        stop = str(run.stop) if run.stop is not None else None
        steps = len(run.first.steps) if run.first is not None else 0
        told[name] = {"stop": stop, "steps": steps, "operators": run.operators}
    return {**told, "torch": run_with.torch}


def main() -> int:
    """Hold what is there, and keep what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="scripts whose name this expression is found in")
    parser.add_argument("--json", type=Path, default=KEPT)
    parser.add_argument("--resume", action="store_true", help="only what FILE does not hold")
    options = parser.parse_args()
    known: dict[str, Any] = json.loads(options.json.read_text("utf-8")) if options.json.is_file() else {}
    for script in PROVEN:
        if not re.search(options.only, script.name) or (options.resume and script.name in known):
            continue
        if not (options.folder / script.project / script.main).is_file():
            print(f"skipped, not there: {script.name}", file=sys.stderr)
            continue
        scratch = tempfile.TemporaryDirectory(prefix="against-", ignore_cleanup_errors=True)
        with scratch as place, Warm() as warm:
            told = hold(script, options.folder, Path(place), warm)
        known[script.name] = {**told, **{name: each for name, each in versions().items() if name != "commit"}}
        words = " ".join(f"{name} {told[name]['verdict']}" for name in ("theirs", "ours", "both"))
        print(f"{script.name}: {words}; {told['transferred']['stop']}", flush=True)
        write_known(known, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
