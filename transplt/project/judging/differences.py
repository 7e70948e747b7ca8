"""What a port changed beyond the device: findings with a theme, against it or only to be known."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from transplt.base.errors import shown
from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.render.cell import many
from transplt.project.judging.certain import GRAVEST, Certain
from transplt.project.judging.forms import of_constant
from transplt.project.judging.otherwise import Otherwise
from transplt.project.judging.settled import Reached
from transplt.project.judging.sides import IGNORES, Side
from transplt.project.judging.statements import Apart, Statement, compared, neutral, unlike, without_leaving
from transplt.project.judging.themes import Grade, options_of, theme_at, theme_of
from transplt.project.judging.tricks import (
    READS,
    SKIPPED,
    TESTS,
    Around,
    by_chance,
    dropped,
    moved,
    of_tests,
    on_the_host,
    put_on_cards,
    said_in,
    tricks,
)
from transplt.project.judging.unexplained import Unexplained
from transplt.proof.prove.branches import twins
from transplt.syntax.nodes import last_name

TRAINS_OTHERWISE, GETS_ROUND, ALSO = "NPU881", "NPU882", "NPU883"
_HELP = {
    TRAINS_OTHERWISE: "write it as in the original, or explain why the port may train differently",
    GETS_ROUND: "remove it: the port must work without it",
    ALSO: "",
}
_SETTINGS = re.compile(r"\.(?:ya?ml|json|toml|ini|cfg|sh|conf|txt)$")
_SETTING = re.compile(r"""(?:^|[\s,{])-{0,2}["']?([A-Za-z][\w-]*)["']?\s*(?:[:=]|\s(?=-?\d))\s*["']?(-?[\w.+-]+)""")
#: What starts a program in Python, and what a line gives it.
_STARTED = re.compile(r"[\w/.-]+\.py\b|\btorchrun\b|\bpython3?\b(?!.*\.py)")
_FLAG = re.compile(r"""(?<!\S)(--?)([A-Za-z][\w-]*)(?:[ =]+["']?((?:-(?=[\d.]))?[\w.$][^\s"']*))?""")
#: What only shows, measures or stores something, or puts other functions into packages, where it is added or left out.
_ASIDE = re.compile(
    r"\b(?:plt|wandb|pyplot|ax|visdom|vis|writer|logger|mlflow|tb)\.|profil|patcher|\btimer?\b|[=!]= 'prof'"
    r"|is_available"
)
_STARTS = re.compile(r"(?:^|/)(?:(?:site|user)customize\.py|[^/]+\.pth)$")
#: Commands that test, whose failure is not seen.
_UNSEEN = re.compile(rb"(?m)^.*test.*\|\| *(?:true|echo|:|exit 0).*$|^.*(?:continue-on-error|allow_failure): *true.*$")
_SHADOWS = re.compile(r"(?:[^/]+/)?(?:torch|torch_npu|torchvision|numpy|triton|pytest|transplt)(?:\.py|/__init__\.py)$")
_HARNESS = re.compile(r"(?:^|/)(?:pytest\.ini|tox\.ini|noxfile\.py|\.coveragerc)$")
_OF_CARDS = re.compile(
    r"npu|cudnn|device|dist|rank|world|node|backend|port|url|addr|amp|apex|fp16|loss_scale|opt_level|workers"
)
_ON_CARD = re.compile(r"(?:use_|with_)?npu")
_OF_HOST = re.compile(rf"{_OF_CARDS.pattern}|path|dir\b|file|log|print|name|freq|version|threads|/", re.IGNORECASE)
#: Fewer statements are no program that could be another one.
_DRIFTED = 40
_OF_MANY = re.compile(r"ampler|shuffle|world|npu|batch")
#: A checkpoint that each process reads to its own card, and one that all read to the same.
_OWN_CARD = re.compile(r"\bload\(.*map_location=[^,)]*(?:\{|rank|lambda)")
_ONE_CARD = re.compile(r"map_location=(?:'npu:\d|torch\.device\('npu(?::\d'|', \d))|^(?!.*map_location=)")
#: Functions that are called for each part of the data.
_EACH_ROUND = re.compile(r"(?:__getitem__|__iter__|forward|collate\w*|\w*step)$")
_TEXTS = (".md", ".rst", ".txt", ".ipynb", ".csv", ".json")
#: So many files are named.
_NAMED = 5
#: Defaults of an option that is off.
_OFF = ("None", "False", "0", "0.0", "-1", "''", "[]", "1")
#: An option, and its default.
_Option = tuple[Statement, str]
_SetIn = dict[str, list[tuple[str, int]]]
#: So many broken numbers under one name may be results.
_MANY = 3


@dataclass(slots=True)
class Differences:
    """What is different in a port: `against` it, and what is `also` changed; `unread`: files nobody can read;
    `successors`: files of the original that have another name, and which (`origin`: the other way); `apart`: the
    statements; `drift`: why the original is probably not what was ported; `reached`: which lines have to run before a
    run says something of what is `open`."""

    against: list[Finding] = field(default_factory=list)
    open: list[Finding] = field(default_factory=list)
    also: list[Finding] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    successors: dict[str, str] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)
    apart: Apart = field(default_factory=lambda: Apart([], [], []))
    drift: str = ""
    reached: Reached = field(default_factory=Reached)
    _said: set[tuple[str, int, str]] = field(default_factory=set)

    def sort(self) -> None:
        """Bring the findings into the order of the files."""
        if self.drift:
            self.open += (replace(each, level=Level.INFO) for each in self.against)
            self.against.clear()
        for findings in (self.against, self.also):
            findings.sort(key=lambda each: (each.path, each.span.line, each.message))
        grave = dict(zip(GRAVEST, range(len(GRAVEST)), strict=True))
        self.open.sort(key=lambda each: grave.get(each.api, len(grave)))

    def say(
        self, grade: Grade, code: str, theme: str, what: str, at: tuple[str, int], before: str = "",
        told: Otherwise | None = None,
    ) -> None:  # fmt: skip
        """Add what is told of a place of the port; `before`: the place in the original; `told`: the statements of both
        that it is about."""
        message = f"{theme}: {what[:400]}" + (f" (original: {before})" if before else "")
        if (*at, message) in self._said:
            return
        self._said.add((*at, message))
        against = grade is Grade.AGAINST
        code, level = ALSO if grade is Grade.TOLD else code, Level.MANUAL if against else Level.INFO
        effort = Effort.LOW if against else None
        span = Span(at[1], 1, at[1], 1, 0, 0)
        found = Finding(at[0], span, code, level, message, theme, effort, _HELP[code])
        {Grade.AGAINST: self.against, Grade.OPEN: self.open, Grade.TOLD: self.also}[grade].append(found)
        if told is not None:
            self.reached.add(found, told, self.origin)


@dataclass(slots=True)
class _Both:
    """Both programs as they are compared: `theirs` and `mine` are the statements of files that differ, those of the
    original under the paths that these have in the port; `lost` are files that it has not, `places` the lines of its
    functions, `stood` where something of the original would be, `origin` the former names of its files."""

    theirs: list[Statement]
    mine: list[Statement]
    lost: set[str]
    origin: dict[str, str]
    apart: Apart = field(init=False)
    places: dict[tuple[str, str], int] = field(init=False)
    stood: set[tuple[str, int]] = field(default_factory=set)
    _near: dict[tuple[str, str], list[tuple[int, int]]] = field(init=False)

    def __post_init__(self) -> None:
        self.apart = without_leaving(compared(*unlike(self.theirs, self.mine)), self.theirs, self.mine)
        self.places = {each.place: each.line for each in reversed(self.mine)}
        self._near = defaultdict(list)
        for one, other in sorted(self.apart.alike, key=lambda pair: pair[0].line):
            if one.place == other.place:
                self._near[one.place].append((one.line, other.line))

    @property
    def fresh(self) -> set[str]:
        """Files that only the port has."""
        return {each.path for each in self.mine} - {each.path for each in self.theirs}

    def before(self, statement: Statement | None) -> str:
        """Where a statement of the original stands there."""
        if statement is None:
            return ""
        return f"{shown(self.origin.get(statement.path, statement.path))}:{statement.line}"

    def place(self, statement: Statement) -> tuple[str, int]:
        """Where in the port a statement of the original would stand: behind the one before it, else where its function
        begins. `stood` are all such places."""
        path, top = statement.path, self.places.get((statement.path, ""), 1)
        before = [mine for theirs, mine in self._near[statement.place] if theirs < statement.line]
        place = path, before[-1] if before else self.places.get((path, statement.scope), top)
        self.stood.add(place)
        return place


def differences(original: Side, port: Side) -> Differences:
    """Hold the files of a port against those of its original; nothing of them is run."""
    found = Differences()
    changed = [path for path in port.python if original.files.get(path) != port.files[path]]
    before = {path: original.statements(path) for path in original.python if path in changed or path not in port.files}
    after = {path: port.statements(path) for path in changed}
    found.successors = twins(before, after, lambda told: (each.text for each in told))
    renamed = {path: found.successors.get(path, path) for path in before}
    theirs = [replace(each, path=renamed[path]) for path, told in before.items() for each in told]
    lost = {path for path in before if path not in port.files and path not in found.successors}
    found.origin = origin = {new: old for old, new in found.successors.items()}
    both = _Both(theirs, [each for told in after.values() for each in told], lost, origin)
    around = _around(both, fresh := {*changed} - {*renamed.values()})
    found.drift = _drift(original, port, both)
    values, sides = (_values(original), _values(port)), (both.theirs, both.mine)
    computed = Unexplained(sides, both.apart, around.is_optional, around.options, fresh, values)
    both.apart = computed.apart
    kept = b"\n".join(port.files[path] for path in {*port.python} - {*changed}).decode("utf-8", "replace")
    certain = Certain(computed.theirs, computed.mine, kept)
    _options(found, both)
    _misleads(found, both, around)
    _settings(found, original, port)
    _computed(found, both, computed.told, around, certain)
    _tests(found, both, port, around.fresh)
    _files(found, original, port, both)
    for path in port.unread.keys() & original.files.keys() - original.unread.keys():
        found.say(Grade.AGAINST, GETS_ROUND, "judge", f"this file cannot be read: {port.unread[path]}", (path, 1))
    found.unread = original.unread | port.unread
    found.apart = both.apart
    found.sort()
    return found


def _drift(original: Side, port: Side, both: _Both) -> str:
    """Why the original is probably another program than the one that was ported; empty where it is not.

    Where one or two files were rewritten, the others are as they were; another program has neither the files nor the
    functions. Such a file or function has no twin: less than half of its statements are anywhere in the port.
    """
    same = [path for path in original.python if original.files[path] == port.files.get(path)]
    gone = {id(each) for each in both.apart.gone}
    files, functions = defaultdict[str, list[bool]](list), defaultdict[tuple[str, str], list[bool]](list)
    for each in both.theirs:
        files[each.path].append(id(each) not in gone)
        functions[each.place].append(id(each) not in gone)
    if sum(map(len, files.values())) < _DRIFTED:
        return ""
    twins_of = [sum(2 * sum(told) >= len(told) for told in side.values()) for side in (files, functions)]
    if 2 * (len(same) + twins_of[0]) >= len(same) + len(files) or 2 * twins_of[1] >= len(functions):
        return ""
    return (
        f"ORIGINAL is probably not what was ported: {many(len(functions) - twins_of[1], 'function')} of "
        f"{len(functions)} in {many(len(files), 'file')} have nothing like them in PORT; name the commit that PORT was "
        "made from"
    )


def _misleads(found: Differences, both: _Both, around: Around) -> None:
    """What hides errors, makes up results, or is not on the card any more."""
    there = put_on_cards(both.mine)
    gone, sizes = (Counter(map(attrgetter("place"), side)) for side in (both.apart.gone, both.theirs))
    anew = {place for place, lost in gone.items() if 2 * lost > sizes[place]}
    alike = both.apart.alike
    for each, grade, what in (*tricks(both.apart.new, around), *moved(alike, there), *by_chance(alike)):
        froze = any(one.place == each.place and "requires_grad" in one.text for one in both.apart.gone)
        if "requires_grad" in each.text and froze:
            grade = Grade.TOLD  # it froze something before, too
        leaves = isinstance(each.node, (ast.Break, ast.Continue, ast.Return)) and grade is Grade.AGAINST
        if not leaves or each.place not in anew:  # else it is told of as a part of the function
            found.say(grade, GETS_ROUND, "judge", what, (each.path, each.line), told=Otherwise(None, each))
    for one, other, what in on_the_host(both.apart, both.mine):
        found.say(Grade.AGAINST, TRAINS_OTHERWISE, "device", what, (other.path, other.line), both.before(one))
    for each, what in dropped(both.apart, both.mine, there):
        if each.place in both.places and not (each.place in anew and isinstance(each.node, ast.Assert | ast.Raise)):
            found.say(Grade.AGAINST, GETS_ROUND, "judge", what, both.place(each), both.before(each))
    for one, other in both.apart.alike:
        if _OWN_CARD.search(one.raw) and _ONE_CARD.search(other.raw):
            what, place = f"`{other.shown}`: all ranks read to one card", (other.path, other.line)
            found.say(Grade.OPEN, TRAINS_OTHERWISE, "checkpoint", what, place, both.before(one))


def _options(found: Differences, both: _Both) -> None:
    """Options that only one of the two has, and those that have another default where they are now."""
    gone, new = (
        {(each.path, name): (each, words.get("default", "")) for each in side for name, words in options_of(each)}
        for side in (both.apart.gone, both.apart.new)
    )
    made = [(each, *told) for each in both.mine for told in options_of(each)]
    for path, name in sorted(gone.keys() | new.keys()):
        if TESTS.search(path) or path in both.lost:
            continue
        one = gone.get((path, name))
        if _OF_CARDS.search(name) and not (_ON_CARD.fullmatch(name) and one and one[1] == "True"):
            continue  # one that is on is not turned off
        if one:
            here = [(each, words.get("default", "")) for each, other, words in made if other == name]
            _option(found, both, name, one, [each for each in here if each[0].path in (path, *both.fresh)])
        elif not any(key[1] == name for key in gone):
            found.say(Grade.TOLD, ALSO, "options", f"the option --{name} is new", (path, new[path, name][0].line))


def _option(found: Differences, both: _Both, name: str, gone: _Option, there: list[_Option]) -> None:
    """What became of an option, which is made `there` now."""
    each, default = gone
    on_card = _ON_CARD.fullmatch(name)
    if not there and not on_card:
        what, place = f"the option --{name} is gone", both.place(each)
        found.say(Grade.OPEN, TRAINS_OTHERWISE, "options", what, place, both.before(each))
    elif there and all(_is_other(default, value) and (on_card or other.place != each.place) for other, value in there):
        what, other = f"the default of --{name} was {default} and is {there[0][1]}", there[0][0]
        theme = "device" if on_card else theme_of(name) or "options"
        grade = Grade.OPEN if theme == "options" else Grade.AGAINST
        found.say(grade, TRAINS_OTHERWISE, theme, what, (other.path, other.line), both.before(each))


def _is_other(*defaults: str) -> bool:
    """Whether two defaults are other numbers or texts; one that is worked out may be the same."""
    try:
        one, other = map(ast.literal_eval, defaults)
    except (ValueError, SyntaxError):
        return False
    return bool(one != other) and not (isinstance(one, str) and _OF_HOST.search(f"{one} {other}"))


def _computed(found: Differences, both: _Both, told: Sequence[Otherwise], around: Around, certain: Certain) -> None:
    """What is computed otherwise, where nothing else has been told of."""
    known = {(each.path, each.span.line) for each in found.against} - both.stood
    has_cards = any("DistributedSampler" in each.text for each in both.apart.new)  # it is one of many cards now
    #: The more of it has to do with no device, the more a difference counts.
    for each in sorted(told, key=lambda each: sum(not _OF_CARDS.search(word) for word in each.words), reverse=True):
        before, after, at = each.before, each.after, each.at
        place = (after.path, after.line) if after is not None else both.place(at)
        if at.path in both.lost or (after is not None and place in known):
            continue
        theme = theme_at(at, each.words)
        if _trains_nothing(each):
            continue
        of_cards = has_cards and _OF_MANY.search(at.text) is not None
        sure = each.sure and not of_cards and (theme != "seed" or before is not None or _is_sown_again(at, around))
        beside = [one for one in told if one.function == each.function]
        grade = (Grade.AGAINST if certain.of(each, beside, theme) else Grade.OPEN) if sure else Grade.TOLD
        found.say(grade, TRAINS_OTHERWISE, theme, each.sentence, place, both.before(before), each)


def _is_sown_again(at: Statement, around: Around) -> bool:
    """Whether a new seed stands in a loop, or is a number of its own in a file of the original that has another."""
    own = all(isinstance(each, ast.Constant) for each in getattr(at.parts[-1], "args", at.parts[-1:]))
    again = at.loop > 0 or _EACH_ROUND.search(at.scope) is not None
    return again or (own and any(path == at.path and "seed" in text for path, text in around.texts))


def _trains_nothing(told: Otherwise) -> bool:
    """True for a line that moved, and for one that reports and was added or taken out."""
    both = told.before is not None and told.after is not None
    one, became, other = told.what.partition(" became ")
    return (became != "" and one == other) or (not both and _ASIDE.search(told.at.shown) is not None)


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


def _around(both: _Both, fresh: set[str]) -> Around:
    #: What the original gives as a number: an option for that is not one that is off.
    given = {word.arg for one in both.apart.gone for call in one.inside() for word in getattr(call, "keywords", ())}
    options = {
        name: words.get("default", "") for each in both.apart.new for name, words in options_of(each)
        if name not in given and words.get("default", "None") in _OFF and words.get("action") != "'store_false'"
    }  # fmt: skip
    scopes = {each.place for each in both.theirs}
    returns = {each.place for each in both.apart.gone if isinstance(each.node, ast.Return)}
    tables = {name for each in both.apart.new if not each.scope for name in _of_a_table(each)}
    texts = {(each.path, each.text) for each in both.theirs}
    said = {(each.path, told[0]): told for each in both.apart.gone if each.said and (told := said_in(each))[0]}
    return Around(scopes, texts, returns, options, fresh, tables, said)


def _of_a_table(each: Statement) -> Iterator[str]:
    """The name of numbers that a module holds, or reads as it is imported."""
    match each.node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            numbers = sum(isinstance(getattr(node, "value", None), float) for node in ast.walk(value))
            if numbers >= _MANY or (isinstance(value, ast.Call) and READS.fullmatch(last_name(value.func))):
                yield neutral(name)


def _settings(found: Differences, original: Side, port: Side) -> None:
    """Numbers of a training in files that are not Python."""
    for path, data in port.files.items():
        was = original.files.get(path)
        if was is None or was == data or not _SETTINGS.search(path):
            continue
        before, after = (neutral(each.decode("utf-8", "replace")).splitlines() for each in (was, data))
        old, new = _set_in(before, after), _set_in(after, before)
        for what, line, name in _flags(before, after) if path.endswith(".sh") else ():
            theme = theme_of(name) or "settings"
            found.say(Grade.OPEN, TRAINS_OTHERWISE, theme, what, (path, line), f"{shown(path)}:1")
        pairs = ((name, *each) for name in sorted(old.keys() & new.keys())
                 for each in zip(old[name], new[name], strict=False))  # fmt: skip
        for name, (one, there), (other, line) in pairs:
            theme = _theme_of_setting(path, name, one, other)
            if theme and one != other:
                sure = theme != "settings" and _is_number(one) == _is_number(other)
                grade, what = Grade.AGAINST if sure else Grade.OPEN, f"{name} was {one} and is {other}"
                found.say(grade, TRAINS_OTHERWISE, theme, what, (path, line), f"{shown(path)}:{there}")


def _theme_of_setting(path: str, name: str, one: str, other: str) -> str:
    """What a number of a file decides about; empty for what says nothing of a training."""
    plain = path.endswith(".txt") or (path.endswith(".sh") and not (_is_number(one) and _is_number(other)))
    return theme_of(name) or ("" if plain or _OF_HOST.search(f"{name} {one} {other}") else "settings")


def _flags(before: list[str], after: list[str]) -> Iterator[tuple[str, int, str]]:
    """The options that only one of two scripts gives a program: what of them, the line in the port, their names."""
    old, new = _given(before), _given(after)
    for name in sorted(old.keys() ^ new.keys()):
        if not _OF_HOST.search(name.replace("freq", "")) and name != "m":  # the module that starts it
            value, line = new.get(name) or old[name]
            told, given = (value, " given") if value else ("given", "")
            what = f"{name} is {told}, and was not{given}" if name in new else f"{name} was {told}, and is not{given}"
            yield what, line if name in new else 1, name


def _given(lines: list[str]) -> dict[str, tuple[str, int]]:
    """The options that a script gives programs: all in a command of Python, elsewhere those with numbers."""
    found, inside = dict[str, tuple[str, int]](), False
    for number, line in enumerate(lines, 1):
        started = _STARTED.search(line)
        inside = (inside or started is not None) and not line.lstrip().startswith("#")
        for dashes, name, value in _FLAG.findall(line[started.end() :] if started else line):
            if inside or (dashes == "--" and value.strip("-").isdigit()):
                found[name] = value, number
        inside = inside and line.rstrip().endswith("\\")
    return found


def _is_number(value: str) -> bool:
    return re.fullmatch(r"-?\d[\d.e+-]*", value) is not None


def _set_in(lines: list[str], others: list[str]) -> _SetIn:
    """What lines of settings set that the others do not have, and in which line."""
    counts, values = Counter(map(str.strip, others)), defaultdict[str, list[tuple[str, int]]](list)
    for number, line in enumerate(lines, 1):
        counts[line.strip()] -= 1
        if counts[line.strip()] < 0 and not line.lstrip().startswith(("#", "//")):
            for name, value in _SETTING.findall(line):
                values[name].append((value, number))
    return values


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
        unseen_before = len(_UNSEEN.findall(was or b""))
        for unseen in [*_UNSEEN.finditer(data)][unseen_before:] if not path.endswith(_TEXTS) else ():
            what = f"`{unseen[0].decode('utf-8', 'replace').strip()}`: tests that fail are not seen"
            found.say(Grade.AGAINST, GETS_ROUND, "tests", what, (path, data.count(b"\n", 0, unseen.start()) + 1))
        if _STARTS.search(path) and (not path.endswith(".pth") or b"import" in data):
            found.say(Grade.AGAINST, GETS_ROUND, "judge", "Python runs this file before any program", (path, 1))
        elif was is None and _SHADOWS.match(path):
            found.say(Grade.AGAINST, GETS_ROUND, "judge", "this replaces an installed package", (path, 1))
        elif _HARNESS.search(path) or (was is not None and _of_pytest(was, path) != _of_pytest(data, path)):
            grade = Grade.AGAINST if any(map(TESTS.search, original.files)) else Grade.TOLD
            found.say(grade, GETS_ROUND, "tests", "the tests are run differently", (path, 1))
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
