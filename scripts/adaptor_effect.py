"""What `--adapt all` comes to over projects: what stops their main scripts, and hours, without it and with it.

    python scripts/adaptor_effect.py PROJECT...

One row a project, as Markdown. Nothing is written.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from transplt.engine.actions.actions import actions_of, total_hours
from transplt.fixers.adaptors.table import adaptors
from transplt.project.options import Options, make_plan
from transplt.project.tree import diff_tree

_STOPS = ("import", "first step")


def measured(folder: str, adapt: str | None) -> tuple[int, float, Counter[str]]:
    """The actions that stop what training scripts reach, the hours of all, and the edits of adaptors by name."""
    result = diff_tree(make_plan(Options(source=folder, isolated=True, analysis=True, adapt=adapt, jobs=1)))
    actions = actions_of(result.findings)
    stops = sum(action.blocks in _STOPS and not action.aside for action in actions)
    names = {each.code: name for name, each in adaptors().items()}
    made = Counter(names[each.code] for each in result.findings if each.applied and each.code in names)
    return stops, total_hours(actions), made


def main() -> None:
    print("| project | stops | with `--adapt all` | hours | with it | edits |\n|---|---:|---:|---:|---:|---|")
    sums = [0.0] * 4
    for folder in sys.argv[1:]:
        before, after = measured(folder, None), measured(folder, "all")
        figures = (before[0], after[0], before[1], after[1])
        sums = [one + other for one, other in zip(sums, figures, strict=True)]
        edits = ", ".join(f"{name} {count}" for name, count in sorted(after[2].items()))
        print(f"| {Path(folder).name} | {figures[0]} | {figures[1]} | {figures[2]:.0f} | {figures[3]:.0f} | {edits} |")
    print(f"| all | {sums[0]:.0f} | {sums[1]:.0f} | {sums[2]:.0f} | {sums[3]:.0f} | |")


if __name__ == "__main__":
    main()
