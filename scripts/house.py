"""The rooms of the package: their floors, the imports between them, and the table of docs/architecture.md.

    python scripts/house.py            print the figures
    python scripts/house.py --write    write the table into docs/architecture.md
    python scripts/house.py --check    exit 1 when the table is stale, but for the counts of lines
    python scripts/house.py --passes   the modules whose code one small file passes through in a migration

A room is a folder of the package; its `__init__.py` says what it is for. An arrow goes from a room to another one that
some module of it imports, in functions and under TYPE_CHECKING too. A room stands one floor above the highest that it
imports. What runs inside the user's scripts imports nothing of the others, and stands apart: the emulated packages
(`emulator/`), and the functions of which `npu_port.py` is made (`helper/`).
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "transplt"
#: What runs in the user's processes.
APART = {
    "emulator": "the emulated `torch_npu` and the stand-in for CUDA: in the scripts that `transplt run` starts; what a "
    "card pack does on the card (`on_card/`)",
    "helper": "the functions of which `npu_port.py` is made: read as text, and run where the migrated program runs",
}
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: scripts/house.py -->\n", "<!-- end of rooms -->\n"
#: An ordinary small program, of which --passes says through what it goes.
SMALL = """\
import torch
import torch.nn as nn

model = nn.Linear(4, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    loss = model(torch.randn(8, 4).cuda()).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""
_TRACED = """
import runpy, sys
seen = set()
sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code) if event == "call" else None)
sys.argv = ["transplt", "-i", {file!r}, "-o", {out!r}, "--jobs", "0"]
try:
    runpy.run_module("transplt", run_name="__main__")
except SystemExit:
    pass
sys.setprofile(None)
for name in sorted({{code.co_filename for code in seen if code.co_name != "<module>"}}):
    print(name)
"""


@dataclass(slots=True)
class Room:
    """A room: the first sentence of its `__init__.py`, the lines of its modules, the rooms whose modules it imports."""

    name: str
    purpose: str = ""
    lines: int = 0
    imports: set[str] = field(default_factory=set)


def modules() -> dict[str, Path]:
    """The modules by their dotted names, without those that stand apart."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if parts[1] not in APART:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> set[str]:
    """What a file imports of the package, wherever in it, as dotted names of modules or of what is in them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("transplt.") and name != "transplt.__version__"}


def room_of(module: str) -> str:
    """The room of a dotted name; empty for a module at the top of the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else ""


def rooms() -> dict[str, Room]:
    """The rooms by their names."""
    found = {room_of(module): Room(room_of(module)) for module in modules() if room_of(module)}
    for module, path in modules().items():
        if not (name := room_of(module)):
            continue
        room = found[name]
        room.lines += len(path.read_bytes().splitlines())
        room.imports |= {room_of(other) for other in imported(path)} - {"", name}
        if path == PACKAGE / name / "__init__.py":
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


def passes() -> list[str]:
    """The modules of the package in which a function runs while `SMALL` is migrated."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "train.py")
        file.write_text(SMALL, encoding="utf-8")
        program = _TRACED.format(file=str(file), out=str(Path(folder, "out")))
        done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    inside = [Path(line) for line in done.stdout.splitlines() if line.startswith(str(PACKAGE))]
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in inside]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--write", "--check", "--passes"):
        parser.add_argument(option, action="store_true")
    asked = parser.parse_args()
    if asked.passes:
        names = passes()
        print("\n".join(names))
        engine = [name for name in names if room_of(name) == "engine"]
        print(f"{len(names)} modules, {len(engine)} of them in the engine")
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
