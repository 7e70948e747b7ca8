"""What becomes of one value: a device or a backend where code reads it as one, or a library that is known to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from transplt.base.finding import Effort, Level
from transplt.edits.edit import Edit, Finds, Kept, Note
from transplt.engine.files.config.values import WORD, Holder, Value, dotted
from transplt.engine.files.document import Document
from transplt.engine.files.embedded_pieces import in_lines
from transplt.engine.files.kind import FileKind
from transplt.engine.files.variables import variable_set
from transplt.flow import read_as
from transplt.flow.command_options import path_of
from transplt.flow.command_words import Started, Word, started
from transplt.flow.device_strings import BACKEND_STRINGS, BACKENDS_STRING, DEVICE_STRING
from transplt.flow.marks import BACKEND, DEVICE, marks_by_name
from transplt.flow.own_packages import has_its_own
from transplt.flow.read_as import NOBODY, Reading
from transplt.rules.communication_backends import OwnNames, own_names, own_names_below
from transplt.rules.tables import read_table

VALUE, UNREAD = "NPU820", "NPU821"
#: A default of an interpolation (`${oc.env:DEVICE,cuda}`, `${DEVICE:-cuda}`), and an override (`train.device=cuda`).
_DEFAULT = re.compile(r"\$\{(?:oc\.env:|env:)?[\w.]+(?:,|:-)[ \t]*['\"]?(?P<value>[\w:]+)['\"]?\}")
_OVERRIDE = re.compile(r"(?P<dashes>-{0,2})[+~]{0,2}(?P<key>[\w./@-]+)=['\"]?(?P<value>[\w:,]+)['\"]?")
_DEVICES = re.compile(r"(?:cuda|cpu)(?::\d+)?(?:[ \t]*,[ \t]*(?:cuda|cpu)(?::\d+)?)+")
#: A text that a shell runs.
_COMMAND = re.compile(
    r"(?:^|[\s;&|(])(?:(?:python[\d.]*|torchrun|accelerate|deepspeed|mpirun|srun|bash|sh|source|export|nvidia-smi)[ \t]"
    r"|(?:CUDA|NCCL|PYTORCH|TORCH)_\w+=)"
)
#: A text with options of a command line, one of them with its value, and one that is called after CUDA.
_OPTIONS = re.compile(r"(?:^|\s)--?[A-Za-z]")
_OPTION = re.compile(r"(?<![\w-])(--?[A-Za-z][\w.-]*)(?:[= ][\"']?([\w:]+)(?![\w:.,/-]))?")
_OPTION_BYTES = re.compile(_OPTION.pattern.encode())
_LONG = 200
_BOTH = "the code uses it as a device, and one file for all hosts cannot name the card"
#: Keys whose values are for people.
_PROSE = frozenset("description desc help comment comments note notes _comment __comment doc summary".split())
#: Keys beside the options that name a Python file: launch.json of editors, jobs of schedulers and of sweeps.
_PROGRAMS = ("program", "script", "script_path", "entry_point", "entrypoint", "main")
#: Those that name the first words of the command.
_COMMANDS = ("command", "cmd", "executable")
_FOLDER = re.compile(r"^\$\{\w+\}/")


@dataclass(frozen=True, slots=True)
class _Spelled:
    """A device or a backend in the text of a value: from where to where in it, and what stands there on an NPU."""

    mark: str
    start: int
    end: int
    new: str


def decide(document: Document, value: Value) -> Finds:
    """Edits, notes and kept words for a value and its key."""
    reads = document.project.reads
    read = {value.name, value.name.replace("-", "_")} & (reads.names | library_names())
    if value.key is None:
        pass
    elif value.in_environment and not value.of_many and not value.name.islower():  # a variable, and no setting
        whole = (value.key[0], value.whole[1])
        yield from variable_set(document, value.name, value.key, value.text, whole)
    elif value.name in reads.cudnn:
        yield Kept(value.key, "cudnn-setting")
    elif read and (not value.of_many or "_" in value.name):
        yield Kept(value.key, "key")
    if WORD.search(value.text):
        yield from _decide_text(document, value)


def _decide_text(document: Document, value: Value) -> Finds:
    edits = document.settings.style != "portable"
    spelled = list(_spelled(value))
    if (names := _names_of_a_library(value)) is not None:
        yield Kept(value.whole, "own-registry", names.library)
    elif spelled:
        # In the defaults list of Hydra, `- device: cuda` is the file device/cuda.yaml.
        if any(path[:1] == ("defaults",) and len(path) > 1 and path[1].isdigit() for path in value.paths()):
            yield Kept(value.whole, "own-string")
        else:
            for each in spelled:
                yield from _spelled_value(document, value, each)
    elif edits and (schema := schema_of(document, value)) is not None and value.text in schema.values:
        own = has_its_own(document.project, value.text, schema.values[value.text])
        if not document.project.portable and not own:
            yield from _edit(value, 0, len(value.text), schema.values[value.text], schema.library, schema.effect)
            yield Kept((value.key[0] if value.key else value.whole[0], value.whole[1]), "remark")
    elif value.name.lower() in _PROSE:
        yield Kept(value.whole, "text")
    elif _COMMAND.search(value.text) and value.lines:
        yield from in_lines(document, value.lines, FileKind.SHELL)
    elif _OPTIONS.search(value.text) and not _is_record(value):
        yield from _options(document, value, edits)
    elif " " in value.text.strip():
        yield Kept(value.whole, "words")


def _names_of_a_library(value: Value) -> OwnNames | None:
    """What a library makes of a value that it looks up among names of its own, which are right on NPUs."""
    override = _OVERRIDE.match(value.text)
    keys = [value.before, override["key"] if override is not None else "", *(key for at in value.paths() for key in at)]
    called = (own_names(callee, name) for callee, name in value.callees())
    found = own_names_below(keys) or next(filter(None, called), None)
    return found if found is not None and found.kept else None


def _spelled(value: Value) -> Iterator[_Spelled]:
    """The whole text, the default of an interpolation, or what an override sets."""
    text = value.text
    if _mark(text):
        yield _spell(text, 0)
    elif _DEVICES.fullmatch(text) and "cuda" in text:
        yield _Spelled(DEVICE, 0, len(text), text.replace("cuda", "npu"))
    else:
        match = _DEFAULT.fullmatch(text) or _OVERRIDE.fullmatch(text)
        if match is not None and _mark(match["value"]):
            yield _spell(match["value"], match.start("value"))


def _mark(text: str) -> str:
    if DEVICE_STRING.fullmatch(text):
        return DEVICE
    return BACKEND if text in BACKEND_STRINGS or (BACKENDS_STRING.fullmatch(text) and "nccl" in text) else ""


def _spell(text: str, start: int) -> _Spelled:
    mark = _mark(text)
    if mark == DEVICE:
        new = ("NPU" if text[:4].isupper() else "Npu" if text[0].isupper() else "npu") + text[4:]
    else:
        new = "HCCL" if text == "NCCL" else text.replace("nccl", "hccl").replace("cuda", "npu")
    return _Spelled(mark, start, start + len(text), new)


def _spelled_value(document: Document, value: Value, spelled: _Spelled) -> Finds:
    reading = _reading(document, value)
    nobody = "no code of the project is known to use it as one"
    # Readers of such a name are found wherever they are: this value goes nowhere.
    unread = not reading.read and value.key is not None and not spelled.start and bool(marks_by_name(value.name))
    if document.settings.style == "portable":
        if spelled.mark in reading.marks:
            yield _unread(value, spelled, _BOTH, _setting(value, spelled))
        elif unread and document.project.known and not reading.why:
            yield _unread(value, spelled, nobody, "it stays; if another program reads it, choose it there", "tidy")
        return
    schema = None if reading.marks or document.project.portable else schema_of(document, value)
    if spelled.mark in reading.marks or (schema is not None and schema.mark == spelled.mark):
        if value.extent is None:
            yield _unread(value, spelled, help_=f"it is written with escapes; write {spelled.new}")
        else:
            library, effect = ("", "") if schema is None else (schema.library, schema.effect)
            yield from _edit(value, spelled.start, spelled.end, spelled.new, library, effect)
    elif document.project.known:
        why = reading.why or ("the code reads it as something else" if reading.read else nobody)
        yield _unread(value, spelled, why, blocks="tidy" if unread else "")


def _edit(value: Value, start: int, end: int, new: str, library: str, effect: str) -> Finds:
    if value.extent is None:
        return
    # Characters and bytes are the same here: what is edited has none but ASCII before it.
    at = value.extent[0] + len(value.text[:start].encode())
    old = value.text[start:end]
    message = f"{_dotted_key(value)}: {old} -> {new}"
    if library:
        message += f" (a key of {library})"
    yield Edit((at, at + len(old.encode())), VALUE, message, new, api=old, help=effect)


def _is_record(value: Value) -> bool:
    """True for what some program once wrote, such as how torch was built: long, with line ends, without our words."""
    return (
        len(value.text) > _LONG
        and ("\\n" in value.text or "\n" in value.text)
        and not any(_mark(given) for _, given in _OPTION.findall(value.text))
    )


def _options(document: Document, value: Value, edits: bool) -> Finds:
    """`"args": "--device cuda --no-cuda"`: values that the option's program takes for a device; names that it has."""
    start, end = value.whole
    script = script_of(document, value)
    # By bytes, so that a text of several lines, or with escapes, can be edited too.
    for match in _OPTION_BYTES.finditer(document.utf8, start, end):
        name, given = match[1].decode(), (match[2] or b"").decode()
        if WORD.search(name) and name.strip("-").replace("-", "_") in document.project.reads.names:
            yield Kept(match.span(1), "flag")
        if edits and (mark := _mark(given)) and mark in read_as.option(document.project, name, script).marks:
            new = _spell(given, 0).new
            yield Edit(match.span(2), VALUE, f"{_dotted_key(value)}: {name} {given} -> {new}", new, api=given)


