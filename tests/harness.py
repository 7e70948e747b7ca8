"""Input/output pairs that read as the specification.

`check_rewrite(before, after)` and `check_noop(source)` run the whole way of one file and always hold the invariants:
the output compiles, a second run changes nothing, and the account of tokens adds up. `@pattern("P12", "T15")` says
which measured pattern or trap a test speaks of; docs/reference/coverage.md is made from these marks and the codes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from transplt.base.finding import FileResult, Status, TokenVerdict
from transplt.base.settings import Settings
from transplt.base.text.cuda_words import find_tokens
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.program.compiled_modules import given_up
from transplt.rules.reasons import words_of

#: What the pairs of the running test showed: (codes applied, codes left open). Read by scripts/coverage_table.py.
RECORDS: list[tuple[tuple[str, ...], tuple[str, ...]]] = []


def pattern(*names: str) -> pytest.MarkDecorator:
    """Mark a test with the patterns (P1..P75) and traps (T1..T33) it speaks of."""
    return pytest.mark.pattern(*names)


def clean(source: str) -> str:
    return textwrap.dedent(source).lstrip("\n")


def migrate(
    source: str, *, path: str = "train.py", files: Mapping[str, str] | None = None, **settings: Any
) -> FileResult:
    """Migrate one file; `files` are the others of its project (path -> source). Settings by keyword."""
    chosen = Settings(**settings)
    every = {path: clean(source), **{name: clean(text) for name, text in (files or {}).items()}}
    facts = [index_source(text.encode(), name, chosen) for name, text in sorted(every.items())]
    project = ProjectFacts.join(facts, given_up if chosen.asks_for("adapt:kernels") else None)
    result = migrate_source(every[path].encode(), path, chosen, project)
    hold_invariants(every[path], result, chosen, project)
    record(codes(result, applied=True), codes(result, applied=False))
    return result


def record(applied: Iterable[str], left: Iterable[str]) -> None:
    """Note which codes a pair shows."""
    RECORDS.append((tuple(applied), tuple(left)))


def hold_invariants(source: str, result: FileResult, settings: Settings, project: ProjectFacts) -> None:
    tokens = result.tokens
    assert tokens.found == tokens.converted + tokens.manual + tokens.unknown + tokens.ignored, tokens
    assert tokens.found == sum(t.where != "comment" for t in find_tokens(source.encode()))
    hold_ledger(source, result)
    if result.status is Status.OK:
        compile(result.data, result.path, "exec", dont_inherit=True)
        builtin = Settings(
            torch_version=settings.torch_version, oldest_torch=settings.oldest_torch, style=settings.style,
            helper_file=settings.helper_file,
        )  # fmt: skip
        if (result.data, builtin) != (source.encode(), settings):  # else that was this very run
            again = migrate_source(result.data, result.path, builtin, project)
            assert again.data == result.data, "a second run changes the output"


def hold_ledger(source: str, result: FileResult) -> None:
    """The rows are the tokens, one for one, at their places, each with a code or a reason of the list."""
    assert result.ledger.total(result.tokens.comments) == result.tokens
    starts = [0, *(match.end() for match in re.finditer("\r\n|\r|\n", source))]
    places = []
    for row in result.ledger:
        places.append(starts[row.line - 1] + row.column - 1)
        assert source.startswith(row.token, places[-1])
        if row.cause.verdict is TokenVerdict.IGNORED:
            assert words_of(row.cause)
        else:
            assert row.cause.code and not row.cause.reason, row
    live = [token.start for token in find_tokens(source.encode()) if token.where != "comment"]
    assert [len(source[:place].encode()) for place in places] == live


def reasons(result: FileResult) -> dict[str, int]:
    """Why ignored tokens stay, in words, with their number."""
    counts = ((words_of(cause), count) for cause, count in result.ledger.counts().items() if cause.reason)
    return dict(sorted(counts))


def codes(result: FileResult, *, applied: bool) -> list[str]:
    return sorted({f.code for f in result.findings if f.applied is applied and not f.ignored})


def check_rewrite(
    before: str, after: str, *, codes_applied: Iterable[str] | None = None, open_codes: Iterable[str] = (), **more: Any
) -> FileResult:
    """The output is exactly `after`; `open_codes` are the codes of findings left without an edit (info included)."""
    result = migrate(before, **more)
    assert result.changed or clean(before) == clean(after), (
        f"nothing rewrites this; said of it: {codes(result, applied=False)}. What is missing is a row in a table of "
        "rules/ (rules/libraries.json), or a fixer in transplt/fixers/ (CONTRIBUTING.md)"
    )
    assert result.data.decode() == clean(after)
    assert codes(result, applied=False) == sorted(open_codes)
    if codes_applied is not None:
        assert codes(result, applied=True) == sorted(codes_applied)
    return result


def check_noop(source: str, *, open_codes: Iterable[str] = (), **more: Any) -> FileResult:
    """Nothing changes; `open_codes` are the codes of what is said about it."""
    result = migrate(source, **more)
    assert result.data.decode() == clean(source)
    assert not result.changed
    assert codes(result, applied=False) == sorted(open_codes)
    return result
