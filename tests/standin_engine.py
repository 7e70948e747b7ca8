"""A small engine for the tests of what is around the engine: torch.cuda becomes torch.npu, and some files misbehave."""

from __future__ import annotations

import os
import signal
import time

from transplt.base.finding import FileResult, Finding, Level, Operation, Replacement, Span, Status, TokenCount
from transplt.base.settings import Settings
from transplt.flow.facts import ModuleFacts, ProjectFacts
from transplt.syntax.files import Files


def index_source(data: bytes, path: str, settings: Settings, files: Files | None = None) -> ModuleFacts:
    if b"# dies when indexed" in data:
        os.kill(os.getpid(), signal.SIGKILL)
    if b"# raises when indexed" in data:
        raise KeyError(path)
    return ModuleFacts(path, path.removesuffix(".py").replace("/", "."))


def migrate_source(data: bytes, path: str, settings: Settings, project: ProjectFacts | None = None) -> FileResult:
    if b"# dies" in data:
        os.kill(os.getpid(), signal.SIGKILL)
    if b"# raises" in data:
        raise RecursionError("/a/path/that/nobody/should/see")
    if b"# is slow" in data:
        time.sleep(30)
    findings = []
    old, new = b"torch.cuda", b"torch.npu"
    at = data.find(old)
    while at >= 0:
        line = data.count(b"\n", 0, at) + 1
        column = at - data.rfind(b"\n", 0, at)
        span = Span(line, column, line, column + len(old), at, at + len(old))
        edit = Replacement(Operation.MODIFY, "torch.cuda", "torch.npu")
        findings.append(Finding(path, span, "NPU101", Level.SAFE, "renamed", "torch.cuda", edit=edit, applied=True))
        at = data.find(old, at + 1)
    if b"cannot parse" in data:
        span = Span(1, 1, 1, 1, 0, 0)
        broken = Finding(path, span, "NPU901", Level.MANUAL, "this file is not Python 3")
        return FileResult(path, data, (broken,), TokenCount(), Status.UNREADABLE)
    count = TokenCount(found=len(findings), converted=len(findings))
    return FileResult(path, data.replace(old, new), tuple(findings), count, Status.OK, bool(findings))
