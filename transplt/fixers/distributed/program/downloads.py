"""What a program downloads, and what it does with what came."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from transplt.fixers.distributed.program.divergence import Divergence
from transplt.fixers.distributed.program.divergent_values import ASKS
from transplt.fixers.distributed.program.outputs import fetches, opens_to_write, writes_file
from transplt.program.program import File, Function, class_name, enclosing_function
from transplt.program.reached_functions import functions_run_from
from transplt.program.training import Training
from transplt.syntax.nodes import by_place, inner_nodes, is_false, keyword_of, last_name, place_in_block
from transplt.syntax.scan import chain, statement

#: Parts of the names of what writes or unpacks what was fetched.
_TAKES = ("write", "extract", "unpack", "unzip", "untar", "open", "save", "copy", "rename", "move", "content", "raise")


def fetching_functions(training: Training, but: Function | None) -> set[ast.AST]:
    """The functions of a program that load from the net and do not train, `but` one."""
    return {
        function
        for file in training.program.files
        for function in file.scan.functions
        if function is not but and function not in training.functions
        for call in inner_nodes(function, ast.Call)
        if fetches(file, call)
    }


def download_calls(divergence: Divergence) -> Iterator[tuple[File, ast.Call, bool]]:
    """What downloads, and the calls of functions that do so where the caller has asked for files; True for what writes
    the files of a data set that were not there."""
    seen: set[ast.AST] = set()
    pending = [
        (file, call, False)
        for file in divergence.program.files
        for call in by_place(file.scan.calls)
        if ((asked := keyword_of(call, "download")) is not None and not is_false(asked)) or fetches(file, call)
    ]
    pending += [(file, call, True) for file, call in _written_by(divergence, "__init__")]
    while pending:
        file, call, cached = pending.pop(0)
        makes = cached and bool(divergence.around(file, call, files=True))
        if makes or not cached:
            yield file, call, cached
        function = enclosing_function(call)
        if function is None or function in seen or makes:
            continue
        seen.add(function)
        pending += [
            (at, site, cached)
            for at, site in divergence.sites(function)
            if cached or divergence.around(at, site, files=True)
            or (isinstance(held := statement(site), (ast.If, ast.While)) and site in ast.walk(held.test))
        ]


def cached_samples(divergence: Divergence) -> Iterator[tuple[File, ast.Call]]:
    """What writes the file of a sample that was not there, in whatever process reads it."""
    for file, call in _written_by(divergence, "__getitem__"):
        if divergence.around(file, call, files=True):
            yield file, call


def _written_by(divergence: Divergence, method: str) -> Iterator[tuple[File, ast.Call]]:
    """What a method of the data sets of a program writes: a process does so for itself, wherever it may."""
    program = divergence.program
    sets = [(file, cls) for file in program.files for cls in file.scan.classes
            if any(last_name(base).endswith("Dataset") for base in cls.bases)]  # fmt: skip
    made = [(program.owner[each], each) for file, cls in sets
            if (each := program.method(class_name(file, cls), method)) is not None]  # fmt: skip
    run = functions_run_from(program, made).union(each for _, each in made)
    for file in program.files if made else ():
        for call in by_place(file.scan.calls):
            if enclosing_function(call) in run and (writes_file(file, call) or opens_to_write(file, call)):
                yield file, call


def users(place: ast.stmt, call: ast.Call) -> list[ast.stmt]:
    """The statements right behind a download that write or unpack what it gave, or the file that it made."""
    names = names_stored(place) | {name for given in call.args[1:] for name in names_in(given)}
    block, index = place_in_block(place)
    last = index
    for at, node in enumerate(block[index + 1 :], index + 1):
        calls = {last_name(each.func).lower() for each in inner_nodes(node, ast.Call)}
        asks = isinstance(node, ast.If) and bool(calls & ASKS)
        if not (asks or names & names_in(node)) or not any(word in name for name in calls for word in _TAKES):
            break
        last, names = at, names | names_stored(node)
    return block[index + 1 : last + 1]


def opens(file: File, node: ast.With) -> bool:
    """True for `with open(path, "w"):` and the like."""
    calls = (each.context_expr for each in node.items)
    return any(isinstance(call, ast.Call) and opens_to_write(file, call) for call in calls)


def names_in(node: ast.AST) -> set[str]:
    return {each.id for each in inner_nodes(node, ast.Name)}


def names_stored(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {name for target in targets for name in names_in(target)}


def runs_later(call: ast.Call) -> bool:
    """True in a lambda and in a generator: what holds the call may run when its statement is done."""
    for above in chain(call):
        if isinstance(above, ast.stmt):
            return False
        if isinstance(above, (ast.Lambda, ast.GeneratorExp)):
            return True
    return False
