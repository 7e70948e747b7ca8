"""What `distributed` is asked for, looked at before anything is written: the main file, and the models of -t."""

from __future__ import annotations

import ast
import difflib
from dataclasses import replace

from transplt.base.disk.walk import Inventory
from transplt.base.errors import UsageError, reason, shown
from transplt.base.text.regular_file import SOURCE, read_regular
from transplt.base.text.source import UnreadableSource
from transplt.engine.engine import index_source, join_facts
from transplt.engine.old_code import readable
from transplt.program.models import find_models, is_named, spelled
from transplt.program.program import Program
from transplt.program.programs import programs_of
from transplt.program.training import find_training
from transplt.project.excluded_files import kept_back
from transplt.project.options import Plan
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.files import Files
from transplt.syntax.nodes import by_place

#: What is asked of a model and of little else.
_ASKED_OF_MODELS = sorted(names_of(MODULE, "module_only", "state"))
_MOST_NAMES = 8


def check_main_file(plan: Plan, found: Inventory) -> Files:
    """UsageError when the main file cannot be made distributed, or a name of -t is that of no model of its program.

    Gives back what it has parsed.
    """
    entry, targets, parsed = plan.settings.entry, plan.settings.targets, Files()
    if entry not in {each.path for each in found.files}:
        out = [item for item in found.left_out if f"{entry}/".startswith(f"{item.path}/")][:1]
        why = "".join(f" ({item.reason})" for item in out)
        notes = kept_back(plan.config, plan.settings, (), [item.path for item in out])
        raise UsageError("; ".join((f"-m {shown(entry)}: the migration does not include this file{why}", *notes)))
    try:
        data = read_regular(f"{plan.folder}/{entry}", SOURCE, follow=plan.single)
        old = readable(data)
        parsed.parse(entry, data if old is None else old[0])
    except OSError as error:
        raise UsageError(f"-m {shown(entry)}: cannot read it: {reason(error)}") from error
    except UnreadableSource as error:
        raise UsageError(f"-m {shown(entry)}:{error.line}: {error.reason}") from error
    if targets:
        _check_targets(_program(plan, found, parsed), entry, targets)
    return parsed


def _check_targets(program: Program, entry: str, targets: tuple[str, ...]) -> None:
    found = find_models(program, find_training(program), ())
    trained = list(dict.fromkeys(spelled(origin) for origin in found.origins))
    models = list(dict.fromkeys([*trained, *_likely(program)]))
    variables = {name for file in program.files for scope in file.scan.scopes.values() for name in scope.bindings}
    variables.update(slot[2] for slot in program.values)
    for target in targets:
        if any(is_named(each, (target,)) for each in models):
            continue
        if not models and target.rpartition(".")[2] in variables:
            continue  # a model that nobody asks for anything
        where = f"no model of the program of {shown(entry)} has this name"
        near = difflib.get_close_matches(target, models, n=_MOST_NAMES, cutoff=0.6)
        listed = list(dict.fromkeys([*trained, *near, *models]))[:_MOST_NAMES]
        more = " ..." if len(models) > len(listed) else ""
        there = f"there are {', '.join(listed)}{more}" if len(models) > 1 else f"there is {', '.join(listed)}"
        raise UsageError(f"-t {shown(target)}: {where}; {there if models else 'no model was found'}")


def _program(plan: Plan, found: Inventory, parsed: Files) -> Program:
    files: dict[str, bytes] = {}
    for each in found.files:
        if each.is_python:
            try:
                files[each.path] = read_regular(f"{plan.folder}/{each.path}", SOURCE, follow=plan.single)
            except OSError:
                continue  # reported when it is migrated
    settings = replace(plan.settings, analysis=False)
    facts = (index_source(data, path, settings, parsed) for path, data in files.items())
    return programs_of(join_facts(facts, settings, parsed)).program(plan.settings.entry)


def _likely(program: Program) -> list[str]:
    """Variables that are asked for what models have."""
    found: list[str] = []
    for file in program.files:
        nodes = [node for name in _ASKED_OF_MODELS for node in file.scan.attributes.get(name, ())]
        for node in by_place(nodes):
            base = node.value
            if isinstance(base, ast.Name) and base.id not in ("self", "cls"):
                found.append(base.id)
            elif isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name) and base.value.id == "self":
                found.append(f"self.{base.attr}")
    return found
