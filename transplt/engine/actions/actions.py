"""From findings to actions: grouped, made few where they are many, priced and ranked. Nothing is read but rules/."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from transplt.base.finding import Effort, Finding
from transplt.base.grouped import grouped
from transplt.base.language import Sentence, marked
from transplt.engine.actions.action import Action, Place, written_by
from transplt.engine.actions.effort import HOURS
from transplt.engine.actions.groups import EXTRA, IMAGE, OFFERED, PACKAGES, WRAPPED, Group, Groups, aside
from transplt.engine.actions.joining import MOST, at_most, level_of
from transplt.engine.files.native_text import SOURCE_SUFFIXES
from transplt.flow.entry_points import named_after
from transplt.flow.entry_text import third_party
from transplt.rules.companions import beside_newer
from transplt.rules.pages import BLOCKS, DiagnosticError, load
from transplt.rules.since import member, only_older
from transplt.rules.support_tables import canonical
from transplt.syntax.modules import of_a_job

#: Hours of each further file, by effort, after those of the first place; what comes again in a file costs nothing more.
_FURTHER = {Effort.LOW: 0.05, Effort.MEDIUM: 0.25, Effort.HIGH: 1.0}
#: The same replacement in file after file is one command.
_SUBSTITUTED = 0.01
_MECHANICAL = frozenset({"substitution", "lock", OFFERED})
_MOST_NAMES = 3
#: So many other helps are given, of an action whose findings have several.
_MOST_HELPS = 3
#: What joins when there is much: the same code told apart by names, or what is left of words in files that run nothing.
_LEFTOVER = "leftovers"
_LEFTOVERS = ("NPU801", "NPU802", "NPU804", "NPU805")
_JOINED = frozenset({"sources", "build", "triton"})
_LEFTOVER_TITLE = Sentence("Check mentions of CUDA in scripts, configurations and recipes")


@dataclass(slots=True)
class _Draft:
    """An action before it has a rank: findings with their names."""

    group: Group
    findings: list[tuple[Finding, Group]]

    @property
    def beside(self) -> tuple[str, ...]:
        """The folders of other programs of the project, where it is about these alone."""
        folders = {each.detail("program") for each, _ in self.findings if not aside(each)}
        return () if "" in folders else tuple(sorted(folders))

    @property
    def blocks(self) -> str:
        early = () if self.beside else ("import", "first step")  # the main program starts all the same
        blocks = ("later" if each.detail("program") and group.blocks in early else group.blocks
                  for each, group in self.findings)  # fmt: skip
        return min(blocks, key=BLOCKS.index)

    @property
    def aside(self) -> bool:
        beside = ("slow", "tidy")  # of scripts that do not train
        return all(aside(each) or (each.late == "other" and group.blocks in beside) for each, group in self.findings)

    @property
    def contained(self) -> bool:
        if self.aside or self.blocks not in ("import", "first step", "later"):
            return False
        if self.blocks == "later":
            later = (finding for finding, group in self.findings if group.blocks == "later")
            return all(each.code == _MODULES or of_a_job(each.path) or _CONTAINER.search(each.api) for each in later)
        early = [each for each in self.findings if each[1].blocks in ("import", "first step")]
        return all({finding.code, group.kind} & _OF_JOBS or of_a_job(finding.path) for finding, group in early)


def actions_of(findings: Iterable[Finding], style: str = "npu") -> tuple[Action, ...]:
    """The actions of a project, what blocks most first, and behind them what no training script reaches; `findings` are
    all of it, remarks included, `style` is the one in which it is written.

    Each open finding is in exactly one action, and an action holds nothing else. The order of the findings is of no
    consequence.
    """
    every = sorted(findings, key=_order)
    groups = Groups(every, style)
    drafts: dict[Group, _Draft] = {}
    for finding in every:
        if finding.open:
            group = groups.of(finding)
            drafts.setdefault(group, _Draft(group, [])).findings.append((finding, group))
    # What --fix does is no work of a person, and a migration has done it: it makes the others no fewer.
    offered = [_action(draft, groups.kernels) for group, draft in drafts.items() if group.kind == OFFERED]
    rest = [draft for group, draft in drafts.items() if group.kind != OFFERED]
    actions = at_most(sorted((_action(draft, groups.kernels) for draft in _fewer(rest)), key=_rank))
    return tuple(sorted([*offered, *actions], key=_rank))


def total_hours(actions: Iterable[Action]) -> float:
    """A rough sum in hours for a person who knows the code."""
    return round(sum(action.hours for action in actions), 2)


def separate(actions: Iterable[Action]) -> list[Action]:
    """Each for itself, those that stand together in one too: what every face counts, and what a flat list has."""
    return [part for action in actions for part in action.parts or (action,)]


def _rank(action: Action) -> tuple[float | str, ...]:
    """What a proof saw comes before what was only read. What stops the scripts themselves comes before what only stops
    them in a container or a job: code that is not there at all, then what they load as they start, what they load
    later, and what nothing starts by its name or is the code of somebody else.
    """
    blocks = BLOCKS.index("later" if action.stands in ("contained", "beside") else action.blocks)
    beside = (action.stands == "beside") * (1 + BLOCKS.index(action.blocks))
    efforts = tuple(Effort)
    early = action.blocks in ("import", "first step")
    code = [each for each in action.findings if each.path.endswith((".py", *SOURCE_SUFFIXES)) and not aside(each)]
    inside = [each for each in code if not (early and each.late == "other")]  # a script that does not train stops none
    needed = not {_SUBMODULE, *_INSTALLS}.isdisjoint(action.codes)
    outside = not inside and not (needed and any(each.late != "other" for each in action.findings))
    rest = bool(action.parts) and not early  # joined, for they matter least
    return (
        _PROOF not in action.codes, action.stands == "tidy", action.aside, blocks, action.contained, beside,
        rest, outside,
        _INSTALLS.isdisjoint(action.codes), _SUBMODULE not in action.codes,
        not outside and all(each.late == "unnamed" or third_party(each.path) for each in action.findings),
        all(finding.late or finding.option for finding in action.findings), _OF_RANKS.issuperset(action.codes),
        -efforts.index(action.effort), -action.hours, -action.count,
        action.title,
    )  # fmt: skip


def _fewer(drafts: list[_Draft]) -> list[_Draft]:
    """At most `MOST` of them where small ones of one kind can be joined, most of a kind first.

    What is a day's work of its own, what blocks more than the others and what stands aside stays for itself.
    """
    while len(drafts) > MOST:
        by_kind: dict[tuple[str, str, tuple[bool, ...], str], list[_Draft]] = {}
        for draft in drafts:
            if (kind := _kind(draft)) is not None:
                what = ("", "") if kind == _LEFTOVER else (draft.blocks, draft.group.title.template)
                stands = (draft.aside, draft.contained, bool(draft.beside))
                by_kind.setdefault((kind, what[0], stands, what[1]), []).append(draft)
        several = [(len(same), key) for key, same in by_kind.items() if len(same) > 1]
        if not several:
            break
        _, key = min(several, key=lambda item: (-item[0], item[1]))
        same = by_kind[key]
        found = [pair for draft in same for pair in draft.findings]
        drafts = [draft for draft in drafts if all(draft is not other for other in same)]
        drafts.append(_Draft(_joined(key[0], same), found))
    return drafts


def _kind(draft: _Draft) -> str | None:
    """What a draft may be joined by: its code, or that it is a leftover; None where it stands for itself."""
    group = draft.group
    if group.kind in _LEFTOVERS:
        return _LEFTOVER
    if not group.name or group.name == _SEVERAL or _effort(draft) is Effort.HIGH:
        return None
    return group.kind if group.kind.startswith("NPU") or group.kind in _JOINED else None


_SEVERAL = "several"
#: Of the help on a package that needs another one: which.
_FIRST_NAMED = re.compile(r"(?:instead: |install )(?!build )([^;,(]{2,50}?)(?: ?[;,(]|\. |$)")
#: Without it nothing of the project is installed, in a container or not: torch-npu, and a Python that it is built for.
_INSTALLS = frozenset({"NPU844", "NPU845"})
#: What a proof of the written program says.
_PROOF = "NPU793"
#: What stops a program of several ranks alone.
_OF_RANKS = frozenset({"NPU314"})
#: What only containers, jobs and services ask for.
_OF_JOBS = frozenset({"NPU280", IMAGE, "NPU852", "NPU854", "NPU855"})
#: What starts a container, in documents too.
_CONTAINER = re.compile(r"--gpus|--runtime|nvidia-(?:docker|container)")
#: Modules that a cluster loads.
_MODULES = "NPU816"
#: Actions that are about the findings of their own code first: images, and what divides batches.
_LEADING = frozenset({IMAGE, WRAPPED})
#: What newer releases refuse: one message is a title, and a help that is no longer than this stands there as well.
_REFUSED, _SHORT = "NPU293", 60
#: A submodule that is not checked out.
_SUBMODULE = "NPU866"


def _joined(kind: str, drafts: Sequence[_Draft]) -> Group:
    if kind == _LEFTOVER:
        return Group(_LEFTOVER_TITLE, kind, _SEVERAL)
    names = [_subject(draft) for draft in sorted(drafts, key=lambda each: (-len(each.findings), each.group.name))]
    first = drafts[0].group
    title = Sentence(first.title.template, **{**first.title.values, "name": _listed(names)})
    how = first.how if {draft.group.how for draft in drafts} == {first.how} else ""
    return Group(title, kind, _SEVERAL, how=how, effort=first.effort)


def _listed(names: Sequence[str]) -> Sentence:
    """`a, b and c`, of more than three the first and how many more there are."""
    if len(names) <= _MOST_NAMES:
        return Sentence("{names} and {last}", names=_comma(names[:-1]), last=names[-1])
    return Sentence("{names} and {count} more", names=_comma(names[:_MOST_NAMES]), count=len(names) - _MOST_NAMES)


def _comma(names: Sequence[str]) -> str:
    """Names one behind the other, sentences among them included."""
    return reduce(lambda joined, name: Sentence("{names}, {last}", names=joined, last=name), names)


# --- one action ------------------------------------------------------------------------------------------------------


def _effort(draft: _Draft) -> Effort:
    efforts = tuple(Effort)
    return max((group.effort or finding.effort or Effort.LOW for finding, group in draft.findings), key=efforts.index)


def _action(draft: _Draft, kernels: Mapping[str, str]) -> Action:
    findings = tuple(finding for finding, _ in draft.findings)
    places = _places(draft, kernels)
    effort = _effort(draft)
    things = sum({group.name: group.parts for _, group in draft.findings}.values())
    further = len({place.path for place in places}) - 1
    each = _SUBSTITUTED if draft.group.kind in _MECHANICAL else _FURTHER[effort]
    hours = round(HOURS[effort] * things + each * max(further - things + 1, 0), 2)
    title, name = draft.group.title, draft.group.name
    if name and title.values.get("name") == name:
        title = Sentence(title.template, **{**title.values, "name": _subject(draft)})
    if named := _things(draft):
        title = Sentence(marked("{title}: {things}"), title=title, things=named)
    said = {(each.message, each.help) for each in findings if draft.group.kind == _REFUSED and "name" in title.values}
    for message, help in said if len(said) == 1 and " this " not in findings[0].message else ():
        uses = Sentence(marked("Update the uses of {name}: {things}"), **{**title.values, "things": message})
        title = Sentence("{title}: {things}", title=message, things=help) if len(help) <= _SHORT else uses
    count = Counter(finding.code for finding in findings)
    return Action(
        title=title,
        blocks=draft.blocks,
        effort=level_of(hours),
        hours=hours,
        how=_how(draft),
        codes=tuple(sorted(count, key=lambda code: (-count[code], code))),
        places=places,
        findings=findings,
        aside=draft.aside,
        contained=draft.contained,
        beside=draft.beside,
    )


def _subject(draft: _Draft) -> str:
    """What an action is about: of a module whose members are meant, with these."""
    name = draft.group.name
    members = sorted({_member(finding, name) for finding, _ in draft.findings} - {""})
    if len(members) == 1 and all(_member(finding, name) for finding, _ in draft.findings):
        return f"{name}.{members[0]}"
    members = sorted({member(f".{each}") for each in members})
    if len(members) > _MOST_NAMES:
        first, more = ", ".join(members[:_MOST_NAMES]), len(members) - _MOST_NAMES
        return Sentence("{name} ({members}, {count} more)", name=name, members=first, count=more)
    return f"{name} ({', '.join(members)})" if members else name


def _things(draft: _Draft) -> str:
    """The names that the title of a draft lacks: those that its findings list, or the package that their help begins
    with; empty where there are none, or several packages.
    """
    if listed := sorted({thing for finding, _ in draft.findings for thing in finding.every_detail("thing")}):
        return _listed(listed) if len(listed) > 1 else listed[0]
    if draft.group.kind != EXTRA or draft.group.name == _SEVERAL:
        return ""
    extras = {found[1] for finding, _ in draft.findings if (found := _FIRST_NAMED.match(finding.help))}
    return extras.pop() if len(extras) == 1 else ""


def _member(finding: Finding, owner: str) -> str:
    """The name below `owner` that a finding is about, empty where it is about something else."""
    api = canonical(finding.api)
    told = owner.startswith("torch.") or finding.detail("gone")
    return api.removeprefix(f"{owner}.") if told and api.startswith(f"{owner}.") else ""


def _places(draft: _Draft, kernels: Mapping[str, str]) -> tuple[Place, ...]:
    """One for each file and each thing in it: first the file that it is about, then what blocks most; of a package
    that is replaced then the code that uses it.
    """
    rows: dict[tuple[str, str], list[tuple[Finding, Group]]] = {}
    several = draft.group.name == _SEVERAL
    for finding, group in draft.findings:
        name = group.name if several else kernels.get(finding.path, "")
        rows.setdefault((finding.path, name), []).append((finding, group))
    places = [
        (
            (
                path != draft.group.name,
                all(aside(each) for each, _ in same),
                draft.group.kind in _LEADING and all(each.code != draft.group.kind for each, _ in same),
                path.startswith(".") or of_a_job(path),
                min(BLOCKS.index(group.blocks) for _, group in same),
                draft.group.kind in PACKAGES and (not path.endswith((".py", ".ipynb")) or path.endswith("setup.py")),
                named_after(path) or path.endswith(".ipynb"),
                all(each.late in ("other", "unnamed") or each.detail("program") for each, _ in same),
                draft.group.kind == "kernel" and (not path.endswith(".py") or path.endswith("setup.py")),
            ),
            Place(path, tuple(sorted({finding.span.line for finding, _ in same})), len(same), name),
        )
        for (path, name), same in rows.items()
    ]
    return tuple(place for _, place in sorted(places, key=lambda item: (item[0], -item[1].count, item[1].path)))


def _how(draft: _Draft) -> str:
    """What to do: an adaptor, and what else."""
    findings = [finding for finding, _ in draft.findings]
    names = sorted({finding.adaptor for finding in findings if finding.adaptor})
    if not names:
        return _by_hand(draft)
    how = _by_hand(draft)
    given = {"names": ",".join(names), "how": how.removeprefix("instead: ") if how.startswith("instead: ") else how}
    written, sources = written_by(findings)
    if written:
        slower = marked("`--adapt {names}` writes what is called with operators of PyTorch, which are slower; then the "
                        "sources are left to delete. By hand: {how}")  # fmt: skip
        whole = marked("`--adapt {names}` writes the replacement. By hand: {how}")
        return Sentence(slower if sources else whole, **given)
    return Sentence(marked("`--adapt {names}` writes a part of the replacement. By hand: {how}"), **given)


def _by_hand(draft: _Draft) -> str:
    """What the group says, or the helps of its findings, each with its places where they differ; or the page's."""
    if draft.group.how:
        return draft.group.how
    kind, how = draft.group.kind if draft.group.kind in _LEADING | PACKAGES else "", ""
    helped = grouped((finding.help, finding) for finding, _ in draft.findings if finding.help)
    # what goes with the findings of a leading code comes behind them
    ranked = sorted(helped.items(), key=lambda item: (kind not in ("", item[1][0].code), -len(item[1]), item[0]))
    for text, found in ranked[: _MOST_HELPS + 1]:
        several, one = marked("{path}, line {line}, and {more} more: {help}"), marked("{path}, line {line}: {help}")
        where = {"path": found[0].path, "line": found[0].span.line, "more": len(found) - 1, "help": text}
        placed = Sentence(several if len(found) > 1 else one, **where) if len(helped) > 1 else text
        how = Sentence("{how}. {help}", how=how, help=placed) if how else placed
    if how:
        older = {finding.detail("back") for finding, _ in draft.findings}
        back = Sentence(marked("{how}. Or, for all of it, require {names}"), how=how, names=" and ".join(lowest(older)))
        return how if "" in older else back
    try:
        return load(draft.findings[0][0].code).sections.get("What to do", "").partition("\n\n")[0].replace("\n", " ")
    except DiagnosticError:
        return draft.findings[0][0].message


def lowest(bounds: Iterable[str]) -> list[str]:
    """Of bounds such as `numpy<2` and `numpy<=1.26.4` the lowest one of each package, and the NumPy that its releases
    were built for.
    """
    falling = sorted(bounds, key=lambda each: [*map(int, re.findall(r"\d+", each.partition("<")[2]))], reverse=True)
    found = {each.partition("<")[0]: each for each in falling}
    for package, bound in [*found.items()]:
        if only_older(bound.removeprefix(package), beside_newer(package.lower(), "numpy_2") or "0"):
            found.setdefault("numpy", "numpy<2")
    return sorted(found.values(), key=lambda bound: (bound == "numpy<2", bound))


def _order(finding: Finding) -> tuple[object, ...]:
    """By place, and findings of one place always in the same order."""
    rest = (finding.code, finding.api, finding.message, finding.level.value)
    return (*finding.sort_key(), *rest, str(finding.effort), finding.edit is None)
