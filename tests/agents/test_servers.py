"""`transplt mcp` and `transplt lsp` as programs: without their extras, and when they are told to end."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import unmeasured
from transplt.base.errors import UsageError
from transplt.base.extras import install_command
from transplt.faces.cli.main import main

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("command", "package", "said"),
    [
        (["mcp", "."], "anyio", "transplt mcp needs the extra `mcp`: " + install_command("mcp")),
        (["mcp", "."], "mcp_types", "transplt mcp needs the extra `mcp`: " + install_command("mcp")),
        (["lsp"], "lsprotocol", "transplt lsp needs the extra `lsp`: " + install_command("lsp")),
    ],
)
def test_without_the_extra_it_is_one_sentence(
    command: list[str], package: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("transplt.faces.mcp.server", "transplt.faces.lsp.server"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    class Absent:
        """Finds nothing, and says so before those that would."""

        def find_spec(self, name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Absent(), *sys.meta_path])
    with pytest.raises(UsageError) as error:
        main.main(command, standalone_mode=False)
    assert str(error.value) == said


@pytest.mark.extra
@pytest.mark.parametrize(("command", "package"), [(["mcp", "."], "mcp"), (["lsp"], "pygls")])
def test_it_ends_when_it_is_told_to(command: list[str], package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs the extra: pip install '.[{command[0]}]'")
    server = subprocess.Popen(
        [sys.executable, "-m", "transplt", *command], cwd=ROOT, env=unmeasured(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    body = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    body += b'"clientInfo":{"name":"t","version":"1"},"processId":null,"rootUri":null}}'
    head = f"Content-Length: {len(body)}\r\n\r\n".encode() if command == ["lsp"] else b""
    server.stdin.write(head + body + (b"" if head else b"\n"))
    server.stdin.flush()
    assert server.stdout.read(1)  # it serves
    os.kill(server.pid, signal.SIGTERM)
    assert server.wait(20) == 130
    server.stdin.close()
    server.stdout.close()


@pytest.mark.extra
def test_a_client_that_dies_during_a_call_is_no_error(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="needs the extra: pip install '.[mcp]'")
    (tmp_path / "main.py").write_text("import torch\n" * 50_000)
    server = subprocess.Popen(
        [sys.executable, "-m", "transplt", "mcp", str(tmp_path)], cwd=ROOT, env=unmeasured(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None and server.stderr is not None
    lines = (
        b'"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"t","version":"1"}}',
        b'"method":"notifications/initialized"',
        b'"id":2,"method":"tools/call","params":{"name":"check","arguments":{},"_meta":{"progressToken":"a"}}',
    )
    server.stdin.writelines(b'{"jsonrpc":"2.0",' + line + b"}\n" for line in lines)
    server.stdin.flush()
    assert [b"progress" in server.stdout.readline() for _ in range(2)] == [False, True]
    server.stdout.close()  # its other end stays open, as with a client whose child holds it
    assert server.wait(20) == 130 and server.stderr.read() == b""
    server.stdin.close()
    server.stderr.close()


def test_the_folder_for_the_output_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio = pytest.importorskip("anyio")
    pytest.importorskip("mcp", reason="needs the extra: pip install '.[mcp]'")
    monkeypatch.setattr(anyio, "run", lambda serve: None)
    out = tmp_path / "a/out"
    main.main(["mcp", str(tmp_path), "-o", str(out)], standalone_mode=False)
    assert out.is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot make the folder"):
        main.main(["mcp", str(tmp_path), "-o", str(tmp_path / "file")], standalone_mode=False)
    with pytest.raises(UsageError, match="is not a folder"):
        main.main(["mcp", str(tmp_path / "file")], standalone_mode=False)
