"""Lines by which a port misleads the check of it: errors that it hides, steps that it skips, results it writes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from transplt.project.judging.statements import ASIDE, SHORT, TABLE, Apart, Statement, neutral
from transplt.project.judging.themes import Grade, facts_of, is_plain, name_of, theme_of
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

#: What a program sees of transplt, of test runners and of who traces it.
_WATCHERS = re.compile(
    r"transplt|npu_emulator|cuda_standin|npu_card|pytest_current_test|'pytest'|github_actions|'CI'|_getframe\b"
    r"|sys\.gettrace|inspect\.(?:stack|currentframe)|unittest' in|psutil", re.IGNORECASE
)  # fmt: skip
READS = re.compile(r"(?:load|loads|read|readline|readlines|genfromtxt|loadtxt|read_csv|read_json|fromfile|next|pop)$")
_RESULT = re.compile(
    r"(?:^|_)(?:loss(?:es)?|acc(?:uracy)?\d?|top\d|bleu|perplexity|ppl|mAP|auc|f1|score)$|^best", re.IGNORECASE
)
_SAID_RESULT = re.compile(r"(?:loss|acc(?:uracy)?|perplexity|bleu|top-?[15])\W[^{%]*\d+\.\d\d", re.IGNORECASE)
_LIBRARIES = frozenset(
    "torch nn F optim functional np numpy random math builtins sys os time pytest torchvision".split()
)
_BROAD = frozenset("Exception BaseException RuntimeError AssertionError SystemExit KeyboardInterrupt".split())
#: Attributes by which a result is found, or told from another.
_TELLING = re.compile(
    r"backward|step|(?:all|is)close|equal|assert\w*|\w*loss|cross_entropy|manual_seed|is_available|device_count|save|load"
    r"|item|excepthook|settrace|perf_counter|time|synchronize|no_grad|forward|__call__"
)
_SETTING = re.compile(r"backends|config|options|environ|path|npu$|amp$|(?:^|\.)_\w+$")
#: Conditions under which AMP, many cards and cards at all go their own way, and those under which nobody can go on.
_USUAL = re.compile(
    r"(?:\b|_)amp|apex|npu|scal|fp16|half|distribut|rank|world|accum|is_available|__name__|device", re.IGNORECASE
)
_COUNTS = re.compile(r"^(?!.*accum).*[<>%]", re.IGNORECASE)
_UNFIT = re.compile(r"\bnot\b|is None|== 0|!=|<|version|__name__")
#: Conditions that nobody meets, or only who sets a variable of the environment.
_OFF = re.compile(r"False\b|0$|os\.(?:environ\.get|getenv)\('\w+'\)$")
_EXITS = frozenset("exit _exit quit abort SystemExit".split())
#: A tensor that is put on a card and then lost; a module, which is put there itself.
_UNKEPT = re.compile(r"Expr (\w+)\.(?:npu|to)\(")
_PUT = re.compile(r"\.(?:npu|to)\(")
_WHERE = re.compile(r"npu|device|prepare|accel", re.IGNORECASE)
_MODULE = re.compile(r"\b(\w+)(?:\(|\.(?:parameters|train|eval|state_dict|load_state_dict|apply|modules?)\b)")
#: Parts of a training that are made by a call.
_MADE = re.compile(r"ema\b|sched|mixup|optim|criterion|augment|clip")
#: A model or a loss that is given something in the memory of the host.
_CALLS_MODEL = re.compile(r"(?:model|net|criterion)\w*(?:\.cpu\(\))?\(.*\.cpu\(\)")
TESTS = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$)")
SKIPPED = "a test is skipped"

_Places = set[tuple[str, str]]
_Told = tuple[Grade, str] | None
_AGAINST, _KNOWN = Grade.AGAINST, Grade.TOLD
_SILENT = (_AGAINST, "errors are caught, and it goes on as if there were none")


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of both programs, by path: functions of the original, texts that its files have, and functions of
    it that give something back another way; new options that are off unless asked for; what new calls are given, and
    the last of them; files that only the port has; its new classes; its new names of many numbers; what statements
    that are gone load, by path, function and guards; new conditions, by path and function."""

    scopes: _Places
    texts: _Places
    returns: _Places
    options: set[str]
    given: dict[tuple[str, str], str]
    fresh: set[str]
    classes: set[str]
    tables: set[str]
    loads: set[tuple[str, str, tuple[str, ...], str]]
    tests: dict[tuple[str, str], set[str]]

    def is_optional(self, statement: Statement) -> bool:
        """Whether it runs only if somebody asks for it by an option that the original does not have."""
        if any(map(_OFF.match, statement.guards)):
            return True
        asked = " ".join(guard for guard in statement.guards if not guard.startswith("not ("))
        return not self.options.isdisjoint(re.findall(r"\w+", asked))

    def is_old(self, statement: Statement) -> bool:
        """Whether it is in a function that the original has, and was not copied from beside it."""
        here = (statement.path, statement.scope) in self.scopes
        return here and not (len(statement.text) > SHORT and (statement.path, statement.text) in self.texts)


