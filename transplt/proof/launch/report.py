"""The report of a run: its verdict, with everything it rests on, as JSON and as text."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transplt.base.render.cell import many, visible
from transplt.base.render.proofs import Seen, proofs
from transplt.base.render.verdict import Verdict, Word
from transplt.proof.compiler.launches import Compiled
from transplt.proof.launch.edits import Migration
from transplt.proof.launch.host import too_small
from transplt.proof.launch.judging import Facts, at, judge, reasons
from transplt.proof.launch.memory import Use, in_words, uses
from transplt.proof.launch.runner import ScriptRun
from transplt.proof.launch.stacks import below, stood, told_below
from transplt.rules.silent_errors import CODE as SILENT

SCHEMA_VERSION = 2


@dataclass
class Report:
    """What came of a run. `reasons` are the causes behind the verdict, for programs (see judging.reasons)."""

    command: list[str]
    torch: str
    torch_version: str
    verdict: Verdict
    reasons: list[str] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    operators: Counter[str] = field(default_factory=Counter)
    lines: dict[str, Any] = field(default_factory=dict)
    processes: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    shapes: list[dict[str, Any]] = field(default_factory=list)
    reference: dict[str, Any] | None = None
    code: int = 0
    seconds: float = 0.0
    actions: list[dict[str, Any]] = field(default_factory=list)
    memory: list[Use] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    runs_on: str = ""
    compiled: Compiled | None = None

    @property
    def stops(self) -> list[Seen]:
        """The lines at which its processes stopped, but for those that the guard of CUDA stopped."""
        raised = [each["exception"] for each in self.processes if each["exception"] and each["exception"].get("path")]
        own = [each for each in raised if each["type"] != "CudaLeftover"]
        return [
            Seen(each["path"], each["line"], f"stopped by {each['reason']}", each.get("called", "")) for each in own
        ]

    @property
    def seen(self) -> list[Seen]:
        """What the run reports about single lines: where it stopped, and its findings (a leftover of CUDA is one)."""
        counted = [each for each in self.findings if each["level"] != "info"]
        said = [Seen(each["path"], each["line"], f"{each['code']} {each['message']}") for each in counted]
        return [*self.stops, *said]

    def prove(self, manifest: dict[str, Any] | None) -> None:
        """Note which of the migration's actions the run shows, by what it reports about their lines."""
        self.actions = [
            {"number": number, "title": title, "proof": lines}
            for number, title, lines in (proofs(manifest, self.seen) if manifest is not None else ())
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict.word,
            "sentence": self.verdict.sentence,
            "reasons": self.reasons,
            "command": self.command,
            "script_exit_code": self.code,
            "torch": self.torch,
            "target_torch_version": self.torch_version,
            "runs_on": self.runs_on,
            "compiled": self.compiled.as_json() if self.compiled is not None else None,
            "findings": self.findings,
            "operators": {
                "calls": sum(self.operators.values()),
                "distinct": len(self.operators),
                "counts": dict(sorted(self.operators.items())),
            },
            "memory": [use.as_json() for use in self.memory],
            "migrated_lines": self.lines,
            "processes": self.processes,
            "dynamic_shapes": self.shapes,
            "reference": self.reference,
            "notes": self.notes,
            "advice": self.advice,
            "actions": self.actions,
            "seconds": round(self.seconds, 1),
        }


def build(
    outcome: ScriptRun,
    migration: Migration | None,
    command: list[str],
    torch: str,
    torch_version: str,
    limit: float | None = None,
    reference: dict[str, Any] | None = None,
    weigh: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None,
) -> Report:
    """Merge the records of all processes into one report and judge it. `limit` is the seconds that the run had,
    `reference` what transplt.proof.launch.reference.compare gave; `weigh` says which of its findings hold."""
    root = migration.root if migration else Path.cwd()
    operators: Counter[str] = Counter()
    shapes: list[dict[str, Any]] = []
    merged: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    notes: Counter[str] = Counter()
    ran: dict[str, set[int]] = {}
    for process in outcome.processes:
        operators.update(process["operators"])
        notes.update(process["notes"])
        for path, lines in process["lines"].items():
            ran.setdefault(path, set()).update(lines)
        for finding in process["findings"]:
            key = (finding["path"], finding["line"], finding["code"], finding["message"])
            merged.setdefault(key, {**finding, "count": 0})["count"] += finding["count"]
        for shape in process["shapes"]:
            shapes.append({**shape, "stack": told_below(shape["stack"], root)})
    reporting = [
        each
        for each in outcome.processes  # not those of multiprocessing's own
        if any(each.get(fact) for fact in ("torch", "findings", "exception", "leaving", "ended", "place"))
        or stood(each["stack"]) is not None
    ]
    processes = [_process(each, root) for each in reporting or outcome.processes]
    findings = told_below((finding for _, finding in sorted(merged.items())), root)
    findings = findings if weigh is None else weigh(findings)
    facts = Facts(
        outcome.code, outcome.timed_out, limit, processes, findings, sum(operators.values()), reference,
        too_small(outcome),
    )  # fmt: skip
    counted = [f"{text} ({times} times)" if times > 1 else text for text, times in sorted(notes.items())]
    counted += [f"{many(facts.cut, 'process')} did not end normally"] * bool(facts.cut)
    counted += [f"during the run: {told}" for told in outcome.waits]
    lines = _lines(migration, ran, "" if facts.reported or not facts.cut else "no process ended normally")
    return Report(
        command, torch, torch_version, judge(facts), reasons(facts), findings, operators, lines, processes, counted,
        shapes, reference, outcome.code, outcome.seconds, memory=uses(outcome.processes),
    )  # fmt: skip


