"""Loops of which a variable chooses the loader, `for batch in loaders[phase]`: for which of its values they train."""

from __future__ import annotations

import ast
from typing import TypeGuard

from transplt.program.call_conditions import value_of
from transplt.program.loops import Loop, loop_head, loops_around
from transplt.program.program import File, Program, enclosing_function, key_of
from transplt.program.training import Key, Loader, entry_of_items, loaders_of
from transplt.program.variable_values import assigned
from transplt.syntax.nodes import inner_nodes, is_dotted, plain_name
from transplt.syntax.scan import parent


def trained_keys(
    program: Program, file: File, loop: Loop, loader: Loader, guards: list[tuple[ast.expr, bool]]
) -> frozenset[Key] | None:
    """The values of `phase` for which `for batch in loaders[phase]` trains with a loader: it does so under a condition
    on it (`if phase == "train"`); none where it only evaluates it, None where that cannot be seen."""
    by, head = chosen_by_key(program, file, loop)
    if by is None:
        return None
    tests = [(_meaning(program, file, test), holds) for test, holds in guards]
    compared = [node for test, _ in tests for node in inner_nodes(test, ast.Compare) if plain_name(node.left) == by.id]
    if not compared:
        return None

    def answers(key: Key) -> list[tuple[bool | None, bool]]:
        return [(value_of(test, {by.id: ast.Constant(key)}), holds) for test, holds in tests]

    def trains(key: Key) -> bool:
        return all(answer in (holds, None) for answer, holds in answers(key))

    keys = _values_of_key(program, file, loop, by)
    if not keys and trains("\0"):  # for any other value than some
        return None
    keys += [each for node in compared for right in node.comparators for each in literals(program, file, right)]
    if not any(answer is not None for key in keys for answer, _ in answers(key)):
        return None
    read = {key: loaders_of(program, file, _at(head, by.id, key)) for key in keys if trains(key)}
    return frozenset(key for key, found in read.items() if any(each.call is loader.call for each in found))


def chosen_by_key(program: Program, file: File, loop: Loop) -> tuple[ast.Name | None, ast.expr]:
    """The variable that chooses the loader of a loop, and what it chooses from: `loaders[phase]`, or
    `train if phase == "train" else val`, in its head or stored before it; None where there is none."""
    for node in ast.walk(loop_head(loop)):
        if isinstance(node, ast.Name) and (entry := entry_of_items(node)) is not None:
            node = entry
        held = assigned(program, file, node) if isinstance(node, ast.Name) else []
        for chosen in (node, *(value for at, value in held if len(held) == 1 and at is file)):
            match chosen:
                case ast.Subscript(slice=ast.Name() as by) | ast.IfExp(test=ast.Compare(left=ast.Name() as by)):
                    return by, chosen
    return None, loop_head(loop)


def _at(chosen: ast.expr, name: str, key: Key) -> ast.expr:
    """What is chosen where a variable has a value."""
    match chosen:
        case ast.Subscript():
            return ast.Subscript(value=chosen.value, slice=ast.Constant(key), ctx=chosen.ctx)
        case ast.IfExp():
            holds = value_of(chosen.test, {name: ast.Constant(key)})
            return chosen if holds is None else chosen.body if holds else chosen.orelse
    return chosen


def _meaning(program: Program, file: File, test: ast.expr) -> ast.expr:
    """The condition that a name stands for: `training = phase == "train"`."""
    held = assigned(program, file, test) if isinstance(test, ast.Name) else []
    return held[0][1] if len(held) == 1 and isinstance(held[0][1], ast.Compare) else test


def _values_of_key(program: Program, file: File, loop: Loop, by: ast.Name) -> list[Key]:
    """The values of the variable that chooses, where all are written out: what a loop goes over, or is given."""
    around = [(each.iter, (each.target, *getattr(each.target, "elts", ()))) for each in loops_around(loop)
              if not isinstance(each, ast.While)]  # fmt: skip
    over = next((each for each, targets in around if by.id in map(plain_name, targets)), None)
    held = [(file, over)] if over is not None else assigned(program, file, by)
    found = [literals(program, at, each) for at, each in held]
    return [key for keys in found for key in keys] if all(found) else []


def literals(program: Program, file: File, node: ast.expr) -> list[Key]:
    """A number or text that is written out, and those of a list of them or of the keys of a dict, by a name, too."""
    match node:
        case ast.Constant():
            return [key_of(node)] if key_of(node) is not None else []
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [key for item in items for key in literals(program, file, item)]
        case ast.Dict(keys=keys):
            return [key for item in keys if item is not None for key in literals(program, file, item)]
        case ast.DictComp(generators=[ast.comprehension(iter=over)]):
            return literals(program, file, over)
        case ast.Call(func=ast.Attribute(value=over, attr="keys" | "items")):
            return literals(program, file, over)
        case ast.Name():
            held = assigned(program, file, node)
            return literals(program, *held[0]) if len(held) == 1 and held[0][1] is not node else []
    return []


def made_under_keys(program: Program, loader: Loader) -> tuple[tuple[File, ast.stmt, ast.expr], list[Key]] | None:
    """The statement by which one call makes several loaders, what holds them then, and their keys."""
    file = loader.file
    match above := parent(loader.call):
        case ast.DictComp(key=ast.Name(id=key), generators=[ast.comprehension(target=target, iter=over, ifs=[])]):
            stored = parent(above)
            if isinstance(stored, ast.Return):  # what the one call of the function gives is stored
                sites = program.call_sites.get(enclosing_function(stored) or stored, ())
                file, stored = (sites[0][0], parent(sites[0][1])) if len(sites) == 1 else (file, stored)
            first = target.elts[0] if isinstance(target, ast.Tuple) else target
            if is_plain_store(stored) and plain_name(first) == key:
                return (file, stored, stored.targets[0]), literals(program, loader.file, over)
        case ast.Assign(targets=[ast.Subscript(value=holder, slice=ast.Name(id=key))]) if is_dotted(holder):
            loop = parent(above)
            if isinstance(loop, ast.For) and plain_name(loop.target) == key and not loop.orelse:
                return (file, loop, holder), literals(program, file, loop.iter)
    return None


def is_plain_store(stored: ast.AST) -> TypeGuard[ast.Assign]:
    """True for `x = ...` and `self.x = ...`."""
    return isinstance(stored, ast.Assign) and len(stored.targets) == 1 and is_dotted(stored.targets[0])
