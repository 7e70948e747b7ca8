"""What a port changed beyond the device: findings with a theme, against it or only to be known."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from transplt.base.errors import shown
from transplt.base.finding import Effort, Finding, Level, Span
from transplt.base.render.cell import many
from transplt.project.judging.sides import Side, pairs
from transplt.project.judging.statements import Apart, Statement, compared, neutral
from transplt.project.judging.themes import Change, Fact, Grade, changes, facts_of, theme_of
from transplt.project.judging.tricks import TESTS, Around, moved, of_tests, tricks
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


@dataclass(slots=True)
class Differences:
    """What is different in a port: `against` it, and what is `also` changed; `unread`: files nobody can read."""

    against: list[Finding] = field(default_factory=list)
    also: list[Finding] = field(default_factory=list)
    unread: dict[str, str] = field(default_factory=dict)
    successors: dict[str, str] = field(default_factory=dict)

    def say(self, grade: Grade, code: str, theme: str, what: str, at: tuple[str, int], before: str = "") -> None:
        """Add what is told of a place of the port; `before`: the place in the original."""
        if grade is Grade.NOTHING:
            return
        against = grade is Grade.AGAINST
        code = code if against else ALSO
        message = f"{theme}: {what[:300]}" + (f" (original: {before})" if before else "")
        finding = Finding(
            at[0], Span(at[1], 1, at[1], 1, 0, 0), code, Level.MANUAL if against else Level.INFO, message, theme,
            Effort.LOW if against else None, _HELP[code],
        )  # fmt: skip
        (self.against if against else self.also).append(finding)


def differences(original: Side, port: Side) -> Differences:
    """Hold the files of a port against those of its original; nothing of them is run."""
    found = Differences()
    changed = [path for path in port.python if original.files.get(path) != port.files[path]]
    gone = [path for path in original.python if path not in port.files]
    before = {path: original.statements(path) for path in [*gone, *(each for each in changed if each in original.files)]}
    after = {path: port.statements(path) for path in changed}
    found.successors = pairs(original, port, {**{path: before[path] for path in gone}, **after})
    renamed = {path: found.successors.get(path, path) for path in before}
    theirs = [_at(each, renamed[path]) for path, told in before.items() for each in told]
    both = compared(theirs, (each for told in after.values() for each in told))
    around = _around(theirs, both, {path for path in changed if path not in {*renamed.values()}})
    lost = {path for path in gone if path not in found.successors}
    places = {(each.path, each.scope): each.line for told in after.values() for each in reversed(told)}
    origin = {new: old for old, new in found.successors.items()}
    _facts(found, both, around, lost, places, origin)
    _settings(found, original, port)
    for each, grade, what in (*tricks([one for one in both.new if _counts(one)], around), *moved(both.alike, around)):
        found.say(grade, GETS_ROUND, "judge", what, (each.path, each.line))
    _tests(found, both, port, lost, places)
    _files(found, original, port, lost)
    found.unread = {**original.unread, **port.unread}
    unique = {(each.path, each.span.line, each.message): each for each in (*found.against, *found.also)}
    found.against = sorted((each for each in unique.values() if each.open), key=_order)
    found.also = sorted((each for each in unique.values() if not each.open), key=_order)
    return found


def _order(finding: Finding) -> tuple[str, int]:
    return finding.path, finding.span.line


def _at(statement: Statement, path: str) -> Statement:
    """A statement of the original under the path that its file has in the port."""
    if path == statement.path:
        return statement
    return Statement(statement.text, statement.raw, statement.node, statement.parts, path, statement.scope,
                     statement.guards, statement.loop, statement.last)  # fmt: skip


def _counts(statement: Statement) -> bool:
    return not isinstance(statement.node, (ast.Pass, ast.Global))


def _around(before: list[Statement], both: Apart, fresh: set[str]) -> Around:
    options, given = set(), set()
    for each in both.new:
        for call in (node for part in each.parts for node in ast.walk(part) if isinstance(node, ast.Call)):
            given.add((each.path, ast.unparse(ast.Tuple([*call.args, *(word.value for word in call.keywords)]))))
            if last_name(call.func) in ("add_argument", "option"):
                options.update(_off_unless_asked(call))
    scopes = {(each.path, each.scope) for each in before}
    returns = {(each.path, each.scope) for each in both.gone if isinstance(each.node, ast.Return)}
    return Around(scopes, fresh, options, returns, {(each.path, each.text) for each in before}, given)


def _off_unless_asked(call: ast.Call) -> Iterator[str]:
    """The names under which a program asks for an option that is off by default."""
    words = {each.arg: each.value for each in call.keywords}
    default, action = words.get("default"), words.get("action")
    off = default is None or ast.unparse(default) in ("None", "False", "0", "-1", "''")
    if off and not (isinstance(action, ast.Constant) and action.value == "store_false"):
        for each in call.args:
            if isinstance(each, ast.Constant) and isinstance(each.value, str):
                yield each.value.lstrip("-").replace("-", "_")


def _facts(
    found: Differences, both: Apart, around: Around, lost: set[str], places: dict[tuple[str, str], int],
    origin: dict[str, str],
) -> None:  # fmt: skip
    gone = [fact for each in both.gone for fact in facts_of(each)]
    new = [fact for each in both.new for fact in facts_of(each)]
    sharded = any("DistributedSampler" in each.text for each in both.new)
    scopes = around.scopes & {*places}
    for change in changes(gone, new, scopes):
        grade = _graded(change, around, lost, sharded=sharded)
        there = change.after or change.before
        assert there is not None
        place = there.at.path, there.at.line
        if change.after is None:
            path, scope = there.at.path, there.at.scope
            place = path, places.get((path, scope), places.get((path, ""), 1))
        before = change.before
        was = f"{shown(origin.get(before.at.path, before.at.path))}:{before.at.line}" if before is not None else ""
        found.say(grade, TRAINS_OTHERWISE, change.theme, change.sentence, place, was)


def _graded(change: Change, around: Around, lost: set[str], *, sharded: bool) -> Grade:
    """What a change comes to where it stands."""
    grade, before, after = change.grade, change.before, change.after
    if after is None and before is not None:
        aside = change.theme == "options" and (_is_of_cards(before.key) or TESTS.search(before.at.path))
        replaced = before.words and (before.at.path, _given(before)) in around.given
        return Grade.NOTHING if before.at.path in lost or aside else Grade.TOLD if replaced else grade
    if after is not None and (around.is_optional(after.at) or TESTS.search(after.at.path)):
        return Grade.TOLD
    if before is None and after is not None and (after.at.path in around.fresh or not around.is_old(after.at)):
        return grade if grade is not Grade.AGAINST else Grade.NOTHING if after.at.path in around.fresh else Grade.TOLD
    if change.theme == "device" and not (after and before and (before.value, after.value) == ("card", "cpu")):
        return Grade.NOTHING
    if after is not None and before is not None and {name for name, _ in {*after.words} ^ {*before.words}} == {"drop_last"}:
        return Grade.TOLD
    shared = sharded and change.theme in ("data", "batch size") and after is not None
    return Grade.TOLD if shared and re.search(r"ampler|shuffle|world|npu|batch", after.shown) else grade


def _given(fact: Fact) -> str:
    """What the call is given: another function that is given the same stands in its place."""
    values = [ast.parse(value, mode="eval").body for _, value in fact.words]
    return ast.unparse(ast.Tuple(values))


_OF_CARDS = re.compile(r"npu|device|dist|rank|world|node|backend|port|url|addr|amp|apex|fp16|loss_scale|opt_level|workers")


def _is_of_cards(option: str) -> bool:
    return bool(_OF_CARDS.search(neutral(option).replace("-", "_")))


def _settings(found: Differences, original: Side, port: Side) -> None:
    """Numbers of a training in files that are not Python."""
    for path, data in port.files.items():
        was = original.files.get(path)
        if was is None or was == data or not _SETTINGS.search(path):
            continue
        lines = [neutral(each.decode("utf-8", "replace")).splitlines() for each in (was, data)]
        sides = []
        for mine, others in (lines, lines[::-1]):
            counts = Counter(map(str.strip, others))
            facts = []
            for number, line in enumerate(mine, 1):
                counts[line.strip()] -= 1
                if counts[line.strip()] < 0 and not line.lstrip().startswith(("#", "//")):
                    at = Statement(line, line, ast.Pass(lineno=number), (), path, "")
                    facts += [
                        Fact(theme, name, value, f"{name} = {value}", at, weak=True)
                        for name, value in _SETTING.findall(line) if (theme := theme_of(name))
                    ]
            sides.append(facts)
        for change in changes(*sides, ()):
            assert change.after is not None
            at, before = change.after.at, change.before
            was_at = f"{shown(path)}:{before.at.line}" if before is not None else ""
            found.say(change.grade, TRAINS_OTHERWISE, change.theme, change.sentence, (path, at.line), was_at)


def _tests(
    found: Differences, both: Apart, port: Side, lost: set[str], places: dict[tuple[str, str], int]
) -> None:
    gone = [each for each in both.gone if TESTS.search(each.path)]
    new = [each for each in both.new if TESTS.search(each.path)]
    for before, after, what in of_tests(gone, new):
        there = after or before
        assert there is not None
        was = f"{shown(before.path)}:{before.line}" if before is not None else ""
        if before is not None and before.path not in port.files:
            # Tests of what was left out as well are no tests of the port.
            grade = Grade.TOLD if any(not TESTS.search(path) for path in lost) else Grade.AGAINST
            found.say(grade, GETS_ROUND, "tests", what, (before.path, 1), was)
            continue
        line = there.line if after is not None else places.get((there.path, there.scope), 1)
        found.say(Grade.AGAINST, GETS_ROUND, "tests", what, (there.path, line), was)


def _files(found: Differences, original: Side, port: Side, lost: set[str]) -> None:
    """Files that a port has more or less, and those that decide how it is started and tested."""
    for path in port.files:
        was, data = original.files.get(path), port.files[path]
        if was == data:
            continue
        if _STARTS.search(path) and (not path.endswith(".pth") or b"import" in data):
            found.say(Grade.AGAINST, GETS_ROUND, "judge", "Python runs this file before any program", (path, 1))
        elif was is None and _SHADOWS.match(path):
            found.say(Grade.AGAINST, GETS_ROUND, "judge", "this takes the place of an installed package", (path, 1))
        elif _HARNESS.search(path) or (was is not None and _tool(was, path) != _tool(data, path)):
            found.say(Grade.AGAINST, GETS_ROUND, "tests", "how the tests are run is another", (path, 1))
        elif was is None:
            told = found.successors and next((old for old, new in found.successors.items() if new == path), "")
            found.say(Grade.TOLD, ALSO, "files", f"renamed from {told}" if told else "is new", (path, 1))
    if lost:
        some = ", ".join(sorted(lost)[:5])
        found.say(Grade.TOLD, ALSO, "files", f"{many(len(lost), 'Python file')} left out: {some}", (sorted(lost)[0], 1))


def _tool(data: bytes, path: str) -> bytes:
    """The settings of pytest in a file that may hold them."""
    if not path.endswith(("pyproject.toml", "setup.cfg")):
        return b""
    return b"".join(re.findall(rb"(?ms)^\[tool[.:]pytest.*?(?=^\[|\Z)", data))
