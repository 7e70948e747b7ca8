"""The comparison with five ports by hand: a section of docs/reference/coverage.md, from expert_ports.json.

    python scripts/expert_table.py                      print the section
    python scripts/expert_table.py --check ORIGINALS    hold the claims against a run; exit 1 where one is not true

ORIGINALS holds a folder with the sources of each original at the commit that the data file names (`mae`, `waveglow`,
...). Each is migrated with mixed precision and all tunings; a row that says `done` needs an edit of one of its codes at
every place it names, a row that says `reported` a finding, a row that says `missed` neither.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from transplt.base.finding import Finding  # noqa: E402
from transplt.base.settings import DEFAULT_TORCH_VERSION  # noqa: E402
from transplt.project.options import Options, make_plan  # noqa: E402
from transplt.project.report.migration_record import RunResult  # noqa: E402
from transplt.project.tree import migrate_tree  # noqa: E402

DATA = ROOT / "docs" / "reference" / "expert_ports.json"
AMP = "native"
#: All tunings, those that only measure among them, with the steps that the ports use or thereabouts.
TUNE = "all,step-time,profiler=5-10,max-steps=500"
#: What transplt makes of an edit of the experts, in the order of the totals.
OUTCOMES = {
    "done": "done: the tool makes the same edit",
    "otherwise": "otherwise: an edit of the tool serves the same end in another way",
    "reported": "reported: a finding at the place says what to do",
    "missed": "missed: neither an edit nor a finding",
    "not applicable": "not applicable: paths, sizes, wording, files of the port's own, operators that are deprecated "
    "by now, what only apex needs, mistakes",
}
_HEAD = """
## Beside ports by hand

Five public models that Ascend's engineers ported by hand (Ascend/ModelZoo-PyTorch, commit 6a2804a3 of December 2023),
edit by edit: what they changed against the original, and what `transplt -i ORIGINAL --amp {amp} --tune {tune}`
makes of it for torch {version}. Lines are those of the port. Launch scripts, licences and pages are left out.
The list is docs/reference/expert_ports.json; `python scripts/expert_table.py --check ORIGINALS` holds every row that
claims something against a run of the tool on the originals.

{outcomes}

RAFT is in the folder `dev/` of the collection: a trial on one card that does not run as it stands. The ports leave
what they did not need for their own runs: `denoiser.py` of WaveGlow, the evaluation of RAFT but for one data set, the
nccl of ConvNeXt's detection and segmentation still speak of CUDA there; transplt changes or reports each of them.

