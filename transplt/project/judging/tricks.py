"""Lines by which a port misleads the check of it: errors that it hides, steps that it skips, results it writes."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from transplt.project.judging.statements import ASIDE, SHORT, TABLE, TRAINS, Apart, Statement, asked_in, neutral
from transplt.project.judging.themes import Grade, defaults_of, name_of, options_of
from transplt.rules.tables import read_table
from transplt.syntax.nodes import last_name

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
#: Conditions under which nobody can go on, or on which cards go their own way.
_USUAL = re.compile(r"(?:\b|_)amp|apex|npu|scal|half|distribut|rank|world|accum|is_available|__name__|device", re.I)
_UNFIT = re.compile(r"\bnot\b|is None|== 0|!=|<|version|__name__")
#: Conditions that nobody meets, or only who sets a variable of the environment.
_OFF = re.compile(r"False\b|0$|os\.(?:environ\.get|getenv)\('\w+'\)$")
_USUAL_NUMBERS = (0, 1, 2, 60, 100, 1000, 1024, 3600)
_FRACTION = re.compile(r"\b\d+\.\d+")
#: Checks of where a program runs, and of the numbers that it computes.
_OF_PLACE = re.compile(r"npu|device|available|version|rank|world|dist|apex|amp\b|platform|path|exist|file", re.I)
_OF_NUMBERS = re.compile(r"loss|grad|finite|nan|inf\b|shape|size\(|ndim|dim\(|close|equal|torch\.|numel")
_SAYS_WHY = re.compile(r"xit\(f?['\"]")
_EXITS = frozenset("exit _exit quit abort SystemExit".split())
#: A tensor that is put on a card and then lost; a module, which is put there itself.
_UNKEPT = re.compile(r"Expr (\w+)\.(?:npu|to)\(")
_PUT = re.compile(r"\.(?:npu|to)\(")
_WHERE = re.compile(r"npu|device|prepare|accel|\.to\(\*\*", re.IGNORECASE)
#: What chooses a card, or asks whether there is one.
_CARD = re.compile(r"npu|accelerator|\bif\b|\bor\b|is_available|device_?type", re.IGNORECASE)
_THE_CPU = re.compile(r"torch\.device\('cpu'[^()]*\)|'cpu'")
_A_DEVICE = re.compile(r"torch\.device\([^()]*\)|'npu[^']*'|\b[\w.]*device\w*")
TAKEN = re.compile(r"(?:Expr |Assign ([\w.]+) (?=\1\.))([\w.]+)\.(?:cpu\(\)|to\('cpu'\))$")
_BACK = re.compile(r"\.to\((?!'cpu)|\.npu\(")
_NO_CARD = re.compile(r"cpu|None")
_BY_VARIABLE = re.compile(r"(?<!not )os\.(?:environ|getenv)")
#: What a training does, and what decides by the machine, its files and its clock whether it is done.
_STEPS = re.compile(r"\.step\(|backward\(|\btrain\w*\(")
_BY_CHANCE = re.compile(r"environ|getenv|is_?file\(|exists\(|\btime\(|perf_counter")
_GIVES_CPU = re.compile(r"Return (?:torch\.device\()?'cpu'\)?$")
_MODULE = re.compile(r"\b(\w+)(?:\(|\.(?:parameters|train|eval|state_dict|load_state_dict|apply|modules?)\b)")
#: A model or a loss that is given something in the memory of the host.
_CALLS_MODEL = re.compile(r"(?:model|net|criterion)\w*(?:\.cpu\(\))?\(.*\.cpu\(\)")
TESTS = re.compile(r"(?:^|/)(?:tests?/|test_[^/]*\.py$|[^/]*_test\.py$|conftest\.py$)")
_ASSERTS = re.compile(r"Assert |Expr (?:[\w.]*\.)?assert\w*\(")
SKIPPED = "a test is skipped"

Said = tuple[str, frozenset[str], set[str]]
_Places = set[tuple[str, str]]
_Told = tuple[Grade, str] | None
_AGAINST, _KNOWN = Grade.AGAINST, Grade.TOLD
_SILENT = (_AGAINST, "errors are caught and ignored")


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of both programs, by path: functions of the original, texts that its files have, and functions of
    it that give something back another way; new options that are off unless asked for; files that only the port has;
    its new names of many numbers; messages that it has no more, by path and words."""

    scopes: _Places
    texts: _Places
    returns: _Places
    options: dict[str, str]
    fresh: set[str]
    tables: set[str]
    said: dict[tuple[str, str], Said]

    def is_optional(self, statement: Statement) -> bool:
        """Whether it runs only if somebody asks for it by an option that the original does not have."""
        if any(map(_OFF.match, statement.guards)):
            return True
        asked = " ".join(guard for guard in statement.guards if not guard.startswith("not ("))
        return not self.options.keys().isdisjoint(re.findall(r"\w+", asked))

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
                    made = next((ast.unparse(one) for one in body if isinstance(one, (ast.Assign, ast.Return))), "")
                    sure = made and each.guards[-1:] != (ASIDE,) and around.is_old(each) and not made.endswith("None")
                    what = "errors of this kind are caught" + f", and `{made}` stands for what failed" * bool(made)
                    return (_AGAINST if sure else _KNOWN), what
        case ast.With() if re.search(r"suppress\((?:Base)?Exception|suppress\(RuntimeError", each.text):
            return _SILENT
    return None


