"""Public programs on three hosts, before and after a migration in the portable style.

    python -m benchmarks.public_programs CORPUS [FILE...] [--seconds 10] [--json FILE]

CORPUS holds clones of the repositories of `many_cards_scripts.py`, whose arguments, small settings and stubs are used;
each FILE of the corpus more is given with its arguments ("PyTorch-GAN/implementations/bgan/bgan.py --n_epochs 1").
Counted are programs which a portable migration of their folder changes. How each ended is compared as in
`three_hosts.py`, with a program's own folder around it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from many_cards_scripts import SCRIPTS, Script  # noqa: E402
from small_programs import arguments_of, source_of, with_stubs  # noqa: E402

from benchmarks.three_hosts import fault, run_on  # noqa: E402
from transplt.project.options import Options, make_plan  # noqa: E402
from transplt.project.tree import migrate_tree  # noqa: E402
from transplt.proof.launch.runner import SITES  # noqa: E402


def migrated(source: Path, place: Path) -> tuple[Path, list[str]]:
    """The folder in the portable style, and the files that changed."""
    options = Options(
        source=source, out=place / "out", jobs=0, page=False, style="portable", isolated=True, torch_version="2.13"
    )
    result = migrate_tree(make_plan(options))
    return next((place / "out").glob("*_msft")), [record.path for record in result.changed]


def programs(scripts: list[Script], corpus: Path, place: Path, seconds: int) -> Iterator[dict[str, Any]]:
    """The programs that a portable migration changes, as `run_on` takes them."""
    for number, script in enumerate(scripts):
        own = place / str(number)
        try:
            source = source_of(script, corpus, own)
            folder, changed = migrated(source, own)
        except (FileNotFoundError, UnicodeDecodeError):
            continue
        if not changed:
            continue
        for each in (source, folder):
            with_stubs((each / script.main).parent, script)
        sides = {"before": str(source), "after": str(folder)}
        given = {"name": script.name, "seconds": seconds, "main": script.main, "args": arguments_of(script)}
        yield {**given, "changed": changed, **sides}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    scripts = [script for script in SCRIPTS if (asked.corpus / script.project).is_dir()]
    known = {script.name for script in scripts}
    for file in asked.files:
        name, *arguments = shlex.split(file)
        if name not in known:
            scripts.append(Script("", str(Path(name).parent), Path(name).name, tuple(arguments)))
    with tempfile.TemporaryDirectory() as folder:
        pairs = list(programs(scripts, asked.corpus, Path(folder), asked.seconds))
        print(f"{len(pairs)} programs with portable edits", flush=True)
        with ThreadPoolExecutor(len(SITES)) as pool:
            results = dict(zip(SITES, pool.map(lambda host: run_on(host, pairs), SITES), strict=True))
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1), encoding="utf-8")
    files = {pair["name"]: pair["changed"] for pair in pairs}
    print("| host | programs | ran before | run now | print the same | files with edits in them |")
    print("|---|---:|---:|---:|---:|---:|")
    faults = []
    for host in SITES:
        told = results[host]
        ran = [each for each in told if not each["before"]["end"]]
        wrong = [why for each in told if (why := fault(host, each))]
        ends = Counter("prints" if "prints something else" in why else "ends" for why in wrong)
        edited = sum(len(files[each["name"]]) for each in ran)
        cells = (host, len(told), len(ran), len(ran) - ends["ends"], len(ran) - len(wrong), edited)
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
        faults += wrong
    print("\n".join(faults) or "what ran still runs")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