def _reading(document: Document, value: Value) -> Reading:
    """What the project's code reads a value as; what reads it by another path (an alias) has to agree."""
    project = document.project
    found: list[Reading] = []
    override = _OVERRIDE.fullmatch(value.text)
    if override is not None:
        if override["dashes"]:
            found.append(read_as.option(project, override["key"], script_of(document, value)))
        else:
            found.append(read_as.key(project, re.split(r"[./]", override["key"].partition("@")[0])))
    elif value.before.startswith("-") and value.holder.is_list:
        found.append(read_as.option(project, value.before, script_of(document, value)))
    elif value.in_environment:
        found.append(read_as.variable(project, value.name))
    else:
        found += [read_as.argument(project, callee, name) for callee, name in value.callees()]
        if not found:
            found += [read_as.key(project, path) for path in value.paths()]
    nobody = next((each for each in found if each.why and not each.read), NOBODY)
    found = [each for each in found if each.read]
    if not found:
        return nobody
    marks = frozenset.intersection(*(each.marks for each in found))
    return Reading(marks, True, next((each.why for each in found if each.why), ""))


def _unread(value: Value, spelled: _Spelled, why: str = "", help_: str = "", blocks: str = "") -> Note:
    what = "device" if spelled.mark == DEVICE else "backend"
    message = f"{_dotted_key(value)}: {value.text} may be a {what}" + (f": {why}" if why else "")
    help_ = help_ or f"write {spelled.new} if a program reads this value as a {what}; otherwise do not change it"
    details = (("key", _dotted_key(value)),)
    return Note(
        value.whole, UNREAD, Level.MANUAL, message, value.text, help_, Effort.LOW, details=details, blocks=blocks
    )  # fmt: skip


