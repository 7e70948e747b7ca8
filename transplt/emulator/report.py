"""Judges a run: one verdict, with everything it rests on, as JSON and as text."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transplt.emulator.edits import Migration
from transplt.emulator.host import too_small
from transplt.emulator.runner import ScriptRun
from transplt.report.cell import visible
from transplt.report.proofs import Seen, proofs

SCHEMA_VERSION = 1


@dataclass
class Report:
    """`reasons` are the verdicts that apply, the gravest first; empty means verified."""

    command: list[str]
    torch: str
    torch_version: str
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

    @property
    def verdict(self) -> str:
        """verified, or the gravest of: not run, cuda-leftover, script-failed, timed-out, findings, no-npu-operator,
        reference-unstable, reference-differs."""
        return self.reasons[0] if self.reasons else "verified"

    @property
    def seen(self) -> list[Seen]:
        """What the run says of single lines: where it stopped, and its findings (a leftover of CUDA is one)."""
        stops = [each["exception"] for each in self.processes if each["exception"] and each["exception"].get("path")]
        said = [Seen(each["path"], each["line"], _stopped(each)) for each in stops if each["type"] != "CudaLeftover"]
        counted = [each for each in self.findings if each["level"] != "info"]
        return [*said, *(Seen(each["path"], each["line"], f"{each['code']} {each['message']}") for each in counted)]

    def prove(self, manifest: dict[str, Any] | None) -> None:
        """Note which of the migration's actions the run shows, by what it says of their lines."""
        self.actions = [
            {"number": number, "title": title, "proof": lines}
            for number, title, lines in (proofs(manifest, self.seen) if manifest is not None else ())
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            "reasons": self.reasons,
            "command": self.command,
            "script_exit_code": self.code,
            "torch": self.torch,
            "target_torch_version": self.torch_version,
            "findings": self.findings,
            "operators": {
                "calls": sum(self.operators.values()),
                "distinct": len(self.operators),
                "counts": dict(sorted(self.operators.items())),
            },
            "migrated_lines": self.lines,
            "processes": self.processes,
            "dynamic_shapes": self.shapes,
            "reference": self.reference,
            "notes": self.notes,
            "actions": self.actions,
            "seconds": round(self.seconds, 1),
        }


def build(
    outcome: ScriptRun, migration: Migration | None, command: list[str], torch: str, torch_version: str
) -> Report:
    """Merge the records of all processes into one report and judge it."""
    root = migration.root if migration else Path.cwd()
    report = Report(command, torch, torch_version, code=outcome.code, seconds=outcome.seconds)
    merged: dict[tuple[str, int, str, str], dict[str, Any]] = {}
    notes: Counter[str] = Counter()
    ran: dict[str, set[int]] = {}
    for process in outcome.processes:
        report.operators.update(process["operators"])
        notes.update(process["notes"])
        for path, lines in process["lines"].items():
            ran.setdefault(path, set()).update(lines)
        for finding in process["findings"]:
            key = (finding["path"], finding["line"], finding["code"], finding["message"])
            if key in merged:
                merged[key]["count"] += finding["count"]
            else:
                merged[key] = dict(finding)
        report.shapes.extend(_relative_shape(shape, root) for shape in process["shapes"])
        if process["torch"] or process["findings"] or process["exception"] or len(outcome.processes) == 1:
            report.processes.append(_process(process, root))  # not those of multiprocessing's own
    report.findings = [{**f, "path": relative(f["path"], root)} for _, f in sorted(merged.items())]
    report.lines = _lines(migration, ran)
    report.notes = [f"{text} ({times} times)" if times > 1 else text for text, times in sorted(notes.items())]
    _judge(report, outcome)
    return report


def relative(path: str, root: Path) -> str:
    """`path` below `root` with forward slashes; unchanged when it lies elsewhere."""
    try:
        return Path(os.path.realpath(path)).relative_to(root.resolve()).as_posix() if path else ""
    except ValueError:
        return path


def _relative_shape(shape: dict[str, Any], root: Path) -> dict[str, Any]:
    return {**shape, "stack": [{**frame, "path": relative(frame["path"], root)} for frame in shape["stack"]]}


def _process(process: dict[str, Any], root: Path) -> dict[str, Any]:
    exception = process["exception"]
    if exception and exception.get("path"):
        exception = {**exception, "path": relative(exception["path"], root)}
    role = "launcher" if process["launcher"] else "forked worker" if process["forked"] else "script"
    return {
        "role": role,
        "rank": process["rank"],
        "status": process["status"],
        "exception": exception,
        "operator_calls": sum(process["operators"].values()),
        "seconds": process["seconds"],
    }


