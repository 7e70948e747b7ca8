"""`transplt explain`: what a code means, or what is known of a name."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict
from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from transplt.base.errors import UsageError, shown
from transplt.base.render.spelling import json_format
from transplt.faces.cli.command import DONE, Command
from transplt.faces.cli.completing import KnownName
from transplt.rules.errors import error_called, errors_predicted_by, family_of, is_error_code, predicted_errors
from transplt.rules.pages import DiagnosticError, load
from transplt.rules.profiles import slows, slows_text
from transplt.rules.reasons import reasons
from transplt.rules.versions import spans

if TYPE_CHECKING:
    from transplt.engine.analysis.known_apis import Fact

_CODE = re.compile(r"NPU[0-9]+|[A-Z]{1,3}[0-9]{3,}", re.IGNORECASE)
_MOST_CHARACTERS = 80
#: What is known of a name: an object for JSON, and a text.
_Answer = tuple[dict[str, object], str]


@click.command(cls=Command)
@click.argument("name", type=KnownName(), metavar="NAME")
@json_format
def explain(name: str, as_json: bool) -> int:
    """Explain a code such as NPU201, a reason such as own-name, an error of torch_npu or CANN such
    as ERR00100, EZ9999 or 507015, an API, an environment variable, a package, or a way to find a
    fault (overflow, determinism, shrink-model, one-card).
    """
    for known in (_error, _page, _reason, _facts):
        if (answer := known(name)) is not None:
            table, text = answer
            _print(json.dumps(table, indent=1) if as_json else text, as_json)
            return DONE
    from transplt.engine.analysis.known import nearest

    near = [*get_close_matches(name, reasons(), n=2), *nearest(name)]
    takes = "give a code (NPU201), a full name (torch.cuda.Event), an environment variable or a package"
    hint = f"similar names: {', '.join(near)}" if near else takes
    cut = shown(name) if len(name) <= _MOST_CHARACTERS else f"{shown(name[:_MOST_CHARACTERS])}..."
    raise UsageError(f"nothing is known about {cut}; {hint}")


def _error(name: str) -> _Answer | None:
    if not is_error_code(name):
        return None
    error = error_called(name)
    if error is None:
        family, begin = family_of(name), name[:2].upper()
        what = f"codes that begin with {begin} come from {family}" if family else "it is not an acl code"
        raise UsageError(f"nothing is known about {name.upper()}; {what}: read the text after it")
    facts = {"name": error.name, "code": error.code, "title": error.title, "kind": error.kind.name.lower()}
    text = {"means": error.means, "cause": error.cause, "do": [*error.do], "asynchronous": error.asynchronous}
    seen = [{"text": text, "where": where} for text, where, _ in error.seen]
    return {**facts, **text, "foretold_by": [*error.predicted_by], "seen": seen, "source": error.source}, error.text()


def _page(name: str) -> _Answer | None:
    if not _CODE.fullmatch(name):
        return None
    try:
        page = load(name)
    except DiagnosticError as error:
        raise UsageError(str(error)) from error
    effort = page.effort.value if page.effort else None
    facts = {"code": page.code, "title": page.title, "level": page.level.value, "effort": effort}
    foretold = [{"name": each.name, "code": each.code, "title": each.title} for each in errors_predicted_by(page.code)]
    slow = [{"name": each.name, "title": each.title} for each in slows(page.code)]
    table: dict[str, object] = {**facts, "sections": page.sections, "errors": foretold, "in_profiles": slow}
    sections = filter(None, (predicted_errors(page.code), slows_text(page.code)))
    return table, page.text() + "".join(f"\n{section}" for section in sections)


def _reason(name: str) -> _Answer | None:
    reason = reasons().get(name)
    if reason is None:
        return None
    doubt = reason.doubt.name.lower()
    return {"reason": name, "words": reason.words, "doubt": doubt, "check": reason.check}, reason.text()


def _facts(name: str) -> _Answer | None:
    from transplt.engine.analysis.known import facts_of, resolved

    if not (known := resolved(name)):
        return None
    facts = facts_of(known)
    return {"name": known, "facts": [asdict(fact) for fact in facts]}, "\n".join(_document(known, facts))


def _document(name: str, facts: list[Fact]) -> Iterator[str]:
    """What is known of a name, as Markdown."""
    yield f"# {name}"
    topic = ""
    for fact in facts:
        if fact.topic != topic:
            topic = fact.topic
            yield f"\n## {topic}\n"
        versions = f"torch {spans(fact.versions)}" if fact.versions else ""
        head = ", ".join(part for part in (fact.code, versions) if part)
        yield f"- {head}: {fact.text}" if head else f"- {fact.text}"
        if fact.source:
            yield f"  Source: {fact.source}"


def _print(text: str, plain: bool) -> None:
    if not plain and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text))
    else:
        click.echo(text.rstrip("\n"))
