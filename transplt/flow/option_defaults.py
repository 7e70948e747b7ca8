"""What options are when nobody gives them: those of a command line, fields of dataclasses, entries of settings, as yacs
has them and as YAML does.

Read from bytes, for files that nobody parses as well. Only constants count; what is worked out, or given, is unknown.
"""

from __future__ import annotations

import ast
import posixpath
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from transplt.flow.marks import GENERIC
from transplt.syntax.modules import named_aside
from transplt.syntax.nodes import keyword_of, last_name, string_of

#: The kinds of constants that are compared with.
Constant = str | int | float | bool | None
#: Objects that hold settings, by the end of their names: `model_args`, `lora_config`.
HOLDERS = "args|arguments|opts?|options|cfg|conf|config|flags|params|hparams|settings"
_CALL = re.compile(
    rb"\b(?:add_(?:argument|option)|DEFINE_(?:bool|boolean|enum|float|integer|string)|click\.option)\("
)
_PIECE = re.compile(rb"'''.*?'''|\"\"\".*?\"\"\"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|#[^\n]*|[()]", re.S)
_DATACLASS = re.compile(rb"^(?P<indent>[ \t]*)@(?:\w+\.)*dataclass\b", re.M)
#: An entry of settings as yacs has them: `_C.MODEL.NAME = "slow"`.
_ENTRY = re.compile(rb"^_{1,2}C\.(?P<name>\w+(?:\.\w+)*)[ \t]*=[ \t]*(?P<value>[^\n#({\[]+)", re.M)
_CLASS = re.compile(rb"^[ \t]*class[ \t]", re.M)
#: A line of YAML: a list, a key with what is under it, or with its value.
_LINE = re.compile(
    rb"^(?P<indent> *)(?:(?P<item>-)|(?P<key>\w+):(?:[ \t]+(?P<value>[^\n#]*?))?[ \t]*(?:#[^\n]*)?$)", re.M
)
#: What plain words of YAML stand for.
_WORDS: dict[str, tuple[Constant, ...]] = {
    "true": (True,), "false": (False,), "null": (None,), "none": (None,), "~": (None,)
}  # fmt: skip


class Option(NamedTuple):
    """An option: the attribute that holds it, its default alone in a tuple (an empty one where that is unknown), and
    how it is given; `short`: with one letter.
    """

    name: str
    default: tuple[Constant, ...]
    words: str
    short: str = ""


def destination(call: ast.Call) -> str:
    """The attribute that an `add_argument` call fills, or the parameter that click's `option` does."""
    for keyword in call.keywords:
        if keyword.arg == "dest" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    names = [str(arg.value) for arg in call.args if isinstance(arg, ast.Constant)]
    plain = [name for name in names if last_name(call.func) == "option" and name.isidentifier()]
    long = plain or [name for name in names if name.startswith("--")] or names
    return re.sub(r"^-+", "", long[0].partition("/")[0]).replace("-", "_") if long else ""


def slot_filled(name: str) -> str:
    """The slot of the attribute that an option fills; `vllm.backend` can be read only as one of a nested namespace."""
    last = name.rpartition(".")[2]
    return f"n:{name if last in GENERIC else last}"


def options_in(data: bytes) -> tuple[Option, ...]:
    """The options that a Python file defines, by name; one that it defines in two ways is unknown."""
    found: list[Option] = []
    if any(each in data for each in (b"add_argument(", b"option(", b"DEFINE_")):
        for match in _CALL.finditer(data):
            end = _closing(data, match.end())
            found += _of_arguments(data[match.start() : end]) if end else ()
    if b"dataclass" in data:
        for match in _DATACLASS.finditer(data):
            node = _parsed(textwrap.dedent(_class(data, match).decode("utf-8", "replace")).encode())
            if isinstance(node, ast.ClassDef):
                found += _of_class(node)
    for match in _ENTRY.finditer(data) if b"_C." in data else ():
        name, value = match["name"].decode("ascii", "replace"), _parsed(match["value"].strip())
        found.append(Option(name, constant(value.value if isinstance(value, ast.Expr) else None), f"{name}="))
    return tuple(joined(found).values())


def options_of_yaml(data: bytes, path: str) -> tuple[Option, ...]:
    """The entries of a configuration in YAML, `train.compile`: by all keys above them, and with the folder of the file
    above those, as Hydra has the groups of its settings; nothing is known of what is no plain constant.
    """
    group, found, above = posixpath.basename(posixpath.dirname(path)), list[Option](), list[tuple[int, str]]()
    for match in _LINE.finditer(data) if path.endswith((".yaml", ".yml")) and not named_aside(path) else ():
        indent = len(match["indent"])
        while above and above[-1][0] >= indent:
            above.pop()
        if match["item"] or any(not key for _, key in above):
            above.append((indent, ""))  # what a list holds has no name
        elif not match["value"]:
            above.append((indent, match["key"].decode()))
        else:
            text = match["value"].decode("utf-8", "replace")
            value = _WORDS.get(text.lower(), (text,) if re.fullmatch(r"[A-Za-z][\w.-]*", text) else ())
            name = ".".join([*(key for _, key in above), match["key"].decode()])
            words = f"{name}{'=' * (value != (False,))}"
            found += (Option(f"{of}{name}", value, f"{of}{words}") for of in ("", f"{group}."))
    return tuple(joined(found).values())


