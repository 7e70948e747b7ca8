"""Where a program begins to work with models, loaders or cards: the processes have to know each other by then."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from transplt.fixers.distributed.program.outputs import happens_once, opened, removes
from transplt.fixers.distributed.program.process_paths import names_written_to
from transplt.fixers.distributed.program.random_draws import SEEDED_BY, seeded
from transplt.program.program import LOADERS, File, Function, Program
from transplt.program.reached_functions import reached_functions
from transplt.rules.torch_callables import MODULE, names_of
from transplt.syntax.nodes import attribute_of, callee_of, inner_nodes, is_main_guard, keyword_of, last_name
from transplt.syntax.scan import FUNCTIONS

_TOUCHING = names_of(MODULE, "to_card") | {"parameters", "backward", "load_state_dict", "DataParallel"}
#: Functions of the program that are run before the process group is there, unless they touch a card.
_SETTING_UP = re.compile(r"arg|pars|opt|conf|setting|seed|logg|setup|init")
_FOLDERS = frozenset({"makedirs", "mkdir", "SummaryWriter", "tqdm", "trange"})


@dataclass(frozen=True, slots=True)
class Start:
    """Where the process group begins: before `first`.

    `guard` asks for an `if __name__ == "__main__":` of its own. `function` is the one that holds it, None at module
    level.
    """

    file: File
    first: ast.stmt
    guard: bool = False
    function: Function | None = None


def find_start(program: Program) -> Start | None:
    """Where the main file begins to work; None when that cannot be seen."""
    file = program.files[0]
    definitions = (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)
    body = [node for node in file.scan.tree.body if not isinstance(node, definitions)]
    main = next((node for node in reversed(body) if is_main_guard(node)), None)
    touching = _Touching(program)
    named = {id(each) for each in names_written_to(program, file)}
    first = next((node for node in body if node is not main and (id(node) in named or touching.any(file, node))), None)
    if first is not None:
        return Start(file, _before_effects(program, body, first), guard=main is not None)
    if not isinstance(main, ast.If):
        return None
    inside = next((node for node in main.body if touching.any(file, node)), None)
    if inside is None:
        return None
    inside = _before_effects(program, main.body, inside)
    function = _entered(program, file, inside)
    if function is not None:
        within = next((node for node in function.body if touching.any(file, node)), function.body[0])
        return Start(file, _before_effects(program, function.body, within), function=function)
    return Start(file, inside)


def _before_effects(program: Program, body: list[ast.stmt], first: ast.stmt) -> ast.stmt:
    """The first statement that calls a function which prints or writes: it asks for the rank then. So does one that
    chooses a name to write to, which is rank 0's."""
    file = program.files[0]
    named = {id(each) for at in program.files for each in names_written_to(program, at)}
    for node in body[: body.index(first)]:
        for call in inner_nodes(node, ast.Call):  # what one rank alone is to write
            known = file.names.qualified(call.func) == "wandb.init" or last_name(call.func) == "SummaryWriter"
            if known or removes(file, call) or opened(file, call) is not None:
                return node
        if id(node) in named:
            return node
        for function in reached_functions(program, [node]):
            owner = program.owner[function]
            if any(happens_once(owner, call) or last_name(call.func) in _FOLDERS or opened(owner, call) is not None
                   for call in inner_nodes(function, ast.Call)):  # fmt: skip
                return node
            if any(id(each) in named for each in inner_nodes(function, ast.Assign)):
                return node
    return first


def _entered(program: Program, file: File, node: ast.stmt) -> Function | None:
    """The main function, when its caller does not come back: `sys.exit(main())`, `fire.Fire(main)`, click."""
    match node:
        case ast.Expr(value=ast.Call() as call) | ast.Raise(exc=ast.Call() as call):
            callee = program.callee(file, call)
        case _:
            return None
    if isinstance(callee, FUNCTIONS):
        return callee if callee.decorator_list and program.owner[callee] is file else None
    for argument in call.args:
        inner = callee_of(argument)
        if isinstance(inner, (ast.Name, ast.Attribute)):
            found = program.definition(file, inner)
            if isinstance(found, FUNCTIONS) and program.owner[found] is file:
                return found
    return None


class _Touching:
    """Whether code, or what it calls, works with models, loaders or cards."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.known: dict[ast.AST, bool] = {}
        self.seeded = {root: seeded(program, names) for root, names in SEEDED_BY.items()}

    def any(self, file: File, node: ast.AST) -> bool:
        pending = [node]
        while pending:
            at = pending.pop()
            if isinstance(at, (*FUNCTIONS, ast.Lambda)) and at is not node:
                continue
            if isinstance(at, ast.Call) and self.call(file, at):
                return True
            pending.extend(ast.iter_child_nodes(at))
        return False

    def call(self, file: File, call: ast.Call) -> bool:
        name = file.names.qualified(call.func) or ""
        known = attribute_of(call.func) in _TOUCHING or name in LOADERS
        if known or any(keyword.arg == "download" for keyword in call.keywords):
            return True
        # What nobody seeds is drawn alike behind the start only.
        return self._draws_alone(name, call) or any(self._run(callee) for callee in self.program.runs(file, call))

    def _run(self, callee: ast.AST) -> bool:
        if not _SETTING_UP.search(str(getattr(callee, "name", "")).lower()):
            return True
        if callee not in self.known:
            self.known[callee] = False
            owner = self.program.owner[callee]
            body = getattr(callee, "body", [])
            inside = [inner for node in body for inner in (node.body if isinstance(node, FUNCTIONS) else [node])]
            self.known[callee] = any(self.any(owner, node) for node in inside)
        return self.known[callee]

    def _draws_alone(self, name: str, call: ast.Call) -> bool:
        """True for a call that draws from a generator which the program gives no seed."""
        root, last = name.partition(".")[0], last_name(call.func)
        if last == "train_test_split":
            return not self.seeded["numpy"] and keyword_of(call, "random_state") is None
        if self.seeded.get(root, True):
            return False
        if root == "torch":
            return last in (*names_of("torch", "draws"), "random_split") and keyword_of(call, "generator") is None
        return name.startswith(("numpy.random.", "random.")) and last[:1].islower()
