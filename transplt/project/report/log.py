"""msFmkTranspltlog.txt: everything that happened, the same for the same input: no times, no absolute paths."""

from __future__ import annotations

from collections.abc import Iterator

import transplt
from transplt.base.finding import Finding
from transplt.base.render.cell import visible
from transplt.base.settings import listed
from transplt.project.report.migration_record import RunResult
from transplt.project.report.page_data import SAYS, state_of


def render_log(result: RunResult) -> bytes:
    """The bytes of the log, UTF-8 with LF."""
    return "".join(f"{line}\n" for line in _lines(result)).encode("utf-8")


def _lines(result: RunResult) -> Iterator[str]:
    settings, target, tokens = result.settings, result.target, result.tokens
    yield f"transplt {transplt.__version__}: {visible(result.name)}"
    npu, cann = target.torch_npu or "not known", target.cann or "not known"
    yield f"torch {target.version} ({visible(target.why)}), torch_npu {npu}, CANN {cann}"
    yield from map(visible, target.weighed)
    yield from (f"changed in {change}" for change in target.changes)
    yield (
        f"options: style={settings.style} specify_device={settings.specify_device} similar={settings.similar} "
        f"unsafe_fixes={settings.unsafe_fixes} annotate={settings.annotate} texts={settings.texts} docs={settings.docs}"
        f"{' annotate_edits=True' * settings.annotate_edits}"
    )
    if settings.amp != "off":
        level = f", level {settings.opt_level or 'O2 where it is right, else O1'}" if settings.amp == "apex" else ""
        yield f"mixed precision: {settings.amp}{level}"
    for kind, named in (("adaptors", settings.adapt), ("tunings", settings.tune)):
        if named:
            yield f"{kind}: {listed(named).replace(',', ', ')}"
    for name, _ in settings.user_rules:
        yield f"rules: {visible(name)}"
    for kind, installed in (("fixer", settings.fixers), ("codemod", settings.codemods)):
        for name, distribution, version, _ in installed:
            yield f"{kind}: {visible(name)} of {visible(distribution)} {visible(version)}"
    yield from result.planned
    yield (
        f"files: {len(result.files)} in the output, {len(result.python_files)} Python, {len(result.changed)} changed, "
        f"{len(result.failed) + len(result.unread)} failed"
    )
    yield (
        f"CUDA words: {tokens.found} found, {tokens.converted} converted, {tokens.manual} left, "
        f"{tokens.unknown} not understood, {tokens.ignored} ignored ({result.prose} of these in prose); "
        f"besides, {tokens.comments} in comments, which are not counted"
    )
    for reason, count in result.reasons:
        yield f"  ignored in Python files: {count} ({visible(reason)})"
    for heading, items in (("left out", result.left_out), ("left out for their size", result.large)):
        if items:
            yield ""
            yield f"{heading}: {len(items)}"
            for item in items:
                yield f"  {visible(item.path)}: {item.reason}" + (f" ({item.size} bytes)" if item.size else "")
    if result.links:
        yield ""
        yield f"links made again inside the output: {len(result.links)}"
        yield from (f"  {visible(path)}" for path in result.links)
    yield ""
    yield "edits, findings and remarks"
    for finding in result.findings:
        yield from _finding(finding)


def _finding(finding: Finding) -> Iterator[str]:
    state = SAYS[name := state_of(finding)] + (f": {finding.ignored}" if name == "ignored" else "")
    place = f"{visible(finding.path)}:{finding.span.line}:{finding.span.column}"
    yield f"{place}: {finding.code} [{visible(state)}] {visible(finding.text)}"
    if finding.edit is not None:
        yield f"    {finding.edit.operation.value}: {visible(finding.edit.before)} -> {visible(finding.edit.after)}"
    if finding.help and name in ("left", "info"):
        yield f"    help: {visible(finding.help)}"
