"""`transplt rules try`: what each rule of a file does to one Python file."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator

from transplt.apply.engine import index_source, migrate_source
from transplt.finding import FileResult, Finding
from transplt.project.facts import ProjectFacts
from transplt.rules.rule import Kind
from transplt.rules.rule_set import compile_rules, parse_rules
from transplt.run.unmatched import Occurring, nearest
from transplt.settings import DEFAULT_TORCH_VERSION, Settings

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
            own = [each for each in found if each.code in (rule.code, "NPU005", "NPU016", "NPU017", "NPU505")]
            near = "" if own else nearest(rule, occurring)
            hint = f"; the nearest name there is {near}" if near and near != rule.old else ""
            yield f"{head} {rule.old}: {_times(len(own)) if own else f'matches nothing{hint}'}"
            yield from (f"  {path}:{each.span.line}:{each.span.column}: {each.message}" for each in own)
    if count > _MOST:
        yield f"{count - _MOST} more rules, not tried one by one"
    after = _migrated(data, path, loaded).data
    old, new = (each.decode("utf-8", "replace").splitlines() for each in (data, after))
    yield from difflib.unified_diff(old, new, path, f"{path} with the rules", lineterm="")


def _migrated(data: bytes, path: str, *rules: tuple[str, str]) -> FileResult:
    settings = Settings(user_rules=rules)
    alone = compile_rules(settings).user.definitions
    # Of definitions it is decided over a whole project: here that is the file.
    project = ProjectFacts.join([index_source(data, path, settings)]) if alone else None
    return migrate_source(data, path, settings, project)


def _key(finding: Finding) -> tuple[int, int, str, str]:
    return finding.span.line, finding.span.column, finding.code, finding.message


def _times(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"
