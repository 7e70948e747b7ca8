"""Definitions that lead back to themselves: whoever follows a name into its value comes to an end.

`cmd = "nohup " + cmd`, `a = b` beside `b = a`, a function that returns its own call, a class made of one that is made
of it: each assignment of a program gets such a companion or becomes one, drawn alike in every run.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator

from tests.fuzz.seeds import PIECES, python_files
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.base.text.source import UnreadableSource, read_source
from transplt.engine.engine import index_source, migrate_source
from transplt.fixers.tunings.table import parse_tunings
from transplt.flow.facts import ProjectFacts

#: What a name is given besides, and what it is given in the place of an expression `{e}`.
BESIDE = (
    "{x} = {x}", "{x} = 'nohup ' + {x}", "{x} = f'{{{x}}} a'", "{x} = '%s' % {x}", "{x} = {x}[0]", "{x} = {x}.y",
    "{x} = {x}()", "{x} = [{x}]", "{x} = {x} if {x} else {x}", "{x} += {x}", "back = {x}; {x} = back",
    "{x}, back = back, {x}; back = {x}", "{x}, back = round_1({x})", "{x} = {{**{x}, 'a': {x}}}", "{x} = round_1({x})",
    "{x} = str({x}).split()", "for {x} in ({x}, {x}): pass", "for back in [{x}]: {x} = back", "with {x} as {x}: pass",
    "{x}.y = {x}", "{x}['k'] = {x}", "{x} = {x}.to({x}).cuda()", "{x} = torch.device({x})",
    "{x} = getattr({x}, 'a', {x})",
)  # fmt: skip
INSTEAD = (
    "({x}, {e})", "{x} or ({e})", "({e}) if {x} else {x}", "{x} if {x} else ({e})", "{x} + ({e})", "back or ({e})",
    "{x}.get('a', {e})", "{{'a': {e}, 'b': {x}}}", "round_1({x}, {e})", "({e})({x})", "{x}({e})", "lambda: {x}", "{x}",
    "back", "getattr({x}, 'a', {e})", "[{e} for _ in {x}]", "torch.cuda.is_available() and {x}", "({e}).format({x})",
)  # fmt: skip
ROUND = "def round_1(*a): return round_2(*a)\ndef round_2(*a): return round_1(*a)\n"
#: What is followed from a name to its value, from a call to its function, from a class to its bases.
FOLLOWED = (
    """
import os
cmd = "CUDA_VISIBLE_DEVICES=0 python train.py --device cuda"
os.system(cmd)
name = "CUDA_VISIBLE_DEVICES"
os.environ[name] = "0"
""",
    """
import argparse
import torch
from apex import amp
from project import loader, net
def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda")
    return parser.parse_args()
def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)
def main():
    args = options()
    device = torch.device(args.device)
    model = net().to(device)
    optimizer = optimizer_of(model)
    model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
    for x in loader:
        loss = model(x.to(device)).mean()
        with amp.scale_loss(loss, optimizer) as scaled:
            scaled.backward()
        optimizer.step()
if __name__ == "__main__":
    main()
""",
    """
import torch
class Data(Rows):
    def __getitem__(self, index):
        kind = torch.heaviside(index, index)
        return torch.linalg.lstsq(kind, index)
class Rows(torch.utils.data.Dataset):
    size = 3
""",
)
SETTINGS = (
    Settings(analysis=True),
    Settings(entry="train.py"),
    Settings(amp="apex", amp_flag=True, tune=parse_tunings("all", TORCH_VERSIONS[-1])),
)


def in_circles(text: str, draw: random.Random) -> str:
    """A program whose definitions lead back to themselves."""
    tree, lines = ast.parse(text), text.split("\n")
    added: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        plain = len(targets) == 1 and isinstance(targets[0], (ast.Name, ast.Attribute))
        indent = lines[node.lineno - 1][: node.col_offset] if isinstance(node, ast.stmt) else ""
        if isinstance(node, ast.Assign) and plain and not indent.strip() and node.lineno == node.end_lineno:
            name, value = ast.unparse(targets[0]), ast.unparse(node.value)
            if isinstance(targets[0], ast.Name) and draw.random() < 0.5:
                lines[node.lineno - 1] = f"{indent}{name} = {draw.choice(INSTEAD).format(x=name, e=value)}"
                added += [(node.lineno, f"{indent}back = {name}")] * draw.randrange(2)
            else:
                added.append((node.lineno, indent + draw.choice(BESIDE).format(x=name)))
        elif isinstance(node, ast.FunctionDef) and node.body[-1].lineno > node.lineno:
            inner = lines[node.body[-1].lineno - 1][: node.body[-1].col_offset]
            names = [each.arg for each in node.args.args]
            owner, given = ("self.", names[1:]) if names[:1] == ["self"] else ("", names)
            call = f"return {owner}{node.name}({', '.join(given)})"
            added.append((node.body[-1].lineno - 1, f"{inner}if len(''): {call}"))
            added.append((node.body[-1].end_lineno or 0, inner + call))
        elif isinstance(node, ast.ClassDef):
            head = lines[node.lineno - 1]
            lines[node.lineno - 1] = re.sub(r"\(([^()=]*)\):", rf"(\1, Round{node.name}):", head)
            added.append((len(lines), f"class Round{node.name}({node.name}): pass"))
    for line, new in sorted(added, reverse=True):
        lines.insert(line, new)
    return "\n".join(lines) + f"\n{ROUND}"


def programs() -> Iterator[str]:
    """The programs in circles: each that follows something in many of them, the others in one."""
    for number, data in enumerate((*FOLLOWED * 40, *(each.decode() for each in PIECES), *map(_text, python_files()))):
        try:
            found = in_circles(data, random.Random(number))
            compile(found, "train.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            continue
        yield found


def _text(data: bytes) -> str:
    try:
        return read_source(data).text
    except UnreadableSource:
        return "("


def test_everybody_comes_to_an_end() -> None:
    tried = 0
    for program in programs():
        settings = SETTINGS[tried % len(SETTINGS)]
        facts = index_source(program.encode(), "train.py", settings)
        migrate_source(program.encode(), "train.py", settings, ProjectFacts.join([facts]))
        tried += 1
    assert tried > 300
