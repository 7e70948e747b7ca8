"""What the tests of recipes share: a file through the engine, and what is said of its lines."""

from __future__ import annotations

from transplt.base.finding import FileResult
from transplt.base.settings import Settings, TorchTarget
from transplt.engine.files.kind import kind_of
from transplt.engine.files.other_file import migrate_other

TARGET = TorchTarget("2.8", "", "2.8.0.post4", "9.0.0", "2.8.0")


def migrated(path: str, text: str, target: TorchTarget = TARGET, **settings: object) -> FileResult:
    """The result for a file of that path; its records and the account of its tokens agree."""
    data = text.encode()
    chosen = Settings(torch_version=target.version, **settings)  # type: ignore[arg-type]
    result = migrate_other(data, path, kind_of(path, data), chosen, target)[0]
    made = [each for each in result.findings if each.applied]
    assert result.changed is bool(made)
    count = result.tokens
    assert count.found == count.converted + count.manual + count.unknown + count.ignored
    again = migrate_other(result.data, path, kind_of(path, result.data), chosen, target)[0]
    assert not again.changed
    return result


def said(result: FileResult) -> list[tuple[int, str]]:
    """The lines and codes of what is left for a person."""
    return [(each.span.line, each.code) for each in result.findings if each.open]
