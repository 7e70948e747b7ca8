"""The text of a pull request for a branch of the portable style: what changes, what was proved, what stops an NPU. What
somebody has to decide, and how it is done, is in the reports of a migration: a clause more is one more to be wrong.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from transplt.base.finding import Finding
from transplt.base.language import Sentence
from transplt.base.render.cell import first_of, visible
from transplt.base.render.verdict import Verdict
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import separate
from transplt.engine.actions.groups import PACKAGES, aside
from transplt.engine.files.dependencies.versions import FAMILY
from transplt.flow.entry_points import TO_TRAIN
from transplt.project.port.decisions import decisions
from transplt.project.report.action_lines import conditions
from transplt.proof.launch.options import RunOptions
from transplt.rules.packages import TOO_OLD

#: So many things to do are listed, and so many places or names of one, files and reasons.
MOST = 8
_MOST_OF_ONE, _MOST_FILES, _MOST_WHYS = 3, 4, 2
#: Codes of what newer releases of packages reject, whatever the device.
_OF_ANY_DEVICE = frozenset({"NPU153", "NPU154", "NPU159", "NPU293", "NPU313", "NPU514"})
#: Titles of what somebody has to look at, or to decide, before it is known to stop anything; of what stays for CUDA.
_PERHAPS = re.compile(
    r"Add the NPU case|Check(?! what bec)|Decide (?!what an)|Do |Find out|Keep (?!NPUs)|Test |.*not supported on"
)
_REPLACE = re.compile(r"^Replace (.+?)(?:, or rewrite (?:it|them) for the NPU)?(?=:|$)")
_CODE = re.compile(r"(?<!setup)\.py\Z")
#: What is said in fewer words, of files that stay, than in the reports.
_SAID = {
    "Check what becomes of devices and backends that scripts and configurations name":
        "On hosts with NPUs set npu or hccl where a configuration names a device or backend",
    "Make CUDA_VISIBLE_DEVICES hold for NPUs, too":
        "Set ASCEND_RT_VISIBLE_DEVICES, too, where CUDA_VISIBLE_DEVICES is set",
}  # fmt: skip
#: A value that the code reads as a device or backend.
_CONFIGURED = "NPU821"
#: In one line each, since line breaks stay in a pull request.
_ABOUT = (
    "The accelerator is chosen in {}: an NPU if torch_npu is installed and finds one, else CUDA as before. On "
    "CUDA and on a CPU the program does what it did."
)
_BESIDE = "What is for NPUs alone goes beside what CUDA and CPU users run and install, which stays."


def body(
    modules: Sequence[str], commits: Sequence[str], torch: str, run: RunOptions | None, proof: Verdict | None,
    checks: Sequence[str], left: Sequence[Action], lists: Sequence[str] = (),
    stopped: Mapping[str, str] | None = None, newer: Collection[str] = (),
) -> str:  # fmt: skip
    """The text, in Markdown. `modules` choose the accelerator, `commits` are the subjects of those on the branch,
    `torch` is the version that it was written for, `run` what `proof` is of; `checks` is what the project's own
    linters say of it. `lists` are its lists of packages for NPUs, `stopped` what programs do on an NPU before they
    come to a file that stays, `newer` packages of which NPUs need newer releases.
    """
    stops = [each for each in separate(left) if each.stops]
    sure = [each for each in stops if not _PERHAPS.match(each.title)]
    parts = [*_left(sure, stopped or {}, newer)]
    lines = ["## What this does", "", *_first(parts, stopped or {})]
    if modules:
        places = [f"`{visible(each)}`" for each in modules]
        listed = f" Packages: {' or '.join(f'`{visible(each)}`' for each in lists)}." if lists else ""
        lines += [_ABOUT.format(f"{len(places)} files" if places[_MOST_OF_ONE:] else ", ".join(places)), ""]
        lines += [f"On an NPU it needs CANN and torch-npu; it is written for {torch}.{listed}", ""]
    subjects = {each.subject for each in decisions("portable") if "merged alone" in each.why}
    if apart := [f"“{visible(each)}”" for each in dict.fromkeys(commits) if each in subjects]:
        lines += [f"{', '.join(apart)}: not for NPUs, and can be merged alone.", ""]
    lines += ["## What was proved", "", *_proved(run, proof, checks)]
    items = [*_items(parts)]
    items = [*items[: MOST - 1], f"- and {len(items) - MOST + 1} more"] if items[MOST:] else items
    known = f"is known {'for certain ' * (len(sure) < len(stops))}that stops it on an NPU."
    told = [_BESIDE, "", *items] if items else [f"Nothing {'else ' * bool(stopped)}{known}"]
    lines = lines if commits else ["## What this does", "", "No change: there is nothing in this project to convert."]
    return "\n".join([*lines, "", "## What is left", "", *told]) + "\n"


def _proved(run: RunOptions | None, proof: Verdict | None, checks: Sequence[str]) -> Iterator[str]:
    """What was done with the branch, and on what."""
    if run is not None and proof is not None:
        command = visible(shlex.join((run.script, *run.arguments)))
        yield f"- `{command}`, on an emulated NPU and on a stand-in for CUDA: {visible(str(proof))}"
    yield f"- {'No' if proof is not None else 'Nothing was run, and no'} card was used."
    yield "- After each commit the changed Python files compile as before."
    yield from (f"- {visible(each)}" for each in checks if ": not run" not in each)


def _first(parts: Sequence[Action], stopped: Mapping[str, str]) -> Iterator[str]:
    """The files that stay since their programs are `stopped`, and that the others do not start."""
    if stopped:
        first = sorted(stopped, key=lambda each: (not TO_TRAIN.search(each), each.count("/"), each))
        whys = [*dict.fromkeys(visible(stopped[each]).partition(" (")[0] for each in first)]
        files = first_of([f"`{visible(each)}`" for each in first], _MOST_FILES)
        why = f"Programs that come to {'them' if first[1:] else 'it'} on an NPU {first_of(whys, _MOST_WHYS, ', or ')}."
        yield from (f"**Not ported**: {files}. {why}", "")
    early = (each for part in parts if part.blocks == "import" for each in part.findings)
    at_once = (each for each in early if not (each.late or each.option or each.detail("function")))
    if any(each.blocks in ("", "import") and each.code not in (TOO_OLD, *PACKAGES - {"NPU510"}) for each in at_once):
        yield from ("**Does not start on an NPU yet**: what is left stops its import.", "")


def _left(actions: Sequence[Action], stopped: Mapping[str, str], newer: Collection[str]) -> Iterator[Action]:
    """What is in code, or read by it, or bounds what is installed; but for the files that are `stopped`, what some
    branch loads, and what newer releases refuse of packages that may stay as old as they are.
    """
    for part in actions:
        bound = part.codes == (TOO_OLD,) and not any(each.late or each.api == "torch" for each in part.findings)
        met = (each for each in part.findings if bound or _is_met(each))
        code = [each for each in met if not (aside(each) or each.path in stopped)]
        known = (each for each in code if each.late != "branch" or each.option or each.detail("function"))
        named = {each.api.partition(".")[0] for each in known}
        if named and (not _OF_ANY_DEVICE.issuperset(part.codes) or named <= {"torch", *FAMILY, *newer}):
            yield replace(part, findings=tuple(code))


def _is_met(finding: Finding) -> bool:
    """True for what is in code, and for a value that the code reads."""
    return (finding.code == _CONFIGURED and not finding.blocks) or _CODE.search(finding.path) is not None


def _items(parts: Sequence[Action]) -> Iterator[str]:
    """A line for each thing to do, with when it is met and its first places; what differs in its name alone is one."""
    same: dict[tuple[str, ...], list[tuple[str, list[str]]]] = {}
    for part in parts:
        # Neither whether a script trains nor a function is said: what stops is in the program all the same.
        met = tuple(replace(each, late="" if each.late == "other" else each.late, details=()) for each in part.findings)
        when = ["on every device"] * _OF_ANY_DEVICE.issuperset(part.codes)
        title = visible(part.title) if when else _REPLACE.sub(r"Add code for NPUs beside \1", visible(part.title))
        title = _SAID.get(title, title)
        when += conditions(replace(part, blocks="later", findings=met))
        name = visible(str(part.title.values.get("name", ""))) if isinstance(part.title, Sentence) else ""
        paths = {each.path for each in met}
        places = [f"`{visible(at.path)}:{line}`" for at in part.places if at.path in paths for line in at.lines]
        same.setdefault((title.replace(name, "{}", 1) if name else title, *when), []).append((name, places))
    for (title, *when), found in same.items():
        names = first_of([name for name, _ in found], _MOST_OF_ONE, " and ")
        where = first_of([place for _, places in found for place in places], _MOST_OF_ONE)
        yield f"- {title.replace('{}', names, 1)} ({'; '.join(filter(None, [', '.join(when), where]))})"
