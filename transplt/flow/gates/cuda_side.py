"""What only the CUDA side of a condition reaches, and whether all of it can run on an NPU: the one place that says so.

The side is found by the form of the condition (transplt/syntax/conditions.py), or by the variable, the function or the
attribute that carries its answer on. What it reaches is read in its file (code_facts.py) and followed over all files
(transplt/flow/gates/cuda_reach.py).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from transplt.flow.destinations import places
from transplt.flow.facts import ProjectFacts
from transplt.flow.gates.code import CodeStep, Definition, Direct, OfPackage, Reference, SlotValue
from transplt.flow.gates.code_facts import FileCode, function_around
from transplt.flow.gates.code_walk import WalkState
from transplt.flow.gates.cuda_reach import MISSING, Reach
from transplt.flow.slots import Slots
from transplt.rules.rule_set import RuleSet
from transplt.syntax.conditions import SKIPPERS, Atom, Run, Sides, implied, implies, sides_of, tested
from transplt.syntax.nodes import arguments_of, call_of, inner_nodes, last_name
from transplt.syntax.scan import FUNCTIONS, parent, statement

#: A branch longer than this many lines is a program: what the user has to ask for in it is the user's decision. A test
#: of one tensor guards no program.
_LINES = 30
_LINES_OF_A_TENSOR = 100
#: How a function is called that says whether another one may run: `attend_verifier` beside `attend`.
_CHECKS = frozenset({"verifier", "checker", "check", "supported", "available", "eligible", "predicate"})
#: A run of so few nodes may be made for one question: nothing of it is kept.
_FEW = 4
#: What a test is, or holds tests.
_TESTS = (*FUNCTIONS, ast.ClassDef)
#: Expressions that may be functions.
_CALLABLES = frozenset({ast.Name, ast.Attribute, ast.Lambda, ast.Call})


class Answer(NamedTuple):
    """Why a gate stays: what its CUDA side needs, or where it leads that nobody can follow (`followed` is False).

    `everywhere` is False where a variable holds the answer, and other places ask it that lead to code of the NPU too.
    """

    why: str
    followed: bool = True
    everywhere: bool = True


class _Found(NamedTuple):
    """The state behind a node, and its steps that matter."""

    after: WalkState
    steps: list[tuple[CodeStep, str, str]]


class CudaSide:
    """The answers for the gates of one file."""

    def __init__(self, slots: Slots, rules: RuleSet, project: ProjectFacts) -> None:
        self.file = FileCode.without_pieces(slots, rules) if project.known else FileCode.of(slots, rules)
        self.reach = project.reach if project.known else Reach.alone(self.file.facts())
        self._read: dict[int, ast.AST | None] = {}
        self._pointers: dict[ast.AST, str] | None = None
        self._of_node: dict[tuple[int, WalkState], _Found] = {}
        self._next: dict[tuple[int, int, WalkState], tuple[int, _Found]] = {}
        self._asked: dict[tuple[int, bool], list[Reference]] = {}

    def of(self, question: ast.expr, truth: bool, *, of_a_tensor: bool) -> Answer | None:
        """Why a part of a condition has to stay that has a truth value on CUDA only; None where it may move."""
        answer = self._option_of_a_package(question) or self._checked_for(question)
        if (answer := answer or self._asked_beside(question, truth) or self._marked(question)) is not None:
            return answer
        sides = sides_of(question, truth)
        value = sides.value
        why = self._needs(sides, _LINES_OF_A_TENSOR if of_a_tensor else _LINES) if sides.runs else None
        if why is not None:
            return why
        if value is not None and (answer := self._beside(value)) is not None:
            return answer
        guards = list(self.file.guards_of(value, question, truth)) if value is not None else []
        if sides.runs:
            guards += self.file.guards_set_in(sides, self.reach.decides)
        needed, everywhere = self.reach.behind(guards)
        return Answer(needed, MISSING not in needed, everywhere) if needed else None

    def ran_by(self, question: ast.expr, truth: bool) -> list[ast.AST]:
        """What stands on the CUDA side of a question, and behind a local variable that holds its answer: the outermost
        nodes.
        """
        sides = sides_of(question, truth)
        this, value = sides.this, sides.value
        slots = self.file.code.slots
        held: set[str] = set()
        stores: list[ast.Name] = []  # local variables that it is assigned to, itself or as a part of a tuple
        if value is not None:
            held = {place.detail for place in places(slots, value) if place.kind == "slot"}
            names = inner_nodes(statement(value), ast.Name)
            stores = [name for name in names if isinstance(name.ctx, ast.Store) and slots.of(name) in held]
        for use in (use for store in stores for use in slots.names.uses(store)):
            if isinstance(use.ctx, ast.Load):
                this = [*this, *sides_of(use, truth).this]
        return this

    def set_only_in(self, stays: Iterable[ast.AST]) -> set[str]:
        """The slots that only code sets which no longer runs."""
        return self.file.set_only_in(inner for node in stays for inner in ast.walk(node))

    def withheld(self, only: set[str], side: Iterable[ast.AST]) -> str:
        """What a side reads of some slots (always the same ones); empty where there is none, or it is asked for."""
        slots = self.file.code.slots
        for node in side if only else ():
            if id(node) not in self._read:
                named = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
                reads = (each for each in named if isinstance(each.ctx, ast.Load) and slots.of(each) in only)
                self._read[id(node)] = next(reads, None)
            if (read := self._read[id(node)]) is not None:
                return "" if isinstance(parent(read), (ast.Compare, ast.BoolOp, ast.If)) else ast.unparse(read)
        return ""

    def _option_of_a_package(self, question: ast.expr) -> Answer | None:
        """The package for CUDA alone of whose call an answer is a keyword: `cuet.Polynomial(fused=device == "cuda")`.
        """
        option = parent(question)
        call = parent(option)
        if not (isinstance(option, ast.keyword) and isinstance(call, ast.Call)):
            return None
        if option.arg in ("gpu", "use_gpu") and "faiss" in ast.unparse(call.func).lower():
            return Answer("faiss")  # or a class of the project that is called after it
        return self._first(ref for ref in self.file.code.called(call) if isinstance(ref, OfPackage))

    def _asked_beside(self, question: ast.expr, truth: bool) -> Answer | None:
        """The package for CUDA alone that is asked for in the same condition, or by a test that it skips, or that is
        imported before its answer is kept.
        """
        test, code = _whole(question), self.file.code
        call = parent(test)
        way = next((way for way in (True, False) if implies(test, way, Atom(question, truth))), None)
        if way is not None and (id(test), way) not in self._asked:  # once for all questions of a condition
            self._asked[id(test), way] = [ref for atom in implied(test, way) for ref in code.there_where(atom)]
        asked = self._asked[id(test), way] if way is not None else []
        holder = parent(call)
        if isinstance(holder, _TESTS) and isinstance(call, ast.Call):
            others = (each for each in holder.decorator_list if each is not call)
            names = (name for each in others for name in inner_nodes(each, ast.Name))
            asked = asked + [ref for name in names for ref in code.there_where(Atom(name, True))]
        kept = code.imported_before(call) if isinstance(call, (ast.Assign, ast.AnnAssign, ast.Return)) else ()
        return self._first([*asked, *kept])

    def _marked(self, question: ast.expr) -> Answer | None:
        """What the tests need that a mark skips: `needs_gpu = pytest.mark.skipif(not torch.cuda.is_available())`."""
        match call := parent(_whole(question)), parent(call):
            case ast.Call(func=func), ast.Assign(targets=[ast.Name() as mark]) if last_name(func) in SKIPPERS:
                uses = [(use, parent(use)) for use in self.file.code.slots.names.uses(mark)]
            case _:
                return None
        tests = [each for use, each in uses if isinstance(each, _TESTS) and use in each.decorator_list]
        found = [self._needs(Sides.of(tested(test), [], None), _LINES) for test in tests]
        needs = [answer for answer in found if answer is not None and answer.followed]
        return needs[0]._replace(everywhere=len(needs) == len(tests)) if needs else None

    def _first(self, refs: Iterable[Reference]) -> Answer | None:
        """What the first of some references needs that needs CUDA."""
        return next((Answer(why) for ref in refs if (why := self.reach.why(CodeStep(ref)))), None)

    def _checked_for(self, question: ast.expr) -> Answer | None:
        """What a function needs that stands beside its checker and is called by the name before `_verifier`."""
        function = function_around(question)
        name, _, word = function.name.rpartition("_") if function is not None else ("", "", "")
        if not name or word not in _CHECKS or function is None or not _answers_no(function):
            return None
        holder = parent(function)
        body = holder.body if isinstance(holder, (ast.ClassDef, ast.Module)) else []
        checked = next((each for each in body if isinstance(each, FUNCTIONS) and each.name == name), None)
        if checked is None:
            return None
        slots = self.file.code.slots
        why = self.reach.why(CodeStep(Definition(slots.own.full_name(slots.scan.scopes[checked]))))
        return Answer(why, followed=MISSING not in why) if why else None

    def handed_pointer(self, question: ast.expr) -> Answer | None:
        """What needs CUDA, and is handed the address of a tensor's memory in the function around a test for CUDA."""
        if self._pointers is None:
            self._pointers = {}
            slots = self.file.code.slots
            for node in slots.scan.attributes.get("data_ptr", ()):
                uses: list[ast.expr] = [found] if (found := call_of(node)) is not None else []
                match parent(uses[0]) if uses else None:
                    case ast.Assign(targets=[ast.Name() as name]):
                        uses = [*slots.names.uses(name)]
                function = function_around(node)
                calls = [above for use in uses if isinstance(above := parent(use), ast.Call) and use in above.args]
                steps = (CodeStep(ref) for call in calls for ref in self.file.code.called(call))
                if function is not None and (why := next(filter(None, map(self.reach.why, steps)), "")):
                    self._pointers.setdefault(function, why)
        around = function_around(question)
        return Answer(self._pointers[around]) if around in self._pointers else None

    def _beside(self, value: ast.expr) -> Answer | None:
        """What a call or a table is given beside a function whose answer a gate is: `register(op, checker=f, fn=g)`."""
        code = self.file.code
        unfollowed = ""
        for other in _given_beside(code.slots, value):
            refs: Iterable[Reference]
            if isinstance(other, ast.Lambda):
                refs = [step.ref for step in self.file.walk_over([other.body])]
            elif isinstance(other, FUNCTIONS):
                refs = [Definition(code.slots.own.full_name(code.slots.scan.scopes[other]))]
            elif isinstance(other, ast.Call):
                refs = code.called(other)
            else:
                slot = code.slots.of(other)
                kept = (SlotValue(code.shared(slot)),) if slot is not None and slot[0] in "gs" else ()
                refs = code.held(other) or kept
            for ref in refs:
                if why := self.reach.why(CodeStep(ref)):
                    return Answer(why, followed=MISSING not in why)
                unfollowed = unfollowed or self.reach.leads_out(CodeStep(ref))
        return Answer(unfollowed, followed=False) if unfollowed else None

    def _needs(self, sides: Sides, limit: int) -> Answer | None:
        shared: set[Reference] | None = None  # what the other side reaches, too; it is long where there are many gates
        first, last = sides.runs[0][0][sides.runs[0][1]], sides.runs[-1][0][-1]
        short = getattr(last, "end_lineno", 0) - getattr(first, "lineno", 0) <= limit
        unfollowed = ""
        for step, why, out in self._leading(sides.runs):
            if step.option and not (short and (isinstance(step.ref, Direct) or not self.reach.leads_on(step.ref))):
                continue
            if unfollowed and not why:
                continue
            if shared is None:
                shared = {each.ref for each in self.file.walk_over(sides.other)}
            if step.ref in shared:
                continue
            if why:
                return Answer(why, followed=MISSING not in why)
            unfollowed = out
        return Answer(unfollowed, followed=False) if unfollowed else None

    def _leading(self, runs: Iterable[Run]) -> Iterator[tuple[CodeStep, str, str]]:
        """The steps of some code that need CUDA, or lead where nobody can follow, with the reasons for both."""
        here = WalkState()
        for nodes, at in runs:
            while at < len(nodes):
                at, found = self._leading_from(nodes, at, here)
                here = found.after
                yield from found.steps
                at += 1

    def _leading_from(self, nodes: Sequence[ast.AST], at: int, here: WalkState) -> tuple[int, _Found]:
        """The next node of a run with such steps, by its index, or the last one. The gates of a block have its end in
        common: what is known from one node on is not looked for again.
        """
        passed = []
        while True:
            known = self._next.get((id(nodes), at, here)) if len(nodes) > _FEW else None
            if known is None:
                found = self._found(nodes[at], here)
                known = at, found
            passed.append((id(nodes), at, here))
            if known[1].steps or known[0] + 1 >= len(nodes):
                break
            at, here = known[0] + 1, known[1].after
        if len(nodes) > _FEW:
            self._next.update((key, known) for key in passed)
        return known

    def _found(self, node: ast.AST, here: WalkState) -> _Found:
        if (id(node), here) not in self._of_node:
            after, steps = self.file.walked(node, here)
            found = []
            for step in steps:
                if not any(self.reach.is_gate(guard) for guard in step.guards):
                    why = self.reach.why(step)
                    out = "" if why else self.reach.leads_out(step)
                    found += [(step, why, out)] if why or out else []
            self._of_node[id(node), here] = _Found(after, found)
        return self._of_node[id(node), here]


