"""Reads and checks the rule files of a user; what is wrong is reported with the line and the JSON path."""

from __future__ import annotations

import ast
import difflib
import keyword
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from transplt.base.errors import shown
from transplt.base.text.regular_file import RULES, read_regular
from transplt.rules.json_lines import JsonError, JsonPath, parse, show_path
from transplt.rules.rule import Kind
from transplt.rules.tables import read_table
from transplt.rules.versions import versions_of

_TYPES = {
    "object": "an object {...}",
    "array": "a list [...]",
    "string": "a string",
    "integer": "a whole number",
    "boolean": "true or false",
}


class RuleFileError(ValueError):
    """A rule file that cannot be used. `str()` is one sentence for the user: where, and what was expected.

    `line` counts from 1 (0: the file as a whole), `column` too (0: not known); `json_path` is `$` for the top.
    """

    def __init__(self, path: str, json_path: str, line: int, message: str, column: int = 0) -> None:
        super().__init__(path, json_path, line, message, column)
        self.path, self.json_path, self.line, self.message, self.column = path, json_path, line, message, column

    def __str__(self) -> str:
        path = shown(self.path)
        place = f"{path}:{self.line}" if self.line else path
        place += f":{self.column}" if self.column else ""
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
        yield RuleFileError(name, show_path(error.path), error.line, error.message, error.column)
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
        raise RuleFileError(name, "$", 0, "no such rule file") from None
    except OSError as error:
        raise RuleFileError(name, "$", 0, f"the rule file cannot be read: {error.strerror or error}") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise RuleFileError(name, "$", line, "a rule file must be UTF-8 text") from None


def _schema_errors(document: Any) -> Iterator[tuple[JsonPath, str]]:
    from jsonschema import Draft202012Validator  # only a user's file needs it; it costs 50 ms

    doubtful, places = _doubtful(document)
    for error in Draft202012Validator(read_table("schema.json")).iter_errors(doubtful):
        path: JsonPath = tuple(error.absolute_path)
        if len(path) > 2 and path[0] == "rules" and path[1] in places:  # as it stands in the file
            path = (*path[:2], places[str(path[1])][int(path[2])], *path[3:])
        if error.validator == "additionalProperties":
            known = sorted(error.schema.get("properties", {}))
            for key in (key for key in error.instance if key not in known):
                near = difflib.get_close_matches(key, known, 1, 0.6)
                hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
                yield (*path, key), f"unknown key {key!r}; {hint}"
        else:
            yield path, _expected(error)


def _doubtful(document: Any) -> tuple[Any, dict[str, list[int]]]:
    """The document without the rules that are plainly right, and where those that are left stood, by kind.

    The validator takes 0.1 ms and more for a rule, so that it gets only those that it may have something to say of.
    """
    if not isinstance(document, dict) or not isinstance(document.get("rules"), dict):
        return document, {}
    left, places = dict(document["rules"]), {}
    for kind in Kind:
        listed = left.get(kind.value)
        if isinstance(listed, list):
            places[kind.value] = [index for index, entry in enumerate(listed) if not _plainly_right(kind, entry)]
            left[kind.value] = [listed[index] for index in places[kind.value]]
    return {**document, "rules": left}, places


_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_TEXTS = frozenset({"message", "help", "source"})
#: Keys whose value is a name, of the kinds that long files have; the first are the ones that each rule needs.
_NAMES = {
    Kind.FUNC: (frozenset({"old_name", "new_name"}), frozenset[str]()),
    Kind.MODULE: (frozenset({"old_name", "new_name"}), frozenset({"parent_module"})),
    Kind.ARGS: (frozenset({"func_name", "arg_idx", "arg_new"}), frozenset[str]()),
    Kind.UNSUPPORTED: (frozenset({"name"}), frozenset[str]()),
}


def _plainly_right(kind: Kind, entry: Any) -> bool:
    """True for a rule of names and texts alone that the schema allows; False says nothing."""
    needed, more = _NAMES.get(kind, (frozenset(), frozenset()))
    if not isinstance(entry, dict) or not needed or not needed <= entry.keys():
        return False
    for key, value in entry.items():
        if key == "arg_idx" and kind is Kind.ARGS:
            if type(value) is not int or value < 0:
                return False
        elif not isinstance(value, str):
            return False
        elif key == "arg_new" and kind is Kind.ARGS:
            continue
        elif key in needed or key in more:
            if not _NAME.fullmatch(value) and not (key in more and not value):
                return False
        elif key not in _TEXTS or not value:
            return False
    return True


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
    seen: dict[tuple[str, ...], list[tuple[int, frozenset[str]]]] = {}
    for number, example in enumerate(document.get("examples", ())):
        yield from _versions_errors(("examples", number, "versions"), example.get("versions"))
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
            if kind is Kind.ARGS and (wrong := _wrong_expression(entry.get("arg_new", ""))):
                yield (*path, "arg_new"), wrong
            if entry.get("definitions"):
                if "." in entry["new_name"]:
                    yield (*path, "new_name"), "a rule with 'definitions' needs a new_name without dots"
                for key in ("args", "skip_if"):
                    if key in entry:
                        yield (*path, key), f"a rule with 'definitions' renames every use: it takes no {key!r}"
            if kind is Kind.INSERT:
                yield from _statement_errors((*path, "insert"), entry["insert"])
            if entry.get("similar") and not entry.get("differs"):
                yield path, "a rule with 'similar' needs 'differs': what may differ in precision or speed"
            try:
                held = versions_of(entry.get("versions", versions))
            except ValueError:
                continue
            identity = _identity(kind, entry)
            others = seen.setdefault(identity, [])
            first = next((other for other, theirs in others if held & theirs), None)
            if first is not None:
                name = next(filter(None, identity[1:]))
                yield path, f"rules {first + 1} and {index + 1} of {kind.value} are both for `{name}`"
            others.append((index, held))


def _identity(kind: Kind, entry: dict[str, Any]) -> tuple[str, ...]:
    """What two rules of a file must not share in one torch version: the name, and for arguments the place."""
    names = [str(entry.get(key, "")) for key in _IDENTITY if key != "arg_keyword" or "arg_idx" not in entry]
    return (kind.value, *names, str(entry.get("similar", False)))


def _statement_errors(path: JsonPath, text: str) -> Iterator[tuple[JsonPath, str]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lines = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        yield path, f"expected Python statements, got {_shown(text)}: {reason}"
        return
    if not lines or len(lines) != len(text.strip("\n").split("\n")):
        yield path, "expected Python statements of one line each"


_IDENTITY = (
    "func_name", "parent_module", "old_name", "name", "arg_idx", "arg_keyword", "delete_keyword", "old_string", "where",
)  # fmt: skip


def _name_errors(path: JsonPath, entry: dict[str, Any]) -> Iterator[tuple[JsonPath, str]]:
    for key in ("func_name", "old_name", "new_name", "parent_module", "name", "arg_keyword", "delete_keyword"):
        text = entry.get(key)
        for part in str(text).split(".") if text else ():
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


@lru_cache(maxsize=1024)
def _wrong_expression(text: str) -> str:
    """What keeps a text from being one Python expression, or empty; empty where nothing does."""
    if not text.strip():
        return "expected a Python expression, or an empty string to delete the argument; got blanks" if text else ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text.strip(), mode="eval")
            call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else type(error).__name__
        return f"expected a Python expression, got {_shown(text)}: {reason}"
    if not isinstance(call, ast.Call) or len(call.args) != 1:
        return f"expected one Python expression, got {_shown(text)}: put it in parentheses"
    return ""
