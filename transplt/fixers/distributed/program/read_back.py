"""Where a program reads files that it has written itself, and where it asks first whether they are there."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from transplt.fixers.distributed.program.divergent_values import ASKS
from transplt.fixers.distributed.program.outputs import opens_to_write, writes_file, written_place
from transplt.program.loops import excludes, lifted, loops_around
from transplt.program.program import File, Function, Program, enclosing_function
from transplt.program.training import Training
from transplt.syntax.nodes import arguments_of, begins, by_place, ends, inner_nodes, is_elif, last_name, place_in_block
from transplt.syntax.scan import FUNCTIONS, parent, statement

_FOLDERS = frozenset({"makedirs", "mkdir"})
_MOVES = frozenset({"rename", "replace", "move"})
#: What reads again what a call writes.
_READ_BY = {
    "torch.save": "torch.load", "json.dump": "json.load", "pickle.dump": "pickle.load", "joblib.dump": "joblib.load",
    **dict.fromkeys(("numpy.save", "numpy.savez", "numpy.savez_compressed"), "numpy.load"),
}  # fmt: skip
_LISTS = frozenset("glob iglob rglob listdir scandir iterdir walk".split())
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def read_back(training: Training) -> Iterator[tuple[File, ast.stmt, ast.Call]]:
    """The `torch.load` behind training, each with the statements before which the file has to be there."""
    program = training.program
    saved = {path for file in program.files for call in file.scan.calls if (path := _path(file, call, "torch.save"))}
    for file in program.files:
        for call in by_place(file.scan.calls):
            if path := _path(file, call, "torch.load"):
                for at, first in _waits(training, file, call, path, path in saved, set()):
                    yield at, first, call


def loaded_or_made(program: Program, file: File) -> Iterator[tuple[ast.If, list[ast.stmt]]]:
    """The conditions that load a file where it is there and write it where it is not, each with the branch that writes.
    """
    for node in inner_nodes(file.scan.tree, ast.If):
        if asks_for_file(node.test):
            for branch, other in ((node.body, node.orelse), (node.orelse, node.body)):
                reads = any("load" in last_name(call.func) for item in other for call in inner_nodes(item, ast.Call))
                if reads and any(_writes(program, file, item, 0) for item in branch):
                    yield node, branch


def made_where_missing(program: Program, file: File) -> Iterator[tuple[ast.If, bool]]:
    """The conditions under which a file is written where it, or the folder made for it, is not there yet; True with
    those behind which the block goes on to read what was asked for, or other functions do."""
    elsewhere = program.once(_paths_read)
    for node in ast.walk(file.scan.tree):
        if not isinstance(node, ast.If) or not asks_for_file(node.test) or isinstance(node.body[-1], _LEAVES):
            continue
        if is_elif(node) or any(node is known for known, _ in loaded_or_made(program, file)):
            continue
        asked = _paths_given([node.test], ASKS)
        block, index = place_in_block(node)
        read = any(
            path in ast.unparse(call)
            for item in block[index + 1 :]
            for call in inner_nodes(item, ast.Call)
            if _reads(file, call)
            for path in asked
        )
        read = read or not asked.isdisjoint(elsewhere)
        about = read or _paths_given(node.body, _FOLDERS) & asked
        if about and any(_writes(program, file, item, 0) for item in node.body):
            yield node, read


def prepared(training: Training, file: File) -> Iterator[ast.stmt]:
    """The statements of a file that call, before anything trains, a function that writes files which others read."""
    program = training.program
    for function, sites in program.call_sites.items():
        if not isinstance(function, FUNCTIONS) or function in training.functions:
            continue
        here = [call for at, call in sites if at is file and not behind_training(training, file, call, True)]
        by = _reads_of(program, function) if here else set()
        read = (name for name, functions in program.once(_files_read).items() if name in by and functions - {function})
        if next(read, None) and not any(enclosing_function(node) is function
                                        for node, read_here in made_where_missing(program, program.owner[function])
                                        if read_here):  # fmt: skip
            yield from (statement(call) for call in here if isinstance(parent(call), (ast.Expr, ast.Assign)))


def _reads_of(program: Program, function: Function) -> set[str]:
    """The names of what reads or lists the files that a function writes."""
    names = program.owner[function].names
    read = {_READ_BY.get(names.qualified(call.func) or "") for call in inner_nodes(function, ast.Call)} - {None}
    return {*filter(None, read), *_LISTS} if read else set()


def _files_read(program: Program) -> dict[str, set[Function | None]]:
    """In which functions files are loaded, by the function that loads, and folders listed, by the name of that."""
    found: dict[str, set[Function | None]] = {}
    for file in program.files:
        for call in file.scan.calls:
            known, last = file.names.qualified(call.func) or "", last_name(call.func)
            found.setdefault(last if last in _LISTS else known, set()).add(enclosing_function(call))
    return found


def _paths_given(nodes: Sequence[ast.AST], names: Collection[str]) -> set[str]:
    """The paths that calls of these names in some code are about."""
    calls = (call for node in nodes for call in inner_nodes(node, ast.Call))
    return {_asked_for(call) for call in calls if last_name(call.func) in names}


def _paths_read(program: Program) -> set[str]:
    """The paths that a program reads, but for names, which are other paths in other functions."""
    reads = (_asked_for(call) for file in program.files for call in file.scan.calls if _reads(file, call))
    return {path for path in reads if path and (path.isupper() or not path.isidentifier())}


def read_just_before(training: Training, file: File, call: ast.Call) -> bool:
    """True for a call that changes a file which the program reads above it, where nothing trains between the two.

    A round of a loop comes by behind the last one.
    """
    known, last = file.names.qualified(call.func) or "", last_name(call.func)
    changed = [written_place(file, call), *call.args[: last in _MOVES]]
    paths = {ast.unparse(each) for each in changed if each is not None}
    if isinstance(call.func, ast.Attribute) and not known and last == "unlink":
        paths = {ast.unparse(call.func.value)}
    function = enclosing_function(call)
    for read in (each for each in file.scan.calls if enclosing_function(each) is function and _reads(file, each)):
        if paths.isdisjoint([_asked_for(read), *map(ast.unparse, arguments_of(read))]):
            continue
        place = statement(call)
        while (at := lifted(read, place_in_block(place)[0])) is None:
            place = statement(parent(place))
        block, index = place_in_block(place)
        between = block[at + 1 : index] if at < index else [*block[at + 1 :], *block[:index]]
        if (at < index or loops_around(place)) and training.first_in(file, between) == len(between):
            return True
    return False


def _asked_for(call: ast.Call) -> str:
    """The text of the path that a call of `os.path` or of a path is about."""
    given = arguments_of(call)
    if given or not isinstance(call.func, ast.Attribute):
        return ast.unparse(given[0]) if given else ""
    return ast.unparse(call.func.value)


def _reads(file: File, call: ast.Call) -> bool:
    last = last_name(call.func)
    return "load" in last or last.startswith("read") or (last == "open" and not opens_to_write(file, call))


def _path(file: File, call: ast.Call, name: str) -> str:
    """The text of the path that a call saves or loads, empty for any other call."""
    given = arguments_of(call)
    if file.names.qualified(call.func) != name or not given:
        return ""
    return ast.unparse(given[1 if name == "torch.save" and len(given) > 1 else 0])


def behind_training(
    training: Training, file: File, node: ast.AST, saved: bool, seen: set[ast.AST] | None = None
) -> bool:
    """True for code that runs behind a training loop, or (for what the program has `saved`) in one behind a step."""
    seen, function = set() if seen is None else seen, enclosing_function(node)
    for at, loop in training.regions:
        here = at is file and enclosing_function(loop) is function
        if here and (ends(loop) <= begins(node) or (saved and loop in loops_around(node))):
            return True
    for call in file.scan.calls:
        before = enclosing_function(call) is function and ends(statement(call)) <= begins(node)
        if before and not excludes(node, statement(call)) and training.runs(file, call):
            return True
    if function is None or function in seen:
        return False
    seen.add(function)
    sites = training.program.call_sites.get(function, [])
    return any(behind_training(training, at, call, saved, seen) for at, call in sites)


def _waits(
    training: Training, file: File, call: ast.Call, path: str, saved: bool, seen: set[ast.AST]
) -> Iterator[tuple[File, ast.stmt]]:
    """The statements before which to wait for a file that `call` reads. Where the code asks first whether it is there,
    in a caller, too, that has to wait: a rank that asks too early does not come by here, and the others wait for it."""
    if not behind_training(training, file, call, saved):
        return
    node = _first_to_ask(training, file, statement(call), path, saved)
    function = enclosing_function(call)
    sites = training.program.call_sites.get(function, []) if function is not None else []
    asked = any(_first_to_ask(training, at, statement(site), "", saved) is not _outside(site) for at, site in sites)
    if function is None or function in seen or not asked:
        yield file, node
        return
    seen.add(function)
    for at, site in sites:
        yield from _waits(training, at, site, "", saved, seen)


def _outside(node: ast.AST) -> ast.stmt:
    """The statement of a node, or the outermost `with` and `try` around it."""
    found = statement(node)
    while isinstance(above := parent(found), (ast.With, ast.Try)):
        found = above
    return found


def _first_to_ask(training: Training, file: File, node: ast.stmt, path: str, saved: bool) -> ast.stmt:
    """The condition around a statement that asks for a file, or the one before it in its block that leaves where there
    is none; else the statement."""
    node = _outside(node)
    while True:
        above = parent(node)
        block, index = place_in_block(node)
        before = [each for each in block[:index] if isinstance(each, ast.If) and asks_for_file(each.test)]
        leaving = [each for each in before if isinstance(each.body[-1], _LEAVES) and path in ast.unparse(each.test)]
        if path and leaving and behind_training(training, file, leaving[0], saved):
            node = _outside(leaving[0])
        elif isinstance(above, ast.If) and (asks_for_file(above.test) or is_elif(node)):
            node = _outside(above)
        else:
            return node


def asks_for_file(test: ast.expr) -> bool:
    """True for a condition that asks whether there is a file."""
    return any(last_name(node.func) in ASKS for node in inner_nodes(test, ast.Call))


def _writes(program: Program, file: File, node: ast.AST, depth: int) -> bool:
    """True for code that writes a file, by itself or in a function of the program."""
    for call in inner_nodes(node, ast.Call):
        if writes_file(file, call) or opens_to_write(file, call):
            return True
        callee = program.callee(file, call)
        if isinstance(callee, FUNCTIONS) and depth < 3 and _writes(program, program.owner[callee], callee, depth + 1):
            return True
    return False
