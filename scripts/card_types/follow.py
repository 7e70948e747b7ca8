"""Follows a function of C++ with types in place of tensors, and says whether it must refuse them.

A condition that nothing is known of is followed both ways: what is said holds on every way. What is not understood ends
in silence, never in a refusal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tree_sitter import Node

from . import builtin
from .sources import Function, Index, SourceFile, text_of
from .values import NULL, UNKNOWN, Chip, Dtype, Tensor, Types, Value, joined

_DEEPEST = 24
_MOST_STEPS = 20_000
ON_CPU = "#cpu"
#: Checks of types that refuse by themselves: the macros of op_error_check.h.
_SAYS_NOTHING = (
    "DO_COMPATIBILITY", "L0_DFX", "L2_DFX", "OP_LOG", "ADD_TO_LAUNCHER", "INFER_SHAPE", "TORCH_WARN",
)  # fmt: skip
_NOT_SUPPORTED = "OP_CHECK_DTYPE_NOT_SUPPORT"


class GivenUp(Exception):
    """A source that is not followed: too deep, too long, or not read by the grammar."""


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    """A type that is refused: by which function of CANN, the argument as its source names it, and what it takes."""

    function: str
    argument: str
    dtype: str
    takes: tuple[str, ...]
    path: str


Env = dict[str, Value]


@dataclass(slots=True)
class Flow:
    """How a statement ends: `env` where it goes on, values that were returned with their state, and refusals."""

    env: Env | None
    returned: list[tuple[Value, Env]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def then(self, other: Flow) -> None:
        self.env = other.env
        self.returned += other.returned
        self.refusals += other.refusals


def _merge(one: Env | None, other: Env | None) -> Env | None:
    if one is None or other is None:
        return one if other is None else other
    merged = {name: joined(one[name], other[name]) for name in one.keys() & other.keys() if name != ON_CPU}
    merged[ON_CPU] = one[ON_CPU] & other[ON_CPU]
    return merged


class Follower:
    """Follows the functions of an index on one chip.

    `enter(name, arguments)` is called where op-plugin calls a function of CANN, and answers as `call` does.
    """

    def __init__(
        self, index: Index, chip: Chip, enter: Callable[[str, list[Value]], frozenset[str]] | None = None
    ) -> None:
        self.index, self.chip, self.enter = index, chip, enter
        self.steps = 0
        self.names: list[str] = []
        self.known: dict[tuple[Function, tuple[Value, ...], str], tuple[Value, Env] | Refusal | GivenUp] = {}

    # --- functions ---------------------------------------------------------------------------------------------------

    def call(self, function: Function, arguments: list[Value]) -> tuple[Value, Env]:
        """What a function gives, and its variables at the end. Refusal, GivenUp."""
        if len(self.names) > _DEEPEST:
            raise GivenUp
        key = (function, tuple(arguments), self.names[0] if self.names else "")
        if key not in self.known:
            try:
                self.known[key] = self._followed(function, arguments)
            except (Refusal, GivenUp) as ended:
                self.known[key] = ended
        known = self.known[key]
        if isinstance(known, (Refusal, GivenUp)):
            raise known
        return known

    def _followed(self, function: Function, arguments: list[Value]) -> tuple[Value, Env]:
        env: Env = {name: UNKNOWN for name, _ in function.parameters}
        env.update({name: value for (name, _), value in zip(function.parameters, arguments, strict=False)})
        env[ON_CPU] = frozenset()
        self.names.append(function.name)
        try:
            flow = self.statement(function.body, env, function.file)
        finally:
            self.names.pop()
        ends = [*flow.returned, *([(UNKNOWN, flow.env)] if flow.env is not None else [])]
        if not ends:
            if flow.refusals:
                raise max(flow.refusals, key=lambda each: bool(each.takes))
            raise GivenUp
        value, state = ends[0]
        for other, env in ends[1:]:
            value = joined(value, other)
            state = _merge(state, env) or state
        return value, state

    # --- statements --------------------------------------------------------------------------------------------------

    def statement(self, node: Node, env: Env, file: SourceFile) -> Flow:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise GivenUp
        simple = node.type in ("expression_statement", "declaration", "return_statement")
        if node.type == "ERROR" or node.is_missing or (simple and node.has_error):
            raise GivenUp(f"{file.path}:{node.start_point[0] + 1} is not read")
        try:
            return self._statement(node, env, file)
        except Refusal as refusal:
            return Flow(None, [], [refusal])

    def _statement(self, node: Node, env: Env, file: SourceFile) -> Flow:
        kind = node.type
        if kind in ("compound_statement", "else_clause", "case_statement"):
            flow = Flow(env)
            children = node.named_children
            if kind == "case_statement" and node.child_by_field_name("value") is not None:
                children = children[1:]
            for child in children:
                if flow.env is None:
                    break
                if child.type == "break_statement":
                    break
                flow.then(self.statement(child, flow.env, file))
            return flow
        if kind == "declaration":
            self._declare(node, env, file)
            return Flow(env)
        if kind == "expression_statement":
            if text_of(node).startswith("OP_CHECK("):
                return self._op_check(node, env, file)
            for child in node.named_children:
                self.value(child, env, file)
            return Flow(env)
        if kind == "return_statement":
            value = self.value(node.named_children[0], env, file) if node.named_children else UNKNOWN
            return Flow(None, [(value, env)])
        if kind == "if_statement":
            return self._if(node, env, file)
        if kind in ("for_statement", "for_range_loop", "while_statement", "do_statement"):
            return self._loop(node, env, file)
        if kind == "switch_statement":
            return self._switch(node, env, file)
        if kind in ("comment", "using_declaration", "type_definition", "static_assert_declaration", "alias_declaration",
                    "preproc_def", "preproc_call", "continue_statement", "break_statement"):  # fmt: skip
            return Flow(env)
        raise GivenUp(f"{file.path}: {kind}")

    def _op_check(self, node: Node, env: Env, file: SourceFile) -> Flow:
        """`OP_CHECK(condition, log, return value)`: goes on where the condition holds, returns where it does not."""
        listed = node.named_children[0].child_by_field_name("arguments")
        arguments = [] if listed is None else [each for each in listed.named_children if each.type != "comment"]
        if len(arguments) != 3:
            return Flow(env)
        holds = self.value(arguments[0], env, file)
        if holds is True or (holds is not False and "OP_LOGE" in text_of(arguments[1])):
            return Flow(env)
        if holds is False:
            self.value(arguments[1], env, file)
        returned = [(self._maybe(arguments[2], env, file), env)]
        return Flow(None if holds is False else env, returned)

    def _if(self, node: Node, env: Env, file: SourceFile) -> Flow:
        condition, yes = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        no = node.child_by_field_name("alternative")
        assert condition is not None and yes is not None
        value: Value = UNKNOWN
        for child in condition.named_children:
            if child.type == "declaration":
                self._declare(child, env, file)
            else:
                value = self.value(child, env, file)
        if value is True:
            return self.statement(yes, env, file)
        if value is False:
            return self.statement(no, env, file) if no is not None else Flow(env)
        flow = self.statement(yes, dict(env), file)
        other = self.statement(no, dict(env), file) if no is not None else Flow(env)
        return Flow(_merge(flow.env, other.env), flow.returned + other.returned, flow.refusals + other.refusals)

    def _loop(self, node: Node, env: Env, file: SourceFile) -> Flow:
        """A loop over the tensors of a list is followed once, as if the list held one; others as if they might not run.
        """
        for part in ("initializer", "condition", "update"):
            child = node.child_by_field_name(part)
            if child is not None and child.type == "declaration":
                self._declare(child, env, file)
        body = node.child_by_field_name("body")
        assert body is not None
        over = node.child_by_field_name("right")
        once = "ize()" in text_of(node.child_by_field_name("condition"))
        if over is not None:
            value = self.value(over, env, file)
            once = isinstance(value, Tensor)
            name = text_of(node.child_by_field_name("declarator")).strip("&* ")
            env = {**env, name: value if once else UNKNOWN}
        for assigned in builtin.assigned_in(body):
            if not isinstance(env.get(assigned), Tensor):
                env[assigned] = UNKNOWN
        flow = self.statement(body, dict(env), file)
        if once:
            return Flow(env if flow.env is None and flow.returned else flow.env, flow.returned, flow.refusals)
        return Flow(_merge(flow.env, env), flow.returned, flow.refusals)

    def _switch(self, node: Node, env: Env, file: SourceFile) -> Flow:
        body = node.child_by_field_name("body")
        condition = node.child_by_field_name("condition")
        assert body is not None and condition is not None
        given = self.value(condition.named_children[0], env, file)
        cases = [child for child in body.named_children if child.type == "case_statement"]
        flow, default = Flow(None), False
        waiting = False
        for case in cases:
            wanted = case.child_by_field_name("value")
            default = default or wanted is None
            if wanted is not None and given is not UNKNOWN and not waiting:
                value = self.value(wanted, env, file)
                if value is not UNKNOWN and value != given:
                    continue
                if value == given:
                    waiting = True
            empty = len(case.named_children) == (1 if wanted is not None else 0)
            if empty:
                continue
            part = self.statement(case, dict(env), file)
            flow = Flow(_merge(flow.env, part.env), flow.returned + part.returned, flow.refusals + part.refusals)
            if waiting:
                return part
        if not default or not cases:
            flow.env = _merge(flow.env, env)
        return flow

    def _declare(self, node: Node, env: Env, file: SourceFile) -> None:
        for child in node.children_by_field_name("declarator"):
            name = builtin.name_in(child)
            value: Value = UNKNOWN
            if child.type == "init_declarator":
                given = child.child_by_field_name("value")
                if given is not None and given.type == "argument_list":
                    kind = text_of(node.child_by_field_name("type"))
                    values = [self.value(each, env, file) for each in given.named_children]
                    value = values[0] if values and ("Tensor" in kind or "List" in kind or "bool" in kind) else UNKNOWN
                elif given is not None:
                    value = self.value(given, env, file)
            target = child.child_by_field_name("declarator")
            if target is not None and target.type == "structured_binding_declarator":
                names = [text_of(each) for each in target.named_children]
                known = isinstance(value, tuple) and len(value) == len(names)
                env.update(dict(zip(names, value, strict=True)) if known else dict.fromkeys(names, UNKNOWN))
                continue
            env[name] = value

    # --- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: Node, env: Env, file: SourceFile) -> Value:
        """What is known of an expression. Refusal where it must refuse."""
        self.steps += 1
        if self.steps > _MOST_STEPS or node.type == "ERROR":
            raise GivenUp(f"{file.path}:{node.start_point[0] + 1} is not read, or too long")
        kind = node.type
        if kind == "identifier":
            return self._name(text_of(node), env, file)
        if kind == "qualified_identifier":
            return builtin.constant(text_of(node)) or self._name(text_of(node).rpartition("::")[2], env, file)
        if kind in ("true", "false"):
            return kind == "true"
        if kind == "null":
            return NULL
        if kind == "number_literal":
            return int(text_of(node)) if text_of(node).isdigit() else UNKNOWN
        if kind in ("parenthesized_expression", "reference_expression"):
            return self.value(node.named_children[0], env, file)
        if kind in ("pointer_expression", "unary_expression"):
            inner, sign = node.child_by_field_name("argument"), text_of(node.child_by_field_name("operator"))
            value = self.value(inner, env, file) if inner is not None else UNKNOWN
            if kind == "unary_expression":
                return not value if sign == "!" and isinstance(value, bool) else UNKNOWN
            taken = sign == "&" and not isinstance(value, Tensor)
            return UNKNOWN if taken else value
        if kind == "binary_expression":
            return self._binary(node, env, file)
        if kind == "conditional_expression":
            return self._conditional(node, env, file)
        if kind == "assignment_expression":
            return self._assign(node, env, file)
        if kind == "subscript_expression":
            value = self.value(node.named_children[0], env, file)
            return value if isinstance(value, Tensor) else UNKNOWN
        if kind == "cast_expression":
            inner = node.child_by_field_name("value")
            return self.value(inner, env, file) if inner is not None else UNKNOWN
        if kind in ("initializer_list", "compound_literal_expression"):
            if kind == "compound_literal_expression":
                inner = node.child_by_field_name("value")
                return self.value(inner, env, file) if inner is not None else UNKNOWN
            values = [self.value(each, env, file) for each in node.named_children if each.type != "comment"]
            if values and all(isinstance(each, Dtype) for each in values):
                return Types(tuple(each.name for each in values))
            tensors = {each for each in values if isinstance(each, Tensor)}
            return tensors.pop() if len(tensors) == 1 and len(values) == 1 else UNKNOWN
        if kind == "call_expression":
            return self._call(node, env, file)
        return UNKNOWN

    def _name(self, name: str, env: Env, file: SourceFile) -> Value:
        if name in env:
            return env[name]
        if name.startswith("DT_"):
            return builtin.constant(name) or UNKNOWN
        if name[:1] == "k":
            found = builtin.constant(f"at::{name}")
            if found is not None:
                return found
        constant = self.index.constant(name, file)
        return UNKNOWN if constant is None else self.value(constant[1], {ON_CPU: frozenset()}, constant[0])

    def _binary(self, node: Node, env: Env, file: SourceFile) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        sign = text_of(node.child_by_field_name("operator"))
        assert left is not None and right is not None
        one = self.value(left, env, file)
        if sign in ("&&", "||"):
            if isinstance(one, bool) and one is (sign == "||"):
                return one
            try:
                other = self.value(right, env, file)
            except Refusal:
                if isinstance(one, bool):
                    raise
                return UNKNOWN
            if isinstance(other, bool) and other is (sign == "||"):
                return other
            return other if isinstance(one, bool) else UNKNOWN
        return builtin.compared(sign, one, self.value(right, env, file))

    def _conditional(self, node: Node, env: Env, file: SourceFile) -> Value:
        condition = node.child_by_field_name("condition")
        yes, no = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
        assert condition is not None and yes is not None and no is not None
        value = self.value(condition, env, file)
        if isinstance(value, bool):
            return self.value(yes if value else no, env, file)
        return joined(self._maybe(yes, env, file), self._maybe(no, env, file))

    def _maybe(self, node: Node, env: Env, file: SourceFile) -> Value:
        """A value that need not be worked out: its refusal is none."""
        kept = env[ON_CPU]
        try:
            return self.value(node, env, file)
        except Refusal:
            return UNKNOWN
        finally:
            env[ON_CPU] = kept

    def _assign(self, node: Node, env: Env, file: SourceFile) -> Value:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        assert left is not None and right is not None
        value = self.value(right, env, file)
        if left.type == "identifier":
            env[text_of(left)] = value
        return value

    def _call(self, node: Node, env: Env, file: SourceFile) -> Value:
        callee, listed = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        assert callee is not None and listed is not None
        arguments = [each for each in listed.named_children if each.type != "comment"]
        if callee.type == "field_expression":
            owner, method = callee.child_by_field_name("argument"), text_of(callee.child_by_field_name("field"))
            assert owner is not None
            receiver = self.value(owner, env, file)
            values = [self.value(each, env, file) for each in arguments]
            if method in ("push_back", "emplace_back") and owner.type == "identifier" and values:
                known = env.get(text_of(owner), UNKNOWN)
                env[text_of(owner)] = values[0] if known is UNKNOWN or known == values[0] else joined(known, values[0])
                return UNKNOWN
            return builtin.method(method.partition("<")[0], receiver, values, self.chip)
        whole = text_of(callee).partition("<")[0]
        scope, _, name = whole.rpartition("::")
        if name.startswith(("OP_CHECK", "CHECK_RET", "CHECK_COND", "TORCH_CHECK", "OP_LOGE", "CHECK_NOT_NULL")):
            return self._checked(name, arguments, env, file)
        if name.startswith("EXEC_NPU") and self.enter is not None:
            values = [self.value(each, env, file) for each in arguments[1:]]
            env[ON_CPU] |= self.enter(text_of(arguments[0]), values)
            return UNKNOWN
        if name.startswith("ADD_TO_LAUNCHER_LIST_AICPU"):
            env[ON_CPU] |= {text_of(arguments[0])}
            return UNKNOWN
        if name.startswith(_SAYS_NOTHING):
            return UNKNOWN
        values = [self.value(each, env, file) for each in arguments]
        found = builtin.function(whole, values, [text_of(each) for each in arguments], self.chip)
        if found is not None:
            return found
        if scope.startswith(("at", "acl_op", "c10", "std", "torch")):
            return UNKNOWN
        function = self.index.function(name, len(values), file, "l0op" if scope.endswith("l0op") else "")
        end: Env = {}
        value: Value = UNKNOWN
        if function is not None:
            try:
                value, end = self.call(function, values)
            except GivenUp:
                if self.steps > _MOST_STEPS:
                    raise
        self._changed(function if end else None, arguments, env, end)
        env[ON_CPU] |= end.get(ON_CPU, frozenset())
        return value

    @staticmethod
    def _changed(function: Function | None, arguments: list[Node], env: Env, end: Env) -> None:
        """Give variables that a call was handed, and may have changed, what they hold then."""
        for position, node in enumerate(arguments):
            name = text_of(node).lstrip("&")
            if name not in env or node.type not in ("identifier", "pointer_expression"):
                continue
            if node.type == "pointer_expression" and not isinstance(env[name], Tensor):
                env[name] = UNKNOWN
            elif function is None:
                env[name] = env[name] if isinstance(env[name], (Tensor, Types, Chip)) else UNKNOWN
            elif position < len(function.parameters) and function.parameters[position][0] in function.changes:
                env[name] = end.get(function.parameters[position][0], UNKNOWN)

    def _logged(self, where: str, arguments: list[Node], env: Env, file: SourceFile) -> Refusal:
        """A refusal in the words of a log line: the type and the list that it prints, where they are known."""
        dtype, types = "", ()
        stack = arguments[1:]
        while stack:
            node = stack.pop()
            value = self.value(node, env, file) if node.type in ("identifier", "call_expression") else UNKNOWN
            if isinstance(value, Types):
                types = value.names
            elif isinstance(value, Dtype):
                dtype = dtype or value.name
            stack += node.named_children
        return Refusal(where, "", dtype, types if dtype and dtype not in types else (), file.path)

    def _checked(self, name: str, arguments: list[Node], env: Env, file: SourceFile) -> Value:
        where = self.names[0] if self.names else ""
        where = where.removesuffix("GetWorkspaceSize")
        if name.startswith(_NOT_SUPPORTED) and len(arguments) >= 2:
            tensor, types = self.value(arguments[0], env, file), self.value(arguments[1], env, file)
            known = isinstance(tensor, Tensor) and tensor.dtype and isinstance(types, Types)
            if known and tensor.dtype not in types.names:
                raise Refusal(where, text_of(arguments[0]), tensor.dtype, types.names, file.path)
            return UNKNOWN
        if name == "OP_LOGE":
            code = text_of(arguments[0]) if arguments else ""
            if code == "ACLNN_ERR_PARAM_INVALID":
                raise self._logged(where, arguments, env, file)
            return UNKNOWN
        checks = name.startswith(("CHECK_RET", "CHECK_COND", "TORCH_CHECK")) and arguments
        if checks and self.value(arguments[0], env, file) is False:
            raise Refusal(where, "", "", (), file.path)
        return UNKNOWN