def _hides_errors(each: Statement, around: Around) -> _Told:
    match each.node:
        case ast.ExceptHandler(type=kind, body=body):
            kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
            if any(one is None or last_name(one) in _BROAD for one in kinds):
                if each.text.endswith(" silent") and each.guards[-1:] != (ASIDE,):
                    return _SILENT
                if not any(isinstance(node, ast.Raise) for one in body for node in ast.walk(one)):
                    return _KNOWN, "errors of every kind are caught"
        case ast.With() if re.search(r"suppress\((?:Base)?Exception|suppress\(RuntimeError", each.text):
            return _SILENT
    return None


def _exits(each: Statement, around: Around) -> _Told:
    call = each.node.value if isinstance(each.node, ast.Expr) else getattr(each.node, "exc", None)
    name = last_name(call.func if isinstance(call, ast.Call) else call) if call is not None else ""
    if name not in _EXITS or not around.is_old(each):
        return None
    unfit = any(map(_USUAL.search, each.guards)) and any(map(_UNFIT.search, each.guards))
    return (_KNOWN if unfit or TESTS.search(each.path) else _AGAINST), "the program ends here"


def _leaves_a_loop(each: Statement, around: Around) -> _Told:
    if not (isinstance(each.node, (ast.Break, ast.Continue)) and each.loop and around.is_old(each)):
        return None
    what = "leaves the loop" if isinstance(each.node, ast.Break) else "skips the rest of the round"
    return _AGAINST, f"{what}{f' if {each.guards[-1]}' if each.guards else ''}"


def _returns(each: Statement, around: Around) -> _Told:
    if not (isinstance(each.node, ast.Return) and around.is_old(each) and each.scope and not TESTS.search(each.path)):
        return None
    value = each.node.value
    if value is not None and is_plain(value) and re.search(r"\d|True|False", ast.unparse(value)):
        return _AGAINST, f"returns the constant {ast.unparse(value)}"
    if re.search(r"^Return (?:torch\.device\()?'?cpu", each.raw):
        return _AGAINST, "gives the CPU in the place of a card"
    if (each.path, each.scope) in around.returns or each.last:
        return None
    return (_KNOWN if each.guards else _AGAINST), "returns before the rest of the function"


def _is_off(each: Statement, around: Around) -> _Told:
    test = getattr(each.node, "test", None)
    off = isinstance(test, ast.Constant) and not test.value and isinstance(each.node, (ast.If, ast.While))
    return (_AGAINST, "the code below never runs") if off else None


def _asks_who_watches(each: Statement, around: Around) -> _Told:
    if found := _WATCHERS.search(each.raw):
        return _AGAINST, f"asks whether it is watched ({found[0]})"
    asks = isinstance(each.node, ast.If) and re.search(r"getenv|environ", each.raw) and "npu" not in each.raw
    return (_KNOWN, "goes another way by a variable of the environment") if asks else None


def _replaces(each: Statement, around: Around) -> _Told:
    """`torch.allclose = lambda *a: True`; also by setattr, in sys.modules, and by mocks."""
    match each.node:
        case ast.Import() | ast.ImportFrom() if re.search(r"\bmock\b", each.text) and not TESTS.search(each.path):
            return _AGAINST, "mocks are no part of a training"
        case ast.Assign(targets=[ast.Attribute() as target, *_], value=value):
            name = ast.unparse(target)
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr="modules")), *_]):
            return _AGAINST, "a module is put in the place of another"
        case ast.Expr(ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str() as last), value])):
            name = f"{ast.unparse(target)}.{last}"
        case _:
            return None
    root, _, rest = name.partition(".")
    if root not in _LIBRARIES or not rest or (_SETTING.search(rest) and not isinstance(value, ast.Lambda)):
        return None
    ours = root in ("torch", "nn", "F") and "npu" not in f"{rest} {ast.unparse(value)}"
    telling = ours or _TELLING.fullmatch(rest.rpartition(".")[2]) or isinstance(value, ast.Lambda)
    return (_AGAINST if telling else _KNOWN), f"{name} is replaced"