def _process(process: dict[str, Any], root: Path) -> dict[str, Any]:
    told = {"place": None, **process, "stood": stood(process["stack"])}
    places = {
        name: {**what, "path": below(what["path"], root)} if what and what.get("path") else what
        for name in ("exception", "leaving", "printed", "stood", "place") for what in (told[name],)
    }  # fmt: skip
    role = "launcher" if process["launcher"] else "forked worker" if process["forked"] else "script"
    return {
        "role": role,
        "rank": process["rank"],
        "status": process["status"],
        **places,
        "grouped": process["grouped"],
        "ended": process.get("ended", ""),
        "torch": process["torch"],
        "operator_calls": sum(process["operators"].values()),
        "seconds": process["seconds"],
    }


def _lines(migration: Migration | None, ran: dict[str, set[int]], unknown: str) -> dict[str, Any]:
    if migration is None or unknown:
        why = unknown or "no .transplt/manifest.json or change_list.csv is above the script"
        return {"known": False, "why": f"unknown, since {why}", "executed": [], "never_executed": []}
    executed: list[dict[str, Any]] = []
    never: list[dict[str, Any]] = []
    for file in migration.files:
        seen = ran.get(os.path.realpath(file.path), set())
        for line, span in file.statements.items():
            text = file.source[line - 1].strip()[:200] if line <= len(file.source) else ""
            entry = {"path": below(str(file.path), migration.root), "line": line, "text": text}
            (executed if span & seen else never).append(entry)
    met = {entry["path"] for entry in executed}
    never.sort(key=lambda entry: entry["path"] not in met)  # those of the files that ran first
    return {"known": True, "why": "", "executed": executed, "never_executed": never}


def as_text(report: Report, limit: int = 20) -> str:
    """The summary for a terminal; lists longer than `limit` are cut, the JSON report has all."""
    lines = [f"transplt run: {report.verdict}"]
    lines += _cut([_finding_line(f) for f in report.findings if f["level"] != "info"], limit)
    raised = [each for each in report.processes if each["exception"] and each["exception"]["type"] != "CudaLeftover"]
    errors = dict.fromkeys(at(each, each["exception"]) for each in raised)
    lines += [f"  {error}" for error in errors if error != report.verdict.sentence]
    lines += [f"  what helps: {line}" for line in report.advice]
    if silent := [_finding_line(f) for f in report.findings if f["code"] == SILENT]:
        lines.append(f"  operators with known silent errors, under the known conditions: {len(silent)}")
        lines += _cut([f"  {line}" for line in silent], limit)
    lines += [f"  ran on: {report.runs_on}"] if report.runs_on else []
    lines += [f"  {line}" for line in (report.compiled.lines() if report.compiled is not None else ())]
    lines += [f"  npu operators: {_operators(report)}"]
    lines += [f"  memory: {told}" for told in [in_words(report.memory)] if told]
    lines += [f"  migrated lines: {_migrated(report.lines)}"]
    if report.verdict.word not in (Word.STOPS, Word.NOT_RUN):
        lines += _cut([f"  {e['path']}:{e['line']}: {e['text']}" for e in report.lines["never_executed"]], limit)
    if report.shapes:
        lines.append(f"  shapes that change between steps: {len(report.shapes)} places:")
        lines += _cut([_shape_line(s) for s in report.shapes], limit)
    if report.reference is not None:
        lines += ["  " + line for line in report.reference["summary"]]
    for action in report.actions:
        lines.append(f"  shows action {action['number']}, {visible(action['title'])}:")
        lines += _cut([f"  {visible(line)}" for line in action["proof"]], limit)
    lines += [f"  note: {note}" for note in report.notes]
    return "\n".join(lines)


def _migrated(lines: dict[str, Any]) -> str:
    executed, never = len(lines["executed"]), len(lines["never_executed"])
    counted = f"{executed} ran, {never} did not run" if executed + never else ""
    return lines["why"] or counted or "none in the Python files"


def _operators(report: Report) -> str:
    """Counted by the processes themselves, torchrun not among them: nothing is known of one that was stopped."""
    ended = [each["status"] != "running" for each in report.processes if each["role"] != "launcher"]
    if ended and not any(ended):
        return "unknown, since no process ended normally"
    calls = f"{many(sum(report.operators.values()), 'call')} of {many(len(report.operators), 'operator')}"
    calls = calls if report.operators else "none was called"
    return calls + ("" if all(ended) else " in the processes that ended normally")


def _cut(lines: list[str], limit: int) -> list[str]:
    shown = ["  " + line for line in lines[:limit]]
    return [*shown, f"    ... and {len(lines) - limit} more"] if len(lines) > limit else shown


def _finding_line(finding: dict[str, Any]) -> str:
    times = f" ({finding['count']} times)" if finding["count"] > 1 else ""
    return f"{finding['path']}:{finding['line']}: {finding['code']} {finding['message']}{times}: {finding['help']}"


def _shape_line(shape: dict[str, Any]) -> str:
    frame = shape["stack"][0] if shape["stack"] else {"path": "?", "line": 0}
    examples = ", ".join(str(s[0]) for s in shape["shapes"][:3])
    place = f"{frame['path']}:{frame['line']}"
    return f"  {place}: {shape['operator']}: {shape['new_shapes']} new shapes after the first step ({examples}, ...)"