def _exits(each: Statement, around: Around) -> _Told:
    call = each.node.value if isinstance(each.node, ast.Expr) else getattr(each.node, "exc", None)
    name = last_name(call.func if isinstance(call, ast.Call) else call) if call is not None else ""
    if name not in _EXITS or not around.is_old(each):
        return None
    unfit = any(map(_USUAL.search, each.guards)) and any(map(_UNFIT.search, each.guards))
    failed = each.guards and not each.loop and _SAYS_WHY.search(each.raw)  # the program fails, and says why
    return (_KNOWN if unfit or failed or TESTS.search(each.path) else _AGAINST), "the program ends here"


def _returns(each: Statement, around: Around) -> _Told:
    """A return in the middle of a function that had none there."""
    new = around.is_old(each) and each.scope and each.place not in around.returns
    always = each.loop or not each.guards
    early = isinstance(each.node, ast.Return) and new and always and not (each.last or TESTS.search(each.path))
    return (_AGAINST, "returns before the rest of the function") if early else None


def _replaces(each: Statement, around: Around) -> _Told:
    """`torch.allclose = lambda *a: True`; also by setattr, in sys.modules, and by mocks."""
    match each.node:
        case ast.Import() | ast.ImportFrom() if re.search(r"\bmock\b", each.text) and not TESTS.search(each.path):
            return _AGAINST, "mocks are no part of a training"
        case ast.Assign(targets=[ast.Attribute() as target, *_], value=value):
            name = ast.unparse(target)
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr="modules")), *_]):
            return _AGAINST, "a module replaces another one"
        case ast.Expr(ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str() as last), value])):
            name = f"{ast.unparse(target)}.{last}"
        case _:
            return None
    root, _, rest = name.partition(".")
    if root not in _LIBRARIES or not rest or (_SETTING.search(rest) and not isinstance(value, ast.Lambda)):
        return None
    if re.match(r"(?:torch_)?npu", last_name(value), re.IGNORECASE):  # a layer of NPUs for that of torch
        return Grade.OPEN, f"{name} is replaced by {ast.unparse(value)}"
    ours = root in ("torch", "nn", "F") and "npu" not in f"{rest} {ast.unparse(value)}"
    telling = ours or _TELLING.fullmatch(rest.rpartition(".")[2]) or isinstance(value, ast.Lambda)
    return (_AGAINST if telling else _KNOWN), f"{name} is replaced"


def _reads_results(each: Statement, around: Around) -> _Told:
    sets = any(_RESULT.search(name_of(target)) for target in getattr(each.node, "targets", ()))
    if around.tables and (sets or each.said or isinstance(each.node, ast.Return)) and around.is_old(each):
        used = (neutral(node.id) for node in ast.walk(each.node) if isinstance(node, ast.Name))
        names = sorted(around.tables.intersection(used))
        return (_AGAINST, f"a result comes from {names[0]}") if names else None
    return None


