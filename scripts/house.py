"""The rooms of the package: their floors, the imports between them, and the table of docs/architecture.md.

    python scripts/house.py                    print the table
    python scripts/house.py --write            write it into docs/architecture.md
    python scripts/house.py --check            exit 1 when it is stale, but for the counts of lines
    python scripts/house.py --figures [COMMIT] the figures of the form, of the tree or of a commit
    python scripts/house.py --lower            write the figures that fell into tests/house.json, the ratchet
    python scripts/house.py --passes           the modules whose code one small file passes through in a migration

The figures need radon and vulture (the extra `dev`). A room is a folder of the package; its `__init__.py` says what it
is for. An arrow goes from a room to another one that some module of it imports, in functions and under TYPE_CHECKING
too. A room stands one floor above the highest that it imports. What runs inside the user's scripts imports nothing of
the others, and stands apart: the emulated packages (`emulator/`), and the functions of which `npu_port.py` is made
(`helper/`).
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path

from radon.complexity import cc_rank, cc_visit

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "transplt"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: A private function of so many lines that is used once is a candidate to go back to its caller.
SHORT = 6
#: What runs in the user's processes.
APART = {
    "emulator": "the emulated `torch_npu` and the stand-in for CUDA: in the scripts that `transplt run` starts; what a "
    "card pack does on the card (`on_card/`)",
    "helper": "the functions of which `npu_port.py` is made: read as text, and run where the migrated program runs",
}
PAGE = ROOT / "docs" / "architecture.md"
#: The figures that may only fall: tests/test_house.py.
RATCHET = ROOT / "tests" / "house.json"
BEGIN, END = "<!-- rooms: scripts/house.py -->\n", "<!-- end of rooms -->\n"
#: An ordinary small program, of which --passes says through what it goes.
SMALL = """\
import torch

model = torch.nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(torch.randn(8, 4).cuda()).sum()
loss.backward()
optimizer.step()
"""
#: Prints the modules in which a function runs, and the pairs of functions of two rooms that call each other.
_TRACED = """
import json, os, runpy, sys
package = os.path.join(sys.argv[1], "transplt", "")
def place(code):
    name = code.co_filename
    return name[len(package):] if name.startswith(package) and code.co_name != "<module>" else None
seen, changes = set(), set()
def called(frame, event, arg):
    if event != "call" or (module := place(frame.f_code)) is None:
        return
    seen.add(module)
    above = frame.f_back
    while above is not None and place(above.f_code) is None:
        above = above.f_back
    if above is not None and place(above.f_code).split("/")[0] != module.split("/")[0]:
        changes.add((above.f_code, frame.f_code))
sys.argv = ["transplt", "-i", *sys.argv[2:], "--jobs", "0"]
sys.setprofile(called)
try:
    runpy.run_module("transplt", run_name="__main__")
except SystemExit:
    pass
sys.setprofile(None)
print(json.dumps([sorted(seen), len(changes)]))
"""


@dataclass(slots=True)
class Room:
    """A room: the first sentence of its `__init__.py`, the lines of its modules, the rooms whose modules it imports."""

    name: str
    purpose: str = ""
    lines: int = 0
    imports: set[str] = field(default_factory=set)


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """The modules by their dotted names, without those that stand apart."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        if parts[1] not in APART:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def every_import(path: Path) -> frozenset[str]:
    """What a file imports, wherever in it, as dotted names of modules or of what is in them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), names=aliases):
                names |= {f"{module}.{alias.name}" for alias in aliases}
    return frozenset(names)


def imported(path: Path) -> set[str]:
    """What a file imports of the package."""
    return {name for name in every_import(path) if name.startswith("transplt.") and name != "transplt.__version__"}


def room_of(module: str, package: Path = PACKAGE) -> str:
    """The room of a dotted name; empty for a module at the top of the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (package / parts[1]).is_dir() else ""