def _whole(question: ast.expr) -> ast.expr:
    """The whole condition that a question is a part of."""
    while isinstance(above := parent(question), (ast.BoolOp, ast.UnaryOp, ast.NamedExpr)):
        question = above
    return question


def _answers_no(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True for a function that returns False somewhere, alone or with a reason."""
    for node in inner_nodes(function, ast.Return):
        match node.value:
            case ast.Constant(value=False) | ast.Tuple(elts=[ast.Constant(value=False), *_]):
                return True
    return False


def _given_beside(slots: Slots, value: ast.expr) -> Iterator[ast.expr | ast.FunctionDef | ast.AsyncFunctionDef]:
    """What stands beside a function in calls and tables that are given it, where a value is what it returns."""
    uses: list[ast.expr] = []
    match above := parent(value):
        case ast.Lambda(body=body) if body is value:
            uses = [above]
        case ast.Return() if (function := function_around(value)) is not None:
            scope = slots.scan.scopes[function].parent
            named = slots.scan.names.get(function.name, ()) if scope is not None and scope.kind == "module" else ()
            uses = [node for node in named if isinstance(node.ctx, ast.Load)]
    for use in uses:
        holder = parent(use)
        holder = parent(holder) if isinstance(holder, ast.keyword) else holder
        if isinstance(holder, ast.Dict):
            yield from (each for each in holder.values if each is not use and type(each) in _CALLABLES)
        elif isinstance(holder, ast.Call) and holder.func is not use:
            yield from (each for each in arguments_of(holder) if each is not use and type(each) in _CALLABLES)
            decorated = parent(holder)
            if isinstance(decorated, FUNCTIONS) and holder in decorated.decorator_list:
                yield decorated