def joined(options: Iterable[Option]) -> dict[str, Option]:
    """By name; of one that is defined in two ways nothing is known."""
    found: dict[str, Option] = {}
    for option in options:
        there = found.setdefault(option.name, option)
        if there.default != option.default or [*map(type, there.default)] != [*map(type, option.default)]:
            found[option.name] = Option(option.name, (), option.words)
    return found


def met_options(
    defined: Mapping[str, Collection[Option]], started: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], tuple[Constant, ...]]:
    """What all commands that start a file give an option, by its path and the words of the option; by no path for what
    the file takes from others. A value stands where all give the same; an empty tuple where they do not.
    """
    found: dict[tuple[str, str], tuple[Constant, ...]] = {}
    named: dict[str, set[Option]] = {}
    for option in {option for options in defined.values() for option in options if option.words.startswith("-")}:
        for name in {option.words, option.short}:
            named.setdefault(name, set()).add(option)
    for path, commands in sorted(started.items()):
        own = {option.name: option for option in defined.get(path, ())}
        words = [each.replace("=", " ").split() for each in commands]
        common = frozenset(words[0]).intersection(*words[1:])
        for option in sorted({option for name in common for option in named.get(name, ())}, key=repr):
            if own.get(option.name, option) == option:
                values = {_value_in(each, {option.words, option.short} & common) for each in words}
                value: tuple[Constant, ...] = (True,) if option.default == (False,) else (*values,)
                there = path if option.name in own else ""
                found[there, option.words] = value if len(value) == 1 and value[0] is not None else ()
    return found


def not_given(entries: Mapping[str, Option], started: Mapping[str, Collection[str]]) -> dict[str, Option]:
    """Of the entries of configurations those that no command sets, as `train.compile=true`."""
    words = {word.partition("=")[0] for commands in started.values() for each in commands for word in each.split()}
    return {name: each for name, each in entries.items() if name not in words}


def _value_in(words: list[str], names: Collection[str]) -> str | None:
    """The text that a command gives an option; None for a number, and where there is none."""
    at = next(index for index, word in enumerate(words) if word in names) + 1
    text = words[at].strip("\"'") if at < len(words) else ""
    return text if re.fullmatch(r"[A-Za-z_][\w.-]*", text) else None


def _closing(data: bytes, at: int) -> int:
    """Where the call ends whose arguments begin at `at`; 0 where that is not found."""
    depth = 1
    for match in _PIECE.finditer(data, at, at + 5000):
        if match[0] in (b"(", b")"):
            depth += 1 if match[0] == b"(" else -1
            if depth == 0:
                return match.end()
    return 0


def _class(data: bytes, decorator: re.Match[bytes]) -> bytes:
    """The text of a decorated class, to the next line that is indented no more than it."""
    header = _CLASS.search(data, decorator.start())
    if header is None:
        return b""
    at = data.find(b"\n", header.end()) + 1
    depth = len(decorator["indent"])
    behind = re.compile(rb"^[ \t\r]{0,%d}(?=[^ \t\r\n#)])(?!\"\"\"|''')" % depth, re.M).search(data, at) if at else None
    return data[decorator.start() : behind.start() if behind is not None else len(data)]


def _parsed(text: bytes) -> ast.stmt | None:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return body[0] if body else None


@lru_cache(maxsize=4096)
def _of_arguments(text: bytes) -> tuple[Option, ...]:
    """The option that a call defines, one of absl's too; programs of a project define the same ones."""
    match _parsed(text):
        case ast.Expr(value=ast.Call(func=ast.Name(id=func), args=[ast.Constant(value=str(name)), default, *_])) if (
            func.startswith("DEFINE_")
        ):
            return (Option(name, constant(default), f"--{name}"),)
        case ast.Expr(value=ast.Call() as call):
            names = [string_of(argument) or "" for argument in call.args]
            spelled, _, turned = next((name for name in names if name.startswith("--")), "").partition("/")
            short = next((name for name in names if re.fullmatch(r"-\w+", name)), "")
            attribute, value = destination(call), _default(call)
            words = turned if turned and value == (True,) else spelled
            if value == (True,) and string_of(keyword_of(call, "action")) == "store_true":
                words = f"{attribute}=False"  # no command can give that
            return (Option(attribute, value, words, short),) if spelled else ()
    return ()


def _default(call: ast.Call) -> tuple[Constant, ...]:
    if keyword_of(call, "required") is not None or any(keyword.arg is None for keyword in call.keywords):
        return ()
    given, action = keyword_of(call, "default"), string_of(keyword_of(call, "action"))
    if given is not None:
        return constant(given)
    if action in ("store_true", "store_false") or constant(keyword_of(call, "is_flag")) == (True,):
        return (action == "store_false",)
    return (None,) if keyword_of(call, "action") is None else ()


def constant(node: ast.expr | None) -> tuple[Constant, ...]:
    """The value of a constant, alone in a tuple; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float, bool, type(None))):
        return (node.value,)
    return ()


def _of_class(node: ast.ClassDef) -> Iterator[Option]:
    for row in node.body:
        if isinstance(row, ast.AnnAssign) and isinstance(row.target, ast.Name) and row.value is not None:
            value: ast.expr | None = row.value
            if isinstance(value, ast.Call):
                value = keyword_of(value, "default") if last_name(value.func) == "field" else None
            yield Option(row.target.id, constant(value), row.target.id)
