"""The skill for agents: what it names exists, and its front matter is what agents read."""

from __future__ import annotations

import re
from pathlib import Path

import click

from transplt.faces.cli.command import LAZY_COMMANDS
from transplt.faces.cli.main import main
from transplt.faces.mcp.tools import TOOLS

SKILL = Path(__file__).resolve().parents[2] / "skills" / "port-to-ascend" / "SKILL.md"
TEXT = SKILL.read_text("utf-8")


def test_the_front_matter_names_and_describes_it() -> None:
    head = re.match(r"---\n(.*?)\n---\n", TEXT, re.DOTALL)
    assert head is not None
    facts = dict(line.split(": ", 1) for line in head[1].splitlines())
    assert [*facts] == ["name", "description"] and facts["name"] == SKILL.parent.name
    assert re.fullmatch(r"[a-z0-9-]{1,64}", facts["name"]) and len(facts["description"]) <= 1024


def test_its_commands_exist_with_their_options() -> None:
    commands = re.findall(r"`transplt ([^`]+)`", TEXT)
    assert len(commands) >= 6
    context = click.Context(main)
    for command in commands:
        first, *rest = command.split()
        if first != "-i":
            assert first in LAZY_COMMANDS, command
        told = main if first == "-i" else main.get_command(context, first)
        assert told is not None
        options = {name for option in told.params for name in (*option.opts, *option.secondary_opts)}
        given = [first, *rest] if first == "-i" else rest
        assert {word for word in given if word.startswith("-")} <= options, command


def test_its_tools_exist_and_none_is_missing() -> None:
    line = next(line for line in TEXT.splitlines() if "MCP server" in line)
    assert {*re.findall(r"`(\w+)`", line)} == {tool.name for tool in TOOLS}
    assert {*re.findall(r"the tool `(\w+)`", TEXT)} <= {tool.name for tool in TOOLS}


def test_it_is_short() -> None:
    assert len(TEXT) < 4000


def test_a_work_order_names_the_same_proofs() -> None:
    """What shows that an action is done are commands of the skill."""
    assert "transplt check" in TEXT and "transplt prove" in TEXT and "`equal`" in TEXT
