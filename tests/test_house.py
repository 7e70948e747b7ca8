"""The rooms of the package stand in one order, and each imports only from those below it."""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "transplt"
#: From the lowest up; docs/architecture.md says what each is for.
ORDER = (
    "text", "rules", "syntax", "project", "values", "trees", "edits", "program", "codemods", "themes", "analysis",
    "apply", "files", "actions", "disk", "report", "run", "checking", "emulator", "prove", "instrument", "port",
    "diagnose", "profiles", "precision", "survey", "agents", "editor", "commands",
)  # fmt: skip
#: Modules at the top that everybody uses, and those that only start the others.
WORDS, ENTRIES = ("errors", "finding", "settings"), ("__init__", "__main__", "codemod")


def floor(module: str) -> int:
    first = module.removeprefix("transplt.").partition(".")[0]
    return -1 if first in WORDS else ORDER.index(first) if first in ORDER else len(ORDER)


def imported(path: Path) -> set[str]:
    """The modules that a file imports, wherever in it: in functions and under TYPE_CHECKING too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in names if name.startswith("transplt.") and name != "transplt.__version__"}


def modules() -> dict[str, Path]:
    files = [path for path in PACKAGE.rglob("*.py") if not {"site", "site_cuda"} & {*path.parts}]
    return {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in files}


def test_every_room_is_in_the_order() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(ORDER)
    assert {path.stem for path in PACKAGE.glob("*.py")} <= {*WORDS, *ENTRIES}


def test_a_room_imports_only_from_below() -> None:
    above = [
        f"{module} imports {other}"
        for module, path in modules().items()
        for other in sorted(imported(path))
        if floor(other) > floor(module)
    ]
    assert above == []


def test_one_room_has_libcst() -> None:
    having = {
        module
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "libcst" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "libcst")
    }
    assert {module for module in having if not module.startswith("transplt.trees.")} == {"transplt.codemod"}


#: Who reads files at all: the one reader, those that read what the package itself brings, and those whose processes
#: write for them. (`transplt.emulator.site` is in the processes that run a script.)
READERS = {
    "transplt.base.text.regular_file", "transplt.rules.tables", "transplt.rules.pages", "transplt.render.templates",
    "transplt.proof.launch.runner", "transplt.proof.launch.hangs",
}  # fmt: skip


def opens_for_reading(call: ast.Call) -> bool:
    """True for `open(path)`, `os.open(path, os.O_RDONLY)`, `path.read_bytes()` and the like."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("read_text", "read_bytes"):
        return True
    # `finding.open` and the like are no calls; `open` of a path, of os and of io has a mode or flags.
    return name == "open" and not any(
        (isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value[:1] in "wax")
        or (isinstance(part, ast.Attribute) and part.attr in ("O_WRONLY", "O_DIRECTORY"))
        for argument in (*call.args[1:], *(keyword.value for keyword in call.keywords))
        for part in ast.walk(argument)
    )  # fmt: skip


def test_files_of_others_are_read_in_one_place() -> None:
    reading = {
        module
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.Call) and opens_for_reading(node)
    }
    assert {module for module in reading if not module.startswith("transplt.emulator.site.")} == READERS


def test_programs_are_started_in_few_places() -> None:
    starting = {
        module
        for module, path in modules().items()
        for node in ast.walk(ast.parse(path.read_bytes()))
        if (isinstance(node, ast.Import) and any(alias.name in ("subprocess", "pty") for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module in ("subprocess", "pty"))
        or (isinstance(node, ast.Attribute) and node.attr in ("system", "popen", "posix_spawn"))
        or (isinstance(node, ast.Attribute) and node.attr.startswith(("exec", "spawn")) and is_os(node.value))
    }
    # git, npu-smi for `transplt doctor`, transplt itself for an agent and for each repository of a survey, and what the
    # user asks `transplt run` to start.
    assert {module for module in starting if not module.startswith("transplt.emulator.")} == {
        "transplt.disk.git_command",
        "transplt.diagnose.npu_smi",
        "transplt.disk.child",
    }


def is_os(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "os"


def test_modules_import_one_another_in_no_circle() -> None:
    known = modules()
    below = {module: {other for other in imported(path) if other in known} for module, path in known.items()}
    while ready := [module for module, others in below.items() if not others]:
        below = {module: others - {*ready} for module, others in below.items() if module not in ready}
    assert sorted(below) == []
