"""Messages, help texts, titles and pages are plain English in the field's words: phrases that none of them may have.

The vocabulary (term: what it means, and what is not said for it):

- finding: what a check reports (not: remark of the analysis, thing); blocker: a finding that stops a run
- action: what a person does about findings, a title that begins with a verb (not: thing to do, what is to be done)
- effort: hours of a person (not: dearness); most expensive first (not: the dearest first)
- device, card, rank, process; one process per card (not: one process a card)
- kernel, operator, launch, program of a grid; unrolled loop (not: a loop that is written out)
- checkpoint, gradient, loss, step, epoch; optimizer step (not: step that an optimizer makes)
- dtype: the type of a tensor's elements (not: type of numbers); float64 (not: 64-bit floats) in titles
- supports NPUs (not: handles the NPU); without NPU support (not: bound to CUDA) of packages
- is not changed (not: stays as it is); is not known, was not found (not: cannot be seen)
- next to, together with (not: beside); instead of (not: in place of); per card, per line (not: a card, a line)
- exists (not: is there, stands there); fix, check, remove (not: mend, look at, leave out)
- requires, requests (not: asks for); a separate X, its own X (not: an X of its own); undone (not: taken back)
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from transplt.faces.cli.command import LAZY_COMMANDS
from transplt.rules.pages import all_codes, load

ROOT = Path(__file__).resolve().parent.parent
#: In no message, help text, title or table.
PHRASES = (
    "nothing edits them else",
    "the dearest",
    "what blocks first stands",
    "the last one in",
    "Untold",
    "and says nothing",
    "for ever",
    "that somebody",
    "somebody else",
    "asks for itself",
    "stands here",
    "stand here",
    "what stands in its place",
    "one process a card",
    "one process for each card",
    "half-written",
    "is no code of",
    "is there already",
    "goes on where it",
    "without a word",
    "in vain:",
    "of these in prose (comments apart",
    "a person decides about",
    "may come by",
    "cannot be parted",
    "made anew",
    "take the mean inside of",
    "come to its own end",
    "gets round a judge",
    "get round a judge",
    "what this cannot know",
    "it ended normally, but computed",
    "stops in the same way",
    "it has them for",
    "refused by newer torch",
    "nothing that it does not say",
    "lacks no name",
    "Say what is left",
    "their twins of torch_npu",
    "half is on each device",
    "started twice without",
    "state of optimizers",
    "a text follows the values",
    "the last one that does",
    "in the way in",
    "lowest on which",
    "In sum",
    "no Python has any more",
    "passes it over",
    "for which there is no torch_npu: this is",
    "; otherwise leave it",
    "where all ranks come by:",
    "are those of the rest",
    "wants a key",
    "by its whole path",
    "nobody answered",
    "goes group by group",
    "in front of the other arguments",
    "it stands under",
    "no YAML reads",
    "is here to build",
    # Classes of the dialect: what a thing has or is, said by way of something else.
    "of their own",
    "a line of its own",
    "a process of its own",
    "in place of",
    "in the place of",
    "taken back",
    "in vain",
    "in sight",
    "is told",
    "are told",
    "comes by",
    "come by",
    "to be had",
    "shared out",
    "nobody",
    "somebody",
    "switches itself off",
    "stands in",
    "stands below",
    "asks whether it is there",
)
#: In no title and no action of a page: they are read in lists, without more around them.
IN_TITLES = (
    *PHRASES,
    "64-bit floats",
    "Look at",
    "Mend",
    "Leave out",
    "Say ",
    " has too",
    "is asked for",
    "asked of",
    "are told",
    "is told",
    "goes through",
    "gone through",
    "stands",
    "beside",
)
_WORDS = re.compile("|".join(rf"\b{re.escape(each)}\b" if each[-1].isalpha() else re.escape(each) for each in PHRASES))


def may_have(path: Path) -> bool:
    """Whether a file may have a phrase: plain and quick, a phrase over two lines of source is not seen."""
    text = path.read_text(encoding="utf-8")
    return any(each in text for each in PHRASES)


def found(text: str) -> list[str]:
    return _WORDS.findall(" ".join(text.split()))


def constants(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module, line by line, without its docstrings."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(0)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def values(data: object) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, (dict, list)):
        for each in data.values() if isinstance(data, dict) else data:
            yield from values(each)


def test_no_text_of_the_program_has_them() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {found(text)}"
        for path in sorted((ROOT / "transplt").rglob("*.py"))
        if may_have(path)
        for line, text in constants(path)
        if found(text)
    ]
    assert wrong == []


def test_no_table_has_them() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found(text)} in {text[:80]!r}"
        for path in sorted((ROOT / "rules").rglob("*.json"))
        if may_have(path)
        for text in values(json.loads(path.read_text(encoding="utf-8")))
        if found(text)
    ]
    assert wrong == []


def test_no_page_has_them() -> None:
    wrong = []
    for code in all_codes():
        page = load(code)
        heads = f"{page.title} {page.action} "
        text = " ".join([heads, *page.sections.values()])
        wrong += [f"{code}: {each}" for each in found(text)]
        wrong += [
            f"{code}: {each}" for each in IN_TITLES if re.search(rf"(?<!\w){re.escape(each)}(?!\w)", heads)
        ]
    assert wrong == []


def test_commands_are_listed_with_a_verb_first() -> None:
    for name, (_, help_text) in LAZY_COMMANDS.items():
        first = help_text.split()[0]
        assert first[0].isupper() and first != "Say" and not first.endswith("s"), name
        assert len(help_text) <= 62, name
