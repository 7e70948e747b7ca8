"""`transplt rules`: which codes, rules and tunings there are, and whether rule files are valid."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from transplt.base.errors import UsageError, reason, shown
from transplt.base.grouped import grouped
from transplt.base.render.spelling import json_format
from transplt.base.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS, Settings
from transplt.faces.cli.command import DONE, LEFT, USAGE, CommandGroup, to_stderr
from transplt.faces.cli.completing import FILE
from transplt.rules.pages import all_codes, load
from transplt.rules.versions import spans

if TYPE_CHECKING:
    from transplt.fixers.by_name import Named


@click.group(cls=CommandGroup, invoke_without_command=True)
@json_format
@click.option("--tunings", is_flag=True, help="List the tunings for --tune instead.")
@click.option("--adaptors", is_flag=True, help="List the adaptors for --adapt instead.")
@click.pass_context
def rules(ctx: click.Context, as_json: bool, tunings: bool, adaptors: bool) -> int:
    """List codes and their torch versions, rules, tunings and adaptors; write and check your own rule files."""
    if ctx.invoked_subcommand is not None:
        return DONE
    if tunings or adaptors:
        from transplt.fixers.adaptors import table as of_adaptors
        from transplt.fixers.tunings import table as of_tunings

        return _list_named((of_tunings.tunings() if tunings else of_adaptors.adaptors()).values(), as_json)
    table = code_table()
    if as_json:
        click.echo(json.dumps(table, indent=1))
        return DONE
    for row in table:
        level = row["level"] + (f" ({row['effort']})" if row["effort"] else "")
        click.echo(f"{row['code']} {level:16} {spans(row['versions']):16} {row['title']}")
    return DONE


def _list_named(every: Iterable[Named], as_json: bool) -> int:
    """One row each: name, code, title, whether `all` includes it, what follows `=`, and its torch versions."""
    table: list[dict[str, Any]] = [
        {
            "name": each.name,
            "code": each.code,
            "title": load(each.code).title,
            "all": not each.on_request,
            "value": each.example,
            "versions": list(each.versions),
        }
        for each in every
    ]
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
    by_code = grouped((row["code"], row) for row in rule_table())
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
@json_format
def list_rules(torch_version: str | None, as_json: bool) -> int:
    """List the rules of the tables: code, level, kind, name, and replacement."""
    from transplt.project.torch_version import check_version

    asked = (check_version(torch_version),) if torch_version else None
    if as_json:
        click.echo(json.dumps(rule_table(asked or TORCH_VERSIONS), indent=1))
        return DONE
    for row in rule_table(asked or (DEFAULT_TORCH_VERSION,)):
        change = f"{row['old']} -> {row['new']}" if row["new"] else row["old"]
        click.echo(f"{row['code']} {row['level']:7} {row['kind']:20} {change}")
    return DONE


#: What `transplt rules init` writes: one rule of each kind; `source` is not read and holds the comments.
EXAMPLE = """{
 "description": "rules of mine; docs/rules.md has all keys, `transplt rules try FILE train.py` shows what they do",
 "examples": [
  {"before": ["import lib", "lib.cuda_sync()"], "after": ["import lib", "lib.npu_sync()"]},
  {"before": ["lib = Other()", "lib.cuda_sync()"], "why": "another thing of that name stays"}
 ],
 "rules": {
  "FuncNameModifyRule": [
   {"source": "with dots: this function, whatever a file calls it",
    "old_name": "lib.cuda_sync", "new_name": "lib.npu_sync"},
   {"source": "without dots: every call of that name that is not the project's own",
    "old_name": "to_gpu", "new_name": "to_npu"}
  ],
  "ModuleNameModifyRule": [
   {"source": "imports and uses move together",
    "old_name": "gpu_ops", "new_name": "npu_ops", "parent_module": "lib"}
  ],
  "ArgsModifyRule": [
   {"source": "the second argument, or the keyword that means the same",
    "func_name": "lib.loader", "arg_idx": 1, "arg_keyword": "workers", "arg_new": "8"},
   {"source": "this keyword goes",
    "func_name": "lib.loader", "delete_keyword": "pin_gpu"}
  ],
  "StringModifyRule": [
   {"source": "strings that are this as a whole",
    "old_string": "gpu_backend", "new_string": "npu_backend"}
  ],
  "AttributeModifyRule": [
   {"source": "attributes of this name that are not called",
    "old_name": "is_gpu", "new_name": "is_npu"}
  ],
  "InsertRule": [
   {"source": "a line beside the statement of the call",
    "func_name": "lib.start", "where": "before", "insert": "lib.check_cards()"}
  ],
  "UnsupportedRule": [
   {"source": "reported, not changed",
    "name": "lib.fast_nms", "help": "use lib.nms"}
  ]
 }
}
"""


@rules.command()
@click.argument("file", type=FILE, default="rules.json", metavar="[FILE]")
def init(file: str) -> int:
    """Write an example rule file with one rule of each kind (rules.json); never overwrites a file."""
    try:
        with open(file, "x", encoding="utf-8", newline="\n") as opened:
            opened.write(EXAMPLE)
    except FileExistsError as error:
        raise UsageError(f"{shown(file)} exists and was not changed; give another name") from error
    except OSError as error:
        raise UsageError(f"cannot write {shown(file)}: {reason(error)}") from error
    click.echo(f"{file}: an example, with one rule of each kind")
    return DONE


@rules.command("try")
@click.argument("rule_file", type=FILE, metavar="RULES")
@click.argument("python_file", type=FILE, metavar="FILE")
def try_rules(rule_file: str, python_file: str) -> int:
    """Show what each rule of a file matches in a Python file, and the resulting diff; writes nothing."""
    from transplt.base.text.regular_file import SOURCE, read_regular
    from transplt.project.options import read_rules
    from transplt.project.rule_trials import tried

    loaded = read_rules((Path(rule_file),))
    try:
        data = read_regular(python_file, SOURCE)
    except OSError as error:
        raise UsageError(f"cannot read {shown(python_file)}: {reason(error)}") from error
    for line in tried(loaded[0], data, python_file):
        click.echo(line)
    return DONE


@rules.command("test")
@click.argument("files", nargs=-1, type=FILE, required=True, metavar="FILE...")
def test_rules(files: tuple[str, ...]) -> int:
    """Migrate the examples of rule files, and report unexpected results."""
    from transplt.project.options import read_rules
    from transplt.project.rule_trials import tested

    failed = 0
    for name in files:
        every = [*tested(read_rules((Path(name),))[0])]
        wrong = [each for each in every if each.wrong]
        failed += len(wrong)
        for each in wrong:
            click.echo(f"{shown(name)}: example {each.number}:")
            for line in each.wrong:
                click.echo(f"  {line}")
        click.echo(f"{shown(name)}: {len(every) - len(wrong)} of {len(every)} examples hold")
    return LEFT if failed else DONE


@rules.command()
@click.argument("files", nargs=-1, type=FILE, required=True, metavar="FILE...")
def validate(files: tuple[str, ...]) -> int:
    """Check rule files, and report what is wrong and where."""
    from transplt.project.options import read_rules

    wrong = 0
    for name in files:
        try:
            read_rules((Path(name),))
        except UsageError as error:
            wrong += 1
            to_stderr(f"Error: {error}")
        else:
            click.echo(f"{name}: valid")
    return USAGE if wrong else DONE