def _setting(value: Value, spelled: _Spelled) -> str:
    """What the owner of a file does that stays in the portable style."""
    name = "DEVICE_TYPE" if spelled.mark == DEVICE else "DIST_BACKEND"
    other = f"{_dotted_key(value)}={spelled.new}"
    added = "" if spelled.mark == DEVICE else " (add it, if it has none: hccl on an NPU, else nccl)"
    return f"use {name} of the module{added} where the code reads this value, or set {other} on hosts with NPUs"


def _dotted_key(value: Value) -> str:
    """The key of a value, for people."""
    return dotted(value.paths()[0]) or value.text


def script_of(document: Document, value: Value) -> str:
    """The path in the project of what gets the options in a value, or in the list that it stands in; else empty."""
    inner = value.holder if value.holder.is_list else None
    around = value.holder.above if inner is not None else value.holder
    beside = around.texts if around is not None else {}
    path = next((text for key in _PROGRAMS if (text := beside.get(key, "")).endswith(".py")), "")
    program = None
    if re.fullmatch(r"[\w.]+", module := beside.get("module", "")):
        program = Started(module.replace(".", "/") + ".py", (), ())
    elif path:
        program = Started(_FOLDER.sub("", path), (), ())
    elif inner is not None:
        texts = [*" ".join(beside.get(key, "") for key in _COMMANDS).split(), *inner.texts.values()]
        program = started([Word((0, 0), text, text) for text in texts])
    return "" if program is None else path_of(document.project, document.path, program)


@dataclass(frozen=True, slots=True)
class Schema:
    """One key of one library. `keys` and one of `any_of` stand at the top of its files, `text` somewhere in them.

    `mark`: what the value is, device or backend; or `values`: old values with what stands in their place on an NPU.
    """

    library: str
    path: re.Pattern[str]
    keys: frozenset[str]
    any_of: frozenset[str]
    text: re.Pattern[bytes] | None
    mark: str
    values: dict[str, str]
    effect: str


def schema_of(document: Document, value: Value) -> Schema | None:
    """The first schema that knows a value."""
    for schema in _schemas():
        if any(schema.path.fullmatch(dotted(path)) for path in value.paths()) and _is_one(schema, document, value):
            return schema
    return None


@cache
def library_names() -> frozenset[str]:
    """Names of keys that speak of CUDA and that a library reads under these names on every device."""
    return frozenset(row["name"] for row in read_table("support/config_schemas.json")["names"])


def _is_one(schema: Schema, document: Document, value: Value) -> bool:
    top: Holder = value.holder
    while top.above is not None:
        top = top.above
    keys = top.texts.keys()
    if not schema.keys <= keys or (schema.any_of and schema.any_of.isdisjoint(keys)):
        return False
    return schema.text is None or schema.text.search(document.utf8) is not None


@cache
def _schemas() -> tuple[Schema, ...]:
    return tuple(
        Schema(
            row["library"],
            re.compile(row["path"]),
            frozenset(row.get("keys", ())),
            frozenset(row.get("any", ())),
            re.compile(row["text"].encode()) if "text" in row else None,
            row.get("as", ""),
            row.get("values", {}),
            row["effect"],
        )
        for row in read_table("support/config_schemas.json")["schemas"]
    )
