"""What a snippet is, the rules there are, and how a snippet is migrated, run on two hosts and compared."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from tests.forked import SHARED, torch_npu, warm
from transplt.base.finding import FileResult, Level
from transplt.base.settings import TORCH_VERSIONS, Settings
from transplt.proof.launch import runner
from transplt.proof.launch.options import RunOptions
from transplt.rules.pages import all_codes, load
from transplt.rules.rule_set import compile_rules

#: The torch that the tests run with, and that snippets are migrated for.
TORCH = "2.13"
#: Rules of a user's own: there is none without a rule file.
_USERS = "NPU0"


@dataclass(frozen=True)
class Snippet:
    """A few lines for CUDA that use what a rule rewrites and leave something in `result`.

    `settings` are those of the migration (`tune=...`, `amp=...`). `nature` says why values differ by nature: then
    types, dtypes and shapes alone are compared. `tolerance` is relative to the largest number of a tensor, 0 for bit
    for bit. `ranks` processes run it, `original_ranks` the original where they are others (0: one without a launcher);
    so with `arguments`. `before` are lines that go above the original, for what is not installed;
    `note` is for the document; `card_lacks` says what the emulated card under torch_npu has not: left out there.
    """

    code: str
    nature: str = ""
    tolerance: float = 0.0
    ranks: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    before: str = ""
    note: str = ""
    card_lacks: str = ""
    arguments: tuple[str, ...] = ()
    original_ranks: int | None = None
    original_arguments: tuple[str, ...] | None = None

    def launch(self, host: str) -> dict[str, Any]:
        """How many processes run it on a host, and their arguments."""
        ranks, arguments = self.ranks, self.arguments
        if host == "cuda":
            ranks = ranks if self.original_ranks is None else self.original_ranks
            arguments = arguments if self.original_arguments is None else self.original_arguments
        return {"ranks": ranks, "arguments": arguments}

    @property
    def source(self) -> str:
        code = self.code.strip("\n") + "\n"
        return code if code.startswith("import torch\n") else "import torch\n" + code


@dataclass(frozen=True)
class Rule:
    """A built-in rule that rewrites: `name` is the old name of a rule of a table, the code of one in Python."""

    name: str
    code: str
    new: str = ""
    versions: tuple[str, ...] = TORCH_VERSIONS

    @property
    def runs(self) -> bool:
        """Whether it is for the torch that the tests run with."""
        return TORCH in self.versions


@cache
def rewriting_rules() -> dict[str, Rule]:
    """By name: the rules of the tables, those of `-sim` included, and the codes whose edits are made by Python."""
    found: dict[str, Rule] = {}
    in_tables = set()
    for version in TORCH_VERSIONS:
        for rule in compile_rules(Settings(torch_version=version, similar=True)).builtin:
            if rule.new:
                in_tables.add(rule.code)
                held = found[rule.old].versions if rule.old in found else ()
                found[rule.old] = Rule(rule.old, rule.code, rule.new, (*held, version))
    for code in all_codes():
        edits = load(code).level in (Level.SAFE, Level.UNSAFE)
        if edits and code not in in_tables and not code.startswith(_USERS):
            found[code] = Rule(code, code)
    return found


def migrated(name: str, snippet: Snippet) -> FileResult:
    """The snippet after its migration; an AssertionError where the rule in question was not applied."""
    from tests.harness import migrate  # the documents are written without pytest

    rule = rewriting_rules()[name]
    settings = {"torch_version": TORCH, **snippet.settings}
    if rule.code == "NPU120":
        settings["similar"] = True
    result = migrate(snippet.source, path="main.py", **settings)
    applied = [finding for finding in result.findings if finding.applied and finding.code == rule.code]
    assert any(not rule.new or _answering(finding.api) == name for finding in applied), (
        f"{name} did not fire: {[(each.code, each.api, each.message) for each in result.findings]}"
    )
    return result


def _answering(api: str) -> str:
    """The rule that answers for a name: that with the longest old name which leads to it."""
    parts = api.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in rewriting_rules()), "")


def run_both(snippets: dict[str, Snippet]) -> dict[str, str]:
    """What is wrong, by the name of the snippet: originals run on the stand-in, migrated ones on the emulated NPU."""
    faults: dict[str, str] = {}
    texts: dict[str, tuple[str, str]] = {}
    for name, snippet in snippets.items():
        if snippet.card_lacks:
            continue
        try:
            after = migrated(name, snippet).data.decode()
        except AssertionError as error:
            faults[name] = str(error)
        else:
            texts[name] = (snippet.before + snippet.source, after)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, SHARED), ThreadPoolExecutor(2) as hosts:
        sides = [
            hosts.submit(_run_on, host, Path(folder), {name: pair[side] for name, pair in texts.items()}, snippets)
            for side, host in enumerate(("cuda", "npu"))
        ]
        cuda, npu = (side.result() for side in sides)
    for name in texts:
        for host, side in (("original on CUDA", cuda), ("migrated on the NPU", npu)):
            if side[name]["error"]:
                faults.setdefault(name, f"{host}: {side[name]['error']}\n{texts[name][host[0] == 'm']}")
        if name not in faults:
            snippet, one, other = snippets[name], cuda[name]["result"], npu[name]["result"]
            if snippet.ranks and snippet.original_ranks == 0:
                one = [one] * snippet.ranks
            if why := difference(one, other, snippet):
                faults[name] = f"{why}\n{texts[name][1]}"
    return faults


def run_on_npu(texts: dict[str, str]) -> dict[str, dict[str, Any]]:
    """By the name of a migrated text, its `result` and the `error` it ended with on the emulated NPU."""
    with tempfile.TemporaryDirectory() as folder:
        return _run_on("npu", Path(folder), texts, dict.fromkeys(texts, Snippet("")))


def _run_on(host: str, folder: Path, texts: dict[str, str], snippets: dict[str, Snippet]) -> dict[str, dict[str, Any]]:
    place = folder / host
    place.mkdir()
    jobs = []
    for number, (name, text) in enumerate(texts.items()):
        path = place / f"snippet_{number}.py"
        path.write_text(text, encoding="utf-8")
        jobs.append({"name": name, "path": str(path), **snippets[name].launch(host)})
    (place / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")
    driver = place / "driver.py"
    driver.write_text((Path(__file__).parent / "driver.py").read_text(encoding="utf-8"), encoding="utf-8")
    arguments = (str(place / "jobs.json"), str(place / "results.json"))
    options = RunOptions(
        str(driver), arguments, sys.executable, torch_version=TORCH, timeout=300, torch_npu=torch_npu()
    )
    done = runner.start(options, host=host, capture=True, echo=False, warm=warm())
    assert done.code == 0, (host, done.code, done.output[-2000:])
    results: dict[str, dict[str, Any]] = json.loads((place / "results.json").read_text(encoding="utf-8"))
    return results


def difference(cuda: Any, npu: Any, snippet: Snippet, where: str = "result") -> str:
    """The first difference of two told values; empty where they agree."""
    if type(cuda) is not type(npu):
        return f"{where}: {cuda!r} on CUDA, {npu!r} on the NPU"
    if isinstance(cuda, dict):
        if cuda.keys() != npu.keys():
            return f"{where}: keys {sorted(cuda.keys() ^ npu.keys())}"
        if "tensor" in cuda or "storage" in cuda:
            for key in cuda.keys() - {"values"}:
                if cuda[key] != npu[key]:
                    return f"{where}: {key} is {cuda[key]!r} on CUDA, {npu[key]!r} on the NPU"
            return "" if snippet.nature else _numbers(cuda["values"], npu["values"], snippet.tolerance, where)
        if "float" in cuda:
            return "" if snippet.nature else _numbers([cuda["float"]], [npu["float"]], snippet.tolerance, where)
        pairs = [(f"{where}[{key!r}]", cuda[key], npu[key]) for key in cuda]
    elif isinstance(cuda, list):
        if len(cuda) != len(npu):
            return f"{where}: {len(cuda)} on CUDA, {len(npu)} on the NPU"
        pairs = [(f"{where}[{at}]", *each) for at, each in enumerate(zip(cuda, npu, strict=True))]
    else:
        same = cuda == npu or (snippet.nature and not isinstance(cuda, bool))
        return "" if same else f"{where}: {cuda!r} on CUDA, {npu!r} on the NPU"
    return next((why for place, one, other in pairs if (why := difference(one, other, snippet, place))), "")


def _numbers(cuda: list[Any], npu: list[Any], tolerance: float, where: str) -> str:
    if cuda == npu:
        return ""
    if tolerance and len(cuda) == len(npu):
        pairs = [(float(one), float(other)) for one, other in zip(cuda, npu, strict=True)]
        size = max((abs(one) for one, _ in pairs if math.isfinite(one)), default=0.0)
        if all(one == other or abs(one - other) <= tolerance * size for one, other in pairs):
            return ""
    return f"{where}: {cuda[:6]} on CUDA, {npu[:6]} on the NPU"
