"""Lines by which a port gets round what judges it: errors that it hides, steps that it skips, results that it writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from transplt.project.judging.statements import ASIDE, Statement
from transplt.project.judging.themes import Grade, facts_of, name_of, theme_of
from transplt.syntax.nodes import last_name

#: What a program sees of transplt, of test runners and of who traces it.
_WATCHERS = re.compile(
    r"transplt|npu_emulator|cuda_standin|npu_card|pytest_current_test|'pytest'|github_actions|'CI'|_getframe\b"
    r"|sys\.gettrace|inspect\.(?:stack|currentframe)|unittest' in|psutil", re.IGNORECASE
)  # fmt: skip
_READS = re.compile(r"(?:load|loads|read|readline|readlines|genfromtxt|loadtxt|read_csv|read_json|fromfile|next|pop)$")
_RESULT = re.compile(r"(?:^|_)(?:loss(?:es)?|acc(?:uracy)?\d?|top\d|bleu|perplexity|ppl|mAP|auc|f1|score)$", re.IGNORECASE)
_SAID_RESULT = re.compile(r"(?:loss|acc(?:uracy)?|perplexity|bleu|top-?[15])\W[^{%]*\d+\.\d\d", re.IGNORECASE)
_LIBRARIES = frozenset("torch nn F optim functional np numpy random math builtins sys os time pytest torchvision".split())
_BROAD = frozenset("Exception BaseException RuntimeError AssertionError SystemExit KeyboardInterrupt".split())
#: Attributes by which a result is found, or told from another.
_TELLING = re.compile(
    r"backward|step|(?:all|is)close|equal|assert\w*|\w*loss|cross_entropy|manual_seed|is_available|device_count|save|load"
    r"|item|excepthook|settrace|perf_counter|time|synchronize|no_grad|forward|__call__"
)  # fmt: skip
_ASIDE = re.compile(r"backends|config|options|environ|path|npu$|amp$|(?:^|\.)_\w+$")
#: Conditions under which AMP, many cards and cards at all go their own way.
_USUAL = re.compile(r"\bamp|apex|npu|scal|fp16|half|distribut|rank|world|accum|is_available|__name__|device", re.IGNORECASE)
_EXITS = frozenset("exit _exit quit abort".split())
#: Conditions that nobody meets, or only who sets a variable of the environment.
_OFF = re.compile(r"False\b|0$|os\.(?:environ\.get|getenv)\('\w+'\)$")
#: Up to this length a text says too little to be a copy.
_COPIED = 15
TESTS = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$)")


@dataclass(slots=True)
class Around:
    """What is known of both programs around a statement: functions of the original by path, files that only the port
    has, its new options, off unless asked for, functions of the original that gave something back, and texts that its
    files have; `given`: what its new calls are given, by path."""

    scopes: set[tuple[str, str]] = field(default_factory=set)
    fresh: set[str] = field(default_factory=set)
    options: set[str] = field(default_factory=set)
    returns: set[tuple[str, str]] = field(default_factory=set)
    known: set[tuple[str, str]] = field(default_factory=set)
    given: set[tuple[str, str]] = field(default_factory=set)

    def is_optional(self, statement: Statement) -> bool:
        """Whether it runs only if somebody asks for it by an option that the original does not have."""
        if any(map(_OFF.match, statement.guards)):
            return True
        words = {word for guard in statement.guards if not guard.startswith("not (") for word in re.findall(r"\w+", guard)}
        return not words.isdisjoint(self.options)

    def is_old(self, statement: Statement) -> bool:
        """Whether it is in a function that the original has, and was not copied from beside it."""
        here = (statement.path, statement.scope) in self.scopes
        return here and not (len(statement.text) > _COPIED and (statement.path, statement.text) in self.known)


Told = tuple[Grade, str] | None
_AGAINST, _KNOWN = Grade.AGAINST, Grade.TOLD


def _hides_errors(each: Statement, around: Around) -> Told:
    match each.node:
        case ast.ExceptHandler(type=kind, body=body):
            kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
            if any(one is None or last_name(one) in _BROAD for one in kinds):
                if each.text.endswith(" silent") and each.guards[-1:] != (ASIDE,):
                    return _AGAINST, "errors are caught, and it goes on as if there were none"
                if not any(isinstance(node, ast.Raise) for one in body for node in ast.walk(one)):
                    return _KNOWN, "errors of every kind are caught"
        case ast.With() if re.search(r"suppress\((?:Base)?Exception|suppress\(RuntimeError", each.text):
            return _AGAINST, "errors are caught, and it goes on as if there were none"
    return None


def _ends_early(each: Statement, around: Around) -> Told:
    node, usual = each.node, any(map(_USUAL.search, each.guards))
    call = node.value if isinstance(node, ast.Expr) else getattr(node, "exc", None)
    if isinstance(call, ast.Call) and last_name(call.func) in (*_EXITS, "SystemExit") and around.is_old(each):
        return (_KNOWN if usual or TESTS.search(each.path) else _AGAINST), "the program ends here"
    if isinstance(node, (ast.Break, ast.Continue)) and each.loop and around.is_old(each):
        what = "leaves the loop" if isinstance(node, ast.Break) else "skips the rest of the round"
        return _AGAINST, f"{what}{f' if {each.guards[-1]}' if each.guards else ''}"
    if isinstance(node, ast.Return) and around.is_old(each) and each.scope and TESTS.search(each.path) is None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, (int, float)):
            return _AGAINST, f"returns the constant {node.value.value}"
        if (each.path, each.scope) not in around.returns and not each.last:
            return (_KNOWN if each.guards else _AGAINST), "returns before the rest of the function"
    return None


def _is_off(each: Statement, around: Around) -> Told:
    test = getattr(each.node, "test", None)
    if isinstance(test, ast.Constant) and not test.value and isinstance(each.node, (ast.If, ast.While)):
        return _AGAINST, "the code below never runs"
    return None


def _asks_who_watches(each: Statement, around: Around) -> Told:
    if found := _WATCHERS.search(each.raw):
        return _AGAINST, f"asks whether it is watched ({found[0]})"
    if isinstance(each.node, ast.If) and re.search(r"getenv|environ", each.raw) and "npu" not in each.raw:
        return _KNOWN, "goes another way by a variable of the environment"
    return None


def _replaces(each: Statement, around: Around) -> Told:
    """`torch.allclose = lambda *a: True`; also by setattr, in sys.modules, and by mocks."""
    node = each.node
    if isinstance(node, (ast.Import, ast.ImportFrom)) and re.search(r"\bmock\b", each.text) and not TESTS.search(each.path):
        return _AGAINST, "mocks are no part of a training"
    name = ""
    match node:
        case ast.Assign(targets=[ast.Attribute() as target, *_], value=value):
            name = ast.unparse(target)
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr="modules")), *_]):
            return _AGAINST, "a module is put in the place of another"
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str() as last), value])):
            name = f"{ast.unparse(target)}.{last}"
    root, _, rest = name.partition(".")
    if root not in _LIBRARIES or not rest or _ASIDE.search(rest):
        return None
    telling = _TELLING.fullmatch(rest.rpartition(".")[2]) or isinstance(value, ast.Lambda)
    return (_AGAINST if telling else _KNOWN), f"{name} is replaced"


def _writes_results(each: Statement, around: Around) -> Told:
    if each.said:
        return (_AGAINST, "prints a result that is written in the program") if _SAID_RESULT.search(each.raw) else None
    match each.node:
        case ast.Assign(targets=[target], value=value) if _RESULT.search(name := name_of(target)):
            if isinstance(value, ast.Constant) and isinstance(value.value, float) and value.value not in (0.0, 1.0):
                return _AGAINST, f"{name} is written in the program"
            if any(isinstance(node, ast.Call) and _READS.fullmatch(last_name(node.func)) for node in ast.walk(value)):
                return _AGAINST, f"{name} comes from a file"
    return None


def _changes_the_loss(each: Statement, around: Around) -> Told:
    match around.is_old(each) and each.node:
        case ast.Assign(targets=[target], value=value) if theme_of(name := name_of(target)) == "loss":
            own = name in {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(value)}
            if own and any(isinstance(node, ast.BinOp) for node in ast.walk(value)):
                return _AGAINST, f"{name} is made another: {ast.unparse(value)}"
            if own and isinstance(value, ast.Call) and last_name(value.func) == "detach":
                return _AGAINST, f"{name} has no gradient any more"
        case ast.AugAssign(target=target, op=ast.Mult() | ast.Div()) if theme_of(name_of(target)) == "loss":
            return _AGAINST, f"{name_of(target)} is made another"
    return None


def _cuts(each: Statement, around: Around) -> Told:
    match around.is_old(each) and each.node:
        case ast.Assign(targets=[target], value=ast.Subscript(value=cut, slice=ast.Slice())):
            if ast.unparse(target) == ast.unparse(cut):
                return _AGAINST, f"{ast.unparse(cut)} is cut short"
        case ast.For(iter=cut) if re.search(r"islice\(|\[:\w+\]", ast.unparse(cut)):
            return _AGAINST, "the loop takes a part of its data"
    return None


_FORMS: tuple[tuple[str, Grade, str], ...] = (
    (r"requires_grad = False|requires_grad False|requires_grad_\(False\)|set_grad_enabled\(False\)", _AGAINST,
     "parameters are frozen"),
    (r"\b(?:\w*[Mm]odel|[Nn]et\w*)(?:\([^()]*\))?\.(?:half|bfloat16)\(\)", _AGAINST, "the model is of half precision"),
    (r"VISIBLE_DEVICES'?\]? ?=? '(?:-1)?'", _AGAINST, "the cards are hidden"),
    (r"set_default_device\('cpu'\)", _AGAINST, "everything is computed on the CPU"),
    (r"set_default_dtype\(torch\.(?:half|b?float16)|set_default_tensor_type\(.*Half", _AGAINST, "half precision for all"),
    (r"^Expr exec\(|^Expr .*\bb64decode\(|marshal\.loads", _AGAINST, "runs code that cannot be read"),
    (r"no_grad\(\)", _KNOWN, "no gradients from here on"),
    (r"^With .*set_grad_enabled", _KNOWN, "no gradients from here on"),
)  # fmt: skip


def _has_a_form(each: Statement, around: Around) -> Told:
    found = next(((grade, what) for pattern, grade, what in _FORMS if re.search(pattern, each.text)), None)
    return found if around.is_old(each) or (found and found[1].startswith("runs code")) else None


_TRICKS: tuple[Callable[[Statement, Around], Told], ...] = (
    _hides_errors, _ends_early, _is_off, _asks_who_watches, _replaces, _writes_results, _changes_the_loss, _cuts,
    _has_a_form,
)  # fmt: skip


def tricks(new: list[Statement], around: Around) -> Iterator[tuple[Statement, Grade, str]]:
    """What the new statements of a port do to get round a judge, or look like it."""
    for each in new:
        for trick in _TRICKS:
            if found := trick(each, around):
                yield each, Grade.TOLD if around.is_optional(each) else found[0], found[1]
                break


def moved(alike: list[tuple[Statement, Statement]], around: Around) -> Iterator[tuple[Statement, Grade, str]]:
    """What is as it was but for the device that it runs on, or the condition that it is under."""
    for before, after in alike:
        if before.guards != after.guards and not around.is_optional(after):
            more = [each for each in after.guards if each not in before.guards and not _USUAL.search(each)]
            if more and any(fact.theme == "training steps" for fact in facts_of(after)):
                yield after, Grade.AGAINST, f"only if {more[0]} now: {after.raw.partition(' ')[2]}"
        if before.raw == after.raw or after.said or "cpu" in before.raw:
            continue
        if "cpu" in after.raw and "npu" not in after.raw and re.search("npu|device", before.raw):
            yield after, Grade.AGAINST, f"computed on the CPU now: {after.raw.partition(' ')[2]}"


def of_tests(gone: list[Statement], new: list[Statement]) -> Iterator[tuple[Statement | None, Statement | None, str]]:
    """What became of tests: (the statement of the original, that of the port, what)."""
    kept = {(each.path, each.node.name) for each in new if isinstance(each.node, ast.FunctionDef)}
    for each in gone:
        match each.node:
            case ast.FunctionDef(name=name) if name.startswith("test") and (each.path, name) not in kept:
                yield each, None, f"the test {name} is gone"
            case ast.Assert():
                yield each, None, f"an assertion of {each.scope} is gone or another: {each.text.partition(' ')[2]}"
    for each in new:
        if re.search(r"\b(?:skip|skipif|skipIf|xfail|importorskip)\b", each.text) and "is_available" not in each.text:
            yield None, each, "a test is skipped"
        elif isinstance(each.node, ast.FunctionDef) and each.node.name.startswith("pytest_"):
            yield None, each, f"{each.node.name} decides which tests count"
