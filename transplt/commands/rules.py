"""`transplt rules`: which codes, rules and tunings there are, and whether rule files are valid."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from transplt.commands.command import DONE, USAGE, CommandGroup, say
from transplt.commands.completing import FILE
from transplt.errors import UsageError
from transplt.rules.pages import all_codes, load
from transplt.rules.versions import spans
from transplt.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS, Settings


@click.group(cls=CommandGroup, invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="JSON: a list of codes with their facts.")
@click.option("--tunings", is_flag=True, help="List what --tune takes instead.")
@click.pass_context
def rules(ctx: click.Context, as_json: bool, tunings: bool) -> int:
    """List the codes and the torch versions they hold for; list the rules; check rule files; list the tunings."""
    if ctx.invoked_subcommand is not None:
        return DONE
    if tunings:
        return _list_tunings(as_json)
    table = code_table()
    if as_json:
        click.echo(json.dumps(table, indent=1))
        return DONE
    for row in table:
        level = row["level"] + (f" ({row['effort']})" if row["effort"] else "")
        click.echo(f"{row['code']} {level:16} {spans(row['versions']):16} {row['title']}")
    return DONE


def tuning_table() -> list[dict[str, Any]]:
    """One row a tuning: name, code, title, whether `all` includes it, what follows `=`, and its torch versions."""
    from transplt.themes.tunings.table import tunings

    return [
        {
            "name": tuning.name,
            "code": tuning.code,
            "title": load(tuning.code).title,
            "all": not tuning.on_request,
            "value": tuning.example,
            "versions": list(tuning.versions),
        }
        for tuning in tunings().values()
    ]


def _list_tunings(as_json: bool) -> int:
    table = tuning_table()
    if as_json:
        click.echo(json.dumps(table, indent=1))
        return DONE
    for row in table:
        name = f"{row['name']}={row['value']}" if row["value"] else row["name"]
        asked = "" if row["all"] else "; by name only"
        click.echo(f"{name:24} {row['code']} {spans(row['versions']):16} {row['title']}{asked}")
    return DONE


def code_table() -> list[dict[str, Any]]:
    """One row a code: code, title, level, effort, the number of table rules, and the torch versions it holds for."""
    by_code: dict[str, list[dict[str, Any]]] = {}
    for row in rule_table():
        by_code.setdefault(row["code"], []).append(row)
    table = []
    for code in all_codes():
        page, own = load(code), by_code.get(code, [])
        held = {version for row in own for version in row["versions"]}
        versions = [each for each in TORCH_VERSIONS if not own or each in held]
        effort = page.effort.value if page.effort else None
        facts = {"code": code, "title": page.title, "level": page.level.value, "effort": effort}
        table.append({**facts, "rules": len(own), "versions": versions})
    return table


def rule_table(versions: Iterable[str] = TORCH_VERSIONS) -> list[dict[str, Any]]:
    """The rules that stand in tables: code, level, kind, old and new name, and those of `versions` they hold for."""
    from transplt.rules.rule_set import compile_rules

    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for version in versions:
        for rule in compile_rules(Settings(torch_version=version)).builtin:
            key = (rule.code, rule.kind.value, rule.old, rule.new, rule.level.value)
            facts = dict(zip(("code", "kind", "old", "new", "level"), key, strict=True))
            held = rows.setdefault(key, {**facts, "versions": []})["versions"]
            if version not in held:
                held.append(version)
    return [rows[key] for key in sorted(rows)]


@rules.command("list")
@click.option("--torch-version", metavar="X.Y", help=f"The rules for this torch ({DEFAULT_TORCH_VERSION}).")
@click.option("--json", "as_json", is_flag=True, help="JSON: the rules for all versions, with their versions.")
def list_rules(torch_version: str | None, as_json: bool) -> int:
    """List the rules that stand in tables: code, level, kind, name, and what it becomes."""
    from transplt.run.torch_version import check_version

    asked = (check_version(torch_version),) if torch_version else None
    if as_json:
        click.echo(json.dumps(rule_table(asked or TORCH_VERSIONS), indent=1))
        return DONE
    for row in rule_table(asked or (DEFAULT_TORCH_VERSION,)):
        change = f"{row['old']} -> {row['new']}" if row["new"] else row["old"]
        click.echo(f"{row['code']} {row['level']:7} {row['kind']:20} {change}")
    return DONE


@rules.command()
@click.argument("files", nargs=-1, type=FILE, required=True, metavar="FILE...")
def validate(files: tuple[str, ...]) -> int:
    """Check rule files; says what is wrong and where, or that they are valid."""
    from transplt.run.options import read_rules

    wrong = 0
    for name in files:
        try:
            read_rules((Path(name),))
        except UsageError as error:
            wrong += 1
            say(f"Error: {error}")
        else:
            click.echo(f"{name}: valid")
    return USAGE if wrong else DONE
