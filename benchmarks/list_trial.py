"""A second opinion on the list of actions: does each stop that it names stop a run, and does it name each stop?

usage: python benchmarks/list_trial.py FOLDER [--only WORD] [--json FILE]
       python benchmarks/list_trial.py PROJECT --main SCRIPT [--json FILE] [-- ARGUMENT...]

FOLDER holds clones as `proof.py` takes them, of the repositories of `instrumented_list.py`; what is not there is
skipped. Each project is migrated, and its main script takes a few steps on the emulated card: as migrated, with all
mends of `MENDS` for its actions, and with all but one for each action that says to stop. Such an action is

right        where the run stops at its lines without its mend, or gets less far
false        where its lines ran, and the run gets as far without its mend, or there is none
not reached  where the run did not come to its lines, or to no step behind them
no run       about what no run of a script reads: requirements, images, commands

"Missing" are stops that no action names and the original does not share; "listed still" are actions that a check of the
output has again for a file of theirs, with all mends.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from instrumented_list import LISTED  # noqa: E402
from list_mends import Said  # noqa: E402
from many_cards_scripts import Script  # noqa: E402
from proof_scripts import PROVEN  # noqa: E402
from small_programs import arguments_of, source_of, with_stubs  # noqa: E402

from transplt.engine.actions.action import Action  # noqa: E402
from transplt.engine.actions.actions import actions_of  # noqa: E402
from transplt.engine.edited_lines import output_line  # noqa: E402
from transplt.project.options import Options, Plan, make_plan  # noqa: E402
from transplt.project.report.migration_record import RunResult  # noqa: E402
from transplt.project.tree import analyse_tree, migrate_tree  # noqa: E402
from transplt.proof.launch.options import RunOptions, Trace  # noqa: E402
from transplt.proof.launch.warm import Warm  # noqa: E402
from transplt.proof.prove.command import for_output  # noqa: E402
from transplt.proof.prove.projects import find_project  # noqa: E402
from transplt.proof.prove.runs import Run, Runner, Stop  # noqa: E402
from transplt.proof.prove.training import Place  # noqa: E402

STOPS = ("import", "first step", "later")
SECONDS, STEPS = 300.0, 8


class Ended:
    """How far a run came. `stops` are its own and what the card would have refused though the emulated one went on;
    `ran` are lines of actions. Paths are from the root of the output, in which the run's folder lies `below`."""

    def __init__(self, run: Run, below: str) -> None:
        def place(path: str, line: int) -> Place:
            return Place(os.path.normpath(os.path.join(below, path)), line)

        stops = [(run.stop.reason, run.stop.place)] if run.stop is not None else []
        errors = [each for each in run.findings if each["level"] == "error"]
        stops += [(f"{each['code']} {each['message']}", Place(each["path"], each["line"])) for each in errors]
        self.stops = [Stop(reason, place(*where) if where is not None else None) for reason, where in stops]
        self.ran = [place(path, line) for path, lines in run.lines.items() for line in lines]
        self.steps = len(run.first.steps) if run.first is not None else 0
        self.far = not self.stops, self.steps, run.operators


def statement(tree: ast.AST, first: int, last: int) -> tuple[int, int]:
    """The lines of the simple statement around these, or these."""
    simple = (each for each in ast.walk(tree) if isinstance(each, ast.stmt) and not hasattr(each, "body"))
    around = ((each.lineno, each.end_lineno or last) for each in simple)
    return next((each for each in around if each[0] <= first <= last <= each[1]), (first, last))


def plan(source: Path, out: Path | None = None) -> Plan:
    return make_plan(Options(source=source, out=out, jobs=1, page=False, analysis=True, isolated=True))


def left_by(result: RunResult) -> list[Action]:
    return [part for each in actions_of(result.findings) for part in each.parts or (each,)]


def migrated(source: Path, place: Path) -> tuple[Path, list[Said]]:
    """The output, and the actions that are left."""
    result = migrate_tree(plan(source, place))
    folder, by_path = next(place.glob("*_msft")), {each.path: each.findings for each in result.python_files}
    trees = {path: ast.parse((folder / path).read_bytes()) for path in by_path if path.endswith(".py")}
    said = []
    for action in left_by(result):
        places: dict[str, list[tuple[int, int]]] = {}
        for finding in action.findings:
            first = output_line(finding.span.line, by_path.get(finding.path, ()))
            last = first + finding.span.end_line - finding.span.line
            span = statement(trees.get(finding.path, ast.Module([], [])), first, last)
            if span not in places.setdefault(finding.path, []):
                places[finding.path].append(span)
        said.append(Said(str(action.title), "aside" if action.aside else action.blocks, action.codes, places))
    return folder, said


def listed_still(folder: Path, said: Iterable[Said], place: Path) -> list[str]:
    """The titles of those that the list still has for a file of theirs when all are done."""
    shutil.copytree(folder, place)
    done = {(path, code) for each in said for path in each.mend(place) for code in each.codes}
    left = left_by(analyse_tree(plan(place)))
    again = (each for each in left if any((one.path, code) in done for one in each.places for code in each.codes))
    return [str(each.title) for each in again]


def judge(said: Said, whole: Ended, without: Ended) -> str:
    """What a run with all mends and one without its own say of an action."""
    if any(said.has(stop.place) for stop in without.stops):
        return "right"
    if [*map(str, whole.stops)] != [*map(str, without.stops)] or whole.steps != without.steps:
        return "right" if whole.far > without.far else "the mend fails"
    if not any(path.endswith(".py") for path in said.places):
        return "no run"
    told = any(map(said.has, without.ran)) and (without.steps or not without.stops)
    return "false" if told else "not reached"


