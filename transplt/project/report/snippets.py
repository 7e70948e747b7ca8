"""What a person pastes to carry out an action: an option, a line of requirements, of a Dockerfile or of Python.

Nothing is made up here: options are those that the findings name, lines are taken from their helps, and code from the
pages of their codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from transplt.base.finding import Level
from transplt.base.language import marked
from transplt.engine.actions.action import Action
from transplt.rules.pages import DiagnosticError, load

_MOST, _MOST_LINES, _MOST_CODES = 4, 12, 2
_OPTION = marked("Run the migration with this option, which makes the edits that it can:")
_REQUIREMENT = marked("Add to the requirements:")
_COMMAND = marked("On the command line:")
_RECIPE = marked("Write in the Dockerfile:")
_PLACE = marked("Write instead:")
_CODE = marked("For example, write:")
_EXAMPLE = marked("An example, with names of its own:")
_UNSAFE = "--unsafe-fixes"
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: The forms in which helps give what is to be written, where it goes, and how it is written there.
_FORMS = (
    (re.compile(r"^FROM (\S+), then (RUN [^;]+);"), _RECIPE, "FROM {0}\n{1}"),
    (re.compile(r"^(docker run .+?) \(one "), _COMMAND, "{0}"),
    (re.compile(r"^in its place: (.+?)(?: \(one |, on a runner|, as github)"), _PLACE, "{0}"),
    (re.compile(r"^(huawei\.com/\w+: \S+), in limits"), _PLACE, "{0}"),
    (re.compile(r"(pip install --extra-index-url \S+)"), _COMMAND, "{0}"),
    (re.compile(r"\badd \"?(torch-npu==[\w.]+)"), _REQUIREMENT, "{0}"),
    (re.compile(r"\bwrite ([A-Z][A-Z0-9_]+=[^\s;,]+)"), _PLACE, "{0}"),
)
#: A package of another name that is installed with or for the one that is required.
_PACKAGE = re.compile(r"^instead: ([a-z0-9]+(?:-[a-z0-9]+)+);")
_REQUIRED = frozenset({"NPU290", "NPU512"})


class Snippet(NamedTuple):
    """`text` as it is pasted, and where, in words that end with a colon."""

    where: str
    text: str


def snippets(action: Action) -> tuple[Snippet, ...]:
    """A few of them, the shortest way first; empty where nobody can say beforehand what is to be written."""
    found: dict[str, dict[str, None]] = {}
    for where, text in _all(action):
        found.setdefault(where, {})[text] = None
    made = (Snippet(where, "\n".join(islice(texts, _MOST_LINES))) for where, texts in found.items())
    return tuple(islice(made, _MOST))


def _all(action: Action) -> Iterator[tuple[str, str]]:
    names = sorted({finding.adaptor for finding in action.findings} - {""})
    if names:
        yield _OPTION, f"--adapt {','.join(names)}"
    if any(finding.level is Level.UNSAFE and _UNSAFE in finding.help for finding in action.findings):
        yield _OPTION, _UNSAFE
    for code, help_ in dict.fromkeys((finding.code, finding.help) for finding in action.findings):
        for pattern, where, form in _FORMS:
            if found := pattern.search(help_):
                yield where, form.format(*found.groups())
        if code in _REQUIRED and (found := _PACKAGE.match(help_)):
            yield _REQUIREMENT, found[1]
    yield from ((_REQUIREMENT, wanted) for finding in action.findings if (wanted := finding.detail("wanted")))
    for code in () if action.how.startswith("nothing to edit") else action.codes[:_MOST_CODES]:
        yield from _of_page(code)


def _of_page(code: str) -> Iterator[tuple[str, str]]:
    """The code under What to do."""
    try:
        page = load(code)
    except DiagnosticError:  # of a rule of the user's own
        return
    for language, text in _FENCE.findall(page.sections.get("What to do", "")):
        yield _COMMAND if language == "sh" else _CODE, text.rstrip("\n")
    examples = page.examples()
    if page.level is Level.UNSAFE and len(examples) > 1 and examples[1].count("\n") <= _MOST_LINES:
        yield _EXAMPLE, examples[1].rstrip("\n")
