"""The editor of configuration files: devices, backends and variables in them; keys and everything else stay."""

from __future__ import annotations

from transplt.edits.edit import Finds
from transplt.engine.files.config import ini_values, json_values, toml_values, yaml_values
from transplt.engine.files.config.value_decisions import decide
from transplt.engine.files.config.values import Value
from transplt.engine.files.document import Document
from transplt.engine.files.embedded_pieces import in_piece
from transplt.engine.files.kind import LONGEST_JSON, FileKind, name_filled
from transplt.engine.files.recipes import is_recipe

_JSON = (".json", ".jsonc", ".json5")
_YAML = (".yaml", ".yml")
_INI = (".ini", ".cfg", ".conf", ".properties")
_VARIABLES = (".env", ".envrc")


def changes(document: Document) -> Finds:
    """What becomes of the values of a configuration. One that its format does not read keeps its other findings."""
    if is_recipe(document):
        return
    if _holds_variables(document):
        yield from in_piece(document, 0, len(document.utf8), FileKind.SHELL)
        return
    for value in read(document) or ():
        yield from decide(document, value)


def broken(document: Document, changed: Document) -> str:
    """Why the changed text must not be written: another set of keys, or none that its format reads."""
    if is_recipe(document) or _holds_variables(document):
        return ""
    before, after = read(document), read(changed)
    if before is None:
        return ""
    if after is None:
        return "the file would no longer be valid"
    # The words are gone from edited values, so that fewer are seen; none is new.
    known = {path for value in before for path in value.paths()}
    new = [path for value in after for path in value.paths() if path not in known]
    return f"it has another key: {'.'.join(new[0])}" if new and not any(v.in_environment for v in before) else ""


#: What was read last: an edited file is looked at before and after, by three who ask.
_read_last: dict[tuple[str, bytes], list[Value] | None] = {}


def read(document: Document) -> list[Value] | None:
    """The values that name CUDA, or whose keys do; None for what its format does not read, or is too long for it."""
    key = (document.name, document.utf8)
    if key not in _read_last:
        if len(_read_last) > 3:
            del _read_last[next(iter(_read_last))]
        _read_last[key] = _read(document)
    return _read_last[key]


def _read(document: Document) -> list[Value] | None:
    name, utf8 = name_filled(document.name), document.utf8
    try:
        if name.endswith(_JSON):
            return json_values.values(utf8) if len(utf8) <= LONGEST_JSON else None
        if name.endswith(_YAML):
            return yaml_values.values(document)
        if name.endswith(".toml"):
            return toml_values.values(utf8) if len(utf8) <= toml_values.LONGEST else None
        if name.endswith(_INI):
            return ini_values.values(utf8) if len(utf8) <= ini_values.LONGEST else None
    except (json_values.NotJson, yaml_values.NotYaml, toml_values.NotToml):
        return None
    return None


def _holds_variables(document: Document) -> bool:
    """True for a file of assignments, as a shell reads them: `.env`, `prod.env`, `.env.local`."""
    return document.name.endswith(_VARIABLES) or document.name.startswith(".env.")
