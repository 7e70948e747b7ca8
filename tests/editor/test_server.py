"""`transplt lsp`, driven by the client of pygls."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.processes import unmeasured

pytestmark = pytest.mark.extra
pytest.importorskip("pygls", reason="needs the extra: pip install '.[lsp]'")
from lsprotocol import types  # noqa: E402
from pygls.exceptions import JsonRpcException  # noqa: E402
from pygls.lsp.client import LanguageClient  # noqa: E402

from transplt.faces.lsp.server import make_server  # noqa: E402
from transplt.project.options import Options  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
#: A character that UTF-16 counts twice stands before what is found.
TEXT = 'import torch\nimport apex\n\nprint("\U0001f600", torch.cuda.is_available())\n'


class Editor:
    """One file open in the server."""

    def __init__(self, client: LanguageClient, told: asyncio.Queue[Any], file: Path) -> None:
        self.client, self.told, self.uri, self.version = client, told, file.as_uri(), 1

    async def open(self, text: str) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(self.uri, "python", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.diagnostics()

    async def change(self, text: str) -> list[types.Diagnostic]:
        self.type(text)
        return await self.diagnostics()

    def type(self, text: str) -> None:
        self.version += 1
        whole = types.TextDocumentContentChangeWholeDocument(text)
        name = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(name, [whole]))

    async def diagnostics(self) -> list[types.Diagnostic]:
        params = await asyncio.wait_for(self.told.get(), 60)
        assert params.uri == self.uri and params.version == self.version
        return list(params.diagnostics)

    async def actions(self, line: int, only: list[str] | None = None) -> dict[str, list[types.TextEdit]]:
        place = types.Range(types.Position(line, 0), types.Position(line, 200))
        context = types.CodeActionContext([], only=only)  # type: ignore[arg-type]
        name = types.TextDocumentIdentifier(self.uri)
        found = await self.client.text_document_code_action_async(types.CodeActionParams(name, place, context))
        return {each.title: list(each.edit.changes[self.uri]) for each in found or ()}


def edited(text: str, edits: list[types.TextEdit]) -> str:
    """The text as a client has it after the edits: characters are counted in UTF-16."""
    lines = text.splitlines(keepends=True)

    def offset(place: types.Position) -> int:
        before = sum(len(line.encode("utf-16-le")) for line in lines[: place.line])
        return before + 2 * place.character

    raw = text.encode("utf-16-le")
    for edit in sorted(edits, key=lambda each: offset(each.range.start), reverse=True):
        raw = raw[: offset(edit.range.start)] + edit.new_text.encode("utf-16-le") + raw[offset(edit.range.end) :]
    return raw.decode("utf-16-le")


def use(folder: Path, work: Callable[[Editor], Awaitable[Any]]) -> Any:
    (folder / "pyproject.toml").write_text("")
    file = folder / "train.py"

    async def session() -> Any:
        client = LanguageClient("test", "1")
        told: asyncio.Queue[Any] = asyncio.Queue()
        for name in (types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, types.WINDOW_SHOW_MESSAGE):
            client.feature(name)(lambda params: told.put_nowait(params))
        await client.start_io(sys.executable, "-m", "transplt", "lsp", cwd=ROOT, env=unmeasured())
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=folder.as_uri()))
        client.initialized(types.InitializedParams())
        answer = await work(Editor(client, told, file))
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()
        return answer

    return asyncio.run(session())


def test_a_file_is_looked_at_while_it_is_edited(tmp_path: Path) -> None:
    """One server, so that its start is paid for once: what is open counts, not what is on the disk."""
    (tmp_path / "settings.py").write_text("WHERE = 'cuda'\n")

    async def work(editor: Editor) -> None:
        shown = await editor.open(TEXT)
        by_code = {each.code: each for each in shown}
        assert {*by_code} >= {"NPU511", "NPU101", "NPU403"}
        name = by_code["NPU101"]
        assert (name.range.start.line, name.range.start.character) == (3, TEXT.splitlines()[3].index("cuda") + 1)
        assert name.severity is types.DiagnosticSeverity.Information and name.source == "transplt"
        assert by_code["NPU511"].severity is types.DiagnosticSeverity.Warning

        offers = await editor.actions(3)
        fix = next(title for title in offers if title.startswith("NPU101: "))
        migrated = edited(TEXT, offers[fix])
        assert "torch.npu.is_available()" in migrated and "import torch_npu" in migrated
        assert edited(TEXT, offers["Ignore NPU101 in this line"]).splitlines()[3].endswith("# transplt: ignore[NPU101]")
        assert [*await editor.actions(3, ["source.fixAll"])] == ["Make all safe edits of this file (2)"]

        at = types.HoverParams(types.TextDocumentIdentifier(editor.uri), types.Position(1, 8))
        page = await editor.client.text_document_hover_async(at)
        assert page is not None and isinstance(page.contents, types.MarkupContent)
        assert "# NPU511: " in page.contents.value

        for letter in "abc":  # looked at once, when there is a pause
            editor.type(TEXT + f"# {letter}\n")
        assert name.code_description is not None
        assert name.code_description.href.startswith("file:") and name.code_description.href.endswith("/NPU101.md")
        (broken,) = await editor.change("import torch\n\nx = torch.cuda.empty_cache() )\n")
        assert broken.code == "NPU901" and broken.severity is types.DiagnosticSeverity.Error
        assert (broken.range.start.line, broken.range.start.character) == (2, 29)

        left = await editor.change(migrated)
        assert [each.code for each in left] == ["NPU511"]
        assert editor.told.empty()
        assert await editor.change(migrated.replace("import apex\n", "")) == []
        assert await editor.actions(1) == {}

    use(tmp_path, work)


def test_a_place_that_is_none_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client of pygls would not even send."""
    protocol, answers = make_server(Options()).protocol, []
    monkeypatch.setattr(protocol, "_send_response", lambda number, **answer: answers.append((number, answer["error"])))

    def read(line: Any, character: Any) -> Any:
        params = {"textDocument": {"uri": "file:///a.py"}, "position": {"line": line, "character": character}}
        message = {"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": params}
        return protocol.structure_message(message).params.position

    assert read(-1, 8) == types.Position(0, 8)
    assert read(1, -5) == types.Position(1, 0)
    assert read(2**40, 0) == types.Position(2**31 - 1, 0)
    assert not answers
    with pytest.raises(JsonRpcException):
        read("first", None)
    ((number, error),) = answers
    assert number == 7 and error.message == "Invalid Params"


def test_a_command_that_is_none_is_refused_in_one_line() -> None:
    parts = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}},
        {"id": 2, "method": "workspace/executeCommand", "params": {"command": "nope", "arguments": []}},
        {"id": 3, "method": "shutdown"},
        {"method": "exit"},
    ]
    texts = [json.dumps({"jsonrpc": "2.0", **each}).encode() for each in parts]
    sent = b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(text), text) for text in texts)
    ran = subprocess.run(
        [sys.executable, "-m", "transplt", "lsp"], input=sent, capture_output=True, timeout=60, check=False
    )
    assert b"Command name 'nope' is not defined" in ran.stdout
    assert ran.stderr.decode().splitlines() == ["Invalid Params: Command name 'nope' is not defined"]


def test_wrong_settings_are_a_message(tmp_path: Path) -> None:
    async def work(editor: Editor) -> None:
        (tmp_path / "pyproject.toml").write_text("[tool.transplt]\nstyle = 'other'\n")
        item = types.TextDocumentItem(editor.uri, "python", 1, TEXT)
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        said = await asyncio.wait_for(editor.told.get(), 60)
        assert said.message.startswith("transplt: ") and "style" in said.message
        assert (await editor.diagnostics()) == []

    use(tmp_path, work)
