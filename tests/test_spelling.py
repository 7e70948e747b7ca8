"""One word for one thing over all commands: another spelling of old works as before, and says how it is now."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from transplt.base.render.spelling import short_version, version_after_v
from transplt.faces.cli.command import FORMER_COMMANDS, SECTIONS
from transplt.faces.cli.main import main

FORMER = (
    ("explain NPU201 --json", "explain NPU201 --format json", "--json is --format json now"),
    ("rules list --json", "rules list --format json", "--json is --format json now"),
    ("check {file} --output-format json", "check {file} --format json", "--output-format is --format now"),
    ("analyze {file} --hardware A3 --format csv", "analyze {file} --card A3 --format csv", "--hardware is --card now"),
    ("analyze {file} --hardware 910B", "analyze {file} --card A2", "--hardware is --card now"),
    ("watch --list", "anomalies --list", "transplt watch is now transplt anomalies"),
)  # fmt: skip


@pytest.fixture
def file(tmp_path: object) -> str:
    path = f"{tmp_path}/train.py"
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("import torch\n\nx = torch.zeros(1).cuda()\n")
    return path


@pytest.mark.parametrize(("before", "now", "said"), FORMER)
def test_the_old_spelling_works_and_says_so(before: str, now: str, said: str, file: str) -> None:
    old = CliRunner().invoke(main, before.format(file=file).split())
    new = CliRunner().invoke(main, now.format(file=file).split())
    assert said in old.stderr.splitlines() and said not in new.stderr
    assert old.stdout == new.stdout and old.stdout
    assert old.exit_code == new.exit_code


def test_a_command_migrates(file: str, tmp_path: object) -> None:
    arguments = ["migrate", file, "-o", f"{tmp_path}/out", "--no-html", "-q"]
    done = CliRunner().invoke(main, arguments, standalone_mode=False)
    assert done.return_value == 0, done.output
    with open(f"{tmp_path}/out/train_msft/train.py", encoding="utf-8") as stream:
        assert "x = torch.zeros(1).npu()" in stream.read()


@pytest.mark.parametrize("arguments", ["-i a -o b -v 2.6.0", "-i a -v 2.1"])
def test_the_vendors_version_option_is_answered(arguments: str) -> None:
    done = CliRunner().invoke(main, arguments.split())
    assert done.exit_code == 2 and "--torch-version 2." in done.stderr


@pytest.mark.parametrize("arguments", [["-v"], ["-v", "check"], ["--", "-v", "2.1"], ["-v", "-v"], ["-v", "a.py"]])
def test_verbose_alone_is_no_version(arguments: list[str]) -> None:
    assert version_after_v(arguments) == ""


def test_two_parts_of_a_version() -> None:
    assert (short_version("2.6.0"), short_version("2.10")) == ("2.6", "2.10")


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_reports_of_a_proof_had_two_options(option: str, file: str, tmp_path: object) -> None:
    done = CliRunner().invoke(main, ["prove", file, file, option, f"{tmp_path}/none/report"], standalone_mode=False)
    assert done.return_value == 2 and f"{option} is --report FILE." in done.stderr and "no such folder" in done.stderr


def commands() -> dict[str, click.Command]:
    context = click.Context(main)
    found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def test_one_word_for_one_thing() -> None:
    """No option that several commands have says something else in one of them."""
    texts: dict[str, set[str]] = {}
    for command in commands().values():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden and "--quiet" in option.opts:
                texts.setdefault("--quiet", set()).add(option.help or "")
    assert all(len(said) == 1 for said in texts.values())
    spelled = {opt for command in commands().values() for option in command.params
               if isinstance(option, click.Option) and not option.hidden for opt in option.opts}  # fmt: skip
    assert spelled.isdisjoint({"--output-format", "--hardware"})


def test_former_commands_are_not_listed() -> None:
    assert FORMER_COMMANDS.keys().isdisjoint(commands())
    assert set(FORMER_COMMANDS.values()) <= commands().keys()


def test_sections_name_parameters_that_exist() -> None:
    known = {option.name for command in (main, *commands().values()) for option in command.params}
    assert {name for _, names in SECTIONS for name in names.split()} <= known


def test_no_short_help_begins_with_say() -> None:
    help_text = CliRunner().invoke(main, ["--help"]).output
    rows = help_text.partition("Commands:")[2].partition("Options of a command")[0]
    assert sum(" Say " in row for row in rows.splitlines()) == 0
