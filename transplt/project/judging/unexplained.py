"""What a port computes otherwise. A statement that differs is unexplained until it does the same in another form."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from transplt.project.judging.facts_apart import Fact, closest, left_over, parts_apart, share_body
from transplt.project.judging.forms import Form, apart, blank, nodes, operations, parts_of
from transplt.project.judging.order import disordered, outdated
from transplt.project.judging.otherwise import Otherwise, other_text, shortened
from transplt.project.judging.reading import (
    TELLS,
    Reading,
    Scope,
    fields_set,
    is_option,
    places_of,
    readings,
    sets_of,
)
from transplt.project.judging.statements import Apart, Statement, asked_in, compared
from transplt.project.judging.themes import OF_CARDS, theme_of_call
from transplt.project.judging.tricks import TESTS
from transplt.project.judging.values import TooMuch, Values
from transplt.syntax.nodes import last_name

_Pair = tuple[Statement, Statement]
#: What is done in a function, by the statements that do it.
Done = list[tuple[Statement, Counter[str]]]
#: Names of what differs in every port, and of what no training computes.
_OF_HOST = re.compile(
    r"device|rank|gpu|npu|world|local|dist|worker|backend|log|print|path|dir\b|file|time", re.IGNORECASE
)
#: Files that compute nothing of a training: tests, and what installs the package; both are looked at apart.
_NOT_TRAINED = re.compile(rf"{TESTS.pattern}|(?:^|/)setup\.py$")
#: Forms of what tells people something.
_SILENT = ("$", "$said")
#: Statements with fewer operations in common than this share of all are no pair.
_ALIKE = 0.5
#: Statements with fewer kinds of operations have no order that counts.
_SEVERAL = 3
#: What mixed precision adds.
_PRECISION = frozenset({"autocast", "GradScaler", "scaler.update", "scaler.unscale"})
_REDUCES = re.compile(r"\b(?:mean|max|min|sum|median|std|argmax|argmin)\b")
_COLLECTS = re.compile(
    r"\b(?:all_reduce|all_gather|reduce_scatter|DDP|Distributed(?:DataParallel|Sampler)|convert_sync_batchnorm)(?=\()"
)
_EXCHANGES = re.compile(r"(?:all_reduce|all_gather|reduce|broadcast|scatter|gather|reduce_scatter|all_to_all)\w*")
_PARAMETERS = re.compile(r"([\w.]+)\.(?:named_)?parameters\(\)")
_IS_STEP = re.compile(
    r"\.(?:step|backward|zero_grad|train|eval|set_epoch)\(|clip_grad|seed|ema\w*\.update\(|update_ema"
)
_READS_SETTINGS = re.compile(r"(?:parse(?:_known)?_args|safe_load|parse_args_into_dataclasses)\(")
_IS_NUMBER = re.compile(r"#-?\d[\d.e+-]*")
_IS_DRAWN = re.compile(r"rand\w*|normal|uniform|multinomial|bernoulli|sample|choices?|shuffle|gauss")
_IS_COMPARED, _IS_COUNTED = re.compile(r"[<>=%](?!.*None)"), re.compile(r"AugAssign self\.(?!.*(?:log|time|print))")
_ON_HOST = re.compile(r"npu|device", re.IGNORECASE)
#: What adds to a variable, and so much of an expression is shown.
_OPERATORS, _TEXT = ("Add", "Sub", "Mult", "Div"), 70
_TURNED = "the same operations are combined differently"


class Unexplained:
    """Both programs, read for what is computed otherwise. `apart` is what is left of the statements that differ when
    those that say the same are taken out; `told` is what is computed otherwise, by the statements that say it."""

    def __init__(
        self, sides: tuple[Sequence[Statement], Sequence[Statement]], differ: Apart,
        is_optional: Callable[[Statement], bool], off: Mapping[str, str], fresh: set[str],
        values: tuple[dict[str, set[str]], dict[str, set[str]]],
    ) -> None:  # fmt: skip
        self.apart, self.is_optional, self.off, self.fresh = differ, is_optional, off, fresh
        self.told: list[Otherwise] = []
        self._places = places_of(*sides, differ)
        self._homes = {new: old for old, new in self._places.items()}
        self.theirs, self.mine = readings(sides, differ, self._places, off, values)
        self._settled = set[int]()
        #: Numbers and texts that names took the place of, and that took the place of names.
        self._handed: tuple[set[str], set[str]] = (set(), set())
        self._changed = {each.node.name for each in differ.new if isinstance(each.node, ast.FunctionDef)}
        self._weigh({id(other): one for one, other in self._match()})
        classes = (each.node for each in sides[0] if isinstance(each.node, ast.ClassDef))
        modules = {each.name for each in classes if any("Module" in ast.unparse(base) for base in each.bases)}
        alike = self.apart.alike
        self.told += (*disordered(alike, self._places, modules), *outdated(alike, self._places, self.mine.names))
        self.told += self._elsewhere(alike)
        self.told += self._reversed(differ.gone, differ.new)
        self.told = self._followed(self.told, differ)
        self.told += (*self._unread(), *_uncollected(differ, sides[1]))

    def _followed(self, told: list[Otherwise], differ: Apart) -> list[Otherwise]:
        """What is told, without what comes to the same when variables and helpers are followed; where one thing alone
        is another then, that."""
        both = Values(self.theirs), Values(self.mine)
        asked = {each.place for each in differ.new} | {self._places.get(each.place, ("", "")) for each in differ.gone}
        for place in sorted(each for each in asked & self._homes.keys() if not _NOT_TRAINED.search(each[0])):
            home = self._homes[place]
            try:
                facts = both[0].facts(home), both[1].facts(place)
            except (TooMuch, RecursionError):
                continue
            names = self.theirs.names[home] | {*self.mine.values}, self.mine.names[place] | {*self.theirs.values}
            here = [each for each in told if _is_of(each, place, home)]
            files = (
                [each for each in side if each.path == path]
                for side, path in ((differ.gone, home[0]), (differ.new, place[0]))
            )
            left = left_over(*facts, names)
            found = self._left_of(left, here, both, (*files,))
            told = [*(each for each in told if each not in here), *found]
            if not found and place[1] and (one := self._in_doubt(left)):
                told.append(one)
        return told

    def _left_of(
        self, sides: tuple[list[Fact], list[Fact]], here: list[Otherwise], both: tuple[Values, Values],
        differ: tuple[list[Statement], ...],
    ) -> list[Otherwise]:  # fmt: skip
        """What is told of a function, of which `sides` is left over, in the place of what was told `here`."""
        pairs, lone = [*closest(*sides)], [*sides[0], *sides[1]]
        whole = len(pairs) == len(sides[0]) == len(sides[1])
        parts = [(at, pair) for at in pairs for pair in parts_apart(at[0].form, at[1].form)]
        found, around = {pair[:2]: at for at, pair in parts}, {pair[:2]: pair[2] for _, pair in parts}
        sure = [pair for pair in found if whole and self._is_other_word(*pair, found[pair])]
        every = whole and len(sure) == len(found)
        if len(lone) == 1 and not here and _IS_COUNTED.search(lone[0].at.text) and lone[0].form[0] in _OPERATORS:
            return [Otherwise(lone[0].at if sides[0] else None, lone[0].at if sides[1] else None)]
        if any(sides) and here and not every:
            return here
        # What is told that the value of a function does not say.
        aside = (each for each in here if each.at.said or isinstance(each.at.node, ast.FunctionDef)
                 or _IS_STEP.search(each.at.text))  # fmt: skip
        kept = [*aside] if every else []
        for part in sure:
            one = self._told_at(part, around[part], found[part], both, differ)
            if here and one.before and one.after and one.before.text == one.after.text:
                return here  # a line of both reads it: those that make it are told
            asked = "$if" in (part[0][0], *(pair[0][0] for pair in around[part]))
            old = [each for each in here if each.after is one.after or (asked and isinstance(each.at.node, ast.If))]
            if one.what and (old or any(each.after is one.after for each in kept)):
                kept += [each for each in old if each not in kept]
            else:
                kept.append(one)
        return kept

    @staticmethod
    def _told_at(
        part: tuple[Form, Form], above: Sequence[tuple[Form, Form]], facts: tuple[Fact, Fact],
        both: tuple[Values, Values], differ: tuple[list[Statement], ...],
    ) -> Otherwise:  # fmt: skip
        """Where two parts that come to something else are set, and what became of them; no words of it where one side
        alone sets it."""
        one, other = _set_at(part, above, facts, both, differ)
        if one is None or other is None:
            return Otherwise(one, other)
        texts = [shortened(values.text(form), _TEXT) for values, form in zip(both, part, strict=True)]
        what = " became ".join(f"`{each}`" for each in texts) if all(texts) else other_text(one.shown, other.shown)
        asked = "$if" in (part[0][0], *(pair[0][0] for pair in above))
        what = "under another condition now" if asked and one.text == other.text else what
        words = Counter(nodes(part[0])), Counter(nodes(part[1]))
        apart_in = (words[0] - words[1]) + (words[1] - words[0]) or words[0] + words[1]
        return Otherwise(one, other, what, words=tuple(each.lstrip("$#").rstrip("=") for each in apart_in.elements()))

    @staticmethod
    def _in_doubt(sides: tuple[list[Fact], list[Fact]]) -> Otherwise | None:
        """That a function may come to something else, where nothing is told of it."""
        pairs = [*closest(*sides)]
        found = [each for one, two in pairs for each in parts_apart(one.form, two.form)]
        words = {word for one, two, _ in found for form in (one, two) for word in nodes(form)}
        tests = all(any(each[0][0] == "$if" for each in above) for _, _, above in found)
        host = any(map(_ON_HOST.search, words))
        if not sides[0] or not len(pairs) == len(sides[0]) == len(sides[1]) or tests or host:
            return None
        one, other = sides[0][0].at, sides[1][0].at
        return Otherwise(one, other, "is written in another form") if one.text != other.text else None

    def _is_other_word(self, before: Form, after: Form, facts: tuple[Fact, Fact]) -> bool:
        """Whether two parts that stand for each other, in functions that are followed, are another word or number."""
        match before, after:
            case (("$if", *_), ("$if", *_)) if len(after) == len(before) + 1:
                asked = [*map(asked_in, facts[1].at.conditions - facts[0].at.conditions)]
                return any(map(_IS_COMPARED.search, asked)) and not any(map(_OF_HOST.search, asked))
            case ((str() as old,), (str() as new,)) if old[0] == new[0] == "#":
                return not any(word.startswith("#-") for word in (old, new)) or "." not in old + new
            case ((str() as old,), (str() as new,)) if old[0] == new[0] == "$":
                return not _OF_HOST.search(old + new) and len(old) > 1 < len(new)
            case ((str() as old,), (str() as new,)) if "#" in old[0] + new[0]:
                name, number, values = (old, new, self.theirs.values) if old[0] == "$" else (new, old, self.mine.values)
                return number not in values.get(name[1:], (number,)) and not _OF_HOST.search(name)
        return False

    def _match(self) -> list[_Pair]:
        """Take out statements of one function that do the same to other names, and tell of those that do not. The
        pairs of which that is open."""
        there: dict[Scope, tuple[list[Statement], list[Statement]]] = defaultdict(lambda: ([], []))
        for each in self.apart.gone:
            there[self._places.get(each.place, ("", "?"))][0].append(each)
        for each in self.apart.new:
            there[each.place][1].append(each)
        left, done = list[_Pair](), set[int]()
        for place, (gone, new) in there.items():
            known = self.theirs.names[self._homes.get(place, place)] & self.mine.names[place]
            for one, other in self._paired(gone, new) if not _NOT_TRAINED.search(place[0]) else ():
                found = self._compared(one, other, known)
                if found is None:
                    left.append((one, other))
                elif one.said and other.said and (found := _says_other(one.text, other.text)):
                    self.told.append(Otherwise(one, other, found, words=("metric",)))
                elif found or self.theirs.form(one)[0] not in _SILENT:
                    self._settled |= {id(one), id(other)}
                    if found and not self._is_aside(other):
                        words = _parents(self.theirs.form(one), self.mine.form(other))
                        self.told.append(Otherwise(one, other, found, words=words))
                    elif not found and "cpu" not in one.raw + other.raw:
                        done |= {id(one), id(other)}
                        self.apart.alike.append((one, other))
        gone, new = ([each for each in side if id(each) not in done] for side in (self.apart.gone, self.apart.new))
        self.apart = Apart(gone, new, self.apart.alike)
        return left

    def _paired(self, gone: list[Statement], new: list[Statement]) -> Iterator[_Pair]:
        """Statements of one function that stand for each other, the closest first."""
        keys: tuple[Callable[[Statement, Form], Hashable], ...] = (
            lambda each, form: (target(each), blank(form, "$")),
            lambda each, form: (each.guards, blank(form, "$")),
            lambda each, form: (target(each), blank(form, "$#")),
            lambda each, form: target(each),
            lambda each, form: blank(form, "$"),
            lambda each, form: blank(form, "$#"),
        )
        forms = {id(each): self.theirs.form(each) for each in gone} | {id(each): self.mine.form(each) for each in new}
        same = [lambda each, key=key: (type(each.node), key(each, forms[id(each)])) for key in keys]
        found = compared(gone, new, same, elsewhere=len(same))
        strangers = [pair for pair in found.alike if _is_other_question(*pair)]
        yield from (pair for pair in found.alike if pair not in strangers)
        new = [*found.new, *(other for _, other in strangers)]
        for each in (*found.gone, *(one for one, _ in strangers)):
            mine = operations(forms[id(each)])
            own = (operations(self.mine.form(other)) for other in new)
            shares = [(2 * (mine & each).total() / ((mine + each).total() or 1), -at) for at, each in enumerate(own)]
            if shares and (best := max(shares))[0] >= _ALIKE:
                yield each, new.pop(-best[1])

    def _compared(self, one: Statement, other: Statement, known: set[str]) -> str | None:
        """What is another in the second of two statements: empty where they do the same; None where that is open."""
        forms = self.theirs.form(one), self.mine.form(other)
        if found := _of_part(one, other):
            return found
        words = Counter(nodes(forms[0])), Counter(nodes(forms[1]))
        if forms[0] != forms[1] and words[0] == words[1]:
            return _TURNED
        handed = set[str](), set[str]()
        for left, right in apart(*forms):
            match left[0][0], right[0][0]:
                case "$", "$" if _is_name(left) and _is_name(right):
                    old, new = left[0][1:], right[0][1:]
                    fields = {old, new} <= self.theirs.fields[one.path] & self.mine.fields[other.path]
                    host = OF_CARDS if {old, new} <= self.theirs.values.keys() else _OF_HOST
                    if old != new and (fields or {old, new} <= known) and not host.search(f"{old} {new}"):
                        if target(one) != target(other) or not share_body(one.node, other.node):
                            return None
                        found = f"{new} stands where {old} stood"
                case "#", "#":
                    found = f"{_said(left[0])} became {_said(right[0])}"
                case "#", "$" if _is_name(right):
                    handed[0].add(left[0])
                    if left[0] not in self.mine.held([right]) or self.mine.set[right[0][1:]] - {left[0]}:
                        found = f"{_said(left[0])} became {right[0][1:]}, which is another value"
                case "$", "#" if _is_name(left):
                    handed[1].add(right[0])
                    if right[0] not in self.theirs.stand_ins(left):
                        found = f"{left[0][1:]} became {_said(right[0])}"
                case _:
                    return self._left_out(one, other, *words, forms[1])
        self._handed[0].update(handed[0])
        self._handed[1].update(handed[1])
        return found

    def _left_out(
        self, one: Statement, other: Statement, before: Counter[str], after: Counter[str], form: Form
    ) -> str | None:
        """What a statement does not give any more, where that is all that is another in it."""
        if isinstance(one.node, ast.AnnAssign) and any(word[0] == "#" for word in (before - after) + (after - before)):
            return "another default"
        if before["$join"] != after["$join"]:
            return None
        if found := self._one_more(one, other, before - after, after - before, form):
            return found
        gone = [word[1:] for word in before - after if word[0] == "$" and not _OF_HOST.search(word)]
        gone = [word for word in gone if word != "call"]
        only = before >= after and before.keys() - after.keys() == {f"${each}" for each in gone}
        same = type(one.node) is type(other.node) and self.mine.reader.own.isdisjoint(self._changed & _called(form))
        if gone and only and same:
            return f"{_joined(gone)} left out"
        return None

    def _one_more(
        self, one: Statement, other: Statement, less: Counter[str], more: Counter[str], form: Form
    ) -> str:  # fmt: skip
        """One more condition, or a number that has come or gone, where nothing else differs."""
        asked = sorted(word[1:] for word in more if word[0] == "$" and not _OF_HOST.search(word))
        names = not less and more.keys() == {f"${each}" for each in asked}
        if asked and names and isinstance(one.node, (ast.If, ast.While)):
            known = {*asked} <= self.theirs.values.keys() and self.off.keys().isdisjoint(asked)
            return f"{_joined(asked)} added to the condition" if known else ""
        own = isinstance(one.node, ast.FunctionDef) or not self.mine.reader.own.isdisjoint(_called(form))
        numbers = not own and all(map(_IS_NUMBER.fullmatch, less + more))
        return other_text(one.shown, other.shown) if numbers else ""

    def _is_aside(self, each: Statement) -> bool:
        """Whether a statement of the port is none of what is computed unless somebody asks for it."""
        asked = isinstance(each.node, ast.If) and not {*self.off}.isdisjoint(re.findall(r"\w+", each.text))
        host = is_option(each) and _OF_HOST.search(each.text) is not None
        return host or asked or _NOT_TRAINED.search(each.path) is not None or self.is_optional(each)

    def _weigh(self, pairs: dict[int, Statement]) -> None:
        """Tell what is done more or less often in a function of both, with what it calls that only one of them has."""
        moved = [pair for pair in self.apart.alike if self._places.get(pair[0].place) != pair[1].place]
        gone, new = [*self.apart.gone, *(one for one, _ in moved)], [*self.apart.new, *(other for _, other in moved)]
        asked = [*filter(self._has_to_be_there, gone)], [*filter(self._has_a_reason, new)]
        spare = [
            sum(self._spared(reading, side, kept), Counter[str]())
            for reading, side, kept in zip((self.theirs, self.mine), (gone, new), asked, strict=True)
        ]
        less, more = defaultdict[Scope, Done](list), defaultdict[Scope, Done](list)
        for place, each, counts in self.theirs.reached(asked[0], {*self._places}, self.mine.reader.attributes):
            less[self._places[place]].append((each, counts))
        for place, each, counts in self.mine.reached(asked[1], {*self._homes}, self.theirs.reader.attributes):
            more[place].append((each, counts))
        left: dict[Scope, tuple[Counter[str], Counter[str]]] = {}
        for place in dict.fromkeys((*less, *more)):
            gone_here, new_here = (sum((counts for _, counts in side[place]), Counter[str]()) for side in (less, more))
            left[place] = gone_here - new_here, new_here - gone_here
            sides = (self.mine, more, self._handed[1]), (self.theirs, less, self._handed[0])
            for counts, (reading, side, handed) in zip(left[place], sides, strict=True):
                here = [each for each, _ in side[place]]
                held = reading.held(map(reading.form, here), here) | handed
                for word in [each for each in counts if each[0] == "#" and each in held]:
                    del counts[word]  # a number or a text that has another place now
            del left[place][1]["load_state_dict"]
        self._settle(left)
        self._tell_of(left, (less, more), (spare[1], spare[0]), pairs)

    def _tell_of(
        self, left: dict[Scope, tuple[Counter[str], Counter[str]]],
        said: tuple[dict[Scope, Done], dict[Scope, Done]], spare: tuple[Counter[str], Counter[str]],
        pairs: dict[int, Statement],
    ) -> None:  # fmt: skip
        """Tell what is `left`."""
        less, more = said
        for place, both in left.items():
            for counts, other in zip(both, spare, strict=True):
                found = counts & other
                counts -= found
                other -= found
            first, sides = len(self.told), (less[place], more[place])
            self._tell(sides, *both, pairs)
            if not self.told[first:]:
                self.told += self._in_another_form(sides)
            name = place[1] or "the module"
            self.told[first:] = [replace(each, function=name) for each in self.told[first:]]

    def _in_another_form(self, sides: tuple[Done, Done]) -> Iterator[Otherwise]:
        """What does as much of everything in other statements: in which order, no count tells."""
        left, found = {id(each) for each in (*self.apart.gone, *self.apart.new)} - self._settled, list[Statement]()
        does = [
            {blank(reading.form(each)[-1], "$"): each for each, n in side if id(each) in left and len(n) >= _SEVERAL}
            for reading, side in zip((self.theirs, self.mine), sides, strict=True)
        ]
        for side, other in (does, does[::-1]):
            own = [each for form, each in side.items() if form not in other]
            found += sorted(own, key=lambda each: (each.place in self._homes, -len(each.text)))[:1]
        if len(found) == len(does) and found[1].place not in self._homes:
            yield Otherwise(found[0], found[1], "written in another form")

    def _reversed(self, gone: Iterable[Statement], new: Iterable[Statement]) -> Iterator[Otherwise]:
        """Comparisons whose sides changed places: `b < a` is neither `a < b` nor the negation of it."""
        there = defaultdict[Scope, dict[Form, Statement]](dict)
        for each in gone:
            there[self._places.get(each.place, each.place)] |= dict.fromkeys(
                _compared_in(self.theirs.form(each)), each
            )
        for each in new:
            for kind, one, other in (mine := {*_compared_in(self.mine.form(each))}):
                before = there[each.place].get(turned := (kind, other, one))
                if before is not None and turned not in mine:
                    yield Otherwise(before, each, "the sides of a comparison are swapped")

    def _settle(self, left: dict[Scope, tuple[Counter[str], Counter[str]]]) -> None:
        """Take out what moved to the function that calls this one, or that it calls, or to another of its class."""
        named: dict[str, list[Scope]] = defaultdict(list)
        for place in left:
            named[place[1].rpartition(".")[2]].append(place)
            named[f"{place[1].rpartition('.')[0]}."].append(place)
        for place in left:
            outer = place[1].rpartition(".")[0]
            names = {*self.mine.names[place], *({outer.rpartition(".")[2], f"{outer}."} if outer else ())}
            for other in dict.fromkeys(each for name in names for each in named[name]):
                made = place[1].endswith("__init__") != other[1].endswith("__init__")  # once, not for each call
                for one, two in ((place, other), (other, place)):
                    found = left[one][0] & left[two][1]
                    if made:
                        found = Counter({word: n for word, n in found.items() if not _IS_DRAWN.fullmatch(word)})
                    left[one][0].subtract(found)
                    left[two][1].subtract(found)
        for both in left.values():
            for counts in both:
                counts += Counter[str]()  # without what is none

    def _elsewhere(self, alike: Iterable[_Pair]) -> Iterator[Otherwise]:
        """What is done under another condition that both programs have, or moved between a loop and a function that
        the loop calls."""
        for one, other in alike:
            place, form = self._places.get(one.place), self.theirs.form(one)
            if one.said or not isinstance(one.node, (ast.Expr, ast.AugAssign)) or not operations(form):
                continue
            if place == other.place:
                tests = {asked_in(each) for each in one.conditions ^ other.conditions}
                known = [
                    reading.plain_tests(each.place).union(map(asked_in, each.behind))
                    for reading, each in ((self.theirs, one), (self.mine, other))
                ]
                if tests and all(tests <= each for each in known) and not any(map(_OF_HOST.search, tests)):
                    yield Otherwise(one, other, "under another condition now")
            elif place is not None:
                home = self._homes.get(other.place)
                for loops in ((one.loop, self.mine.loops(other, place)), (self.theirs.loops(one, home), other.loop)):
                    if loops[0] is not None and loops[1] is not None and loops[0] != loops[1]:
                        what = f"moved {'out of' if loops[1] < loops[0] else 'into'} a loop"
                        yield Otherwise(one, other, what)

    def _unread(self) -> Iterator[Otherwise]:
        """Settings that are read as they were, and of which nobody makes use any more; fields that are read, and that
        nobody sets any more."""
        for one, other in self.apart.alike:
            for name in sets_of(other) if _READS_SETTINGS.search(other.text) else ():
                used = self.theirs.uses[one.path, one.scope, name], self.mine.uses[other.path, other.scope, name]
                if used[0] > used[1] == 1:
                    yield Otherwise(one, other, f"nothing uses {name} any more")
        stored = {each.attr for one in self.mine.statements for each in fields_set(one)}
        read = {name for names in self.mine.names.values() for name in names} - stored
        for one in (each for each in self.apart.gone if not _NOT_TRAINED.search(each.path)):
            lost = [each.attr for each in fields_set(one) if each.attr in read and not _OF_HOST.search(each.attr)]
            if lost and not any(each.before is one for each in self.told):
                yield Otherwise(one, None, f"nothing sets {lost[0]} any more")

    def _spared(self, reading: Reading, side: Iterable[Statement], kept: Iterable[Statement]) -> Iterator[Counter[str]]:
        """What only messages need may be computed elsewhere in the other program, or not at all."""
        counted = {id(each) for each in kept} | self._settled
        for each in side:
            if (id(each) not in counted or reading.form(each)[0] in _SILENT) and not _NOT_TRAINED.search(each.path):
                yield reading.reader.inside(each)

    def _has_to_be_there(self, each: Statement) -> bool:
        """Whether the port has to do what a statement of the original does."""
        if self._is_idle(each) or self.theirs.is_of_settings(each) or self.theirs.asks_environment(each):
            return False
        return self.theirs.says_own(self.theirs.form(each)) or not self.theirs.is_unused(
            each, self.mine.names[self._places.get(each.place, ("", "?"))]
        )

    def _has_a_reason(self, each: Statement) -> bool:
        """Whether there has to be a reason for a statement of the port."""
        settings = self.mine.is_of_settings(each) and not self.mine.asks_environment(each)
        if self._is_idle(each) or self._is_aside(each) or settings:
            return False
        known, form = self.theirs.names[self._homes.get(each.place, ("", "?"))], self.mine.form(each)
        if self.mine.says_own(form):
            return True
        if (sets := sets_of(each)) and all(word[0] == "#" for word in operations(form)):
            return not sets.isdisjoint(known)  # a name for a number
        return not self.mine.is_unused(each, known)

    def _is_idle(self, each: Statement) -> bool:
        return (
            id(each) in self._settled
            or is_option(each)
            or each.scope.endswith(TELLS)
            or bool(_NOT_TRAINED.search(each.path))
        )

    def _tell(
        self, said: tuple[Done, Done], less: Counter[str], more: Counter[str], pairs: dict[int, Statement]
    ) -> None:
        does = {word for _, counts in said[0] for word in counts if word[0].islower()}
        #: Functions of new files that do what the original does elsewhere: what else they do is a difference.
        stand_in = {each.place for each, counts in said[1] if does & {*counts}}
        whole = {id(each): counts for each, counts in said[0]}
        told: set[int] = set()
        for each, counts in said[1]:
            before = pairs.get(id(each))
            old = whole.get(id(before), Counter[str]())
            new, gone = (counts - old) & more, (old - counts) & less
            if new or gone:
                more, less = more - new, less - gone
                told.add(id(before))
                counts_here = each.path not in self.fresh or each.place in stand_in
                self._add(before, each, new, gone, sure=counts_here, whole=before is None and new == counts)
        for each, counts in said[0]:
            if id(each) not in told and (gone := counts & less):
                less -= gone
                self._add(each, None, Counter(), gone, sure=True, whole=gone == counts)

    def _add(
        self, before: Statement | None, after: Statement | None, new: Counter[str], gone: Counter[str], *, sure: bool,
        whole: bool,
    ) -> None:  # fmt: skip
        """Tell of what is done more (`new`) and less; `whole`: it is all that a statement does."""
        words = tuple(sorted(each.strip("#=") for each in new + gone))
        if before is not None and after is not None:
            words += _parents(self.theirs.form(before), self.mine.form(after))
        sure = sure and not (new and {*new} <= _PRECISION)
        what = "" if whole or before is None or after is None else other_text(before.shown, after.shown)
        self.told.append(Otherwise(before, after, what, sure, words))


def _is_of(told: Otherwise, place: Scope, home: Scope) -> bool:
    """Whether something is told of a function; other files may have one of the name, and each has a module."""
    named = told.function == (place[1] or "the module") and told.at.path in (place[0], home[0])
    return named or told.at.place in (place, home)


def _is_other_question(one: Statement, other: Statement) -> bool:
    """Whether two conditions ask of different things, and have nothing below them in common."""
    asked = ({getattr(node, "id", getattr(node, "attr", "")) for node in each.inside()} for each in (one, other))
    return isinstance(one.node, ast.If) and not share_body(one.node, other.node) and set.intersection(*asked) <= {""}


def _set_at(
    part: tuple[Form, Form], above: Sequence[tuple[Form, Form]], facts: tuple[Fact, Fact],
    both: tuple[Values, Values], differ: tuple[list[Statement], ...],
) -> tuple[Statement | None, Statement | None]:  # fmt: skip
    """The statements that set two parts: those that read them, unless one statement alone is the cause."""
    one, other = (
        values.place([form, *(pair[at] for pair in above)], differ[at])
        for at, (values, form) in enumerate(zip(both, part, strict=True))
    )
    causes = [[each for each in differ[at] if each.place == facts[at].at.place] for at in (0, 1)]
    read = not (one or other) and all(facts[at].at not in differ[at] for at in (0, 1))
    if read and any(causes) and max(map(len, causes)) == 1:
        one, other = (side[0] if side else None for side in causes)
        return one, other
    return one or facts[0].at, other or facts[1].at


def _says_other(one: str, other: str) -> str:
    """What a message says in the place of another, where it is of the same numbers."""
    texts, said = (_REDUCES.sub("", one), _REDUCES.sub("", other)), (_REDUCES.findall(one), _REDUCES.findall(other))
    if texts[0] != texts[1] or said[0] == said[1]:
        return ""
    return f"{', '.join(said[0])} became {', '.join(said[1])}"


def _uncollected(found: Apart, port: Iterable[Statement]) -> Iterator[Otherwise]:
    """What the cards had in common, and have not any more, in a port that still is one of many cards; what they have
    in common now with others, or worked out in another way."""
    before = {(each.place, name): (each, given) for each in found.gone for name, given in _gathered(each)}
    for other, name, given in ((each, *told) for each in found.new for told in _gathered(each)):
        one, was = before.get((other.place, name), (other, given))
        if was != given:
            yield Otherwise(one, other, f"{name} is made with {given or 'all processes'} now")
    texts = [each.text for each in port]
    if not any("init_process_group" in each for each in texts) or any("prepare(" in each for each in texts):
        return
    kept = Counter(name for each in found.new for name in _COLLECTS.findall(each.text))
    for each in found.gone:
        names = Counter(_COLLECTS.findall(each.text))
        if names - kept and not isinstance(each.node, (ast.Import, ast.ImportFrom)):
            yield Otherwise(each, None)
        kept -= names


def _of_part(one: Statement, other: Statement) -> str:
    """Which part of the model alone an optimizer is given now."""
    called = (last_name(each.func) for each in other.inside() if isinstance(each, ast.Call))
    made = any(theme_of_call(name) == "optimizer" for name in called)
    owners = (_PARAMETERS.findall(each.text.replace(".module", "")) for each in (one, other) if made)
    parts = [new for old, new, *_ in zip(*owners, strict=False) if new.startswith(f"{old}.")]
    return f"only the parameters of {parts[0]} are trained" if parts else ""


def _gathered(each: Statement) -> Iterator[tuple[str, str]]:
    """The exchanges between processes in a statement: with whom (`group`), and what is made of it (`op`)."""
    for node in each.inside():
        if isinstance(node, ast.Call) and _EXCHANGES.fullmatch(name := last_name(node.func)):
            words = (f"{word.arg}={last_name(word.value)}" for word in node.keywords if word.arg in ("group", "op"))
            yield name, ", ".join(word for word in words if not word.endswith(("=", "=SUM")))


def _parents(one: Form, other: Form) -> tuple[str, ...]:
    """What is given something else in the second of two forms: arguments first, then functions."""
    gone, new = (
        Counter((each[0], below[0]) for each in parts_of(form) for below in each[1:]) for form in (one, other)
    )
    parents = {parent for parent, _ in (gone - new) + (new - gone) if parent[0] not in "$#"}
    return tuple(each.rstrip("=") for each in sorted(parents, key=lambda each: (each[-1] != "=", each)))


def _joined(phrases: list[str]) -> str:
    return f"{', '.join(phrases[:-1])} and {phrases[-1]} were" if len(phrases) > 1 else f"{phrases[0]} was"


def _said(word: str) -> str:
    """A number or a text as people write it."""
    return word[1:].removesuffix(".0")


def _called(form: Form) -> set[str]:
    return {word.rpartition(" ")[2].lstrip("$") for word in nodes(form)}


def _compared_in(form: Form) -> Iterator[Form]:
    return (each for each in parts_of(form) if each[0] in ("Lt", "LtE"))


def _is_name(form: Form) -> bool:
    return len(form) == 1 and len(form[0]) > 1


def target(each: Statement) -> Hashable:
    """What a statement sets or calls."""
    match each.node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.For():
            return ast.unparse(each.parts[0])
        case ast.Expr(value=ast.Call()):
            return ast.unparse(getattr(each.parts[0], "func", each.parts[0]))
    return each.guards, type(each.node).__name__