def _says_results(each: Statement, around: Around) -> _Told:
    if not each.said:
        return None
    words, names, numbers = said_in(each)
    _, before, known = around.said.get((each.path, words), ("", names, numbers))
    fewer = names - {"max", "min"} <= before and numbers - known and not _WHERE.search(words)
    wrong = _SAID_RESULT.search(each.raw) or fewer
    sure = _SAID_RESULT.search(each.raw) or any("." in number for number in numbers - known)
    return (_AGAINST if sure else Grade.OPEN, "prints a result that is written in the program") if wrong else None


def _writes_results(each: Statement, around: Around) -> _Told:
    for node in each.inside() if not each.said else ():
        for key, value in zip(getattr(node, "keys", ()), getattr(node, "values", ()), strict=False):
            name = str(getattr(key, "value", ""))
            if _RESULT.search(name) and isinstance(getattr(value, "value", None), float):
                return _AGAINST, f"{name} is written in the program"
    match each.node:
        case ast.Assign(targets=[target], value=value) if not each.said and _RESULT.search(name := name_of(target)):
            number = getattr(value, "value", None)
            first = name.strip("_").startswith("best") and not each.loop
            if isinstance(number, float) and number not in (0.0, 1.0) and not first:
                return _AGAINST, f"{name} is written in the program"
            while isinstance(value, ast.Subscript) or last_name(getattr(value, "func", None)) == "float":
                value = getattr(value, "value", None) or getattr(value, "args", [value])[0]
            if READS.fullmatch(last_name(getattr(value, "func", None))) and around.is_old(each):
                return _AGAINST, f"{name} comes from a file"
    return None


def _has_a_form(each: Statement, around: Around) -> _Told:
    for where, form, grade, what in read_table(TABLE)["forms"]:
        anywhere = where == "anywhere"
        found = re.search(form, each.text, re.IGNORECASE if anywhere else 0)
        if found and (anywhere or around.is_old(each)) and not (where == "always" and each.conditions):
            return Grade(grade), what
    return None


_TRICKS: tuple[Callable[[Statement, Around], _Told], ...] = (
    _hides_errors, _exits, _returns, _replaces, _reads_results, _says_results,
    _writes_results, _has_a_form,
)  # fmt: skip


def tricks(new: Iterable[Statement], around: Around) -> Iterator[tuple[Statement, Grade, str]]:
    """What the new statements of a port do to mislead the check, or looks like it."""
    new = [*new]
    loops = ((each.node, ast.unparse(each.node)) for each in new if isinstance(each.node, (ast.For, ast.While)))
    # There to tell people something: an end of it skips no work.
    tells = (loop for loop, text in loops if not TRAINS.search(text) and re.search(r"\b(?:print|info|write)\(", text))
    spared = {id(node) for loop in tells for node in ast.walk(loop)}
    for each in new:
        found = next(filter(None, (trick(each, around) for trick in _TRICKS)), None)
        if found and id(each.node) not in spared:
            yield each, Grade.TOLD if around.is_optional(each) else found[0], found[1]


def by_chance(alike: Iterable[tuple[Statement, Statement]]) -> Iterator[tuple[Statement, Grade, str]]:
    """Steps of a training that the machine, its files or its clock decide about, and did not."""
    for before, after in alike:
        asked = " ".join(after.conditions - before.conditions)
        if _STEPS.search(after.text) and _BY_CHANCE.search(asked) and not _BY_CHANCE.search(" ".join(before.guards)):
            yield after, _AGAINST, f"done only if {asked}"


def moved(
    alike: Iterable[tuple[Statement, Statement]], there: dict[str, str]
) -> Iterator[tuple[Statement, Grade, str]]:
    """What is as it was, but not on a card any more, or only now. `there`: what the port puts on a card, by file."""
    for before, after in alike:
        if before.raw == after.raw:
            continue
        what = after.raw.partition(" ")[2]
        if isinstance(after.node, ast.Assign) and _PUT.search(before.raw) and not _WHERE.search(after.raw):
            name = ast.unparse(after.parts[0])
            kept = rf"(?<![\w.]){re.escape(name)}\.(?:npu|to)\(|prepare\(.*\b{re.escape(name)}\b"
            value = ast.unparse(after.parts[-1])
            stands = ast.unparse(before.parts[0]) == name or ast.unparse(before.parts[-1]) == value
            if stands and not re.search(kept, there[after.path]):
                yield after, _AGAINST, f"{name} is no longer put on a card"
        if TESTS.search(after.path) and _PUT.search(after.raw) and not _PUT.search(before.raw):
            yield after, _AGAINST, f"the test computes this on a card, too: {what}"
        if not after.said and "cpu" not in before.raw and "npu" not in after.raw:
            on_card = re.search("npu|device", before.raw) or _CALLS_MODEL.search(after.raw)
            if on_card and "cpu" in after.raw and "map_location" not in after.raw:
                # One operation that the card lacks, whose result goes back to it, is an honest way round.
                back = _BACK.search(after.raw[after.raw.rindex("cpu") :])
                yield after, Grade.OPEN if back else _AGAINST, f"computed on the CPU now: {what}"


