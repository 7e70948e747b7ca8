"""What a port changed beyond the device: findings with a theme, against it or only to be known."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from transplt.base.errors import shown
from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.render.cell import many
from transplt.project.judging.forms import of_constant
from transplt.project.judging.sides import IGNORES, Side, pairs
from transplt.project.judging.statements import Apart, Statement, compared, neutral
from transplt.project.judging.themes import OPTIONS, Change, Fact, Grade, changes, facts_of, name_of, theme_of
from transplt.project.judging.tricks import (
    READS,
    SKIPPED,
    TESTS,
    Around,
    dropped,
    moved,
    of_tests,
    put_on_cards,
    tricks,
    undone,
)
from transplt.project.judging.unexplained import Otherwise, Unexplained
from transplt.syntax.nodes import last_name

TRAINS_OTHERWISE, GETS_ROUND, ALSO = "NPU881", "NPU882", "NPU883"
_HELP = {
    TRAINS_OTHERWISE: "write it as the original has it, or say why the port may train otherwise",
    GETS_ROUND: "take it out: what a port has to show is that it works without it",
    ALSO: "",
}
_SETTINGS = re.compile(r"\.(?:ya?ml|json|toml|ini|cfg|sh|conf)$")
_SETTING = re.compile(r"""(?:^|[\s,{])(?:--)?["']?([A-Za-z][\w-]*)["']?\s*(?:[:=]|\s(?=-?\d))\s*["']?(-?[\w.+-]+)""")
_STARTS = re.compile(r"(?:^|/)(?:(?:site|user)customize\.py|[^/]+\.pth)$")
_SHADOWS = re.compile(r"(?:[^/]+/)?(?:torch|torch_npu|torchvision|numpy|triton|pytest|transplt)(?:\.py|/__init__\.py)$")
_HARNESS = re.compile(r"(?:^|/)(?:pytest\.ini|tox\.ini|noxfile\.py|\.coveragerc)$")
_OF_CARDS = re.compile(
    r"npu|device|dist|rank|world|node|backend|port|url|addr|amp|apex|fp16|loss_scale|opt_level|workers"
)
#: What measures time and memory, or tells people something.
_MEASURES = re.compile(
    r"time|fps|speed|log|print|meter|start|memory|profil|rank|world|device|seed|amp\b|scaler|add_argument|DataLoader",
    re.IGNORECASE,
)
#: What a port changes as a matter of course.
_OF_A_PORT = re.compile(rf"{_OF_CARDS.pattern}|scaler|print|log", re.IGNORECASE)
_OF_HOST = re.compile(rf"{_OF_CARDS.pattern}|path|dir\b|file|log|print|name|freq|version|/", re.IGNORECASE)
#: So many other statements, and such a share of all, are no port's.
_DRIFTED, _DRIFTED_SHARE = 40, 0.065
_OF_MANY = re.compile(r"ampler|shuffle|world|npu|batch")
#: A checkpoint that each process reads to its own card, and one that all read to the same.
_OWN_CARD = re.compile(r"\bload\(.*map_location=[^,)]*(?:\{|rank|lambda)")
_ONE_CARD = re.compile(r"map_location=(?:'npu:\d|torch\.device\('npu(?::\d'|', \d))|^(?!.*map_location=)")
#: The file that a statement loads.
_LOADED = re.compile(r"load\w*\(.*'([^']*)'")
_NAMED = 5
#: Themes of what is computed: in them a change is none where the same is done in another form.
_COMPUTES = frozenset(
    {"learning rate", "optimizer", "loss", "data", "batch size", "length", "seed", "model", "metric", "training steps"}
)
#: So many broken numbers under one name may be results.
_MANY = 3


@dataclass(slots=True)
class Differences:
    """What is different in a port: `against` it, and what is `also` changed; `unread`: files nobody can read;
    `successors`: files of the original that have another name, and which (`origin`: the other way); `apart`: the
    statements; `drift`: why the original is probably not what was ported."""

    against: list[Finding] = field(default_factory=list)
    also: list[Finding] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    successors: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    apart: Apart = field(default_factory=lambda: Apart([], [], []))
    drift: str = ""
    _said: set[tuple[str, int, str]] = field(default_factory=set)

    def sort(self) -> None:
        """Bring the findings into the order of the files."""
        for findings in (self.against, self.also):
            findings.sort(key=lambda each: (each.path, each.span.line))

    def say(self, grade: Grade, code: str, theme: str, what: str, at: tuple[str, int], before: str = "") -> None:
        """Add what is told of a place of the port; `before`: the place in the original."""
        message = f"{theme}: {what[:300]}" + (f" (original: {before})" if before else "")
        if grade is Grade.NOTHING or (*at, message) in self._said:
            return
        self._said.add((*at, message))
        against = grade is Grade.AGAINST
        code, level = (code, Level.MANUAL) if against else (ALSO, Level.INFO)
        effort = Effort.LOW if against else None
        span = Span(at[1], 1, at[1], 1, 0, 0)
        found = Finding(at[0], span, code, level, message, theme, effort, _HELP[code])
        (self.against if against else self.also).append(found)


@dataclass(slots=True)
class _Both:
    """Both programs as they are compared: `theirs` and `mine` are the statements of files that differ, those of the
    original under the paths that these have in the port; `lost` are files that it has not, `places` the lines of its
    functions, `origin` the former names of its files."""

    theirs: list[Statement]
    mine: list[Statement]
    lost: set[str]
    origin: dict[str, str]
    apart: Apart = field(init=False)
    places: dict[tuple[str, str], int] = field(init=False)
    open: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.apart = compared(self.theirs, self.mine)
        self.places = {(each.path, each.scope): each.line for each in reversed(self.mine)}

    @property
    def has_cards(self) -> bool:
        """Whether the port makes it a training on many cards."""
        return any("DistributedSampler" in each.text for each in self.apart.new)

    def is_open(self, change: Change) -> bool:
        """Whether something of a change is computed otherwise."""
        return any(fact is not None and id(fact.at) in self.open for fact in (change.before, change.after))

    def before(self, statement: Statement | None) -> str:
        """Where a statement of the original stands there."""
        if statement is None:
            return ""
        return f"{shown(self.origin.get(statement.path, statement.path))}:{statement.line}"

    def place(self, statement: Statement) -> tuple[str, int]:
        """Where in the port a statement of the original would stand: at the beginning of its function."""
        path, top = statement.path, self.places.get((statement.path, ""), 1)
        return path, self.places.get((path, statement.scope), top)


def differences(original: Side, port: Side) -> Differences:
    """Hold the files of a port against those of its original; nothing of them is run."""
    found = Differences()
    changed = [path for path in port.python if original.files.get(path) != port.files[path]]
    before = {path: original.statements(path) for path in original.python if path in changed or path not in port.files}
    after = {path: port.statements(path) for path in changed}
    found.successors = pairs(original, port, before, after)
    renamed = {path: found.successors.get(path, path) for path in before}
    theirs = [replace(each, path=renamed[path]) for path, told in before.items() for each in told]
    lost = {path for path in before if path not in port.files and path not in found.successors}
    origin = {new: old for old, new in found.successors.items()}
    both = _Both(theirs, [each for told in after.values() for each in told], lost, origin)
    around = _around(both, fresh := {*changed} - {*renamed.values()})
    found.drift = _drift(both)
    values = _values(original), _values(port)
    computed = Unexplained((both.theirs, both.mine), both.apart, around.is_optional, around.options, fresh, values)
    both.apart, both.open = computed.apart, computed.open
    around = _around(both, fresh)
    _facts(found, both, around)
    there = put_on_cards(both.mine)
    for each, grade, what in (*tricks(both.apart.new, around), *moved(both.apart.alike, around, there)):
        found.say(grade, GETS_ROUND, "judge", what, (each.path, each.line))
    _checkpoints(found, both)
    gone = (*dropped(both.apart, there), *undone(both.apart, both.mine))
    for each, what in gone:
        if (each.path, each.scope) in both.places:
            found.say(Grade.AGAINST, GETS_ROUND, "judge", what, both.place(each), both.before(each))
    _settings(found, original, port)
    _computed(found, both, computed.told)
    _tests(found, both, port, around.fresh)
    _files(found, original, port, both)
    found.unread = original.unread | port.unread
    found.origin, found.apart = origin, both.apart
    found.sort()
    return found


def _drift(both: _Both) -> str:
    """Why the original is probably another release than the one that was ported; empty where it is not.

    A port changes lines with devices, and adds some. Eight ports of ModelZoo held against the release that they were
    made from change up to 5 % of the other statements, against other releases from 8 % on.
    """
    common = [each for each in both.theirs if each.path not in both.lost]
    plain = [each for each in both.apart.gone if each.path not in both.lost and not _OF_A_PORT.search(each.raw)]
    if len(plain) < _DRIFTED or len(plain) < _DRIFTED_SHARE * len(common):
        return ""
    return (
        f"ORIGINAL is probably not what was ported: {len(plain)} of {many(len(common), 'statement')} of the files of "
        "both are others and name no device; name the commit that PORT was made from"
    )


def _checkpoints(found: Differences, both: _Both) -> None:
    for one, other in both.apart.alike:
        if _OWN_CARD.search(one.raw) and _ONE_CARD.search(other.raw):
            what, place = f"{_changed(one, other)}: all ranks read to one card", (other.path, other.line)
            found.say(Grade.AGAINST, TRAINS_OTHERWISE, "checkpoint", what, place, both.before(one))


def _changed(one: Statement, other: Statement) -> str:
    return f'changed from "{one.shown}" to "{other.shown}"'


def _computed(found: Differences, both: _Both, told: list[Otherwise]) -> None:
    """What is computed otherwise, and no theme has told of."""
    known = {(each.path, each.span.line) for each in found.against}
    has_cards = both.has_cards
    for each in told:
        before, after = each.before, each.after
        at = after or before
        assert at is not None
        place = (after.path, after.line) if after is not None else both.place(at)
        theme = next((theme for theme in _themes(at) if theme not in ("", "options", "device")), "computing")
        if (place in known and after is not None) or at.path in both.lost or (theme == "seed" and before is None):
            continue
        what = _changed(before, after) if before and after else f"{at.shown} is {'new' if after else 'gone'}"
        told_by = f"{what} ({each.what}) in {at.scope or 'the module'}"
        of_cards = has_cards and _OF_MANY.search(at.text) is not None
        grade = Grade.AGAINST if each.sure and not of_cards else Grade.TOLD
        found.say(grade, TRAINS_OTHERWISE, theme, told_by, place, both.before(before))


def _themes(at: Statement) -> Iterator[str]:
    """The themes of a statement."""
    yield from (fact.theme for fact in facts_of(at))
    if at.parts and isinstance(at.parts[0], ast.expr):
        yield theme_of(name_of(at.parts[0]))


def _values(side: Side) -> dict[str, set[str]]:
    """The values that files of settings hold, by their names."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, data in side.files.items():
        for name, value in _SETTING.findall(data.decode("utf-8", "replace")) if _SETTINGS.search(path) else ():
            try:
                found[name].add(of_constant(ast.literal_eval(value))[0])
            except (ValueError, SyntaxError):
                found[name].add(of_constant(value)[0])
    return found


def target(statement: Statement) -> tuple[str, ...]:
    """What a statement is for: the function, the kind, and the variable that it sets or the method that it calls."""
    first = statement.parts[0] if statement.parts else None
    name = ast.unparse(first) if first is not None else ""
    if isinstance(first, ast.Call):
        named = isinstance(getattr(first.func, "value", None), (ast.Name, ast.Attribute))
        last = last_name(first.func)
        name = ast.unparse(first.func) if named and last != "backward" else last
    return statement.path, statement.scope, type(statement.node).__name__, name


def _around(both: _Both, fresh: set[str]) -> Around:
    options: set[str] = set()
    given: dict[tuple[str, str], str] = {}
    for each in both.apart.new:
        for call in (node for node in each.inside() if isinstance(node, ast.Call)):
            values = (*call.args, *(word.value for word in call.keywords))
            given[each.path, ", ".join(sorted(map(ast.unparse, values)))] = last_name(call.func)
            if last_name(call.func) in OPTIONS:
                options.update(_off_unless_asked(call))
    scopes = {(each.path, each.scope) for each in both.theirs}
    returns = {(each.path, each.scope) for each in both.apart.gone if isinstance(each.node, ast.Return)}
    classes = {neutral(each.node.name) for each in both.apart.new if isinstance(each.node, ast.ClassDef)}
    tables = {name for each in both.apart.new if not each.scope for name in _of_a_table(each)}
    texts = {(each.path, each.text) for each in both.theirs}
    gone = both.apart.gone
    loads = {(each.path, each.scope, each.guards, file) for each in gone for file in _LOADED.findall(each.text)}
    tests: dict[tuple[str, str], set[str]] = defaultdict(set)
    for each in both.apart.new:
        if isinstance(each.node, (ast.If, ast.While)):
            tests[each.path, each.scope].add(ast.unparse(each.parts[0]).rstrip(")"))
    return Around(scopes, texts, returns, options, given, fresh, classes, tables, loads, tests)


def _of_a_table(each: Statement) -> Iterator[str]:
    """The name of numbers that a module holds, or reads as it is imported."""
    match each.node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            numbers = sum(isinstance(getattr(node, "value", None), float) for node in ast.walk(value))
            if numbers >= _MANY or (isinstance(value, ast.Call) and READS.fullmatch(last_name(value.func))):
                yield neutral(name)


def _off_unless_asked(call: ast.Call) -> Iterator[str]:
    """The names under which a program asks for an option that is off by default."""
    words = {each.arg: ast.unparse(each.value) for each in call.keywords}
    if (
        words.get("default", "None") in ("None", "False", "0", "0.0", "-1", "''", "[]")
        and words.get("action") != "'store_false'"
    ):
        for each in call.args:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value.lstrip("-").replace("-", "_")


def _facts(found: Differences, both: _Both, around: Around) -> None:
    gone = [fact for each in both.apart.gone for fact in facts_of(each)]
    new = [fact for each in both.apart.new for fact in facts_of(each)]
    # What the port does with many cards, or for precision, changes the same thing elsewhere.
    does = {"data", "batch size"} if both.has_cards else set()
    does |= {fact.theme for fact in new if fact.theme == "precision"}
    for change in changes(gone, new, around.scopes & {*both.places}):
        there, before = change.there.at, change.before
        place = both.place(there) if change.after is None else (there.path, there.line)
        grade = next(grade for applies, grade in _grades(change, both, around, does) if applies)
        if grade is Grade.AGAINST and change.theme in _COMPUTES and not both.is_open(change):
            grade = Grade.NOTHING
        found.say(
            grade, TRAINS_OTHERWISE, change.theme, change.sentence, place, both.before(before.at if before else None)
        )


def _grades(change: Change, both: _Both, around: Around, does: set[str]) -> Iterator[tuple[bool, Grade]]:
    """What a change comes to where it stands: the first that applies."""
    before, after, path = change.before, change.after, change.there.at.path
    alone = change.grade if change.grade is not Grade.AGAINST else Grade.TOLD
    if before is not None and after is None:
        of_cards = _OF_CARDS.search(neutral(before.key).replace("-", "_")) is not None
        yield path in both.lost, Grade.NOTHING
        yield change.theme == "options" and (of_cards or TESTS.search(path) is not None), Grade.NOTHING
        by = around.given.get((path, _given(before)), "") if before.words else ""
        yield change.theme == "optimizer" and by in around.classes, Grade.AGAINST
        yield by != "", Grade.TOLD
        yield change.theme == "precision" and change.theme in does, Grade.TOLD
    if after is not None:
        yield around.is_optional(after.at) or TESTS.search(path) is not None, alone
    if after is not None and before is None:
        yield path in around.fresh, Grade.NOTHING
        yield change.theme == "seed" and _is_sown_again(after.at, around), Grade.AGAINST
        yield not around.is_old(after.at), alone
    if after is not None and before is not None:
        differ = {name for name, _ in {*after.words} ^ {*before.words}}
        yield change.theme == "device" and after.value != "on the CPU", Grade.NOTHING
        yield differ == {"drop_last"}, Grade.TOLD
    if after is not None and change.theme in does - {"precision"}:
        yield _OF_MANY.search(after.shown) is not None, Grade.TOLD
    yield True, change.grade


def _is_sown_again(at: Statement, around: Around) -> bool:
    """Whether each round of a loop of the original draws the same numbers now."""
    same = not any(isinstance(each, ast.BinOp) for each in at.inside())
    return at.loop > 0 and same and isinstance(at.node, ast.Expr) and (at.path, at.scope) in around.scopes


def _given(fact: Fact) -> str:
    """What the call is given: another function that is given the same stands in its place."""
    return ", ".join(sorted(value for _, value in fact.words))


def _settings(found: Differences, original: Side, port: Side) -> None:
    """Numbers of a training in files that are not Python."""
    for path, data in port.files.items():
        was = original.files.get(path)
        if was is not None and was != data and _SETTINGS.search(path):
            lines = [neutral(each.decode("utf-8", "replace")).splitlines() for each in (was, data)]
            for change in changes(_set_in(path, *lines), _set_in(path, *lines[::-1]), ()):
                before = f"{shown(path)}:{change.before.at.line}" if change.before is not None else ""
                place = path, change.there.at.line
                found.say(change.grade, TRAINS_OTHERWISE, change.theme, change.sentence, place, before)


def _set_in(path: str, lines: list[str], others: list[str]) -> Iterator[Fact]:
    """What the lines of one file of settings set that the others do not have."""
    counts = Counter(map(str.strip, others))
    for number, line in enumerate(lines, 1):
        counts[line.strip()] -= 1
        if counts[line.strip()] < 0 and not line.lstrip().startswith(("#", "//")):
            at = Statement(line, line, ast.Pass(lineno=number), (), path, "")
            for name, value in _SETTING.findall(line):
                theme = theme_of(name)
                if not theme and not path.endswith(".sh") and not _OF_HOST.search(f"{name} {value}"):
                    theme = "settings"
                if theme:
                    yield Fact(theme, name, value, f"{name} = {value}", at, weak=True)


def _tests(found: Differences, both: _Both, port: Side, fresh: set[str]) -> None:
    gone, new = ([each for each in side if TESTS.search(each.path)] for side in (both.apart.gone, both.apart.new))
    for before, after, what in of_tests(gone, new):
        # Tests of what was left out as well are no tests of the port; new ones may be what they like.
        left_out = before is not None and before.path not in port.files and not all(map(TESTS.search, both.lost))
        own = after is not None and after.path in fresh and what == SKIPPED
        grade = Grade.TOLD if left_out or own else Grade.AGAINST
        place = (after.path, after.line) if after is not None else both.place(before) if before is not None else ("", 1)
        found.say(grade, GETS_ROUND, "tests", what, place, both.before(before))


def _files(found: Differences, original: Side, port: Side, both: _Both) -> None:
    """Files that a port has more or less, and those that decide how it is started and tested."""
    for path, data in port.files.items():
        was = original.files.get(path)
        if was == data:
            continue
        if len(ours := IGNORES.findall(data)) > len(IGNORES.findall(was or b"")):
            what = f"{many(len(ours), 'word')} for transplt, in comments or settings: they switch nothing off here"
            found.say(Grade.TOLD, GETS_ROUND, "judge", what, (path, 1))
        if _STARTS.search(path) and (not path.endswith(".pth") or b"import" in data):
            found.say(Grade.AGAINST, GETS_ROUND, "judge", "Python runs this file before any program", (path, 1))
        elif was is None and _SHADOWS.match(path):
            found.say(Grade.AGAINST, GETS_ROUND, "judge", "this takes the place of an installed package", (path, 1))
        elif _HARNESS.search(path) or (was is not None and _of_pytest(was, path) != _of_pytest(data, path)):
            grade = Grade.AGAINST if any(map(TESTS.search, original.files)) else Grade.TOLD
            found.say(grade, GETS_ROUND, "tests", "how the tests are run is another", (path, 1))
        elif was is None:
            what = f"renamed from {both.origin[path]}" if path in both.origin else "is new"
            found.say(Grade.TOLD, ALSO, "files", what, (path, 1))
    if left := sorted(both.lost):
        what = f"{many(len(left), 'Python file')} left out: {', '.join(left[:_NAMED])}"
        found.say(Grade.TOLD, ALSO, "files", what, (left[0], 1))


def _of_pytest(data: bytes, path: str) -> list[bytes]:
    """The settings of pytest in a file that may hold them."""
    holds = path.endswith(("pyproject.toml", "setup.cfg"))
    return re.findall(rb"(?ms)^\[tool[.:]pytest.*?(?=^\[|\Z)", data) if holds else []
