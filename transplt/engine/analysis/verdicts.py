"""From uses of torch's API to findings: unsupported, limited, unverified.

What comes of an API is weighed in one place (`transplt.rules.weighing`). Each use of one that stops is a finding with
work to do. What the documentation alone calls unsupported, limits that a use need not meet, operators that the CPU
computes, and APIs that no witness knows, are one finding a file, which counts as no work.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from transplt.base.finding import Effort, Level
from transplt.base.render.cell import first_of
from transplt.base.settings import TORCH_VERSIONS
from transplt.edits.edit import Note
from transplt.engine.analysis.api_uses import Use
from transplt.engine.analysis.scanned_file import ScannedFile
from transplt.flow.cuda_builds import BUILDERS, names_cpp_alone
from transplt.flow.gates.npu_choices import HANDLED
from transplt.rules import support_tables as tables
from transplt.rules.rule_set import RuleSet
from transplt.rules.support_tables import Support
from transplt.rules.weighing import Status, Weighed, weigh
from transplt.syntax.nodes import plain_name
from transplt.syntax.scan import parent

UNSUPPORTED, SURE, LIMITED, ON_CPU, UNVERIFIED, NOT_ON_CARD = "NPU520", "NPU521", "NPU522", "NPU523", "NPU524", "NPU525"
#: Dtypes that training code may be expected to use; a limit that leaves none of them out is worth no row.
_COMMON = ("fp32", "fp16", "bf16")
#: Kinds of limits that a row must not be dropped for.
_PLAIN_TAGS = frozenset({"dtype", "named_tensor", "compat_switch", "precision_950DT", "param_950DT", "performance"})
_DTYPES = {
    "float64": "fp64", "double": "fp64", "float32": "fp32", "float": "fp32", "float16": "fp16", "half": "fp16",
    "bfloat16": "bf16", "int64": "int64", "long": "int64", "int32": "int32", "int": "int32", "int16": "int16",
    "short": "int16", "int8": "int8", "uint8": "uint8", "bool": "bool", "complex64": "complex64",
    "cfloat": "complex64", "complex128": "complex128", "cdouble": "complex128",
}  # fmt: skip
_MOST_LINES = 8
_DOUBTED_HELP = "try it first; the documentation may be outdated"


def notes_of(file: ScannedFile, uses: list[Use], rules: RuleSet) -> list[Note]:
    """What the documentation says of the uses, for the version and the hardware of the settings."""
    found: list[Note] = []
    quiet: dict[tuple[str, str], tuple[list[Use], str, str]] = {}
    for use in uses:
        if not judged(use.api, rules) or not runs(use):
            continue
        weighed = weigh(tables.called_by(use.api), file.version)
        if weighed.status is Status.STOPS and file.handled and not weighed.lacks:
            # The documentation alone, against a project that trains on NPUs and uses it.
            message = f"{_documented(use.api, file.version)}, but {HANDLED}"
            _add(quiet, UNSUPPORTED, use, message, _DOUBTED_HELP)
        elif weighed.status is Status.STOPS:
            found.append(_unsupported(file, use, weighed))
        elif weighed.status is Status.UNKNOWN:
            said = f"not mentioned in the documentation of torch_npu for torch {tables.spoken_for(file.version)}"
            private = any(part.startswith("_") for part in use.api.split("."))
            said = "private to torch and not documented for NPU" if private else said
            _add(quiet, UNVERIFIED, use, f"{use.api} is {said}", "")
        elif weighed.status is Status.DOUBTED:
            message = f"{_documented(use.api, file.version)}, but {_spoken(weighed)}"
            _add(quiet, UNSUPPORTED, use, message, _DOUBTED_HELP)
        else:
            _limited(file, use, weighed, found, quiet)
        row = weighed.row
        if row is not None and row.status != "no" and file.hardware in row.not_on:
            where = f"{use.api} is documented for Atlas A2 and A3, and not for Ascend {file.hardware}"
            _add(quiet, NOT_ON_CARD, use, where, "look for it in the newest documentation, or try it on the card")
    found += [_quiet(file, code, kept) for (code, _), kept in quiet.items()]
    return found


def judged(api: str, rules: RuleSet) -> bool:
    """False for what the rules of the migration speak of: their findings and edits say it already."""
    inside = any(api == part or api.startswith(f"{part}.") for part in tables.CONVERTED)
    return not inside and rules.resolve(api) is None


def runs(use: Use) -> bool:
    """False where an API is only named: in an annotation, a test of types, a key of a table or an except clause."""
    node: ast.AST = use.node
    if use.call is not None:
        return True
    while True:
        above = parent(node)
        if isinstance(above, (ast.arg, ast.AnnAssign)) and above.annotation is node:
            return False
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return above.returns is not node
        if isinstance(above, ast.Call) and plain_name(above.func) in ("isinstance", "issubclass"):
            return False
        if isinstance(above, ast.ExceptHandler):
            return above.type is not node
        if isinstance(above, ast.Compare) or (isinstance(above, ast.Dict) and node in above.keys):
            return False
        if isinstance(above, ast.Subscript) and above.slice is node:
            return False
        if isinstance(above, (ast.stmt, ast.Call, ast.Module)):
            return True
        node = above


def _documented(api: str, version: str) -> str:
    return f"{api} is documented as not supported on NPU with torch {tables.spoken_for(version)}"


def _spoken(weighed: Weighed) -> str:
    return ", and ".join(weighed.witnesses)


def _unsupported(file: ScannedFile, use: Use, weighed: Weighed) -> Note:
    version = file.version
    message = _documented(use.api, version)
    if weighed.row is None or weighed.row.status != "no":
        message = f"{use.api} is not supported with torch {version}: {_spoken(weighed)}"
    elif weighed.lacks:
        message += f", and {_spoken(weighed)}"
    extent = file.extent(use.node)
    if file.receivers.loads_data(use.node):
        message += "; here it is in code that loads data on the CPU"
        return Note(extent, UNSUPPORTED, Level.INFO, message, use.api)
    if use.api in BUILDERS and names_cpp_alone(file.source.utf8):
        message += "; here it compiles C++ for the host"
        return Note(extent, UNSUPPORTED, Level.INFO, message, use.api)
    ways = [] if weighed.lacks else ["only the documentation says so: try it first"]
    later = [v for v in tables.supported_in(use.api) if TORCH_VERSIONS.index(v) > TORCH_VERSIONS.index(version)]
    if later and later[-1] == tables.published()[-1]:
        ways.append(f"documented as supported from torch {later[0]} on")
    instead = "use supported operators, or compute this on the CPU" if tables.is_operator(use.api) else "do without it"
    ways.append(instead if weighed.lacks else f"if it fails, {instead}")
    effort = Effort.LOW if tables.is_low_effort(use.api) else Effort.MEDIUM
    return Note(extent, UNSUPPORTED, Level.MANUAL, message, use.api, "; ".join(ways), effort)


# --- limits ----------------------------------------------------------------------------------------------------------


def _limited(
    file: ScannedFile,
    use: Use,
    weighed: Weighed,
    found: list[Note],
    quiet: dict[tuple[str, str], tuple[list[Use], str, str]],
) -> None:
    row, spoken = weighed.row, tables.spoken_for(file.version)
    hit = next(_certain(file, use, row), "") if row is not None and row.status == "limited" else ""
    limit = f"documented: {row.limit}" if row is not None and row.limit else ""
    if hit and not file.receivers.loads_data(use.node):
        message = f"{use.api}: {hit} is beyond what is documented for NPU with torch {spoken}"
        found.append(Note(file.extent(use.node), SURE, Level.MANUAL, message, use.api, limit, Effort.LOW))
    elif weighed.status is Status.ON_CPU or (row is not None and "cpu_fallback" in row.tags):
        message = f"{use.api} may run on the CPU, with copies in both directions, with torch {spoken}"
        if weighed.status is Status.ON_CPU:
            why = f"{_spoken(weighed)} with torch {file.version}"
            message = f"{use.api} runs on the CPU, with copies in both directions: {why}"
        if weighed.status is not Status.ON_CPU or not file.receivers.loads_data(use.node):
            help_ = "; ".join(filter(None, (limit, "measure it if it is in the training loop")))
            _add(quiet, ON_CPU, use, message, help_)
    elif weighed.status is Status.LIMITED and row is not None and is_notable(use.api, row):
        _add(quiet, LIMITED, use, f"{use.api} is documented with a limit: {row.limit}", "")


def is_notable(api: str, row: Support) -> bool:
    """False for a limit that says only with which dtypes a page was checked."""
    if row.tags - _PLAIN_TAGS:
        return True
    if "dtype" not in row.tags or not tables.is_operator(api):
        return False
    floats = [name for listed in row.dtypes.values() if any(dtype in listed for dtype in _COMMON) for name in [listed]]
    return bool(floats) and any("bf16" not in listed and "fp16" in listed for listed in floats)


def _certain(file: ScannedFile, use: Use, row: Support) -> Iterator[str]:
    """Arguments of a call that are certain to meet its limit, as texts."""
    call = use.call
    if call is None:
        return
    for limit in tables.sure_limits(tables.called_by(use.api)):
        if limit["limit"] not in row.limit:
            continue
        value = argument(call, limit["param"], limit["at"])
        if value is not None and _meets(limit, value):
            yield f"{limit['param']}={ast.unparse(value)[:60]}"
    allowed = row.dtypes.get("dtype")
    if allowed:
        value = argument(call, "dtype", None)
        # As the documentation has it, of torch.float64 or torch.double.
        owner, _, last = (file.names.qualified(value) or "" if value is not None else "").rpartition(".")
        name = _DTYPES.get(last, "") if owner == "torch" else ""
        if name and name not in allowed:
            yield f"dtype={ast.unparse(value)}" if value is not None else name


def argument(call: ast.Call, name: str, position: int | None) -> ast.expr | None:
    """An argument by keyword or position; None when it is not given, or hidden behind a star."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is not None and len(call.args) > position and not any(isinstance(a, ast.Starred) for a in call.args):
        return call.args[position]
    return None


