"""The errors that are known by their text or code, from rules/errors/*.json.

A file has `what` (its area in a sentence), `sources` (short names of documents, with version) and `errors`. An error
has

- `name`, unique; `title`; `kind`, one of `Kind`;
- `code` (ERR100, EI0002, 507015) or `signs`: literals, or pairs of a literal and an expression; a line shows the error
  when it holds the literal and the expression is found in it; an error with a code may have `signs`, too, and `unless`:
  a line in which that is found shows the code and not the error;
- `means`, `cause`, `do` (steps), `predicted_by` (codes of findings of a migration that foretell it), `source`;
- `seen`: texts in which it was seen, each with where and, third, the other errors that the same text rightly shows, the
  nearest to the root first where that is another one; `form`: a message made after the definition of the vendor, where
  no text of somebody's log is known;
- `raises`: a program of some lines that raises it, behind `import torch, torch_npu`: a test runs it on the real
  torch_npu over the emulated card and holds what that says to the row;
- `alone`: a general reading of a form of message; a line shows it only where it shows no other error;
- `vague`: another error of its kind in the same failure says more;
- `checks`: its text names the check that fired, and rules/support/error_checks.json what to do for that one;
- `when`: what decides between causes, each with the `cause` and `do` that hold then: an expression that is found in the
  text of the failure, or `clue NAME` (`clue NAME+OTHER`): the log has that clue (both); in place of a row or of all the
  name of a list that errors share, in rules/support/error_forms.json;
- `asynchronous`: the line and stack at which it is reported may come later than the call that failed.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, partial
from typing import Any

from transplt.rules.pages import load
from transplt.rules.tables import read_table, rules_dir


class Kind(IntEnum):
    """How near to the root an error is; what sorts first explains the others."""

    CAUSE = 0  # says what is wrong
    FAULT = 1  # says which part failed
    CONSEQUENCE = 2  # follows from the error of another process, which it waited for
    WRAPPER = 3  # says only that something below failed
    AFTERMATH = 4  # follows when a process has failed: the launcher, the end of Python
    SLOW = 5  # no error: works, and costs time or steps
    HARMLESS = 6  # no error
    CLUE = 7  # no error: decides between the causes of one


class ErrorRowWrong(ValueError):
    """A row of rules/errors/ that lacks something: file, row and what goes in, in a sentence."""


@dataclass(frozen=True, slots=True)
class Sign:
    """What a line holds that shows the error: a literal, and an expression where that is not enough."""

    literal: str
    pattern: re.Pattern[str] | None


@dataclass(frozen=True, slots=True)
class When:
    """A condition, and what holds then: an expression for the text of the failure, or the name of a clue. `beside` is
    for the lines and frames around it; `{name}` in cause and steps stands for what a group of that name holds."""

    pattern: re.Pattern[str] | None
    clue: str
    cause: str
    do: tuple[str, ...]
    beside: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class KnownError:
    """One error; `seen` are (text, where, others). See the module for the rest."""

    name: str
    title: str
    kind: Kind
    code: str
    signs: tuple[Sign, ...]
    unless: re.Pattern[str] | None
    means: str
    cause: str
    do: tuple[str, ...]
    predicted_by: tuple[str, ...]
    source: str
    seen: tuple[tuple[str, str, tuple[str, ...]], ...]
    form: str
    asynchronous: bool
    area: str
    alone: bool = False
    vague: bool = False
    checks: bool = False
    when: tuple[When, ...] = ()
    raises: str = ""

    def text(self) -> str:
        """The page that `transplt explain` prints, Markdown."""
        parts = [f"# {self.code or self.name}: {self.title} ({_KINDS[self.kind]})", self.means]
        parts += [f"## Likely cause\n\n{self.cause}"]
        parts += ["## What to do\n\n" + "\n".join(f"- {step}" for step in self.do)]
        if self.when:
            parts += ["## Other causes\n\n" + "\n".join(f"- {each.cause} {' '.join(each.do)}" for each in self.when)]
        if self.asynchronous:
            parts += [f"## The stack\n\n{LATE}"]
        if self.predicted_by:
            rows = (f"- {code}: {load(code).title} (`transplt explain {code}`)" for code in self.predicted_by)
            parts += ["## Findings of a migration that foretell it\n\n" + "\n".join(rows)]
        shown = [(text, where) for text, where, _ in self.seen]
        shown += [(self.form, "form of the message")] if self.form else []
        parts += ["## Seen as\n\n" + "\n\n".join(f"    {indented(text)}\n\n({where})" for text, where in shown)]
        if self.raises:
            parts += [f"## A program that raises it\n\n    import torch, torch_npu\n    {indented(self.raises)}"]
        parts += [f"## Source\n\n{self.source}\n\n`transplt diagnose LOG` finds it in logs."]
        return "\n\n".join(parts) + "\n"


#: Said with errors that show themselves later than they happen.
LATE = (
    "The card computes asynchronously: the reported line and stack may belong to a later, "
    "unrelated call. Run again with ASCEND_LAUNCH_BLOCKING=1 (slow) to get the stack of the call that failed."
)
_KINDS = {
    Kind.CAUSE: "a cause", Kind.FAULT: "a fault", Kind.WRAPPER: "says that something below failed",
    Kind.CONSEQUENCE: "a consequence of what another process did", Kind.AFTERMATH: "a consequence of an earlier error",
    Kind.SLOW: "no error, but slow", Kind.HARMLESS: "harmless",
    Kind.CLUE: "no error, decides between causes",
}  # fmt: skip

#: Codes of torch_npu: the modules of the two digits in the middle.
MODULES = {"00": "PTA, torch_npu itself", "01": "OPS, operators", "02": "DIST, process groups", "03": "GRAPH, graphs",
           "04": "PROF, the profiler", "99": "UNKNOWN, the program"}  # fmt: skip
#: What a row must have, and what goes in.
_NEEDED = {
    "name": "a unique name, `npu-out-of-memory`", "title": "what happened, in some words",
    "kind": f"one of {', '.join(kind.name.lower() for kind in Kind)}",
    "means": "what the error says, a sentence", "cause": "the likely cause, a sentence",
    "do": "a list of steps, each a sentence",
    "predicted_by": "a list of the codes of findings that foretell it (`NPU792`), or []",
    "source": "the document that says so, or its short name under `sources`",
}  # fmt: skip
_OTHERS = {"code", "signs", "unless", "seen", "form", "alone", "vague", "checks", "when", "asynchronous", "raises"}
_TORCH_NPU = re.compile(r"ERR(\d\d)?(\d{3})", re.IGNORECASE)
_CANN = re.compile(r"E[0-9A-Z]\d{4}|\d{6}", re.IGNORECASE)


def indented(text: str) -> str:
    """`text` as it stands in a block of code whose first line is indented already."""
    return text.replace("\n", "\n    ")


@cache
def known_errors() -> tuple[KnownError, ...]:
    """All of them, in the order of the files and of their rows. ErrorRowWrong for a row that lacks something."""
    found = []
    for path in sorted((rules_dir() / "errors").glob("*.json")):
        table: dict[str, Any] = read_table(f"errors/{path.name}")
        for number, row in enumerate(table["errors"], 1):
            if wrong := _wrong(row):
                where = f"rules/errors/{path.name}, row {number} ({row.get('name', 'without a name')})"
                raise ErrorRowWrong(f"{where}: {wrong}")
            found.append(_error(row, path.stem, table["sources"]))
    return tuple(found)


@cache
def errors_by_code() -> dict[str, KnownError]:
    """Those that have a code, by it: ERR100 (without the module), EI0002, 507015."""
    return {error.code: error for error in known_errors() if error.code}


@cache
def families() -> dict[str, str]:
    """The first two characters of CANN's codes, and the part of CANN that says them."""
    return dict(read_table("errors/cann.json")["families"])


