"""A baseline: the findings that a project lives with for now, known by their fingerprints."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from transplt.base.disk.replace import write_asked_for
from transplt.base.errors import UsageError, reason, shown
from transplt.base.text.regular_file import RECORDS, read_regular
from transplt.project.report.check_results import CheckedFinding, CheckResult

_FORMAT = 1


def read_baseline(path: Path) -> frozenset[str]:
    """The fingerprints in a baseline file. UsageError when it is not there or is none."""
    try:
        table: Any = json.loads(read_regular(path, RECORDS))
    except FileNotFoundError as error:
        raise UsageError(f"the baseline {shown(path)} does not exist; write it with --update-baseline") from error
    except OSError as error:
        raise UsageError(f"cannot read {shown(path)}: {reason(error)}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{shown(path)} is not a baseline of transplt: {error}") from error
    known = table.get("findings") if isinstance(table, dict) and table.get("format") == _FORMAT else None
    if not isinstance(known, list) or not all(isinstance(each, dict) and "fingerprint" in each for each in known):
        raise UsageError(f"{shown(path)} is not a baseline of transplt")
    return frozenset(str(each["fingerprint"]) for each in known)


def write_baseline(path: Path, items: Iterable[CheckedFinding], inputs: Iterable[Path] = ()) -> None:
    """Writes all findings as known: sorted, one a line, without line numbers, so that it changes only when they do."""
    rows = sorted({(item.finding.path, item.finding.code, item.fingerprint) for item in items})
    findings = [json.dumps({"fingerprint": mark, "code": code, "path": name}) for name, code, mark in rows]
    inner = ",\n".join(f"  {line}" for line in findings)
    text = f'{{"tool": "transplt", "format": {_FORMAT}, "findings": [\n{inner}\n]}}\n'
    write_asked_for(path, text.encode(), inputs)


def mark_known(result: CheckResult, known: frozenset[str]) -> CheckResult:
    """The result with the findings of the baseline marked."""
    items = tuple(replace(item, known=item.fingerprint in known) for item in result.items)
    return replace(result, items=items)
