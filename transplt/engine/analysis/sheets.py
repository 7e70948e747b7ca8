"""Which findings of the analysis go to which sheet or CSV file."""

from __future__ import annotations

from transplt.base.finding import Finding, Level

#: The sheets of the analysis, in order; they stand behind those of the migration.
SHEETS = ("limited", "unknown", "extensions", "affinity", "advice")
_LIMITED = frozenset({"NPU521", "NPU522", "NPU523", "NPU525"})
_UNSUPPORTED = "NPU520"  # as a remark: code that loads data on the CPU
_UNKNOWN = "NPU524"
_PACKAGE = "NPU513"
#: Compiled extensions: what the migration reports, and what falls with them.
_EXTENSIONS = tuple(f"NPU55{digit}" for digit in range(10))


def analysis_sheet(finding: Finding) -> str:
    """The sheet of a finding of the analysis, empty for findings that are the migration's alone."""
    code = finding.code
    if code in _LIMITED or (code == _UNSUPPORTED and finding.level is Level.INFO):
        return "limited"
    if code == _UNKNOWN:
        return "unknown"
    if code == _PACKAGE:
        return "third-party"
    if code in _EXTENSIONS:
        return "extensions"
    if code.startswith("NPU70"):
        return "affinity"
    if code.startswith(("NPU71", "NPU72", "NPU73")):
        return "advice"
    return ""
