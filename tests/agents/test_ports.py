"""A scripted agent ports small programs by the tools alone: it surveys, takes the top action, edits, and proves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.agents.ports import PORTS, Port
from transplt.faces.mcp.child import Ended, start
from transplt.faces.mcp.folders import Folders

pytestmark = [pytest.mark.extra, pytest.mark.torch]
pytest.importorskip("mcp", reason="needs the extra: pip install '.[mcp]'")
from tests.agents.calls import Call, here, use  # noqa: E402

#: A port has few actions; more turns than this would be a loop that goes nowhere.
TURNS = 6


async def programs_apart(arguments: Sequence[str], folder: Path, seconds: float) -> Ended:
    """Only what runs programs is started in a process of its own."""
    return await (start if arguments[0] in ("run", "prove") else here)(arguments, folder, seconds)


def write(folder: Path, port: Port) -> None:
    for name, text in port.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def take(folder: Path, port: Port, order: dict[str, Any]) -> None:
    """Makes the edits that were prepared for the action: all its codes that there are edits for."""
    edits = [edit for code in order["codes"] for edit in port.edits.get(code, ())]
    assert edits, f"nothing is prepared for {order['do']} {order['codes']}"
    for name, before, after in edits:
        file = folder / name
        if after is None:
            file.unlink()
            continue
        text = file.read_text()
        assert before in text, f"{name} has no {before!r}: {text}"
        file.write_text(text.replace(before, after) if before else after)


async def ported(call: Call, root: Path, port: Port, *, look: bool = False) -> list[str]:
    """What was done in the port in `project`: titles of the actions, and the verdict of the proof."""
    write(root / "project", port)
    project = "project"
    if look:
        answer = await call("survey", output="survey")
        (project,) = (each["path"] for each in answer["repositories"])
    answer = await call("migrate", path=project, output="out")
    done, copy = [], answer["written"]
    for _ in range(TURNS):
        answer = await call("check", path=copy, most=1)
        if not answer["blocking_actions"]:
            break
        order = answer["actions"][0]
        take(root / copy, port, order)
        done.append(order["do"])
        gone = await call("check", path=copy, codes=order["codes"])
        assert order["id"] not in [each["id"] for each in gone["actions"]], order
    proof = await call("prove", original="project", migrated=copy, main="main.py", steps=3)
    assert answer["blocking_actions"] == 0 and done
    assert proof["equal"], proof
    return done


def test_a_scripted_agent_finishes_a_port(tmp_path: Path) -> None:
    port = PORTS["nccl in a YAML file"]
    use(Folders(tmp_path), lambda call: ported(call, tmp_path, port), allow_run=True, by=programs_apart)


@pytest.mark.slow
@pytest.mark.parametrize("name", PORTS)
def test_a_scripted_agent_finishes_twelve_ports(name: str, tmp_path: Path) -> None:
    use(Folders(tmp_path), lambda call: ported(call, tmp_path, PORTS[name], look=True), allow_run=True, by=start)


def test_there_are_twelve() -> None:
    assert len(PORTS) == 12 and all(port.edits for port in PORTS.values())
