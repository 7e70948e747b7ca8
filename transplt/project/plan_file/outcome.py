"""What became of a plan, from the findings of the run: one sentence on what was done, one for each thing that was not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from transplt.base.finding import Finding
from transplt.base.plan_decisions import LEAVE, Choice, Decided, matches
from transplt.base.render.cell import many, visible
from transplt.project.plan_file.places import each_choice, not_followed


def followed(decided: Decided | None, findings: Mapping[str, Sequence[Finding]]) -> tuple[str, ...]:
    """The sentences for the summary and the log; `findings` are those of each file of the project, by its path."""
    if decided is None:
        return ()
    lost = [*decided.said]
    done = Counter[str]()
    for path, choice in each_choice(decided.places):
        if path in findings and any(_holds(choice, each) for each in findings[path]):
            done[choice.choice] += 1
        else:
            why = f"nothing with this code is {'' if choice.choice == LEAVE else 'edited '}there"
            lost.append(not_followed(choice.choice, f"{path}:{choice.line} {choice.code}", why))
    files = [(pattern, pattern) for pattern in decided.left]
    files += [(pattern, f"{', '.join(codes)} in {pattern}") for pattern, codes in decided.codes if pattern != "*"]
    for pattern, what in files:
        if not any(matches(path, pattern) for path in findings):
            lost.append(not_followed(LEAVE, what, "the project has no such file"))
    left = sum(decided.leaves(path) for path in findings)
    did = [f"{key} {value}" for key, value in decided.keys]
    did += [f"{many(count, 'place')}: {choice}" for choice, count in sorted(done.items())]
    did += [f"{many(left, 'file')} left unchanged ({', '.join(decided.left)})"] if left else []
    for pattern, codes in decided.codes:
        did.append(f"{', '.join(codes)} left" + (f" in {pattern}" if pattern != "*" else ""))
    head = f"as {decided.plan} says: {'; '.join(did) or 'nothing that a run without it does not'}"
    return tuple(map(visible, (head, *lost)))


def _holds(choice: Choice, finding: Finding) -> bool:
    """Whether a finding shows that a choice was followed."""
    if finding.code != choice.code:
        return False
    span = finding.span
    if choice.choice == LEAVE:
        return bool(finding.ignored) and (span.line, span.column) == (choice.line, choice.column)
    return finding.applied and (choice.line, choice.column) <= (span.line, span.column)