def _meets(limit: dict[str, Any], value: ast.expr) -> bool:
    try:
        constant = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    if limit["when"] == "given":
        return constant is not None
    constant = list(constant) if isinstance(constant, tuple) else constant
    same = any(type(constant) in (type(each), float, int) and constant == each for each in limit["values"])
    return same if limit["when"] == "is" else not same and constant is not None


# --- one finding a file ----------------------------------------------------------------------------------------------


def _add(
    quiet: dict[tuple[str, str], tuple[list[Use], str, str]], code: str, use: Use, message: str, help_text: str
) -> None:
    quiet.setdefault((code, use.api), ([], message, help_text))[0].append(use)


def _quiet(file: ScannedFile, code: str, kept: tuple[list[Use], str, str]) -> Note:
    uses, message, help_text = kept
    more = also(uses)
    return Note(
        file.extent(uses[0].node), code, Level.INFO, f"{message}{more}", uses[0].api, help_text,
        details=(("also", more),) if more else (),
    )  # fmt: skip


def also(uses: list[Use]) -> str:
    """The lines of the other uses in the file, in words."""
    lines = sorted({use.node.lineno for use in uses} - {uses[0].node.lineno})
    if not lines:
        return ""
    return f" (also in line{'s' if len(lines) > 1 else ''} {first_of([*map(str, lines)], _MOST_LINES)})"