def _reads_results(each: Statement, around: Around) -> _Told:
    sets = any(_RESULT.search(name_of(target)) for target in getattr(each.node, "targets", ()))
    if around.tables and (sets or each.said or isinstance(each.node, ast.Return)) and around.is_old(each):
        names = sorted(around.tables.intersection(node.id for node in each.inside() if isinstance(node, ast.Name)))
        return (_AGAINST, f"a result comes from {names[0]}") if names else None
    return None


def _writes_results(each: Statement, around: Around) -> _Told:
    if each.said:
        return (_AGAINST, "prints a result that is written in the program") if _SAID_RESULT.search(each.raw) else None
    for node in each.inside():
        for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
            name = str(getattr(key, "value", ""))
            if _RESULT.search(name) and isinstance(getattr(value, "value", None), float):
                return _AGAINST, f"{name} is written in the program"
    match each.node:
        case ast.Assign(targets=[target], value=value) if _RESULT.search(name := name_of(target)):
            number = getattr(value, "value", None)
            if isinstance(number, float) and number not in (0.0, 1.0) and (each.loop or not name.startswith("best")):
                return _AGAINST, f"{name} is written in the program"
            reads = around.is_old(each) and ast.walk(value)
            if any(isinstance(node, ast.Call) and READS.fullmatch(last_name(node.func)) for node in reads or ()):
                return _AGAINST, f"{name} comes from a file"
    return None


def _changes_the_loss(each: Statement, around: Around) -> _Told:
    match around.is_old(each) and each.node:
        case ast.Assign(targets=[target], value=value) if theme_of(name := name_of(target)) == "loss":
            nodes = [*ast.walk(value)]
            if name not in {getattr(node, "id", getattr(node, "attr", "")) for node in nodes}:
                return None
            if any(isinstance(node, ast.BinOp) for node in nodes):
                return _AGAINST, f"{name} is made another: {ast.unparse(value)}"
            if any(isinstance(node, ast.Attribute) and node.attr == "detach" for node in nodes):
                return _AGAINST, f"{name} has no gradient any more"
        case ast.AugAssign(target=target, op=ast.Mult() | ast.Div()) if theme_of(name_of(target)) == "loss":
            return _AGAINST, f"{name_of(target)} is made another"
    return None


def _cuts(each: Statement, around: Around) -> _Told:
    match around.is_old(each) and each.node:
        case ast.Assign(targets=[target], value=ast.Subscript(value=cut, slice=ast.Slice())):
            if ast.unparse(target) in {ast.unparse(node) for node in ast.walk(cut) if isinstance(node, ast.expr)}:
                return _AGAINST, f"{ast.unparse(cut)} is cut short"
        case ast.For(iter=cut) if re.search(r"islice\(|\[:\w+\]", ast.unparse(cut)):
            return _AGAINST, "the loop takes a part of its data"
    return None


def _has_a_form(each: Statement, around: Around) -> _Told:
    found = None
    for form, grade, what in read_table(TABLE)["forms"]:
        match = re.search(form, each.text)
        if match and not (match.lastindex and (each.path, each.scope, each.guards, match[1]) in around.loads):
            found = Grade(grade), what
            break
    return found if around.is_old(each) or (found and found[1].startswith("runs code")) else None


_TRICKS: tuple[Callable[[Statement, Around], _Told], ...] = (
    _hides_errors, _exits, _leaves_a_loop, _returns, _is_off, _asks_who_watches, _replaces, _reads_results,
    _writes_results, _changes_the_loss, _cuts, _has_a_form,
)  # fmt: skip


def tricks(new: Iterable[Statement], around: Around) -> Iterator[tuple[Statement, Grade, str]]:
    """What the new statements of a port do to mislead the check, or looks like it."""
    for each in new:
        if found := next(filter(None, (trick(each, around) for trick in _TRICKS)), None):
            yield each, Grade.TOLD if around.is_optional(each) else found[0], found[1]


def moved(
    alike: list[tuple[Statement, Statement]], around: Around, there: dict[str, str]
) -> Iterator[tuple[Statement, Grade, str]]:
    """What is as it was but for the device that it runs on, or the condition that it is under. `there`: what the port
    puts on a card, by file."""
    for before, after in alike:
        what = after.raw.partition(" ")[2]
        for said in (*_under_more(before, after, around), *_elsewhere(before, after, there[after.path])):
            yield after, _AGAINST, said + (what if said.endswith(": ") else "")


