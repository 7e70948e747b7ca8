"""What a file reads from outside: keys of configurations, fields of settings, options, variables of the environment.

A tensor has a `device` too: an attribute counts only where it is read from what is called, annotated or made as a
configuration. An entry (`opt["device"]`) counts whatever it is read from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from transplt.flow.backend_takers import argument_of_a_package
from transplt.flow.callees import ABSL_CALLS, OBJECTS, PARSER_CALLS
from transplt.flow.cudnn_settings import cudnn_reads
from transplt.flow.key_facts import How, KeyRead, names_a_configuration
from transplt.flow.marks import DEVICE_NAME, GENERIC, marks_by_name
from transplt.flow.option_defaults import destination, slot_filled
from transplt.flow.own_names import class_fields
from transplt.flow.slots import Slots
from transplt.syntax.names import SELF, assigned_value
from transplt.syntax.nodes import callee_of, defaults_of, last_name, string_of
from transplt.syntax.scan import FUNCTIONS, parent

_OF_CUDA = re.compile(r"cuda|nccl", re.I)
_LOOKED_UP = frozenset({"get", "pop", "setdefault"})
#: Calls whose result is a configuration.
_MAKES = re.compile(
    r"^(?:parse_(?:known_)?args(?:_into_dataclasses)?|parse|load|safe_load|full_load|loads|create|from_?file|from_cli"
    r"|from_dict|merge|compose|edict|OmegaConf|cli|get_(?:cfg|config|args|parser|options?).*)$"
    r"|(?:[Cc]onfig|[Oo]ptions|[Aa]rguments|[Aa]rgs|Namespace|Dict|Munch)$"
)
_HOLDS = re.compile(r"Config|Namespace|Arg|Options|Settings|Params|Cfg|Dict$")
_SETTINGS = re.compile(r"(?:Config|Configuration|Cfg|Args?|Arguments|Options?|Opts|H?Params|Parameters|Settings)$")
_SETTINGS_BASES = re.compile(r"(?:BaseModel|NamedTuple|TypedDict|Struct|Tap|Dataclass)$")
_DATACLASS = frozenset({"dataclass", "define", "attrs", "configclass", "config_class", "frozen", "mutable"})


def key_reads(slots: Slots, shared: Iterable[str]) -> tuple[KeyRead, ...]:
    """What a scanned file reads whose value may be a device or a backend: by its name, or as one of the slots that the
    file shares with others.
    """
    marked = (member for root in slots.marks for member in slots.members.get(root, [root]))
    known = frozenset((*shared, *marked))
    names = {slot.rpartition(".")[2].rpartition(":")[2].rpartition("[")[2].rstrip("]") for slot in known}
    reading = _Reading(slots, known, names)
    found = {*reading.attributes(), *reading.entries(), *reading.spreads(), *reading.fields(), *reading.options()}
    found.update(reading.cuda_names(), cudnn_reads(slots.scan, slots.names))
    return tuple(sorted(found))


class _Reading:
    """One file, and the names that are worth a look in it."""

    def __init__(self, slots: Slots, shared: frozenset[str], names: set[str]) -> None:
        self.slots, self.shared, self.names = slots, shared, names

    def attributes(self) -> Iterator[KeyRead]:
        """`cfg.train.device`, `args.backend`."""
        for name, nodes in self.slots.scan.attributes.items():
            if not self._worth(name):
                continue
            for node in nodes:
                above = parent(node)
                if isinstance(node.ctx, ast.Load) and not (isinstance(above, ast.Call) and above.func is node):
                    yield from self._read(node, entry=False)

    def entries(self) -> Iterator[KeyRead]:
        """`cfg["device"]`, `cfg.get("device")`, `os.environ["DEVICE"]`."""
        for node in self.slots.scan.subscripts:
            key = string_of(node.slice)
            if key is not None and isinstance(node.ctx, ast.Load) and self._worth(key):
                yield from self._read(node, entry=True)
        for call in self.slots.scan.calls:
            key = string_of(call.args[0]) if call.args else None
            if key is not None and self._worth(key):
                last = last_name(call.func)
                if last in _LOOKED_UP and isinstance(call.func, ast.Attribute):
                    yield from self._read(call, entry=True)
                elif last == "getenv":
                    yield self._found("variable", "", (key,), f"k:environ[{key}]")
            elif last_name(call.func) == "getattr" and len(call.args) > 1:
                name = string_of(call.args[1])
                if name is not None and self._worth(name):
                    yield from self._read(call, entry=False)

    def spreads(self) -> Iterator[KeyRead]:
        """`init(**cfg["dist"])`."""
        for call in self.slots.scan.calls:
            for keyword in call.keywords:
                if keyword.arg is not None or last_name(call.func) in (*OBJECTS, "dict"):
                    continue
                root, path = self._chain(keyword.value)
                if (path or root) and (path or root not in ("kwargs", "kw", "kwds")):
                    own = self.slots.own.definition(call.func)
                    callee = self.slots.names.qualified(call.func) or last_name(call.func)
                    yield KeyRead("spread", root, path, f"p:{own}" if own else f"f:{callee}")

    def cuda_names(self) -> Iterator[KeyRead]:
        """Names that speak of CUDA, of anything but a device: `args.no_cuda`, `c["use_cuda"]`, `--cuda`."""
        scan = self.slots.scan
        for name, nodes in scan.attributes.items():
            if _OF_CUDA.search(name) and any(_is_data(node) for node in nodes):
                yield KeyRead("name", "", (name,), "")
        for node in scan.strings:
            name, above = str(node.value), parent(node)
            looked_up = isinstance(above, ast.Call) and last_name(above.func) in (*_LOOKED_UP, "getattr")
            if name.isidentifier() and (isinstance(above, ast.Subscript) or looked_up):
                yield KeyRead("name", "", (name,), "")
        for call in scan.calls_by_last_name(PARSER_CALLS):
            if _OF_CUDA.search(name := destination(call)):
                yield KeyRead("name", "", (name,), "")
        for defined in scan.classes:
            for name in (class_fields(defined) or ()) if _holds_settings(defined) else ():
                if _OF_CUDA.search(name):
                    yield KeyRead("name", "", (name,), "")

    def fields(self) -> Iterator[KeyRead]:
        """Annotated fields of data classes and of what is called like settings."""
        for node in self.slots.scan.classes:
            for name in (class_fields(node) or ()) if _holds_settings(node) else ():
                if self._worth(name):
                    owner = self.slots.own.full_name(self.slots.scan.scopes[node])
                    if self._interesting(slot := f"s:{owner}.{name}"):
                        yield self._found("field", node.name, (name,), slot)

    def options(self) -> Iterator[KeyRead]:
        """Options of argparse, optparse, click, typer and absl, by what is written on the command line."""
        for call in self.slots.scan.calls_by_last_name((*ABSL_CALLS, *PARSER_CALLS, "Option")):
            last = last_name(call.func)
            if last in ABSL_CALLS:
                name = string_of(call.args[0]) if call.args else None
                yield from self._option([name] if name else [], name or "", f"n:{name}")
            elif last in PARSER_CALLS:
                name, function = destination(call), parent(call)
                slot = slot_filled(name)
                if isinstance(function, FUNCTIONS):
                    slot = self.slots.variable(name, self.slots.scan.scopes[function]) or slot
                written = [text for arg in call.args if (text := string_of(arg)) and text.startswith("-")]
                yield from self._option([text.partition("/")[0].lstrip("-") for text in written], name, slot)
            elif isinstance(parent(call), ast.arguments):
                yield from self._typer(call)

    def _typer(self, call: ast.Call) -> Iterator[KeyRead]:
        function = parent(parent(call))
        if not isinstance(function, FUNCTIONS):
            return
        for arg, value in defaults_of(function.args):
            if value is call:
                slot = self.slots.variable(arg.arg, self.slots.scan.scopes[function])
                written = [text.lstrip("-") for each in call.args if (text := string_of(each) or "").startswith("-")]
                yield from self._option(written or [arg.arg.replace("_", "-")], arg.arg, slot or f"n:{arg.arg}")

    def _option(self, written: list[str], name: str, slot: str) -> Iterator[KeyRead]:
        if self._worth(name) and self._interesting(slot):
            yield from (self._found("option", self.slots.scan.path, (text,), slot) for text in written)
            yield self._found("key", "args", (name,), slot)

    def _worth(self, name: str) -> bool:
        known = name in self.names or bool(marks_by_name(name))
        return known and name not in GENERIC and not DEVICE_NAME.fullmatch(name)

    def _interesting(self, slot: str) -> bool:
        return slot in self.shared or bool(marks_by_name(slot))

    def _read(self, node: ast.expr, *, entry: bool) -> Iterator[KeyRead]:
        slot = self.slots.of(node)
        if slot is None or not self._interesting(slot):
            return
        root, path = self._chain(node)
        if (root, *path[:-1]) in (("os", "environ"), ("environ",)):
            counted = last_name(getattr(parent(node), "func", parent(node))) in ("split", "len")
            yield self._found("variable", "counted" if counted else "", path[-1:], slot)
        elif path and (taken := argument_of_a_package(self.slots, node)):
            yield KeyRead("key", root, path, taken)
        elif path and (entry or names_a_configuration(root) or self._is_configuration(node)):
            yield self._found("key", root, path, slot)

    def _found(self, how: How, root: str, path: tuple[str, ...], slot: str) -> KeyRead:
        return KeyRead(how, root, path, slot, tuple(sorted(self.slots.marks_of(slot))))

    def _chain(self, node: ast.expr, depth: int = 0) -> tuple[str, tuple[str, ...]]:
        """What a value is read from, and the keys from there; a variable that is set once stands for its value."""
        keys: list[str] = []
        while (step := _step(node)) is not None:
            node, key = step
            keys += [key] if key else []
        keys.reverse()
        root = ""
        if isinstance(node, ast.Name):
            root = node.id
            followed = depth < 3 and root not in SELF
            bindings = self.slots.names.bindings_of(node) if followed else []
            once = len(bindings) == 1 and bindings[0].kind == "assign"
            above = assigned_value(bindings[0].node) if once else None
            if above is not None and _step(above) is not None:
                root, before = self._chain(above, depth + 1)
                keys = [*before, *keys]
        if root in SELF and keys:
            root = keys.pop(0)
        if not names_a_configuration(root):
            for index, key in enumerate(keys[:-1]):
                if names_a_configuration(key):
                    return key, tuple(keys[index + 1 :])
        return root, tuple(keys)

    def _is_configuration(self, node: ast.expr) -> bool:
        """True for what is read from the result of a call that makes configurations, or is annotated as one."""
        while (step := _step(node)) is not None:
            node = step[0]
        for binding in self.slots.names.bindings_of(node):
            if binding.kind == "assign" and isinstance(value := assigned_value(binding.node), ast.Call):
                if _MAKES.search(last_name(value.func)):
                    return True
            elif binding.kind == "param" and isinstance(binding.node, ast.arg):
                annotation = binding.node.annotation
                if _HOLDS.search(last_name(annotation) or string_of(annotation) or ""):
                    return True
        return False


def _is_data(node: ast.Attribute) -> bool:
    """True for an attribute that is read as a setting: not called, and not of torch."""
    above = parent(node)
    if not isinstance(node.ctx, ast.Load) or (isinstance(above, ast.Call) and above.func is node):
        return False
    return not isinstance(above, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id == "torch")


def _step(node: ast.AST) -> tuple[ast.expr, str] | None:
    """What a key is read from, and the key: an empty one for the item of a list."""
    match node:
        case ast.Attribute():
            return node.value, node.attr
        case ast.Subscript():
            return node.value, string_of(node.slice) or ""
        case ast.Call(func=ast.Attribute(value=holder, attr=last), args=[ast.Constant(value=str() as key), *_]) if (
            last in _LOOKED_UP
        ):
            return holder, key
        case ast.Call(func=func, args=[holder, ast.Constant(value=str() as key), *_]) if last_name(func) == "getattr":
            return holder, key
    return None


def _holds_settings(node: ast.ClassDef) -> bool:
    if any(last_name(callee_of(each)) in _DATACLASS for each in node.decorator_list) or _SETTINGS.search(node.name):
        return True
    return any(_SETTINGS.search(name) or _SETTINGS_BASES.search(name) for name in map(last_name, node.bases))


# --- files that are not parsed ---------------------------------------------------------------------------------------

_WORD = rb"\w*(?:device|backend|map_?location)\w*"
_BASE = rb"([A-Za-z_][\w.]*)((?:\[(?:[\"'][\w.-]+[\"']|\w+)\])*)"
_ENTRY = re.compile(_BASE + rb"(?:\.(?:get|pop)\(|\[)[\"'](" + _WORD + rb")[\"']", re.I)
_ATTRIBUTE = re.compile(_BASE + rb"(?:\.|, *[\"'])(" + _WORD + rb")\b(?!\s*[(=\w.](?!=))", re.I)
_LONGEST_LINE = 1000
_INNER = re.compile(rb"[\"']([\w.-]+)[\"']")


#: An option of a command line, by its first long name.
_DEFINED = re.compile(
    rb"(?:add_argument|add_option|click\.option)\(\s*(?:[\"']-\w[\"']\s*,\s*)?[\"']--([A-Za-z][\w-]*)[\"']"
)


def reads_in_text(data: bytes, path: str) -> tuple[KeyRead, ...]:
    """The reads of a file that nobody parses, because it names no CUDA: those whose name says what they are."""
    found: set[KeyRead] = set()
    for match in _DEFINED.finditer(data) if b"argparse" in data or b"import click" in data else ():
        written = match[1].decode()
        name = written.replace("-", "_")
        if name not in GENERIC and marks_by_name(name):
            found.add(KeyRead("option", path, (written,), f"n:{name}"))
    for line in _lines_with_names(data):
        found.update(_matched(_ENTRY, line, entry=True), _matched(_ATTRIBUTE, line, entry=False))
    return tuple(sorted(found))


def _lines_with_names(data: bytes) -> set[bytes]:
    """The lines that may name a device or a backend: the patterns are not for a whole file."""
    found: set[bytes] = set()
    for word in (b"device", b"backend", b"DEVICE", b"BACKEND", b"map_location"):
        at = data.find(word)
        while at >= 0:
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            line = data[data.rfind(b"\n", 0, at) + 1 : end]
            if len(line) < _LONGEST_LINE:
                found.add(line)
            at = data.find(word, end)
    return found


def _matched(pattern: re.Pattern[bytes], data: bytes, *, entry: bool) -> Iterator[KeyRead]:
    for match in pattern.finditer(data):
        base, between, last = match.groups()
        keys = [*base.decode().split("."), *(key.decode() for key in _INNER.findall(between))]
        name = last.decode()
        if name in GENERIC or not marks_by_name(name):
            continue
        if keys[0] in SELF and len(keys) > 1:
            keys.pop(0)
        at = next((index for index, key in enumerate(keys) if names_a_configuration(key)), -1)
        if keys[-1] == "environ":
            yield KeyRead("variable", "", (name,), f"k:environ[{name}]")
        elif at >= 0 or (entry and keys[0] not in SELF):
            keys = keys[max(at, 0) :]
            slot = f"k:{keys[-1]}[{name}]" if entry else f"n:{name}"
            yield KeyRead("key", keys[0], (*keys[1:], name), slot)