def trial(source: Path, folder: Path, main: str, arguments: Collection[str], said: list[Said], warm: Warm) -> Any:
    """Run the output of a migration with the mends of what was `said`, and judge each that says to stop."""
    below, name = os.path.split(main)
    trace = Trace(steps=STEPS)
    asked = RunOptions(name, tuple(arguments), sys.executable, random="cpu", timeout=SECONDS, threads=1, trace=trace)
    options, _ = for_output(asked, folder, source)
    watched: dict[str, list[int]] = {}
    for path, spans in (item for each in said for item in each.places.items()):
        if path.endswith(".py") and not (within := os.path.relpath(path, below or ".")).startswith(".."):
            lines = watched.setdefault(within, [])
            lines += [line for first, last in spans for line in range(first, last + 1)]

    def run(mends: Iterable[Said], tree: Path = folder, host: str = "npu") -> Ended:
        with tempfile.TemporaryDirectory(prefix="list-trial-") as place:
            copy = Path(shutil.copytree(tree, Path(place) / tree.name))
            for each in mends:
                each.mend(copy)
            project = find_project(copy / below, name, ())
            return Ended(
                Runner(project, options, host, watched if host == "npu" else {}, warm=warm).run(seeded=False), below
            )

    done = [each for each in said if any(path.endswith(".py") for path in each.mend(folder, write=False))]
    whole = run(done)
    plain = run(()) if done else whole
    rows = []
    for each in (each for each in said if each.blocks in STOPS):
        without = whole
        if each in done:
            without = run(one for one in done if one is not each) if len(done) > 1 else plain
        first = next(f"{path}:{spans[0][0]}" for path, spans in each.places.items())
        row = {"title": each.title, "blocks": each.blocks, "codes": each.codes, "first": first, "mended": each in done}
        rows.append({**row, "verdict": judge(each, whole, without)})
    original = run((), source, "cuda").stops if whole.stops else []
    own = [stop for stop in whole.stops if not any(map(stop.is_that_of, original))]
    missing = [str(stop) for stop in own if not any(each.has(stop.place) for each in said)]
    stops = {"stops": [*map(str, plain.stops)], "stops_mended": [*map(str, whole.stops)]}
    steps = {"steps": plain.steps, "steps_mended": whole.steps}
    return {**steps, **stops, "original_stops": [*map(str, original)], "actions": rows, "missing": missing}


def try_script(script: Script, corpus: Path, place: Path, warm: Warm) -> dict[str, Any]:
    """Migrate one script of a list, and try what is said of it. One without a kind is a user's own, without stubs."""
    source = source_of(script, corpus, place)
    folder, said = migrated(source, place / "out")
    still = listed_still(folder, said, place / "listed")
    for each in (source, folder) if script.kind else ():
        with_stubs((each / script.main).parent, script)
    told = trial(source, folder, script.main, arguments_of(script), said, warm)
    return {"script": script.name, **told, "listed_still": still}


def figures(results: Collection[dict[str, Any]]) -> dict[str, int]:
    """How many scripts and verdicts of each kind there are."""
    rows = Counter(row["verdict"] for each in results for row in each["actions"])
    taken = sum(each["steps_mended"] > 0 for each in results)
    more = {kind: sum(len(each[kind]) for each in results) for kind in ("missing", "listed_still")}
    return {"scripts": len(results), "take a step": taken, **dict(rows.most_common()), **more}


def page(results: Collection[dict[str, Any]]) -> str:
    """The table, and the figures under it."""
    lines = ["| script | steps as migrated, mended | said | action | verdict |", "|---|---|---|---|---|"]
    for each in results:
        rows = [(row["blocks"], f"{row['title']} ({row['first']})", row["verdict"]) for row in each["actions"]]
        rows += [("-", stop, "missing") for stop in each["missing"]]
        rows += [("-", title, "listed still") for title in each["listed_still"]]
        head = f"| {each['script']} | {each['steps']}, {each['steps_mended']} | "
        lines += [f"{head}{' | '.join(row)} |" for row in rows or [("-", "-", "-")]]
    return "\n".join([*lines, "", ", ".join(f"{count} {what}" for what, count in figures(results).items())])


def main() -> int:
    """Try what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of all clones; with --main a project")
    parser.add_argument("--only", default="", help="scripts whose name this expression is found in")
    parser.add_argument("--main", help="the script of the project")
    parser.add_argument("--json", type=Path)
    own = sys.argv[1 : sys.argv.index("--") if "--" in sys.argv else None]
    given, arguments = parser.parse_args(own), sys.argv[2 + len(own) :]
    corpus, scripts = given.folder.resolve(), [*{each.name: each for each in (*PROVEN, *LISTED)}.values()]
    if given.main:
        corpus, scripts = corpus.parent, [Script("", corpus.name, given.main, tuple(arguments))]
    results = []
    for script in scripts:
        if not re.search(given.only, script.name) or not (corpus / script.project / script.main).is_file():
            continue
        scratch = tempfile.TemporaryDirectory(prefix="list-trial-", ignore_cleanup_errors=True)
        with scratch as place, Warm() as warm:
            results.append(try_script(script, corpus, Path(place), warm))
        print(script.name, results[-1]["stops_mended"], file=sys.stderr, flush=True)
        if given.json is not None:
            told = {"figures": figures(results), "scripts": results}
            given.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    print(page(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
