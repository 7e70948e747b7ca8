"""Tools called over the protocol by the SDK's own client, with the commands in this process or in their own."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import mcp

from transplt.base.errors import TranspltError
from transplt.faces.mcp.bench import Bench
from transplt.faces.mcp.child import Ended, Start
from transplt.faces.mcp.folders import Folders
from transplt.faces.mcp.server import make_server

Call = Callable[..., Awaitable[Any]]


class Refused(Exception):
    """A tool error: its text."""


async def here(arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
    """The command in this process: what it costs to start one is not what these tests are about."""
    from transplt.faces.cli.main import main

    out, error, before = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO(), Path.cwd()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        os.chdir(folder)
        try:
            code = main.main([*arguments], prog_name="transplt", standalone_mode=False) or 0
        except TranspltError as said:
            code, _ = said.exit_code, error.write(f"Error: {said}\n")
        finally:
            os.chdir(before)
        out.flush()
    return Ended(code, out.buffer.getvalue(), error.getvalue())  # type: ignore[attr-defined]


def use(folders: Folders, work: Callable[[Call], Awaitable[Any]], *, allow_run: bool = False, by: Start = here) -> Any:
    """Lets `work` call tools; what `call(name, **arguments)` gives is the answer. Refused for a tool error."""
    async def session() -> Any:
        async with mcp.Client(make_server(Bench(folders, by), allow_run=allow_run)) as client:

            async def call(name: str, /, **arguments: Any) -> Any:
                if name == "tools":
                    return {tool.name: tool for tool in (await client.list_tools()).tools}
                result = await client.call_tool(name, arguments)
                if result.is_error:
                    raise Refused(result.content[0].text)
                return json.loads(result.content[0].text)

            try:
                return await work(call)
            except Refused as refused:  # through the client it would become a group of exceptions
                return refused

    answer = asyncio.run(session())
    if isinstance(answer, Refused):
        raise answer
    return answer