"""


@dataclass(frozen=True)
class Row:
    """Identical edits of one port. `at` are places (path, line) in the original, `port` those in the port, for readers.

    `torch` is the torch version for which the claim is made.
    """

    model: str
    kind: str
    what: str
    port: str
    count: int
    outcome: str
    at: tuple[tuple[str, int], ...] = ()
    codes: tuple[str, ...] = ()
    why: str = ""
    torch: str = DEFAULT_TORCH_VERSION


def read() -> tuple[dict[str, dict[str, str]], list[Row]]:
    """The models (name -> folder, port, original, commit) and the rows."""
    document = json.loads(DATA.read_text(encoding="utf-8"))
    rows = []
    for entry in document["edits"]:
        places = [place.rpartition(":") for place in entry.pop("at", ())]
        at = tuple((path, int(line)) for path, _, line in places)
        rows.append(Row(**{**entry, "codes": tuple(entry.get("codes", ()))}, at=at))
    return document["models"], rows


def mistakes(models: dict[str, dict[str, str]], rows: list[Row]) -> list[str]:
    """What is wrong with the list itself, whatever the tool does."""
    found = []
    for row in rows:
        claims = row.outcome in ("done", "otherwise", "reported")
        if row.outcome not in OUTCOMES or row.model not in models or row.count < 1 or not row.port:
            found.append(f"{_name(row)}: no such model, outcome, count or place")
        if claims != bool(row.codes) or (claims and not row.at):
            found.append(f"{_name(row)}: a claim needs codes and places in the original; other rows have no codes")
        if row.outcome in ("otherwise", "not applicable") and row.kind != "taste" and not row.why:
            found.append(f"{_name(row)}: {row.outcome} needs a reason")
    return found


def section() -> str:
    """The section as Markdown."""
    models, rows = read()
    outcomes = "\n".join(f"- {text}" for text in OUTCOMES.values())
    parts = [_HEAD.format(amp=AMP, tune=TUNE, version=DEFAULT_TORCH_VERSION, outcomes=outcomes)]
    parts.append(_totals("model", {name: [row for row in rows if row.model == name] for name in models}))
    kinds = sorted({row.kind for row in rows})
    parts.append(_totals("kind of edit", {kind: [row for row in rows if row.kind == kind] for kind in kinds}))
    for name, facts in models.items():
        parts.append(f"\n### {name}\n\n{facts['port']}, made from {facts['original']} at {facts['commit']}.\n\n")
        parts.append("| port | kind | edit | n | transplt | code | |\n|---|---|---|---|---|---|---|\n")
        for row in rows:
            if row.model == name:
                cells = [row.port, row.kind, row.what, str(row.count), row.outcome, ", ".join(row.codes), row.why]
                parts.append("| " + " | ".join(cells) + " |\n")
    return "".join(parts)


def _totals(head: str, groups: dict[str, list[Row]]) -> str:
    lines = [f"| {head} | edits | {' | '.join(OUTCOMES)} |\n", "|---" * (len(OUTCOMES) + 2) + "|\n"]
    total: Counter[str] = Counter()
    for name, rows in groups.items():
        counts = Counter[str]()
        for row in rows:
            counts[row.outcome] += row.count
        total += counts
        lines.append(_counted(name, counts))
    if head == "model":
        lines.append(_counted("all", total))
    return "".join([*lines, "\n"])


def _counted(name: str, counts: Counter[str]) -> str:
    return f"| {name} | {counts.total()} | {' | '.join(str(counts[outcome]) for outcome in OUTCOMES)} |\n"


def untrue(originals: Path) -> list[str]:
    """The claims that a run on the originals does not bear out."""
    models, rows = read()
    found = mistakes(models, rows)
    for name, facts in models.items():
        mine = [row for row in rows if row.model == name]
        for version in sorted({row.torch for row in mine}):
            result = _migrated(originals / facts["folder"], version)
            found += [f"{name}: {record.path} could not be migrated" for record in result.failed]
            findings = result.findings
            for row in mine:
                if row.torch == version:
                    found += [f"{_name(row)}: {problem}" for problem in _problems(row, findings)]
    return found


def _migrated(folder: Path, version: str) -> RunResult:
    with tempfile.TemporaryDirectory() as out:
        options = Options(
            source=folder,
            out=Path(out),
            torch_version=version,
            analysis=True,
            page=False,
            report_only=True,
            amp=AMP,
            tune=TUNE,
        )
        return migrate_tree(make_plan(options))


def _problems(row: Row, findings: list[Finding]) -> Iterator[str]:
    edits = row.outcome in ("done", "otherwise")
    seen = 0
    for path, line in row.at:
        here = [finding for finding in findings if finding.path == path and finding.span.line == line]
        if row.outcome == "missed":
            told = sorted({finding.code for finding in here if finding.open})
            if told:
                yield f"{path}:{line} has {', '.join(told)}"
        elif row.codes:
            fits = [finding for finding in here if finding.code in row.codes and finding.applied is edits]
            seen += len(fits)
            if not fits:
                others = ", ".join(sorted({finding.code for finding in here})) or "nothing"
                yield f"{path}:{line} has {others}, not {' or '.join(row.codes)}"
    if row.outcome == "done" and seen < row.count:
        yield f"{seen} edits, not {row.count}"


def _name(row: Row) -> str:
    return f"{row.model}: {row.what} ({row.port})"


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--check"] and len(arguments) == 2:
        problems = untrue(Path(arguments[1]))
        print("\n".join(problems) or "every claim holds")
        return int(bool(problems))
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    print(section(), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
