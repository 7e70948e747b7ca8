"""Writes docs/reference/torch_cuda.md: what becomes of each name of torch.cuda and its kin.

    python scripts/torch_cuda_page.py               write the page
    python scripts/torch_cuda_page.py --check       exit 1 when it is stale

Each name is a line of a program (`x = NAME`), and of another (`x = NAME()`), which are migrated for every torch and in
both styles: the page says what came out. The names are those of the facts (scripts/facts), and those that the tables in
rules/ speak of; what is run comes from tests/executed. Without torch.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts import fact_store  # noqa: E402
from tests.executed.snippet import TORCH  # noqa: E402
from tests.executed.table import rewriting_rules, said_of  # noqa: E402
from tests.executed.test_on_card import CALLS  # noqa: E402
from transplt.base.finding import Finding  # noqa: E402
from transplt.base.settings import TORCH_VERSIONS, Settings  # noqa: E402
from transplt.engine.analysis.known import known_names  # noqa: E402
from transplt.engine.engine import index_source, migrate_source  # noqa: E402
from transplt.flow.facts import ProjectFacts  # noqa: E402
from transplt.rules.pages import CLASS_PAGE, class_page  # noqa: E402
from transplt.rules.rule_set import builtin_rules  # noqa: E402
from transplt.rules.support_tables import modules  # noqa: E402
from transplt.rules.versions import spans  # noqa: E402

PAGE = ROOT / CLASS_PAGE
#: In a word what a finding comes to, by its code; the first that is there counts.
_WORDS = {
    "NPU501": "none", "NPU502": "none", "NPU552": "none", "NPU503": "no effect", "NPU504": "no effect",
    "NPU506": "another meaning", "NPU128": "another meaning", "NPU601": "not known",
}  # fmt: skip
#: So many: neighbours in the list, as a class and its members, may have to do with each other.
_PROGRAMS = 29
#: What brings a name into the file, and is not said of the name.
_IMPORTS = ("NPU156", "NPU261", "NPU403")
_HEAD = """# Each name of torch.cuda

What becomes of a name of `torch.cuda`, `torch.backends.cuda`, `torch.backends.cudnn` or `torch.backends.cusparselt`?
The table is made by `scripts/torch_cuda_page.py`: each name is a line of a program, which transplt migrates for every
torch from {first} to {last}. `transplt explain NAME` says the sources.

- **same**: `torch.npu` has it under the same name. **changed**: another name, or another call.
- **no effect**: it may stay, and does nothing on an NPU. **another meaning**: it can be called, and answers something
  else. **none**: `torch_npu` has nothing like it; the text says what to do. **not known**: no table has it.
- *portable*: what [style portable](../porting.md) writes with torch {last}; a dash: it stays, and a finding says why.
  `device_module` is `torch.cuda` or `torch.npu`.
- *run*: whether a test runs what is written on the released torch_npu {run} on [the emulated card](../emulator.md), and
  holds it against the original ([the tests](executed_rules.md)). Empty: no test has it by itself.