def _lines(migration: Migration | None, ran: dict[str, set[int]]) -> dict[str, Any]:
    if migration is None:
        return {"known": False, "executed": [], "never_executed": []}
    executed: list[dict[str, Any]] = []
    never: list[dict[str, Any]] = []
    for file in migration.files:
        seen = ran.get(os.path.realpath(file.path), set())
        for line, span in file.statements.items():
            entry = {
                "path": relative(str(file.path), migration.root),
                "line": line,
                "text": file.source[line - 1].strip()[:200] if line <= len(file.source) else "",
            }
            (executed if span & seen else never).append(entry)
    return {"known": True, "executed": executed, "never_executed": never}


def _judge(report: Report, outcome: ScriptRun) -> None:
    stopped_by_guard = any(p["exception"] and p["exception"]["type"] == "CudaLeftover" for p in report.processes)
    counted = [f for f in report.findings if f["level"] in ("error", "warning")]
    small = too_small(outcome)
    if small:
        report.reasons.append("not run")
        report.notes.append(small)
    elif outcome.timed_out:
        report.reasons.append("timed-out")
    elif outcome.code:
        report.reasons.append("cuda-leftover" if stopped_by_guard else "script-failed")
    if counted:
        report.reasons.append("findings")
    if not report.operators:
        report.reasons.append("no-npu-operator")
    else:
        idle = sorted(
            p["rank"]
            for p in report.processes
            if p["role"] == "script" and p["rank"] is not None and not p["operator_calls"]
        )
        if idle and not outcome.code:
            report.notes.append(f"rank {', '.join(idle)} never used the npu")
    cut = sum(p["status"] == "running" for p in report.processes)
    if cut:
        word = "process was" if cut == 1 else "processes were"
        report.notes.append(f"{cut} {word} stopped before it could report everything")


_EXPLANATIONS = {
    "verified": "the script ran to its end on the emulated npu",
    "cuda-leftover": "the script was stopped at a leftover use of CUDA",
    "script-failed": "the script failed",
    "not run": "this machine is too small for the run, so nothing is known of the script",
    "timed-out": "the script did not end in time and was stopped",
    "findings": "there are findings",
    "no-npu-operator": "nothing was computed on the npu",
    "reference-unstable": "the original does not repeat its own results, so nothing can be compared",
    "reference-differs": "the migrated script's results differ from the original's",
}


def _stopped(exception: dict[str, Any]) -> str:
    first = exception["message"].splitlines()[0] if exception["message"] else ""
    return f"stopped by {exception['type']}: {first}" if first else f"stopped by {exception['type']}"


def as_text(report: Report, limit: int = 20) -> str:
    """The summary for a terminal; lists longer than `limit` are cut, the JSON report has all."""
    lines = [f"transplt run: {report.verdict}: {'; '.join(_EXPLANATIONS[r] for r in report.reasons or ['verified'])}"]
    lines += _cut([_finding_line(f) for f in report.findings if f["level"] != "info"], limit)
    if report.code < 0:
        name = signal.Signals(-report.code).name if -report.code in list(signal.Signals) else str(-report.code)
        lines.append(f"  ended by signal {name}")
    for process in report.processes:
        error = process["exception"]
        if error and error["type"] != "CudaLeftover":
            place = f"{error['path']}:{error['line']}: " if error.get("path") else ""
            rank = f"rank {process['rank']}: " if process["rank"] is not None else ""
            lines.append(
                f"  {rank}{place}{error['type']}: {error['message'].splitlines()[0] if error['message'] else ''}"
            )
    lines.append(
        f"  npu operators: {sum(report.operators.values())} calls of {len(report.operators)} operators in "
        f"{sum(p['operator_calls'] > 0 for p in report.processes)} of {len(report.processes)} processes"
    )
    if report.lines.get("known"):
        executed, never = report.lines["executed"], report.lines["never_executed"]
        lines.append(f"  migrated lines: {len(executed)} ran, {len(never)} never did" + (":" if never else ""))
        lines += _cut([f"  {e['path']}:{e['line']}: {e['text']}" for e in never], limit)
    else:
        lines.append("  migrated lines: unknown, no .transplt/manifest.json or change_list.csv above the script")
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
    return f"  {place}: {shape['operator']}: {shape['new_shapes']} new shapes after its first step ({examples}, ...)"