def is_error_code(text: str) -> bool:
    """True for what has the form of a code of torch_npu, CANN or acl, or is the name of a known error."""
    return bool(_TORCH_NPU.fullmatch(text) or _CANN.fullmatch(text)) or any(e.name == text for e in known_errors())


def error_called(text: str) -> KnownError | None:
    """The error of a code (ERR01002, EI0002, 507015; any case) or name; None where none is known."""
    if match := _TORCH_NPU.fullmatch(text):
        return errors_by_code().get(f"ERR{match[2]}")
    found = errors_by_code().get(text.upper())
    return found or next((error for error in known_errors() if error.name == text.lower()), None)


def family_of(code: str) -> str:
    """Which part of CANN says a code, empty for one of none."""
    return families().get(code[:2].upper(), "")


@cache
def errors_predicted_by(finding: str) -> tuple[KnownError, ...]:
    """The errors that findings with this code (NPU712) foretell."""
    return tuple(error for error in known_errors() if finding in error.predicted_by)


def predicted_errors(finding: str, document: str = "") -> str:
    """The errors on the card that findings with a code foretell, as a section of its page; empty for none.

    With a `document`, the list of all errors, each is a link into it.
    """
    rows = []
    for error in errors_predicted_by(finding):
        name = error.code or error.name
        rows.append(f"- {f'[{name}]({document}#{error.name})' if document else name}: {error.title}")
    if not rows:
        return ""
    head = "## Errors on the card\n\nErrors that this may lead to (`transplt diagnose LOG` reads them):\n\n"
    return head + "\n".join(rows) + "\n"


