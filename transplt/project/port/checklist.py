"""What is left of a port, as a Markdown file with boxes to tick, and a patch where one can be drafted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from transplt.base.render.cell import first_of, visible
from transplt.engine.actions.action import Action
from transplt.project.report.action_lines import about, how_many
from transplt.project.report.migration_record import RunResult

NAME = "NPU_PORT.md"
_TICKED = re.compile(r"^- \[[xX]\] \*\*(.+?)\*\*", re.M)
#: So many places of one thing to do are listed.
_MOST_PLACES = 20
_LARGEST_PATCH = 200_000


def checklist(
    result: RunResult, actions: Sequence[Action], drafts: bytes, left_out: Mapping[str, str], before: str = ""
) -> str:
    """The text of the file.

    `drafts` is a patch of edits that may change what the program does; `left_out` are decisions with the proof that
    speaks against them; what is ticked in `before` stays ticked where it is still to do.
    """
    ticked = {match[1] for match in _TICKED.finditer(before)}
    lines = ["# What is left of the port to NPUs", ""]
    lines.append(f"For {target(result)}. Lines are those of the branch. `transplt explain CODE` explains a code.")
    if left_out:
        lines += ["", "## Left out, because its proof failed", ""]
        lines += [f"- {visible(name)}: {visible(why)}" for name, why in left_out.items()]
    heading = ""
    for action in actions:
        if action.heading != heading:
            heading = action.heading
            lines += ["", f"## {heading[0].upper()}{heading[1:]}", ""]
        if action.parts:
            lines += [f"**{visible(action.title)}**", ""]
        for part in action.parts or (action,):
            lines += _item(part, ticked)
    if not actions:
        lines += ["", "Nothing that transplt knows of is left to do."]
    if drafts:
        lines += ["", "## Suggested, not applied", ""]
        lines += [
            "These edits may change what the program does. Apply this patch, or a part of it, with `git apply`.", ""
        ]
        text = drafts[:_LARGEST_PATCH].decode("utf-8", "replace").replace("\r\n", "\n")
        fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=2) + 1)
        lines += [fence + "diff", text.rstrip("\n"), fence]
        if len(drafts) > _LARGEST_PATCH:
            lines += ["", "The rest is omitted: `transplt -i . --unsafe-fixes --diff` prints all of it."]
    return "\n".join(lines) + "\n"


def target(result: RunResult) -> str:
    """The versions that a migration is for, in words."""
    torch_npu = result.target.torch_npu
    return f"torch {result.target.pin}" + (f" with torch_npu {torch_npu}" if torch_npu else "")


def _item(action: Action, ticked: Iterable[str]) -> list[str]:
    title = visible(action.title).replace("*", "\\*")
    size = f"{about(action.hours)}, {how_many(action)}"
    lines = [f"- [{'x' if title in ticked else ' '}] **{title}** ({size}; {', '.join(action.codes)})"]
    helps = {each.help for each in action.findings} - {""}
    # of places that ask for different things
    each_its_own = len(helps) > 1 and any(each in action.how for each in helps)
    if action.how and not each_its_own:
        lines.append(f"  {visible(action.how)}")
    by_message: dict[str, dict[str, None]] = {}
    for each in action.findings:
        said = "\n      ".join(map(visible, filter(None, (each.message, each.help * each_its_own))))
        by_message.setdefault(said, {})[f"`{visible(each.path)}:{each.span.line}`"] = None
    for message, places in tuple(by_message.items())[:_MOST_PLACES]:
        lines.append(f"    - {first_of([*places], _MOST_PLACES)}: {message}")
    if len(by_message) > _MOST_PLACES:
        lines.append(f"    - and {len(by_message) - _MOST_PLACES} other findings")
    return lines