def on_the_host(both: Apart, port: Sequence[Statement]) -> Iterator[tuple[Statement | None, Statement, str]]:
    """Names and options of a device that is a card in the original, and the CPU in the port; a module that is taken
    from the card before a loop; a new function that gives the CPU, unless a variable of the environment is set."""
    before = (each for each in both.gone if _CARD.search(each.raw) or not _NO_CARD.search(each.raw))
    cards = {(each.path, each.scope, name): each for each in before for name in _devices(each)}
    given = {(each.place, _A_DEVICE.sub("_", each.raw)): each for each in both.gone if "cpu" not in each.raw}
    for each in (each for each in both.new if "cpu" in each.raw and not _CARD.search(each.raw)):
        found = [(one, name) for name in _devices(each) if (one := cards.get((*each.place, name)))]
        one = given.get((each.place, _THE_CPU.sub("_", each.raw)))
        if one and not found and "map_location" not in each.raw:
            found = [(one, "the device")]
        yield from ((one, each, f"{name} is the CPU now") for one, name in found)
        if (taken := TAKEN.match(each.raw)) and _stays_off(taken[2], each, port):
            yield None, each, f"{taken[2]} is on the CPU from here on"
    yield from _give_cpu(both.new)


def _stays_off(name: str, each: Statement, port: Sequence[Statement]) -> bool:
    """Whether what is taken from the card there is a module, and not put back before a loop."""
    last = name.removesuffix(".module").rpartition(".")[2]
    below = [one for one in port if one.place == each.place and one.line > each.line]
    back = re.compile(rf"(?<![\w.]){re.escape(name)}\.(?:npu\(|to\((?!'cpu))")
    module = any(last in _MODULE.findall(one.raw) for one in port if one.path == each.path)
    loops = any(isinstance(one.node, (ast.For, ast.While)) for one in below)
    return module and loops and not any(back.search(one.raw) for one in below)


def _give_cpu(new: Sequence[Statement]) -> Iterator[tuple[None, Statement, str]]:
    made = {f"{each.scope}.{each.node.name}".lstrip(".") for each in new if isinstance(each.node, ast.FunctionDef)}
    asked = {each.place for each in new if isinstance(each.node, ast.If) and not _BY_VARIABLE.search(each.text)}
    gives = [each for each in new if each.scope in made and _GIVES_CPU.match(each.text)]
    # Where no return gives another device, it matters not what is asked.
    asked &= {each.place for each in new if isinstance(each.node, ast.Return) and each not in gives}
    what = "returns the CPU even if there is a card"
    return ((None, each, f"{each.scope} {what}") for each in gives if each.place not in asked)


def _devices(each: Statement) -> list[str]:
    names = [name_of(target) for target in getattr(each.node, "targets", ())]
    return [name for name in (*names, *(name for name, _ in options_of(each)), *defaults_of(each)) if "device" in name]


def put_on_cards(port: Iterable[Statement]) -> dict[str, str]:
    """The statements that put something on a card, by file; also what is given to a function that puts it there."""
    there, inside = defaultdict[str, str](str), defaultdict[tuple[str, str], str](str)
    for each in (port := [*port]):
        if re.search(r"npu\(|\.to\(|prepare\(", each.raw):
            there[each.path] += f"{each.raw}\n"
            inside[each.place] += f"{each.raw}\n"
    puts: dict[str, list[int]] = {}
    for each in port:
        if isinstance(each.node, ast.FunctionDef) and (
            put := inside[each.path, f"{each.scope}.{each.node.name}".strip(".")]
        ):
            given = [neutral(one.arg) for one in each.node.args.args if one.arg != "self"]
            puts[each.node.name] = [n for n, one in enumerate(given) if re.search(rf"\b{one}\.(?:npu|to)\(", put)]
    for each in port:
        for call in (node for node in each.inside() if isinstance(node, ast.Call)):
            for one in [call.args[place] for place in puts.get(last_name(call.func), ()) if place < len(call.args)]:
                there[each.path] += f"{ast.unparse(one)}.npu()\n"
    return there


