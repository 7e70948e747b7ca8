"""Reads and checks the rule files of a user; what is wrong is said with the line and the JSON path."""

from __future__ import annotations

import ast
import keyword
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from transplt.errors import shown
from transplt.rules.json_lines import JsonError, JsonPath, parse, show_path
from transplt.rules.rule import Kind
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of
from transplt.text.regular_file import RULES, read_regular

_TYPES = {
    "object": "an object {...}",
    "array": "a list [...]",
    "string": "a string",
    "integer": "a whole number",
    "boolean": "true or false",
}


class RuleFileError(ValueError):
    """A rule file that cannot be used. `str()` is one sentence for the user: where, and what was expected.

    `line` counts from 1 (0: the file as a whole), `json_path` is `$` for the top.
    """

    def __init__(self, path: str, json_path: str, line: int, message: str) -> None:
        super().__init__(path, json_path, line, message)
        self.path, self.json_path, self.line, self.message = path, json_path, line, message

    def __str__(self) -> str:
        path = shown(self.path)
        place = f"{path}:{self.line}" if self.line else path
        inside = f" {self.json_path}:" if self.json_path != "$" else ""
        return f"{place}:{inside} {self.message}"


def load_user_rules(paths: Iterable[str | Path]) -> tuple[tuple[str, str], ...]:
    """The rule files as (name, text) for `Settings.user_rules`, all of them checked.

    Raises RuleFileError for the first thing that is wrong.
    """
    loaded = []
    for path in paths:
        name = str(path)
        text = _read(name)
        for error in problems(name, text):
            raise error
        loaded.append((name, text))
    return tuple(loaded)


def problems(name: str, text: str) -> Iterator[RuleFileError]:
    """Everything that is wrong with the text of a rule file called `name`, in the order of the file."""
    try:
        document, lines = parse(text)
    except JsonError as error:
        yield RuleFileError(name, show_path(error.path), error.line, error.message)
        return
    found = list(_schema_errors(document))
    if not found:
        found = list(_meaning_errors(document))
    for path, message in sorted(found, key=lambda item: (lines.get(item[0], 0), show_path(item[0]))):
        yield RuleFileError(name, show_path(path), lines.get(path, 1), message)


def _read(name: str) -> str:
    try:
        data = read_regular(name, RULES)
    except FileNotFoundError:
        raise RuleFileError(name, "$", 0, "there is no such rule file") from None
    except OSError as error:
        raise RuleFileError(name, "$", 0, f"the rule file cannot be read: {error.strerror or error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RuleFileError(name, "$", line, "a rule file must be UTF-8 text") from None


def _schema_errors(document: Any) -> Iterator[tuple[JsonPath, str]]:
    from jsonschema import Draft202012Validator  # only a user's file needs it; it costs 50 ms

    for error in Draft202012Validator(read_table("schema.json")).iter_errors(document):
        path: JsonPath = tuple(error.absolute_path)
        if error.validator == "additionalProperties":
            known = sorted(error.schema.get("properties", {}))
            for key in error.instance:
                if key not in known:
                    yield (*path, key), f"unknown key {key!r}; known here: {', '.join(known)}"
        else:
            yield path, _expected(error)


def _expected(error: Any) -> str:
    """What a schema error means, in words."""
    got, rule, schema = _shown(error.instance), error.validator, error.schema
    if rule == "required":
        missing = [key for key in error.validator_value if key not in error.instance]
        return f"the key {missing[0]!r} is missing"
    if rule == "type":
        return f"expected {_TYPES.get(error.validator_value, error.validator_value)}, got {got}"
    if rule == "enum":
        return f"expected one of {', '.join(map(repr, error.validator_value))}, got {got}"
    if rule == "pattern":
        wanted = schema.get("description", f"text that matches {error.validator_value}")
        return f"expected {wanted}, got {got}"
    if rule == "minimum":
        return f"expected a number of at least {error.validator_value}, got {got}"
    if rule in ("minLength", "minItems", "minProperties"):
        return "must not be empty"
    return f"expected {schema['description']}, got {got}" if "description" in schema else str(error.message)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "null"}[value]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _meaning_errors(document: Any) -> Iterator[tuple[JsonPath, str]]:
    """What a JSON schema cannot say: names, expressions, versions, rules that contradict each other."""
    seen: dict[tuple[str, ...], int] = {}
    for kind in Kind:
        defaults = document.get("defaults", {}).get(kind.value, {})
        versions = defaults.get("versions")
        if (defaults.get("level") in ("manual", "info")) != (kind is Kind.UNSUPPORTED) and "level" in defaults:
            wanted = "'manual', 'info'" if kind is Kind.UNSUPPORTED else "'safe', 'unsafe'"
            yield ("defaults", kind.value, "level"), f"expected one of {wanted}, got {_shown(defaults['level'])}"
        yield from _versions_errors(("defaults", kind.value, "versions"), versions)
        for index, entry in enumerate(document["rules"].get(kind.value, ())):
            path: JsonPath = ("rules", kind.value, index)
            yield from _name_errors(path, entry)
            yield from _versions_errors((*path, "versions"), entry.get("versions"))
            if kind is Kind.ARGS:
                yield from _expression_errors((*path, "arg_new"), entry["arg_new"])
            if entry.get("similar") and not entry.get("differs"):
                yield path, "a rule with 'similar' needs 'differs': what may differ in precision or speed"
            for key in _identities(kind, entry, versions):
                if seen.setdefault(key, index) != index:
                    yield path, f"the rule {seen[key]} of {kind.value} has the same name already"
                    break


def _identities(kind: Kind, entry: dict[str, Any], default: Any) -> Iterator[tuple[str, ...]]:
    """What two rules of a file must not share: the name, and for arguments the place, in one torch version."""
    names = [str(entry.get(key, "")) for key in ("func_name", "parent_module", "old_name", "name", "arg_idx")]
    try:
        versions = versions_of(entry.get("versions", default))
    except ValueError:
        return
    for version in sorted(versions):
        yield (kind.value, *names, str(entry.get("similar", False)), version)


def _name_errors(path: JsonPath, entry: dict[str, Any]) -> Iterator[tuple[JsonPath, str]]:
    for key in ("func_name", "old_name", "new_name", "parent_module", "name", "arg_keyword"):
        for part in str(entry.get(key, "")).split("."):
            if keyword.iskeyword(part):
                yield (*path, key), f"expected a name, got {entry[key]!r}: {part!r} is a keyword of Python"
            elif part and not part.isidentifier():
                yield (*path, key), f"expected a name, got {entry[key]!r}: {part!r} is no identifier"


def _versions_errors(path: JsonPath, spec: Any) -> Iterator[tuple[JsonPath, str]]:
    try:
        chosen = versions_of(spec)
    except ValueError as error:
        yield path, f"expected torch versions such as '>=2.1,!=2.8' or ['2.1', '2.3']: {error}"
        return
    if not chosen:
        yield path, f"{spec!r} names no torch version that transplt knows"


def _expression_errors(path: JsonPath, text: str) -> Iterator[tuple[JsonPath, str]]:
    if not text.strip():
        if text:
            yield path, "expected a Python expression, or an empty string to delete the argument; got blanks"
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text.strip(), mode="eval")
            call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        yield path, f"expected a Python expression, got {_shown(text)}: {reason}"
        return
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        yield path, f"expected one Python expression, got {_shown(text)}: put it in parentheses"