def rooms(package: Path = PACKAGE) -> dict[str, Room]:
    """The rooms by their names."""
    every = modules(package)
    found = {name: Room(name) for module in every if (name := room_of(module, package))}
    for module, path in every.items():
        if not (name := room_of(module, package)):
            continue
        room = found[name]
        room.lines += len(path.read_bytes().splitlines())
        room.imports |= {room_of(other, package) for other in imported(path)} - {"", name}
        if path == package / name / "__init__.py":
            room.purpose = " ".join((ast.get_docstring(ast.parse(path.read_bytes())) or "").split())
    return found


def floors(found: dict[str, Room]) -> dict[str, int]:
    """The floor of each room, from 1; ValueError where rooms import one another in a circle."""
    known: dict[str, int] = {}
    while ready := [room for room in found.values() if room.name not in known and room.imports <= {*known}]:
        for room in ready:
            known[room.name] = 1 + max((known[other] for other in room.imports), default=0)
    if circle := sorted({*found} - {*known}):
        raise ValueError(f"rooms that import one another in a circle: {', '.join(circle)}")
    return known


def table() -> str:
    """The table of docs/architecture.md, lowest floor first."""
    found = rooms()
    known = floors(found)
    below: dict[str, list[str]] = defaultdict(list)
    for room in found.values():
        below[room.name] = sorted(room.imports, key=lambda name: (known[name], name))
    rows = ["| floor | room | what for | imports | lines |", "|---:|---|---|---|---:|"]
    for room in sorted(found.values(), key=lambda room: (known[room.name], room.name)):
        cells = (known[room.name], f"`{room.name}`", room.purpose, ", ".join(below[room.name]), f"{room.lines:,}")
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    for name, purpose in APART.items():
        lines = sum(len(path.read_bytes().splitlines()) for path in (PACKAGE / name).rglob("*.py"))
        rows.append(f"| apart | `{name}` | {purpose} | nothing of the others | {lines:,} |")
    arrows = sum(len(room.imports) for room in found.values())
    rows += ["", f"{len(found)} rooms, {max(known.values())} floors, {arrows} arrows between rooms, none up.", ""]
    return "\n".join(rows)


def without_lines(text: str) -> str:
    """A table of rooms without its counts of lines, which every change moves."""
    return re.sub(r"[0-9,]+ \|$", "|", text, flags=re.M)


