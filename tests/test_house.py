"""The rooms of the package stand in one order, and each imports only from those below it."""

from __future__ import annotations

import ast
import json

from scripts.house import (
    APART,
    PACKAGE,
    PAGE,
    RATCHET,
    every_import,
    floors,
    forms,
    imported,
    modules,
    ratchet,
    rooms,
    table,
    without_lines,
)

#: From the lowest floor up; docs/architecture.md says what each is for.
ORDER = (
    "base", "rules syntax", "flow", "edits program", "fixers", "engine proof", "precision project", "faces",
)  # fmt: skip
#: Modules at the top, which only start the others.
ENTRIES = ("__init__", "__main__", "codemod")
#: The figures of the house: none may grow.
ROOMS, FLOORS, ARROWS = 12, 8, 56
#: Fixers that import nothing of one another.
SIBLINGS = ("codemods", "adaptors", "amp", "distributed", "triton", "tunings")


def test_rooms_stand_in_this_order() -> None:
    found = rooms()
    known = floors(found)
    standing = [" ".join(sorted(name for name in found if known[name] == floor)) for floor in range(1, FLOORS + 1)]
    assert standing == list(ORDER)
    assert {path.stem for path in PACKAGE.glob("*.py")} == {*ENTRIES}


def test_the_house_does_not_grow() -> None:
    found = rooms()
    assert len(found) <= ROOMS
    assert max(floors(found).values()) <= FLOORS
    assert sum(len(room.imports) for room in found.values()) <= ARROWS
    assert [room.name for room in found.values() if not room.purpose] == []


def test_the_form_only_gets_plainer() -> None:
    held, now = json.loads(RATCHET.read_text(encoding="utf-8")), ratchet(forms())
    risen = [f"{name}: {count}" for name, count in now.items() if count > held.get(name, 0)]
    assert risen == [], (
        f"{RATCHET.name} holds figures that may only fall. Write less; where lines rose for a thing that users see, "
        "say that thing in CHANGELOG.md, and only then write the new figure there"
    )
    fallen = [f"{name}: {now.get(name, 0)} now" for name, count in held.items() if now.get(name, 0) < 0.99 * count]
    assert fallen == [], f"lower it in {RATCHET.name}: python scripts/house.py --lower"


def test_the_table_of_rooms_is_that_of_the_tree() -> None:
    assert without_lines(table()) in without_lines(PAGE.read_text(encoding="utf-8"))


def test_fixers_of_one_kind_import_nothing_of_another() -> None:
    kinds = {kind: f"transplt.fixers.{kind}." for kind in SIBLINGS}
    assert [
        f"{module} imports {other}"
        for module, path in modules().items()
        for kind, prefix in kinds.items()
        if module.startswith(prefix)
        for other in sorted(imported(path))
        if any(other.startswith(kinds[sibling]) for sibling in SIBLINGS if sibling != kind)
    ] == []


def test_the_emulated_packages_import_nothing_of_the_others() -> None:
    inside = sorted((PACKAGE / "emulator").rglob("*.py"))
    assert [path.name for path in inside if imported(path)] == []
    assert len(inside) > 50


def test_the_functions_of_a_port_import_nothing_of_the_others() -> None:
    assert {*APART} == {"emulator", "helper"}
    inside = sorted((PACKAGE / "helper").rglob("*.py"))
    others = {name for path in inside for name in imported(path) if not name.startswith("transplt.helper.")}
    assert others == set()
    assert not any(name.startswith("transplt.helper") for path in modules().values() for name in imported(path))


def test_one_room_has_libcst() -> None:
    having = {
        module
        for module, path in modules().items()
        if any(name.split(".")[0] == "libcst" for name in every_import(path))
    }
    assert {module for module in having if not module.startswith("transplt.edits.trees.")} == {"transplt.codemod"}


#: Who reads files at all: the one reader, those that read what the package itself brings, those whose processes write
#: for them, who reads what the system says of a process, and what an installed package says of itself; those that read
#: the wheel in the cache.
READERS = {
    "transplt.base.text.regular_file", "transplt.rules.tables", "transplt.rules.pages",
    "transplt.base.render.templates", "transplt.proof.launch.runner", "transplt.proof.launch.hangs",
    "transplt.proof.launch.ranks",
    "transplt.project.budget_watch", "transplt.base.disk.child", "transplt.edits.added_codemods",
    "transplt.base.extras", "transplt.proof.launch.installed", "transplt.proof.launch.elf",
    "transplt.proof.launch.driver", "transplt.proof.compiler.child",
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
    assert reading == READERS


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
    # git, npu-smi for `transplt doctor`, transplt itself for an agent and each repository of a survey, the tests that
    # the user names for `transplt prove --tests`, and what the user asks `transplt run` to start or to set up, the
    # compiler for cards, and the linters and formatters that a project names, which read a copy of it.
    assert {module for module in starting if not module.startswith("transplt.proof.launch.")} == {
        "transplt.base.disk.git_command",
        "transplt.precision.diagnose.npu_smi",
        "transplt.base.disk.child",
        "transplt.proof.prove.portable",
        "transplt.proof.compiler.process",
        "transplt.proof.compiler.child",
        "transplt.project.port.own_tools",
    }


def is_os(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "os"


def test_modules_import_one_another_in_no_circle() -> None:
    known = modules()
    below = {}
    for module, path in known.items():
        names = imported(path)
        below[module] = {name if name in known else name.rpartition(".")[0] for name in names} & {*known} - {module}
    while ready := [module for module, others in below.items() if not others]:
        below = {module: others - {*ready} for module, others in below.items() if module not in ready}
    assert sorted(below) == []
