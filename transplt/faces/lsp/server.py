"""The Language Server on standard input and output, by pygls (the extra `lsp`)."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter
from pygls.uris import to_fs_path

import transplt
from transplt.base.errors import TranspltError
from transplt.base.finding import Finding, Level
from transplt.faces.lsp.fixes import Fix, fix_all, fixes_of
from transplt.faces.lsp.open_project import OpenProject
from transplt.project.options import Options
from transplt.rules.pages import DiagnosticError, load, page_file

#: Seconds without a key before a text is looked at.
PAUSE = 0.3
#: The largest number of a line or a character in the protocol.
_LAST = 2**31 - 1
#: The exit code of every command that is interrupted.
_INTERRUPTED = 130
_SEVERITY = {
    Level.INFO: types.DiagnosticSeverity.Hint,
    Level.SAFE: types.DiagnosticSeverity.Information,
    Level.UNSAFE: types.DiagnosticSeverity.Information,
    Level.MANUAL: types.DiagnosticSeverity.Warning,
    Level.UNKNOWN: types.DiagnosticSeverity.Warning,
}
#: Codes of files that Python does not read: errors, as in every language server.
_UNREAD = "NPU90"
_TEXT_OF_DOCUMENT = re.compile(r"\r\n|\r|\n")


class _Protocol(LanguageServerProtocol):
    """pygls drops a request that it cannot read, and the client waits for ever: here it gets an error."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as an object of lsprotocol."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=error.to_response_error())
            raise


def _as_one_line(record: logging.LogRecord) -> bool:
    """A request that is refused is logged as one line: nothing is wrong here."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, JsonRpcException):
        record.msg, record.args, record.exc_info = str(error), (), None
    return True


def _converter() -> Any:
    """What reads messages: a place before the text, or behind any, is its beginning, or no place of it."""
    converter = default_converter()

    def position(given: dict[str, Any], _: type) -> types.Position:
        line, character = (min(max(int(given[name]), 0), _LAST) for name in ("line", "character"))
        return types.Position(line, character)

    converter.register_structure_hook(types.Position, position)
    return converter


class Server(LanguageServer):
    """The server with what is open: projects by their folder, and what was found in each text."""

    def __init__(self, options: Options, pause: float = PAUSE) -> None:
        super().__init__(
            "transplt", transplt.__version__, text_document_sync_kind=types.TextDocumentSyncKind.Full,
            protocol_cls=_Protocol, converter_factory=_converter,
        )  # fmt: skip
        self.options, self.pause = options, pause
        self.projects: dict[Path, OpenProject] = {}
        self.found: dict[str, tuple[str, tuple[Finding, ...]]] = {}
        self._waiting: dict[str, asyncio.Task[None]] = {}
        self._refused = ""
        # One thread: what the library keeps between files is of one thread.
        self._bench = ThreadPoolExecutor(1)

    async def look(self, uri: str, *, anew: bool = False, at_once: bool = False) -> None:
        """Looks at a text after a pause, or at once; `anew` when files of its project may have changed."""
        if (before := self._waiting.pop(uri, None)) is not None:
            before.cancel()
        task = asyncio.ensure_future(self._look(uri, anew, 0.0 if at_once else self.pause))
        self._waiting[uri] = task

    async def _look(self, uri: str, anew: bool, pause: float) -> None:
        await asyncio.sleep(pause)
        document = self.workspace.text_documents.get(uri)
        path = to_fs_path(uri) if uri.startswith("file:") else None
        if document is None or path is None:
            return
        text, version = document.source, document.version
        try:
            loop = asyncio.get_running_loop()
            findings = await loop.run_in_executor(self._bench, self._findings, Path(path), text, anew)
        except TranspltError as error:
            findings = ()
            if str(error) != self._refused:  # shown once, not at each key
                self._refused = str(error)
                self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"transplt: {error}"))
        now = self.workspace.text_documents.get(uri)
        if now is None or now.version != version:
            return
        self.found[uri] = (text, findings)
        diagnostics = [self._diagnostic(text, finding) for finding in findings if finding.level is not Level.INFO]
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics, version))

    def _findings(self, path: Path, text: str, anew: bool) -> tuple[Finding, ...]:
        folder = Path(os.path.realpath(path.parent))
        project = self.projects.get(folder)
        if project is None:
            project = OpenProject.around(path, self.options)
            known = next((each for each in self.projects.values() if each.project.root == project.project.root), None)
            project, anew = known or project, anew or known is None
        if anew:
            project.refresh()
        self.projects[folder] = project
        return project.findings(path, text)

    def forget(self, uri: str) -> None:
        """A text was closed: its findings go."""
        if (task := self._waiting.pop(uri, None)) is not None:
            task.cancel()
        self.found.pop(uri, None)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    # --- places: characters of the text, and lines with the client's units --------------------------------------------

    def place(self, text: str, offset: int) -> types.Position:
        """The client's position of a character."""
        ends = [match.end() for match in _TEXT_OF_DOCUMENT.finditer(text, 0, offset)]
        start = ends[-1] if ends else 0
        return types.Position(len(ends), self.workspace.position_codec.client_num_units(text[start:offset]))

    def span(self, text: str, finding: Finding) -> types.Range:
        """The client's range of a finding; one that has no width is as wide as its line."""
        lines = _TEXT_OF_DOCUMENT.split(text)
        units = self.workspace.position_codec.client_num_units

        def position(line: int, column: int) -> types.Position:
            held = lines[line - 1] if line <= len(lines) else ""
            return types.Position(line - 1, units(held[: column - 1]))

        place = finding.span
        start, end = position(place.line, place.column), position(place.end_line, place.end_column)
        if start == end and start.line < len(lines):
            end = types.Position(start.line, units(lines[start.line]))
        return types.Range(start, end)

    def _diagnostic(self, text: str, finding: Finding) -> types.Diagnostic:
        more = f"\n{finding.help}" if finding.help else ""
        unread = finding.code.startswith(_UNREAD)
        page = page_file(finding.code)
        return types.Diagnostic(
            self.span(text, finding), finding.text + more,
            types.DiagnosticSeverity.Error if unread else _SEVERITY[finding.level], finding.code,
            types.CodeDescription(page.absolute().as_uri()) if page.is_file() else None, "transplt",
        )  # fmt: skip

    def action(self, uri: str, text: str, fix: Fix, of: Finding | None) -> types.CodeAction:
        """What is offered, as the client takes it."""
        kind = types.CodeActionKind.QuickFix if of is not None else types.CodeActionKind.SourceFixAll
        edits = [
            types.TextEdit(types.Range(self.place(text, each.start), self.place(text, each.end)), each.after)
            for each in fix.edits
        ]
        return types.CodeAction(
            fix.title if of is None or fix.title.startswith("Ignore") else f"{of.code}: {fix.title}",
            kind,
            [self._diagnostic(text, of)] if of is not None and of.level is not Level.INFO else None,
            is_preferred=fix.safe and of is not None,
            edit=types.WorkspaceEdit(changes={uri: edits}),
        )

    def under(self, uri: str, place: types.Range) -> tuple[str, list[Finding]]:
        """The text that was looked at, and the findings in these places."""
        text, findings = self.found.get(uri, ("", ()))
        spans = ((finding, self.span(text, finding)) for finding in findings)
        return text, [each for each, span in spans if span.start <= place.end and place.start <= span.end]