def passes(root: Path = ROOT) -> tuple[list[str], int]:
    """The modules of the package in which a function runs while `SMALL` is migrated; and how many pairs of functions
    of two rooms call one another there.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "train.py")
        file.write_text(SMALL, encoding="utf-8")
        command = [sys.executable, "-c", _TRACED, str(root), str(file), "-o", str(Path(folder, "out"))]
        environment = {**os.environ, "PYTHONPATH": str(root)}
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    seen, changes = json.loads(done.stdout.splitlines()[-1])
    return [".".join(("transplt", *Path(module).with_suffix("").parts)) for module in seen], changes


@dataclass(slots=True)
class Form:
    """What is counted of the code of some modules."""

    lines: int = 0
    functions: int = 0
    #: Calls of `isinstance` that ask for a class of `ast`.
    ast_tests: int = 0
    matches: int = 0
    #: Private functions of at most six lines whose name occurs once more in their module.
    used_once: int = 0
    #: Functions, methods and classes that radon gives D or worse; F.
    complex: int = 0
    very_complex: int = 0

    def add(self, path: Path) -> None:
        source = path.read_bytes()
        self.lines += len(source.splitlines())
        nodes = [*ast.walk(ast.parse(source))]
        names = Counter(node.id if isinstance(node, ast.Name) else node.attr for node in nodes
                        if isinstance(node, (ast.Name, ast.Attribute)))  # fmt: skip
        for node in nodes:
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self.functions += 1
                    short = (node.end_lineno or 0) - node.lineno < SHORT
                    self.used_once += short and name[:1] == "_" != name[1:2] and names[name] == 1
                case ast.Call(func=ast.Name(id="isinstance"), args=[_, classes]):
                    self.ast_tests += "ast." in ast.unparse(classes)
                case ast.Match():
                    self.matches += 1
        ranks = [cc_rank(block.complexity) for block in cc_visit(source.decode())]
        self.complex += sum(rank >= "D" for rank in ranks)
        self.very_complex += ranks.count("F")

    def per_thousand(self, count: int) -> float:
        return round(1000 * count / self.lines, 1)


def forms(package: Path = PACKAGE) -> dict[str, Form]:
    """The form of each room; of those at the top of the package under an empty name."""
    found: dict[str, Form] = defaultdict(Form)
    for module, path in modules(package).items():
        found[room_of(module, package)].add(path)
    return found


def whole(found: dict[str, Form]) -> Form:
    """The sum of the forms of rooms."""
    return Form(*(sum(getattr(form, each.name) for form in found.values()) for each in fields(Form)))


def ratchet(found: dict[str, Form]) -> dict[str, float]:
    """The figures that may only fall, by their names."""
    every, fixers = whole(found), found["fixers"]
    return {
        "functions for each 1,000 lines": every.per_thousand(every.functions),
        "tests of ast classes for each 1,000 lines of fixers": fixers.per_thousand(fixers.ast_tests),
        "functions with radon D or worse": every.complex,
        "functions with radon F": every.very_complex,
        **{f"lines of {name}": found[name].lines for name in sorted(found) if name},
    }


def figures(root: Path) -> str:
    """The figures of a tree: without what stands apart, but for the first line."""
    package = root / "transplt"
    found = forms(package)
    every, standing = whole(found), rooms(package)
    trees = [ast.parse(path.read_bytes()) for path in package.rglob("*.py")]
    functions = sum(isinstance(node, FUNCTIONS) for tree in trees for node in ast.walk(tree))
    unused = subprocess.run([sys.executable, "-m", "vulture", str(package), "--min-confidence", "80"],
                            capture_output=True, text=True)  # fmt: skip
    entered, changes = passes(root)
    rows = [
        f"modules, functions of the whole package: {len(trees):,}, {functions:,}",
        f"lines: {every.lines:,}",
        f"functions: {every.functions:,}",
        *(f"{name}: {count:,}" for name, count in ratchet(found).items()),
        f"match statements: {every.matches}",
        f"private functions of at most {SHORT} lines used once: {every.used_once:,}",
        f"rooms, floors: {len(standing)}, {max(floors(standing).values())}",
        f"modules that a file of {len(SMALL.splitlines())} lines enters, changes of room: {len(entered)}, {changes:,}",
        f"unused code, as vulture sees it with 80 %: {len(unused.stdout.splitlines())}",
    ]
    return "\n".join(rows)


def figures_of(commit: str) -> str:
    """The figures of a commit of this repository."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        return figures(Path(folder).resolve())


def lowered() -> dict[str, float]:
    """The figures of the ratchet, each the lower one of the file's and the tree's; of a room that is new the tree's."""
    held, now = json.loads(RATCHET.read_text(encoding="utf-8")), ratchet(forms())
    return {name: min(count, held.get(name, count)) for name, count in now.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--write", "--check", "--lower", "--passes"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("--figures", nargs="?", const="", metavar="COMMIT")
    asked = parser.parse_args()
    if asked.passes:
        names, changes = passes()
        print("\n".join(names))
        engine = [name for name in names if room_of(name) == "engine"]
        print(f"{len(names)} modules, {len(engine)} of them in the engine; {changes} changes of room")
        return 0
    if asked.figures is not None:
        print(figures_of(asked.figures) if asked.figures else figures(ROOT))
        return 0
    if asked.lower:
        RATCHET.write_text(json.dumps(lowered(), indent=1) + "\n", encoding="utf-8")
        return 0
    text = PAGE.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        print(f"{PAGE}: no table between {BEGIN.strip()} and {END.strip()}", file=sys.stderr)
        return 2
    before, _, rest = text.partition(BEGIN)
    new = before + BEGIN + table() + END + rest.partition(END)[2]
    if asked.write:
        PAGE.write_text(new, encoding="utf-8")
    elif asked.check:
        stale = without_lines(new) != without_lines(text)
        if stale:
            print("docs/architecture.md: the table of rooms is stale; python scripts/house.py --write", file=sys.stderr)
        return int(stale)
    else:
        print(table())
    return 0


if __name__ == "__main__":
    sys.exit(main())