def _checked(each: Statement) -> str:
    """What decides whether the program fails there."""
    match each.node:
        case ast.Assert(test=test):
            return neutral(ast.unparse(test))
        case ast.Raise(exc=ast.expr()) if each.guards and each.guards[-1] != ASIDE:
            return asked_in(each.guards[-1])
    return ""


def _named(text: str) -> frozenset[str]:
    """The variables of an expression."""
    try:
        return frozenset(each.id for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Name))
    except SyntaxError:  # a part of a condition
        return frozenset(re.findall(r"(?<!\.)\b[A-Za-z_]\w*", text))


def said_in(each: Statement) -> Said:
    """A message: its words without what is put in, and the variables and numbers of that, but for those of a count and
    of a share."""
    values = [node.value for node in each.inside() if isinstance(node, ast.Constant)]
    words = " ".join(re.findall(r"[A-Za-z]{2,}", " ".join(map(str, values))))
    whole = {str(value) for value in values if type(value) is int and value not in _USUAL_NUMBERS}
    return words, _named(text := neutral(ast.unparse(each.node))), {*_FRACTION.findall(text)} | whole


def dropped(both: Apart, port: Iterable[Statement], there: dict[str, str]) -> Iterator[tuple[Statement, str]]:
    """What the original does and the port no longer, or without effect: pass an error on, put something on a card."""
    unkept = {(each.path, each.scope, found[1]) for each in both.new if (found := _UNKEPT.match(each.raw))}
    modules = {(each.path, name) for each in port for name in _MODULE.findall(each.raw)} if unkept else set()
    checks = {(each.path, _named(text)) for each in both.new if (text := _checked(each))}
    for each in both.gone:
        text = "" if TESTS.search(each.path) else _checked(each)
        counts = text and (each.loop or _OF_NUMBERS.search(text)) and not _OF_PLACE.search(text)
        if counts and (each.path, _named(text)) not in checks:
            yield each, f"the program no longer checks `{text}`"
        match each.node:
            case ast.Raise(exc=None):
                yield each, "an error is no longer raised"
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="cuda" | "to", value=owner))):
                name = re.escape(neutral(ast.unparse(owner)))
                put = rf"(?:\b{name}(?!\w)\S*|^Assign {name} .*)\.(?:npu\(|to\((?!memory_format|torch\.\w*float))"
                if not re.search(put, there[each.path], re.MULTILINE):
                    yield each, f"{ast.unparse(owner)} is no longer put on a card"
            case ast.Assign(targets=[ast.Name(id=name)]) if (each.path, each.scope, name) in unkept:
                if (each.path, name) not in modules:
                    yield each, f"{name} is not moved: the tensor on the card is a copy that nothing uses"


def of_tests(
    gone: Iterable[Statement], new: list[Statement]
) -> Iterator[tuple[Statement | None, Statement | None, str]]:
    """What became of tests: (the statement of the original, that of the port, what)."""
    kept = {(each.path, each.node.name) for each in new if isinstance(each.node, ast.FunctionDef)}
    for each in gone:
        match each.node:
            case ast.FunctionDef(name=name) if name.startswith("test") and (each.path, name) not in kept:
                yield each, None, f"the test {name} is gone"
            case ast.Assert() | ast.Expr(value=ast.Call(func=ast.Attribute() | ast.Name())) if _ASSERTS.match(
                each.text
            ):
                yield each, None, f"an assertion of {each.scope} is gone or another: {each.text.partition(' ')[2]}"
    for each in new:
        if re.search(r"\b(?:skip|skipif|skipIf|xfail|importorskip)\b", each.text) and "is_available" not in each.text:
            yield None, each, SKIPPED
        elif isinstance(each.node, ast.FunctionDef) and each.node.name.startswith("pytest_"):
            yield None, each, f"{each.node.name} decides which tests count"
