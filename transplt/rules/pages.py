"""The pages of rules/diagnostics: what a code means, why it is there, what to do, an example."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transplt.base.efforts import EFFORT_TEXT
from transplt.base.finding import Effort, Level
from transplt.base.language import marked
from transplt.rules.tables import rules_dir

#: The sections of a page, in order.
SECTIONS = (marked("Message"), marked("Why"), marked("What to do"), marked("Example"))
#: What a finding keeps the program from, the gravest first.
BLOCKS = ("import", "first step", "numbers", "later", "slow", "tidy")
#: What findings of a code are told apart by: by nothing, their API, its package, the file, the compiled extension.
GROUPED_BY = ("", "api", "package", "file", "extension")
#: The page of each name of torch.cuda and its kin (scripts/torch_cuda_page.py), and the modules that it has.
CLASS_PAGE = "docs/reference/torch_cuda.md"
_ON_CLASS_PAGE = ("torch.cuda.", "torch.backends.cuda.", "torch.backends.cudnn.", "torch.backends.cusparselt.")
_FACTS = ("code", "title", "level", "effort", "blocks", "by", "action", "not run")

_CODE = re.compile(r"NPU[0-9]{3}")
_LINK = re.compile(r"\[([^]]+)\]\([\w./-]+\.md(?:#[\w-]*)?\)")  # to a page: on a terminal its words say it


class DiagnosticError(ValueError):
    """A code that has no page, or a page that is not in the form described at `parse`."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One page. `level` is what findings with the code usually have; a rule may set another.

    For the actions: `blocks` is one of `BLOCKS`, `by` one of `GROUPED_BY`, `action` what a person does about findings
    with the code, with `{name}` for what they are grouped by. `not_run` is why no test runs what edits with the code
    write, where the example does not show it.
    """

    code: str
    title: str
    level: Level
    effort: Effort | None
    sections: dict[str, str]
    blocks: str = "later"
    by: str = ""
    action: str = ""
    not_run: str = ""

    def text(self) -> str:
        """The page as it is shown on a terminal: Markdown without the front matter."""
        level = self.level.value
        if self.level is Level.INFO:
            level = "a remark, or work to do: see below" if self.action else "a remark"
        facts = level + (f"; effort: {EFFORT_TEXT[self.effort]}" if self.effort else "")
        parts = [f"# {self.code}: {self.title} ({facts})"]
        parts += [f"## {name}\n\n{self.sections[name]}" for name in SECTIONS if name in self.sections]
        return _LINK.sub(r"\1", "\n\n".join(parts)) + "\n"

    def examples(self) -> list[str]:
        """The Python blocks of the section Example."""
        return re.findall(r"```python\n(.*?)```", self.sections.get("Example", ""), re.DOTALL)


@cache
def all_codes() -> tuple[str, ...]:
    """Every code that has a page, sorted."""
    pages = (rules_dir() / "diagnostics").glob("NPU*.md")
    return tuple(sorted(path.stem for path in pages if _CODE.fullmatch(path.stem)))


def is_prefix(text: str) -> bool:
    """True for what codes begin with, such as NPU2 and NPU201; NPU0 are those of users' rules."""
    if re.fullmatch(r"NPU(?:0[0-9]{0,2})?", text):
        return True
    return text.startswith("NPU") and any(code.startswith(text) for code in all_codes())


def nearest_code(text: str) -> str:
    """The code that was probably meant, empty when none is like it."""
    text = text.upper()
    near = difflib.get_close_matches(text, all_codes(), n=5)
    # Of those that are as near, the one that begins alike: a digit too many stands at the end.
    return max(near, key=lambda code: sum(text.startswith(code[:length]) for length in range(len(code))), default="")


@cache
def load(code: str) -> Diagnostic:
    """The page of a code (any case). Raises DiagnosticError when there is none."""
    code = code.upper()
    if code not in all_codes():
        near = [known for known in all_codes() if known[:4] == code[:4]]
        hint = f"; pages of that group: {', '.join(near)}" if near else ""
        raise DiagnosticError(f"{code} is not a code of transplt{hint}")
    return parse(code, page_file(code).read_text(encoding="utf-8"))


def class_page(name: str) -> str:
    """Where the documents say what becomes of a name of torch.cuda or its kin; empty for others."""
    name = name.partition("(")[0]  # of what a function gives back
    return f"{CLASS_PAGE}#{name}" if f"{name}.".startswith(_ON_CLASS_PAGE) else ""


def page_file(code: str) -> Path:
    """Where the page of a code lies."""
    return rules_dir() / "diagnostics" / f"{code}.md"


def parse(code: str, text: str) -> Diagnostic:
    """A page from its text: `---`, lines `key: value` (see `Diagnostic`), `---`, then `## Section` blocks.

    Raises DiagnosticError for anything else, so that a test over all pages keeps them in form.
    """
    match = re.fullmatch(r"---\n(.*?)\n---\n(.*)", text, re.DOTALL)
    if match is None:
        raise DiagnosticError(f"{code}: the page does not start with its facts between two lines of ---")
    facts = {}
    for line in match[1].splitlines():
        key, colon, value = line.partition(":")
        if not colon or key not in _FACTS:
            raise DiagnosticError(f"{code}: {line!r} is none of {', '.join(_FACTS)}")
        facts[key] = value.strip()
    if facts.get("code") != code or not facts.get("title"):
        raise DiagnosticError(f"{code}: the page must name its code and a title")
    pieces = re.split(r"^## (.+)$", match[2], flags=re.MULTILINE)
    sections = {name.strip(): body.strip() for name, body in zip(pieces[1::2], pieces[2::2], strict=True)}
    if [name for name in sections if name not in SECTIONS] or "Message" not in sections or pieces[0].strip():
        raise DiagnosticError(f"{code}: the sections must be {', '.join(SECTIONS)}")
    blocks, by, action = (facts.get(key, default) for key, default in (("blocks", "later"), ("by", ""), ("action", "")))
    if blocks not in BLOCKS or by not in GROUPED_BY or ("{name}" in action) != bool(by):
        raise DiagnosticError(f"{code}: blocks {blocks!r}, by {by!r} and action {action!r} do not go together")
    try:
        effort = Effort(facts["effort"]) if facts.get("effort") else None
        level = Level(facts.get("level", ""))
    except ValueError as error:
        raise DiagnosticError(f"{code}: {error}") from None
    return Diagnostic(
        code, facts["title"], level, effort, sections, blocks, by, action, facts.get("not run", "")
    )  # fmt: skip