def _wrong(row: dict[str, Any]) -> str:
    """What is wrong with a row, empty for nothing."""
    for key, words in _NEEDED.items():
        if key not in row:
            return f"`{key}` is missing: {words}"
    if unknown := sorted(row.keys() - _NEEDED.keys() - _OTHERS):
        close = difflib.get_close_matches(unknown[0], (*_NEEDED, *_OTHERS), n=1)
        return f"`{unknown[0]}` is no key" + (f"; did you mean `{close[0]}`?" if close else "")
    if row["kind"].upper() not in Kind.__members__:
        return f"`kind` is {row['kind']!r}: {_NEEDED['kind']}"
    if not (row.get("code") or row.get("signs")):
        return "`signs` is missing: a list of texts that a line of the log holds (or `code`, such as EI0002)"
    if not (row.get("seen") or row.get("form")):
        return "`seen` is missing: a list of [text of a log, where it was seen] (or `form`, as the vendor defines it)"
    return ""


def _error(row: dict[str, Any], area: str, sources: dict[str, str]) -> KnownError:
    seen = tuple((text, sources.get(where, where), tuple(*others)) for text, where, *others in row.get("seen", ()))
    unless = re.compile(row["unless"]) if "unless" in row else None
    rows, shared = row.get("when", []), read_table("support/error_forms.json")
    parts = [rows] if isinstance(rows, str) else rows
    conditions = [each for part in parts for each in (shared[part] if isinstance(part, str) else [part])]
    pairs = ((sign, "") if isinstance(sign, str) else sign for sign in row.get("signs", ()))
    signs = tuple(Sign(literal, re.compile(pattern) if pattern else None) for literal, pattern in pairs)
    return KnownError(
        row["name"], row["title"], Kind[row["kind"].upper()], row.get("code", ""),
        signs, unless, row["means"], row["cause"], tuple(row["do"]),
        tuple(row["predicted_by"]),
        sources.get(row["source"], row["source"]), seen, row.get("form", ""), row.get("asynchronous", False), area,
        row.get("alone", False), row.get("vague", False), row.get("checks", False),
        tuple(map(_when, conditions)), row.get("raises", ""),
    )  # fmt: skip


@cache
def _whens(key: str, table: str = "error_forms") -> tuple[When, ...]:
    return tuple(map(_when, read_table(f"support/{table}.json")[key]))


def _when(row: list[Any]) -> When:
    condition, cause, do, *beside = row
    clue = condition[5:] if condition.startswith("clue ") else ""
    pattern = None if clue else re.compile(condition)
    return When(pattern, clue, cause, tuple(do), re.compile(beside[0]) if beside else None)


#: What the checks of operators say, and what to do for each.
checks = partial(_whens, "checks", "error_checks")
#: How a line is read that no error is known by. The last one takes all.
forms = partial(_whens, "forms")
#: What an exception of a kind that has many causes means at a certain place (`beside`) or with a certain name: asked
#: before the forms, and for errors that are known by their form.
readings = partial(_whens, "readings")
#: What sentences of CANN's parts mean that have no code of their own.
lines = partial(_whens, "lines", "error_lines")
#: Messages that say themselves what they lack, by their grammar.
sentences = partial(_whens, "sentences", "error_lines")
#: What people write about a run that ended without an error.
complaints = partial(_whens, "complaints", "error_lines")
#: What a program waits for, by the last line of a log without an error.
states = partial(_whens, "states")