def make_server(options: Options, pause: float = PAUSE) -> Server:
    """The server with all that it does."""
    server = Server(options, pause)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await server.look(params.text_document.uri, at_once=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await server.look(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        # The facts of one file may change what is found in the others.
        for uri in [*server.workspace.text_documents]:
            await server.look(uri, anew=True, at_once=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.forget(params.text_document.uri)

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def offers(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        text, here = server.under(uri, params.range)
        document = server.workspace.text_documents.get(uri)
        if document is None or document.source != text:
            return []  # places in another text
        path, every = to_fs_path(uri) or "", server.found[uri][1]
        only = params.context.only
        found: list[types.CodeAction] = []
        seen: set[tuple[str, Any]] = set()
        for finding in here:
            for fix in fixes_of(text, path, finding, every):
                if (fix.title, fix.edits) not in seen:
                    seen.add((fix.title, fix.edits))
                    found.append(server.action(uri, text, fix, finding))
        whole = fix_all(text, path, every)
        found += [server.action(uri, text, whole, None)] if whole is not None else []
        return [each for each in found if only is None or any(_is_of(each.kind, kind) for kind in only)]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        text, here = server.under(params.text_document.uri, types.Range(params.position, params.position))
        parts = [page for finding in here if (page := page_of(finding))]
        if not parts:
            return None
        content = types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(dict.fromkeys(parts)))
        return types.Hover(content, server.span(text, here[0]))

    return server


def _is_of(kind: Any, asked: Any) -> bool:
    """True for a kind of action that is one of those asked for: `source` asks for `source.fixAll`, too."""
    name, wanted = (getattr(each, "value", each) for each in (kind, asked))
    return bool(name == wanted or str(name).startswith(f"{wanted}."))


def page_of(finding: Finding) -> str:
    """The message of one finding, and the page of its code, as Markdown."""
    text = f"**{finding.code}** {finding.text}" + (f"\n\n{finding.help}" if finding.help else "")
    try:
        return f"{text}\n\n{load(finding.code).text()}"
    except DiagnosticError:
        return text


def serve(options: Options) -> None:
    """Serves standard input and output until the client ends. What others print goes to stderr."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Nothing is being written, and the thread that waits for standard input would keep an ordinary end away.
        signal.signal(number, lambda *_: os._exit(_INTERRUPTED))
    with os.fdopen(os.dup(1), "wb", 0) as out:
        os.dup2(2, 1)
        logging.getLogger("pygls.protocol.json_rpc").addFilter(_as_one_line)
        make_server(options).start_io(sys.stdin.buffer, out)