With torch {last}: {figures}.
"""


@cache
def names() -> tuple[str, ...]:
    """The names of the page, sorted: public names, members of classes, and private names that programs use."""
    lists = fact_store.read("torch_names")["lists"]
    found = {*fact_store.cuda_to_npu(), *known_names(), *modules()}
    found |= {f"{module}.{name}" for module, held in lists.items() for group in held.values() for name in group}
    return tuple(sorted(name for name in found if class_page(name) and re.fullmatch(r"[\w.]+", name)))


@cache
def _answers(ending: str, part: tuple[str, ...], version: str, style: str) -> dict[str, tuple[str, list[Finding]]]:
    """What the line of each name of a part comes to in one program, and what is said of it."""
    settings = Settings(torch_version=version, style=style, helper_file=True)
    lines = [name + ending for name in part]
    data = ("import torch\n" + "".join(f"x{at} = {line}\n" for at, line in enumerate(lines))).encode()
    project = ProjectFacts.join([index_source(data, "train.py", settings)])
    result = migrate_source(data, "train.py", settings, project)
    written = result.data.decode().splitlines()[-len(lines) :]
    said: list[list[Finding]] = [[] for _ in range(len(lines) + 2)]
    for each in result.findings:
        if each.code not in _IMPORTS:
            said[each.span.line].append(each)
    return {line: (text.partition(" = ")[2], found) for line, text, found in zip(lines, written, said[2:], strict=True)}


def answer(line: str, version: str, style: str) -> tuple[str, list[Finding]]:
    """What a name, or its call, comes to, and what is said of it."""
    name = line.removesuffix("()")
    part = names()[names().index(name) % _PROGRAMS :: _PROGRAMS]
    return _answers(line[len(name) :], part, version, style)[line]


def word(name: str, written: str, found: Sequence[Finding]) -> str:
    """Same, changed, or what the finding comes to."""
    if written != name:
        return "same" if written == name.replace("torch.cuda", "torch.npu", 1) else "changed"
    return next((_WORDS[each.code] for each in found if each.code in _WORDS), "a finding" if found else "stays")


def npu(name: str, version: str) -> str:
    """The cell of style npu for one torch, without the torch."""
    written, found = answer(name, version, "npu")
    text, more = f"**{word(name, written, found)}**" + (f" `{written}`" if written != name else ""), list[str]()
    for said in found[:1]:
        text += f" [{said.code}](../../rules/diagnostics/{said.code}.md)"
        more.append(said.help)
    matched = builtin_rules(version).resolve(name)
    if matched is not None and matched[1] == name and matched[0].args is not None and written != name:
        arguments = matched[0].args
        more += [f"`{old}=` is `{new}=`" for old, new in arguments.rename if old != new]
        more += [f"a finding where {arguments.message}"] if arguments.message else []
    called, of_call = answer(f"{name}()", version, "npu")
    if called != f"{written}()":
        more.append(f"called: `{called}`")
    elif {each.code for each in of_call} != {each.code for each in found}:
        more.append(f"called: {of_call[0].message}" if of_call else "called, nothing is said of it")
    return "; ".join([text, *filter(None, more)])


def portable(name: str, version: str) -> str:
    """The cell of style portable."""
    written, _ = answer(name, version, "portable")
    called, _ = answer(f"{name}()", version, "portable")
    if called != f"{written}()":
        return f"`{called}`" if called != f"{name}()" else "-"
    return f"`{written}`" if written != name else "-"


def run(name: str) -> str:
    """What the tests run of it."""
    rule = rewriting_rules().get(name)
    if rule is None or not rule.new:
        return ""
    said = said_of(rule)
    if name in CALLS and said.startswith("no: "):
        said = f"on torch_npu alone: {said[4:]}"
    written, _ = answer(name, TORCH, "npu")
    return f"with --similar: {said}" if written == name else said


def by_version(cell: Callable[[str, str], str], name: str) -> str:
    """A cell, with the versions of torch where it is not the same for all."""
    held: dict[str, list[str]] = {}
    for version in TORCH_VERSIONS:
        held.setdefault(cell(name, version), []).append(version)
    if len(held) == 1:
        return next(iter(held))
    newest = sorted(held.items(), key=lambda each: TORCH_VERSIONS.index(each[1][-1]), reverse=True)
    return "<br>".join(f"torch {spans(versions)}: {text}" for text, versions in newest)


def parts() -> Iterator[tuple[str, list[str]]]:
    """The modules with their names: a class, and what it holds, stand with the module of the class."""
    held: dict[str, list[str]] = {}
    for name in names():
        ends = [at for at, sign in enumerate(f"{name}.") if sign == "."]
        held.setdefault(max(each for end in ends if (each := name[:end]) in modules()), []).append(name)
    yield from sorted(held.items())


def page() -> str:
    """The text of the page."""
    last = TORCH_VERSIONS[-1]
    words = [word(name, *answer(name, last, "npu")) for name in names()]
    order = sorted(set(words), key=lambda each: -words.count(each))
    figures = f"{len(words)} names, " + ", ".join(f"{words.count(each)} {each}" for each in order)
    lines = [_HEAD.format(first=TORCH_VERSIONS[0], last=last, run=TORCH, figures=figures)]
    for module, held in parts():
        lines += [f"## {module}", "", "| name | style npu | portable | run |", "|---|---|---|---|"]
        for name in held:
            cells = (f'<a id="{name}"></a>`{name}`', by_version(npu, name), portable(name, last), run(name))
            lines.append(f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write, or check."""
    text = page()
    if [*arguments] == ["--check"]:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
        if stale:
            print("docs/reference/torch_cuda.md is stale: run scripts/torch_cuda_page.py", file=sys.stderr)
        return int(stale)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
