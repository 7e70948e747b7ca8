"""The text of a pull request for a branch of the portable style: what it does, what was proved, and what is left."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from transplt.base.render.cell import first_of, many, visible
from transplt.base.render.verdict import Verdict
from transplt.engine.actions.action import Action
from transplt.engine.actions.actions import separate
from transplt.flow.entry_points import TO_TRAIN
from transplt.project.report.action_lines import conditions
from transplt.proof.launch.options import RunOptions

#: So many lines it has at most, and so many commits and places of one thing are named.
MOST_LINES = 60
_MOST_COMMITS, _MOST_PLACES, _MOST_FILES, _MOST_WHYS = 12, 6, 4, 2
#: Codes of what newer releases of packages reject, whatever the device.
_OF_ANY_DEVICE = frozenset({"NPU153", "NPU159", "NPU293", "NPU313"})
#: Parts of an advice, and those that speak of transplt: its readers do not have it.
_CLAUSE = re.compile(r"(?<=[;:.]) +(?![^(]*\))(?=[^`]*(?:`[^`]*`[^`]*)*$)")
_OF_TRANSPLT = re.compile(
    r"transplt|--(?:adapt|amp|docs|prove|similar|texts|torch-version|tune|unsafe-fixes)\b|the findings|this migration"
)
#: What leads to a part that is left out: a name alone goes with it.
_LED_IN = re.compile(r"^\w+:$|:$")
#: In one line each, since line breaks stay in a pull request.
_ABOUT = (
    "The accelerator is chosen {where}: an NPU where torch_npu is installed and finds one, else CUDA as before. "
    "{fixed} names such as `\"cuda\"` and `torch.cuda` give way to names from there: on CUDA and on a CPU the program "
    "does what it did. Each other change has its own commit."
)
_NO_CHANGE = "No change: there is nothing in this project to convert."

_OF_NPUS = ('What is for NPUs alone goes behind `DEVICE_TYPE == "npu"`, or into a file or list of its own: what CUDA '
            "and CPU users run and install stays.")  # fmt: skip


def body(
    modules: Sequence[str], commits: Sequence[str], torch: str, run: RunOptions | None, proof: Verdict | None,
    checks: Sequence[str], left: Sequence[Action], lists: Sequence[str] = (),
    stopped: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """The text, in Markdown. `modules` choose the accelerator, `commits` are the subjects of those on the branch,
    `torch` is the version that it was written for, `run` what `proof` is of; `checks` is what the project's own
    linters say of it. `lists` are its lists of packages for NPUs, `stopped` what programs do on an NPU before they
    come to a file that stays.
    """
    places = [f"`{visible(each)}`" for each in modules]
    every = f"{len(places)} files" if places[_MOST_FILES:] else ", ".join(places)
    each_has = f"in each of {every}, since some run without the others or with an older release"
    where = each_has if places[1:] else " in ".join(("once", *places))
    listed = f": {' or '.join(f'`{visible(each)}`' for each in lists)} lists what to install" if lists else ""
    needs = f"On an NPU it needs CANN and {torch} (the package torch-npu){listed}."
    lines = ["## What this does", ""]
    items = [*_left(left)]
    lines += _stops(left, items, stopped or {})
    about = _ABOUT.format(where=where, fixed="In all other files, fixed" if stopped else "Fixed")
    lines += [about, "", needs, ""] if modules else []
    commits = [*dict.fromkeys(commits)]
    lines += [f"- {visible(each)}" for each in commits[:_MOST_COMMITS]]
    lines += [f"- and {many(len(commits) - _MOST_COMMITS, 'commit')} more"] * (len(commits) > _MOST_COMMITS)
    lines += ["", "## What was proved", "", "- Every commit compiles, and uses no name before it is defined."]
    if run is not None and proof is not None:
        command = shlex.join((run.script, *run.arguments))
        lines.append(f"- `{visible(command)}`, on an emulated NPU and on a stand-in for CUDA: {visible(str(proof))}")
    else:
        lines.append("- Nothing was run.")
    lines += [f"- {visible(each)}" for each in checks if ": not run" not in each]
    lines += ["- No card was used.", ""]
    lines = [*(lines if commits else ["## What this does", "", _NO_CHANGE, ""]), "## What is left", ""]
    lines += [_OF_NPUS, ""] if items and modules else []
    room = MOST_LINES - len(lines)
    if len(items) > room:
        more = len(items) - room + 1
        items[room - 1 :] = [f"- and {more} more"]
    return "\n".join([*lines, *(items or ["Nothing that transplt knows of."])]) + "\n"


def _stops(left: Sequence[Action], items: Sequence[str], stopped: Mapping[str, str]) -> Iterator[str]:
    """The files that stay since their programs are `stopped`, and what stops the others as they start."""
    if stopped:
        first = sorted(stopped, key=lambda each: (not TO_TRAIN.search(each), each.count("/"), each))
        whys = first_of([*dict.fromkeys(visible(stopped[each]) for each in first)], _MOST_WHYS, ", or ")
        files = first_of([f"`{visible(each)}`" for each in first], _MOST_FILES)
        yield from (f"**Not ported**: {files}. On an NPU their programs {whys}.", "")
    every = (part for part, item in zip(separate(left), items, strict=True) if "** (stops at import)" in item)
    # Of code: what a list or a page asks for stops who installs by it.
    code = ((part, {place.path for place in part.places if place.path.endswith(".py")}) for part in every)
    named = [visible(part.title) for part, paths in code if not paths <= stopped.keys()]
    if named:
        yield from (f"**Does not start on an NPU yet.** To be done first: {first_of(named, 2, '; ')}.", "")


def _left(actions: Sequence[Action]) -> Iterator[str]:
    """A line for each thing to do, with its first places, and when it is met where not every run comes to it."""
    for part in separate(actions):
        places = [f"`{visible(place.path)}:{line}`" for place in part.places for line in place.lines]
        every = _CLAUSE.split(part.how)
        clauses = [
            _LED_IN.sub(lambda led: "." * (led[0] == ":"), each) if _OF_TRANSPLT.search(then) else each
            for each, then in pairwise([*every, ""]) if not _OF_TRANSPLT.search(each)
        ]  # fmt: skip
        advice = re.sub(r"^(?:(?:By hand|instead): )+", "", " ".join(filter(None, clauses))).rstrip(";:. ")
        how = f": {visible(advice)}" if advice else ""
        of_any = ["on every device, with newer releases"] if _OF_ANY_DEVICE.issuperset(part.codes or ("",)) else []
        asked = [*of_any, *conditions(part)]
        when = ", ".join(asked if of_any or (asked and part.blocks == "later") else (part.blocking, *asked))
        yield f"- [ ] **{visible(part.title)}** ({when}){how} ({first_of(places, _MOST_PLACES)})"
