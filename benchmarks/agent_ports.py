"""Ports public repositories by the tools of `transplt mcp` alone, as an agent does, and counts what it reads.

    python -m benchmarks.agent_ports FOLDER [--project NAME ...] [--http PORT] [--transcript FILE]

FOLDER holds checkouts of yunjey/pytorch-tutorial, karpathy/minGPT and locuslab/TCN; copies of them are ported.
--project takes others of the list. The client is the official SDK's, the server a process of its own. It edits what
blocks: the file that a work order names, with the text that the order quotes. Everything that an answer holds counts
as read, progress and the list of the tools with it. Exits with 1 if a project was not proved equal and accepted, if a
work order still blocks, if one took more than ten calls, or if more than 60 KB were read in all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mcp
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

ROOT = Path(__file__).resolve().parents[1]
MOST_READ, MOST_CALLS = 60_000, 10


@dataclass(frozen=True)
class Project:
    """A checkout, what it is proved with, and by code how a work order is done in the file that it names: before, and
    after with {} for what the order quotes."""

    name: str
    proof: dict[str, Any]
    edits: dict[str, tuple[str, str]] = field(default_factory=dict)


_SMALL = ["--epochs", "1", "--seq_len", "50", "--levels", "4"]
#: The first three are what is asked for.
PROJECTS = (
    Project(
        "pytorch-tutorial/tutorials/02-intermediate",
        {"main": "convolutional_neural_network/main.py", "steps": 3, "stubs": ["torchvision=256"]},
    ),
    Project("minGPT", {"main": "projects/adder/adder.py", "steps": 3}, {"NPU844": ("'torch',", "'torch', '{}',")}),
    Project("TCN", {"main": "TCN/adding_problem/add_test.py", "steps": 3, "args": _SMALL}),
    Project(
        "pyGAT",
        {"main": "train.py", "steps": 3, "args": ["--epochs", "3"]},
        {
            "NPU845": ("numpy==1.15.1\nscipy==1.1.0", "numpy>=1.26\nscipy>=1.11"),
            "NPU526": ("return torch.matmul(a, b)", "return torch.matmul(a.to_dense(), b)"),
        },
    ),
)


@dataclass
class Agent:
    """Calls tools, and keeps what it asked and read."""

    client: Any
    read: int = 0
    calls: int = 0
    lines: list[str] = field(default_factory=list)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool; SystemExit with the sentence of a tool error."""
        told: list[str] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(message or "")

        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        text = result.content[0].text
        self.calls += 1
        self.read += len(text.encode()) + sum(len(each.encode()) for each in told)
        self.lines += [f"> {name} {json.dumps(arguments)}", *(f". {each}" for each in told), text]
        if result.is_error:
            raise SystemExit(f"{name}: {text}")
        return dict(json.loads(text))


def take(folder: Path, project: Project, order: dict[str, Any]) -> None:
    """Does what a work order says. SystemExit if nothing is prepared for it, which an agent would read."""
    edit = next((project.edits[code] for code in order["codes"] if code in project.edits), None)
    if edit is None:
        raise SystemExit(f"{project.name}: nothing is prepared for {order['do']}: {order['how']}")
    file, quoted = folder / order["places"][0]["file"], re.search('"(.+?)"', order["how"])
    before, after = edit[0], edit[1].format(quoted[1] if quoted else "")
    text = file.read_text("utf-8")
    assert before in text, f"{file} has no {before}"
    file.write_text(text.replace(before, after, 1), "utf-8")
    print(f"{project.name}: {order['do']}: {before} became {after}")


async def port(agent: Agent, folder: Path, project: Project) -> bool:
    """Plan, migrate, edit, check, prove, judge; whether nothing blocks, and it was proved equal and accepted."""
    plan = await agent.call("plan", path=project.name)
    done = await agent.call("migrate", path=project.name, plan=plan["file"], replace=True)
    orders = done["actions"]
    while agent.calls < MOST_CALLS - 3 and orders and orders[0]["blocking"]:
        take(folder, project, orders[0])
        orders = (await agent.call("check", path=done["written"], most=3))["actions"]
    left = await agent.call("check", path=done["written"], most=1)
    proof = await agent.call("prove", original=project.name, migrated=done["written"], **project.proof)
    judged = await agent.call("judge", original=project.name, port=done["written"])
    print(f"{project.name}: {proof['verdict']}: {proof['sentence']}; judge: {judged['sentence']}")
    print(f"  blocking actions: {done['blocking_actions']} after the migration, {left['blocking_actions']} at the end")
    return bool(proof["equal"] and judged["accepted"] and not left["blocking_actions"])


@contextlib.asynccontextmanager
async def served(folder: Path, http: int) -> AsyncIterator[Any]:
    """A client of a server for a folder."""
    token = secrets.token_hex(16)
    # "." is the copy of a project in which a program starts: two of them import themselves as if they were installed.
    path = os.pathsep.join(filter(None, (str(ROOT), ".", os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "TRANSPLT_MCP_TOKEN": token}
    command = ["-m", "transplt", "mcp", "--allow-run", *(["--http", str(http)] if http else []), str(folder)]
    if not http:
        server = StdioServerParameters(command=sys.executable, args=command, env=environment)
        async with mcp.Client(stdio_client(server)) as client:
            yield client
        return
    process = subprocess.Popen([sys.executable, *command], env=environment)
    try:
        while process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", http)):
                break
            await asyncio.sleep(0.2)
        headers = {"Authorization": f"Bearer {token}"}
        async with create_mcp_http_client(headers=headers) as own:
            transport = streamable_http_client(f"http://127.0.0.1:{http}/mcp", http_client=own)
            async with mcp.Client(transport) as client:
                yield client
    finally:
        process.terminate()
        process.wait()


async def ported(folder: Path, names: list[str], http: int, transcript: Path | None) -> int:
    """The exit code."""
    agents, equal, tools = [], True, 0
    async with served(folder, http) as client:
        tools = len((await client.list_tools()).model_dump_json().encode())
        for project in [each for each in PROJECTS if each.name in names] or PROJECTS[:3]:
            agent, begun = Agent(client), time.monotonic()
            equal = await port(agent, folder, project) and equal
            print(f"  {agent.calls} calls, {agent.read:,} bytes read, {time.monotonic() - begun:.0f} s")
            agents.append(agent)
    read = tools + sum(agent.read for agent in agents)
    print(f"{read:,} bytes read in all, {tools:,} of them the list of tools")
    if transcript is not None:
        transcript.write_text("\n".join(line for agent in agents for line in (*agent.lines, "")), "utf-8")
    return 0 if equal and read <= MOST_READ and all(agent.calls <= MOST_CALLS for agent in agents) else 1


def main() -> int:
    """Ports, and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--project", action="append", default=[], choices=[each.name for each in PROJECTS])
    parser.add_argument("--http", type=int, default=0, metavar="PORT")
    parser.add_argument("--transcript", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agent-ports-") as place:
        for name in {each.name.partition("/")[0] for each in PROJECTS}:
            if (given.folder / name).is_dir():
                shutil.copytree(given.folder / name, Path(place) / name, symlinks=True)
        return asyncio.run(ported(Path(place).resolve(), given.project, given.http, given.transcript))


if __name__ == "__main__":
    sys.exit(main())