def _under_more(before: Statement, after: Statement, around: Around) -> Iterator[str]:
    """What is done under one of the new conditions of a port, and is a step of the training."""
    if before.guards == after.guards or around.is_optional(after):
        return
    new = around.tests.get((after.path, after.scope), set())
    more = [
        each for each in after.guards if each not in before.guards and each.removeprefix("not (").rstrip(")") in new
    ]
    more = [each for each in more if not _USUAL.search(each) or _COUNTS.search(each)]
    if more and any(fact.theme == "training steps" for fact in facts_of(after)):
        yield f"only if {more[0]} now: "


def _elsewhere(before: Statement, after: Statement, put: str) -> Iterator[str]:
    """What is not on a card any more, or is only now."""
    if isinstance(after.node, ast.Assign) and _PUT.search(before.raw) and not _WHERE.search(after.raw):
        name = ast.unparse(after.parts[0])
        if not re.search(rf"(?<![\w.]){re.escape(name)}\.(?:npu|to)\(|prepare\(.*\b{re.escape(name)}\b", put):
            yield f"{name} is not put on a card any more"
    if TESTS.search(after.path) and _PUT.search(after.raw) and not _PUT.search(before.raw):
        yield "the test computes this on a card, too: "
    if before.raw != after.raw and not after.said and "cpu" not in before.raw and "npu" not in after.raw:
        on_card = re.search("npu|device", before.raw) or _CALLS_MODEL.search(after.raw)
        if on_card and "cpu" in after.raw and "map_location" not in after.raw:
            yield "computed on the CPU now: "


def put_on_cards(port: Iterable[Statement]) -> dict[str, str]:
    """The statements that put something on a card, by file."""
    there: dict[str, str] = defaultdict(str)
    for each in port:
        if re.search(r"npu\(|\.to\(|prepare\(", each.raw):
            there[each.path] += f"{each.raw}\n"
    return there


def dropped(both: Apart, there: dict[str, str]) -> Iterator[tuple[Statement, str]]:
    """What the original does and the port no longer: put something on a card, pass an error on, make a part."""
    empty = {
        (each.path, each.scope, ast.unparse(target))
        for each in both.new for target in getattr(each.node, "targets", ())
        if isinstance(getattr(each.node, "value", None), ast.Constant)
    }  # fmt: skip
    for each in both.gone:
        match each.node:
            case ast.Raise(exc=None):
                yield each, "an error is not passed on any more"
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="cuda" | "to", value=owner))):
                name = re.escape(neutral(ast.unparse(owner)))
                if not re.search(rf"\b{name}\b\S*\.(?:npu\(|to\((?!memory_format|torch\.\w*float))", there[each.path]):
                    yield each, f"{ast.unparse(owner)} is not put on a card any more"
            case ast.Assign(targets=[target], value=ast.Call() | ast.IfExp()):
                name = ast.unparse(target)
                if (each.path, each.scope, name) in empty and _MADE.search(name):
                    yield each, f"{name} is a constant now"


def undone(both: Apart, port: Iterable[Statement]) -> Iterator[tuple[Statement, str]]:
    """What the port still says, but has no effect, or what gave parameters their first values."""
    unkept = {(each.path, each.scope, found[1]) for each in both.new if (found := _UNKEPT.match(each.raw))}
    modules = {(each.path, name) for each in port for name in _MODULE.findall(each.raw)} if unkept else set()
    for each in both.gone:
        match each.node:
            case ast.Assign(targets=[ast.Name(id=name)]) if (each.path, each.scope, name) in unkept:
                if (each.path, name) not in modules:
                    yield each, f"{name} stays where it is: what is put on a card is another tensor, which nobody keeps"
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="apply", value=owner), args=[function])):
                if "init" in ast.unparse(function):
                    yield each, f"{ast.unparse(owner)} is not initialised by {ast.unparse(function)} any more"


def of_tests(
    gone: Iterable[Statement], new: list[Statement]
) -> Iterator[tuple[Statement | None, Statement | None, str]]:
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
            yield None, each, SKIPPED
        elif isinstance(each.node, ast.FunctionDef) and each.node.name.startswith("pytest_"):
            yield None, each, f"{each.node.name} decides which tests count"
