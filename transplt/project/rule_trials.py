"""What rules do: each of a file to a Python file (`rules try`), all to the examples in it (`rules test`)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transplt.base.finding import FileResult, Finding, Status
from transplt.base.render.cell import many
from transplt.base.settings import DEFAULT_TORCH_VERSION, TORCH_VERSIONS, Settings
from transplt.engine.engine import index_source, migrate_source
from transplt.flow.facts import ProjectFacts
from transplt.project.unmatched_rules import Occurring, nearest
from transplt.rules.rule import Kind
from transplt.rules.rule_set import compile_rules, parse_rules
from transplt.rules.versions import versions_of

#: So many rules are tried one by one.
_MOST = 200


def tried(loaded: tuple[str, str], data: bytes, path: str) -> Iterator[str]:
    """The lines to show: for each rule its places, or the nearest name that occurs; then the diff of all rules."""
    name, text = loaded
    document = json.loads(text)
    before = {_key(finding) for finding in _migrated(data, path).findings}
    occurring = Occurring()
    occurring.add(data, path)
    count = 0
    for kind in Kind:
        for index, entry in enumerate(document["rules"].get(kind.value, ())):
            count += 1
            if count > _MOST:
                continue
            alone = json.dumps({**document, "rules": {kind.value: [entry]}})
            rule = next(parse_rules(json.loads(alone), name, DEFAULT_TORCH_VERSION, user=True), None)
            head = f"{kind.value}[{index}]"
            if rule is None:
                yield f"{head}: not for torch {DEFAULT_TORCH_VERSION}"
                continue
            found = [each for each in _migrated(data, path, (name, alone)).findings if _key(each) not in before]
            own = [each for each in found if each.code in (rule.code, "NPU005", "NPU016", "NPU017", "NPU020", "NPU505")]
            near = "" if own else nearest(rule, occurring)
            hint = f"; the nearest name there is {near}" if near and near != rule.old else ""
            yield f"{head} {rule.old}: {many(len(own), 'place') if own else f'matches nothing{hint}'}"
            yield from (f"  {path}:{each.span.line}:{each.span.column}: {each.message}" for each in own)
    if count > _MOST:
        yield f"{count - _MOST} more rules, not tried one by one"
    after = _migrated(data, path, loaded).data
    old, new = (each.decode("utf-8", "replace").splitlines() for each in (data, after))
    yield from difflib.unified_diff(old, new, path, f"{path} with the rules", lineterm="")


@dataclass(frozen=True, slots=True)
class Tested:
    """An example of a rule file: its number from 1, and what is wrong with it, empty where it holds."""

    number: int
    wrong: tuple[str, ...]


def tested(loaded: tuple[str, str]) -> Iterator[Tested]:
    """The examples of a rule file, each migrated with the rules of the file on top of the built-in ones.

    `after` is the whole text that comes out, `before` itself where none is given; `finds` are the codes of all that is
    left to report. A text may be a list of lines.
    """
    for number, example in enumerate(json.loads(loaded[1]).get("examples", ()), 1):
        before = _text(example["before"])
        wanted = _text(example["after"]) if "after" in example else before
        held = versions_of(example["versions"]) if "versions" in example else {DEFAULT_TORCH_VERSION}
        wrong: list[str] = []
        for version in (each for each in TORCH_VERSIONS if each in held):
            result = _migrated(before.encode(), "example.py", loaded, version=version)
            got, found = result.data.decode(), {each.code for each in result.findings if each.open}
            if result.status is not Status.OK:
                wrong += [f"{each.code} {each.message}" for each in result.findings]
            elif got != wanted:
                lines = (wanted.splitlines(), got.splitlines())
                wrong += difflib.unified_diff(*lines, "after, in the file", "what comes out", lineterm="", n=1)
            if "finds" in example and found != {*example["finds"]}:
                wrong.append(f"finds {_code_list(found)}, not {_code_list(example['finds'])}")
            if wrong:
                break
        yield Tested(number, tuple(wrong))


def _code_list(codes: Iterable[str]) -> str:
    return ", ".join(sorted(codes)) or "nothing"


def _text(lines: str | list[str]) -> str:
    text = lines if isinstance(lines, str) else "\n".join(lines)
    return text if text.endswith("\n") else f"{text}\n"


def _migrated(
    data: bytes, path: str, *rules: tuple[str, str], version: str = DEFAULT_TORCH_VERSION
) -> FileResult:
    settings = Settings(torch_version=version, user_rules=rules)
    alone = compile_rules(settings).user.definitions
    # Of definitions it is decided over a whole project: here that is the file.
    project = ProjectFacts.join([index_source(data, path, settings)]) if alone else None
    return migrate_source(data, path, settings, project)


def _key(finding: Finding) -> tuple[int, int, str, str]:
    return finding.span.line, finding.span.column, finding.code, finding.message
