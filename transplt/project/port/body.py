"""The text of a pull request for a branch of the portable style: what changes, what was proved, what stops an NPU. What
somebody has to decide, and how it is done, is in the reports of a migration: a clause more is one more to be wrong.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from transplt.base.finding import Finding
from transplt.base.grouped import grouped
from transplt.base.language import Sentence
from transplt.base.render.cell import first_of, visible
from transplt.base.render.verdict import Verdict
from transplt.base.text.requirement import normalised
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import separate
from transplt.engine.actions.effort import OF_ANY_DEVICE
from transplt.engine.actions.groups import aside
from transplt.flow.chooser_place import NO_STOP
from transplt.flow.entry_points import TO_TRAIN
from transplt.project.port.decisions import decisions
from transplt.project.report.action_lines import conditions
from transplt.proof.launch.options import RunOptions
from transplt.rules.packages import TOO_OLD, numbers_of
from transplt.rules.since import only_older

#: So many things to do are listed, and so many places or names of one, files and reasons.
MOST = 8
_MOST_OF_ONE, _MOST_FILES = 3, 4
#: The imports of kernels: their sources stay, whatever comes to them.
_OF_KERNELS = ("NPU553", "NPU554")
#: What fails to be imported, wherever that is.
_OF_IMPORTS = (*_OF_KERNELS, "NPU510", "NPU512")
#: Titles of what somebody has to look at, or to decide, before it is known to stop anything; of what stays for CUDA.
_PERHAPS = re.compile(
    r"Add the NPU case|Check(?! out)|Decide (?!what an)|Do (?!not)|Find out|Keep (?!NPUs)|Test |"
    r".*not supported on"
)
#: From which release on is said behind it.
_NEWER = re.compile(r": newer releases of \S+ refuse or ignore them|(?<=: removed) in newer releases")
_REPLACE = re.compile(r"^Replace (.+?)(?:, or rewrite (?:it|them) for the NPU)?(?=:|$)")
_CODE = re.compile(r"(?:(?<!setup)\.py|\.gitmodules)\Z")
_FOR_NPUS = {"cuda": "npu", "nccl": "hccl"}
#: A value that the code reads as a device or backend.
_CONFIGURED = "NPU821"
#: In one line each, since line breaks stay in a pull request.
_ABOUT = (
    "The accelerator is chosen in {}: an NPU if torch_npu is installed and finds one, else CUDA as before. On "
    "CUDA and on a CPU the program does what it did.{}"
)
_DECIDES = " But {} {} the device: on an NPU start the program with {}, or set that there."
_NONE: Mapping[str, Any] = {}
#: After these a program goes on: old pins, CUDA's mixed precision (float32 elsewhere), files that may be of a GPU.
_GOES_ON = (TOO_OLD, "NPU103", "NPU152")
NOT_READY = "**Not ready**: on an NPU no program trains"
#: From which release on something fails, or which last had it, as a message says it: of its own package where it names
#: none.
_SINCE = re.compile(r"\b(?:since|removed) ((?:some release )?after )?(?:(torch|Python|NumPy) )?(\d[\d.]*\d)")
#: A text has so many words; what does not fit in is counted.
_WORDS = 200


def body(
    modules: Sequence[str], commits: Sequence[str], torch: str, run: RunOptions | None, proof: Verdict | None,
    checks: Sequence[str], left: Sequence[Action], lists: Sequence[str] = (),
    stopped: Mapping[str, str] = _NONE, older: Mapping[str, str] = _NONE,
    programs: Mapping[str, Collection[str]] = _NONE,
) -> str:  # fmt: skip
    """The text, in Markdown. `modules` choose the accelerator, `commits` are the subjects of those on the branch,
    `torch` is the version that it was written for, `run` what `proof` is of; `checks` is what the project's own
    linters say of it. `lists` are its lists of packages for NPUs, `stopped` what programs do on an NPU before they
    come to a file that stays, `older` the releases of packages that those lists ask for, `programs` the files that
    each comes to that trains.
    """
    stops = [each for each in separate(left) if each.stops]
    sure = [each for each in stops if not _PERHAPS.match(each.title)]
    # What stops a file that stays stops the training that comes to it.
    first = [each for each in _left(sure, {}, older) if _is_met_first(each)]
    parts = [each for each in _left(sure, stopped, older) if each.title not in {one.title for one in first}]
    lines = ["## What this does", "", *_first(first, programs), *_stays(stopped), *_about(modules, torch, lists, parts)]
    subjects = {each.subject for each in decisions("portable") if "merged alone" in each.why}
    if apart := [f"“{visible(each)}”" for each in dict.fromkeys(commits) if each in subjects]:
        lines += [f"{', '.join(apart)}: not for NPUs, and can be merged alone.", ""]
    lines += ["## What was proved", "", *_proved(run, proof, checks)]
    room = _WORDS - len(" ".join(lines).split()) - len("## What is left - and 9 more, met later".split())
    named = [*filter(_is_named, parts)]
    items = _at_most([*_items(named)], [*_items([each for each in parts if each not in named])], room)
    known = f"is known {'for certain ' * (len(sure) < len(stops))}that stops it on an NPU."
    told = items or [f"Nothing {'else ' * bool(first or {*stopped.values()}.difference(NO_STOP))}{known}"]
    lines = lines if commits else ["## What this does", "", "No change: there is nothing in this project to convert."]
    return "\n".join([*lines, "", "## What is left", "", *told]) + "\n"


def _is_named(part: Action) -> bool:
    """True for what stops an import or a first step: that is named, however much there is."""
    return part.blocks != "later" or not {*part.codes}.isdisjoint(_OF_IMPORTS) or " import" in part.title


def _about(modules: Sequence[str], torch: str, lists: Sequence[str], parts: Sequence[Action]) -> Iterator[str]:
    """Where the accelerator is chosen, what decides before that, and what it needs."""
    if modules:
        places = [f"`{visible(each)}`" for each in modules]
        pins = re.sub(r"(torch\w*) ", r"\1==", torch).replace("torch_npu", "torch-npu").replace(" with", "")
        packages = [f"`{visible(each)}`" for each in lists] or [f"`pip install {pins}`"]
        listed = f" Packages: {' or '.join(packages)}." if "-npu" in pins or lists else ""
        devices = [each for part in parts for each in part.findings if each.code == _CONFIGURED and "cuda" in each.api]
        files = [*dict.fromkeys(f"`{visible(each.path)}`" for each in devices)]
        words = [*dict.fromkeys(_on_npus(each, "=") for each in devices)]
        decides = (first_of(files, _MOST_OF_ONE), f"name{'s' * (len(files) == 1)}", first_of(words, 1, " and "))
        where = f"{len(places)} files" if places[_MOST_OF_ONE:] else ", ".join(places)
        yield from (_ABOUT.format(where, _DECIDES.format(*decides) if devices else ""), "")
        yield from (f"On an NPU it needs CANN and torch-npu; it is written for {torch}.{listed}", "")


def _proved(run: RunOptions | None, proof: Verdict | None, checks: Sequence[str]) -> Iterator[str]:
    """What was done with the branch, and on what."""
    if run is not None and proof is not None:
        command = visible(shlex.join((run.script, *run.arguments)))
        yield f"- `{command}`, on an emulated NPU and on a stand-in for CUDA: {visible(str(proof))}"
    yield f"- {'No' if proof is not None else 'Nothing was run, and no'} card was used."
    yield "- After each commit the changed Python files compile as before."
    yield from (f"- {visible(each)}" for each in checks if ": not run" not in each)


def _first(first: Sequence[Action], programs: Mapping[str, Collection[str]]) -> Iterator[str]:
    """The programs that do not train on an NPU, and why."""
    if first:
        places = [{each.path for each in part.findings} for part in first]
        # What no program is seen to come to is loaded by a name that is worked out.
        known = [each for each in places if any(not each.isdisjoint(reached) for reached in programs.values())]
        ends = [path for path, reached in programs.items() if any(not each.isdisjoint(reached) for each in known)]
        some = len(known) == len(places) and len(ends) < len(programs)
        names = first_of([f"`{visible(each)}`" for each in sorted(ends, key=_by_name)], _MOST_FILES)
        which = f"**In part**: on an NPU {names} stop{'s' * (len(ends) == 1)}" if some else NOT_READY
        yield from (f"{which} until this is done:", "", *_items(first), "")


def _stays(stopped: Mapping[str, str]) -> Iterator[str]:
    """The files that stay since their programs are `stopped`, or as they are old code or for other hosts."""
    kinds = grouped((stopped[each] if stopped[each] in NO_STOP else "", each) for each in sorted(stopped, key=_by_name))
    for kind, files in sorted(kinds.items()):
        whys = [*dict.fromkeys(visible(stopped[each]).partition(" (")[0] for each in files)]
        named = first_of([f"`{visible(each)}`" for each in files], _MOST_FILES)
        why = f". Programs that come to {'them' if files[1:] else 'it'} on an NPU {', or '.join(whys)}"
        yield from (f"**Not ported**: {named}{f': {kind}' if kind else why}.", "")


def _by_name(path: str) -> tuple[bool, int, str]:
    """The order of files: first those that train by their names, and those at the top."""
    return not TO_TRAIN.search(path), path.count("/"), path


def _at_most(named: list[str], rest: list[str], room: int) -> list[str]:
    """All lines that are `named`, as many of the `rest` as so many words have `room` for, and how many more are met
    later.
    """
    items = [*named, *rest]
    words = [*accumulate(len(each.split()) for each in items)]
    most = len(items) if not items[MOST:] and words[-1:] <= [room] else MOST - 1
    fit = max(sum(each <= room for each in words[:most]), len(named), 1)
    return [*items[:fit], f"- and {len(items) - fit} more, met later"] if items[fit:] else items


def _is_met_first(part: Action) -> bool:
    """True for what stops a program as it starts, or on NPUs alone at its first step, whatever it is given."""
    asked = (each for each in part.findings
             if not (_is_late(each) or each.option or each.detail("function") or each.detail("back")))  # fmt: skip
    blocks = {each.blocks or part.blocks for each in asked if each.code not in _GOES_ON and each.api[:2] != "--"}
    return "import" in blocks or ("first step" in blocks and not OF_ANY_DEVICE.issuperset(part.codes))


def _left(actions: Sequence[Action], stopped: Mapping[str, str], older: Mapping[str, str]) -> Iterator[Action]:
    """What is in code, or read by it, or bounds what is installed; but for the files that are `stopped`, what some
    branch loads, and what newer releases refuse than the lists for NPUs ask for.
    """
    for part in actions:
        bound = part.codes == (TOO_OLD,) and not any(_is_late(each) or each.api == "torch" for each in part.findings)
        # What is in code, and a value that the code reads.
        met = (each for each in part.findings
               if bound or (each.code == _CONFIGURED and not each.blocks) or _CODE.search(each.path))  # fmt: skip
        code = [each for each in met if not (aside(each) or each.path in stopped or _is_older(each, older))]
        if any(each.late != "branch" or each.option or each.detail("function") or each.code in _OF_KERNELS
               for each in code):  # fmt: skip
            yield replace(part, findings=tuple(code))


def _is_older(finding: Finding, older: Mapping[str, str]) -> bool:
    """Whether a list asks only for releases that are older than what refuses this: `timm >= 0.9`."""
    package, sign, limit = finding.detail("gone").split() or ("", "", "0")
    versions = older.get(normalised(package), "")
    return only_older(versions, limit) or (sign == ">" and f"<={limit}" in versions.split(","))


def _is_late(finding: Finding) -> bool:
    """True for what the main program does not load as it starts."""
    return bool(finding.late or finding.detail("program"))


def _items(parts: Sequence[Action]) -> Iterator[str]:
    """A line for each thing to do, with when it is met and its first places; what differs in its name alone is one."""
    same: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    for part in parts:
        # Neither whether a script trains nor a function is said: what stops is in the program all the same.
        met = tuple(replace(each, late="" if each.late == "other" else each.late, details=()) for each in part.findings)
        when = [_since(part)] * OF_ANY_DEVICE.issuperset(part.codes)
        pattern, short = (_NEWER, "") if when else (_REPLACE, r"Add code for NPUs beside \1")
        title = pattern.sub(short, visible(part.title))
        if part.codes == (_CONFIGURED,):
            many = "On hosts with NPUs" if any("cuda" in each.api for each in part.findings) else "With several NPUs"
            words = dict.fromkeys(_on_npus(each, ": ") for each in part.findings)
            title = f"{many} set {first_of([*words], _MOST_OF_ONE)}"
        when += conditions(replace(part, blocks="later", findings=met))
        name = visible(str(part.title.values.get("name", ""))) if isinstance(part.title, Sentence) else ""
        paths = {each.path for each in met}
        places = [f"`{visible(at.path)}:{line}`" for at in part.places if at.path in paths for line in at.lines]
        same.setdefault((title.replace(name, "{}", 1) if name else title, *when), []).append((name, places))
    for (title, *when), found in same.items():
        names = " and ".join(dict.fromkeys(name for name, _ in found))
        where = first_of([place for _, places in found for place in places], _MOST_OF_ONE)
        title = title.replace(" kernel {}", " kernels {}") if len(found) > 1 else title
        yield f"- {title.replace('{}', names, 1)} ({'; '.join(filter(None, [', '.join(when), where]))})"


def _on_npus(finding: Finding, sign: str) -> str:
    """The key of a configuration with what an NPU needs: `device: npu`."""
    value = re.sub("cuda|nccl", lambda match: _FOR_NPUS[match[0]], finding.api)
    return f"`{visible(sign.join(filter(None, (finding.detail('key'), value))))}`"


def _since(part: Action) -> str:
    """When something fails on every device: with which releases, of each package from the first one on."""
    first: dict[str, str] = {}
    for each in part.findings:
        package, sign, version = each.detail("gone").split() or ("", "", "0")
        if (match := _SINCE.search(each.message)) and (version == "0" or match[1]):
            package, version = match[2] or package or each.api.partition(".")[0], match[3]
            sign = ">" if match[1] else ">="
        bounds = first.get(package, f"{sign} {version}"), f"{sign} {version}"
        first[package] = min(bounds, key=lambda bound: numbers_of(bound.rpartition(" ")[2]))
    newer = "newer releases" if "" in first else " or ".join(f"{each} {first[each]}" for each in sorted(first))
    imported = any(each.blocks == "import" for each in part.findings)
    return f"{'at import ' * imported}with {newer} on every device"
